//! The importers on real seating plans and tables, and the sales of this repository.
//!
//! The real data lies beside the repository (`../shared/data`); a test that does not find it says so
//! and passes.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use engine::domain::admission::gate::Share;
use engine::domain::basics::ids::SeatName;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{FileMap, OutlineKind, Places, Run, Sale, SaleFile, Section};
use importers::pretix::{self, Event, Prices, RowOrder, Uncategorised};
use importers::train12306::Tables;
use importers::{Finding, Import, Outcome, Remedy, Report, SourceDefect, Terms, written};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::samples::Shop;
use crate::{gtfs, program};
use text::{read, root};

/// The path of some real data, or a message that it is missing.
fn real(path: &str) -> Option<PathBuf> {
    let found = root().join("../shared/data").join(path);
    if found.exists() {
        return Some(found);
    }
    text::skipped(format_args!("there is no {}", found.display()));
    None
}

fn terms() -> Terms {
    Terms::opening(Timestamp::from_ms(1_700_000_000_000))
}

fn plan(path: &str) -> Option<(Import, Value)> {
    let text = std::fs::read(real(path)?).unwrap();
    let prices = Prices { for_all: Some(MinorUnits(60_000)), ..Prices::default() };
    let mut terms = terms();
    terms.sale = Some("real".parse().unwrap());
    let import = pretix::import("plan", &text, &terms, &prices, RowOrder::ByHeight, None).unwrap();
    Some((import, serde_json::from_slice(&text).unwrap()))
}

/// Every seat of the plan in the order of its list, straight from the JSON.
fn listed(plan: &Value) -> Vec<&Value> {
    plan["zones"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|zone| zone["rows"].as_array().unwrap())
        .flat_map(|row| row["seats"].as_array().unwrap())
        .collect()
}

fn sections(file: &SaleFile) -> impl Iterator<Item = &Section> {
    file.tiers.iter().flat_map(|tier| &tier.sections)
}

/// Every row of a section: its places.
fn places(section: &Section) -> impl Iterator<Item = Vec<Option<SeatName>>> {
    let rows: Vec<_> = section.laid(&section.section, &Arc::default()).collect();
    rows.into_iter().map(|row| row.places.unwrap().names().collect())
}

/// Every row of the file: its places.
fn rows(file: &SaleFile) -> Vec<Vec<Option<SeatName>>> {
    sections(file).flat_map(places).collect()
}

fn tiers(report: &Report) -> Vec<(&str, &str, usize)> {
    let tiers = report.tiers.iter();
    tiers.map(|tier| (tier.tier.as_str(), tier.name.as_str(), tier.seats)).collect()
}

#[test]
fn a_theatre_with_keys_used_twice_is_refused_or_renamed() {
    let Some((import, plan)) = plan("seating-pretix-demo-theatre/plan.en.json") else { return };
    let refused = import.accept(false).unwrap_err();
    assert_eq!((refused.outcome, refused.findings.len()), (Outcome::Refused, 84));
    for finding in &refused.findings {
        let SourceDefect::DuplicateSeat { key, first, again } = &finding.defect else {
            panic!("{}", finding.defect)
        };
        assert!(first.at.starts_with("zones[0]") && again.at.starts_with("zones[1]"));
        let to = SeatName::new(format!("Balcony {key}")).unwrap();
        assert_eq!(finding.remedy, Remedy::Rename { to });
    }

    let (import, _) = self::plan("seating-pretix-demo-theatre/plan.en.json").unwrap();
    let (file, report) = import.accept(true).unwrap();
    assert_eq!((report.seats_read, report.seats_placed, report.seats_left_out), (1057, 1057, 0));
    assert_eq!(
        tiers(&report),
        [
            ("parkett-vorne", "Parkett vorne", 238),
            ("parkett-mitte", "Parkett mitte", 100),
            ("parkett-hinten", "Parkett hinten", 619),
            ("balkon-vorne", "Balkon vorne", 33),
            ("balkon-hinten", "Balkon hinten", 67),
        ]
    );
    let keys: HashSet<&str> =
        listed(&plan).iter().map(|seat| seat["seat_guid"].as_str().unwrap()).collect();
    let rows = rows(&file);
    let names: HashSet<&str> = rows.iter().flatten().flatten().map(SeatName::as_str).collect();
    assert_eq!((keys.len(), names.len()), (1057 - 84, 1057));
    assert!(keys.is_subset(&names), "whoever stands first keeps the name");
    let stage = &file.map.as_ref().and_then(FileMap::own).unwrap().outlines[0];
    assert_eq!((stage.kind, stage.label.as_deref()), (OutlineKind::Stage, Some("STAGE")));
    Sale::new(file).unwrap();
}

