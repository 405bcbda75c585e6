//! A sale, and what is left of it, as the API shows them to everyone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::bytes::MapHash;
use engine::domain::basics::ids::{Legs, SaleId, StopId, TierId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::capacity::{CacheKind, starts_shortfall};
use engine::domain::payment::prices::{AccountBounds, price_shortfalls};
use engine::domain::payment::start::Offer;
use engine::domain::sale::archive::Lifecycle;
use engine::domain::sale::event::EventFacts;
use engine::domain::sale::timetable::TrainRoute;
use engine::domain::sale::{FileMap, MapName, Sale, SaleFile, SaleState, Tier};
use engine::ports::{ListedTerms, Published};

/// State of a sale for a buyer: open, or why it takes no orders now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It opens later.
    Upcoming,
    /// It sells.
    Open,
    /// The operator has paused it.
    Paused,
    /// The operator says that nothing is left.
    SoldOut,
    /// It does not take place: its orders are refunded.
    Cancelled,
    /// It is over.
    Closed,
    /// It was over long ago, and is in no list any more.
    Archived,
}

impl Phase {
    /// The phase of a sale at a moment.
    #[must_use]
    pub fn from_terms(terms: &ListedTerms, now: Timestamp) -> Self {
        match terms.state {
            SaleState::Cancelled => Self::Cancelled,
            SaleState::Open | SaleState::Paused if now >= terms.closes_at => Self::Closed,
            SaleState::Paused => Self::Paused,
            SaleState::Open if now < terms.opens_at => Self::Upcoming,
            SaleState::Open if terms.sold_out => Self::SoldOut,
            SaleState::Open => Self::Open,
        }
    }
}

/// One sale in the list of sales.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SaleSummary {
    /// Its id.
    pub sale: SaleId,
    /// Title for people.
    pub title: String,
    /// Beginning of selling.
    pub opens_at: Timestamp,
    /// End of selling.
    pub closes_at: Timestamp,
    /// State for a buyer at the time of the reply.
    pub state: Phase,
    /// What its cheapest ticket costs, in minor units; of a train, on any journey. Absent of a sale that was
    /// published before lists had this, and not since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_from_minor: Option<MinorUnits>,
    /// The currency of that price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// When and where the event is, with the hash of its document; absent if nobody has said so, and of a sale that was
    /// published before lists had this, and not since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<EventFacts>,
    /// Of a train, its first and its last stop, with departure and arrival by the clocks there; absent of a sale
    /// without stops, and of one that was published before lists had this, and not since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<TrainRoute>,
}

impl SaleSummary {
    /// A sale's summary at a moment.
    #[must_use]
    pub fn new(published: &Published, now: Timestamp) -> Self {
        let file = published.sale.file();
        let summary = Self::listed(file.sale.clone(), ListedTerms::from_file(file), now);
        match published.lifecycle {
            Lifecycle::Listed => summary,
            Lifecycle::Unloading | Lifecycle::Archived => {
                Self { state: Phase::Archived, ..summary }
            }
        }
    }

    /// The summary of a listed sale at a moment.
    #[must_use]
    pub fn listed(sale: SaleId, terms: ListedTerms, now: Timestamp) -> Self {
        let state = Phase::from_terms(&terms, now);
        let ListedTerms { title, opens_at, closes_at, price_from, event, route, .. } = terms;
        let price_from_minor = price_from.map(|price| price.amount_minor);
        let currency = price_from.map(|price| price.currency);
        Self { sale, title, opens_at, closes_at, state, price_from_minor, currency, event, route }
    }
}

/// A sale: its file, and how its seats lie in the bitmaps of availability.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SaleReply {
    /// The summary.
    #[serde(flatten)]
    pub summary: SaleSummary,
    /// Counts every publication.
    pub version: u64,
    /// The sale file: terms, stops, tiers, prices and seats. The questions of its challenges are left out, and
    /// of its map it has the hash.
    pub file: SaleFile,
    /// The map of its seats, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapReply>,
    /// The grid of each tier, in the order of the file.
    pub tiers: Vec<TierGridReply>,
    /// What the operator who published it should know, in sentences; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The name of a sale's map, by which `GET /sales/{sale}/map?v=<hash>` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MapReply {
    /// The first half of the SHA-256 of the map document.
    pub hash: MapHash,
}

