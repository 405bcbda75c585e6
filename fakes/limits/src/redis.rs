//! The serverless cache: what its requests cost, and which it refuses.

use std::collections::HashMap;
use std::time::Duration;

use crate::Now;
use crate::bucket::Bucket;
use crate::table::{BLOCKED_COMMANDS, ECPU_BYTES, ECPU_MICROS, MAX_SLOT_DELAY_MS, SLOT_ECPU};

/// Hash slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// The processing units (ECPU) of a request, from the bytes that it moves and the time that it takes the engine: the
/// higher of the two, and at least 1.
#[must_use]
pub fn ecpu(bytes: u32, engine_micros: f64) -> f64 {
    let moved = f64::from(bytes) / ECPU_BYTES.rate();
    moved.max(engine_micros / ECPU_MICROS.rate()).max(1.0)
}

/// The rules of an ACL user that may do what the serverless cache can: each to be given by itself,
/// because a server refuses the names of commands that it does not have.
pub fn acl_rules() -> impl Iterator<Item = String> {
    BLOCKED_COMMANDS.list().iter().map(|command| format!("-{command}"))
}

/// The hash slot of a key: of what stands between its first braces, if anything does.
/// Source: <https://valkey.io/topics/cluster-spec/>
#[must_use]
pub fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC16 of the XMODEM kind.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _bit| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// The meter of all hash slots.
#[derive(Debug, Default)]
pub struct Slots(HashMap<u16, Bucket>);

impl Slots {
    /// Charges a request, and says how long it is delayed until its slot carries it; `None` if that is
    /// longer than any request is delayed: then it is refused, and not charged.
    pub fn delay(&mut self, slot: u16, ecpu: f64, now: Now) -> Option<Duration> {
        let full = || Bucket::of_a_second(SLOT_ECPU.rate(), now);
        let bucket = self.0.entry(slot).or_insert_with(full);
        if bucket.wait(0.0, now) > Duration::from_millis(MAX_SLOT_DELAY_MS.count()) {
            return None;
        }
        bucket.take(ecpu, now);
        Some(bucket.wait(0.0, now))
    }
}

/// The units of all requests in one second, from the server's own account of its commands: how often
/// each ran, and how long it took the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Account {
    /// How often commands ran.
    pub calls: f64,
    /// How long they took the engine, in microseconds.
    pub engine_micros: f64,
}

impl Account {
    /// The units since an earlier reading: by the mean time of a command, which underestimates a mix
    /// of short and long ones.
    #[must_use]
    pub fn ecpu_since(&self, earlier: &Self) -> f64 {
        let calls = self.calls - earlier.calls;
        let micros = self.engine_micros - earlier.engine_micros;
        // A server that was started again counts from nothing.
        if calls <= 0.0 || micros < 0.0 {
            return 0.0;
        }
        (micros / ECPU_MICROS.rate()).max(calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_costs_the_higher_of_bytes_and_time() {
        let expected = 3.2;
        assert!((ecpu(3277, 1.0) - expected).abs() < 0.01, "3.2 KB");
        assert_eq!([ecpu(10, 1.0), ecpu(10, 18.0), ecpu(20 * 1024, 18.0)], [1.0, 6.0, 20.0]);
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"{sale}:seats"), slot(b"{sale}:holds"));
        assert_eq!(slot(b"{sale}:seats"), slot(b"sale"));
        assert_ne!(slot(b"{}a"), slot(b"{}b"), "an empty tag is none");
    }

    #[test]
    fn a_slot_carries_thirty_thousand_units_and_delays_the_rest() {
        let mut slots = Slots::default();
        let now = Now::from_secs(1);
        for _ in 0..5000 {
            assert_eq!(slots.delay(7, 6.0, now), Some(Duration::ZERO));
        }
        assert_eq!(slots.delay(7, 6.0, now), Some(Duration::from_micros(200)));
        assert_eq!(slots.delay(8, 6.0, now), Some(Duration::ZERO), "another slot");
        assert_eq!(slots.delay(7, 6.0, now + Duration::from_secs(1)), Some(Duration::ZERO));
    }

    #[test]
    fn what_a_slot_cannot_carry_within_a_second_is_refused() {
        let mut slots = Slots::default();
        let now = Now::from_secs(1);
        let admitted = (0..20_000).filter(|_| slots.delay(7, 6.0, now).is_some()).count();
        assert_eq!(admitted, 10_001, "a second's units at once, and the next second's");
        assert_eq!(slots.delay(7, 6.0, now), None);
        let later = slots.delay(7, 6.0, now + Duration::from_millis(500));
        assert!(later.is_some_and(|delay| delay > Duration::from_millis(500)), "{later:?}");
    }

    #[test]
    fn the_account_of_a_server_gives_units() {
        let before = Account { calls: 100.0, engine_micros: 1000.0 };
        let after = |calls, engine_micros| Account { calls, engine_micros }.ecpu_since(&before);
        assert_eq!(after(110.0, 1300.0), 100.0, "ten of 30 µs");
        assert_eq!(after(150.0, 1003.0), 50.0, "at least one each");
        assert_eq!(after(3.0, 10.0), 0.0, "started again");
    }

    #[test]
    fn the_rules_take_commands_away_and_leave_scripts() {
        let rules: Vec<String> = acl_rules().collect();
        for rule in ["-keys", "-config", "-script|kill", "-client|list", "-wait"] {
            assert!(rules.iter().any(|one| one == rule), "{rule}");
        }
        for allowed in ["-eval", "-evalsha", "-script|load", "-scan", "-info", "-time", "-multi"] {
            assert!(!rules.iter().any(|one| one == allowed), "{allowed}");
        }
    }
}
