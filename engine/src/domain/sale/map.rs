//! The map of a sale: where its seats lie, for people who choose by looking.
//!
//! The map is presentation and not inventory: an operator may add, change or remove it while the sale sells, and no
//! order depends on it. The catalogue keeps the map apart from the rest of the file, so that only the function that
//! shows the map reads it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::check::Defect;
use super::places::RowPlaces;
use super::{MAX_PLACES_PER_ROW, MAX_TIERS, SaleFile, TierFile};
use crate::domain::basics::bytes::{Hash, MapHash};
use crate::domain::basics::ids::TierId;

/// Most bytes of a map as its document: with the file of 60,000 listed seats it fits a request.
pub const MAX_MAP_BYTES: usize = 2 * 1024 * 1024;
/// Most shapes that are no section: stages, pitches, areas.
pub const MAX_OUTLINES: usize = 500;
/// Fewest and most corners of a shape.
const CORNERS: std::ops::RangeInclusive<usize> = 3..=1_000;
/// Most bytes of a label.
const MAX_LABEL_BYTES: usize = 200;
/// The largest width, height and coordinate.
const MAX_COORDINATE: f64 = 1_000_000.0;
/// Parts of a unit that are kept of a coordinate.
const PARTS: i32 = 100;
/// Most defects of a map that are reported one by one.
const MAX_DEFECTS: usize = 100;

/// A length or a coordinate: 0 to 1,000,000, kept to a hundredth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coordinate(i32);

/// A number that is no coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a coordinate must be 0 to 1,000,000")]
pub struct InvalidCoordinate;

impl Coordinate {
    /// The coordinate nearest to a number.
    ///
    /// # Errors
    /// Refuses what is no number, negative or too large.
    pub fn new(number: f64) -> Result<Self, InvalidCoordinate> {
        if !(0.0..=MAX_COORDINATE).contains(&number) {
            return Err(InvalidCoordinate);
        }
        // At most a hundred million, which 32 bits hold.
        Ok(Self((number * f64::from(PARTS)).round() as i32))
    }
}

impl Serialize for Coordinate {
    /// A whole number is written as one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 % PARTS == 0 {
            serializer.serialize_i32(self.0 / PARTS)
        } else {
            serializer.serialize_f64(f64::from(self.0) / f64::from(PARTS))
        }
    }
}

impl<'de> Deserialize<'de> for Coordinate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Coordinate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Coordinate".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number", "minimum": 0, "maximum": 1_000_000,
            "description": "Units of the map, kept to a hundredth; y grows downwards.",
        })
    }
}

/// A point of a map: `[x, y]`, from its upper left corner; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MapPoint(pub Coordinate, pub Coordinate);

impl MapPoint {
    /// The point nearest to two numbers.
    ///
    /// # Errors
    /// As [`Coordinate::new`].
    pub fn new(x: f64, y: f64) -> Result<Self, InvalidCoordinate> {
        Ok(Self(Coordinate::new(x)?, Coordinate::new(y)?))
    }
}

/// The map of a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a map, which is an object")]
pub struct SeatMap {
    /// Its width, in units of its own.
    pub width: Coordinate,
    /// Its height.
    pub height: Coordinate,
    /// Shapes that are drawn below the seats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_OUTLINES))]
    pub outlines: Vec<Outline>,
    /// Every section of the sale, in any order; and the areas of general admission that are drawn.
    pub sections: Vec<MapSection>,
}

/// A shape of the map that is no section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an outline, which is an object")]
pub struct Outline {
    /// What is written on it: at most 200 bytes without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL_BYTES))]
    pub label: Option<String>,
    /// What it is.
    pub kind: OutlineKind,
    /// Its corners, in order; the last is joined to the first.
    #[schemars(length(min = *CORNERS.start(), max = *CORNERS.end()))]
    pub points: Vec<MapPoint>,
}

/// What a shape of the map is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutlineKind {
    /// Where one looks at.
    Stage,
    /// A field of play, or a floor.
    Pitch,
    /// Anything else: a bar, a stair, a wall.
    Area,
}

