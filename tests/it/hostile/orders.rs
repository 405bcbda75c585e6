//! Orders of others, what is done twice, and pages of lists.

use crate::flows::ended::ended;
use engine::domain::basics::ids::{InventoryId, SaleId};
use engine::domain::basics::time::Timestamp;
use serde_json::json;

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Orders of others, and what is done twice.
    pub(super) async fn orders(&self) -> Vec<Case> {
        let best = json!([{ "tier": "stalls", "best": { "count": 2 } }]);
        let nothing = Problem(404, "not-found");
        let invalid = Problem(422, "invalid");
        let bobs = self.buy("bob", &best).await;
        let number = bobs["order"].as_str().unwrap();
        let seat = bobs["lines"][0]["tickets"][0]["seat"].clone();
        let token = json!(self.admission("alice", |_| {}).0);
        let taken = json!([{ "tier": "stalls", "seats": [seat] }]);
        let again = &bobs["admission"];
        let other = json!([{ "tier": "stalls", "best": { "count": 1 } }]);
        let more = json!(self.admission("bob", |_| {}).0);
        let three = json!([{ "tier": "standing", "best": { "count": 3 } }]);
        let all = json!([{ "tier": "stalls", "best": { "count": 4, "together": "required" } }]);

        let cancelled = self.buy("carol", &other).await;
        let carol = self.engine.token("carol").unwrap();
        let path = format!("/orders/{}/cancel", cancelled["order"].as_str().unwrap());
        let cancel = |bearer: &str, path: &str| Raw::new("POST", path).bearer(bearer).json("");
        assert_eq!(self.send(&cancel(&carol, &path)).await.status, 200);

        let late = self.buy("dave", &other).await;
        let dave = self.engine.token("dave").unwrap();
        let later = Timestamp::now().plus_seconds(3600);
        let late_number = late["order"].as_str().unwrap().parse().unwrap();
        let inventory = InventoryId::whole(SaleId::new("hall").unwrap());
        ended(&self.engine.app().ports, &inventory, late_number, later).await.unwrap();

        // One who is called the same in another normal form is somebody else.
        let composed = self.buy("zo\u{eb}", &other).await;
        let composed_number = composed["order"].as_str().unwrap();
        let decomposed = self.engine.token("zoe\u{308}").unwrap();

        let shown = format!("/orders/{number}");
        let get = |bearer: &str, path: &str| Raw::new("GET", path).bearer(bearer);
        let mut cases = vec![
            case("order: the control", get(&self.bob, &shown), Fine(200)),
            case("order: another's", get(&self.alice, &shown), nothing),
            case(
                "order: another's, cancelled",
                cancel(&self.alice, &format!("{shown}/cancel")),
                nothing,
            ),
            case(
                "order: cancelled by nobody",
                Raw::new("POST", format!("{shown}/cancel")),
                Problem(401, "not-authenticated"),
            ),
            case(
                "order: of one called alike",
                get(&decomposed, &format!("/orders/{composed_number}")),
                nothing,
            ),
            case("order: cancelled again", cancel(&carol, &path), Fine(200)),
            case("order: repeated", self.order(&self.bob, "hall", again, &best), Fine(201)),
            case(
                "order: repeated with other lines",
                self.order(&self.bob, "hall", again, &other),
                Problem(422, "token-reused"),
            ),
            case(
                "order: repeated after its end",
                self.order(&carol, "hall", &cancelled["admission"], &other),
                Problem(409, "order-resolved"),
            ),
            case(
                "order: repeated too late",
                self.order(&dave, "hall", &late["admission"], &other),
                Problem(410, "hold-expired"),
            ),
            case(
                "order: over the limit",
                self.order(&self.bob, "hall", &more, &three),
                Problem(403, "limit-reached"),
            ),
            case(
                "order: a taken seat",
                self.order(&self.alice, "hall", &token, &taken),
                Problem(409, "seat-taken"),
            ),
            case("page: before the first", get(&self.alice, "/orders?before=0"), Fine(200)),
            case(
                "sale: paused",
                self.order(
                    &self.alice,
                    "paused",
                    &json!(
                        self.admission("alice", |grant| grant.sale =
                            SaleId::new("paused").unwrap())
                            .0
                    ),
                    &other,
                ),
                Problem(403, "sale-closed"),
            ),
            case(
                "sale: over",
                self.order(
                    &self.alice,
                    "over",
                    &json!(
                        self.admission("alice", |grant| grant.sale = SaleId::new("over").unwrap())
                            .0
                    ),
                    &other,
                ),
                Problem(403, "sale-closed"),
            ),
            case(
                "sale: too small",
                self.order(
                    &self.alice,
                    "full",
                    &json!(
                        self.admission("alice", |grant| grant.sale = SaleId::new("full").unwrap())
                            .0
                    ),
                    &best,
                ),
                Problem(409, "sold-out"),
            ),
            case(
                "order: four side by side",
                self.order(&self.alice, "hall", &token, &all),
                Fine(201),
            ),
        ];
        for query in [
            "limit=-1",
            "limit=0",
            "limit=101",
            "limit=abc",
            "limit=1.0",
            "limit=65537",
            "limit=",
            "limit",
            "limit=1&limit=2",
            "limit=%D9%A3",
            "limit=+1%00",
            "limit=1e1",
            "before=-1",
            "before=abc",
            "before=01",
            "before=9223372036854775808",
            "before=",
            "before=1&before=1",
            "before=1%2C2",
            "before=%ff",
        ] {
            cases.push(case(
                &format!("page: {query}"),
                get(&self.alice, &format!("/orders?{query}")),
                invalid,
            ));
        }
        for query in [
            "from=X",
            "to=Z",
            "from=Z&to=X",
            "from=X&to=X",
            "from=X&to=Q",
            "from=&to=Z",
            "from=X&from=X&to=Z",
            "from=X%00&to=Z",
            "from=%ff&to=Z",
            "from=X&to=Z%0a",
            "from=x&to=z",
            "",
        ] {
            let target = format!("/sales/train/availability?{query}");
            cases.push(case(&format!("journey: {query}"), Raw::new("GET", target), invalid));
        }
        for query in
            ["v=", "v=0", "v=../../x", "v=%00", "v[]=1&v=", "v=G0000000000000000000000000000000"]
        {
            let target = format!("/sales/hall/map?{query}");
            cases.push(case(&format!("map: {query}"), Raw::new("GET", target), invalid));
        }
        for query in [
            "",
            "date=2026-11-21&from=X",
            "date=2026-11-21&from=X&to=X",
            "date=2026-11-31&from=X&to=Z",
            "date=21.11.2026&from=X&to=Z",
            "date=2026-11-21&from=X&to=Z&from=Y",
            "date=2026-11-21&from=X%0aY&to=Z",
            "date=2026-11-21&from=%20&to=Z",
            "date=2026-11-21&from=x&to=X",
            "date=2026-11-21&from=X&to=Z&limit=21",
            "date=2026-11-21&from=X&to=Z&limit=0",
            "date=2026-11-21&from=X&to=Z&cursor=MToyNTAwI2c",
            "date=2026-11-21&from=X&to=Z&cursor=%00",
        ] {
            let target = format!("/trains?{query}");
            cases.push(case(&format!("trains: {query}"), Raw::new("GET", target), invalid));
        }
        cases.push(case(
            "journey: in a hall",
            Raw::new("GET", "/sales/hall/availability?from=X&to=Z"),
            invalid,
        ));
        cases
    }
}
