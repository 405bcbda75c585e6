//! The decision on a refund of a paid order: what may go back, and what that changes.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::time::Timestamp;
use crate::domain::order::fact::{Actor, Cause, FactKind, Moved};
use crate::domain::order::order_refund::{
    AskedBy, MAX_REFUNDS, OrderRefund, RefundCounts, RefundKey, RefundNumber,
};
use crate::domain::order::refund::{Refund, RefundState, one_line};
use crate::domain::order::{
    Order, OrderEvent, OrderState, PaymentOutcome, PaymentRecord, RefundReason, TicketName,
    transition,
};

/// Seconds after a capture until when it can be refunded: WeChat Pay and Alipay take a year, others longer.
/// Source: as [`MAX_REFUNDS`]
pub const REFUNDABLE_SECONDS: i64 = 365 * 24 * 60 * 60;
/// Seconds between the requests of two refunds of one order: WeChat Pay takes one a minute.
/// Source: as [`MAX_REFUNDS`]
pub const PAUSE_SECONDS: i64 = 60;

/// Tickets that a refund takes back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RefundedTickets {
    /// All that are live, and all the money that is left.
    All,
    /// These; none if money goes back and every ticket stays.
    Named(Vec<TicketName>),
}

/// A request for a refund.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RefundRequest {
    /// The number that the refund shall have: one more than the order has refunds. The same request again
    /// is answered with the same refund.
    pub number: RefundNumber,
    /// The tickets that are taken back.
    pub tickets: RefundedTickets,
    /// What goes back, if that is not what the tickets cost. Operators only.
    pub amount: Option<Money>,
    pub asked_by: AskedBy,
    /// Why, in the operator's words.
    pub reason: Option<String>,
}

/// Why a refund is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefundRefusal {
    /// The order is not paid.
    #[error("the order is {}", .0.as_str())]
    NotPaid(OrderState),
    /// The order has no such ticket.
    #[error("the order has no ticket {} of tier {}", .0.seat, .0.tier)]
    UnknownTicket(TicketName),
    /// The ticket was refunded before, or is named twice.
    #[error("ticket {} of tier {} is refunded already", .0.seat, .0.tier)]
    TicketRefunded(TicketName),
    /// The ticket has let somebody in: its buyer cannot give it back any more.
    #[error("ticket {} of tier {} was used to get in", .0.seat, .0.tier)]
    TicketCheckedIn(TicketName),
    /// It names neither a ticket nor an amount.
    #[error("it names neither a ticket nor an amount")]
    Nothing,
    /// It is more than is left of the payment.
    #[error("{left} is left of the payment")]
    MoreThanLeft { left: Money },
    /// It is of another currency than the order.
    #[error("the order is in {0}")]
    OtherCurrency(Currency),
    /// No provider can send it: it takes only multiples of an amount.
    #[error("payment providers send back only multiples of {step}")]
    NotSendable { step: Money },
    /// The capture is too old.
    #[error("its payment was captured more than a year ago")]
    TooOld,
    /// Its buyer's wallet, which it has filled, has spent the money.
    #[error("the wallet has only {0}")]
    WalletShort(MinorUnits),
    /// A dispute of its payment is open: what is in dispute may go back without a refund.
    #[error("its payment is disputed")]
    Disputed,
    /// The terms of the sale do not let its buyer.
    #[error("the terms of the sale do not allow it")]
    NotAllowed,
    /// Another refund has this number, or the one before is missing.
    #[error("the next refund of the order has number {next}")]
    OtherNumber {
        /// The number that a new refund would have.
        next: u8,
    },
    /// It is in another state than those of which that can be said.
    #[error("the refund is {}", .0.as_str())]
    OtherState(RefundState),
    /// It has as many refunds as there may be.
    #[error("an order has at most {MAX_REFUNDS} refunds")]
    TooMany,
}

/// A refund that may be made, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RefundPlan {
    /// The order as it shall be: the tickets marked, the refund counted.
    pub order: Order,
    pub refund: OrderRefund,
    /// The payment as it shall be: what goes back is counted.
    pub payment: PaymentRecord,
}

