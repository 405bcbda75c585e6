//! Trades: payments that a merchant has asked WeChat Pay or Alipay for, by the merchant's own number.
//!
//! Time is an argument. With a file each change is a line of it, written before it is answered.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::AttemptKey;
use fake_limits::table::{WECHAT_REFUND_PARTS, WECHAT_REFUND_SECONDS};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::account::broken;
use crate::bills::Bill;
use crate::journal::Journal;
use crate::ledger::{LedgerEntry, LedgerRefund};

/// What has become of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It waits for its payer.
    Waiting,
    /// Its payer is slow: the money comes then, in milliseconds.
    Paying { until_ms: i64 },
    /// It is paid, since then.
    Paid { at_ms: i64 },
    /// Nobody can pay it, since then.
    Closed { at_ms: i64 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trade {
    /// The merchant's number of it.
    pub(crate) number: String,
    /// The provider's number of it.
    pub(crate) payment: PaymentId,
    pub(crate) terms: Terms,
    pub(crate) created_ms: i64,
    /// When its payer first saw it.
    pub(crate) opened_ms: Option<i64>,
    pub(crate) state: State,
    /// True if the merchant has taken the notification of its payment.
    pub(crate) is_told: bool,
    pub(crate) refunds: Vec<Refund>,
}

/// What the merchant asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terms {
    pub(crate) fen: MinorUnits,
    pub(crate) subject: String,
    pub(crate) expires_ms: i64,
    /// True if the merchant has said nothing of that.
    pub(crate) is_default_life: bool,
    pub(crate) notify_url: String,
    pub(crate) return_url: Option<String>,
}

/// Money that goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refund {
    /// The merchant's number of it.
    pub(crate) number: String,
    pub(crate) fen: MinorUnits,
    pub(crate) created_ms: i64,
    /// True as soon as the payer has it.
    pub(crate) is_done: bool,
}

/// What became of asking for a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It waits, or waited already.
    Open(Box<Trade>),
    /// One of this number is on other terms.
    Differs,
    Paid,
    Closed,
}

/// What became of closing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Close {
    /// It is closed now.
    Done(Box<Trade>),
    /// It was closed before.
    Before,
    /// There is none of this number.
    Absent,
    /// It is too young.
    TooEarly,
    Paid,
    /// Its payer is at it.
    Paying,
}

/// What became of paying one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pay {
    /// The money comes, now or when its payer is done.
    Taken(Box<Trade>),
    /// It was paid before.
    Before,
    /// It is closed, or its time is over.
    TooLate,
}

/// What became of asking for a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refunded {
    /// It is made now.
    Made(Trade, Refund),
    /// One of this number was made before.
    Before(Trade, Refund),
    /// One of this number is of another amount.
    Differs,
    /// There is no such trade.
    Absent,
    /// The trade is not paid.
    NotPaid,
    /// More than is left of it.
    TooMuch,
    /// The order has had one in the last minute.
    TooSoon,
    /// The order has had as many as it may.
    TooMany,
}

/// Rules in which the providers differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How the provider's numbers begin.
    pub(crate) prefix: &'static str,
    /// What separates order and attempt in the merchant's numbers.
    pub(crate) separator: char,
    /// True if a trade closes by itself when its time is over; else it only cannot be paid any more.
    pub(crate) closes_at_expiry: bool,
    /// How long after its making a trade may not be closed.
    pub(crate) no_close_for: Duration,
    /// True if an order has one refund a minute, and fifty at most.
    pub(crate) rations_refunds: bool,
}

/// All trades of a merchant.
#[derive(Debug)]
pub(crate) struct Trades {
    rules: Rules,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    by_number: BTreeMap<String, Trade>,
    numbers: BTreeMap<PaymentId, String>,
    journal: Option<Journal>,
}

impl Book {
    fn apply(&mut self, trade: Trade) {
        self.numbers.insert(trade.payment.clone(), trade.number.clone());
        self.by_number.insert(trade.number.clone(), trade);
    }

    /// Writes a trade as it is now.
    fn change(&mut self, trade: Trade) -> Result<(), Error> {
        if let Some(journal) = &mut self.journal {
            let mut line = serde_json::to_vec(&trade).map_err(broken)?;
            line.push(b'\n');
            journal.append(&line).map_err(Error::io("keeping a trade"))?;
        }
        self.apply(trade);
        Ok(())
    }
}

