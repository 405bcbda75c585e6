//! `GET /operator/accounts?debts=true`: who owes the platform something, by name and page by page.

use engine::domain::basics::ids::PostingKey;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::posting::{Posting, PostingKind};
use engine::flows::post::{Posted, post};
use engine::flows::sync::sync;
use engine::ports::{Catalogue as _, ChangeReply, Ports as _};
use local::handlers::read_captures;
use serde_json::{Value, json};
use shared::debts::PAGE;

use super::{Fixture, OPERATOR_ISSUER, Sender, hall};

const WATCHER: Sender<'_> = Sender::Token(OPERATOR_ISSUER, "onsale/watch");
const DEBTS: &str = "/operator/accounts?debts=true";

/// Pays an order by a payment that is started, and gives the payment's name at the provider.
async fn paid(fixture: &Fixture, buyer: &'static str, order: &Value) -> String {
    let target = format!("/orders/{}/payments", order["order"].as_str().unwrap());
    let form = json!({ "provider": "stripe", "method": "form" });
    let started = fixture.json(Sender::Buyer(buyer), "POST", &target, &form).await.ok(200);
    let secret = started["client_secret"].as_str().unwrap();
    let (payment, _) = secret.split_once("_secret").unwrap();
    fixture.provider.pay(payment, Timestamp::now()).unwrap().unwrap();
    payment.to_owned()
}

/// Counts on the accounts what the facts of an order move.
async fn counted(fixture: &Fixture, order: &Value) {
    let number = order["order"].as_str().unwrap().parse().unwrap();
    sync(&fixture.app.ports, &[number], Timestamp::now()).await.unwrap();
}

/// The hall, whose merchant has sold two tickets, was paid all of it, and has refunded one since: it owes what that was worth.
async fn with_a_merchant_that_owes(fixture: &Fixture) {
    let mut file = hall();
    file["merchant"] = json!({ "merchant": "opera", "commission_basis_points": 1000 });
    file["wallet"] = json!(true);
    file["lost_dispute"] = json!("keeps");
    fixture.publish(&file).await.ok(200);
    let seats = json!([{ "tier": "vip", "seats": ["vip-1-1", "vip-1-2"] }]);
    let order = fixture.buy("alice", "hall", seats).await.ok(201);
    paid(fixture, "alice", &order).await;
    read_captures::read(&fixture.app).await.unwrap();
    counted(fixture, &order).await;
    let amount = Money { amount_minor: MinorUnits(4500), currency: Currency::new("EUR").unwrap() };
    let account = "merchant:opera:hall".parse().unwrap();
    let transfer = PostingKind::Settlement.transfer(account, amount).unwrap();
    let key = PostingKey::new("settled-1").unwrap();
    let posting = Posting { key, transfer, at: Timestamp::now() };
    let ledger = fixture.app.ports.orders().orders.0.ledger();
    assert_eq!(post(&ledger, &posting, async |_| {}).await.unwrap(), Posted::Made);
    let shown = fixture.get(WATCHER, DEBTS).await;
    assert_eq!(shown.caching(), "no-store");
    assert_eq!(shown.ok(200), json!({ "accounts": [] }), "who has nothing owes nothing");
    let target = format!("/orders/{}/refunds/operator", order["order"].as_str().unwrap());
    let one = json!({ "number": 1, "tickets": [{ "tier": "vip", "seat": "vip-1-2" }] });
    fixture.json(Sender::Operator, "POST", &target, &one).await.ok(200);
    counted(fixture, &order).await;
}

/// A wallet that has spent half of what filled it, all of which a dispute takes that is lost. The sale keeps the ticket valid.
async fn with_a_wallet_that_owes(fixture: &Fixture) {
    let top_ups = json!({
        "sale": "top-ups", "title": "Top-ups", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 1000, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
        "merchant": { "merchant": "wallet" },
        "tiers": [{ "tier": "fifty", "name": "Fifty", "price_minor": 5000, "general_admission": 500 }]
    });
    fixture.publish(&top_ups).await.ok(200);
    let one = json!([{ "tier": "fifty", "best": { "count": 1 } }]);
    let filled = fixture.buy("bob", "top-ups", one).await.ok(201);
    let payment = paid(fixture, "bob", &filled).await;
    read_captures::read(&fixture.app).await.unwrap();
    let seat = json!([{ "tier": "vip", "seats": ["vip-1-3"] }]);
    let bought = fixture.buy("bob", "hall", seat).await.ok(201);
    let target = format!("/orders/{}/payments/wallet", bought["order"].as_str().unwrap());
    fixture.json(Sender::Buyer("bob"), "POST", &target, &json!({})).await.ok(200);
    let now = Timestamp::now();
    let dispute = fixture.provider.open_dispute(&payment, MinorUnits(5000), false, now).unwrap();
    fixture.provider.close_dispute(&dispute, false, now.plus_seconds(1)).unwrap();
    read_captures::read(&fixture.app).await.unwrap();
}

/// The accounts of a page, with what is left on each.
fn named(page: &Value) -> Vec<(String, i64)> {
    let all = page["accounts"].as_array().unwrap().iter();
    all.map(|row| {
        (row["account"].as_str().unwrap().to_owned(), row["balance_minor"].as_i64().unwrap())
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_owes_something_is_listed_by_name_however_many_sales_there_are() {
    let fixture = Fixture::start().await;
    with_a_merchant_that_owes(&fixture).await;
    with_a_wallet_that_owes(&fixture).await;
    let all = fixture.get(WATCHER, DEBTS).await.ok(200);
    let merchant = ("merchant:opera:hall".to_owned(), -2250);
    let wallet = ("wallet:bob".to_owned(), -2500);
    assert_eq!(named(&all), [merchant.clone(), wallet.clone()], "{all:#}");
    assert_eq!(all.get("next"), None);
    assert_eq!(all["accounts"][0]["posted_minor"], -4500);

    // More sales than a page looks through, all before the hall: the first page finds nobody, and says where to go on.
    let mut other = hall();
    for number in 0..PAGE {
        other["sale"] = json!(format!("a-{number:02}"));
        let file = serde_json::from_value(other.clone()).unwrap();
        let published = fixture.app.ports.catalogue().publish(&file, None).await.unwrap();
        assert_eq!(published, ChangeReply::Done);
    }
    let first = fixture.get(WATCHER, DEBTS).await.ok(200);
    assert_eq!(named(&first), [], "{first:#}");
    let next = first["next"].as_str().unwrap();
    let second = fixture.get(WATCHER, &format!("{DEBTS}&cursor={next}")).await.ok(200);
    assert_eq!((named(&second), second.get("next")), (vec![merchant, wallet], None));

    for wrong in [
        "/operator/accounts?debts=maybe".to_owned(),
        format!("{DEBTS}&sale=hall"),
        format!("{DEBTS}&cursor=hall"),
        format!("/operator/accounts?cursor={next}"),
    ] {
        fixture.get(WATCHER, &wrong).await.problem(422, "invalid");
    }
    fixture.get(Sender::Buyer("alice"), DEBTS).await.problem(401, "not-authenticated");
    let scan = Sender::Token(OPERATOR_ISSUER, "onsale/scan");
    fixture.get(scan, DEBTS).await.problem(403, "not-permitted");
}
