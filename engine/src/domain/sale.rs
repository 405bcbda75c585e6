//! A sale, as an operator writes it down and as the engine reads it.
//!
//! [`SaleFile`] is the JSON document (`docs/sale-file.md`): what `PUT /sales/{sale}` takes and the
//! catalogue stores. [`Sale`] is the same after every check, with its tiers laid out; nothing else
//! can be made from a file that breaks a rule.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{Legs, SaleId, SeatName, StopId, TierId};
use super::layout::{Layout, Row};
use super::money::{Currency, Money};
use super::places::RowPlaces;
pub use super::sections::{Lettered, Places, Run, Section, SectionRow};
use super::time::Timestamp;

/// Most tiers of a sale: a script takes the keys of every tier it may touch.
pub const MAX_TIERS: usize = 64;
/// Most legs of a sale.
pub const MAX_LEGS: usize = 64;
/// Most seats of a sale, all tiers together.
pub const MAX_SEATS_PER_SALE: usize = 1_000_000;
/// Most bytes of a sale's bitmaps of what is taken, all tiers and legs together: what one script
/// loads at once. Every row is as long as its tier's longest.
pub const MAX_BITMAP_BYTES: usize = 16_000_000;
/// Most places of one row.
pub const MAX_PLACES_PER_ROW: usize = 1024;
/// The highest price of a ticket, in minor units: the amount of any order is far inside 64 bits.
pub const MAX_PRICE_MINOR: i64 = 1_000_000_000_000;
/// Longest and shortest payment window, in seconds. Windows over 15 minutes hop through the queue.
pub const PAY_WINDOW_SECONDS: std::ops::RangeInclusive<u32> = 5..=86_400;

/// The sale file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sale file, which is an object")]
pub struct SaleFile {
    /// The sale's id; in `PUT /sales/{sale}` the same as in the path.
    pub sale: SaleId,
    /// What people call it: 1 to 200 bytes without control characters.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// The currency of every price.
    pub currency: Currency,
    /// When selling begins (RFC 3339 with an offset).
    pub opens_at: Timestamp,
    /// When selling ends.
    pub closes_at: Timestamp,
    /// `open`, or `paused` to refuse every new reservation.
    #[serde(default)]
    pub state: SaleState,
    /// Most tickets of one buyer in this sale.
    #[schemars(range(min = 1, max = 1000))]
    pub limit_per_buyer: u16,
    /// How long a buyer has to pay, in seconds (5 to 86,400).
    #[schemars(range(min = *PAY_WINDOW_SECONDS.start(), max = *PAY_WINDOW_SECONDS.end()))]
    pub pay_window_seconds: u32,
    /// Whether each ticket must name the person who will use it.
    #[serde(default)]
    pub attendees: AttendeeRule,
    /// A train's stops in order; absent for a concert. *n* stops make *n - 1* legs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LEGS + 1))]
    pub stops: Vec<Stop>,
    /// How the admission gate is set.
    #[serde(default)]
    pub gate: GateSettings,
    /// What is sold.
    #[schemars(length(min = 1, max = MAX_TIERS))]
    pub tiers: Vec<TierFile>,
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
}

/// How the admission gate of a sale is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct GateSettings {
    /// Over how many Redis slots the flood is spread.
    #[schemars(range(min = 1, max = 64))]
    pub shards: u16,
    /// Tickets admitted for each 100 seat-legs that are left.
    #[schemars(range(min = 1, max = 1000))]
    pub budget_percent: u16,
    /// Most admissions a second, over all shards.
    #[schemars(range(min = 1))]
    pub rate_per_second: u32,
    /// How long a buyer waits between two admissions, in milliseconds.
    #[schemars(range(min = 1, max = 600_000))]
    pub user_lock_ms: u32,
    /// How long an admission is good for, in seconds.
    #[schemars(range(min = 5, max = 86_400))]
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
    #[schemars(range(min = 0, max = MAX_PRICE_MINOR))]
    pub price_minor: Option<i64>,
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
    /// A number of spots without a place, called `<tier>-1`, `<tier>-2` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_SEATS_PER_SALE))]
    pub general_admission: Option<u32>,
    /// Seats of the plan that are not sold (kills, house seats).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_for_sale: Vec<SeatName>,
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
    #[schemars(range(min = 0, max = MAX_PRICE_MINOR))]
    pub price_minor: i64,
}