#[test]
fn a_real_plan_is_sold_with_its_event() {
    let Some(path) = real("seating-pretix-demo-theatre/plan.en.json") else { return };
    let text = std::fs::read(path).unwrap();
    let event = json!({
        "name": {"en": "An evening", "de": "Ein Abend"}, "slug": "demo", "currency": "EUR",
        "date_from": "2026-11-21T20:00:00+01:00", "date_admission": "2026-11-21T19:15:00+01:00", "date_to": null,
        "location": {"en": "Demo Theatre\nMain Street 1\nHeidelberg"}, "geo_lat": 49.41, "geo_lon": 8.7,
        "timezone": "Europe/Berlin"
    });
    let event = Event::read(&[("event.json".to_owned(), event.to_string().into_bytes())]).unwrap();
    let prices = Prices { for_all: Some(MinorUnits(4_200)), ..Prices::default() };
    let order = RowOrder::ByHeight;
    let import = pretix::import("plan", &text, &terms(), &prices, order, Some(&event)).unwrap();
    let (file, report) = import.accept(true).unwrap();
    assert_eq!((report.seats_placed, file.sale.as_str()), (1057, "demo"));
    assert_eq!(file.title, "An evening");
    let facts = file.event.as_ref().unwrap();
    assert!(facts.is_told());
    assert_eq!(facts.venue.as_ref().unwrap().name, "Demo Theatre");
    assert_eq!(facts.doors_at.unwrap().to_string(), "2026-11-21T18:15:00.000Z");
    Sale::new(file).unwrap();
}

#[test]
fn a_stadium_keeps_every_seat_and_every_hole() {
    let Some((import, plan)) = plan("seating-xinzhuang-ballpark/plan.json") else { return };
    let (file, report) = import.accept(false).unwrap();
    assert_eq!((report.outcome, report.findings.len()), (Outcome::Clean, 0));
    assert_eq!((report.seats_read, report.seats_placed, report.seats_left_out), (6967, 6967, 0));
    assert_eq!(
        tiers(&report),
        [
            ("t1", "下層 一壘側", 2527),
            ("t2", "下層 三壘側", 2298),
            ("t3", "上層 一壘側", 1079),
            ("t4", "上層 三壘側", 1063),
        ]
    );
    assert_eq!(sections(&file).count(), 51, "no zone is of two categories");
    let map = file.map.as_ref().and_then(FileMap::own).unwrap();
    assert_eq!((map.sections.len(), map.outlines.len()), (51, 0));
    let bytes = map.document().json.len();
    println!("the map of 6,967 seats: {bytes} bytes");
    assert!(bytes < 150_000, "{bytes}");
    assert!(report.notes.contains(&"20 areas are drawings and not sold".to_owned()));

    let rows = rows(&file);
    assert_eq!(rows.len(), 575);
    assert_eq!(rows.iter().filter(|row| row.contains(&None)).count(), 88, "rows with a hole");
    // Who is a neighbour in the sale sits 25 units away in the plan; who is not, further.
    let x_of: BTreeMap<&str, f64> = listed(&plan)
        .iter()
        .map(|seat| (seat["seat_guid"].as_str().unwrap(), seat["position"]["x"].as_f64().unwrap()))
        .collect();
    for row in &rows {
        let mut hole = false;
        let mut before: Option<f64> = None;
        for place in row {
            let Some(name) = place else {
                hole = true;
                continue;
            };
            let x = x_of[name.as_str()];
            if let Some(before) = before {
                assert_eq!(hole, x - before > 25.0, "{row:?}");
                assert!(x > before, "from left to right: {row:?}");
            }
            (before, hole) = (Some(x), false);
        }
    }
    let a13 = sections(&file).find(|section| section.section == "A13").unwrap();
    let numbers: Vec<&str> = a13.rows.iter().map(|row| row.row.as_str()).collect();
    assert_eq!(numbers[..3], ["5", "6", "7"], "front to back");
    let mirrored = Run { step: -1, ..Run::plain(Some("A13-5-".to_owned()), 6, 6) };
    assert_eq!(a13.rows[0].seats, Places::Run(mirrored));
    let again: SaleFile = serde_json::from_str(&written(&file)).unwrap();
    assert_eq!(again, file);
    Sale::new(file).unwrap();
}

