//! Seating plans in the open JSON format of pretix (`seats.pretix.eu`), older and newer.
//!
//! The format: `src/pretix/static/seating/seating-plan.schema.json` in pretix's repository. Newer
//! plans add fields (`zone_id`, `uuid`, `row_label`, `seat_label`, ...) and allow fractions in
//! positions; what is not needed to sell a seat is not read. Areas are drawings. The key of a seat
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
//! order. Where somebody says from where one sees best, zones and rows go by their distance from there.

mod lying;

use std::collections::{BTreeMap, HashMap, HashSet};

use engine::domain::ids::SeatName;
use engine::domain::money::Currency;
use engine::domain::sale::{Places, Section, SectionRow, TierFile};
use serde::{Deserialize, Deserializer};

use self::lying::{Lying, NEIGHBOURS_WITHIN, ONE_POINT, as_it_lies, distance, usual_pitch};
use super::report::Findings;
use super::slug::slug;
use super::terms::{Terms, tier_id};
use super::{
    Error, Import, MAX_SEATS_PER_SALE, Outcome, Place, Remedy, Report, SourceDefect, TierCount,
    without_mark,
};

/// What the tiers cost, in minor units of the sale's currency; the format has no prices.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The price of every category that has none of its own.
    pub for_all: Option<i64>,
    /// Prices by the name of a category.
    pub by_category: BTreeMap<String, i64>,
}

/// Which row of a zone is the front row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum RowOrder {
    /// The one with the smallest y.
    #[default]
    ByHeight,
    /// The one that is listed first.
    AsListed,
    /// The one whose middle is nearest to a point of the plan; so for zones.
    NearestTo(Point),
}

/// A point of a plan, in its units, from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point(Position);

/// The text is no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("give X,Y in the units of the plan, such as 560,0")]
pub struct InvalidPoint;

impl std::str::FromStr for Point {
    type Err = InvalidPoint;
    fn from_str(text: &str) -> Result<Self, InvalidPoint> {
        let (x, y) = text.split_once(',').ok_or(InvalidPoint)?;
        let number = |text: &str| text.trim().parse().map_err(|_| InvalidPoint);
        let raw = RawPosition { x: number(x)?, y: number(y)? };
        Position::try_from(raw).map(Self).map_err(|_| InvalidPoint)
    }
}

#[derive(Debug, Deserialize)]
struct Plan {
    #[serde(default, deserialize_with = "label")]
    name: Option<String>,
    categories: Vec<Category>,
    zones: Vec<Zone>,
}

#[derive(Debug, Deserialize)]
struct Category {
    #[serde(default, deserialize_with = "label")]
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Zone {
    #[serde(default, deserialize_with = "label")]
    name: Option<String>,
    #[serde(default, deserialize_with = "label")]
    zone_id: Option<String>,
    #[serde(default)]
    position: Position,
    rows: Vec<Row>,
    #[serde(default)]
    areas: Vec<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default, deserialize_with = "label")]
    row_number: Option<String>,
    /// What people call the row, with its number for `%s`: `Table %s`.
    #[serde(default, deserialize_with = "label")]
    row_label: Option<String>,
    #[serde(default)]
    position: Position,
    seats: Vec<PlanSeat>,
}

#[derive(Debug, Deserialize)]
struct PlanSeat {
    #[serde(default, deserialize_with = "label")]
    seat_guid: Option<String>,
    #[serde(default, deserialize_with = "label")]
    seat_number: Option<String>,
    #[serde(default, deserialize_with = "label")]
    category: Option<String>,
    position: Position,
}

/// A position relative to what the thing is part of. Bounded, so that no sum or distance overflows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(try_from = "RawPosition")]
struct Position {
    x: f64,
    y: f64,
}

#[derive(Deserialize)]
struct RawPosition {
    x: f64,
    y: f64,
}

impl TryFrom<RawPosition> for Position {
    type Error = &'static str;
    fn try_from(raw: RawPosition) -> Result<Self, Self::Error> {
        let bounded = |value: f64| value.abs() <= 1e9;
        if bounded(raw.x) && bounded(raw.y) {
            Ok(Self { x: raw.x, y: raw.y })
        } else {
            Err("a position must lie within a billion units of its origin")
        }
    }
}

