//! What is asked about: a sale, or many like it at once, and the crowd that comes for it.

use std::path::Path;

use bench::cost::read_json;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::Sale;
use loadtest::arrivals::Shape;
use loadtest::profile::{Behaviour, LoadProfile};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Tickets of an order: of a hundred buyers so many want one, two, three and four, as in the load test.
pub const TICKETS: [u32; 4] = [20, 50, 15, 15];

/// The shortest time in which somebody asks again, in seconds.
const SHORTEST_AGAIN: f64 = 0.1;

/// Who comes, and how they behave.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Crowd {
    /// People, over all sales.
    pub visitors: u64,
    /// Time within which those come who come at the opening or afterwards, in seconds.
    pub within_seconds: f64,
    /// Share of the people who come before the draw closes, where there is a waiting room.
    pub early: f64,
    /// Time before the draw closes within which those come, evenly, in seconds.
    pub early_seconds: f64,
    /// Share of the people who sign in, or whose sign-in is renewed, when they come.
    pub signing_in: f64,
    /// Share of those who wait that do not come when it is their turn.
    pub no_show: f64,
    /// Share of those who come when it is their turn that look at the seats and never ask for an admission.
    pub never_orders: f64,
    /// Seconds that those look, from and to.
    pub looking: (f64, f64),
    /// Pages that a visitor loads, with what belongs to them: requests at the edge.
    pub edge_requests: f64,
    /// Looks at what is left before asking to be let in, where there is no room.
    pub looks: f64,
    /// Share of the buyers who pay in time.
    pub pays: f64,
    /// Share of the buyers who cancel.
    pub cancels: f64,
    /// Share of the buyers who pay that turn to another method once, after they have begun with one.
    pub changes: f64,
    /// Share of the buyers who load the page again while their payment waits to be started.
    pub reloads: f64,
    /// Share of the payments whose money the provider captures a second time, or with a mistake: one more callback.
    pub odd_callbacks: f64,
    /// Share of the paid orders that are given back afterwards.
    pub gives_back: f64,
    /// Time within which those are, evenly, in seconds.
    pub gives_back_within_seconds: f64,
    /// Whether payments are started by the engine; else buyers pay by a provider's own page, as the load test does
    /// without `--pay-at`.
    pub starts: bool,
    /// Seconds after which somebody asks again whose payment could not be started: at first, and at most, for the pages
    /// double it each time (`pages/src/checkout/pay.tsx`); a quarter more or less.
    pub starts_again: (f64, f64),
    /// Seconds to choose, from and to.
    pub choosing: (f64, f64),
    /// Seconds to decide to pay, from and to.
    pub paying: (f64, f64),
    /// Seconds at the provider, from and to.
    pub at_provider: (f64, f64),
    /// Buyers at a time who take what is left when everybody else has gone.
    pub late_at_once: u32,
}

impl Default for Crowd {
    /// People as in the load test's mix `everything`, who hold no token yet; four in five come when it is their turn,
    /// the waiting room's own assumption.
    fn default() -> Self {
        Self {
            visitors: 1_000_000,
            within_seconds: 600.0,
            early: 0.5,
            early_seconds: 6.0 * 3_600.0,
            signing_in: 1.0,
            no_show: 0.2,
            looking: (240.0, 240.0),
            // Three pages with four assets each (docs/cost.md), and the functions of none.
            edge_requests: 7.0,
            looks: 2.0,
            gives_back: 0.01,
            gives_back_within_seconds: 86_400.0,
            starts: true,
            starts_again: (1.0, 8.0),
            choosing: (0.3, 3.0),
            paying: (1.0, 6.0),
            at_provider: (15.0, 90.0),
            late_at_once: 64,
            ..Self::of_profile(LoadProfile::Everything)
        }
    }
}

