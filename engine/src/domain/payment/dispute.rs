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
use crate::domain::order::refund::{Refund, RefundState};
use crate::domain::order::{Order, OrderState, PaymentKey, PaymentOutcome, PaymentRecord};

/// Most disputes that are kept of one payment. Stripe takes one of a card payment; other methods know a few.
pub const MAX_DISPUTES: usize = 10;

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
    /// Another dispute of the payment is open.
    #[error("dispute {0} of the payment is open")]
    AnotherOpen(DisputeId),
    /// The payment has as many as there may be.
    #[error("a payment has at most {MAX_DISPUTES} disputes")]
    TooMany,
    /// It was decided otherwise before.
    #[error("it was {} before", .0.as_str())]
    Decided(DisputeState),
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
}

/// The share of a dispute that each holder of its payment's money has, in minor units: what was recorded before stays; what is
/// new is of those that have money left, in their order; and what exceeds that is of the first, as a payment that has been
/// given back was.
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
        let left = holder.payment.left().amount_minor.max(MinorUnits::ZERO);
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
        if let Some(open) = payment.open_dispute() {
            return Err(DisputeRefusal::AnotherOpen(open.id.clone()));
        }
        if payment.disputes.len() >= MAX_DISPUTES {
            return Err(DisputeRefusal::TooMany);
        }
        // A dispute that we first hear of when it is over is recorded as opened all the same.
        let amount_minor = report.amount.amount_minor.min(payment.capture.amount.amount_minor);
        let (id, state) = (report.id.clone(), DisputeState::Open);
        let opened = Dispute { id, state, amount_minor, opened_at: now, changed_at: now };
        return record(opened, amount_minor);
    };
    let now_is = |state| Dispute { state, changed_at: now, ..known.clone() };
    match (known.state, report.state) {
        (DisputeState::Open, DisputeState::Open)
        | (DisputeState::Won, DisputeState::Won)
        | (DisputeState::Lost, DisputeState::Lost) => Ok(DisputeStep::Nothing),
        (DisputeState::Open, DisputeState::Lost) => {
            let loss = Loss::of(order, known, left, refunds);
            if let Some(back) = loss.next_back(known, refunds, now) {
                return Ok(DisputeStep::Back(Box::new(back)));
            }
            match loss.refund(order, known, revokes) {
                Some(request) => Ok(DisputeStep::Refund(request)),
                None => record(now_is(DisputeState::Lost), loss.taken + loss.covered),
            }
        }
        (DisputeState::Open, DisputeState::Won) => {
            record(now_is(DisputeState::Won), known.amount_minor)
        }
        (decided @ (DisputeState::Won | DisputeState::Lost), _) => {
            Err(DisputeRefusal::Decided(decided))
        }
    }
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
            Some(refund) => refund.amount.amount_minor,
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
                !refund.asked_by.is_back_before() && refund.amount.amount_minor <= rest
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
        Some(OrderRefund { refund: Refund { state, changed_at: now, refusal }, ..refund.clone() })
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
    DisputePlan { order, payment: PaymentRecord { disputes, ..payment.clone() }, before }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::{
        Legs, PaymentId, ProviderId, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
    };
    use crate::domain::basics::number::Mint;
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
        let decided = Err(DisputeRefusal::Decided(DisputeState::Won));
        assert_eq!(decide(&order, &payment, DisputeState::Lost), decided);
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

    #[test]
    fn one_dispute_is_open_at_a_time() {
        let (order, payment) = paid_order();
        let open = report(&payment, "dp_1", 1000, DisputeState::Open);
        let (order, payment) = recorded(decide_dispute(&order, &payment, &[], &open, true, NOW));
        let other = report(&payment, "dp_2", 1, DisputeState::Open);
        assert_eq!(
            decide_dispute(&order, &payment, &[], &other, true, NOW),
            Err(DisputeRefusal::AnotherOpen(DisputeId::new("dp_1").unwrap()))
        );
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
