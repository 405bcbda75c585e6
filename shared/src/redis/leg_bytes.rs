//! The bitmap of a tier as Redis keeps it: a byte for eight places, and of each such byte one for every leg, one after
//! another. A script reads and writes a seat's whole journey in one piece; of a tier with one leg it is that leg's
//! bitmap.

/// The bytes of each leg's bitmap beside each other. All are as long as the first.
#[must_use]
pub fn beside(legs: &[Vec<u8>]) -> Vec<u8> {
    let bytes = legs.first().map_or(0, Vec::len);
    (0..bytes).flat_map(|at| legs.iter().filter_map(move |leg| leg.get(at).copied())).collect()
}

/// The bitmap of each leg: what [`beside`] was given.
#[must_use]
pub fn apart(bytes: &[u8], legs: u16) -> Vec<Vec<u8>> {
    let legs = usize::from(legs);
    (0..legs).map(|leg| bytes.iter().skip(leg).step_by(legs).copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legs_lie_beside_each_other_byte_by_byte() {
        let legs = vec![vec![1, 2, 3], vec![11, 12, 13]];
        assert_eq!(beside(&legs), [1, 11, 2, 12, 3, 13]);
        assert_eq!(apart(&[1, 11, 2, 12, 3, 13], 2), legs);
        assert_eq!(apart(&beside(&legs[..1]), 1), legs[..1]);
        assert_eq!(apart(&[], 2), [[0_u8; 0]; 2]);
    }
}
