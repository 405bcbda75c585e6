//! Seating plans in the open JSON format of pretix (`seats.pretix.eu`), older and newer.
//!
//! The format: `src/pretix/static/seating/seating-plan.schema.json` in pretix's repository. Newer
//! plans add fields (`zone_id`, `uuid`, `row_label`, `seat_label`, ...) and allow fractions in
//! positions; what is needed neither to sell a seat nor to draw it is not read. Areas are drawings: with the
//! coordinates of the seats they make the [map](engine::domain::sale::SeatMap). The key of a seat
//! is `seat_guid`, as it is in pretix. A category is a tier, a zone a section.
//!
//! **Who sits beside whom.** The seats of a row are put in order as they lie (`lying`), whatever
//! their numbers say. Where two seats are further apart than one and a half pitches, or another
//! category's seat lies between them, they are no neighbours: one `null` separates them, however wide
//! the hole. Numbers that leave some out part nobody, and numbers that follow each other join nobody.
//!
//! **Front to back.** The format says nothing of which seats are better. The rows of a zone go by their
//! height on the canvas (y grows away from the stage in this format's usual drawing), or as listed: on
//! request, and in a zone most of whose rows run up and down. Zones and categories stay in the plan's
//! order. Where somebody says from where one sees best, zones and rows go by their distance from there, and a section
//! has its best seats ([`Focus`](engine::domain::sale::Focus)) where its rows are nearest to that point.

mod categories;
mod event;
mod facing;
mod lying;
mod map;
mod names;
mod order;
mod plan;
mod prices;
mod sections;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use engine::domain::basics::money::Currency;
use engine::domain::sale::event::EventFacts;
use engine::domain::sale::{FileMap, SaleFile};

use super::report::Findings;
use super::slug::slug;
use super::terms::Terms;
use super::{
    Error, Import, MAX_SEATS_PER_SALE, Outcome, Place, Remedy, Report, SourceDefect, TierCount,
    too_many, without_mark,
};

use self::categories::Categories;
use self::names::name_seats;
use self::plan::Plan;
use self::prices::priced;
use self::sections::lay_out;

pub use self::categories::Uncategorised;
pub use self::event::Event;
pub use self::order::{InvalidPoint, Point, RowOrder};
pub use self::prices::Prices;

/// Reads a plan. `source` is what the report calls it; `event` is what is sold with it.
///
/// # Errors
/// [`Error::Malformed`] if it is no plan, [`Error::TooLarge`] beyond a million seats,
/// [`Error::Flags`] if prices are missing or name no category, [`Error::Rules`] if the terms break a
/// rule. Defects of the plan are no errors: see [`Import::accept`].
pub fn import(
    source: &str,
    text: &[u8],
    terms: &Terms,
    prices: &Prices,
    order: RowOrder,
    event: Option<&Event>,
) -> Result<Import, Error> {
    let plan: Plan = serde_json::from_slice(without_mark(text))
        .map_err(|error| Error::Malformed { what: source.to_owned(), why: error.to_string() })?;
    let seats_read = plan.zones.iter().flat_map(|zone| &zone.rows).map(|row| row.seats.len()).sum();
    if seats_read > MAX_SEATS_PER_SALE {
        return Err(too_many(source, "seats"));
    }
    let mut findings = Findings::default();
    let categories = Categories::from_plan(&plan, prices.uncategorised.as_ref(), &mut findings)?;
    let names = name_seats(&plan, &categories, &mut findings);
    let (tiers, shape) = lay_out(&plan, &categories, &names, order, &mut findings);
    let tiers = priced(&categories, tiers, prices)?;

    let mut notes = vec![format!("{} holes in rows keep seats from being neighbours", shape.holes)];
    if shape.round > 0 {
        notes.push(format!("{} rows go round, as at a table", shape.round));
    }
    if shape.focused > 0 {
        notes.push(format!(
            "{} sections have their best seats nearer to one end of their rows",
            shape.focused
        ));
    }
    notes.extend(categories.note(&plan));
    notes.extend(event.into_iter().flat_map(|event| event.notes.clone()));
    let areas: usize = plan.zones.iter().map(|zone| zone.areas.len()).sum();
    if areas > 0 {
        notes.push(format!("{areas} areas are drawings and not sold"));
    }
    let map = map::map(&plan, &names, &tiers);
    if map.is_none() {
        notes.push("the coordinates make no map: there are none, or too many".to_owned());
    }
    let seated: HashSet<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
    let empty = |name: &&&str| !seated.contains(**name);
    for name in categories.names().iter().filter(empty) {
        notes.push(format!("category {name:?} has no seats and makes no tier"));
    }
    let counts: Vec<TierCount> = tiers.iter().map(TierCount::from_tier).collect();
    let seats_placed = counts.iter().map(|tier| tier.seats).sum();
    if seats_placed == 0 {
        let at = Place { at: source.to_owned(), label: "the plan".to_owned() };
        findings.add(SourceDefect::NoSeats { at, declared: 0 }, Remedy::None);
    }
    let file = if findings.unresolvable() {
        None
    } else {
        let event = event.cloned().unwrap_or_default();
        let title = event.title.clone().or_else(|| plan.name.clone());
        let title = title.unwrap_or_else(|| source.to_owned());
        let id = event.id.clone().or_else(|| slug(&title));
        let currency = event.currency.unwrap_or_else(euro);
        let closes_at = event.closes_at.filter(|closes_at| *closes_at > terms.opens_at);
        let file = terms.sale_file(&title, id, currency, closes_at, Vec::new(), tiers)?;
        let facts = Some(event.facts).filter(|facts| *facts != EventFacts::default());
        Some(SaleFile { map: map.map(FileMap::Own), event: facts, ..file })
    };
    let report = Report {
        source: source.to_owned(),
        sale: file.as_ref().map(|file| file.sale.clone()),
        outcome: Outcome::Refused,
        seats_read,
        seats_placed,
        seats_left_out: findings.left_out(),
        tiers: counts,
        defects_by_kind: findings.by_kind(),
        findings: findings.0,
        notes,
    };
    Import::new(file, report)
}

/// The currency of a plan whose event says none: pretix's own.
fn euro() -> Currency {
    Currency::new("EUR").unwrap_or_else(|error| unreachable!("EUR is three letters: {error}"))
}
