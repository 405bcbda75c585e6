//! The tests of codes and doors.

use super::*;
use crate::domain::basics::ids::{
    DoorName, Legs, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::number::Mint;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::Attempts;
use crate::domain::order::fact::Facts;
use crate::domain::order::order_refund::{RefundCounts, RefundNumber};
use crate::domain::order::{CheckIn, Issue, Order, OrderLine, OrderState, Ticket, TicketName};
use crate::domain::sale::MerchantTerms;

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
        total: Money { amount_minor: MinorUnits(1500), currency: Currency::new("EUR").unwrap() },
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

fn issue(number: u32) -> Issue {
    Issue::try_from(number).unwrap()
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
    assert!(Issue::try_from(0).is_err() && issue(u32::MAX).next() == issue(u32::MAX));
}

#[test]
fn a_new_issue_is_the_next_one_and_of_live_tickets_alone() {
    use ReissueRefusal as No;
    let mut order = paid();
    order.lines[0].tickets[1].refund = Some(RefundNumber::FIRST);
    let issues =
        |order: &Order| -> Vec<u32> { order.numbered().map(|of| of.ticket.issue.get()).collect() };
    let all = decide_reissue(&order, &[]).unwrap();
    assert_eq!(issues(&all.order), [2, 1, 2]);
    assert_eq!(all.revokes(), [(number(1), Some(issue(2))), (number(3), Some(issue(2)))].into());
    let again = decide_reissue(&all.order, &[number(3)]).unwrap();
    assert_eq!(issues(&again.order), [2, 1, 3]);
    assert_eq!(again.before, [(number(3), issue(2))].into());
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
