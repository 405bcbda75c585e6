//! Tests of faults that feeds in the field have: one small railway, and what is changed in it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::*;
use engine::domain::basics::calendar::ClockTime;
use engine::domain::basics::money::MinorUnits;

/// A railway from Finland to Sweden: the train `g7`, daily in 2026, by Helsinki's time; `b1` runs on the same line.
const TABLES: [(&str, &str); 6] = [
    ("agency.txt", "agency_id,agency_timezone\nG,Europe/Helsinki\n"),
    ("routes.txt", "route_id,agency_id,route_type\ngulf,G,2\n"),
    (
        "stops.txt",
        "stop_id,stop_name,stop_lat,stop_lon,stop_timezone,parent_station\n\
         OUL,Oulu,65.0,25.5,,\n\
         KEM,Kemi,65.7,24.6,,\n\
         TOR,Tornio,65.8,24.1,,\n\
         HAP,Haparanda,65.8,24.1,,\n\
         LUL,Luleå,65.6,22.2,,\n",
    ),
    ("trips.txt", "route_id,service_id,trip_id,trip_short_name\ngulf,daily,g7,\ngulf,daily,b1,\n"),
    (
        "stop_times.txt",
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence,pickup_type\n\
         g7,06:10:00,06:10:00,OUL,1,\n\
         g7,07:35:00,07:40:00,KEM,2,\n\
         g7,08:05:00,08:10:00,TOR,3,\n\
         g7,08:20:00,08:30:00,HAP,4,\n\
         g7,10:45:00,10:45:00,LUL,5,\n\
         b1,12:10:00,12:10:00,OUL,1,\n\
         b1,13:35:00,13:35:00,KEM,2,\n",
    ),
    (
        "calendar.txt",
        "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n\
         daily,1,1,1,1,1,1,1,20260101,20261231\n",
    ),
];

/// A change of a table: its name, a text that it has (or nothing: at its end), and the text that stands there instead.
type Change<'text> = (&'text str, &'text str, &'text str);