/// The numbers of each row's seats, straight from the JSON.
fn numbered(plan: &Value) -> Vec<Vec<u32>> {
    let zones = plan["zones"].as_array().unwrap().iter();
    let rows = zones.flat_map(|zone| zone["rows"].as_array().unwrap());
    let number = |seat: &Value| seat["seat_number"].as_str().unwrap().parse().unwrap();
    rows.map(|row| row["seats"].as_array().unwrap().iter().map(number).collect()).collect()
}

/// The last number in a seat's name.
fn number_of(name: &SeatName) -> u32 {
    name.as_str().rsplit(['-', ' ']).next().unwrap().parse().unwrap()
}

#[test]
fn numbers_with_holes_other_beginnings_and_mirrored_rows_lie_as_they_lie() {
    let Some((import, plan)) = plan("seating-xinzhuang-ballpark/plan.json") else { return };
    let begins_later = |numbers: &&Vec<u32>| numbers.iter().min() > Some(&1);
    assert_eq!(numbered(&plan).iter().filter(begins_later).count(), 15);
    let (file, _) = import.accept(false).unwrap();
    let (mut mirrored, mut holes, mut later) = (0, 0, 0);
    for row in rows(&file) {
        let numbers: Vec<Option<u32>> =
            row.iter().map(|place| place.as_ref().map(number_of)).collect();
        let seats: Vec<u32> = numbers.iter().copied().flatten().collect();
        let is_mirrored = seats.len() > 1 && seats[0] > seats[1];
        mirrored += usize::from(is_mirrored);
        later += usize::from(seats.iter().min() > Some(&1));
        holes += usize::from(numbers.contains(&None));
        // In this stadium a number is a place: whoever is one number away is one place away.
        for pair in numbers.split(Option::is_none).flat_map(|block| block.windows(2)) {
            let (a, b) = (pair[0].unwrap(), pair[1].unwrap());
            assert_eq!(
                if is_mirrored { a.checked_sub(b) } else { b.checked_sub(a) },
                Some(1),
                "{row:?}"
            );
        }
    }
    assert_eq!((mirrored, holes, later), (299, 88, 15));
}

#[test]
fn an_aisle_parts_seats_whose_numbers_follow_each_other() {
    let Some((import, plan)) = plan("seating-pretix-demo-theatre/plan.en.json") else { return };
    assert!(!import.report().to_text().contains("go round"));
    let (file, _) = import.accept(true).unwrap();
    let beside: HashSet<(String, String)> = rows(&file)
        .iter()
        .flat_map(|row| row.windows(2))
        .filter_map(|pair| Some((pair[0].as_ref()?.to_string(), pair[1].as_ref()?.to_string())))
        .collect();
    // 30 units from seat to seat, 60 across the stairs; the numbers go on as if nothing were there.
    let (mut near, mut across, mut dearer) = (0, 0, 0);
    for row in plan["zones"][0]["rows"].as_array().unwrap() {
        for pair in row["seats"].as_array().unwrap().windows(2) {
            let text = |seat: &Value, field: &str| seat[field].as_str().unwrap().to_owned();
            let number = |seat: &Value| -> u32 {
                text(seat, "seat_number").rsplit('-').next().unwrap().parse().unwrap()
            };
            let x = |seat: &Value| seat["position"]["x"].as_f64().unwrap();
            let (a, b) = (&pair[0], &pair[1]);
            assert_eq!(number(a) + 1, number(b));
            let gap = x(b) - x(a);
            let is_one_tier = a["category"] == b["category"];
            let neighbours = beside.contains(&(text(a, "seat_guid"), text(b, "seat_guid")));
            assert_eq!(neighbours, gap <= 45.0 && is_one_tier, "{a} {b}");
            match (gap > 45.0, is_one_tier) {
                (true, _) => across += 1,
                (false, true) => near += 1,
                (false, false) => dearer += 1,
            }
        }
    }
    assert_eq!(near + across + dearer, 957 - 32);
    assert!(across >= 32 && dearer > 0, "{near} {across} {dearer}");
}

