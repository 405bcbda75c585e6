//! A sale, as an operator writes it down and as the engine reads it.
//!
//! [`SaleFile`] is the JSON document (`docs/sale-file.md`) that `PUT /sales/{sale}` takes and the
//! catalogue stores. [`Sale`] is a sale file that has passed every check, with its tiers laid out: no `Sale`
//! can be made from a file that breaks a rule.
//!
//! `terms` has the terms that each order keeps, [`serving`] the settings by which a waiting room serves.
//!
//! Builds on [`basics`](super::basics).

// Others read it without its code: each public item says what it is.
#![warn(missing_docs)]

use std::collections::{BTreeMap, HashMap};

pub mod archive;
pub mod attachment;
pub mod challenge;
mod check;
pub mod event;
mod file;
#[cfg(test)]
mod fixtures;
mod focus;
pub mod jpeg;
pub mod layout;
mod map;
pub mod places;
mod room;
mod row_range;
pub mod sections;
pub mod serving;
mod terms;
mod tiers;
pub mod timetable;

pub use check::Defect;
pub use file::{
    AttendeeRule, Fare, GateSettings, LimitSettings, LostDispute, RefundSettings, SaleFile,
    SaleState, Stop, TierFile,
};
pub use focus::Focus;
pub use map::{
    Coordinate, FileMap, InvalidCoordinate, MAX_MAP_BYTES, MAX_OUTLINES, MapDocument, MapName,
    MapPoint, MapRow, MapSection, Outline, OutlineKind, SeatMap,
};
pub use room::{BeaconChoice, ByOperator, RoomGroup, RoomSettings};
pub use sections::{Lettered, Places, Run, Section, SectionRow};
pub use terms::{BASIS_POINTS, MerchantTerms, PointsTerms, RefundTerms};

use crate::domain::basics::ids::{InventoryId, Legs, SaleId, StopId, TierId};
use crate::domain::basics::limits::MAX_SEATS_PER_ORDER;
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use check::{check_names, check_size, check_stops, check_terms};
use event::check_event;
use layout::Layout;
use map::check_map;
use room::check_room;
use serving::Settings;
use tiers::lay_out;

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
/// The highest price of a ticket: the amount of any order, and of a whole sale, is far inside 64 bits.
pub const MAX_PRICE_MINOR: MinorUnits = MinorUnits(1_000_000_000_000);

/// One tier, checked and laid out.
#[derive(Debug, Clone)]
pub struct Tier {
    /// The tier's id.
    pub tier: TierId,
    /// What people call it.
    pub name: String,
    /// Its seats.
    pub layout: Layout,
    price_minor: Option<MinorUnits>,
    fares: HashMap<Legs, MinorUnits>,
}

impl Tier {
    /// The price of one ticket for a journey; `None` if the journey is not sold.
    #[must_use]
    pub fn price_minor(&self, legs: Legs) -> Option<MinorUnits> {
        self.fares.get(&legs).copied().or(self.price_minor)
    }

    /// The journeys that have a fare of their own, in order; empty if one price holds for all.
    #[must_use]
    pub fn fares(&self) -> BTreeMap<Legs, MinorUnits> {
        self.fares.iter().map(|(legs, price)| (*legs, *price)).collect()
    }
}

/// A sale whose file broke no rule.
#[derive(Debug, Clone)]
pub struct Sale {
    file: SaleFile,
    tiers: Vec<Tier>,
    /// When the train leaves each of its stops.
    departures: Vec<Option<Timestamp>>,
    sells_until: Timestamp,
}

impl Sale {
    /// Checks a file and lays its tiers out.
    ///
    /// # Errors
    /// Returns every defect that was found, never an empty list.
    pub fn new(file: SaleFile) -> Result<Self, Vec<Defect>> {
        let sale = Self::from_published(file)?;
        let mut defects = Vec::new();
        check_names(&sale.tiers, &mut defects);
        if defects.is_empty() { Ok(sale) } else { Err(defects) }
    }

