//! Which seats of a plan can be sold, and under which names.

use std::collections::{HashMap, HashSet};

use engine::domain::basics::ids::SeatName;

use super::super::report::Findings;
use super::super::{Remedy, SourceDefect};
use super::categories::Categories;
use super::plan::{Index, Plan, indexes, place, row_name, zone_name};

/// Gives each seat that can be sold its name, and reports each that cannot or is not the only one
/// with its key.
pub(super) fn name_seats(
    plan: &Plan,
    categories: &Categories<'_>,
    findings: &mut Findings,
) -> HashMap<Index, SeatName> {
    let seat_at = |(zone, row, seat): Index| &plan.zones[zone].rows[row].seats[seat];
    // A new name must not be the key of another seat, wherever in the plan that one stands.
    let mut taken: HashSet<String> =
        indexes(plan).filter_map(|index| seat_at(index).seat_guid.clone()).collect();
    let mut holders: HashMap<&str, Vec<Index>> = HashMap::new();
    let mut names = HashMap::new();
    for index in indexes(plan) {
        let seat = seat_at(index);
        let at = place(plan, index);
        let leave_out = Remedy::LeaveOut { what: at.clone(), seats: 1 };
        let guid = seat.seat_guid.as_deref().unwrap_or_default();
        let name = match SeatName::new(guid) {
            Ok(name) => name,
            Err(why) => {
                findings.add(SourceDefect::UnusableKey { at, why: why.to_string() }, leave_out);
                continue;
            }
        };
        if categories.of_seat(seat).is_none() {
            let category = seat.category.as_deref().unwrap_or_default();
            let what = format!("category {category:?}");
            findings.add(SourceDefect::Undeclared { what, at }, leave_out);
            continue;
        }
        let earlier = holders.entry(guid).or_default();
        let Some(first) = earlier.first().copied() else {
            earlier.push(index);
            names.insert(index, name);
            continue;
        };
        let is_the_same = |other: &Index| {
            let other_seat = seat_at(*other);
            (other.0, other.1) == (index.0, index.1)
                && other_seat.position == seat.position
                && other_seat.category == seat.category
        };
        let remedy = if earlier.iter().any(is_the_same) {
            leave_out
        } else {
            earlier.push(index);
            let zone = zone_name(&plan.zones[index.0], index.0);
            let row = row_name(&plan.zones[index.0].rows[index.1], index.1);
            match free_name(&zone, &row, guid, &mut taken) {
                Some(to) => {
                    names.insert(index, to.clone());
                    Remedy::Rename { to }
                }
                None => leave_out,
            }
        };
        let first = place(plan, first);
        findings
            .add(SourceDefect::DuplicateSeat { key: guid.to_owned(), first, again: at }, remedy);
    }
    names
}

/// A name for a seat whose own is taken: with its zone, then with its row too, then counted.
/// `None` if each of them is too long for a name.
fn free_name(zone: &str, row: &str, guid: &str, taken: &mut HashSet<String>) -> Option<SeatName> {
    let counted = (2..=taken.len() + 2).map(|count| format!("{guid} ({count})"));
    [format!("{zone} {guid}"), format!("{zone} {row} {guid}")]
        .into_iter()
        .chain(counted)
        .filter(|name| !taken.contains(name))
        .find_map(|name| SeatName::new(name).ok())
        .inspect(|name| {
            taken.insert(name.as_str().to_owned());
        })
}
