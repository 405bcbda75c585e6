//! Disputes: the payer's bank takes a captured payment back, until the provider decides who gets the money.
//!
//! While a dispute is open, its money belongs to nobody (the account `disputed`), and nothing of its payment is
//! refunded: the same money would go back twice. A dispute that is won leaves the order as it was. A dispute that is
//! lost is a refund that the provider has made by itself: the tickets are refunded too, unless the sale says that they
//! stay. Some refunds were made before we knew of the dispute, and the provider refuses them because the money is gone:
//! the dispute has paid them back as well. An amount that exceeds both stays on the account, for a person.
//!
//! A dispute is of the captured payment. After an exchange its money is that of several orders
//! ([`holders`](super::outside::Holder)): each has a share of the dispute, as far as its money goes.
//!
//! Nothing of it is final: what was won may be lost by arbitration, and what was lost may be given back by the bank. What was
//! won is then in dispute once more; what was lost comes back, and is owed to who paid, as of any refund whose money came to
//! us again: the tickets are gone, so that an operator has it sent, or pays it otherwise. Several disputes of a payment may be
//! open at once; each takes what the others leave.
//!
//! | here it is | the provider says open | won | lost |
//! |---|---|---|---|
//! | unknown | open | open, then won | open, then lost |
//! | open | – | won | lost |
//! | won | open again | – | open again, then lost |
//! | lost | – | won: what it took is owed | – |
//!
//! A notification about a dispute may be late, come twice, or come out of order. So a notification is only a hint to
//! ask: the provider says the dispute's present state, and the flow records one step after the other until the order
//! says the same.

use super::ours::Mark;
use super::outside::Holder;
use super::refund::{RefundRequest, RefundedTickets};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::DisputeId;
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::dispute::{Dispute, DisputeState};
use crate::domain::order::fact::{Actor, Cause, Moved};
use crate::domain::order::order_refund::{AskedBy, OrderRefund, RefundNumber};
use crate::domain::order::refund::{Refund, RefundReply, RefundState};
use crate::domain::order::{Order, OrderState, PaymentKey, PaymentOutcome, PaymentRecord};

/// Most disputes that are kept of one payment. Stripe takes one of a card payment; other methods know a few.
pub const MAX_DISPUTES: usize = 10;
/// How often a dispute may be decided otherwise than before: an arbitration follows one decision, and no bank has more.
pub const MAX_REVERSALS: u8 = 10;

/// A dispute as its provider tells it now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DisputeReport {
    pub id: DisputeId,
    pub payment: PaymentKey,
    /// The order that the payment was meant for.
    pub order: OrderNumber,
    /// What was taken back.
    pub amount: Money,
    pub state: DisputeState,
    /// What the payment says of who started it.
    pub mark: Mark,
}

/// Why a dispute cannot be recorded: something for a person to look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DisputeRefusal {
    /// There is no order that the payment has paid.
    #[error("its payment has paid no order")]
    NotAccepted,
    /// It is of another currency than the payment.
    #[error("the payment is in {0}")]
    OtherCurrency(Currency),
    /// The payment has as many as there may be.
    #[error("a payment has at most {MAX_DISPUTES} disputes")]
    TooMany,
    /// It was decided otherwise as often as it may be.
    #[error("dispute {0} is decided otherwise over {MAX_REVERSALS} times")]
    Reversed(DisputeId),
}

/// A change of a dispute, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DisputePlan {
    /// The order as it shall be: it tells of the dispute.
    pub order: Order,
    /// Its payment as it shall be.
    pub payment: PaymentRecord,
    /// The disputes that the payment had before.
    pub before: Vec<Dispute>,
    /// The refund as it shall be whose money the dispute has taken, or gives back: then the dispute stays in its state, and the
    /// order tells of the refund.
    pub refund: Option<OrderRefund>,
}

/// The next step towards what the provider says of a dispute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisputeStep {
    Nothing,
    Record(Box<DisputePlan>),
    /// The dispute is lost: first its money is counted as refunded.
    Refund(RefundRequest),
    /// The dispute is lost: first a refund is recorded whose money the dispute has paid back (the refund as it shall
    /// be), unless its provider says that it has sent it.
    Back(Box<OrderRefund>),
    /// The dispute is won after all: a refund is recorded as back whose money it had taken before anybody said so (the refund
    /// as it shall be).
    Finish(Box<OrderRefund>),
    /// The dispute is won after all: what it had taken for this refund is owed again (the refund as it shall be).
    Undo(Box<OrderRefund>),
}