/// Where a section lies, or the area of a tier of general admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a section of the map, which is an object")]
pub struct MapSection {
    /// The tier.
    pub tier: TierId,
    /// What the section is called in the tier; absent for general admission. Of several that are called the
    /// same, the first here is the first there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// Its corners, in order; general admission must have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = *CORNERS.end()))]
    pub outline: Vec<MapPoint>,
    /// Its rows as the sale file has them: each, in the same order; absent for general admission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<MapRow>,
}

/// Where the places of a row lie: each by its point, or evenly from one point to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a row of the map, which is an object")]
pub struct MapRow {
    /// What the row is called: of a range of rows, each by itself.
    pub row: String,
    /// The point of each place from left to right, `null` where there is no seat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_PLACES_PER_ROW))]
    pub seats: Option<Vec<Option<MapPoint>>>,
    /// The point of the first place, aisles included; the others follow evenly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<MapPoint>,
    /// The point of the last place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<MapPoint>,
}

impl MapRow {
    /// A row whose places lie evenly from one point to another.
    #[must_use]
    pub fn even(row: impl Into<String>, from: MapPoint, to: MapPoint) -> Self {
        Self { row: row.into(), seats: None, from: Some(from), to: Some(to) }
    }

    /// A row with a point for each place.
    #[must_use]
    pub fn each(row: impl Into<String>, seats: Vec<Option<MapPoint>>) -> Self {
        Self { row: row.into(), seats: Some(seats), from: None, to: None }
    }
}

/// A map as it is served: its text never changes under its hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapDocument {
    /// The first half of the text's SHA-256.
    pub hash: MapHash,
    /// The map in JSON, in the form in which it is hashed: no blanks, fields in order, nothing that may be
    /// left out.
    pub json: Arc<str>,
}

impl MapDocument {
    /// The document of a text.
    #[must_use]
    pub fn from_json(json: String) -> Self {
        let Hash(digest) = Hash::of_parts(&[json.as_bytes()]);
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        Self { hash: MapHash(half), json: json.into() }
    }
}

impl SeatMap {
    /// The map of a document.
    ///
    /// # Errors
    /// Fails if it is none.
    pub fn from_document(document: &MapDocument) -> serde_json::Result<Self> {
        serde_json::from_str(&document.json)
    }

    /// The map as it is served.
    #[must_use]
    pub fn document(&self) -> MapDocument {
        // Text and numbers, which JSON can always carry.
        let json = serde_json::to_string(self)
            .unwrap_or_else(|error| unreachable!("a map could not be written: {error}"));
        MapDocument::from_json(json)
    }
}

/// The map of a sale file: a map of its own, or the name of the one that the sale has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FileMap {
    /// A map.
    Own(SeatMap),
    /// The map that the sale has, which a publication keeps.
    Kept(MapName),
}

/// The name of the map that a sale has, which `GET /sales/{sale}` says in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct MapName {
    /// The hash of its document.
    pub hash: MapHash,
}

/// A map as a sale file has it, before it is known which of the two it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map, which is an object")]
struct AnyMap {
    hash: Option<MapHash>,
    width: Option<Coordinate>,
    height: Option<Coordinate>,
    #[serde(default)]
    outlines: Vec<Outline>,
    sections: Option<Vec<MapSection>>,
}

impl<'de> Deserialize<'de> for FileMap {
    /// Not one after the other: what is wrong with a map would be lost.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let AnyMap { hash, width, height, outlines, sections } = AnyMap::deserialize(deserializer)?;
        if let Some(hash) = hash {
            let is_alone = width.is_none() && height.is_none() && sections.is_none();
            return match is_alone && outlines.is_empty() {
                true => Ok(Self::Kept(MapName { hash })),
                false => Err(D::Error::custom("a map has either a hash or what it shows")),
            };
        }
        Ok(Self::Own(SeatMap {
            width: width.ok_or_else(|| D::Error::missing_field("width"))?,
            height: height.ok_or_else(|| D::Error::missing_field("height"))?,
            outlines,
            sections: sections.ok_or_else(|| D::Error::missing_field("sections"))?,
        }))
    }
}

