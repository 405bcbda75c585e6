//! Sales that Redis has lost.

use std::time::Instant;

use engine::domain::basics::ids::{InventoryId, SaleId, TierId};
use engine::ports::{Ports as _, Seats as _};
use local::handlers::{load_sale, reconcile};
use serde_json::{Value, json};

use super::messages::{failed_to_expire, overdue};
use super::{Fixture, Sender, best, failures, hall, records};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_that_redis_has_lost_is_not_loaded_until_it_is_reconciled() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let kept = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    fixture.lose_redis().await;
    fixture.get(Sender::Nobody, "/sales/hall/availability").await.problem(503, "not-loaded");
    let admission = fixture.admission("bob", "hall", 2).await;
    let lost = fixture.order("bob", "hall", &admission["token"], best("vip", 1)).await;
    lost.problem(503, "not-loaded");

    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    let event = serde_json::from_value(event).unwrap();
    let report = reconcile::handle(&fixture.app, event).await.unwrap();
    assert_eq!((report.loaded, report.failed), (1, 0));
    let left = fixture.get(Sender::Nobody, "/sales/hall/availability").await.ok(200);
    assert_eq!(left["tiers"][0]["available"], json!(14), "what alice holds is hers still");
    let token = &admission["token"];
    let after = fixture.order("bob", "hall", token, best("vip", 1)).await.ok(201);
    assert_ne!(after["lines"][0]["tickets"][0], kept["lines"][0]["tickets"][0]);
}

/// Nothing but requests, and the messages they send: no schedule comes to help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_who_meet_a_lost_sale_have_it_loaded_and_payments_are_kept_meanwhile() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let pending = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let paid = fixture.buy("carol", "hall", best("vip", 1)).await.ok(201);
    let admission = fixture.admission("bob", "hall", 2).await;
    fixture.lose_redis().await;

    let load = &fixture.queues.load.url;
    let since = Instant::now();
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let refused = fixture.order("bob", "hall", &admission["token"], best("vip", 1)).await;
        refused.problem(503, "not-loaded");
        waiting.push(fixture.waiting(load).await);
    }
    // One of each second that the machine took for it.
    let most = 1 + u32::try_from(since.elapsed().as_secs()).unwrap();
    assert!(waiting[0] == 1 && waiting[2] <= most, "{waiting:?}, {most} at most");

    // Sales pause; reading does not, and money is taken.
    fixture.get(Sender::Nobody, "/sales/hall").await.ok(200);
    let target = |order: &Value| format!("/orders/{}", order["order"].as_str().unwrap());
    let shown = fixture.get(Sender::Buyer("alice"), &target(&pending)).await.ok(200);
    assert_eq!(shown["state"], "pending");
    let looked_at = fixture.waiting(&fixture.queues.expiry.url).await;
    let accepted = fixture.callback("pi_1", &paid["order"], 2500).await.ok(200);
    assert_eq!(accepted, json!({ "outcome": "accepted" }));
    let shown = fixture.get(Sender::Buyer("carol"), &target(&paid)).await.ok(200);
    assert_eq!(shown["state"], "paid");
    let [sync, expiry] = [&fixture.queues.sync.url, &fixture.queues.expiry.url];
    assert_eq!(fixture.waiting(sync).await, 0, "counted when Redis has it as sold");
    assert_eq!(fixture.waiting(expiry).await, looked_at + 1, "and looked at again for that");
    let due = [overdue(&paid["order"])];
    assert_eq!(failed_to_expire(&fixture, &due).await, ["0"], "too early: the message comes again");

    // What asks twice, late, or for nothing, does no harm.
    let hall = json!({ "sale": "hall" });
    let bodies = [hall.clone(), json!("not json"), json!({ "sale": "none" }), hall.clone()];
    let loaded = load_sale::handle(&fixture.app, records(&bodies)).await;
    let failed: Vec<&str> =
        loaded.batch_item_failures.iter().map(|one| &*one.item_identifier).collect();
    assert_eq!(failed, ["1", "2"], "only what is malformed or of no sale");
    let again = load_sale::handle(&fixture.app, records(&[hall])).await;
    assert_eq!(failures(&again), 0);
    assert_eq!(failed_to_expire(&fixture, &due).await, Vec::<String>::new());
    assert_eq!(fixture.waiting(sync).await, 1, "it is sold, and to be counted");

    let bought = fixture.order("bob", "hall", &admission["token"], best("vip", 1)).await.ok(201);
    for other in [&pending, &paid] {
        assert_ne!(bought["lines"][0]["tickets"][0], other["lines"][0]["tickets"][0]);
    }
    let left = fixture.get(Sender::Nobody, "/sales/hall/availability").await.ok(200);
    assert_eq!(left["tiers"][0]["available"], json!(12));
    let hall = InventoryId::whole(SaleId::new("hall").unwrap());
    let tier = TierId::new("vip").unwrap();
    let grid = fixture.app.ports.seats().grid(&hall, &tier, 1).await.unwrap();
    let sold: u32 = grid.sold[0].iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(sold, 1, "the load brings what was paid meanwhile as sold");
}