impl RefundPlan {
    /// The order with the tickets that are taken back alone, live: what it gives up.
    #[must_use]
    pub fn taken_back(&self) -> Order {
        let mut lines = self.order.lines_of(self.refund.key.number);
        let tickets = lines.iter_mut().flat_map(|line| &mut line.tickets);
        tickets.for_each(|ticket| ticket.refund = None);
        Order { lines, ..self.order.clone() }
    }

    /// The refunds that the order had before.
    #[must_use]
    pub fn before(&self) -> RefundCounts {
        let RefundCounts { made, back } = self.order.refunds;
        let is_back = self.refund.refund.state.is_back();
        RefundCounts { made: made.saturating_sub(1), back: back.saturating_sub(u8::from(is_back)) }
    }
}

/// Decides a request for a refund of an order. `payment` is the record of the order's own payment. Reads
/// nothing but its arguments.
///
/// # Errors
/// The first [`RefundRefusal`].
pub fn decide_refund(
    order: &Order,
    payment: Option<&PaymentRecord>,
    request: &RefundRequest,
    now: Timestamp,
) -> Result<RefundPlan, RefundRefusal> {
    decide_refund_keeping(order, payment, request, MinorUnits::ZERO, now)
}

/// Decides as [`decide_refund`], where a part does not go back: it pays another order of the buyer.
///
/// # Errors
/// As [`decide_refund`].
pub(crate) fn decide_refund_keeping(
    order: &Order,
    payment: Option<&PaymentRecord>,
    request: &RefundRequest,
    kept_minor: MinorUnits,
    now: Timestamp,
) -> Result<RefundPlan, RefundRefusal> {
    let not_paid = || RefundRefusal::NotPaid(order.state);
    let payment = payment.filter(|record| {
        record.outcome == PaymentOutcome::Accepted
            && order.payment.as_ref() == Some(&record.capture.key)
    });
    let payment = payment.filter(|_| order.state == OrderState::Paid).ok_or_else(not_paid)?;
    check_number(order, request.number)?;
    // What is back before it is asked for is back however old the payment is, and whatever is disputed.
    if !request.asked_by.is_back_before() {
        let is_asked = !payment.capture.key.provider.is_wallet();
        if is_asked && payment.captured_at().plus_seconds(REFUNDABLE_SECONDS) <= now {
            return Err(RefundRefusal::TooOld);
        }
        // A cancelled sale has no ticket any more, whoever has the money: its refund waits for the dispute.
        let waits = request.asked_by == AskedBy::SaleCancelled;
        if stands(Guard::DisputeOpen) && payment.open_dispute().is_some() && !waits {
            return Err(RefundRefusal::Disputed);
        }
    }
    let (tickets, price) = taken_back(order, request, now)?;
    let left = payment.left();
    let worth = amount_of(order, request, price, left)?;
    if worth.amount_minor < kept_minor {
        return Err(RefundRefusal::MoreThanLeft { left: worth });
    }
    let amount = Money { amount_minor: worth.amount_minor - kept_minor, ..worth };
    let amount = sendable(amount, request, payment)?;
    let worth = Money { amount_minor: amount.amount_minor + kept_minor, ..worth };
    if tickets.is_empty() && amount.amount_minor == MinorUnits::ZERO {
        return Err(RefundRefusal::Nothing);
    }
    let key = RefundKey { order: order.number, number: request.number };
    // A refund of 0 is not requested from a provider.
    let is_back = amount.amount_minor == MinorUnits::ZERO;
    let state = if is_back { RefundState::Refunded } else { RefundState::Due };
    let refund = OrderRefund {
        key,
        payment: payment.capture.key.clone(),
        tickets,
        amount,
        kept_minor,
        asked_by: request.asked_by,
        reason: request.reason.as_deref().map(one_line),
        made_at: now,
        refund: Refund { state, changed_at: now, refusal: None, turn_at: None },
        ended: 0,
    };
    let order = order.with_refund(&refund, now).ok_or_else(not_paid)?;
    let counted = if stands(Guard::KeptCounted) { worth } else { amount };
    let back = payment.back + counted.amount_minor;
    let payment = PaymentRecord { back, ..payment.clone() };
    Ok(RefundPlan { order, refund, payment })
}

