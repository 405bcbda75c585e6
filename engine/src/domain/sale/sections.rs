//! Blocks, rows and places as an operator writes them down, and the rows of seats that are made from that short text.
//!
//! A hall is described in few lines because it repeats itself: blocks are alike, rows follow each
//! other by letter or number, seats are numbered. The described seats are counted before they are
//! made ([`Section::rows_in_all`], [`SectionRow::places`]): a few bytes can describe
//! more seats than there is memory.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::focus::Focus;
use super::places::{NAME_RULE, Numbered, RowPlaces};
use super::row_range::Range;
use crate::domain::basics::bitmap;
use crate::domain::basics::ids::SeatName;

/// A block of rows; neighbours are neighbours within it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a section, which is an object")]
pub struct Section {
    /// What the block or coach is called.
    pub section: String,
    /// Further blocks or coaches with the same rows; they come next in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alike: Vec<String>,
    /// Its rows, most desirable first; two rows that follow each other are neighbours.
    pub rows: Vec<SectionRow>,
    /// What the best seats of its rows are nearest to, instead of what the tier says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
}

/// A row of a section, or a range of rows with the same places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a row, which is an object")]
pub struct SectionRow {
    /// What the row is called; of a range the first.
    pub row: String,
    /// The last row of a range: both are numbers, or both are one or two capital letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its places from left to right.
    pub seats: Places,
}

/// The places of a row: each by name, a run of numbers, or one in each column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Places {
    /// Names; `null` is an aisle or a pillar.
    #[serde(serialize_with = "as_list")]
    Named(Arc<[Option<SeatName>]>),
    /// Numbered seats.
    Run(Run),
    /// A seat in each column of the tier that has a letter, called `<section>-<row><letter>`.
    Lettered(Lettered),
}

fn as_list<S: Serializer>(
    names: &Arc<[Option<SeatName>]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    names.as_ref().serialize(serializer)
}

