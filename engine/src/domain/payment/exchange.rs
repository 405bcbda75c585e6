//! Exchange: tickets of a paid order for other tickets.
//!
//! An exchange is a new order that names the tickets it replaces, one for one. Its number, hold, attempts and expiry
//! are those of any other; only the buyer's limit makes room for it, and the people of the same sale stay with the
//! old order until then. What pays it gives the old tickets up in the same transaction: a refund of the old order,
//! like any other but that nobody gives back what the new order keeps. If the new one ends, or the old tickets are
//! not there any more, the old order stands as it is.
//!
//! One payment pays an order. A new order that costs more than the old tickets are worth is paid whole, and their worth
//! is refunded to the old payment; a new order that does not is paid with their money at once, and the rest is
//! refunded.

use super::pay::CaptureFault;
use super::refund::{
    RefundPlan, RefundRefusal, RefundRequest, RefundedTickets, decide_refund, decide_refund_keeping,
};
use crate::domain::basics::ids::{PaymentId, SaleId};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attendee::AttendeeHash;
use crate::domain::order::exchange::{Exchange, ExchangeRequest};
use crate::domain::order::order_refund::{AskedBy, RefundNumber};
use crate::domain::order::requested::RequestedLine;
use crate::domain::order::{
    Capture, Captured, Order, PaymentKey, PaymentOutcome, PaymentRecord, TicketName,
};
use crate::domain::sale::Sale;

/// Why tickets cannot be exchanged for those asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeRefusal {
    /// The buyer has no such order.
    #[error("there is no such order")]
    NotFound,
    /// Tickets are exchanged one for one.
    #[error("tickets are exchanged one for one: {given} for {asked}")]
    OtherCount {
        /// Tickets that are given up.
        given: Tickets,
        /// Tickets that are asked for.
        asked: Tickets,
    },
    /// Whom the new tickets name is not whom the old ones do.
    #[error("an exchanged ticket is for the same person")]
    OtherPeople,
    /// The sale does not take tickets of that one.
    #[error("tickets of sale {0} are not exchanged for tickets of this one")]
    OtherSale(SaleId),
    /// The sale is in another currency.
    #[error("the tickets were paid in {0}")]
    OtherCurrency(Currency),
    /// The tickets cannot be given up.
    #[error(transparent)]
    Tickets(#[from] RefundRefusal),
}

/// The refund of an old order for a new one.
fn asks(
    old: &Order,
    new: OrderNumber,
    tickets: &[TicketName],
    amount: Option<Money>,
) -> Option<RefundRequest> {
    let number = RefundNumber::try_from(old.refunds.made.checked_add(1)?).ok()?;
    Some(RefundRequest {
        number,
        tickets: RefundedTickets::Named(tickets.to_vec()),
        amount,
        asked_by: AskedBy::Exchange,
        reason: Some(new.to_string()),
    })
}

/// Decides whether the buyer of a new order may give tickets of `old` for it. `payment` is the record of the old
/// order's payment, `old_sale` its sale. Reads nothing but its arguments.
///
/// # Errors
/// The first [`ExchangeRefusal`].
pub fn decide_exchange(
    new: OrderNumber,
    (sale, lines): (&Sale, &[RequestedLine]),
    request: &ExchangeRequest,
    (old_sale, old, payment): (&Sale, &Order, Option<&PaymentRecord>),
    now: Timestamp,
) -> Result<Exchange, ExchangeRefusal> {
    if !sale.takes_tickets_of(old_sale) {
        return Err(ExchangeRefusal::OtherSale(old.sale.clone()));
    }
    if sale.file().currency != old.total.currency {
        return Err(ExchangeRefusal::OtherCurrency(old.total.currency));
    }
    let asked: usize = lines.iter().map(|requested| requested.line.choice.count()).sum();
    let (given, asked) = (Tickets::of_seats(request.tickets.len()), Tickets::of_seats(asked));
    if given != asked {
        return Err(ExchangeRefusal::OtherCount { given, asked });
    }
    let refusal = || ExchangeRefusal::Tickets(RefundRefusal::TooMany);
    let asks = asks(old, new, &request.tickets, None).ok_or_else(refusal)?;
    let plan = decide_refund(old, payment, &asks, now)?;
    if old.sale == *sale.id() && !are_the_same_people(&plan, lines) {
        return Err(ExchangeRefusal::OtherPeople);
    }
    Ok(Exchange {
        order: old.number,
        sale: old.sale.clone(),
        tickets: request.tickets.clone(),
        value_minor: plan.refund.amount.amount_minor,
    })
}

