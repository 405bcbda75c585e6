//! The board of a waiting room in Redis: single commands and pipelines, no script.
//!
//! The copy of the room's state is the last member of a sorted set. Its score is the number of the record, and members
//! with the same score are in the order of their texts, which begin with the time at which they were made. So in
//! whatever order writers come, the copy never goes back; earlier members are removed.
//!
//! Counters are fields that writers add to. The commands of one call are not one step: a reader in between
//! sees a member's count a moment later. All keys expire by themselves a day after the last write; the keys of a single
//! second expire after a minute at most.

use std::collections::{BTreeMap, HashMap};

use redis::Pipeline;

use super::keys::RoomKeys;
use super::{Connection, broken};
use engine::domain::admission::room::counts::{Came, Coming, MarkCounts, ReservationReport, Tally};
use engine::domain::admission::room::serving::Reservations;
use engine::domain::admission::room::slot::Asked;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::ports::{Board, Shown, Stored};

/// Time for which what is not written any more is kept, in seconds.
const KEPT_SECONDS: u32 = 86_400;
/// The same of the reservations of one second.
const SECOND_KEPT_SECONDS: u32 = 60;
/// The same of the buyers who asked in one second: as many as the slot takes questions.
const ASKED_KEPT_SECONDS: u32 = 10;
/// Seconds over which reservations are summed.
const SUMMED_SECONDS: i64 = 5;
/// Digits of the time that a shown text begins with.
const TIME_DIGITS: usize = 20;

/// The board, in Redis.
#[derive(Debug, Clone)]
pub struct RedisBoard {
    connection: Connection,
}

/// The text of what is shown: the time, the view and the document, a line each. JSON has no line feed.
fn shown_text(shown: &Shown) -> Stored<String> {
    let view = serde_json::to_string(&shown.view).map_err(broken)?;
    Ok(format!("{:0TIME_DIGITS$}\n{view}\n{}", shown.made_at.ms(), shown.document))
}

fn read_shown(text: &str) -> Stored<Shown> {
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().ok_or_else(|| broken("a board lacks a line"));
    let made_at = Timestamp::from_ms(line()?.parse().map_err(broken)?);
    let view = serde_json::from_str(line()?).map_err(broken)?;
    Ok(Shown { view, document: line()?.to_owned(), made_at })
}

/// What a mark is counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Came,
    Entered,
    Ordered,
    Looked,
    AskedAfterLook,
    AskedLate,
}

impl Counted {
    const ALL: [Self; 6] = [
        Self::Came,
        Self::Entered,
        Self::Ordered,
        Self::Looked,
        Self::AskedAfterLook,
        Self::AskedLate,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Came => "came",
            Self::Entered => "entered",
            Self::Ordered => "ordered",
            Self::Looked => "looked",
            Self::AskedAfterLook => "asked",
            Self::AskedLate => "asked_late",
        }
    }

    fn field(self, mark: u64) -> String {
        format!("{}:{mark}", self.as_str())
    }

    /// What a field counts, and of which mark; `None` of a total.
    fn of_field(field: &str) -> Option<(Self, u64)> {
        let (name, mark) = field.split_once(':')?;
        let counted = Self::ALL.into_iter().find(|counted| counted.as_str() == name)?;
        Some((counted, mark.parse().ok()?))
    }
}

/// Begins the counters of a room, unless they have begun.
fn counting(keys: RoomKeys<'_>, now: Timestamp) -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.hset_nx(keys.counts(), "epoch", now.ms().max(0)).ignore();
    pipeline.expire(keys.counts(), KEPT_SECONDS.into()).ignore();
    pipeline
}

/// The second of a time, since the Unix epoch.
fn second(now: Timestamp) -> i64 {
    now.ms().div_euclid(1_000)
}

impl RedisBoard {
    /// The board behind a connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }
}

impl Board for RedisBoard {
    async fn shown(&self, sale: &SaleId) -> Stored<Option<Shown>> {
        let mut last = redis::cmd("ZRANGE");
        last.arg(RoomKeys(sale).board()).arg(-1).arg(-1);
        let texts: Vec<String> = self.connection.query(&last).await?;
        texts.first().map(|text| read_shown(text)).transpose()
    }

