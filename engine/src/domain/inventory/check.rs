//! Checks of the model's invariants: those that hold whatever commands the scripts get, and those that also
//! hold as long as Redis has forgotten nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::{HeldLine, HoldRecord, Inventory, SeatLeg, TierGrid};
use crate::domain::basics::ids::{Leg, Seat, TierId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;

/// An invariant of an [`Inventory`] that is broken, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Inconsistency {
    /// A sale without an epoch has holds or buyers, or tiers that are of no load under way.
    #[error("the sale is not loaded and yet has tiers, holds or buyers")]
    NotLoaded,
    /// A sale has an epoch while parts of its load are missing.
    #[error("the sale has an epoch, and not all parts of its load are there")]
    NamedEarly,
    /// The bitmaps of a tier are not whole rows of equal length, two for each leg of the sale.
    #[error("the bitmaps of tier {0} have another shape than its sale")]
    Shape(TierId),
    /// A seat-leg is sold and not taken.
    #[error("{0:?} is sold and free")]
    SoldAndFree(SeatLeg),
    /// A hold has no line, a line without seats, a tier in two lines, or a seat twice in a line.
    #[error("the hold of order {0} has an empty or a repeated line or seat")]
    MalformedHold(OrderNumber),
    /// A buyer's count is zero, or less than the tickets that the buyer holds.
    #[error("buyer {user} holds {held} tickets and is counted with {counted}")]
    Uncounted {
        user: UserId,
        /// Tickets in the buyer's holds.
        held: u32,
        /// Tickets that the sale counts for the buyer.
        counted: Tickets,
    },
    /// A seat-leg is held and not taken.
    #[error("order {0} holds {1:?}, which is free")]
    HeldAndFree(OrderNumber, SeatLeg),
    /// A seat-leg is held and sold.
    #[error("order {0} holds {1:?}, which is sold")]
    HeldAndSold(OrderNumber, SeatLeg),
    /// A seat-leg is in two holds.
    #[error("orders {0} and {1} both hold {2:?}")]
    HeldTwice(OrderNumber, OrderNumber, SeatLeg),
    /// A place that is not for sale is free.
    #[error("{0:?} is not for sale and free")]
    Offered(SeatLeg),
    /// A seat-leg is taken and neither held nor sold, though it is for sale.
    #[error("{0:?} is taken, and neither held nor sold")]
    Leaked(SeatLeg),
}

impl Inventory {
    /// Checks what is true after any commands: an inventory that is not loaded
    /// has no holds and no buyers, and tiers only while it is being loaded; bitmaps have
    /// the shape of the sale; what is sold is taken; holds name each seat once; every buyer is
    /// counted with at least the tickets of their holds.
    ///
    /// # Errors
    /// Returns the first invariant that is broken.
    pub fn check(&self) -> Result<(), Inconsistency> {
        let Some((_, terms)) = &self.loaded else {
            let has_tiers = !self.tiers.is_empty() && self.staging.is_none();
            let is_empty = !has_tiers && self.holds.is_empty() && self.bought.is_empty();
            return if is_empty { Ok(()) } else { Err(Inconsistency::NotLoaded) };
        };
        if self.staging.is_some() {
            return Err(Inconsistency::NamedEarly);
        }
        for (tier, grid) in &self.tiers {
            if grid.tier != *tier || !has_shape(grid, terms.leg_count) {
                return Err(Inconsistency::Shape(tier.clone()));
            }
            for (leg, (taken, sold)) in (0..).map(Leg).zip(grid.taken.iter().zip(&grid.sold)) {
                if let Some(seat) = first_seat(sold.iter().zip(taken).map(|(s, t)| s & !t)) {
                    let at = SeatLeg { tier: tier.clone(), leg, seat };
                    return Err(Inconsistency::SoldAndFree(at));
                }
            }
        }
        let mut held: BTreeMap<&UserId, u32> = BTreeMap::new();
        for (order, record) in &self.holds {
            if !is_well_formed(record) {
                return Err(Inconsistency::MalformedHold(*order));
            }
            *held.entry(&record.user).or_default() += u32::from(record.tickets());
        }
        for user in self.bought.keys().chain(held.keys().copied()) {
            let held = held.get(user).copied().unwrap_or(0);
            let counted = self.bought.get(user).copied().unwrap_or_default();
            if counted == Tickets::NONE || u32::from(counted) < held {
                return Err(Inconsistency::Uncounted { user: user.clone(), held, counted });
            }
        }
        Ok(())
    }

