//! The tests of this importer on small tables of their own.

use super::tiers::columns;
use super::*;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;

/// A train of two classes over three stops, with `changes` made: (table, what, by what).
fn tables(changes: &[(&str, &str, &str)]) -> Result<Tables, Error> {
    Tables::parse("folder", |name| {
        let text = match name {
            "trains.csv" => {
                "id,train_number,start_station,end_station,departure_time\n\
                 1,G1,北京,杭州,2023-06-01 09:56:00\n2,G2,北京,杭州,2023-06-01 10:56:00\n"
            }
            "stations.csv" => "id,code,name\n1,BJP,北京\n2,NJH,南京\n3,HGH,杭州\n",
            "train_stations.csv" => {
                "train_id,sequence,station_id,departure\n\
                 1,10,3,杭州\n1,01,1,北京\n1,2,2,南京\n2,1,1,北京\n2,2,3,杭州\n"
            }
            "carriages.csv" => {
                "train_id,carriage_number,carriage_type,seat_count\n1,10,2,3\n1,9,2,3\n1,1,0,2\n"
            }
            "seats.csv" => {
                "train_id,carriage_number,seat_number,seat_type\n\
                 1,10,01A,2\n1,10,01D,2\n1,10,02C,2\n\
                 1,9,01A,2\n1,9,01C,2\n1,9,01B,2\n1,1,01A,0\n1,1,01F,0\n"
            }
            "seat_types.csv" => "code,name\n0,商务座 business\n2,二等座\n13,无座 no seat\n",
            _ => {
                "train_id,departure,arrival,seat_type,price\n\
                 1,北京,南京,0,300\n1,北京,杭州,0,500\n1,南京,杭州,0,200\n1,北京,杭州,2,50\n"
            }
        };
        let mut text = text.to_owned();
        for (_, what, by) in changes.iter().filter(|(table, ..)| *table == name) {
            assert!(text.contains(what), "{name} has no {what}");
            text = text.replacen(what, by, 1);
        }
        Ok(text.into_bytes())
    })
}

fn read(changes: &[(&str, &str, &str)]) -> Import {
    let terms = Terms::opening(Timestamp::from_ms(0));
    tables(changes).unwrap().import("G1", &terms).unwrap()
}

#[test]
fn a_train_becomes_a_sale() {
    let (file, report) = read(&[]).accept(false).unwrap();
    assert_eq!((report.seats_read, report.seats_placed, report.seats_left_out), (8, 8, 0));
    assert_eq!(report.notes, ["tier t2: 2 of 3 journeys have no fare, so are not sold"]);
    assert_eq!(file.sale.as_str(), "g1-2023-06-01");
    assert_eq!(file.title, "G1 北京 → 杭州 2023-06-01");
    let stops: Vec<&str> = file.stops.iter().map(|stop| stop.stop.as_str()).collect();
    assert_eq!(stops, ["BJP", "NJH", "HGH"], "by sequence, as numbers");
    let sale = Sale::new(file).unwrap();
    let ids: Vec<&str> = sale.tiers().iter().map(|tier| tier.tier.as_str()).collect();
    assert_eq!(ids, ["business", "t2"]);
    let second = &sale.tiers()[1];
    let columns: Vec<&str> =
        second.layout.columns().iter().map(|c| c.as_deref().unwrap_or("_")).collect();
    assert_eq!(columns, ["A", "B", "C", "_", "D"]);
    let rows: Vec<String> = second
        .layout
        .rows()
        .iter()
        .map(|row| {
            let seats = row.places.names().map(|s| s.map_or("_".to_owned(), |s| s.to_string()));
            seats.collect::<Vec<_>>().join(" ")
        })
        .collect();
    // Coach 9 stands before coach 10, and a blank row between them.
    assert_eq!(rows, ["9-01A 9-01B 9-01C _ _", "", "10-01A _ _ _ 10-01D", "_ _ 10-02C _ _"]);
}

