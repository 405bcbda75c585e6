//! The map of a plan: the coordinates of its seats, and the shapes that are drawn around them.
//!
//! A position is relative to what the thing is part of: a seat's to its row, a row's to its zone. What is drawn
//! and cannot be read is left out, since nothing depends on it.

use std::collections::HashMap;
use std::sync::Arc;

use engine::domain::basics::ids::SeatName;
use engine::domain::sale::{
    MAX_MAP_BYTES, MAX_OUTLINES, MapPoint, MapRow, MapSection, Outline, OutlineKind, SeatMap,
    TierFile,
};
use serde::Deserialize;
use serde_json::Value;

use super::plan::{Index, Plan, Position};

/// Units of the map around everything that is drawn.
const MARGIN: f64 = 20.0;
/// Extents within which the units of a plan stay as they are; a smaller or larger plan is scaled.
const EXTENT: std::ops::RangeInclusive<f64> = 200.0..=900_000.0;
/// Distance from its even place within which a seat lies evenly, in units of the map.
const EVEN_WITHIN: f64 = 0.02;
/// Corners of a circle.
const CIRCLE: u16 = 24;
/// Most corners of a shape that is kept.
const MAX_CORNERS: usize = 500;
/// Most bytes of a label that is kept.
const MAX_LABEL_BYTES: usize = 200;
/// What a stage is called, and a field.
const STAGES: [&str; 6] = ["stage", "bühne", "scène", "escenario", "舞台", "舞臺"];
const PITCHES: [&str; 6] = ["pitch", "field", "arena", "spielfeld", "球场", "球場"];

/// The map of the tiers of a plan; `None` if a seat has no position, or if it would be too large.
pub(super) fn map(
    plan: &Plan,
    names: &HashMap<Index, SeatName>,
    tiers: &[TierFile],
) -> Option<SeatMap> {
    let positions: HashMap<&SeatName, Position> =
        names.iter().map(|(index, name)| (name, position(plan, *index))).collect();
    let shapes: Vec<(Option<String>, OutlineKind, Vec<Position>)> = shapes(plan);
    let corners = shapes.iter().flat_map(|(_, _, corners)| corners);
    let frame = Frame::around(positions.values().chain(corners))?;
    let mut sections = Vec::new();
    for tier in tiers {
        let columns: Arc<[Option<String>]> = tier.columns.as_slice().into();
        for section in &tier.sections {
            for name in section.names() {
                let mut rows = Vec::new();
                for laid in section.laid(name, &columns) {
                    let seats = laid.places.ok()?;
                    let point = |name: SeatName| Some(frame.point(*positions.get(&name)?));
                    let points = seats.names().map(|name| name.map(point));
                    rows.push(row(laid.label, points.map(place).collect::<Option<_>>()?)?);
                }
                sections.push(MapSection {
                    tier: tier.tier.clone(),
                    section: Some(name.to_owned()),
                    outline: Vec::new(),
                    rows,
                });
            }
        }
    }
    let outline = |(label, kind, corners): &(Option<String>, OutlineKind, Vec<Position>)| {
        let points = corners.iter().map(|corner| frame.point(*corner).map_point());
        let points = points.collect::<Option<Vec<_>>>()?;
        Some(Outline { label: label.clone(), kind: *kind, points })
    };
    let outlines = shapes.iter().filter_map(outline).take(MAX_OUTLINES).collect();
    let MapPoint(width, height) = frame.size.map_point()?;
    let map = SeatMap { width, height, outlines, sections };
    (map.document().json.len() <= MAX_MAP_BYTES).then_some(map)
}

/// Where a seat lies in the plan.
fn position(plan: &Plan, (zone, row, seat): Index) -> Position {
    let zone = &plan.zones[zone];
    let row = &zone.rows[row];
    zone.position.plus(row.position).plus(row.seats[seat].position)
}

/// A place of a row with a seat whose point is known, or without a seat; `None` for a seat without a point.
fn place(place: Option<Option<Position>>) -> Option<Option<Position>> {
    match place {
        Some(point) => point.map(Some),
        None => Some(None),
    }
}

/// A row in the fewest words: from one point to another, if its seats lie evenly.
fn row(label: String, places: Vec<Option<Position>>) -> Option<MapRow> {
    if let (Some(Some(from)), Some(Some(to))) = (places.first(), places.last())
        && places.len() > 1
    {
        let last = (places.len() - 1) as f64;
        let is_even = |(index, place): (usize, &Option<Position>)| {
            let share = index as f64 / last;
            place.is_none_or(|at| {
                let even = Position {
                    x: from.x + (to.x - from.x) * share,
                    y: from.y + (to.y - from.y) * share,
                };
                (at.x - even.x).abs() <= EVEN_WITHIN && (at.y - even.y).abs() <= EVEN_WITHIN
            })
        };
        if places.iter().enumerate().all(is_even) {
            return Some(MapRow::even(label, from.map_point()?, to.map_point()?));
        }
    }
    let points = places.into_iter().map(|place| match place {
        Some(at) => at.map_point().map(Some),
        None => Some(None),
    });
    Some(MapRow::each(label, points.collect::<Option<_>>()?))
}

impl Position {
    fn plus(self, other: Self) -> Self {
        Self { x: self.x + other.x, y: self.y + other.y }
    }

