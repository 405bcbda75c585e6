//! Each defect is planted into a publication in which nothing is wrong, and must be named.

use std::fs;

use engine::domain::admission::room::draw::Source;
use engine::domain::admission::room::log::{Entry, Record};
use engine::domain::admission::room::serving::Event;
use engine::domain::admission::room::tree;
use engine::domain::basics::bytes::Hash;
use shared::beacon::{Chain, Chains};

use super::Own;
use super::fixture::*;
use super::publication::{ADMISSIONS, Admission, LEAVES, Publication};
use super::report::{DecidedBy, Report};
use super::violation::Violation;

/// The report on a publication of a draw by quicknet.
fn verify(publication: &Publication, seen: &[Hash], own: Option<&Own>) -> Report {
    super::verify(publication, &Chains::default(), seen, own)
}

/// The violations of a publication, without repetitions of one kind.
fn kinds(publication: &Publication) -> Vec<String> {
    kinds_of(&verify(publication, &[], None).violations)
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
fn a_correct_publication_is_clean() {
    for (has_beacon, source, decided_by) in [
        (true, by_beacon(), DecidedBy::Beacon { round: 1000 }),
        (false, Source::Secret(secret()), DecidedBy::Secret),
    ] {
        let (publication, records) = publication_by(has_beacon, source);
        let report = verify(&publication, &[], None);
        assert!(report.clean && report.violations.is_empty(), "{report}");
        assert_eq!((report.records, report.turns), (204, 203));
        let group = &report.groups[0];
        assert_eq!((group.count, group.held, group.due_of_nobody), (2_500, 2_475, 25));
        assert_eq!((group.later_windows, group.due, group.admitted), (1, 2_520, 846));
        assert_eq!(group.decided_by, Some(decided_by));
        assert!(report.to_string().contains("2,475 of them held"), "{report}");
        assert_eq!(records.len(), 204);
    }
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
    let windows = windows(&records, true, &by_beacon());
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
    // The signature of another round, under the number of the right one; another round; the secret, though the
    // beacon had time.
    let (round, signature) = ROUNDS[0];
    let signature = signature.parse().unwrap();
    let report = verify(&with_log(drawn(Source::Beacon { round: 1000, signature })), &[], None);
    assert_eq!(kinds_of(&report.violations)[..2], ["beacon", "seed"]);
    let report = verify(&with_log(drawn(Source::Beacon { round, signature })), &[], None);
    assert_eq!(kinds_of(&report.violations)[..2], ["record", "place"]);
    assert!(report.violations[0].to_string().contains("round 123 was used"), "{report}");
    let report = verify(&with_log(drawn(Source::Secret(secret()))), &[], None);
    assert!(report.violations[0].to_string().contains("the secret was used 30000 ms"), "{report}");
}

/// The fixture's draw, as if its chain were not quicknet.
#[test]
fn a_draw_by_another_chain_is_verified_with_its_key() {
    let (good, records) = publication();
    let hash = Hash([7; 32]);
    let log = forged(&records, |records| {
        let Entry::Published(room) = &mut records[0].entry else { panic!() };
        room.draw.beacon = Some(hash);
    });
    // Its admissions are those of the draw's other windows: what ends a window has another hash now.
    let other = Publication { log, admissions: Vec::new(), ..good };
    let quicknet = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c\
                    8c4b450b6a0a6c3ac6a5776a2d1064510d1fec758c921cc22b0e17e63aaf4bcb\
                    5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a";
    let key = quicknet.parse().unwrap();
    let verify = |chains: &Chains| kinds_of(&super::verify(&other, chains, &[], None).violations);
    assert_eq!(verify(&Chains::with([Chain { hash, key }])), [""; 0]);
    assert_eq!(verify(&Chains::default()), ["beacon"], "its key is not known");
}

#[test]
fn what_was_seen_must_be_in_the_log() {
    let (good, records) = publication();
    let head = records[203].hash();
    let seen = [records[50].hash(), head, closing(true).root, secret().commitment()];
    assert!(verify(&good, &seen, None).clean);
    // Another log that is right in itself: the operator's word alone.
    let mut other = records[..203].to_vec();
    let room = room(true);
    let Entry::Turn { events, given } = &records[203].entry else { panic!() };
    let again =
        other[202].next(&room, records[203].at_ms + 1, events.clone(), given.clone()).unwrap();
    other.push(again);
    let other = Publication { log: log(&other), ..good };
    assert!(verify(&other, &[], None).clean);
    assert_eq!(verify(&other, &seen, None).violations, [Violation::Unseen { hash: head }]);
}

#[test]
fn anyone_proves_the_own_place() {
    let (good, records) = publication();
    let windows = windows(&records, true, &by_beacon());
    let mut own = Own { group: group(), index: 3, buyer: buyer(3), nonce: nonce(3) };
    let report = verify(&good, &[], Some(&own));
    let expected = admission(3, &windows, &records);
    assert!(report.clean, "{report}");
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
    write(ADMISSIONS, "{}\n".to_owned());
    let error = Publication::read(folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("admissions.jsonl, line 1: missing field"), "{error}");
    fs::remove_file(folder.path().join(LEAVES)).unwrap();
    assert!(
        Publication::read(folder.path()).unwrap_err().to_string().starts_with("leaves.jsonl: ")
    );
}
