//! Disputes of payments that were started, through the functions: from what the provider lists to the seats that are on
//! sale again.

use std::collections::BTreeSet;

use engine::domain::basics::ids::Epoch;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::fact::FactKind;
use engine::domain::order::{Capture, Order, OrderState, PaymentRecord};
use engine::flows::captures::Reading;
use engine::flows::reconcile::reconcile_all;
use engine::flows::sync::sync;
use engine::ports::{Orders as _, Ports as _};
use local::handlers::{read_captures, refund};
use ops::audit::{self, Options, Target};
use serde_json::{Value, json};

use super::{Fixture, Got, OPERATOR_ISSUER, Sender, failures, hall};

const WATCHER: Sender<'_> = Sender::Token(OPERATOR_ISSUER, "onsale/watch");

/// The price of a ticket.
const PRICE: i64 = 2500;

/// What a buyer has paid.
struct Sold {
    buyer: &'static str,
    capture: Capture,
}

fn seats(names: &[&str]) -> Value {
    json!([{ "tier": "vip", "seats": names }])
}

/// An order that is paid by a payment that was started; its callback never comes.
async fn sold(fixture: &Fixture, buyer: &'static str, names: &[&str]) -> Sold {
    let order = fixture.buy(buyer, "hall", seats(names)).await.ok(201);
    let target = format!("/orders/{}/payments", order["order"].as_str().unwrap());
    let form = json!({ "provider": "stripe", "method": "form" });
    let started = fixture.json(Sender::Buyer(buyer), "POST", &target, &form).await.ok(200);
    let secret = started["client_secret"].as_str().unwrap();
    let (payment, _) = secret.split_once("_secret").unwrap();
    let capture = fixture.provider.pay(payment, Timestamp::now()).unwrap().unwrap();
    Sold { buyer, capture }
}

impl Sold {
    fn order(&self) -> OrderNumber {
        self.capture.order
    }

    /// The bank takes money of it back, or asks first: the dispute's name.
    fn disputed(&self, fixture: &Fixture, amount: i64, is_inquiry: bool) -> String {
        let (payment, amount) = (self.capture.key.payment.as_str(), MinorUnits(amount));
        fixture.provider.open_dispute(payment, amount, is_inquiry, Timestamp::now()).unwrap()
    }

    /// The order and its payment as they are recorded.
    async fn recorded(&self, fixture: &Fixture) -> (Order, PaymentRecord) {
        let orders = fixture.app.ports.orders();
        let order = orders.get(self.order()).await.unwrap().unwrap();
        let payment = orders.payment(self.order(), &self.capture.key).await.unwrap().unwrap();
        (order, payment)
    }

    /// What its buyer is shown at a path below the order.
    async fn shown(&self, fixture: &Fixture, below: &str) -> Value {
        let target = format!("/orders/{}{below}", self.order());
        fixture.get(Sender::Buyer(self.buyer), &target).await.ok(200)
    }

    /// An operator refunds all of it.
    async fn refunded_by_operator(&self, fixture: &Fixture) -> Got {
        let target = format!("/orders/{}/refunds/operator", self.order());
        let all = json!({ "number": 1, "tickets": "all" });
        fixture.json(Sender::Operator, "POST", &target, &all).await
    }
}

/// The disputes that operators are shown, with their states, as they come.
async fn listed(fixture: &Fixture, query: &str) -> Vec<(String, String)> {
    let target = format!("/operator/disputes{query}");
    let shown = fixture.get(WATCHER, &target).await.ok(200);
    assert_eq!(shown.get("next"), None, "{shown:#}");
    let text = |dispute: &Value, name: &str| dispute[name].as_str().unwrap().to_owned();
    let all = shown["disputes"].as_array().unwrap().iter();
    all.map(|dispute| (text(dispute, "dispute"), text(dispute, "state"))).collect()
}

fn kinds(order: &Order) -> Vec<FactKind> {
    order.facts.all.iter().map(|fact| fact.kind).collect()
}

/// One reading of the provider's list.
async fn read(fixture: &Fixture) -> Reading {
    read_captures::read(&fixture.app).await.unwrap()
}

