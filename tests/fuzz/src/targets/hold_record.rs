//! What Redis keeps of a hold, as text. Our scripts write it; a failed-over server gives it back.

use engine::domain::inventory::{HoldRecord, pack_lines, unpack_lines};

use crate::{Outcome, Target, must};

pub(crate) const HOLD_RECORD: Target = Target {
    name: "hold-record",
    about: "A hold's record as Redis keeps it: what is unpacked is packed and unpacked as the same, \
            and counts the tickets it says.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return Outcome::Refused };
    let lines = unpack_lines(text);
    if let Ok(lines) = &lines {
        let again = must(unpack_lines(&pack_lines(lines)), "packed lines are unpacked");
        assert_eq!(&again, lines);
    }
    let record = HoldRecord::unpack(text);
    if let Ok(record) = &record {
        let again = must(HoldRecord::unpack(&record.pack()), "a packed record is unpacked");
        assert_eq!(&again, record);
        let seats: usize = record.lines.iter().map(|line| line.seats.len()).sum();
        assert_eq!(usize::from(record.tickets()), seats);
    }
    Outcome::of(lines.is_ok() || record.is_ok())
}
