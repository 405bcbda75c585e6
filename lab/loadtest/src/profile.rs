//! Who comes, what they want and what they do: the same seed makes the same crowd.
//!
//! The table of behaviours is the profile. Every run prints it in its report with what became of each, and
//! `docs/rush.md` shows it.

use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use super::people::Class;

/// Way in which a buyer picks seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// These seats, seen free in the seat map a moment ago.
    Seats,
    /// The best that are left.
    Best,
    /// The best that are left in two tiers at once.
    BestOfTwoTiers,
    /// Neighbours over two rows, where the tier has column letters; else as `Best`.
    Pattern,
}

/// Behaviour of a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    Pay,
    /// Pays, and the provider calls again with the same payment.
    PayAgain,
    /// Pays, and then with another payment for the same order.
    PaySecond,
    /// Pays too little first, then what it costs.
    PayWrongAmount,
    /// Somebody else claims that the order is paid, with a signature that is none; then it is paid.
    ForgeCallback,
    /// Pays when the payment window is over.
    PayLate,
    NeverPay,
    Cancel,
    /// The connection is cut once the request for the order has been sent; sends it again, and pays.
    Cut,
    /// Sends the request for the order twice at once, and pays.
    DoubleSubmit,
    /// A bot: asks for twenty admissions at once, and pays for one.
    Hammer,
    /// Asks for the order with an admission of its own making, then with the real one, and pays.
    ForgeAdmission,
    /// Comes with a bearer token of its own making, and leaves.
    ForgeIdentity,
}

/// Most times that a buyer comes back.
pub const MAX_RETURNS: u8 = 8;
/// Most times that a bot comes back.
const MAX_BOT_RETURNS: u8 = 60;
/// Most tickets that anybody wants.
const MAX_TICKETS: u16 = 4;
/// Admissions that a bot asks for at once.
pub const HAMMERS: usize = 20;

impl Behaviour {
    /// Every behaviour, in the order of the reports.
    pub const ALL: [Self; 13] = [
        Self::Pay,
        Self::PayAgain,
        Self::PaySecond,
        Self::PayWrongAmount,
        Self::ForgeCallback,
        Self::PayLate,
        Self::NeverPay,
        Self::Cancel,
        Self::Cut,
        Self::DoubleSubmit,
        Self::Hammer,
        Self::ForgeAdmission,
        Self::ForgeIdentity,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What its people do, in words.
    #[must_use]
    pub fn does(self) -> &'static str {
        self.row().1
    }

    /// Answers that are expected; any other is an anomaly.
    #[must_use]
    pub fn expected(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Pay => ("pay", "pays", "201, then 200 accepted"),
            Self::PayAgain => (
                "pay-again",
                "pays, and the provider calls twice",
                "200 accepted, and the same again",
            ),
            Self::PaySecond => (
                "pay-second",
                "pays, and pays again with another payment",
                "200 accepted, then 200 refund second_payment",
            ),
            Self::PayWrongAmount => (
                "pay-wrong-amount",
                "pays one minor unit too little, then all",
                "200 refund wrong_amount, then accepted",
            ),
            Self::ForgeCallback => (
                "forge-callback",
                "says that it is paid with a signature that is none, then pays",
                "401 not-authenticated, then accepted",
            ),
            Self::PayLate => (
                "pay-late",
                "pays when the payment window is over",
                "200 accepted (rescued) or refund too_late",
            ),
            Self::NeverPay => {
                ("never-pay", "never pays", "the order expires; its seats are sold again")
            }
            Self::Cancel => ("cancel", "cancels", "200 cancelled"),
            Self::Cut => (
                "cut",
                "cuts the connection once the order is sent, and sends it again",
                "201 with the order that the admission names",
            ),
            Self::DoubleSubmit => (
                "double-submit",
                "sends the order twice at once, and pays",
                "201 twice, one order and one set of seats",
            ),
            Self::Hammer => (
                "hammer",
                "a bot: asks for twenty admissions at once, and pays for one",
                "one admission, 429 while the lock holds",
            ),
            Self::ForgeAdmission => (
                "forge-admission",
                "orders with an admission that was tampered with, then with the real one",
                "403 not-admitted, then 201",
            ),
            Self::ForgeIdentity => (
                "forge-identity",
                "comes with a bearer token that somebody else signed",
                "401 not-authenticated",
            ),
        }
    }
}

