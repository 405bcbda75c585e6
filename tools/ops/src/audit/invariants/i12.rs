//! I12: what is void is listed, and check-ins are of tickets.

use engine::domain::sale::SaleState;

use super::super::facts::{DoubleFact, Facts, OrderFact, SaleFacts, TicketFact};
use super::super::violation::{Rule, Subject};
use super::Finding;

/// I12: the list of a sale says of each ticket that was refunded or issued anew what its order says, and of no
/// other, unless the cancellation of the sale took it back; tickets that let somebody in are counted, were
/// issued, and every check-in after the first names the first.
#[must_use]
pub fn tickets_are_listed_and_checked_in_once(facts: &Facts) -> Finding {
    let mut finding = Finding::new(Rule::I12);
    for sale in facts.sales.values() {
        let mut admitted = 0;
        for order in sale.orders.values() {
            for ticket in &order.tickets {
                admitted += u64::from(ticket.check_in.is_some());
                check_ticket(&mut finding, facts, sale, order, ticket);
            }
        }
        for order in sale.revoked.keys().filter(|order| !sale.orders.contains_key(order)) {
            let what = "is in the list of revoked tickets and does not exist";
            finding.add(sale, Subject::Order { order: *order }, what);
        }
        for double in &sale.doubles {
            check_double(&mut finding, sale, double);
        }
        let doubles = u64::try_from(sale.doubles.len()).unwrap_or(u64::MAX);
        if (admitted, doubles) != sale.check_ins {
            let (counted, again) = sale.check_ins;
            let what = format!(
                "has {admitted} tickets that let somebody in and {doubles} check-ins after the first, \
                 and counts {counted} and {again}"
            );
            finding.add(sale, Subject::Sale, what);
        }
    }
    finding
}

fn check_ticket(
    finding: &mut Finding,
    facts: &Facts,
    sale: &SaleFacts,
    order: &OrderFact,
    ticket: &TicketFact,
) {
    let TicketFact { number, refund, issue, check_in, .. } = ticket;
    let subject = || Subject::Order { order: order.number };
    let listed = sale.revoked.get(&order.number).and_then(|of| of.get(number)).copied();
    let is_listed_as = |lowest: Option<u32>| listed == lowest;
    let raised = (*issue > 1).then_some(*issue);
    finding.checked += u64::from(refund.is_some() || raised.is_some() || check_in.is_some());
    let by_cancellation = refund.is_some_and(|refund| {
        facts.refunds.iter().any(|fact| {
            (fact.order, fact.number) == (order.number, refund) && fact.is_of_cancelled_sale
        })
    });
    let is_right = match refund {
        // One line says it of all: the state of the sale.
        Some(_) if by_cancellation => {
            sale.sale.file().state == SaleState::Cancelled && is_listed_as(raised)
        }
        Some(_) => is_listed_as(Some(0)),
        None => is_listed_as(raised),
    };
    if !is_right {
        let is = match refund {
            Some(_) if by_cancellation => "went back with its sale".to_owned(),
            Some(_) => "was refunded".to_owned(),
            None => format!("has issue {issue}"),
        };
        let says = listed.map_or_else(|| "nothing".to_owned(), |lowest| lowest.to_string());
        let what =
            format!("has ticket {number}, which {is}, and the list of revoked tickets says {says}");
        finding.add(sale, subject(), what);
    }
    if check_in.is_some() && refund.is_none() && order.payment.is_none() {
        let what = format!("let somebody in by ticket {number} and was never paid");
        finding.add(sale, subject(), what);
    }
}

fn check_double(finding: &mut Finding, sale: &SaleFacts, double: &DoubleFact) {
    finding.checked += 1;
    let DoubleFact { order, ticket, first, again } = double;
    let of_order = sale.orders.get(order);
    let found = of_order.and_then(|of| of.tickets.iter().find(|one| one.number == *ticket));
    let what = match found.map(|ticket| &ticket.check_in) {
        None => "has no such ticket",
        Some(None) => "has let nobody in by it",
        Some(Some(own)) if own != first => "has another first check-in of it",
        Some(Some(own)) if own == again => "has no other check-in of it",
        Some(Some(_)) => return,
    };
    let what = format!("was let in again by ticket {ticket} at door {}, and {what}", again.1);
    finding.add(sale, Subject::Order { order: *order }, what);
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{assert_each, order_number, order_of, sale_of};

    #[test]
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn i12_finds_tickets_that_are_not_listed_and_check_ins_of_none() {
        assert_each(&[
            (
                |facts| drop(sale_of(facts).revoked.remove(&order_number(1))),
                &[
                    "I12 g1: order 1 has ticket 2, which has issue 2, and the list of revoked tickets says nothing",
                    "I12 g1: order 1 has ticket 3, which was refunded, and the list of revoked tickets says nothing",
                ],
            ),
            (
                |facts| {
                    let listed = sale_of(facts).revoked.get_mut(&order_number(1)).unwrap();
                    listed.insert(1, 0);
                    listed.insert(3, 2);
                },
                &[
                    "I12 g1: order 1 has ticket 1, which has issue 1, and the list of revoked tickets says 0",
                    "I12 g1: order 1 has ticket 3, which was refunded, and the list of revoked tickets says 2",
                ],
            ),
            (
                |facts| {
                    let listed = sale_of(facts).revoked.remove(&order_number(1)).unwrap();
                    sale_of(facts).revoked.insert(order_number(8), listed.clone());
                    sale_of(facts).revoked.insert(order_number(1), listed);
                },
                &["I12 g1: order 8 is in the list of revoked tickets and does not exist"],
            ),
            (
                |facts| facts.refunds[0].is_of_cancelled_sale = true,
                &[
                    "I12 g1: order 1 has ticket 3, which went back with its sale, and the list of revoked tickets says 0",
                ],
            ),
            (
                |facts| sale_of(facts).check_ins.0 = 2,
                &[
                    "I12 g1: the sale has 1 tickets that let somebody in and 1 check-ins after the first, and counts 2 and 1",
                ],
            ),
            (
                |facts| {
                    let check_in = order_of(facts, 1).tickets[0].check_in.take();
                    order_of(facts, 2).tickets[0].check_in = check_in;
                },
                &[
                    "I12 g1: order 1 was let in again by ticket 1 at door south, and has let nobody in by it",
                    "I12 g1: order 2 let somebody in by ticket 1 and was never paid",
                ],
            ),
            (
                |facts| sale_of(facts).doubles[0].ticket = 9,
                &[
                    "I12 g1: order 1 was let in again by ticket 9 at door south, and has no such ticket",
                ],
            ),
            (
                |facts| sale_of(facts).doubles[0].first.1 = "east".to_owned(),
                &[
                    "I12 g1: order 1 was let in again by ticket 1 at door south, and has another first check-in of it",
                ],
            ),
            (
                |facts| {
                    let double = &mut sale_of(facts).doubles[0];
                    double.again = double.first.clone();
                },
                &[
                    "I12 g1: order 1 was let in again by ticket 1 at door north, and has no other check-in of it",
                ],
            ),
        ]);
    }
}