/// Text without its padding, or a whole number kept as its text; blank is absent.
fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Label {
        Text(String),
        Whole(i64),
    }
    let label = Option::<Label>::deserialize(deserializer)?.map(|label| match label {
        Label::Text(text) => text.trim().to_owned(),
        Label::Whole(number) => number.to_string(),
    });
    Ok(label.filter(|text| !text.is_empty()))
}

/// Reads a plan. `source` is what the report calls it.
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
) -> Result<Import, Error> {
    let plan: Plan = serde_json::from_slice(without_mark(text))
        .map_err(|error| Error::Malformed { what: source.to_owned(), why: error.to_string() })?;
    let seats_read = plan.zones.iter().flat_map(|zone| &zone.rows).map(|row| row.seats.len()).sum();
    if seats_read > MAX_SEATS_PER_SALE {
        return Err(Error::TooLarge {
            what: source.to_owned(),
            most: MAX_SEATS_PER_SALE as u64,
            unit: "seats",
        });
    }
    let mut findings = Findings::default();
    let categories = declared_categories(&plan, &mut findings);
    let names = name_seats(&plan, &categories, &mut findings);
    let (tiers, shape) = lay_out(&plan, &categories, &names, order, &mut findings);
    let tiers = priced(&categories, tiers, prices)?;

    let mut notes = vec![format!("{} holes in rows keep seats from being neighbours", shape.holes)];
    if shape.round > 0 {
        notes.push(format!("{} rows go round, as at a table", shape.round));
    }
    let areas: usize = plan.zones.iter().map(|zone| zone.areas.len()).sum();
    if areas > 0 {
        notes.push(format!("{areas} areas are drawings and not sold"));
    }
    let seated: HashSet<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
    let empty = |name: &&&str| !seated.contains(**name);
    for name in categories.iter().filter(empty) {
        notes.push(format!("category {name:?} has no seats and makes no tier"));
    }
    let counts: Vec<TierCount> = tiers.iter().map(TierCount::of).collect();
    let seats_placed = counts.iter().map(|tier| tier.seats).sum();
    if seats_placed == 0 {
        let at = Place { at: source.to_owned(), label: "the plan".to_owned() };
        findings.add(SourceDefect::NoSeats { at, declared: 0 }, Remedy::None);
    }
    let file = if findings.hopeless() {
        None
    } else {
        let title = plan.name.clone().unwrap_or_else(|| source.to_owned());
        let currency = Currency::new("EUR")
            .unwrap_or_else(|error| unreachable!("EUR is three letters: {error}"));
        Some(terms.sale_file(&title, slug(&title), currency, None, Vec::new(), tiers)?)
    };
    let report = Report {
        source: source.to_owned(),
        sale: file.as_ref().map(|file| file.sale.clone()),
        outcome: Outcome::Refused,
        seats_read,
        seats_placed,
        seats_left_out: findings.left_out(),
        tiers: counts,
        findings: findings.0,
        notes,
    };
    Import::new(file, report)
}

/// The declared categories in order, each name once.
fn declared_categories<'plan>(plan: &'plan Plan, findings: &mut Findings) -> Vec<&'plan str> {
    let place = |index: usize, name: &str| Place {
        at: format!("categories[{index}]"),
        label: name.to_owned(),
    };
    let mut first_of = HashMap::new();
    let mut declared = Vec::new();
    for (index, category) in plan.categories.iter().enumerate() {
        let Some(name) = category.name.as_deref() else { continue };
        if let Some(first) = first_of.get(name) {
            let defect = SourceDefect::DeclaredTwice {
                what: format!("category {name:?}"),
                first: place(*first, name),
                again: place(index, name),
            };
            findings.add(defect, Remedy::Believe { what: "both are one tier".to_owned() });
        } else {
            first_of.insert(name, index);
            declared.push(name);
        }
    }
    declared
}

/// Where a seat is listed: indexes of its zone, its row, and within the row.
type Index = (usize, usize, usize);

fn zone_name(zone: &Zone, index: usize) -> String {
    let named = zone.name.as_ref().or(zone.zone_id.as_ref()).cloned();
    named.unwrap_or_else(|| format!("zone {}", index + 1))
}

