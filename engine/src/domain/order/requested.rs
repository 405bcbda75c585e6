//! What a buyer asks for, line by line, and the fingerprint that makes a repeat recognisable.

use sha2::{Digest, Sha256};

use super::attendee::Attendee;
use super::exchange::ExchangeRequest;
use super::{Issue, OrderLine, Ticket, TicketName};
use crate::domain::basics::ids::{RequestFingerprint, SeatName};
use crate::domain::basics::money::MinorUnits;
use crate::domain::inventory::choice::{Choice, Together};
use crate::domain::inventory::{HoldRecord, Line};
use crate::domain::sale::Sale;

/// One line of a request, checked against its sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLine {
    /// The line that is requested.
    pub line: Line,
    /// The price of each ticket.
    pub price_minor: MinorUnits,
    /// Users of the tickets: none, or one a ticket in the order of the seats.
    pub attendees: Vec<Attendee>,
}

/// The fingerprint of a request: the first eight bytes, in hexadecimal, of the SHA-256 of its
/// lines in a canonical text. The price is not part of it: it follows from the rest. An attendee is in
/// it by the keyed hash: a fingerprint of few digits of an id, which anybody could try all of, would
/// keep what is erased.
#[must_use]
pub fn fingerprint(
    lines: &[RequestedLine],
    exchange: Option<&ExchangeRequest>,
) -> RequestFingerprint {
    let mut hash = Sha256::new();
    // Each part is written with its length, so that no two requests share one text.
    let mut part = |text: &str| {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(text.as_bytes());
    };
    for RequestedLine { line, attendees, price_minor: _ } in lines {
        part("line");
        part(line.tier.as_str());
        part(&format!("{}-{}", line.legs.from(), line.legs.to()));
        match &line.choice {
            Choice::Seats(seats) => {
                part("seats");
                seats.iter().for_each(|seat| part(&seat.0.to_string()));
            }
            Choice::Best { count, together } => {
                let together = match together {
                    Together::Required => "required",
                    Together::Preferred => "preferred",
                };
                part(&format!("best {count} {together}"));
            }
            Choice::Pattern { column, offsets } => {
                part(&format!("pattern {column}"));
                offsets.iter().for_each(|at| part(&format!("{} {}", at.row, at.column)));
            }
        }
        for attendee in attendees {
            let hash = attendee.counting_hash().map(|hash| hash.to_string()).unwrap_or_default();
            part(&format!("attendee {hash}"));
        }
    }
    if let Some(ExchangeRequest { order, tickets }) = exchange {
        part(&format!("for {order}"));
        for TicketName { tier, seat } in tickets {
            part(tier.as_str());
            part(seat.as_str());
        }
    }
    let digest = hash.finalize();
    let text: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    RequestFingerprint::new(text)
        .unwrap_or_else(|_| unreachable!("eight bytes are 16 hexadecimal digits"))
}

/// The lines of an order from what was requested and what was held: seats get their names, prices
/// and attendees.
///
/// Returns `None` if the hold is not of these lines, which only a broken contract can cause.
#[must_use]
pub fn order_lines(
    sale: &Sale,
    requested: &[RequestedLine],
    record: &HoldRecord,
) -> Option<Vec<OrderLine>> {
    if requested.len() != record.lines.len() {
        return None;
    }
    let line = |(requested, held): (&RequestedLine, &crate::domain::inventory::HeldLine)| {
        let is_whole = held.seats.len() == requested.line.choice.count();
        let tier =
            sale.tier(&held.tier).filter(|_| held.tier == requested.line.tier && is_whole)?;
        let ticket = |(index, seat): (usize, &crate::domain::basics::ids::Seat)| {
            let name: SeatName = tier.layout.name(*seat)?;
            let attendee = requested.attendees.get(index).cloned();
            Some(Ticket {
                seat: *seat,
                name,
                attendee,
                refund: None,
                issue: Issue::FIRST,
                checked_in: None,
            })
        };
        Some(OrderLine {
            tier: held.tier.clone(),
            legs: held.legs,
            price_minor: requested.price_minor,
            terms: sale.refund_terms(&held.tier, requested.price_minor),
            exchange: sale.exchange_terms(&held.tier, requested.price_minor),
            tickets: held.seats.iter().enumerate().map(ticket).collect::<Option<_>>()?,
        })
    };
    requested.iter().zip(&record.lines).map(line).collect()
}

/// The total price of some lines.
#[must_use]
pub fn total_minor(lines: &[OrderLine]) -> MinorUnits {
    lines.iter().map(OrderLine::total_minor).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::{Legs, Seat, TierId};
    use crate::domain::inventory::choice::Offset;

    fn requested(tier: &str, choice: Choice, attendees: &[&str]) -> RequestedLine {
        let line = Line { tier: TierId::new(tier).unwrap(), legs: Legs::ONE, choice };
        let hashes = |id: &&str| vec![id.repeat(32).parse().unwrap()];
        let attendee = |id: &&str| Attendee { id: None, hashes: hashes(id) };
        let attendees = attendees.iter().map(attendee).collect();
        RequestedLine { line, price_minor: MinorUnits(1), attendees }
    }

    #[test]
    fn every_difference_changes_the_fingerprint() {
        let best = |count, together| Choice::Best { count, together };
        let at = |row, column| Offset { row, column };
        let requests = [
            vec![requested("a", best(2, Together::Required), &[])],
            vec![requested("b", best(2, Together::Required), &[])],
            vec![requested("a", best(3, Together::Required), &[])],
            vec![requested("a", best(2, Together::Preferred), &[])],
            vec![requested("a", best(2, Together::Required), &["a", "b"])],
            vec![requested("a", best(2, Together::Required), &["b", "a"])],
            vec![requested("a", Choice::Seats(vec![Seat(1), Seat(2)]), &[])],
            vec![requested("a", Choice::Seats(vec![Seat(12)]), &[])],
            vec![requested("a", Choice::Pattern { column: 1, offsets: vec![at(0, 1)] }, &[])],
            vec![requested("a", Choice::Pattern { column: 1, offsets: vec![at(1, 0)] }, &[])],
            vec![
                requested("a", Choice::Seats(vec![Seat(1)]), &[]),
                requested("b", Choice::Seats(vec![Seat(2)]), &[]),
            ],
        ];
        let prints: std::collections::HashSet<RequestFingerprint> =
            requests.iter().map(|request| fingerprint(request, None)).collect();
        assert_eq!(prints.len(), requests.len());
        assert_eq!(fingerprint(&requests[0], None), fingerprint(&requests[0].clone(), None));
        let name = |seat| TicketName {
            tier: TierId::new("a").unwrap(),
            seat: SeatName::new(seat).unwrap(),
        };
        let exchange =
            |seat| ExchangeRequest { order: "1".parse().unwrap(), tickets: vec![name(seat)] };
        let one = fingerprint(&requests[0], Some(&exchange("a1")));
        assert!(!prints.contains(&one));
        assert_ne!(one, fingerprint(&requests[0], Some(&exchange("a2"))));
    }
}