    /// [`Sale::new`] of a file that it has accepted before: whether two seats bear the same name is
    /// not checked again, for that takes the name of every seat of the hall.
    ///
    /// # Errors
    /// Returns every other defect that was found, never an empty list.
    pub fn from_published(file: SaleFile) -> Result<Self, Vec<Defect>> {
        // A few bytes can describe more seats than there is memory: this comes before the rest.
        check_size(&file)?;
        let mut defects = Vec::new();
        check_terms(&file, &mut defects);
        check_event(&file, &mut defects);
        check_room(&file, &mut defects);
        let stops = check_stops(&file, &mut defects);
        let tiers: Vec<Tier> = file
            .tiers
            .iter()
            .enumerate()
            .filter_map(|(index, tier)| lay_out(&file, index, tier, &stops, &mut defects))
            .collect();
        check_map(&file, &mut defects);
        if !defects.is_empty() {
            return Err(defects);
        }
        let departures = file.departures();
        let sells_until = timetable::until(file.closes_at, &departures);
        Ok(Self { file, tiers, departures, sells_until })
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

    /// True if every tier is an inventory of its own, on a slot of its own.
    #[must_use]
    pub fn keeps_tiers_apart(&self) -> bool {
        self.file.tiers_apart
    }

    /// The inventory that a tier is in.
    #[must_use]
    pub fn inventory_of(&self, tier: &TierId) -> InventoryId {
        let tier = self.file.tiers_apart.then(|| tier.clone());
        InventoryId::from_parts(self.file.sale.clone(), tier)
    }

    /// The inventories of the sale: one with all of its tiers, or one for each tier.
    #[must_use]
    pub fn inventories(&self) -> Vec<InventoryId> {
        let all = self.tiers.iter().map(|tier| self.inventory_of(&tier.tier));
        let count = if self.file.tiers_apart { self.tiers.len() } else { 1 };
        all.take(count).collect()
    }

    /// The one inventory that an order of these tiers is in; `None` if they are in several, or if the
    /// tiers are kept apart and there is none.
    #[must_use]
    pub fn inventory_of_all<'a>(
        &self,
        tiers: impl IntoIterator<Item = &'a TierId>,
    ) -> Option<InventoryId> {
        if !self.file.tiers_apart {
            return Some(InventoryId::whole(self.file.sale.clone()));
        }
        let mut tiers = tiers.into_iter();
        let first = tiers.next()?;
        tiers.all(|tier| tier == first).then(|| self.inventory_of(first))
    }

    /// The tiers that are in an inventory of the sale, in the order of the file.
    pub fn tiers_in<'a>(&'a self, inventory: &'a InventoryId) -> impl Iterator<Item = &'a Tier> {
        self.tiers.iter().filter(|tier| inventory.tier().is_none_or(|one| *one == tier.tier))
    }

    /// The terms under which a buyer may give back a ticket of a tier and a price; `None` if never.
    #[must_use]
    pub fn refund_terms(&self, tier: &TierId, price_minor: MinorUnits) -> Option<RefundTerms> {
        let of_tier = self.file.tiers.iter().find(|one| one.tier == *tier);
        let settings = of_tier.and_then(|tier| tier.refunds).or(self.file.refunds)?;
        Some(settings.terms(price_minor, self.file.currency))
    }

    /// The terms under which a buyer may exchange a ticket of a tier; `None` if they may not.
    #[must_use]
    pub fn exchange_terms(&self, tier: &TierId, price_minor: MinorUnits) -> Option<RefundTerms> {
        let of_tier = self.file.tiers.iter().find(|one| one.tier == *tier);
        let settings = of_tier.and_then(|tier| tier.exchanges).or(self.file.exchanges)?;
        Some(settings.terms(price_minor, self.file.currency))
    }

    /// True if tickets of `other` may be exchanged for tickets of this sale: it is the same, or of the same group and
    /// merchant.
    #[must_use]
    pub fn takes_tickets_of(&self, other: &Self) -> bool {
        let is_of_group = self.file.exchange_group.is_some()
            && self.file.exchange_group == other.file.exchange_group;
        self.id() == other.id()
            || is_of_group && self.merchant().merchant == other.merchant().merchant
    }

    /// Whose money its orders are from now on.
    #[must_use]
    pub fn merchant(&self) -> MerchantTerms {
        let terms = self.file.merchant.clone().unwrap_or_else(MerchantTerms::house);
        MerchantTerms { points: self.file.points, ..terms }
    }

    /// The most tickets that a buyer may have in the sale.
    #[must_use]
    pub fn limit(&self) -> Tickets {
        Tickets::new(self.file.limit_per_buyer)
    }

    /// Number of legs of a whole journey: one for a concert.
    #[must_use]
    pub fn leg_count(&self) -> u16 {
        u16::try_from(self.file.stops.len().max(2) - 1).unwrap_or(u16::MAX)
    }

    /// Most tickets that one order can have: what an order holds, and no more than a buyer may have.
    #[must_use]
    pub fn max_tickets_per_order(&self) -> u16 {
        u16::try_from(MAX_SEATS_PER_ORDER).unwrap_or(u16::MAX).min(self.file.limit_per_buyer)
    }