#[test]
fn the_best_seats_of_a_stadium_can_be_those_behind_the_plate() {
    let Some((_, plan)) = plan("seating-xinzhuang-ballpark/plan.json") else { return };
    let text = plan.to_string();
    let prices = Prices { for_all: Some(MinorUnits(60_000)), ..Prices::default() };
    let terms = Terms { sale: Some("real".parse().unwrap()), ..terms() };
    let point = (2825.0, 1600.0);
    let order = RowOrder::NearestTo("2825,1600".parse().unwrap());
    let import = pretix::import("plan", text.as_bytes(), &terms, &prices, order, None).unwrap();
    let (file, report) = import.accept(false).unwrap();
    assert_eq!((report.seats_placed, report.seats_left_out), (6967, 0));
    // Where each row's middle is, straight from the JSON: zone, row and seat add up.
    let mut distance = BTreeMap::new();
    for zone in plan["zones"].as_array().unwrap() {
        for row in zone["rows"].as_array().unwrap() {
            let seats = row["seats"].as_array().unwrap();
            let sum = |axis: &str| {
                let of = |value: &Value| value["position"][axis].as_f64().unwrap();
                of(zone) + of(row) + seats.iter().map(of).sum::<f64>() / seats.len() as f64
            };
            let away = (sum("x") - point.0).hypot(sum("y") - point.1);
            distance.insert(seats[0]["seat_guid"].as_str().unwrap(), away);
        }
    }
    for section in sections(&file) {
        let away = |places: Vec<Option<SeatName>>| {
            let known = |name: &SeatName| distance.get(name.as_str()).copied();
            places.iter().flatten().find_map(known).unwrap()
        };
        let away: Vec<f64> = places(section).map(away).collect();
        assert!(away.is_sorted(), "{}: {away:?}", section.section);
    }
}

/// A plan of some zones, rows and seats, with whatever a plan can have wrong: keys used twice or not
/// given, categories that are not declared, fractions, seats below zero and at one point.
fn any_plan() -> impl Strategy<Value = Value> {
    let position =
        || (-8_i32..8, -4_i32..4).prop_map(|(x, y)| json!({"x": f64::from(x) * 12.5, "y": y}));
    let seat = (0_u8..40, 0_u8..8, position()).prop_map(|(key, category, position)| {
        let category = ["A", "A", "A", "B", "B", "樓", "undeclared", ""][usize::from(category)];
        let key = if key == 0 { String::new() } else { format!("s{key}") };
        json!({"seat_guid": key, "seat_number": "1", "category": category, "position": position})
    });
    let row = (prop::collection::vec(seat, 0..9), position()).prop_map(
        |(seats, position)| json!({"row_number": "1", "position": position, "seats": seats}),
    );
    let zone = (prop::collection::vec(row, 0..4), position())
        .prop_map(|(rows, position)| json!({"name": "Z", "position": position, "rows": rows}));
    prop::collection::vec(zone, 1..4).prop_map(|zones| {
        json!({"name": "P", "categories": [{"name": "A"}, {"name": "B"}, {"name": "樓"}], "zones": zones})
    })
}

