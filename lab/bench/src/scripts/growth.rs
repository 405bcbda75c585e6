//! How a hold grows with the seats of a tier, with the tiers of a sale, and with the legs.
//!
//! A million seats are not filled by a crowd but loaded as one would have left them: all rows taken
//! up to the fill, but for a single seat in some of them.

use engine::domain::basics::bitmap;
use engine::domain::basics::ids::{InventoryId, SaleId, TierId};
use engine::domain::inventory::TierGrid;
use engine::domain::inventory::choice::{Choice, Together};
use engine::ports::Seats as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use shared::redis::keys::InventoryKeys;

use super::crowd::Crowd;
use super::halls::{self, Hall, Tier};
use super::report::{BEST_OF_TWO, FROM_THE_FRONT, Figure, Row};
use super::rig::{Act, Burst, Rig};
use super::{Error, Options};

/// Seats of one tier, one leg: up to the most that a sale may have.
const SEATS: [u32; 7] = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
/// The numbers of tiers that the same million is spread over.
const TIERS: [u32; 4] = [4, 16, 32, 64];
/// Seats of the tier that grows in legs.
const LEGS_SEATS: u32 = 1_200;
/// Legs, up to the most that a sale may have.
const LEGS: [u16; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Seats of a larger tier that grows in legs.
const MORE_LEGS_SEATS: u32 = 12_000;
/// A row in all of them: 40 seats.
const ROW: [u8; 5] = [0; 5];
/// Full rows of a hundred in which one seat is free.
const ROWS_WITH_A_SEAT: u32 = 20;
/// Calls before the measured ones, at least one a tier: the first has to find where the free seats
/// begin.
const FIRST_CALLS: usize = 20;
/// Calls of a round that walk over all that is taken.
const WALKS: usize = 20;

pub async fn measure(rig: &mut Rig, options: &Options) -> Result<Vec<Row>, Error> {
    let largest = options.seats.iter().copied().max().unwrap_or(0);
    let mut rows = Vec::new();
    for fill in &options.fills {
        for seats in SEATS.into_iter().filter(|seats| *seats <= largest) {
            rows.extend(one(rig, options, (seats, 1, 1), *fill).await?);
        }
        for tiers in TIERS {
            let seats = largest / tiers;
            rows.extend(one(rig, options, (seats, tiers, 1), *fill).await?);
        }
        for seats in [LEGS_SEATS, MORE_LEGS_SEATS].into_iter().filter(|seats| *seats <= largest) {
            for legs in LEGS {
                rows.extend(one(rig, options, (seats, 1, legs), *fill).await?);
            }
        }
    }
    Ok(rows)
}

/// Takes the first rows of a tier, but for single seats.
fn fill(grid: &mut TierGrid, fill: u32, rng: &mut StdRng) {
    let row_bytes = bitmap::index(grid.row_bytes);
    let rows = grid.taken[0].len() / row_bytes * bitmap::index(fill) / 100;
    let mut taken = vec![0xff; rows * row_bytes];
    for row in taken.chunks_mut(row_bytes) {
        if rng.random_range(0..100) < ROWS_WITH_A_SEAT {
            let seat = rng.random_range(0..row_bytes * 8);
            row[seat / 8] &= !(0x80 >> (seat % 8));
        }
    }
    for leg in &mut grid.taken {
        leg.iter_mut().zip(&taken).for_each(|(place, taken)| *place |= taken);
    }
}

async fn one(
    rig: &mut Rig,
    options: &Options,
    (seats, tiers, legs): (u32, u32, u16),
    percent: u32,
) -> Result<[Row; 2], Error> {
    let mut rng = StdRng::seed_from_u64(options.seed);
    let unexpected =
        |error: engine::domain::basics::ids::InvalidId| Error::Unexpected(error.to_string());
    let inventory = InventoryId::whole(SaleId::new("growth").map_err(unexpected)?);
    let mut grids = Vec::new();
    let mut named = Vec::new();
    for index in 0..tiers {
        let tier = Tier::seated(&format!("tier-{index}"), seats, &ROW)?;
        let mut grid = tier.grid(legs);
        fill(&mut grid, percent, &mut rng);
        grids.push(grid);
        named.push(tier);
    }
    rig.clear().await?;
    rig.seats.load(&halls::load(&inventory, legs, grids)?).await?;
    let hall = Hall {
        name: format!("{tiers} × {seats} seats, {legs} legs"),
        inventory,
        legs,
        seated: named[0].clone(),
        standing: Tier { id: TierId::new("none").map_err(unexpected)?, ..named[0].clone() },
    };
    let kept = rig.keep().await?;
    let mut crowd = Crowd::new(&hall, options.seed);
    let (all, free_percent) = (bitmap::index(seats), bitmap::index(100 - percent));
    let calls = options.calls.min((all * free_percent / 100 / 4).max(1));
    let (mut bursts, mut from_the_front) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds.max(1) {
        rig.set_back(&kept).await?;
        let first = FIRST_CALLS.max(named.len());
        let mut acts = Vec::with_capacity(first + calls);
        for number in 0..first + calls {
            let choice = Choice::Best { count: 2, together: Together::Required };
            let tier = &named[number % named.len()];
            let wish = crowd.wants(vec![Crowd::line(tier, hall.whole(), choice)])?;
            acts.push(Act::Hold(Box::new(wish)));
        }
        rig.burst(&acts[..first]).await?;
        bursts.push(rig.burst(&acts[first..]).await?);
        from_the_front.push(walks(rig, &mut crowd, &hall).await?);
    }
    let row = |asks, bursts: &[Burst]| Row {
        hall: hall.name.clone(),
        seats,
        tiers,
        legs,
        filled_percent: f64::from(percent),
        script: "hold",
        asks,
        figure: Figure::from_rounds(bursts),
        times_noop: None,
        times_hold: None,
    };
    Ok([row(BEST_OF_TWO, &bursts), row(FROM_THE_FRONT, &from_the_front)])
}

/// Holds of which each begins at the first row, as the first does after seats of that row were given back and held again:
/// it walks over all that is taken.
async fn walks(rig: &mut Rig, crowd: &mut Crowd, hall: &Hall) -> Result<Burst, Error> {
    let tier_key = InventoryKeys(&hall.inventory).tier(&hall.seated.id);
    let search = format!("2:0:{}", hall.legs);
    let mut sum = Burst::default();
    for _ in 0..WALKS {
        let choice = Choice::Best { count: 2, together: Together::Required };
        let wish = crowd.wants(vec![Crowd::line(&hall.seated, hall.whole(), choice)])?;
        let mut forget = redis::cmd("HDEL");
        forget.arg(&tier_key).arg(&search).query_async::<()>(&mut rig.control).await?;
        let burst = rig.burst(&[Act::Hold(Box::new(wish))]).await?;
        sum.counted.add(&burst.counted);
        sum.done += burst.done;
    }
    Ok(sum)
}
