//! Issued tickets: what makes one good, what takes that away, and who was let in by it.
//!
//! A ticket's *serial* is its order, its number within the order, and its *issue*. A code says a serial and is
//! good while the ticket is live and the issue is the ticket's own. A refund takes the ticket back, and with it
//! every issue; issuing it anew raises the issue, and with it every older code is void. Neither is undone: the
//! issue never goes down, and a ticket that was taken back is never live again. Issue and check-in are kept on
//! the order's ticket, so that the conditions of one item decide between a refund, a new issue and a door.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{DoorName, SaleId};
use super::number::OrderNumber;
use super::order::{Order, OrderLine, OrderState, Ticket};
use super::order_refund::{AskedBy, RefundPlan, TicketName};
use super::requested::MAX_SEATS_PER_ORDER;
use super::time::Timestamp;
use super::within_order::numbered_within_order;

/// Most tickets of one order, as the number of its last one.
pub const MAX_TICKET: u8 = 10;
#[expect(clippy::cast_possible_truncation, reason = "a constant below 256, which is asserted")]
const _: () = assert!(MAX_SEATS_PER_ORDER < 256 && MAX_TICKET == MAX_SEATS_PER_ORDER as u8);

numbered_within_order!(
    /// The number of a ticket within its order, from 1: its place among all tickets, line by line, which never
    /// changes.
    TicketNumber, MAX_TICKET,
    /// A number that no ticket has.
    InvalidTicket, "a ticket's number is from 1 to {MAX_TICKET}"
);

/// The issue of a ticket, from 1: how often a code was made for it under another serial.
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
#[serde(try_from = "u32", into = "u32")]
#[schemars(inline)]
pub struct Issue(#[schemars(range(min = 1))] u32);

/// A number that no issue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an issue's number is at least 1")]
pub struct InvalidIssue;

impl Issue {
    /// The issue of a ticket that was never issued anew.
    pub const FIRST: Self = Self(1);

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The one after it. The last of them is followed by itself: at ten a second a ticket meets it after
    /// thirteen years.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl TryFrom<u32> for Issue {
    type Error = InvalidIssue;
    fn try_from(number: u32) -> Result<Self, InvalidIssue> {
        (number > 0).then_some(Self(number)).ok_or(InvalidIssue)
    }
}

impl From<Issue> for u32 {
    fn from(issue: Issue) -> Self {
        issue.0
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a code stands for: one issue of one ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial {
    /// The order.
    pub order: OrderNumber,
    /// The ticket of the order.
    pub ticket: TicketNumber,
    /// The issue of the ticket.
    pub issue: Issue,
}

/// Somebody was let in by a ticket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckIn {
    /// When its code was scanned, by the clock of the device at the door.
    pub at: Timestamp,
    /// The door.
    pub door: DoorName,
}

/// The state of an issued ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TicketState {
    /// It lets one person in.
    Valid,
    /// A refund took it back.
    Revoked,
    /// It has let somebody in.
    CheckedIn,
}

impl Ticket {
    /// Its state, once it is issued.
    #[must_use]
    pub fn state(&self) -> TicketState {
        match (&self.refund, &self.checked_in) {
            (Some(_), _) => TicketState::Revoked,
            (None, Some(_)) => TicketState::CheckedIn,
            (None, None) => TicketState::Valid,
        }
    }
}

/// A ticket of an order, with its number and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberedTicket<'a> {
    /// Its number.
    pub number: TicketNumber,
    /// Its line.
    pub line: &'a OrderLine,
    /// The ticket.
    pub ticket: &'a Ticket,
}

