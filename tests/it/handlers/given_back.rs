//! Refunds of paid orders: by operators and buyers, as users and enemies ask for them.

use std::collections::BTreeMap;

use engine::domain::basics::ids::{SaleId, TierId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::{LogPosition, LogShard};
use engine::domain::ledger::statistics::TierTotals;
use engine::domain::order::fact::FactKind;
use engine::domain::order::order_refund::{AskedBy, RefundKey, RefundNumber};
use engine::domain::order::refund::RefundState;
use engine::domain::payment::refund::{
    PAUSE_SECONDS, REFUNDABLE_SECONDS, RefundRefusal, RefundRequest, RefundedTickets,
};
use engine::flows::give_back::{Refusal, give_back};
use engine::flows::refund::{Outcome, refund_part};
use engine::ports::{Log as _, Orders as _, Ports as _};
use fake_payments::Fault;
use local::handlers::{read_captures, refund, sync_db};
use serde_json::{Value, json};
use shared::providers::stripe::signature::sign;

use super::{Fixture, Got, PAYMENT_SECRET, Sender, failures, hall, records, request, send};

const ALICE: Sender<'_> = Sender::Buyer("alice");
const BOB: Sender<'_> = Sender::Buyer("bob");
/// The price of a ticket.
const PRICE: i64 = 2500;

/// The hall, with these terms of refunds.
fn hall_with(refunds: Value) -> Value {
    let mut file = hall();
    file["refunds"] = refunds;
    file
}

/// Terms that last, for a tenth of the price and half a euro.
fn terms() -> Value {
    json!({ "until": "2099-12-31T00:00:00Z", "fee_percent": 10, "fee_minor": 50 })
}

fn seat(seat: &str) -> Value {
    json!({ "tier": "vip", "seat": seat })
}

fn euros(amount: i64) -> Money {
    Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() }
}

impl Fixture {
    /// A paid order of neighbours in the first row, from the first on.
    async fn paid(&self, buyer: &str, payment: &str, count: u16, first: u16) -> String {
        let seats: Vec<String> =
            (first..first + count).map(|seat| format!("vip-1-{seat}")).collect();
        let lines = json!([{ "tier": "vip", "seats": seats }]);
        let order = self.buy(buyer, "hall", lines).await.ok(201);
        let amount = PRICE * i64::from(count);
        let paid = self.callback(payment, &order["order"], amount).await.ok(200);
        assert_eq!(paid, json!({ "outcome": "accepted" }));
        let number = order["order"].as_str().unwrap().to_owned();
        let order = number.parse().unwrap();
        self.provider.capture(payment, order, euros(amount), Timestamp::now()).unwrap();
        number
    }

    async fn by_operator(&self, order: &str, body: &Value) -> Got {
        let target = format!("/orders/{order}/refunds/operator");
        self.json(Sender::Operator, "POST", &target, body).await
    }

    async fn by_buyer(&self, buyer: Sender<'_>, order: &str, body: &Value) -> Got {
        self.json(buyer, "POST", &format!("/orders/{order}/refunds"), body).await
    }

    async fn shown(&self, buyer: Sender<'_>, order: &str) -> Value {
        self.get(buyer, &format!("/orders/{order}")).await.ok(200)
    }

    /// The refunds of an order as its buyer sees them: number, amount, state; and the next number.
    async fn refunds(&self, buyer: Sender<'_>, order: &str) -> (Vec<(u64, i64, String)>, u64) {
        let listed = self.get(buyer, &format!("/orders/{order}/refunds")).await.ok(200);
        let facts = |refund: &Value| {
            let state = refund["state"].as_str().unwrap().to_owned();
            (refund["number"].as_u64().unwrap(), refund["amount_minor"].as_i64().unwrap(), state)
        };
        let refunds = listed["refunds"].as_array().unwrap().iter().map(facts).collect();
        (refunds, listed["next"].as_u64().unwrap())
    }

    /// What the provider has sent back of a payment, newest first.
    fn sent_back(&self, payment: &str) -> Vec<i64> {
        let ledger = self.provider.ledger();
        let entry = ledger.into_iter().find(|entry| entry.payment == payment).unwrap();
        entry.refunds.into_iter().map(|refund| refund.amount_minor.0).collect()
    }