impl FileMap {
    /// The map, if the file has it.
    #[must_use]
    pub fn own(&self) -> Option<&SeatMap> {
        match self {
            Self::Own(map) => Some(map),
            Self::Kept(_) => None,
        }
    }

    /// The hash of the map's document.
    #[must_use]
    pub fn hash(&self) -> MapHash {
        match self {
            Self::Own(map) => map.document().hash,
            Self::Kept(MapName { hash }) => *hash,
        }
    }
}

/// Checks the map of a file whose tiers are checked and described in a bounded size.
pub(super) fn check_map(file: &SaleFile, defects: &mut Vec<Defect>) {
    let Some(map) = file.map.as_ref().and_then(FileMap::own) else { return };
    let mut found = Vec::new();
    check_size(map, &mut found);
    if found.is_empty() {
        check_shapes(map, &mut found);
        check_sections(file, map, &mut found);
    }
    found.truncate(MAX_DEFECTS);
    defects.append(&mut found);
}

fn check_size(map: &SeatMap, defects: &mut Vec<Defect>) {
    if map.width.0 == 0 || map.height.0 == 0 {
        defects.push(Defect::new("map", "width and height must be more than 0"));
    }
    if map.outlines.len() > MAX_OUTLINES {
        defects.push(Defect::new("map.outlines", "must be at most 500"));
    }
    if map.document().json.len() > MAX_MAP_BYTES {
        let rule = "must have at most 2 MiB: rows from one point to another, and whole numbers, are shorter";
        defects.push(Defect::new("map", rule));
    }
}

fn check_shapes(map: &SeatMap, defects: &mut Vec<Defect>) {
    for (index, outline) in map.outlines.iter().enumerate() {
        let at = format!("map.outlines[{index}]");
        let is_text =
            |label: &String| label.len() <= MAX_LABEL_BYTES && !label.chars().any(char::is_control);
        if !outline.label.as_ref().is_none_or(is_text) {
            let rule = "must have at most 200 bytes without control characters";
            defects.push(Defect::new(format!("{at}.label"), rule));
        }
        check_corners(map, &format!("{at}.points"), &outline.points, defects);
    }
}

fn check_corners(map: &SeatMap, at: &str, points: &[MapPoint], defects: &mut Vec<Defect>) {
    if !CORNERS.contains(&points.len()) {
        defects.push(Defect::new(at, "must have 3 to 1,000 corners"));
    }
    check_inside(map, at, points, defects);
}

/// One defect at most, however many points lie outside.
fn check_inside<'a>(
    map: &SeatMap,
    at: &str,
    points: impl IntoIterator<Item = &'a MapPoint>,
    defects: &mut Vec<Defect>,
) {
    let is_inside = |MapPoint(x, y): &MapPoint| *x <= map.width && *y <= map.height;
    if !points.into_iter().all(is_inside) {
        defects.push(Defect::new(at, "has a point outside of width and height"));
    }
}

/// The sections of the tiers that no section of the map has met yet, by tier and name.
type Unmet<'a> = HashMap<(&'a TierId, &'a str), VecDeque<(&'a TierFile, usize)>>;

fn unmet_sections(file: &SaleFile) -> Unmet<'_> {
    let mut unmet = Unmet::new();
    for tier in &file.tiers {
        for (index, section) in tier.sections.iter().enumerate() {
            for name in section.names() {
                unmet.entry((&tier.tier, name)).or_default().push_back((tier, index));
            }
        }
    }
    unmet
}

fn check_sections(file: &SaleFile, map: &SeatMap, defects: &mut Vec<Defect>) {
    let mut unmet = unmet_sections(file);
    let mut areas: Vec<&TierId> = Vec::with_capacity(MAX_TIERS);
    for (index, section) in map.sections.iter().enumerate() {
        if defects.len() >= MAX_DEFECTS {
            return;
        }
        let at = format!("map.sections[{index}]");
        match &section.section {
            Some(name) => {
                let sections = unmet.get_mut(&(&section.tier, name.as_str()));
                let Some((tier, of)) = sections.and_then(VecDeque::pop_front) else {
                    let rule = format!("tier {} has no (other) section {name:?}", section.tier);
                    defects.push(Defect::new(at, rule));
                    continue;
                };
                if !section.outline.is_empty() {
                    check_corners(map, &format!("{at}.outline"), &section.outline, defects);
                }
                check_rows(map, &at, section, tier, of, defects);
            }
            None => check_area(file, map, &at, section, &mut areas, defects),
        }
    }
    let missing = unmet.iter().filter(|(_, sections)| !sections.is_empty());
    let mut missing: Vec<(&TierId, &str)> = missing.map(|(key, _)| *key).collect();
    missing.sort_unstable();
    defects.extend(missing.into_iter().take(MAX_DEFECTS).map(|(tier, name)| {
        Defect::new("map.sections", format!("section {name:?} of tier {tier} is missing"))
    }));
}