impl<'de> Deserialize<'de> for Places {
    /// A list is names, an object is a run, a text says which places. What is derived would try one
    /// after the other, would take a list for a run, and say of none what is wrong with it.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Places;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "a list of seat names, a run of first and count, or \"every_column\"",
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Places, A::Error> {
                let names: Vec<_> = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(Places::Named(names.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Places, A::Error> {
                Run::deserialize(MapAccessDeserializer::new(map)).map(Places::Run)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Places, E> {
                Lettered::deserialize(StrDeserializer::new(text)).map(Places::Lettered)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// How places are given that lie in the columns of their tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lettered {
    /// One in each column that has a letter.
    EveryColumn,
}

/// A run of numbered seats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a run, which is an object")]
pub struct Run {
    /// What stands before each number; where it is absent, `<section>-<row>-`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The first number.
    pub first: u32,
    /// Number of seats.
    pub count: u32,
    /// From one number to the next: 1 if absent, 2 where odd and even numbers lie apart, negative
    /// where the numbers go down from left to right.
    #[serde(default = "Run::plain_step", skip_serializing_if = "Run::is_plain_step")]
    pub step: i32,
    /// An aisle lies to the right of each seat with one of these numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aisles_after: Vec<u32>,
}

impl Run {
    /// The seats `<prefix><first>` and so on, one number after the other.
    #[must_use]
    pub fn plain(prefix: Option<String>, first: u32, count: u32) -> Self {
        Self { prefix, first, count, step: Self::plain_step(), aisles_after: Vec::new() }
    }

    fn plain_step() -> i32 {
        1
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_plain_step(step: &i32) -> bool {
        *step == Self::plain_step()
    }

    /// The run that names look like, if there are enough of them to be shorter so. Whether it
    /// stands for exactly these is not checked.
    fn from_names(names: &[Option<SeatName>]) -> Option<Self> {
        let mut seats = names.iter().flatten().map(|name| ending(name.as_str()));
        let (first, second) = (seats.next()?, seats.next()?);
        let step = i32::try_from(i64::from(second.1?) - i64::from(first.1?)).ok()?;
        let holes = names.windows(2).filter(|two| two[1].is_none());
        let after = holes.map(|two| ending(two[0].as_ref()?.as_str()).1);
        Some(Self {
            step,
            aisles_after: after.collect::<Option<_>>()?,
            ..Self::plain(
                Some(first.0.to_owned()),
                first.1?,
                u32::try_from(seats.count()).ok()? + 2,
            )
        })
    }

    fn laid(&self, prefix: String) -> Result<Numbered, &'static str> {
        Numbered::new(prefix, self.first, self.step, self.count, &self.aisles_after)
    }
}

/// A name as what stands before its number, and that number if it ends with one.
fn ending(name: &str) -> (&str, Option<u32>) {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    // `A-07` is 7 after `A-0`: numbers are written without leading zeros.
    let zeros = number.len() - number.trim_start_matches('0').len();
    let zeros = zeros.min(digits.saturating_sub(1));
    (&name[..prefix.len() + zeros], number.parse().ok())
}

/// One row that a description stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaidRow {
    /// Index of the row of the description that it comes from.
    pub index: usize,
    /// What it is called, such as `A` or `17`.
    pub label: String,
    /// Its places from left to right, or the rule that they break.
    pub places: Result<RowPlaces, &'static str>,
}

impl Section {
    /// Number of rows of the section and those alike together.
    #[must_use]
    pub fn rows_in_all(&self) -> usize {
        let each = self.rows.iter().map(SectionRow::rows).fold(0, usize::saturating_add);
        each.saturating_mul(self.sections())
    }

    /// Number of sections that are described: this one and those alike.
    #[must_use]
    pub fn sections(&self) -> usize {
        self.alike.len().saturating_add(1)
    }

    /// Number of seats of the section and those alike together.
    #[must_use]
    pub fn seats(&self, columns: &[Option<String>]) -> usize {
        let seats = |row: &SectionRow| row.seats.seats(columns).saturating_mul(row.rows());
        let each = self.rows.iter().map(seats).fold(0, usize::saturating_add);
        each.saturating_mul(self.sections())
    }

    /// The names of the sections that are described, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.section.as_str()).chain(self.alike.iter().map(String::as_str))
    }

    /// Every row of one of the sections that are described, in order.
    pub fn laid<'a>(
        &'a self,
        name: &'a str,
        columns: &'a Arc<[Option<String>]>,
    ) -> impl Iterator<Item = LaidRow> + 'a {
        self.rows.iter().enumerate().flat_map(move |(index, row)| {
            let range = row.range().unwrap_or(Range::One);
            (0..range.rows()).map(move |at| {
                let label = range.label(&row.row, at);
                let places = row.range().and_then(|_| row.seats.laid(name, &label, columns));
                LaidRow { index, label, places }
            })
        })
    }
}

impl SectionRow {
    /// One row with its places.
    #[must_use]
    pub fn one(row: impl Into<String>, seats: Places) -> Self {
        Self { row: row.into(), to: None, seats }
    }

    /// Number of rows that are described; a malformed range counts as one row.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.range().map_or(1, Range::rows)
    }

    /// Number of places of each row.
    #[must_use]
    pub fn places(&self, columns: &[Option<String>]) -> usize {
        self.seats.places(columns)
    }

    fn range(&self) -> Result<Range, &'static str> {
        match &self.to {
            None => Ok(Range::One),
            Some(to) => Range::between(&self.row, to).ok_or(
                "row and to must both be numbers of at most 9 digits, or both one or two capital letters",
            ),
        }
    }
}

impl Places {
    /// These places in the fewest words: as a run where the names are one, else by name.
    #[must_use]
    pub fn in_short(names: Vec<Option<SeatName>>) -> Self {
        let run = Run::from_names(&names).filter(|run| {
            let laid = run.laid(run.prefix.clone().unwrap_or_default()).map(RowPlaces::Numbered);
            laid.is_ok_and(|laid| laid.names().eq(names.iter().cloned()))
        });
        run.map_or_else(|| Self::Named(names.into()), Self::Run)
    }

    fn places(&self, columns: &[Option<String>]) -> usize {
        match self {
            Self::Named(names) => names.len(),
            Self::Run(run) => bitmap::index(run.count).saturating_add(run.aisles_after.len()),
            Self::Lettered(Lettered::EveryColumn) => columns.len(),
        }
    }

    fn seats(&self, columns: &[Option<String>]) -> usize {
        match self {
            Self::Named(names) => names.iter().flatten().count(),
            Self::Run(run) => bitmap::index(run.count),
            Self::Lettered(Lettered::EveryColumn) => columns.iter().flatten().count(),
        }
    }

