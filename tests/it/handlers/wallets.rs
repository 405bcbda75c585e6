//! Wallets over HTTP, as users and enemies ask for them.

use local::handlers::refund;
use serde_json::{Value, json};

use super::{Fixture, Got, Sender, failures, hall};

const ALICE: Sender<'_> = Sender::Buyer("alice");

impl Fixture {
    /// The hall, which takes wallets, and the sale that fills them.
    async fn with_wallets() -> Self {
        let fixture = Self::start().await;
        let mut file = hall();
        file["wallet"] = json!(true);
        fixture.publish(&file).await.ok(200);
        let tier = |id: &str, price: u32| json!({ "tier": id, "name": id, "price_minor": price, "general_admission": 500 });
        fixture
            .publish(&json!({
                "sale": "top-ups", "title": "Top-ups", "currency": "EUR",
                "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
                "limit_per_buyer": 1000, "pay_window_seconds": 900,
                "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
                "merchant": { "merchant": "wallet" },
                "refunds": { "until": "2099-01-01T00:00:00Z" },
                "tiers": [tier("ten", 1000), tier("fifty", 5000)]
            }))
            .await
            .ok(200);
        fixture
    }

    async fn filled(&self, buyer: &str, payment: &str) -> Value {
        let lines = json!([{ "tier": "fifty", "best": { "count": 1 } }]);
        let order = self.buy(buyer, "top-ups", lines).await.ok(201);
        self.callback(payment, &order["order"], 5000).await.ok(200);
        order
    }

    async fn seat_of(&self, buyer: &str, seat: &str) -> Value {
        self.buy(buyer, "hall", json!([{ "tier": "vip", "seats": [seat] }])).await.ok(201)
    }

    async fn paid_from_wallet(&self, sender: Sender<'_>, order: &Value) -> Got {
        let number = order["order"].as_str().unwrap();
        let target = format!("/orders/{number}/payments/wallet");
        self.json(sender, "POST", &target, &json!({})).await
    }

    async fn wallets(&self, sender: Sender<'_>) -> Value {
        self.get(sender, "/wallets").await.ok(200)
    }
}

/// Why and by how much the only wallet was moved, newest first.
fn moves(wallets: &Value) -> Vec<(String, i64)> {
    let entries = wallets["wallets"][0]["entries"].as_array().unwrap().iter();
    let entry = |entry: &Value| {
        (entry["kind"].as_str().unwrap().to_owned(), entry["amount_minor"].as_i64().unwrap())
    };
    entries.map(entry).collect()
}

#[tokio::test]
async fn a_buyer_fills_a_wallet_pays_from_it_and_is_refunded_into_it() {
    let fixture = Fixture::with_wallets().await;
    assert_eq!(fixture.wallets(ALICE).await, json!({ "wallets": [] }));
    fixture.filled("alice", "pi_1").await;
    let order = fixture.seat_of("alice", "vip-1-1").await;
    for _ in 0..2 {
        let paid = fixture.paid_from_wallet(ALICE, &order).await.ok(200);
        assert_eq!((&paid["state"], &paid["order"]), (&json!("paid"), &order["order"]));
    }
    let shown = fixture.wallets(ALICE).await;
    let wallet = &shown["wallets"][0];
    assert_eq!((&wallet["currency"], &wallet["balance_minor"]), (&json!("EUR"), &json!(2500)));
    let expected = [("payment", -2500), ("top_up", 5000)];
    assert_eq!(moves(&shown), expected.map(|(kind, amount)| (kind.to_owned(), amount)));
    assert_eq!(wallet["entries"][0]["order"], order["order"]);
    assert_eq!(wallet["entries"][0]["sale"], "hall");

    let number = order["order"].as_str().unwrap();
    let whole = json!({ "number": 1, "tickets": "all" });
    let target = format!("/orders/{number}/refunds/operator");
    fixture.json(Sender::Operator, "POST", &target, &whole).await.ok(200);
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    for _ in 0..2 {
        assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
    }
    let shown = fixture.wallets(ALICE).await;
    assert_eq!(moves(&shown)[0], ("refund".to_owned(), 2500));
    assert_eq!(shown["wallets"][0]["balance_minor"], 5000);
    // No provider was asked.
    assert!(fixture.provider.ledger().iter().all(|entry| entry.refunds.is_empty()));
    // Nobody else sees any of it.
    assert_eq!(fixture.wallets(Sender::Buyer("mallory")).await, json!({ "wallets": [] }));
}

