//! Each defect is planted into a publication in which nothing is wrong, and must be named.

use std::fs;

use engine::domain::admission::room::draw::{BeaconChain, NamedRound, Source, Terms};
use engine::domain::admission::room::log::{Entry, Record};
use engine::domain::admission::room::serving::{Command, Event, Room};
use engine::domain::admission::room::tree;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::time::Timestamp;
use shared::beacon::{Chain, Chains};

use super::fixture::*;
use super::publication::{
    ADMISSIONS, Admission, Counted, LEAVES, ORDERS, OperatorsSeats, OrderLine, Publication,
};
use super::report::{Because, DecidedBy, Report, Verdict};
use super::violation::Violation;
use super::watch::Watch;
use super::witness::{Error, Sighting};
use super::{Own, Seen};

/// The chains of the fixtures: quicknet, and that of one machine.
fn chains() -> Chains {
    Chains::with([Chain { rounds: fake_beacon::rounds(), key: fake_beacon::key() }])
}

/// The report on a publication, of which somebody saw these hashes.
fn verify(publication: &Publication, seen: &[Hash], own: Option<&Own>) -> Report {
    let seen = Seen { hashes: seen.to_vec(), ..Seen::default() };
    super::verify(publication, &chains(), &seen, own)
}

/// The violations of a publication, without repetitions of one kind, where each admission has its order.
fn kinds(publication: &Publication) -> Vec<String> {
    let orders = Some(orders(&publication.admissions));
    let publication = Publication { orders, ..publication.clone() };
    kinds_of(&verify(&publication, &[], None).violations)
}

fn kinds_of(violations: &[Violation]) -> Vec<String> {
    let kind = |violation| {
        let json = serde_json::to_value(violation).unwrap();
        json["violation"].as_str().unwrap().to_owned()
    };
    let mut kinds: Vec<String> = violations.iter().map(kind).collect();
    kinds.dedup();
    kinds
}

fn admitted(publication: &mut Publication, index: u32) -> &mut Admission {
    publication.admissions.iter_mut().find(|admission| admission.index == index).unwrap()
}

/// Changes records and gives each the hash of the one before again.
fn forged(records: &[Record], change: impl FnOnce(&mut [Record])) -> Vec<String> {
    let mut records = records.to_vec();
    change(&mut records);
    rechain(&mut records);
    log(&records)
}

#[test]
fn a_correct_publication_keeps_the_rules() {
    for (has_beacon, source, decided_by, because) in [
        (true, by_beacon(), DecidedBy::Beacon { round: 1000 }, Because::NotSeen),
        (false, Source::Secret(secret()), DecidedBy::Secret, Because::Secret),
    ] {
        let (publication, records) = publication_by(has_beacon, source);
        let report = verify(&publication, &[], None);
        assert!(report.violations.is_empty(), "{report}");
        assert_eq!((report.verdict, report.because), (Verdict::NotWitnessed, Some(because)));
        assert_eq!((report.records, report.turns), (204, 203));
        let group = &report.groups[0];
        assert_eq!((group.count, group.held, group.due_of_nobody), (2_500, 2_475, 25));
        assert_eq!((group.later_windows, group.due, group.admitted), (1, 2_520, 846));
        assert_eq!(group.decided_by, Some(decided_by));
        assert!(report.to_string().contains("2,475 of them held"), "{report}");
        let stock = report.stock.unwrap();
        assert_eq!((stock.held, stock.operators, stock.left), (846, 0, STOCK - 846));
        assert_eq!(records.len(), 204);
    }
    let report = verify(&publication().0, &[], None).to_string();
    let curl = "curl https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/1000";
    assert!(report.contains(curl) && report.contains("is out at 2023-08-23T15:59:24"), "{report}");
    assert!(report.ends_with("that the root came first is the operator's word."), "{report}");
}