/// True if the lines name the people of the refunded tickets, each as often: those people have their claims already,
/// and another person's claim could not be compared with them before the old ones are given up.
fn are_the_same_people(plan: &RefundPlan, lines: &[RequestedLine]) -> bool {
    let taken = plan.taken_back();
    let mut before: Vec<&Vec<AttendeeHash>> =
        taken.attendees().map(|attendee| &attendee.hashes).collect();
    let mut people = lines.iter().flat_map(|requested| &requested.attendees);
    // A person is known by any of the keys in force.
    let is_among = |hashes: &[AttendeeHash], before: &mut Vec<&Vec<AttendeeHash>>| {
        let is_same = |known: &&Vec<AttendeeHash>| known.iter().any(|hash| hashes.contains(hash));
        before.iter().position(is_same).map(|at| before.swap_remove(at)).is_some()
    };
    people.all(|attendee| is_among(&attendee.hashes, &mut before)) && before.is_empty()
}

/// Plans what the payment `by` of an exchange does to the old order: the tickets are refunded, and the part of their
/// worth that the new order does not keep goes back.
///
/// # Errors
/// The first [`RefundRefusal`]: the old order is not what it was, and stands as it is.
pub fn redeem(
    new: &Order,
    exchange: &Exchange,
    old: &Order,
    payment: Option<&PaymentRecord>,
    by: &PaymentKey,
    now: Timestamp,
) -> Result<RefundPlan, RefundRefusal> {
    let value = Money { amount_minor: exchange.value_minor, ..old.total };
    let asks =
        asks(old, new.number, &exchange.tickets, Some(value)).ok_or(RefundRefusal::TooMany)?;
    let kept = if new.is_moved(by) { new.total.amount_minor } else { MinorUnits::ZERO };
    decide_refund_keeping(old, payment, &asks, kept, now)
}