impl Order {
    /// All tickets, live and refunded, with their numbers.
    pub fn numbered(&self) -> impl Iterator<Item = NumberedTicket<'_>> {
        let each = self.lines.iter().flat_map(|line| line.tickets.iter().map(move |of| (line, of)));
        (1..=MAX_TICKET).zip(each).map(|(number, (line, ticket))| NumberedTicket {
            number: TicketNumber(number),
            line,
            ticket,
        })
    }

    /// The tickets that were ever good for anything: all of a paid order, and those that refunds took back. An
    /// order that was never paid has none.
    pub fn issued(&self) -> impl Iterator<Item = NumberedTicket<'_>> {
        let is_paid = match self.state {
            OrderState::Paid => true,
            OrderState::Pending
            | OrderState::Cancelled
            | OrderState::Expired
            | OrderState::RefundDue
            | OrderState::Refunded => false,
        };
        self.numbered().filter(move |numbered| is_paid || !numbered.ticket.is_live())
    }

    fn ticket_mut(&mut self, number: TicketNumber) -> Option<&mut Ticket> {
        let mut each = self.lines.iter_mut().flat_map(|line| &mut line.tickets);
        each.nth(usize::from(number.get()).checked_sub(1)?)
    }
}

/// Why a ticket is not issued anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReissueRefusal {
    /// The order is not paid.
    #[error("the order is {}", .0.as_str())]
    NotPaid(OrderState),
    /// The order has no such ticket.
    #[error("the order has no ticket {0}")]
    UnknownTicket(TicketNumber),
    /// The ticket was refunded, or is named twice.
    #[error("ticket {} of tier {} is refunded, or is named twice", .0.seat, .0.tier)]
    Refunded(TicketName),
}

/// Tickets that are issued anew, and what that changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReissuePlan {
    /// The order as it shall be: the issue of each of the tickets is the next one.
    pub order: Order,
    /// The tickets with the issues that they had.
    pub before: BTreeMap<TicketNumber, Issue>,
}

/// Decides a request to issue tickets anew: these, or all that live if none is named. Reads nothing but its
/// arguments.
///
/// # Errors
/// The first [`ReissueRefusal`].
pub fn decide_reissue(
    order: &Order,
    tickets: &[TicketNumber],
) -> Result<ReissuePlan, ReissueRefusal> {
    if order.state != OrderState::Paid {
        return Err(ReissueRefusal::NotPaid(order.state));
    }
    let live = order.numbered().filter(|numbered| numbered.ticket.is_live());
    let all: Vec<TicketNumber> = live.map(|numbered| numbered.number).collect();
    let wanted = if tickets.is_empty() { &all } else { tickets };
    let mut plan = ReissuePlan { order: order.clone(), before: BTreeMap::new() };
    for number in wanted {
        let unknown = || ReissueRefusal::UnknownTicket(*number);
        let found = order.numbered().find(|numbered| numbered.number == *number);
        let found = found.ok_or_else(unknown)?;
        let before = plan.before.insert(*number, found.ticket.issue);
        if !found.ticket.is_live() || before.is_some() {
            return Err(ReissueRefusal::Refunded(found.ticket.named(found.line)));
        }
        let ticket = plan.order.ticket_mut(*number).ok_or_else(unknown)?;
        ticket.issue = ticket.issue.next();
    }
    Ok(plan)
}

/// What became of the tickets of an order: for each the lowest issue that is still good; `None` if none is.
pub type Revocations = BTreeMap<TicketNumber, Option<Issue>>;

/// The tickets of an order that are not all what they were at first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RevokedOrder {
    /// The order.
    pub order: OrderNumber,
    /// Its tickets that were refunded or issued anew.
    pub tickets: Revocations,
}

/// One page of what was revoked of a sale, by the number of the order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct RevokedPage {
    /// The orders.
    pub orders: Vec<RevokedOrder>,
    /// The order with which the next page begins; `None` at the end.
    pub next: Option<OrderNumber>,
}

impl ReissuePlan {
    /// What it revokes.
    #[must_use]
    pub fn revokes(&self) -> Revocations {
        let raised = self.before.iter().map(|(number, issue)| (*number, Some(issue.next())));
        raised.collect()
    }
}