/// Logs of rooms that were published before are checked by their rules.
#[test]
fn a_room_of_before_keeps_the_rules_of_before_and_is_never_witnessed() {
    let good = publication_of_before();
    let report = verify(&good, &[], None);
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.because, Some(Because::RulesOfBefore));
    assert!(report.to_string().ends_with("not verifiable against the operator."), "{report}");
    assert_eq!(report.groups[0].decided_by, Some(DecidedBy::Beacon { round: 1000 }));
}

/// What a watcher signs that was shown this record.
fn saw(watch: &Watch, hash: Hash, at_ms: i64) -> Sighting {
    let address = "https://tickets.example/sales/fixture/room";
    watch.sign(hash, Timestamp::from_ms(at_ms), address)
}

fn witnessed(publication: &Publication, by: &[&Watch], sightings: &[Sighting]) -> Report {
    let watchers = by.iter().map(|watching| watching.key()).collect();
    let seen = Seen { watchers, sightings: sightings.to_vec(), ..Seen::default() };
    super::verify(publication, &chains(), &seen, None)
}

#[test]
fn a_draw_is_witnessed_by_those_who_saw_the_root_before_the_round_and_by_nobody_else() {
    let (good, records) = publication();
    let (ann, bob) = (Watch::new().unwrap(), Watch::new().unwrap());
    let (closing, draw) = (records[2].hash(), records[3].hash());
    let out = OPENS_MS - 60_000;
    let right = saw(&ann, closing, out - 1);
    assert_eq!(witnessed(&good, &[&ann], std::slice::from_ref(&right)).verdict, Verdict::Witnessed);
    let both = [right.clone(), saw(&bob, closing, out - 90_000)];
    assert_eq!(witnessed(&good, &[&ann, &bob], &both).verdict, Verdict::Witnessed);
    for (by, sightings) in [
        (vec![], vec![right.clone()]),
        (vec![&ann], vec![]),
        (vec![&bob], vec![right.clone()]),
        (vec![&ann, &bob], vec![right.clone()]),
        (vec![&ann], vec![saw(&ann, closing, out)]),
        (vec![&ann], vec![saw(&ann, records[1].hash(), out - 1)]),
    ] {
        let report = witnessed(&good, &by, &sightings);
        let found = (report.verdict, report.because);
        assert_eq!(found, (Verdict::NotWitnessed, Some(Because::NotSeen)), "{sightings:?}");
    }
    // The draw covers the closing, but by its time the round was out; a later record seen before it would do.
    let later = witnessed(&good, &[&ann], &[saw(&ann, draw, out - 1)]);
    assert_eq!(later.verdict, Verdict::Witnessed);
    // Another root was shown to somebody: two roots to two crowds.
    let other = witnessed(&good, &[&ann], &[right.clone(), saw(&ann, Hash([9; 32]), out - 1)]);
    assert_eq!(other.violations, [Violation::Unseen { hash: Hash([9; 32]) }]);
    // Of another sale it says nothing of this one.
    let elsewhere = Sighting {
        address: "https://tickets.example/sales/another/room".to_owned(),
        ..saw(&ann, Hash([9; 32]), out - 1)
    };
    assert_eq!(witnessed(&good, &[&ann], &[right, elsewhere]).verdict, Verdict::Witnessed);
}