/// The tables with their changes.
fn changed(changes: &[Change<'_>]) -> Vec<(String, String)> {
    let mut tables: Vec<(String, String)> =
        TABLES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    for (name, what, by) in changes {
        if !tables.iter().any(|(table, _)| table == name) {
            tables.push(((*name).to_owned(), String::new()));
        }
        let (_, text) = tables.iter_mut().find(|(table, _)| table == name).unwrap();
        assert!(text.contains(what), "{name} has no {what}");
        *text = if what.is_empty() { format!("{text}{by}") } else { text.replacen(what, by, 1) };
    }
    tables
}

fn terms() -> Terms {
    Terms::opening("2026-01-02T00:00:00Z".parse().unwrap())
}

fn prices() -> Train {
    let classes = vec!["Second=1x4xAB_CD".parse().unwrap()];
    Train { classes, prices: Prices::Flat(MinorUnits(1_000)) }
}

/// The import of `g7` on 2026-06-03, with the whole feed read or only what the trip needs: which must be the same.
fn import(changes: &[Change<'_>]) -> Result<Import, String> {
    import_on("2026-06-03", changes)
}

fn import_on(day: &str, changes: &[Change<'_>]) -> Result<Import, String> {
    let tables = changed(changes);
    let read = |only: Option<&str>| {
        let text = |name: &str| {
            let table = tables.iter().find(|(table, _)| table == name);
            Ok(table.map(|(_, text)| text.clone().into_bytes()))
        };
        let feed = Feed::parse("gulf", only, text)?;
        feed.import("g7", day.parse().unwrap(), &prices(), &terms())
    };
    let text = |import: Result<Import, Error>| import.map_err(|error| error.to_string());
    let (whole, only) = (text(read(None)), text(read(Some("g7"))));
    let said = |import: &Result<Import, String>| match import {
        Ok(import) => import.report().to_text(),
        Err(error) => error.clone(),
    };
    assert_eq!(said(&whole), said(&only));
    only
}

/// The sale and the report of an import without defects.
fn clean(changes: &[Change<'_>]) -> (SaleFile, String) {
    let import = import(changes).unwrap_or_else(|error| panic!("{changes:?}: {error}"));
    let (file, report) =
        import.accept(false).unwrap_or_else(|report| panic!("{}", report.to_text()));
    (file, report.to_text())
}

/// The times of a sale's stops: `HAP 07:20 07:30`.
fn times(file: &SaleFile) -> Vec<String> {
    let clock = |time: Option<ClockTime>| time.map_or("-".to_owned(), |time| time.to_string());
    let stop =
        |stop: &Stop| format!("{} {} {}", stop.stop, clock(stop.arrives), clock(stop.departs));
    file.stops.iter().map(stop).collect()
}

#[test]
fn a_row_that_has_nothing_to_do_with_the_trip_does_not_matter() {
    let (plain, _) = clean(&[]);
    for (table, row, note) in [
        ("stop_times.txt", "b2,25:61:00,25:61:00,OUL,1,\n", "line 9 (\"25:61:00\" is no time"),
        ("stop_times.txt", "b2,05:10,05:10,OUL,1,\n", "line 9 (\"05:10\" is no time"),
        (
            "stop_times.txt",
            "b1,14:00:00,14:00:00,TOR,3,10\n",
            "line 9 (pickup and drop-off types are",
        ),
        ("stop_times.txt", "b2,06:00:00,06:00:00,OUL,first,\n", "line 9 ("),
        (
            "stop_times.txt",
            "b2,06:00:00,06:00:00,OUL,1,0,more\n",
            "line 9 (it has 7 fields, the header 6)",
        ),
        (
            "stop_times.txt",
            "b2,06:00:00,06:00:00,OUL,1,\"0\nb2,07:00:00,07:00:00,KEM,2,0\n",
            "line 9 (",
        ),
        (
            "stops.txt",
            "YARD,Yard,\"64,9\",\"25,4\",,\n",
            "stops.txt: 1 row that is not needed cannot be read: line 7 (",
        ),
        (
            "stops.txt",
            "OULX,Oulu,65,25,,\nOULX,Oulu,65,25,,\n",
            "line 8 (\"OULX\" stands on line 7 already)",
        ),
        (
            "routes.txt",
            ",,\n",
            "routes.txt: 1 row that is not needed cannot be read: line 3 (it is blank)",
        ),
        ("routes.txt", "bus,G,bus\n", "line 3 ("),
        ("routes.txt", "bus,G,3\nbus,G,3\n", "line 4 (\"bus\" stands on line 3 already)"),
        (
            "trips.txt",
            "gulf,daily,b3,,5,6\n",
            "trips.txt: 1 row that is not needed cannot be read: line 4 (",
        ),
        ("trips.txt", "gulf,daily,b1,\n", "line 4 (\"b1\" stands on line 3 already)"),
        ("calendar.txt", "sundays,0,0,0,0,0,0,1,20260101,\n", "line 3 (a day must be"),
        ("calendar_dates.txt", "service_id,date,exception_type\nsundays,20260607,\n", "line 2 ("),
        (
            "agency.txt",
            "H,Europe/Helsinki,more\n",
            "agency.txt: 1 row that is not needed cannot be read: line 3 (",
        ),
        (
            "frequencies.txt",
            "trip_id,headway_secs\nb1,600,more\n",
            "frequencies.txt: 1 row that is",
        ),
        (
            "fare_attributes.txt",
            "fare_id,price,currency_type\nf,1,EUR,more\n",
            "fare_attributes.txt: 1 row that is",
        ),
    ] {
        let (file, report) = clean(&[(table, "", row)]);
        assert!(report.contains(note), "{table} {row}: {report}\nlacks {note}");
        assert_eq!(file, plain, "{row}");
    }
    let many = "b2,1:00,1:00,OUL,1,\n".repeat(30);
    let (_, report) = clean(&[("stop_times.txt", "", &many)]);
    let counted = "stop_times.txt: 30 rows that are not needed cannot be read: line 9 (\"1:00\" is no time of the form \
                   H:MM:SS), lines 10, 11, 12, 13, 14, 15, 16, 17, 18 and 20 more";
    assert!(report.contains(counted), "{report}");
}

#[test]
fn a_row_of_the_trip_must_be_right() {
    for (change, error) in [
        (
            ("stop_times.txt", "g7,07:35:00", "g7,07:35"),
            "stop_times.txt line 3 is malformed: \"07:35\" is no time",
        ),
        (
            ("stop_times.txt", "TOR,3,", "TOR,3,10"),
            "stop_times.txt line 4 is malformed: pickup and",
        ),
        (
            ("stop_times.txt", "TOR,3,", "TOR,3,0,more"),
            "stop_times.txt line 4 is malformed: it has 7 fields",
        ),
        (("stop_times.txt", "HAP,4,", "HAP,4,\"0"), "stop_times.txt line 5 is malformed"),
        (
            (
                "stop_times.txt",
                "",
                "b2,06:00:00,06:00:00,OUL,1,\"0\ng7,11:00:00,11:00:00,OUL,6,0\n",
            ),
            "line 9 is malformed",
        ),
        (
            (
                "stop_times.txt",
                "",
                "b2,06:00:00,06:00:00,\"OUL\ng7,11:00:00,11:00:00,OUL,6,0\nb2,1,1,KEM\",2,0\n",
            ),
            "line 9 is malformed: a quote in it is not closed",
        ),
        (("stops.txt", "65.7", "\"65,7\""), "stops.txt line 3 is malformed"),
        (
            ("stops.txt", "", "KEM,Kemi,65.7,24.6,,\n"),
            "stops.txt line 7 is malformed: \"KEM\" stands on line 3 already",
        ),
        (("routes.txt", ",2", ",train"), "routes.txt line 2 is malformed"),
        (("trips.txt", "g7,", "g7,,7,8"), "trips.txt line 2 is malformed: it has 6 fields"),
        (
            ("trips.txt", "", "gulf,daily,g7,\n"),
            "trips.txt line 4 is malformed: \"g7\" stands on line 2",
        ),
        (
            ("calendar.txt", "20261231", "2026-99"),
            "calendar.txt line 2 is malformed: a day must be",
        ),
        (
            ("calendar_dates.txt", "", "service_id,date,exception_type\ndaily,20260607,\n"),
            "calendar_dates.txt line 2",
        ),
        (
            ("frequencies.txt", "", "trip_id,headway_secs\ng7,600,more\n"),
            "frequencies.txt line 2 is malformed",
        ),
        (("agency.txt", "Helsinki", "Helsinki,more"), "agency.txt line 2 is malformed"),
        (
            ("agency.txt", "Europe/Helsinki", "Mars/Olympus"),
            "agency.txt line 2 is malformed: \"Mars/Olympus\" is no time zone",
        ),
        (
            ("stops.txt", "24.6,,", "24.6,Mars/Olympus,"),
            "stops.txt line 3 is malformed: \"Mars/Olympus\" is no time zone",
        ),
    ] {
        let found = import(&[change]).map(|import| import.report().to_text());
        let found = found.expect_err(&format!("{change:?} is taken"));
        assert!(found.contains(error), "{found}\nlacks {error}");
    }
}

#[test]
fn fields_that_a_row_lacks_at_its_end_are_blank() {
    let (plain, _) = clean(&[]);
    for (table, full, short) in [
        ("stops.txt", "OUL,Oulu,65.0,25.5,,", "OUL,Oulu"),
        ("stop_times.txt", "KEM,2,\n", "KEM,2\n"),
        ("trips.txt", "daily,g7,", "daily,g7"),
        ("stops.txt", "OUL,Oulu,65.0,25.5,,", "OUL,Oulu,65.0,25.5,,,,,"),
    ] {
        let (file, report) = clean(&[(table, full, short)]);
        assert_eq!(file, plain, "{short}");
        assert!(!report.contains("cannot be read"), "{report}");
    }
}

/// The defect of one train in two trips, or nothing.
fn same_train(changes: &[Change<'_>]) -> Option<String> {
    let import = import(changes).unwrap();
    let findings = &import.report().findings;
    assert!(findings.len() < 2, "{findings:?}");
    let defect = &findings.first()?.defect;
    assert_eq!(defect.kind(), "same_train");
    Some(defect.to_string())
}

#[test]
fn one_train_as_two_trips_is_known_by_its_places_and_times() {
    let trip = ("trips.txt", "", "gulf,daily,twin,\n");
    let copy = "twin,06:10:00,06:10:00,OUL,1,\ntwin,07:35:00,07:40:00,KEM,2,\ntwin,10:45:00,10:45:00,LUL,3,\n";
    let said = "train g7 runs as two trips: trips.txt line 2 (trip g7) and trips.txt line 4 (trip twin); the first \
                sells 10 journeys, the second 3; 7 only the first, 0 only the second";
    assert_eq!(
        same_train(&[trip, ("stop_times.txt", "", copy)]).as_deref(),
        Some(said),
        "without a number"
    );
    let ends = "twin,,06:10:00,OUL,1,\ntwin,10:45:00,,LUL,2,\n";
    assert!(same_train(&[trip, ("stop_times.txt", "", ends)]).is_some(), "only its ends");

    // The copy calls at stops of its own.
    let platforms = copy.replace("OUL", "p1").replace("KEM", "p2").replace("LUL", "p3");
    let platforms = ("stop_times.txt", "", platforms.as_str());
    for (how, rows) in [
        ("of the same names", "p1,OULU ,0,0,,\np2,Kemi,0,0,,\np3,Luleå,0,0,,\n"),
        (
            "whose stations have the names",
            "p1,Gl. 1,,,,s1\np2,Gl. 2,,,,s2\np3,Gl. 3,,,,s3\ns1,Oulu\ns2,Kemi\ns3,Luleå\n",
        ),
        ("whose station is the stop", "p1,Gl. 1,,,,OUL\np2,Gl. 2,,,,KEM\np3,Gl. 3,,,,LUL\n"),
    ] {
        let found = same_train(&[trip, platforms, ("stops.txt", "", rows)]);
        assert_eq!(found.as_deref(), Some(said), "{how}");
    }
    let suffixed = copy.replace("OUL", "OUL_G").replace("KEM", "KEM:2");
    let rows = "OUL_G,Oulu asema,0,0,,\nKEM:2,Kemi asema,0,0,,\n";
    let suffixes = [trip, ("stop_times.txt", "", &suffixed), ("stops.txt", "", rows)];
    assert_eq!(same_train(&suffixes).as_deref(), Some(said), "with suffixes");
    let numbers = ("trips.txt", "g7,\n", "g7,7\n");
    let numbered = ("trips.txt", "", "gulf,daily,twin,7\n");
    let found = same_train(&[
        numbers,
        numbered,
        platforms,
        ("stops.txt", "", "p1,Oulu\np2,Kemi\np3,Luleå\n"),
    ]);
    assert_eq!(found, Some(said.replace("train g7", "train 7")), "with a number");

    // The copy is of the night before, by whose clock it runs past midnight.
    let night = copy.replace(",06", ",30").replace(",07", ",31").replace(",10:45:00", ",34:45:00");
    assert_eq!(
        same_train(&[trip, ("stop_times.txt", "", &night)]).as_deref(),
        Some(said),
        "of the night"
    );
}

#[test]
fn two_trains_are_not_one() {
    let copy = "twin,06:10:00,06:10:00,OUL,1,\ntwin,07:35:00,07:40:00,KEM,2,\n";
    let trip = ("trips.txt", "", "gulf,daily,twin,\n");
    let never = ("trips.txt", "", "gulf,never,twin,\n");
    let numbers = [("trips.txt", "g7,\n", "g7,7\n"), ("trips.txt", "", "gulf,daily,twin,8\n")];
    let bus = [("routes.txt", "", "bus,G,3\n"), ("trips.txt", "", "bus,daily,twin,\n")];
    let elsewhere = copy.replace("KEM", "TOR");
    let later = copy.replace("07:35", "07:36").replace("07:40", "07:41");
    let gl = "p1,Gl. 1,,,,s1\np2,Gl. 2,,,,s2\ns1,Pello\ns2,Kolari\nGl,Gl. 1\n";
    for (how, changes) in [
        ("it runs on other days", vec![never, ("stop_times.txt", "", copy)]),
        ("it has another number", [&numbers[..], &[("stop_times.txt", "", copy)]].concat()),
        ("it is a bus", [&bus[..], &[("stop_times.txt", "", copy)]].concat()),
        ("it goes elsewhere", vec![trip, ("stop_times.txt", "", &elsewhere)]),
        ("it is slower", vec![trip, ("stop_times.txt", "", &later)]),
        (
            "platforms of other stations have the names",
            vec![
                trip,
                ("stops.txt", "OUL,Oulu", "OUL,Gl. 1"),
                ("stops.txt", "KEM,Kemi", "KEM,Gl. 2"),
                ("stops.txt", "", gl),
                ("stop_times.txt", "", "twin,,06:10:00,p1,1,\ntwin,,07:40:00,p2,2,\n"),
            ],
        ),
    ] {
        assert_eq!(same_train(&changes), None, "{how}");
    }
}

#[test]
fn a_header_is_what_is_wrong_where_a_column_is_not_there() {
    let separated = |table: &str, by: &str| {
        let (_, text) = TABLES.iter().find(|(name, _)| *name == table).unwrap();
        text.replace(',', by)
    };
    for (table, by, error) in [
        ("stops.txt", ";", "stops.txt has no column stop_id; it seems to be separated by ;"),
        (
            "stop_times.txt",
            ";",
            "stop_times.txt has no column trip_id; it seems to be separated by ;",
        ),
        ("trips.txt", "\t", "trips.txt has no column route_id; it seems to be separated by tabs"),
        (
            "calendar.txt",
            "|",
            "calendar.txt has no column service_id; it seems to be separated by |",
        ),
    ] {
        let (_, whole) = TABLES.iter().find(|(name, _)| *name == table).unwrap();
        assert_eq!(import(&[(table, whole, &separated(table, by))]).unwrap_err(), error);
    }
    for (table, column) in
        [("stops.txt", "stop_id"), ("routes.txt", "route_type"), ("agency.txt", "agency_timezone")]
    {
        let error = import(&[(table, column, "other")]).unwrap_err();
        assert_eq!(error, format!("{table} has no column {column}"));
    }
}

#[test]
fn times_are_by_the_clock_of_the_stop() {
    let swedish = [
        ("stops.txt", "LUL,Luleå,65.6,22.2,,", "LUL,Luleå,65.6,22.2,Europe/Stockholm,"),
        ("stops.txt", "HAP,Haparanda,65.8,24.1,,", "HAP,Haparanda,65.8,24.1,Europe/Helsinki,HAPS"),
        ("stops.txt", "", "HAPS,Haparanda,65.8,24.1,Europe/Stockholm,\n"),
    ];
    // An hour and a half on the way, so that the clock never runs back.
    let slow = ("stop_times.txt", "08:20:00,08:30:00", "09:20:00,09:30:00");
    let (file, report) = clean(&[&swedish[..], &[slow]].concat());
    let expected = [
        "OUL 06:10 06:10",
        "KEM 07:35 07:40",
        "TOR 08:05 08:10",
        "HAP 08:20 08:30",
        "LUL 09:45 09:45",
    ];
    assert_eq!(times(&file), expected, "the station's zone is that of its platforms");
    assert_eq!(file.closes_at.to_string(), "2026-06-03T03:10:00.000Z");
    for note in [
        "stops lie in other time zones than Europe/Helsinki, in which the feed's times are: Europe/Stockholm; each \
         stop's times are by its own clock",
        "leaves Oulu at 2026-06-03T06:10:00+03:00 (6:10:00) and reaches Luleå at 2026-06-03T09:45:00+02:00 (10:45:00)",
    ] {
        assert!(report.contains(note), "{report}\nlacks {note}");
    }
    assert!(!clean(&[]).1.contains("time zones"));
    // By Stockholm's clock it leaves on the day before.
    let night = ("stop_times.txt", "g7,06:10:00,06:10:00", "g7,00:20:00,00:20:00");
    let oulu = ("stops.txt", "OUL,Oulu,65.0,25.5,,", "OUL,Oulu,65.0,25.5,Europe/Stockholm,");
    let (file, _) = clean(&[&swedish[..], &[slow, oulu, night]].concat());
    assert_eq!(file.runs_on.map(|day| day.to_string()).as_deref(), Some("2026-06-02"));
    let expected = [
        "OUL 23:20 23:20",
        "KEM 31:35 31:40",
        "TOR 32:05 32:10",
        "HAP 32:20 32:30",
        "LUL 33:45 33:45",
    ];
    assert_eq!(times(&file), expected);
    assert_eq!(file.closes_at.to_string(), "2026-06-02T21:20:00.000Z");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a day, and the nights in which clocks change")]
fn a_clock_may_run_back_on_the_way() {
    let clocks = |day: &str, changes: &[Change<'_>]| {
        let tables = changed(changes);
        let text = |name: &str| {
            let table = tables.iter().find(|(table, _)| table == name);
            Ok(table.map(|(_, text)| text.clone().into_bytes()))
        };
        let feed = Feed::parse("gulf", None, text).unwrap();
        let mut reading = Reading {
            feed: &feed,
            trip: &feed.trips[0].1,
            day: day.parse().unwrap(),
            at: Place { at: String::new(), label: String::new() },
            findings: Findings::default(),
            notes: Vec::new(),
        };
        let calls = reading.calls();
        let clocks = reading.clocks(&calls, &service::zone("Europe/Helsinki").unwrap()).unwrap();
        let time = |time: Option<ClockTime>| time.unwrap().to_string();
        let text = |times: &LocalTimes| {
            let (arrives, departs) = (time(times.arrives), time(times.departs));
            format!("{} {arrives} {departs}", clocks::stop_zone(times).unwrap())
        };
        (clocks.runs_on.to_string(), clocks.calls.iter().map(text).collect::<Vec<_>>())
    };
    // Over the bridge of Tornio, in ten minutes and an hour back.
    let haparanda = ("stops.txt", "65.8,24.1,,\nLUL", "65.8,24.1,Europe/Stockholm,\nLUL");
    let (_, times) = clocks("2026-06-03", &[haparanda]);
    let expected = [
        "Europe/Helsinki 06:10 06:10",
        "Europe/Helsinki 07:35 07:40",
        "Europe/Helsinki 08:05 08:10",
        "Europe/Stockholm 07:20 07:30",
        "Europe/Helsinki 10:45 10:45",
    ];
    assert_eq!(times, expected);
    let (file, _) = clean(&[haparanda]);
    let zone = |stop: &Stop| file.zone_of(stop).map(ToString::to_string).unwrap_or_default();
    let stop = |stop: &Stop| format!("{} {}", zone(stop), stop.departs.unwrap());
    let sold: Vec<String> = file.stops.iter().map(stop).collect();
    let departs = |times: &String| times.rsplit_once(' ').map_or("", |(_, time)| time).to_owned();
    assert_eq!(
        sold.iter().map(departs).collect::<Vec<_>>(),
        expected.map(|it| departs(&it.to_owned()))
    );
    assert_eq!(sold[3], "Europe/Stockholm 07:30");
    let own = file.stops.iter().filter(|stop| stop.time_zone.is_some()).count();
    assert_eq!(own, 1, "the others have the zone of the event");
    // Just after midnight, back to the day before.
    let night = [
        ("stop_times.txt", "g7,06:10:00,06:10:00", "g7,00:05:00,00:05:00"),
        ("stop_times.txt", "g7,07:35:00,07:40:00", "g7,00:25:00,00:30:00"),
        ("stops.txt", "24.6,,", "24.6,Europe/Stockholm,"),
    ];
    let (runs_on, times) = clocks("2026-06-03", &night);
    let expected = ["Europe/Helsinki 24:05 24:05", "Europe/Stockholm 23:25 23:30"];
    assert_eq!((runs_on.as_str(), &times[..2]), ("2026-06-02", &expected.map(str::to_owned)[..]));
    // In the night in which the clock goes from four back to three.
    let autumn = [
        ("stop_times.txt", "g7,06:10:00,06:10:00", "g7,03:30:00,03:30:00"),
        ("stop_times.txt", "g7,07:35:00,07:40:00", "g7,04:10:00,05:10:00"),
    ];
    let (_, times) = clocks("2026-10-25", &autumn);
    let expected = ["Europe/Helsinki 03:30 03:30", "Europe/Helsinki 04:10 05:10"];
    assert_eq!(times[..2], expected, "the day counts from twelve hours before noon");
    let autumn = [
        ("stop_times.txt", "g7,06:10:00,06:10:00", "g7,27:30:00,27:30:00"),
        ("stop_times.txt", "g7,07:35:00,07:40:00", "g7,28:10:00,29:10:00"),
        ("stop_times.txt", "08:05:00,08:10:00", "30:05:00,30:10:00"),
        ("stop_times.txt", "08:20:00,08:30:00", "31:05:00,31:10:00"),
        ("stop_times.txt", "10:45:00,10:45:00", "31:45:00,31:45:00"),
    ];
    let (_, times) = clocks("2026-10-24", &autumn);
    let expected = ["Europe/Helsinki 27:30 27:30", "Europe/Helsinki 27:10 28:10"];
    assert_eq!(times[..2], expected);
}

#[test]
fn times_that_a_sale_cannot_have_are_left_out_with_a_note() {
    let late = ("stop_times.txt", "10:45:00,10:45:00", "149:09:00,149:10:00");
    let (file, report) = clean(&[late]);
    assert_eq!(times(&file)[4], "LUL - -");
    assert!(
        report.contains("2 times are left out, as they are past 99:59 of the train's first day"),
        "{report}"
    );
    let back = ("stop_times.txt", "07:35:00,07:40:00", "07:35:00,07:30:00");
    let (file, report) = clean(&[back]);
    assert_eq!(times(&file)[1], "KEM 07:35 -");
    assert!(
        report.contains("1 time is left out, as it is before the one that precedes it"),
        "{report}"
    );
}

#[test]
fn a_train_without_a_time_at_its_first_stop_is_asked_about_and_never_sold_after_its_day() {
    let first = ("stop_times.txt", "g7,06:10:00,06:10:00", "g7,,");
    let imported = import(&[first]).unwrap();
    let text = imported.report().to_text();
    for said in [
        "refused, 1 defects: untimed_start 1",
        "trips.txt line 2 (trip g7) has no time at its first stop: stop_times.txt line 2 (stop OUL of trip g7)",
        "--resolve: unless --closes-at is given, selling ends at 2026-06-03T04:35:00.000Z, its first known time",
    ] {
        assert!(text.contains(said), "{text}\nlacks {said}");
    }
    let (file, _) = imported.accept(true).unwrap();
    assert_eq!(file.closes_at.to_string(), "2026-06-03T04:35:00.000Z");

    let untimed = "trip_id,stop_id,stop_sequence\ng7,OUL,1\ng7,LUL,2\n";
    let imported = import(&[("stop_times.txt", TABLES[4].1, untimed)]).unwrap();
    let text = imported.report().to_text();
    assert!(
        text.contains("selling ends at 2026-06-02T21:00:00.000Z, when its day begins"),
        "{text}"
    );
    let (file, _) = imported.accept(true).unwrap();
    assert_eq!(file.closes_at.to_string(), "2026-06-02T21:00:00.000Z");

    let late = "trip_id,arrival_time,stop_id,stop_sequence\ng7,,OUL,1\ng7,24:20:00,LUL,2\n";
    let imported = import(&[("stop_times.txt", TABLES[4].1, late)]).unwrap();
    let text = imported.report().to_text();
    assert!(text.contains("selling ends at 2026-06-03T21:00:00.000Z, when its day ends"), "{text}");

    let last = ("stop_times.txt", "10:45:00,10:45:00", ",");
    assert!(clean(&[last]).1.contains("no time is known at the last stop, Luleå"));
}

/// A folder of the cases that lie beside the repository, or a message that it is missing.
fn case(name: &str) -> Option<PathBuf> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/field-cases");
    let folder = cases.join(name);
    if !folder.exists() {
        let _unread = writeln!(std::io::stderr(), "skipped: {name}: not there");
        return None;
    }
    Some(folder)
}

/// The import of a trip of such a folder, as the command has it.
fn of_case(folder: &Path, trip: &str) -> Result<Import, Error> {
    let feed = Feed::read(folder, Some(trip))?;
    let terms = Terms::opening("2026-11-28T00:00:00Z".parse().unwrap());
    feed.import(trip, "2026-12-05".parse().unwrap(), &prices(), &terms)
}

#[test]
fn cases_from_the_field_have_their_right_values() {
    let accepted = |folder: &Path, trip: &str| {
        let import =
            of_case(folder, trip).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        import.accept(false).unwrap_or_else(|report| panic!("{}", report.to_text()))
    };
    if let Some(folder) = case("gtfs-one-bad-row-of-another-trip") {
        for (case, note) in [
            (
                "comma-row",
                "routes.txt: 1 row that is not needed cannot be read: line 3 (it is blank)",
            ),
            (
                "dates-blank-exc",
                "calendar_dates.txt: 1 row that is not needed cannot be read: line 3 (",
            ),
            (
                "hhmm-other-trip",
                "stop_times.txt: 2 rows that are not needed cannot be read: line 8 (\"05:10\"",
            ),
            ("other-stop-bad-lat", "stops.txt: 1 row that is not needed cannot be read: line 6 ("),
            (
                "other-trip-bad-time",
                "stop_times.txt: 1 row that is not needed cannot be read: line 8 (\"25:61:00\"",
            ),
            (
                "other-trip-pickup-10",
                "stop_times.txt: 1 row that is not needed cannot be read: line 6 (pickup",
            ),
        ] {
            let (file, report) = accepted(&folder.join(case), "t1");
            let expected = ["A 08:00 08:00", "B 08:20 08:22", "C 08:50 08:52", "D 09:30 09:30"];
            assert_eq!(times(&file), expected, "{case}");
            assert!(report.to_text().contains(note), "{case}: {}", report.to_text());
        }
    }
    if let Some(folder) = case("gtfs-same-train-without-number") {
        for (case, trips) in [
            ("same-train-twice-no-number", ["92.T0.1.H", "10.T0.1.H"]),
            ("same-train-number-suffix-stops", ["X1", "X2"]),
        ] {
            for trip in trips {
                let report = of_case(&folder.join(case), trip).unwrap().accept(false).unwrap_err();
                assert_eq!(report.defects_by_kind, [("same_train", 1)].into(), "{case}: {trip}");
            }
        }
    }
    if let Some(folder) = case("gtfs-semicolons-name-the-wrong-cause") {
        let error = of_case(&folder.join("semicolons"), "t1").unwrap_err().to_string();
        assert_eq!(error, "stops.txt has no column stop_id; it seems to be separated by ;");
    }
    if let Some(folder) = case("gtfs-stop-timezone-not-read") {
        let (file, report) = accepted(&folder.join("stop-timezone"), "t1");
        assert_eq!(times(&file), ["LON 08:01 08:01", "EBB 08:19 08:20", "PAR 11:17 11:17"]);
        assert_eq!(file.closes_at.to_string(), "2026-12-05T08:01:00.000Z");
        assert!(report.to_text().contains("stops lie in other time zones"), "{}", report.to_text());
        let (file, report) = accepted(&folder.join("pkp-149"), "t1");
        assert_eq!(times(&file), ["A 08:00 08:00", "B - -", "D - -"]);
        assert!(report.to_text().contains("4 times are left out"), "{}", report.to_text());
    }
    if let Some(folder) = case("gtfs-untimed-first-stop") {
        let import = of_case(&folder.join("untimed-first"), "t1").unwrap();
        assert_eq!(import.report().defects_by_kind, [("untimed_start", 1)].into());
        let (file, _) = import.accept(true).unwrap();
        assert_eq!(file.closes_at.to_string(), "2026-12-05T07:20:00.000Z", "8:20 in Berlin");
    }
}