/// A rule that a sale file breaks, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[error("{at}: {rule}")]
pub struct Defect {
    /// Where in the file, as a path such as `tiers[2].sections[0]`.
    pub at: String,
    /// What is wrong there, in words.
    pub rule: String,
}

impl Defect {
    fn new(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { at: at.into(), rule: rule.into() }
    }
}

/// One tier, checked and laid out.
#[derive(Debug, Clone)]
pub struct Tier {
    /// The tier's id.
    pub tier: TierId,
    /// What people call it.
    pub name: String,
    /// Its seats.
    pub layout: Layout,
    price_minor: Option<i64>,
    fares: HashMap<Legs, i64>,
}

impl Tier {
    /// The price of one ticket for a journey, in minor units; `None` if the journey is not sold.
    #[must_use]
    pub fn price_minor(&self, legs: Legs) -> Option<i64> {
        self.fares.get(&legs).copied().or(self.price_minor)
    }

    /// The journeys that have a fare of their own, in order; empty if one price holds for all.
    #[must_use]
    pub fn fares(&self) -> BTreeMap<Legs, i64> {
        self.fares.iter().map(|(legs, price)| (*legs, *price)).collect()
    }
}

/// A sale whose file broke no rule.
#[derive(Debug, Clone)]
pub struct Sale {
    file: SaleFile,
    tiers: Vec<Tier>,
}

impl Sale {
    /// Checks a file and lays its tiers out.
    ///
    /// # Errors
    /// Returns every defect that was found, never an empty list.
    pub fn new(file: SaleFile) -> Result<Self, Vec<Defect>> {
        let sale = Self::of_published(file)?;
        let mut defects = Vec::new();
        check_names(&sale.tiers, &mut defects);
        if defects.is_empty() { Ok(sale) } else { Err(defects) }
    }

    /// [`Sale::new`] of a file that it has accepted before: whether two seats bear the same name is
    /// not looked at again, for that takes the name of every seat of the hall.
    ///
    /// # Errors
    /// Returns every other defect that was found, never an empty list.
    pub fn of_published(file: SaleFile) -> Result<Self, Vec<Defect>> {
        // A few bytes can describe more seats than there is memory: this comes before the rest.
        check_size(&file)?;
        let mut defects = Vec::new();
        check_terms(&file, &mut defects);
        let stops = check_stops(&file, &mut defects);
        let tiers: Vec<Tier> = file
            .tiers
            .iter()
            .enumerate()
            .filter_map(|(index, tier)| lay_out(&file, index, tier, &stops, &mut defects))
            .collect();
        if defects.is_empty() { Ok(Self { file, tiers }) } else { Err(defects) }
    }

    /// The file it was made from.
    #[must_use]
    pub fn file(&self) -> &SaleFile {
        &self.file
    }

    /// The sale's id.
    #[must_use]
    pub fn id(&self) -> &SaleId {
        &self.file.sale
    }

    /// Its tiers, in the order of the file.
    #[must_use]
    pub fn tiers(&self) -> &[Tier] {
        &self.tiers
    }

