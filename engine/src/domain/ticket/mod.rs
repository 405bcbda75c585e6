//! Issued tickets: the codes that stand for them, and check-in at a door.
//!
//! Builds on [`basics`](super::basics), [`order`](super::order) and [`payment`](super::payment).

mod check_in;
mod codes;
#[cfg(test)]
mod tests;

pub use check_in::{
    CheckInCounts, CheckInDecision, CheckInPlan, DoubleCheckIn, DoublesPage, decide_check_in,
};
pub use codes::{
    InvalidTicket, MAX_TICKET, NumberedTicket, ReissuePlan, ReissueRefusal, Revocations,
    RevokedOrder, RevokedPage, Serial, TicketNumber, TicketState, decide_reissue,
};
