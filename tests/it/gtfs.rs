//! The GTFS importer on two real feeds, trip by trip.
//!
//! The real data lies beside the repository (`../shared/data`); a test that does not find it says so
//! and passes.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use engine::domain::basics::ids::Legs;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{MAX_LEGS, Sale, SaleFile};
use importers::gtfs::{Feed, Prices, Train};
use importers::{Finding, Import, SourceDefect, Terms};
use serde_json::Value;

use crate::program;
use crate::samples::Shop;

const CALTRAIN: &str = "gtfs-caltrain-2016/gtfs";
const RENFE: &str = "gtfs-renfe-2026/gtfs";

/// The folder of a real feed, or a message that it is missing.
fn real(path: &str) -> Option<PathBuf> {
    let found =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(path);
    if found.exists() {
        return Some(found);
    }
    text::skipped(format_args!("there is no {}", found.display()));
    None
}

fn feed(path: &str) -> Option<Feed> {
    Some(Feed::read(&real(path)?, None).unwrap())
}

fn train(prices: Prices) -> Train {
    let classes = ["First=1x10xA_BC@150", "Second=4x20xAB_CD", "Bicycles=12@25"];
    Train { classes: classes.map(|class| class.parse().unwrap()).to_vec(), prices }
}

fn import(feed: &Feed, trip: &str, day: &str, prices: Prices) -> Import {
    let terms = Terms::opening(Timestamp::from_ms(0));
    feed.import(trip, day.parse().unwrap(), &train(prices), &terms).unwrap()
}

/// A trip of one of the real feeds, for five euros a journey; `None` where the feed is missing.
pub fn of(path: &str, trip: &str) -> Option<Import> {
    Some(first(&feed(path)?, trip, Prices::Flat(MinorUnits(500))))
}

/// The trip as the first day on which it runs has it.
fn first(feed: &Feed, trip: &str, prices: Prices) -> Import {
    import(feed, trip, &feed.first_day(trip).unwrap().to_string(), prices)
}

/// How many journeys a file sells, which must be the same in each class.
fn journeys(file: &SaleFile) -> usize {
    let counts: HashSet<usize> = file.tiers.iter().map(|tier| tier.fares.len()).collect();
    assert_eq!(counts.len(), 1);
    counts.into_iter().next().unwrap()
}

#[test]
fn each_trip_of_a_commuter_railway_becomes_a_sale() {
    let Some(feed) = feed(CALTRAIN) else { return };
    let trips: Vec<&str> = feed.trips().collect();
    assert_eq!(trips.len(), 218);
    let (mut pairs, mut max_stops, mut buses, mut sold) = (0, 0, 0, 0);
    let mut called_at: HashSet<String> = HashSet::new();
    for trip in trips {
        let import = first(&feed, trip, Prices::OfTheFeed);
        // Whoever sells a bus as a train is asked; there is nothing else to ask in this feed.
        let is_bus = match &import.report().findings[..] {
            [] => false,
            [only] => {
                assert_eq!(
                    only.defect.to_string(),
                    "routes.txt line 2 (route Tamien / San Jose Diridon Caltrain Shuttle) is a bus (route_type 3), not a train"
                );
                true
            }
            more => panic!("{trip}: {more:?}"),
        };
        buses += usize::from(is_bus);
        let (file, report) = import.accept(is_bus).unwrap();
        assert_eq!((report.seats_read, report.seats_placed, report.seats_left_out), (362, 362, 0));
        let sale = Sale::new(file).unwrap();
        let file = sale.file();
        assert!(usize::from(sale.leg_count()) <= MAX_LEGS);
        assert_eq!(usize::from(sale.leg_count()) + 1, file.stops.len());
        pairs += journeys(file);
        max_stops = max_stops.max(file.stops.len());
        called_at.extend(file.stops.iter().map(|stop| stop.stop.to_string()));
        sold += 1;
    }
    assert_eq!((sold, pairs, max_stops, buses), (218, 29_707, 29, 58));
    assert_eq!(called_at.len(), 64, "of the 95 stops, 31 are stations that platforms belong to");
}