    /// The tier with an id.
    #[must_use]
    pub fn tier(&self, id: &TierId) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.tier == *id)
    }

    /// How many legs a whole journey has: one for a concert.
    #[must_use]
    pub fn legs(&self) -> u16 {
        (self.file.stops.len().max(2) - 1) as u16
    }

    /// The whole journey.
    #[must_use]
    pub fn whole(&self) -> Legs {
        Legs::new(0, self.legs()).unwrap_or(Legs::ONE)
    }

    /// The legs between two stops; `None` unless both are stops in this order.
    #[must_use]
    pub fn journey(&self, from: &StopId, to: &StopId) -> Option<Legs> {
        let index = |id: &StopId| self.file.stops.iter().position(|stop| stop.stop == *id);
        Legs::new(index(from)? as u16, index(to)? as u16)
    }

    /// The stop with this index; `None` for a concert.
    #[must_use]
    pub fn stop(&self, index: u16) -> Option<&StopId> {
        self.file.stops.get(usize::from(index)).map(|stop| &stop.stop)
    }

    /// An amount in the sale's currency.
    #[must_use]
    pub fn money(&self, amount_minor: i64) -> Money {
        Money { amount_minor, currency: self.file.currency }
    }

    /// How many seat-legs the sale has in all: what its gate's budget is a share of.
    #[must_use]
    pub fn seat_legs(&self) -> u64 {
        let seats: u64 = self.tiers.iter().map(|tier| u64::from(tier.layout.sellable())).sum();
        seats * u64::from(self.legs())
    }

    /// True if another version of the sale has the same seats on the same legs, however its file
    /// describes them, so that it may replace this one while the sale runs.
    #[must_use]
    pub fn has_the_seats_of(&self, other: &Self) -> bool {
        let is_same = |(ours, theirs): (&Tier, &Tier)| {
            ours.tier == theirs.tier && ours.layout.is_the_same(&theirs.layout)
        };
        self.file.sale == other.file.sale
            && self.file.currency == other.file.currency
            && self.file.stops == other.file.stops
            && self.tiers.len() == other.tiers.len()
            && self.tiers.iter().zip(&other.tiers).all(is_same)
    }
}

/// Measures what the file describes, without making it.
fn check_size(file: &SaleFile) -> Result<(), Vec<Defect>> {
    let mut places = 0_usize;
    let mut bitmap_bytes = 0_usize;
    for tier in &file.tiers {
        let spots = tier.general_admission.unwrap_or(0) as usize;
        places = places.saturating_add(spots);
        let (mut rows, mut longest) = (0_usize, 0_usize);
        for section in &tier.sections {
            for row in &section.rows {
                // A row without places is refused later; until then it takes memory as well.
                let long = row.places(&tier.columns).max(1);
                let many = row.rows().saturating_mul(section.sections());
                places = places.saturating_add(many.saturating_mul(long));
                longest = longest.max(long);
            }
            // One blank row may follow each section.
            rows = rows.saturating_add(section.rows_in_all());
            rows = rows.saturating_add(section.sections());
        }
        let bytes = rows.saturating_mul(longest.div_ceil(8));
        bitmap_bytes = bitmap_bytes.saturating_add(bytes).saturating_add(spots.div_ceil(8));
    }
    let legs = file.stops.len().max(2) - 1;
    if places > MAX_SEATS_PER_SALE {
        return Err(vec![Defect::new("tiers", "must have at most 1,000,000 places in all")]);
    }
    if bitmap_bytes.saturating_mul(legs) > MAX_BITMAP_BYTES {
        let rule = "rows × bytes of the longest row × legs must be at most 16,000,000 in all";
        return Err(vec![Defect::new("tiers", rule)]);
    }
    Ok(())
}

