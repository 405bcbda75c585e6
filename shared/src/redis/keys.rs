//! The names of all keys in Redis, in one place.
//!
//! Everything of a sale has the hash tag `{sale}` and so lives in one slot: an order over several
//! tiers is one atomic script. A sale that keeps its tiers apart has an inventory for each tier, and the tag
//! `{sale/tier}`: its tiers are spread over the slots. Every shard of a sale's gate has a tag of its own, so that the flood
//! at the gate does not meet the sale; so has every copy of what is left, and the waiting room of a sale. No key
//! has a time to live but the locks and counters of the gate, the locks of wallets, the copies, what is kept of challenges and what is
//! of rooms, all of which may be forgotten: a serverless cache evicts keys that have one.

use std::fmt;

use engine::domain::basics::ids::{InventoryId, RuleId, SaleId, TierId, UserId};
use engine::domain::sale::challenge::Stage;

/// What the field of a buyer begins with in the hash of an inventory. An order number does not, nor does a
/// field of the terms.
const BUYER: char = '@';

/// The field with the epoch in the hash of an inventory. Releases that had a key for each leg of a tier called it `epoch`:
/// scripts that need an epoch find nothing that the other release has loaded.
pub const EPOCH_FIELD: &str = "loaded";

/// The field of a buyer in the hash of an inventory.
#[must_use]
pub fn buyer(user: &UserId) -> String {
    format!("{BUYER}{user}")
}

/// Text with a time to live: who is at work on a buyer's wallets. Each is on a slot of its own.
#[must_use]
pub fn wallet_lock(user: &UserId) -> String {
    format!("{{wallet:{user}}}:lock")
}

/// The keys of one inventory: of a sale, or of one tier of a sale that keeps its tiers apart.
#[derive(Debug, Clone, Copy)]
pub struct InventoryKeys<'a>(pub &'a InventoryId);

impl InventoryKeys<'_> {
    /// Hash: the epoch as `loaded`, state, window, limit, legs, tiers and `wide`; order number to hold ([`hold_record`](super::hold_record)); [`buyer`] to
    /// tickets held or bought.
    #[must_use]
    pub fn sale(self) -> String {
        format!("{{{}}}:sale", self.0)
    }

    /// Sorted set: order numbers by deadline in milliseconds.
    #[must_use]
    pub fn due(self) -> String {
        format!("{{{}}}:due", self.0)
    }

    /// Hash: what there is of a load that is not yet published, as in [`InventoryKeys::sale`], with the load's
    /// epoch, the place of the part that comes next, and the tiers so far. A publication renames it.
    #[must_use]
    pub fn loading(self) -> String {
        format!("{{{}}}:loading", self.0)
    }

    /// Sorted set: what becomes [`InventoryKeys::due`] when the load is published.
    #[must_use]
    pub fn loading_due(self) -> String {
        format!("{{{}}}:loading_due", self.0)
    }

    /// Hash: rows, bytes of a row, legs, `freed` (0, for releases that counted there); `middle`, if all rows have the same of
    /// [`InventoryKeys::middles`]; kind of search and journey to the first row that may still hold it.
    #[must_use]
    pub fn tier(self, tier: &TierId) -> String {
        format!("{{{}}}:tier:{tier}", self.0)
    }

    /// Counters of 32 bits, one for each block of 32 places: how often seats of it were given back.
    #[must_use]
    pub fn freed(self, tier: &TierId) -> String {
        format!("{{{}}}:freed:{tier}", self.0)
    }

    /// Bitmap: 1 where a seat is held, sold or not for sale on a leg; the legs of eight places are bytes beside
    /// each other ([`leg_bytes`](super::leg_bytes)).
    #[must_use]
    pub fn taken(self, tier: &TierId) -> String {
        format!("{{{}}}:taken:{tier}", self.0)
    }

    /// Bitmap: 1 where a seat is sold on a leg; as [`InventoryKeys::taken`].
    #[must_use]
    pub fn sold(self, tier: &TierId) -> String {
        format!("{{{}}}:sold:{tier}", self.0)
    }

    /// Text of two bytes a row: twice the column of the row's middle, the higher byte first. There is none if seats are
    /// best at the left, as in general admission, or if a release loaded the tier that knew of no middles.
    #[must_use]
    pub fn middles(self, tier: &TierId) -> String {
        format!("{{{}}}:middles:{tier}", self.0)
    }

    /// Every key of a tier.
    #[must_use]
    pub fn of_tier(self, tier: &TierId) -> [String; 5] {
        [self.tier(tier), self.freed(tier), self.taken(tier), self.sold(tier), self.middles(tier)]
    }
}

