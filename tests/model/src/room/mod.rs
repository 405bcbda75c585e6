//! The waiting room: who joins while its first window is closed and drawn, with every interleaving, every
//! process that sleeps or dies between any two steps, and two draws at once.
//!
//! [`steps`] says what can happen, [`check`] what must hold.

pub mod check;
pub mod steps;

use std::sync::{Arc, Mutex};

use engine::domain::grace::Grace;
use engine::domain::guard::Guard;
use engine::domain::ids::{GroupId, SaleId, UserId};
use engine::domain::inventory::PartLimit;
use engine::domain::room::bytes::{Hash, Nonce, Secret};
use engine::domain::room::join::{CLOSING_LEAD_MS, IndexStock};
use engine::domain::room::serving::{Room, Settings};
use engine::domain::time::Timestamp;
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::join::{self, JoinRequest, Joined, join};
use engine::flows::room::publish::publish;
use engine::ports::StoreError;
use model_stores::{Caller, Driver, Stores};

use crate::direct;
use crate::scenario::START;
use crate::task::{Deployment, Setting};

/// The beacon's latest round at the beginning.
const FIRST_ROUND: u64 = 100;
/// The rounds by which the beacon goes on at once: more than a closing looks ahead.
pub const ROUNDS: u64 = 9;

/// A flow with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Flow {
    /// The room is published.
    Publish,
    /// Somebody joins.
    Join {
        /// The index of the joiner.
        joiner: usize,
        /// How many times the joiner asked before.
        attempt: u8,
        /// The time of the request.
        now: Timestamp,
    },
    /// A run of the draw.
    Draw {
        /// The time at which it began.
        now: Timestamp,
    },
}

/// The outcome of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The room is published.
    Published(Room),
    /// Somebody is a member.
    Joined(Joined),
    /// Somebody was refused.
    Refused(join::Refusal),
    /// A draw came this far.
    Drew(Drawing),
    /// A store failed; whoever asked will ask again.
    Failed(StoreError),
}

impl Outcome {
    /// The bug of ours that the flow ended with, if it did.
    #[must_use]
    pub fn broken_contract(&self) -> Option<&str> {
        match self {
            Self::Refused(join::Refusal::Store(StoreError::Contract(what)))
            | Self::Failed(StoreError::Contract(what)) => Some(what),
            Self::Published(_)
            | Self::Joined(_)
            | Self::Refused(_)
            | Self::Drew(_)
            | Self::Failed(_) => None,
        }
    }
}

/// One scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name.
    pub name: &'static str,
    /// Those who join.
    pub joiners: Vec<UserId>,
    /// The number of times that each of them asks.
    pub requests: u8,
    /// Runs of the draw.
    pub draws: u8,
    /// Buckets of memberships.
    pub buckets: u16,
    /// Faults: a process dies, a call is turned away, a request or an answer is lost.
    pub faults: u8,
    /// The number of times that the beacon goes on by [`ROUNDS`].
    pub rounds: u8,
    /// True if the room names a beacon.
    pub has_beacon: bool,
    /// The moments that the clock shows, one after the other.
    pub times: Vec<Timestamp>,
    /// The guard that is away.
    pub without: Option<Guard>,
}

/// The time at which the first window closes: every scenario begins then.
const OPENS_AT: Timestamp = START.plus_ms(CLOSING_LEAD_MS);

/// The sale.
#[must_use]
pub fn sale() -> SaleId {
    SaleId::new("s").unwrap()
}

/// The only group.
#[must_use]
pub fn group() -> GroupId {
    GroupId::new("all").unwrap()
}

impl Scenario {
    /// A room with a beacon, whose draw one process runs, with nobody who joins.
    fn new(name: &'static str) -> Self {
        Self {
            name,
            joiners: Vec::new(),
            requests: 1,
            draws: 1,
            buckets: 1,
            faults: 0,
            rounds: 0,
            has_beacon: true,
            times: vec![START],
            without: None,
        }
    }

    /// This scenario with this number of joiners.
    fn joined_by(self, joiners: u8) -> Self {
        let joiner = |number: u8| UserId::new(number.to_string()).unwrap();
        Self { joiners: (0..joiners).map(joiner).collect(), ..self }
    }

    /// Two people join while a process draws. Each of the three may sleep between any two steps, as in every
    /// scenario.
    #[must_use]
    pub fn two_join() -> Self {
        Self::new("two join while one draws").joined_by(2)
    }

