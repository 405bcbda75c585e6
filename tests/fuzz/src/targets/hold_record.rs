//! What Redis keeps of a hold, as text. Our scripts write it; a failed-over server gives it back.

use shared::redis::hold_record::{from_text, lines_from_text, lines_to_text, to_text};

use crate::{Outcome, Target, must};

pub(crate) const HOLD_RECORD: Target = Target {
    name: "hold-record",
    about: "A hold's record as Redis keeps it: what is unpacked is packed and unpacked as the same, \
            and counts the tickets it says.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return Outcome::Refused };
    let lines = lines_from_text(text);
    if let Ok(lines) = &lines {
        let again = must(lines_from_text(&lines_to_text(lines)), "packed lines are unpacked");
        assert_eq!(&again, lines);
    }
    let record = from_text(text);
    if let Ok(record) = &record {
        let again = must(from_text(&to_text(record)), "a packed record is unpacked");
        assert_eq!(&again, record);
        let seats: usize = record.lines.iter().map(|line| line.seats.len()).sum();
        assert_eq!(usize::from(record.tickets()), seats);
    }
    Outcome::from_accepted(lines.is_ok() || record.is_ok())
}