fn check_number(order: &Order, number: RefundNumber) -> Result<(), RefundRefusal> {
    if order.refunds.made >= MAX_REFUNDS {
        return Err(RefundRefusal::TooMany);
    }
    let next = order.refunds.made + 1;
    let is_next = number.get() == next;
    is_next.then_some(()).ok_or(RefundRefusal::OtherNumber { next })
}

/// The tickets that a request takes back, and what goes back for them.
fn taken_back(
    order: &Order,
    request: &RefundRequest,
    now: Timestamp,
) -> Result<(Vec<TicketName>, MinorUnits), RefundRefusal> {
    let mut names: Vec<TicketName> = Vec::new();
    let mut price = MinorUnits::ZERO;
    let all: Vec<TicketName> =
        order.live_tickets().map(|(line, ticket)| ticket.named(line)).collect();
    let wanted = match &request.tickets {
        RefundedTickets::All => &all,
        RefundedTickets::Named(named) => named,
    };
    for name in wanted {
        let each = order.lines.iter().filter(|line| line.tier == name.tier);
        let found = each
            .flat_map(|line| line.tickets.iter().map(move |ticket| (line, ticket)))
            .find(|(_, ticket)| ticket.name == name.seat);
        let (line, ticket) = found.ok_or_else(|| RefundRefusal::UnknownTicket(name.clone()))?;
        if stands(Guard::TicketOnce) && (!ticket.is_live() || names.contains(name)) {
            return Err(RefundRefusal::TicketRefunded(name.clone()));
        }
        price += match request.asked_by {
            AskedBy::Operator | AskedBy::SaleCancelled | AskedBy::Dispute | AskedBy::Outside => {
                line.price_minor
            }
            AskedBy::Buyer | AskedBy::Exchange => {
                if stands(Guard::CheckedInStays) && ticket.checked_in.is_some() {
                    return Err(RefundRefusal::TicketCheckedIn(name.clone()));
                }
                let is_exchange = request.asked_by == AskedBy::Exchange;
                let terms = if is_exchange { line.exchange } else { line.terms };
                // What an exchange that was begun in time is worth was said then.
                let is_begun = is_exchange && request.amount.is_some();
                let terms = terms.filter(|terms| is_begun || now < terms.until);
                let terms = terms.ok_or(RefundRefusal::NotAllowed)?;
                (line.price_minor - terms.fee_minor).max(MinorUnits::ZERO)
            }
        };
        names.push(name.clone());
    }
    Ok((names, price))
}

/// The amount that goes back: the amount asked for, or the worth of the tickets; for a whole order all that is left.
fn amount_of(
    order: &Order,
    request: &RefundRequest,
    price: MinorUnits,
    left: Money,
) -> Result<Money, RefundRefusal> {
    let is_whole = request.tickets == RefundedTickets::All;
    let amount = match (request.asked_by, request.amount) {
        (AskedBy::Buyer, Some(_)) => return Err(RefundRefusal::NotAllowed),
        (
            AskedBy::Operator
            | AskedBy::SaleCancelled
            | AskedBy::Dispute
            | AskedBy::Exchange
            | AskedBy::Outside,
            Some(amount),
        ) => amount,
        // An amount that was refunded before without a ticket is not owed once more.
        (AskedBy::Buyer | AskedBy::Exchange, None) => {
            Money { amount_minor: price.min(left.amount_minor), ..left }
        }
        (
            AskedBy::Operator | AskedBy::SaleCancelled | AskedBy::Dispute | AskedBy::Outside,
            None,
        ) => {
            if is_whole {
                left
            } else {
                Money { amount_minor: price, ..left }
            }
        }
    };
    if amount.currency != order.total.currency {
        return Err(RefundRefusal::OtherCurrency(order.total.currency));
    }
    let fits = (MinorUnits::ZERO..=left.amount_minor).contains(&amount.amount_minor);
    if stands(Guard::RefundBound) && !fits {
        return Err(RefundRefusal::MoreThanLeft { left });
    }
    Ok(amount)
}

