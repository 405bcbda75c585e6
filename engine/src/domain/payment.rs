//! Payments: what a provider has captured, and the one decision of what becomes of it.

use serde::{Deserialize, Serialize};

use crate::domain::attempt::AttemptNumber;
use crate::domain::dispute::Dispute;
use crate::domain::guard::{Guard, stands};
use crate::domain::ids::{InvalidId, PaymentId, ProviderId};
use crate::domain::money::{MinorUnits, Money};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::domain::refund::Refund;
use crate::domain::time::Timestamp;
use crate::ports::{StoreError, Stored};

/// A payment: the provider and the provider's id of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PaymentKey {
    /// The provider.
    pub provider: ProviderId,
    /// The payment's id at the provider.
    pub payment: PaymentId,
}

/// Money that a provider says it has captured, with a signature that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capture {
    /// The payment.
    pub key: PaymentKey,
    /// The number of the order that it is meant for.
    pub order: OrderNumber,
    /// The amount that was captured.
    pub amount: Money,
    /// The attempt of the order by which it was, if it was started here.
    pub attempt: Option<AttemptNumber>,
}

/// The provider of what costs nothing: the name of no other.
pub const NO_PROVIDER: &str = "free";

impl ProviderId {
    /// True if it is the name of none that can be configured: its payments are made here alone.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.as_str() == NO_PROVIDER || self.is_wallet()
    }
}

impl Capture {
    /// The payment of an order of 0.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if it costs something: nobody says that this was captured.
    pub fn of_nothing(order: &Order) -> Stored<Self> {
        let contract = |why: &str| StoreError::Contract(format!("order {}: {why}", order.number));
        if !order.costs_nothing() {
            return Err(contract("it costs something"));
        }
        let broken = |error: InvalidId| contract(&error.to_string());
        let provider = ProviderId::new(NO_PROVIDER).map_err(broken)?;
        let payment = PaymentId::new(order.number.to_string()).map_err(broken)?;
        let key = PaymentKey { provider, payment };
        Ok(Self { key, order: order.number, amount: order.total, attempt: None })
    }
}

/// Why money is refunded.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RefundReason {
    /// There is no such order.
    UnknownOrder,
    /// The amount is not the order's: too little, too much, or a part of it.
    WrongAmount,
    /// The currency is not the order's.
    WrongCurrency,
    /// Another payment had paid the order.
    SecondPayment,
    /// The order had ended and its seats are gone.
    TooLate,
    /// Its buyer had cancelled the order.
    Cancelled,
    /// A refund of a paid order: some of its tickets, or of its money. No decision on a capture.
    Returned,
    /// A dispute of a paid order's payment that was lost. No decision on a capture.
    Disputed,
}

impl RefundReason {
    /// Every reason, for tables and tests.
    pub const ALL: [Self; 8] = [
        Self::UnknownOrder,
        Self::WrongAmount,
        Self::WrongCurrency,
        Self::SecondPayment,
        Self::TooLate,
        Self::Cancelled,
        Self::Returned,
        Self::Disputed,
    ];

    /// The reason as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnknownOrder => "unknown_order",
            Self::WrongAmount => "wrong_amount",
            Self::WrongCurrency => "wrong_currency",
            Self::SecondPayment => "second_payment",
            Self::TooLate => "too_late",
            Self::Cancelled => "cancelled",
            Self::Returned => "returned",
            Self::Disputed => "disputed",
        }
    }
}

/// What became of a capture: the one recorded decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "reason")]
pub enum PaymentOutcome {
    /// It paid its order.
    Accepted,
    /// It is refunded, for this reason.
    Refund(RefundReason),
}

impl PaymentOutcome {
    /// Why it is refunded, if it is.
    #[must_use]
    pub const fn reason(self) -> Option<RefundReason> {
        match self {
            Self::Accepted => None,
            Self::Refund(reason) => Some(reason),
        }
    }
}

/// A capture and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PaymentRecord {
    /// The capture.
    pub capture: Capture,
    /// What became of it.
    pub outcome: PaymentOutcome,
    /// Time of the decision.
    pub decided_at: Timestamp,
    /// Its refund, whole; `None` if it was accepted.
    pub refund: Option<Refund>,
    /// What goes back, or went back, of an accepted one by refunds of its order; never more than was
    /// captured.
    pub back: MinorUnits,
    /// The disputes of an accepted one, in the order in which they were heard of.
    pub disputes: Vec<Dispute>,
    /// The capture whose money it is, if that was for tickets that its order replaces.
    pub captured: Option<Box<Captured>>,
}

/// A capture, and when it was decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Captured {
    /// The capture.
    pub capture: Capture,
    /// Time of the decision.
    pub decided_at: Timestamp,
}

impl PaymentRecord {
    /// What was decided of a capture now.
    #[must_use]
    pub fn decided(capture: &Capture, outcome: PaymentOutcome, now: Timestamp) -> Self {
        let refund = match outcome {
            PaymentOutcome::Accepted => None,
            PaymentOutcome::Refund(_) => Some(Refund::due(now)),
        };
        let back = MinorUnits::ZERO;
        let (capture, disputes) = (capture.clone(), Vec::new());
        Self { capture, outcome, decided_at: now, refund, back, disputes, captured: None }
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
}

/// Decides what a capture does to its order. Reads nothing but its arguments.
#[must_use]
pub fn decide_payment(order: Option<&Order>, capture: &Capture) -> PaymentDecision {
    let Some(order) = order.filter(|order| !order.is_tombstone()) else {
        return PaymentDecision::Refund(RefundReason::UnknownOrder);
    };
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
        // One capture pays an order, whole. Parts are not added up: each is refunded by itself.
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
    use crate::domain::attempt::Attempts;
    use crate::domain::fact::Facts;
    use crate::domain::ids::{Legs, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId};
    use crate::domain::ledger::MerchantTerms;
    use crate::domain::order::{OrderLine, Ticket};
    use crate::domain::order_refund::RefundCounts;
    use crate::domain::ticket::Issue;

    fn order(state: OrderState, paid_by: Option<&str>) -> Order {
        let user = UserId::new("7").unwrap();
        let now = Timestamp::from_ms(1_800_000_000_000);
        let currency = crate::domain::money::Currency::new("EUR").unwrap();
        Order {
            number: crate::domain::number::Mint::new(0).mint(now, &user),
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
            let currency = crate::domain::money::Currency::new("CNY").unwrap();
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
    }
}
