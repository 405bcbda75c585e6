//! Trains: searches find a train where it can be boarded, and nowhere else, and its stops are in the lists of its days.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::time::Timestamp;
use engine::domain::sale::archive::Lifecycle;
use engine::domain::sale::{SaleFile, SaleState, Stop};

use super::super::facts::{CallKey, Facts, SaleFacts, StopKey};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// Minutes of a day.
const MINUTES_PER_DAY: u16 = 24 * 60;
/// Most bytes of what a stop is found by.
const MAX_LABEL_BYTES: usize = 255;
/// Most bytes of name, tab and id of a stop in the list of a day: a longer one is not listed.
const MAX_MARK_BYTES: usize = 1_000;

/// Trains: each call at which a published train can be boarded is in the index with the stops that come later,
/// and of its present version no other. If the train has brought stops to the lists of days, as every publication of
/// this release does, each of its stops is there, in its name.
///
/// What a process that died left of an earlier version may be there: whoever finds it passes over it. While a sale
/// is being archived its calls may be there or not.
#[must_use]
pub fn trains_are_found(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::Trains);
    for sale in facts.sales.values() {
        let expected = match sale.lifecycle {
            Lifecycle::Listed => calls(sale.sale.file()),
            Lifecycle::Archived => BTreeMap::new(),
            Lifecycle::Unloading => continue,
        };
        finding.checked += u64::try_from(expected.len()).unwrap_or(u64::MAX);
        for (at, (later, departs_ms)) in &expected {
            let what = match sale.calls.get(at) {
                None => format!("is not found {}", shown(at)),
                Some(call) if call.later != *later => {
                    format!("is found {} on the way to other stops than its own", shown(at))
                }
                // What an earlier release wrote does not say when the train leaves.
                Some(call) if call.departs_ms.is_some() && call.departs_ms != *departs_ms => {
                    format!("is found {} until another time than the train leaves", shown(at))
                }
                Some(_) => continue,
            };
            finding.add(sale, Subject::Sale, what);
        }
        let is_present = |version: u64| version == sale.version;
        for (at, _) in sale.calls.iter().filter(|(_, call)| is_present(call.version)) {
            if !expected.contains_key(at) {
                let what = format!("is found {}, and cannot be boarded there", shown(at));
                finding.add(sale, Subject::Sale, what);
            }
        }
        check_stops(&mut finding, sale, &facts.stops);
    }
    finding
}

/// Whether the stops of a sale are in the lists of its days. A list may have a stop too many: it finds no train.
fn check_stops(finding: &mut Finding, sale: &SaleFacts, listed: &BTreeSet<StopKey>) {
    let is_present = |(_, version): &(&StopKey, &u64)| **version == sale.version;
    if !sale.stops.iter().any(|stop| is_present(&stop)) {
        // The release that published it kept no lists, or it has no day.
        return;
    }
    let expected = match sale.lifecycle {
        Lifecycle::Listed => stops(sale.sale.file()),
        Lifecycle::Archived | Lifecycle::Unloading => BTreeSet::new(),
    };
    for stop in &expected {
        let StopKey { day, mark } = stop;
        let name = mark.replace('\t', ", ");
        if !sale.stops.contains_key(stop) {
            let what = format!("does not keep {name} in the list of stops of {day}");
            finding.add(sale, Subject::Sale, what);
        } else if !listed.contains(stop) {
            finding.add(
                sale,
                Subject::Sale,
                format!("misses {name} in the list of stops of {day}"),
            );
        }
    }
    if sale.lifecycle != Lifecycle::Unloading {
        for (StopKey { day, mark }, _) in sale.stops.iter().filter(is_present) {
            let key = StopKey { day: day.clone(), mark: mark.clone() };
            if !expected.contains(&key) {
                let name = mark.replace('\t', ", ");
                let what =
                    format!("keeps {name} in the list of stops of {day}, and has no such stop");
                finding.add(sale, Subject::Sale, what);
            }
        }
    }
}

/// The stops of a sale file by day: from the first that is boarded on a day to the last.
fn stops(file: &SaleFile) -> BTreeSet<StopKey> {
    let mut stops = BTreeSet::new();
    let Some(runs_on) = file.runs_on.filter(|_| file.state != SaleState::Cancelled) else {
        return stops;
    };
    let (mut day, boarded) = (runs_on, file.stops.len().saturating_sub(1));
    for (index, stop) in file.stops.iter().enumerate().take(boarded) {
        let minutes = stop.departs.or(stop.arrives).map(|time| time.minutes());
        day = minutes.map_or(day, |minutes| runs_on.plus_days(minutes / MINUTES_PER_DAY));
        for stop in &file.stops[index..] {
            let (names, id) = (labels(stop), stop.stop.as_str().to_lowercase());
            let Some(name) = names.last() else { continue };
            let mark = format!("{name}\t{id}");
            if mark.len() <= MAX_MARK_BYTES {
                stops.insert(StopKey { day: day.to_string(), mark });
            }
        }
    }
    stops
}

fn shown(CallKey { day, stop, time }: &CallKey) -> String {
    format!("at {stop} on {day}, {time}")
}

