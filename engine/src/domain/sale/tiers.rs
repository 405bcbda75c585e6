//! The rules of a tier, and the layout that is made from its description.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::layout::{Layout, Row};
use super::places::RowPlaces;
use super::{
    Defect, Focus, MAX_PLACES_PER_ROW, MAX_PRICE_MINOR, SaleFile, Section, Tier, TierFile,
};
use crate::domain::basics::ids::{Legs, SeatName, StopId};
use crate::domain::basics::money::MinorUnits;

pub(super) fn lay_out(
    file: &SaleFile,
    index: usize,
    tier: &TierFile,
    stops: &HashMap<StopId, u16>,
    defects: &mut Vec<Defect>,
) -> Option<Tier> {
    let at = format!("tiers[{index}]");
    let before = defects.len();
    if file.tiers[..index].iter().any(|earlier| earlier.tier == tier.tier) {
        defects.push(Defect::new(&at, format!("tier {} is duplicated", tier.tier)));
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

fn is_price(price_minor: MinorUnits) -> bool {
    (MinorUnits::ZERO..=MAX_PRICE_MINOR).contains(&price_minor)
}

fn read_fares(
    tier: &TierFile,
    at: &str,
    stops: &HashMap<StopId, u16>,
    defects: &mut Vec<Defect>,
) -> HashMap<Legs, MinorUnits> {
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
            if tier.focus.is_some() {
                let rule = "must be absent: general admission has no rows";
                defects.push(Defect::new(format!("{at}.focus"), rule));
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
    check_focus(tier.focus, tier, &tier.sections, at, defects);
    for (index, section) in tier.sections.iter().enumerate() {
        let of_it = std::slice::from_ref(section);
        check_focus(section.focus, tier, of_it, &format!("{at}.sections[{index}]"), defects);
        let focus = section.focus.or(tier.focus).unwrap_or(Focus::MIDDLE);
        for name in section.names() {
            // A blank row between two coaches keeps a pattern from reaching over the gap.
            if !is_first && !columns.is_empty() {
                let places = RowPlaces::none();
                rows.push(Row { label: String::new(), places, focus });
            }
            is_first = false;
            for row in section.laid(name, &columns) {
                match check_places(tier, row.places) {
                    Ok(places) => {
                        rows.push(Row { label: format!("{name} {}", row.label), places, focus });
                    }
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

/// Checks the focus of some sections of a tier, if they have one.
fn check_focus(
    focus: Option<Focus>,
    tier: &TierFile,
    sections: &[Section],
    at: &str,
    defects: &mut Vec<Defect>,
) {
    let Some(focus) = focus else { return };
    let rows = sections.iter().flat_map(|section| &section.rows);
    let longest = rows.map(|row| row.places(&tier.columns)).max().unwrap_or(0);
    if let Some(rule) = focus.broken_rule(longest) {
        defects.push(Defect::new(format!("{at}.focus"), rule));
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{read, train};
    use super::*;

    #[test]
    fn a_blank_row_lies_between_two_coaches() {
        let sale = read(train()).unwrap();
        let tier = &sale.tiers()[0];
        assert_eq!(tier.layout.initial(), &[0b0101_1111, 0xff, 0b0111_1111]);
        assert_eq!((sale.leg_count(), tier.layout.column("B")), (2, Some(2)));
        assert_eq!(sale.seat_legs(), 6);
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
}
