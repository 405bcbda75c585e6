//! What a seating plan or a timetable does not say: the terms of the sale.

use engine::domain::basics::calendar::{ClockTime, Day};
use engine::domain::basics::ids::{SaleId, TierId};
use engine::domain::basics::money::Currency;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{AttendeeRule, GateSettings, SaleFile, Stop, TierFile};

use super::Error;

/// Duration of a sale without an end, in seconds: thirty days.
const DEFAULT_SECONDS: i64 = 30 * 86_400;

/// The terms of an imported sale.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The sale's id; without it the importer makes one from the source's own name.
    pub sale: Option<SaleId>,
    /// Its title; without it the source's own name.
    pub title: Option<String>,
    /// The currency of the prices; without it the one usual for the source.
    pub currency: Option<Currency>,
    /// Time at which selling begins.
    pub opens_at: Timestamp,
    /// Time at which selling ends; without it when the train leaves, where the source says, or
    /// after thirty days.
    pub closes_at: Option<Timestamp>,
    /// Most tickets of one buyer.
    pub limit_per_buyer: u16,
    /// Time that a buyer has to pay, in seconds.
    pub pay_window_seconds: u32,
    /// The rule for naming the attendees of tickets.
    pub attendees: AttendeeRule,
    /// Settings of the admission gate.
    pub gate: GateSettings,
}

impl Terms {
    /// Selling from `opens_at` for thirty days, five tickets a buyer, ten minutes to pay.
    #[must_use]
    pub fn opening(opens_at: Timestamp) -> Self {
        Self {
            sale: None,
            title: None,
            currency: None,
            opens_at,
            closes_at: None,
            limit_per_buyer: 5,
            pay_window_seconds: 600,
            attendees: AttendeeRule::default(),
            gate: GateSettings::default(),
        }
    }

    /// The sale file of these terms. `title`, `id`, `currency` and `closes_at` are what the source
    /// offers where the terms say nothing.
    ///
    /// # Errors
    /// [`Error::Flags`] if neither the terms nor the source give an id.
    pub(super) fn sale_file(
        &self,
        title: &str,
        id: Option<String>,
        currency: Currency,
        closes_at: Option<Timestamp>,
        stops: Vec<Stop>,
        tiers: Vec<TierFile>,
    ) -> Result<SaleFile, Error> {
        let offered = || id.and_then(|id| SaleId::new(id).ok());
        let sale = self.sale.clone().or_else(offered).ok_or_else(|| {
            Error::Flags(format!("{title:?} makes no sale id; give one with --sale"))
        })?;
        let title = self.title.clone().unwrap_or_else(|| title.to_owned());
        let opens_at = self.opens_at;
        let closes_at = self.closes_at.or(closes_at);
        let closes_at = closes_at.unwrap_or(opens_at.plus_seconds(DEFAULT_SECONDS));
        let (limit, pay_window) = (self.limit_per_buyer, self.pay_window_seconds);
        let currency = self.currency.unwrap_or(currency);
        let selling = opens_at..closes_at;
        let file = SaleFile::new(sale, title, currency, selling, limit, pay_window, tiers);
        Ok(SaleFile { attendees: self.attendees, stops, gate: self.gate, ..file })
    }
}

/// The file of a train with the day on which it sets out. Times without a day say nothing, and are taken away.
pub(super) fn running_on(mut file: SaleFile, runs_on: Option<Day>) -> SaleFile {
    if runs_on.is_none() || file.stops.is_empty() {
        for stop in &mut file.stops {
            (stop.arrives, stop.departs) = (None, None);
        }
        return file;
    }
    SaleFile { runs_on, ..file }
}

/// Takes away the times of stops that are before one that stands before them: the source has been told so, and
/// its order decides. Gives the number of them.
pub(super) fn keep_ordered_times(stops: &mut [Stop]) -> usize {
    let (mut last, mut taken): (Option<ClockTime>, usize) = (None, 0);
    for time in stops.iter_mut().flat_map(|stop| [&mut stop.arrives, &mut stop.departs]) {
        let kept = time.filter(|time| last.is_none_or(|last| *time >= last));
        taken += usize::from(kept != *time);
        *time = kept;
        last = time.or(last);
    }
    taken
}

/// Gives each tier an id: the slug of its name where that is free, else `t` and the tier's number
/// in the source (from 1), which stays the same when another tier is renamed.
pub(super) fn tier_id(slug: Option<String>, number: usize, taken: &[TierId]) -> TierId {
    let free = |id: &TierId| !taken.contains(id);
    let named = slug.and_then(|slug| TierId::new(slug).ok()).filter(free);
    let mut candidates = (0..).map(|again: usize| match again {
        0 => format!("t{number}"),
        again => format!("t{number}-{again}"),
    });
    named
        .or_else(|| candidates.find_map(|id| TierId::new(id).ok().filter(free)))
        .unwrap_or_else(|| unreachable!("a counted tier id is always a slug"))
}
