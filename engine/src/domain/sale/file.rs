//! The sale file: the JSON document that an operator writes.

use std::ops::{Range, RangeInclusive};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::challenge::ChallengeSettings;
use super::event::{EventFacts, Text};
use super::focus::Focus;
use super::map::FileMap;
use super::room::RoomSettings;
use super::sections::Section;
use super::{
    MAX_LEGS, MAX_PLACES_PER_ROW, MAX_PRICE_MINOR, MAX_SEATS_PER_SALE, MAX_TIERS, MerchantTerms,
    PointsTerms, RefundTerms,
};
use crate::domain::basics::calendar::{ClockTime, Day};
use crate::domain::basics::ids::{ExchangeGroup, SaleId, SeatName, StopId, TierId};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::time::Timestamp;
use crate::domain::basics::time_zone::TimeZone;

/// Bounds of a sale's limit of tickets for each buyer.
pub(super) const LIMIT_PER_BUYER: RangeInclusive<u16> = 1..=1000;
/// Bounds of the payment window, in seconds. The expiry message of a window longer than 15 minutes has several delays
/// in the queue, one after the other.
pub(super) const PAY_WINDOW_SECONDS: RangeInclusive<u32> = 5..=86_400;
/// Bounds of the number of Redis slots of a gate.
pub(super) const GATE_SHARDS: RangeInclusive<u16> = 1..=64;
/// Bounds of a gate's tickets for each 100 seat-legs that are left.
pub(super) const GATE_BUDGET_PERCENT: RangeInclusive<u16> = 1..=1000;
/// Bounds of a buyer's wait between two admissions, in milliseconds.
pub(super) const GATE_USER_LOCK_MS: RangeInclusive<u32> = 1..=600_000;
/// Bounds of an admission's validity, in seconds.
pub(super) const GATE_TOKEN_SECONDS: RangeInclusive<u32> = 5..=86_400;
/// Bounds of the fee of a refund, in percent.
pub(super) const FEE_PERCENT: RangeInclusive<u16> = 0..=100;
/// Bounds of every limit of requests, attempts and orders given up.
pub(super) const LIMITS: RangeInclusive<u32> = 1..=1_000_000_000;

/// The sale file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sale file, which is an object")]
pub struct SaleFile {
    /// The sale's id; in `PUT /sales/{sale}` the same as in the path.
    pub sale: SaleId,
    /// What people call it: 1 to 200 bytes without control characters.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// When and where the event is, and what people want to know of it. It may change while the sale sells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventFacts>,
    /// The currency of every price.
    pub currency: Currency,
    /// When selling begins (RFC 3339 with an offset).
    pub opens_at: Timestamp,
    /// When selling ends.
    pub closes_at: Timestamp,
    /// `open`, or `paused` to refuse every new reservation.
    #[serde(default)]
    pub state: SaleState,
    /// True if the operator says that nothing is left: no gate admits anybody any more. Whoever was admitted goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sold_out: bool,
    /// What everybody reads who looks at the sale: 1 to 300 characters in each language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<Text>,
    /// Most tickets of one buyer in this sale.
    #[schemars(range(min = *LIMIT_PER_BUYER.start(), max = *LIMIT_PER_BUYER.end()))]
    pub limit_per_buyer: u16,
    /// How long a buyer has to pay, in seconds (5 to 86,400).
    #[schemars(range(min = *PAY_WINDOW_SECONDS.start(), max = *PAY_WINDOW_SECONDS.end()))]
    pub pay_window_seconds: u32,
    /// Whether each ticket must name the person who will use it.
    #[serde(default)]
    pub attendees: AttendeeRule,
    /// Whether each tier is on a slot of Redis of its own. An order then has seats of one tier only.
    /// Never changes once the sale is published.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tiers_apart: bool,
    /// The day on which a train sets out, by the clocks of the railway; absent for a concert, and for a train
    /// that no search is to find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<Day>,
    /// A train's stops in order; absent for a concert. *n* stops make *n - 1* legs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LEGS + 1))]
    pub stops: Vec<Stop>,
    /// How the admission gate is set.
    #[serde(default)]
    pub gate: GateSettings,
    /// The waiting room; absent: buyers come to the gate at once. Never changes once the sale is published,
    /// nor does `opens_at` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomSettings>,
    /// How often buyers may ask, and give up orders.
    #[serde(default, skip_serializing_if = "LimitSettings::is_default")]
    pub limits: LimitSettings,
    /// What a buyer must answer first; absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenges: Option<ChallengeSettings>,
    /// Whether buyers may give paid tickets back, for every tier without terms of its own; absent: they may
    /// not. An order keeps the terms of the moment of its making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refunds: Option<RefundSettings>,
    /// Whether buyers may exchange paid tickets for others, for every tier without terms of its own; absent: they
    /// may not. An order keeps the terms of the moment of its making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<RefundSettings>,
    /// Sales of one merchant that are in the same group take each other's tickets in exchange; absent: only its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange_group: Option<ExchangeGroup>,
    /// Whether its orders may be paid from their buyers' wallets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wallet: bool,
    /// The points and the growth that buyers are given for what they pay; absent: none. An order keeps what is said at
    /// the moment of its making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<PointsTerms>,
    /// What becomes of an order's tickets when a dispute of its payment is lost.
    #[serde(default, skip_serializing_if = "LostDispute::is_default")]
    pub lost_dispute: LostDispute,
    /// For whom it is sold, and what the platform keeps; absent: the deployment's own, and nothing. An order
    /// keeps what is said at the moment of its making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merchant: Option<MerchantTerms>,
    /// What is sold.
    #[schemars(length(min = 1, max = MAX_TIERS))]
    pub tiers: Vec<TierFile>,
    /// Where the seats lie, for people who choose by looking, or the hash of the map that the sale has; absent:
    /// pages lay them out by themselves. It may come, change and go while the sale sells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<FileMap>,
}