impl PaymentRecord {
    /// The payment of `new` with the money of this payment, which paid the tickets that `new` replaces.
    ///
    /// # Errors
    /// [`CaptureFault`] if it replaces none.
    pub fn moved_to(&self, new: &Order, now: Timestamp) -> Result<Self, CaptureFault> {
        let id = new.moved_payment_id().ok_or(CaptureFault::ReplacesNothing(new.number))?;
        let payment = PaymentId::new(id).map_err(|error| CaptureFault::Name(new.number, error))?;
        let key = PaymentKey { provider: self.capture.key.provider.clone(), payment };
        let capture = Capture { key, order: new.number, amount: new.total, attempt: None };
        let captured = self.captured.clone().unwrap_or_else(|| {
            let (capture, decided_at) = (self.capture.clone(), self.decided_at);
            Box::new(Captured { capture, decided_at })
        });
        let record = Self::decided(&capture, PaymentOutcome::Accepted, now);
        Ok(Self { captured: Some(captured), ..record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::{DoorName, Legs, ProviderId, TierId};
    use crate::domain::inventory::Line;
    use crate::domain::inventory::choice::{Choice, Together};
    use crate::domain::order::attendee::Attendee;
    use crate::domain::order::exchange::is_moved_id;
    use crate::domain::order::order_refund::OrderRefund;
    use crate::domain::order::{CheckIn, OrderState};
    use crate::domain::payment::refund::tests::paid;
    use crate::domain::sale::RefundTerms;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
    const UNTIL: Timestamp = NOW.plus_seconds(60);

    fn sale(id: &str, group: Option<&str>, merchant: &str, currency: &str) -> Sale {
        let file = serde_json::json!({
            "sale": id, "title": id, "currency": currency, "exchange_group": group,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "merchant": { "merchant": merchant }, "limit_per_buyer": 5, "pay_window_seconds": 600,
            "tiers": [{ "tier": "a", "name": "A", "price_minor": 500, "general_admission": 9 }]
        });
        Sale::new(serde_json::from_value(file).unwrap()).unwrap()
    }

    /// A paid order of three tickets at 500, each of which is exchanged for a fee of 50, and its payment.
    fn old() -> (Order, PaymentRecord) {
        let (mut order, payment) = paid();
        let terms = RefundTerms { until: UNTIL, fee_minor: MinorUnits(50) };
        order.lines[0].exchange = Some(terms);
        (order, payment)
    }

    fn number() -> OrderNumber {
        "77".parse().unwrap()
    }

    fn asks_for(count: u16, attendees: &[char]) -> Vec<RequestedLine> {
        let choice = Choice::Best { count, together: Together::Preferred };
        let line = Line { tier: TierId::new("a").unwrap(), legs: Legs::ONE, choice };
        let attendees = attendees.iter().map(|digit| person(*digit)).collect();
        vec![RequestedLine { line, price_minor: MinorUnits(500), attendees }]
    }

    fn person(digit: char) -> Attendee {
        Attendee { id: None, hashes: vec![digit.to_string().repeat(32).parse().unwrap()] }
    }

    fn gives(order: &Order, count: usize) -> ExchangeRequest {
        let tickets = order.lines[0].tickets.iter().take(count);
        let tickets = tickets.map(|ticket| ticket.named(&order.lines[0])).collect();
        ExchangeRequest { order: order.number, tickets }
    }

    /// What comes of giving the first tickets of an order for as many others of its sale.
    fn decided(
        (order, payment): &(Order, PaymentRecord),
        count: usize,
        now: Timestamp,
    ) -> Result<Exchange, ExchangeRefusal> {
        let here = sale("s", None, "opera", "EUR");
        let lines = asks_for(u16::try_from(count).unwrap(), &[]);
        let of_old = (&here, order, Some(payment));
        decide_exchange(number(), (&here, &lines), &gives(order, count), of_old, now)
    }

    #[test]
    fn tickets_are_worth_their_price_less_the_fee_and_what_is_left() {
        let mut old = old();
        let worth =
            |old: &(Order, PaymentRecord), count| decided(old, count, NOW).unwrap().value_minor;
        assert_eq!(worth(&old, 1), MinorUnits(450));
        assert_eq!(worth(&old, 3), MinorUnits(1350));
        old.1.back = MinorUnits(1200);
        assert_eq!(worth(&old, 3), MinorUnits(300));
    }

    #[test]
    fn what_may_not_be_given_is_refused() {
        let of_tickets = |refusal| Err(ExchangeRefusal::Tickets(refusal));
        assert_eq!(decided(&old(), 1, UNTIL), of_tickets(RefundRefusal::NotAllowed));
        let (mut order, payment) = old();
        order.lines[0].exchange = None;
        assert_eq!(decided(&(order, payment), 1, NOW), of_tickets(RefundRefusal::NotAllowed));
        let (mut order, payment) = old();
        order.state = OrderState::RefundDue;
        let not_paid = RefundRefusal::NotPaid(OrderState::RefundDue);
        assert_eq!(decided(&(order, payment), 1, NOW), of_tickets(not_paid));
        let (mut order, payment) = old();
        let door = DoorName::new("north").unwrap();
        order.lines[0].tickets[0].checked_in = Some(CheckIn { at: NOW, door });
        let used = RefundRefusal::TicketCheckedIn(gives(&order, 1).tickets.remove(0));
        assert_eq!(decided(&(order, payment), 1, NOW), of_tickets(used));
    }

    #[test]
    fn tickets_go_one_for_one_within_a_group_of_one_merchant_and_currency() {
        let (order, payment) = old();
        let here = sale("s", Some("g"), "opera", "EUR");
        let to = |sale: &Sale, count| {
            let (lines, of_old) = (asks_for(count, &[]), (&here, &order, Some(&payment)));
            decide_exchange(number(), (sale, &lines), &gives(&order, 2), of_old, NOW)
        };
        let [given, asked] = [2, 1].map(Tickets::new);
        assert_eq!(to(&here, 1), Err(ExchangeRefusal::OtherCount { given, asked }));
        assert!(to(&sale("t", Some("g"), "opera", "EUR"), 2).is_ok());
        for (group, merchant) in [(Some("h"), "opera"), (None, "opera"), (Some("g"), "circus")] {
            let refused = to(&sale("t", group, merchant, "EUR"), 2);
            assert_eq!(refused, Err(ExchangeRefusal::OtherSale(order.sale.clone())), "{group:?}");
        }
        let dollars = to(&sale("t", Some("g"), "opera", "USD"), 2);
        assert_eq!(dollars, Err(ExchangeRefusal::OtherCurrency(order.total.currency)));
    }

    #[test]
    fn within_a_sale_the_people_stay_and_in_another_they_need_not() {
        let (mut order, payment) = old();
        order.lines[0].tickets[0].attendee = Some(person('a'));
        order.lines[0].tickets[1].attendee = Some(person('b'));
        let here = sale("s", Some("g"), "opera", "EUR");
        let named = |sale: &Sale, people: &[char]| {
            let (lines, of_old) = (asks_for(2, people), (&here, &order, Some(&payment)));
            decide_exchange(number(), (sale, &lines), &gives(&order, 2), of_old, NOW).map(drop)
        };
        assert_eq!(named(&here, &['b', 'a']), Ok(()));
        for others in [&['a', 'c'][..], &['a', 'a'], &['a'], &[], &['a', 'b', 'a']] {
            assert_eq!(named(&here, others), Err(ExchangeRefusal::OtherPeople), "{others:?}");
        }
        assert_eq!(named(&sale("t", Some("g"), "opera", "EUR"), &['c', 'd']), Ok(()));
    }

    /// An order at a price, which replaces two tickets of `old` in its sale.
    fn replacing(old: &Order, total_minor: i64) -> Order {
        let (order, _) = paid();
        let tickets = gives(old, 2).tickets;
        let (sale, value_minor) = (old.sale.clone(), MinorUnits(900));
        Order {
            number: number(),
            state: OrderState::Pending,
            total: Money { amount_minor: MinorUnits(total_minor), ..order.total },
            payment: None,
            exchange: Some(Exchange { order: old.number, sale, tickets, value_minor }),
            ..order
        }
    }

    #[test]
    fn what_is_not_kept_goes_back_and_all_of_it_counts() {
        let (order, payment) = old();
        for (total, is_covered, back, kept) in
            [(900, true, 0, 900), (400, true, 500, 400), (901, false, 900, 0)]
        {
            let new = replacing(&order, total);
            assert_eq!((new.is_covered(), new.needs_no_payment()), (is_covered, is_covered));
            let by = match is_covered {
                true => payment.moved_to(&new, NOW).unwrap().capture.key,
                false => PaymentKey {
                    provider: ProviderId::new("stripe").unwrap(),
                    payment: PaymentId::new("pi_2").unwrap(),
                },
            };
            let exchange = new.exchange.as_ref().unwrap();
            // What was said when it was made holds until it is paid.
            let plan =
                redeem(&new, exchange, &order, Some(&payment), &by, UNTIL.plus_seconds(9)).unwrap();
            let OrderRefund { amount, kept_minor, .. } = &plan.refund;
            assert_eq!((amount.amount_minor.0, kept_minor.0), (back, kept), "{total}");
            assert_eq!(plan.refund.worth().amount_minor, MinorUnits(900));
            assert_eq!(plan.payment.back, MinorUnits(900));
            assert_eq!(plan.refund.exchanged_for(), Some(number()));
            assert_eq!(plan.order.tickets(), Tickets::new(1));
            // They are gone for whoever comes second.
            let again = redeem(&new, exchange, &plan.order, Some(&plan.payment), &by, NOW);
            assert!(matches!(again, Err(RefundRefusal::TicketRefunded(_))), "{again:?}");
        }
    }

    #[test]
    fn money_that_was_moved_is_that_of_its_first_capture() {
        let (order, payment) = old();
        let new = replacing(&order, 400);
        let moved = payment.moved_to(&new, UNTIL).unwrap();
        assert_eq!(moved.capture.key.payment.as_str(), format!("{}-for-77", order.number));
        assert!(new.is_moved(&moved.capture.key) && !new.is_moved(&payment.capture.key));
        assert!(is_moved_id(&moved.capture.key.payment, number()));
        assert!(!is_moved_id(&moved.capture.key.payment, order.number));
        assert_eq!(moved.capture.amount, new.total);
        assert_eq!(moved.at_provider().capture, payment.capture);
        assert_eq!((moved.captured_at(), moved.decided_at), (payment.decided_at, UNTIL));
        let third = Order { number: "78".parse().unwrap(), ..replacing(&order, 100) };
        let twice = moved.moved_to(&third, UNTIL).unwrap();
        assert_eq!(twice.at_provider().capture, payment.capture);
        assert!(payment.moved_to(&order, NOW).is_err(), "it replaces nothing");
    }

    #[test]
    fn an_exchange_makes_room_in_its_own_sale_until_it_is_paid() {
        let (order, payment) = old();
        let waits = replacing(&order, 400);
        assert_eq!((waits.replaced(), waits.claims_its_people()), (Tickets::new(2), false));
        let is_paid = Order { payment: Some(payment.capture.key), ..waits.clone() };
        assert!(is_paid.claims_its_people());
        let exchange = waits.exchange.clone().unwrap();
        let other = Exchange { sale: SaleId::new("t").unwrap(), ..exchange };
        let elsewhere = Order { exchange: Some(other), ..waits };
        assert_eq!((elsewhere.replaced(), elsewhere.claims_its_people()), (Tickets::NONE, true));
        assert_eq!((order.replaced(), order.claims_its_people()), (Tickets::NONE, true));
    }
}
