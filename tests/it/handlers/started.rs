//! Payments that are started, closed and paid: by buyers, at the fake of Stripe.

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::admission::call_rate::CallRate;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::left::left;
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use futures_util::future::join_all;
use local::handlers::{close_payments, refund};
use serde_json::{Value, json};
use shared::http::origin::Origin;

use super::{Fixture, Got, Sender, best, failures, hall, request, send};

const ALICE: Sender<'_> = Sender::Buyer("alice");

impl Fixture {
    /// A fixture with a sale, and the shop that providers send buyers back to.
    async fn with_shop() -> Self {
        let mut fixture = Self::start().await;
        fixture.app.return_origins = vec![Origin::new("https://shop.example").unwrap()];
        fixture.publish(&hall()).await.ok(200);
        fixture
    }

    async fn ordered(&self) -> String {
        let order = self.buy("alice", "hall", best("vip", 1)).await.ok(201);
        order["order"].as_str().unwrap().to_owned()
    }

    async fn start_payment(&self, order: &str, choice: &Value) -> Got {
        self.json(ALICE, "POST", &format!("/orders/{order}/payments"), choice).await
    }

    async fn state(&self, order: &str) -> Value {
        self.get(ALICE, &format!("/orders/{order}")).await.ok(200)["state"].clone()
    }

    /// What the queue `close` has is carried out, twice.
    async fn close(&self) {
        let batch = self.batch(&self.queues.close.url).await;
        for _ in 0..2 {
            let answer = close_payments::handle(&self.app, batch.clone()).await;
            assert_eq!(failures(&answer), 0);
        }
    }
}

fn page() -> Value {
    json!({ "provider": "stripe", "return_url": "https://shop.example/orders" })
}

fn form() -> Value {
    json!({ "provider": "stripe", "method": "form" })
}