/// The area of a tier of general admission.
fn check_area<'a>(
    file: &SaleFile,
    map: &SeatMap,
    at: &str,
    section: &'a MapSection,
    areas: &mut Vec<&'a TierId>,
    defects: &mut Vec<Defect>,
) {
    let is_it = |tier: &TierFile| tier.tier == section.tier && tier.general_admission.is_some();
    if !file.tiers.iter().any(is_it) {
        let rule = format!("{} is no tier of general admission: name the section", section.tier);
        defects.push(Defect::new(at, rule));
    } else if areas.contains(&&section.tier) {
        defects.push(Defect::new(at, format!("tier {} has two areas", section.tier)));
    } else if !section.rows.is_empty() {
        defects.push(Defect::new(at, "general admission has an outline only"));
    } else {
        check_corners(map, &format!("{at}.outline"), &section.outline, defects);
    }
    areas.push(&section.tier);
}

/// One defect at most: whoever has a row too few has all others wrong.
fn check_rows(
    map: &SeatMap,
    at: &str,
    section: &MapSection,
    tier: &TierFile,
    of: usize,
    defects: &mut Vec<Defect>,
) {
    let (Some(described), Some(name)) = (tier.sections.get(of), &section.section) else { return };
    let columns: Arc<[Option<String>]> = tier.columns.as_slice().into();
    let mut rows = section.rows.iter().enumerate();
    for laid in described.laid(name, &columns) {
        // What is wrong with the row itself is reported where it is described.
        let Ok(places) = laid.places else { return };
        let Some((index, row)) = rows.next() else {
            let rule =
                format!("row {:?} is missing: each row, in the order of the tier", laid.label);
            defects.push(Defect::new(format!("{at}.rows"), rule));
            return;
        };
        let at = format!("{at}.rows[{index}]");
        if row.row != laid.label {
            let rule = format!("is {:?} where the tier has row {:?}", row.row, laid.label);
            defects.push(Defect::new(at, rule));
            return;
        }
        if let Some(rule) = broken_row(row, &places) {
            defects.push(Defect::new(at, rule));
            return;
        }
        let points = row.seats.iter().flatten().flatten().chain(&row.from).chain(&row.to);
        let before = defects.len();
        check_inside(map, &at, points, defects);
        if defects.len() > before {
            return;
        }
    }
    if let Some((index, row)) = rows.next() {
        let rule = format!("the section has no row {:?} here", row.row);
        defects.push(Defect::new(format!("{at}.rows[{index}]"), rule));
    }
}

