//! The event of a plan, as pretix's REST API answers it: an event, or a date of a series (a sub-event).
//!
//! The format: <https://docs.pretix.eu/dev/api/resources/events.html> and
//! <https://docs.pretix.eu/dev/api/resources/subevents.html>; texts by language and times:
//! <https://docs.pretix.eu/dev/api/fundamentals.html#data-types>. A date of a series has neither a currency nor a time zone,
//! which are its series': so several documents are read, and what a later one says counts.
//!
//! A location is free text of several lines. Its first line is taken for the venue's name, all lines for the address.

use std::collections::BTreeMap;

use engine::domain::basics::money::Currency;
use engine::domain::basics::time::Timestamp;
use engine::domain::basics::time_zone::TimeZone;
use engine::domain::sale::event::{
    Degrees, EventAbout, EventFacts, FileAbout, MAX_DESCRIPTION_CHARS, MAX_LANGUAGES,
    MAX_TEXT_CHARS, Text, Venue, is_language,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::super::slug::slug;
use super::{Error, without_mark};

/// A text by language; `null` and blank texts are absent.
type Texts = BTreeMap<String, String>;

/// What is read of an event, or of a date of a series. Other fields are of no concern here.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(expecting = "an event of pretix, which is an object")]
struct Source {
    #[serde(default, deserialize_with = "texts")]
    name: Texts,
    /// The name of an event in addresses.
    slug: Option<String>,
    /// Of a date: the slug of its series.
    event: Option<String>,
    /// Of a date: its number.
    id: Option<u64>,
    currency: Option<Currency>,
    date_from: Option<Timestamp>,
    date_to: Option<Timestamp>,
    date_admission: Option<Timestamp>,
    presale_end: Option<Timestamp>,
    timezone: Option<TimeZone>,
    #[serde(default, deserialize_with = "texts")]
    location: Texts,
    #[serde(default, deserialize_with = "degrees")]
    geo_lat: Option<Degrees>,
    #[serde(default, deserialize_with = "degrees")]
    geo_lon: Option<Degrees>,
    /// Of a date: its description.
    #[serde(default, deserialize_with = "texts")]
    frontpage_text: Texts,
}

/// An event, as a sale file and its terms have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its name, in English if it has one in it, else in the first of its languages.
    pub(super) title: Option<String>,
    /// What a sale's id is made from.
    pub(super) id: Option<String>,
    /// The currency of its prices.
    pub(super) currency: Option<Currency>,
    /// When its selling ends: `presale_end`, else when it begins.
    pub(super) closes_at: Option<Timestamp>,
    /// When and where it is.
    pub(super) facts: EventFacts,
    /// What was left out, in words.
    pub(super) notes: Vec<String>,
}

impl Event {
    /// Reads the documents of an event, each with what errors call it: what a later one says counts.
    ///
    /// # Errors
    /// [`Error::Malformed`] if one is no event, [`Error::Flags`] if none says when it begins, or its times have no time zone.
    pub fn read(documents: &[(String, Vec<u8>)]) -> Result<Self, Error> {
        let mut whole = Source::default();
        for (what, text) in documents {
            let source = serde_json::from_slice::<Source>(without_mark(text));
            let malformed = |error: serde_json::Error| Error::Malformed {
                what: what.clone(),
                why: error.to_string(),
            };
            whole = whole.with(source.map_err(malformed)?);
        }
        // Every event of pretix has one: what has none is another document.
        if !documents.is_empty() && whole.date_from.is_none() {
            return Err(Error::Flags("--event: there is no date_from: is it an event?".to_owned()));
        }
        if whole.date_from.is_some() && whole.timezone.is_none() {
            return Err(Error::Flags(
                "the event has no timezone; give its series first: --event SERIES.json --event DATE.json"
                    .to_owned(),
            ));
        }
        Ok(whole.event())
    }
}

impl Source {
    /// This, with what another document says.
    fn with(self, later: Self) -> Self {
        let texts = |mine: Texts, later: Texts| if later.is_empty() { mine } else { later };
        // Two halves of different places are none.
        let (geo_lat, geo_lon) = match (later.geo_lat, later.geo_lon) {
            (None, None) => (self.geo_lat, self.geo_lon),
            both => both,
        };
        // The times of a series are those of its first date.
        let (date_to, date_admission) = match later.date_from {
            Some(_) => (later.date_to, later.date_admission),
            None => (self.date_to, self.date_admission),
        };
        Self {
            name: texts(self.name, later.name),
            slug: later.slug.or(self.slug),
            event: later.event.or(self.event),
            id: later.id.or(self.id),
            currency: later.currency.or(self.currency),
            date_from: later.date_from.or(self.date_from),
            date_to,
            date_admission,
            presale_end: later.presale_end.or(self.presale_end),
            timezone: later.timezone.or(self.timezone),
            location: texts(self.location, later.location),
            geo_lat,
            geo_lon,
            frontpage_text: texts(self.frontpage_text, later.frontpage_text),
        }
    }