proptest! {
    #[test]
    fn every_seat_of_any_plan_is_accounted_for(plan in any_plan(), order in 0_u8..3, is_named in any::<bool>()) {
        let order = match order {
            0 => RowOrder::ByHeight,
            1 => RowOrder::AsListed,
            _ => RowOrder::NearestTo("3.5,-2".parse().unwrap()),
        };
        let uncategorised = Uncategorised { name: "C".to_owned(), price_minor: MinorUnits(2) };
        let uncategorised = is_named.then_some(uncategorised);
        let prices = Prices { for_all: Some(MinorUnits(1)), uncategorised, ..Prices::default() };
        let import = pretix::import("p", plan.to_string().as_bytes(), &terms(), &prices, order, None).unwrap();
        let report = import.report();
        let read = listed(&plan).len();
        prop_assert_eq!(report.seats_read, read);
        prop_assert_eq!(report.seats_placed + report.seats_left_out, read);
        let count = |seat: &&Value| {
            let key = seat["seat_guid"].as_str().unwrap();
            let category = seat["category"].as_str().unwrap();
            let has_tier = ["A", "B", "樓"].contains(&category) || (is_named && category.is_empty());
            key.is_empty() || !has_tier
        };
        let nobody_can_sell = listed(&plan).iter().filter(|seat| count(seat)).count();
        prop_assert!(report.seats_left_out >= nobody_can_sell);
        let placed = report.seats_placed;
        let Ok((file, _)) = import.accept(true) else {
            prop_assert_eq!(placed, 0, "only a plan without seats is refused with consent");
            return Ok(());
        };
        let names: Vec<SeatName> = rows(&file).into_iter().flatten().flatten().collect();
        prop_assert_eq!(names.len(), placed);
        prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), placed, "no name is given twice");
        for row in rows(&file) {
            prop_assert!(row.first().unwrap().is_some() && row.last().unwrap().is_some());
            prop_assert!(row.windows(2).all(|pair| pair[0].is_some() || pair[1].is_some()));
        }
        let again: SaleFile = serde_json::from_str(&written(&file)).unwrap();
        prop_assert_eq!(&again, &file);
        prop_assert!(Sale::new(file).is_ok());
    }
}

fn train(number: &str) -> Option<Import> {
    let tables = Tables::read(&real("train-12306-sample")?).unwrap();
    assert_eq!(tables.trains(), ["G35", "G39", "D717", "Z284"]);
    Some(tables.import(number, &terms()).unwrap())
}

#[test]
fn two_trains_are_sold_as_they_are() {
    for (number, id, codes, end) in [
        ("G35", "g35-2023-06-01", &["VNP", "JGK", "NKH", "HGH", "NGH"][..], 74_500),
        ("G39", "g39-2023-06-01", &["VNP", "NKH", "HGH"][..], 66_300),
    ] {
        let Some(import) = train(number) else { return };
        let (file, report) = import.accept(false).unwrap();
        assert_eq!((report.seats_read, report.seats_placed), (960, 960));
        assert_eq!(
            tiers(&report),
            [
                ("business", "商务座 business", 10),
                ("first", "一等座 first", 140),
                ("second", "二等座 second", 810),
            ]
        );
        assert!(report.notes.is_empty(), "every journey has a fare: {:?}", report.notes);
        let sale = Sale::new(file).unwrap();
        assert_eq!(sale.id().as_str(), id);
        let stops: Vec<&str> = sale.file().stops.iter().map(|stop| stop.stop.as_str()).collect();
        assert_eq!(stops, codes);
        let second = &sale.tiers()[2];
        assert_eq!(second.price_minor(sale.whole()), Some(MinorUnits(end)));
        let columns: Vec<&str> =
            second.layout.columns().iter().map(|letter| letter.as_deref().unwrap_or("_")).collect();
        assert_eq!(columns.concat(), "ABC_DF");
        // Nine coaches of 18 rows, and a blank row between two of them.
        assert_eq!(second.layout.rows().len(), 9 * 18 + 8);
        // Sixteen coaches: three quarters of a token for each seat and stop, over four shards.
        let tokens = 960 * codes.len() as i64 * 3 / 4;
        assert_eq!(Share::opening(&sale).budget, tokens / 4, "{number}");
    }
}

#[test]
fn a_train_with_every_seat_in_two_classes_keeps_the_class_of_the_coach() {
    let Some(import) = train("D717") else { return };
    let report = import.report();
    let duplicates =
        |finding: &&Finding| matches!(finding.defect, SourceDefect::DuplicateSeat { .. });
    assert_eq!(report.findings.iter().filter(duplicates).count(), 500);
    // Four coaches lack a seat that is declared, and standing has fares and no places.
    assert_eq!(report.findings.len(), 505);
    assert_eq!((report.seats_read, report.seats_placed, report.seats_left_out), (1000, 500, 500));
    assert!(train("D717").unwrap().accept(false).is_err());
    let (file, report) = import.accept(true).unwrap();
    assert_eq!(
        tiers(&report).iter().map(|(tier, _, seats)| (*tier, *seats)).collect::<Vec<_>>(),
        [
            ("second-class-cabin-seat", 92),
            ("first-class-sleeper", 192),
            ("second-class-sleeper", 216)
        ]
    );
    let sale = Sale::new(file).unwrap();
    assert_eq!(sale.leg_count(), 5);
    // Six stops.
    assert_eq!(Share::opening(&sale).budget, 500 * 6 * 3 / 4 / 4);
}

