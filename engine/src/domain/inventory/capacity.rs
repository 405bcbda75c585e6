//! The number of orders of one sale that a cache carries each second.
//!
//! A sale lives in one slot of the cache, and each of its orders is two scripts there, `hold` and `sell`,
//! which run one after the other. A sale that keeps its tiers apart lives in a slot for each tier; how many
//! more orders those carry depends on how its buyers spread over the tiers.
//!
//! The payments that can be started are a bound too: a waiting room shall serve only as many buyers as can pay.

use crate::domain::basics::money::MinorUnits;
use crate::domain::sale::Sale;

/// Nanoseconds of the server's thread that an order takes, `hold` and `sell` together, on the first leg
/// (`docs/performance.md`).
const ORDER_NS: u32 = 35_000;
/// Nanoseconds more for each further leg.
const LEG_NS: u32 = 1_600;
/// Nanoseconds of the server's thread that count as one unit (ECPU) of a serverless cache: what AWS's own
/// estimate takes for commands that compute. The exact formula is not published.
const UNIT_NS: u32 = 3_000;
/// Units that one slot of a serverless cache has each second (ElastiCache, "Configuration and limits").
pub const SLOT_UNITS_PER_SECOND: u32 = 30_000;
/// The share of a slot that orders may use, in per cent. Availability takes at most five, and loads,
/// repairs and releases the rest.
const ORDERS_PER_CENT: u32 = 80;

/// The kind of cache that a deployment runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// ElastiCache Serverless: a slot has a fixed number of units a second.
    Serverless,
    /// Nodes in cluster mode: a slot has the one thread of its node that runs commands.
    Nodes,
}

impl CacheKind {
    /// The orders a second of a sale that it carries, if buyers spread over the tiers as the seats do.
    ///
    /// Of a sale that keeps its tiers apart that is what its largest tier carries, divided by the share of
    /// the seats that this tier has: five tiers of the same size carry five times as much as one slot, and
    /// a tier with half of the seats limits the sale to twice as much. Slots of a serverless cache have each
    /// their own units. Slots of nodes share the thread of a node, and where they lie is not known here:
    /// nodes are taken to carry what one node does.
    #[must_use]
    pub fn orders_per_second(self, sale: &Sale) -> u32 {
        let of_slot = self.slot_orders_per_second(sale.leg_count());
        if !sale.keeps_tiers_apart() || self == Self::Nodes {
            return of_slot;
        }
        let seats = || sale.tiers().iter().map(|tier| u64::from(tier.layout.sellable()));
        let (all, largest) = (seats().sum::<u64>(), seats().max().unwrap_or(0).max(1));
        u32::try_from(u64::from(of_slot) * all.max(1) / largest).unwrap_or(u32::MAX)
    }

    /// The orders a second that one slot carries, of journeys of `leg_count` legs.
    fn slot_orders_per_second(self, leg_count: u16) -> u32 {
        let further = u32::from(leg_count.saturating_sub(1));
        let order_ns = ORDER_NS + LEG_NS * further;
        let whole = match self {
            Self::Serverless => SLOT_UNITS_PER_SECOND / order_ns.div_ceil(UNIT_NS),
            Self::Nodes => 1_000_000_000 / order_ns,
        };
        whole * ORDERS_PER_CENT / 100
    }

    /// The warning to an operator whose sale's gate admits more people a second than the cache carries
    /// orders; `None` if it carries them all.
    #[must_use]
    pub fn shortfall(self, sale: &Sale) -> Option<String> {
        let carried = self.orders_per_second(sale);
        let admitted = sale.file().gate.rate_per_second;
        let (cache, remedy) = match self {
            Self::Serverless if sale.keeps_tiers_apart() || sale.tiers().len() == 1 => {
                ("the serverless cache", "lower gate.rate_per_second, or run on nodes")
            }
            Self::Serverless => (
                "the serverless cache",
                "lower gate.rate_per_second, keep its tiers apart (tiers_apart), or run on nodes",
            ),
            Self::Nodes => ("a node of the cache", "lower gate.rate_per_second"),
        };
        (admitted > carried).then(|| {
            format!(
                "{cache} carries about {carried} orders a second of this sale, and its gate lets in \
                 {admitted} people a second: {remedy}"
            )
        })
    }
}