fn check_terms(file: &SaleFile, defects: &mut Vec<Defect>) {
    let mut refuse = |broken: bool, at: &str, rule: &str| {
        if broken {
            defects.push(Defect::new(at, rule));
        }
    };
    let title = file.title.as_str();
    let is_text = !title.trim().is_empty() && !title.chars().any(char::is_control);
    let rule = "must have 1 to 200 bytes without control characters";
    refuse(title.len() > 200 || !is_text, "title", rule);
    refuse(file.closes_at <= file.opens_at, "closes_at", "must be later than opens_at");
    refuse(!(1..=1000).contains(&file.limit_per_buyer), "limit_per_buyer", "must be 1 to 1,000");
    refuse(
        !PAY_WINDOW_SECONDS.contains(&file.pay_window_seconds),
        "pay_window_seconds",
        "must be 5 to 86,400 seconds",
    );
    refuse(!(1..=64).contains(&file.gate.shards), "gate.shards", "must be 1 to 64");
    refuse(
        !(1..=1000).contains(&file.gate.budget_percent),
        "gate.budget_percent",
        "must be 1 to 1,000",
    );
    refuse(file.gate.rate_per_second == 0, "gate.rate_per_second", "must be at least 1");
    refuse(
        !(1..=600_000).contains(&file.gate.user_lock_ms),
        "gate.user_lock_ms",
        "must be 1 to 600,000",
    );
    refuse(
        !(5..=86_400).contains(&file.gate.token_seconds),
        "gate.token_seconds",
        "must be 5 to 86,400",
    );
    refuse(file.tiers.is_empty(), "tiers", "must not be empty");
    refuse(file.tiers.len() > MAX_TIERS, "tiers", "must be at most 64");
}

/// The index of each stop, checked to be one of at least two and at most 65 distinct ones.
fn check_stops(file: &SaleFile, defects: &mut Vec<Defect>) -> HashMap<StopId, u16> {
    let mut index_of = HashMap::new();
    for (index, stop) in file.stops.iter().enumerate() {
        if index_of.insert(stop.stop.clone(), index as u16).is_some() {
            defects.push(Defect::new(
                format!("stops[{index}]"),
                format!("stop {} stands twice", stop.stop),
            ));
        }
    }
    if file.stops.len() == 1 || file.stops.len() > MAX_LEGS + 1 {
        defects.push(Defect::new("stops", "must be absent, or 2 to 65 stops"));
    }
    index_of
}

fn lay_out(
    file: &SaleFile,
    index: usize,
    tier: &TierFile,
    stops: &HashMap<StopId, u16>,
    defects: &mut Vec<Defect>,
) -> Option<Tier> {
    let at = format!("tiers[{index}]");
    let before = defects.len();
    if file.tiers[..index].iter().any(|earlier| earlier.tier == tier.tier) {
        defects.push(Defect::new(&at, format!("tier {} stands twice", tier.tier)));
    }
    if tier.price_minor.is_some() != tier.fares.is_empty() {
        defects.push(Defect::new(&at, "must have either price_minor or fares"));
    }
    if tier.price_minor.is_some_and(|price| !is_price(price)) {
        defects.push(Defect::new(format!("{at}.price_minor"), PRICE_RULE));
    }
    let fares = read_fares(tier, &at, stops, defects);
    let layout = read_seats(tier, &at, defects)?;
    (defects.len() == before).then(|| Tier {
        tier: tier.tier.clone(),
        name: tier.name.clone(),
        layout,
        price_minor: tier.price_minor,
        fares,
    })
}

const PRICE_RULE: &str = "must be 0 to 1,000,000,000,000 minor units";

fn is_price(price_minor: i64) -> bool {
    (0..=MAX_PRICE_MINOR).contains(&price_minor)
}

fn read_fares(
    tier: &TierFile,
    at: &str,
    stops: &HashMap<StopId, u16>,
    defects: &mut Vec<Defect>,
) -> HashMap<Legs, i64> {
    let mut fares = HashMap::new();
    for (index, fare) in tier.fares.iter().enumerate() {
        let at = format!("{at}.fares[{index}]");
        let ends = stops.get(&fare.from).zip(stops.get(&fare.to));
        let Some(legs) = ends.and_then(|(from, to)| Legs::new(*from, *to)) else {
            defects.push(Defect::new(
                at,
                format!("{} to {} is no journey of this sale", fare.from, fare.to),
            ));
            continue;
        };
        if !is_price(fare.price_minor) {
            defects.push(Defect::new(&at, PRICE_RULE));
        }
        if fares.insert(legs, fare.price_minor).is_some() {
            defects.push(Defect::new(at, format!("{} to {} has two fares", fare.from, fare.to)));
        }
    }
    fares
}

