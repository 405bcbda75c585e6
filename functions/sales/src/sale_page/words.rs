//! Texts, times and amounts of a sale in words.

use engine::domain::basics::calendar::ClockTime;
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::basics::time_zone::TimeZone;
use engine::domain::sale::event::Text;
use engine::domain::sale::{SaleFile, Stop, TierFile};
use jiff::civil::{DateTime, Weekday};
use jiff::tz;
use pulldown_cmark::{Event, Parser, TagEnd};

/// A text in the one language in which the page has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<'t> {
    /// The language tag (BCP 47), if the text says one.
    pub(super) language: Option<&'t str>,
    pub(super) text: &'t str,
}

/// The text that the page shows: the English one, else the first by its tag. The page is one for all, as caches know no
/// languages.
pub(super) fn chosen(text: &Text) -> Option<Chosen<'_>> {
    match text {
        Text::Plain(text) => Some(Chosen { language: None, text }),
        Text::ByLanguage(texts) => {
            let is_english = |tag: &&String| *tag == "en" || tag.starts_with("en-");
            let tag = texts.keys().find(is_english).or_else(|| texts.keys().next())?;
            Some(Chosen { language: Some(tag), text: texts.get(tag)? })
        }
    }
}

/// A time by the clocks of a place.
#[derive(Debug, Clone)]
pub(super) struct Told {
    civil: DateTime,
    /// The offset from UTC, `+01:00`; `None` if the zone is not known.
    offset: Option<String>,
    zone: Option<String>,
}

impl Told {
    /// A moment by the clocks of a time zone; by UTC, if there is none.
    pub(super) fn at(at: Timestamp, zone: Option<&TimeZone>) -> Option<Self> {
        let name = zone.map_or("UTC", TimeZone::name);
        let zone = tz::TimeZone::get(name).ok()?;
        let zoned = jiff::Timestamp::from_millisecond(at.ms()).ok()?.to_zoned(zone);
        let offset = Some(zoned.strftime("%:z").to_string());
        Some(Self { civil: zoned.datetime(), offset, zone: Some(name.to_owned()) })
    }

    /// A time of a stop of a train; `None` if the file does not say on which day the train sets out.
    pub(super) fn of_stop(file: &SaleFile, stop: &Stop, time: Option<ClockTime>) -> Option<Self> {
        let local = time?.on(file.runs_on?);
        let zone = stop.time_zone.as_ref();
        let zone = zone.or_else(|| file.event.as_ref()?.time_zone.as_ref());
        match zone {
            Some(zone) => Self::at(zone.moments(local)[0], Some(zone)),
            None => {
                let civil = local.to_string().parse().ok()?;
                Some(Self { civil, offset: None, zone: None })
            }
        }
    }

    /// ISO 8601, with the offset if it is known: `2026-11-21T20:00:00+01:00`.
    pub(super) fn iso(&self) -> String {
        let offset = self.offset.as_deref().unwrap_or_default();
        format!("{}{offset}", self.civil.strftime("%Y-%m-%dT%H:%M:%S"))
    }

    /// Without words: `2026-11-21 20:00`.
    pub(super) fn short(&self) -> String {
        self.civil.strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// In English and Chinese, with the zone: `Saturday 21 November 2026, 20:00 (Europe/Vienna)`.
    pub(super) fn words(&self) -> [String; 2] {
        let zone = self.zone.as_ref();
        let [english, chinese] = [" (", "（"];
        let english = zone.map_or_else(String::new, |zone| format!("{english}{zone})"));
        let chinese = zone.map_or_else(String::new, |zone| format!("{chinese}{zone}）"));
        let weekday = match self.civil.weekday() {
            Weekday::Monday => "星期一",
            Weekday::Tuesday => "星期二",
            Weekday::Wednesday => "星期三",
            Weekday::Thursday => "星期四",
            Weekday::Friday => "星期五",
            Weekday::Saturday => "星期六",
            Weekday::Sunday => "星期日",
        };
        let (year, month, day) = (self.civil.year(), self.civil.month(), self.civil.day());
        let time = self.civil.strftime("%H:%M");
        [
            format!("{}{english}", self.civil.strftime("%A %-d %B %Y, %H:%M")),
            format!("{year}年{month}月{day}日{weekday} {time}{chinese}"),
        ]
    }
}

/// An amount as a decimal number with as many places as ISO 4217 gives the currency: `25.00`, `1170`, `1.250`.
pub(super) fn decimal(amount: MinorUnits, currency: Currency) -> String {
    let (minor, places) = (amount.0.unsigned_abs(), usize::from(currency.exponent()));
    let sign = if amount.0 < 0 { "-" } else { "" };
    let digits = format!("{minor:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    if places == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// The least and the most that a ticket of a tier costs, in minor units; `None` of a tier without a price.
pub(super) fn price_range(tier: &TierFile) -> Option<(MinorUnits, MinorUnits)> {
    if let Some(price) = tier.price_minor {
        return Some((price, price));
    }
    let fares = || tier.fares.iter().map(|fare| fare.price_minor);
    Some((fares().min()?, fares().max()?))
}

/// A price or a range of prices, without words: `EUR 25.00`, `CNY 185.00–585.00`.
pub(super) fn price_text((least, most): (MinorUnits, MinorUnits), currency: Currency) -> String {
    let (from, to) = (decimal(least, currency), decimal(most, currency));
    if least == most { format!("{currency} {from}") } else { format!("{currency} {from}–{to}") }
}

/// The paragraphs of a text in Markdown, without its marks: what people read of it. Each item of a list is a paragraph,
/// HTML stays the text that was written, and of pictures and links their words stay.
pub(super) fn paragraphs(markdown: &str) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut text = String::new();
    for event in Parser::new(markdown) {
        match event {
            Event::Text(part)
            | Event::Code(part)
            | Event::InlineMath(part)
            | Event::DisplayMath(part)
            | Event::Html(part)
            | Event::InlineHtml(part)
            | Event::FootnoteReference(part) => text.push_str(&part),
            Event::SoftBreak | Event::HardBreak => text.push('\n'),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::HtmlBlock,
            ) => {
                let paragraph = std::mem::take(&mut text);
                if !paragraph.trim().is_empty() {
                    paragraphs.push(paragraph.trim().to_owned());
                }
            }
            // Inside of a paragraph, or without words.
            Event::Start(_) | Event::End(_) | Event::Rule | Event::TaskListMarker(_) => {}
        }
    }
    paragraphs
}

/// The beginning of a text in one line, of at most `most` characters, with an ellipsis if there is more.
pub(super) fn beginning(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let cut: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

/// The number of a train: the words of its title to the first that has a digit, such as `G2026`, `Nightjar 471`.
pub(super) fn train_number(title: &str) -> Option<String> {
    let words: Vec<&str> = title.split_whitespace().collect();
    let end = words.iter().position(|word| word.chars().any(|c| c.is_ascii_digit()))?;
    words.get(..=end).map(|words| words.join(" "))
}