fn row_name(row: &Row, index: usize) -> String {
    let number = row.row_number.clone().unwrap_or_else(|| (index + 1).to_string());
    row.row_label.as_ref().map_or_else(|| number.clone(), |label| label.replace("%s", &number))
}

fn place(plan: &Plan, (zone, row, seat): Index) -> Place {
    let (zone_of, row_of) = (&plan.zones[zone], &plan.zones[zone].rows[row]);
    let seat_of = &row_of.seats[seat];
    let number = seat_of.seat_number.as_ref().or(seat_of.seat_guid.as_ref());
    Place {
        at: format!("zones[{zone}].rows[{row}].seats[{seat}]"),
        label: format!(
            "{}, row {}, seat {}",
            zone_name(zone_of, zone),
            row_name(row_of, row),
            number.map_or("without a number", String::as_str)
        ),
    }
}

fn indexes(plan: &Plan) -> impl Iterator<Item = Index> + '_ {
    plan.zones.iter().enumerate().flat_map(|(zone, zone_of)| {
        zone_of.rows.iter().enumerate().flat_map(move |(row, row_of)| {
            (0..row_of.seats.len()).map(move |seat| (zone, row, seat))
        })
    })
}

/// Gives each seat that can be sold its name, and reports each that cannot or is not the only one
/// with its key.
fn name_seats(
    plan: &Plan,
    categories: &[&str],
    findings: &mut Findings,
) -> HashMap<Index, SeatName> {
    let seat_at = |(zone, row, seat): Index| &plan.zones[zone].rows[row].seats[seat];
    let declared: HashSet<&str> = categories.iter().copied().collect();
    // A new name must not be the key of another seat, wherever in the plan that one stands.
    let mut taken: HashSet<String> =
        indexes(plan).filter_map(|index| seat_at(index).seat_guid.clone()).collect();
    let mut bearers: HashMap<&str, Vec<Index>> = HashMap::new();
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
        let category = seat.category.as_deref().unwrap_or_default();
        if !declared.contains(category) {
            let what = format!("category {category:?}");
            findings.add(SourceDefect::Undeclared { what, at }, leave_out);
            continue;
        }
        let earlier = bearers.entry(guid).or_default();
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

/// What there is to tell of the rows.
#[derive(Debug, Default)]
struct Shape {
    /// How many holes separate seats.
    holes: usize,
    /// How many rows go round.
    round: usize,
}

/// The sections of each category.
fn lay_out(
    plan: &Plan,
    categories: &[&str],
    names: &HashMap<Index, SeatName>,
    order: RowOrder,
    findings: &mut Findings,
) -> (Vec<Vec<Section>>, Shape) {
    let tier_of: HashMap<&str, usize> =
        categories.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let mut tiers: Vec<Vec<Section>> = vec![Vec::new(); categories.len()];
    let mut shape = Shape::default();
    for (zone, rows) in ordered(plan, order) {
        let zone_of = &plan.zones[zone];
        let usual = usual_pitch(&rows);
        let mut sections: Vec<Vec<SectionRow>> = vec![Vec::new(); categories.len()];
        for (row, lying) in &rows {
            let pitch = lying.pitch(usual);
            shape.round += usize::from(lying.round);
            let row_of = &zone_of.rows[*row];
            let mut places: BTreeMap<usize, Vec<Option<SeatName>>> = BTreeMap::new();
            let mut before: Option<(usize, Position, Option<usize>)> = None;
            for (seat, position) in &lying.seats {
                let index = (zone, *row, *seat);
                let name = names.get(&index);
                let tier = name
                    .and(row_of.seats[*seat].category.as_deref())
                    .and_then(|category| tier_of.get(category).copied());
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
                    places.push(Some(name.clone()));
                }
                before = Some((*seat, *position, tier));
            }
            for (tier, seats) in places {
                sections[tier]
                    .push(SectionRow::one(row_name(row_of, *row), Places::in_short(seats)));
            }
        }
        for (tier, rows) in sections.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let section = zone_name(zone_of, zone);
            tiers[tier].push(Section { section, alike: Vec::new(), rows });
        }
    }
    (tiers, shape)
}