    async fn show(&self, sale: &SaleId, shown: &Shown) -> Stored<()> {
        let key = RoomKeys(sale).board();
        let mut pipeline = redis::pipe();
        pipeline.zadd(&key, shown_text(shown)?, shown.view.number).ignore();
        pipeline.zremrangebyrank(&key, 0, -2).ignore();
        pipeline.expire(&key, KEPT_SECONDS.into()).ignore();
        self.connection.pipeline(&pipeline).await
    }

    async fn take_turn(&self, sale: &SaleId, ms: u32) -> Stored<bool> {
        let mut set = redis::cmd("SET");
        set.arg(RoomKeys(sale).turn()).arg("taken").arg("NX").arg("PX").arg(ms);
        let taken: Option<String> = self.connection.query(&set).await?;
        Ok(taken.is_some())
    }

    async fn take_draw(&self, sale: &SaleId, seconds: u32) -> Stored<bool> {
        let mut set = redis::cmd("SET");
        set.arg(RoomKeys(sale).draw()).arg("requested").arg("NX").arg("EX").arg(seconds);
        let taken: Option<String> = self.connection.query(&set).await?;
        Ok(taken.is_some())
    }

    async fn tally(&self, sale: &SaleId, oldest_mark: u64, now: Timestamp) -> Stored<Tally> {
        let keys = RoomKeys(sale);
        let mut pipeline = counting(keys, now);
        pipeline.hgetall(keys.counts());
        for second in second(now) - SUMMED_SECONDS..second(now) {
            pipeline.cmd("HMGET").arg(keys.second(second)).arg(&["all", "bad"]);
            pipeline.cmd("ZCARD").arg(keys.buyers(second));
        }
        type Second = (Option<u64>, Option<u64>);
        type Read =
            (HashMap<String, u64>, Second, u64, Second, u64, Second, u64, Second, u64, Second, u64);
        let (counts, a, in_a, b, in_b, c, in_c, d, in_d, e, in_e): Read =
            self.connection.pipeline(&pipeline).await?;
        let mut reservations = Reservations::default();
        let requests = [in_a, in_b, in_c, in_d, in_e].into_iter().sum();
        for (all, bad) in [a, b, c, d, e] {
            reservations.all += all.unwrap_or(0);
            reservations.bad += bad.unwrap_or(0);
        }
        let total = |name: &str| counts.get(name).copied().unwrap_or(0);
        let mut marks: BTreeMap<u64, MarkCounts> = BTreeMap::new();
        let mut old = Vec::new();
        for (field, count) in &counts {
            match Counted::of_field(field) {
                Some((_, mark)) if mark < oldest_mark => old.push(field),
                Some((counted, mark)) => {
                    let of = marks.entry(mark).or_default();
                    match counted {
                        Counted::Came => of.came = *count,
                        Counted::Entered => of.entered = *count,
                        Counted::Ordered => of.ordered = *count,
                        Counted::Looked => of.looked = *count,
                        Counted::AskedAfterLook => of.asked = *count,
                        Counted::AskedLate => of.asked_late = *count,
                    }
                }
                None => {}
            }
        }
        if !old.is_empty() {
            let mut drop = redis::cmd("HDEL");
            drop.arg(keys.counts()).arg(&old);
            let _dropped: u64 = self.connection.query(&drop).await?;
        }
        let total_of = |counted: Counted| total(counted.as_str());
        Ok(Tally {
            epoch: total("epoch"),
            came: total_of(Counted::Came),
            looked: total_of(Counted::Looked),
            asked_after_look: total_of(Counted::AskedAfterLook),
            asked_late: total_of(Counted::AskedLate),
            held: total("held"),
            marks,
            reservations,
            asked: requests,
        })
    }

    async fn came(&self, sale: &SaleId, came: &Came, now: Timestamp) -> Stored<()> {
        let keys = RoomKeys(sale);
        let mut pipeline = counting(keys, now);
        let mark = came.entry.mark;
        let mut add = |field: &str| {
            pipeline.hincr(keys.counts(), field, 1).ignore();
        };
        // Each with its total.
        let mut count = |counted: Counted, mark: u64| {
            add(counted.as_str());
            add(&counted.field(mark));
        };
        match came.how {
            Coming::Asks { due_mark } => {
                count(Counted::Came, due_mark);
                add(&Counted::Entered.field(mark));
            }
            Coming::Looks { due_mark } => {
                count(Counted::Came, due_mark);
                count(Counted::Looked, mark);
            }
            Coming::Decides { is_late } => {
                let counted = if is_late { Counted::AskedLate } else { Counted::AskedAfterLook };
                count(counted, mark);
                add(&Counted::Entered.field(mark));
            }
        }
        self.connection.pipeline(&pipeline).await
    }