/// What a provider can send of an amount. What an operator names is sent or refused, and all that is left goes back as
/// it is; what tickets are worth is rounded down. Wallets and banks take any amount.
fn sendable(
    amount: Money,
    request: &RefundRequest,
    payment: &PaymentRecord,
) -> Result<Money, RefundRefusal> {
    let currency = amount.currency;
    let rounded = Money { amount_minor: currency.round_down(amount.amount_minor), currency };
    let is_sent = !request.asked_by.is_back_before() && !payment.capture.key.provider.is_wallet();
    if !is_sent || rounded == amount || amount == payment.left() {
        return Ok(amount);
    }
    if request.asked_by == AskedBy::Operator && request.amount.is_some() {
        return Err(RefundRefusal::NotSendable {
            step: Money { amount_minor: currency.step(), currency },
        });
    }
    Ok(rounded)
}

impl Order {
    /// The order with a new refund; `None` if it is not paid.
    fn with_refund(&self, refund: &OrderRefund, now: Timestamp) -> Option<Self> {
        let mut order = self.clone();
        for line in &mut order.lines {
            let tier = line.tier.clone();
            for ticket in &mut line.tickets {
                let is_named = |name: &TicketName| name.tier == tier && name.seat == ticket.name;
                if refund.tickets.iter().any(is_named) {
                    ticket.refund = Some(refund.key.number);
                }
            }
        }
        order.refunds.made = refund.key.number.get();
        if refund.refund.state.is_back() {
            order.refunds.back += 1;
        }
        let is_last = !order.has_live_tickets();
        let event = if is_last { OrderEvent::Refund } else { OrderEvent::RefundPart };
        let by = match refund.asked_by {
            AskedBy::Buyer | AskedBy::Exchange => Actor::Buyer,
            AskedBy::Operator | AskedBy::SaleCancelled => Actor::Operator,
            AskedBy::Dispute | AskedBy::Outside => Actor::Provider,
        };
        let order = order.after(event, Cause::refund_made(refund, by), now)?;
        // The last tickets cost nothing, so there is no money to wait for.
        let confirmed = transition(order.state, OrderEvent::RefundConfirmed);
        let state = confirmed.filter(|_| order.is_all_back()).unwrap_or(order.state);
        Some(Self { state, ..order })
    }

    /// The order after the money of one more of its refunds is back by its provider.
    #[must_use]
    pub fn after_part(&self, refund: &OrderRefund, now: Timestamp) -> Self {
        self.after_part_by(refund, Actor::Provider, now)
    }

    /// The order after an operator has paid one of its refunds otherwise.
    #[must_use]
    pub fn after_settled(&self, refund: &OrderRefund, now: Timestamp) -> Self {
        self.after_part_by(refund, Actor::Operator, now)
    }

    /// The order after the money of one of its refunds, which was back, is not.
    #[must_use]
    pub fn after_undone(&self, refund: &OrderRefund, now: Timestamp) -> Self {
        self.after_undone_by(Cause::refund(refund, Actor::Provider), now)
    }

    /// The order after a dispute is won that had taken the money of one of its refunds: it is owed, out of what was in
    /// dispute.
    #[must_use]
    pub fn after_reinstated(&self, refund: &OrderRefund, now: Timestamp) -> Self {
        let Cause { by, moved } = Cause::refund(refund, Actor::Provider);
        let disputed = Some(RefundReason::Disputed);
        let moved = moved.map(|moved| Moved { reason: disputed, ..moved });
        self.after_undone_by(Cause { by, moved }, now)
    }

    fn after_undone_by(&self, cause: Cause, now: Timestamp) -> Self {
        let RefundCounts { made, back } = self.refunds;
        let refunds = RefundCounts { made, back: back.saturating_sub(1) };
        let order = Self { refunds, ..self.clone() };
        let owed = order.after(OrderEvent::RefundUndone, cause.clone(), now);
        owed.unwrap_or_else(|| order.append_fact(FactKind::RefundUndone, cause, now))
    }

    fn after_part_by(&self, refund: &OrderRefund, by: Actor, now: Timestamp) -> Self {
        let RefundCounts { made, back } = self.refunds;
        let refunds = RefundCounts { made, back: back.saturating_add(1).min(made) };
        let order = Self { refunds, ..self.clone() };
        let cause = Cause::refund(refund, by);
        let confirmed = order
            .is_all_back()
            .then(|| order.after(OrderEvent::RefundConfirmed, cause.clone(), now));
        confirmed.flatten().unwrap_or_else(|| order.append_fact(FactKind::Refunded, cause, now))
    }