impl Trade {
    /// The trade as it is at a time.
    fn at(mut self, now: Timestamp, rules: Rules) -> Self {
        match self.state {
            State::Paying { until_ms } if until_ms <= now.ms() => {
                self.state = State::Paid { at_ms: until_ms };
            }
            State::Waiting if rules.closes_at_expiry && self.terms.expires_ms <= now.ms() => {
                self.state = State::Closed { at_ms: self.terms.expires_ms };
            }
            State::Waiting | State::Paying { .. } | State::Paid { .. } | State::Closed { .. } => {}
        }
        self
    }

    /// When it was paid.
    pub(crate) fn paid_ms(&self) -> Option<i64> {
        match self.state {
            State::Paid { at_ms } => Some(at_ms),
            State::Waiting | State::Paying { .. } | State::Closed { .. } => None,
        }
    }

    /// When its money came, or comes.
    pub(crate) fn money_ms(&self) -> Option<i64> {
        match self.state {
            State::Paid { at_ms } => Some(at_ms),
            State::Paying { until_ms } => Some(until_ms),
            State::Waiting | State::Closed { .. } => None,
        }
    }

    /// As it is to who does not know of money that came after a time.
    pub(crate) fn known_before(self, known_to_ms: i64) -> Self {
        match self.state {
            State::Paid { at_ms } if at_ms > known_to_ms => Self { state: State::Waiting, ..self },
            State::Waiting | State::Paying { .. } | State::Paid { .. } | State::Closed { .. } => {
                self
            }
        }
    }

