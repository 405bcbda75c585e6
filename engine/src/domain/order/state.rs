//! The states of an order, and the one table of what may follow what.

use serde::{Deserialize, Serialize};

/// The state of an order.
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
pub enum OrderState {
    /// Its seats are claimed; it waits for its payment.
    Pending,
    /// It is paid; its seats are the buyer's.
    Paid,
    /// The buyer cancelled it before paying.
    Cancelled,
    /// It was not paid in time, or never came to be.
    Expired,
    /// Its money must be refunded.
    RefundDue,
    /// Its money was refunded.
    Refunded,
}

impl OrderState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Paid,
        Self::Cancelled,
        Self::Expired,
        Self::RefundDue,
        Self::Refunded,
    ];

    /// True while the order owns its seats: their claims, and its buyer's count, say so too.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Paid)
    }

    /// The state as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::RefundDue => "refund_due",
            Self::Refunded => "refunded",
        }
    }
}

/// What can happen to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderEvent {
    /// Its amount was captured in time.
    Pay,
    /// Its buyer gave it up.
    Cancel,
    /// Its payment window ended.
    Expire,
    /// Its amount was captured after it had expired, and its seats could be claimed again.
    Rescue,
    /// Its amount was captured after its end, and goes back: it was cancelled, or its seats are gone.
    PayTooLate,
    /// Some tickets of a paid order, or some of its money, go back.
    RefundPart,
    /// The last tickets of a paid order go back.
    Refund,
    /// The provider confirmed the refund.
    RefundConfirmed,
    /// A refund that was confirmed came to nothing: its money is owed again.
    RefundUndone,
}

impl OrderEvent {
    /// Every event, for tables and tests.
    pub const ALL: [Self; 9] = [
        Self::Pay,
        Self::Cancel,
        Self::Expire,
        Self::Rescue,
        Self::PayTooLate,
        Self::RefundPart,
        Self::Refund,
        Self::RefundConfirmed,
        Self::RefundUndone,
    ];
}

/// The state after an event; `None` if the event cannot happen to an order in this state.
#[must_use]
pub const fn transition(state: OrderState, event: OrderEvent) -> Option<OrderState> {
    use OrderEvent as Event;
    use OrderState as State;
    match (state, event) {
        (State::Pending, Event::Pay) => Some(State::Paid),
        (State::Pending, Event::Cancel) => Some(State::Cancelled),
        (State::Pending, Event::Expire) => Some(State::Expired),
        (State::Expired, Event::Rescue) | (State::Paid, Event::RefundPart) => Some(State::Paid),
        (State::Cancelled | State::Expired, Event::PayTooLate) | (State::Paid, Event::Refund) => {
            Some(State::RefundDue)
        }
        (State::RefundDue, Event::RefundConfirmed) => Some(State::Refunded),
        (State::Refunded, Event::RefundUndone) => Some(State::RefundDue),
        (
            State::Pending,
            Event::Rescue
            | Event::PayTooLate
            | Event::RefundPart
            | Event::Refund
            | Event::RefundConfirmed
            | Event::RefundUndone,
        )
        | (
            State::Paid,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::Rescue
            | Event::PayTooLate
            | Event::RefundConfirmed
            | Event::RefundUndone,
        )
        | (State::Cancelled, Event::Rescue)
        | (
            State::Cancelled | State::Expired,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::RefundPart
            | Event::Refund
            | Event::RefundConfirmed
            | Event::RefundUndone,
        )
        | (
            State::RefundDue,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::Rescue
            | Event::PayTooLate
            | Event::RefundPart
            | Event::Refund
            | Event::RefundUndone,
        )
        | (
            State::Refunded,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::Rescue
            | Event::PayTooLate
            | Event::RefundPart
            | Event::Refund
            | Event::RefundConfirmed,
        ) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state × every event; a blank is refused.
    #[test]
    fn the_table_of_states() {
        const TABLE: &str = "
            pending    : paid cancelled expired - - - - - -
            paid       : - - - - - paid refund_due - -
            cancelled  : - - - - refund_due - - - -
            expired    : - - - paid refund_due - - - -
            refund_due : - - - - - - - refunded -
            refunded   : - - - - - - - - refund_due";
        let rows = TABLE.trim().lines().zip(OrderState::ALL);
        for (row, state) in rows {
            let (name, cells) = row.split_once(':').unwrap();
            assert_eq!(name.trim(), state.as_str());
            let cells: Vec<&str> = cells.split_whitespace().collect();
            assert_eq!(cells.len(), OrderEvent::ALL.len());
            for (cell, event) in cells.into_iter().zip(OrderEvent::ALL) {
                let next = transition(state, event).map_or("-", OrderState::as_str);
                assert_eq!(next, cell, "{state:?} × {event:?}");
            }
        }
    }
}
