//! The board of a waiting room as Redis keeps it.

use std::collections::BTreeMap;

use engine::domain::admission::room::counts::{Came, ReservationReport, Tally};
use engine::domain::admission::room::serving::Reservations;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::ports::{Asked, Shown};

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
    /// By second the orders for which somebody asked at the sale's slot, each with how often.
    pub asked: BTreeMap<i64, BTreeMap<OrderNumber, u64>>,
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
        let asked = asked.map(|(_, orders)| orders.len() as u64).sum();
        let tally = self.counted(now);
        tally.marks.retain(|mark, _| *mark >= oldest_mark);
        Tally { reservations, asked, ..tally.clone() }
    }

    /// See [`engine::ports::Board::came`].
    pub fn came(&mut self, came: &Came, now: Timestamp) {
        self.counted(now).count(came);
    }

    /// See [`engine::ports::Board::asked`].
    pub fn asked(&mut self, order: OrderNumber, now: Timestamp) -> Asked {
        let asked = self.asked.entry(now.ms().div_euclid(1_000)).or_default();
        let own = asked.entry(order).or_default();
        *own += 1;
        let own = *own;
        Asked { own, orders: asked.len() as u64 }
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