fn read_seats(tier: &TierFile, at: &str, defects: &mut Vec<Defect>) -> Option<Layout> {
    match (tier.general_admission, tier.sections.is_empty()) {
        (Some(spots), true) => {
            if spots == 0 {
                defects.push(Defect::new(at, "general_admission must be at least 1"));
                return None;
            }
            if !tier.columns.is_empty() || !tier.not_for_sale.is_empty() {
                defects
                    .push(Defect::new(at, "general admission has neither columns nor named seats"));
            }
            let layout = Layout::general_admission(tier.tier.as_str(), spots);
            layout.map_err(|rule| defects.push(Defect::new(at, rule))).ok()
        }
        (None, false) => lay_out_sections(tier, at, defects),
        (Some(_), false) | (None, true) => {
            defects.push(Defect::new(at, "must have either sections or general_admission"));
            None
        }
    }
}

fn lay_out_sections(tier: &TierFile, at: &str, defects: &mut Vec<Defect>) -> Option<Layout> {
    let columns: Arc<[Option<String>]> = tier.columns.as_slice().into();
    let mut rows = Vec::new();
    let mut refused = HashSet::new();
    let mut is_first = true;
    for (index, section) in tier.sections.iter().enumerate() {
        for name in section.names() {
            // A blank row between two coaches keeps a pattern from reaching over the gap.
            if !is_first && !columns.is_empty() {
                rows.push(Row { label: String::new(), places: RowPlaces::none() });
            }
            is_first = false;
            for row in section.laid(name, &columns) {
                match check_places(tier, row.places) {
                    Ok(places) => rows.push(Row { label: format!("{name} {}", row.label), places }),
                    // Once for a whole range, however many rows it stands for.
                    Err(rule) if refused.insert((index, row.index)) => {
                        let at = format!("{at}.sections[{index}].rows[{}]", row.index);
                        defects.push(Defect::new(at, rule));
                    }
                    Err(_) => {}
                }
            }
        }
    }
    check_columns(tier, at, defects);
    let mut layout = Layout::new(rows, columns);
    for name in &tier.not_for_sale {
        if !layout.withhold(name) {
            let at = format!("{at}.not_for_sale");
            defects.push(Defect::new(at, format!("seat {name} is not in the tier")));
        }
    }
    Some(layout)
}

fn check_places(
    tier: &TierFile,
    places: Result<RowPlaces, &'static str>,
) -> Result<RowPlaces, &'static str> {
    let places = places?;
    if !(1..=MAX_PLACES_PER_ROW).contains(&places.len()) {
        Err("must have 1 to 1,024 places")
    } else if !tier.columns.is_empty() && places.len() > tier.columns.len() {
        Err("has more places than the tier has columns")
    } else {
        Ok(places)
    }
}

fn check_columns(tier: &TierFile, at: &str, defects: &mut Vec<Defect>) {
    // Patterns count columns, and the distance between two, in 16 bits.
    if tier.columns.len() > MAX_PLACES_PER_ROW {
        defects.push(Defect::new(format!("{at}.columns"), "must be at most 1,024"));
        return;
    }
    let mut seen = HashSet::new();
    for letter in tier.columns.iter().flatten() {
        // Seats are called by them.
        let is_letter = letter.len() <= 4 && SeatName::new(letter.as_str()).is_ok();
        if !is_letter || !seen.insert(letter) {
            let rule = "letters must be distinct and 1 to 4 bytes, without control characters or \
                        surrounding blanks";
            defects.push(Defect::new(format!("{at}.columns"), rule));
            return;
        }
    }
}

/// Most seats in two tiers that are told one by one: a few lines can describe a million of them.
const MAX_CLASHES: usize = 100;