    async fn reserved(
        &self,
        sale: &SaleId,
        report: &ReservationReport,
        now: Timestamp,
    ) -> Stored<()> {
        let keys = RoomKeys(sale);
        let of_second = keys.second(second(now));
        let mut pipeline = redis::pipe();
        if let Some(entry) = report.entry.filter(|_| report.held > 0) {
            pipeline = counting(keys, now);
            pipeline.hincr(keys.counts(), "held", report.held).ignore();
            pipeline.hincr(keys.counts(), Counted::Ordered.field(entry.mark), 1).ignore();
        }
        pipeline.hincr(&of_second, "all", 1).ignore();
        if report.is_bad {
            pipeline.hincr(&of_second, "bad", 1).ignore();
        }
        pipeline.expire(&of_second, SECOND_KEPT_SECONDS.into()).ignore();
        self.connection.pipeline(&pipeline).await
    }

    async fn admitted(&self, sale: &SaleId, buyer: &UserId, attempt: u16) -> Stored<()> {
        let admitted = RoomKeys(sale).admitted();
        let mut pipeline = redis::pipe();
        // Of two admissions that are given at once, the later stays.
        pipeline.cmd("ZADD").arg(&admitted).arg("GT").arg(attempt).arg(buyer.as_str()).ignore();
        pipeline.expire(&admitted, KEPT_SECONDS.into()).ignore();
        self.connection.pipeline(&pipeline).await
    }

    async fn asked(&self, sale: &SaleId, buyer: &UserId, now: Timestamp) -> Stored<Asked> {
        let (keys, second) = (RoomKeys(sale), second(now));
        let of_second = keys.buyers(second);
        let mut pipeline = redis::pipe();
        pipeline.cmd("ZINCRBY").arg(&of_second).arg(1).arg(buyer.as_str());
        pipeline.cmd("ZCARD").arg(&of_second);
        pipeline.expire(&of_second, ASKED_KEPT_SECONDS.into()).ignore();
        pipeline.cmd("ZCARD").arg(keys.buyers(second - 1));
        pipeline.cmd("ZSCORE").arg(keys.admitted()).arg(buyer.as_str());
        let (own, buyers, before, latest): (u64, u64, u64, Option<u16>) =
            self.connection.pipeline(&pipeline).await?;
        Ok(Asked { own, buyers, before, latest: latest.unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::admission::room::serving::Mode;
    use engine::domain::admission::room::view::View;

    use super::*;

    fn shown(made_ms: i64) -> Shown {
        let view = View {
            number: 7,
            mode: Mode::Open,
            sold_out: false,
            clock_ms: 0,
            requests_per_second: 8_000,
            groups: Vec::new(),
        };
        Shown {
            view,
            document: r#"{"notice":"a\nb"}"#.to_owned(),
            made_at: Timestamp::from_ms(made_ms),
        }
    }

    #[test]
    fn what_is_shown_is_read_back_and_its_texts_are_in_the_order_of_their_times() {
        let times = [0, 9, 10, 1_800_000_000_000, 10_000_000_000_000];
        let texts = times.map(|ms| shown_text(&shown(ms)).unwrap());
        assert!(texts.is_sorted_by(|earlier, later| earlier < later), "{texts:?}");
        for (ms, text) in times.into_iter().zip(&texts) {
            assert_eq!(read_shown(text), Ok(shown(ms)));
        }
        for bad in ["", "7", "7\n{}", "x\n{}\n{}", "7\n{}\n{}"] {
            assert!(read_shown(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_field_of_a_mark_is_no_total() {
        assert_eq!(Counted::of_field(&Counted::Came.field(12)), Some((Counted::Came, 12)));
        assert_eq!(Counted::of_field(&Counted::Ordered.field(0)), Some((Counted::Ordered, 0)));
        for total in ["epoch", "came", "held", "looked", "asked_late", "came:", "left:7"] {
            assert_eq!(Counted::of_field(total), None, "{total}");
        }
    }
}
