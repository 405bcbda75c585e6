//! Codes for groups of a waiting room over HTTP: who has one joins, once for each use, and nobody learns which codes
//! there are.

use engine::domain::admission::room::code::{Code, MAX_CODES_TRIED};
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::ports::{RoomPorts as _, Rooms as _};
use serde_json::{Value, json};
use shared::dynamodb::{CodeCounts, ErasedPlaces};

use super::{Fixture, Got, Sender, hall};

/// A hall with a group for everybody, and two that are joined with a code.
fn club_hall() -> Value {
    let mut file = hall();
    file["opens_at"] = json!("2099-01-01T00:00:00Z");
    file["room"] = json!({ "groups": [
        { "group": "all" }, { "group": "fans", "codes": true }, { "group": "press", "codes": true }
    ] });
    file
}

fn sale() -> SaleId {
    SaleId::new("hall").unwrap()
}

fn group(name: &str) -> GroupId {
    GroupId::new(name).unwrap()
}

impl Fixture {
    async fn add_code(&self, to: &str, code: &str, uses: u32) -> bool {
        let hash = Code::new(code).unwrap().hash(&sale(), &group(to));
        self.app.ports.rooms().0.add_code(&sale(), &group(to), hash, uses).await.unwrap()
    }

    async fn codes(&self, of: &str) -> CodeCounts {
        self.app.ports.rooms().0.count_codes(&sale(), &group(of)).await.unwrap()
    }

    async fn with_code(&self, buyer: &str, group: &str, code: &str) -> Got {
        let body = json!({ "group": group, "code": code });
        self.json(Sender::Buyer(buyer), "POST", "/sales/hall/places", &body).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_lets_as_many_join_as_it_may_and_nobody_else() {
    let fixture = Fixture::start().await;
    fixture.publish(&club_hall()).await.ok(200);
    let shown = fixture.get(Sender::Nobody, "/sales/hall").await.ok(200);
    assert_eq!(shown["file"]["room"]["groups"][1]["codes"], true, "{shown}");
    assert!(fixture.add_code("fans", "FANS-2026-A", 2).await);
    assert!(!fixture.add_code("fans", "fans 2026 a", 9).await, "it is there, and stays");
    assert!(fixture.add_code("press", "PRESS-2026", 1).await);

    // No code, one of another group, one that nobody has, none at all: the answer is the same.
    let target = "/sales/hall/places";
    let fans = json!({ "group": "fans" });
    let alice = Sender::Buyer("alice");
    fixture.json(alice, "POST", target, &fans).await.problem(403, "code-refused");
    let mut details = Vec::new();
    for wrong in ["PRESS-2026", "FANS-2026-B"] {
        let refused = fixture.with_code("alice", "fans", wrong).await.problem(403, "code-refused");
        details.push(refused["detail"].clone());
    }
    let short = fixture.with_code("alice", "fans", "short").await;
    short.problem(422, "invalid");
    assert_eq!(fixture.app.ports.rooms().joined(&sale(), &group("fans")).await, Ok(0));

    // A use for each buyer, however often and from wherever they ask.
    let joined = fixture.with_code("alice", "fans", "fans-2026-a").await.ok(201);
    assert_eq!(joined["group"], "fans");
    let again = fixture.with_code("alice", "fans", "FANS2026A").await.ok(201);
    assert_eq!(again["index"], joined["index"]);
    let without = fixture.json(alice, "POST", target, &fans).await.ok(201);
    assert_eq!(without["index"], joined["index"], "a member needs no code");
    let elsewhere = fixture.with_code("alice", "press", "PRESS-2026").await;
    assert_eq!(elsewhere.problem(409, "group-differs")["group"], "fans");
    assert_eq!(fixture.codes("press").await, CodeCounts { codes: 1, uses: 1, used: 0 });
    fixture.with_code("bob", "fans", "FANS-2026-A").await.ok(201);
    let used_up = fixture.with_code("carol", "fans", "FANS-2026-A").await;
    details.push(used_up.problem(403, "code-refused")["detail"].clone());
    assert_eq!(fixture.codes("fans").await, CodeCounts { codes: 1, uses: 2, used: 2 });
    assert!(details.iter().all(|detail| *detail == details[0]), "{details:?}");
    // Whoever was refused joins the others.
    let all = fixture.json(Sender::Buyer("carol"), "POST", target, &json!({})).await.ok(201);
    assert_eq!(all["group"], "all");
    let groups = [group("fans"), group("press")];
    let erased = fixture.app.ports.rooms().0.erase_places(&sale(), &groups).await.unwrap();
    assert_eq!(erased, ErasedPlaces { places: 3, codes: 2 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_tries_ten_codes_and_no_more() {
    let fixture = Fixture::start().await;
    fixture.publish(&club_hall()).await.ok(200);
    fixture.add_code("fans", "FANS-2026-A", 5).await;
    let began = Timestamp::now();
    for guess in 0..MAX_CODES_TRIED {
        for _ in 0..2 {
            let refused = fixture.with_code("mallory", "fans", &format!("GUESS-{guess:04}")).await;
            refused.problem(403, "code-refused");
        }
    }
    let good = fixture.with_code("mallory", "fans", "FANS-2026-A").await;
    let until: Timestamp =
        good.problem(403, "too-many-guesses")["until"].as_str().unwrap().parse().unwrap();
    let day = until.ms_since(began);
    assert!((86_000_000..=86_400_000 + 120_000).contains(&day), "a day after the first: {day} ms");
    assert_eq!(fixture.codes("fans").await.used, 0);
    // Of another buyer it is good, and so it is of the same one in a room that asks for none.
    fixture.with_code("alice", "fans", "FANS-2026-A").await.ok(201);
    let all = json!({});
    fixture.json(Sender::Buyer("mallory"), "POST", "/sales/hall/places", &all).await.ok(201);
}
