//! The one decision of what becomes of a capture, and the payment of what costs nothing.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{InvalidId, PaymentId, ProviderId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::reserved::NO_PROVIDER;
use crate::domain::order::{Capture, Order, OrderState, PaymentKey, RefundReason};

/// Why no payment is made here of an order: our own bug, which no buyer can cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureFault {
    /// The order costs something.
    #[error("order {0}: it costs something")]
    CostsSomething(OrderNumber),
    /// The order replaces no tickets.
    #[error("order {0}: it replaces nothing")]
    ReplacesNothing(OrderNumber),
    /// The payment cannot be named.
    #[error("order {0}: {1}")]
    Name(OrderNumber, InvalidId),
}

impl Capture {
    /// The payment of an order of 0.
    ///
    /// # Errors
    /// [`CaptureFault`] if it costs something: nobody says that this was captured.
    pub fn of_nothing(order: &Order) -> Result<Self, CaptureFault> {
        if !order.costs_nothing() {
            return Err(CaptureFault::CostsSomething(order.number));
        }
        let broken = |error: InvalidId| CaptureFault::Name(order.number, error);
        let provider = ProviderId::new(NO_PROVIDER).map_err(broken)?;
        let payment = PaymentId::new(order.number.to_string()).map_err(broken)?;
        let key = PaymentKey { provider, payment };
        Ok(Self { key, order: order.number, amount: order.total, attempt: None })
    }
}

/// What to do with a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentDecision {
    /// Pay the pending order.
    Pay,
    /// Claim the expired order's seats again and pay it; if they are gone, refund it.
    Rescue,
    /// Refund the cancelled order: its buyer gave its seats up.
    RefundCancelled,
    /// Nothing: this very payment paid the order.
    AlreadyPaid,
    /// Send the money back; the order stays as it is.
    Refund(RefundReason),
    /// Keep it until an operator says what it was: its order is not there.
    Unmatched,
}

/// Decides what a capture does to its order. Reads nothing but its arguments.
#[must_use]
pub fn decide_payment(order: Option<&Order>, capture: &Capture) -> PaymentDecision {
    let Some(order) = order else {
        let back = PaymentDecision::Refund(RefundReason::UnknownOrder);
        return if stands(Guard::Unmatched) { PaymentDecision::Unmatched } else { back };
    };
    // A tombstone is there: no order can come under its number.
    if order.is_tombstone() {
        return PaymentDecision::Refund(RefundReason::UnknownOrder);
    }
    if order.payment.as_ref() == Some(&capture.key) {
        return PaymentDecision::AlreadyPaid;
    }
    if order.payment.is_some() {
        return PaymentDecision::Refund(RefundReason::SecondPayment);
    }
    if stands(Guard::AmountCheck) {
        if order.total.currency != capture.amount.currency {
            return PaymentDecision::Refund(RefundReason::WrongCurrency);
        }
        // One capture pays an order whole. Partial captures are not added up: each is refunded.
        if order.total != capture.amount {
            return PaymentDecision::Refund(RefundReason::WrongAmount);
        }
    }
    match order.state {
        OrderState::Pending => PaymentDecision::Pay,
        OrderState::Expired => PaymentDecision::Rescue,
        OrderState::Cancelled => PaymentDecision::RefundCancelled,
        OrderState::Paid | OrderState::RefundDue | OrderState::Refunded => {
            PaymentDecision::Refund(RefundReason::SecondPayment)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::{
        Legs, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
    };
    use crate::domain::basics::money::{MinorUnits, Money};
    use crate::domain::basics::time::Timestamp;
    use crate::domain::order::attempt::Attempts;
    use crate::domain::order::fact::Facts;
    use crate::domain::order::order_refund::RefundCounts;
    use crate::domain::order::{Issue, OrderLine, Ticket};
    use crate::domain::sale::MerchantTerms;

    fn order(state: OrderState, paid_by: Option<&str>) -> Order {
        let user = UserId::new("7").unwrap();
        let now = Timestamp::from_ms(1_800_000_000_000);
        let currency = crate::domain::basics::money::Currency::new("EUR").unwrap();
        Order {
            number: crate::domain::basics::number::Mint::new(0).mint(now, &user),
            sale: SaleId::new("s").unwrap(),
            user,
            state,
            lines: vec![OrderLine {
                tier: TierId::new("a").unwrap(),
                legs: Legs::ONE,
                price_minor: MinorUnits(500),
                terms: None,
                exchange: None,
                tickets: vec![Ticket {
                    seat: Seat(0),
                    name: SeatName::new("a1").unwrap(),
                    attendee: None,
                    refund: None,
                    issue: Issue::FIRST,
                    checked_in: None,
                }],
            }],
            total: Money { amount_minor: MinorUnits(500), currency },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: now,
            pay_by: now.plus_seconds(60),
            changed_at: now,
            payment: paid_by.map(key),
            attempts: Attempts::default(),
            facts: Facts::default(),
            refunds: RefundCounts::default(),
            merchant: MerchantTerms::house(),
            exchange: None,
        }
    }

    fn key(id: &str) -> PaymentKey {
        PaymentKey {
            provider: ProviderId::new("test").unwrap(),
            payment: PaymentId::new(id).unwrap(),
        }
    }

    #[test]
    fn another_currency_is_another_reason_than_another_amount() {
        let order = order(OrderState::Pending, None);
        for amount_minor in [500, 501].map(MinorUnits) {
            let currency = crate::domain::basics::money::Currency::new("CNY").unwrap();
            let amount = Money { amount_minor, currency };
            let capture = Capture { key: key("p1"), order: order.number, amount, attempt: None };
            let refund = PaymentDecision::Refund(RefundReason::WrongCurrency);
            assert_eq!(decide_payment(Some(&order), &capture), refund);
        }
    }

    fn decide(order: &Order, id: &str, amount: i64) -> PaymentDecision {
        let amount = Money { amount_minor: MinorUnits(amount), ..order.total };
        decide_payment(
            Some(order),
            &Capture { key: key(id), order: order.number, amount, attempt: None },
        )
    }

    #[test]
    fn every_capture_has_exactly_one_decision() {
        use PaymentDecision::{AlreadyPaid, Pay, Refund, RefundCancelled, Rescue};
        use RefundReason::{SecondPayment, UnknownOrder, WrongAmount};
        let cases = [
            (order(OrderState::Pending, None), 500, Pay),
            (order(OrderState::Pending, None), 499, Refund(WrongAmount)),
            (order(OrderState::Paid, Some("p1")), 500, AlreadyPaid),
            (order(OrderState::Paid, Some("p0")), 500, Refund(SecondPayment)),
            (order(OrderState::Expired, None), 500, Rescue),
            (order(OrderState::Cancelled, None), 500, RefundCancelled),
            (order(OrderState::Expired, None), 501, Refund(WrongAmount)),
            (order(OrderState::RefundDue, None), 500, Refund(SecondPayment)),
            (
                Order { lines: vec![], ..order(OrderState::Expired, None) },
                500,
                Refund(UnknownOrder),
            ),
        ];
        for (order, amount, expected) in cases {
            assert_eq!(decide(&order, "p1", amount), expected, "{:?}", order.state);
        }
        let order = order(OrderState::Pending, None);
        let capture =
            Capture { key: key("p1"), order: order.number, amount: order.total, attempt: None };
        assert_eq!(decide_payment(None, &capture), PaymentDecision::Unmatched);
    }
}