    /// True if all the money of its refunds is back.
    fn is_all_back(&self) -> bool {
        let RefundCounts { made, back } = self.refunds;
        made > 0 && back == made
    }
}

impl OrderRefund {
    /// True if a request asks for this very refund, of `order` as it is now, with `left` of its payment.
    #[must_use]
    pub fn answers(&self, request: &RefundRequest, order: &Order, left: Money) -> bool {
        let by_default = match request.asked_by {
            // The terms of that time decided a buyer's amount.
            AskedBy::Buyer | AskedBy::Exchange => true,
            AskedBy::Operator | AskedBy::SaleCancelled | AskedBy::Dispute | AskedBy::Outside => {
                match &request.tickets {
                    RefundedTickets::All => left.amount_minor == MinorUnits::ZERO,
                    RefundedTickets::Named(_) => self.price(order) == self.amount.amount_minor,
                }
            }
        };
        let is_named = match &request.tickets {
            // After a refund of all live tickets there is no other.
            RefundedTickets::All => {
                !order.has_live_tickets() && order.refunds.made == self.key.number.get()
            }
            RefundedTickets::Named(named) => {
                named.len() == self.tickets.len()
                    && named.iter().all(|name| self.tickets.contains(name))
            }
        };
        self.key.number == request.number
            && self.asked_by == request.asked_by
            && is_named
            && request.amount.map_or(by_default, |amount| amount == self.amount)
    }

    /// The price of the refund's tickets.
    fn price(&self, order: &Order) -> MinorUnits {
        let line = |name: &TicketName| order.lines.iter().find(|line| line.tier == name.tier);
        self.tickets.iter().filter_map(line).map(|line| line.price_minor).sum()
    }

