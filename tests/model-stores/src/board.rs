//! The board of a waiting room as Redis keeps it.

use std::collections::BTreeMap;

use engine::domain::admission::room::counts::{Came, ReservationReport, Tally};
use engine::domain::admission::room::serving::Reservations;
use engine::domain::admission::room::slot::Asked;
use engine::domain::basics::ids::UserId;
use engine::domain::basics::time::Timestamp;
use engine::ports::Shown;

/// Seconds over which reservations are summed.
const SUMMED_SECONDS: i64 = 5;

/// The board of one room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BoardModel {
    pub shown: Option<Shown>,
    /// End of the time in which one process has the turn to itself.
    pub turn_until: Option<Timestamp>,
    /// What is counted; none before the first count.
    pub tally: Option<Tally>,
    pub seconds: BTreeMap<i64, Reservations>,
    /// End of the time in which nobody else requests the draw.
    pub draw_until: Option<Timestamp>,
    /// By second the buyers who asked at the sale's slot, each with how often.
    pub asked: BTreeMap<i64, BTreeMap<UserId, u64>>,
    /// The latest admission of each buyer.
    pub admitted: BTreeMap<UserId, u16>,
}

impl BoardModel {
    /// See [`engine::ports::Board::show`].
    pub fn show(&mut self, shown: &Shown) {
        let order = |shown: &Shown| (shown.view.number, shown.made_at);
        if self.shown.as_ref().is_none_or(|known| order(known) <= order(shown)) {
            self.shown = Some(shown.clone());
        }
    }

    /// See [`engine::ports::Board::take_turn`].
    pub fn take_turn(&mut self, ms: u32, now: Timestamp) -> bool {
        let is_free = self.turn_until.is_none_or(|until| until <= now);
        if is_free {
            self.turn_until = Some(now.plus_ms(ms.into()));
        }
        is_free
    }

    /// See [`engine::ports::Board::take_draw`].
    pub fn take_draw(&mut self, seconds: u32, now: Timestamp) -> bool {
        let is_free = self.draw_until.is_none_or(|until| until <= now);
        if is_free {
            self.draw_until = Some(now.plus_seconds(seconds.into()));
        }
        is_free
    }

    fn counted(&mut self, now: Timestamp) -> &mut Tally {
        let epoch = u64::try_from(now.ms()).unwrap_or(0);
        self.tally.get_or_insert_with(|| Tally { epoch, ..Tally::default() })
    }

    /// See [`engine::ports::Board::tally`].
    pub fn tally(&mut self, oldest_mark: u64, now: Timestamp) -> Tally {
        let second = now.ms().div_euclid(1_000);
        let last = self.seconds.range(second - SUMMED_SECONDS..second);
        let reservations = last.fold(Reservations::default(), |sum, (_, of)| Reservations {
            all: sum.all + of.all,
            bad: sum.bad + of.bad,
        });
        let asked = self.asked.range(second - SUMMED_SECONDS..second);
        let asked = asked.map(|(_, buyers)| buyers.len() as u64).sum();
        let tally = self.counted(now);
        tally.marks.retain(|mark, _| *mark >= oldest_mark);
        Tally { reservations, asked, ..tally.clone() }
    }

    /// See [`engine::ports::Board::came`].
    pub fn came(&mut self, came: &Came, now: Timestamp) {
        self.counted(now).count(came);
    }

    /// See [`engine::ports::Board::asked`].
    pub fn asked(&mut self, buyer: &UserId, now: Timestamp) -> Asked {
        let second = now.ms().div_euclid(1_000);
        let before = self.asked.get(&(second - 1)).map_or(0, |asked| asked.len() as u64);
        let asked = self.asked.entry(second).or_default();
        let own = asked.entry(buyer.clone()).or_default();
        *own += 1;
        let (own, latest) = (*own, self.admitted.get(buyer).copied().unwrap_or(0));
        Asked { own, buyers: asked.len() as u64, before, latest }
    }

    /// See [`engine::ports::Board::admitted`].
    pub fn admitted(&mut self, buyer: &UserId, attempt: u16) {
        let latest = self.admitted.entry(buyer.clone()).or_default();
        *latest = attempt.max(*latest);
    }

    /// See [`engine::ports::Board::reserved`].
    pub fn reserved(&mut self, report: &ReservationReport, now: Timestamp) {
        let second = self.seconds.entry(now.ms().div_euclid(1_000)).or_default();
        second.all += 1;
        second.bad += u64::from(report.is_bad);
        if let Some(entry) = report.entry.filter(|_| report.held > 0) {
            let tally = self.counted(now);
            tally.held += report.held;
            tally.marks.entry(entry.mark).or_default().ordered += 1;
        }
    }
}