/// The share of a dispute that each holder of its payment's money has, in minor units: what was recorded before stays; what is
/// new is of those that have money left which no other dispute may take, in their order; and what exceeds that is of the first,
/// as a payment that has been given back was.
#[must_use]
pub fn shares(holders: &[Holder], report: &DisputeReport) -> Vec<MinorUnits> {
    let of_it = |holder: &Holder| {
        let known = holder.payment.disputes.iter().find(|known| known.id == report.id);
        known.map(|known| known.amount_minor)
    };
    let known: Vec<Option<MinorUnits>> = holders.iter().map(of_it).collect();
    let recorded: MinorUnits = known.iter().flatten().copied().sum();
    let mut rest = (report.amount.amount_minor - recorded).max(MinorUnits::ZERO);
    let mut shares: Vec<MinorUnits> = Vec::new();
    for (holder, known) in holders.iter().zip(&known) {
        let open = holder.payment.disputes.iter().filter(|one| one.state == DisputeState::Open);
        let others: MinorUnits = open.map(|one| one.amount_minor).sum();
        let left = (holder.payment.left().amount_minor - others).max(MinorUnits::ZERO);
        let share = known.unwrap_or_else(|| {
            let share =
                if stands(Guard::DisputeFollows) { rest.min(left) } else { MinorUnits::ZERO };
            rest = rest - share;
            share
        });
        shares.push(share);
    }
    if let (Some(first), Some(None)) = (shares.first_mut(), known.first()) {
        *first += rest;
    }
    shares
}

/// Decides the next step for a dispute as its provider tells it. `payment` is the record of the order's own payment,
/// `refunds` are those of the order, and `revokes` says whether a lost dispute takes the tickets back. Reads nothing
/// but its arguments.
///
/// # Errors
/// The first [`DisputeRefusal`].
pub fn decide_dispute(
    order: &Order,
    payment: &PaymentRecord,
    refunds: &[OrderRefund],
    report: &DisputeReport,
    revokes: bool,
    now: Timestamp,
) -> Result<DisputeStep, DisputeRefusal> {
    let is_own = order.payment.as_ref() == Some(&payment.capture.key);
    if payment.outcome != PaymentOutcome::Accepted || !is_own {
        return Err(DisputeRefusal::NotAccepted);
    }
    let left = payment.left();
    if report.amount.currency != left.currency {
        return Err(DisputeRefusal::OtherCurrency(left.currency));
    }
    let record = |dispute: Dispute, moved: MinorUnits| {
        Ok(DisputeStep::Record(Box::new(planned(order, payment, dispute, moved, now))))
    };
    let Some(known) = payment.disputes.iter().find(|known| known.id == report.id) else {
        if payment.disputes.len() >= MAX_DISPUTES {
            return Err(DisputeRefusal::TooMany);
        }
        // A dispute that we first hear of when it is over is recorded as opened all the same.
        let amount_minor = report.amount.amount_minor.min(payment.capture.amount.amount_minor);
        return record(Dispute::opened(report.id.clone(), amount_minor, now), amount_minor);
    };
    let now_is = |state| Dispute { state, changed_at: now, ..known.clone() };
    let lose = || {
        let loss = Loss::of(order, known, left, refunds);
        if let Some(back) = loss.next_back(known, refunds, now) {
            return Ok(DisputeStep::Back(Box::new(back)));
        }
        match loss.refund(order, known, revokes) {
            Some(request) => Ok(DisputeStep::Refund(request)),
            None => record(now_is(DisputeState::Lost), loss.taken + loss.covered),
        }
    };
    let again = |times: u8| times.checked_add(1).filter(|times| *times <= MAX_REVERSALS);
    let reversed = || DisputeRefusal::Reversed(known.id.clone());
    let mut by_it = refunds.iter().filter(|refund| is_by(refund, known));
    match (known.state, report.state) {
        // What was lost for a moment, and half recorded, was lost.
        (DisputeState::Open, DisputeState::Won) if by_it.next().is_some() => lose(),
        (DisputeState::Open, DisputeState::Lost) => lose(),
        (DisputeState::Open, DisputeState::Won) => {
            record(now_is(DisputeState::Won), known.amount_minor)
        }
        (DisputeState::Won, says) => {
            let taken = by_it.next().filter(|_| stands(Guard::Reinstated));
            if let Some(step) = taken.and_then(|refund| reinstated(refund, known, now)) {
                return Ok(step);
            }
            if says == DisputeState::Won {
                return Ok(DisputeStep::Nothing);
            }
            let reopened = again(known.reopened).ok_or_else(reversed)?;
            record(Dispute { reopened, ..now_is(DisputeState::Open) }, known.amount_minor)
        }
        (DisputeState::Lost, DisputeState::Won) => {
            let reinstated = again(known.reinstated).ok_or_else(reversed)?;
            record(Dispute { reinstated, ..now_is(DisputeState::Won) }, known.amount_minor)
        }
        (DisputeState::Open, DisputeState::Open)
        | (DisputeState::Lost, DisputeState::Open | DisputeState::Lost) => Ok(DisputeStep::Nothing),
    }
}