    /// The time from which the provider may be asked for the refund: [`PAUSE_SECONDS`] after it was asked for the last
    /// of the others.
    #[must_use]
    pub fn may_be_asked_at(&self, others: &[Self]) -> Option<Timestamp> {
        let asked = |other: &&Self| {
            other.key != self.key
                && match other.refund.state {
                    RefundState::Due
                    | RefundState::Requested
                    | RefundState::Unmatched
                    | RefundState::Explained
                    | RefundState::Outside
                    | RefundState::FailedLater
                    | RefundState::Settled => false,
                    RefundState::Pending | RefundState::Failed | RefundState::Refunded => {
                        other.amount.amount_minor > MinorUnits::ZERO
                    }
                }
        };
        let last = others.iter().filter(asked).map(|other| other.refund.changed_at).max()?;
        Some(last.plus_seconds(PAUSE_SECONDS))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::basics::ids::{
        Legs, PaymentId, ProviderId, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
    };
    use crate::domain::basics::number::Mint;
    use crate::domain::order::attempt::Attempts;
    use crate::domain::order::fact::Facts;
    use crate::domain::order::refund::RefundReply;
    use crate::domain::order::{Capture, CheckIn, Issue, OrderLine, PaymentKey, Ticket};
    use crate::domain::sale::{MerchantTerms, RefundTerms};

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn name(seat: &str) -> TicketName {
        TicketName { tier: TierId::new("a").unwrap(), seat: SeatName::new(seat).unwrap() }
    }

    /// A paid order of three tickets at 500, which may be given back for a fee of 100.
    pub(crate) fn paid() -> (Order, PaymentRecord) {
        let user = UserId::new("7").unwrap();
        let currency = Currency::new("EUR").unwrap();
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
                terms: Some(RefundTerms {
                    until: NOW.plus_seconds(60),
                    fee_minor: MinorUnits(100),
                }),
                exchange: None,
                tickets: (1..=3).map(ticket).collect(),
            }],
            total: Money { amount_minor: MinorUnits(1500), currency },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW.plus_seconds(60),
            changed_at: NOW,
            payment: Some(key.clone()),
            attempts: Attempts::default(),
            facts: Facts::made(NOW).with(FactKind::Paid, NOW, Cause::BUYER),
            refunds: RefundCounts::default(),
            merchant: MerchantTerms::house(),
            exchange: None,
        };
        let capture = Capture { key, order: order.number, amount: order.total, attempt: None };
        let record = PaymentRecord::decided(&capture, PaymentOutcome::Accepted, NOW);
        (order, record)
    }

    /// The same in a currency of three decimals, of which providers take whole tens, with a fee of an earlier release.
    fn dinars() -> (Order, PaymentRecord) {
        let (mut order, mut payment) = paid();
        let currency = Currency::new("KWD").unwrap();
        order.total.currency = currency;
        payment.capture.amount.currency = currency;
        order.lines[0].terms =
            Some(RefundTerms { until: NOW.plus_seconds(60), fee_minor: MinorUnits(15) });
        (order, payment)
    }

    #[test]
    fn what_goes_back_can_be_sent() {
        let it = dinars();
        let dinars = |amount: i64| Money { amount_minor: MinorUnits(amount), ..it.0.total };
        let sent = |request: &RefundRequest| decide(&it, request).map(|plan| plan.refund.amount);
        let by_buyer = ask(1, AskedBy::Buyer, of(&["a1"]));
        assert_eq!(sent(&by_buyer), Ok(dinars(480)), "485, rounded down");
        let both = ask(1, AskedBy::Buyer, of(&["a1", "a2"]));
        assert_eq!(sent(&both), Ok(dinars(970)), "the sum is rounded");
        assert_eq!(decide(&it, &both).unwrap().payment.back, MinorUnits(970));
        let of_operator = |amount: i64| RefundRequest {
            amount: Some(dinars(amount)),
            ..ask(1, AskedBy::Operator, of(&[]))
        };
        assert_eq!(sent(&of_operator(480)), Ok(dinars(480)));
        let refused = RefundRefusal::NotSendable { step: dinars(10) };
        assert_eq!(sent(&of_operator(485)), Err(refused));
        // All that is left goes back as it is, and a dispute takes what it takes.
        let mut odd = it.clone();
        odd.1.back = MinorUnits(5);
        let rest = ask(1, AskedBy::Operator, RefundedTickets::All);
        assert_eq!(decide(&odd, &rest).unwrap().refund.amount, dinars(1495));
        let taken = RefundRequest { asked_by: AskedBy::Dispute, ..of_operator(485) };
        assert_eq!(sent(&taken), Ok(dinars(485)));
    }

    fn ask(number: u8, by: AskedBy, tickets: RefundedTickets) -> RefundRequest {
        RefundRequest {
            number: RefundNumber::try_from(number).unwrap(),
            tickets,
            amount: None,
            asked_by: by,
            reason: None,
        }
    }

    fn of(seats: &[&str]) -> RefundedTickets {
        RefundedTickets::Named(seats.iter().map(|seat| name(seat)).collect())
    }

    fn decide(
        (order, payment): &(Order, PaymentRecord),
        request: &RefundRequest,
    ) -> Result<RefundPlan, RefundRefusal> {
        decide_refund(order, Some(payment), request, NOW)
    }

    fn euros(amount: i64) -> Money {
        Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() }
    }

    #[test]
    fn a_ticket_goes_back_at_its_price_and_the_order_stays_paid_while_another_lives() {
        let before = paid();
        let plan = decide(&before, &ask(1, AskedBy::Operator, of(&["a2"]))).unwrap();
        assert_eq!(plan.order.state, OrderState::Paid);
        assert_eq!(plan.refund.amount, euros(500));
        assert_eq!(plan.payment.left(), euros(1000));
        assert_eq!(plan.order.tickets().get(), 2);
        assert_eq!(plan.order.held_lines()[0].seats, [Seat(1), Seat(3)]);
        assert_eq!(plan.order.seats_of(RefundNumber::FIRST)[0].seats, [Seat(2)]);
        assert_eq!(plan.refund.key.to_string(), format!("{}-r1", plan.order.number));
        assert_eq!(plan.refund.key.to_string().parse(), Ok(plan.refund.key));
        assert!("1-r01".parse::<RefundKey>().is_err() && "1-r51".parse::<RefundKey>().is_err());
        // The same again is another refund of a ticket that is refunded.
        let again = decide_refund(
            &plan.order,
            Some(&plan.payment),
            &ask(2, AskedBy::Operator, of(&["a2"])),
            NOW,
        );
        assert_eq!(again, Err(RefundRefusal::TicketRefunded(name("a2"))));
    }

    #[test]
    fn a_request_is_answered_with_the_refund_that_it_made_and_with_no_other() {
        let operator = |tickets| ask(1, AskedBy::Operator, tickets);
        let goodwill =
            |amount| RefundRequest { amount: Some(euros(amount)), ..operator(of(&["a2"])) };
        let whole = || operator(RefundedTickets::All);
        let requests = [
            operator(of(&["a2"])),
            operator(of(&["a1"])),
            operator(of(&["a1", "a2"])),
            goodwill(300),
            whole(),
            RefundRequest { amount: Some(euros(300)), ..whole() },
            ask(1, AskedBy::Buyer, of(&["a2"])),
            ask(1, AskedBy::Buyer, RefundedTickets::All),
            ask(1, AskedBy::SaleCancelled, RefundedTickets::All),
        ];
        for made in &requests {
            let plan = decide(&paid(), made).unwrap();
            for asked in &requests {
                let is_known = plan.refund.answers(asked, &plan.order, plan.payment.left());
                assert_eq!(is_known, asked == made, "{made:?} answers {asked:?}");
            }
        }
        // The price of the tickets, said.
        let plan = decide(&paid(), &goodwill(500)).unwrap();
        assert!(plan.refund.answers(&requests[0], &plan.order, plan.payment.left()));
    }

    #[test]
    fn with_its_last_ticket_an_order_is_refund_due_until_all_its_money_is_back() {
        let first = decide(&paid(), &ask(1, AskedBy::Buyer, of(&["a2"]))).unwrap();
        assert_eq!(first.refund.amount, euros(400), "less the fee");
        let second = decide_refund(
            &first.order,
            Some(&first.payment),
            &ask(2, AskedBy::Buyer, RefundedTickets::All),
            NOW,
        )
        .unwrap();
        assert_eq!((second.refund.amount, second.payment.left()), (euros(800), euros(300)));
        assert_eq!(second.order.state, OrderState::RefundDue);
        assert!(second.order.held_lines().is_empty() && !second.order.state.is_live());
        let one_back = second.order.after_part(&first.refund, NOW);
        assert_eq!(one_back.state, OrderState::RefundDue);
        let both_back = one_back.after_part(&second.refund, NOW);
        assert_eq!(both_back.state, OrderState::Refunded);
        let told = both_back.facts.all.iter().map(|fact| fact.kind.as_str());
        let told: Vec<_> = told.collect();
        assert_eq!(told, ["made", "paid", "refund_made", "refund_made", "refunded", "refunded"]);
    }

    #[test]
    fn a_whole_order_takes_all_that_is_left_and_nothing_waits_for_nothing() {
        let goodwill =
            RefundRequest { amount: Some(euros(300)), ..ask(1, AskedBy::Operator, of(&[])) };
        let first = decide(&paid(), &goodwill).unwrap();
        assert_eq!((first.order.tickets().get(), first.payment.left()), (3, euros(1200)));
        let whole = ask(2, AskedBy::SaleCancelled, RefundedTickets::All);
        let rest = decide_refund(&first.order, Some(&first.payment), &whole, NOW).unwrap();
        assert_eq!((rest.refund.amount, rest.payment.left()), (euros(1200), euros(0)));
        let (mut order, mut payment) = paid();
        (order.total, payment.capture.amount) = (euros(0), euros(0));
        order.lines[0].price_minor = MinorUnits::ZERO;
        let free = decide(&(order, payment), &ask(1, AskedBy::Operator, RefundedTickets::All));
        let free = free.unwrap();
        assert_eq!(free.order.state, OrderState::Refunded, "nobody sends nothing");
        assert_eq!(free.refund.refund.state, RefundState::Refunded);
    }

    #[test]
    fn every_refusal_has_its_reason() {
        use RefundRefusal as No;
        let it = paid();
        let one = || ask(1, AskedBy::Operator, of(&["a1"]));
        let with = |amount: Money| RefundRequest { amount: Some(amount), ..one() };
        let yuan = Money { currency: Currency::new("CNY").unwrap(), ..euros(5) };
        let cases = [
            (ask(1, AskedBy::Operator, of(&["a1", "a1"])), No::TicketRefunded(name("a1"))),
            (ask(1, AskedBy::Operator, of(&["b1"])), No::UnknownTicket(name("b1"))),
            (ask(1, AskedBy::Operator, of(&[])), No::Nothing),
            (ask(2, AskedBy::Operator, of(&["a1"])), No::OtherNumber { next: 1 }),
            (with(euros(1501)), No::MoreThanLeft { left: euros(1500) }),
            (with(euros(-1)), No::MoreThanLeft { left: euros(1500) }),
            (with(yuan), No::OtherCurrency(Currency::new("EUR").unwrap())),
            (RefundRequest { asked_by: AskedBy::Buyer, ..with(euros(5)) }, No::NotAllowed),
        ];
        for (request, refusal) in cases {
            assert_eq!(decide(&it, &request), Err(refusal), "{request:?}");
        }
        let mut used = it.clone();
        let door = crate::domain::basics::ids::DoorName::new("north").unwrap();
        used.0.lines[0].tickets[0].checked_in = Some(CheckIn { at: NOW, door });
        let by_buyer = |tickets| ask(1, AskedBy::Buyer, tickets);
        let refused = Err(No::TicketCheckedIn(name("a1")));
        assert_eq!(decide(&used, &by_buyer(of(&["a1"]))), refused);
        assert_eq!(decide(&used, &by_buyer(RefundedTickets::All)), refused);
        assert!(decide(&used, &by_buyer(of(&["a2"]))).is_ok(), "the others may go back");
        assert!(decide(&used, &one()).is_ok(), "an operator decides");
        let late = NOW.plus_seconds(REFUNDABLE_SECONDS);
        assert_eq!(decide_refund(&it.0, Some(&it.1), &one(), late), Err(No::TooOld));
        assert!(decide_refund(&it.0, Some(&it.1), &one(), late.plus_ms(-1)).is_ok());
        let buyer = ask(1, AskedBy::Buyer, of(&["a1"]));
        let until = NOW.plus_seconds(60);
        assert_eq!(decide_refund(&it.0, Some(&it.1), &buyer, until), Err(No::NotAllowed));
        let mut without = it.clone();
        without.0.lines[0].terms = None;
        assert_eq!(decide(&without, &buyer), Err(No::NotAllowed));
        for state in OrderState::ALL.into_iter().filter(|state| *state != OrderState::Paid) {
            let order = Order { state, ..it.0.clone() };
            assert_eq!(decide(&(order, it.1.clone()), &one()), Err(No::NotPaid(state)));
        }
        assert_eq!(decide_refund(&it.0, None, &one(), NOW), Err(No::NotPaid(OrderState::Paid)));
        let full = RefundCounts { made: MAX_REFUNDS, back: 0 };
        let full = (Order { refunds: full, ..it.0.clone() }, it.1.clone());
        assert_eq!(decide(&full, &one()), Err(No::TooMany));
    }

    #[test]
    fn a_refund_waits_a_minute_after_the_one_before_was_asked_for() {
        let first = decide(&paid(), &ask(1, AskedBy::Operator, of(&["a2"]))).unwrap();
        let second = decide_refund(
            &first.order,
            Some(&first.payment),
            &ask(2, AskedBy::Operator, of(&["a1"])),
            NOW,
        );
        let (first, second) = (first.refund, second.unwrap().refund);
        assert_eq!(second.may_be_asked_at(&[first.clone(), second.clone()]), None);
        let asked = first.after_reply(&RefundReply::Pending, NOW.plus_seconds(5)).unwrap();
        let at = Some(NOW.plus_seconds(5 + PAUSE_SECONDS));
        assert_eq!(second.may_be_asked_at(&[asked.clone(), second.clone()]), at);
        assert_eq!(asked.may_be_asked_at(&[asked.clone(), second]), None);
    }
}
