//! A stadium of any size, made up: rings of blocks around a pitch, with the map of its seats.
//!
//! For trying pages, budgets and load at a size for which there is no plan at hand. A block has up to twenty
//! rows of 25 seats, a ring up to forty blocks; the last block has what is left. Two calls make the same.

use std::f64::consts::TAU;

use engine::domain::basics::ids::TierId;
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::sale::{
    FileMap, InvalidCoordinate, MAX_TIERS, MapPoint, MapRow, MapSection, Outline, OutlineKind,
    Places, Run, SaleFile, SeatMap, Section, SectionRow, TierFile,
};

use super::report::Findings;
use super::terms::Terms;
use super::{Error, Import, MAX_SEATS_PER_SALE, Outcome, Report, TierCount, too_many};

/// Seats of a row, rows of a block, blocks of a ring.
const SEATS: u32 = 25;
const ROWS: u32 = 20;
const BLOCKS: u32 = 40;
/// From a seat to its neighbour, from a row to the next, from a ring to the next, in units of the map.
const PITCH: f64 = 20.0;
const ROW_DEPTH: f64 = 26.0;
const RING_DEPTH: f64 = ROW_DEPTH * ROWS as f64 + 90.0;
/// Units between two blocks of the innermost ring, at its first row.
const STAIR: f64 = 60.0;
/// The most seats: with more the map would be too large.
pub const MAX_SEATS: u32 = 500_000;
/// The price of a seat of the innermost ring, in minor units; each further ring costs a fifth less.
const PRICE_MINOR: i64 = 12_000;

/// A block: its number in the ring from 0, and its rows, each with its seats.
struct Block {
    angle: f64,
    name: String,
    rows: Vec<u32>,
}

/// Makes the stadium. `seats` is at least 1.
///
/// # Errors
/// [`Error::TooLarge`] beyond [`MAX_SEATS`], [`Error::Flags`] of none, [`Error::Rules`] if the terms break a rule.
pub fn stadium(seats: u32, terms: &Terms) -> Result<Import, Error> {
    if seats == 0 {
        return Err(Error::Flags("a stadium has at least one seat".to_owned()));
    }
    if seats > MAX_SEATS {
        return Err(too_many("the stadium", "seats"));
    }
    let rings = rings(seats);
    let tiers: Vec<TierFile> =
        rings.iter().enumerate().map(|(ring, blocks)| tier(ring, blocks)).collect();
    // Far inside of what a coordinate may be.
    let map = map(&rings, &tiers)
        .unwrap_or_else(|error| unreachable!("a stadium lies on its map: {error}"));
    let currency =
        Currency::new("EUR").unwrap_or_else(|error| unreachable!("EUR is three letters: {error}"));
    let title = format!("A stadium of {seats} seats");
    let id = Some(format!("stadium-{seats}"));
    let file = terms.sale_file(&title, id, currency, None, Vec::new(), tiers)?;
    let file = SaleFile { map: Some(FileMap::Own(map)), ..file };
    let seats_read = usize::try_from(seats).unwrap_or(MAX_SEATS_PER_SALE);
    let findings = Findings::default();
    let report = Report {
        source: "a stadium that is made up".to_owned(),
        sale: Some(file.sale.clone()),
        outcome: Outcome::Refused,
        seats_read,
        seats_placed: seats_read,
        seats_left_out: 0,
        tiers: file.tiers.iter().map(TierCount::from_tier).collect(),
        defects_by_kind: findings.by_kind(),
        findings: findings.0,
        notes: Vec::new(),
    };
    Import::new(Some(file), report)
}

/// The blocks of each ring, the innermost first; those that face the middle of the long side first.
fn rings(seats: u32) -> Vec<Vec<Block>> {
    let blocks = seats.div_ceil(SEATS * ROWS);
    let rings = blocks.div_ceil(BLOCKS);
    let mut left = seats;
    (0..rings)
        .map(|ring| {
            let count = BLOCKS.min(blocks - ring * BLOCKS);
            (0..count)
                .map(|index| {
                    // 0, 1, -1, 2, -2 …
                    let half = f64::from(index.div_ceil(2));
                    let turn = if index % 2 == 1 { half } else { -half };
                    let number = if index % 2 == 1 {
                        index.div_ceil(2)
                    } else {
                        (BLOCKS - index / 2) % BLOCKS
                    };
                    let of_block = left.min(SEATS * ROWS);
                    left -= of_block;
                    let rows =
                        (0..of_block.div_ceil(SEATS)).map(|row| SEATS.min(of_block - row * SEATS));
                    Block {
                        angle: TAU / 4.0 + turn / f64::from(BLOCKS) * TAU,
                        name: (100 * (ring + 1) + number).to_string(),
                        rows: rows.collect(),
                    }
                })
                .collect()
        })
        .collect()
}