/// The provider's name of the payment behind a page or a secret.
fn name_of(started: &Value) -> String {
    let page = started["url"].as_str().map(|url| url.rsplit_once('/').unwrap().1);
    let form = || started["client_secret"].as_str().unwrap().split_once("_secret").unwrap().0;
    page.unwrap_or_else(form).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_is_started_once_and_another_choice_closes_it() {
    let fixture = Fixture::with_shop().await;
    let order = fixture.ordered().await;
    let first = fixture.start_payment(&order, &page()).await.ok(200);
    assert_eq!((&first["attempt"], &first["provider"]), (&json!(1), &json!("stripe")));
    // The same again, also by somebody who never heard the answer, or at another instance.
    let headers = json!({ "content-type": "application/json" });
    let target = format!("/orders/{order}/payments");
    let again = request(ALICE, "POST", &target, headers, &page().to_string());
    let again = send(&fixture.another_shop().await, again).await.ok(200);
    assert_eq!(again, first);

    let second = fixture.start_payment(&order, &form()).await.ok(200);
    assert_eq!(second["attempt"], json!(2));
    let now = Timestamp::now();
    let paid = |started: &Value| fixture.provider.pay(&name_of(started), now).unwrap();
    assert_eq!(paid(&first), None, "the page is closed");
    assert!(paid(&second).is_some());
    // Who turns to another way after having paid has paid.
    let refused = fixture.start_payment(&order, &page()).await.problem(409, "order-resolved");
    assert_eq!((&refused["state"], fixture.state(&order).await), (&json!("paid"), json!("paid")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_payments_may_be_started_and_none_of_an_order_that_has_ended() {
    let fixture = Fixture::with_shop().await;
    let order = fixture.ordered().await;
    for turn in 1..=8 {
        let choice = if turn % 2 == 0 { form() } else { page() };
        let started = fixture.start_payment(&order, &choice).await.ok(200);
        assert_eq!(started["attempt"], json!(turn));
    }
    fixture.start_payment(&order, &page()).await.problem(409, "too-many-payments");
    fixture.json(ALICE, "POST", &format!("/orders/{order}/cancel"), &json!({})).await.ok(200);
    let refused = fixture.start_payment(&order, &form()).await.problem(409, "order-resolved");
    assert_eq!(refused["state"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_when_an_order_is_cancelled_is_closed_and_what_was_paid_goes_back() {
    let fixture = Fixture::with_shop().await;
    let cancel = async |order: &str| {
        fixture.json(ALICE, "POST", &format!("/orders/{order}/cancel"), &json!({})).await.ok(200);
    };
    let order = fixture.ordered().await;
    let open = fixture.start_payment(&order, &page()).await.ok(200);
    cancel(&order).await;
    fixture.close().await;
    assert_eq!(fixture.provider.pay(&name_of(&open), Timestamp::now()).unwrap(), None);
    assert_eq!(fixture.state(&order).await, "cancelled");

    // Paid before it is cancelled, and no callback has come.
    let order = fixture.ordered().await;
    let open = fixture.start_payment(&order, &form()).await.ok(200);
    assert!(fixture.provider.pay(&name_of(&open), Timestamp::now()).unwrap().is_some());
    cancel(&order).await;
    fixture.close().await;
    assert_eq!(fixture.state(&order).await, "refund_due");
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    assert_eq!(failures(&refund::handle(&fixture.app, batch).await), 0);
    assert_eq!(fixture.state(&order).await, "refunded");
    let shown = fixture.get(ALICE, &format!("/orders/{order}")).await.ok(200);
    assert_eq!(shown["payments"][0]["reason"], "cancelled");
}

impl Fixture {
    /// Another instance of the functions, that knows the shop too.
    async fn another_shop(&self) -> shared::runtime::app::App {
        let mut app = self.another_process().await;
        app.return_origins.clone_from(&self.app.return_origins);
        app
    }
}

/// At one start a second the first three have turns. Nobody is refused: the next has a place, keeps it and starts in it, and
/// its order waits for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_cannot_be_started_at_once_has_its_place() {
    let fixture = Fixture::with_shop().await;
    // No order may be paid for longer than 5 seconds, unless it waits for its place.
    let short = json!({ "sale": "short", "pay_window_seconds": 5 });
    let mut sale = hall();
    sale.as_object_mut().unwrap().extend(short.as_object().unwrap().clone());
    fixture.publish(&sale).await.ok(200);
    let slow = fixture.at_slow_providers(CallRate::from_per_second(1).unwrap()).await;
    let start = async |buyer: &str, order: &str| {
        let target = format!("/orders/{order}/payments");
        let headers = json!({ "content-type": "application/json" });
        let request = request(Sender::Buyer(buyer), "POST", &target, headers, &form().to_string());
        send(&slow, request).await
    };
    let buyers = ["ann", "bob", "cat", "dan", "eve", "fay"];
    let mut orders = Vec::new();
    for buyer in buyers {
        let order = fixture.buy(buyer, "short", best("vip", 1)).await.ok(201);
        orders.push(order);
    }
    let number = |at: usize| orders[at]["order"].as_str().unwrap();
    let asked = buyers.iter().enumerate().map(|(at, buyer)| start(buyer, number(at)));
    let answers = join_all(asked).await;
    let at = answers.iter().position(|answer| answer.status == 429).expect("somebody waits");
    let buyer = buyers[at];
    let last = answers.into_iter().nth(at).unwrap().problem(429, "payment-waits");
    let time = |document: &Value, member: &str| -> Timestamp {
        serde_json::from_value(document[member].clone()).unwrap()
    };
    let place = time(&last, "place_at");
    assert_eq!(last["provider"], "stripe");
    assert_eq!(time(&last, "pay_by"), place.plus_seconds(120));
    let target = format!("/orders/{}", number(at));
    let shown = fixture.get(Sender::Buyer(buyer), &target).await.ok(200);
    assert_eq!(time(&shown, "pay_by"), place.plus_seconds(120));
    assert_eq!(shown["places"][0]["at"], last["place_at"]);
    assert_eq!(orders[at].get("places"), None);
    // Until the place has come the answer is the same; whoever asks then starts.
    let mut answer = start(buyer, number(at)).await;
    while Timestamp::now() < place {
        let again = answer.problem(429, "payment-waits");
        assert_eq!(again["place_at"], last["place_at"]);
        answer = start(buyer, number(at)).await;
    }
    if answer.status == 429 {
        answer = start(buyer, number(at)).await;
    }
    let started = answer.ok(200);
    assert_eq!(time(&started, "pay_by"), place.plus_seconds(120));
    let shown = fixture.get(Sender::Buyer(buyer), &target).await.ok(200);
    assert_eq!(shown.get("places"), None);
    let paid = fixture.provider.pay(&name_of(&started), Timestamp::now()).unwrap();
    assert!(paid.is_some(), "it can be paid after its payment window");
}

impl Fixture {
    /// The starts of so many seconds are taken.
    async fn take_starts(&self, seconds: i64) {
        let next_us = Timestamp::now().plus_seconds(seconds).ms() * 1000;
        let put = self.dynamodb.put_item().table_name(&self.config.dynamodb.tables.sales);
        let put = put.item("pk", AttributeValue::S("#provider#stripe".to_owned()));
        let put = put.item("sk", AttributeValue::S("calls#start-payment".to_owned()));
        put.item("next_us", AttributeValue::N(next_us.to_string())).send().await.unwrap();
    }

    /// What a process that knows nothing yet answers somebody who asks the gate, and whether it holds a room back.
    async fn asked_anew(&self, buyer: &str) -> (Got, bool) {
        let app = self.another_process().await;
        let headers = json!({ "content-type": "application/json" });
        let body = json!({ "tickets": 1 }).to_string();
        let target = "/sales/hall/admissions";
        let asked = request(Sender::Buyer(buyer), "POST", target, headers, &body);
        let answer = send(&app, asked).await;
        let hall = SaleId::new("hall").unwrap();
        let hall = app.ports.catalogue().sale(&hall, Freshness::Fresh).await.unwrap().unwrap();
        let left = left(&app.ports, &hall.sale).await.unwrap().unwrap();
        assert!(left.free > 0 && (left.to_give() == 0) == left.is_held_back);
        (answer, left.is_held_back)
    }
}

/// Whoever is let in chooses seats and is to start to pay soon: while the next start is half a minute away, nobody is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_let_in_while_no_payment_starts_for_half_a_minute() {
    let fixture = Fixture::with_shop().await;
    let (let_in, is_held_back) = fixture.asked_anew("first").await;
    let_in.ok(201);
    assert!(!is_held_back);
    fixture.take_starts(60).await;
    let (refused, is_held_back) = fixture.asked_anew("second").await;
    refused.problem(429, "too-many-requests");
    assert!(is_held_back);
    fixture.take_starts(29).await;
    let (let_in, is_held_back) = fixture.asked_anew("third").await;
    let_in.ok(201);
    assert!(!is_held_back);
}
