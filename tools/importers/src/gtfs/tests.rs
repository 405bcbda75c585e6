//! The tests of this importer on small inputs of their own.

use super::*;
use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::Sale;

/// A small feed: three trips over four stops A to D, on Mondays of 2026.
const TABLES: [(&str, &str); 8] = [
    ("agency.txt", "agency_id,agency_timezone\nX,Europe/Madrid"),
    ("routes.txt", "route_id,agency_id,route_short_name,route_type\nr,X,IC,2\nb,X,,3"),
    (
        "stops.txt",
        "stop_id,stop_name,stop_lat,stop_lon,zone_id\n007,Ah,0,0,1\nB,Be,0,1,1\nC,Ce,0,2,2\nD,,0,3,3",
    ),
    (
        "trips.txt",
        "route_id,service_id,trip_id,trip_short_name\nr,mo,t,12\nr,mo,u,12\nb,mo,v,\nr,mo,w,12\nr,never,x,",
    ),
    (
        "stop_times.txt",
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence,pickup_type,drop_off_type\n\
         t,25:10:00,25:10:00,D,10,0,0\n\
         t,8:00:00,8:00:00,007,2,0,1\n\
         t,23:59:00,24:01:00,C,9,2,0\n\
         t,,,B,3,1,\n\
         u,8:00:00,8:00:00,007,1,,\n\
         u,24:00:00,24:01:00,C,2,,\n\
         v,1:00:00,1:00:00,B,1,,\n\
         v,2:00:00,2:00:00,C,2,,\n\
         v,3:00:00,3:00:00,B,3,,\n\
         w,9:00:00,9:00:00,007,1,,\n\
         w,9:30:00,9:30:00,B,2,,\n\
         x,9:00:00,9:00:00,007,1,,",
    ),
    (
        "calendar.txt",
        "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\nmo,1,0,0,0,0,0,0,20260101,20261231",
    ),
    ("calendar_dates.txt", "service_id,date,exception_type\nmo,20260511,2\nmo,20260512,1"),
    ("fare_attributes.txt", ""),
];

/// The small feed with some tables changed or added.
fn feed(changes: &[(&str, &str)]) -> Result<Feed, Error> {
    let text = |name: &str| {
        let mut all = changes.iter().chain(&TABLES);
        Ok(all.find(|(table, _)| *table == name).map(|(_, text)| text.as_bytes().to_vec()))
    };
    Feed::parse("feed", None, text)
}

fn train(prices: Prices) -> Train {
    Train {
        classes: vec!["Second=2x9xAB_CD".parse().unwrap(), "Bar=5@50".parse().unwrap()],
        prices,
    }
}

fn import(feed: &Feed, trip: &str, day: &str, prices: Prices) -> Result<Import, Error> {
    let terms = Terms::opening(Timestamp::from_ms(0));
    feed.import(trip, day.parse().unwrap(), &train(prices), &terms)
}

/// The report of an import that is as defective as it is.
fn reported(feed: &Feed, trip: &str, day: &str) -> String {
    import(feed, trip, day, Prices::Flat(MinorUnits(5))).unwrap().report().to_text()
}

fn sold(import: Import) -> Vec<String> {
    let (file, report) = import.accept(true).unwrap();
    assert_eq!(report.seats_read, report.seats_placed);
    let sale = Sale::new(file).unwrap();
    let text = |fare: &Fare| format!("{}-{} {}", fare.from, fare.to, fare.price_minor);
    sale.file().tiers[0].fares.iter().map(text).collect()
}