/// True if a dispute has taken the money of a refund: of the one that records its loss, or of one whose provider had not sent
/// it.
fn is_by(refund: &OrderRefund, dispute: &Dispute) -> bool {
    let is_it = refund.reason.as_deref() == Some(dispute.id.as_str());
    is_it && refund.is_taken_by_dispute() || refund.paid_otherwise() == Some(&mark_of(dispute))
}

/// The next step for a refund whose money a dispute had taken that is won after all.
fn reinstated(refund: &OrderRefund, dispute: &Dispute, now: Timestamp) -> Option<DisputeStep> {
    if !refund.refund.state.is_back() {
        let back = refund.after_reply(&RefundReply::Refunded, now)?;
        return Some(DisputeStep::Finish(Box::new(back)));
    }
    let why = format!("dispute {} was won after it was lost", dispute.id);
    Some(DisputeStep::Undo(Box::new(refund.undone(&why, now)?)))
}

/// The refund that takes back one more ticket of an order which a wallet has paid, where a lost dispute has left that wallet
/// with a debt: the newest one that has let nobody in. `None` if the order has none, or none that is worth anything.
#[must_use]
pub fn take_back_bought(
    order: &Order,
    payment: &PaymentRecord,
    dispute: &DisputeId,
) -> Option<RefundRequest> {
    if order.state != OrderState::Paid || !order.is_paid_from_wallet() {
        return None;
    }
    let left = payment.left();
    let unused = order.live_tickets().filter(|(_, ticket)| ticket.checked_in.is_none());
    let (line, ticket) = unused.last()?;
    let amount_minor = line.price_minor.min(left.amount_minor);
    let number = RefundNumber::try_from(order.refunds.made.checked_add(1)?).ok()?;
    (amount_minor > MinorUnits::ZERO).then(|| RefundRequest {
        number,
        tickets: RefundedTickets::Named(vec![ticket.named(line)]),
        amount: Some(Money { amount_minor, ..left }),
        asked_by: AskedBy::Dispute,
        reason: Some(dispute.to_string()),
    })
}

/// The money of a dispute that is being lost.
struct Loss {
    /// True if the refund that records the dispute was made.
    is_made: bool,
    /// The amount of that refund, made or to be made: the rest of the payment.
    taken: MinorUnits,
    /// The amount of earlier refunds that the dispute has paid back.
    covered: MinorUnits,
    /// The rest in a currency.
    left: Money,
}

impl Loss {
    fn of(order: &Order, dispute: &Dispute, left: Money, refunds: &[OrderRefund]) -> Self {
        let made = refunds.iter().find(|refund| {
            refund.asked_by == AskedBy::Dispute
                && refund.reason.as_deref() == Some(dispute.id.as_str())
        });
        let taken = match made {
            Some(refund) if refund.ended == 0 => refund.amount.amount_minor,
            // It came back to us once, and is a refund as any other since.
            Some(_) => MinorUnits::ZERO,
            None if order.state == OrderState::Paid => dispute.amount_minor.min(left.amount_minor),
            // All of its tickets went back before, and less than all of its money: there is no refund any more.
            None => MinorUnits::ZERO,
        };
        let by_it = mark_of(dispute);
        let covered = refunds.iter().filter(|refund| refund.paid_otherwise() == Some(&by_it));
        let covered = covered.map(|refund| refund.amount.amount_minor).sum();
        Self { is_made: made.is_some(), taken, covered, left }
    }

    /// The next refund that the dispute has paid back: a refund that its provider has not taken, and that the rest of
    /// the dispute covers.
    fn next_back(
        &self,
        dispute: &Dispute,
        refunds: &[OrderRefund],
        now: Timestamp,
    ) -> Option<OrderRefund> {
        let rest = dispute.amount_minor - self.taken - self.covered;
        let is_untaken = |refund: &&OrderRefund| match refund.refund.state {
            RefundState::Due
            | RefundState::Requested
            | RefundState::Failed
            | RefundState::FailedLater => {
                let is_asked = !refund.asked_by.is_back_before()
                    || refund.asked_by == AskedBy::Dispute && refund.ended > 0;
                is_asked && refund.amount.amount_minor <= rest
            }
            RefundState::Pending
            | RefundState::Refunded
            | RefundState::Unmatched
            | RefundState::Explained
            | RefundState::Outside
            | RefundState::Settled => false,
        };
        let refund = refunds.iter().find(is_untaken)?;
        let (state, refusal) = (RefundState::Refunded, Some(mark_of(dispute)));
        let settled = Refund { state, changed_at: now, refusal, turn_at: None };
        Some(OrderRefund { refund: settled, ..refund.clone() })
    }

