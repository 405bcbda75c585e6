//! Money that went back outside: by a refund that somebody made at the provider, in its dashboard, and not here.
//!
//! The provider's list of the refunds of a payment says what is back of it, whoever asked for it. A refund there that
//! bears the name of one of ours is ours. Any other that is of just the amount of a refund which the provider has not taken
//! pays that: whoever settles one by hand makes it there. The rest is recorded as a refund of the order, which is back
//! already and takes no ticket: an operator gives the tickets up, or keeps them. Where no order has money left, it pays
//! refused refunds of less.
//!
//! After an exchange the money of a payment is that of several orders, its **holders**: a refund of the payment is of
//! whichever of them has so much left.

use super::ours::Mark;
use super::refund::{RefundRequest, RefundedTickets};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{PaymentId, ProviderRefundId};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::{AskedBy, OrderRefund, RefundName, RefundNumber};
use crate::domain::order::refund::{Refund, RefundReply, RefundState};
use crate::domain::order::{Order, OrderState, PaymentKey, PaymentRecord};

/// How far a refund is at its provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SentState {
    /// The money is with whoever paid.
    Back,
    UnderWay,
    /// It came to nothing; why, in the provider's words.
    Failed(String),
}

/// A refund of a payment as its provider lists it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SentRefund {
    /// The provider's name of it.
    pub id: ProviderRefundId,
    pub amount: Money,
    /// The name of a refund of ours that it bears; `None` if it was not made here.
    pub name: Option<RefundName>,
    pub state: SentState,
    /// When it was made, to the second, if that is said.
    pub at: Option<Timestamp>,
}

impl SentRefund {
    /// True if it may have been made to pay a refund: not before that was asked for, where its time is said.
    fn is_after(&self, refund: &OrderRefund) -> bool {
        let at_ms = self.at.map_or(i64::MAX, |at| at.ms().saturating_add(1_000));
        refund.made_at.ms() < at_ms
    }
}

/// What a provider says of the refunds of a payment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SentReport {
    pub payment: PaymentKey,
    /// The order that the payment was meant for.
    pub order: OrderNumber,
    /// What the payment says of who started it.
    pub mark: Mark,
    /// Oldest first.
    pub refunds: Vec<SentRefund>,
    /// True if these are all of them; a bill has those of its day.
    pub is_complete: bool,
}

/// An order that has money of a payment: the order that it paid, or one that replaces tickets of a holder and is paid
/// with its money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub order: Order,
    /// The record of the order's own payment.
    pub payment: PaymentRecord,
    /// All refunds of the order.
    pub refunds: Vec<OrderRefund>,
}

/// The next step towards what a provider says of the refunds of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutsideStep {
    Nothing,
    /// The refund as it shall be: `Refunded` if one made outside has paid it, `FailedLater` if its money was back and came to
    /// us again, `Failed` if its provider had it and it came to nothing.
    Record(Box<OrderRefund>),
    /// What a refund made outside has paid beyond those, of this order.
    Make(OrderNumber, RefundRequest),
}

/// What a provider says and nobody here can record: something for a person to look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutsideRefusal {
    /// More went back than any order has left.
    #[error("{rest} of refund {id} is of no order")]
    OfNoOrder { id: ProviderRefundId, rest: Money },
    /// A refund was paid otherwise (by an operator, a hand or a lost dispute), and the provider has sent it too.
    #[error("refund {0} was paid otherwise, and went back as well")]
    PaidTwice(RefundName),
    /// The same of the refund of a whole payment.
    #[error("payment {0} was paid back otherwise, and went back as well")]
    WholePaidTwice(PaymentId),
    /// It is of another currency than the payment.
    #[error("refund {0} is of another currency than its payment")]
    OtherCurrency(ProviderRefundId),
}

/// What the text begins with that a refund has in place of a refusal once one made outside has paid it.
const PAID_BY: &str = "by refund ";

fn mark_of(id: &ProviderRefundId) -> String {
    format!("{PAID_BY}{id}")
}

/// The step that records a refund as it shall be, if it changes.
fn recording(refund: Option<OrderRefund>) -> OutsideStep {
    refund.map_or(OutsideStep::Nothing, |refund| OutsideStep::Record(Box::new(refund)))
}

impl OrderRefund {
    /// True if it records money that a refund made outside has sent.
    fn is_by(&self, id: &ProviderRefundId) -> bool {
        let is_it =
            self.asked_by == AskedBy::Outside && self.reason.as_deref() == Some(id.as_str());
        is_it || self.paid_otherwise() == Some(&mark_of(id))
    }

