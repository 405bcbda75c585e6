//! Allocations of each handler, request by request, held against the table of the documents.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::collections::BTreeMap;

use allocation_counter::{AllocationInfo, measure};
use costs::environment::{Environment, Own};
use costs::{cases, measured, runtime};

/// Requests of each case before one counts.
const WARM: usize = 3;
/// Requests of each case that count; the median is reported.
const COUNTED: usize = 9;
/// Most difference of a count from the table, in per cent.
const TOLERANCE_PERCENT: u64 = 5;
/// And by how many allocations, where the table's are few.
const TOLERANCE: u64 = 2;

/// Allocations and bytes of one request of each case.
fn counted() -> BTreeMap<&'static str, (u64, u64)> {
    // The fakes run on threads of their own; only this one's allocations are counted.
    let servers = tokio::runtime::Runtime::new().unwrap();
    let own = servers.block_on(Own::start()).unwrap();
    let runtime = runtime().unwrap();
    let environment = runtime.block_on(Environment::on(&own.servers())).unwrap();
    let cases = runtime.block_on(cases::prepare(&environment, WARM + COUNTED)).unwrap();
    let median = |mut counts: Vec<u64>| {
        counts.sort_unstable();
        counts[counts.len() / 2]
    };
    let count = |case: &cases::Case| {
        let (warm, counted) = case.works.split_at(WARM);
        warm.iter().for_each(|work| measured(&runtime, &environment, work));
        let of_each: Vec<AllocationInfo> =
            counted.iter().map(|work| measure(|| measured(&runtime, &environment, work))).collect();
        let allocations = median(of_each.iter().map(|info| info.count_total).collect());
        let bytes = median(of_each.iter().map(|info| info.bytes_total).collect());
        (case.name, (allocations, bytes))
    };
    cases.iter().map(count).collect()
}

/// Allocations of each case in the table, which is the last column but one.
fn table() -> BTreeMap<String, u64> {
    let document = include_str!("../../../../docs/handler-costs.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| "));
    let row = |row: &str| {
        let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
        let allocations = cells.get(cells.len().checked_sub(2)?)?.replace(',', "").parse().ok()?;
        Some((cells[0].to_owned(), allocations))
    };
    rows.filter_map(row).collect()
}

#[test]
fn every_handler_allocates_what_the_table_says() {
    let (counted, table) = (counted(), table());
    for (name, (allocations, bytes)) in &counted {
        // For `scripts/handler-costs`, which writes the table.
        println!("allocations: {name}: {allocations} {bytes}");
    }
    if std::env::var_os("ONSALE_COUNT_ONLY").is_some() {
        return;
    }
    let names: Vec<&str> = table.keys().map(String::as_str).collect();
    assert_eq!(names, counted.keys().copied().collect::<Vec<_>>(), "the table has other rows");
    for (name, expected) in table {
        let (allocations, _) = counted[name.as_str()];
        let difference = allocations.abs_diff(expected);
        let allowed = TOLERANCE + expected * TOLERANCE_PERCENT / 100;
        assert!(
            difference <= allowed,
            "{name}: {allocations} allocations where docs/handler-costs.md says {expected}; \
             if that is meant, scripts/handler-costs writes it down"
        );
    }
}