    /// The settings of its waiting room; `None` if it has none.
    #[must_use]
    pub fn room(&self) -> Option<Settings> {
        let units = u32::from(self.max_tickets_per_order()) * u32::from(self.leg_count());
        self.file.room.as_ref().map(|room| room.serving(self.file.opens_at, units))
    }

    /// When selling ends: at the file's `closes_at`, or when the train leaves the last stop at which it can be boarded.
    #[must_use]
    pub fn sells_until(&self) -> Timestamp {
        self.sells_until
    }

    /// When a journey departs, from when on it is not sold; `None` for a concert, and where that is not known.
    #[must_use]
    pub fn departure(&self, legs: Legs) -> Option<Timestamp> {
        self.departures.get(usize::from(legs.from())).copied().flatten()
    }

    /// When the first of some journeys departs, as far as that is known.
    #[must_use]
    pub fn first_departure(&self, journeys: impl IntoIterator<Item = Legs>) -> Option<Timestamp> {
        journeys.into_iter().filter_map(|legs| self.departure(legs)).min()
    }

    /// True once the train has left where a journey begins, as far as that is known.
    #[must_use]
    pub fn has_left(&self, legs: Legs, now: Timestamp) -> bool {
        self.departure(legs).is_some_and(|departs| departs <= now)
    }

    /// The whole journey.
    #[must_use]
    pub fn whole(&self) -> Legs {
        Legs::new(0, self.leg_count()).unwrap_or(Legs::ONE)
    }

    /// The legs between two stops; `None` unless both are stops in this order.
    #[must_use]
    pub fn journey(&self, from: &StopId, to: &StopId) -> Option<Legs> {
        let index = |id: &StopId| {
            let index = self.file.stops.iter().position(|stop| stop.stop == *id)?;
            u16::try_from(index).ok()
        };
        Legs::new(index(from)?, index(to)?)
    }

    /// The stop with this index; `None` for a concert.
    #[must_use]
    pub fn stop(&self, index: u16) -> Option<&StopId> {
        self.file.stops.get(usize::from(index)).map(|stop| &stop.stop)
    }

    /// An amount in the sale's currency.
    #[must_use]
    pub fn money(&self, amount_minor: MinorUnits) -> Money {
        Money { amount_minor, currency: self.file.currency }
    }

    /// Number of seat-legs that the sale sells in all: what its gate's budget is a share of.
    #[must_use]
    pub fn seat_legs(&self) -> u64 {
        let seats: u64 = self.tiers.iter().map(|tier| u64::from(tier.layout.sellable())).sum();
        seats * u64::from(self.leg_count())
    }

