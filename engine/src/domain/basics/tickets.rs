//! Numbers of tickets: what a buyer has, what an order has, and what a sale allows a buyer.

use std::fmt;
use std::iter::Sum;
use std::num::ParseIntError;
use std::ops::AddAssign;
use std::str::FromStr;

/// A number of tickets. Arithmetic saturates: the largest number is over every limit.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tickets(u16);

impl Tickets {
    pub const NONE: Self = Self(0);

    /// A number of tickets.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// One ticket for each of `count` seats.
    #[must_use]
    pub fn of_seats(count: usize) -> Self {
        Self(u16::try_from(count).unwrap_or(u16::MAX))
    }

    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The sum of both.
    #[must_use]
    pub const fn saturating_add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// The tickets that are left without `fewer`; zero if `fewer` is more.
    #[must_use]
    pub const fn saturating_sub(self, fewer: Self) -> Self {
        Self(self.0.saturating_sub(fewer.0))
    }

    /// The tickets that are left without `fewer`; `None` if `fewer` is more.
    #[must_use]
    pub fn checked_sub(self, fewer: Self) -> Option<Self> {
        self.0.checked_sub(fewer.0).map(Self)
    }
}

impl AddAssign for Tickets {
    fn add_assign(&mut self, more: Self) {
        *self = self.saturating_add(more);
    }
}

impl Sum for Tickets {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::NONE, Self::saturating_add)
    }
}

impl From<u16> for Tickets {
    fn from(number: u16) -> Self {
        Self(number)
    }
}

macro_rules! widens {
    ($($number:ty),+) => {
        $(impl From<Tickets> for $number {
            fn from(tickets: Tickets) -> Self {
                Self::from(tickets.0)
            }
        })+
    };
}
widens!(i32, i64, i128, u32, u64, usize);

/// Decimal digits, as they stand in Redis and DynamoDB.
impl fmt::Display for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The bare number: traces and reports of differences show many of them.
impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Tickets {
    type Err = ParseIntError;
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_arithmetic_passes_the_ends() {
        let (one, all) = (Tickets::new(1), Tickets::new(u16::MAX));
        assert_eq!(one.saturating_sub(all), Tickets::NONE);
        assert_eq!(one.checked_sub(all), None);
        assert_eq!(all.checked_sub(one), Some(Tickets::new(u16::MAX - 1)));
        assert_eq!([all, one].into_iter().sum::<Tickets>(), all);
        assert_eq!(Tickets::of_seats(usize::MAX), all);
        assert_eq!(Tickets::of_seats(3).get(), 3);
    }

    #[test]
    fn a_number_of_tickets_is_a_bare_number_wherever_it_is_written() {
        assert_eq!(Tickets::new(12).to_string(), "12");
        assert_eq!(format!("{:?}", Some(Tickets::new(12))), "Some(12)");
        assert_eq!("12".parse(), Ok(Tickets::new(12)));
        assert!("-1".parse::<Tickets>().is_err());
    }
}