/// The calls of a sale file: at each stop but the last, under its id and its name, on the day there. Each with the stops that
/// come later, and when the train leaves.
fn calls(file: &SaleFile) -> BTreeMap<CallKey, (BTreeSet<String>, Option<i64>)> {
    let mut calls = BTreeMap::new();
    let departures = file.departures();
    let Some(runs_on) = file.runs_on.filter(|_| file.state != SaleState::Cancelled) else {
        return calls;
    };
    let (mut day, boarded) = (runs_on, file.stops.len().saturating_sub(1));
    for (index, stop) in file.stops.iter().enumerate().take(boarded) {
        let minutes = stop.departs.or(stop.arrives).map(|time| time.minutes());
        day = minutes.map_or(day, |minutes| runs_on.plus_days(minutes / MINUTES_PER_DAY));
        let minute = minutes.map_or(MINUTES_PER_DAY, |minutes| minutes % MINUTES_PER_DAY);
        let time = format!("{:02}{:02}", minute / 60, minute % 60);
        let later: BTreeSet<String> = file.stops[index + 1..].iter().flat_map(labels).collect();
        for stop in labels(stop) {
            let key = CallKey { day: day.to_string(), stop, time: time.clone() };
            let departs_ms = departures[index].map(Timestamp::ms);
            calls.entry(key).or_insert_with(|| (later.clone(), departs_ms));
        }
    }
    calls
}

fn labels(stop: &Stop) -> Vec<String> {
    let texts = [stop.stop.as_str().trim(), stop.name.trim()];
    let is_label = |text: &&str| {
        (1..=MAX_LABEL_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
    };
    texts.into_iter().filter(is_label).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::super::fixture::{NOW, assert_each, clean_facts, sale_of, violations};
    use super::*;
    use crate::audit::facts::CallFact;

    fn key(stop: &str, time: &str) -> CallKey {
        let [day, stop, time] = ["2026-11-21", stop, time].map(str::to_owned);
        CallKey { day, stop, time }
    }

    #[test]
    fn what_is_not_found_or_found_elsewhere_is_named() {
        assert_each(&[
            (
                |facts| drop(sale_of(facts).calls.remove(&key("x", "0805"))),
                &["trains g1: the sale is not found at x on 2026-11-21, 0805"],
            ),
            (
                |facts| {
                    let call = sale_of(facts).calls.get_mut(&key("y", "2400"));
                    call.unwrap().later = ["q".to_owned()].into();
                },
                &[
                    "trains g1: the sale is found at y on 2026-11-21, 2400 on the way to other stops than its own",
                ],
            ),
            (
                |facts| {
                    let later = ["y".to_owned()].into();
                    let call = CallFact { version: 1, later, departs_ms: None };
                    sale_of(facts).calls.insert(key("x", "0900"), call);
                },
                &[
                    "trains g1: the sale is found at x on 2026-11-21, 0900, and cannot be boarded there",
                ],
            ),
            (
                |facts| {
                    let call = sale_of(facts).calls.get_mut(&key("x", "0805")).unwrap();
                    call.departs_ms = Some(0);
                },
                &[
                    "trains g1: the sale is found at x on 2026-11-21, 0805 until another time than the train leaves",
                ],
            ),
            (
                |facts| sale_of(facts).lifecycle = Lifecycle::Archived,
                &[
                    "trains g1: the sale is found at x on 2026-11-21, 0805, and cannot be boarded there",
                    "trains g1: the sale is found at y on 2026-11-21, 2400, and cannot be boarded there",
                    "trains g1: the sale keeps x, x in the list of stops of 2026-11-21, and has no such stop",
                    "trains g1: the sale keeps y, y in the list of stops of 2026-11-21, and has no such stop",
                    "trains g1: the sale keeps z, z in the list of stops of 2026-11-21, and has no such stop",
                ],
            ),
        ]);
    }

    fn stop(name: &str) -> StopKey {
        StopKey { day: "2026-11-21".to_owned(), mark: format!("{name}\t{name}") }
    }

    #[test]
    fn a_stop_that_no_list_has_is_named() {
        assert_each(&[
            (
                |facts| {
                    facts.stops.remove(&stop("z"));
                },
                &["trains g1: the sale misses z, z in the list of stops of 2026-11-21"],
            ),
            (
                |facts| {
                    sale_of(facts).stops.remove(&stop("z"));
                },
                &["trains g1: the sale does not keep z, z in the list of stops of 2026-11-21"],
            ),
            (
                |facts| {
                    sale_of(facts).stops.insert(stop("q"), 1);
                },
                &[
                    "trains g1: the sale keeps q, q in the list of stops of 2026-11-21, and has no such stop",
                ],
            ),
            // One that is over, or is left of an earlier version, and trains of a release without lists.
            (
                |facts| {
                    facts.stops.insert(stop("q"));
                },
                &[],
            ),
            (
                |facts| {
                    sale_of(facts).stops.insert(stop("q"), 0);
                },
                &[],
            ),
            (|facts| sale_of(facts).stops.clear(), &[]),
        ]);
    }

    #[test]
    fn what_an_earlier_version_left_is_let_pass() {
        let mut facts = clean_facts();
        let sale = sale_of(&mut facts);
        sale.version = 2;
        let call = CallFact { version: 1, later: ["y".to_owned()].into(), departs_ms: None };
        sale.calls.insert(key("x", "0900"), call);
        assert_eq!(violations(&facts), [""; 0]);
        assert!(check(&facts, NOW, 120).iter().any(|finding| finding.rule == Rule::Trains));
    }
}