    fn event(self) -> Event {
        let mut notes = Vec::new();
        let mut note = |what: &str| notes.push(format!("event: {what}"));
        let starts_at = self.date_from;
        let doors = starts_at.and(self.date_admission);
        let doors_at = doors.filter(|doors| starts_at.is_some_and(|starts| *doors <= starts));
        if doors != doors_at {
            note("date_admission is later than date_from, and left out");
        }
        let ends = starts_at.and(self.date_to);
        let ends_at = ends.filter(|ends| starts_at.is_some_and(|starts| *ends > starts));
        if ends != ends_at {
            note("date_to is not later than date_from, and left out");
        }
        let venue = preferred(&self.location).and_then(|location| {
            let first = location.lines().map(str::trim).find(|line| !line.is_empty())?;
            let is_short = first.chars().count() <= MAX_TEXT_CHARS;
            is_short.then(|| Venue { name: first.to_owned(), city: None, country: None })
        });
        if venue.is_none() {
            note("it has no location, or one whose first line is too long for a venue's name");
        }
        let places = self.geo_lat.zip(self.geo_lon);
        if places.is_none() && (self.geo_lat.is_some() || self.geo_lon.is_some()) {
            note("it has only one of geo_lat and geo_lon, which is left out");
        }
        let addresses: Texts = (self.location.iter())
            .filter(|(_, location)| {
                location.lines().filter(|line| !line.trim().is_empty()).count() > 1
            })
            .map(|(language, location)| (language.clone(), location.clone()))
            .collect();
        let about = EventAbout {
            address: text("location", addresses, MAX_TEXT_CHARS, &mut notes),
            latitude: places.map(|(latitude, _)| latitude),
            longitude: places.map(|(_, longitude)| longitude),
            description: text(
                "frontpage_text",
                self.frontpage_text,
                MAX_DESCRIPTION_CHARS,
                &mut notes,
            ),
            ..EventAbout::default()
        };
        let is_empty = about == EventAbout::default();
        let facts = EventFacts {
            starts_at,
            doors_at,
            ends_at,
            time_zone: self.timezone,
            venue,
            about: (!is_empty).then(|| FileAbout::Own(Box::new(about))),
            ..EventFacts::default()
        };
        let series =
            |event: String| self.id.map_or_else(|| event.clone(), |id| format!("{event}-{id}"));
        Event {
            title: preferred(&self.name).map(str::to_owned),
            id: self.event.map(series).or(self.slug).and_then(|id| slug(&id)),
            currency: self.currency,
            closes_at: self.presale_end.or(starts_at),
            facts,
            notes,
        }
    }
}

/// The English text, or that of the first language.
fn preferred(texts: &Texts) -> Option<&str> {
    texts.get("en").or_else(|| texts.values().next()).map(String::as_str)
}

/// The text in all its languages that sale files can have; the others are noted.
fn text(field: &str, texts: Texts, most: usize, notes: &mut Vec<String>) -> Option<Text> {
    let mut kept = BTreeMap::new();
    for (language, text) in texts {
        let is_short = text.chars().count() <= most;
        if is_short && is_language(&language) && kept.len() < MAX_LANGUAGES {
            kept.insert(language, text);
        } else {
            let why = match is_short {
                true => "sale files have no such language, or no more of them".to_owned(),
                false => format!("it has more than {most} characters"),
            };
            notes.push(format!("event: {field} in {language:?} is left out: {why}"));
        }
    }
    (!kept.is_empty()).then_some(Text::ByLanguage(kept))
}

/// A text by language, or, as some programs write it, one for all; blank texts are absent, line ends are plain.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Texts, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a text, or a text for each language")]
    enum Either {
        One(String),
        Each(BTreeMap<String, Option<String>>),
    }
    let each = match Option::<Either>::deserialize(deserializer)? {
        None => BTreeMap::new(),
        Some(Either::One(text)) => BTreeMap::from([("en".to_owned(), Some(text))]),
        Some(Either::Each(each)) => each,
    };
    let plain = |text: String| {
        let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
        let text: String =
            lines.join("\n").chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        (!text.is_empty()).then_some(text)
    };
    // `de-informal` and `de_Informal` are German, informally: a language tag has hyphens.
    let named = |(language, text): (String, Option<String>)| {
        Some((language.replace('_', "-"), text.and_then(plain)?))
    };
    Ok(each.into_iter().filter_map(named).collect())
}

/// An angle as a number, or as its text.
fn degrees<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Degrees>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "degrees")]
    enum Either {
        Number(f64),
        Text(String),
    }
    let degrees = match Option::<Either>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(Either::Number(degrees)) => degrees,
        Some(Either::Text(text)) => text.trim().parse().map_err(D::Error::custom)?,
    };
    Degrees::try_from(degrees).map(Some).map_err(D::Error::custom)
}
