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
use local::handlers::{
    award_points, cancel, draw, expire_orders, orders, pay_callback, reserve, sales, start_payment,
    sync_db, token_gate, waiting_room,
};
use shared::runtime::app::App;

/// Requests of each case before one counts.
const WARM: usize = 3;
/// Requests of each case that count; the median is reported.
const COUNTED: usize = 9;
/// Most difference of a count from the table, in per cent.
const TOLERANCE_PERCENT: u64 = 5;
/// And of the bytes: on a busy machine a connection keeps a buffer that is 8,192 bytes larger, for good, once an answer has
/// filled the smaller one. Turns of a room were seen with three more and three fewer of them than the table's.
const TOLERANCE_PERCENT_OF_BYTES: u64 = 8;
/// And by how many allocations, where the table's are few.
const TOLERANCE: u64 = 2;
/// And by how many bytes: a read may come in two parts, each with a buffer.
const TOLERANCE_BYTES: u64 = 2048;
/// Most bytes of a handler's future.
const MAX_FUTURE_BYTES: usize = 2048;

/// Allocations and bytes of the requests of a case: the median of each, and the least. A connection takes a larger
/// buffer, again and again, when an answer happens to come in two parts, as most do on a busy machine; what the network
/// adds is not in the least.
#[derive(Debug)]
struct Counts {
    median: (u64, u64),
    least: (u64, u64),
}

/// What the requests of each case allocate.
fn counted() -> BTreeMap<&'static str, Counts> {
    // The fakes run on threads of their own; only this one's allocations are counted.
    let servers = tokio::runtime::Runtime::new().unwrap();
    let own = servers.block_on(Own::start()).unwrap();
    let runtime = runtime().unwrap();
    let environment = runtime.block_on(Environment::on(&own.servers())).unwrap();
    let cases = runtime.block_on(cases::prepare(&environment, WARM + COUNTED)).unwrap();
    let sorted = |mut counts: Vec<u64>| {
        counts.sort_unstable();
        counts
    };
    let count = |case: &cases::Case| {
        let (warm, counted) = case.works.split_at(WARM);
        let wait = |work: &cases::Work| runtime.block_on(work.wait(&environment)).unwrap();
        for work in warm {
            wait(work);
            measured(&runtime, &environment, work);
        }
        let of_work = |work: &cases::Work| {
            wait(work);
            measure(|| measured(&runtime, &environment, work))
        };
        let of_each: Vec<AllocationInfo> = counted.iter().map(of_work).collect();
        let allocations = sorted(of_each.iter().map(|info| info.count_total).collect());
        let bytes = sorted(of_each.iter().map(|info| info.bytes_total).collect());
        let at = |index: usize| (allocations[index], bytes[index]);
        (case.name, Counts { median: at(COUNTED / 2), least: at(0) })
    };
    cases.iter().map(count).collect()
}

/// Allocations and bytes of each case in the table, which are the last columns.
fn table() -> BTreeMap<String, (u64, u64)> {
    let document = include_str!("../../../../docs/handler-costs.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| "));
    let row = |row: &str| {
        let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
        let number = |cell: &str| cell.replace(',', "").parse().ok();
        let [name, .., allocations, bytes] = cells.as_slice() else { return None };
        Some(((*name).to_owned(), (number(allocations)?, number(bytes)?)))
    };
    rows.filter_map(row).collect()
}

#[test]
fn every_handler_allocates_what_the_table_says() {
    let (counts, table) = (counted(), table());
    let is_close = |count: u64, expected: u64, tolerance: u64, percent: u64| {
        count.abs_diff(expected) <= tolerance + expected * percent / 100
    };
    let is_as_said = |found: (u64, u64), expected: (u64, u64)| {
        is_close(found.0, expected.0, TOLERANCE, TOLERANCE_PERCENT)
            && is_close(found.1, expected.1, TOLERANCE_BYTES, TOLERANCE_PERCENT_OF_BYTES)
    };
    for (name, Counts { median: (allocations, bytes), .. }) in &counts {
        // For `scripts/handler-costs`, which writes the table.
        println!("allocations: {name}: {allocations} {bytes}");
    }
    if std::env::var_os("ONSALE_COUNT_ONLY").is_some() {
        return;
    }
    let names: Vec<&str> = table.keys().map(String::as_str).collect();
    assert_eq!(names, counts.keys().copied().collect::<Vec<_>>(), "the table has other rows");
    for (name, expected) in table {
        let found = &counts[name.as_str()];
        assert!(
            is_as_said(found.median, expected) || is_as_said(found.least, expected),
            "{name}: {found:?} allocations and bytes where docs/handler-costs.md says {expected:?}; \
             if that is meant, scripts/handler-costs writes it down"
        );
    }
}

fn future_bytes<'a, E, F: Future>(_: fn(&'a App, E) -> F) -> usize {
    size_of::<F>()
}

/// Whoever awaits a handler, as the Lambda runtime does, would otherwise have room for its work once more
/// in each future around it.
#[test]
fn the_work_of_every_handler_is_on_the_heap() {
    let futures = [
        ("token-gate", future_bytes(token_gate::handle)),
        ("reserve", future_bytes(reserve::handle)),
        ("orders", future_bytes(orders::handle)),
        ("cancel", future_bytes(cancel::handle)),
        ("start-payment", future_bytes(start_payment::handle)),
        ("pay-callback", future_bytes(pay_callback::handle)),
        ("sales", future_bytes(sales::handle)),
        ("expire-orders", future_bytes(expire_orders::handle)),
        ("sync-db", future_bytes(sync_db::handle)),
        ("award-points", future_bytes(award_points::handle)),
        ("waiting-room", future_bytes(waiting_room::handle)),
        ("draw", future_bytes(draw::handle)),
    ];
    for (name, bytes) in futures {
        assert!(bytes <= MAX_FUTURE_BYTES, "the future of {name} has {bytes} bytes");
    }
    println!("{futures:?}");
}
