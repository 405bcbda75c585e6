//! Currencies that Stripe counts otherwise than ISO 4217 does, and amounts that it does not take: said when a sale is
//! published, and sent back to the last unit that it takes.

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use local::handlers::refund;
use local::payment;
use serde_json::{Value, json};
use shared::providers::stripe::signature::sign;

use super::{Fixture, PAYMENT_SECRET, Sender, best, failures, hall, request, send};
use crate::program;

const ALICE: Sender<'_> = Sender::Buyer("alice");

/// The hall in a currency, each ticket at a price.
fn priced(currency: &str, price_minor: i64) -> Value {
    let mut file = hall();
    file["currency"] = json!(currency);
    for tier in file["tiers"].as_array_mut().unwrap() {
        tier["price_minor"] = json!(price_minor);
    }
    file
}

/// What the operator is told of the prices when a file is published.
async fn told(fixture: &Fixture, file: &Value) -> Vec<String> {
    let mut file = file.clone();
    // Each is a sale of its own: a currency never changes.
    let (currency, price) = (&file["currency"], &file["tiers"][0]["price_minor"]);
    let id = format!("{}-{price}", currency.as_str().unwrap().to_ascii_lowercase());
    file["sale"] = json!(id);
    let published = fixture.publish(&file).await.ok(200);
    let warnings: Vec<String> = published
        .get("warnings")
        .map(|warnings| serde_json::from_value(warnings.clone()).unwrap())
        .unwrap_or_default();
    warnings.into_iter().filter(|warning| warning.contains("Stripe takes")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_that_no_buyer_can_pay_is_said_when_the_sale_is_published() {
    let fixture = Fixture::start().await;
    for (currency, price, says) in [
        ("KWD", 1234, "KWD: Stripe takes whole tens"),
        ("MGA", 150, "MGA: Stripe takes whole hundreds"),
        ("EUR", 49, "EUR: Stripe takes 50 at least"),
        ("HUF", 17_499, "HUF: Stripe takes 17500 at least"),
        // Four tickets of it.
        ("EUR", 250_000_000_000, "EUR: Stripe takes 999999999999 at most"),
    ] {
        let warned = told(&fixture, &priced(currency, price)).await;
        assert_eq!(warned.len(), 1, "{currency} {price}: {warned:?}");
        assert!(warned[0].starts_with(says), "{warned:?}");
    }
    for (currency, price) in
        [("KWD", 1230), ("EUR", 50), ("EUR", 0), ("CNY", 1), ("ISK", 3), ("EUR", 249_999_999_999)]
    {
        let warned = told(&fixture, &priced(currency, price)).await;
        assert_eq!(warned, Vec::<String>::new(), "{currency} {price}");
    }
}

/// A sale from the field: its currency and its price are those that the report of the case names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_price_of_the_field_is_said_too() {
    let path =
        text::root().join("../shared/data/field-cases/price-the-provider-cannot-take/README.md");
    let Ok(case) = std::fs::read_to_string(&path) else {
        text::skipped(format_args!("there is no {}", path.display()));
        return;
    };
    let word_after = |before: &str| {
        let (_, rest) = case.split_once(before).unwrap();
        rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap().to_owned()
    };
    let (currency, price) = (word_after("(currency "), word_after("price_minor "));
    let says = case.split_once("\"KWD: ").unwrap().1.split('"').next().unwrap();
    let fixture = Fixture::start().await;
    let warned = told(&fixture, &priced(&currency, price.parse().unwrap())).await;
    assert!(warned[0].starts_with(&format!("{currency}: {says}")), "{warned:?}");
}

/// The order is paid, in dinars: at the provider, and by its callback.
async fn paid(fixture: &Fixture, order: &str, amount_minor: i64) {
    let currency = Currency::new("KWD").unwrap();
    let amount = Money { amount_minor: MinorUnits(amount_minor), currency };
    let (order, now) = (order.parse().unwrap(), Timestamp::now());
    fixture.provider.capture("pi_1", order, amount, now).unwrap();
    let body = payment::captured("pi_1", order, amount, now).to_string();
    let headers = json!({ "stripe-signature": sign(PAYMENT_SECRET, body.as_bytes(), now) });
    let callback = request(Sender::Nobody, "POST", "/payments/stripe/callback", headers, &body);
    assert_eq!(send(&fixture.app, callback).await.ok(200), json!({ "outcome": "accepted" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_fee_leaves_of_a_ticket_can_be_sent_back() {
    let fixture = Fixture::start().await;
    let mut file = priced("KWD", 12_350);
    file["refunds"] = json!({ "until": "2099-12-31T00:00:00Z", "fee_percent": 3 });
    fixture.publish(&file).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let number = order["order"].as_str().unwrap();
    let target = format!("/orders/{number}");
    paid(&fixture, number, 2 * 12_350).await;
    let shown = fixture.get(ALICE, &target).await.ok(200);
    assert_eq!(shown["state"], "paid", "{shown:#}");
    assert_eq!(shown["lines"][0]["refundable"]["fee_minor"], 380, "371 of 12,350, to whole tens");
    let back = json!({ "number": 1, "tickets": "all" });
    let made = fixture.json(ALICE, "POST", &format!("{target}/refunds"), &back).await.ok(200);
    assert_eq!(made["amount_minor"], 2 * 11_970);
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    assert_eq!(failures(&refund::handle(&fixture.app, batch).await), 0);
    let ledger = fixture.provider.ledger();
    let sent: Vec<MinorUnits> =
        ledger[0].refunds.iter().map(|refund| refund.amount_minor).collect();
    assert_eq!(sent, [MinorUnits(23_940)]);
    assert_eq!(fixture.get(ALICE, &target).await.ok(200)["state"], "refunded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_is_told_what_cannot_be_sent_back() {
    let fixture = Fixture::start().await;
    fixture.publish(&priced("KWD", 12_350)).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201);
    let number = order["order"].as_str().unwrap();
    paid(&fixture, number, 12_350).await;
    let target = format!("/orders/{number}/refunds/operator");
    let of = |amount: i64| json!({ "number": 1, "tickets": [], "amount_minor": amount, "currency": "KWD" });
    let odd = fixture.json(Sender::Operator, "POST", &target, &of(1234)).await;
    odd.problem(422, "invalid");
    let even = fixture.json(Sender::Operator, "POST", &target, &of(1230)).await.ok(200);
    assert_eq!(even["amount_minor"], 1230);
}

/// The check of a file at a desk knows no providers: it says what Stripe takes.
#[test]
fn the_check_of_a_file_warns_of_its_prices() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sale.json");
    let check = |file: &Value, more: &[&str]| {
        std::fs::write(&path, file.to_string()).unwrap();
        let arguments = [&["sale", "check", path.to_str().unwrap()], more].concat();
        let (printed, code) = program::run(folder.path(), &arguments);
        assert_eq!(code, 0, "it is a warning: {printed}");
        printed
    };
    let odd = check(&priced("KWD", 1234), &[]);
    assert!(odd.contains("warning: KWD: Stripe takes whole tens, and a ticket of tier"), "{odd}");
    let facts = check(&priced("KWD", 1234), &["--json"]);
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert!(facts[0]["warnings"][0].as_str().unwrap().starts_with("KWD: "), "{facts:#}");
    assert!(!check(&priced("EUR", 60), &[]).contains("warning"));
    let converted = check(&priced("EUR", 60), &["--smallest", "70"]);
    assert!(converted.contains("EUR: Stripe takes 70 at least"), "{converted}");
    let bounded = check(&priced("EUR", 60), &["--largest", "239"]);
    assert!(bounded.contains("EUR: Stripe takes 239 at most, and 4 tickets"), "{bounded}");
}
