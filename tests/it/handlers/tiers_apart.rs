//! A sale that keeps its tiers apart: each on a slot of its own, all under one limit.

use engine::domain::basics::ids::{InventoryId, Legs, RequestFingerprint, SaleId, TierId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{Hold, HoldReply, Line};
use engine::ports::{Catalogue as _, Freshness, Ports as _, Seats as _};
use local::handlers::reconcile;
use serde_json::{Value, json};

use super::messages::failed_to_expire;
use super::{Fixture, Sender, best, hall};
use crate::backends;

fn apart() -> Value {
    let mut file = hall();
    file["tiers_apart"] = json!(true);
    file
}

fn inventory(tier: &str) -> InventoryId {
    InventoryId::of_tier(SaleId::new("hall").unwrap(), TierId::new(tier).unwrap())
}

async fn holds(fixture: &Fixture, tier: &str) -> u64 {
    fixture.app.ports.seats().count_holds(&inventory(tier)).await.unwrap()
}

async fn keys(fixture: &Fixture, pattern: &str) -> Vec<String> {
    let url = fixture._stack.endpoints().redis_url;
    let mut connection = backends::redis(&url).await;
    redis::cmd("KEYS").arg(pattern).query_async(&mut connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_tier_sells_by_itself_and_the_limit_is_for_all() {
    let fixture = Fixture::start().await;
    fixture.publish(&apart()).await.ok(200);
    assert_eq!(keys(&fixture, "{hall}:*").await, [""; 0], "nothing is under the sale's own tag");
    assert_eq!(keys(&fixture, "{hall/vip}:sale").await.len(), 1);
    fixture.publish(&hall()).await.problem(409, "seats-differ");

    // One tier an order. The same admission is good for one of them.
    let admission = fixture.admission("alice", "hall", 4).await;
    let both = json!([
        { "tier": "vip", "best": { "count": 1 } }, { "tier": "small", "best": { "count": 1 } }
    ]);
    let refused = fixture.order("alice", "hall", &admission["token"], both).await;
    refused.problem(422, "one-tier-only");
    let vip = fixture.order("alice", "hall", &admission["token"], best("vip", 3)).await.ok(201);
    assert_eq!(vip.get("remaining_allowance"), None, "only DynamoDB knows it");
    // The token again, of the other tier: what it has held there is given back.
    let other = fixture.order("alice", "hall", &admission["token"], best("small", 1)).await;
    assert_eq!(other.problem(422, "token-reused")["order"], vip["order"]);
    assert_eq!([holds(&fixture, "vip").await, holds(&fixture, "small").await], [1, 0]);

    // Each tier counts by itself; what is left of the limit is that of the sale.
    let small = fixture.buy("alice", "hall", best("small", 1)).await.ok(201);
    for (tier, count) in [("small", 1), ("small", 4), ("vip", 2)] {
        let refused = fixture.buy("alice", "hall", best(tier, count)).await;
        let refused = refused.problem(403, "limit-reached");
        assert_eq!(refused["remaining_allowance"], json!(0), "{count} of {tier}");
    }
    assert_eq!([holds(&fixture, "vip").await, holds(&fixture, "small").await], [1, 1]);
    let left = fixture.get(Sender::Nobody, "/sales/hall/availability").await.ok(200);
    assert_eq!([&left["tiers"][0]["available"], &left["tiers"][1]["available"]], [13, 3]);

    // Paid in one tier, cancelled in the other.
    let accepted = fixture.callback("pi_1", &vip["order"], 7500).await.ok(200);
    assert_eq!(accepted, json!({ "outcome": "accepted" }));
    let target = format!("/orders/{}/cancel", small["order"].as_str().unwrap());
    fixture.json(Sender::Buyer("alice"), "POST", &target, &json!({})).await.ok(200);
    assert_eq!([holds(&fixture, "vip").await, holds(&fixture, "small").await], [0, 0]);
    let sold = async |tier: &str| {
        let (inventory, tier) = (inventory(tier), TierId::new(tier).unwrap());
        let grid = fixture.app.ports.seats().grid(&inventory, &tier, 1).await.unwrap();
        let count =
            |bits: &[Vec<u8>]| -> u32 { bits[0].iter().map(|byte| byte.count_ones()).sum() };
        (count(&grid.taken), count(&grid.sold))
    };
    assert_eq!(sold("vip").await, (3, 3));
    assert_eq!(sold("small").await.1, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_never_became_an_order_is_found_by_the_tier_of_its_message() {
    let fixture = Fixture::start().await;
    fixture.publish(&apart()).await.ok(200);
    let hall_id = SaleId::new("hall").unwrap();
    let published = fixture.app.ports.catalogue().sale(&hall_id, Freshness::Fresh).await.unwrap();
    let number: OrderNumber = "2048".parse().unwrap();
    let choice = Choice::Best { count: 2, together: Together::Preferred };
    let hold = Hold {
        inventory: inventory("small"),
        epoch: published.unwrap().epoch.unwrap(),
        order: number,
        user: UserId::new("eve").unwrap(),
        fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
        now: Timestamp::now(),
        deadline: Timestamp::now().plus_seconds(-1),
        replaced: Tickets::NONE,
        lines: vec![Line { tier: TierId::new("small").unwrap(), legs: Legs::ONE, choice }],
    };
    let held = fixture.app.ports.seats().hold(&hold).await.unwrap();
    assert!(matches!(held, HoldReply::Held { .. }), "{held:?}");
    let message = |tier: &str| json!({ "sale": "hall", "tier": tier, "order": number, "due_at": "2020-01-01T00:00:00Z" });
    // The control: another tier has no such hold.
    assert_eq!(failed_to_expire(&fixture, &[message("vip")]).await, [""; 0]);
    assert_eq!(holds(&fixture, "small").await, 1);
    assert_eq!(failed_to_expire(&fixture, &[message("small")]).await, [""; 0]);
    assert_eq!(holds(&fixture, "small").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_tiers_are_loaded_when_redis_has_lost_one() {
    let fixture = Fixture::start().await;
    fixture.publish(&apart()).await.ok(200);
    fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    fixture.buy("bob", "hall", best("small", 1)).await.ok(201);
    let admissions =
        [fixture.admission("carol", "hall", 1).await, fixture.admission("dave", "hall", 1).await];
    let mut connection = backends::redis(&fixture._stack.endpoints().redis_url).await;
    let lost = keys(&fixture, "{hall/vip}:*").await;
    let _: u32 = redis::cmd("DEL").arg(lost).query_async(&mut connection).await.unwrap();

    let refused = fixture.order("carol", "hall", &admissions[0]["token"], best("vip", 1)).await;
    refused.problem(503, "not-loaded");
    let sells = fixture.order("dave", "hall", &admissions[1]["token"], best("small", 1)).await;
    sells.ok(201);
    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    let event = serde_json::from_value(event).unwrap();
    let report = reconcile::handle(&fixture.app, event).await.unwrap();
    assert_eq!((report.loaded, report.failed), (1, 0));
    assert_eq!([holds(&fixture, "vip").await, holds(&fixture, "small").await], [1, 2]);
    fixture.order("carol", "hall", &admissions[0]["token"], best("vip", 1)).await.ok(201);
}