impl RefundPlan {
    /// What it revokes: of a cancelled sale nothing ticket by ticket, for all of them are void.
    #[must_use]
    pub fn revokes(&self) -> Revocations {
        match self.refund.asked_by {
            AskedBy::SaleCancelled => Revocations::new(),
            AskedBy::Buyer | AskedBy::Operator | AskedBy::Dispute | AskedBy::Exchange => {
                let number = Some(self.refund.key.number);
                let taken = self.order.numbered().filter(|of| of.ticket.refund == number);
                taken.map(|of| (of.number, None)).collect()
            }
        }
    }

    /// True if none of its tickets may have let anybody in: a buyer gives no such ticket back.
    #[must_use]
    pub fn must_be_unused(&self) -> bool {
        match self.refund.asked_by {
            AskedBy::Buyer | AskedBy::Exchange => true,
            AskedBy::Operator | AskedBy::SaleCancelled | AskedBy::Dispute => false,
        }
    }
}

/// An admission, and what it changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckInPlan {
    /// The order as it shall be: the ticket says who let its holder in.
    pub order: Order,
    /// The serial that was shown: the ticket's own.
    pub serial: Serial,
    /// The check-in.
    pub check_in: CheckIn,
}

/// A ticket by which a door let somebody in although another check-in of it was there first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DoubleCheckIn {
    /// The sale.
    pub sale: SaleId,
    /// The order.
    pub order: OrderNumber,
    /// The ticket.
    pub ticket: TicketNumber,
    /// The check-in that was recorded first.
    pub first: CheckIn,
    /// The other one.
    pub again: CheckIn,
}

impl DoubleCheckIn {
    /// Its name among those of its sale: sorted as text, those of a ticket stand together, in order of time.
    #[must_use]
    pub fn key(&self) -> String {
        let Self { order, ticket, again: CheckIn { at, door }, .. } = self;
        format!("{:019}#{:02}#{:015}#{door}", order.get(), ticket.get(), at.ms().max(0))
    }
}

/// A page of the tickets that let in more than one, by their [keys](DoubleCheckIn::key).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DoublesPage {
    /// The check-ins after the first.
    pub doubles: Vec<DoubleCheckIn>,
    /// The key after which the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// How often the doors of a sale let somebody in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CheckInCounts {
    /// Tickets that let somebody in.
    pub admitted: u64,
    /// Check-ins of tickets that had let somebody in before.
    pub doubles: u64,
}

/// What a scan at a door comes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CheckInDecision {
    /// The ticket lets its holder in.
    Admit(Box<CheckInPlan>),
    /// This very scan was recorded as the ticket's check-in before.
    Repeated(CheckIn),
    /// The ticket has let somebody in before.
    Double(DoubleCheckIn),
    /// The ticket was refunded, or the issue is an old one.
    Revoked,
    /// There is no such ticket in the sale.
    Unknown,
}

