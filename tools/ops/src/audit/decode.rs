//! Decoders of the texts and numbers that the stores hold, from their documented format alone.
//!
//! `docs/tables.md` and `docs/architecture.md` are the formats. Nothing here calls the code by which
//! the engine writes or reads them: a mistake there must show as a violation, and not as the same
//! mistake made twice.

use engine::domain::basics::ids::{Legs, Seat, TierId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{OrderState, PaymentKey};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::facts::{DisputeFact, ExchangeFact, HeldFact, HoldFact, MovedFact, PointsTermsFact};

/// Genes, which are the partitions of the table of orders.
const GENES: u64 = 1024;
/// Seats of one partition of the table of claims.
const SEATS_A_BLOCK: u32 = 128;
/// The states of a dispute.
const DISPUTE_STATES: [&str; 3] = ["open", "won", "lost"];
/// Hexadecimal digits of a request's fingerprint.
const FINGERPRINT_DIGITS: usize = 16;
/// Doubles are whole numbers, each of them, below this power of two.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The partition of a buyer or an attendee, 0 to 1023: of a decimal number below 2^63 that number
/// modulo 1024, of any other text the first eight bytes of its SHA-256, big-endian, modulo 1024.
pub(super) fn gene_of_text(id: &str) -> u64 {
    let is_plain = !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_digit())
        && (id == "0" || !id.starts_with('0'));
    let number = id.parse::<i64>().ok().filter(|_| is_plain).and_then(|id| u64::try_from(id).ok());
    let hashed = || {
        let digest = Sha256::digest(id.as_bytes());
        // 1024 divides 2^16: the last two of the eight bytes decide.
        u64::from(digest[6]) << 8 | u64::from(digest[7])
    };
    number.unwrap_or_else(hashed) % GENES
}

/// The partition of an order and of its payments: the low ten bits of its number.
pub(super) fn gene_of_order(order: OrderNumber) -> u64 {
    order.get() % GENES
}

/// The bucket of a buyer's place: the first four bytes of the SHA-256 of the id, big-endian, modulo 256.
pub(super) fn bucket_of(buyer: &str) -> u16 {
    u16::from(Sha256::digest(buyer.as_bytes())[3])
}

/// When the admission of an order was given, to the second: the high 32 bits of its number are seconds
/// since 2024-01-01 UTC.
pub(super) fn admitted_at(order: OrderNumber) -> Timestamp {
    const FIRST_SECOND: i64 = 1_704_067_200;
    Timestamp::from_ms((FIRST_SECOND + (order.get() >> 31).cast_signed()) * 1000)
}

/// The block that a seat's claims lie in.
pub(super) fn block_of(seat: Seat) -> u32 {
    seat.0 / SEATS_A_BLOCK
}

/// The state of an order.
pub(super) fn order_state(text: &str) -> Option<OrderState> {
    Some(match text {
        "pending" => OrderState::Pending,
        "paid" => OrderState::Paid,
        "cancelled" => OrderState::Cancelled,
        "expired" => OrderState::Expired,
        "refund_due" => OrderState::RefundDue,
        "refunded" => OrderState::Refunded,
        _ => return None,
    })
}

/// The disputes of a payment, as its item has them.
pub(super) fn disputes(text: &str) -> Result<Vec<DisputeFact>, String> {
    let broken = |why: String| format!("has disputes {text}: {why}");
    let all: Vec<Value> = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
    let times = |one: &Value, name: &str| match one.get(name) {
        None => Some(0),
        Some(times) => u8::try_from(times.as_u64()?).ok(),
    };
    let of = |one: &Value| {
        Some(DisputeFact {
            id: one.get("id")?.as_str()?.to_owned(),
            state: one
                .get("state")?
                .as_str()
                .filter(|state| DISPUTE_STATES.contains(state))?
                .to_owned(),
            amount_minor: one.get("amount_minor")?.as_i64()?,
            changed_ms: one.get("changed_at")?.as_str()?.parse::<Timestamp>().ok()?.ms(),
            again: (times(one, "reopened")?, times(one, "reinstated")?),
        })
    };
    all.iter().map(|one| of(one).ok_or_else(|| broken("one cannot be read".to_owned()))).collect()
}

