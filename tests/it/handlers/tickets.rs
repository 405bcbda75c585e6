//! Tickets: their codes, new issues, what is void, and the doors that check them, as users and enemies ask.

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::SaleState;
use engine::flows::cancel_sale;
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use serde_json::{Value, json};
use shared::runtime::app::new_epoch;
use shared::tickets::{
    CodeDefect, PublicKeys, RevokedList, Standing, TicketCode, TicketKeys, TicketSecrets,
};

use super::{Fixture, Got, OPERATOR_ISSUER, Sender, hall};

const ALICE: Sender<'_> = Sender::Buyer("alice");
const BOB: Sender<'_> = Sender::Buyer("bob");
const ZHANG: Sender<'_> =
    Sender::Token(OPERATOR_ISSUER, "onsale/watch onsale/operate onsale/refund onsale/scan");
/// The price of a ticket.
const PRICE: i64 = 2500;
const LINE: &str = "/operator/sales/hall/check-ins";

impl Fixture {
    /// Alice's paid order of two seats and a spot, of a sale that lets tickets be given back.
    async fn paid_for(&self, payment: &str) -> String {
        let mut file = hall();
        file["refunds"] = json!({ "until": "2099-12-31T00:00:00Z" });
        file["attendees"] = json!("optional");
        self.publish(&file).await.ok(200);
        let seats = json!([{ "tier": "vip", "seats": ["vip-1-3", "vip-1-4"], "attendees": ["P-1", "P-2"] }]);
        let order = self.buy("alice", "hall", seats).await.ok(201);
        let number = order["order"].as_str().unwrap().to_owned();
        let unpaid = self.tickets(ALICE, &number).await.ok(200);
        assert_eq!((&unpaid["tickets"], &unpaid["title"]), (&json!([]), &file["title"]));
        let paid = self.callback(payment, &order["order"], 2 * PRICE).await.ok(200);
        assert_eq!(paid, json!({ "outcome": "accepted" }));
        number
    }

    async fn tickets(&self, who: Sender<'_>, order: &str) -> Got {
        self.get(who, &format!("/orders/{order}/tickets")).await
    }

    async fn keys(&self) -> PublicKeys {
        let keys = self.get(Sender::Nobody, "/ticket-keys").await.ok(200);
        PublicKeys::read(&keys.to_string()).unwrap()
    }

    async fn codes_of(&self, order: &str) -> Vec<String> {
        let shown = self.tickets(ALICE, order).await.ok(200);
        let tickets = shown["tickets"].as_array().unwrap().iter();
        let code = |ticket: &Value| ticket["code"].as_str().map(str::to_owned);
        tickets.filter_map(code).collect()
    }

    async fn list(&self) -> RevokedList {
        let shown = self.get(Sender::Nobody, "/sales/hall/revoked").await.ok(200);
        self.keys().await.check_list(shown["list"].as_str().unwrap()).unwrap()
    }

    async fn standing(&self, code: &str) -> Standing {
        self.keys().await.check_code(code).unwrap().standing(&[self.list().await])
    }

    /// What became of scans: the outcomes, and who was first.
    async fn scanned(&self, scans: &[(&str, &str, &str)]) -> Vec<(String, Value)> {
        let one =
            |(code, door, at): &(&str, &str, &str)| json!({ "code": code, "door": door, "at": at });
        let body = json!({ "check_ins": scans.iter().map(one).collect::<Vec<Value>>() });
        let said = self.json(ZHANG, "POST", LINE, &body).await.ok(200);
        let said = said["results"].as_array().unwrap().iter();
        said.map(|one| (one["outcome"].as_str().unwrap().to_owned(), one["first_door"].clone()))
            .collect()
    }

    async fn reissue(&self, order: &str, tickets: Value) -> Got {
        let target = format!("/operator/orders/{order}/tickets/reissue");
        self.json(ZHANG, "POST", &target, &json!({ "tickets": tickets })).await
    }

