//! Bits of a bitmap, numbered as Redis numbers them: most significant bit of a byte first.

use super::ids::Seat;

/// A 32-bit number as an index; on every platform that this is built for it is the same number.
#[must_use]
pub fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Number of bits of a bitmap. A bitmap of a sale has at most 16,000,000 bytes.
#[must_use]
pub fn places(bitmap: &[u8]) -> u32 {
    u32::try_from(bitmap.len()).map_or(u32::MAX, |bytes| bytes.saturating_mul(8))
}

/// The mask of a seat's bit in its byte.
fn mask(seat: Seat) -> u8 {
    0x80 >> (seat.0 % 8)
}

/// The bit of a seat; `None` beyond the bitmap.
#[must_use]
pub fn get(bitmap: &[u8], seat: Seat) -> Option<bool> {
    bitmap.get(index(seat.0 / 8)).map(|byte| byte & mask(seat) != 0)
}

/// Sets or clears the bit of a seat. Beyond the bitmap nothing is done.
pub(crate) fn set(bitmap: &mut [u8], seat: Seat, value: bool) {
    if let Some(byte) = bitmap.get_mut(index(seat.0 / 8)) {
        *byte = if value { *byte | mask(seat) } else { *byte & !mask(seat) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_from_the_most_significant() {
        let mut bitmap = [0b0100_0000, 0b0000_0001];
        assert_eq!(places(&bitmap), 16);
        assert_eq!([1, 15, 0].map(|seat| get(&bitmap, Seat(seat))), [true, true, false].map(Some));
        assert_eq!(get(&bitmap, Seat(16)), None);
        set(&mut bitmap, Seat(8), true);
        set(&mut bitmap, Seat(1), false);
        set(&mut bitmap, Seat(16), true);
        assert_eq!(bitmap, [0, 0b1000_0001]);
    }
}