/// What an order gives for what is paid, as its item has it.
pub(super) fn points_terms(text: &str) -> Result<PointsTermsFact, String> {
    serde_json::from_str(text).map_err(|error| format!("points: {error}"))
}

/// What an order replaces, as its item has it.
pub(super) fn exchange(text: &str) -> Result<ExchangeFact, String> {
    let read = |one: &Value| {
        let name = |ticket: &Value| {
            let tier = ticket.get("tier")?.as_str()?.parse().ok()?;
            Some((tier, ticket.get("seat")?.as_str()?.to_owned()))
        };
        let tickets = one.get("tickets")?.as_array()?;
        Some(ExchangeFact {
            order: one.get("order")?.as_str()?.parse().ok()?,
            sale: one.get("sale")?.as_str()?.parse().ok()?,
            tickets: tickets.iter().map(name).collect::<Option<_>>()?,
            value_minor: one.get("value_minor")?.as_i64()?,
        })
    };
    let parsed = serde_json::from_str(text).ok();
    parsed.as_ref().and_then(read).ok_or_else(|| format!("replaces {text}"))
}

/// The capture whose money a payment moved, as its item has it.
pub(super) fn moved(text: &str) -> Result<MovedFact, String> {
    let read = |one: &Value| {
        let capture = one.get("capture")?;
        let key = capture.get("key")?;
        let name = |of: &str| key.get(of)?.as_str();
        Some(MovedFact {
            key: PaymentKey {
                provider: name("provider")?.parse().ok()?,
                payment: name("payment")?.parse().ok()?,
            },
            order: capture.get("order")?.as_str()?.parse().ok()?,
        })
    };
    let parsed = serde_json::from_str(text).ok();
    parsed.as_ref().and_then(read).ok_or_else(|| format!("was captured as {text}"))
}

/// State of a refund, by its text.
pub(super) fn refund_state(text: &str) -> Option<RefundState> {
    Some(match text {
        "due" => RefundState::Due,
        "requested" => RefundState::Requested,
        "pending" => RefundState::Pending,
        "failed" => RefundState::Failed,
        "unmatched" => RefundState::Unmatched,
        "explained" => RefundState::Explained,
        "refunded" => RefundState::Refunded,
        "outside" => RefundState::Outside,
        "failed_later" => RefundState::FailedLater,
        "settled" => RefundState::Settled,
        _ => return None,
    })
}

/// A score of a sorted set as a whole number of milliseconds. Scores are doubles, exact far beyond
/// our times, and Redis may write one as `1.795e+12`.
pub(super) fn score(text: &str) -> Option<i64> {
    let score: f64 = text.parse().ok()?;
    (score.fract() == 0.0 && score.abs() < EXACT).then_some(score as i64)
}

/// A hold: `deadline|content|tickets|lines|user`. The deadline is in milliseconds, the content a
/// fingerprint of 16 hexadecimal digits, the user free text.
pub(super) fn hold(text: &str) -> Option<HoldFact> {
    let (deadline, rest) = text.split_once('|')?;
    let (content, rest) = rest.split_once('|')?;
    let (tickets, rest) = rest.split_once('|')?;
    let (lines, user) = rest.split_once('|')?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if content.len() != FINGERPRINT_DIGITS || !content.bytes().all(is_digit) {
        return None;
    }
    let lines: Vec<HeldFact> = lines.split(';').map(held).collect::<Option<_>>()?;
    let held: usize = lines.iter().map(|line| line.seats.len()).sum();
    let is_counted = tickets.parse() == Ok(held);
    let deadline = Timestamp::from_ms(deadline.parse().ok()?);
    let hold = HoldFact { user: user.parse().ok()?, deadline, lines };
    is_counted.then_some(hold)
}