    /// What refunds made outside have sent of it.
    fn outside_minor(&self) -> MinorUnits {
        let is_paid = self.paid_otherwise().is_some_and(|by| by.starts_with(PAID_BY));
        let is_over = matches!(self.refund.state, RefundState::FailedLater | RefundState::Settled);
        if self.asked_by == AskedBy::Outside && !is_over || is_paid {
            self.amount.amount_minor
        } else {
            MinorUnits::ZERO
        }
    }
}

/// How much of a payment is known here to have gone back outside, by the refunds of its holders, where that does not stand
/// against sending `part`. One that was refused may be what somebody meant to pay by a refund made since: it is sent again
/// only once an operator says so.
#[must_use]
pub fn known_outside(refunds: &[OrderRefund], part: &OrderRefund) -> MinorUnits {
    let is_held = part.refund.state.has_failed() && stands(Guard::PaidByHand);
    let stands_against = |other: &&OrderRefund| {
        is_held && other.asked_by == AskedBy::Outside && other.made_at >= part.made_at
    };
    refunds.iter().filter(|other| !stands_against(other)).map(OrderRefund::outside_minor).sum()
}

/// Decides the next step from the refunds that a provider lists of the payment of these holders, the first of which is
/// the order that it paid. Where the list is not complete, one of ours that is under way may have been taken, so that no
/// other pays it. Reads nothing but its arguments.
///
/// # Errors
/// The first [`OutsideRefusal`], once nothing else is to be recorded.
pub fn decide_outside(
    holders: &[Holder],
    sent: &[SentRefund],
    is_complete: bool,
    now: Timestamp,
) -> Result<OutsideStep, OutsideRefusal> {
    let mut refused = None;
    for one in sent {
        match step_of(holders, (sent, is_complete), one, now) {
            Ok(OutsideStep::Nothing) => {}
            Ok(step) => return Ok(step),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    refused.map_or(Ok(OutsideStep::Nothing), Err)
}

/// Decides what the refunds that a provider lists of a payment say of its own refund, where it paid no order and goes back
/// whole: the record as it shall be, `None` if nothing changes. It is back once all refunds together are the payment,
/// whoever asked for them. Reads nothing but its arguments.
///
/// # Errors
/// [`OutsideRefusal::WholePaidTwice`] if an operator has paid it otherwise.
pub fn decide_whole(
    record: &PaymentRecord,
    sent: &[SentRefund],
    now: Timestamp,
) -> Result<Option<PaymentRecord>, OutsideRefusal> {
    let Some(state) = record.refund.as_ref().map(|refund| refund.state) else { return Ok(None) };
    let sum = |is_it: fn(&SentState) -> bool| -> MinorUnits {
        let of_it = sent.iter().filter(|one| is_it(&one.state));
        of_it.map(|one| one.amount.amount_minor).sum()
    };
    let back = sum(|state| *state == SentState::Back);
    let alive = sum(|state| !matches!(state, SentState::Failed(_)));
    let all = record.capture.amount.amount_minor;
    let failures = sent.iter().filter_map(|one| match &one.state {
        SentState::Failed(why) => Some(why.as_str()),
        SentState::Back | SentState::UnderWay => None,
    });
    let failures: Vec<&str> = failures.collect();
    // A list that was read before what is recorded here happened says nothing new.
    if failures.len() < usize::from(record.ended) {
        return Ok(None);
    }
    let failed = failures.last().filter(|_| alive < all && failures.len() > record.ended.into());
    Ok(match state {
        RefundState::Settled if back >= all => {
            return Err(OutsideRefusal::WholePaidTwice(record.capture.key.payment.clone()));
        }
        RefundState::Refunded => failed.and_then(|why| record.undone(why, now)),
        RefundState::Due
        | RefundState::Requested
        | RefundState::Pending
        | RefundState::Failed
        | RefundState::FailedLater
            if back >= all =>
        {
            record.after_reply(&RefundReply::Refunded, now)
        }
        RefundState::Pending => {
            failed.and_then(|why| record.after_reply(&RefundReply::Ended((*why).to_owned()), now))
        }
        RefundState::Due
        | RefundState::Requested
        | RefundState::Failed
        | RefundState::FailedLater
        | RefundState::Unmatched
        | RefundState::Explained
        | RefundState::Outside
        | RefundState::Settled => None,
    })
}

fn step_of(
    holders: &[Holder],
    all: (&[SentRefund], bool),
    sent: &SentRefund,
    now: Timestamp,
) -> Result<OutsideStep, OutsideRefusal> {
    match sent.name {
        Some(name) => step_of_ours(holders, name, &sent.state, now),
        None => step_of_others(holders, all, sent, now),
    }
}

/// The step for a refund that bears a name of ours. Only what its own request does not hear of is left to say here.
fn step_of_ours(
    holders: &[Holder],
    name: RefundName,
    state: &SentState,
    now: Timestamp,
) -> Result<OutsideStep, OutsideRefusal> {
    let mut refunds = holders.iter().flat_map(|holder| &holder.refunds);
    let Some(refund) = refunds.find(|refund| refund.key == name.key) else {
        return Ok(OutsideStep::Nothing);
    };
    let is_paid_otherwise =
        refund.refund.state == RefundState::Settled || refund.paid_otherwise().is_some();
    match state {
        SentState::Failed(why) if refund.name() == name && !is_paid_otherwise => {
            let ended = || refund.after_reply(&RefundReply::Ended(why.clone()), now);
            Ok(recording(refund.undone(why, now).or_else(ended)))
        }
        SentState::Back | SentState::UnderWay if is_paid_otherwise => {
            Err(OutsideRefusal::PaidTwice(name))
        }
        SentState::Failed(_) | SentState::Back | SentState::UnderWay => Ok(OutsideStep::Nothing),
    }
}

/// The step for a refund that was made outside.
fn step_of_others(
    holders: &[Holder],
    (listed, is_complete): (&[SentRefund], bool),
    sent: &SentRefund,
    now: Timestamp,
) -> Result<OutsideStep, OutsideRefusal> {
    let all = || holders.iter().flat_map(|holder| &holder.refunds);
    let by_it = || all().filter(|refund| refund.is_by(&sent.id));
    match sent.state {
        SentState::UnderWay => return Ok(OutsideStep::Nothing),
        SentState::Failed(ref why) => {
            return Ok(recording(by_it().find_map(|refund| refund.undone(why, now))));
        }
        SentState::Back => {}
    }
    let recorded: MinorUnits = by_it().map(|refund| refund.amount.amount_minor).sum();
    let rest = sent.amount.amount_minor - recorded;
    if rest <= MinorUnits::ZERO {
        return Ok(OutsideStep::Nothing);
    }
    // One that the provider has, though nobody here heard of it, is not paid by another.
    let is_taken = |refund: &OrderRefund| {
        let mut of_it = listed.iter().filter(|one| one.name.is_some_and(|it| it.key == refund.key));
        of_it.any(|one| !matches!(one.state, SentState::Failed(_)))
    };
    let may_be_lost = |state| matches!(state, RefundState::Due | RefundState::Requested);
    let is_payable = |refund: &&OrderRefund| {
        let (state, by) = (refund.refund.state, refund.asked_by);
        (state.has_failed() || (is_complete || !stands(Guard::BillIsNoList)) && may_be_lost(state))
            && sent.is_after(refund)
            && !by.is_back_before()
            && !is_taken(refund)
            && refund.amount.currency == sent.amount.currency
            && refund.amount.amount_minor <= rest
            && stands(Guard::PaidByHand)
    };
    let pay = |paid: &OrderRefund| {
        let (state, refusal) = (RefundState::Refunded, Some(mark_of(&sent.id)));
        let refund = Refund { state, changed_at: now, refusal, turn_at: None };
        Ok(recording(Some(OrderRefund { refund, ..paid.clone() })))
    };
    // Whoever settles a refund that was refused does it so; one that was only asked for may have been settled too.
    let of_rest = || all().filter(is_payable).filter(|one| one.amount.amount_minor == rest);
    let has_failed = |one: &&OrderRefund| one.refund.state.has_failed();
    if let Some(paid) = of_rest().find(has_failed).or_else(|| of_rest().next()) {
        return pay(paid);
    }
    let rest = Money { amount_minor: rest, ..sent.amount };
    let has_it = |refunds: &[OrderRefund]| {
        refunds.iter().any(|refund| refund.asked_by == AskedBy::Outside && refund.is_by(&sent.id))
    };
    for Holder { order, payment, refunds } in holders {
        let left = payment.left();
        if order.state != OrderState::Paid
            || has_it(refunds)
            || left.amount_minor <= MinorUnits::ZERO
        {
            continue;
        }
        if left.currency != rest.currency {
            return Err(OutsideRefusal::OtherCurrency(sent.id.clone()));
        }
        let amount_minor = rest.amount_minor.min(left.amount_minor);
        let request = RefundRequest {
            // If the order has the most refunds that are allowed, the number does not matter.
            number: RefundNumber::try_from(order.refunds.made.saturating_add(1))
                .unwrap_or(RefundNumber::FIRST),
            tickets: RefundedTickets::Named(Vec::new()),
            amount: Some(Money { amount_minor, ..left }),
            asked_by: AskedBy::Outside,
            reason: Some(sent.id.to_string()),
        };
        return Ok(OutsideStep::Make(order.number, request));
    }
    // No order has money left: what was refused cannot be sent any more, and this has paid it.
    all()
        .find(is_payable)
        .map_or_else(|| Err(OutsideRefusal::OfNoOrder { id: sent.id.clone(), rest }), pay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::payment::refund::decide_refund;
    use crate::domain::payment::refund::tests::paid;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    /// A paid order of three tickets at 500, its payment, and these refunds: amounts, and how far each is.
    fn holder(refunds: &[(i64, RefundState)]) -> Holder {
        let (mut order, mut payment) = paid();
        let mut made = Vec::new();
        for (amount, state) in refunds {
            let request = RefundRequest {
                number: RefundNumber::try_from(order.refunds.made + 1).unwrap(),
                tickets: RefundedTickets::Named(Vec::new()),
                amount: Some(Money { amount_minor: MinorUnits(*amount), ..order.total }),
                asked_by: AskedBy::Operator,
                reason: None,
            };
            let plan = decide_refund(&order, Some(&payment), &request, NOW).unwrap();
            let refund = Refund { state: *state, ..plan.refund.refund.clone() };
            made.push(OrderRefund { refund, ..plan.refund });
            (order, payment) = (plan.order, plan.payment);
        }
        Holder { order, payment, refunds: made }
    }

    fn sent(id: &str, amount: i64, name: Option<&str>, state: SentState) -> SentRefund {
        let amount = Money { amount_minor: MinorUnits(amount), ..paid().0.total };
        let id = ProviderRefundId::new(id).unwrap();
        let name = name.map(|name| name.parse().unwrap());
        SentRefund { id, amount, name, state, at: None }
    }

    fn by_hand(id: &str, amount: i64) -> SentRefund {
        sent(id, amount, None, SentState::Back)
    }

    #[test]
    fn what_is_not_ours_pays_what_was_refused_or_is_a_refund_of_its_own() {
        use RefundState::{Failed, Pending, Refunded};
        let step = |refunds: &[(i64, RefundState)], one: &SentRefund| match decide_outside(
            &[holder(refunds)],
            std::slice::from_ref(one),
            true,
            NOW,
        ) {
            Ok(OutsideStep::Nothing) => "nothing".to_owned(),
            Ok(OutsideStep::Record(refund)) => {
                assert_eq!(refund.refund.state, Refunded);
                format!("pays {}", refund.key.number)
            }
            Ok(OutsideStep::Make(_, request)) => {
                format!("makes {} of {}", request.number, request.amount.unwrap())
            }
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(step(&[], &by_hand("re_1", 300)), "makes 1 of 300 EUR");
        assert_eq!(step(&[(300, Failed), (200, Failed)], &by_hand("re_1", 200)), "pays 2");
        assert_eq!(step(&[(300, RefundState::Requested)], &by_hand("re_1", 300)), "pays 1");
        // Of another amount it is for itself, and one that the provider has may arrive.
        assert_eq!(step(&[(300, Failed)], &by_hand("re_1", 250)), "makes 2 of 250 EUR");
        assert_eq!(step(&[(300, Pending)], &by_hand("re_1", 300)), "makes 2 of 300 EUR");
        assert_eq!(step(&[(1400, Refunded)], &by_hand("re_1", 300)), "makes 2 of 100 EUR");
        assert_eq!(
            step(&[(1500, Refunded)], &by_hand("re_1", 1)),
            "1 EUR of refund re_1 is of no order"
        );
        for state in [SentState::UnderWay, SentState::Failed("no".to_owned())] {
            assert_eq!(step(&[(300, Failed)], &sent("re_1", 300, None, state)), "nothing");
        }
    }

    #[test]
    fn what_is_ours_is_undone_once_it_was_back_and_told_if_it_was_settled() {
        use RefundState::{Failed, Pending, Refunded, Settled};
        let number = paid().0.number;
        let failed = || SentState::Failed("lost_or_stolen_card".to_owned());
        let of = |state, name: String, sent_state| {
            let one = sent("re_1", 300, Some(&name), sent_state);
            decide_outside(&[holder(&[(300, state)])], &[one], true, NOW)
        };
        let undone = of(Refunded, format!("{number}-r1"), failed()).unwrap();
        let OutsideStep::Record(undone) = undone else { panic!("{undone:?}") };
        assert_eq!((undone.refund.state, undone.ended), (RefundState::FailedLater, 1));
        assert_eq!(undone.name().to_string(), format!("{number}-r1-2"));
        // One that was not back came to nothing; a later name is not what failed.
        for state in [Pending, Failed] {
            let ended = of(state, format!("{number}-r1"), failed()).unwrap();
            let OutsideStep::Record(ended) = ended else { panic!("{ended:?}") };
            assert_eq!((ended.refund.state, ended.ended), (Failed, 1));
        }
        let later = of(Refunded, format!("{number}-r1-2"), failed());
        assert_eq!(later, Ok(OutsideStep::Nothing));
        let twice = of(Settled, format!("{number}-r1"), SentState::Back);
        assert!(matches!(twice, Err(OutsideRefusal::PaidTwice(_))), "{twice:?}");
    }

    /// Each state of the refund of a whole payment × what its provider lists.
    #[test]
    fn a_whole_payment_is_back_once_all_of_it_is() {
        use RefundState as S;
        let (_, accepted) = paid();
        let outcome = crate::domain::order::PaymentOutcome::Refund(
            crate::domain::order::RefundReason::SecondPayment,
        );
        let decided = PaymentRecord::decided(&accepted.capture, outcome, NOW);
        let failed = || SentState::Failed("lost_or_stolen_card".to_owned());
        let lists = [
            vec![sent("re_1", 1500, None, SentState::Back)],
            vec![sent("re_1", 1500, None, failed())],
            vec![sent("re_1", 1500, None, failed()), by_hand("re_2", 1500)],
            vec![sent("re_1", 1500, None, failed()), sent("re_2", 1500, None, SentState::UnderWay)],
            vec![by_hand("re_2", 700)],
        ];
        for (state, expected) in [
            (S::Due, ["refunded", "-", "refunded", "-", "-"]),
            (S::Requested, ["refunded", "-", "refunded", "-", "-"]),
            (S::Pending, ["refunded", "failed 1", "refunded", "-", "-"]),
            (S::Failed, ["refunded", "-", "refunded", "-", "-"]),
            (S::Refunded, ["-", "failed_later 1", "-", "-", "-"]),
            (S::FailedLater, ["refunded", "-", "refunded", "-", "-"]),
            (S::Unmatched, ["-"; 5]),
            (S::Explained, ["-"; 5]),
            (S::Settled, ["twice", "-", "twice", "-", "-"]),
        ] {
            let refund = Some(Refund { state, changed_at: NOW, refusal: None, turn_at: None });
            let record = PaymentRecord { refund, ..decided.clone() };
            let found = lists.each_ref().map(|list| match decide_whole(&record, list, NOW) {
                Ok(None) => "-".to_owned(),
                Ok(Some(after)) if after.ended == 0 => {
                    after.refund.unwrap().state.as_str().to_owned()
                }
                Ok(Some(after)) => {
                    assert_eq!(after.undone, u8::from(state == S::Refunded));
                    format!("{} {}", after.refund.unwrap().state.as_str(), after.ended)
                }
                Err(OutsideRefusal::WholePaidTwice(_)) => "twice".to_owned(),
                Err(other) => other.to_string(),
            });
            assert_eq!(found, expected, "{state:?}");
        }
    }

    #[test]
    fn a_refund_is_recorded_once_and_what_it_may_have_paid_is_not_sent() {
        let mut one = holder(&[(300, RefundState::Failed)]);
        let list = [by_hand("re_1", 250)];
        let step = decide_outside(std::slice::from_ref(&one), &list, true, NOW).unwrap();
        let OutsideStep::Make(_, request) = step else { panic!("{step:?}") };
        let plan = decide_refund(&one.order, Some(&one.payment), &request, NOW).unwrap();
        let failed = one.refunds[0].clone();
        one = Holder {
            order: plan.order,
            payment: plan.payment,
            refunds: vec![failed.clone(), plan.refund],
        };
        let again = decide_outside(std::slice::from_ref(&one), &list, true, NOW);
        assert_eq!(again, Ok(OutsideStep::Nothing));
        assert_eq!(known_outside(&one.refunds, &failed), MinorUnits::ZERO, "it stands against it");
        let due = OrderRefund { refund: Refund::due(NOW), ..failed };
        assert_eq!(known_outside(&one.refunds, &due), MinorUnits(250), "an operator said again");
    }
}