#[test]
fn the_aisle_lies_before_the_first_letter_from_d_on() {
    for (letters, expected) in [
        ("ABCDF", "ABC_DF"),
        ("ACDF", "AC_DF"),
        ("ACF", "AC_F"),
        ("AF", "A_F"),
        ("AB", "AB"),
        ("DF", "DF"),
    ] {
        let columns = columns(&letters.chars().collect());
        let text: String = columns.iter().map(|letter| letter.unwrap_or('_')).collect();
        assert_eq!(text, expected);
    }
}

#[allow(clippy::too_many_lines, reason = "a table of cases")]
#[test]
fn each_defect_is_named_with_its_places_and_its_remedy() {
    type Change = (&'static str, &'static str, &'static str);
    let cases: [(&[Change], &str, &str); 17] = [
        // One seat in two classes: the one that the coach has is believed.
        (
            &[("seats.csv", "1,1,01A,0\n", "1,1,01A,2\n1,1,01A,0\n")],
            "seat 1-01A is duplicated: seats.csv line 8 (coach 1, seat 01A, class 2) and seats.csv line 9 (coach 1, seat 01A, class 0)",
            "seats.csv line 8 (coach 1, seat 01A, class 2) is left out (1 seat)",
        ),
        // Otherwise the first.
        (
            &[("seats.csv", "1,1,01A,0\n", "1,1,01A,0\n1,1,01A,0\n")],
            "seats.csv line 8 (coach 1, seat 01A, class 0) and seats.csv line 9",
            "seats.csv line 9 (coach 1, seat 01A, class 0) is left out (1 seat)",
        ),
        (
            &[("seats.csv", "1,10,02C", "1,10,1D")],
            "two seats lie at one point: seats.csv line 3 (coach 10, seat 01D, class 2) and seats.csv line 4",
            "is left out (1 seat)",
        ),
        (
            &[("seats.csv", "1,10,02C", "1,10,upper berth")],
            "seats.csv line 4 (coach 10, seat upper berth, class 2) has no usable key",
            "is left out (1 seat)",
        ),
        (
            &[("seats.csv", "1,1,01F,0", "1,1,01F,2")],
            "carriages.csv line 4 (coach 1, class 0) and seats.csv line 9 (coach 1, seat 01F, class 2) disagree",
            "each seat's own class decides",
        ),
        (
            &[("carriages.csv", "1,1,0,2\n", "")],
            "seats.csv line 8 (coach 1, seat 01A, class 0) names coach 1, which is not declared",
            "the coach is real",
        ),
        (
            &[("carriages.csv", "1,1,0,2\n", "1,1,0,3\n")],
            "the coach should have 3 seats and has 2",
            "the seats that are listed are sold",
        ),
        (
            &[("carriages.csv", "1,1,0,2\n", "1,1,0,2\n1,1,0,2\n")],
            "coach 1 is declared twice: carriages.csv line 4 (coach 1, class 0) and carriages.csv line 5",
            "carriages.csv line 5 (coach 1, class 0) is left out",
        ),
        (
            &[("seat_types.csv", "2,二等座\n", "")],
            "names class 2, which is not declared",
            "it is called class 2",
        ),
        (
            &[("seat_types.csv", "2,二等座\n", "2,二等座\n2,硬座\n")],
            "class 2 is declared twice: seat_types.csv line 3 (二等座) and seat_types.csv line 4 (硬座)",
            "it is called 二等座",
        ),
        (
            &[("prices.csv", "1,北京,杭州,2", "1,北京,杭州,13")],
            "class 13 has 1 fares and no seat; the first: prices.csv line 5 (北京 to 杭州, class 13)",
            "train G1 (class 13) is left out",
        ),
        (
            &[("prices.csv", "1,北京,杭州,2", "1,北京,杭州,13")],
            "class 2 has 6 seats and no fare; the first: seats.csv line 2",
            "train G1 (class 2) is left out (6 seats)",
        ),
        (
            &[("prices.csv", "1,南京,杭州,0", "1,杭州,南京,0")],
            "prices.csv line 4 (杭州 to 南京, class 0) is no journey of this train",
            "is left out",
        ),
        (
            &[("prices.csv", "1,南京,杭州,0,200", "1,北京,杭州,0,500")],
            "prices.csv line 3 (北京 to 杭州, class 0) and prices.csv line 4",
            "is left out",
        ),
        (
            &[("train_stations.csv", "1,2,2,南京", "1,01,2,南京")],
            "train_stations.csv line 3 (stop 1, 北京) and train_stations.csv line 4 (stop 1, 南京)",
            "train_stations.csv line 4 (stop 1, 南京) is left out",
        ),
        (
            &[("train_stations.csv", "1,2,2,南京", "1,2,3,南京")],
            "train_stations.csv line 4 (stop 2, 南京) and stations.csv line 3 (station 2, 南京) disagree: the stop says station 3",
            "the name 南京 decides",
        ),
        (
            &[("trains.csv", "1,G1,北京", "1,G1,北京南")],
            "trains.csv line 2 (train G1) and train_stations.csv line 3 (stop 1, 北京) disagree: the train starts at 北京南",
            "train_stations.csv decides",
        ),
    ];
    for (changes, defect, remedy) in cases {
        let import = read(changes);
        let text = import.report().to_text();
        assert!(
            text.contains(defect) && text.contains(remedy),
            "{text}\nlacks {defect} / {remedy}"
        );
        let report = import.report().clone();
        assert_eq!(report.seats_read, report.seats_placed + report.seats_left_out, "{text}");
        assert_eq!(read(changes).accept(false).unwrap_err().outcome, Outcome::Refused);
        assert_eq!(import.accept(true).unwrap().1.outcome, Outcome::Resolved, "{text}");
    }
}

#[test]
fn what_nothing_resolves_is_refused_with_consent_too() {
    let cases = [
        (("train_stations.csv", "1,10,3,杭州\n1,01,1,北京\n", ""), "1 stops"),
        (("stations.csv", "2,NJH,南京\n", ""), "names station \"南京\", which is not declared"),
        (("stations.csv", "2,NJH,南京\n", "2,,南京\n"), "has no usable key: stop id"),
        (
            ("stations.csv", "2,NJH,南京\n", "2,BJP,南京\n"),
            "the code BJP is declared twice: train_stations.csv line 3 (stop 1, 北京) and train_stations.csv line 4 (stop 2, 南京)",
        ),
    ];
    for (change, defect) in cases {
        let refused = read(&[change]).accept(true).unwrap_err();
        assert!(refused.to_text().contains(defect), "{}", refused.to_text());
    }
    let terms = Terms::opening(Timestamp::from_ms(0));
    let other = tables(&[]).unwrap().import("G2", &terms).unwrap().accept(true).unwrap_err();
    assert!(other.to_text().contains("trains.csv line 3 (train G2) has no seats"));
}

#[test]
fn a_train_is_found_by_its_number_alone() {
    let terms = Terms::opening(Timestamp::from_ms(0));
    let absent = tables(&[]).unwrap().import("G3", &terms).unwrap_err().to_string();
    assert_eq!(absent, "there is no train G3; there are G1, G2");
    let twice = tables(&[("trains.csv", "2,G2", "2,G1")]).unwrap();
    let twice = twice.import("G1", &terms).unwrap_err().to_string();
    assert_eq!(twice, "train G1 is duplicated: trains.csv lines 2 and 3");
}

#[test]
fn padding_marks_and_line_ends_do_not_matter() {
    let padded = Tables::parse("folder", |name| {
        let text = match name {
            "stations.csv" => {
                "\u{feff} id , code,name \r\n1 , BJP,  北京 \r\n\r\n2,NJH,南京\r\n3,HGH,杭州\r\n"
            }
            _ => return Ok(header_of(name)),
        };
        Ok(text.as_bytes().to_vec())
    });
    let stations = padded.unwrap().stations;
    assert_eq!(stations.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4, 5]);
    assert_eq!((stations[0].1.code.as_str(), stations[0].1.name.as_str()), ("BJP", "北京"));
}