#[test]
fn a_fare_is_what_the_feed_says_between_two_zones() {
    let Some(feed) = feed(CALTRAIN) else { return };
    let (file, _) = import(&feed, "198", "2016-04-08", Prices::OfTheFeed).accept(false).unwrap();
    assert_eq!(file.currency.to_string(), "USD");
    let sale = Sale::new(file).unwrap();
    let price = |tier: usize, from: &str, to: &str| {
        let journey = sale.journey(&from.parse().unwrap(), &to.parse().unwrap()).unwrap();
        sale.tiers()[tier].price_minor(journey).map(|price| price.0)
    };
    // From zone 1 to itself and to zone 4: $3.75, and $2 for each further zone.
    let stops: Vec<&str> = sale.file().stops.iter().map(|stop| stop.stop.as_str()).collect();
    let (first, second, last) = (stops[0], stops[1], stops[stops.len() - 1]);
    assert_eq!((first, second, last), ("70012", "70021", "70262"));
    assert_eq!(price(1, first, second), Some(375));
    assert_eq!(price(1, first, last), Some(975));
    assert_eq!(price(0, first, last), Some(1463), "half as much again, rounded half up");
    assert_eq!(price(2, first, last), Some(244));
}

#[test]
fn a_train_past_midnight_is_of_the_next_day() {
    let Some(feed) = feed(CALTRAIN) else { return };
    let mut late = BTreeMap::new();
    for trip in feed.trips() {
        let import = first(&feed, trip, Prices::OfTheFeed);
        let note = import.report().notes.iter().find(|note| note.starts_with("leaves ")).unwrap();
        let (_, reached) = note.rsplit_once('(').unwrap();
        let reached = reached.trim_end_matches(')');
        let hours: u32 = reached.split(':').next().unwrap().parse().unwrap();
        if hours >= 24 {
            late.insert(trip, reached.to_owned());
        }
    }
    let five = [
        ("196", "24:13:00"),
        ("198", "25:34:00"),
        ("199", "24:04:00"),
        ("451a", "24:08:00"),
        ("454a", "25:39:00"),
    ];
    assert_eq!(late, five.map(|(trip, at)| (trip, at.to_owned())).into());

    // A Saturday's train, in California, in the summer: it arrives on Sunday.
    let import = import(&feed, "454a", "2016-04-09", Prices::OfTheFeed);
    let text = import.report().to_text();
    assert!(text.contains("at 2016-04-10T01:39:00-07:00 (25:39:00)"), "{text}");
    let (file, _) = import.accept(false).unwrap();
    assert!(
        text.contains("leaves San Francisco Caltrain at 2016-04-10T00:01:00-07:00 (24:01:00)"),
        "{text}"
    );
    assert_eq!(file.closes_at.to_string(), "2016-04-10T07:01:00.000Z", "when it leaves, in UTC");
}

#[test]
fn holidays_are_as_the_exceptions_say() {
    let Some(feed) = feed(CALTRAIN) else { return };
    let runs = |trip: &str, day: &str| {
        let import = import(&feed, trip, day, Prices::OfTheFeed);
        let why = |finding: &Finding| {
            let SourceDefect::DoesNotRun { why, .. } = &finding.defect else { return None };
            Some(why.clone())
        };
        import.report().findings.iter().find_map(why)
    };
    assert_eq!(runs("198", "2016-04-08"), None);
    // Memorial Day of 2016 was a Monday with a Sunday's trains.
    assert_eq!(
        runs("198", "2016-05-30").as_deref(),
        Some("calendar_dates.txt line 2 takes it out")
    );
    let sunday = feed
        .trips()
        .find(|trip| feed.first_day(trip).is_some_and(|day| day.to_string() == "2014-03-23"));
    let sunday = sunday.unwrap();
    assert_eq!(runs(sunday, "2016-05-30"), None);
    assert_eq!(
        runs(sunday, "2016-05-31").as_deref(),
        Some("calendar.txt line 4 does not run on a Tuesday")
    );
    assert_eq!(
        runs("198", "2016-04-01").as_deref(),
        Some("calendar.txt line 2 is from 2016-04-04 to 2019-03-31")
    );
}

