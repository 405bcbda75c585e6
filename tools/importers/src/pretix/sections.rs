//! The sections of each tier, with the holes that keep seats from being neighbours.

use std::collections::{BTreeMap, HashMap};

use engine::domain::basics::ids::SeatName;
use engine::domain::sale::{Places, Section, SectionRow};

use super::super::report::Findings;
use super::super::{Remedy, SourceDefect};
use super::RowOrder;
use super::categories::Categories;
use super::facing::Facing;
use super::lying::{NEIGHBOURS_WITHIN, ONE_POINT, distance, usual_pitch};
use super::order::ordered;
use super::plan::{Index, Plan, Position, place, row_name, zone_name};

/// Counts for the notes of the report.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Number of holes that separate seats.
    pub(super) holes: usize,
    /// Number of rows that go round.
    pub(super) round: usize,
    /// Number of sections whose best seats are not in the middle of their rows.
    pub(super) focused: usize,
}
/// The sections of each category.
pub(super) fn lay_out(
    plan: &Plan,
    categories: &Categories<'_>,
    names: &HashMap<Index, SeatName>,
    order: RowOrder,
    findings: &mut Findings,
) -> (Vec<Vec<Section>>, Shape) {
    let count = categories.names().len();
    let mut tiers: Vec<Vec<Section>> = vec![Vec::new(); count];
    let mut shape = Shape::default();
    for (zone, rows) in ordered(plan, order) {
        let zone_of = &plan.zones[zone];
        let usual = usual_pitch(&rows);
        let mut sections: Vec<Vec<SectionRow>> = vec![Vec::new(); count];
        let mut facing = Facing::new(order.faced());
        for (row, lying) in &rows {
            let pitch = lying.pitch(usual);
            shape.round += usize::from(lying.round);
            let row_of = &zone_of.rows[*row];
            let mut places: BTreeMap<usize, Vec<Option<SeatName>>> = BTreeMap::new();
            let mut before: Option<(usize, Position, Option<usize>)> = None;
            for (seat, position) in &lying.seats {
                let index = (zone, *row, *seat);
                let name = names.get(&index);
                let tier = name.and_then(|_| categories.of_seat(&row_of.seats[*seat]));
                let repeats_the_last = before.is_some_and(|(_, last, _)| {
                    name.is_none() && distance(last, *position) <= ONE_POINT
                });
                if repeats_the_last {
                    continue;
                }
                let gap = before.map(|(_, last, _)| distance(last, *position));
                if let (Some((last, _, Some(_))), Some(gap), Some(_)) = (before, gap, tier)
                    && gap <= ONE_POINT
                {
                    let first = place(plan, (zone, *row, last));
                    let again = place(plan, index);
                    let what = "both are kept, and are no neighbours".to_owned();
                    findings
                        .add(SourceDefect::SamePoint { first, again }, Remedy::Believe { what });
                }
                if let (Some(tier), Some(name)) = (tier, name) {
                    let places = places.entry(tier).or_default();
                    let beside = before.is_some_and(|(_, _, neighbour)| neighbour == Some(tier))
                        && gap
                            .is_some_and(|gap| gap > ONE_POINT && gap <= pitch * NEIGHBOURS_WITHIN);
                    if !places.is_empty() && !beside {
                        places.push(None);
                        shape.holes += 1;
                    }
                    facing.seat(tier, places.len(), (zone_of, row_of, lying), *position);
                    places.push(Some(name.clone()));
                }
                before = Some((*seat, *position, tier));
            }
            for (tier, seats) in places {
                facing.end_of_row(tier, seats.len());
                sections[tier]
                    .push(SectionRow::one(row_name(row_of, *row), Places::in_short(seats)));
            }
        }
        for (tier, rows) in sections.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let section = zone_name(zone_of, zone);
            let focus = facing.focus(tier);
            shape.focused += usize::from(focus.is_some());
            tiers[tier].push(Section { section, alike: Vec::new(), rows, focus });
        }
    }
    (tiers, shape)
}