#[test]
fn a_train_without_seats_is_refused_in_any_case() {
    let Some(import) = train("Z284") else { return };
    let refused = import.accept(true).unwrap_err();
    let text = refused.to_text();
    assert!(
        text.contains("trains.csv line 5 (train Z284) has no seats of the 504 that are declared")
    );
    assert!(text.contains("the train starts at 北京, its stops at 北京南"), "{text}");
    let without_seats =
        |finding: &&Finding| matches!(finding.defect, SourceDefect::FaresWithoutSeats { .. });
    assert_eq!(refused.findings.iter().filter(without_seats).count(), 4);
    assert_eq!((refused.outcome, refused.sale), (Outcome::Refused, None));
}

#[test]
fn the_sales_of_this_repository_break_no_rule() {
    let (mut found, mut opening) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(root().join("sales")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let file: SaleFile = serde_json::from_str(&text).unwrap();
        assert_eq!(written(&file), text, "{} is written as imports are", path.display());
        let sale = Sale::new(file).unwrap();
        assert_eq!(path.file_stem().unwrap(), sale.id().as_str());
        let seats: u32 = sale.tiers().iter().map(|tier| tier.layout.sellable()).sum();
        // What the gate begins with: of a train in tokens for each seat and stop, else for each seat.
        let gate = sale.file().gate;
        let stops = (sale.file().stops.len() as i64).max(1);
        let tokens = i64::from(seats) * stops * i64::from(gate.budget_percent) / 100;
        // The demo's train is to refuse few reservations.
        let percent = if sale.id().as_str() == "demo-train" { 27 } else { 75 };
        assert_eq!(gate.budget_percent, percent, "{}", sale.id());
        let each = tokens / i64::from(gate.shards);
        assert_eq!(Share::opening(&sale).budget, each, "{}", sale.id());
        opening.push((sale.id().to_string(), tokens));
        found.push((sale.id().to_string(), seats, sale.seat_legs()));
    }
    // Trains with three quarters of a ticket for each seat and stop; 27 % in the demo's: 1,057 × 6 × 27/100.
    for (sale, tokens) in [
        ("demo-stadium", 5142),
        ("demo-train", 1712),
        ("g-train-g1307", 2718),
        ("night-train-nightjar", 5481),
    ] {
        assert!(opening.contains(&(sale.to_owned(), tokens)), "{sale} in {opening:?}");
    }
    for demo in [("demo-stadium", 6856, 6856), ("demo-train", 1057, 5285)] {
        assert!(found.contains(&(demo.0.to_owned(), demo.1, demo.2)), "{demo:?} in {found:?}");
    }
}

/// What the importers make is not only valid: an engine takes, loads and sells it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_imported_can_be_loaded_and_sold() {
    let mut files = Vec::new();
    let opened = Timestamp::now().plus_seconds(-60);
    let on_sale = |import: Option<Import>, id: &str| {
        let (file, report) = import?.accept(true).unwrap();
        let closes_at = opened.plus_seconds(3600);
        let sale = id.parse().unwrap();
        // These trains left long ago.
        let runs_on = file.runs_on.map(|_| "2099-11-21".parse().unwrap());
        let file = SaleFile { sale, opens_at: opened, closes_at, runs_on, ..file };
        Some((file, report.seats_placed))
    };
    files.extend(on_sale(
        plan("seating-xinzhuang-ballpark/plan.json").map(|plan| plan.0),
        "ballpark",
    ));
    files.extend(on_sale(
        plan("seating-pretix-demo-theatre/plan.en.json").map(|plan| plan.0),
        "theatre",
    ));
    files.extend(on_sale(train("G35"), "g35"));
    files.extend(on_sale(train("D717"), "d717"));
    files.extend(on_sale(gtfs::of("gtfs-caltrain-2016/gtfs", "454a"), "caltrain-454a"));
    files.extend(on_sale(gtfs::of("gtfs-renfe-2026/gtfs", "0019012026-02-24"), "renfe-190"));
    let Some(((first, _), rest)) = files.split_first() else { return };
    let mut shop = Shop::open(first).await;
    for (file, _) in rest {
        shop.publish(file).await;
    }
    for (file, seats) in &files {
        shop.turn_to(file);
        // A seat-leg that is not part of a journey with a fare is not sold, so it is asked where it is.
        let all = shop.sellable();
        let left = shop.left(all).await;
        let counted: u64 = left.values().map(|(count, _)| count).sum();
        assert_eq!(counted, *seats as u64, "{}", file.sale);
        for tier in &file.tiers {
            let lines = vec![shop.best(tier.tier.as_str(), all, 2, "preferred")];
            shop.buy(lines, 2).await.order();
        }
    }
    shop.close().await;
}