    /// True if another version of the sale has the same seats on the same legs, however its file
    /// describes them, in the same inventories, so that it may replace this one while the sale runs.
    #[must_use]
    pub fn has_the_seats_of(&self, other: &Self) -> bool {
        let is_same = |(ours, theirs): (&Tier, &Tier)| {
            ours.tier == theirs.tier && ours.layout.is_the_same(&theirs.layout)
        };
        self.file.sale == other.file.sale
            && self.file.currency == other.file.currency
            && self.file.has_the_stops_of(&other.file)
            && self.file.tiers_apart == other.file.tiers_apart
            && self.tiers.len() == other.tiers.len()
            && self.tiers.iter().zip(&other.tiers).all(is_same)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fixtures::{read, train};
    use super::*;
    use crate::domain::basics::money::Currency;

    #[test]
    fn what_was_published_is_read_without_naming_every_seat() {
        let file: SaleFile = serde_json::from_value(train()).unwrap();
        let sale = Sale::new(file.clone()).unwrap();
        assert!(Sale::from_published(file.clone()).unwrap().has_the_seats_of(&sale));
        let mut twice = file;
        twice.tiers[0].sections[1] = twice.tiers[0].sections[0].clone();
        twice.tiers[0].not_for_sale.clear();
        assert!(Sale::from_published(twice.clone()).is_ok());
        let defects = Sale::new(twice).unwrap_err();
        assert!(
            defects[0].rule.contains("stands in row 01 1 and again in row 01 1"),
            "{defects:?}"
        );
    }

    #[test]
    fn only_journeys_with_a_fare_are_sold() {
        let sale = read(train()).unwrap();
        let stop = |id: &str| StopId::new(id).unwrap();
        let whole = sale.journey(&stop("A"), &stop("C")).unwrap();
        assert_eq!(sale.tiers()[0].price_minor(whole), Some(MinorUnits(300)));
        let first = sale.journey(&stop("A"), &stop("B")).unwrap();
        assert_eq!(sale.tiers()[0].price_minor(first), None);
        assert_eq!(sale.journey(&stop("C"), &stop("A")), None);
    }

    #[test]
    fn the_terms_of_a_refund_are_the_tiers_or_the_sales() {
        let tier = TierId::new(train()["tiers"][0]["tier"].as_str().unwrap()).unwrap();
        let terms = |of_sale: Option<serde_json::Value>, of_tier: Option<serde_json::Value>| {
            let mut file = train();
            of_sale.into_iter().for_each(|terms| file["refunds"] = terms);
            of_tier.into_iter().for_each(|terms| file["tiers"][0]["refunds"] = terms);
            let sale = read(file).map_err(|defects| {
                defects.first().and_then(|one| one.split(':').next()).unwrap_or_default().to_owned()
            })?;
            Ok::<_, String>(
                sale.refund_terms(&tier, MinorUnits(333)).map(|terms| terms.fee_minor.0),
            )
        };
        let until = "2030-01-01T00:00:00Z";
        let free = || Some(json!({ "until": until }));
        let fee = |percent: u16, minor: i64| {
            Some(json!({ "until": until, "fee_percent": percent, "fee_minor": minor }))
        };
        assert_eq!(terms(None, None), Ok(None), "by default nobody may");
        assert_eq!(terms(free(), None), Ok(Some(0)));
        assert_eq!(terms(fee(10, 0), None), Ok(Some(34)), "rounded up");
        assert_eq!(terms(fee(10, 0), fee(10, 66)), Ok(Some(100)));
        assert_eq!(terms(fee(90, 300), free()), Ok(Some(0)));
        assert_eq!(terms(None, fee(90, 300)), Ok(Some(333)), "never more than the price");
        assert_eq!(terms(fee(101, 0), None), Err("refunds.fee_percent".to_owned()));
        assert_eq!(terms(None, fee(0, -1)), Err("tiers[0].refunds.fee_minor".to_owned()));
        let settings: RefundSettings = serde_json::from_value(fee(3, 0).unwrap()).unwrap();
        let fee = |price: i64, currency: &str| {
            settings.terms(MinorUnits(price), Currency::new(currency).unwrap()).fee_minor.0
        };
        assert_eq!(fee(12_350, "EUR"), 371);
        assert_eq!(fee(12_350, "KWD"), 380, "11,970 can be sent back, and 11,979 cannot");
        assert_eq!(fee(5, "KWD"), 5, "nothing of it can be sent back");
        assert_eq!(fee(500_000, "MGA"), 15_000);
    }

    #[test]
    fn tiers_are_in_one_inventory_or_each_in_its_own() {
        let two = |apart: bool| {
            let mut file = train();
            let mut more = file["tiers"][0].clone();
            more["tier"] = json!("first");
            more.as_object_mut().unwrap().remove("not_for_sale");
            more["sections"] =
                json!([{"section": "09", "rows": [{"row": "1", "seats": "every_column"}]}]);
            file["tiers"].as_array_mut().unwrap().push(more);
            file["tiers_apart"] = json!(apart);
            read(file).unwrap()
        };
        let names = |sale: &Sale| {
            let tiers =
                |id: &InventoryId| sale.tiers_in(id).map(|tier| tier.tier.to_string()).collect();
            let all = sale.inventories();
            all.iter().map(|id| (id.to_string(), tiers(id))).collect::<Vec<(String, Vec<String>)>>()
        };
        let (together, apart) = (two(false), two(true));
        let (id, tiers) = (together.id(), together.tiers());
        let [one, other] = [&tiers[0].tier, &tiers[1].tier];
        assert_eq!(names(&together), [(id.to_string(), vec![one.to_string(), other.to_string()])]);
        let each = [one, other].map(|tier| (format!("{id}/{tier}"), vec![tier.to_string()]));
        assert_eq!(names(&apart), each);
        assert_eq!(together.inventory_of_all([one, other]), Some(InventoryId::whole(id.clone())));
        assert_eq!(together.inventory_of_all([]), Some(InventoryId::whole(id.clone())));
        assert_eq!(apart.inventory_of_all([one, other]), None);
        assert_eq!(apart.inventory_of_all([]), None);
        assert_eq!(apart.inventory_of_all([other, other]), Some(apart.inventory_of(other)));
        assert_eq!(serde_json::to_value(together.file()).unwrap().get("tiers_apart"), None);
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
        assert!(!changed(|f| f["tiers_apart"] = json!(true)));
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