/// The keys of one copy of what is left of a sale.
#[derive(Debug, Clone, Copy)]
pub struct CopyKeys<'a> {
    pub sale: &'a SaleId,
    /// The copy, from 0.
    pub copy: u16,
}

impl CopyKeys<'_> {
    /// Text with a time to live: what was read, and when.
    #[must_use]
    pub fn copy(self) -> String {
        format!("{{{}/left/{}}}:copy", self.sale, self.copy)
    }

    /// Text with a time to live: one process reads the sale.
    #[must_use]
    pub fn lock(self) -> String {
        format!("{{{}/left/{}}}:lock", self.sale, self.copy)
    }
}

/// The keys of one shard of a sale's gate.
#[derive(Debug, Clone, Copy)]
pub struct GateKeys<'a> {
    pub sale: &'a SaleId,
    /// The shard, from 0.
    pub shard: u16,
}

impl GateKeys<'_> {
    /// Hash: the budget and rate of the shard, and its last top-up.
    #[must_use]
    pub fn gate(self) -> String {
        format!("{{{}/gate/{}}}:gate", self.sale, self.shard)
    }

    /// Text with a time to live: the time in milliseconds until which a buyer waits.
    #[must_use]
    pub fn lock(self, user: &UserId) -> String {
        format!("{{{}/gate/{}}}:lock:{user}", self.sale, self.shard)
    }
}

/// Slots over which the counters of a sale's gate are spread.
pub const COUNTER_SLOTS: u16 = 64;

/// The keys of one slot of the counters of a sale's gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterKeys<'a> {
    pub sale: &'a SaleId,
    /// The slot, from 0.
    pub slot: u16,
}

impl<'a> CounterKeys<'a> {
    /// The slot that a number decides.
    #[must_use]
    pub fn new(sale: &'a SaleId, number: u16) -> Self {
        Self { sale, slot: number % COUNTER_SLOTS }
    }

    fn key(self, rest: fmt::Arguments<'_>) -> String {
        format!("{{{}/limits/{}}}:{rest}", self.sale, self.slot)
    }

    /// Number with a time to live: requests of a buyer in a window.
    #[must_use]
    pub fn buyer(self, user: &UserId, window: i64) -> String {
        self.key(format_args!("buyer:{window}:{user}"))
    }

    /// Number with a time to live: requests of a buyer in the sale.
    #[must_use]
    pub fn asks(self, user: &UserId) -> String {
        self.key(format_args!("asks:{user}"))
    }

    /// Set with a time to live: numbers of the orders that a buyer has given up in the sale.
    #[must_use]
    pub fn given_up(self, user: &UserId) -> String {
        self.key(format_args!("given_up:{user}"))
    }

    /// Set with a time to live: hashes of the codes that a buyer has tried in the sale.
    #[must_use]
    pub fn codes(self, user: &UserId) -> String {
        self.key(format_args!("codes:{user}"))
    }

    /// Number with a time to live: requests in a window of an address or a device hint, of which the key has a
    /// keyed hash.
    #[must_use]
    pub fn hashed(self, hash: &str) -> String {
        self.key(format_args!("hashed:{hash}"))
    }

    /// Number with a time to live: requests in a window of all whom an operator's limit is about.
    #[must_use]
    pub fn rule(self, rule: &RuleId, window: i64) -> String {
        self.key(format_args!("rule:{window}:{rule}"))
    }

    /// Hash with a time to live: how many requests each rule and limit has refused; in slot 0.
    #[must_use]
    pub fn refused(sale: &'a SaleId) -> String {
        Self { sale, slot: 0 }.key(format_args!("refused"))
    }
}