/// A line of a hold: `tier,from,to,seat.seat`, where a seat is its bit.
fn held(text: &str) -> Option<HeldFact> {
    let parts: Vec<&str> = text.split(',').collect();
    let [tier, from, to, seats] = parts.as_slice() else { return None };
    let tier = TierId::new(*tier).ok()?;
    let legs = Legs::new(from.parse().ok()?, to.parse().ok()?)?;
    let seat = |seat: &str| seat.parse().ok().map(Seat);
    Some(HeldFact { tier, legs, seats: seats.split('.').map(seat).collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gene_is_that_of_the_number_or_of_the_hash() {
        for (id, gene) in [
            ("0", 0),
            ("1023", 1023),
            ("1024", 0),
            ("9223372036854775807", 1023),
            // From `printf %s ID | sha256sum`, bytes 7 and 8 of the digest.
            ("alice", 175),
            ("007", 268),
            ("9223372036854775808", 547),
            ("+1", 648),
        ] {
            assert_eq!(gene_of_text(id), gene, "{id}");
        }
        assert_eq!(gene_of_order("364123456789012345".parse().unwrap()), 889);
    }

    #[test]
    fn a_bucket_is_the_fourth_byte_of_the_hash() {
        // SHA-256("abc") begins with ba7816bf.
        assert_eq!(bucket_of("abc"), 0xbf);
    }

    #[test]
    fn a_block_has_128_seats() {
        assert_eq!([0, 127, 128, 300_000].map(|bit| block_of(Seat(bit))), [0, 0, 1, 2343]);
    }

    #[test]
    fn a_score_is_a_whole_number_of_milliseconds() {
        assert_eq!(score("1795000000123"), Some(1_795_000_000_123));
        assert_eq!(score("1.795e+12"), Some(1_795_000_000_000));
        for bad in ["", "0.5", "inf", "nan", "1e300"] {
            assert_eq!(score(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_hold_is_read_as_it_is_documented() {
        let text = "1795000000123|0123456789abcdef|3|a,0,2,0.17;ga,1,2,4|auth0|张三";
        let line = |tier: &str, legs: (u16, u16), seats: &[u32]| HeldFact {
            tier: tier.parse().unwrap(),
            legs: Legs::new(legs.0, legs.1).unwrap(),
            seats: seats.iter().copied().map(Seat).collect(),
        };
        let expected = HoldFact {
            user: "auth0|张三".parse().unwrap(),
            deadline: Timestamp::from_ms(1_795_000_000_123),
            lines: vec![line("a", (0, 2), &[0, 17]), line("ga", (1, 2), &[4])],
        };
        assert_eq!(hold(text), Some(expected));
        for bad in [
            "",
            "nonsense",
            "x|0123456789abcdef|1|a,0,1,0|u",
            "1|0123456789abcde|1|a,0,1,0|u",
            "1|0123456789ABCDEF|1|a,0,1,0|u",
            "1|0123456789abcdef|2|a,0,1,0|u",
            "1|0123456789abcdef|1|a,1,1,0|u",
            "1|0123456789abcdef|1|a,0,1|u",
            "1|0123456789abcdef|1|a,0,1,0,0|u",
            "1|0123456789abcdef|1|a,0,1,x|u",
            "1|0123456789abcdef|0||u",
            "1|0123456789abcdef|1|a,0,1,0",
            "1|0123456789abcdef|1|a,0,1,0|",
        ] {
            assert_eq!(hold(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_state_is_one_of_those_that_are_documented() {
        let orders = ["pending", "paid", "cancelled", "expired", "refund_due", "refunded"];
        let refunds = ["due", "requested", "pending", "failed", "refunded"];
        assert_eq!(orders.map(|text| order_state(text).is_some()), [true; 6]);
        assert_eq!(refunds.map(|text| refund_state(text).is_some()), [true; 5]);
        assert_eq!(order_state("refund-due"), None);
        assert_eq!(refund_state("Due"), None);
    }
}
