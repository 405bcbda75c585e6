//! Holding: an order gets seats for every one of its lines, or for none.

use super::choice::{NoChoice, Taken};
use super::{HeldLine, HoldRecord, Inventory, Line};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId, RequestFingerprint, Seat, TierId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::SaleState;

/// Hold every line of an order, or none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hold {
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// Number of the order to be.
    pub order: OrderNumber,
    pub user: UserId,
    /// The fingerprint of the requested lines.
    pub fingerprint: RequestFingerprint,
    pub now: Timestamp,
    /// End of the payment window.
    pub deadline: Timestamp,
    /// Tickets of the inventory that the order is to replace: the limit makes room for it besides them.
    pub replaced: Tickets,
    /// What to hold: 1 to 4 lines, each of another tier.
    pub lines: Vec<Line>,
}

/// The reply of `hold`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HoldReply {
    /// The seats are held, now or since an earlier attempt under the same number.
    Held {
        /// The hold as it is remembered.
        record: HoldRecord,
        /// Tickets that the buyer may still have.
        allowance: Tickets,
    },
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
    /// The number holds something else already.
    ContentDiffers,
    /// The number's hold is past its deadline and waits for its end.
    HoldExpired,
    /// The sale takes no reservations now.
    SaleClosed,
    /// The buyer would have more tickets than the limit.
    LimitReached {
        /// Tickets that the buyer may still have.
        remaining: Tickets,
    },
    /// These chosen seats are not free.
    SeatTaken(TierId, Vec<Seat>),
    /// Fewer seats are free than asked for, or the pattern fits nowhere.
    SoldOut(TierId),
    /// Enough seats are free, but nowhere enough side by side.
    NoAdjacent(TierId),
}