    async fn give_back(&self, number: u8, order: &str, tickets: Value) -> Got {
        let body = json!({ "number": number, "tickets": tickets });
        self.json(ALICE, "POST", &format!("/orders/{order}/refunds"), &body).await
    }
}

fn at(seconds: i64) -> String {
    Timestamp::now().plus_seconds(seconds).to_string()
}

fn seat(seat: &str) -> Value {
    json!([{ "tier": "vip", "seat": seat }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_its_buyers_the_same_each_time_and_void_once_issued_anew_or_refunded() {
    let fixture = Fixture::start().await;
    let order = fixture.paid_for("pi_1").await;
    let shown = fixture.tickets(ALICE, &order).await.ok(200);
    let first = &shown["tickets"][0];
    assert_eq!((&first["number"], &first["state"]), (&json!(1), &json!("valid")));
    assert_eq!((&first["seat"], &first["attendee"]), (&json!("vip-1-3"), &json!("P-1")));
    assert_eq!(fixture.tickets(ALICE, &order).await.ok(200), shown, "nothing is stored");
    let code = first["code"].as_str().unwrap();
    let read = fixture.keys().await.check_code(code).unwrap();
    assert_eq!((read.sale.as_str(), read.order.to_string()), ("hall", order.clone()));
    assert!(!code.contains("P-1") && read.deployment == fixture.keys().await.deployment);
    fixture.tickets(BOB, &order).await.problem(404, "not-found");
    fixture.tickets(Sender::Nobody, &order).await.problem(401, "not-authenticated");
    assert_eq!(fixture.standing(code).await, Standing::Good);

    // Issued anew: the old code is void, the new one good.
    let issued = fixture.reissue(&order, json!([1])).await.ok(200);
    let issues = json!([{ "number": 1, "issue": 2 }, { "number": 2, "issue": 1 }]);
    assert_eq!(issued["tickets"], issues);
    let new = fixture.codes_of(&order).await;
    assert_eq!(fixture.standing(code).await, Standing::OldIssue);
    assert_eq!(fixture.standing(&new[0]).await, Standing::Good);
    fixture.reissue("1024", json!([])).await.problem(404, "not-found");
    fixture.reissue(&order, json!([3])).await.problem(422, "invalid");
    let actions = fixture.get(ZHANG, "/operator/actions").await.ok(200);
    let told = &actions["actions"].as_array().unwrap()[2];
    assert_eq!((&told["action"], &told["detail"]), (&json!("reissue"), &json!("tickets: 1")));

    // Refunded: no code at all, and none of the old ones is ever good again.
    fixture.give_back(1, &order, seat("vip-1-3")).await.ok(200);
    let shown = fixture.tickets(ALICE, &order).await.ok(200);
    let first = &shown["tickets"][0];
    assert_eq!((&first["state"], first.get("code")), (&json!("revoked"), None));
    for code in [code, &new[0]] {
        assert_eq!(fixture.standing(code).await, Standing::Revoked);
    }
    assert_eq!(fixture.standing(&new[1]).await, Standing::Good);
    fixture.reissue(&order, json!([1])).await.problem(409, "ticket-refunded");
    assert_eq!(fixture.list().await.revoked.len(), 1);
    fixture.give_back(2, &order, json!("all")).await.ok(200);
    fixture.reissue(&order, json!([])).await.problem(409, "order-not-paid");
    let shown = fixture.tickets(ALICE, &order).await.ok(200);
    assert!(shown["tickets"].as_array().unwrap().iter().all(|one| one["state"] == "revoked"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_check_in_is_recorded_once_and_two_doors_are_named() {
    let fixture = Fixture::start().await;
    let order = fixture.paid_for("pi_1").await;
    let codes = fixture.codes_of(&order).await;
    let (north, south, later) = (at(0), at(5), at(60));
    // Two doors were offline, and both let the ticket in; the one that is heard first is the first.
    let scans = [
        (codes[0].as_str(), "north", north.as_str()),
        (codes[0].as_str(), "south", south.as_str()),
        (codes[0].as_str(), "north", north.as_str()),
        ("alice", "north", north.as_str()),
    ];
    let said = fixture.scanned(&scans).await;
    let outcomes: Vec<&str> = said.iter().map(|(outcome, _)| outcome.as_str()).collect();
    assert_eq!(outcomes, ["admitted", "already-admitted", "repeated", "invalid"]);
    assert!(said[..3].iter().all(|(_, first)| first == "north") && said[3].1.is_null());
    // All of it sent again records nothing.
    let again = fixture.scanned(&scans).await;
    let again: Vec<&str> = again.iter().map(|(outcome, _)| outcome.as_str()).collect();
    assert_eq!(again, ["repeated", "repeated", "repeated", "invalid"]);
    let counts = fixture.get(ZHANG, LINE).await.ok(200);
    assert_eq!(counts, json!({ "sale": "hall", "admitted": 1, "doubles": 1 }));
    let board = fixture.get(ZHANG, &format!("{LINE}?conflicts=true")).await.ok(200);
    let conflict = &board["conflicts"][0];
    assert_eq!(
        (&conflict["first_door"], &conflict["door"], &conflict["order"]),
        (&json!("north"), &json!("south"), &json!(order))
    );

    // A checked-in ticket: shown so, not given back by its buyer, refunded by operators.
    let shown = fixture.tickets(ALICE, &order).await.ok(200);
    let first = &shown["tickets"][0];
    assert_eq!((&first["state"], &first["checked_in_at"]), (&json!("checked-in"), &json!(north)));
    let refused = fixture.give_back(1, &order, json!("all")).await;
    let refused = refused.problem(409, "ticket-checked-in");
    assert_eq!(refused["seat"], "vip-1-3");
    fixture.give_back(1, &order, seat("vip-1-4")).await.ok(200);
    let refund = json!({ "number": 2, "tickets": seat("vip-1-3") });
    let target = format!("/operator/orders/{order}/refunds");
    fixture.json(ZHANG, "POST", &target, &refund).await.ok(200);
    let said = fixture.scanned(&[(&codes[0], "west", &later), (&codes[1], "west", &later)]).await;
    assert!(said.iter().all(|(outcome, _)| outcome == "revoked"), "{said:?}");
    // What let somebody in stays counted.
    assert_eq!(fixture.get(ZHANG, LINE).await.ok(200)["admitted"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_scans_at_once_admit_each_ticket_once() {
    let fixture = Fixture::start().await;
    let order = fixture.paid_for("pi_1").await;
    let codes = fixture.codes_of(&order).await;
    let time = at(0);
    let doors: Vec<String> = (0..20).map(|door| format!("door {door}")).collect();
    let tasks = doors.iter().map(|door| {
        let scans = [
            (codes[0].as_str(), door.as_str(), time.as_str()),
            (codes[1].as_str(), door.as_str(), time.as_str()),
        ];
        let fixture = &fixture;
        async move { fixture.scanned(&scans).await }
    });
    let said = futures_util::future::join_all(tasks).await;
    let admitted = said.iter().flatten().filter(|(outcome, _)| outcome == "admitted").count();
    let doubled =
        said.iter().flatten().filter(|(outcome, _)| outcome == "already-admitted").count();
    assert_eq!((admitted, doubled), (2, 2 * doors.len() - 2), "{said:?}");
    let counts = fixture.get(ZHANG, LINE).await.ok(200);
    assert_eq!((&counts["admitted"], &counts["doubles"]), (&json!(2), &json!(2 * doors.len() - 2)));
    // A page at a time.
    let page = fixture.get(ZHANG, &format!("{LINE}?conflicts=true")).await.ok(200);
    assert_eq!((page["conflicts"].as_array().map(Vec::len), page.get("next")), (Some(38), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_ticket_of_the_sale_lets_nobody_in() {
    let fixture = Fixture::start().await;
    let order = fixture.paid_for("pi_1").await;
    let mut other = hall();
    other["sale"] = json!("other");
    fixture.publish(&other).await.ok(200);
    let (codes, time) = (fixture.codes_of(&order).await, at(0));
    let keys = fixture.keys().await;
    let code = keys.check_code(&codes[0]).unwrap();
    // The same ticket, signed with another deployment's key, and with this one under another name.
    let secrets = |text: &str| TicketSecrets::new(vec![text.repeat(32)]).unwrap();
    let foreign = TicketKeys::new(&keys.deployment, &secrets("x")).sign_code(&code).unwrap();
    let renamed = TicketKeys::new("elsewhere", &super::ticket_secrets());
    let renamed = renamed
        .sign_code(&TicketCode { deployment: "elsewhere".to_owned(), ..code.clone() })
        .unwrap();
    assert!(matches!(keys.check_code(&foreign), Err(CodeDefect::OtherKey(_))));
    let elsewhere = CodeDefect::OtherDeployment("elsewhere".to_owned());
    assert_eq!(keys.check_code(&renamed), Err(elsewhere));
    // An issue that was never made, by our own key.
    let ours = TicketKeys::new(&keys.deployment, &super::ticket_secrets());
    let future = TicketCode { issue: code.issue.next(), ..code.clone() };
    let future = ours.sign_code(&future).unwrap();
    let mut bits = codes[0].clone().into_bytes();
    let last = bits.len() - 2;
    bits[last] ^= 1;
    let changed = String::from_utf8(bits).unwrap();
    for bad in [&foreign, &renamed, &future, &changed] {
        let said = fixture.scanned(&[(bad, "north", &time)]).await;
        assert_eq!(said[0].0, "invalid", "{bad}");
    }
    let scan = |door: &str, at: &str| json!({ "check_ins": [{ "code": codes[0], "door": door, "at": at }] });
    let elsewhere = "/operator/sales/other/check-ins";
    let said = fixture.json(ZHANG, "POST", elsewhere, &scan("north", &time)).await.ok(200);
    assert_eq!(said["results"][0], json!({ "outcome": "invalid" }));
    let nowhere = "/operator/sales/nowhere/check-ins";
    fixture.json(ZHANG, "POST", nowhere, &scan("north", &time)).await.problem(404, "not-found");
    for (door, when) in
        [("", at(0)), ("a#b", at(0)), ("north", at(200_000)), ("north", at(-40_000_000))]
    {
        fixture.json(ZHANG, "POST", LINE, &scan(door, &when)).await.problem(422, "invalid");
    }
    for body in [
        json!({ "check_ins": [] }),
        json!({}),
        json!({ "check_ins": vec![scan("n", &time)["check_ins"][0].clone(); 101] }),
    ] {
        fixture.json(ZHANG, "POST", LINE, &body).await.problem(422, "invalid");
    }
    assert_eq!(fixture.get(ZHANG, LINE).await.ok(200)["admitted"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_a_cancelled_sale_is_one_line() {
    let fixture = Fixture::start().await;
    let order = fixture.paid_for("pi_1").await;
    let codes = fixture.codes_of(&order).await;
    let (hall, now) = (SaleId::new("hall").unwrap(), Timestamp::now());
    let ports = &fixture.app.ports;
    cancel_sale::stop(ports, &hall, &new_epoch(now).unwrap(), now).await.unwrap();
    let published = ports.catalogue().sale(&hall, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!(published.sale.file().state, SaleState::Cancelled);
    let later = now.plus_seconds(cancel_sale::IN_FLIGHT_SECONDS);
    let walked =
        cancel_sale::walk(ports, &published.sale, now, || later, async || (), async || (), |_| ());
    assert_eq!(walked.await.unwrap().tickets, 2);
    let list = fixture.list().await;
    assert!(list.all && list.revoked.is_empty() && list.next.is_none(), "{list:?}");
    for code in &codes {
        assert_eq!(fixture.standing(code).await, Standing::Revoked);
    }
    let time = at(0);
    let said = fixture.scanned(&[(&codes[0], "north", &time)]).await;
    assert_eq!(said[0].0, "revoked");
}