fn tier(ring: usize, blocks: &[Block]) -> TierFile {
    let number = ring + 1;
    let tier = TierId::new(format!("ring-{number}"))
        .unwrap_or_else(|error| unreachable!("a counted tier id is a slug: {error}"));
    let mut sections: Vec<Section> = Vec::new();
    for block in blocks {
        let rows = rows(block);
        match sections.last_mut().filter(|last| last.rows == rows) {
            Some(last) => last.alike.push(block.name.clone()),
            None => {
                let section = block.name.clone();
                sections.push(Section { section, alike: Vec::new(), rows, focus: None });
            }
        }
    }
    let rings = i64::try_from(ring).unwrap_or(i64::MAX);
    let price_minor = (0..rings.min(64)).fold(PRICE_MINOR, |price, _| price * 4 / 5);
    let mut file = TierFile::new(tier, format!("Ring {number}"));
    file.price_minor = Some(MinorUnits(price_minor));
    file.sections = sections;
    file
}

/// The rows of a block as a range, and the last by itself if it is shorter.
fn rows(block: &Block) -> Vec<SectionRow> {
    let run = |count: u32| Places::Run(Run::plain(None, 1, count));
    let full = block.rows.iter().filter(|seats| **seats == SEATS).count();
    let mut rows = Vec::new();
    if full > 0 {
        let to = (full > 1).then(|| full.to_string());
        rows.push(SectionRow { row: "1".to_owned(), to, seats: run(SEATS) });
    }
    if let Some(seats) = block.rows.last().filter(|seats| **seats < SEATS) {
        rows.push(SectionRow::one((full + 1).to_string(), run(*seats)));
    }
    rows
}

fn map(rings: &[Vec<Block>], tiers: &[TierFile]) -> Result<SeatMap, InvalidCoordinate> {
    debug_assert!(rings.len() <= MAX_TIERS);
    let width_of_block = f64::from(SEATS) * PITCH + STAIR;
    let inner = width_of_block * f64::from(BLOCKS) / TAU;
    let radius = inner + RING_DEPTH * rings.len() as f64;
    let at = |x: f64, y: f64| MapPoint::new((radius + x).round(), (radius + y).round());
    let mut sections = Vec::new();
    for (ring, (blocks, tier)) in rings.iter().zip(tiers).enumerate() {
        for block in blocks {
            let (sin, cos) = block.angle.sin_cos();
            // Along the row, `across` from its middle; `out` from the centre.
            let point =
                |out: f64, across: f64| at(out * cos - across * sin, out * sin + across * cos);
            let first = inner + RING_DEPTH * ring as f64;
            let mut rows = Vec::new();
            for (row, seats) in block.rows.iter().enumerate() {
                let out = first + ROW_DEPTH * row as f64;
                let half = f64::from(seats - 1) * PITCH / 2.0;
                let label = (row + 1).to_string();
                rows.push(MapRow::even(label, point(out, half)?, point(out, -half)?));
            }
            let half = f64::from(SEATS) * PITCH / 2.0;
            let (near, far) =
                (first - ROW_DEPTH / 2.0, first + ROW_DEPTH * (block.rows.len() as f64 - 0.5));
            let outline = vec![
                point(near, half)?,
                point(near, -half)?,
                point(far, -half)?,
                point(far, half)?,
            ];
            let section = Some(block.name.clone());
            sections.push(MapSection { tier: tier.tier.clone(), section, outline, rows });
        }
    }
    let (long, wide) = (inner * 0.7, inner * 0.45);
    let pitch = vec![at(-long, -wide)?, at(long, -wide)?, at(long, wide)?, at(-long, wide)?];
    let outlines =
        vec![Outline { label: Some("Pitch".to_owned()), kind: OutlineKind::Pitch, points: pitch }];
    let MapPoint(width, height) = at(radius, radius)?;
    Ok(SeatMap { width, height, outlines, sections })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::basics::time::Timestamp;
    use engine::domain::sale::{MAX_MAP_BYTES, Sale};

    fn made(seats: u32) -> SaleFile {
        let import = stadium(seats, &Terms::opening(Timestamp::from_ms(0))).unwrap();
        import.accept(false).unwrap().0
    }

    #[test]
    fn a_stadium_has_the_seats_that_were_asked_for_and_all_on_its_map() {
        for seats in [1, 24, 25, 26, 499, 500, 501, 20_001, 60_000] {
            let sale = Sale::new(made(seats)).unwrap();
            assert_eq!(sale.seat_legs(), u64::from(seats));
            assert!(sale.file().map.is_some());
        }
    }

    #[test]
    fn sixty_thousand_seats_and_their_map_are_a_small_document() {
        let file = made(60_000);
        let map = file.map.as_ref().and_then(FileMap::own).unwrap().document();
        let rest = serde_json::to_vec(&file.without_map()).unwrap();
        assert!(
            map.json.len() < 200_000 && rest.len() < 10_000,
            "{}, {}",
            map.json.len(),
            rest.len()
        );
        let largest = made(MAX_SEATS);
        let map = largest.map.as_ref().and_then(FileMap::own).unwrap();
        assert!(map.document().json.len() <= MAX_MAP_BYTES);
    }

    #[test]
    fn none_and_too_many_are_refused() {
        let terms = Terms::opening(Timestamp::from_ms(0));
        assert!(matches!(stadium(0, &terms), Err(Error::Flags(_))));
        assert!(matches!(stadium(MAX_SEATS + 1, &terms), Err(Error::TooLarge { .. })));
    }
}
