//! The document of the limits, `docs/limits.md`, written from the table.

use std::fmt::Write as _;

use crate::table::{Limit, Service, TABLE};

/// What stands before the tables.
const HEAD: &str = "\
# Limits of the managed services

The fakes of this repository enforce these limits when they are asked to (`--limits aws`; the default of `up`, `demo`, `replay` and `chaos`). This page is
written from `fakes/limits/src/table.rs`, where the fakes have their values: change it there, then `ONSALE_WRITE_DOCS=1 cargo test -p fake-limits`.

*Raised*: the owner of the account can have it raised. *Sure*: **S** two or more independent copies of the vendor's page agree; **1** one copy; **D** copies differ, and the
stricter value is taken; **K** commonly known, not read again; **N** not published, an inference or a choice. All were read in autumn 2026.
";

/// What stands behind the tables.
const FOOT: &str = "
## How the fakes enforce them

| service | what is metered | what is not |
|---|---|---|
| ElastiCache Serverless | Commands that it does not have are refused by an ACL user of the local Redis, which is the engine's (`NOPERM`; the service's own words are not published). The eviction policy is set. A proxy counts the units of every request against its slot: the higher of its bytes and of the engine time of its script, the mean of what the server itself has measured lately. A request for which the slot has no units left waits, with all that its connection has behind it, and is refused if it would wait for too long. All this is on with `--cache serverless`; nodes, the default, have the whole thread of the real server. | bytes of replies; arguments are counted by the adapter |
| DynamoDB | Write and read units by partition key, by table and by index, each in a bucket of one second. A request is admitted if every bucket it needs has its least cost, and is charged what it did cost; a transaction costs double, also when it is cancelled. What is refused is not charged. A table grows to twice its former peak every 30 minutes. The bucket of a partition with a local index is never split, and what is written to it is summed up to 10 GB. A global index does not have a write for half a second. | entries of the index `due` that are only removed count for the index and for none of its partitions, and are removed at once |
| SQS | in flight, delay, size; a mapping begins with 5 invocations at once and grows by 5 a second | |
| Lambda | invocations at once by account, and by function where the template reserves some; new environments by function, requests of all environments of a function | environments never end |
| API Gateway | one bucket for all routes, and one for each route of callbacks, as the template throttles it; request line and headers; payload; the time of an integration | |
| CloudFront | nothing: the template and its tests keep to it | all of it |
| CloudWatch | metrics of a request, values of a page, requests a second; whatever the profile is | values a second |
| EventBridge | entries and bytes of a call, calls a second; whatever the profile is | |
| Stripe | every endpoint, searches, and all together; creating payments by the quota that was agreed (`--payments-per-second`), because a sale is impossible at 25 a second | |

A refusal has the status, the body and the headers that are published. What was refused, and how often, is in the report of `demo`, `replay`, `rush` and `chaos` (*throttled*), and while an engine
runs in `throttled.json` of its data directory.
";

fn row(limit: &Limit) -> String {
    let Limit { name, value, unit, adjustable, source, date, sure, .. } = limit;
    let raised = if *adjustable { "yes" } else { "" };
    let value = format!("{value} {unit}");
    format!("| {name} | {} | {raised} | {} | {source} | {date} |\n", value.trim(), sure.letter())
}

/// The document.
#[must_use]
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for service in Service::ALL {
        // Writing to a string does not fail.
        let _infallible = write!(
            page,
            "\n## {}\n\n| limit | value | raised | sure? | source | read |\n|---|---|---|---|---|---|\n",
            service.name()
        );
        let rows = TABLE.iter().filter(|limit| limit.service == service);
        page.extend(rows.map(row));
    }
    page + FOOT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_written_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
        if std::env::var_os("ONSALE_WRITE_DOCS").is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == markdown(), "docs/limits.md: ONSALE_WRITE_DOCS=1 writes it");
    }
}