impl SaleFile {
    /// A sale of `tiers` while `selling` runs, with the default of every setting that may be left
    /// out. `pay_window_seconds` is the time that a buyer has to pay.
    #[must_use]
    pub fn new(
        sale: SaleId,
        title: String,
        currency: Currency,
        selling: Range<Timestamp>,
        limit_per_buyer: u16,
        pay_window_seconds: u32,
        tiers: Vec<TierFile>,
    ) -> Self {
        Self {
            sale,
            title,
            event: None,
            currency,
            opens_at: selling.start,
            closes_at: selling.end,
            state: SaleState::default(),
            sold_out: false,
            notice: None,
            limit_per_buyer,
            pay_window_seconds,
            attendees: AttendeeRule::default(),
            tiers_apart: false,
            runs_on: None,
            stops: Vec::new(),
            gate: GateSettings::default(),
            room: None,
            limits: LimitSettings::default(),
            challenges: None,
            refunds: None,
            exchanges: None,
            exchange_group: None,
            wallet: false,
            points: None,
            lost_dispute: LostDispute::default(),
            merchant: None,
            tiers,
            map: None,
        }
    }
}

impl SaleFile {
    /// The file as everybody may read it: without its questions, because their answers stand beside them, with the
    /// platform's commission set to 0, and without the map, which is a document of its own.
    #[must_use]
    pub fn public(&self) -> Self {
        let mut file = self.without_map();
        if let Some(terms) = &mut file.merchant {
            terms.commission_basis_points = 0;
        }
        if let Some(challenges) = &mut file.challenges {
            challenges.questions.clear();
        }
        file
    }

    /// The price of the cheapest ticket; for a train, the cheapest on any journey that has a price. `None` for a file
    /// without tiers, which no check lets pass.
    #[must_use]
    pub fn price_from(&self) -> Option<Money> {
        let fares = |tier: &TierFile| tier.fares.iter().map(|fare| fare.price_minor).min();
        let cheapest =
            self.tiers.iter().filter_map(|tier| tier.price_minor.or_else(|| fares(tier))).min();
        cheapest.map(|amount_minor| Money { amount_minor, currency: self.currency })
    }

    /// True if it fills its buyers' wallets.
    #[must_use]
    pub fn fills_wallets(&self) -> bool {
        self.merchant.as_ref().is_some_and(|terms| terms.merchant.is_wallet())
    }

    /// The clocks by which a train calls at a stop; `None` if the file does not say.
    #[must_use]
    pub fn zone_of<'a>(&'a self, stop: &'a Stop) -> Option<&'a TimeZone> {
        let of_event = || self.event.as_ref()?.time_zone.as_ref();
        stop.time_zone.as_ref().or_else(of_event)
    }

