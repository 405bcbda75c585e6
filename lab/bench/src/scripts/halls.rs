//! What is put on sale to be measured: theatres of several sizes, and a train.

use std::collections::BTreeMap;

use engine::domain::basics::bitmap;
use engine::domain::basics::ids::{Epoch, InventoryId, Legs, SaleId, Seat, TierId};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{Freed, Load, Terms, TierGrid};
use engine::domain::sale::SaleState;
use engine::domain::sale::layout::Layout;

use super::{Error, Options};

/// The time, which stands still.
pub const NOW: Timestamp = Timestamp::from_ms(1_795_000_000_000);
/// A row of a theatre: 40 seats.
const THEATRE_ROW: [u8; 5] = [0; 5];
/// A row of a second-class coach: A B C, the aisle, D F; then padding.
const COACH_ROW: [u8; 1] = [0b0001_0011];
/// The seats of the train.
const TRAIN_SEATS: u32 = 1200;
const TRAIN_LEGS: u16 = 15;

/// One tier of a hall.
#[derive(Debug, Clone)]
pub struct Tier {
    pub id: TierId,
    /// 1 where there is no seat.
    pub initial: Vec<u8>,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Twice the column of the middle of each row; empty if there is none.
    pub middles: Vec<u16>,
    /// Number of its seats.
    pub seats: u32,
}

/// A sale to measure: one tier with rows, and one of general admission with as many spots.
#[derive(Debug, Clone)]
pub struct Hall {
    /// Its name in the report.
    pub name: String,
    pub inventory: InventoryId,
    /// Number of its legs.
    pub legs: u16,
    /// The tier with rows.
    pub seated: Tier,
    pub standing: Tier,
}

/// Something that is written down here and so is well formed.
fn known<T, E: std::fmt::Display>(made: Result<T, E>) -> Result<T, Error> {
    made.map_err(|error| Error::Unexpected(error.to_string()))
}

impl Tier {
    /// A tier of equal rows, the last of which is cut off where the seats end.
    pub fn seated(id: &str, seats: u32, row: &[u8]) -> Result<Self, Error> {
        let row_bytes = known(u32::try_from(row.len()))?;
        let mut left = seats;
        let mut initial = Vec::new();
        while left > 0 {
            for byte in row {
                let bits = (0..8).map(|bit| 0x80_u8 >> bit);
                let free = bits.filter(|mask| byte & mask == 0);
                let free: u8 = free.take(bitmap::index(left)).sum();
                left -= free.count_ones();
                initial.push(!free);
            }
        }
        let is_seat = |column: &u32| bitmap::get(row, Seat(*column)) == Some(false);
        let columns = 0..row_bytes * 8;
        let ends = columns.clone().find(is_seat).zip(columns.rev().find(is_seat));
        let middle = known(u16::try_from(ends.map_or(0, |(first, last)| first + last)))?;
        let middles = vec![middle; initial.len() / row.len()];
        Ok(Self { id: known(TierId::new(id))?, initial, row_bytes, middles, seats })
    }

    fn standing(id: &str, spots: u32) -> Result<Self, Error> {
        let layout = known(Layout::general_admission(id, spots))?;
        let (initial, row_bytes) = (layout.initial().to_vec(), layout.row_bytes());
        let middles = layout.middles();
        Ok(Self { id: known(TierId::new(id))?, initial, row_bytes, middles, seats: spots })
    }

    /// Its grid before anything is sold.
    pub fn grid(&self, legs: u16) -> TierGrid {
        TierGrid {
            tier: self.id.clone(),
            row_bytes: self.row_bytes,
            middles: self.middles.clone(),
            taken: vec![self.initial.clone(); usize::from(legs)],
            sold: vec![vec![0; self.initial.len()]; usize::from(legs)],
            freed: Freed::default(),
        }
    }
}

/// The terms of every sale here: open, and no limit that anybody meets.
pub fn terms(legs: u16) -> Terms {
    Terms {
        state: SaleState::Open,
        opens_at: NOW,
        closes_at: NOW.plus_seconds(3600),
        limit: Tickets::new(1000),
        leg_count: legs,
    }
}

/// A load of some grids over whatever there is not.
pub fn load(inventory: &InventoryId, legs: u16, tiers: Vec<TierGrid>) -> Result<Load, Error> {
    Ok(Load {
        inventory: inventory.clone(),
        terms: terms(legs),
        expected: None,
        epoch: epoch()?,
        tiers,
        holds: BTreeMap::new(),
        bought: BTreeMap::new(),
    })
}

/// The epoch of every sale here.
pub fn epoch() -> Result<Epoch, Error> {
    known(Epoch::new("measured"))
}

impl Hall {
    pub fn theatre(seats: u32) -> Result<Self, Error> {
        Ok(Self {
            name: format!("theatre of {seats}"),
            inventory: InventoryId::whole(known(SaleId::new(format!("theatre-{seats}")))?),
            legs: 1,
            seated: Tier::seated("stalls", seats, &THEATRE_ROW)?,
            standing: Tier::standing("floor", seats)?,
        })
    }

    pub fn train() -> Result<Self, Error> {
        Ok(Self {
            name: format!("train of {TRAIN_SEATS}, {TRAIN_LEGS} legs"),
            inventory: InventoryId::whole(known(SaleId::new("train"))?),
            legs: TRAIN_LEGS,
            seated: Tier::seated("second", TRAIN_SEATS, &COACH_ROW)?,
            standing: Tier::standing("no-seat", TRAIN_SEATS)?,
        })
    }

    pub fn tiers(&self) -> [&Tier; 2] {
        [&self.seated, &self.standing]
    }

    pub fn whole(&self) -> Legs {
        Legs::new(0, self.legs).unwrap_or(Legs::ONE)
    }

    /// Everything that the sale starts from.
    pub fn load(&self) -> Result<Load, Error> {
        let grids = self.tiers().map(|tier| tier.grid(self.legs));
        load(&self.inventory, self.legs, grids.into())
    }
}

/// The halls that some options ask for.
pub fn of(options: &Options) -> Result<Vec<Hall>, Error> {
    let mut halls =
        options.seats.iter().map(|seats| Hall::theatre(*seats)).collect::<Result<Vec<_>, _>>()?;
    if options.train {
        halls.push(Hall::train()?);
    }
    Ok(halls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_has_as_many_free_places_as_seats() {
        for seats in [1, 39, 40, 41, 2000] {
            let hall = Hall::theatre(seats).unwrap();
            for tier in hall.tiers() {
                let free: u32 = tier.initial.iter().map(|byte| byte.count_zeros()).sum();
                assert_eq!(free, seats);
                assert_eq!(tier.initial.len() % bitmap::index(tier.row_bytes), 0);
            }
        }
        let train = Hall::train().unwrap();
        assert_eq!(train.seated.initial.len(), 240);
        assert!(train.seated.initial.iter().all(|row| *row == COACH_ROW[0]));
    }
}