    fn laid(
        &self,
        section: &str,
        row: &str,
        columns: &Arc<[Option<String>]>,
    ) -> Result<RowPlaces, &'static str> {
        match self {
            Self::Named(names) => Ok(RowPlaces::Named(Arc::clone(names))),
            Self::Run(run) => {
                let prefix = run.prefix.clone().unwrap_or_else(|| format!("{section}-{row}-"));
                run.laid(prefix).map(RowPlaces::Numbered)
            }
            Self::Lettered(Lettered::EveryColumn) if columns.is_empty() => {
                Err("every_column needs the columns of the tier")
            }
            Self::Lettered(Lettered::EveryColumn) => {
                let prefix = format!("{section}-{row}");
                // If the longest name is one, so are the others: letters are checked by themselves.
                let longest = columns.iter().flatten().max_by_key(|letter| letter.len());
                let longest = longest.map_or("", String::as_str);
                SeatName::new(format!("{prefix}{longest}")).map_err(|_| NAME_RULE)?;
                Ok(RowPlaces::Lettered { prefix, columns: Arc::clone(columns) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row_range::{letters, letters_of};
    use super::*;
    use serde_json::{Value, json};

    const COLUMNS: [Option<&str>; 4] = [Some("A"), Some("B"), None, Some("C")];

    /// Each row as `label: places`, `_` for a place without a seat; or the rule that is broken.
    fn laid(section: Value) -> Vec<String> {
        let section: Section = serde_json::from_value(section).unwrap();
        let columns: Arc<[Option<String>]> =
            COLUMNS.iter().map(|letter| letter.map(str::to_owned)).collect();
        let rows: Vec<(String, LaidRow)> = section
            .names()
            .flat_map(|name| section.laid(name, &columns).map(|row| (name.to_owned(), row)))
            .collect();
        assert_eq!(rows.len(), section.rows_in_all());
        if let Ok(places) =
            rows.iter().map(|(_, row)| row.places.clone()).collect::<Result<Vec<_>, _>>()
        {
            let seats = places.iter().flat_map(RowPlaces::names).flatten();
            assert_eq!(seats.count(), section.seats(&columns));
            let measured = section.rows.iter().map(|row| row.places(&columns) * row.rows());
            assert_eq!(
                places.iter().map(RowPlaces::len).sum::<usize>(),
                measured.sum::<usize>() * section.sections(),
                "what is measured is what is made"
            );
        }
        let place = |place: Option<SeatName>| place.map_or("_".to_owned(), |name| name.to_string());
        let text = |(name, row): (String, LaidRow)| match row.places {
            Ok(places) => format!(
                "{name} {}: {}",
                row.label,
                places.names().map(place).collect::<Vec<_>>().join(" ")
            ),
            Err(rule) => rule.to_owned(),
        };
        rows.into_iter().map(text).collect()
    }

    fn one_row(row: Value) -> Vec<String> {
        laid(json!({"section": "S", "rows": [row]}))
    }

    #[test]
    fn a_short_text_stands_for_many_seats() {
        let rows = laid(json!({"section": "101", "alike": ["102"], "rows": [
            {"row": "A", "to": "B", "seats": {"first": 1, "count": 3, "aisles_after": [2]}},
            {"row": "front", "seats": ["x", null, "y"]},
        ]}));
        assert_eq!(
            rows,
            [
                "101 A: 101-A-1 101-A-2 _ 101-A-3",
                "101 B: 101-B-1 101-B-2 _ 101-B-3",
                "101 front: x _ y",
                "102 A: 102-A-1 102-A-2 _ 102-A-3",
                "102 B: 102-B-1 102-B-2 _ 102-B-3",
                "102 front: x _ y",
            ]
        );
        let run = json!({"prefix": "b", "first": 7, "count": 3, "step": -2});
        assert_eq!(one_row(json!({"row": "1", "seats": run})), ["S 1: b7 b5 b3"]);
        let coach = json!({"row": "09", "to": "10", "seats": "every_column"});
        assert_eq!(one_row(coach), ["S 09: S-09A S-09B _ S-09C", "S 10: S-10A S-10B _ S-10C"]);
    }

    #[test]
    fn rows_are_counted_by_letters_and_numbers_up_and_down() {
        let labels = |row: &str, to: &str| {
            let seats = json!({"first": 1, "count": 1});
            one_row(json!({"row": row, "to": to, "seats": seats}))
                .iter()
                .map(|row| row.split([' ', ':']).nth(1).unwrap_or(row).to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(labels("Y", "AB"), "Y Z AA AB");
        assert_eq!(labels("AZ", "BA"), "AZ BA");
        assert_eq!(labels("C", "A"), "C B A");
        assert_eq!(labels("8", "11"), "8 9 10 11");
        assert_eq!(labels("11", "9"), "11 10 9");
        assert_eq!(labels("098", "101"), "098 099 100 101");
        assert_eq!(labels("7", "7"), "7");
        for number in 1..=702 {
            assert_eq!(letters(&letters_of(number)), Some(number));
        }
        assert_eq!(letters_of(702), "ZZ");
    }

    #[test]
    fn names_that_are_a_run_are_told_as_one() {
        let short = |names: &str| {
            let names = names.split(' ').map(|name| SeatName::new(name.trim_matches('_')).ok());
            let names: Vec<Option<SeatName>> = names.collect();
            let places = Places::in_short(names.clone());
            let laid = places.laid("S", "1", &Arc::default()).unwrap();
            assert_eq!(laid.names().collect::<Vec<_>>(), names);
            serde_json::to_value(places).unwrap()
        };
        assert_eq!(short("A-1 A-2 A-3"), json!({"prefix": "A-", "first": 1, "count": 3}));
        assert_eq!(short("A-0 A-1"), json!({"prefix": "A-", "first": 0, "count": 2}));
        assert_eq!(
            short("x9 x7 _ x5 x3"),
            json!({"prefix": "x", "first": 9, "count": 4, "step": -2, "aisles_after": [7]})
        );
        assert_eq!(short("A-07 A-08"), json!({"prefix": "A-0", "first": 7, "count": 2}));
        for listed in [
            "A-1",
            "A-1 B-2 A-3",
            "A-1 A-2 A-4",
            "A-1 A-1",
            "_ A-1 A-2",
            "A-1 A-2 _",
            "A-1 _ _ A-2",
            "A B",
            "A-09 A-10",
            "A-1 A-2 A",
        ] {
            assert!(short(listed).is_array(), "{listed}");
        }
    }

    #[test]
    fn what_stands_for_nothing_is_refused_in_words() {
        let run = |change: Value| {
            let mut run = json!({"first": 1, "count": 3});
            run.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            one_row(json!({"row": "1", "seats": run}))[0].clone()
        };
        let cases = [
            (run(json!({"step": 0})), "step must not be 0"),
            (run(json!({"step": -1})), "must not be negative"),
            (run(json!({"first": u32::MAX})), "must not be negative"),
            (run(json!({"aisles_after": [2, 2]})), "a seat twice"),
            (run(json!({"aisles_after": [3]})), "the last seat"),
            (run(json!({"aisles_after": [9]})), "no seat of its run"),
            (run(json!({"prefix": "x".repeat(64)})), "1 to 64 bytes"),
        ];
        for (said, expected) in cases {
            assert!(said.contains(expected), "{said:?} does not say {expected:?}");
        }
        for (row, to) in
            [("A", "1"), ("a", "c"), ("A", "AAA"), ("", "3"), ("1", "1000000000"), ("01", "9")]
        {
            let said = &one_row(json!({"row": row, "to": to, "seats": ["x"]}))[0];
            assert!(said.contains("row and to must both be"), "{row} to {to}: {said}");
        }
        let without = Places::Lettered(Lettered::EveryColumn).laid("S", "1", &Arc::default());
        assert!(without.unwrap_err().contains("columns of the tier"));
    }

    #[test]
    fn a_huge_range_is_measured_and_not_made() {
        let row = json!({"row": "0", "to": "999999999", "seats": {"first": 1, "count": u32::MAX, "aisles_after": [1]}});
        let section = json!({"section": "S", "alike": ["T", "U"], "rows": [row.clone(), row]});
        let section: Section = serde_json::from_value(section).unwrap();
        assert_eq!(section.rows_in_all(), 6_000_000_000);
        assert_eq!(section.rows[0].places(&[]), u32::MAX as usize + 1);
    }
}
