//! The people whom tickets name: how they are distinguished without their ids, and how many
//! of them one buyer may name.
//!
//! Nobody has two tickets of a sale. What is compared, and kept for as long as the sale sells, is a
//! keyed hash of the id, bound to the sale: it says neither who the person is nor which sales a
//! person goes to. The id itself stands in the order alone, and can be erased from there.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{AttendeeId, InvalidId};
use crate::domain::basics::tickets::Tickets;

/// Most keys that hash attendees at once: one, and the one that it replaces.
pub const MAX_ATTENDEE_KEYS: usize = 2;
/// People whom a buyer may name in a sale, for each ticket that the limit allows.
const MAX_NAMED_PER_TICKET: usize = 3;
/// Bytes of a hash: half of a SHA-256, as RFC 2104, section 5, allows at least.
const HASH_BYTES: usize = 16;

/// A person in one sale: the keyed hash of the sale and the attendee id, 32 hexadecimal digits.
///
/// `Debug` shows four digits of it, so that no log has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttendeeHash([u8; HASH_BYTES]);

impl AttendeeHash {
    /// The hash whose tag begins with these bytes; `None` if the tag is shorter than a hash.
    #[must_use]
    pub fn from_tag(tag: &[u8]) -> Option<Self> {
        tag.first_chunk().copied().map(Self)
    }
}

impl fmt::Display for AttendeeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AttendeeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second, ..] = self.0;
        write!(f, "AttendeeHash({first:02x}{second:02x}…)")
    }
}

impl FromStr for AttendeeHash {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { kind: "attendee hash", rule: "32 hexadecimal digits" };
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 2 * HASH_BYTES || !text.bytes().all(is_digit) {
            return Err(invalid);
        }
        let mut bytes = [0; HASH_BYTES];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = text.get(2 * index..2 * index + 2).unwrap_or_default();
            *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid.clone())?;
        }
        Ok(Self(bytes))
    }
}

/// The person whom a ticket names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attendee {
    /// The id as the buyer gave it; `None` once it is erased.
    pub id: Option<AttendeeId>,
    /// Its hash by each key that was in force, at most [`MAX_ATTENDEE_KEYS`], the oldest key's last.
    pub hashes: Vec<AttendeeHash>,
}

impl Attendee {
    /// The hash that counts this person, and that represents the id in the request's fingerprint: the hash by the
    /// oldest key, which stays the same while a newer key is introduced.
    #[must_use]
    pub fn counting_hash(&self) -> Option<AttendeeHash> {
        self.hashes.last().copied()
    }
}

/// Most people whom a buyer may name in a sale with this limit, in all requests together.
#[must_use]
pub fn max_named(limit: Tickets) -> usize {
    usize::from(limit.get()) * MAX_NAMED_PER_TICKET
}

/// True if a buyer who has named some people of a sale may name these: all of them again, or few
/// enough that they and the others stay within [`max_named`].
///
/// This bounds the number of people of whom a buyer learns whether they have a ticket, and whom a buyer can keep from
/// getting one.
#[must_use]
pub fn may_name(
    named: &BTreeSet<AttendeeHash>,
    people: &BTreeSet<AttendeeHash>,
    limit: Tickets,
) -> bool {
    !stands(Guard::AttendeeLimit)
        || people.is_subset(named)
        || named.len() + people.len() <= max_named(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> AttendeeHash {
        AttendeeHash([number; HASH_BYTES])
    }

    #[test]
    fn a_hash_is_read_as_it_is_printed_and_debug_does_not_show_it() {
        let one = AttendeeHash::from_tag(&(0..32).collect::<Vec<u8>>()).unwrap();
        let text = "000102030405060708090a0b0c0d0e0f";
        assert_eq!((one.to_string().as_str(), text.parse()), (text, Ok(one)));
        assert_eq!(format!("{one:?}"), "AttendeeHash(0001…)");
        assert_eq!(AttendeeHash::from_tag(&[1; 15]), None);
        for bad in ["", "0001", &text.to_uppercase(), &format!("{text}0"), &"é".repeat(16)] {
            assert!(bad.parse::<AttendeeHash>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_buyer_names_three_people_a_ticket_and_the_same_ones_again() {
        let of = |numbers: std::ops::Range<u8>| numbers.map(hash).collect::<BTreeSet<_>>();
        let limit = Tickets::new(2);
        assert_eq!(max_named(limit), 6);
        assert!(may_name(&of(0..0), &of(0..6), limit) && !may_name(&of(0..0), &of(0..7), limit));
        assert!(may_name(&of(0..4), &of(4..6), limit) && !may_name(&of(0..5), &of(5..7), limit));
        // The same people again, but not one more.
        assert!(may_name(&of(0..6), &of(1..3), limit) && !may_name(&of(0..6), &of(5..7), limit));
        // A limit that was lowered takes nobody back.
        assert!(may_name(&of(0..6), &of(0..6), Tickets::new(1)));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn without_the_guard_anybody_may_be_named() {
        let of = |numbers: std::ops::Range<u8>| numbers.map(hash).collect::<BTreeSet<_>>();
        let may = || may_name(&of(0..9), &of(9..200), Tickets::new(1));
        assert!(!may() && crate::domain::basics::guard::without(Guard::AttendeeLimit, may));
    }
}
