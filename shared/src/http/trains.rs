//! The trains of a day between two stops: the query, and the reply.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::Serialize;

use super::checks::{self, Refusal};
use super::cursor::cursor;
use super::sale_reply::{Phase, SaleSummary, tiers_on};
use crate::redis::availability::Reading;
use engine::domain::basics::calendar::{ClockTime, Day, LocalTime};
use engine::domain::basics::ids::{Legs, SaleId, StopId, TierId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::timetable::{CallMark, StopLabel, journey_from};
use engine::domain::sale::{Sale, Stop, Tier};
use engine::ports::{ListedTerms, Published};

/// The number of trains on a page unless the request names another, and the most on a page: for each train the function
/// reads the sale and the seats that are left.
pub const TRAINS: u16 = 20;

/// A search for the trains of a day between two stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainsQuery {
    /// The day of the call at `from`, by the clocks of that stop.
    pub day: Day,
    /// The stop where the journey begins.
    pub from: StopLabel,
    /// The stop where the journey ends.
    pub to: StopLabel,
    /// The cursor of the page; `None` for the first page.
    pub cursor: Option<TrainsCursor>,
    /// The most trains on the page: 1 to [`TRAINS`].
    pub limit: u16,
}

impl TrainsQuery {
    /// Reads the search from the query of a request.
    ///
    /// # Errors
    /// Returns the first part of the query that breaks a rule.
    pub fn from_request(request: &Request) -> Result<Self, Refusal> {
        let needed = |name: &str| Refusal::invalid(name, "must be given");
        let day = checks::query(request, "date")?.ok_or_else(|| needed("date"))?;
        let from = checks::query(request, "from")?.ok_or_else(|| needed("from"))?;
        let to = checks::query(request, "to")?.ok_or_else(|| needed("to"))?;
        if from == to {
            return Err(Refusal::invalid("to", "must be another stop than from"));
        }
        let cursor = checks::query(request, "cursor")?;
        let limit = checks::query_within(request, "limit", 1..=TRAINS)?.unwrap_or(TRAINS);
        Ok(Self { day, from, to, cursor, limit })
    }
}

cursor! {
    /// Where a page of trains begins: after a call. As text it is opaque: the base64 of the form and the call. It
    /// is checked, not signed: whoever makes one up is shown public trains after another time.
    TrainsCursor(CallMark)
}

/// A page of the trains of a day between two stops, by time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrainsReply {
    /// The day of the search.
    pub date: Day,
    /// Where the search begins, in lower case.
    #[schemars(with = "String")]
    pub from: StopLabel,
    /// Where it ends, in lower case.
    #[schemars(with = "String")]
    pub to: StopLabel,
    /// The trains that sell the journey.
    pub trains: Vec<TrainReply>,
    /// Value of `cursor` for the next page; absent at the end. A page may be short, or empty, and not be the
    /// last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<TrainsCursor>,
}

/// A train on one journey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrainReply {
    /// The sale's id.
    pub sale: SaleId,
    /// Title for people.
    pub title: String,
    /// State for a buyer at the time of the reply: `upcoming`, `open`, `paused` or `sold_out`.
    pub state: Phase,
    /// Beginning of selling.
    pub opens_at: Timestamp,
    /// End of selling.
    pub closes_at: Timestamp,
    /// Where the journey begins.
    pub from: TrainStopReply,
    /// Where it ends.
    pub to: TrainStopReply,
    /// When the train leaves there, by the clocks of the railway; absent if its file does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departs_at: Option<LocalTime>,
    /// When it arrives, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrives_at: Option<LocalTime>,
    /// The currency of its prices.
    pub currency: Currency,
    /// Each tier that sells the journey, in the order of the file.
    pub tiers: Vec<TrainTierReply>,
    /// Time of the reading of what is left; absent if that is not known at this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
}

/// An end of a journey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrainStopReply {
    /// The stop's id, by which the sale knows it.
    pub stop: StopId,
    /// The name people read.
    pub name: String,
}