/// The rule that a row of the map breaks whose places the tier has.
fn broken_row(row: &MapRow, places: &RowPlaces) -> Option<String> {
    match (&row.seats, row.from, row.to) {
        (None, Some(_), Some(_)) => None,
        (Some(seats), None, None) if seats.len() != places.len() => {
            Some(format!("has {} places where the tier has {}", seats.len(), places.len()))
        }
        (Some(seats), None, None) => {
            let is_same = |(place, point): (usize, &Option<MapPoint>)| {
                point.is_some() == places.is_seat(place)
            };
            let all = seats.iter().enumerate().all(is_same);
            (!all)
                .then(|| "must have a point for each seat, and null where there is none".to_owned())
        }
        _ => Some("must have either seats, or from and to".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::{read, train};
    use super::super::{Sale, SaleFile};
    use super::*;

    /// A hall of two sections of three places, the middle one an aisle, and a standing area.
    fn hall() -> Value {
        let mut file = train();
        file.as_object_mut().unwrap().remove("stops");
        file["tiers"] = json!([
            { "tier": "a", "name": "A", "price_minor": 1, "sections": [
                { "section": "L", "alike": ["R"],
                  "rows": [{ "row": "1", "to": "2", "seats": { "first": 1, "count": 2, "aisles_after": [1] } }] }] },
            { "tier": "pit", "name": "Pit", "price_minor": 1, "general_admission": 50 }
        ]);
        let rows = json!([
            { "row": "1", "from": [10, 20], "to": [30, 20] },
            { "row": "2", "seats": [[10, 30.456], null, [30, 30]] }
        ]);
        file["map"] = json!({
            "width": 100, "height": 60,
            "outlines": [{ "label": "Stage", "kind": "stage", "points": [[0, 0], [100, 0], [50, 9.5]] }],
            "sections": [
                { "tier": "a", "section": "R", "outline": [[5, 15], [35, 15], [35, 35]], "rows": rows },
                { "tier": "a", "section": "L", "rows": rows },
                { "tier": "pit", "outline": [[40, 10], [60, 10], [60, 20], [40, 20]] }
            ]
        });
        file
    }

    fn own(sale: &Sale) -> &SeatMap {
        sale.file().map.as_ref().and_then(FileMap::own).unwrap()
    }

    #[test]
    fn a_file_has_a_map_or_names_one() {
        let of = |map: Value| {
            let mut file = hall();
            file["map"] = map;
            serde_json::from_value::<SaleFile>(file).map_err(|error| error.to_string())
        };
        let hash = "00112233445566778899aabbccddeeff";
        let named = of(json!({ "hash": hash })).unwrap();
        let map = named.map.clone().unwrap();
        assert_eq!((map.hash().to_string().as_str(), map.own()), (hash, None));
        assert_eq!(serde_json::to_value(&named).unwrap()["map"], json!({ "hash": hash }));
        assert!(Sale::new(named).is_ok(), "whether the sale has that map is not the file's to say");
        let mut both = hall()["map"].clone();
        both["hash"] = json!(hash);
        for (map, text) in [
            (json!({}), "missing field `width`"),
            (json!({ "width": 1, "height": 1 }), "missing field `sections`"),
            (json!({ "hash": "0011" }), "hash"),
            (json!({ "hash": hash, "version": 2 }), "unknown field `version`"),
            (both, "either a hash or what it shows"),
            (
                json!({ "width": 1, "height": 1, "sections": [{ "tier": "a", "rows": 3 }] }),
                "invalid type: integer",
            ),
        ] {
            let error = of(map).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
        let file = hall();
        let map = serde_json::from_value::<SaleFile>(file.clone()).unwrap().map.unwrap();
        assert_eq!(map.hash(), map.own().unwrap().document().hash);
    }

    #[test]
    fn a_map_is_hashed_as_it_is_written() {
        let sale = read(hall()).unwrap();
        let map = own(&sale);
        let document = map.document();
        assert!(
            document.json.contains(r#"{"row":"2","seats":[[10,30.46],null,[30,30]]}"#),
            "{}",
            document.json
        );
        let again: SeatMap = serde_json::from_str(&document.json).unwrap();
        assert_eq!((&again, again.document()), (map, document.clone()));
        let mut same = hall();
        same["map"]["width"] = json!(100.001);
        assert_eq!(own(&read(same).unwrap()).document(), document);
        let mut other = hall();
        other["map"]["width"] = json!(100.01);
        assert_ne!(own(&read(other).unwrap()).document(), document);
    }

    #[test]
    fn a_map_is_no_seat_and_may_change() {
        let with = read(hall()).unwrap();
        let mut file = hall();
        file.as_object_mut().unwrap().remove("map");
        let without = read(file).unwrap();
        assert!(with.has_the_seats_of(&without) && without.has_the_seats_of(&with));
        assert_eq!(serde_json::to_value(without.file()).unwrap().get("map"), None);
        assert_eq!(with.file().public(), *without.file());
    }

    #[test]
    fn each_broken_rule_of_a_map_is_named_with_its_place() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 22] = [
            (|m| m["width"] = json!(0), "map: width and height"),
            (|m| m["width"] = json!(-1), "a coordinate must be 0 to 1,000,000"),
            (|m| m["width"] = json!(1e7), "a coordinate must be 0 to 1,000,000"),
            (|m| m["height"] = json!("60"), "invalid type"),
            (|m| m["colour"] = json!(1), "unknown field"),
            (|m| m["width"] = json!(99), "map.outlines[0].points: has a point outside"),
            (|m| m["outlines"][0]["kind"] = json!("moat"), "unknown variant"),
            (|m| m["outlines"][0]["label"] = json!("a\u{0}"), "map.outlines[0].label"),
            (|m| m["outlines"][0]["points"] = json!([[0, 0], [1, 1]]), "3 to 1,000 corners"),
            (|m| m["outlines"][0]["points"][0] = json!([0, 0, 0]), "invalid length 3"),
            (
                |m| m["outlines"] = vec![m["outlines"][0].clone(); 501].into(),
                "map.outlines: must be at most 500",
            ),
            (|m| m["sections"][0]["tier"] = json!("b"), "map.sections[0]: tier b has no"),
            (
                |m| m["sections"][0]["section"] = json!("L"),
                "map.sections[1]: tier a has no (other) section \"L\"",
            ),
            (
                |m| drop(m["sections"].as_array_mut().unwrap().remove(0)),
                "section \"R\" of tier a is missing",
            ),
            (|m| m["sections"][2]["tier"] = json!("a"), "no tier of general admission"),
            (|m| m["sections"][2]["rows"] = m["sections"][0]["rows"].clone(), "an outline only"),
            (|m| m["sections"][2]["outline"] = json!([]), "map.sections[2].outline: must have 3"),
            (
                |m| m["sections"][0]["rows"][0]["row"] = json!("0"),
                "rows[0]: is \"0\" where the tier has row \"1\"",
            ),
            (
                |m| drop(m["sections"][0]["rows"].as_array_mut().unwrap().pop()),
                "rows: row \"2\" is missing",
            ),
            (
                |m| m["sections"][0]["rows"][1]["seats"] = json!([[1, 1]]),
                "has 1 places where the tier has 3",
            ),
            (
                |m| m["sections"][0]["rows"][1]["seats"][1] = json!([1, 1]),
                "null where there is none",
            ),
            (|m| m["sections"][0]["rows"][1]["to"] = json!([1, 1]), "either seats, or from and to"),
        ];
        for (change, expected) in cases {
            let mut file = hall();
            change(&mut file["map"]);
            let message = read(file).unwrap_err().join("; ");
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
    }

    #[test]
    fn more_rows_than_the_section_has_and_two_areas_are_refused() {
        let mut file = hall();
        let row = file["map"]["sections"][0]["rows"][0].clone();
        file["map"]["sections"][0]["rows"].as_array_mut().unwrap().push(row);
        let area = file["map"]["sections"][2].clone();
        file["map"]["sections"].as_array_mut().unwrap().push(area);
        let defects = read(file).unwrap_err();
        let expected = [
            "map.sections[0].rows[2]: the section has no row \"1\" here",
            "map.sections[3]: tier pit has two areas",
        ];
        assert_eq!(defects, expected);
    }

    #[test]
    fn a_map_is_bounded() {
        let seats = |points: usize| {
            let row = json!({ "row": "1", "seats": vec![json!([123_456.78, 123_456.78]); points] });
            let section = json!({ "tier": "a", "section": "S", "rows": [row] });
            let mut file = hall();
            file["map"]["sections"] = json!([section]);
            let file: SaleFile = serde_json::from_value(file).unwrap();
            Sale::new(file).unwrap_err()
        };
        let defects = seats(100_000);
        assert!(defects.len() == 1 && defects[0].rule.contains("at most 2 MiB"), "{defects:?}");
        assert!(seats(3).len() > 1);
        let mut file = hall();
        let none = json!({ "tier": "a", "section": "nowhere" });
        file["map"]["sections"] = vec![none; 5_000].into();
        assert_eq!(read(file).unwrap_err().len(), MAX_DEFECTS);
    }
}