/// The warning to an operator whose waiting room may serve more people a second than payments can be started with
/// one provider; `None` if it may not, or nothing is to be paid. How many providers there are is not known here,
/// nor how buyers spread over them: an operator who has said what all of them let start has decided.
#[must_use]
pub fn starts_shortfall(sale: &Sale, starts_per_second: u32) -> Option<String> {
    let room = sale.file().room.as_ref().filter(|room| room.provider_per_second.is_none())?;
    let served = room.max_per_second;
    let is_free = sale.file().tiers.iter().all(|tier| tier.price_minor == Some(MinorUnits::ZERO));
    (!is_free && served > starts_per_second).then(|| {
        format!(
            "a payment provider is asked to start {starts_per_second} payments a second, and the waiting room may serve \
             {served} people: set room.provider_per_second to what all your providers start"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::domain::sale::{RoomSettings, SaleFile};

    #[test]
    fn a_serverless_cache_carries_a_tenth_of_what_a_node_does() {
        let [serverless, nodes] = [CacheKind::Serverless, CacheKind::Nodes]
            .map(|kind| move |legs| kind.slot_orders_per_second(legs));
        assert_eq!(serverless(1), 2_000);
        assert_eq!(nodes(1), 22_856);
        assert_eq!(serverless(15), 1_200);
        assert!(nodes(64) > serverless(64));
    }

    /// A sale of tiers of general admission with these numbers of spots.
    fn sale_of(spots: &[u32], apart: bool, rate_per_second: u32) -> Sale {
        let tier = |(index, spots): (usize, &u32)| json!({"tier": format!("t{index}"), "name": "T", "price_minor": 100, "general_admission": spots});
        let file: SaleFile = serde_json::from_value(json!({
            "sale": "hall", "title": "Hall", "currency": "CNY", "tiers_apart": apart,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 600,
            "gate": {"rate_per_second": rate_per_second},
            "tiers": spots.iter().enumerate().map(tier).collect::<Vec<_>>()
        }))
        .unwrap();
        Sale::new(file).unwrap()
    }

    #[test]
    fn tiers_apart_carry_what_the_largest_of_them_lets_through() {
        let carried = |spots: &[u32], apart| {
            CacheKind::Serverless.orders_per_second(&sale_of(spots, apart, 1))
        };
        let five = [10_000; 5];
        assert_eq!([carried(&five, false), carried(&five, true)], [2_000, 10_000]);
        assert_eq!(carried(&[20_000, 10_000, 10_000], true), 4_000);
        assert_eq!(carried(&[10_000], true), 2_000);
        let shortfall = |apart| CacheKind::Serverless.shortfall(&sale_of(&five, apart, 8_000));
        assert!(
            shortfall(false)
                .unwrap()
                .ends_with("keep its tiers apart (tiers_apart), or run on nodes")
        );
        assert_eq!(shortfall(true), None);
        let nodes = |apart| CacheKind::Nodes.orders_per_second(&sale_of(&five, apart, 1));
        assert_eq!(nodes(true), nodes(false), "the slots may lie on one node");
    }

    #[test]
    fn an_operator_is_told_that_a_room_serves_more_than_can_pay() {
        let told = |change: fn(&mut SaleFile), starts| {
            let mut file = sale_of(&[1_000], false, 2_000).file().clone();
            file.room = Some(RoomSettings::default());
            change(&mut file);
            starts_shortfall(&Sale::new(file).unwrap(), starts)
        };
        assert_eq!(
            told(|_| (), 25).unwrap(),
            "a payment provider is asked to start 25 payments a second, and the waiting room may serve 200 people: \
             set room.provider_per_second to what all your providers start"
        );
        assert_eq!(told(|_| (), 200), None);
        assert_eq!(told(|file| file.room = None, 25), None);
        assert_eq!(told(|file| file.tiers[0].price_minor = Some(MinorUnits::ZERO), 25), None);
        let bounded = |file: &mut SaleFile| {
            file.room.as_mut().unwrap().provider_per_second = Some(50);
        };
        assert_eq!(told(bounded, 25), None, "the operator knows of two providers");
    }

    #[test]
    fn an_operator_is_told_what_the_cache_does_not_carry() {
        let sale = |rate_per_second: u32| {
            let file: SaleFile = serde_json::from_value(json!({
                "sale": "hall", "title": "Hall", "currency": "CNY",
                "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
                "limit_per_buyer": 4, "pay_window_seconds": 600,
                "gate": {"rate_per_second": rate_per_second},
                "tiers": [{"tier": "floor", "name": "Floor", "price_minor": 100, "sections": [
                    {"section": "f", "rows": [{"row": "1", "seats": {"prefix": "f-", "first": 1, "count": 100}}]}
                ]}]
            }))
            .unwrap();
            Sale::new(file).unwrap()
        };
        assert_eq!(CacheKind::Serverless.shortfall(&sale(2_000)), None);
        assert_eq!(CacheKind::Nodes.shortfall(&sale(20_000)), None);
        assert_eq!(
            CacheKind::Serverless.shortfall(&sale(20_000)).unwrap(),
            "the serverless cache carries about 2000 orders a second of this sale, and its gate lets in \
             20000 people a second: lower gate.rate_per_second, or run on nodes"
        );
        assert!(CacheKind::Nodes.shortfall(&sale(25_000)).is_some());
    }
}