/// The zones and their rows as they lie, in order of desirability.
fn ordered(plan: &Plan, order: RowOrder) -> Vec<(usize, Vec<(usize, Lying)>)> {
    let lying = |zone: &Zone| zone.rows.iter().map(as_it_lies).enumerate().collect();
    let mut zones: Vec<(usize, Vec<(usize, Lying)>)> =
        plan.zones.iter().map(lying).enumerate().collect();
    match order {
        RowOrder::AsListed => {}
        RowOrder::ByHeight => {
            for (_, rows) in &mut zones {
                let upright = rows.iter().filter(|(_, row)| row.upright).count() * 2 > rows.len();
                if !upright {
                    rows.sort_by(|(_, a), (_, b)| a.height().total_cmp(&b.height()));
                }
            }
        }
        RowOrder::NearestTo(Point(point)) => {
            let from = |zone: usize, row: &Lying| {
                let origin = plan.zones[zone].position;
                let (x, y) = (origin.x + row.middle.x, origin.y + row.middle.y);
                distance(point, Position { x, y })
            };
            for (zone, rows) in &mut zones {
                rows.sort_by(|(_, a), (_, b)| from(*zone, a).total_cmp(&from(*zone, b)));
            }
            // A zone is as near as its seats are on the whole.
            let mean = |(zone, rows): &(usize, Vec<(usize, Lying)>)| {
                let seats: usize = rows.iter().map(|(_, row)| row.seats.len()).sum();
                let sum: f64 =
                    rows.iter().map(|(_, row)| from(*zone, row) * row.seats.len() as f64).sum();
                sum / seats.max(1) as f64
            };
            zones.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        }
    }
    zones
}