/// Runs `onsale` and returns its exit code, what it printed, and what it said beside.
fn onsale(arguments: &[&str]) -> (i32, String, String) {
    let done = std::process::Command::new(program::onsale()).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

#[test]
fn the_command_refuses_with_exit_code_1_and_lists_everything() {
    let Some(folder) = real("train-12306-sample") else { return };
    let folder = folder.to_str().unwrap();
    let import = ["sale", "import", "train12306", folder, "--train", "D717"];
    let (code, report, _) = onsale(&import);
    assert_eq!((code, report.matches("\n  defect ").count()), (1, 505));
    let (code, report, _) = onsale(&[&import[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((code, report["findings"].as_array().unwrap().len()), (1, 505));
    assert_eq!(report["findings"][0]["defect"]["again"]["at"], "seats.csv line 1923");
    let by_kind = json!({"duplicate_seat": 500, "disagreement": 4, "fares_without_seats": 1});
    assert_eq!(report["defects_by_kind"], by_kind);

    let (code, file, report) = onsale(&[&import[..], &["--resolve"]].concat());
    assert_eq!(code, 0);
    assert!(report.ends_with("505 defects, each resolved as said above\n"));
    assert_eq!(
        report.lines().nth(1),
        Some("resolved, 505 defects: duplicate_seat 500, disagreement 4, fares_without_seats 1")
    );
    let directory = tempfile::tempdir().unwrap();
    let details = directory.path().join("defects");
    let to_file = [&import[..], &["--details", details.to_str().unwrap()]].concat();
    let (code, short, _) = onsale(&to_file);
    assert_eq!((code, short.contains("defect 1:")), (1, false));
    assert!(short.contains(&format!("\n  details: {}\n", details.display())), "{short}");
    let text = std::fs::read_to_string(&details).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("defect ")).count(), 505);
    let (_, whole, _) = onsale(&[&to_file[..], &["--json"]].concat());
    let listed: Value = serde_json::from_slice(&std::fs::read(&details).unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&whole).unwrap()["findings"], listed);
    let nowhere = directory.path().join("no/such/folder");
    let (code, ..) = onsale(&[&import[..], &["--details", nowhere.to_str().unwrap()]].concat());
    assert_eq!(code, 2);
    let path = directory.path().join("d717.json");
    std::fs::write(&path, &file).unwrap();
    let path = path.to_str().unwrap();
    let (code, checked, _) = onsale(&["sale", "check", path, "--json"]);
    let checked: Value = serde_json::from_str(&checked).unwrap();
    assert_eq!((code, &checked[0]["seat_legs"]), (0, &Value::from(2500)));

    std::fs::write(path, file.replace("\"limit_per_buyer\": 5", "\"limit_per_buyer\": 0")).unwrap();
    let (code, checked, _) = onsale(&["sale", "check", path]);
    assert_eq!(code, 1);
    assert!(checked.contains("limit_per_buyer: must be 1 to 1,000"), "{checked}");
}

#[test]
fn the_example_of_the_documentation_breaks_no_rule() {
    let page = read("docs/sale-file.md");
    let (_, example) = page.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let sale = Sale::new(serde_json::from_str(example).unwrap()).unwrap();
    assert_eq!(sale.seat_legs(), 1000 + 13 + 4);
}