    /// True if another file has the same stops under the same names, whenever the train calls there.
    #[must_use]
    pub fn has_the_stops_of(&self, other: &Self) -> bool {
        let is_same =
            |(ours, theirs): (&Stop, &Stop)| ours.stop == theirs.stop && ours.name == theirs.name;
        self.stops.len() == other.stops.len() && self.stops.iter().zip(&other.stops).all(is_same)
    }

    /// The file without its map, as the catalogue keeps it.
    #[must_use]
    pub fn without_map(&self) -> Self {
        Self { map: None, ..self.clone() }
    }
}

/// What becomes of an order's tickets when a dispute of its payment is lost, so that the money is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostDispute {
    /// They are void, and their seats are on sale again.
    #[default]
    Revokes,
    /// They stay good, as where the guest is worth more than the ticket.
    Keeps,
}

impl LostDispute {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether a sale takes new reservations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SaleState {
    /// Sells between `opens_at` and `closes_at`.
    #[default]
    Open,
    /// Refuses new reservations; payments and cancellations go on.
    Paused,
    /// Does not take place: it sells nothing any more, ever, and money that comes for an order which had
    /// ended goes back. `onsale sale cancel` also refunds what it had sold.
    Cancelled,
}

impl SaleState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 3] = [Self::Open, Self::Paused, Self::Cancelled];

    /// The text in the sale file, in Redis and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of a text; `None` if no state has it.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Whether tickets name their attendees. Where they do, no attendee has two tickets of a sale.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttendeeRule {
    /// A ticket may name its attendee.
    #[default]
    Optional,
    /// Every ticket must.
    Required,
}

/// A stop of a train.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a stop, which is an object")]
pub struct Stop {
    /// The operator's code, unique in the sale.
    pub stop: StopId,
    /// The name people read.
    pub name: String,
    /// When the train arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrives: Option<ClockTime>,
    /// When it departs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departs: Option<ClockTime>,
    /// The time zone of the clocks by which it arrives and departs; absent: that of the event, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<TimeZone>,
}

impl Stop {
    /// A stop without times.
    #[must_use]
    pub fn new(stop: StopId, name: String) -> Self {
        Self { stop, name, arrives: None, departs: None, time_zone: None }
    }
}

/// How the admission gate of a sale is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct GateSettings {
    /// Over how many Redis slots the flood is spread.
    #[schemars(range(min = *GATE_SHARDS.start(), max = *GATE_SHARDS.end()))]
    pub shards: u16,
    /// Tickets admitted at a time for each 100 that are left; on a train of n legs a ticket counts as
    /// (n + 2) / 3 seat-legs. A train opens with this percentage of its seats times its stops.
    #[schemars(range(min = *GATE_BUDGET_PERCENT.start(), max = *GATE_BUDGET_PERCENT.end()))]
    pub budget_percent: u16,
    /// Most admissions a second, over all shards.
    #[schemars(range(min = 1))]
    pub rate_per_second: u32,
    /// How long a buyer waits between two admissions, in milliseconds.
    #[schemars(range(min = *GATE_USER_LOCK_MS.start(), max = *GATE_USER_LOCK_MS.end()))]
    pub user_lock_ms: u32,
    /// How long an admission is good for, in seconds.
    #[schemars(range(min = *GATE_TOKEN_SECONDS.start(), max = *GATE_TOKEN_SECONDS.end()))]
    pub token_seconds: u32,
}

impl Default for GateSettings {
    fn default() -> Self {
        Self {
            shards: 4,
            budget_percent: 75,
            rate_per_second: 2000,
            user_lock_ms: 5000,
            token_seconds: 300,
        }
    }
}

/// Until when buyers may give paid tickets back, or exchange them, and for what fee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "terms of refunds, which are an object")]
pub struct RefundSettings {
    /// Until when, exclusive: so long before the start as the operator says (RFC 3339 with an offset).
    pub until: Timestamp,
    /// What is kept of each ticket's price, in percent of it, rounded up to a minor unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 100))]
    pub fee_percent: u16,
    /// What is kept of each ticket's price besides, in minor units; of a cheaper ticket all of it.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[schemars(range(min = 0, max = MAX_PRICE_MINOR.0))]
    pub fee_minor: MinorUnits,
}