/// The grid of one tier: seat *c* of row *r* is bit `r * row_bytes * 8 + c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TierGridReply {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// Number of rows, blank ones between coaches included.
    pub rows: usize,
    /// Bytes of one row.
    pub row_bytes: u32,
    /// Number of seats for sale.
    pub seats: u32,
}

impl SaleReply {
    /// A published sale at a moment.
    #[must_use]
    pub fn new(published: &Published, now: Timestamp) -> Self {
        let sale = &published.sale;
        let grid = |tier: &Tier| TierGridReply {
            tier: tier.tier.clone(),
            rows: tier.layout.rows().len(),
            row_bytes: tier.layout.row_bytes(),
            seats: tier.layout.sellable(),
        };
        Self {
            summary: SaleSummary::new(published, now),
            version: published.version,
            file: SaleFile {
                map: published.map.map(|hash| FileMap::Kept(MapName { hash })),
                ..sale.file().public()
            },
            map: published.map.map(|hash| MapReply { hash }),
            tiers: sale.tiers().iter().map(grid).collect(),
            warnings: Vec::new(),
        }
    }

    /// The same for the operator who published it, with what the cache and the payment providers do not carry.
    #[must_use]
    pub fn warned(
        self,
        published: &Published,
        cache: Option<CacheKind>,
        starts_per_second: u32,
        offers: &[Offer],
    ) -> Self {
        let sale = &published.sale;
        let prices = price_shortfalls(sale, offers, AccountBounds::default());
        let warnings = [
            cache.and_then(|cache| cache.shortfall(sale)),
            starts_shortfall(sale, starts_per_second),
            event_shortfall(sale.file()),
            clock_shortfall(sale),
        ];
        Self { warnings: warnings.into_iter().flatten().chain(prices).collect(), ..self }
    }
}

/// The warning to an operator whose event nobody can find: a later release refuses the file.
fn event_shortfall(file: &SaleFile) -> Option<String> {
    let is_told = file.event.as_ref().is_some_and(EventFacts::is_told);
    let is_event = file.stops.is_empty() && !file.fills_wallets();
    (is_event && !is_told).then(|| {
        "The file does not say when and where the event is: give event.starts_at, event.time_zone and \
         event.venue.name, which the next release requires."
            .to_owned()
    })
}

/// The warning to an operator whose train sells journeys that have begun.
fn clock_shortfall(sale: &Sale) -> Option<String> {
    let is_train = !sale.file().stops.is_empty();
    (is_train && sale.departure(sale.whole()).is_none()).then(|| {
        "Nobody knows when the train leaves: give runs_on, and time_zone and departs of its stops. Until closes_at it \
         sells journeys from stops that it has left."
            .to_owned()
    })
}

/// Availability of a sale on one journey. A moment later it may be less, or more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AvailabilityReply {
    /// Sale id.
    pub sale: SaleId,
    /// Time of the reading.
    pub as_of: Timestamp,
    /// Seconds for which a cache may repeat it: an answer may be that much older than `as_of`.
    pub max_age_seconds: u32,
    /// Stop where the journey begins; absent for a concert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StopId>,
    /// Stop where the journey ends; absent for a concert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<StopId>,
    /// Each tier that sells this journey, in the order of the file.
    pub tiers: Vec<TierAvailability>,
}

/// Availability of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TierAvailability {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// The price of one ticket for the journey, in minor units.
    pub price_minor: MinorUnits,
    /// Number of seats that are free on the whole journey.
    pub available: u32,
    /// Bytes of one row in `free`.
    pub row_bytes: u32,
    /// One bit a place, most significant bit first, 1 where a seat is free on the whole journey;
    /// in base64.
    pub free: String,
}

/// The tiers that sell a journey.
pub fn tiers_on(sale: &Sale, legs: Legs) -> impl Iterator<Item = &Tier> {
    sale.tiers().iter().filter(move |tier| tier.price_minor(legs).is_some())
}