#[test]
fn the_rules_of_the_stops_say_what_is_sold() {
    let feed = feed(&[]).unwrap();
    let import = import(&feed, "t", "2026-05-04", Prices::Flat(MinorUnits(5))).unwrap();
    let text = import.report().to_text();
    // B to D is forbidden, C to D needs a call; from 007 one gets everywhere.
    for said in [
        "3 of 6 journeys are sold",
        "2 are not: nobody boards",
        "1 are not: one has to arrange",
        "leaves Ah at 2026-05-04T08:00:00+02:00 (8:00:00) and reaches D at 2026-05-05T01:10:00+02:00 (25:10:00)",
        "train 12 runs as two trips: trips.txt line 2 (trip t) and trips.txt line 3 (trip u)",
        "the first sells 3 journeys, the second 1; 2 only the first, 0 only the second",
    ] {
        assert!(text.contains(said), "{text}\nlacks {said}");
    }
    assert!(!text.contains("trip w"), "the number alone does not make it the same train");
    let (file, _) = import.accept(true).unwrap();
    assert_eq!(file.closes_at.to_string(), "2026-05-04T06:00:00.000Z", "when it leaves");
    let stops: Vec<(&str, &str)> =
        file.stops.iter().map(|stop| (stop.stop.as_str(), stop.name.as_str())).collect();
    assert_eq!(stops, [("007", "Ah"), ("B", "Be"), ("C", "Ce"), ("D", "D")]);
    assert_eq!(
        (file.sale.as_str(), file.title.as_str()),
        ("t-2026-05-04", "IC 12 Ah → D 2026-05-04")
    );
    assert_eq!(file.tiers[1].fares[0].price_minor, MinorUnits(3), "half of 5, rounded half up");
    let late = Terms::opening("2026-05-04T06:00:00Z".parse().unwrap());
    let sell = |terms: &Terms| {
        feed.import("t", "2026-05-04".parse().unwrap(), &train(Prices::Flat(MinorUnits(5))), terms)
    };
    let error = sell(&late).unwrap_err().to_string();
    assert!(error.contains("leaves at 2026-05-04T06:00:00.000Z, and selling"), "{error}");
    let closes_at = "2026-05-04T07:00:00Z".parse().ok();
    assert!(sell(&Terms { closes_at, ..late }).is_ok());
}