/// A profile: how many of a thousand people behave in each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LoadProfile {
    /// All of it: mostly people who pay, and everything that goes wrong.
    #[default]
    Everything,
    /// Everyone takes the best that is left and pays: for measuring whole sales.
    Paying,
    /// As many of each behaviour: for tests.
    Even,
    /// Many who leave their seats again, and no bots: for faults. A gate whose Redis was lost has
    /// forgotten whom it admitted a moment ago.
    Fickle,
    /// Everyone takes the best and cancels: for a rehearsal, which leaves nothing sold behind.
    Rehearsal,
}

impl LoadProfile {
    /// People of this behaviour in a thousand.
    #[must_use]
    pub fn per_mille(self, behaviour: Behaviour) -> u32 {
        let is_pay = behaviour == Behaviour::Pay;
        match self {
            Self::Everything => match behaviour {
                Behaviour::Pay => 727,
                Behaviour::PayAgain => 40,
                Behaviour::PaySecond => 10,
                Behaviour::PayWrongAmount => 10,
                Behaviour::ForgeCallback => 10,
                Behaviour::PayLate => 20,
                Behaviour::NeverPay => 60,
                Behaviour::Cancel => 60,
                Behaviour::Cut => 25,
                Behaviour::DoubleSubmit => 25,
                Behaviour::Hammer => 3,
                Behaviour::ForgeAdmission => 5,
                Behaviour::ForgeIdentity => 5,
            },
            Self::Paying if is_pay => 1000,
            Self::Paying => 0,
            Self::Rehearsal => 1000 * u32::from(behaviour == Behaviour::Cancel),
            Self::Fickle => match behaviour {
                Behaviour::Pay => 500,
                Behaviour::PayAgain => 40,
                Behaviour::PaySecond => 20,
                Behaviour::PayWrongAmount => 20,
                Behaviour::ForgeCallback => 10,
                Behaviour::PayLate => 50,
                Behaviour::NeverPay => 120,
                Behaviour::Cancel => 150,
                Behaviour::Cut => 40,
                Behaviour::DoubleSubmit => 40,
                Behaviour::Hammer => 0,
                Behaviour::ForgeAdmission => 5,
                Behaviour::ForgeIdentity => 5,
            },
            // 12 × 77 and 76: all thousand.
            Self::Even if is_pay => 76,
            Self::Even => 77,
        }
    }

    /// The behaviour of the person who draws this number below 1,000.
    fn behaviour(self, mut drawn: u32) -> Behaviour {
        let is_here = |behaviour: &Behaviour| {
            let share = self.per_mille(*behaviour);
            let here = drawn < share;
            drawn = drawn.saturating_sub(share);
            here
        };
        Behaviour::ALL.into_iter().find(is_here).unwrap_or(Behaviour::Pay)
    }

    fn way(self, drawn: u32) -> Way {
        match (self, drawn) {
            (Self::Paying | Self::Rehearsal, _) | (_, 25..75) => Way::Best,
            (_, 0..25) => Way::Seats,
            (_, 75..85) => Way::BestOfTwoTiers,
            (_, _) => Way::Pattern,
        }
    }

    /// The shares of ways and numbers of tickets, in words.
    #[must_use]
    pub fn ways(self) -> &'static str {
        match self {
            Self::Paying | Self::Rehearsal => {
                "the best seats; 20 % one ticket, 50 % two, 15 % three, 15 % four"
            }
            Self::Everything | Self::Even | Self::Fickle => {
                "25 % chosen seats, 50 % best, 10 % best of two tiers, 15 % pattern; \
                 20 % one ticket, 50 % two, 15 % three, 15 % four"
            }
        }
    }
}

/// One member of the crowd.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// Number of the buyer in the crowd.
    pub index: u64,
    /// The class of the buyer.
    pub class: Class,
    /// The `sub` of the buyer's token, where the crowd signs it.
    pub user: String,
    /// Index of the sale among those of the load test.
    pub sale: usize,
    pub tickets: u16,
    /// Way of picking seats.
    pub way: Way,
    pub behaviour: Behaviour,
    /// Number of times that the buyer comes back when the gate says to come back later.
    pub returns: u8,
    /// Seeds every further decision of this buyer.
    pub seed: u64,
}