    /// Everything that waits to be settled is.
    async fn settle(&self, order: &str) {
        let message = records(&[json!({ "order": order })]);
        assert_eq!(failures(&sync_db::handle(&self.app, message).await), 0);
    }

    /// What the statistics count: tickets and revenue.
    async fn counted(&self) -> (u64, i64) {
        let hall = SaleId::new("hall").unwrap();
        let counted = self.app.ports.orders().statistics(&hall).await.unwrap();
        let counted: BTreeMap<TierId, TierTotals> = counted.into_iter().collect();
        let vip = counted.get(&TierId::new("vip").unwrap()).copied();
        vip.map_or((0, 0), |vip| (vip.tickets, vip.revenue_minor.0))
    }

    /// What the log tells of an order.
    async fn told(&self, order: OrderNumber) -> Vec<&'static str> {
        let log = self.app.ports.orders().orders.0.log();
        let mut kinds = Vec::new();
        for shard in LogShard::all() {
            for placed in log.after(LogPosition { shard, number: 0 }).await.unwrap() {
                let of_order = placed.record.told.iter().filter(|told| told.order == order);
                let facts = of_order.flat_map(|told| told.facts.iter());
                kinds.extend(facts.map(|(_, fact)| FactKind::as_str(fact.kind)));
            }
        }
        kinds
    }
}

