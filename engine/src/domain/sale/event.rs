//! The event that a sale sells: when and where it is, in the sale file, and all else that people want to know, in a document
//! of its own.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::attachment::{Attachment, AttachmentKind};
use super::check::Defect;
use super::file::SaleFile;
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::time::Timestamp;
use crate::domain::basics::time_zone::TimeZone;

/// Most bytes of an event in a sale file, with the hash of its document in place of the document.
pub const MAX_EVENT_BYTES: usize = 1024;
/// Most bytes of the document of an event, as JSON.
pub const MAX_ABOUT_BYTES: usize = 64 * 1024;
/// Most characters of a description, in each language.
pub const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Most characters of any other text, in each language.
pub const MAX_TEXT_CHARS: usize = 300;
/// Most languages of a text.
pub const MAX_LANGUAGES: usize = 8;
/// Most pictures of an event.
pub const MAX_IMAGES: usize = 12;
/// Most links of an event.
pub const MAX_LINKS: usize = 20;
/// The longest side of a picture, in pixels.
pub const MAX_IMAGE_SIDE: u32 = 4096;

/// When and where an event is. Each field may be left out; of a sale without stops, a publication without the beginning, its
/// time zone and the venue's name is warned of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an event, which is an object")]
pub struct EventFacts {
    /// When it begins (RFC 3339 with an offset).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Timestamp>,
    /// When the doors open: not after it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doors_at: Option<Timestamp>,
    /// When it ends: after it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    /// The time zone in which people are told these times, and those of stops without a zone of their own. It must be there
    /// where a time is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<TimeZone>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub venue: Option<Venue>,
    /// What kind of event it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Who performs: 1 to 300 characters each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub performers: Vec<String>,
    /// The picture for lists and link previews; absent: the first of the document, if the file has the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
    /// The document with all else, or the hash of one that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<FileAbout>,
}

/// The place of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a venue, which is an object")]
pub struct Venue {
    /// Its name: 1 to 300 characters.
    pub name: String,
    /// Its city: 1 to 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    /// Its country, as two capital letters (ISO 3166-1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Z]{2}$"))]
    pub country: Option<String>,
}

/// The kind of an event, by which people search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Music.
    Concert,
    /// A play, an opera, a musical, a dance.
    Theatre,
    /// A game or a contest.
    Sport,
    /// Several days, or many stages.
    Festival,
    /// Comedy.
    Comedy,
    /// For children and who is with them.
    Family,
    /// An exhibition or a fair.
    Exhibition,
    /// A talk, a reading, a conference.
    Talk,
    /// A night in a club.
    Party,
    /// Anything else.
    Other,
}

/// A picture that is kept as an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a picture, which is an object")]
pub struct Picture {
    /// The SHA-256 of the file.
    pub sha256: Hash,
    /// Its width in pixels.
    #[schemars(range(min = 1, max = MAX_IMAGE_SIDE))]
    pub width: u32,
    /// Its height in pixels.
    #[schemars(range(min = 1, max = MAX_IMAGE_SIDE))]
    pub height: u32,
}

/// The document of an event in a sale file: the document itself, or the hash of one that is kept as an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FileAbout {
    /// The document, which the publication keeps.
    Own(Box<EventAbout>),
    /// The SHA-256 of a document that is kept.
    Kept(Hash),
}