/// A tier of a train on one journey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrainTierReply {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// The name that buyers see.
    pub name: String,
    /// The price of one ticket for the journey, in minor units.
    pub price_minor: MinorUnits,
    /// Number of seats that were free on the whole journey at `as_of`; absent without that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<u32>,
}

/// The journey of a search on a train that was found by a call; `None` if the train does not sell it at all, has left, is
/// closed or archived, or has other times by now.
#[must_use]
pub fn journey(
    published: &Published,
    asked: &TrainsQuery,
    call: &CallMark,
    now: Timestamp,
) -> Option<Legs> {
    match SaleSummary::new(published, now).state {
        Phase::Upcoming | Phase::Open | Phase::Paused | Phase::SoldOut => {}
        Phase::Cancelled | Phase::Closed | Phase::Archived => return None,
    }
    let sale = &published.sale;
    let TrainsQuery { day, from, to, .. } = asked;
    let legs = journey_from(sale.file(), *day, from, call, to)?;
    (!sale.has_left(legs, now) && tiers_on(sale, legs).next().is_some()).then_some(legs)
}

impl TrainReply {
    /// A train on a journey, and what is left of it if that is known. `None` if the journey is none of its own.
    #[must_use]
    pub fn new(sale: &Sale, legs: Legs, reading: Option<&Reading>, now: Timestamp) -> Option<Self> {
        let file = sale.file();
        let stop = |index: u16| file.stops.get(usize::from(index));
        let (from, to) = (stop(legs.from())?, stop(legs.to())?);
        let at = |time: Option<ClockTime>| file.runs_on.zip(time).map(|(day, time)| time.on(day));
        // Of all tiers or of none: one reading is of one moment.
        let left: Option<Vec<u32>> = reading.and_then(|reading| {
            tiers_on(sale, legs).map(|tier| left(tier, legs, reading)).collect()
        });
        let tiers = tiers_on(sale, legs).enumerate().filter_map(|(index, tier)| {
            Some(TrainTierReply {
                tier: tier.tier.clone(),
                name: tier.name.clone(),
                price_minor: tier.price_minor(legs)?,
                available: left.as_ref().and_then(|left| left.get(index).copied()),
            })
        });
        Some(Self {
            sale: file.sale.clone(),
            title: file.title.clone(),
            state: Phase::from_terms(&ListedTerms::from_file(file), now),
            opens_at: file.opens_at,
            closes_at: sale.departure(legs).unwrap_or(file.closes_at).min(file.closes_at),
            from: TrainStopReply::new(from),
            to: TrainStopReply::new(to),
            departs_at: at(from.departs.or(from.arrives)),
            arrives_at: at(to.arrives.or(to.departs)),
            currency: file.currency,
            tiers: tiers.collect(),
            as_of: left.and(reading).map(|reading| reading.as_of),
        })
    }
}

/// Number of seats of a tier that are free on the whole journey; `None` if it was not loaded.
fn left(tier: &Tier, legs: Legs, reading: &Reading) -> Option<u32> {
    let taken = reading.taken(&tier.tier, legs);
    let is_whole = taken.len() == tier.layout.initial().len();
    is_whole.then(|| taken.iter().map(|byte| byte.count_zeros()).sum())
}

impl TrainStopReply {
    fn new(Stop { stop, name, .. }: &Stop) -> Self {
        Self { stop: stop.clone(), name: name.clone() }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::super::cursor::InvalidCursor;
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        let cursor = TrainsCursor("0805#g35".parse().unwrap());
        let text = cursor.to_string();
        assert_eq!(text.parse(), Ok(cursor));
        let of = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let others = [
            String::new(),
            of("0805#g35"),
            of("2:0805#g35"),
            of("1:"),
            of("1:0805#A B"),
            of("1:9999#g35"),
            format!("{text}="),
            URL_SAFE_NO_PAD.encode([b'1', b':', 0xff]),
        ];
        for other in others {
            assert_eq!(other.parse::<TrainsCursor>(), Err(InvalidCursor), "{other}");
        }
    }
}
