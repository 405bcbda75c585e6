//! The payment provider: what it has captured, and what it has sent back.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::{DisputeId, PageMark, PaymentId, ProviderId, ProviderRefundId};
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{Attempt, AttemptKey, PaymentMethod, PaymentStep};
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::order_refund::{OrderRefund, RefundKey, RefundName};
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Capture, Order, PaymentKey, PaymentRecord};
use engine::domain::payment::captures::{CapturePage, Hint, ListedHint};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::{Mark, Reported};
use engine::domain::payment::outside::{SentRefund, SentReport, SentState};
use engine::domain::payment::start::{CloseReply, StartReply, Turn};

/// Captures on a page of the list: few, so that a pass has several.
const PAGE: usize = 2;

/// When a capture was made, and from when on the provider's list has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InList {
    /// The time of the capture.
    pub made_at: Timestamp,
    /// The time from which the list has it.
    pub from: Timestamp,
}

/// Everything a provider knows. Money goes back at most once, because the payment is the name of its
/// refund.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ProviderModel {
    /// The attempts that were started, or closed before they were.
    pub attempts: BTreeMap<AttemptKey, AtProvider>,
    /// True if it has nothing of a page before its buyer opens it, as Alipay.
    pub is_lazy: bool,
    /// The time of the next start that it has free; `None` if it has one at once.
    pub next_start: Option<Timestamp>,
    /// The attempts to whose start it answers with a failure, however often it is asked. It may have made them.
    pub failing: BTreeSet<AttemptKey>,
    pub captured: BTreeMap<PaymentKey, Capture>,
    /// Captures by no attempt whose payment carries the deployment's id all the same.
    pub marked: BTreeSet<PaymentKey>,
    /// Captures of other systems and deployments on the same account.
    pub others: BTreeMap<PaymentKey, Reported>,
    /// The times from which its search finds captures; one without a time it finds at once.
    pub listed_at: BTreeMap<PaymentKey, Timestamp>,
    /// The captures that its list has or will have; one that is not here it never lists.
    pub in_list: BTreeMap<PaymentKey, InList>,
    pub refunded: BTreeMap<PaymentKey, Money>,
    /// Milliseconds between two turns of refunds that captures decide; 0 if each has its turn at once.
    pub refund_interval_ms: i64,
    /// The time of the next such turn that nobody was given.
    pub next_refund: Option<Timestamp>,
    /// The turns that each payment was given; a message that comes twice may take two.
    pub refund_turns: BTreeSet<(PaymentKey, Timestamp)>,
    /// The payments that captures decided to send back, and that were sent without a turn.
    pub unturned: BTreeSet<PaymentKey>,
    /// How many refunds of whole payments came to us again, each of another name.
    pub undone_wholes: BTreeMap<PaymentKey, u8>,
    /// The parts that went back, by their names.
    pub parts: BTreeMap<RefundName, (PaymentKey, Money)>,
    /// Those of the parts whose money came back to us.
    pub undone: BTreeSet<RefundName>,
    /// True while it refuses parts because the account has no money.
    pub is_poor: bool,
    /// True if it lists no refunds of a payment, as WeChat Pay and Alipay: what was made by hand, only its bill tells.
    pub is_blind: bool,
    /// Refunds that somebody made by hand.
    pub by_hand: BTreeMap<ProviderRefundId, (PaymentKey, Money)>,
    /// The parts that it refused because of a dispute. It remembers that under their idempotency keys for longer than
    /// anybody lives who asked.
    pub refused: BTreeSet<RefundKey>,
    pub disputes: BTreeMap<DisputeId, DisputeReport>,
    /// Payments that went back again, which only a provider does that forgets its idempotency keys.
    pub refunded_again: BTreeSet<PaymentKey>,
}

/// An attempt as its provider has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AtProvider {
    /// It can be paid until its expiry.
    Open {
        /// True if it is a page that the provider has nothing of before it is opened.
        is_unopened: bool,
        provider: ProviderId,
        /// The amount that pays it.
        amount: Money,
        /// The time at which it ends by itself.
        expires_at: Timestamp,
    },
    Closed,
    /// It was paid by this payment.
    Paid(PaymentKey),
}

/// Milliseconds by which the clock of a process may be ahead of the provider's.
const CLOCK_AHEAD_MS: i64 = 8_000;

/// The provider's name of an attempt, and of the payment that pays it.
fn name_of(key: AttemptKey) -> PaymentId {
    PaymentId::new(key.to_string()).unwrap_or_else(|invalid| panic!("{invalid}"))
}