/// Redis is made to agree with DynamoDB.
async fn reconciled(fixture: &Fixture, name: &str) {
    let epoch = Epoch::new(name).unwrap();
    let run = reconcile_all(&fixture.app.ports, &epoch, Timestamp::now()).await.unwrap();
    assert!(run.report.failed == 0 && run.unread.is_empty(), "{run:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disputes_of_started_payments_end_as_the_bank_says() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let lost = sold(&fixture, "alice", &["vip-1-1", "vip-1-2"]).await;
    let won = sold(&fixture, "bob", &["vip-1-3"]).await;
    let asked = sold(&fixture, "carol", &["vip-1-4"]).await;
    let unseen = sold(&fixture, "dave", &["vip-1-5"]).await;
    // Somebody has not paid: the list is read at every call, and not once an hour.
    fixture.buy("erin", "hall", seats(&["vip-2-1"])).await.ok(201);
    let reading = read(&fixture).await;
    assert_eq!((reading.decided, reading.unreadable), (4, 0), "{reading:?}");
    // Whoever reads captures has no Redis.
    reconciled(&fixture, "sold").await;

    let lost_by = lost.disputed(&fixture, 2 * PRICE, false);
    let won_by = won.disputed(&fixture, PRICE, false);
    let inquiry = asked.disputed(&fixture, PRICE, true);
    // Opened and lost before anybody looks: what is listed first is that it is closed.
    let unseen_by = unseen.disputed(&fixture, PRICE, false);
    let later = Timestamp::now().plus_seconds(1);
    fixture.provider.close_dispute(&unseen_by, false, later).unwrap();
    let reading = read(&fixture).await;
    assert_eq!((reading.disputes, reading.unreadable), (4, 0), "{reading:?}");

    let opened = [FactKind::Made, FactKind::Paid, FactKind::DisputeOpened];
    for (sold, dispute) in [(&lost, &lost_by), (&won, &won_by)] {
        let (order, payment) = sold.recorded(&fixture).await;
        assert_eq!((order.state, kinds(&order)), (OrderState::Paid, opened.to_vec()));
        assert_eq!(payment.open_dispute().map(|open| open.id.as_str()), Some(dispute.as_str()));
        sold.refunded_by_operator(&fixture).await.problem(409, "payment-disputed");
    }
    let open = listed(&fixture, "").await;
    let is = |dispute: &String, state: &str| (dispute.clone(), state.to_owned());
    assert_eq!(BTreeSet::from_iter(open), [is(&lost_by, "open"), is(&won_by, "open")].into());
    assert_eq!(listed(&fixture, "?state=over").await, [is(&unseen_by, "lost")]);
    let (order, payment) = asked.recorded(&fixture).await;
    assert_eq!((kinds(&order), payment.disputes), (opened[..2].to_vec(), vec![]), "an inquiry");
    let (order, payment) = unseen.recorded(&fixture).await;
    let all_at_once = [&opened[..], &[FactKind::RefundMade, FactKind::DisputeLost]].concat();
    assert_eq!((order.state, kinds(&order)), (OrderState::RefundDue, all_at_once));
    assert_eq!(payment.disputes[0].state, DisputeState::Lost);

    // Told once more, each is as it was.
    let all = [&lost, &won, &asked, &unseen];
    let mut before = Vec::new();
    for sold in all {
        before.push(sold.recorded(&fixture).await);
    }
    assert_eq!(read(&fixture).await.disputes, 4);
    for (sold, before) in all.into_iter().zip(before) {
        assert_eq!(sold.recorded(&fixture).await, before, "{}", sold.buyer);
    }

    fixture.provider.close_dispute(&lost_by, false, Timestamp::now()).unwrap();
    fixture.provider.close_dispute(&won_by, true, Timestamp::now()).unwrap();
    fixture.provider.close_dispute(&inquiry, true, Timestamp::now()).unwrap();
    let reading = read(&fixture).await;
    assert_eq!((reading.disputes, reading.unreadable), (4, 0), "{reading:?}");
    let (order, payment) = won.recorded(&fixture).await;
    let expected = [&opened[..], &[FactKind::DisputeWon]].concat();
    assert_eq!((order.state, kinds(&order)), (OrderState::Paid, expected));
    assert_eq!((payment.open_dispute(), payment.left()), (None, order.total));
    let (order, payment) = asked.recorded(&fixture).await;
    assert_eq!((order.state, payment.disputes), (OrderState::Paid, vec![]));
    assert_eq!(kinds(&order), opened[..2]);

    assert_eq!(listed(&fixture, "").await, []);
    let over = [is(&lost_by, "lost"), is(&won_by, "won"), is(&unseen_by, "lost")];
    assert_eq!(BTreeSet::from_iter(listed(&fixture, "?state=over").await), over.into());
    let shown = fixture.get(WATCHER, "/operator/disputes?state=over").await.ok(200);
    let of_lost = |dispute: &&Value| dispute["dispute"] == lost_by.as_str();
    let shown = shown["disputes"].as_array().unwrap().iter().find(of_lost).unwrap();
    let (order, payment) = (lost.order().to_string(), lost.capture.key.payment.as_str());
    assert_eq!((&shown["order"], &shown["payment"]), (&json!(order), &json!(payment)));
    assert_eq!((&shown["amount_minor"], &shown["currency"]), (&json!(2 * PRICE), &json!("EUR")));

    // One payment to a page, latest change first, each once.
    let operators = fixture.app.ports.operators();
    let (mut before, mut paged): (Option<String>, Vec<_>) = (None, Vec::new());
    loop {
        let page = operators.disputed_page(false, before.as_deref(), 1).await.unwrap();
        let [payment] = page.payments.as_slice() else { panic!("{page:?}") };
        paged.push((payment.disputes[0].changed_at, payment.disputes[0].id.to_string()));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert!(paged.iter().map(|(at, _)| at).rev().is_sorted(), "{paged:?}");
    let ids: Vec<&str> = paged.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(BTreeSet::from_iter(ids), [&*lost_by, &*won_by, &*unseen_by].into());
    for query in ["?state=lost", "?before=x", "?before=%00", "?before="] {
        let target = format!("/operator/disputes{query}");
        fixture.get(WATCHER, &target).await.problem(422, "invalid");
    }
    let buyer = Sender::Buyer("alice");
    fixture.get(buyer, "/operator/disputes").await.problem(401, "not-authenticated");

    // Nobody is asked to send what is gone.
    for _ in 0..2 {
        let batch = fixture.batch(&fixture.queues.refund.url).await;
        assert_eq!(failures(&refund::handle(&fixture.app, batch).await), 0);
    }
    let sent = fixture.provider.ledger();
    assert!(sent.iter().all(|entry| entry.refunds.is_empty()), "{sent:?}");
    for (sold, amount) in [(&lost, 2 * PRICE), (&unseen, PRICE)] {
        let shown = sold.shown(&fixture, "").await;
        assert_eq!(shown["state"], "refunded", "{shown:#}");
        let tickets = shown["lines"][0]["tickets"].as_array().unwrap();
        assert!(tickets.iter().all(|ticket| ticket["refund"] == 1), "they are void: {shown:#}");
        let listed = sold.shown(&fixture, "/refunds").await;
        let [made] = listed["refunds"].as_array().unwrap().as_slice() else { panic!("{listed}") };
        assert_eq!((&made["asked_by"], &made["state"]), (&json!("dispute"), &json!("refunded")));
        assert_eq!(made["amount_minor"], amount);
    }

    // The seats are on sale again once Redis has heard of it.
    let again = || seats(&["vip-1-1", "vip-1-2"]);
    fixture.buy("frank", "hall", again()).await.problem(409, "seat-taken");
    reconciled(&fixture, "freed").await;
    fixture.buy("grace", "hall", again()).await.ok(201);
    fixture.buy("heidi", "hall", seats(&["vip-1-3"])).await.problem(409, "seat-taken");
    // What their buyers have bought is looked at when the seats are free.
    reconciled(&fixture, "counted").await;

    let numbers = all.map(Sold::order);
    sync(&fixture.app.ports, &numbers, Timestamp::now()).await.unwrap();
    let target = Target::from_config(&fixture.config);
    let report = audit::run(&target, &Options::at(Timestamp::now())).await.unwrap();
    let violations: Vec<String> = report.violations().map(ToString::to_string).collect();
    assert_eq!(violations, [""; 0]);
}
