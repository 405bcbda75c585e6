//! `GET /operator/sales/{sale}/orders.csv`: each ticket of a sale once, over pages of blocks.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::http::respond::CSV;

use super::{Fixture, OPERATOR_ISSUER, Sender, hall, train};

const WATCHER: Sender<'_> = Sender::Token(OPERATOR_ISSUER, "onsale/watch");

/// A line, by heading.
type Line = BTreeMap<String, String>;

impl Fixture {
    /// Every line of a sale's export, and the number of its pages.
    async fn exported_tickets(&self, sale: &str) -> (Vec<Line>, u32) {
        let (mut lines, mut pages, mut cursor) = (Vec::new(), 0, String::new());
        loop {
            let target = format!("/operator/sales/{sale}/orders.csv{cursor}");
            let page = self.get(WATCHER, &target).await;
            assert_eq!(page.caching(), "no-store");
            let text = page.text(CSV);
            assert!(text.ends_with("\r\n"), "{text}");
            let mut reader = csv::Reader::from_reader(text.as_bytes());
            lines.extend(reader.deserialize().map(|line| -> Line { line.unwrap() }));
            pages += 1;
            let Some(next) = page.next else { return (lines, pages) };
            cursor = format!("?cursor={next}");
        }
    }
}

/// A hall of 1,100 seats in one tier: nine blocks, on two pages.
fn wide() -> Value {
    let mut file = hall();
    let row = |row: u32| json!({ "row": row.to_string(), "seats": { "prefix": format!("{row}-"), "first": 1, "count": 100 } });
    let rows: Vec<Value> = (1..=11).map(row).collect();
    file["tiers"][0]["sections"] = json!([{ "section": "vip", "rows": rows }]);
    file
}

fn seats(seats: &[&str]) -> Value {
    json!([{ "tier": "vip", "seats": seats }])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_ticket_is_exported_once_whatever_became_of_it() {
    let fixture = Fixture::start().await;
    fixture.publish(&wide()).await.ok(200);
    assert_eq!(
        fixture.exported_tickets("hall").await,
        (vec![], 2),
        "nothing is sold, and both pages say so"
    );

    // One order over three blocks of both pages; one of another tier; one that is cancelled; one refunded in part.
    let far = seats(&["1-1", "2-29", "11-100"]);
    let far = fixture.buy("=cmd|' /C calc'!A0", "hall", far).await.ok(201);
    let small = json!([{ "tier": "small", "seats": ["small-1-1"] }]);
    fixture.buy("bob", "hall", small).await.ok(201);
    let gone = fixture.buy("carol", "hall", seats(&["3-1"])).await.ok(201);
    let cancel = format!("/orders/{}/cancel", gone["order"].as_str().unwrap());
    fixture.json(Sender::Buyer("carol"), "POST", &cancel, &json!({})).await.ok(200);
    let back = fixture.buy("dora", "hall", seats(&["4-1", "4-2"])).await.ok(201);
    fixture.callback("pi_1", &back["order"], 5000).await.ok(200);
    let refunds = format!("/orders/{}/refunds/operator", back["order"].as_str().unwrap());
    let one = json!({ "number": 1, "tickets": [{ "tier": "vip", "seat": "4-1" }] });
    fixture.json(Sender::Operator, "POST", &refunds, &one).await.ok(200);
    // Its seat is somebody else's now, and stands twice: as refunded, and as sold again.
    let again = fixture.buy("erin", "hall", seats(&["4-1"])).await.ok(201);

    let (lines, pages) = fixture.exported_tickets("hall").await;
    assert_eq!(pages, 2);
    let said: Vec<[&str; 5]> = lines
        .iter()
        .map(|line| ["seat", "order", "buyer", "state", "refund"].map(|name| line[name].as_str()))
        .collect();
    let number = |order: &Value| order["order"].as_str().unwrap().to_owned();
    let (far, back, again) = (number(&far), number(&back), number(&again));
    let mut of_four = [
        ["4-1", back.as_str(), "dora", "paid", "1"],
        ["4-1", again.as_str(), "erin", "pending", ""],
    ];
    of_four.sort_by_key(|line| line[1].parse::<u64>().unwrap());
    let formula = "'=cmd|' /C calc'!A0";
    assert_eq!(
        said[..2],
        [
            ["1-1", far.as_str(), formula, "pending", ""],
            ["2-29", far.as_str(), formula, "pending", ""],
        ]
    );
    assert_eq!(said[2..4], of_four);
    assert_eq!(said[4], ["4-2", back.as_str(), "dora", "paid", ""]);
    assert_eq!(said[5], ["11-100", far.as_str(), formula, "pending", ""]);
    assert_eq!((said[6][0], said[6][2], said.len()), ("small-1-1", "bob", 7));
    let paid = &lines[4];
    assert_eq!((paid["payment"].as_str(), paid["price_minor"].as_str()), ("stripe/pi_1", "2500"));
    assert_eq!((paid["currency"].as_str(), paid["from"].as_str()), ("EUR", ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journeys_of_one_seat_are_lines_of_their_own() {
    let fixture = Fixture::start().await;
    fixture.publish(&train()).await.ok(200);
    for (buyer, from, to) in [("bob", "JGK", "NGH"), ("alice", "VNP", "JGK")] {
        let lines = json!([{
            "tier": "second", "from": from, "to": to, "seats": ["01-1A"], "attendees": [buyer]
        }]);
        fixture.buy(buyer, "g35", lines).await.ok(201);
    }
    let (lines, _) = fixture.exported_tickets("g35").await;
    let said =
        lines.iter().map(|line| ["seat", "from", "to", "attendee"].map(|name| line[name].as_str()));
    let expected = [["01-1A", "VNP", "JGK", "alice"], ["01-1A", "JGK", "NGH", "bob"]];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_cursor_is_a_page() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    for cursor in ["2", "-1", "x", "4294967296", "0&cursor=0"] {
        let target = format!("/operator/sales/hall/orders.csv?cursor={cursor}");
        fixture.get(WATCHER, &target).await.problem(422, "invalid");
    }
    fixture.get(WATCHER, "/operator/sales/nowhere/orders.csv").await.problem(404, "not-found");
}