/// The tiers of the categories that have seats, with their prices.
fn priced(
    categories: &[&str],
    sections: Vec<Vec<Section>>,
    prices: &Prices,
) -> Result<Vec<TierFile>, Error> {
    let unknown: Vec<String> = prices
        .by_category
        .keys()
        .filter(|name| !categories.contains(&name.as_str()))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        let known: Vec<String> = categories.iter().map(|name| format!("{name:?}")).collect();
        return Err(Error::Flags(format!(
            "--price names no category of the plan: {}; it has {}",
            unknown.join(", "),
            known.join(", ")
        )));
    }
    let mut tiers: Vec<TierFile> = Vec::new();
    let mut taken = Vec::new();
    let mut unpriced = Vec::new();
    for (index, (name, sections)) in categories.iter().zip(sections).enumerate() {
        let tier = tier_id(slug(name), index + 1, &taken);
        taken.push(tier.clone());
        if sections.is_empty() {
            continue;
        }
        let price_minor = prices.by_category.get(*name).copied().or(prices.for_all);
        if price_minor.is_none() {
            unpriced.push(format!("{name:?}"));
        }
        tiers.push(TierFile {
            tier,
            name: (*name).to_owned(),
            price_minor,
            fares: Vec::new(),
            columns: Vec::new(),
            sections,
            general_admission: None,
            not_for_sale: Vec::new(),
        });
    }
    if unpriced.is_empty() {
        Ok(tiers)
    } else {
        Err(Error::Flags(format!(
            "no price for {}; give --price CATEGORY=MINOR for each, or --price-minor for all",
            unpriced.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::time::Timestamp;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn seat(guid: &str, x: f64, category: &str) -> Value {
        json!({"seat_guid": guid, "seat_number": guid, "position": {"x": x, "y": 0}, "category": category})
    }

    fn row(number: &str, y: f64, seats: Vec<Value>) -> Value {
        json!({"row_number": number, "position": {"x": 0, "y": y}, "seats": seats})
    }

    fn plan(rows: Vec<Value>) -> Value {
        json!({
            "name": "Hall", "categories": [{"name": "Stalls", "color": "#fff"}, {"name": "樓座"}],
            "zones": [{"name": "Ground", "position": {"x": 0, "y": 0}, "rows": rows}]
        })
    }

    fn read(plan: &Value, order: RowOrder) -> Result<Import, Error> {
        let prices = Prices { for_all: Some(1000), ..Prices::default() };
        let terms = Terms::opening(Timestamp::from_ms(0));
        import("plan.json", plan.to_string().as_bytes(), &terms, &prices, order)
    }

    /// Each row of the first tier as text, seats by name and `_` for a hole.
    fn rows(import: &Import) -> Vec<String> {
        let tier = &import.file.as_ref().unwrap().tiers[0];
        let columns = Arc::default();
        let rows =
            tier.sections.iter().flat_map(|section| section.laid(&section.section, &columns));
        let name = |name: Option<SeatName>| name.map_or("_".to_owned(), |name| name.to_string());
        rows.map(|row| row.places.unwrap().names().map(name).collect::<Vec<_>>().join(" "))
            .collect()
    }

    fn seats_at(xs: &[f64]) -> Vec<Value> {
        xs.iter().enumerate().map(|(index, x)| seat(&format!("s{index}"), *x, "Stalls")).collect()
    }

    #[test]
    fn neighbours_are_those_who_lie_side_by_side() {
        let cases: [(&[f64], &str); 7] = [
            (&[0.0, 25.0, 50.0, 75.0, 100.0], "s0 s1 s2 s3 s4"),
            // Numbered from right to left, with fractions and below zero.
            (&[50.5, 25.5, 0.5, -24.5, -49.5], "s4 s3 s2 s1 s0"),
            // A pillar of one place, an aisle of three.
            (&[0.0, 25.0, 75.0, 100.0, 200.0], "s0 s1 _ s2 s3 _ s4"),
            // Up to half a pitch of play is no hole; more is.
            (&[0.0, 25.0, 62.0, 87.0, 125.0], "s0 s1 s2 s3 _ s4"),
            // Three blocks of two, most gaps of which are not holes, but many are.
            (&[0.0, 25.0, 100.0, 125.0, 200.0, 225.0], "s0 s1 _ s2 s3 _ s4 s5"),
            // A row that is wide throughout has no holes.
            (&[0.0, 60.0, 120.0, 180.0, 240.0], "s0 s1 s2 s3 s4"),
            // Listed in no order at all.
            (&[100.0, 0.0, 75.0, 25.0, 50.0], "s1 s3 s4 s2 s0"),
        ];
        for (xs, expected) in cases {
            let import = read(&plan(vec![row("1", 0.0, seats_at(xs))]), RowOrder::ByHeight);
            assert_eq!(rows(&import.unwrap()), [expected], "{xs:?}");
        }
    }

    #[test]
    fn numbers_make_nobody_a_neighbour_and_part_nobody() {
        // Odd numbers side by side; a row that begins at 11; numbers that follow across an aisle.
        for (numbers, xs, expected) in [
            ([1, 3, 5, 9, 11], [0.0, 25.0, 50.0, 75.0, 100.0], "s0 s1 s2 s3 s4"),
            ([15, 14, 13, 12, 11], [0.0, 25.0, 50.0, 75.0, 100.0], "s0 s1 s2 s3 s4"),
            ([1, 2, 3, 4, 5], [0.0, 25.0, 100.0, 125.0, 150.0], "s0 s1 _ s2 s3 s4"),
            ([1, 1, 1, 1, 1], [0.5, 25.25, -24.5, 50.0, 75.0], "s2 s0 s1 s3 s4"),
        ] {
            let mut seats = seats_at(&xs);
            for (seat, number) in seats.iter_mut().zip(numbers) {
                seat["seat_number"] = json!(number.to_string());
            }
            let import = read(&plan(vec![row("1", 0.0, seats)]), RowOrder::ByHeight);
            assert_eq!(rows(&import.unwrap()), [expected]);
        }
    }

    #[test]
    fn a_table_is_a_row_that_goes_round() {
        let round = |table: usize| {
            let seat = |seat: usize| {
                let (sin, cos) = (seat as f64 * 60_f64.to_radians()).sin_cos();
                json!({"seat_guid": format!("t{table}-{seat}"), "position": {"x": 30.0 * cos, "y": 30.0 * sin}, "category": "Stalls"})
            };
            // Listed in no order: 0, 4, 2, 1, 5, 3.
            let seats: Vec<Value> = [0, 4, 2, 1, 5, 3].into_iter().map(seat).collect();
            json!({"row_number": table.to_string(), "row_label": "Table %s", "position": {"x": 0, "y": 100 * table}, "seats": seats})
        };
        let import = read(&plan(vec![round(1), round(2)]), RowOrder::ByHeight).unwrap();
        assert_eq!(
            rows(&import),
            ["t1-0 t1-1 t1-2 t1-3 t1-4 t1-5", "t2-0 t2-1 t2-2 t2-3 t2-4 t2-5"]
        );
        assert!(import.report.notes.contains(&"2 rows go round, as at a table".to_owned()));
        let file = import.file.unwrap();
        assert_eq!(file.tiers[0].sections[0].rows[1].row, "Table 2");
    }

    #[test]
    fn where_one_sees_best_is_a_point_of_the_plan() {
        let zone = |name: &str, x: f64, y: f64| {
            let seats = |row: &str| vec![seat(&format!("{name}{row}"), 0.0, "Stalls")];
            let rows =
                [row("1", 0.0, seats("1")), row("2", 25.0, seats("2")), row("3", 50.0, seats("3"))];
            json!({"name": name, "position": {"x": x, "y": y}, "rows": rows})
        };
        let mut plan = plan(vec![]);
        // The stage stands between the zones; positions add up: zone, row, seat.
        plan["zones"] =
            json!([zone("far", 900.0, 0.0), zone("north", 0.0, 0.0), zone("south", 0.0, 100.0)]);
        let order = |point: &str| RowOrder::NearestTo(point.parse().unwrap());
        assert_eq!(
            rows(&read(&plan, order("0,80")).unwrap()),
            ["south1", "south2", "south3", "north3", "north2", "north1", "far3", "far2", "far1"]
        );
        for text in ["", "1", "1,", "1,b", "1e300,0", "NaN,0", "1,2,3"] {
            assert!(text.parse::<Point>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_short_row_takes_the_pitch_of_its_zone() {
        let long = |xs: &[f64]| {
            xs.iter().map(|x| seat(&format!("l{x}"), *x, "Stalls")).collect::<Vec<_>>()
        };
        let plan = plan(vec![
            row("1", 0.0, long(&[0.0, 25.0, 50.0, 75.0, 100.0])),
            row("2", 25.0, seats_at(&[0.0, 100.0])),
        ]);
        let import = read(&plan, RowOrder::ByHeight).unwrap();
        assert_eq!(rows(&import)[1], "s0 _ s1");
    }

    #[test]
    fn a_row_that_runs_up_the_canvas_is_ordered_by_height() {
        let upright = |index: usize| json!({"seat_guid": format!("s{index}"), "position": {"x": index % 2, "y": 100 - 25 * index}, "category": "Stalls"});
        let plan = plan(vec![
            row("2", 30.0, (0..5).map(upright).collect()),
            row("1", 0.0, vec![seat("a", 0.0, "Stalls")]),
        ]);
        let import = read(&plan, RowOrder::ByHeight).unwrap();
        assert_eq!(rows(&import), ["a", "s4 s3 s2 s1 s0"]);
    }

    #[test]
    fn rows_go_front_to_back_or_as_listed() {
        let plan = plan(vec![
            row("2", -5.5, vec![seat("b", 0.0, "Stalls")]),
            row("1", -30.0, vec![seat("a", 0.0, "Stalls")]),
        ]);
        assert_eq!(rows(&read(&plan, RowOrder::ByHeight).unwrap()), ["a", "b"]);
        assert_eq!(rows(&read(&plan, RowOrder::AsListed).unwrap()), ["b", "a"]);
    }

    #[test]
    fn a_seat_of_another_category_parts_its_neighbours() {
        let seats = ["Stalls", "樓座", "Stalls", "Stalls"]
            .iter()
            .enumerate()
            .map(|(index, category)| seat(&format!("s{index}"), 25.0 * index as f64, category))
            .collect();
        let import = read(&plan(vec![row("1", 0.0, seats)]), RowOrder::ByHeight).unwrap();
        assert_eq!(rows(&import), ["s0 _ s2 s3"]);
        let tiers: Vec<String> = import
            .report
            .tiers
            .iter()
            .map(|tier| format!("{} {}", tier.tier, tier.seats))
            .collect();
        assert_eq!(tiers, ["stalls 3", "t2 1"], "a name that is not ASCII is counted");
        assert!(import.accept(false).is_ok(), "no defect, no consent needed");
    }

    #[test]
    fn a_newer_plan_is_read_as_well() {
        let plan = json!({
            "name": 17, "size": {"width": 1, "height": 1}, "categories": [{"name": " Stalls "}],
            "zones": [{
                "zone_id": "z1", "uuid": "u", "position": {"x": 0.5, "y": 0}, "areas": [{"shape": "text"}],
                "rows": [{
                    "row_number": 1, "row_label": "A", "row_number_position": null, "uuid": "u", "seats": [
                        {"seat_guid": " 007 ", "seat_label": "7", "uuid": "u", "radius": 10, "start_direction": "left",
                         "position": {"x": -1.25, "y": 3.5}, "category": "Stalls "}]
                }]
            }]
        });
        let import = read(&plan, RowOrder::ByHeight).unwrap();
        assert_eq!(rows(&import), ["007"]);
        let file = import.file.as_ref().unwrap();
        assert_eq!((file.sale.as_str(), file.tiers[0].sections[0].section.as_str()), ("17", "z1"));
    }

    #[test]
    fn each_defect_is_named_with_its_places_and_its_remedy() {
        let mut long = seat("x", 0.0, "Stalls");
        long["seat_guid"] = json!("y".repeat(65));
        let mut without = seat("x", 0.0, "Stalls");
        without["seat_guid"] = json!("  ");
        let cases = [
            // Another seat with the same key is renamed, the same seat listed again is dropped.
            (
                vec![
                    row("1", 0.0, vec![seat("a", 0.0, "Stalls")]),
                    row("2", 9.0, vec![seat("a", 0.0, "Stalls")]),
                ],
                "seat a stands twice: zones[0].rows[0].seats[0] (Ground, row 1, seat a) and zones[0].rows[1].seats[0] (Ground, row 2, seat a)",
                "both are kept; the second is called Ground a",
                vec!["a", "Ground a"],
            ),
            (
                vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), seat("a", 0.0, "Stalls")])],
                "zones[0].rows[0].seats[0] (Ground, row 1, seat a) and zones[0].rows[0].seats[1]",
                "zones[0].rows[0].seats[1] (Ground, row 1, seat a) is left out (1 seat)",
                vec!["a"],
            ),
            // The new name must be free as well, also of seats that come later.
            (
                vec![row(
                    "1",
                    0.0,
                    vec![
                        seat("a", 0.0, "Stalls"),
                        seat("a", 25.0, "Stalls"),
                        seat("Ground a", 50.0, "Stalls"),
                    ],
                )],
                "seat a stands twice",
                "both are kept; the second is called Ground 1 a",
                vec!["a Ground 1 a Ground a"],
            ),
            (
                vec![row(
                    "1",
                    0.0,
                    vec![
                        seat("a", 0.0, "Stalls"),
                        seat("b", 25.0, "Boxes"),
                        seat("c", 50.0, "Stalls"),
                    ],
                )],
                "zones[0].rows[0].seats[1] (Ground, row 1, seat b) names category \"Boxes\", which is not declared",
                "is left out (1 seat)",
                vec!["a _ c"],
            ),
            (
                vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), long])],
                "has no usable key: seat name must be 1 to 64 bytes",
                "is left out (1 seat)",
                vec!["a"],
            ),
            (
                vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), without])],
                "has no usable key",
                "is left out (1 seat)",
                vec!["a"],
            ),
            (
                vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), seat("b", 0.0, "Stalls")])],
                "two seats lie at one point: zones[0].rows[0].seats[0] (Ground, row 1, seat a) and zones[0].rows[0].seats[1] (Ground, row 1, seat b)",
                "both are kept, and are no neighbours",
                vec!["a _ b"],
            ),
        ];
        for (listed, defect, remedy, resolved) in cases {
            let import = read(&plan(listed), RowOrder::ByHeight).unwrap();
            assert_eq!(rows(&import), resolved, "{defect}");
            let text = import.report.to_text();
            assert!(
                text.contains(defect) && text.contains(remedy),
                "{text}\nlacks {defect} / {remedy}"
            );
            let report = import.report.clone();
            assert_eq!(report.findings.len(), 1, "{text}");
            assert_eq!(report.seats_read, report.seats_placed + report.seats_left_out);
            let refused = import.accept(false).unwrap_err();
            assert_eq!(refused.outcome, Outcome::Refused);
        }
    }

    #[test]
    fn a_category_declared_twice_is_one_tier() {
        let mut plan = plan(vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls")])]);
        plan["categories"] = json!([{"name": "Stalls"}, {"name": "Stalls"}]);
        let import = read(&plan, RowOrder::ByHeight).unwrap();
        assert!(
            import.report.to_text().contains("categories[0] (Stalls) and categories[1] (Stalls)")
        );
        let (file, report) = import.accept(true).unwrap();
        assert_eq!((file.tiers.len(), report.outcome), (1, Outcome::Resolved));
    }

    #[test]
    fn a_plan_without_seats_is_refused_whatever_is_agreed_to() {
        let import = read(&plan(vec![row("1", 0.0, vec![])]), RowOrder::ByHeight).unwrap();
        assert!(import.accept(true).is_err());
    }

    #[test]
    fn prices_are_given_for_every_tier_and_for_nothing_else() {
        let plan =
            plan(vec![row("1", 0.0, vec![seat("a", 0.0, "Stalls"), seat("b", 9.0, "樓座")])]);
        let terms = Terms::opening(Timestamp::from_ms(0));
        let with = |by_category: &[(&str, i64)], for_all| {
            let by_category =
                by_category.iter().map(|(name, price)| ((*name).to_owned(), *price)).collect();
            let prices = Prices { for_all, by_category };
            import("p", plan.to_string().as_bytes(), &terms, &prices, RowOrder::ByHeight)
        };
        let file = with(&[("樓座", 5)], Some(9)).unwrap().accept(false).unwrap().0;
        assert_eq!(
            file.tiers.iter().map(|t| t.price_minor).collect::<Vec<_>>(),
            [Some(9), Some(5)]
        );
        let missing = with(&[("樓座", 5)], None).unwrap_err().to_string();
        assert!(missing.contains("no price for \"Stalls\""), "{missing}");
        let unknown = with(&[("Boxes", 5)], Some(9)).unwrap_err().to_string();
        assert!(unknown.contains("\"Boxes\""), "{unknown}");
        assert!(matches!(with(&[], Some(-1)), Err(Error::Rules { .. })));
    }

    #[test]
    fn what_is_no_plan_is_an_error_with_its_place() {
        let terms = Terms::opening(Timestamp::from_ms(0));
        let long = format!(
            r#"{{"categories":[],"zones":[{{"rows":[{{"seats":[{{"position":{{"x":{},"y":0}}}}]}}]}}]}}"#,
            "1e300"
        );
        for text in
            ["", "[]", "{", "{\"zones\": []}", r#"{"categories":[],"zones":7}"#, &long, "\u{feff}{"]
        {
            let result = import(
                "plan.json",
                text.as_bytes(),
                &terms,
                &Prices::default(),
                RowOrder::ByHeight,
            );
            let error = result.unwrap_err().to_string();
            assert!(
                error.starts_with("plan.json is malformed") && error.contains("line"),
                "{error}"
            );
        }
        assert!(import("p", b"\xff\xfe", &terms, &Prices::default(), RowOrder::ByHeight).is_err());
    }

    #[test]
    fn a_mark_and_other_line_ends_do_not_matter() {
        let text = serde_json::to_string_pretty(&plan(vec![row(
            "1",
            0.0,
            vec![seat("a", 0.0, "Stalls")],
        )]));
        let text = format!("\u{feff}{}\r\n", text.unwrap().replace('\n', "\r\n"));
        let prices = Prices { for_all: Some(1), ..Prices::default() };
        let terms = Terms::opening(Timestamp::from_ms(0));
        let import = import("p", text.as_bytes(), &terms, &prices, RowOrder::ByHeight).unwrap();
        assert_eq!(rows(&import), ["a"]);
    }
}
