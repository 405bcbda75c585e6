//! Payments that are started, closed and paid: by buyers, at the fake of Stripe.

use engine::domain::basics::time::Timestamp;
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