impl<'de> Deserialize<'de> for FileAbout {
    /// Not one after the other: what is wrong with a document would be lost.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = FileAbout;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the document of an event, which is an object, or its hash")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FileAbout, E> {
                text.parse().map(FileAbout::Kept).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileAbout, A::Error> {
                let about = EventAbout::deserialize(MapAccessDeserializer::new(map));
                about.map(|about| FileAbout::Own(Box::new(about)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A text that is the same in every language, or one for each language.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Text {
    /// One for all.
    Plain(String),
    /// By language tag (BCP 47), such as `en` or `zh-Hans`: at least one, at most 8.
    ByLanguage(BTreeMap<String, String>),
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Text;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text, or an object with a text for each language")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text::Plain(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                let mut texts = BTreeMap::new();
                while let Some((language, text)) = map.next_entry()? {
                    if texts.insert(language, text).is_some() {
                        return Err(A::Error::custom("a language is duplicated"));
                    }
                }
                Ok(Text::ByLanguage(texts))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Text {
    /// The text, or that of each language.
    pub fn each(&self) -> impl Iterator<Item = &str> {
        let (plain, texts) = match self {
            Self::Plain(text) => (Some(text.as_str()), None),
            Self::ByLanguage(texts) => (None, Some(texts)),
        };
        plain.into_iter().chain(texts.into_iter().flat_map(BTreeMap::values).map(String::as_str))
    }
}

/// The document of an event: all that people want to know of it besides when and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the document of an event, which is an object")]
pub struct EventAbout {
    /// The postal address of the venue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Text>,
    /// Degrees north, -90 to 90, with `longitude`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latitude: Option<Degrees>,
    /// Degrees east, -180 to 180, with `latitude`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longitude: Option<Degrees>,
    /// How to get in, such as where it is step-free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Text>,
    /// What it is, in Markdown: at most 4,000 characters. No HTML in it is shown as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text>,
    /// The least age of a guest, in years.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 99))]
    pub minimum_age: Option<u8>,
    /// Whom to ask, and how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<Text>,
    /// Where to read more: at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LINKS))]
    pub links: Vec<AboutLink>,
    /// Pictures, the most telling one first: at most 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_IMAGES))]
    pub images: Vec<AboutImage>,
}

/// An angle on the globe, in degrees, to six decimals (11 centimetres).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Degrees {
    millionths: i32,
}

/// The number is no angle on the globe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be -180 to 180 degrees")]
pub struct InvalidDegrees;

impl Degrees {
    fn is_beyond(self, degrees: u32) -> bool {
        self.millionths.unsigned_abs() > degrees * 1_000_000
    }
}

impl TryFrom<f64> for Degrees {
    type Error = InvalidDegrees;
    fn try_from(degrees: f64) -> Result<Self, InvalidDegrees> {
        if !(-180.0..=180.0).contains(&degrees) {
            return Err(InvalidDegrees);
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is within 180 million")]
        let millionths = (degrees * 1e6).round() as i32;
        Ok(Self { millionths })
    }
}

impl From<Degrees> for f64 {
    fn from(degrees: Degrees) -> Self {
        Self::from(degrees.millionths) / 1e6
    }
}

impl JsonSchema for Degrees {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Degrees".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number", "minimum": -180, "maximum": 180, "description": "degrees"
        })
    }
}

/// A link of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a link, which is an object")]
pub struct AboutLink {
    /// What it leads to.
    pub title: Text,
    /// Its address, which begins with `https://`.
    #[schemars(regex(pattern = "^https://[^\\s]+$"))]
    pub url: String,
}

/// A picture of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a picture, which is an object")]
pub struct AboutImage {
    /// The SHA-256 of the file, which is kept as an attachment.
    pub sha256: Hash,
    /// What it shows, for who does not see it.
    pub alt: Text,
    /// Its width in pixels.
    #[schemars(range(min = 1, max = MAX_IMAGE_SIDE))]
    pub width: u32,
    /// Its height in pixels.
    #[schemars(range(min = 1, max = MAX_IMAGE_SIDE))]
    pub height: u32,
}

impl AboutImage {
    /// The picture without its words.
    #[must_use]
    pub fn picture(&self) -> Picture {
        Picture { sha256: self.sha256, width: self.width, height: self.height }
    }
}

impl EventAbout {
    /// The document as an attachment.
    #[must_use]
    pub fn attachment(&self) -> Attachment {
        // Text and numbers, which JSON can always carry.
        let json = serde_json::to_vec(self)
            .unwrap_or_else(|error| unreachable!("a document could not be written: {error}"));
        Attachment::new(AttachmentKind::About, json)
    }

    /// The document of an attachment.
    ///
    /// # Errors
    /// Fails if the bytes are no document of an event.
    pub fn from_attachment(attachment: &Attachment) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&attachment.bytes)
    }

