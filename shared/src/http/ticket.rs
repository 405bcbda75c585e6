//! Issued tickets: what their buyer is shown, what doors send, and what operators see of it.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use crate::tickets::{CodeDefect, NoKey, TicketCode, TicketKeys};
use engine::domain::basics::ids::{AttendeeId, DoorName, SaleId, SeatName, StopId, TierId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{CheckIn, Issue, Order, OrderState};
use engine::domain::sale::Sale;
use engine::domain::ticket::{
    CheckInCounts, DoubleCheckIn, MAX_TICKET, NumberedTicket, TicketNumber, TicketState,
};
use engine::flows::check_in::{Outcome, Scan};

/// Most check-ins of a request.
pub const MAX_CHECK_INS: usize = 100;
/// Most seconds by which the clock of a door may be ahead of ours: with a day, any time zone that it was set by.
const MAX_AHEAD_SECONDS: i64 = 24 * 60 * 60;
/// Most seconds for which a door may keep a check-in before it sends it.
const MAX_KEPT_SECONDS: i64 = 366 * 24 * 60 * 60;

/// One ticket of an order, with the code that lets its holder in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "IssuedTicket")]
pub struct IssuedTicketReply {
    /// Its number within the order.
    pub number: TicketNumber,
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// Its seat; absent for general admission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seat: Option<SeatName>,
    /// Stop where the journey begins; absent for a concert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StopId>,
    /// Stop where the journey ends; absent for a concert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<StopId>,
    /// Attendee who will use it, if named and not erased since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attendee: Option<AttendeeId>,
    /// Whether it lets somebody in.
    pub state: TicketState,
    /// Its issue: codes of earlier ones are void.
    pub issue: Issue,
    /// The code to be shown at the door, a compact JWS; absent once it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = crate::tickets::MAX_CODE_BYTES))]
    pub code: Option<String>,
    /// When it has let somebody in, by the clock at the door; absent while it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_in_at: Option<Timestamp>,
}

/// The tickets of an order: none until it is paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "IssuedTickets")]
pub struct IssuedTicketsReply {
    /// The order.
    pub order: OrderNumber,
    /// Its sale.
    pub sale: SaleId,
    /// Title of the sale.
    pub title: String,
    /// The tickets, by number.
    #[schemars(length(max = MAX_TICKET))]
    pub tickets: Vec<IssuedTicketReply>,
}

impl IssuedTicketsReply {
    /// The tickets of an order of this sale.
    ///
    /// # Errors
    /// Returns [`NoKey`] if there is none to sign their codes with.
    pub fn new(keys: &TicketKeys, sale: &Sale, order: &Order) -> Result<Self, NoKey> {
        let tickets = order.issued().map(|numbered| issued(keys, sale, order, &numbered));
        Ok(Self {
            order: order.number,
            sale: order.sale.clone(),
            title: sale.file().title.clone(),
            tickets: tickets.collect::<Result<_, _>>()?,
        })
    }
}

fn issued(
    keys: &TicketKeys,
    sale: &Sale,
    order: &Order,
    numbered: &NumberedTicket<'_>,
) -> Result<IssuedTicketReply, NoKey> {
    let NumberedTicket { number, ticket, .. } = *numbered;
    let code = TicketCode::new(keys.deployment(), sale, order, numbered);
    let state = ticket.state();
    // Tickets of an order that is not paid any more were all taken back, so that none of them has a code.
    let is_good = match state {
        TicketState::Valid | TicketState::CheckedIn => order.state == OrderState::Paid,
        TicketState::Revoked => false,
    };
    let signed = is_good.then(|| keys.sign_code(&code)).transpose()?;
    let TicketCode { tier, seat, journey, issue, .. } = code;
    let (from, to) = journey.unzip();
    Ok(IssuedTicketReply {
        number,
        tier,
        seat,
        from,
        to,
        attendee: ticket.attendee.as_ref().and_then(|attendee| attendee.id.clone()),
        state,
        issue,
        code: signed,
        checked_in_at: ticket.checked_in.as_ref().map(|check_in| check_in.at),
    })
}

/// A page of the tickets of a sale that are void, signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RevokedTickets")]
pub struct RevokedReply {
    /// The page, a compact JWS.
    pub list: String,
    /// Value of `from` for the next page, as the list itself says; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<OrderNumber>,
}

/// A door that let somebody in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CheckIn")]
pub struct CheckInBody {
    /// The code as it was scanned.
    #[schemars(length(max = crate::tickets::MAX_CODE_BYTES))]
    code: String,
    /// The door.
    door: DoorName,
    /// When it was scanned, by the clock of the door.
    at: Timestamp,
}

/// What doors of a sale have scanned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with check_ins")]
#[schemars(rename = "CheckIns")]
pub struct CheckInsBody {
    /// The check-ins, in the order in which they were made.
    #[schemars(length(min = 1, max = MAX_CHECK_INS))]
    check_ins: Vec<CheckInBody>,
}

/// A code that was read, or why it could not be.
pub type ReadScan = Result<Scan, CodeDefect>;

impl CheckInsBody {
    /// Reads a request's body; of each check-in the code, if this deployment has signed it for the sale.
    ///
    /// # Errors
    /// Returns the first check that the request does not pass. A code that is none is no such thing.
    pub fn read(
        request: &Request,
        keys: &TicketKeys,
        sale: &SaleId,
        now: Timestamp,
    ) -> Result<Vec<ReadScan>, Refusal> {
        let Self { check_ins } = json_body(request, MAX_BODY_BYTES)?;
        if !(1..=MAX_CHECK_INS).contains(&check_ins.len()) {
            let rule = format!("must have 1 to {MAX_CHECK_INS} check-ins");
            return Err(Refusal::invalid("check_ins", rule));
        }
        let times = now.plus_seconds(-MAX_KEPT_SECONDS)..=now.plus_seconds(MAX_AHEAD_SECONDS);
        if let Some(place) = check_ins.iter().position(|one| !times.contains(&one.at)) {
            let rule = "must be within the last year, and at most a day ahead";
            return Err(Refusal::invalid(format!("check_ins[{place}].at"), rule));
        }
        let read = |CheckInBody { code, door, at }: CheckInBody| {
            let code = keys.public().check_code(&code)?;
            // Of another sale: no ticket of this one.
            let is_of_sale = code.sale == *sale;
            let serial = is_of_sale.then(|| code.serial()).ok_or(CodeDefect::Malformed)?;
            Ok(Scan { serial, check_in: CheckIn { at, door } })
        };
        Ok(check_ins.into_iter().map(read).collect())
    }
}

/// What became of a check-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CheckInOutcome")]
pub enum OutcomeReply {
    /// It is recorded as the ticket's check-in.
    Admitted,
    /// It was recorded before.
    Repeated,
    /// It is recorded; the ticket had let somebody in before.
    AlreadyAdmitted,
    /// The ticket was refunded, or issued anew since. Nothing is recorded.
    Revoked,
    /// It is no ticket of this sale. Nothing is recorded.
    Invalid,
}

/// What became of one check-in of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CheckInResult")]
pub struct CheckInReply {
    /// What became of it.
    pub outcome: OutcomeReply,
    /// The order of the ticket; absent if the code is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderNumber>,
    /// The number of the ticket within the order; absent if the code is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<TicketNumber>,
    /// When the ticket first let somebody in, by the clock of that door.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_at: Option<Timestamp>,
    /// The door that was first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_door: Option<DoorName>,
}

impl CheckInReply {
    /// Of a code that is none.
    fn invalid() -> Self {
        let (order, ticket, first_at, first_door) = (None, None, None, None);
        Self { outcome: OutcomeReply::Invalid, order, ticket, first_at, first_door }
    }

    fn new(scan: &Scan, outcome: Outcome) -> Self {
        let (outcome, first) = match outcome {
            Outcome::Admitted => (OutcomeReply::Admitted, Some(scan.check_in.clone())),
            Outcome::Repeated(first) => (OutcomeReply::Repeated, Some(first)),
            Outcome::AlreadyAdmitted(first) => (OutcomeReply::AlreadyAdmitted, Some(first)),
            Outcome::Revoked => (OutcomeReply::Revoked, None),
            Outcome::Unknown => return Self::invalid(),
        };
        let (first_at, first_door) = first.map(|CheckIn { at, door }| (at, door)).unzip();
        let (order, ticket) = (Some(scan.serial.order), Some(scan.serial.ticket));
        Self { outcome, order, ticket, first_at, first_door }
    }
}

/// What became of the check-ins of a request, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CheckInResults")]
pub struct CheckInsReply {
    /// The result of each.
    #[schemars(length(min = 1, max = MAX_CHECK_INS))]
    pub results: Vec<CheckInReply>,
}

impl CheckInsReply {
    /// The results of what was read. `outcomes` are those of the codes that are some, in their order.
    #[must_use]
    pub fn new(read: &[ReadScan], outcomes: Vec<Outcome>) -> Self {
        let mut outcomes = outcomes.into_iter();
        let result = |scan: &ReadScan| match scan {
            Ok(scan) => {
                let outcome = outcomes.next();
                outcome
                    .map_or_else(CheckInReply::invalid, |outcome| CheckInReply::new(scan, outcome))
            }
            Err(_defect) => CheckInReply::invalid(),
        };
        Self { results: read.iter().map(result).collect() }
    }
}

/// A ticket that two doors let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DoubleCheckIn")]
pub struct DoubleReply {
    /// The order.
    pub order: OrderNumber,
    /// The ticket.
    pub ticket: TicketNumber,
    /// When it first let somebody in.
    pub first_at: Timestamp,
    /// The door that was first.
    pub first_door: DoorName,
    /// When it let somebody in again.
    pub at: Timestamp,
    /// The door that let somebody in again.
    pub door: DoorName,
}

impl From<DoubleCheckIn> for DoubleReply {
    fn from(double: DoubleCheckIn) -> Self {
        let DoubleCheckIn { sale: _, order, ticket, first, again } = double;
        let (CheckIn { at: first_at, door: first_door }, CheckIn { at, door }) = (first, again);
        Self { order, ticket, first_at, first_door, at, door }
    }
}

/// How a sale fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CheckInBoard")]
pub struct CheckInBoardReply {
    /// The sale.
    pub sale: SaleId,
    /// Tickets that let somebody in.
    pub admitted: u64,
    /// Check-ins of tickets that had let somebody in before.
    pub doubles: u64,
    /// Those check-ins, ticket by ticket; only if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Vec<DoubleReply>>,
    /// Value of `after` for the next page of them; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl CheckInBoardReply {
    /// The counts of a sale.
    #[must_use]
    pub fn new(sale: &SaleId, counts: CheckInCounts) -> Self {
        let CheckInCounts { admitted, doubles } = counts;
        Self { sale: sale.clone(), admitted, doubles, conflicts: None, next: None }
    }
}

/// An operator's request to issue tickets anew.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object with tickets")]
#[schemars(rename = "Reissue")]
pub struct ReissueBody {
    /// The tickets; none means all that live.
    #[serde(default)]
    #[schemars(length(max = MAX_TICKET))]
    tickets: Vec<TicketNumber>,
}

impl ReissueBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Vec<TicketNumber>, Refusal> {
        let Self { tickets } = json_body(request, MAX_BODY_BYTES)?;
        if tickets.len() > usize::from(MAX_TICKET) {
            return Err(Refusal::invalid("tickets", format!("must name at most {MAX_TICKET}")));
        }
        Ok(tickets)
    }
}

/// The issue of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TicketIssue")]
pub struct TicketIssueReply {
    /// Its number within the order.
    pub number: TicketNumber,
    /// Its issue: codes of earlier ones are void.
    pub issue: Issue,
}

/// The tickets of an order after some were issued anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Reissued")]
pub struct ReissuedReply {
    /// The order.
    pub order: OrderNumber,
    /// Its tickets that live, with their issues.
    #[schemars(length(max = MAX_TICKET))]
    pub tickets: Vec<TicketIssueReply>,
}

impl From<&Order> for ReissuedReply {
    fn from(order: &Order) -> Self {
        let live = order.numbered().filter(|numbered| numbered.ticket.is_live());
        let issue = |numbered: NumberedTicket<'_>| TicketIssueReply {
            number: numbered.number,
            issue: numbered.ticket.issue,
        };
        Self { order: order.number, tickets: live.map(issue).collect() }
    }
}