impl Inventory {
    /// Holds every line of an order, or none. The same number with the same fingerprint is answered
    /// with the same seats.
    pub fn hold(&mut self, command: &Hold) -> HoldReply {
        let Some((_, terms)) = self.loaded.as_ref().filter(|_| self.knows(&command.epoch)) else {
            return HoldReply::NotLoaded;
        };
        let bought = self.bought.get(&command.user).copied().unwrap_or_default();
        let limit = terms.limit.saturating_add(command.replaced);
        let replayed = self.holds.get(&command.order).filter(|_| stands(Guard::HoldReplay));
        if let Some(record) = replayed {
            let is_same = record.fingerprint == command.fingerprint && record.user == command.user;
            if stands(Guard::FingerprintCheck) && !is_same {
                return HoldReply::ContentDiffers;
            }
            if record.deadline <= command.now {
                return HoldReply::HoldExpired;
            }
            let allowance = limit.saturating_sub(bought);
            return HoldReply::Held { record: record.clone(), allowance };
        }
        let in_window = terms.opens_at <= command.now && command.now < terms.closes_at;
        let is_open = terms.state == SaleState::Open && in_window;
        if stands(Guard::SaleWindow) && !is_open {
            return HoldReply::SaleClosed;
        }
        let requested: usize = command.lines.iter().map(|line| line.choice.count()).sum();
        let remaining = limit.saturating_sub(bought);
        if requested > usize::from(remaining) {
            return HoldReply::LimitReached { remaining };
        }
        let mut lines = Vec::with_capacity(command.lines.len());
        for Line { tier, legs, choice } in &command.lines {
            let Some(grid) = self.tiers.get(tier) else {
                return HoldReply::SoldOut(tier.clone());
            };
            let bits = grid.taken_over(*legs);
            let (row_bytes, middles) = (grid.row_bytes, grid.middles.as_slice());
            match (Taken { bits: &bits, row_bytes, middles }).choose(choice) {
                Ok(seats) => lines.push(HeldLine { tier: tier.clone(), legs: *legs, seats }),
                Err(NoChoice::SeatTaken(seats)) => {
                    return HoldReply::SeatTaken(tier.clone(), seats);
                }
                Err(NoChoice::SoldOut) => return HoldReply::SoldOut(tier.clone()),
                Err(NoChoice::NoAdjacent) => return HoldReply::NoAdjacent(tier.clone()),
            }
        }
        let record = HoldRecord {
            user: command.user.clone(),
            fingerprint: command.fingerprint.clone(),
            deadline: command.deadline,
            lines,
        };
        self.put_hold(command.order, &record);
        let allowance = remaining.saturating_sub(record.tickets());
        HoldReply::Held { record, allowance }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{
        NOW, ask, best, held, held_line, line, load, loaded, terms, these, tier,
    };
    use super::super::{Load, Terms};
    use super::*;
    use crate::domain::inventory::choice::{Choice, Together};

    #[test]
    fn a_hold_is_answered_again_with_the_same_seats() {
        let mut inventory = loaded();
        let hold = ask(1, "u", vec![line("a", (0, 2), best(2)), line("b", (1, 2), these(&[3]))]);
        let first = inventory.hold(&hold);
        let HoldReply::Held { record, allowance } = &first else { panic!("{first:?}") };
        assert_eq!((record.tickets().get(), allowance.get()), (3, 1));
        assert_eq!(record.lines, [held_line("a", (0, 2), &[0, 1]), held_line("b", (1, 2), &[3])]);
        let after = inventory.clone();
        let later = Hold { now: NOW.plus_seconds(599), ..hold.clone() };
        assert_eq!(inventory.hold(&later), first);
        let fingerprint = RequestFingerprint::new("00000000000000bb").unwrap();
        let other_fingerprint = Hold { fingerprint, ..hold.clone() };
        assert_eq!(inventory.hold(&other_fingerprint), HoldReply::ContentDiffers);
        let other_user = Hold { user: UserId::new("v").unwrap(), ..hold.clone() };
        assert_eq!(inventory.hold(&other_user), HoldReply::ContentDiffers);
        let late = Hold { now: NOW.plus_seconds(600), ..hold };
        assert_eq!(inventory.hold(&late), HoldReply::HoldExpired);
        assert_eq!(inventory, after);
    }

    #[test]
    fn the_limit_makes_room_for_tickets_that_replace_others() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(4))]));
        let more = ask(2, "u", vec![line("b", (0, 1), best(2))]);
        let refused = HoldReply::LimitReached { remaining: Tickets::NONE };
        assert_eq!(inventory.hold(&more), refused);
        let exchange = Hold { replaced: Tickets::new(2), ..more };
        let first = inventory.hold(&exchange);
        let HoldReply::Held { allowance, .. } = &first else { panic!("{first:?}") };
        assert_eq!(*allowance, Tickets::NONE);
        assert_eq!(inventory.hold(&exchange), first);
        let another = Hold { order: "3".parse().unwrap(), ..exchange };
        assert_eq!(inventory.hold(&another), refused, "they are replaced once at a time");
    }

    #[test]
    fn every_refusal_of_a_hold_writes_nothing() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "x", vec![line("b", (0, 1), these(&[0, 1, 2]))]));
        held(&mut inventory, &ask(2, "y", vec![line("b", (0, 1), these(&[4, 6]))]));
        held(&mut inventory, &ask(3, "y", vec![line("b", (0, 1), these(&[9, 11]))]));
        let one = |choice| vec![line("a", (0, 1), best(1)), line("b", (0, 1), choice)];
        let refusals = [
            (ask(9, "u", one(these(&[0, 2, 3]))), {
                HoldReply::SeatTaken(tier("b"), vec![Seat(0), Seat(2)])
            }),
            (ask(9, "u", one(these(&[99]))), HoldReply::SeatTaken(tier("b"), vec![Seat(99)])),
            (ask(9, "u", vec![line("c", (0, 1), best(1))]), HoldReply::SoldOut(tier("c"))),
            (ask(9, "u", one(best(4))), HoldReply::LimitReached { remaining: Tickets::new(4) }),
            (ask(9, "y", one(best(1))), HoldReply::LimitReached { remaining: Tickets::NONE }),
            (
                Hold { epoch: Epoch::new("e2").unwrap(), ..ask(9, "u", one(best(1))) },
                HoldReply::NotLoaded,
            ),
            (Hold { now: NOW.plus_ms(-1), ..ask(9, "u", one(best(1))) }, HoldReply::SaleClosed),
            (
                Hold { now: NOW.plus_seconds(3600), ..ask(9, "u", one(best(1))) },
                HoldReply::SaleClosed,
            ),
        ];
        let before = inventory.clone();
        for (hold, refusal) in refusals {
            assert_eq!(inventory.hold(&hold), refusal);
            assert_eq!(inventory, before);
        }
        let unloaded = Inventory::default().hold(&ask(9, "u", one(best(1))));
        assert_eq!(unloaded, HoldReply::NotLoaded);
        let paused = Load { terms: Terms { state: SaleState::Paused, ..terms() }, ..load() };
        inventory.load(&paused);
        assert_eq!(inventory.hold(&ask(9, "u", one(best(1)))), HoldReply::SaleClosed);
    }

    #[test]
    fn scattered_seats_are_not_side_by_side() {
        let mut inventory = loaded();
        let taken = vec![0b1010_1010, 0b1111_1111];
        inventory.tiers.get_mut(&tier("a")).unwrap().taken[0] = taken;
        let hold = ask(1, "u", vec![line("a", (0, 1), best(2))]);
        assert_eq!(inventory.hold(&hold), HoldReply::NoAdjacent(tier("a")));
        let split = Choice::Best { count: 2, together: Together::Preferred };
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), split)]));
        assert_eq!(record.lines, [held_line("a", (0, 1), &[1, 3])]);
        inventory.bought.clear();
        let three = ask(2, "u", vec![line("a", (0, 1), best(3))]);
        assert_eq!(inventory.hold(&three), HoldReply::SoldOut(tier("a")));
    }

    #[test]
    fn journeys_conflict_only_where_they_share_a_leg() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), these(&[0]))]));
        held(&mut inventory, &ask(2, "v", vec![line("a", (1, 2), these(&[0]))]));
        let whole = ask(3, "w", vec![line("a", (0, 2), these(&[0]))]);
        assert_eq!(inventory.hold(&whole), HoldReply::SeatTaken(tier("a"), vec![Seat(0)]));
    }
}
