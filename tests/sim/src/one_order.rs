//! The orders of the simulations that are about one order: one that is paid, of seats of one tier, and what an operator may
//! ask for of it.

use engine::domain::basics::ids::{
    Legs, PaymentId, ProviderId, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::Attempts;
use engine::domain::order::fact::{Cause, FactKind, Facts};
use engine::domain::order::order_refund::{AskedBy, RefundCounts, RefundNumber};
use engine::domain::order::{
    Capture, Issue, Order, OrderLine, OrderState, PaymentKey, PaymentOutcome, PaymentRecord, Ticket,
};
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::{MerchantTerms, RefundTerms};
use engine::ports::Settlement;
use model_stores::Stores;

use crate::random::SeededRng;

/// When the order is made and paid.
pub const START: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// The price of a ticket, in cents.
pub const PRICE: i64 = 500;

/// The provider of its payment.
///
/// # Panics
/// Never: the name is a good one.
#[must_use]
pub fn provider() -> ProviderId {
    ProviderId::new("stripe").expect("a good name")
}

/// Its payment.
///
/// # Panics
/// Never: the names are good ones.
#[must_use]
pub fn key() -> PaymentKey {
    PaymentKey { provider: provider(), payment: PaymentId::new("pi_1").expect("a good name") }
}

/// So many cents.
///
/// # Panics
/// Never: there is such a currency.
#[must_use]
pub fn money(amount: i64) -> Money {
    let currency = Currency::new("EUR").expect("a currency");
    Money { amount_minor: MinorUnits(amount), currency }
}

/// A pending order, the `index`th of its engine, of so many tickets under these terms of refunds.
///
/// # Panics
/// Never: the names are good ones.
#[must_use]
pub fn pending(index: u32, user: UserId, seats: u32, terms: Option<RefundTerms>) -> Order {
    let ticket = |seat: u32| Ticket {
        seat: Seat(seat),
        name: SeatName::new(format!("a{seat}")).expect("a good name"),
        attendee: None,
        refund: None,
        issue: Issue::FIRST,
        checked_in: None,
    };
    Order {
        number: Mint::new(index).mint(START, &user),
        sale: SaleId::new("s").expect("a good name"),
        user,
        state: OrderState::Pending,
        lines: vec![OrderLine {
            tier: TierId::new("a").expect("a good name"),
            legs: Legs::ONE,
            price_minor: MinorUnits(PRICE),
            terms,
            exchange: None,
            tickets: (0..seats).map(ticket).collect(),
        }],
        total: money(PRICE * i64::from(seats)),
        fingerprint: RequestFingerprint::new("0123456789abcdef").expect("a fingerprint"),
        created_at: START,
        pay_by: START.plus_seconds(60),
        changed_at: START,
        payment: None,
        attempts: Attempts::default(),
        facts: Facts::made(START),
        refunds: RefundCounts::default(),
        merchant: MerchantTerms::house(),
        exchange: None,
    }
}

/// The stores with one paid order of so many tickets, under these terms of refunds.
///
/// # Panics
/// The model refuses the order.
#[must_use]
pub fn paid(seats: u32, terms: Option<RefundTerms>) -> (Stores, OrderNumber) {
    let pending = pending(0, UserId::new("7").expect("a good name"), seats, terms);
    let number = pending.number;
    let mut stores = Stores::default();
    stores.orders.create(&pending, Tickets::new(10)).expect("a new order");
    let capture = Capture { key: key(), order: number, amount: pending.total, attempt: None };
    stores.provider.capture(capture.clone());
    let record = PaymentRecord::decided(&capture, PaymentOutcome::Accepted, START);
    let cause = Cause::capture(&capture, None);
    let order = Order {
        state: OrderState::Paid,
        payment: Some(key()),
        facts: pending.facts.with(FactKind::Paid, START, cause),
        ..pending
    };
    let settlement = Settlement::Pay(order);
    stores.orders.settle(&record, &settlement, Tickets::new(10)).expect("a payable order");
    (stores, number)
}

/// What an operator may ask for after so many refunds: one in so many is of all tickets, the others are of an amount alone,
/// mostly one of these. `None` if no more refunds can be made.
#[must_use]
pub fn refund_request(
    rng: &mut SeededRng,
    made: u8,
    one_in: u64,
    amounts: [i64; 3],
) -> Option<RefundRequest> {
    Some(RefundRequest {
        number: RefundNumber::try_from(made + 1).ok()?,
        tickets: if rng.below(one_in) == 0 {
            RefundedTickets::All
        } else {
            RefundedTickets::Named(Vec::new())
        },
        amount: (rng.below(4) != 0).then(|| money(amounts[rng.below(3) as usize])),
        asked_by: AskedBy::Operator,
        reason: None,
    })
}