/// Decides a scan of a code whose signature was verified. `order` is the order of the serial, if there is one.
/// Reads nothing but its arguments.
#[must_use]
pub fn decide_check_in(
    order: Option<&Order>,
    sale: &SaleId,
    serial: &Serial,
    scan: &CheckIn,
) -> CheckInDecision {
    let order = order.filter(|order| order.sale == *sale && order.number == serial.order);
    let found = order.and_then(|order| {
        Some((order, order.issued().find(|issued| issued.number == serial.ticket)?.ticket))
    });
    let Some((order, ticket)) = found.filter(|(_, ticket)| serial.issue <= ticket.issue) else {
        return CheckInDecision::Unknown;
    };
    if let Some(first) = ticket.checked_in.as_ref().filter(|first| *first == scan) {
        return CheckInDecision::Repeated(first.clone());
    }
    if !ticket.is_live() || serial.issue < ticket.issue {
        return CheckInDecision::Revoked;
    }
    if let Some(first) = ticket.checked_in.clone() {
        return CheckInDecision::Double(DoubleCheckIn {
            sale: sale.clone(),
            order: order.number,
            ticket: serial.ticket,
            first,
            again: scan.clone(),
        });
    }
    let mut order = order.clone();
    if let Some(ticket) = order.ticket_mut(serial.ticket) {
        ticket.checked_in = Some(scan.clone());
    }
    CheckInDecision::Admit(Box::new(CheckInPlan { order, serial: *serial, check_in: scan.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::attempt::Attempts;
    use crate::domain::fact::Facts;
    use crate::domain::ids::{Legs, RequestFingerprint, Seat, SeatName, TierId, UserId};
    use crate::domain::ledger::MerchantTerms;
    use crate::domain::money::{Currency, MinorUnits, Money};
    use crate::domain::number::Mint;
    use crate::domain::order_refund::{RefundCounts, RefundNumber};

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    /// A paid order of three tickets in two lines.
    fn paid() -> Order {
        let user = UserId::new("7").unwrap();
        let ticket = |seat: u32| Ticket {
            seat: Seat(seat),
            name: SeatName::new(format!("a{seat}")).unwrap(),
            attendee: None,
            refund: None,
            issue: Issue::FIRST,
            checked_in: None,
        };
        let line = |tier: &str, seats: std::ops::RangeInclusive<u32>| OrderLine {
            tier: TierId::new(tier).unwrap(),
            legs: Legs::ONE,
            price_minor: MinorUnits(500),
            terms: None,
            exchange: None,
            tickets: seats.map(ticket).collect(),
        };
        Order {
            number: Mint::new(0).mint(NOW, &user),
            sale: sale(),
            user,
            state: OrderState::Paid,
            lines: vec![line("a", 1..=2), line("b", 3..=3)],
            total: Money {
                amount_minor: MinorUnits(1500),
                currency: Currency::new("EUR").unwrap(),
            },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW.plus_seconds(60),
            changed_at: NOW,
            payment: None,
            attempts: Attempts::default(),
            facts: Facts::made(NOW),
            refunds: RefundCounts::default(),
            merchant: MerchantTerms::house(),
            exchange: None,
        }
    }

    fn sale() -> SaleId {
        SaleId::new("s").unwrap()
    }

    fn number(number: u8) -> TicketNumber {
        TicketNumber::try_from(number).unwrap()
    }

    fn name(seat: &str) -> TicketName {
        TicketName { tier: TierId::new("a").unwrap(), seat: SeatName::new(seat).unwrap() }
    }

    fn scan(door: &str, seconds: i64) -> CheckIn {
        CheckIn { at: NOW.plus_seconds(seconds), door: DoorName::new(door).unwrap() }
    }

    fn serial(order: &Order, ticket: u8, issue: u32) -> Serial {
        let issue = Issue::try_from(issue).unwrap();
        Serial { order: order.number, ticket: number(ticket), issue }
    }

    #[test]
    fn tickets_are_numbered_line_by_line_and_issued_once_the_order_is_paid() {
        let mut order = paid();
        order.lines[0].tickets[1].refund = Some(RefundNumber::FIRST);
        let seats = |order: &Order| -> Vec<(u8, String)> {
            order.issued().map(|of| (of.number.get(), of.ticket.name.to_string())).collect()
        };
        let all = [(1, "a1".to_owned()), (2, "a2".to_owned()), (3, "a3".to_owned())];
        assert_eq!(seats(&order), all);
        for state in OrderState::ALL.into_iter().filter(|state| *state != OrderState::Paid) {
            // What was taken back had been issued; nothing else was.
            assert_eq!(seats(&Order { state, ..order.clone() }), all[1..2], "{state:?}");
        }
        let states: Vec<TicketState> = order.issued().map(|of| of.ticket.state()).collect();
        assert_eq!(states, [TicketState::Valid, TicketState::Revoked, TicketState::Valid]);
        assert!(TicketNumber::try_from(0).is_err() && TicketNumber::try_from(11).is_err());
        assert!(Issue::try_from(0).is_err() && Issue(u32::MAX).next() == Issue(u32::MAX));
    }

    #[test]
    fn a_new_issue_is_the_next_one_and_of_live_tickets_alone() {
        use ReissueRefusal as No;
        let mut order = paid();
        order.lines[0].tickets[1].refund = Some(RefundNumber::FIRST);
        let issues = |order: &Order| -> Vec<u32> {
            order.numbered().map(|of| of.ticket.issue.get()).collect()
        };
        let all = decide_reissue(&order, &[]).unwrap();
        assert_eq!(issues(&all.order), [2, 1, 2]);
        assert_eq!(
            all.revokes(),
            [(number(1), Some(Issue(2))), (number(3), Some(Issue(2)))].into()
        );
        let again = decide_reissue(&all.order, &[number(3)]).unwrap();
        assert_eq!(issues(&again.order), [2, 1, 3]);
        assert_eq!(again.before, [(number(3), Issue(2))].into());
        for (tickets, refusal) in [
            (&[number(2)][..], No::Refunded(name("a2"))),
            (&[number(1), number(1)], No::Refunded(name("a1"))),
            (&[number(1), number(4)], No::UnknownTicket(number(4))),
        ] {
            assert_eq!(decide_reissue(&order, tickets), Err(refusal));
        }
        for state in OrderState::ALL.into_iter().filter(|state| *state != OrderState::Paid) {
            let order = Order { state, ..order.clone() };
            assert_eq!(decide_reissue(&order, &[]), Err(No::NotPaid(state)));
        }
    }

    #[test]
    fn a_ticket_lets_one_in_and_names_who_came_first() {
        use CheckInDecision as Is;
        let order = paid();
        let decide = |order: &Order, serial: &Serial, check_in: &CheckIn| {
            decide_check_in(Some(order), &sale(), serial, check_in)
        };
        let (code, first) = (serial(&order, 2, 1), scan("north", 0));
        let Is::Admit(plan) = decide(&order, &code, &first) else { panic!("not admitted") };
        let used = plan.order;
        assert_eq!(used.lines[0].tickets[1].checked_in, Some(first.clone()));
        assert_eq!(used.numbered().filter(|of| of.ticket.checked_in.is_some()).count(), 1);
        // The same scan is the same check-in, also once the ticket was taken back or issued anew.
        let mut refunded = used.clone();
        refunded.lines[0].tickets[1].refund = Some(RefundNumber::FIRST);
        let anew = decide_reissue(&used, &[]).unwrap().order;
        for order in [&used, &refunded, &anew] {
            assert_eq!(decide(order, &code, &first), Is::Repeated(first.clone()));
        }
        // Another door, and another time at the same one, are another.
        for again in [scan("south", 0), scan("north", -5)] {
            let Is::Double(double) = decide(&used, &code, &again) else { panic!("{again:?}") };
            assert_eq!((&double.first, &double.again), (&first, &again));
            assert_eq!(double.key().len(), 19 + 1 + 2 + 1 + 15 + 1 + 5);
            assert_eq!(decide(&refunded, &code, &again), Is::Revoked);
            assert_eq!(decide(&anew, &code, &again), Is::Revoked);
        }
        // A new code lets nobody else in.
        let new = serial(&order, 2, 2);
        assert!(matches!(decide(&anew, &new, &scan("south", 1)), Is::Double(_)));
    }

    #[test]
    fn what_is_no_ticket_of_the_sale_is_unknown() {
        use CheckInDecision as Is;
        let order = paid();
        let (code, at) = (serial(&order, 1, 1), scan("north", 0));
        let other = SaleId::new("other").unwrap();
        assert_eq!(decide_check_in(None, &sale(), &code, &at), Is::Unknown);
        assert_eq!(decide_check_in(Some(&order), &other, &code, &at), Is::Unknown);
        // An issue that was never made, a ticket that the order has not, an order that was never paid.
        for code in [serial(&order, 1, 2), serial(&order, 4, 1)] {
            assert_eq!(decide_check_in(Some(&order), &sale(), &code, &at), Is::Unknown);
        }
        let pending = Order { state: OrderState::Pending, ..order.clone() };
        assert_eq!(decide_check_in(Some(&pending), &sale(), &code, &at), Is::Unknown);
        assert!(matches!(decide_check_in(Some(&order), &sale(), &code, &at), Is::Admit(_)));
    }
}