    /// Somebody joins while two processes draw.
    #[must_use]
    pub fn two_draw() -> Self {
        Self { draws: 2, ..Self::new("one joins while two draw").joined_by(1) }
    }

    /// Somebody joins, and asks again, while a process draws, and another one goes on; one step anywhere
    /// goes wrong.
    #[must_use]
    pub fn one_fault() -> Self {
        Self { faults: 1, ..Self::two_join().joined_by(1).named("one joins while a draw fails") }
    }

    /// Two processes draw, and one step anywhere goes wrong; no beacon is named. Memberships are in two
    /// buckets.
    #[must_use]
    pub fn secret_alone() -> Self {
        let scenario = Self::new("two draw without a beacon, and one step goes wrong");
        Self { draws: 2, buckets: 2, faults: 1, has_beacon: false, ..scenario }
    }

    /// Two processes draw while the beacon goes on.
    #[must_use]
    pub fn beacon_goes_on() -> Self {
        Self { draws: 2, rounds: 1, ..Self::new("two draw while the beacon goes on") }
    }

    /// Two processes draw while the beacon's round comes and its time runs out.
    #[must_use]
    pub fn beacon_against_secret() -> Self {
        let scenario = Self::beacon_goes_on().named("the beacon's round against the secret");
        Self { times: vec![START, OPENS_AT.plus_seconds(60)], ..scenario }
    }

    /// Two people join while two processes draw: a minute.
    #[must_use]
    pub fn large() -> Self {
        Self::two_draw().joined_by(2).named("large: two join while two draw")
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Every scenario that is explored whole in seconds.
    #[must_use]
    pub fn small() -> Vec<Self> {
        vec![
            Self::two_join(),
            Self::two_draw(),
            Self::one_fault(),
            Self::secret_alone(),
            Self::beacon_goes_on(),
            Self::beacon_against_secret(),
        ]
    }

    /// The same scenario without a guard.
    #[must_use]
    pub fn without(self, guard: Guard) -> Self {
        Self { without: Some(guard), ..self }
    }

    fn beacon(&self) -> Option<Hash> {
        self.has_beacon.then_some(Hash([5; 32]))
    }

    /// The stores at the start: the room is published.
    #[must_use]
    pub fn stores(&self) -> Stores {
        let mut stores = Stores::default();
        stores.beacon.latest = Some(FIRST_ROUND);
        let outcome = direct::run(self, &mut stores, START, &Flow::Publish);
        assert!(matches!(outcome, Outcome::Published(_)), "{outcome:?}");
        stores
    }

    fn request(&self, joiner: usize, attempt: u8) -> JoinRequest {
        let mut nonce = [attempt; 16];
        nonce[0] = u8::try_from(joiner).unwrap();
        let buyer = self.joiners[joiner].clone();
        JoinRequest { sale: sale(), group: group(), buyer, nonce: Nonce(nonce) }
    }
}

impl Setting for Scenario {
    type Flow = Flow;
    type Outcome = Outcome;

    fn deployment(&self) -> Deployment {
        let (grace, part_limit) = (Grace::NONE, PartLimit::STANDARD);
        Deployment { grace, part_limit, listings: Vec::new(), buckets: self.buckets }
    }

    async fn run<D: Driver>(&self, flow: &Flow, ports: &Caller<D>) -> Outcome {
        match flow {
            Flow::Publish => {
                let settings = Settings::new(group(), OPENS_AT.ms(), 4);
                let secret = Secret([4; 32]);
                match publish(ports, &sale(), &settings, self.beacon(), &secret, START).await {
                    Ok(room) => Outcome::Published(room),
                    Err(refusal) => panic!("the room of a scenario is refused: {refusal}"),
                }
            }
            Flow::Join { joiner, attempt, now } => {
                // Each request has a process of its own, with nothing in stock.
                let stock = Arc::new(Mutex::new(IndexStock::default()));
                let request = self.request(*joiner, *attempt);
                match join(ports, &stock, &request, *now).await {
                    Ok(joined) => Outcome::Joined(joined),
                    Err(refusal) => Outcome::Refused(refusal),
                }
            }
            Flow::Draw { now } => match draw(ports, &sale(), *now).await {
                Ok(drawing) => Outcome::Drew(drawing),
                Err(error) => Outcome::Failed(error),
            },
        }
    }
}