#[tokio::test]
async fn what_filled_a_wallet_is_given_back_by_its_buyer_until_it_is_spent() {
    let fixture = Fixture::with_wallets().await;
    let first = fixture.filled("alice", "pi_2").await;
    let order = fixture.seat_of("alice", "vip-1-2").await;
    fixture.paid_from_wallet(ALICE, &order).await.ok(200);
    let whole = json!({ "number": 1, "tickets": "all" });
    let target = format!("/orders/{}/refunds", first["order"].as_str().unwrap());
    let refused = fixture.json(ALICE, "POST", &target, &whole).await.problem(409, "wallet-short");
    assert_eq!(refused["has_minor"], 2500);
    fixture.filled("alice", "pi_3").await;
    fixture.json(ALICE, "POST", &target, &whole).await.ok(200);
    let shown = fixture.wallets(ALICE).await;
    assert_eq!(moves(&shown)[0], ("top_up_back".to_owned(), -5000));
    assert_eq!(shown["wallets"][0]["balance_minor"], 2500);
}

#[tokio::test]
async fn bad_payments_from_wallets_are_told_apart_and_change_nothing() {
    let fixture = Fixture::with_wallets().await;
    let top_up = fixture.filled("alice", "pi_4").await;
    let order = fixture.seat_of("alice", "vip-2-1").await;
    let missing = json!({ "order": "1024" });
    fixture.paid_from_wallet(Sender::Nobody, &order).await.problem(401, "not-authenticated");
    fixture.get(Sender::Nobody, "/wallets").await.problem(401, "not-authenticated");
    fixture.paid_from_wallet(Sender::Buyer("mallory"), &order).await.problem(404, "not-found");
    fixture.paid_from_wallet(ALICE, &missing).await.problem(404, "not-found");
    let paid = fixture.paid_from_wallet(ALICE, &top_up).await.problem(409, "order-resolved");
    assert_eq!(paid["state"], "paid");
    // What fills a wallet is not paid from one.
    let lines = json!([{ "tier": "ten", "best": { "count": 1 } }]);
    let second = fixture.buy("alice", "top-ups", lines).await.ok(201);
    fixture.paid_from_wallet(ALICE, &second).await.problem(422, "payment-not-offered");
    // Neither is what costs more than it has.
    let poor = fixture.seat_of("bob", "vip-2-2").await;
    let short = fixture.paid_from_wallet(Sender::Buyer("bob"), &poor).await;
    assert_eq!(short.problem(409, "wallet-short")["has_minor"], 0);
    // Nor what was given up.
    let number = order["order"].as_str().unwrap();
    let give_up = format!("/orders/{number}/cancel");
    fixture.json(ALICE, "POST", &give_up, &json!({})).await.ok(200);
    let ended = fixture.paid_from_wallet(ALICE, &order).await.problem(409, "order-resolved");
    assert_eq!(ended["state"], "cancelled");
    assert_eq!(fixture.wallets(ALICE).await["wallets"][0]["balance_minor"], 5000);
    // A callback in the name of the wallet is nobody's.
    let (target, nothing) = ("/payments/wallet/callback", json!({}));
    let forged = fixture.json(Sender::Nobody, "POST", target, &nothing).await;
    assert_eq!(forged.status, 404);
}

#[tokio::test]
async fn a_sale_that_fills_wallets_sells_money_and_nothing_else() {
    let fixture = Fixture::start().await;
    let mut file = hall();
    file["merchant"] = json!({ "merchant": "wallet", "commission_basis_points": 100 });
    file["wallet"] = json!(true);
    file["exchanges"] = json!({ "until": "2099-01-01T00:00:00Z" });
    file["refunds"] = json!({ "until": "2099-01-01T00:00:00Z", "fee_percent": 5 });
    let refused = fixture.publish(&file).await.problem(422, "invalid");
    let defects = refused["defects"].as_array().unwrap().iter();
    let at: Vec<&str> = defects.map(|defect| defect["at"].as_str().unwrap()).collect();
    let expected = [
        "merchant.commission_basis_points",
        "wallet",
        "exchanges",
        "refunds",
        "tiers[0].general_admission",
        "tiers[1].general_admission",
    ];
    assert_eq!(at, expected, "{refused:#}");
}