    /// Checks what is true of the holds as long as Redis has forgotten nothing and no hold that was
    /// given back is restored: every seat-leg of a hold is taken, and in no other hold. It may be sold:
    /// an order that is rescued by a late payment takes seats that another only holds. What lies
    /// beyond the grid is passed over.
    ///
    /// # Errors
    /// Returns the first invariant that is broken.
    pub fn check_holds(&self) -> Result<(), Inconsistency> {
        let mut holder = BTreeMap::new();
        for (order, record) in &self.holds {
            for line in &record.lines {
                let Some(grid) = self.tiers.get(&line.tier) else { continue };
                for at in line.seat_legs().filter(|at| grid.has(at.leg, at.seat)) {
                    if !grid.is_taken(at.leg, at.seat) {
                        return Err(Inconsistency::HeldAndFree(*order, at));
                    }
                    if let Some(other) = holder.insert((&line.tier, at.leg, at.seat), *order) {
                        return Err(Inconsistency::HeldTwice(other, *order, at));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks, besides [`Inventory::check_holds`], that what is taken is exactly what is held, sold or
    /// not for sale, and nothing both held and sold: what is true as long as no command names another
    /// order's seats. `not_for_sale` is the bitmap of one leg of a tier before anything is sold.
    ///
    /// # Errors
    /// Returns the first invariant that is broken.
    pub fn check_taken<'a>(
        &self,
        not_for_sale: impl Fn(&TierId) -> &'a [u8],
    ) -> Result<(), Inconsistency> {
        self.check_holds()?;
        for (tier, grid) in &self.tiers {
            // The grid with every hold given back.
            let mut rest = grid.clone();
            for (order, record) in &self.holds {
                let lines = record.lines.iter().filter(|line| line.tier == *tier);
                for at in lines.flat_map(HeldLine::seat_legs) {
                    if grid.is_sold(at.leg, at.seat) {
                        return Err(Inconsistency::HeldAndSold(*order, at));
                    }
                    rest.set_taken(at.leg, at.seat, false);
                }
            }
            let closed = not_for_sale(tier);
            for (leg, (taken, sold)) in (0..).map(Leg).zip(rest.taken.iter().zip(&rest.sold)) {
                let bytes = || taken.iter().zip(sold).zip(closed);
                let at = |seat| SeatLeg { tier: tier.clone(), leg, seat };
                if let Some(seat) = first_seat(bytes().map(|((t, _), c)| c & !t)) {
                    return Err(Inconsistency::Offered(at(seat)));
                }
                if let Some(seat) = first_seat(bytes().map(|((t, s), c)| t & !(s | c))) {
                    return Err(Inconsistency::Leaked(at(seat)));
                }
            }
        }
        Ok(())
    }
}

/// The seat of the first bit that is set.
fn first_seat(bytes: impl Iterator<Item = u8>) -> Option<Seat> {
    let (index, byte) = (0..).zip(bytes).find(|(_, byte)| *byte != 0)?;
    Some(Seat(index * 8 + byte.leading_zeros()))
}

/// True if a tier has two bitmaps for each leg, all of the same whole number of rows.
fn has_shape(grid: &TierGrid, leg_count: u16) -> bool {
    let bytes = grid.taken.first().map_or(0, Vec::len);
    let is_whole = usize::try_from(grid.row_bytes).is_ok_and(|row| bytes.is_multiple_of(row));
    let is_even = |bitmaps: &[Vec<u8>]| {
        bitmaps.len() == usize::from(leg_count) && bitmaps.iter().all(|bits| bits.len() == bytes)
    };
    is_whole && is_even(&grid.taken) && is_even(&grid.sold)
}

/// True if a hold has lines of different tiers, each with at least one seat and none twice.
fn is_well_formed(record: &HoldRecord) -> bool {
    let mut tiers = BTreeSet::new();
    !record.lines.is_empty()
        && record.lines.iter().all(|line| {
            let mut seats = BTreeSet::new();
            !line.seats.is_empty()
                && line.seats.iter().all(|seat| seats.insert(*seat))
                && tiers.insert(&line.tier)
        })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{
        ask, best, held, line, loaded, number, release, sell, these, tier,
    };
    use super::super::{HoldReply, ReleaseReply, SellReply};
    use super::*;

    /// Order 1 holds seats 0 and 1 of tier `a` on both legs, order 2 has bought seat 4 on the first.
    fn sold_and_held() -> Inventory {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let record = held(&mut inventory, &ask(2, "v", vec![line("a", (0, 1), these(&[4]))]));
        assert_eq!(inventory.sell(&sell(2, &record)), SellReply::Sold);
        inventory
    }

    fn at(leg: u16, seat: u32) -> SeatLeg {
        SeatLeg { tier: tier("a"), leg: Leg(leg), seat: Seat(seat) }
    }

    fn everything(inventory: &Inventory) -> Result<(), Inconsistency> {
        inventory.check().and_then(|()| inventory.check_taken(|_| &[0; 2]))
    }

    fn grid(inventory: &mut Inventory) -> &mut TierGrid {
        inventory.tiers.get_mut(&tier("a")).unwrap()
    }

    fn record(inventory: &mut Inventory) -> &mut HoldRecord {
        inventory.holds.get_mut(&number(1)).unwrap()
    }

    #[test]
    fn each_corruption_is_found_and_named() {
        type Corrupt = fn(&mut Inventory);
        let user = UserId::new("u").unwrap();
        let uncounted = |counted| {
            let counted = Tickets::new(counted);
            Inconsistency::Uncounted { user: user.clone(), held: 2, counted }
        };
        let cases: [(Corrupt, Inconsistency); 16] = [
            (|i| i.loaded = None, Inconsistency::NotLoaded),
            (|i| grid(i).tier = tier("b"), Inconsistency::Shape(tier("a"))),
            (|i| grid(i).row_bytes = 0, Inconsistency::Shape(tier("a"))),
            (|i| grid(i).taken[1].push(0), Inconsistency::Shape(tier("a"))),
            (|i| grid(i).sold.truncate(1), Inconsistency::Shape(tier("a"))),
            (|i| grid(i).set_taken(Leg(0), Seat(4), false), Inconsistency::SoldAndFree(at(0, 4))),
            (|i| record(i).lines.clear(), Inconsistency::MalformedHold(number(1))),
            (|i| record(i).lines[0].seats.clear(), Inconsistency::MalformedHold(number(1))),
            (|i| record(i).lines[0].seats.push(Seat(0)), Inconsistency::MalformedHold(number(1))),
            (
                |i| {
                    let again = record(i).lines[0].clone();
                    record(i).lines.push(again);
                },
                Inconsistency::MalformedHold(number(1)),
            ),
            (|i| i.add_bought(&UserId::new("u").unwrap(), -1), uncounted(1)),
            (|i| i.add_bought(&UserId::new("u").unwrap(), -2), uncounted(0)),
            (
                |i| grid(i).set_taken(Leg(1), Seat(1), false),
                Inconsistency::HeldAndFree(number(1), at(1, 1)),
            ),
            (
                |i| grid(i).set_sold(Leg(1), Seat(1), true),
                Inconsistency::HeldAndSold(number(1), at(1, 1)),
            ),
            (
                |i| {
                    let twice = record(i).clone();
                    i.add_bought(&twice.user.clone(), 2);
                    i.holds.insert(number(3), twice);
                },
                Inconsistency::HeldTwice(number(1), number(3), at(0, 0)),
            ),
            (|i| grid(i).set_taken(Leg(1), Seat(9), true), Inconsistency::Leaked(at(1, 9))),
        ];
        assert_eq!(everything(&sold_and_held()), Ok(()));
        for (corrupt, expected) in cases {
            let mut inventory = sold_and_held();
            corrupt(&mut inventory);
            assert_eq!(everything(&inventory), Err(expected));
        }
        let offered = sold_and_held().check_taken(|_| &[0, 1]);
        assert_eq!(offered, Err(Inconsistency::Offered(at(0, 15))));
        let mut forgotten = sold_and_held();
        forgotten.bought.insert(UserId::new("w").unwrap(), Tickets::NONE);
        let (user, counted) = (UserId::new("w").unwrap(), Tickets::NONE);
        let nothing = Inconsistency::Uncounted { user, held: 0, counted };
        assert_eq!(forgotten.check(), Err(nothing));
        assert_eq!(Inventory::default().check(), Ok(()));
    }

    /// Buyers hold, pay and give up at random; nothing is ever inconsistent on the way.
    #[test]
    fn orderly_commands_keep_every_invariant() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            // Knuth's MMIX constants.
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut sold, mut released) = (0, 0);
        for _ in 0..200 {
            let mut inventory = loaded();
            for order in 1..40 {
                let from = u16::from(draw(2) == 1);
                let to = if draw(2) == 1 { 2 } else { from + 1 };
                let count = u16::try_from(1 + draw(3)).unwrap();
                let user = ["u", "v", "w"][usize::try_from(draw(3)).unwrap()];
                let name = ["a", "b"][usize::try_from(draw(2)).unwrap()];
                let hold = ask(order, user, vec![line(name, (from, to), best(count))]);
                if let HoldReply::Held { record, .. } = inventory.hold(&hold) {
                    assert_eq!(everything(&inventory), Ok(()));
                    match draw(3) {
                        0 => {
                            sold += 1;
                            assert_eq!(inventory.sell(&sell(order, &record)), SellReply::Sold);
                        }
                        1 => {
                            released += 1;
                            let reply = inventory.release(&release(order, &record));
                            assert_eq!(reply, ReleaseReply::Released);
                        }
                        _ => {}
                    }
                }
                assert_eq!(everything(&inventory), Ok(()));
            }
        }
        assert!(sold > 200 && released > 200, "sold {sold}, released {released}");
    }
}