impl Buyer {
    /// The same buyer as one of a class. Bots take as many of the best as they may, pay, and do not tire; who
    /// comes early comes once more at the opening.
    #[must_use]
    pub fn of_class(self, class: Class) -> Self {
        let returns = match class {
            Class::Leaver | Class::Looker | Class::Gazer => 0,
            Class::Early | Class::Sleeper => self.returns.saturating_add(1),
            Class::Solver | Class::Farm | Class::Script | Class::Hammer => MAX_BOT_RETURNS,
            Class::Nobody | Class::Person | Class::Sharer | Class::Collector | Class::Late => {
                self.returns
            }
        };
        if class.is_bot() {
            let (tickets, way, behaviour) = (MAX_TICKETS, Way::Best, Behaviour::Pay);
            return Self { class, returns, tickets, way, behaviour, ..self };
        }
        Self { class, returns, ..self }
    }

    /// The class that the buyer is counted in.
    #[must_use]
    pub fn class(&self) -> Class {
        if self.behaviour == Behaviour::Hammer { Class::Hammer } else { self.class }
    }
}

/// Makes buyer number `index` of a crowd. `weights` are the sizes of the sales: a larger one draws
/// more buyers.
#[must_use]
pub fn buyer(profile: LoadProfile, seed: u64, index: u64, weights: &[u64]) -> Buyer {
    // An odd multiplier keeps neighbouring indexes apart in the generator's seed.
    let seed = seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = StdRng::seed_from_u64(seed);
    let mut ticket = random.random_range(0..weights.iter().sum::<u64>().max(1));
    let sale = weights.iter().position(|weight| {
        let is_here = ticket < *weight;
        ticket = ticket.saturating_sub(*weight);
        is_here
    });
    let tickets = match random.random_range(0..100) {
        0..20 => 1,
        20..70 => 2,
        70..85 => 3,
        _ => MAX_TICKETS,
    };
    // One of four who are asked to come back does; one of four of these once more; and so on.
    let returns = (0..MAX_RETURNS).take_while(|_| random.random_range(0..4) == 0).count();
    let returns = u8::try_from(returns).unwrap_or(MAX_RETURNS);
    Buyer {
        index,
        class: Class::Person,
        user: format!("rush-{index}"),
        sale: sale.unwrap_or(0),
        tickets,
        way: profile.way(random.random_range(0..100)),
        behaviour: profile.behaviour(random.random_range(0..1000)),
        returns,
        seed: random.random(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILES: [LoadProfile; 5] = [
        LoadProfile::Everything,
        LoadProfile::Paying,
        LoadProfile::Even,
        LoadProfile::Fickle,
        LoadProfile::Rehearsal,
    ];

    #[test]
    fn a_mix_is_a_thousand_people() {
        for profile in PROFILES {
            let all: u32 =
                Behaviour::ALL.iter().map(|behaviour| profile.per_mille(*behaviour)).sum();
            assert_eq!(all, 1000, "{profile:?}");
            for behaviour in Behaviour::ALL {
                let drawn =
                    (0..1000).filter(|drawn| profile.behaviour(*drawn) == behaviour).count();
                assert_eq!(
                    u32::try_from(drawn),
                    Ok(profile.per_mille(behaviour)),
                    "{profile:?} {behaviour:?}"
                );
            }
        }
    }

    #[test]
    fn the_documented_mix_is_the_mix() {
        let document = include_str!("../../../docs/rush.md");
        for behaviour in Behaviour::ALL {
            let per_mille = LoadProfile::Everything.per_mille(behaviour);
            let (name, does, expected) = behaviour.row();
            let row = format!("| `{name}` | {per_mille} | {does} | {expected} |");
            assert!(document.contains(&row), "docs/rush.md lacks {row}");
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_crowd() {
        let crowd = |seed| -> Vec<String> {
            let one = |index| format!("{:?}", buyer(LoadProfile::Everything, seed, index, &[7, 3]));
            (0..50).map(one).collect()
        };
        assert_eq!(crowd(7), crowd(7));
        assert_ne!(crowd(7), crowd(8));
    }

    #[test]
    fn larger_sales_draw_more_buyers() {
        let to_first = (0..1000)
            .filter(|index| buyer(LoadProfile::Even, 1, *index, &[90, 10]).sale == 0)
            .count();
        assert!((850..950).contains(&to_first), "{to_first} of 1,000 went to the larger sale");
    }
}