    /// The rules that the document breaks, each with its place in it.
    #[must_use]
    pub fn defects(&self) -> Vec<Defect> {
        let mut defects = Vec::new();
        let short =
            [("address", &self.address), ("access", &self.access), ("contact", &self.contact)];
        for (at, text) in short {
            check_text(at, text.as_ref(), MAX_TEXT_CHARS, &mut defects);
        }
        check_text("description", self.description.as_ref(), MAX_DESCRIPTION_CHARS, &mut defects);
        check_place(self.latitude, self.longitude, &mut defects);
        if self.minimum_age.is_some_and(|age| age > 99) {
            defects.push(Defect::new("minimum_age", "must be 0 to 99"));
        }
        if self.links.len() > MAX_LINKS {
            defects.push(Defect::new("links", "must be at most 20"));
        }
        for (index, link) in self.links.iter().enumerate().take(MAX_LINKS) {
            let at = format!("links[{index}]");
            check_text(&format!("{at}.title"), Some(&link.title), MAX_TEXT_CHARS, &mut defects);
            if !is_web_address(&link.url) {
                let rule = "must be an address that begins with https://, of at most 2,000 bytes";
                defects.push(Defect::new(format!("{at}.url"), rule));
            }
        }
        if self.images.len() > MAX_IMAGES {
            defects.push(Defect::new("images", "must be at most 12"));
        }
        for (index, image) in self.images.iter().enumerate().take(MAX_IMAGES) {
            let at = format!("images[{index}]");
            check_text(&format!("{at}.alt"), Some(&image.alt), MAX_TEXT_CHARS, &mut defects);
            check_sides(&at, &image.picture(), &mut defects);
        }
        if defects.is_empty() && self.attachment().bytes.len() > MAX_ABOUT_BYTES {
            defects.push(Defect::new("", "must have at most 64 KiB as JSON"));
        }
        defects
    }
}

fn is_web_address(url: &str) -> bool {
    let host = url.strip_prefix("https://").and_then(|rest| rest.chars().next());
    let is_plain = url.chars().all(|c| !c.is_whitespace() && !c.is_control());
    url.len() <= 2000 && is_plain && host.is_some_and(char::is_alphanumeric)
}

fn check_place(latitude: Option<Degrees>, longitude: Option<Degrees>, defects: &mut Vec<Defect>) {
    if latitude.is_some() != longitude.is_some() {
        defects
            .push(Defect::new("latitude", "must be there with longitude, and without it absent"));
    }
    // No angle is more than 180 degrees.
    if latitude.is_some_and(|degrees| degrees.is_beyond(90)) {
        defects.push(Defect::new("latitude", "must be -90 to 90"));
    }
}

/// True of a text of 1 to `most` characters, not all blank, whose control characters are line feeds.
fn is_text(text: &str, most: usize) -> bool {
    let is_plain = text.chars().all(|c| c == '\n' || !c.is_control());
    !text.trim().is_empty() && is_plain && text.chars().take(most + 1).count() <= most
}

fn check_text(at: &str, text: Option<&Text>, most: usize, defects: &mut Vec<Defect>) {
    let Some(text) = text else { return };
    if let Text::ByLanguage(texts) = text {
        if texts.is_empty() || texts.len() > MAX_LANGUAGES {
            defects.push(Defect::new(at, "must have 1 to 8 languages"));
        }
        if !texts.keys().all(|language| is_language(language)) {
            defects.push(Defect::new(at, "must have language tags as keys, such as en or zh-Hans"));
        }
    }
    if !text.each().all(|text| is_text(text, most)) {
        let rule =
            format!("must have 1 to {most} characters, and of control characters only line feeds");
        defects.push(Defect::new(at, rule));
    }
}

/// True of a language tag: a language, and what narrows it (BCP 47).
#[must_use]
pub fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let language = parts.next().unwrap_or_default();
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    (2..=3).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_lowercase())
        && tag.len() <= 35
        && parts.all(is_part)
}

fn check_sides(at: &str, picture: &Picture, defects: &mut Vec<Defect>) {
    for (name, side) in [("width", picture.width), ("height", picture.height)] {
        if !(1..=MAX_IMAGE_SIDE).contains(&side) {
            defects.push(Defect::new(format!("{at}.{name}"), "must be 1 to 4,096"));
        }
    }
}

impl EventFacts {
    /// The facts with the hash of their document, the first picture of that in place of none; and the document, if the facts
    /// had it.
    #[must_use]
    pub fn kept(&self) -> (Self, Option<Attachment>) {
        let Some(FileAbout::Own(about)) = &self.about else { return (self.clone(), None) };
        let attachment = about.attachment();
        let picture = self.picture.or_else(|| about.images.first().map(AboutImage::picture));
        let about = Some(FileAbout::Kept(attachment.hash()));
        (Self { picture, about, ..self.clone() }, Some(attachment))
    }

