//! The document of the limits, `docs/limits.md`, written from the table.

use std::fmt::Write as _;

use crate::table::{Limit, Service, TABLE};

/// What stands before the tables.
const HEAD: &str = "\
# Limits of the managed services

With `--limits aws`, the default of `up`, `demo`, `replay` and `chaos`, the fakes of this repository enforce these limits. After a change of
`fakes/limits/src/table.rs` write this page with `ONSALE_WRITE_DOCS=1 cargo test -p fake-limits`.

*Raised*: AWS or the provider raises the limit on request. *Sure*: **S** two or more independent copies of the vendor's page agree; **1** one copy;
**D** copies differ, and the table has the stricter value; **K** commonly known, not read again; **N** not published, an inference or a choice.
All were read in autumn 2026, in pages of 2026 unless a row says otherwise.
";

/// What stands behind the tables.
const FOOT: &str = "
## What `read-bills` asks providers for

For the [bill of each day](payments.md#bills-are-read), each call waits two seconds at most for a turn of `read-bill`: a twentieth of
`ProviderCallsPerSecond`, one a second by default, for each provider. Without a turn, and after any refusal but that of a day without trades, the next run
asks again, an hour later.

| | Stripe | WeChat Pay | Alipay |
|---|---|---|---|
| calls for a day | one for each 100 entries: `GET /v1/balance_transactions` | two: `GET /v3/bill/tradebill`, and the file | two: `alipay.data.dataservice.bill.downloadurl.query`, and the file |
| published rate | of an endpoint and of the account | none | none |
| time of a call | 60 s | 60 s | 60 s |
| size of an answer, then the bill is refused | 8 MiB | 48 MiB packed, 128 MiB unpacked | 48 MiB packed, 128 MiB unpacked, 64 files |
| the bill is not there yet | no refusal; it is read an hour after the day | 400 `STATEMENT_CREATING` | `isp.bill_not_exist` |
| there were no trades: the day is read | an empty page | 400 `NO_STATEMENT_EXIST` | `isp.bill_not_exist`, a day later still |
| too many calls | 429 | 429 | a system error |
| the address is over | – | not 200 | not 200 |
| the key may not | 403, until it has the right *Balance*, read | 403 | `isv.insufficient-isv-permissions` |

## How the fakes enforce them

| service | metered | not metered |
|---|---|---|
| ElastiCache Serverless | With `--cache serverless`: an ACL user refuses the missing commands (`NOPERM`), the eviction policy is set, and a proxy charges each request to its slot: the higher of its bytes and its script's engine time, the mean of the server's latest measurements. Without units left, the request and those behind it on its connection wait, or are refused. Nodes, the default, have the whole thread of the real server. | bytes of replies; the adapter counts arguments |
| DynamoDB | Write and read units by partition key, table and index, each in a bucket of one second. A request is admitted if every bucket has its minimum cost, and pays its real cost; a refused request nothing. A partition with a local index is never split. | entries removed from the index `due` count for the index, not for its partitions, and are removed at once |
| SQS | messages in flight, delay, size; the growth of a mapping | |
| Lambda | concurrent invocations by account, and by function where the template reserves some; new environments and requests of all environments by function | environments never end |
| API Gateway | one bucket for all routes and one for each route of callbacks, as the template throttles them; request line and headers; payload; integration time | |
| CloudFront | nothing: the template and its tests respect the limits | all of it |
| CloudWatch | metrics of a request, values of a page, requests a second, with any profile | values a second |
| EventBridge | entries and bytes of a call, calls a second, with any profile | |
| Stripe | every endpoint, searches, and all together; the creation of payments by an agreed quota (`--payments-per-second`), not by 25 a second | |
| WeChat Pay | refunds, closings, the hour and the address of a bill | for how long bills are kept |
| Alipay | the hour and the address of a bill | |

A refusal has the published status, body and headers. The reports of `demo`, `replay`, `rush` and `chaos` count refusals (*throttled*), and a running
engine writes them to `throttled.json` in its data directory.
";

fn row(limit: &Limit) -> String {
    let Limit { name, value, unit, adjustable, source, date, sure, .. } = limit;
    let raised = if *adjustable { ", raised" } else { "" };
    let value = format!("{value} {unit}");
    // The head says that a page is of this year unless its row says otherwise.
    let of = if *date == "2026" { String::new() } else { format!(", {date}") };
    format!("| {name} | {}{raised} | {} | {source}{of} |\n", value.trim(), sure.letter())
}

#[must_use]
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for service in Service::ALL {
        // Writing to a string does not fail.
        let _infallible = write!(
            page,
            "\n## {}\n\n| limit | value | sure | source |\n|---|---|---|---|\n",
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