    /// True if a bill has a line of it.
    pub(crate) fn is_in(&self, bill: &Bill) -> bool {
        let made = |refund: &Refund| refund.is_done && bill.has(refund.created_ms);
        let is_paid = self.paid_ms().is_some_and(|paid_ms| bill.has(paid_ms));
        is_paid || self.refunds.iter().any(made)
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> MinorUnits {
        self.terms.fen - self.refunds.iter().map(|refund| refund.fen).sum::<MinorUnits>()
    }

    /// The attempt that its number names.
    fn attempt(&self, rules: Rules) -> Option<AttemptKey> {
        let parts: Vec<&str> = self.number.split(rules.separator).collect();
        let ([order, attempt] | [_, order, attempt]) = parts[..] else { return None };
        format!("{order}-{attempt}").parse().ok()
    }

    /// The deployment that its number names.
    fn deployment(&self, rules: Rules) -> Option<String> {
        let parts: Vec<&str> = self.number.split(rules.separator).collect();
        let [deployment, _, _] = parts[..] else { return None };
        Some(deployment.to_owned())
    }
}

impl Trades {
    /// Reads the trades in `file`, creating it if it is absent; without one they are in memory.
    pub(crate) fn open(file: Option<&Path>, rules: Rules) -> Result<Self, Error> {
        let mut book = Book::default();
        if let Some(path) = file {
            let read = |line: &[u8]| serde_json::from_slice(line).map(|trade| book.apply(trade));
            let journal = Journal::open(path, read)?;
            book.journal = Some(journal);
        }
        Ok(Self { rules, book: Mutex::new(book) })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A trade by the merchant's number.
    pub(crate) fn by_number(&self, number: &str, now: Timestamp) -> Option<Trade> {
        self.book().by_number.get(number).cloned().map(|trade| trade.at(now, self.rules))
    }

    /// A trade by the provider's number.
    pub(crate) fn by_payment(&self, payment: &str, now: Timestamp) -> Option<Trade> {
        let payment = PaymentId::new(payment).ok()?;
        let number = self.book().numbers.get(&payment).cloned()?;
        self.by_number(&number, now)
    }

    /// The trade that has a refund of this number.
    pub(crate) fn by_refund(&self, refund: &str, now: Timestamp) -> Option<Trade> {
        let book = self.book();
        let has = |trade: &&Trade| trade.refunds.iter().any(|known| known.number == refund);
        book.by_number.values().find(has).cloned().map(|trade| trade.at(now, self.rules))
    }

    /// The trades that are paid, or being paid, and that the merchant has not been told of.
    pub(crate) fn untold(&self, now: Timestamp) -> Vec<Trade> {
        let each = self.book().by_number.values().cloned().collect::<Vec<_>>().into_iter();
        let each = each.map(|trade| trade.at(now, self.rules));
        each.filter(|trade| !trade.is_told && trade.money_ms().is_some()).collect()
    }

    /// Places a trade, once for each number. `is_opened`: its payer is looking at it.
    pub(crate) fn place(
        &self,
        number: &str,
        terms: Terms,
        is_opened: bool,
        now: Timestamp,
    ) -> Result<Placed, Error> {
        let mut book = self.book();
        let opened_ms = is_opened.then(|| now.ms());
        if let Some(known) = book.by_number.get(number).cloned() {
            let known = known.at(now, self.rules);
            let is_default_life = terms.is_default_life && known.terms.is_default_life;
            let expires_ms =
                if is_default_life { known.terms.expires_ms } else { terms.expires_ms };
            let same = Terms { expires_ms, return_url: known.terms.return_url.clone(), ..terms };
            return match known.state {
                State::Paid { .. } => Ok(Placed::Paid),
                State::Closed { .. } => Ok(Placed::Closed),
                State::Waiting | State::Paying { .. } if known.terms != same => Ok(Placed::Differs),
                State::Waiting | State::Paying { .. } => {
                    let trade = Trade { opened_ms: known.opened_ms.or(opened_ms), ..known };
                    book.change(trade.clone())?;
                    Ok(Placed::Open(Box::new(trade)))
                }
            };
        }
        let count = book.by_number.len() + 1;
        let Rules { prefix, .. } = self.rules;
        let payment = PaymentId::new(format!("{prefix}{:013}{count:011}", now.ms()));
        let trade = Trade {
            number: number.to_owned(),
            payment: payment.map_err(broken)?,
            terms,
            created_ms: now.ms(),
            opened_ms,
            state: State::Waiting,
            is_told: false,
            refunds: Vec::new(),
        };
        book.change(trade.clone())?;
        Ok(Placed::Open(Box::new(trade)))
    }

    /// Changes a trade under the lock.
    fn update<T>(
        &self,
        number: &str,
        now: Timestamp,
        change: impl FnOnce(Option<Trade>) -> (Option<Trade>, T),
    ) -> Result<T, Error> {
        let mut book = self.book();
        let known = book.by_number.get(number).cloned().map(|trade| trade.at(now, self.rules));
        let (changed, reply) = change(known);
        if let Some(changed) = changed {
            book.change(changed)?;
        }
        Ok(reply)
    }

    /// Its payer looks at it.
    pub(crate) fn show(&self, number: &str, now: Timestamp) -> Result<Option<Trade>, Error> {
        self.update(number, now, |known| {
            let Some(known) = known else { return (None, None) };
            let opened_ms = known.opened_ms.or(Some(now.ms()));
            let trade = Trade { opened_ms, ..known };
            (Some(trade.clone()), Some(trade))
        })
    }

    /// Its payer pays it, at once or after a while.
    pub(crate) fn pay(&self, number: &str, takes: Duration, now: Timestamp) -> Result<Pay, Error> {
        self.update(number, now, |known| {
            let Some(known) = known else { return (None, Pay::TooLate) };
            let is_over = known.terms.expires_ms <= now.ms();
            match known.state {
                State::Paid { .. } | State::Paying { .. } => (None, Pay::Before),
                State::Closed { .. } => (None, Pay::TooLate),
                State::Waiting if is_over => (None, Pay::TooLate),
                State::Waiting => {
                    let takes_ms = i64::try_from(takes.as_millis()).unwrap_or(i64::MAX);
                    let until_ms = now.ms().saturating_add(takes_ms);
                    let state = match takes_ms {
                        0 => State::Paid { at_ms: now.ms() },
                        _ => State::Paying { until_ms },
                    };
                    let opened_ms = known.opened_ms.or(Some(now.ms()));
                    let trade = Trade { state, opened_ms, ..known };
                    (Some(trade.clone()), Pay::Taken(Box::new(trade)))
                }
            }
        })
    }

    /// Closes one that waits.
    pub(crate) fn close(&self, number: &str, now: Timestamp) -> Result<Close, Error> {
        let young_ms = i64::try_from(self.rules.no_close_for.as_millis()).unwrap_or(i64::MAX);
        self.update(number, now, |known| {
            let Some(known) = known else { return (None, Close::Absent) };
            match known.state {
                State::Paid { .. } => (None, Close::Paid),
                State::Paying { .. } => (None, Close::Paying),
                State::Closed { .. } => (None, Close::Before),
                State::Waiting if now.ms() < known.created_ms.saturating_add(young_ms) => {
                    (None, Close::TooEarly)
                }
                State::Waiting => {
                    let state = State::Closed { at_ms: now.ms() };
                    let trade = Trade { state, ..known };
                    (Some(trade.clone()), Close::Done(Box::new(trade)))
                }
            }
        })
    }

    /// Sends money of a paid trade back, once for each number.
    pub(crate) fn refund(
        &self,
        number: &str,
        refund: Refund,
        now: Timestamp,
    ) -> Result<Refunded, Error> {
        let rations = self.rules.rations_refunds;
        self.update(number, now, |known| {
            let Some(known) = known else { return (None, Refunded::Absent) };
            if known.paid_ms().is_none() {
                return (None, Refunded::NotPaid);
            }
            if let Some(before) = known.refunds.iter().find(|made| made.number == refund.number) {
                let reply = match before.fen == refund.fen {
                    true => Refunded::Before(known.clone(), before.clone()),
                    false => Refunded::Differs,
                };
                return (None, reply);
            }
            if refund.fen <= MinorUnits::ZERO || refund.fen > known.left() {
                return (None, Refunded::TooMuch);
            }
            let gap_ms = i64::try_from(WECHAT_REFUND_SECONDS.seconds().as_millis());
            let gap_ms = gap_ms.unwrap_or(i64::MAX);
            let is_soon = |made: &Refund| now.ms() < made.created_ms.saturating_add(gap_ms);
            if rations && known.refunds.len() >= WECHAT_REFUND_PARTS.size() {
                return (None, Refunded::TooMany);
            }
            if rations && known.refunds.iter().any(is_soon) {
                return (None, Refunded::TooSoon);
            }
            let mut trade = known;
            trade.refunds.push(refund.clone());
            (Some(trade.clone()), Refunded::Made(trade, refund))
        })
    }

    /// Ends the refunds of a trade that are under way.
    pub(crate) fn settle(&self, payment: &str, now: Timestamp) -> Result<(), Error> {
        let Some(trade) = self.by_payment(payment, now) else { return Ok(()) };
        self.update(&trade.number, now, |known| {
            let done = known.map(|mut trade| {
                trade.refunds.iter_mut().for_each(|refund| refund.is_done = true);
                trade
            });
            (done, ())
        })
    }

    /// The merchant has taken the notification of a payment.
    pub(crate) fn tell(&self, number: &str, now: Timestamp) -> Result<(), Error> {
        self.update(number, now, |known| (known.map(|trade| Trade { is_told: true, ..trade }), ()))
    }

    pub(crate) fn all(&self, now: Timestamp) -> Vec<Trade> {
        let trades: Vec<Trade> = self.book().by_number.values().cloned().collect();
        trades.into_iter().map(|trade| trade.at(now, self.rules)).collect()
    }

    /// Every paid trade of an attempt, with its refunds.
    pub(crate) fn ledger(&self, provider: &str, now: Timestamp) -> Vec<LedgerEntry> {
        let trades: Vec<Trade> = self.book().by_number.values().cloned().collect();
        let refund = |refund: &Refund| LedgerRefund {
            amount_minor: refund.fen,
            status: if refund.is_done { "succeeded" } else { "pending" }.to_owned(),
        };
        let entry = |trade: Trade| {
            let trade = trade.at(now, self.rules);
            trade.paid_ms()?;
            Some(LedgerEntry {
                provider: provider.to_owned(),
                order: trade.attempt(self.rules)?.order,
                deployment: trade.deployment(self.rules),
                amount_minor: trade.terms.fen,
                currency: Currency::new("CNY").ok()?,
                refunds: trade.refunds.iter().rev().map(refund).collect(),
                payment: trade.payment.to_string(),
            })
        };
        trades.into_iter().filter_map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
    const RULES: Rules = Rules {
        prefix: "4200",
        separator: '-',
        closes_at_expiry: false,
        no_close_for: Duration::from_secs(300),
        rations_refunds: true,
    };

    fn terms(fen: i64) -> Terms {
        Terms {
            fen: MinorUnits(fen),
            subject: "s".to_owned(),
            expires_ms: NOW.ms() + 600_000,
            is_default_life: false,
            notify_url: "http://a.example".to_owned(),
            return_url: None,
        }
    }

    fn placed(rules: Rules) -> Trades {
        let trades = Trades::open(None, rules).unwrap();
        let placed = trades.place("7-1", terms(100), false, NOW).unwrap();
        assert!(matches!(placed, Placed::Open(_)));
        trades
    }

    fn refund(trades: &Trades, number: &str, fen: i64, seconds: i64) -> Refunded {
        let now = NOW.plus_seconds(seconds);
        let (number, fen) = (number.to_owned(), MinorUnits(fen));
        let refund = Refund { number, fen, created_ms: now.ms(), is_done: true };
        trades.refund("7-1", refund, now).unwrap()
    }

    #[test]
    fn a_number_is_one_trade_until_it_is_paid_or_closed() {
        let trades = placed(RULES);
        assert!(matches!(trades.place("7-1", terms(100), false, NOW), Ok(Placed::Open(_))));
        assert_eq!(trades.place("7-1", terms(99), false, NOW).unwrap(), Placed::Differs);
        assert!(matches!(trades.pay("7-1", Duration::ZERO, NOW), Ok(Pay::Taken(_))));
        assert_eq!(trades.place("7-1", terms(100), false, NOW).unwrap(), Placed::Paid);
        assert_eq!(trades.pay("7-1", Duration::ZERO, NOW).unwrap(), Pay::Before);
        assert_eq!(trades.close("7-1", NOW).unwrap(), Close::Paid);
        trades.place("7-2", terms(1), false, NOW).unwrap();
        let later = NOW.plus_seconds(300);
        assert!(matches!(trades.close("7-2", later), Ok(Close::Done(_))));
        assert_eq!(trades.close("7-2", later).unwrap(), Close::Before);
        assert_eq!(trades.place("7-2", terms(1), false, later).unwrap(), Placed::Closed);
        assert_eq!(trades.pay("7-2", Duration::ZERO, later).unwrap(), Pay::TooLate);
        assert_eq!(trades.ledger("wechat", later).len(), 1);
    }

    #[test]
    fn a_close_is_too_early_then_loses_to_a_slow_payer() {
        let trades = placed(RULES);
        assert_eq!(trades.close("8-1", NOW).unwrap(), Close::Absent);
        assert_eq!(trades.close("7-1", NOW.plus_seconds(299)).unwrap(), Close::TooEarly);
        let begun = NOW.plus_seconds(599);
        trades.pay("7-1", Duration::from_secs(60), begun).unwrap();
        assert_eq!(trades.close("7-1", begun.plus_seconds(59)).unwrap(), Close::Paying);
        assert_eq!(trades.close("7-1", begun.plus_seconds(60)).unwrap(), Close::Paid);
        let paid = trades.by_number("7-1", begun.plus_seconds(60)).unwrap();
        assert!(paid.paid_ms() > Some(paid.terms.expires_ms), "later than it was for sale");
        assert!(paid.clone().known_before(begun.ms()).paid_ms().is_none());
    }

    #[test]
    fn what_nobody_pays_cannot_be_paid_and_closes_by_itself_at_alipay_only() {
        let over = NOW.plus_seconds(600);
        for closes_at_expiry in [false, true] {
            let trades = placed(Rules { closes_at_expiry, ..RULES });
            assert_eq!(trades.pay("7-1", Duration::ZERO, over).unwrap(), Pay::TooLate);
            let is_closed = trades.by_number("7-1", over).unwrap().state != State::Waiting;
            assert_eq!(is_closed, closes_at_expiry);
        }
    }

    #[test]
    fn refunds_add_up_to_the_payment_and_are_rationed() {
        let trades = placed(RULES);
        assert_eq!(refund(&trades, "a", 1, 0), Refunded::NotPaid);
        trades.pay("7-1", Duration::ZERO, NOW).unwrap();
        assert_eq!(refund(&trades, "a", 101, 0), Refunded::TooMuch);
        assert_eq!(refund(&trades, "a", 0, 0), Refunded::TooMuch);
        assert!(matches!(refund(&trades, "a", 1, 0), Refunded::Made(..)));
        assert!(matches!(refund(&trades, "a", 1, 0), Refunded::Before(..)));
        assert_eq!(refund(&trades, "a", 2, 0), Refunded::Differs);
        assert_eq!(refund(&trades, "b", 1, 59), Refunded::TooSoon);
        for minute in 1..50 {
            let made = refund(&trades, &format!("b{minute}"), 1, minute * 60);
            assert!(matches!(made, Refunded::Made(..)), "{minute}: {made:?}");
        }
        assert_eq!(refund(&trades, "c", 1, 6000), Refunded::TooMany);
        let trades = placed(Rules { rations_refunds: false, ..RULES });
        trades.pay("7-1", Duration::ZERO, NOW).unwrap();
        assert!(matches!(refund(&trades, "a", 60, 0), Refunded::Made(..)));
        assert!(matches!(refund(&trades, "b", 40, 0), Refunded::Made(..)));
        assert_eq!(refund(&trades, "c", 1, 0), Refunded::TooMuch);
    }
}