#[test]
fn journeys_cost_what_is_asked_or_what_the_feed_says() {
    let without = feed(&[]).unwrap();
    let error = import(&without, "t", "2026-05-04", Prices::OfTheFeed).unwrap_err().to_string();
    assert!(error.contains("the feed has no fares; give --price-minor or --per-km"), "{error}");
    let by_distance =
        Prices::ByDistance { base_minor: MinorUnits(100), per_km_minor: MinorUnits(2) };
    let import_by = |prices| import(&without, "t", "2026-05-04", prices).unwrap();
    assert_eq!(sold(import_by(by_distance)), ["007-B 322", "007-C 545", "007-D 767"]);
    let fares = [
        ("fare_attributes.txt", "fare_id,price,currency_type\na,1.50,CHF\nb,3,CHF"),
        ("fare_rules.txt", "fare_id,route_id,origin_id,destination_id\na,r,1,1\nb,r,1,2\na,b,1,2"),
    ];
    let with = feed(&fares).unwrap();
    let imported = import(&with, "t", "2026-05-04", Prices::OfTheFeed).unwrap();
    assert!(imported.report().to_text().contains("1 are not: the feed has no fare for them"));
    assert_eq!(sold(imported), ["007-B 150", "007-C 300"]);
    let terms =
        Terms { currency: Currency::new("EUR").ok(), ..Terms::opening(Timestamp::from_ms(0)) };
    let asked = with.import("t", "2026-05-04".parse().unwrap(), &train(Prices::OfTheFeed), &terms);
    assert!(asked.unwrap_err().to_string().contains("in CHF, not in EUR"));
    for (table, expected) in [
        ("fare_id,price,currency_type\na,1.505,CHF", "\"1.505\" is no amount of CHF"),
        ("fare_id,price,currency_type\na,1,Franken", "three letters"),
        ("fare_id,price,currency_type\na,1,CHF\nb,1,EUR", "fares in CHF and in EUR"),
    ] {
        let feed = feed(&[("fare_attributes.txt", table)]).unwrap();
        let error = import(&feed, "t", "2026-05-04", Prices::OfTheFeed).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let nowhere = feed(&[("stops.txt", "stop_id,stop_name\n007,Ah\nB,Be\nC,Ce\nD,De")]).unwrap();
    let error = import(&nowhere, "t", "2026-05-04", by_distance).unwrap_err().to_string();
    assert!(error.contains("stop 007 has no usable stop_lat"), "{error}");
}

#[test]
fn a_trip_runs_when_the_calendar_and_its_exceptions_say_so() {
    let feed = feed(&[("frequencies.txt", "trip_id,headway_secs\nv,600")]).unwrap();
    let runs = |day: &str| !reported(&feed, "t", day).contains("does not run");
    assert!(runs("2026-05-04") && runs("2026-05-12") && runs("2026-12-28"));
    for (trip, day, why) in [
        ("t", "2026-05-11", "calendar_dates.txt line 2 takes it out"),
        ("t", "2026-05-05", "calendar.txt line 2 does not run on a Tuesday"),
        ("t", "2027-01-04", "calendar.txt line 2 is from 2026-01-01 to 2026-12-31"),
        ("x", "2026-05-04", "service never is in neither calendar.txt nor calendar_dates.txt"),
        ("v", "2026-05-04", "it runs at intervals, at no times of its own: frequencies.txt line 2"),
    ] {
        let text = reported(&feed, trip, day);
        assert!(text.contains(&format!("does not run on {day}: {why}")), "{text}");
        assert!(
            import(&feed, trip, day, Prices::Flat(MinorUnits(5))).unwrap().accept(true).is_err()
        );
    }
    assert_eq!(feed.first_day("t").map(|day| day.to_string()).as_deref(), Some("2026-01-05"));
    assert_eq!(feed.first_day("x"), None);
    let only_dates = [
        ("calendar.txt", ""),
        ("calendar_dates.txt", "service_id,date,exception_type\nmo,20260512,1"),
    ];
    let feed = self::feed(&only_dates).unwrap();
    assert!(reported(&feed, "t", "2026-05-04").contains("does not add service mo on it"));
    assert_eq!(feed.first_day("t").map(|day| day.to_string()).as_deref(), Some("2026-05-12"));
}

#[test]
fn each_defect_is_named_with_its_places_and_its_remedy() {
    let times =
        |rows: &str| format!("trip_id,arrival_time,departure_time,stop_id,stop_sequence\n{rows}");
    let cases = [
        (
            "v",
            String::new(),
            "routes.txt line 3 (route b) is a bus (route_type 3), not a train",
            "as if it were one",
        ),
        (
            "v",
            String::new(),
            "the call at stop B is declared twice: stop_times.txt line 8 (stop B of trip v) and stop_times.txt line 10",
            "the second is stop B (2)",
        ),
        ("t", times("t,1:00:00,1:00:00,007,1"), "(trip t) has 1 stops", "nothing resolves this"),
        ("t", times(""), "(trip t) has 0 stops", "nothing resolves this"),
        (
            "t",
            times("t,1:00:00,1:00:00,007,1\nt,2:00:00,2:00:00,Q,2"),
            "names stop \"Q\", which is not declared",
            "nothing resolves this",
        ),
        (
            "t",
            times("t,1:00:00,1:00:00,007,1\nt,2:00:00,2:00:00,B,1"),
            "stop_sequence 1 is declared twice",
            "in the order of the table",
        ),
        (
            "t",
            times("t,1:00:00,3:00:00,007,1\nt,2:00:00,2:00:00,B,2"),
            "leaves at 3:00:00 and arrives at 2:00:00",
            "stop_sequence decides",
        ),
        (
            "t",
            "trip_id,stop_id,stop_sequence,pickup_type\nt,007,1,1\nt,B,2,0".to_owned(),
            "no journey of trips.txt line 2 (trip t) can be sold",
            "nothing resolves this",
        ),
        (
            "t",
            times(&(0..66).map(|stop| format!("t,,,B,{stop}\n")).collect::<String>()),
            "(trip t) has 66 stops; a sale has at most 65",
            "nothing resolves this",
        ),
    ];
    for (trip, table, defect, remedy) in cases {
        let changes = [("stop_times.txt", table.as_str())];
        let feed = if table.is_empty() { feed(&[]) } else { feed(&changes) }.unwrap();
        let text = reported(&feed, trip, "2026-05-04");
        assert!(
            text.contains(defect) && text.contains(remedy),
            "{text}\nlacks {defect} / {remedy}"
        );
        let import = || import(&feed, trip, "2026-05-04", Prices::Flat(MinorUnits(5))).unwrap();
        assert!(import().accept(false).is_err(), "{defect}");
        assert_eq!(import().accept(true).is_ok(), remedy != "nothing resolves this", "{defect}");
    }
    let unrouted = feed(&[("routes.txt", "route_id,route_type\nz,2")]).unwrap();
    assert!(
        reported(&unrouted, "t", "2026-05-04").contains("names route \"r\", which is not declared")
    );
}

#[test]
fn a_stop_has_the_id_that_the_feed_gives_it() {
    let (paris, toulouse) =
        ("StopPoint:OCECorail Intercité-87547000", "StopPoint:OCECorail Intercité-87611004");
    let longest = "é".repeat(127);
    let of_stops = |stops: [&str; 3]| {
        let named = stops.map(|stop| format!("{stop},A stop,0,0")).join("\n");
        let times = stops
            .iter()
            .enumerate()
            .map(|(index, stop)| format!("t,{index}:00:00,,{stop},{index}"));
        let times = times.collect::<Vec<_>>().join("\n");
        let named = format!("stop_id,stop_name,stop_lat,stop_lon\n{named}");
        let times = format!("trip_id,arrival_time,departure_time,stop_id,stop_sequence\n{times}");
        let feed = feed(&[("stops.txt", &named), ("stop_times.txt", &times)]).unwrap();
        import(&feed, "t", "2026-05-04", Prices::Flat(MinorUnits(5))).unwrap()
    };
    let (file, report) = of_stops([paris, &longest, toulouse]).accept(false).unwrap();
    assert_eq!(report.findings, []);
    let ids: Vec<&str> = file.stops.iter().map(|stop| stop.stop.as_str()).collect();
    assert_eq!(ids, [paris, &longest, toulouse]);
    let sale = Sale::new(file).unwrap();
    let journey = sale.journey(&paris.parse().unwrap(), &toulouse.parse().unwrap()).unwrap();
    assert_eq!((journey.count(), sale.tiers()[0].price_minor(journey)), (2, Some(MinorUnits(5))));

    let refused = of_stops([paris, &"x".repeat(256), toulouse]).accept(true).unwrap_err();
    let text = refused.to_text();
    assert!(text.contains("has no usable key: stop id must be 1 to 255 bytes"), "{text}");
}

#[test]
fn what_is_no_feed_is_an_error_with_its_line() {
    for (table, text, expected) in [
        (
            "stop_times.txt",
            "trip_id,stop_id,stop_sequence\nt,B,x",
            "stop_times.txt line 2 is malformed",
        ),
        ("stop_times.txt", "trip_id,stop_id,stop_sequence,pickup_type\nt,B,1,7", "0 to 3, not 7"),
        (
            "stop_times.txt",
            "trip_id,stop_id,stop_sequence,arrival_time\nt,B,1,24h",
            "\"24h\" is no time",
        ),
        ("calendar.txt", "service_id,monday\nmo,1", "calendar.txt has no column tuesday"),
        ("calendar_dates.txt", "service_id,date,exception_type\r\nmo,2026-5-1,1", "a day must be"),
        (
            "trips.txt",
            "route_id,service_id,trip_id\nr,mo,t\nr,mo,t",
            "trips.txt line 3 is malformed: \"t\" stands on line 2 already",
        ),
        ("stops.txt", "stop_id,stop_name\n\nB,Be\r\nB,Be", "stops.txt line 4"),
    ] {
        let imported = feed(&[(table, text)])
            .and_then(|feed| import(&feed, "t", "2026-05-04", Prices::Flat(MinorUnits(5))));
        let error = imported.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let feed = |changes: &[(&str, &str)]| self::feed(changes).unwrap();
    let error = import(&feed(&[]), "zz", "2026-05-04", Prices::Flat(MinorUnits(5)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no trip \"zz\" among 5, such as t, u, v"), "{error}");
    for (agency, expected) in [
        ("agency_id,agency_timezone\nX,Mars/Olympus", "agency.txt line 2 is malformed"),
        ("agency_id,agency_timezone", "it has no agency"),
    ] {
        let error = import(
            &feed(&[("agency.txt", agency)]),
            "t",
            "2026-05-04",
            Prices::Flat(MinorUnits(5)),
        );
        assert!(error.unwrap_err().to_string().contains(expected));
    }
}

#[test]
fn padding_marks_and_line_ends_do_not_matter() {
    let padded = |text: &str| {
        let lines: Vec<String> = text.lines().map(|line| format!("{line:<350}")).collect();
        format!("\u{feff}{}", lines.join("\r\n"))
    };
    let tables: Vec<(&str, String)> =
        TABLES.iter().map(|(name, text)| (*name, padded(text))).collect();
    let tables: Vec<(&str, &str)> =
        tables.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let plain =
        import(&feed(&[]).unwrap(), "t", "2026-05-04", Prices::Flat(MinorUnits(5))).unwrap();
    let padded =
        import(&feed(&tables).unwrap(), "t", "2026-05-04", Prices::Flat(MinorUnits(5))).unwrap();
    assert_eq!(plain.report(), padded.report());
    assert_eq!(plain.accept(true).unwrap().0, padded.accept(true).unwrap().0);
}

#[test]
fn one_trip_can_be_read_without_the_rest_of_the_country() {
    let text = |name: &str| {
        Ok(TABLES
            .iter()
            .find(|(table, _)| *table == name)
            .map(|(_, text)| text.as_bytes().to_vec()))
    };
    let one = Feed::parse("feed", Some("t"), text).unwrap();
    assert_eq!((one.times("t").len(), one.times("u").len(), one.times("v").len()), (4, 2, 0));
    let all = feed(&[]).unwrap();
    assert_eq!(reported(&one, "t", "2026-05-04"), reported(&all, "t", "2026-05-04"));
}