/// The smallest text of a table that the case does not look at: its header line.
fn header_of(name: &str) -> Vec<u8> {
    match name {
        "trains.csv" => "id,train_number,start_station,end_station,departure_time\n",
        "train_stations.csv" => "train_id,sequence,station_id,departure\n",
        "carriages.csv" => "train_id,carriage_number,carriage_type,seat_count\n",
        "seats.csv" => "train_id,carriage_number,seat_number,seat_type\n",
        "seat_types.csv" => "code,name\n",
        _ => "train_id,departure,arrival,seat_type,price\n",
    }
    .into()
}

#[test]
fn what_is_no_table_is_an_error_with_its_line() {
    let cases = [
        (("carriages.csv", "1,9,2,3", "1,9,2,many"), "carriages.csv line 3 is malformed"),
        (("prices.csv", "1,北京,杭州,2,50", "1,北京,杭州,2"), "prices.csv line 5 is malformed"),
        (("train_stations.csv", "1,01,1", "1,-1,1"), "train_stations.csv line 3 is malformed"),
        (("prices.csv", "price", "cost"), "prices.csv has no column price"),
        (
            ("stations.csv", "id,code,name", "id;code;name"),
            "stations.csv has no column id; it seems to be separated by ;",
        ),
        (("seats.csv", "1,10,01A,2", "1,10,\"01A,2"), "seats.csv line 2 is malformed"),
        (("stations.csv", "2,NJH,南京", "2,NJH,南京,more"), "stations.csv line 3 is malformed"),
        (("seat_types.csv", "2,二等座", "2,二等座,more"), "seat_types.csv line 3 is malformed"),
        (("trains.csv", "1,G1", "1,G1,more"), "trains.csv line 2 is malformed"),
    ];
    let terms = Terms::opening(Timestamp::from_ms(0));
    for (change, expected) in cases {
        let imported = tables(&[change]).and_then(|tables| tables.import("G1", &terms));
        let error = imported.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = Tables::parse("folder", |_| Ok(b"\xff\xfe,\x00".to_vec())).unwrap_err();
    assert!(error.to_string().contains("malformed"), "{error}");
    let absent = Tables::read(Path::new("no-such-folder")).unwrap_err();
    assert!(absent.to_string().contains("cannot read no-such-folder/trains.csv"), "{absent}");
}

#[test]
fn a_row_of_another_train_does_not_matter() {
    let (plain, _) = read(&[]).accept(false).unwrap();
    for (table, what, by, line) in [
        ("trains.csv", "2,G2", "2,G2,more", 3),
        ("train_stations.csv", "2,1,1,北京", "2,first,1,北京", 5),
        ("carriages.csv", "1,1,0,2\n", "1,1,0,2\n2,1,0,two\n", 5),
        ("seats.csv", "1,1,01F,0\n", "1,1,01F,0\n2,1,01A,0,more\n", 10),
        ("prices.csv", "1,北京,杭州,2,50\n", "1,北京,杭州,2,50\n2,北京,杭州,2,\"0,5\"\n", 6),
        ("stations.csv", "3,HGH,杭州\n", "3,HGH,杭州\n4,SHH,上海,more\n", 5),
        ("seat_types.csv", "13,无座 no seat\n", "13,无座 no seat\n,\n", 5),
    ] {
        let (file, report) = read(&[(table, what, by)]).accept(false).unwrap();
        assert_eq!(file, plain, "{by}");
        let note = format!("{table}: 1 row that is not needed cannot be read: line {line} (");
        assert!(report.notes[0].starts_with(&note), "{:?}", report.notes);
    }
    // What a row lacks at its end is blank.
    let short = ("train_stations.csv", "departure\n", "departure,arrival_time,departure_time\n");
    assert_eq!(read(&[short]).accept(false).unwrap().0, plain);
}
