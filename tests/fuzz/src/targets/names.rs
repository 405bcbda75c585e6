//! The small texts that stand in paths, queries, keys and files: one value has one text.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use engine::domain::basics::calendar::{self as timetable, ClockTime};
use engine::domain::basics::ids::{
    AttendeeId, Epoch, PaymentId, ProviderId, RequestFingerprint, SaleId, SeatName, StopId, TierId,
    UserId,
};
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::{Gene, Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::timetable::CallMark;
use importers::gtfs::{Class, Day};
use importers::pretix::Point;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sample::NOW;
use crate::{Outcome, Target, must};

pub(crate) const NAMES: Target = Target {
    name: "names",
    about: "Ids, order numbers, currencies and times: what is read is printed and read as the same; \
            an id is its text, an order number has one text, and carries its buyer's gene.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return Outcome::Refused };
    let ids = [
        is_its_text::<SaleId>(text),
        is_its_text::<TierId>(text),
        is_its_text::<AttendeeId>(text),
        is_its_text::<SeatName>(text),
        is_its_text::<StopId>(text),
        is_its_text::<Epoch>(text),
        is_its_text::<ProviderId>(text),
        is_its_text::<PaymentId>(text),
        is_its_text::<RequestFingerprint>(text),
        is_its_text::<OrderNumber>(text),
        is_its_text::<timetable::Day>(text),
        is_its_text::<ClockTime>(text),
        mark(text),
        user(text),
        currency(text),
        time(text),
        day(text),
    ];
    // Flags of the importers have no text of their own to go back to.
    let flags = [text.parse::<Class>().is_ok(), text.parse::<Point>().is_ok()];
    Outcome::from_accepted(ids.into_iter().chain(flags).any(|read| read))
}

/// Reads a text; what it says survives being printed and being written as JSON.
fn survives<T>(text: &str) -> Option<T>
where
    T: FromStr<Err: Debug> + Display + Serialize + DeserializeOwned + PartialEq + Debug,
{
    let read: T = text.parse().ok()?;
    let again: T = must(read.to_string().parse(), "what was printed is read");
    assert_eq!(read, again, "{text:?} is another value once printed");
    let json = must(serde_json::to_string(&read), "it is written as JSON");
    let again: T = must(serde_json::from_str(&json), "its JSON is read");
    assert_eq!(read, again, "{text:?} is another value once it was JSON");
    Some(read)
}

/// The same, of a value that has one text only.
fn is_its_text<T>(text: &str) -> bool
where
    T: FromStr<Err: Debug> + Display + Serialize + DeserializeOwned + PartialEq + Debug,
{
    let read = survives::<T>(text);
    if let Some(read) = &read {
        assert_eq!(read.to_string(), text, "one value has two texts");
        assert!(!text.contains(['\n', '\0']), "{text:?} could not stand in a key");
    }
    read.is_some()
}

/// A buyer's orders lie where the buyer does, whatever the buyer is called.
fn user(text: &str) -> bool {
    let Ok(user) = UserId::new(text) else { return false };
    is_its_text::<UserId>(text);
    let number = Mint::new(7).mint(NOW, &user);
    assert_eq!(number.gene(), Gene::from_text(text));
    assert!(number.get() < 1 << 63 && number.minted_at() == NOW);
    true
}

/// The place of a call is a key: it has one text.
fn mark(text: &str) -> bool {
    let Ok(mark) = text.parse::<CallMark>() else { return false };
    assert_eq!(mark.to_string(), text);
    true
}

fn currency(text: &str) -> bool {
    let Ok(currency) = Currency::new(text) else { return false };
    assert_eq!(currency.to_string(), text.to_ascii_uppercase());
    assert_eq!(Currency::new(&currency.to_string()), Ok(currency));
    true
}

fn time(text: &str) -> bool {
    let Some(time) = survives::<Timestamp>(text) else { return false };
    // Text order is time order: years have four digits and every time the same form.
    assert_eq!(time.to_string().len(), "2026-11-21T10:00:00.000Z".len(), "{text:?}");
    true
}

fn day(text: &str) -> bool {
    let Ok(day) = text.parse::<Day>() else { return false };
    assert_eq!(day.to_string().parse(), Ok(day));
    true
}