    /// The pictures that it names, each once: its own, and those of its document, if it has the document.
    #[must_use]
    pub fn pictures(&self) -> BTreeSet<Hash> {
        match &self.about {
            Some(FileAbout::Own(about)) => pictures(self, Some(about)),
            Some(FileAbout::Kept(_)) | None => pictures(self, None),
        }
    }

    /// True if it says when it is, by which clocks, and where.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.starts_at.is_some() && self.time_zone.is_some() && self.venue.is_some()
    }
}

/// Checks the event of a file, and its notice.
pub(super) fn check_event(file: &SaleFile, defects: &mut Vec<Defect>) {
    check_text("notice", file.notice.as_ref(), MAX_TEXT_CHARS, defects);
    let Some(event) = &file.event else { return };
    let mut broken = |at: &str, rule: &str| defects.push(Defect::new(format!("event.{at}"), rule));
    let (starts, doors, ends) = (event.starts_at, event.doors_at, event.ends_at);
    if starts.is_none() && (doors.is_some() || ends.is_some()) {
        broken("starts_at", "must be there with doors_at or ends_at");
    }
    if starts.zip(doors).is_some_and(|(starts, doors)| doors > starts) {
        broken("doors_at", "must not be later than starts_at");
    }
    if starts.zip(ends).is_some_and(|(starts, ends)| ends <= starts) {
        broken("ends_at", "must be later than starts_at");
    }
    if starts.is_some() && event.time_zone.is_none() {
        broken("time_zone", "must be there with starts_at");
    }
    let line = |text: &str| is_text(text, MAX_TEXT_CHARS) && !text.contains('\n');
    if let Some(venue) = &event.venue {
        if !line(&venue.name) {
            broken("venue.name", "must have 1 to 300 characters without control characters");
        }
        if venue.city.as_ref().is_some_and(|city| !line(city)) {
            broken("venue.city", "must have 1 to 300 characters without control characters");
        }
        let is_code =
            |code: &String| code.len() == 2 && code.bytes().all(|b| b.is_ascii_uppercase());
        if venue.country.as_ref().is_some_and(|code| !is_code(code)) {
            broken("venue.country", "must be two capital letters (ISO 3166-1)");
        }
    }
    if !event.performers.iter().all(|performer| line(performer)) {
        broken("performers", "must have 1 to 300 characters each, without control characters");
    }
    if let Some(picture) = &event.picture {
        check_sides("event.picture", picture, defects);
    }
    if let Some(FileAbout::Own(about)) = &event.about {
        let within = |at: String| match at.is_empty() {
            true => "event.about".to_owned(),
            false => format!("event.about.{at}"),
        };
        let found = about.defects().into_iter();
        defects.extend(found.map(|Defect { at, rule }| Defect { at: within(at), rule }));
    }
    let bytes = serde_json::to_vec(&event.kept().0).map_or(usize::MAX, |json| json.len());
    if bytes > MAX_EVENT_BYTES {
        let rule = "must have at most 1,024 bytes as JSON besides the document, to which longer texts belong";
        defects.push(Defect::new("event", rule));
    }
}