impl RefundSettings {
    /// The terms of a ticket of a price. What the fee leaves of it is an amount that every provider can send back
    /// ([`Currency::round_down`]).
    #[must_use]
    pub fn terms(&self, price_minor: MinorUnits, currency: Currency) -> RefundTerms {
        let percent = price_minor.0.saturating_mul(i64::from(self.fee_percent));
        // No price is negative.
        let share = MinorUnits(percent.saturating_add(99) / 100);
        let fee_minor = (share + self.fee_minor).min(price_minor);
        let is_free = fee_minor == MinorUnits::ZERO;
        let left = price_minor - fee_minor;
        let left = if is_free { left } else { currency.round_down(left) };
        let fee_minor = price_minor - left;
        RefundTerms { until: self.until, fee_minor }
    }
}

/// True of a number that is left out where it is written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(number: &u16) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_nothing(amount: &MinorUnits) -> bool {
    *amount == MinorUnits::ZERO
}

/// How often buyers may ask for admissions, and give up orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct LimitSettings {
    /// Most requests of a buyer in a minute.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub buyer_per_minute: u32,
    /// Most requests of a buyer in the sale.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub asks_per_buyer: u32,
    /// Orders of a buyer that end unpaid in the sale, after which the buyer is admitted no more.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub given_up_per_buyer: u32,
    /// Requests from one address in a minute over which challenges become harder.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub address_harder_over: u32,
    /// Most requests from one address in a minute.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub address_per_minute: u32,
    /// Requests with one device hint in a minute over which challenges become harder.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub device_harder_over: u32,
    /// Most requests with one device hint in a minute.
    #[schemars(range(min = *LIMITS.start(), max = *LIMITS.end()))]
    pub device_per_minute: u32,
}

impl LimitSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            // A client that obeys `Retry-After` asks once a second at most; a buyer may have two.
            buyer_per_minute: 120,
            // Once a second for more than five hours.
            asks_per_buyer: 20_000,
            // A payment fails, a page is closed, friends change their minds: some orders, not twenty.
            given_up_per_buyer: 20,
            // Ten a second: more than a household or an office asks. A carrier puts up to thousands of
            // people behind an address (RFC 6269, section 4), so over this nobody is refused.
            address_harder_over: 600,
            // 5,000 people behind an address who each ask once a second. That is twice what the route takes
            // of everybody (`AdmissionRate` in `template.yaml`): an address that shall be refused, and not
            // only challenged, is the operator's to name.
            address_per_minute: 300_000,
            // A hint may be no more than the model of a phone, which many have: as for an address.
            device_harder_over: 600,
            device_per_minute: 300_000,
        }
    }
}

/// One tier of the file. Exactly one of `sections` and `general_admission` is given, and exactly
/// one of `price_minor` and `fares`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a tier, which is an object")]
pub struct TierFile {
    /// The tier's id, unique in the sale.
    pub tier: TierId,
    /// What people call it.
    pub name: String,
    /// The price of any journey, in minor units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_PRICE_MINOR.0))]
    pub price_minor: Option<MinorUnits>,
    /// The price by journey; a journey without a fare is not sold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fares: Vec<Fare>,
    /// Column letters from left to right, `null` for the aisle; needed for patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_PLACES_PER_ROW))]
    pub columns: Vec<Option<String>>,
    /// Blocks or coaches, most desirable first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Section>,
    /// What the best seats of a row are nearest to; absent: its middle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    /// A number of spots without a place, called `<tier>-1`, `<tier>-2` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SEATS_PER_SALE))]
    pub general_admission: Option<u32>,
    /// Seats of the plan that are not sold (kills, house seats).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_for_sale: Vec<SeatName>,
    /// Whether buyers may give its tickets back, instead of what the sale says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refunds: Option<RefundSettings>,
    /// Whether buyers may exchange its tickets, instead of what the sale says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<RefundSettings>,
}

impl TierFile {
    /// A tier with neither prices nor seats yet, and with the default of every setting.
    #[must_use]
    pub fn new(tier: TierId, name: String) -> Self {
        Self {
            tier,
            name,
            price_minor: None,
            fares: Vec::new(),
            columns: Vec::new(),
            sections: Vec::new(),
            focus: None,
            general_admission: None,
            not_for_sale: Vec::new(),
            refunds: None,
            exchanges: None,
        }
    }
}

/// The price of one journey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a fare, which is an object")]
pub struct Fare {
    /// Where the journey begins.
    pub from: StopId,
    /// Where it ends.
    pub to: StopId,
    /// Its price, in minor units.
    #[schemars(range(min = 0, max = MAX_PRICE_MINOR.0))]
    pub price_minor: MinorUnits,
}
