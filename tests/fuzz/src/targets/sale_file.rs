//! Sale files: a few bytes can describe a million seats, and every one of them must be sellable.

use std::collections::HashSet;

use engine::domain::basics::ids::SeatName;
use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::timetable::{calls, journey_from};
use engine::domain::sale::{
    FileMap, MAX_BITMAP_BYTES, MAX_LEGS, MAX_MAP_BYTES, MAX_OUTLINES, MAX_PLACES_PER_ROW,
    MAX_PRICE_MINOR, MAX_SEATS_PER_SALE, MAX_TIERS, Sale, SaleFile, SeatMap, Section, SectionRow,
    Tier, TierFile,
};
use importers::written;
use shared::http::checks::parse;

use crate::{Outcome, Target, must};

pub(crate) const SALE_FILE: Target = Target {
    name: "sale-file",
    about: "A sale file: what is read is written and read as the same; what breaks no rule keeps \
            every limit, counts the seats it describes, and each seat has one name and one place.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Ok(file) = parse::<SaleFile>(input) else { return Outcome::Refused };
    if let Some(map) = file.map.as_ref().and_then(FileMap::own) {
        let document = map.document();
        let again = must(SeatMap::from_document(&document), "a map that was written is read");
        assert_eq!((&again, again.document()), (map, document), "a map has one text");
    }
    let json = must(serde_json::to_vec(&file), "a sale file is written");
    assert_eq!(must(parse::<SaleFile>(&json), "a sale file that was written is read"), file);
    if is_large(&file) {
        return Outcome::Refused;
    }
    match Sale::new(file.clone()) {
        Ok(sale) => {
            check(&sale);
            Outcome::Accepted
        }
        Err(defects) => {
            assert!(!defects.is_empty(), "a file is refused without a reason");
            Outcome::Refused
        }
    }
}

/// Places beyond which a sale is not laid out here: it is one like the others, and takes seconds.
const LARGE: usize = 20_000;

/// True if a file describes more than [`LARGE`] places, yet not more than it may; of more, it must be
/// refused at once.
pub(super) fn is_large(file: &SaleFile) -> bool {
    let places = file.tiers.iter().map(|tier| {
        let rows = tier.sections.iter().flat_map(|section| {
            let each = |row: &SectionRow| {
                let rows = row.rows().saturating_mul(section.sections());
                rows.saturating_mul(row.places(&tier.columns).max(1))
            };
            section.rows.iter().map(each)
        });
        rows.fold(tier.general_admission.unwrap_or(0) as usize, usize::saturating_add)
    });
    (LARGE..=MAX_SEATS_PER_SALE).contains(&places.fold(0, usize::saturating_add))
}

/// What holds of every sale.
pub(crate) fn check(sale: &Sale) {
    let file = sale.file();
    let legs = usize::from(sale.leg_count());
    assert!(legs <= MAX_LEGS && (1..=MAX_TIERS).contains(&file.tiers.len()));
    assert!((1..=200).contains(&file.title.len()), "a title of {} bytes", file.title.len());
    assert!(file.opens_at < file.closes_at);
    assert_eq!(sale.tiers().len(), file.tiers.len());
    if let Some(map) = file.map.as_ref().and_then(FileMap::own) {
        check_map(sale, map);
    }

    for call in calls(file) {
        for to in &call.later {
            let journey = journey_from(file, call.day, &call.stop, &call.mark, to);
            assert!(journey.is_some(), "{call:?} leads to no journey to {to}");
        }
    }

    let mut names: HashSet<SeatName> = HashSet::new();
    let (mut places, mut bitmap_bytes, mut sellable) = (0, 0, 0);
    for (tier, described) in sale.tiers().iter().zip(&file.tiers) {
        places += check_tier(tier, described, &mut names);
        bitmap_bytes += tier.layout.initial().len() * legs;
        sellable += u64::from(tier.layout.sellable());
        for legs in tier.fares().keys() {
            let ends = (sale.stop(legs.from()), sale.stop(legs.to()));
            let (Some(from), Some(to)) = ends else { panic!("a fare of {legs:?}") };
            assert_eq!(sale.journey(from, to), Some(*legs));
        }
        let price_minor = tier.price_minor(sale.whole());
        assert!(
            price_minor.is_none_or(|price| (MinorUnits::ZERO..=MAX_PRICE_MINOR).contains(&price))
        );
    }
    assert!(places <= MAX_SEATS_PER_SALE && bitmap_bytes <= MAX_BITMAP_BYTES);
    assert_eq!(sale.seat_legs(), sellable * legs as u64);

    let again = must(parse::<SaleFile>(written(file).as_bytes()), "a sale in lines is read");
    assert_eq!(&again, file, "a sale in lines is another sale");
    assert!(must(Sale::new(again), "a sale in lines breaks no rule").has_the_seats_of(sale));
}

/// What a page may rely on: each section with all of its rows, a point for each seat.
fn check_map(sale: &Sale, map: &SeatMap) {
    assert!(map.document().json.len() <= MAX_MAP_BYTES && map.outlines.len() <= MAX_OUTLINES);
    let seated = map.sections.iter().filter(|section| section.section.is_some());
    let rows = seated.clone().map(|section| section.rows.len()).sum::<usize>();
    let described = sale.file().tiers.iter().flat_map(|tier| &tier.sections);
    let sections: usize = described.clone().map(Section::sections).sum();
    assert_eq!(seated.count(), sections, "sections without a place");
    assert_eq!(rows, described.map(Section::rows_in_all).sum::<usize>(), "rows without a place");
    for row in map.sections.iter().flat_map(|section| &section.rows) {
        assert_ne!(row.seats.is_some(), row.from.is_some() && row.to.is_some());
    }
}

/// The named places of a tier, each with one name and one place.
fn check_tier(tier: &Tier, described: &TierFile, names: &mut HashSet<SeatName>) -> usize {
    let layout = &tier.layout;
    let spots = described.general_admission.map_or(0, |spots| spots as usize);
    let seats = described.sections.iter().map(|section| section.seats(&described.columns));
    let not_for_sale: HashSet<&SeatName> = described.not_for_sale.iter().collect();
    let (mut named, mut sold) = (0, 0);
    for row in layout.rows() {
        assert!(
            row.places.len() <= MAX_PLACES_PER_ROW
                && row.places.len() <= layout.row_bytes() as usize * 8
        );
        for name in row.places.names().flatten() {
            let Some(seat) = layout.seat(&name) else { panic!("{name} has no place") };
            assert_eq!(layout.name(seat).as_ref(), Some(&name));
            assert_eq!(layout.sells(seat), !not_for_sale.contains(&name), "{name}");
            assert!(names.insert(name.clone()), "{name} is two seats");
            named += 1;
            sold += u32::from(layout.sells(seat));
        }
    }
    assert_eq!(named, spots + seats.sum::<usize>(), "seats are lost");
    assert_eq!(layout.sellable(), sold);
    let free: u32 = layout.initial().iter().map(|byte| byte.count_zeros()).sum();
    assert_eq!(free, sold, "what is not a seat is for sale");
    for (index, letter) in layout.columns().iter().enumerate() {
        if let Some(letter) = letter {
            assert_eq!(layout.column(letter).map(usize::from), Some(index), "column {letter:?}");
        }
    }
    named
}