/// A seat's name is unique in its sale, so that a ticket needs no tier to be read.
fn check_names(tiers: &[Tier], defects: &mut Vec<Defect>) {
    for (index, tier) in tiers.iter().enumerate() {
        let clash = tier.layout.duplicate();
        let defect = clash.map(|clash| Defect::new(format!("tiers[{index}]"), clash.to_string()));
        defects.extend(defect);
    }
    if tiers.len() < 2 || !defects.is_empty() {
        return;
    }
    let seats = tiers.iter().map(|tier| tier.layout.sellable() as usize).sum();
    let mut tier_of: HashMap<SeatName, &TierId> = HashMap::with_capacity(seats);
    let names =
        tiers.iter().flat_map(|tier| tier.layout.names().map(move |name| (name, &tier.tier)));
    let clashes = names.filter_map(|(name, tier)| {
        let first = tier_of.insert(name.clone(), tier)?;
        let rule = format!("seat {name} stands in tier {first} and again in tier {tier}");
        Some(Defect::new("tiers", rule))
    });
    defects.extend(clashes.take(MAX_CLASHES));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn train() -> serde_json::Value {
        json!({
            "sale": "g1", "title": "G1", "currency": "CNY",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "limit_per_buyer": 5, "pay_window_seconds": 600,
            "stops": [{"stop": "A", "name": "a"}, {"stop": "B", "name": "b"}, {"stop": "C", "name": "c"}],
            "tiers": [{
                "tier": "second", "name": "Second",
                "fares": [{"from": "A", "to": "C", "price_minor": 300}],
                "columns": ["A", null, "B"],
                "sections": [
                    {"section": "01", "rows": [{"row": "1", "seats": ["01-1A", null, "01-1B"]}]},
                    {"section": "02", "rows": [{"row": "1", "seats": ["02-1A", null, "02-1B"]}]}
                ],
                "not_for_sale": ["02-1B"]
            }]
        })
    }

    fn read(file: serde_json::Value) -> Result<Sale, Vec<String>> {
        let file: SaleFile =
            serde_json::from_value(file).map_err(|error| vec![error.to_string()])?;
        Sale::new(file).map_err(|defects| defects.iter().map(Defect::to_string).collect())
    }

    #[test]
    fn what_was_published_is_read_without_naming_every_seat() {
        let file: SaleFile = serde_json::from_value(train()).unwrap();
        let sale = Sale::new(file.clone()).unwrap();
        assert!(Sale::of_published(file.clone()).unwrap().has_the_seats_of(&sale));
        let mut twice = file;
        twice.tiers[0].sections[1] = twice.tiers[0].sections[0].clone();
        twice.tiers[0].not_for_sale.clear();
        assert!(Sale::of_published(twice.clone()).is_ok());
        let defects = Sale::new(twice).unwrap_err();
        assert!(
            defects[0].rule.contains("stands in row 01 1 and again in row 01 1"),
            "{defects:?}"
        );
    }

    #[test]
    fn a_blank_row_lies_between_two_coaches() {
        let sale = read(train()).unwrap();
        let tier = &sale.tiers()[0];
        assert_eq!(tier.layout.initial(), &[0b0101_1111, 0xff, 0b0111_1111]);
        assert_eq!((sale.legs(), tier.layout.column("B")), (2, Some(2)));
        assert_eq!(sale.seat_legs(), 6);
    }

    #[test]
    fn blanks_do_not_hide_how_long_a_title_is() {
        let mut file = train();
        file["title"] = json!(format!("G1{}", " ".repeat(199)));
        assert!(read(file.clone()).unwrap_err()[0].starts_with("title: "));
        file["title"] = json!(" G1 ");
        assert!(read(file).is_ok());
    }

    #[test]
    fn a_column_is_found_where_it_stands() {
        let mut file = train();
        // Counted in 16 bits, the last column would be the first.
        let far = std::iter::repeat_n(json!(null), 65_536).chain([json!("Z")]);
        file["tiers"][0]["columns"] = far.collect();
        let defects = read(file.clone()).unwrap_err();
        assert!(defects[0].contains("columns: must be at most 1,024"), "{defects:?}");
        let most = std::iter::repeat_n(json!(null), MAX_PLACES_PER_ROW - 1).chain([json!("Z")]);
        file["tiers"][0]["columns"] = most.collect();
        assert_eq!(read(file).unwrap().tiers()[0].layout.column("Z"), Some(1023));
    }

    #[test]
    fn only_journeys_with_a_fare_are_sold() {
        let sale = read(train()).unwrap();
        let stop = |id: &str| StopId::new(id).unwrap();
        let whole = sale.journey(&stop("A"), &stop("C")).unwrap();
        assert_eq!(sale.tiers()[0].price_minor(whole), Some(300));
        let first = sale.journey(&stop("A"), &stop("B")).unwrap();
        assert_eq!(sale.tiers()[0].price_minor(first), None);
        assert_eq!(sale.journey(&stop("C"), &stop("A")), None);
    }

    #[test]
    fn each_broken_rule_is_named_with_its_place() {
        let broken = |change: fn(&mut serde_json::Value)| {
            let mut file = train();
            change(&mut file);
            read(file).unwrap_err().join("; ")
        };
        type Change = fn(&mut serde_json::Value);
        let cases: [(Change, &str); 17] = [
            (|f| f["closes_at"] = json!("2020-01-01T00:00:00Z"), "closes_at"),
            (|f| f["limit_per_buyer"] = json!(0), "limit_per_buyer"),
            (|f| f["pay_window_seconds"] = json!(4), "pay_window_seconds"),
            (|f| f["opens_at"] = json!("2026-01-01T00:00:00"), "RFC 3339"),
            (|f| f["stops"][1]["stop"] = json!("A"), "stops[1]"),
            (|f| f["stops"] = json!([{"stop": "A", "name": "a"}]), "stops: must be absent"),
            (|f| f["tiers"][0]["price_minor"] = json!(1), "either price_minor or fares"),
            (|f| f["tiers"][0]["fares"][0]["to"] = json!("Z"), "no journey"),
            (
                |f| f["tiers"][0]["general_admission"] = json!(5),
                "either sections or general_admission",
            ),
            (
                |f| f["tiers"][0]["sections"][1]["rows"][0]["seats"][0] = json!("01-1A"),
                "row 01 1 and again in row 02 1",
            ),
            (|f| f["tiers"][0]["not_for_sale"] = json!(["nowhere"]), "not in the tier"),
            (|f| f["tiers"][0]["columns"] = json!(["A", "A", "B"]), "distinct"),
            (|f| f["tiers"][0]["sections"][0]["rows"][0]["seats"] = json!([]), "1 to 1,024 places"),
            (|f| f["colour"] = json!("red"), "unknown field"),
            (|f| f["title"] = json!("a\u{0}b"), "without control characters"),
            (
                |f| {
                    f["tiers"][0]["sections"][0]["rows"][0]["seats"] =
                        json!({"prefix": "", "first": 1, "count": 4_000_000_000u32})
                },
                "at most 1,000,000 places",
            ),
            (
                |f| {
                    f["tiers"][0]["sections"] = (0..200_000).map(|row| json!({"section": row.to_string(), "rows": [{"row": "1", "seats": {"prefix": format!("{row}-"), "first": 1, "count": if row == 0 { 1000 } else { 1 }}}]})).collect()
                },
                "16,000,000",
            ),
        ];
        for (change, expected) in cases {
            let message = broken(change);
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
    }

    #[test]
    fn a_description_is_bounded_before_it_is_laid_out() {
        let hall = |section: serde_json::Value| {
            let mut file = train();
            file["tiers"][0] = json!({"tier": "a", "name": "A", "fares": [{"from": "A", "to": "C", "price_minor": 300}], "sections": [section]});
            read(file)
        };
        let row = |seats: serde_json::Value| json!({"row": "0", "to": "999999999", "seats": seats});
        for (section, expected) in [
            (json!({"section": "S", "rows": [row(json!(["x"]))]}), "at most 1,000,000 places"),
            (json!({"section": "S", "rows": [row(json!([]))]}), "at most 1,000,000 places"),
            (
                json!({"section": "S", "rows": [row(json!("every_column"))]}),
                "at most 1,000,000 places",
            ),
            // What cannot be named is told once, not once a row.
            (
                json!({"section": "S", "alike": ["T"], "rows": [{"row": "1", "to": "999", "seats": {"first": 0, "count": 3, "step": -1}}]}),
                "tiers[0].sections[0].rows[0]: seat numbers",
            ),
            (
                json!({"section": "S", "alike": ["T"], "rows": [{"row": "1", "seats": {"prefix": "x", "first": 0, "count": 3}}]}),
                "x0 stands in row S 1 and again in row T 1",
            ),
            (
                json!({"section": "S", "rows": [{"row": "1", "seats": "every_column"}]}),
                "columns of the tier",
            ),
        ] {
            let refused = hall(section).unwrap_err();
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(refused[0].contains(expected), "{refused:?} does not say {expected:?}");
        }
        let alike = json!({"section": "S", "alike": ["T"], "rows": [{"row": "A", "to": "Z", "seats": {"first": 1, "count": 40, "aisles_after": [12]}}]});
        let sale = hall(alike).unwrap();
        assert_eq!((sale.seat_legs(), sale.tiers()[0].layout.rows().len()), (2 * 2 * 26 * 40, 52));
        assert!(sale.tiers()[0].layout.seat(&SeatName::new("T-Z-40").unwrap()).is_some());
    }

    #[test]
    fn many_clashes_are_not_told_one_by_one() {
        let mut file = train();
        let tier = |tier: &str| json!({"tier": tier, "name": tier, "price_minor": 1, "sections": [{"section": "S", "rows": [{"row": "1", "to": "40", "seats": {"first": 1, "count": 10}}]}]});
        file["tiers"] = json!([tier("a"), tier("b")]);
        assert_eq!(read(file).unwrap_err().len(), MAX_CLASHES);
    }

    #[test]
    fn terms_may_change_while_the_seats_stay() {
        let sale = read(train()).unwrap();
        let changed = |change: fn(&mut serde_json::Value)| {
            let mut file = train();
            change(&mut file);
            sale.has_the_seats_of(&read(file).unwrap())
        };
        assert!(changed(|f| f["limit_per_buyer"] = json!(1)));
        assert!(changed(|f| f["tiers"][0]["name"] = json!("Standard")));
        // The same seats in fewer words.
        assert!(changed(|f| {
            f["tiers"][0]["sections"] = json!([{"section": "01", "alike": ["02"], "rows": [{"row": "1", "seats": "every_column"}]}]);
        }));
        assert!(!changed(|f| f["tiers"][0]["not_for_sale"] = json!([])));
        assert!(!changed(|f| f["tiers"][0]["columns"] = json!(["A", null, "C"])));
        assert!(!changed(|f| f["tiers"][0]["tier"] = json!("first")));
        assert!(!changed(|f| f["stops"][2]["name"] = json!("d")));
        assert!(!changed(|f| f["currency"] = json!("TWD")));
        // A seat of another name in the same place, and coaches the other way round.
        assert!(!changed(|f| f["tiers"][0]["sections"][0]["rows"][0]["seats"][0] = json!("01-2A")));
        assert!(!changed(|f| {
            f["tiers"][0]["sections"] = json!([{"section": "02", "alike": ["01"], "rows": [{"row": "1", "seats": "every_column"}]}]);
        }));
        // Spots without a place are not seats, whatever they are called.
        let spots = |tier: serde_json::Value| {
            let mut file = train();
            let fares = file["tiers"][0]["fares"].clone();
            file["tiers"] = json!([tier]);
            file["tiers"][0]["fares"] = fares;
            read(file).unwrap()
        };
        let spot = spots(json!({"tier": "a", "name": "A", "general_admission": 64}));
        let named = json!([{"section": "S", "rows": [{"row": "1", "seats": {"prefix": "a-", "first": 1, "count": 64}}]}]);
        let named = spots(json!({"tier": "a", "name": "A", "sections": named}));
        assert!(!spot.has_the_seats_of(&named));
    }
}
