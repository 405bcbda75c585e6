//! The refusals of flows, and the failures of stores, as problems.

use super::{Kind, Problem};
use crate::http::{limits, tokens};
use crate::tickets::NoKey;
use engine::domain::admission::room::serving;
use engine::domain::admission::rules::Refusal;
use engine::domain::order::{OrderState, TicketName};
use engine::domain::payment::exchange::ExchangeRefusal;
use engine::domain::payment::refund::RefundRefusal;
use engine::domain::ticket::ReissueRefusal;
use engine::flows::room::join;
use engine::flows::{
    admit, cancel, give_back, publish, reissue, reserve, start, unmatched, wallet,
};
use engine::ports::StoreError;

/// Delay before the next attempt after a store failed, in milliseconds.
const STORE_RETRY_MS: i64 = 1000;
/// Delay before the next attempt while a sale is being loaded, in milliseconds.
const LOAD_RETRY_MS: i64 = 2000;
/// Delay before the next attempt after losing against concurrent requests, in milliseconds.
const CONTENDED_RETRY_MS: i64 = 1000;

impl From<StoreError> for Problem {
    /// Logs the cause of the failure, once. The caller learns only whether to try again.
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "a store did not answer");
                let detail = "nothing happened; try the same request again";
                Self::new(Kind::Unavailable, detail).retry_after_ms(STORE_RETRY_MS)
            }
            StoreError::Limited(seconds) => {
                tracing::warn!(%error, "a provider has no free call");
                let detail = "nothing happened; try the same request again";
                Self::new(Kind::Unavailable, detail).retry_after_ms(i64::from(*seconds) * 1000)
            }
            StoreError::Unknown(_) => {
                tracing::warn!(%error, "a store's answer was lost");
                let detail = "it may have happened; the same request again finds out";
                Self::new(Kind::OutcomeUnknown, detail).retry_after_ms(STORE_RETRY_MS)
            }
            StoreError::Contract(_) => {
                tracing::error!(%error, "a contract is broken");
                Self::new(Kind::Internal, "the fault is ours, and it is logged")
            }
        }
    }
}

