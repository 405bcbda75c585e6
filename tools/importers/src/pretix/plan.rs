//! A plan as its JSON has it, and how reports name the places in it.

use serde::{Deserialize, Deserializer};

use super::super::Place;

#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    #[serde(default, deserialize_with = "label")]
    pub(super) name: Option<String>,
    pub(super) categories: Vec<Category>,
    pub(super) zones: Vec<Zone>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Category {
    #[serde(default, deserialize_with = "label")]
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Zone {
    #[serde(default, deserialize_with = "label")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "label")]
    pub(super) zone_id: Option<String>,
    #[serde(default)]
    pub(super) position: Position,
    pub(super) rows: Vec<Row>,
    #[serde(default)]
    pub(super) areas: Vec<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    #[serde(default, deserialize_with = "label")]
    pub(super) row_number: Option<String>,
    /// The row's name for people, with its number for `%s`: `Table %s`.
    #[serde(default, deserialize_with = "label")]
    pub(super) row_label: Option<String>,
    #[serde(default)]
    pub(super) position: Position,
    pub(super) seats: Vec<PlanSeat>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PlanSeat {
    #[serde(default, deserialize_with = "label")]
    pub(super) seat_guid: Option<String>,
    #[serde(default, deserialize_with = "label")]
    pub(super) seat_number: Option<String>,
    #[serde(default, deserialize_with = "label")]
    pub(super) category: Option<String>,
    pub(super) position: Position,
}

/// A position relative to what the thing is part of. Bounded, so that no sum or distance overflows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(try_from = "RawPosition")]
pub(super) struct Position {
    pub(super) x: f64,
    pub(super) y: f64,
}

#[derive(Deserialize)]
pub(super) struct RawPosition {
    pub(super) x: f64,
    pub(super) y: f64,
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

/// Place of a seat in the lists: indexes of its zone, its row, and within the row.
pub(super) type Index = (usize, usize, usize);

pub(super) fn zone_name(zone: &Zone, index: usize) -> String {
    let named = zone.name.as_ref().or(zone.zone_id.as_ref()).cloned();
    named.unwrap_or_else(|| format!("zone {}", index + 1))
}

pub(super) fn row_name(row: &Row, index: usize) -> String {
    let number = row.row_number.clone().unwrap_or_else(|| (index + 1).to_string());
    row.row_label.as_ref().map_or_else(|| number.clone(), |label| label.replace("%s", &number))
}

pub(super) fn place(plan: &Plan, (zone, row, seat): Index) -> Place {
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

pub(super) fn indexes(plan: &Plan) -> impl Iterator<Item = Index> + '_ {
    plan.zones.iter().enumerate().flat_map(|(zone, zone_of)| {
        zone_of.rows.iter().enumerate().flat_map(move |(row, row_of)| {
            (0..row_of.seats.len()).map(move |seat| (zone, row, seat))
        })
    })
}
