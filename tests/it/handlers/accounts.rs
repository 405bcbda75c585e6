//! `GET /operator/accounts` and `GET /operator/webhooks`: what operators see of money and of who is told.

use engine::domain::basics::ids::PostingKey;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::Account;
use engine::domain::ledger::posting::{Posting, PostingKind};
use engine::domain::ledger::subscriber::Wishes;
use engine::flows::post::{Posted, post};
use engine::ports::Ports as _;
use local::handlers::sync_db;
use serde_json::{Value, json};
use shared::events::{SecretName, Webhook};

use super::{Fixture, OPERATOR_ISSUER, Sender, failures, hall};

const WATCHER: Sender<'_> = Sender::Token(OPERATOR_ISSUER, "onsale/watch");

/// What is told of an account in euros: in, out, left, posted.
fn of(accounts: &Value, account: &str) -> Option<[i64; 4]> {
    let all = accounts["accounts"].as_array().unwrap();
    let found = all.iter().find(|one| one["account"] == account && one["currency"] == "EUR")?;
    let names = ["in_minor", "out_minor", "balance_minor", "posted_minor"];
    Some(names.map(|name| found[name].as_i64().unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_merchant_is_owed_is_what_was_sold_without_what_was_settled() {
    let fixture = Fixture::start().await;
    let mut file = hall();
    file["merchant"] = json!({ "merchant": "opera", "commission_basis_points": 1000 });
    fixture.publish(&file).await.ok(200);
    let of_sale = "/operator/accounts?sale=hall";
    assert_eq!(fixture.get(WATCHER, of_sale).await.ok(200), json!({ "accounts": [] }));

    let seats = json!([{ "tier": "vip", "seats": ["vip-1-1", "vip-1-2"] }]);
    let paid = fixture.buy("alice", "hall", seats).await.ok(201);
    fixture.callback("pi_1", &paid["order"], 5000).await.ok(200);
    let batch = fixture.batch(&fixture.queues.sync.url).await;
    assert_eq!(failures(&sync_db::handle(&fixture.app, batch).await), 0);
    let account: Account = "merchant:opera:hall".parse().unwrap();
    let currency = Currency::new("EUR").unwrap();
    let amount = Money { amount_minor: MinorUnits(1500), currency };
    let transfer = PostingKind::Settlement.transfer(account, amount).unwrap();
    let key = PostingKey::new("settled-1").unwrap();
    let posting = Posting { key, transfer, at: Timestamp::now() };
    let ledger = fixture.app.ports.orders().orders.0.ledger();
    let posted = post(&ledger, &posting, async |_| {}).await.unwrap();
    assert_eq!(posted, Posted::Made);

    let shown = fixture.get(WATCHER, of_sale).await;
    assert_eq!(shown.caching(), "no-store");
    let shown = shown.ok(200);
    assert_eq!(of(&shown, "merchant:opera:hall"), Some([4500, 1500, 3000, -1500]), "{shown:#}");
    assert_eq!(shown["accounts"].as_array().unwrap().len(), 1);
    let all = fixture.get(WATCHER, "/operator/accounts").await.ok(200);
    assert_eq!(of(&all, "fees"), Some([500, 0, 500, 0]), "{all:#}");
    assert_eq!(of(&all, "provider:stripe"), Some([0, 5000, -5000, 0]));
    assert_eq!(of(&all, "bank"), Some([1500, 0, 1500, 1500]));
    assert_eq!(of(&all, "owed"), None, "nothing was ever owed");

    fixture.get(WATCHER, "/operator/accounts?sale=nowhere").await.problem(404, "not-found");
    fixture.get(WATCHER, "/operator/accounts?sale=%00").await.problem(422, "invalid");
    for target in [of_sale, "/operator/webhooks"] {
        fixture.get(Sender::Buyer("alice"), target).await.problem(401, "not-authenticated");
        let none = Sender::Token(OPERATOR_ISSUER, "onsale/scan");
        fixture.get(none, target).await.problem(403, "not-permitted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_and_how_far_is_shown_without_secrets() {
    let fixture = Fixture::start().await;
    let shown = || async { fixture.get(WATCHER, "/operator/webhooks").await.ok(200) };
    assert_eq!(shown().await, json!({ "webhooks": [] }));
    let since = Timestamp::now();
    let webhook = Webhook {
        id: "erp".parse().unwrap(),
        url: "https://erp.example/hooks".parse().unwrap(),
        wishes: Wishes { sales: ["hall".parse().unwrap()].into(), ..Wishes::default() },
        secret: SecretName { key: "first".to_owned(), generation: 1 },
        former: None,
        since,
    };
    fixture.app.ports.webhooks().put(&webhook).await.unwrap();
    let erp = json!({
        "webhook": "erp", "url": "https://erp.example/hooks", "kinds": [], "sales": ["hall"],
        "records_behind": 0, "orders_waiting": 0, "given_up": 0
    });
    assert_eq!(shown().await, json!({ "webhooks": [erp] }));
}