impl Crowd {
    /// The crowd of a load test with this mix: all hold their tokens, come when it is their turn, and load no pages.
    #[must_use]
    pub fn of_profile(profile: LoadProfile) -> Self {
        let share = |of: Behaviour| f64::from(profile.per_mille(of)) / 1_000.0;
        let twice = [
            Behaviour::PayAgain,
            Behaviour::PaySecond,
            Behaviour::PayWrongAmount,
            Behaviour::ForgeCallback,
        ];
        let unpaid = share(Behaviour::NeverPay) + share(Behaviour::PayLate);
        let cancels = share(Behaviour::Cancel);
        Self {
            visitors: 20_000,
            within_seconds: 60.0,
            early: 0.5,
            early_seconds: 60.0,
            signing_in: 0.0,
            no_show: 0.0,
            never_orders: 0.0,
            looking: (0.0, 0.0),
            edge_requests: 0.0,
            looks: 0.0,
            pays: 1.0 - unpaid - cancels,
            cancels,
            changes: 0.0,
            reloads: 0.0,
            odd_callbacks: twice.into_iter().map(share).sum(),
            gives_back: 0.0,
            gives_back_within_seconds: 0.0,
            starts: false,
            starts_again: (1.0, 1.0),
            choosing: (0.3, 3.0),
            paying: (1.0, 6.0),
            at_provider: (0.0, 0.0),
            late_at_once: 64,
        }
    }
}

impl Crowd {
    /// Reads a file of it.
    ///
    /// # Errors
    /// It cannot be read, or is not one; the error names it.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        read_json(file)
    }

    /// Checks that shares are shares, and times are times.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("early", self.early),
            ("signing_in", self.signing_in),
            ("no_show", self.no_show),
            ("never_orders", self.never_orders),
            ("pays", self.pays),
            ("cancels", self.cancels),
            ("changes", self.changes),
            ("reloads", self.reloads),
            ("pays and cancels", self.pays + self.cancels),
            ("odd_callbacks", self.odd_callbacks),
            ("gives_back", self.gives_back),
        ];
        if let Some((name, _)) = shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share))
        {
            return Err(format!("{name} must be 0 to 1"));
        }
        let times = [
            ("within_seconds", self.within_seconds),
            ("early_seconds", self.early_seconds),
            ("gives_back_within_seconds", self.gives_back_within_seconds),
            ("edge_requests", self.edge_requests),
            ("looks", self.looks),
            ("looking", self.looking.0),
            ("looking", self.looking.1 - self.looking.0),
            ("choosing", self.choosing.0),
            ("choosing", self.choosing.1 - self.choosing.0),
            ("paying", self.paying.0),
            ("paying", self.paying.1 - self.paying.0),
            ("at_provider", self.at_provider.0),
            ("at_provider", self.at_provider.1 - self.at_provider.0),
            ("starts_again", self.starts_again.0 - SHORTEST_AGAIN),
            ("starts_again", self.starts_again.1 - self.starts_again.0),
        ];
        let is_some = |number: f64| (0.0..=30.0 * 86_400.0).contains(&number);
        match times.into_iter().find(|(_, number)| !is_some(*number)) {
            Some((name, _)) => Err(format!(
                "{name} must be 0 to 2,592,000 (starts_again: 0.1 or more), and the first not more than the second"
            )),
            None => Ok(()),
        }
    }
}

/// What is asked about.
#[derive(Debug, Clone)]
pub struct Plan {
    pub sale: Sale,
    /// The number of sales like it that open at the same moment, and share the account.
    pub sales: u32,
    /// The crowd of all of them.
    pub crowd: Crowd,
    /// How those come who come at the opening or afterwards.
    pub shape: Shape,
    /// How long an unpaid order waits past its deadline.
    pub grace: Grace,
    /// The longest that is simulated after the opening, in hours.
    pub hours: f64,
    /// Seed of the crowd.
    pub seed: u64,
}

impl Plan {
    /// The places of all the sales.
    #[must_use]
    pub fn places(&self) -> u64 {
        let of_one: u64 =
            self.sale.tiers().iter().map(|tier| u64::from(tier.layout.sellable())).sum();
        of_one * u64::from(self.sales)
    }

    /// Tickets of the mean order.
    #[must_use]
    pub fn mean_tickets(&self) -> f64 {
        let limit = u32::from(self.sale.file().limit_per_buyer);
        let sum: u32 =
            (1..).zip(TICKETS).map(|(count, share): (u32, u32)| count.min(limit) * share).sum();
        f64::from(sum) / 100.0
    }
}
