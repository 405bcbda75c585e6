//! What the log tells of a provider's payments, to be held against the provider's own report
//! ([`bill`](engine::domain::payment::bill)).

use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::{LogPosition, LogShard};
use engine::domain::payment::bill::{DAY_MS, Known, NEIGHBOUR_MS, Period};
use engine::ports::{Log as _, Stored};
use shared::dynamodb::DynamoLog;

/// For how long after the period what happened in it may have waited to be settled.
const SETTLED_WITHIN_MS: i64 = DAY_MS;

/// Reads what the log tells of a provider's payments in a period.
///
/// # Errors
/// As the [ports](engine::ports).
pub async fn read_known(log: &DynamoLog, provider: &ProviderId, period: Period) -> Stored<Known> {
    let mut known = Known::default();
    // Clocks of functions differ by less than that.
    let from = Timestamp::from_ms(period.from.ms().saturating_sub(NEIGHBOUR_MS));
    let until = Timestamp::from_ms(period.to.ms().saturating_add(SETTLED_WITHIN_MS));
    for shard in LogShard::all() {
        let mut place = LogPosition { shard, number: log.before(shard, from).await? };
        'shard: loop {
            let records = log.after(place).await?;
            let Some(last) = records.last() else { break };
            place = last.place;
            for placed in records {
                if placed.record.at > until {
                    break 'shard;
                }
                for told in &placed.record.told {
                    let facts = told.facts.iter().map(|(_, fact)| fact);
                    facts.for_each(|fact| known.add(provider, told.order, fact));
                }
            }
        }
    }
    Ok(known)
}
