//! The sample sales of `sales/`: each is checked as a file, published, loaded and sold over HTTP, as
//! its buyers would: by best seats, by chosen seats, by pattern, on whole journeys and on parts of
//! them. The small ones are sold to the last place. Afterwards the audit must find nothing.

mod shop;

use std::collections::BTreeSet;
use std::path::PathBuf;

use engine::domain::basics::ids::Seat;
use engine::domain::basics::limits::MAX_SEATS_PER_ORDER;
use engine::domain::sale::{Sale, SaleFile};
use importers::written;
use serde_json::{Value, json};

use crate::described::Description;
use crate::program;
pub use shop::Shop;
use shop::{first_free, futures, seats_of};

/// A sample, and what its description in `sales/README.md` promises.
struct Sample {
    sale: &'static str,
    seats: u32,
    legs: u16,
    tiers: usize,
    most_lines: usize,
}

const STADIUM: Sample =
    Sample { sale: "stadium-kestrel-park", seats: 63_072, legs: 1, tiers: 10, most_lines: 170 };

const THEATRE: Sample =
    Sample { sale: "theatre-old-quay", seats: 782, legs: 1, tiers: 7, most_lines: 150 };

const CLUB: Sample =
    Sample { sale: "club-undertow", seats: 450, legs: 1, tiers: 3, most_lines: 45 };

const G_TRAIN: Sample =
    Sample { sale: "g-train-g1307", seats: 604, legs: 5, tiers: 4, most_lines: 165 };

const NIGHT_TRAIN: Sample =
    Sample { sale: "night-train-nightjar", seats: 348, legs: 20, tiers: 4, most_lines: 445 };

impl Sample {
    fn path(&self) -> PathBuf {
        let sales = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sales");
        PathBuf::from(sales).join(format!("{}.json", self.sale))
    }

    fn file(&self) -> SaleFile {
        serde_json::from_str(&std::fs::read_to_string(self.path()).unwrap()).unwrap()
    }
}

#[test]
fn each_sample_is_a_short_file_without_defects() {
    let readme = std::fs::read_to_string(STADIUM.path().with_file_name("README.md")).unwrap();
    for sample in [STADIUM, THEATRE, CLUB, G_TRAIN, NIGHT_TRAIN] {
        let path = sample.path();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= sample.most_lines, "{} has {lines} lines", sample.sale);
        let file = sample.file();
        assert_eq!(written(&file), text, "{} is written as imports are", sample.sale);
        let sale = Sale::new(file).unwrap();
        let seats: u32 = sale.tiers().iter().map(|tier| tier.layout.sellable()).sum();
        assert_eq!(
            (sale.id().as_str(), seats, sale.leg_count(), sale.tiers().len()),
            (sample.sale, sample.seats, sample.legs, sample.tiers)
        );
        assert!(readme.contains(&format!("]({}.json)", sample.sale)), "the README shows it");

        let path = path.to_str().unwrap();
        let check = std::process::Command::new(program::onsale())
            .args(["sale", "check", path, "--json"])
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&check.stdout).unwrap();
        assert!(check.status.success(), "{report}");
        assert_eq!(report[0]["defects"], json!([]));
        assert_eq!(report[0]["seat_legs"], json!(u64::from(seats) * u64::from(sample.legs)));
    }
}