/// The pictures that an event and its document name, each once.
#[must_use]
pub fn pictures(event: &EventFacts, about: Option<&EventAbout>) -> BTreeSet<Hash> {
    let own = event.picture.map(|picture| picture.sha256);
    let others = about.map_or(&[][..], |about| &about.images).iter().map(|image| image.sha256);
    own.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fixtures::{read, train};
    use super::*;

    fn broken(event: Value) -> String {
        let mut file = train();
        file["event"] = event;
        read(file).map_or_else(|defects| defects.join("; "), |_| String::new())
    }

    fn whole() -> Value {
        json!({
            "starts_at": "2026-11-21T20:00:00+01:00", "doors_at": "2026-11-21T18:30:00+01:00",
            "ends_at": "2026-11-21T23:00:00+01:00", "time_zone": "Europe/Vienna",
            "venue": { "name": "Lakeside Stadium", "city": "Vienna", "country": "AT" },
            "category": "concert", "performers": ["The Herons"],
            "about": {
                "address": "Am Ufer 1\n1220 Wien", "latitude": 48.2, "longitude": 180,
                "access": { "en": "Step-free at gate C", "zh-Hans": "C 门无台阶" },
                "description": "# The Herons\n<script>alert(1)</script>",
                "minimum_age": 12, "contact": "box@example.org",
                "links": [{ "title": "More", "url": "https://example.org/a?b=c" }],
                "images": [{ "sha256": "ab".repeat(32), "alt": "A heron", "width": 1600, "height": 900 }]
            }
        })
    }

    #[test]
    fn what_is_told_of_an_event_is_read_and_kept_under_its_hash() {
        assert_eq!(broken(whole()), "");
        let event: EventFacts = serde_json::from_value(whole()).unwrap();
        assert!(event.is_told());
        let (kept, document) = event.kept();
        let document = document.unwrap();
        assert_eq!(kept.about, Some(FileAbout::Kept(document.hash())));
        assert_eq!(kept.picture.map(|it| (it.width, it.height)), Some((1600, 900)));
        let about: EventAbout = serde_json::from_slice(&document.bytes).unwrap();
        assert_eq!(FileAbout::Own(Box::new(about.clone())), event.about.unwrap());
        assert_eq!(pictures(&kept, Some(&about)).len(), 1);
        // A second time there is nothing more to keep.
        assert_eq!(kept.kept(), (kept.clone(), None));
        let again: EventFacts = serde_json::from_value(json!(kept)).unwrap();
        assert_eq!(again, kept);
        assert!(serde_json::to_vec(&kept).unwrap().len() <= MAX_EVENT_BYTES);
    }

    #[test]
    fn each_broken_rule_of_an_event_is_named_with_its_place() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 24] = [
            (|e| e["ends_at"] = json!("2026-11-21T19:00:00Z"), "event.ends_at: must be later"),
            (
                |e| e["doors_at"] = json!("2026-11-21T20:00:00Z"),
                "event.doors_at: must not be later",
            ),
            (|e| e["starts_at"] = Value::Null, "event.starts_at: must be there"),
            (|e| e["time_zone"] = Value::Null, "event.time_zone: must be there"),
            (|e| e["time_zone"] = json!("Europe/Atlantis"), "a time zone of the IANA database"),
            (|e| e["venue"]["name"] = json!("a\nb"), "event.venue.name"),
            (|e| e["venue"]["name"] = json!("  "), "event.venue.name"),
            (|e| e["venue"]["country"] = json!("at"), "event.venue.country"),
            (|e| e["venue"]["city"] = json!("x".repeat(301)), "event.venue.city"),
            (|e| e["category"] = json!("circus"), "unknown variant"),
            (|e| e["performers"] = json!(["\u{7}"]), "event.performers"),
            (
                |e| e["performers"] = json!(vec!["a performer"; 90]),
                "event: must have at most 1,024",
            ),
            (
                |e| e["picture"] = json!({ "sha256": "ab", "width": 1, "height": 1 }),
                "64 lower-case",
            ),
            (
                |e| e["picture"] = json!({ "sha256": "ab".repeat(32), "width": 0, "height": 1 }),
                "event.picture.width: must be 1 to 4,096",
            ),
            (|e| e["about"] = json!("ab"), "64 lower-case hexadecimal digits"),
            (|e| e["about"] = json!(7), "the document of an event"),
            (|e| e["about"]["latitude"] = json!(90.5), "event.about.latitude: must be -90 to 90"),
            (|e| e["about"]["longitude"] = json!(-181), "must be -180 to 180 degrees"),
            (|e| e["about"]["latitude"] = Value::Null, "event.about.latitude: must be there with"),
            (|e| e["about"]["description"] = json!("x".repeat(4001)), "1 to 4000 characters"),
            (|e| e["about"]["access"] = json!({ "EN": "x" }), "language tags"),
            (|e| e["about"]["access"] = json!({}), "1 to 8 languages"),
            (|e| e["about"]["links"][0]["url"] = json!("javascript:alert(1)"), "begins with https"),
            (|e| e["about"]["images"][0]["height"] = json!(5000), "event.about.images[0].height"),
        ];
        for (change, expected) in cases {
            let mut event = whole();
            change(&mut event);
            let found = broken(event);
            assert!(found.contains(expected), "{expected}: {found}");
        }
        let hostile = json!({ "en": "x".repeat(3999), "zh": "字".repeat(4000) });
        let mut event = whole();
        event["about"]["description"] = hostile;
        assert_eq!(broken(event), "");
    }
}