/// Finding C1: a part that the provider has refused is paid by hand, as the runbook says, and a day later, when the
/// provider has forgotten the key, the engine asks again. It sends nothing: more went back than it knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_and_paid_by_hand_is_not_sent_again() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 2, 1).await;
    fixture
        .by_operator(&order, &json!({ "number": 1, "tickets": [seat("vip-1-1")] }))
        .await
        .ok(200);
    let key = RefundKey { order: order.parse().unwrap(), number: RefundNumber::FIRST };
    let asked = async |now| refund_part(&fixture.app.ports, key, now).await.unwrap();
    fixture.provider.next(Fault::RefuseRefund);
    let now = Timestamp::now();
    let Outcome::Asked(refused) = asked(now).await else { panic!("it is the first") };
    assert_eq!(refused.state, RefundState::Failed);
    fixture.provider.refund_by_hand("pi_1", MinorUnits(PRICE), now).unwrap();
    for days in 1..4 {
        fixture.provider.forget_keys();
        let Outcome::Asked(again) = asked(now.plus_seconds(days * 90_000)).await else {
            panic!("it is the only one")
        };
        // The conflict is looked into: what was made by hand has paid it.
        assert_eq!(again.state, RefundState::Refunded);
    }
    assert_eq!(fixture.sent_back("pi_1"), [PRICE], "once, and by hand");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_is_sent_again_when_an_operator_says_so() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 2, 1).await;
    let ticket = json!({ "number": 1, "tickets": [seat("vip-1-1")] });
    let again = json!({ "number": 1, "again": true });
    assert_eq!(fixture.by_operator(&order, &again).await.status, 404, "there is none yet");
    fixture.by_operator(&order, &ticket).await.ok(200);
    let consume = async || {
        let batch = fixture.batch(&fixture.queues.refund.url).await;
        assert_eq!(batch.records.len(), 1);
        assert_eq!(failures(&refund::handle(&fixture.app, batch).await), 0);
    };
    fixture.provider.next(Fault::RefuseRefund);
    consume().await;
    let state =
        async |body: &Value| fixture.by_operator(&order, body).await.ok(200)["state"].clone();
    assert_eq!(state(&ticket).await, "failed");
    // Stripe repeats a refusal for as long as it keeps the key, which is a day.
    fixture.provider.forget_keys();
    assert_eq!(state(&again).await, "due");
    consume().await;
    assert_eq!(fixture.sent_back("pi_1"), [PRICE]);
    assert_eq!(state(&again).await, "refunded", "nothing more is asked for");
    assert_eq!(fixture.waiting(&fixture.queues.refund.url).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_refunds_a_ticket_some_money_and_the_rest() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 2, 1).await;
    let number: OrderNumber = order.parse().unwrap();
    fixture.settle(&order).await;
    assert_eq!(fixture.counted().await, (2, 2 * PRICE));

    let ticket = json!({ "number": 1, "tickets": [seat("vip-1-1")], "reason": "ill\nagain" });
    let made = fixture.by_operator(&order, &ticket).await.ok(200);
    assert_eq!((&made["amount_minor"], &made["asked_by"]), (&json!(PRICE), &json!("operator")));
    assert_eq!(made["tickets"], json!([seat("vip-1-1")]));
    assert!(made.get("reason").is_none(), "it is for operators");
    let again = fixture.by_operator(&order, &ticket).await.ok(200);
    assert_eq!((&again["made_at"], &again["number"]), (&made["made_at"], &json!(1)));
    let shown = fixture.shown(ALICE, &order).await;
    assert_eq!(
        (&shown["state"], &shown["refunds"]),
        (&json!("paid"), &json!({ "made": 1, "back": 0 }))
    );
    let tickets = &shown["lines"][0]["tickets"];
    assert_eq!((&tickets[0]["refund"], tickets[1].get("refund")), (&json!(1), None));
    fixture.settle(&order).await;
    assert_eq!(fixture.counted().await, (1, PRICE), "the statistics went down");

    // The seat is another's, who pays for it.
    fixture.paid("bob", "pi_2", 1, 1).await;

    // The consumer asks the provider once, whatever comes twice.
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    assert_eq!(batch.records.len(), 1, "{batch:?}");
    for _ in 0..2 {
        assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
        assert_eq!(fixture.sent_back("pi_1"), [PRICE]);
    }
    assert_eq!(fixture.shown(ALICE, &order).await["refunds"], json!({ "made": 1, "back": 1 }));

    // Some money without a ticket, and all that is left; each waits a minute for the one before.
    let some = json!({ "number": 2, "tickets": [], "amount_minor": 1000, "currency": "EUR" });
    fixture.by_operator(&order, &some).await.ok(200);
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    assert_eq!(failures(&refund::handle(&fixture.app, batch).await), 0);
    assert_eq!(fixture.sent_back("pi_1"), [PRICE], "too early");
    assert_eq!(fixture.waiting(&fixture.queues.refund.url).await, 1, "it is put back");
    let rest = json!({ "number": 3, "tickets": "all" });
    assert_eq!(fixture.by_operator(&order, &rest).await.ok(200)["amount_minor"], PRICE - 1000);
    assert_eq!(fixture.shown(ALICE, &order).await["state"], "refund_due");
    for (refund, minutes) in [(2, 1), (3, 2)] {
        let key = RefundKey { order: number, number: RefundNumber::try_from(refund).unwrap() };
        let now = Timestamp::now().plus_seconds(minutes * (PAUSE_SECONDS + 5));
        let done = refund_part(&fixture.app.ports, key, now).await.unwrap();
        assert!(matches!(done, Outcome::Asked(_)), "{done:?}");
    }
    assert_eq!(fixture.sent_back("pi_1"), [PRICE - 1000, 1000, PRICE]);
    assert_eq!(fixture.shown(ALICE, &order).await["state"], "refunded");
    let state = || "refunded".to_owned();
    let all = vec![(1, PRICE, state()), (2, 1000, state()), (3, PRICE - 1000, state())];
    assert_eq!(fixture.refunds(ALICE, &order).await, (all, 4));

    fixture.settle(&order).await;
    fixture.settle(&order).await;
    assert_eq!(fixture.counted().await, (0, 0), "bob's is not settled yet");
    let told = fixture.told(number).await;
    let expected = [
        "made",
        "paid",
        "refund_made",
        "refunded",
        "refund_made",
        "refund_made",
        "refunded",
        "refunded",
    ];
    assert_eq!(told, expected);
    // Nothing is left to refund.
    let more = json!({ "number": 4, "tickets": "all" });
    assert_eq!(
        fixture.by_operator(&order, &more).await.problem(409, "order-not-paid")["state"],
        "refunded"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_gives_tickets_back_under_the_terms_of_the_purchase() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall_with(terms())).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 3, 1).await;
    let terms_of = json!({ "until": "2099-12-31T00:00:00.000Z", "fee_minor": 300 });
    assert_eq!(fixture.shown(ALICE, &order).await["lines"][0]["refundable"], terms_of);
    // The terms change: not those of whoever has bought.
    fixture.publish(&hall()).await.ok(200);
    let late = fixture.paid("bob", "pi_2", 1, 5).await;
    let ticket = |number: u8, name: &str| json!({ "number": number, "tickets": [seat(name)] });
    let made = fixture.by_buyer(ALICE, &order, &ticket(1, "vip-1-2")).await.ok(200);
    assert_eq!((&made["amount_minor"], &made["asked_by"]), (&json!(PRICE - 300), &json!("buyer")));
    let refused = fixture.by_buyer(BOB, &late, &ticket(1, "vip-1-5")).await;
    refused.problem(403, "refund-not-allowed");
    assert!(fixture.shown(BOB, &late).await["lines"][0].get("refundable").is_none());
    // Nor do better ones help who bought without.
    fixture.publish(&hall_with(terms())).await.ok(200);
    fixture.by_buyer(BOB, &late, &ticket(1, "vip-1-5")).await.problem(403, "refund-not-allowed");

    // Terms that were over when it was bought.
    fixture.publish(&hall_with(json!({ "until": "2021-01-01T00:00:00Z" }))).await.ok(200);
    let over = fixture.paid("carol", "pi_3", 1, 6).await;
    let carol = Sender::Buyer("carol");
    fixture.by_buyer(carol, &over, &ticket(1, "vip-1-6")).await.problem(403, "refund-not-allowed");
    assert_eq!(fixture.refunds(carol, &over).await, (vec![], 1));

    // The rest, under the terms: the fee of each ticket is kept.
    let rest = fixture.by_buyer(ALICE, &order, &json!({ "number": 2, "tickets": "all" })).await;
    assert_eq!(rest.ok(200)["amount_minor"], 2 * (PRICE - 300));
    assert_eq!(fixture.shown(ALICE, &order).await["state"], "refund_due");
    // Alice may have as many tickets again as the sale allows, and bob has the seat.
    let seats = json!([{ "tier": "vip", "seats": ["vip-1-2"] }]);
    fixture.buy("dave", "hall", seats).await.ok(201);
    let four = json!([{ "tier": "vip", "best": { "count": 4 } }]);
    fixture.buy("alice", "hall", four).await.ok(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_stands_for_one_refund() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall_with(terms())).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 2, 1).await;
    let ask = |number: u8, tickets: Value| json!({ "number": number, "tickets": tickets });
    let one = json!([seat("vip-1-1")]);
    let gap = fixture.by_operator(&order, &ask(2, one.clone())).await;
    assert_eq!(gap.problem(409, "other-refund-number")["next"], 1);
    fixture.by_operator(&order, &ask(1, one.clone())).await.ok(200);
    let others = [
        ask(1, json!([seat("vip-1-2")])),
        ask(1, json!([seat("vip-1-1"), seat("vip-1-2")])),
        ask(1, json!("all")),
        json!({ "number": 1, "tickets": one, "amount_minor": 1, "currency": "EUR" }),
        json!({ "number": 1, "tickets": one, "amount_minor": PRICE, "currency": "USD" }),
    ];
    for other in others {
        let refused = fixture.by_operator(&order, &other).await;
        assert_eq!(refused.problem(409, "other-refund-number")["next"], 2, "{other}");
    }
    // The buyer's is another one than the operator's, though it names the same.
    let buyers = fixture.by_buyer(ALICE, &order, &ask(1, one.clone())).await;
    assert_eq!(buyers.problem(409, "other-refund-number")["next"], 2);
    // The same in other words is the same.
    let said = json!({ "number": 1, "tickets": one, "amount_minor": PRICE, "currency": "EUR", "reason": "ill" });
    assert_eq!(fixture.by_operator(&order, &said).await.ok(200)["number"], 1);
    let again = fixture.by_operator(&order, &ask(2, one)).await;
    assert_eq!(again.problem(409, "ticket-refunded")["seat"], "vip-1-1");
    let all = fixture.by_operator(&order, &ask(2, json!("all"))).await.ok(200);
    assert_eq!((&all["amount_minor"], &all["tickets"]), (&json!(PRICE), &json!([seat("vip-1-2")])));
    assert_eq!(
        fixture.by_operator(&order, &ask(2, json!("all"))).await.ok(200)["made_at"],
        all["made_at"]
    );
    assert_eq!(fixture.refunds(ALICE, &order).await.0.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_more_than_there_is_gets_nothing() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall_with(terms())).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 2, 1).await;
    let mine = json!({ "number": 1, "tickets": [seat("vip-1-1")] });
    for stranger in [BOB, Sender::Buyer("Alice")] {
        fixture.by_buyer(stranger, &order, &mine).await.problem(404, "not-found");
        let listed = fixture.get(stranger, &format!("/orders/{order}/refunds")).await;
        listed.problem(404, "not-found");
    }
    fixture.by_buyer(ALICE, "1", &mine).await.problem(404, "not-found");
    fixture.by_operator("1", &mine).await.problem(404, "not-found");
    // No way in for anybody else.
    fixture.by_buyer(Sender::Nobody, &order, &mine).await.problem(401, "not-authenticated");
    fixture.by_buyer(Sender::Operator, &order, &mine).await.problem(401, "not-authenticated");
    let targets =
        [format!("/orders/{order}/refunds/operator"), format!("/operator/orders/{order}/refunds")];
    for target in &targets {
        for sender in [ALICE, Sender::Nobody] {
            fixture.json(sender, "POST", target, &mine).await.problem(401, "not-authenticated");
        }
    }

    let with = |more: Value| {
        let mut body = json!({ "number": 1, "tickets": [] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let euros = |amount: i64| with(json!({ "amount_minor": amount, "currency": "EUR" }));
    let refused = [
        (with(json!({ "tickets": [seat("vip-1-3")] })), 422, "unknown-ticket"),
        (
            with(json!({ "tickets": [{ "tier": "small", "seat": "vip-1-1" }] })),
            422,
            "unknown-ticket",
        ),
        (with(json!({ "tickets": [seat("vip-1-1"), seat("vip-1-1")] })), 409, "ticket-refunded"),
        (with(json!({})), 422, "nothing-to-refund"),
        (euros(0), 422, "nothing-to-refund"),
        (euros(2 * PRICE + 1), 409, "more-than-left"),
        (euros(i64::MAX), 409, "more-than-left"),
        (euros(-1), 422, "invalid"),
        (with(json!({ "amount_minor": 1, "currency": "USD" })), 422, "other-currency"),
        (with(json!({ "amount_minor": 1 })), 422, "invalid"),
        (with(json!({ "number": 51 })), 422, "invalid"),
        (with(json!({ "number": 0 })), 422, "invalid"),
        (with(json!({ "tickets": "some" })), 422, "invalid"),
        (with(json!({ "tickets": [["vip", "vip-1-1"]] })), 422, "invalid"),
        (with(json!({ "tickets": vec![seat("vip-1-1"); 11] })), 422, "invalid"),
        (with(json!({ "reason": "x".repeat(201), "tickets": "all" })), 422, "invalid"),
        (with(json!({ "reason": "x".repeat(65_536) })), 413, "too-large"),
    ];
    for (body, status, slug) in refused {
        fixture.by_operator(&order, &body).await.problem(status, slug);
    }
    let amount = json!({ "number": 1, "tickets": "all", "amount_minor": 5000, "currency": "EUR" });
    fixture.by_buyer(ALICE, &order, &amount).await.problem(422, "invalid");
    let part = fixture.by_operator(&order, &euros(PRICE + 1)).await.ok(200);
    assert_eq!(part["tickets"], json!([]));
    let both = json!({ "number": 2, "tickets": [seat("vip-1-1")] });
    let refused = fixture.by_operator(&order, &both).await.problem(409, "more-than-left");
    assert_eq!((&refused["left_minor"], &refused["currency"]), (&json!(PRICE - 1), &json!("EUR")));
    // Nothing of all that has moved a ticket, and one refund was made.
    let shown = fixture.shown(ALICE, &order).await;
    assert_eq!(shown["refunds"], json!({ "made": 1, "back": 0 }));
    assert!(
        shown["lines"][0]["tickets"]
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one.get("refund").is_none())
    );

    // What is not paid has nothing to give back.
    let lines = json!([{ "tier": "vip", "seats": ["vip-2-1"] }]);
    let pending = fixture.buy("bob", "hall", lines).await.ok(201);
    let pending = pending["order"].as_str().unwrap();
    let all = json!({ "number": 1, "tickets": "all" });
    let refused = fixture.by_buyer(BOB, pending, &all).await.problem(409, "order-not-paid");
    assert_eq!(refused["state"], "pending");
    fixture.by_operator(pending, &all).await.problem(409, "order-not-paid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_year_no_provider_sends_money_back() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order: OrderNumber = fixture.paid("alice", "pi_1", 1, 1).await.parse().unwrap();
    let request = RefundRequest {
        number: RefundNumber::FIRST,
        tickets: RefundedTickets::All,
        amount: None,
        asked_by: AskedBy::Operator,
        reason: None,
    };
    let ports = &fixture.app.ports;
    let at = async |seconds| {
        let now = Timestamp::now().plus_seconds(REFUNDABLE_SECONDS + seconds);
        give_back(ports, None, order, &request, now).await.map(|given| given.refund.amount)
    };
    assert_eq!(at(0).await, Err(Refusal::Refused(RefundRefusal::TooOld)));
    assert_eq!(at(-600).await, Ok(euros(PRICE)), "a moment before it does");
}

/// The field case `refund-in-the-dashboard-leaves-tickets-valid`, by its own sequence: the whole payment goes back in the
/// dashboard, and Stripe calls. The list is read though nothing is on sale, and an operator decides about the tickets.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_in_the_dashboard_is_read_when_stripe_calls() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.paid("alice", "pi_1", 2, 1).await;
    // Somebody has not paid: the list is read, and then nobody waits for it.
    let open = fixture.buy("erin", "hall", json!([{ "tier": "vip", "seats": ["vip-2-1"] }])).await;
    let open = open.ok(201)["order"].as_str().unwrap().to_owned();
    read_captures::read(&fixture.app).await.unwrap();
    fixture
        .json(Sender::Buyer("erin"), "POST", &format!("/orders/{open}/cancel"), &json!({}))
        .await;
    fixture.settle(&order).await;
    fixture.settle(&open).await;
    let idle = read_captures::read(&fixture.app).await.unwrap();
    assert_eq!((idle.is_pending, idle.pages), (false, 0), "nobody asks for it");
    fixture.provider.refund_by_hand("pi_1", MinorUnits(2 * PRICE), Timestamp::now()).unwrap();
    let event = json!({
        "id": "evt_9", "object": "event", "type": "charge.refunded",
        "data": { "object": { "id": "ch_1", "payment_intent": "pi_1", "refunded": true } }
    });
    let body = event.to_string();
    let signature = sign(PAYMENT_SECRET, body.as_bytes(), Timestamp::now());
    let headers = json!({ "stripe-signature": signature });
    let request = request(Sender::Nobody, "POST", "/payments/stripe/callback", headers, &body);
    let answer = send(&fixture.app, request).await.ok(200);
    assert_eq!(answer, json!({ "outcome": "ignored" }));
    let reading = read_captures::read(&fixture.app).await.unwrap();
    assert_eq!((reading.sent_back, reading.unreadable), (1, 0), "{reading:?}");
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    assert_eq!(failures(&refund::handle(&fixture.app, batch).await), 0);
    let (refunds, next) = fixture.refunds(ALICE, &order).await;
    assert_eq!((refunds, next), (vec![(1, 2 * PRICE, "outside".to_owned())], 2));
    assert_eq!(fixture.shown(ALICE, &order).await["state"], "paid");
    fixture.settle(&order).await;
    assert_eq!(fixture.counted().await, (2, 2 * PRICE), "the tickets are good");
    // A word that is not about it, and then the one that is.
    let settled = fixture.by_operator(&order, &json!({ "number": 1, "settled": "cash" })).await;
    assert_eq!((settled.status, &settled.body["state"]), (409, &json!("outside")));
    let unknown = fixture.by_operator(&order, &json!({ "number": 9, "keep": true })).await;
    assert_eq!(unknown.status, 404);
    let all = json!({ "number": 2, "tickets": "all" });
    assert_eq!(fixture.by_operator(&order, &all).await.ok(200)["amount_minor"], 0);
    assert_eq!(fixture.shown(ALICE, &order).await["state"], "refunded");
    let kept = fixture.by_operator(&order, &json!({ "number": 1, "keep": true })).await.ok(200);
    assert_eq!(kept["state"], "refunded");
    assert_eq!(fixture.sent_back("pi_1"), [2 * PRICE], "nothing more was sent");
}
