//! Attendees whose hash is their name: nobody but a test needs to tell one from the other.

use engine::domain::basics::ids::AttendeeId;
use engine::domain::order::attendee::{Attendee, AttendeeHash};

/// The attendee of this name, of at most 16 bytes. The hash is the name, in hexadecimal digits.
#[must_use]
pub fn attendee(name: &str) -> Attendee {
    let mut tag = [0; 16];
    tag.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    Attendee {
        id: AttendeeId::new(name).ok(),
        hashes: AttendeeHash::from_tag(&tag).into_iter().collect(),
    }
}