impl ProviderModel {
    /// The turn of a start, or the next one that is free.
    #[must_use]
    pub fn turn(&self, now: Timestamp) -> Turn {
        self.next_start.filter(|at| now < *at).map_or(Turn::Now, Turn::At)
    }

    /// Milliseconds until its next free start, if that is not at once.
    #[must_use]
    pub fn starts_in(&self, now: Timestamp) -> Option<u32> {
        let ahead_ms = self.next_start?.ms_since(now);
        u32::try_from(ahead_ms).ok()
    }

    /// The next turn of a refund that a capture decides, which is the payment's from now on.
    pub fn refund_turn(&mut self, payment: &PaymentKey, now: Timestamp) -> Turn {
        let at = self.next_refund.map_or(now, |at| at.max(now));
        self.next_refund =
            (self.refund_interval_ms > 0).then(|| at.plus_ms(self.refund_interval_ms));
        self.refund_turns.insert((payment.clone(), at));
        if at == now { Turn::Now } else { Turn::At(at) }
    }

    /// Starts an attempt, once: asked again, the answer is the same whatever became of it.
    pub fn start(&mut self, order: &Order, attempt: &Attempt) -> StartReply {
        let key = attempt.key(order.number);
        let is_unopened = self.is_lazy && attempt.choice.method == PaymentMethod::Page;
        self.attempts.entry(key).or_insert_with(|| AtProvider::Open {
            is_unopened,
            provider: attempt.choice.provider.clone(),
            amount: order.total,
            expires_at: attempt.expires_at,
        });
        if self.failing.contains(&key) {
            return StartReply::Failed("api_error: something went wrong".to_owned());
        }
        let reference = name_of(key);
        StartReply::Started { step: PaymentStep::Page(reference.to_string()), reference }
    }

    /// Closes an attempt; one that was never started will not be.
    pub fn close(&mut self, order: &Order, attempt: &Attempt) -> CloseReply {
        let key = attempt.key(order.number);
        match self.attempts.get(&key) {
            Some(AtProvider::Paid(payment)) => {
                let capture = self.captured.get(payment).cloned();
                capture.map_or(CloseReply::NotYet, CloseReply::Paid)
            }
            Some(AtProvider::Open { is_unopened: true, .. }) => CloseReply::Absent,
            Some(AtProvider::Open { .. } | AtProvider::Closed) | None => {
                self.attempts.insert(key, AtProvider::Closed);
                CloseReply::Closed
            }
        }
    }

    /// A buyer pays an attempt that is open, and the provider captures it; nothing happens to another one.
    pub fn pay(&mut self, key: AttemptKey, now: Timestamp) -> Option<Capture> {
        let Some(AtProvider::Open { provider, amount, expires_at, is_unopened: _ }) =
            self.attempts.get(&key)
        else {
            return None;
        };
        if *expires_at <= now {
            return None;
        }
        let payment = PaymentKey { provider: provider.clone(), payment: name_of(key) };
        let capture = Capture {
            key: payment.clone(),
            order: key.order,
            amount: *amount,
            attempt: Some(key.number),
        };
        self.attempts.insert(key, AtProvider::Paid(payment));
        self.capture(capture.clone());
        Some(capture)
    }

    /// A buyer pays, and the provider lists the capture at once.
    pub fn capture(&mut self, capture: Capture) {
        self.captured.insert(capture.key.clone(), capture);
    }

    /// A buyer pays, and the provider lists the capture from `listed_at` on.
    pub fn capture_listed_at(&mut self, capture: Capture, listed_at: Timestamp) {
        self.listed_at.insert(capture.key.clone(), listed_at);
        self.capture(capture);
    }

    /// A page of the list as it is at `now`: what was captured since `from`, newest first.
    #[must_use]
    pub fn list(&self, from: Timestamp, after: Option<&PageMark>, now: Timestamp) -> CapturePage {
        let listed = self.in_list.iter().filter(|(_, one)| one.made_at >= from && one.from <= now);
        let mut listed: Vec<(Timestamp, &PaymentKey)> =
            listed.map(|(key, one)| (one.made_at, key)).collect();
        listed.sort_unstable_by(|one, other| other.cmp(one));
        // A mark names the last entry of a page; what is listed late never moves it.
        let begin = after.map_or(0, |mark| {
            let is_it = |(_, key): &(Timestamp, &PaymentKey)| key.payment.as_str() == mark.as_str();
            listed.iter().position(is_it).map_or(listed.len(), |at| at + 1)
        });
        let rest = &listed[begin..];
        let page = &rest[..rest.len().min(PAGE)];
        let captures = page.iter().filter_map(|(_, key)| {
            let own = self.captured.get(*key).map(|capture| self.reported(capture));
            own.or_else(|| self.others.get(*key).cloned())
        });
        let mark = |key: &PaymentKey| PageMark::new(key.payment.as_str()).ok();
        let next = page.last().filter(|_| rest.len() > PAGE).and_then(|(_, key)| mark(key));
        let hints = if after.is_none() { self.hints() } else { Vec::new() };
        CapturePage { captures: captures.collect(), hints, next, ..CapturePage::default() }
    }