    /// The refund that records the dispute; `None` if it was made, or if its amount would be 0 and no ticket goes.
    fn refund(&self, order: &Order, dispute: &Dispute, revokes: bool) -> Option<RefundRequest> {
        let is_nothing = !revokes && self.taken == MinorUnits::ZERO;
        if self.is_made || is_nothing || order.state != OrderState::Paid {
            return None;
        }
        let tickets =
            if revokes { RefundedTickets::All } else { RefundedTickets::Named(Vec::new()) };
        Some(RefundRequest {
            // If the order has the most refunds that are allowed, the number does not matter.
            number: RefundNumber::try_from(order.refunds.made.saturating_add(1))
                .unwrap_or(RefundNumber::FIRST),
            tickets,
            amount: Some(Money { amount_minor: self.taken, ..self.left }),
            asked_by: AskedBy::Dispute,
            reason: Some(dispute.id.to_string()),
        })
    }
}

/// The text on a refund whose money went by a dispute, in place of a refusal.
fn mark_of(dispute: &Dispute) -> String {
    format!("by dispute {}", dispute.id)
}

/// The order and its payment with a new or changed dispute, which moves this much.
fn planned(
    order: &Order,
    payment: &PaymentRecord,
    dispute: Dispute,
    moved: MinorUnits,
    now: Timestamp,
) -> DisputePlan {
    let amount = Money { amount_minor: moved, ..payment.capture.amount };
    let moved = Moved { payment: payment.capture.key.clone(), amount, reason: None, refund: None };
    let cause = Cause { by: Actor::Provider, moved: Some(moved) };
    let order = order.append_fact(dispute.state.fact_kind(), cause, now);
    let mut disputes = payment.disputes.clone();
    match disputes.iter_mut().find(|known| known.id == dispute.id) {
        Some(known) => *known = dispute,
        None => disputes.push(dispute),
    }
    let before = payment.disputes.clone();
    let payment = PaymentRecord { disputes, ..payment.clone() };
    DisputePlan { order, payment, before, refund: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::{
        Legs, PaymentId, ProviderId, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
    };
    use crate::domain::basics::number::Mint;
    use crate::domain::ledger::{Account, entries, transfers};
    use crate::domain::order::attempt::Attempts;
    use crate::domain::order::fact::{FactKind, Facts};
    use crate::domain::order::order_refund::RefundCounts;
    use crate::domain::order::{Capture, Issue, OrderLine, Ticket};
    use crate::domain::payment::refund::{RefundRefusal, decide_refund};
    use crate::domain::sale::MerchantTerms;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn money(amount: i64, currency: &str) -> Money {
        Money { amount_minor: MinorUnits(amount), currency: Currency::new(currency).unwrap() }
    }

    /// A paid order of two tickets at 500.
    fn paid_order() -> (Order, PaymentRecord) {
        let user = UserId::new("7").unwrap();
        let key = PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new("pi_1").unwrap(),
        };
        let ticket = |seat: u32| Ticket {
            seat: Seat(seat),
            name: SeatName::new(format!("a{seat}")).unwrap(),
            attendee: None,
            refund: None,
            issue: Issue::FIRST,
            checked_in: None,
        };
        let order = Order {
            number: Mint::new(0).mint(NOW, &user),
            sale: SaleId::new("s").unwrap(),
            user,
            state: OrderState::Paid,
            lines: vec![OrderLine {
                tier: TierId::new("a").unwrap(),
                legs: Legs::ONE,
                price_minor: MinorUnits(500),
                terms: None,
                exchange: None,
                tickets: vec![ticket(0), ticket(1)],
            }],
            total: money(1000, "EUR"),
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW.plus_seconds(60),
            changed_at: NOW,
            payment: Some(key.clone()),
            attempts: Attempts::default(),
            facts: Facts::made(NOW),
            refunds: RefundCounts::default(),
            merchant: MerchantTerms::house(),
            exchange: None,
        };
        let capture = Capture { key, order: order.number, amount: order.total, attempt: None };
        let payment = PaymentRecord::decided(&capture, PaymentOutcome::Accepted, NOW);
        (order, payment)
    }

    fn report(
        payment: &PaymentRecord,
        id: &str,
        amount: i64,
        state: DisputeState,
    ) -> DisputeReport {
        DisputeReport {
            id: DisputeId::new(id).unwrap(),
            payment: payment.capture.key.clone(),
            order: payment.capture.order,
            amount: money(amount, "EUR"),
            state,
            mark: Mark::Ours,
        }
    }

    fn recorded(step: Result<DisputeStep, DisputeRefusal>) -> (Order, PaymentRecord) {
        match step {
            Ok(DisputeStep::Record(plan)) => (plan.order, plan.payment),
            other => panic!("{other:?}"),
        }
    }

    fn kinds(order: &Order) -> Vec<FactKind> {
        order.facts.all.iter().map(|fact| fact.kind).collect()
    }

    #[test]
    fn a_dispute_that_is_won_leaves_the_order_as_it_was() {
        let (order, payment) = paid_order();
        let decide = |order: &Order, payment: &PaymentRecord, state| {
            let report = report(payment, "dp_1", 1000, state);
            decide_dispute(order, payment, &[], &report, true, NOW)
        };
        // What is heard of when it is won was opened first.
        let (order, payment) = recorded(decide(&order, &payment, DisputeState::Won));
        assert_eq!(payment.open_dispute().map(|open| open.amount_minor), Some(MinorUnits(1000)));
        assert_eq!(decide(&order, &payment, DisputeState::Open), Ok(DisputeStep::Nothing));
        let (order, payment) = recorded(decide(&order, &payment, DisputeState::Won));
        assert_eq!(payment.open_dispute(), None);
        assert_eq!(kinds(&order), [FactKind::Made, FactKind::DisputeOpened, FactKind::DisputeWon]);
        assert_eq!((order.state, payment.left()), (OrderState::Paid, money(1000, "EUR")));
        assert_eq!(decide(&order, &payment, DisputeState::Won), Ok(DisputeStep::Nothing));
    }

    #[test]
    fn a_dispute_that_is_lost_is_a_refund_first() {
        for (revokes, left_live) in [(true, 0), (false, 2)] {
            let (order, payment) = paid_order();
            let lost = report(&payment, "dp_1", 700, DisputeState::Lost);
            let (order, payment) =
                recorded(decide_dispute(&order, &payment, &[], &lost, revokes, NOW));
            let step = decide_dispute(&order, &payment, &[], &lost, revokes, NOW);
            let Ok(DisputeStep::Refund(request)) = step else { panic!("{step:?}") };
            // Nobody else takes that money back meanwhile.
            let by_operator = RefundRequest { asked_by: AskedBy::Operator, ..request.clone() };
            assert_eq!(
                decide_refund(&order, Some(&payment), &by_operator, NOW),
                Err(RefundRefusal::Disputed)
            );
            let plan = decide_refund(&order, Some(&payment), &request, NOW).unwrap();
            assert_eq!(plan.payment.left(), money(300, "EUR"));
            assert_eq!(plan.order.live_tickets().count(), left_live);
            let refunds = [plan.refund.clone()];
            let step = decide_dispute(&plan.order, &plan.payment, &refunds, &lost, revokes, NOW);
            let (order, payment) = recorded(step);
            assert_eq!(payment.open_dispute(), None);
            assert_eq!(kinds(&order).last(), Some(&FactKind::DisputeLost));
            let again = decide_dispute(&order, &payment, &refunds, &lost, revokes, NOW);
            assert_eq!(again, Ok(DisputeStep::Nothing));
        }
    }

    /// An order, its payment and its refunds, as its facts move the money.
    #[derive(Clone)]
    struct Followed {
        order: Order,
        payment: PaymentRecord,
        refunds: Vec<OrderRefund>,
    }

    impl Followed {
        fn paid() -> Self {
            let (order, payment) = paid_order();
            let cause = Cause::capture(&payment.capture, None);
            let order = order.append_fact(FactKind::Paid, cause, NOW);
            Self { order, payment, refunds: Vec::new() }
        }

        /// Writes a refund as it is now, and what its order tells along with that.
        fn write(&mut self, refund: OrderRefund, order: Order) {
            self.refunds.retain(|known| known.key != refund.key);
            self.refunds.push(refund);
            self.refunds.sort_by_key(|refund| refund.key);
            self.order = order;
        }

        fn give(&mut self, request: &RefundRequest) -> Result<(), RefundRefusal> {
            let plan = decide_refund(&self.order, Some(&self.payment), request, NOW)?;
            self.payment = plan.payment;
            self.write(plan.refund, plan.order);
            Ok(())
        }

        /// An operator gives money back, which the provider sends or does not.
        fn given(&mut self, amount: i64, is_sent: bool) {
            let request = RefundRequest {
                number: RefundNumber::try_from(self.order.refunds.made + 1).unwrap(),
                tickets: RefundedTickets::Named(Vec::new()),
                amount: Some(money(amount, "EUR")),
                asked_by: AskedBy::Operator,
                reason: None,
            };
            self.give(&request).unwrap();
            if is_sent {
                self.sent(self.refunds.len() - 1);
            }
        }

        /// A refund is back.
        fn sent(&mut self, at: usize) {
            let refund = self.refunds[at].after_reply(&RefundReply::Refunded, NOW).unwrap();
            let order = self.order.after_part(&refund, NOW);
            self.write(refund, order);
        }

        /// The provider says this of a dispute, until the order says the same, and what it took is recorded as back.
        fn says(&mut self, id: &str, amount: i64, state: DisputeState) {
            let report = report(&self.payment, id, amount, state);
            for _ in 0..30 {
                let Self { order, payment, refunds } = &*self;
                match decide_dispute(order, payment, refunds, &report, true, NOW).unwrap() {
                    DisputeStep::Nothing => break,
                    DisputeStep::Record(plan) => {
                        (self.order, self.payment) = (plan.order, plan.payment);
                    }
                    DisputeStep::Refund(request) => self.give(&request).unwrap(),
                    DisputeStep::Back(refund) | DisputeStep::Finish(refund) => {
                        let order = self.order.after_part(&refund, NOW);
                        self.write(*refund, order);
                    }
                    DisputeStep::Undo(refund) => {
                        let order = self.order.after_reinstated(&refund, NOW);
                        self.write(*refund, order);
                    }
                }
            }
            let is_due = |refund: &OrderRefund| {
                refund.is_taken_by_dispute() && !refund.refund.state.is_back()
            };
            while let Some(at) = self.refunds.iter().position(is_due) {
                self.sent(at);
            }
        }

        /// What it comes to: the balances of merchant, owed, disputed and provider, and how many tickets are live.
        fn comes_to(&self) -> ([i64; 4], usize) {
            let moved = entries(&transfers([&self.order]));
            let of = |is_it: fn(&Account) -> bool| -> i64 {
                let all = moved.iter().filter(|((account, _), _)| is_it(account));
                all.map(|(_, balance)| i64::try_from(balance.left()).unwrap()).sum()
            };
            let balances = [
                of(|account| matches!(account, Account::Merchant(..) | Account::Fees)),
                of(|account| *account == Account::Owed),
                of(|account| *account == Account::Disputed),
                of(|account| matches!(account, Account::Provider(_))),
            ];
            assert_eq!(balances.iter().sum::<i64>(), 0);
            let times =
                |state| self.payment.disputes.iter().map(|one| one.times(state)).sum::<usize>();
            for state in DisputeState::ALL {
                let kind = state.fact_kind();
                let told = self.order.facts.all.iter().filter(|fact| fact.kind == kind);
                assert_eq!(told.count(), times(state), "{state:?}");
            }
            (balances, self.order.live_tickets().count())
        }
    }

    /// Every state here × everything that a provider may say: what becomes of a payment of 1000 with a dispute of all of it.
    #[test]
    fn the_table_of_disputes() {
        use DisputeState::{Lost, Open, Won};
        const KEPT: ([i64; 4], usize) = ([1000, 0, 0, -1000], 2);
        const OPEN: ([i64; 4], usize) = ([1000, 0, -1000, 0], 2);
        const TAKEN: ([i64; 4], usize) = ([0, 0, 0, 0], 0);
        // The tickets are gone, and the money is here: it is owed.
        const OWED: ([i64; 4], usize) = ([0, 1000, 0, -1000], 0);
        for (before, says, expected) in [
            (&[][..], Open, OPEN),
            (&[], Won, KEPT),
            (&[], Lost, TAKEN),
            (&[Open], Open, OPEN),
            (&[Open], Won, KEPT),
            (&[Open], Lost, TAKEN),
            (&[Won], Open, OPEN),
            (&[Won], Won, KEPT),
            (&[Won], Lost, TAKEN),
            (&[Lost], Open, TAKEN),
            (&[Lost], Won, OWED),
            (&[Lost], Lost, TAKEN),
            // And on from there.
            (&[Lost, Won], Won, OWED),
            (&[Lost, Won], Open, ([0, 1000, -1000, 0], 0)),
            (&[Lost, Won], Lost, TAKEN),
            (&[Won, Lost], Won, OWED),
            (&[Won, Lost, Won], Lost, TAKEN),
        ] {
            let mut followed = Followed::paid();
            for state in before.iter().chain([&says]) {
                followed.says("dp_1", 1000, *state);
            }
            assert_eq!(followed.comes_to(), expected, "{before:?}, then {says:?}");
            let again = followed.clone();
            followed.says("dp_1", 1000, says);
            assert_eq!(followed.order, again.order, "{before:?}: {says:?} again changes nothing");
        }
    }

    /// What was won after it was lost is sent to who paid as any other refund, and may be taken by another loss then.
    #[test]
    fn what_was_lost_and_came_back_is_a_refund_as_any_other() {
        let mut followed = Followed::paid();
        followed.says("dp_1", 1000, DisputeState::Lost);
        followed.says("dp_1", 1000, DisputeState::Won);
        let owed = followed.refunds[0].clone();
        assert_eq!((owed.refund.state, owed.ended), (RefundState::FailedLater, 1));
        assert_eq!(followed.order.state, OrderState::RefundDue);
        let mut sent = followed.clone();
        let due = OrderRefund { refund: Refund::due(NOW), ..owed };
        assert!(!due.is_taken_by_dispute(), "its provider is asked");
        let order = sent.order.clone();
        sent.write(due, order);
        sent.sent(0);
        assert_eq!(sent.comes_to(), ([0, 0, 0, 0], 0));
        assert_eq!(sent.order.state, OrderState::Refunded);
        // It was sent, and is taken once more: that is nobody's but the platform's, and a person's matter.
        sent.says("dp_1", 1000, DisputeState::Lost);
        assert_eq!(sent.comes_to(), ([0, 0, -1000, 1000], 0));
    }

    /// Partly refunded, and then disputed: what exceeds the rest stays in dispute, and comes back with a dispute that is won.
    #[test]
    fn a_dispute_of_what_was_partly_refunded() {
        use DisputeState::{Lost, Won};
        for (amount, states, expected) in [
            (1000, &[Lost][..], ([0, 0, -400, 400], 0)),
            (600, &[Lost], ([0, 0, 0, 0], 0)),
            (1000, &[Lost, Won], ([0, 600, 0, -600], 0)),
            (1000, &[Won], ([600, 0, 0, -600], 2)),
            (1000, &[Won, Lost, Won], ([0, 600, 0, -600], 0)),
            // A part of the rest: the merchant keeps what it did not take.
            (300, &[Lost], ([300, 0, 0, -300], 0)),
            (300, &[Lost, Won], ([300, 300, 0, -600], 0)),
        ] {
            let mut followed = Followed::paid();
            followed.given(400, true);
            for state in states {
                followed.says("dp_1", amount, *state);
            }
            assert_eq!(followed.comes_to(), expected, "{amount} {states:?}");
        }
        // What the provider has not sent the dispute has paid, and no more once it is won.
        for (states, expected) in [(&[Lost][..], [0, 0, 0, 0]), (&[Lost, Won], [0, 1000, 0, -1000])]
        {
            let mut followed = Followed::paid();
            followed.given(400, false);
            for state in states {
                followed.says("dp_1", 1000, *state);
            }
            assert_eq!(followed.comes_to().0, expected, "{states:?}");
        }
    }

    /// Two disputes of a payment at once, in every order of their ends: each takes what the other leaves.
    #[test]
    fn two_disputes_of_a_payment_are_open_at_once() {
        use DisputeState::{Lost, Open, Won};
        for (one, other, expected) in [
            (Won, Won, ([1000, 0, 0, -1000], 2)),
            (Won, Lost, ([400, 0, 0, -400], 0)),
            (Lost, Won, ([600, 0, 0, -600], 0)),
            // All tickets went with the first: there is no refund after that, and what the other has taken stays in
            // dispute, for a person.
            (Lost, Lost, ([600, 0, -600, 0], 0)),
            (Open, Lost, ([400, 0, -400, 0], 0)),
        ] {
            for is_other_first in [false, true] {
                let mut followed = Followed::paid();
                followed.says("dp_1", 400, Open);
                followed.says("dp_2", 600, Open);
                let refused = RefundRequest {
                    number: RefundNumber::FIRST,
                    tickets: RefundedTickets::All,
                    amount: None,
                    asked_by: AskedBy::Operator,
                    reason: None,
                };
                assert_eq!(followed.clone().give(&refused), Err(RefundRefusal::Disputed));
                let mut ends = [("dp_1", 400, one), ("dp_2", 600, other)];
                if is_other_first {
                    ends.reverse();
                }
                for (id, amount, state) in ends {
                    followed.says(id, amount, state);
                }
                let is_both = (one, other) == (Lost, Lost);
                let expected = match is_both && is_other_first {
                    true => ([400, 0, -400, 0], 0),
                    false => expected,
                };
                assert_eq!(followed.comes_to(), expected, "{one:?} {other:?}, {is_other_first}");
            }
        }
    }

    /// Of what a wallet has paid the newest ticket goes that has let nobody in, for no more than is left of its payment.
    #[test]
    fn a_debt_takes_the_newest_unused_ticket_back() {
        let wallet = |order: &mut Order, payment: &mut PaymentRecord| {
            payment.capture.key.provider = ProviderId::new("wallet").unwrap();
            order.payment = Some(payment.capture.key.clone());
        };
        let (mut order, mut payment) = paid_order();
        let id = DisputeId::new("dp_1").unwrap();
        assert_eq!(take_back_bought(&order, &payment, &id), None, "no wallet has paid it");
        wallet(&mut order, &mut payment);
        let taken = |order: &Order, payment: &PaymentRecord| {
            let request = take_back_bought(order, payment, &id)?;
            let RefundedTickets::Named(names) = &request.tickets else { panic!("{request:?}") };
            let plan = decide_refund(order, Some(payment), &request, NOW).unwrap();
            assert!(plan.must_be_unused());
            Some((names[0].seat.to_string(), plan.refund.amount.amount_minor.0))
        };
        assert_eq!(taken(&order, &payment), Some(("a1".to_owned(), 500)));
        let door = crate::domain::basics::ids::DoorName::new("north").unwrap();
        order.lines[0].tickets[1].checked_in =
            Some(crate::domain::order::CheckIn { at: NOW, door: door.clone() });
        assert_eq!(taken(&order, &payment), Some(("a0".to_owned(), 500)));
        payment.back = MinorUnits(700);
        assert_eq!(taken(&order, &payment), Some(("a0".to_owned(), 300)));
        payment.back = MinorUnits(1000);
        assert_eq!(taken(&order, &payment), None, "it is worth nothing");
        payment.back = MinorUnits::ZERO;
        order.lines[0].tickets[0].checked_in =
            Some(crate::domain::order::CheckIn { at: NOW, door });
        assert_eq!(taken(&order, &payment), None, "it has let somebody in");
    }

    #[test]
    fn a_dispute_is_not_decided_otherwise_for_ever() {
        let mut followed = Followed::paid();
        for _ in 0..MAX_REVERSALS {
            followed.says("dp_1", 1000, DisputeState::Won);
            followed.says("dp_1", 1000, DisputeState::Open);
        }
        followed.says("dp_1", 1000, DisputeState::Won);
        let Followed { order, payment, refunds } = &followed;
        let open = report(payment, "dp_1", 1000, DisputeState::Open);
        let refused = decide_dispute(order, payment, refunds, &open, true, NOW);
        assert_eq!(refused, Err(DisputeRefusal::Reversed(open.id)));
    }

    /// A refund of 400 was made before anybody here knew of the dispute: the provider has no money for it any more.
    #[test]
    fn a_refund_that_was_not_sent_is_back_by_a_lost_dispute() {
        for (disputed, refund_of_rest, told) in [(1000, 600, 1000), (700, 600, 600)] {
            let (order, payment) = paid_order();
            let request = RefundRequest {
                number: RefundNumber::FIRST,
                tickets: RefundedTickets::Named(Vec::new()),
                amount: Some(money(400, "EUR")),
                asked_by: AskedBy::Operator,
                reason: None,
            };
            let earlier = decide_refund(&order, Some(&payment), &request, NOW).unwrap();
            let lost = report(&payment, "dp_1", disputed, DisputeState::Lost);
            let decide = |order: &Order, payment: &PaymentRecord, refunds: &[OrderRefund]| {
                decide_dispute(order, payment, refunds, &lost, false, NOW)
            };
            let mut refunds = vec![earlier.refund.clone()];
            let (mut order, payment) = recorded(decide(&earlier.order, &earlier.payment, &refunds));
            // One that is not covered whole is left to the provider, and to a person.
            if disputed == 1000 {
                let step = decide(&order, &payment, &refunds);
                let Ok(DisputeStep::Back(back)) = step else { panic!("{step:?}") };
                assert_eq!(back.refund.state, RefundState::Refunded);
                order = order.after_part(&back, NOW);
                refunds = vec![*back];
            }
            let step = decide(&order, &payment, &refunds);
            let Ok(DisputeStep::Refund(request)) = step else { panic!("{step:?}") };
            let plan = decide_refund(&order, Some(&payment), &request, NOW).unwrap();
            assert_eq!(plan.refund.amount, money(refund_of_rest, "EUR"));
            refunds.push(plan.refund.clone());
            let (order, _) = recorded(decide(&plan.order, &plan.payment, &refunds));
            let last = order.facts.all.last().and_then(|fact| fact.cause.moved.clone());
            assert_eq!(last.map(|moved| moved.amount), Some(money(told, "EUR")));
        }
    }

    #[test]
    fn what_paid_no_order_or_is_of_another_currency_is_for_a_person() {
        let (order, payment) = paid_order();
        let open = report(&payment, "dp_1", 1000, DisputeState::Open);
        let decide = |order: &Order, payment: &PaymentRecord, report: &DisputeReport| {
            decide_dispute(order, payment, &[], report, true, NOW)
        };
        let unpaid = Order { payment: None, ..order.clone() };
        assert_eq!(decide(&unpaid, &payment, &open), Err(DisputeRefusal::NotAccepted));
        let other = DisputeReport { amount: money(1000, "CNY"), ..open };
        let euros = Err(DisputeRefusal::OtherCurrency(Currency::new("EUR").unwrap()));
        assert_eq!(decide(&order, &payment, &other), euros);
        // All of it went back before: there is no ticket to take, and no money to count.
        let gone = Order { state: OrderState::Refunded, ..order };
        let back = PaymentRecord { back: MinorUnits(1000), ..payment };
        let lost = report(&back, "dp_1", 1000, DisputeState::Lost);
        let (gone, back) = recorded(decide(&gone, &back, &lost));
        assert_eq!(back.disputes[0].amount_minor, MinorUnits(1000));
        let (gone, back) = recorded(decide(&gone, &back, &lost));
        assert_eq!(back.disputes[0].state, DisputeState::Lost);
        assert_eq!(gone.state, OrderState::Refunded);
    }
}