#[test]
fn a_national_railway_forbids_some_journeys_and_sells_a_train_once() {
    let Some(feed) = feed(RENFE) else { return };
    let by_distance =
        Prices::ByDistance { base_minor: MinorUnits(250), per_km_minor: MinorUnits(9) };
    let trips: Vec<&str> = feed.trips().collect();
    assert_eq!(trips.len(), 9);
    let (mut pairs, mut twice) = (0, BTreeMap::new());
    let mut stops = HashSet::new();
    for trip in trips {
        let import = first(&feed, trip, by_distance);
        for finding in &import.report().findings {
            let SourceDefect::SameTrain { number, how, .. } = &finding.defect else {
                panic!("{trip}: {}", finding.defect)
            };
            twice.insert(trip, (number.clone(), how.clone()));
        }
        let is_one = import.report().findings.is_empty();
        let (file, report) = import.accept(!is_one).unwrap();
        assert_eq!(report.seats_read, report.seats_placed);
        stops.extend(file.stops.iter().map(|stop| stop.stop.to_string()));
        let sale = Sale::new(file).unwrap();
        pairs += journeys(sale.file());
    }
    assert_eq!((stops.len(), pairs), (18, 264), "19 journeys are forbidden");
    // Each train to Porto runs as two trips: one for those who board in Spain, one for all others.
    let reported = |trip: &str| {
        let (number, how) = twice.get(trip).unwrap_or_else(|| panic!("{trip} is one of two"));
        (number.as_str(), how.as_str())
    };
    assert_eq!(twice.len(), 6);
    let how = "the first sells 15 journeys, the second 10; 5 only the first, 0 only the second";
    assert_eq!(reported("0042012026-02-23"), ("00420", how));
    let how = "the first sells 10 journeys, the second 15; 0 only the first, 5 only the second";
    assert_eq!(reported("0042022026-02-23"), ("00420", how));

    // Three timetables of one train on days of their own are no such thing.
    let import = import(&feed, "0019012026-02-24", "2026-02-24", by_distance);
    let text = import.report().to_text();
    assert!(
        text.contains("leaves Madrid-Chamartín-Clara Campoamor at 2026-02-24T08:30:00+01:00"),
        "{text}"
    );
    let (file, _) = import.accept(false).unwrap();
    assert_eq!(file.stops[0].stop.as_str(), "17000");
    // Nobody rides from Chamartín to Atocha on a long-distance train: one may board at both.
    let sale = Sale::new(file).unwrap();
    let journey = |from: &str, to: &str| {
        let journey = sale.journey(&from.parse().unwrap(), &to.parse().unwrap()).unwrap();
        sale.tiers()[1].price_minor(journey)
    };
    assert_eq!(journey("17000", "18000"), None);
    assert_eq!(journey("17000", "35001"), None);
    assert!(
        journey("17000", "35105") > Some(MinorUnits(250))
            && journey("35001", "37606") > journey("35001", "37603")
    );
    let error = feed.import(
        "0019012026-02-24",
        "2026-02-24".parse().unwrap(),
        &train(Prices::OfTheFeed),
        &Terms::opening(Timestamp::from_ms(0)),
    );
    assert!(error.unwrap_err().to_string().contains("the feed has no fares"));
}

#[test]
fn a_train_whose_calendar_takes_days_out_does_not_run_on_them() {
    let Some(feed) = feed(RENFE) else { return };
    let why = |day: &str| {
        let import = import(&feed, "0019012026-03-01", day, Prices::Flat(MinorUnits(500)));
        import
            .report()
            .findings
            .iter()
            .map(|finding| finding.defect.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(why("2026-03-02"), Vec::<String>::new());
    assert_eq!(
        why("2026-03-01"),
        [
            "trips.txt line 4 (trip 0019012026-03-01) does not run on 2026-03-01: calendar_dates.txt line 2 takes it out"
        ]
    );
    let first = feed.first_day("0019012026-03-01").unwrap().to_string();
    assert_eq!(first, "2026-03-02");
}

#[test]
fn the_command_makes_a_sale_of_a_trip() {
    let Some(folder) = real(CALTRAIN) else { return };
    let run = |arguments: &[&str]| {
        let done = std::process::Command::new(program::onsale()).args(arguments).output().unwrap();
        (done.status.code().unwrap(), done)
    };
    let folder = folder.to_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("198.json");
    let out = out.to_str().unwrap();
    let opens = "2016-04-01T09:00:00-07:00";
    let import = ["sale", "import", "gtfs", folder, "--trip", "198", "--opens-at", opens];
    let class = ["--class", "Second=5x30xAB_CD", "--out", out];
    let (code, done) = run(&[&import[..], &["--date", "2016-04-08"], &class].concat());
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&done.stderr));
    let report = String::from_utf8(done.stdout).unwrap();
    assert!(report.contains("600 seats read, 600 placed, 0 left out"), "{report}");
    let (code, done) = run(&["sale", "check", out, "--json"]);
    let checked: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((code, &checked[0]["sale"]), (0, &Value::from("198-2016-04-08")));
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.lines().count() < 500, "coaches take a line: {}", text.lines().count());

    let (code, done) = run(&[&import[..], &["--date", "2016-04-09", "--json"], &class].concat());
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((code, &report["findings"][0]["defect"]["kind"]), (1, &Value::from("does_not_run")));
}