impl AvailabilityReply {
    /// What is left on a journey, from what is taken in each tier of [`tiers_on`] it, in order.
    ///
    /// Returns `None` if a bitmap is not of its tier's size: the sale is not loaded.
    #[must_use]
    pub fn new(
        sale: &Sale,
        legs: Legs,
        taken: &[Vec<u8>],
        as_of: Timestamp,
        max_age_seconds: u32,
    ) -> Option<Self> {
        let tier = |(tier, taken): (&Tier, &Vec<u8>)| {
            let price_minor = tier.price_minor(legs)?;
            TierAvailability::new(tier, price_minor, taken)
        };
        let tiers: Vec<TierAvailability> =
            tiers_on(sale, legs).zip(taken).map(tier).collect::<Option<_>>()?;
        (tiers_on(sale, legs).count() == taken.len()).then(|| Self {
            sale: sale.id().clone(),
            as_of,
            max_age_seconds,
            from: sale.stop(legs.from()).cloned(),
            to: sale.stop(legs.to()).cloned(),
            tiers,
        })
    }
}

impl TierAvailability {
    fn new(tier: &Tier, price_minor: MinorUnits, taken: &[u8]) -> Option<Self> {
        if taken.len() != tier.layout.initial().len() {
            return None;
        }
        let free: Vec<u8> = taken.iter().map(|byte| !byte).collect();
        Some(Self {
            tier: tier.tier.clone(),
            price_minor,
            available: free.iter().map(|byte| byte.count_ones()).sum(),
            row_bytes: tier.layout.row_bytes(),
            free: STANDARD.encode(free),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn train() -> Sale {
        let file = json!({
            "sale": "g1", "title": "G1", "currency": "CNY",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "limit_per_buyer": 5, "pay_window_seconds": 600,
            "stops": [{"stop": "A", "name": "a"}, {"stop": "B", "name": "b"}, {"stop": "C", "name": "c"}],
            "tiers": [
                { "tier": "first", "name": "First", "general_admission": 3,
                  "fares": [{"from": "A", "to": "C", "price_minor": 900}] },
                { "tier": "second", "name": "Second", "general_admission": 70, "price_minor": 300 }
            ]
        });
        Sale::new(serde_json::from_value(file).unwrap()).unwrap()
    }

    #[test]
    fn availability_counts_what_is_free_on_the_journey() {
        let sale = train();
        let now = Timestamp::from_ms(0);
        let mut taken: Vec<Vec<u8>> =
            sale.tiers().iter().map(|tier| tier.layout.initial().to_vec()).collect();
        taken[0][0] |= 0b1000_0000;
        let reply = AvailabilityReply::new(&sale, sale.whole(), &taken, now, 1).unwrap();
        let counts: Vec<u32> = reply.tiers.iter().map(|tier| tier.available).collect();
        assert_eq!((counts, reply.tiers[0].price_minor), (vec![2, 70], MinorUnits(900)));
        assert_eq!(STANDARD.decode(&reply.tiers[0].free).unwrap()[0], 0b0110_0000);
        assert_eq!(reply.to.as_ref().map(StopId::as_str), Some("C"));
    }

    #[test]
    fn a_tier_without_a_fare_is_left_out_and_an_absent_bitmap_is_noticed() {
        let sale = train();
        let now = Timestamp::from_ms(0);
        let first_leg = Legs::new(0, 1).unwrap();
        let second = sale.tiers()[1].layout.initial().to_vec();
        let reply = AvailabilityReply::new(&sale, first_leg, std::slice::from_ref(&second), now, 1)
            .unwrap();
        assert_eq!(reply.tiers.len(), 1);
        assert_eq!(AvailabilityReply::new(&sale, sale.whole(), &[vec![], second], now, 1), None);
        assert_eq!(AvailabilityReply::new(&sale, sale.whole(), &[], now, 1), None);
    }

    #[test]
    fn the_phase_follows_the_window_and_the_operator() {
        let mut file = train().file().clone();
        let at = |file: &SaleFile, time: &str| {
            Phase::from_terms(&ListedTerms::from_file(file), time.parse().unwrap())
        };
        assert_eq!(at(&file, "2025-12-31T23:59:59Z"), Phase::Upcoming);
        assert_eq!(at(&file, "2026-01-01T00:00:00Z"), Phase::Open);
        assert_eq!(at(&file, "2030-01-01T00:00:00Z"), Phase::Closed);
        file.sold_out = true;
        assert_eq!(at(&file, "2027-01-01T00:00:00Z"), Phase::SoldOut);
        assert_eq!(at(&file, "2030-01-01T00:00:00Z"), Phase::Closed);
        file.state = SaleState::Paused;
        assert_eq!(at(&file, "2027-01-01T00:00:00Z"), Phase::Paused);
        assert_eq!(at(&file, "2031-01-01T00:00:00Z"), Phase::Closed);
    }
}
