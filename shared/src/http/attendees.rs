//! The keys that hash attendees. A sale keeps and compares the hash of a person's id in place of the id.
//!
//! A hash is the first half of HMAC-SHA256 over `<sale>#<attendee>`: nobody without a key can try ids
//! against it, and the same person has another hash in another sale. Every key makes a hash of its own, and a claim
//! under any key's hash refuses another order for the same person: so a key can be replaced while sales go on.

use aws_lc_rs::hmac::{self, HMAC_SHA256};

use engine::domain::basics::ids::{AttendeeId, SaleId};
use engine::domain::order::attendee::{Attendee, AttendeeHash};

/// The keys that hash attendees, the oldest last.
pub struct AttendeeKeys {
    keys: Vec<hmac::Key>,
}

/// The deployment has no key to hash attendees with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no attendee key is configured")]
pub struct NoKey;

impl AttendeeKeys {
    /// The keys with these secrets, the oldest last.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let keys = secrets.into_iter().map(|secret| hmac::Key::new(HMAC_SHA256, secret)).collect();
        Self { keys }
    }

    /// True if there is no key: no order can name attendees.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The hashes of the attendee with an id in a sale, one for each key.
    ///
    /// # Errors
    /// Returns [`NoKey`] if there is no key: a function that takes attendees must have one.
    pub fn attendee(&self, sale: &SaleId, id: &AttendeeId) -> Result<Attendee, NoKey> {
        // No id of either kind holds a `#`.
        let text = format!("{sale}#{id}");
        let hash = |key| AttendeeHash::from_tag(hmac::sign(key, text.as_bytes()).as_ref());
        let hashes: Vec<AttendeeHash> = self.keys.iter().filter_map(hash).collect();
        if hashes.is_empty() { Err(NoKey) } else { Ok(Attendee { id: Some(id.clone()), hashes }) }
    }
}

impl std::fmt::Debug for AttendeeKeys {
    /// Shows how many there are.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AttendeeKeys({})", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &[u8] = b"the old key of thirty-two bytes.";
    const NEW: &[u8] = b"the new key of thirty-two bytes.";

    fn hashes(keys: &[&[u8]], sale: &str, id: &str) -> Vec<String> {
        let keys = AttendeeKeys::new(keys.iter().copied());
        let (sale, id) = (SaleId::new(sale).unwrap(), AttendeeId::new(id).unwrap());
        let attendee = keys.attendee(&sale, &id).unwrap();
        assert_eq!(attendee.id, Some(id));
        attendee.hashes.iter().map(ToString::to_string).collect()
    }

    /// By `printf 'g1#P-1' | openssl dgst -sha256 -hmac "$OLD"`, the first 32 digits.
    #[test]
    fn a_hash_is_half_an_hmac_of_the_sale_and_the_id() {
        assert_eq!(hashes(&[OLD], "g1", "P-1"), ["00056508fe87595930353d8dbc1dc835"]);
    }

    #[test]
    fn one_person_has_other_hashes_in_another_sale_and_by_another_key() {
        let all = [
            hashes(&[OLD], "g1", "P-1"),
            hashes(&[OLD], "g2", "P-1"),
            hashes(&[NEW], "g1", "P-1"),
            hashes(&[OLD], "g1", "P-2"),
            hashes(&[OLD], "g", "1P-1"),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        assert_eq!(hashes(&[OLD], "g1", "P-1"), all[0]);
    }

    #[test]
    fn while_a_key_is_replaced_each_gives_its_hash_and_the_oldest_counts() {
        let both = hashes(&[NEW, OLD], "g1", "P-1");
        assert_eq!(both, [hashes(&[NEW], "g1", "P-1"), hashes(&[OLD], "g1", "P-1")].concat());
        let keys = AttendeeKeys::new([NEW, OLD]);
        let (sale, id) = (SaleId::new("g1").unwrap(), AttendeeId::new("P-1").unwrap());
        let counted = keys.attendee(&sale, &id).unwrap().counting_hash();
        assert_eq!(counted.map(|hash| hash.to_string()).as_ref(), both.last());
    }

    #[test]
    fn without_a_key_nobody_is_named_and_nothing_shows_one() {
        let none = AttendeeKeys::new([]);
        let (sale, id) = (SaleId::new("g1").unwrap(), AttendeeId::new("P-1").unwrap());
        assert!(none.is_empty() && none.attendee(&sale, &id) == Err(NoKey));
        assert_eq!(format!("{:?}", AttendeeKeys::new([NEW, OLD])), "AttendeeKeys(2)");
    }
}