#[test]
fn lines_of_watchers_count_with_their_signature() {
    let (ann, bob) = (Watch::new().unwrap(), Watch::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched.jsonl");
    let line = |sighting: &Sighting| serde_json::to_string(sighting).unwrap() + "\n";
    let right = saw(&ann, Hash([7; 32]), 5);
    fs::write(&file, line(&right) + &line(&saw(&bob, Hash([8; 32]), 6))).unwrap();
    assert_eq!(Sighting::read(&file, &[ann.key()]).unwrap(), std::slice::from_ref(&right));
    for forged in [
        Sighting { at_ms: 4, ..right.clone() },
        Sighting { hash: Hash([8; 32]), ..right.clone() },
        Sighting { address: String::new(), ..right.clone() },
        Sighting { signature: saw(&bob, Hash([7; 32]), 5).signature, ..right.clone() },
        Sighting { signature: "0".to_owned(), ..right.clone() },
    ] {
        fs::write(&file, line(&right) + &line(&forged)).unwrap();
        let found = Sighting::read(&file, &[ann.key()]);
        assert!(matches!(found, Err(Error::Forged { line: 2, .. })), "{found:?}");
        // Nobody trusts whoever signs so.
        assert_eq!(Sighting::read(&file, &[bob.key()]).unwrap(), []);
    }
}

/// The right publication, and the check of a planted one, which somebody honest has watched: it is wrong, by this kind of
/// violation.
fn planting() -> (Publication, Vec<Record>, impl Fn(&str, &Publication, &str)) {
    let (good, records) = publication();
    let watching = Watch::new().unwrap();
    let honest = [saw(&watching, records[2].hash(), OPENS_MS - 60_001)];
    let check = move |publication: &Publication| witnessed(publication, &[&watching], &honest);
    assert_eq!(check(&good).verdict, Verdict::Witnessed, "the control");
    let wrong = move |name: &str, publication: &Publication, kind: &str| {
        let report = check(publication);
        let kinds = kinds_of(&report.violations);
        assert_eq!(report.verdict, Verdict::Wrong, "{name}: {report}");
        assert!(kinds.iter().any(|found| found == kind), "{name}: {kinds:?}");
    };
    (good, records, wrong)
}

/// What an operator leaves out shows in the stock.
#[test]
fn admissions_and_records_that_were_left_out_are_named() {
    let (good, records, wrong) = planting();
    let ann = Watch::new().unwrap();
    let honest = saw(&ann, records[2].hash(), OPENS_MS - 60_001);
    let by_ann =
        |publication: &Publication| witnessed(publication, &[&ann], std::slice::from_ref(&honest));
    // An admission left out: its order is there; with its order, seats are missing.
    let mut out = good.clone();
    let left_out = out.admissions.remove(5);
    wrong("an admission left out", &out, "no_admission");
    let of_it = |order: &OrderLine| order.index == Some(left_out.index);
    out.orders.as_mut().unwrap().orders.retain(|order| !of_it(order));
    wrong("and its order", &out, "stock");
    let mut out = good.clone();
    out.admissions.clear();
    wrong("all admissions left out", &out, "no_admission");
    out.orders.as_mut().unwrap().orders.clear();
    wrong("and all orders", &out, "stock");
    wrong("no orders at all", &Publication { orders: None, ..good.clone() }, "no_orders");
    // Seats that somebody has without a place are the operator's only by their name.
    let mut house = good.clone();
    let orders = house.orders.as_mut().unwrap();
    let seats = OrderLine { group: None, index: None, turn: None, operator: None, seat_legs: 4 };
    orders.counted.left -= 4;
    orders.orders.push(seats);
    wrong("seats of nobody", &house, "no_admission");
    let orders = house.orders.as_mut().unwrap();
    orders.orders.last_mut().unwrap().operator = Some(OperatorsSeats::House);
    let report = by_ann(&house);
    assert_eq!((report.verdict, report.stock.unwrap().operators), (Verdict::Witnessed, 4));
    // The last records cut: what refers to them is unknown, and who watched to the end misses the last.
    let mut cut = good.clone();
    cut.log.truncate(20);
    wrong("last records cut", &cut, "unknown");
    cut.admissions.retain(|admission| admission.turn < 20);
    cut.orders = Some(orders_of(&cut.admissions));
    let to_the_end = [honest.clone(), saw(&ann, records[203].hash(), OPENS_MS + 200_000)];
    let report = witnessed(&cut, &[&ann], &to_the_end);
    assert_eq!(report.violations, [Violation::Unseen { hash: records[203].hash() }]);
}

/// What an operator writes into the log is no draw by the rules, or another log than was watched.
#[test]
fn a_draw_that_was_steered_is_named() {
    let (good, records, wrong) = planting();
    // What is planted into the log of a turn and all that follow is made anew.
    let planted = |change: &dyn Fn(usize, &mut Record)| {
        let mut made = records.clone();
        made.iter_mut().enumerate().for_each(|(at, record)| change(at, record));
        rechain(&mut made);
        Publication { log: log(&made), admissions: Vec::new(), orders: None, ..good.clone() }
    };
    let times = |at: usize, by_ms: i64| {
        planted(&|number, record| {
            if number == at {
                record.at_ms += by_ms;
            }
        })
    };
    wrong("closing early", &times(2, -25_000), "record");
    wrong("closing back-dated behind the record before", &times(2, -200_000), "record");
    wrong("record 0 afterwards", &times(0, 4_800_000), "record");
    let room = |change: &dyn Fn(&mut Room)| {
        planted(&|number, record| {
            if let (0, Entry::Published(room)) = (number, &mut record.entry) {
                change(room);
            }
        })
    };
    let Terms::Beacon(named) = self::room(true).draw else { panic!() };
    let draw = |draw: Terms| room(&move |room| room.draw = draw);
    let round = |round| draw(Terms::Beacon(NamedRound { round, ..named }));
    wrong("a stale round", &round(900), "record");
    wrong("a later round", &round(1_001), "record");
    wrong("other times", &draw(Terms::Beacon(NamedRound { genesis: 0, ..named })), "record");
    wrong("a secret instead", &draw(Terms::Secret(Hash([9; 32]))), "record");
    wrong("more stock", &room(&|room| room.stock = Some(STOCK + 1)), "unseen");
    // The log is made anew from record 0, at the time of the closing or as if before: only a watcher can tell.
    let mut other = records[0].clone();
    other.at_ms += 1_000;
    let mut made = records.clone();
    made[0] = other;
    rechain(&mut made);
    let again = published(&made, closing().seed(&sale(), &group(), &by_beacon()));
    assert_eq!(verify(&again, &[], None).verdict, Verdict::NotWitnessed);
    wrong("a log made anew", &again, "unseen");
}

fn orders_of(admissions: &[Admission]) -> super::publication::Orders {
    orders(admissions)
}

#[test]
fn a_late_closing_is_decided_by_the_series_and_never_witnessed() {
    let Terms::Beacon(named) = local_room().draw else { panic!() };
    let ann = Watch::new().unwrap();
    for (late_ms, looks) in [(-1, 0), (0, 1), (200_000, 2), (400_000, 3)] {
        let closed_ms = named.time_ms(named.round) + late_ms;
        let (publication, records) = publication_closed_at(closed_ms);
        let report = witnessed(&publication, &[&ann], &[saw(&ann, records[2].hash(), closed_ms)]);
        assert!(report.violations.is_empty(), "{report}");
        assert_eq!(report.groups[0].round.map(|round| round.looks), Some(looks), "{late_ms}");
        let late = (Verdict::NotWitnessed, Some(Because::Late));
        let expected = if looks == 0 { (Verdict::Witnessed, None) } else { late };
        assert_eq!((report.verdict, report.because), expected, "{late_ms}: {report}");
    }
}

#[test]
fn a_beacon_that_is_given_up_is_never_witnessed() {
    let room = local_room();
    let Terms::Beacon(named) = room.draw else { panic!() };
    let closed_ms = room.settings.closes_at_ms;
    let randomness = Hash([9; 32]);
    let given_up = |after_ms: i64| {
        let command = Command::BeaconGivenUp { by: "Ann".to_owned(), randomness };
        let times = (closed_ms, named.time_ms(named.round) + after_ms);
        records_of(&room, closing(), times, Event::Command(command))
    };
    let records = given_up(3_600_000);
    let seed = closing().seed_after_giving_up(&sale(), &group(), randomness);
    let ann = Watch::new().unwrap();
    let good = published(&records, seed);
    let report = witnessed(&good, &[&ann], &[saw(&ann, records[2].hash(), closed_ms)]);
    assert!(report.violations.is_empty(), "{report}");
    assert_eq!(report.because, Some(Because::GivenUp));
    assert!(report.to_string().contains("as Ann gave the beacon up"), "{report}");
    // A second too early.
    let mut early = records;
    early[3].at_ms -= 1;
    rechain(&mut early);
    let report = verify(&published(&early, seed), &[], None);
    assert!(report.to_string().contains("an hour after its round"), "{report}");
}

#[test]
fn leaves_that_were_changed_are_named() {
    let (good, _) = publication();
    let mut swapped = good.clone();
    swapped.chunks[1].leaves.swap(10, 11);
    let report = verify(&swapped, &[], None);
    assert_eq!(kinds_of(&report.violations), ["chunk", "root"]);
    assert_eq!(report.violations[0], Violation::Chunk { group: group(), chunk: 1 });

    let mut dropped = good.clone();
    dropped.chunks[2].leaves.pop();
    let report = verify(&dropped, &[], None);
    assert_eq!(kinds_of(&report.violations), ["chunk", "leaves", "root"]);
    assert!(
        report.to_string().contains("2499 leaves, and 2500 had joined: entries were dropped"),
        "{report}"
    );

    let mut emptied = good.clone();
    emptied.chunks[0].leaves[3] = tree::empty_leaf();
    assert_eq!(kinds(&emptied), ["chunk", "root", "empty"], "who was dropped was admitted");

    let mut late = good.clone();
    late.chunks[2].leaves.push(tree::leaf(b"late"));
    let report = verify(&late, &[], None);
    assert_eq!(kinds_of(&report.violations), ["chunk", "leaves", "root"]);
    assert!(report.to_string().contains("somebody joined late"), "{report}");

    // Also if all of the tree is made anew.
    let mut leaves = leaves();
    leaves[7] = tree::leaf(b"given away afterwards");
    let replaced = Publication { chunks: chunks(&leaves), ..good.clone() };
    assert_eq!(kinds(&replaced), ["chunk", "root"]);
    let mut missing = good;
    missing.chunks.remove(1);
    // The leaves behind it stand at other indices now, some empty ones where somebody was admitted.
    assert_eq!(kinds(&missing), ["chunk", "leaves", "root", "empty"]);
}

#[test]
fn admissions_that_were_not_due_are_named() {
    let (good, records) = publication();
    let windows = windows(&records, &by_beacon());
    let planted = |change: &dyn Fn(&mut Publication)| {
        let mut publication = good.clone();
        change(&mut publication);
        kinds(&publication)
    };
    // Two have each other's place.
    let swapped = planted(&|all| {
        let (one, other) = (admitted(all, 3).place, admitted(all, 6).place);
        (admitted(all, 3).place, admitted(all, 6).place) = (other, one);
    });
    assert_eq!(swapped, ["place"]);
    // An index that nobody held, at its place and time.
    assert!(!is_held(7));
    let empty = admission(7, &windows, &records);
    assert_eq!(planted(&|all| all.admissions.push(empty.clone())), ["empty"]);
    // Before the turn.
    assert_eq!(planted(&|all| admitted(all, 3).turn -= 1), ["early"]);
    // After the place had run out.
    let first = (0..JOINED).find(|index| windows[0].place(*index) == Some(0)).unwrap();
    let late = Admission { turn: 203, ..admission(first, &windows, &records) };
    let run_out = planted(&|all| {
        all.admissions.retain(|admission| admission.index != first);
        all.admissions.push(late.clone());
    });
    assert_eq!(run_out, ["run_out"]);
    // Who joined later was in no draw yet; and there is nobody beyond the last index.
    assert_eq!(planted(&|all| admitted(all, JOINED).turn = 10), ["not_drawn"]);
    let beyond = Admission { index: JOINED + LATER, ..empty.clone() };
    assert_eq!(planted(&|all| all.admissions.push(beyond.clone())), ["not_drawn"]);
    assert_eq!(planted(&|all| all.admissions.push(all.admissions[0].clone())), ["twice"]);
    assert_eq!(planted(&|all| admitted(all, 3).turn = 204), ["unknown"]);
    let other = planted(&|all| admitted(all, 3).group = "fans".parse().unwrap());
    assert_eq!(other, ["unknown"]);
}

#[test]
fn a_log_that_was_changed_is_named() {
    let (good, records) = publication();
    let free = |record: &mut Record, free| {
        let Entry::Turn { given, .. } = &mut record.entry else { panic!() };
        given.free = Some(free);
    };
    // Another number, and nothing else.
    let mut changed = records.clone();
    free(&mut changed[20], 11);
    let changed = Publication { log: log(&changed), ..good.clone() };
    let report = verify(&changed, &[], None);
    assert_eq!(kinds_of(&report.violations), ["chain", "arithmetic"]);
    assert_eq!(report.violations[0], Violation::Chain { number: 21 });
    assert_eq!(report.violations[1], Violation::Arithmetic { number: 20 });
    // With the chain made anew.
    let with_log = |log| Publication { log, ..good.clone() };
    let forged_free = forged(&records, |records| free(&mut records[20], 11));
    assert!(kinds(&with_log(forged_free)).contains(&"arithmetic".to_owned()));
    let further = forged(&records, |records| records[30].state.groups[0].serving += 1);
    assert!(kinds(&with_log(further)).contains(&"arithmetic".to_owned()));
    // Another text, a record that is not there, none at all.
    let mut log = good.log.clone();
    log[20] = log[20].replacen(':', ": ", 1);
    assert!(kinds(&with_log(log)).contains(&"record".to_owned()));
    let mut log = good.log.clone();
    log.remove(203);
    log.remove(100);
    assert!(kinds(&with_log(log)).contains(&"record".to_owned()));
    assert!(kinds(&with_log(Vec::new())).contains(&"record".to_owned()));
    let twice = forged(&records, |records| records[5].entry = records[0].entry.clone());
    assert!(kinds(&with_log(twice)).contains(&"record".to_owned()));
}

#[test]
fn another_seed_is_named() {
    let (good, records) = publication();
    let with_log = |log| Publication { log, ..good.clone() };
    let other = forged(&records, |records| {
        records[3..]
            .iter_mut()
            .for_each(|record| record.state.groups[0].seed = Some(Hash([1; 32])));
    });
    let report = verify(&with_log(other), &[], None);
    assert_eq!(report.violations[0], Violation::Seed { number: 3, group: group() });

    let drawn = |source: Source| {
        forged(&records, |records| {
            let Entry::Turn { events, .. } = &mut records[3].entry else { panic!() };
            *events = vec![Event::Drawn { group: group(), source }];
        })
    };
    // The signature of another round, under the number of the right one; another round; a secret.
    let (round, signature) = ROUNDS[0];
    let signature = signature.parse().unwrap();
    let report = verify(&with_log(drawn(Source::Beacon { round: 1000, signature })), &[], None);
    assert_eq!(kinds_of(&report.violations)[..2], ["beacon", "seed"]);
    let report = verify(&with_log(drawn(Source::Beacon { round, signature })), &[], None);
    assert_eq!(kinds_of(&report.violations)[..2], ["record", "place"]);
    assert!(report.violations[0].to_string().contains("round 123 was used"), "{report}");
    let report = verify(&with_log(drawn(Source::Secret(secret()))), &[], None);
    let refused = report.violations[0].to_string();
    assert!(refused.contains("a secret was used, and a beacon is named"), "{report}");
}

/// The fixture's draw, as if its chain were not quicknet.
#[test]
fn a_draw_by_another_chain_is_verified_with_its_key() {
    let (good, records) = publication();
    let hash = Hash([7; 32]);
    let log = forged(&records, |records| {
        let Entry::Published(room) = &mut records[0].entry else { panic!() };
        let Terms::Beacon(named) = &mut room.draw else { panic!() };
        named.chain = hash;
    });
    // Its admissions are those of the draw's other windows: what ends a window has another hash now.
    let other = Publication { log, admissions: Vec::new(), orders: Some(orders(&[])), ..good };
    let quicknet = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c\
                    8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb\
                    5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a";
    let key = quicknet.parse().unwrap();
    let verify = |chains: &Chains| {
        kinds_of(&super::verify(&other, chains, &Seen::default(), None).violations)
    };
    let rounds = BeaconChain { chain: hash, genesis: 1_692_803_367, period: 3 };
    assert_eq!(verify(&Chains::with([Chain { rounds, key }])), [""; 0]);
    assert_eq!(verify(&Chains::default()), ["beacon"], "its key is not known");
    let rounds = BeaconChain { genesis: 1_692_803_370, ..rounds };
    assert_eq!(verify(&Chains::with([Chain { rounds, key }])), ["beacon"], "it has other times");
}

#[test]
fn what_was_seen_must_be_in_the_log() {
    let (good, records) = publication();
    let head = records[203].hash();
    let seen = [records[50].hash(), head, closing().root];
    assert_eq!(verify(&good, &seen, None).violations, []);
    let (by_secret, _) = publication_by(false, Source::Secret(secret()));
    assert_eq!(verify(&by_secret, &[secret().commitment()], None).violations, []);
    // Another log that is right in itself: the operator's word alone.
    let mut other = records[..203].to_vec();
    let room = room(true);
    let Entry::Turn { events, given } = &records[203].entry else { panic!() };
    let again =
        other[202].next(&room, records[203].at_ms + 1, events.clone(), given.clone()).unwrap();
    other.push(again);
    let other = Publication { log: log(&other), ..good };
    assert_eq!(verify(&other, &[], None).violations, []);
    assert_eq!(verify(&other, &seen, None).violations, [Violation::Unseen { hash: head }]);
}

#[test]
fn anyone_proves_the_own_place() {
    let (good, records) = publication();
    let windows = windows(&records, &by_beacon());
    let mut own = Own { group: group(), index: 3, buyer: buyer(3), nonce: nonce(3) };
    let report = verify(&good, &[], Some(&own));
    let expected = admission(3, &windows, &records);
    assert!(report.violations.is_empty(), "{report}");
    let found = report.own.unwrap();
    assert_eq!((found.place, found.due_at), (Some(expected.place), Some(expected.turn)));
    assert_eq!(found.admitted_at, Some(expected.turn));
    own.buyer = buyer(4);
    let report = verify(&good, &[], Some(&own));
    assert_eq!(report.violations, [Violation::NotIncluded { group: group(), index: 3 }]);
}

#[test]
fn a_publication_is_read_from_its_files() {
    let (good, _) = publication();
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: String| fs::write(folder.path().join(file), text).unwrap();
    good.write(folder.path()).unwrap();
    assert_eq!(Publication::read(folder.path()).unwrap(), good);
    let refused = |line: &str| {
        write(ORDERS, line.to_owned());
        Publication::read(folder.path()).unwrap_err().to_string()
    };
    let counted = serde_json::to_string(&Counted { at_ms: 5, left: 6 }).unwrap();
    assert!(refused(&format!("{counted}\n{counted}\n")).contains("its first line, and no other"));
    assert!(refused("").contains("its first line, and no other"));
    write(ADMISSIONS, "{}\n".to_owned());
    let error = Publication::read(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("admissions.jsonl, line 1: missing field"), "{error}");
    fs::remove_file(folder.path().join(LEAVES)).unwrap();
    assert!(
        Publication::read(folder.path()).unwrap_err().to_string().starts_with("leaves.jsonl: ")
    );
}