impl From<admit::Refusal> for Problem {
    fn from(refusal: admit::Refusal) -> Self {
        use admit::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotOpen(opens_at) => {
                Self::new(Kind::SaleClosed, detail).with("opens_at", opens_at)
            }
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::SaleArchived => sale_archived(),
            Refusal::SoldOut => Self::new(Kind::SoldOut, detail),
            Refusal::Waiting { retry_ms } => {
                Self::new(Kind::Waiting, detail).retry_after_ms(retry_ms)
            }
            Refusal::TooFast { retry_ms } => {
                Self::new(Kind::TooManyRequests, detail).retry_after_ms(retry_ms)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<limits::Refused> for Problem {
    /// Names the rule and repeats its text, and does not tell the counts.
    fn from(refused: limits::Refused) -> Self {
        match refused {
            limits::Refused::ByRule(Refusal { by, text, retry_ms: Some(retry_ms) }) => {
                let problem = Self::new(Kind::TooManyRequests, text);
                problem.with("rule", by.as_str()).retry_after_ms(retry_ms)
            }
            limits::Refused::ByRule(Refusal { by, text, retry_ms: None }) => {
                Self::new(Kind::RefusedByRule, text).with("rule", by.as_str())
            }
            limits::Refused::Store(error) => error.into(),
        }
    }
}

impl From<reserve::Refusal> for Problem {
    fn from(refusal: reserve::Refusal) -> Self {
        use reserve::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotLoaded => not_loaded(),
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::Departed(at) => Self::new(Kind::Departed, detail).with("departed_at", at),
            Refusal::SaleArchived => sale_archived(),
            Refusal::OneTierOnly => Self::new(Kind::OneTierOnly, detail),
            Refusal::LimitReached { remaining } => {
                Self::new(Kind::LimitReached, detail).with("remaining_allowance", remaining.get())
            }
            Refusal::SeatTaken(tier, seats) => {
                Self::new(Kind::SeatTaken, detail).with("tier", tier).with("seats", seats)
            }
            Refusal::SoldOut(tier) => Self::new(Kind::SoldOut, detail).with("tier", tier),
            Refusal::NoAdjacent(tier) => Self::new(Kind::NoAdjacent, detail).with("tier", tier),
            Refusal::TokenReused(None) => Self::new(Kind::TokenReused, detail),
            Refusal::TokenReused(Some((order, state))) => {
                Self::new(Kind::TokenReused, detail).with("order", order).with("state", state)
            }
            Refusal::HoldExpired => Self::new(Kind::HoldExpired, detail),
            Refusal::Resolved(state) => resolved(state),
            Refusal::AttendeeTaken(attendee) => {
                Self::new(Kind::AttendeeTaken, detail).with("attendee", attendee)
            }
            Refusal::AttendeeLimit { max_named } => {
                Self::new(Kind::AttendeeLimit, detail).with("max_named", max_named)
            }
            Refusal::NumberClash => tokens::Defect::NumberClash.into(),
            Refusal::Contended => {
                Self::new(Kind::Unavailable, detail).retry_after_ms(CONTENDED_RETRY_MS)
            }
            Refusal::Exchange(refusal) => refusal.into(),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<ExchangeRefusal> for Problem {
    fn from(refusal: ExchangeRefusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            ExchangeRefusal::NotFound => no_such_order(),
            ExchangeRefusal::OtherCount { .. } | ExchangeRefusal::OtherPeople => {
                Self::new(Kind::ExchangeDiffers, detail)
            }
            ExchangeRefusal::OtherSale(_)
            | ExchangeRefusal::OtherCurrency(_)
            | ExchangeRefusal::Tickets(RefundRefusal::NotAllowed) => {
                Self::new(Kind::ExchangeNotAllowed, detail)
            }
            ExchangeRefusal::Tickets(refusal) => refusal.into(),
        }
    }
}

impl From<cancel::Refusal> for Problem {
    fn from(refusal: cancel::Refusal) -> Self {
        use cancel::Refusal;
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Resolved(state) => resolved(state),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<start::Refusal> for Problem {
    fn from(refusal: start::Refusal) -> Self {
        use start::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Resolved(state) => resolved(state),
            Refusal::TooLate(pay_by) => Self::new(Kind::PaymentOver, detail).with("pay_by", pay_by),
            Refusal::NotOffered => Self::new(Kind::PaymentNotOffered, detail),
            Refusal::TooMany => Self::new(Kind::TooManyPayments, detail),
            Refusal::Waits(waits) => Self::new(Kind::PaymentWaits, detail)
                .with("place_at", waits.place.at)
                .with("provider", waits.place.provider)
                .with("pay_by", waits.payable_until)
                .retry_after_ms(waits.wait_ms),
            Refusal::BeingClosed => {
                let retry_ms = i64::from(start::CLOSE_AGAIN_SECONDS) * 1000;
                Self::new(Kind::PaymentBeingClosed, detail).retry_after_ms(retry_ms)
            }
            Refusal::Refused => Self::new(Kind::PaymentNotStarted, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<wallet::Refusal> for Problem {
    fn from(refusal: wallet::Refusal) -> Self {
        use wallet::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Resolved(state) => resolved(state),
            Refusal::TooLate(pay_by) => Self::new(Kind::PaymentOver, detail).with("pay_by", pay_by),
            Refusal::NotTaken => Self::new(Kind::PaymentNotOffered, detail),
            Refusal::Short(has) => Self::new(Kind::WalletShort, detail).with("has_minor", has),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<give_back::Refusal> for Problem {
    fn from(refusal: give_back::Refusal) -> Self {
        use give_back::Refusal;
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Refused(refused) => refused.into(),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<unmatched::Refusal> for Problem {
    fn from(refusal: unmatched::Refusal) -> Self {
        use unmatched::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotFound => Self::new(Kind::NotFound, detail),
            Refusal::SaidOtherwise | Refusal::NotFailed(_) => {
                Self::new(Kind::SaidOtherwise, detail)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<RefundRefusal> for Problem {
    fn from(refusal: RefundRefusal) -> Self {
        let detail = refusal.to_string();
        let of_ticket = |kind, ticket: TicketName| {
            Self::new(kind, &detail).with("tier", ticket.tier).with("seat", ticket.seat)
        };
        match refusal {
            RefundRefusal::NotPaid(state) => {
                Self::new(Kind::OrderNotPaid, detail).with("state", state)
            }
            RefundRefusal::UnknownTicket(ticket) => of_ticket(Kind::UnknownTicket, ticket),
            RefundRefusal::TicketRefunded(ticket) => of_ticket(Kind::TicketRefunded, ticket),
            RefundRefusal::TicketCheckedIn(ticket) => of_ticket(Kind::TicketCheckedIn, ticket),
            RefundRefusal::Nothing => Self::new(Kind::NothingToRefund, detail),
            RefundRefusal::MoreThanLeft { left } => Self::new(Kind::MoreThanLeft, detail)
                .with("left_minor", left.amount_minor)
                .with("currency", left.currency),
            RefundRefusal::OtherCurrency(currency) => {
                Self::new(Kind::OtherCurrency, detail).with("currency", currency)
            }
            RefundRefusal::NotSendable { .. } => {
                Self::new(Kind::Invalid, detail).with("at", "amount_minor")
            }
            RefundRefusal::TooOld => Self::new(Kind::PaymentTooOld, detail),
            RefundRefusal::WalletShort(has) => {
                Self::new(Kind::WalletShort, detail).with("has_minor", has)
            }
            RefundRefusal::Disputed => Self::new(Kind::PaymentDisputed, detail),
            RefundRefusal::NotAllowed => Self::new(Kind::RefundNotAllowed, detail),
            RefundRefusal::OtherNumber { next } => {
                Self::new(Kind::OtherRefundNumber, detail).with("next", next)
            }
            RefundRefusal::OtherState(state) => {
                Self::new(Kind::OtherRefundState, detail).with("state", state)
            }
            RefundRefusal::TooMany => Self::new(Kind::TooManyRefunds, detail),
        }
    }
}

impl From<reissue::Refusal> for Problem {
    fn from(refusal: reissue::Refusal) -> Self {
        use reissue::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Refused(ReissueRefusal::NotPaid(state)) => {
                Self::new(Kind::OrderNotPaid, detail).with("state", state)
            }
            Refusal::Refused(ReissueRefusal::UnknownTicket(_)) => {
                Self::new(Kind::Invalid, detail).with("at", "tickets")
            }
            Refusal::Refused(ReissueRefusal::Refunded(ticket)) => {
                let problem = Self::new(Kind::TicketRefunded, detail);
                problem.with("tier", ticket.tier).with("seat", ticket.seat)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<NoKey> for Problem {
    /// A function that signs does not start without a key: the fault is ours.
    fn from(error: NoKey) -> Self {
        StoreError::Contract(error.to_string()).into()
    }
}

impl From<publish::Refusal> for Problem {
    fn from(refusal: publish::Refusal) -> Self {
        use publish::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::SeatsDiffer => Self::new(Kind::SeatsDiffer, detail),
            Refusal::Invalid(defects) => Self::new(Kind::Invalid, detail).with("defects", defects),
            Refusal::RoomDiffers => Self::new(Kind::RoomDiffers, detail),
            Refusal::Archived => sale_archived(),
            Refusal::Cancelled => Self::new(Kind::SaleCancelled, detail),
            Refusal::Busy => Self::new(Kind::Unavailable, detail).retry_after_ms(LOAD_RETRY_MS),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<join::Refusal> for Problem {
    fn from(refusal: join::Refusal) -> Self {
        use join::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NoRoom => Self::new(Kind::NotFound, detail),
            Refusal::UnknownGroup => Self::new(Kind::Invalid, detail).with("at", "group"),
            Refusal::NotOpen(opens_at) => {
                Self::new(Kind::JoinsNotOpen, detail).with("joins_open_at", opens_at)
            }
            Refusal::CodeMissing | Refusal::CodeRefused => Self::new(Kind::CodeRefused, detail),
            Refusal::GroupDiffers(group) => {
                Self::new(Kind::GroupDiffers, detail).with("group", group)
            }
            Refusal::RegistrationOver => Self::new(Kind::RegistrationOver, detail),
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::SaleArchived => sale_archived(),
            Refusal::Full => Self::new(Kind::RoomFull, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<serving::Refusal> for Problem {
    /// Of an operator's command.
    fn from(refusal: serving::Refusal) -> Self {
        use serving::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::AfterClose => Self::new(Kind::RoomClosed, detail),
            Refusal::Notice => Self::new(Kind::Invalid, detail).with("at", "notice"),
            Refusal::Name => Self::new(Kind::Invalid, detail).with("at", "by"),
            Refusal::NotSilent => Self::new(Kind::Invalid, detail).with("at", "command"),
            // No command is one of these.
            Refusal::Groups
            | Refusal::UnknownGroup
            | Refusal::ClosedTwice
            | Refusal::ClosingRound
            | Refusal::ClosedEarly
            | Refusal::TimeBack
            | Refusal::DrawnTwice
            | Refusal::Source(_) => StoreError::Contract(detail).into(),
        }
    }
}

/// The sale is not in Redis yet, or no longer.
#[must_use]
pub fn not_loaded() -> Problem {
    Problem::new(Kind::NotLoaded, reserve::Refusal::NotLoaded).retry_after_ms(LOAD_RETRY_MS)
}

/// The sale is archived: it sells nothing any more.
#[must_use]
pub fn sale_archived() -> Problem {
    Problem::new(Kind::SaleArchived, reserve::Refusal::SaleArchived)
}

/// The problem that the caller has no such order. Another buyer's order gets the same reply.
#[must_use]
pub fn no_such_order() -> Problem {
    Problem::new(Kind::NotFound, cancel::Refusal::NotFound)
}

fn resolved(state: OrderState) -> Problem {
    Problem::new(Kind::OrderResolved, cancel::Refusal::Resolved(state)).with("state", state)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::shown;
    use super::*;
    use crate::http::checks;
    use engine::domain::admission::rules::{BuiltIn, RefusedBy};
    use engine::domain::basics::ids::{AttendeeId, GroupId, RuleId, SeatName, TierId};
    use engine::domain::basics::money::{Currency, MinorUnits, Money};
    use engine::domain::basics::tickets::Tickets;
    use engine::domain::basics::time::Timestamp;
    use engine::domain::order::refund::RefundState;

    fn stores() -> [(StoreError, u16, &'static str, Option<u32>); 3] {
        let text = || "10.0.0.7 refused hunter2".to_owned();
        [
            (StoreError::Unavailable(text()), 503, "unavailable", Some(1)),
            (StoreError::Unknown(text()), 503, "outcome-unknown", Some(1)),
            (StoreError::Contract(text()), 500, "internal", None),
        ]
    }

    #[test]
    fn what_failed_inside_is_never_returned() {
        for (error, status, slug, retry) in stores() {
            let through: [Problem; 6] = [
                error.clone().into(),
                checks::Refusal::Store(error.clone()).into(),
                admit::Refusal::Store(error.clone()).into(),
                reserve::Refusal::Store(error.clone()).into(),
                join::Refusal::Store(error.clone()).into(),
                publish::Refusal::Store(error).into(),
            ];
            for problem in through {
                let text = serde_json::to_string(&problem).unwrap();
                assert!(!text.contains("hunter2") && !text.contains("10.0.0.7"), "{text}");
                assert_eq!(shown(problem), (status, slug, retry, json!({})));
            }
        }
    }

    #[test]
    fn every_refusal_of_a_reservation() {
        use reserve::Refusal;
        let tier = || TierId::new("vip").unwrap();
        let seats = vec![SeatName::new("A-1").unwrap(), SeatName::new("A-2").unwrap()];
        let attendee = AttendeeId::new("p1").unwrap();
        let none = || json!({});
        let table = [
            (Refusal::NotLoaded, (503, "not-loaded", Some(2), none())),
            (Refusal::SaleClosed, (403, "sale-closed", None, none())),
            (Refusal::OneTierOnly, (422, "one-tier-only", None, none())),
            (Refusal::SaleArchived, (410, "sale-archived", None, none())),
            (
                Refusal::LimitReached { remaining: Tickets::new(1) },
                (403, "limit-reached", None, json!({ "remaining_allowance": 1 })),
            ),
            (
                Refusal::SeatTaken(tier(), seats),
                (409, "seat-taken", None, json!({ "tier": "vip", "seats": ["A-1", "A-2"] })),
            ),
            (Refusal::SoldOut(tier()), (409, "sold-out", None, json!({ "tier": "vip" }))),
            (Refusal::NoAdjacent(tier()), (409, "no-adjacent", None, json!({ "tier": "vip" }))),
            (Refusal::TokenReused(None), (422, "token-reused", None, none())),
            (
                Refusal::TokenReused(Some(("7".parse().unwrap(), OrderState::Pending))),
                (422, "token-reused", None, json!({ "order": "7", "state": "pending" })),
            ),
            (Refusal::HoldExpired, (410, "hold-expired", None, none())),
            (
                Refusal::Resolved(OrderState::RefundDue),
                (409, "order-resolved", None, json!({ "state": "refund_due" })),
            ),
            (
                Refusal::AttendeeTaken(attendee),
                (409, "attendee-taken", None, json!({ "attendee": "p1" })),
            ),
            (
                Refusal::AttendeeLimit { max_named: 12 },
                (403, "attendee-limit", None, json!({ "max_named": 12 })),
            ),
            (Refusal::NumberClash, (403, "not-admitted", None, none())),
            (Refusal::Contended, (503, "unavailable", Some(1), none())),
        ];
        for (refusal, expected) in table {
            assert_eq!(shown(refusal), expected);
        }
    }

    fn refused(by: RefusedBy, retry_ms: Option<i64>) -> limits::Refused {
        limits::Refused::ByRule(Refusal { by, text: "not now".to_owned(), retry_ms })
    }

    #[test]
    fn every_refusal_of_a_start() {
        let none = || json!({});
        let pay_by = Timestamp::from_ms(1_800_000_000_000);
        let table = [
            (shown(start::Refusal::NotFound), (404, "not-found", None, none())),
            (
                shown(start::Refusal::TooLate(pay_by)),
                (410, "payment-over", None, json!({ "pay_by": "2027-01-15T08:00:00.000Z" })),
            ),
            (shown(start::Refusal::NotOffered), (422, "payment-not-offered", None, none())),
            (shown(start::Refusal::TooMany), (409, "too-many-payments", None, none())),
            (shown(start::Refusal::BeingClosed), (409, "payment-being-closed", Some(5), none())),
            (shown(start::Refusal::Refused), (502, "payment-not-started", None, none())),
            (
                shown(start::Refusal::Resolved(OrderState::Cancelled)),
                (409, "order-resolved", None, json!({ "state": "cancelled" })),
            ),
        ];
        for (shown, expected) in table {
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn every_refusal_of_a_payment_from_a_wallet() {
        let pay_by = Timestamp::from_ms(1_800_000_000_000);
        let table = [
            (wallet::Refusal::NotFound, (404, "not-found", None, json!({}))),
            (
                wallet::Refusal::Resolved(OrderState::Expired),
                (409, "order-resolved", None, json!({ "state": "expired" })),
            ),
            (
                wallet::Refusal::TooLate(pay_by),
                (410, "payment-over", None, json!({ "pay_by": "2027-01-15T08:00:00.000Z" })),
            ),
            (wallet::Refusal::NotTaken, (422, "payment-not-offered", None, json!({}))),
            (wallet::Refusal::Short(-70), (409, "wallet-short", None, json!({ "has_minor": -70 }))),
        ];
        for (refusal, expected) in table {
            assert_eq!(shown(refusal), expected);
        }
    }

    #[test]
    fn every_refusal_of_a_refund() {
        let none = || json!({});
        let name = || TicketName {
            tier: TierId::new("vip").unwrap(),
            seat: SeatName::new("A-1").unwrap(),
        };
        let euro = Currency::new("EUR").unwrap();
        let left = Money { amount_minor: MinorUnits(300), currency: euro };
        let ticket = || json!({ "tier": "vip", "seat": "A-1" });
        let table = [
            (
                RefundRefusal::NotPaid(OrderState::Pending),
                (409, "order-not-paid", None, json!({ "state": "pending" })),
            ),
            (RefundRefusal::UnknownTicket(name()), (422, "unknown-ticket", None, ticket())),
            (RefundRefusal::TicketRefunded(name()), (409, "ticket-refunded", None, ticket())),
            (RefundRefusal::Nothing, (422, "nothing-to-refund", None, none())),
            (
                RefundRefusal::MoreThanLeft { left },
                (409, "more-than-left", None, json!({ "left_minor": 300, "currency": "EUR" })),
            ),
            (
                RefundRefusal::OtherCurrency(euro),
                (422, "other-currency", None, json!({ "currency": "EUR" })),
            ),
            (
                RefundRefusal::NotSendable { step: left },
                (422, "invalid", None, json!({ "at": "amount_minor" })),
            ),
            (RefundRefusal::TooOld, (410, "payment-too-old", None, none())),
            (
                RefundRefusal::WalletShort(MinorUnits(70)),
                (409, "wallet-short", None, json!({ "has_minor": 70 })),
            ),
            (RefundRefusal::Disputed, (409, "payment-disputed", None, none())),
            (RefundRefusal::NotAllowed, (403, "refund-not-allowed", None, none())),
            (
                RefundRefusal::OtherNumber { next: 3 },
                (409, "other-refund-number", None, json!({ "next": 3 })),
            ),
            (
                RefundRefusal::OtherState(RefundState::Pending),
                (409, "other-refund-state", None, json!({ "state": "pending" })),
            ),
            (RefundRefusal::TooMany, (409, "too-many-refunds", None, none())),
        ];
        for (refusal, expected) in table {
            assert_eq!(shown(give_back::Refusal::Refused(refusal)), expected);
        }
        assert_eq!(shown(give_back::Refusal::NotFound), (404, "not-found", None, none()));
    }

    #[test]
    fn every_refusal_of_the_other_flows() {
        let none = || json!({});
        let opens_at = Timestamp::from_ms(1_800_000_000_000);
        let table = [
            (
                shown(admit::Refusal::NotOpen(opens_at)),
                (403, "sale-closed", None, json!({ "opens_at": "2027-01-15T08:00:00.000Z" })),
            ),
            (shown(admit::Refusal::SaleClosed), (403, "sale-closed", None, none())),
            (shown(admit::Refusal::SaleArchived), (410, "sale-archived", None, none())),
            (shown(admit::Refusal::SoldOut), (409, "sold-out", None, none())),
            (shown(admit::Refusal::Waiting { retry_ms: 0 }), (429, "waiting", Some(1), none())),
            (
                shown(admit::Refusal::TooFast { retry_ms: 4001 }),
                (429, "too-many-requests", Some(5), none()),
            ),
            (
                shown(refused(RefusedBy::BuiltIn(BuiltIn::Buyer), Some(59_001))),
                (429, "too-many-requests", Some(60), json!({ "rule": "buyer-requests" })),
            ),
            (
                shown(refused(RefusedBy::Denied(RuleId::new("r7").unwrap()), None)),
                (403, "refused-by-rule", None, json!({ "rule": "r7" })),
            ),
            (shown(cancel::Refusal::NotFound), (404, "not-found", None, none())),
            (
                shown(cancel::Refusal::Resolved(OrderState::Paid)),
                (409, "order-resolved", None, json!({ "state": "paid" })),
            ),
            (shown(publish::Refusal::SeatsDiffer), (409, "seats-differ", None, none())),
            (shown(publish::Refusal::RoomDiffers), (409, "room-differs", None, none())),
            (shown(publish::Refusal::Archived), (410, "sale-archived", None, none())),
            (shown(publish::Refusal::Cancelled), (410, "sale-cancelled", None, none())),
            (shown(publish::Refusal::Busy), (503, "unavailable", Some(2), none())),
            (shown(join::Refusal::NoRoom), (404, "not-found", None, none())),
            (shown(join::Refusal::UnknownGroup), (422, "invalid", None, json!({ "at": "group" }))),
            (
                shown(join::Refusal::NotOpen(opens_at)),
                (
                    403,
                    "joins-not-open",
                    None,
                    json!({ "joins_open_at": "2027-01-15T08:00:00.000Z" }),
                ),
            ),
            (shown(join::Refusal::CodeMissing), (403, "code-refused", None, none())),
            (shown(join::Refusal::CodeRefused), (403, "code-refused", None, none())),
            (
                shown(join::Refusal::GroupDiffers(GroupId::new("all").unwrap())),
                (409, "group-differs", None, json!({ "group": "all" })),
            ),
            (shown(join::Refusal::RegistrationOver), (403, "registration-over", None, none())),
            (shown(join::Refusal::SaleClosed), (403, "sale-closed", None, none())),
            (shown(join::Refusal::SaleArchived), (410, "sale-archived", None, none())),
            (shown(join::Refusal::Full), (409, "room-full", None, none())),
            (shown(serving::Refusal::AfterClose), (409, "room-closed", None, none())),
            (shown(serving::Refusal::Notice), (422, "invalid", None, json!({ "at": "notice" }))),
            (shown(serving::Refusal::ClosedTwice), (500, "internal", None, none())),
            (shown(not_loaded()), (503, "not-loaded", Some(2), none())),
            (shown(no_such_order()), (404, "not-found", None, none())),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
    }
}
