//! The chunk of leaves or the index that a path below a waiting room names.

use std::str::FromStr;

use engine::domain::basics::ids::{GroupId, SaleId};

/// A path that names neither a chunk nor an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a sale, a group and a number")]
pub struct InvalidAddress;

/// A chunk of the leaves of a group, or an index of the group. Its text is `<sale>/<group>/<number>`: the parameters of
/// the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupAddress {
    /// The id of the sale with the waiting room.
    pub sale: SaleId,
    /// The id of the group.
    pub group: GroupId,
    /// The number of the chunk, or the index, from 0. Its text has no leading zero.
    pub number: u32,
}

impl FromStr for GroupAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let mut parts = text.split('/');
        let mut part = || parts.next().ok_or(InvalidAddress);
        let sale = part()?.parse().map_err(|_| InvalidAddress)?;
        let group = part()?.parse().map_err(|_| InvalidAddress)?;
        let digits = part()?;
        // One number has one text, so that caches keep one answer.
        let number: u32 = digits.parse().map_err(|_| InvalidAddress)?;
        let is_canonical = digits == number.to_string() && parts.next().is_none();
        if is_canonical { Ok(Self { sale, group, number }) } else { Err(InvalidAddress) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_text() {
        let address = "hall/club/12".parse::<GroupAddress>().unwrap();
        let names = (address.sale.as_str(), address.group.as_str(), address.number);
        assert_eq!(names, ("hall", "club", 12));
        let others = [
            "",
            "hall",
            "hall/club",
            "hall/club/",
            "hall/club/012",
            "hall/club/+1",
            "hall/club/-1",
            "hall/club/4294967296",
            "hall/Club/1",
            "-/club/1",
            "hall/club/1/",
        ];
        for other in others {
            assert_eq!(other.parse::<GroupAddress>(), Err(InvalidAddress), "{other}");
        }
    }
}
