//! The takings of a sale: the request for some minutes of them, and the reply.

use std::ops::Range;

use lambda_http::Request;
use schemars::JsonSchema;
use serde::Serialize;

use super::checks::{Refusal, query, query_within};
use engine::domain::basics::ids::{SaleId, TierId};
use engine::domain::basics::money::Currency;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::takings::{Taking, Takings, minute_start};

/// Most minutes of one request: a log has a record for every few orders, and all of them are read.
pub const MAX_MINUTES: u16 = 60;
/// Minutes that are shown unless the request says how many.
pub const DEFAULT_MINUTES: u16 = 15;
/// Seconds of a minute.
const MINUTE_SECONDS: i64 = 60;

/// The time that a request asks for, in whole minutes: as many as `minutes` says, the last of them the one that
/// `until` lies in, or now.
///
/// # Errors
/// Returns [`Refusal::Invalid`] if `minutes` is not between 1 and [`MAX_MINUTES`], or `until` is no time or in the
/// future.
pub fn period(request: &Request, now: Timestamp) -> Result<Range<Timestamp>, Refusal> {
    let minutes = query_within(request, "minutes", 1..=MAX_MINUTES)?.unwrap_or(DEFAULT_MINUTES);
    let until: Timestamp = query(request, "until")?.unwrap_or(now);
    if until > now {
        return Err(Refusal::invalid("until", "must not be in the future"));
    }
    let end = minute_start(until).plus_seconds(MINUTE_SECONDS);
    Ok(end.plus_seconds(-MINUTE_SECONDS * i64::from(minutes))..end)
}

/// What was sold and taken in a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TakingPoint")]
pub struct TakingReply {
    /// Its first moment.
    pub at: Timestamp,
    /// Orders that became paid.
    pub orders: u64,
    /// Their tickets.
    pub tickets: u64,
    /// Tickets that were refunded.
    pub returned: u64,
    /// What buyers paid for those orders, in minor units, commission included.
    pub taken_minor: i64,
    /// What was kept of it as commission, less what was given up with refunds.
    pub commission_minor: i64,
    /// What is to go back to buyers for refunds.
    pub given_back_minor: i64,
    /// Captures in the sale's currency that bought nothing, and go back too.
    pub unowned_minor: i64,
}

/// What a tier sold in all those minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TakingOfTier")]
pub struct TierTakingReply {
    /// Tier id.
    pub tier: TierId,
    /// Tickets of orders that became paid.
    pub sold: u64,
    /// Tickets that were refunded.
    pub returned: u64,
}

/// What a sale sold and took in some minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Takings")]
pub struct TakingsReply {
    /// Sale id.
    pub sale: SaleId,
    /// Currency of all amounts.
    pub currency: Currency,
    /// Each minute, the earliest first. The last one may not be over, and of the last seconds some may be missing.
    pub points: Vec<TakingReply>,
    /// Each tier of which tickets were sold or refunded in them.
    pub tiers: Vec<TierTakingReply>,
}

impl TakingsReply {
    /// The takings of some whole minutes.
    #[must_use]
    pub fn new(
        sale: SaleId,
        currency: Currency,
        takings: &Takings,
        during: &Range<Timestamp>,
    ) -> Self {
        let mut points = Vec::new();
        let mut minute = during.start;
        while minute < during.end {
            points.push(point(minute, takings.at(minute)));
            minute = minute.plus_seconds(MINUTE_SECONDS);
        }
        let tiers = takings.tiers().map(|(tier, taking)| TierTakingReply {
            tier: tier.clone(),
            sold: taking.sold,
            returned: taking.returned,
        });
        Self { sale, currency, points, tiers: tiers.collect() }
    }
}

fn point(at: Timestamp, taking: Taking) -> TakingReply {
    let Taking { orders, tickets, returned, taken, commission, given_back, unowned } = taking;
    TakingReply {
        at,
        orders,
        tickets,
        returned,
        taken_minor: amount(taken),
        commission_minor: amount(commission),
        given_back_minor: amount(given_back),
        unowned_minor: amount(unowned),
    }
}

/// An amount as far as JSON readers can tell numbers of 64 bits: nobody but a provider bounds what is captured.
fn amount(minor: i128) -> i64 {
    i64::try_from(minor).unwrap_or(if minor < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_minute_has_a_point_and_no_amount_goes_round() {
        let start = Timestamp::from_ms(1_800_000_000_000);
        let currency = Currency::new("EUR").unwrap();
        let (sale, during) = (SaleId::new("carmen").unwrap(), start..start.plus_seconds(180));
        let reply = TakingsReply::new(sale, currency, &Takings::new(currency), &during);
        let minutes: Vec<Timestamp> = reply.points.iter().map(|point| point.at).collect();
        assert_eq!(minutes, [0, 60, 120].map(|seconds| start.plus_seconds(seconds)));
        assert_eq!(amount(i128::from(i64::MAX) + 1), i64::MAX);
        assert_eq!(amount(i128::from(i64::MIN) - 1), i64::MIN);
    }
}