#[test]
fn each_sample_is_of_the_published_schema() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sale-file.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let description = Description::new();
    let samples = [STADIUM, THEATRE, CLUB, G_TRAIN, NIGHT_TRAIN];
    for sample in &samples {
        let text = std::fs::read_to_string(sample.path()).unwrap();
        description.check(sample.sale, &schema, &serde_json::from_str(&text).unwrap());
    }
    assert_eq!(description.faults(), Vec::<String>::new());
    // The schema knows the short forms, so that it finds fault with what only looks like one.
    let mut broken = serde_json::to_value(STADIUM.file()).unwrap();
    let rows = &mut broken["tiers"][2]["sections"][0]["rows"];
    rows[0]["seats"] = json!("every column");
    description.check("a place that is none", &schema, &broken);
    assert!(!description.faults().is_empty());
    let mut broken = serde_json::to_value(STADIUM.file()).unwrap();
    broken["tiers"][2]["sections"][0]["alike"] = json!("C12");
    description.check("alike is a list", &schema, &broken);
    assert!(!description.faults().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stadium_sells_in_each_tier_and_by_each_way_of_choosing() {
    let shop = Shop::open(&STADIUM.file()).await;
    let all = shop.sale.whole();
    let left = shop.left(all).await;
    let counted: u64 = left.values().map(|(count, _)| count).sum();
    assert_eq!(counted, u64::from(STADIUM.seats), "all of it is loaded and on sale");

    // Two best of every tier, neighbours where there are seats, and two that somebody chose.
    let tiers: Vec<&str> = shop.sale.tiers().iter().map(|tier| tier.tier.as_str()).collect();
    let buyers = tiers.iter().map(async |tier| {
        let best = shop.buy(vec![shop.best(tier, all, 2, "required")], 2).await.order();
        if shop.tier(tier).layout.is_general_admission() {
            return;
        }
        let layout = &shop.tier(tier).layout;
        let seats: Vec<Seat> = seats_of(&best)
            .iter()
            .map(|name| layout.seat(&name.parse().unwrap()).unwrap())
            .collect();
        assert_eq!(seats[0].0 + 1, seats[1].0, "{tier}: side by side");
        let names = first_free(layout, &left[*tier].1, 4);
        let chosen = [names[2].as_str(), names[3].as_str()];
        let order = shop.buy(vec![shop.seats(tier, all, &chosen)], 2).await.order();
        assert_eq!(seats_of(&order), chosen);
        let again = shop.buy(vec![shop.seats(tier, all, &chosen)], 2).await.problem();
        assert_eq!(again, "seat-taken");
    });
    futures(buyers).await;
    // The best seats of the lower ring are in the front row of the block that faces the stage, beside its stairs.
    let taken = shop.buy(vec![shop.seats("lower-facing", all, &["119-A-9"])], 1).await;
    assert_eq!(taken.problem(), "seat-taken");
    let kept = shop.buy(vec![shop.seats("lower-facing", all, &["119-Z-9"])], 1).await;
    assert_eq!(kept.problem(), "seat-taken", "camera places are not sold");

    // Seats 10 and 11 of row A lie on both sides of the stairs.
    let order = shop.buy(vec![shop.seats("lower-side", all, &["124-A-5"])], 1).await.order();
    assert_eq!(order["amount_minor"], 11_500);
    let six = shop.buy(vec![shop.best("lower-side", all, 6, "required")], 6).await.order();
    assert_eq!(seats_of(&six)[0], "124-A-11", "too few are free before the stairs, ten after them");

    // A wheelchair user and a companion, until there is no platform left; and an order over three
    // tiers, all or nothing.
    let pair = json!([{"column": "W"}, {"column": "C"}]);
    let platforms = shop.tier("wheelchair").layout.sellable() as usize / 2;
    for _ in 2..platforms {
        shop.buy(vec![shop.pattern("wheelchair", all, &pair)], 2).await.order();
    }
    let none = shop.buy(vec![shop.pattern("wheelchair", all, &pair)], 2).await;
    assert_eq!(none.problem(), "sold-out");
    let lines = |tiers: [&str; 3]| tiers.map(|tier| shop.best(tier, all, 2, "preferred")).to_vec();
    let over = shop.buy(lines(["upper-end", "pitch", "wheelchair"]), 6).await;
    assert_eq!(over.problem(), "sold-out");
    shop.buy(lines(["upper-end", "pitch", "club"]), 6).await.order();

    shop.until_left("wheelchair", all, 0).await;
    shop.until_left("upper-end", all, left["upper-end"].0 - 6).await;
    let sold = shop.tickets_sold();
    assert_eq!(sold, 10 * 2 + 8 * 2 + 1 + 6 + (platforms as u64 - 2) * 2 + 6);
    let counted: u64 = shop.left(all).await.values().map(|(count, _)| count).sum();
    assert_eq!(counted, u64::from(STADIUM.seats) - sold);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_theatre_sells_to_the_last_seat() {
    let shop = Shop::open(&THEATRE.file()).await;
    let all = shop.sale.whole();
    // Rows A and B are before the stage; the best of the front stalls are in the middle of row C, left of its aisle.
    let best = shop.buy(vec![shop.best("stalls-front", all, 2, "required")], 2).await.order();
    assert_eq!(seats_of(&best), ["Stalls-C-11", "Stalls-C-12"]);
    // On the left of the circle the odd numbers go down towards the middle of the house, where the best are.
    let odd = shop.buy(vec![shop.best("circle", all, 3, "required")], 3).await.order();
    assert_eq!(seats_of(&odd), ["Circle left-A-5", "Circle left-A-3", "Circle left-A-1"]);
    let even = ["Circle right-E-20", "Circle right-E-22"];
    let even = shop.buy(vec![shop.seats("circle", all, &even)], 2).await.order();
    assert_eq!(seats_of(&even).len(), 2);
    // A wheelchair place with the seat of its companion.
    let pair = json!([{"column": "W"}, {"column": "C"}]);
    shop.buy(vec![shop.pattern("wheelchair", all, &pair)], 2).await.order();

    let tiers: Vec<&str> = shop.sale.tiers().iter().map(|tier| tier.tier.as_str()).collect();
    for tier in tiers {
        shop.sell_out(tier, all, 8).await;
    }
    assert_eq!(shop.tickets_sold(), u64::from(THEATRE.seats));
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_club_sells_to_the_last_place_with_a_name_on_each_ticket() {
    let shop = Shop::open(&CLUB.file()).await;
    let all = shop.sale.whole();
    let nameless = json!({"tier": "early", "best": {"count": 1}});
    assert_eq!(shop.buy(vec![nameless], 1).await.problem(), "invalid");
    let chosen = shop.seats("early", all, &["early-1"]);
    assert_eq!(shop.buy(vec![chosen], 1).await.problem(), "invalid", "nobody has a place");
    let mut line = shop.best("early", all, 1, "preferred");
    shop.buy(vec![line.clone()], 1).await.order();
    line["tier"] = json!("door");
    assert_eq!(shop.buy(vec![line], 1).await.problem(), "attendee-taken");
    for tier in ["early", "door", "gallery"] {
        shop.sell_out(tier, all, 4).await;
    }
    assert_eq!(shop.tickets_sold(), u64::from(CLUB.seats));
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_g_train_sells_to_the_last_seat_on_every_leg() {
    let shop = Shop::open(&G_TRAIN.file()).await;
    let whole = shop.sale.whole();
    // A row of five, C and D across the aisle, C and D in neighbouring rows.
    let row = json!([{"column": "A"}, {"column": "B"}, {"column": "C"}, {"column": "D"}, {"column": "F"}]);
    let order = shop.buy(vec![shop.pattern("second", whole, &row)], 5).await.order();
    assert_eq!(seats_of(&order), ["04-01A", "04-01B", "04-01C", "04-01D", "04-01F"]);
    let diagonal = json!([{"column": "C"}, {"column": "D", "row": 1}]);
    let order = shop.buy(vec![shop.pattern("first", whole, &diagonal)], 2).await.order();
    assert_eq!(seats_of(&order), ["02-01C", "02-02D"]);
    // One seat, three buyers one after another along the way, and a fourth who overlaps.
    let seat = ["08-18F"];
    for (from, to) in [(0, 1), (1, 4), (4, 5)] {
        let legs = Shop::legs(from, to);
        shop.buy(vec![shop.seats("second", legs, &seat)], 1).await.order();
    }
    let overlap = shop.buy(vec![shop.seats("second", Shop::legs(3, 5), &seat)], 1).await;
    assert_eq!(overlap.problem(), "seat-taken");
    let crew = shop.buy(vec![shop.seats("second", whole, &["05-01A"])], 1).await;
    assert_eq!(crew.problem(), "seat-taken", "the crew's places are not sold");
    // No three side by side but left of the aisle.
    let three = shop.buy(vec![shop.best("second", whole, 3, "required")], 3).await.order();
    assert_eq!(seats_of(&three), ["04-02A", "04-02B", "04-02C"]);

    // A part of the way first, so that what is left of it is sold in parts as well.
    let part = shop.sell_out("business", Shop::legs(1, 3), 5).await;
    assert_eq!(part, 15);
    for legs in [whole, Shop::legs(0, 1), Shop::legs(3, 5)] {
        for tier in ["business", "first", "second", "standing"] {
            shop.sell_out(tier, legs, 5).await;
        }
    }
    for leg in 0..5 {
        let left = shop.left(Shop::legs(leg, leg + 1)).await;
        assert_eq!(left.len(), 4);
        assert!(left.values().all(|(count, _)| *count == 0), "leg {leg}: {left:?}");
    }
    // Each seat once over the whole way, but business in three parts and one second class seat.
    assert_eq!(shop.tickets_sold(), u64::from(G_TRAIN.seats) + 2 * 15 + 2);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_train_sells_berths_by_the_night_and_seats_by_the_leg() {
    let shop = Shop::open(&NIGHT_TRAIN.file()).await;
    let whole = shop.sale.whole();
    // Berths are for a night: who boards in the evening and leaves in the morning.
    let evening = Shop::legs(0, 3);
    let sells: BTreeSet<String> = shop.left(evening).await.into_keys().collect();
    assert_eq!(sells, BTreeSet::from(["bicycle".to_owned(), "seat".to_owned()]));
    let refused = shop.buy(vec![shop.best("couchette", evening, 1, "preferred")], 1).await;
    assert_eq!(refused.problem(), "invalid");
    // The three berths of one side of a compartment, and a whole one.
    let side = json!([{"column": "A"}, {"column": "B"}, {"column": "C"}]);
    let order = shop.buy(vec![shop.pattern("couchette", whole, &side)], 3).await.order();
    assert_eq!(seats_of(&order), ["23-02A", "23-02B", "23-02C"], "the conductor's are in 01");
    let six = json!(["A", "B", "C", "D", "E", "F"].map(|column| json!({"column": column})));
    let order = shop.buy(vec![shop.pattern("couchette", Shop::legs(3, 17), &six)], 6).await;
    assert_eq!(seats_of(&order.order())[0], "23-03A");

    // One seat, sold again on each of the twenty legs.
    for leg in 0..20 {
        let line = shop.seats("seat", Shop::legs(leg, leg + 1), &["27-16D"]);
        shop.buy(vec![line], 1).await.order();
    }
    // All berths of the night, then all seats: two in two parts, the rest on the whole way.
    shop.sell_out("sleeper", whole, 6).await;
    shop.sell_out("couchette", whole, 6).await;
    shop.sell_out("bicycle", whole, 6).await;
    let half = Shop::legs(0, 9);
    let four = shop.buy(vec![shop.best("seat", half, 4, "required")], 4).await;
    assert_eq!(four.problem(), "no-adjacent", "an aisle lies between B and C");
    let two = shop.buy(vec![shop.best("seat", half, 2, "required")], 2).await.order();
    shop.buy(vec![shop.seats("seat", Shop::legs(9, 20), &seats_of(&two))], 2).await.order();
    shop.sell_out("seat", whole, 6).await;
    for leg in 0..20 {
        let left = shop.left(Shop::legs(leg, leg + 1)).await;
        assert_eq!(left["seat"].0, 0, "leg {leg}");
    }
    let berths = shop.left(Shop::legs(7, 13)).await;
    assert_eq!((berths["sleeper"].0, berths["couchette"].0), (0, 0), "no shorter night is left");
    assert_eq!(shop.tickets_sold(), u64::from(NIGHT_TRAIN.seats) + 19 + 2);
    shop.close().await;
}

#[test]
fn no_sample_offers_more_in_one_order_than_an_order_may_have() {
    for sample in [STADIUM, THEATRE, CLUB, G_TRAIN, NIGHT_TRAIN] {
        assert!(
            usize::from(sample.file().limit_per_buyer) <= MAX_SEATS_PER_ORDER,
            "{}",
            sample.sale
        );
    }
}