    /// The payments of whose refunds something is told that no request of ours has heard of.
    fn hints(&self) -> Vec<ListedHint> {
        let undone = self.undone.iter().filter_map(|name| self.parts.get(name));
        let told = self.by_hand.values().chain(undone).map(|(payment, _)| payment);
        let told: BTreeSet<&PaymentKey> = told.chain(self.undone_wholes.keys()).collect();
        let hint = |key: &PaymentKey| {
            let mark = PageMark::new(key.payment.as_str()).ok()?;
            Some(ListedHint { mark, hint: Hint::Refunds(key.payment.clone()) })
        };
        told.into_iter().filter_map(hint).collect()
    }

    /// The refunds of a payment, oldest first as far as they have an order.
    #[must_use]
    pub fn sent_back(&self, payment: &PaymentId) -> Option<SentReport> {
        let capture = self.captured.values().find(|capture| capture.key.payment == *payment)?;
        let Reported { capture, mark } = self.reported(capture);
        let id = |text: String| {
            ProviderRefundId::new(text).unwrap_or_else(|invalid| panic!("{invalid}"))
        };
        let parts = self.parts.iter().filter(|(_, (of, _))| *of == capture.key);
        let parts = parts.map(|(name, (_, amount))| SentRefund {
            id: id(format!("re-{name}")),
            amount: *amount,
            name: Some(*name),
            state: if self.undone.contains(name) {
                SentState::Failed("lost_or_stolen_card".to_owned())
            } else {
                SentState::Back
            },
            at: None,
        });
        let by_hand = self.by_hand.iter().filter(|(_, (of, _))| *of == capture.key);
        let by_hand = by_hand.map(|(id, (_, amount))| SentRefund {
            id: id.clone(),
            amount: *amount,
            name: None,
            state: SentState::Back,
            at: None,
        });
        let whole = |number: u8, state: SentState| SentRefund {
            id: id(format!("re-{}-{number}", capture.key.payment)),
            amount: capture.amount,
            name: None,
            state,
            at: None,
        };
        let failed = || SentState::Failed("lost_or_stolen_card".to_owned());
        let undone = self.undone_wholes.get(&capture.key).copied().unwrap_or_default();
        let mut wholes: Vec<SentRefund> =
            (0..undone).map(|number| whole(number, failed())).collect();
        if let Some(amount) = self.refunded.get(&capture.key) {
            wholes.push(SentRefund { amount: *amount, ..whole(undone, SentState::Back) });
        }
        let refunds: Vec<SentRefund> = parts.chain(wholes).chain(by_hand).collect();
        let (payment, order) = (capture.key, capture.order);
        (!refunds.is_empty()).then_some(SentReport {
            payment,
            order,
            mark,
            refunds,
            is_complete: true,
        })
    }

    /// Somebody sends money of a payment back by hand, if so much is left; true if it went.
    pub fn send_by_hand(
        &mut self,
        id: ProviderRefundId,
        payment: &PaymentKey,
        amount: Money,
    ) -> bool {
        let Some(capture) = self.captured.get(payment) else { return false };
        let fits = self.back(payment) + amount.amount_minor <= capture.amount.amount_minor
            && !self.refunded.contains_key(payment);
        if fits {
            self.by_hand.entry(id).or_insert_with(|| (payment.clone(), amount));
        }
        fits
    }

    /// A capture as its provider reports it.
    #[must_use]
    pub fn reported(&self, capture: &Capture) -> Reported {
        if let Some(others) = self.others.get(&capture.key) {
            return others.clone();
        }
        let is_marked = capture.attempt.is_some() || self.marked.contains(&capture.key);
        let mark = if is_marked { Mark::Ours } else { Mark::None };
        Reported { capture: capture.clone(), mark }
    }

    /// Every capture for an order that is listed at `now`.
    #[must_use]
    pub fn captures(&self, order: OrderNumber, now: Timestamp) -> Vec<Capture> {
        let is_listed = |capture: &&Capture| {
            capture.order == order && self.listed_at.get(&capture.key).is_none_or(|at| *at <= now)
        };
        self.captured.values().filter(is_listed).cloned().collect()
    }