/// A small feed whose stops have ids as France's railway has them: long, with blanks, accents and colons.
fn feed_with_long_ids(folder: &Path) -> [String; 3] {
    let stops = ["87547000", "87571000", "87611004"];
    let stops = stops.map(|code| format!("StopPoint:OCECorail Intercité-{code}"));
    let rows = |row: &dyn Fn(usize, &String) -> String| {
        stops.iter().enumerate().map(|(index, stop)| row(index, stop)).collect::<String>()
    };
    let named = rows(&|index, stop| format!("{stop},Gare {index},4{index},2\r\n"));
    let times =
        rows(&|index, stop| format!("OCESN3611,{0}:00:00,{0}:05:00,{stop},{index}\r\n", 7 + index));
    let calendar =
        "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date";
    for (table, text) in [
        ("agency.txt", "agency_id,agency_timezone\r\nSNCF,Europe/Paris\r\n".to_owned()),
        ("routes.txt", "route_id,agency_id,route_type\r\nr,SNCF,2\r\n".to_owned()),
        (
            "trips.txt",
            "route_id,service_id,trip_id,trip_short_name\r\nr,s,OCESN3611,3611\r\n".to_owned(),
        ),
        ("calendar.txt", format!("{calendar}\r\ns,1,1,1,1,1,1,1,20260101,20261231\r\n")),
        ("stops.txt", format!("stop_id,stop_name,stop_lat,stop_lon\r\n{named}")),
        (
            "stop_times.txt",
            format!("trip_id,arrival_time,departure_time,stop_id,stop_sequence\r\n{times}"),
        ),
    ] {
        std::fs::write(folder.join(table), text).unwrap();
    }
    stops
}

/// From the folder of tables to a paid ticket, and everywhere under the ids of the feed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_is_sold_between_stops_with_long_ids() {
    let directory = tempfile::tempdir().unwrap();
    let ids = feed_with_long_ids(directory.path());
    let out = directory.path().join("3611.json");
    let done = std::process::Command::new(program::onsale())
        .args(["sale", "import", "gtfs", directory.path().to_str().unwrap()])
        .args(["--trip", "OCESN3611", "--date", "2026-05-04", "--class", "Second=1x5xAB_CD"])
        .args(["--opens-at", "2020-01-01T00:00:00Z", "--closes-at", "2100-01-01T00:00:00Z"])
        .args(["--price-minor", "4500", "--out", out.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let file: SaleFile = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    let stops: Vec<&str> = file.stops.iter().map(|stop| stop.stop.as_str()).collect();
    assert_eq!(stops, ids);

    // The train of the feed left long ago.
    let file = SaleFile { runs_on: "2099-05-04".parse().ok(), ..file };
    let shop = Shop::open(&file).await;
    let journey = Legs::new(1, 2).unwrap();
    shop.until_left("second", journey, 20).await;
    let order = shop.buy(vec![shop.best("second", journey, 2, "required")], 2).await.order();
    let line = &order["lines"][0];
    assert_eq!((&line["from"], &line["to"]), (&Value::from(&*ids[1]), &Value::from(&*ids[2])));
    shop.until_left("second", journey, 18).await;
    shop.until_left("second", Legs::new(0, 1).unwrap(), 20).await;
    shop.close().await;
}