    fn map_point(self) -> Option<MapPoint> {
        MapPoint::new(self.x, self.y).ok()
    }
}

/// The part of the plan that is drawn, moved to the upper left corner.
struct Frame {
    origin: Position,
    scale: f64,
    /// Width and height of the map.
    size: Position,
}

impl Frame {
    /// The frame of some positions; `None` of none.
    fn around<'a>(positions: impl Iterator<Item = &'a Position> + Clone) -> Option<Self> {
        positions.clone().next()?;
        let bound = |axis: fn(&Position) -> f64| {
            let values = || positions.clone().map(axis);
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
        };
        let ((left, right), (top, bottom)) = (bound(|at| at.x), bound(|at| at.y));
        let extent = (right - left).max(bottom - top).max(f64::MIN_POSITIVE);
        let scale = extent.clamp(*EXTENT.start(), *EXTENT.end()) / extent;
        // All seats at one point are drawn there.
        let scale = if scale.is_finite() { scale } else { 1.0 };
        let size = |from: f64, to: f64| (to - from) * scale + 2.0 * MARGIN;
        Some(Self {
            origin: Position { x: left, y: top },
            scale,
            size: Position { x: size(left, right), y: size(top, bottom) },
        })
    }

    /// Where a position is on the map.
    fn point(&self, at: Position) -> Position {
        Position {
            x: ((at.x - self.origin.x) * self.scale).max(0.0) + MARGIN,
            y: ((at.y - self.origin.y) * self.scale).max(0.0) + MARGIN,
        }
    }
}

/// A drawing, as far as it is read.
#[derive(Debug, Deserialize)]
struct Area {
    shape: String,
    #[serde(default)]
    position: Position,
    #[serde(default)]
    rotation: f64,
    text: Option<Text>,
    rectangle: Option<Rectangle>,
    circle: Option<Circle>,
    ellipse: Option<Ellipse>,
    polygon: Option<Polygon>,
}

#[derive(Debug, Deserialize)]
struct Text {
    #[serde(default)]
    text: String,
}

#[derive(Debug, Deserialize)]
struct Rectangle {
    width: f64,
    height: f64,
}

#[derive(Debug, Deserialize)]
struct Circle {
    radius: f64,
}

#[derive(Debug, Deserialize)]
struct Ellipse {
    radius: Position,
}

#[derive(Debug, Deserialize)]
struct Polygon {
    points: Vec<Position>,
}

/// The shapes of a plan, each with its label and its corners; texts that stand alone are no shapes.
fn shapes(plan: &Plan) -> Vec<(Option<String>, OutlineKind, Vec<Position>)> {
    let areas = plan.zones.iter().flat_map(|zone| zone.areas.iter().map(move |area| (zone, area)));
    let shape = |(zone, area): (&super::plan::Zone, &Value)| {
        let area: Area = serde_json::from_value(area.clone()).ok()?;
        let origin = zone.position.plus(area.position);
        let corners: Vec<Position> = corners(&area)?;
        let (sin, cos) = area.rotation.to_radians().sin_cos();
        let turned =
            |at: &Position| Position { x: at.x * cos - at.y * sin, y: at.x * sin + at.y * cos };
        let corners: Vec<Position> = corners.iter().map(|at| origin.plus(turned(at))).collect();
        let is_drawn = (3..=MAX_CORNERS).contains(&corners.len())
            && corners.iter().all(|at| at.x.abs() <= 1e10 && at.y.abs() <= 1e10);
        let label = area.text.map(|text| text.text.trim().to_owned());
        let is_label = |label: &String| {
            (1..=MAX_LABEL_BYTES).contains(&label.len()) && !label.chars().any(char::is_control)
        };
        let label = label.filter(is_label);
        is_drawn.then(|| (label.clone(), kind(label.as_deref()), corners))
    };
    areas.filter_map(shape).take(MAX_OUTLINES).collect()
}

/// The corners of a drawing around its own position.
fn corners(area: &Area) -> Option<Vec<Position>> {
    let round = |x: f64, y: f64| {
        let angle = |index: u16| f64::from(index) / f64::from(CIRCLE) * std::f64::consts::TAU;
        let corner = |angle: f64| Position { x: x * angle.cos(), y: y * angle.sin() };
        (0..CIRCLE).map(angle).map(corner).collect()
    };
    match area.shape.as_str() {
        "rectangle" => {
            let Rectangle { width, height } = *area.rectangle.as_ref()?;
            let corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)];
            Some(corners.map(|(x, y)| Position { x, y }).to_vec())
        }
        "circle" => area.circle.as_ref().map(|circle| round(circle.radius, circle.radius)),
        "ellipse" => area.ellipse.as_ref().map(|ellipse| round(ellipse.radius.x, ellipse.radius.y)),
        "polygon" => area.polygon.as_ref().map(|polygon| polygon.points.clone()),
        _ => None,
    }
}

fn kind(label: Option<&str>) -> OutlineKind {
    let label = label.map(str::to_lowercase).unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
    if has(&STAGES) {
        OutlineKind::Stage
    } else if has(&PITCHES) {
        OutlineKind::Pitch
    } else {
        OutlineKind::Area
    }
}