    /// Sends a part of a payment back; refuses more than is left of it, and any if more went back by hand than is known.
    /// A repeated request does nothing more.
    pub fn refund_part(
        &mut self,
        payment: &PaymentKey,
        refund: &OrderRefund,
        known_outside: MinorUnits,
    ) -> RefundReply {
        let Some(capture) = self.captured.get(payment) else {
            return RefundReply::Refused("resource_missing: no such payment".to_owned());
        };
        let names = (0..=refund.ended).map(|ended| RefundName { ended, ..refund.name() });
        let mut made = names.filter(|name| self.parts.contains_key(name));
        if made.any(|name| !self.undone.contains(&name)) {
            if !stands(Guard::RefundOnce) {
                self.refunded_again.insert(payment.clone());
            }
            return RefundReply::Refunded;
        }
        if self.undone.contains(&refund.name()) {
            return RefundReply::Ended("failed: lost_or_stolen_card".to_owned());
        }
        let by_hand = self.by_hand.values().filter(|(of, _)| of == payment);
        let by_hand: MinorUnits = by_hand.map(|(_, amount)| amount.amount_minor).sum();
        if self.is_blind {
            // Nobody can see whether a hand has sent it meanwhile.
            if let Some(held) = refund.held() {
                return held;
            }
        } else if stands(Guard::ReadBeforeSending) && by_hand > known_outside {
            return RefundReply::Conflict(format!("conflict: {by_hand} went back by hand"));
        }
        if self.is_poor {
            return RefundReply::Refused("balance_insufficient: no money".to_owned());
        }
        let back = self.back(payment);
        let too_large = back + refund.amount.amount_minor > capture.amount.amount_minor;
        if self.refused.contains(&refund.key) || too_large {
            if self.disputes.values().any(|dispute| dispute.payment == *payment) {
                self.refused.insert(refund.key);
            }
            return RefundReply::Refused("amount_too_large: more than is left".to_owned());
        }
        self.parts.insert(refund.name(), (payment.clone(), refund.amount));
        RefundReply::Refunded
    }

    /// The refund of a whole payment, which had succeeded, comes to us again; nothing happens where there is none.
    pub fn undo_whole(&mut self, payment: &PaymentKey) {
        if self.refunded.remove(payment).is_some() {
            *self.undone_wholes.entry(payment.clone()).or_default() += 1;
        }
    }

    /// A dispute as it is.
    #[must_use]
    pub fn dispute(&self, dispute: &DisputeId) -> Option<DisputeReport> {
        self.disputes.get(dispute).cloned()
    }

    /// What of a payment went back by its refunds, and by disputes that are not won.
    #[must_use]
    pub fn back(&self, payment: &PaymentKey) -> MinorUnits {
        let parts = self.parts.iter().filter(|(name, _)| !self.undone.contains(name));
        let parts = parts.map(|(_, part)| part).chain(self.by_hand.values());
        let parts = parts.filter(|(of, _)| of == payment);
        let taken = self
            .disputes
            .values()
            .filter(|dispute| dispute.payment == *payment && dispute.state != DisputeState::Won);
        let parts: MinorUnits = parts.map(|(_, amount)| amount.amount_minor).sum();
        parts + taken.map(|dispute| dispute.amount.amount_minor).sum()
    }

    /// Sends a payment back, whole; refuses one that it does not have. A repeated request does nothing
    /// more, and one of a name that came to nothing is told so.
    pub fn refund(&mut self, record: &PaymentRecord, now: Timestamp) -> RefundReply {
        let payment = &record.capture.key;
        // A process that froze between looking at its turn and sending comes late, however late that is.
        let in_turn = |(of, at): &(PaymentKey, Timestamp)| {
            of == payment && at.ms() - CLOCK_AHEAD_MS <= now.ms()
        };
        if record.needs_turn() && !self.refund_turns.iter().any(in_turn) {
            self.unturned.insert(payment.clone());
        }
        let Some(capture) = self.captured.get(payment) else {
            return RefundReply::Refused("resource_missing: no such payment".to_owned());
        };
        let back = self.back(payment);
        if !self.refunded.contains_key(payment) {
            if back >= capture.amount.amount_minor {
                return RefundReply::Refunded;
            }
            if self.undone_wholes.get(payment).is_some_and(|undone| *undone > record.ended) {
                return RefundReply::Ended("failed: lost_or_stolen_card".to_owned());
            }
            if self.is_poor {
                return RefundReply::Refused("balance_insufficient: no money".to_owned());
            }
        }
        let rest = Money { amount_minor: capture.amount.amount_minor - back, ..capture.amount };
        let before = self.refunded.insert(payment.clone(), rest);
        if before.is_some() && !stands(Guard::RefundOnce) {
            self.refunded_again.insert(payment.clone());
        }
        RefundReply::Refunded
    }
}