/// The keys of a waiting room. All of them have a time to live.
#[derive(Debug, Clone, Copy)]
pub struct RoomKeys<'a>(pub &'a SaleId);

impl RoomKeys<'_> {
    /// Sorted set: what is shown of the room, by the number of the record.
    #[must_use]
    pub fn board(self) -> String {
        format!("{{room:{}}}:board", self.0)
    }

    /// Text: one process makes the turn.
    #[must_use]
    pub fn turn(self) -> String {
        format!("{{room:{}}}:turn", self.0)
    }

    /// Hash: who came and ordered, in all and by ten-second mark.
    #[must_use]
    pub fn counts(self) -> String {
        format!("{{room:{}}}:counts", self.0)
    }

    /// Text: the draw was requested.
    #[must_use]
    pub fn draw(self) -> String {
        format!("{{room:{}}}:draw", self.0)
    }

    /// Sorted set: the buyers who asked the sale's slot in a second since the Unix epoch, by how often.
    #[must_use]
    pub fn buyers(self, second: i64) -> String {
        format!("{{room:{}}}:buyers:{second}", self.0)
    }

    /// Sorted set: the buyers who have an admission, by the number of the latest in their visit.
    #[must_use]
    pub fn admitted(self) -> String {
        format!("{{room:{}}}:admitted", self.0)
    }

    /// Hash: the reservations of a second since the Unix epoch.
    #[must_use]
    pub fn second(self, second: i64) -> String {
        format!("{{room:{}}}:second:{second}", self.0)
    }
}

/// The keys of one shard of a sale's challenges.
#[derive(Debug, Clone, Copy)]
pub struct ChallengeKeys<'a> {
    pub sale: &'a SaleId,
    /// The shard, from 0.
    pub shard: u16,
}

impl ChallengeKeys<'_> {
    /// Counter with a time to live: how often buyers were asked at a stage in one window of ten seconds,
    /// numbered from 1970.
    #[must_use]
    pub fn asked(self, stage: Stage, window: i64) -> String {
        format!("{{{}/challenge/{}}}:asked:{}:{window}", self.sale, self.shard, stage.as_str())
    }

    /// Text with a time to live: the challenge with this number was answered; what was answered it with.
    #[must_use]
    pub fn used(self, challenge: &str) -> String {
        format!("{{{}/challenge/{}}}:used:{challenge}", self.sale, self.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_whole_sale_are_those_of_ever_and_of_a_tier_have_a_tag_of_their_own() {
        let (sale, tier) = (SaleId::new("s").unwrap(), TierId::new("a").unwrap());
        let names = |inventory: &InventoryId| {
            let keys = InventoryKeys(inventory);
            [
                keys.sale(),
                keys.due(),
                keys.loading(),
                keys.loading_due(),
                keys.tier(&tier),
                keys.taken(&tier),
                keys.sold(&tier),
                keys.freed(&tier),
                keys.middles(&tier),
            ]
        };
        let of_ever = [
            "{s}:sale",
            "{s}:due",
            "{s}:loading",
            "{s}:loading_due",
            "{s}:tier:a",
            "{s}:taken:a",
            "{s}:sold:a",
            "{s}:freed:a",
            "{s}:middles:a",
        ];
        assert_eq!(names(&InventoryId::whole(sale.clone())), of_ever);
        let of_tier = of_ever.map(|key| key.replace("{s}", "{s/a}"));
        assert_eq!(names(&InventoryId::of_tier(sale.clone(), tier.clone())), of_tier);
        // No tier is called as a shard of the gate or a copy: those have two slashes.
        let gate = GateKeys { sale: &sale, shard: 0 }.gate();
        let copy = CopyKeys { sale: &sale, copy: 0 }.copy();
        let asks = CounterKeys::new(&sale, 65).asks(&UserId::new("u").unwrap());
        assert_eq!(
            [gate, copy, asks],
            ["{s/gate/0}:gate", "{s/left/0}:copy", "{s/limits/1}:asks:u"]
        );
    }
}
