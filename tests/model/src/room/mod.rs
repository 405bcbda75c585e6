//! The waiting room: who joins while its first window is closed and drawn, and who is let in while turns are
//! made, with every interleaving, every process that sleeps or dies between any two steps, two draws and two
//! turns at once, and a Redis that loses everything.
//!
//! [`steps`] says what can happen, [`check`] what must hold.

pub mod check;
pub mod steps;

use std::sync::{Arc, Mutex};

use engine::domain::admission::room::code::{Code, CodeHash, CodeShard, CodeUses};
use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::draw::{BeaconChain, Terms, Window, later_seed};
use engine::domain::admission::room::join::{IndexStock, Membership, bucket_of};
use engine::domain::admission::room::log::{Entry as LogEntry, Record};
use engine::domain::admission::room::memory::RoomMemory;
use engine::domain::admission::room::serving::Room;
use engine::domain::basics::bytes::{Hash, Nonce, Secret, Signature};
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::PartLimit;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::serving::{DRAW_LEAD_MS, Settings};
use engine::flows::room::bring::{self, Brought, Round, bring};
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::enter::{self, Claimed, Entrance};
use engine::flows::room::join::{self, JoinRequest, Joined, join};
use engine::flows::room::publish::{DrawBy, publish};
use engine::flows::room::published;
use engine::flows::room::turn::{Turned, turn};
use engine::ports::StoreError;
use model_stores::{BeaconModel, Caller, Driver, RoomsModel, Stores};

use crate::direct;
use crate::scenario::START;
use crate::task::{Deployment, Setting};

/// The beacon, whose rounds come each second.
const CHAIN: BeaconChain =
    BeaconChain { chain: Hash([5; 32]), genesis: START.ms() / 1_000 - 99, period: 1 };
/// The rounds by which the beacon goes on at once: beyond the one that is named, and the first of the series after it.
pub const ROUNDS: u64 = 1_000;

/// A flow with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Flow {
    /// The room is published.
    Publish,
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
    /// Somebody asks for the room document.
    Turn {
        /// The time of the request.
        now: Timestamp,
    },
    /// Somebody brings a round of the beacon.
    Bring {
        /// The round that the draw awaits, or would.
        number: u64,
        /// Whether the signature is the round's.
        is_true: bool,
        /// The time of the request.
        now: Timestamp,
    },
    /// A joiner begins to look at what there is.
    Look {
        /// The index of the joiner.
        joiner: usize,
        /// The index that the joiner was told, and its place.
        claim: (u32, u32),
        /// The time of the request.
        now: Timestamp,
    },
    /// A joiner asks to be let in.
    Enter {
        /// The index of the joiner.
        joiner: usize,
        /// How many times the joiner asked before.
        attempt: u8,
        /// Whether the joiner was answered before that the visit of this index has begun.
        has_looked: bool,
        /// The index that the joiner was told, and the place that is claimed for it.
        claim: (u32, u32),
        /// The time of the request.
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
    Refused(join::Refusal),
    /// A draw came this far.
    Drew(Drawing),
    /// The room document was answered.
    Turned(Turned),
    /// A round was taken.
    Brought(Brought),
    /// A round was refused.
    NotBrought(bring::Refusal),
    /// A visit has begun; what is left of it, in milliseconds.
    Looked(u64),
    /// A joiner was let in.
    Entered(Entrance),
    /// A joiner was not let in.
    NotLetIn(enter::Refusal),
    /// A store failed; whoever asked will ask again.
    Failed(StoreError),
}

impl Outcome {
    /// The bug of ours that the flow ended with, if it did.
    #[must_use]
    pub fn broken_contract(&self) -> Option<&str> {
        match self {
            Self::Refused(join::Refusal::Store(StoreError::Contract(what)))
            | Self::NotLetIn(enter::Refusal::Store(StoreError::Contract(what)))
            | Self::NotBrought(bring::Refusal::Store(StoreError::Contract(what)))
            | Self::Failed(StoreError::Contract(what)) => Some(what),
            Self::Published(_)
            | Self::Joined(_)
            | Self::Refused(_)
            | Self::Drew(_)
            | Self::Turned(_)
            | Self::Brought(_)
            | Self::NotBrought(_)
            | Self::Looked(_)
            | Self::Entered(_)
            | Self::NotLetIn(_)
            | Self::Failed(_) => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub joiners: Vec<UserId>,
    /// The number of times that each of them asks.
    pub requests: u8,
    /// Runs of the draw.
    pub draws: u8,
    /// The number of times that the room document is asked for.
    pub turns: u8,
    /// The number of times that each joiner asks to be let in.
    pub enters: u8,
    /// The number of times that each joiner begins to look.
    pub looks: u8,
    /// The number of times that Redis loses everything.
    pub losses: u8,
    /// True if everybody has joined and places are drawn when the scenario begins.
    pub is_drawn: bool,
    /// True if everybody's place was served besides, and runs out with the next turn.
    pub runs_out: bool,
    /// How often the code may be used that everybody has; none if the room asks for no code.
    pub code_uses: Option<u32>,
    pub buckets: u16,
    /// Faults: a process dies, a call is turned away, a request or an answer is lost.
    pub faults: u8,
    /// The number of times that the beacon goes on by [`ROUNDS`].
    pub rounds: u8,
    /// The number of rounds that somebody brings, right or false ones.
    pub brings: u8,
    /// True if the room names a beacon.
    pub has_beacon: bool,
    /// The moments that the clock shows, one after the other.
    pub times: Vec<Timestamp>,
    /// The guard that is away.
    pub without: Option<Guard>,
}

/// The time at which the first window closes: every scenario begins then.
const OPENS_AT: Timestamp = START.plus_ms(DRAW_LEAD_MS);

/// Time from the opening to the turn by which the first places run out, in seconds.
const RUNS_OUT_SECONDS: i64 = 190;

#[must_use]
pub fn sale() -> SaleId {
    SaleId::new("s").unwrap()
}

#[must_use]
pub fn group() -> GroupId {
    GroupId::new("all").unwrap()
}

/// The code that everybody has, where the room asks for one.
fn code() -> CodeHash {
    Code::new("everybody").unwrap().hash(&sale(), &group())
}

impl Scenario {
    /// A room with a beacon, whose draw one process runs, with nobody who joins.
    fn new(name: &'static str) -> Self {
        Self {
            name,
            joiners: Vec::new(),
            requests: 1,
            draws: 1,
            turns: 0,
            enters: 0,
            looks: 0,
            losses: 0,
            is_drawn: false,
            runs_out: false,
            code_uses: None,
            buckets: 1,
            faults: 0,
            rounds: 0,
            brings: 0,
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

    /// A process draws while the beacon goes on, in time or late, and two people bring the round that is awaited, or a false
    /// one.
    #[must_use]
    pub fn two_bring() -> Self {
        let scenario = Self::late_closing().named("two bring the beacon's round");
        Self { draws: 1, brings: 2, ..scenario }
    }

    /// Two processes draw, each in time or when the round that is named is out already, while the beacon goes on.
    #[must_use]
    pub fn late_closing() -> Self {
        let scenario = Self::beacon_goes_on().named("two draw in time or late");
        Self { times: vec![START, OPENS_AT.plus_seconds(60)], ..scenario }
    }

    /// A room whose places are drawn, at its opening and two seconds later.
    fn open(name: &'static str, joiners: u8) -> Self {
        let times = vec![OPENS_AT, OPENS_AT.plus_seconds(2)];
        let scenario = Self { is_drawn: true, has_beacon: false, times, ..Self::new(name) };
        Self { requests: 0, draws: 0, ..scenario.joined_by(joiners) }
    }

    /// Two ask for the room document, and somebody whose place is the first comes.
    #[must_use]
    pub fn two_turns() -> Self {
        Self { turns: 2, enters: 1, ..Self::open("two make turns, and one comes", 1) }
    }

    /// Two people ask twice to be let in, perhaps by two devices at once, and each claims the first place at
    /// first, while a turn is made.
    #[must_use]
    pub fn two_enter() -> Self {
        let scenario = Self::open("two claim a place, one of them another's", 2);
        let times = scenario.times.split_at(1).1.to_vec();
        Self { turns: 1, enters: 2, times, ..scenario }
    }

    /// A turn is made and somebody comes, while Redis loses everything at any step, and one step goes wrong.
    #[must_use]
    pub fn redis_forgets() -> Self {
        let scenario = Self::open("Redis loses everything while a turn is made", 1);
        Self { turns: 1, enters: 1, losses: 1, faults: 1, ..scenario }
    }

    /// Somebody's place runs out with the turn that is made, while two devices of the buyer's ask to join again, and
    /// a third one to be let in.
    #[must_use]
    pub fn two_rejoin() -> Self {
        let scenario = Self::open("two devices join again, and one comes", 1);
        let times = vec![OPENS_AT.plus_seconds(RUNS_OUT_SECONDS)];
        Self { requests: 2, turns: 1, enters: 1, runs_out: true, times, ..scenario }
    }

    /// Somebody looks by two devices, and comes when the place has run out, perhaps, with the turn that is made.
    #[must_use]
    pub fn two_look() -> Self {
        let scenario = Self::two_rejoin().named("one looks by two devices, and then comes");
        Self { requests: 0, looks: 2, ..scenario }
    }

    /// Two people join with a code that may be used once, one of them perhaps by two devices at once, and one
    /// step goes wrong.
    #[must_use]
    pub fn one_code() -> Self {
        let scenario = Self::new("two join with a code for one").joined_by(2);
        Self { draws: 0, requests: 2, code_uses: Some(1), faults: 1, ..scenario }
    }

    /// A whole sale for a walk: five people join, some of them late or again, come, and come again, while draws
    /// and turns are made by processes whose clocks differ, Redis loses everything now and then, and steps go
    /// wrong.
    #[must_use]
    pub fn whole() -> Self {
        let seconds = [-60, -30, 0, 10, 5, 60, 119, 120, 110, 122, 125, 130, 140, 170, 150, 230];
        let later = [290, 350, 340, 410, 470, 530, 600, 700, 690, 800, 900, 960, 1_020, 1_080];
        let times = seconds.iter().chain(&later).map(|after| START.plus_seconds(*after)).collect();
        let scenario = Self::new("a whole sale").joined_by(5);
        Self {
            requests: 20,
            draws: 6,
            turns: 120,
            enters: 25,
            looks: 25,
            losses: 4,
            faults: 12,
            rounds: 1,
            brings: 6,
            buckets: 2,
            times,
            ..scenario
        }
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
            Self::late_closing(),
            Self::two_bring(),
            Self::two_turns(),
            Self::two_enter(),
            Self::redis_forgets(),
            Self::one_code(),
            Self::two_rejoin(),
            Self::two_look(),
        ]
    }

    /// The same scenario without a guard.
    #[must_use]
    pub fn without(self, guard: Guard) -> Self {
        Self { without: Some(guard), ..self }
    }

    fn draw_by(&self) -> DrawBy {
        if self.has_beacon { DrawBy::Beacon(CHAIN) } else { DrawBy::Secret(Secret([4; 32])) }
    }

    /// The stores at the start: the room is published.
    #[must_use]
    pub fn stores(&self) -> Stores {
        let mut stores = Stores::default();
        stores.beacon.latest = Some(CHAIN.last_by(START.ms()));
        let outcome = direct::run(self, &mut stores, START, &Flow::Publish);
        assert!(matches!(outcome, Outcome::Published(_)), "{outcome:?}");
        for uses in self.code_uses.into_iter().flat_map(CodeUses::shared) {
            stores
                .rooms
                .codes
                .insert((sale(), group(), CodeShard { code: code(), shard: 0 }), uses);
        }
        if self.is_drawn {
            for joiner in 0..self.joiners.len() {
                let join = Flow::Join { joiner, attempt: 0, now: START };
                let outcome = direct::run(self, &mut stores, START, &join);
                assert!(matches!(outcome, Outcome::Joined(_)), "{outcome:?}");
            }
            let outcome = direct::run(self, &mut stores, START, &Flow::Draw { now: START });
            assert_eq!(outcome, Outcome::Drew(Drawing::Drawn));
        }
        if self.runs_out {
            self.serve_until(&mut stores, self.times[0]);
        }
        stores
    }

    /// Makes a turn every ten seconds from the opening on, up to the last one before a moment.
    fn serve_until(&self, stores: &mut Stores, end: Timestamp) {
        let mut now = OPENS_AT;
        while now < end {
            let outcome = direct::run(self, stores, now, &Flow::Turn { now });
            assert!(matches!(outcome, Outcome::Turned(_)), "{outcome:?}");
            now = now.plus_seconds(10);
        }
        let last = stores.rooms.last_record(&sale()).unwrap().unwrap();
        let served = last.state.groups.first().map(|group| (group.serving, group.passed));
        let joiners = u32::try_from(self.joiners.len()).unwrap();
        assert_eq!(served, Some((joiners, 0)), "everybody is due and nothing has run out");
    }

    /// The membership of a joiner.
    #[must_use]
    pub fn member(&self, rooms: &RoomsModel, joiner: usize) -> Option<Membership> {
        let buyer = &self.joiners[joiner];
        rooms.membership(&sale(), bucket_of(buyer, self.buckets), buyer)
    }

    /// The place that was drawn for an index, by the log alone; `None` while it is not drawn.
    #[must_use]
    pub fn place(rooms: &RoomsModel, index: u32) -> Option<u32> {
        let log = rooms.logs.get(&sale())?;
        let mut records = log.values().filter_map(|line| Record::from_line(line).ok());
        let drew = |record: &Record| {
            record.state.groups.first().is_some_and(|group| index < group.window_end)
        };
        let record = records.find(drew)?;
        let state = record.state.groups.first()?;
        let closing = state.closed?.closing;
        if index < closing.count {
            return Window::new(state.seed?, 0, closing.count).place(index);
        }
        let seed = later_seed(record.hash(), &group());
        Window::new(seed, state.window_first, state.window_end).place(index)
    }

    /// The round of the beacon that the draw awaits; before its closing the one that is named.
    #[must_use]
    pub fn awaited(stores: &Stores) -> Option<u64> {
        let last = stores.rooms.last_record(&sale()).ok()??;
        let LogEntry::Published(room) = stores.rooms.record(&sale(), 0).ok()??.entry else {
            return None;
        };
        match (last.state.groups.first()?.closed, room.draw) {
            (Some(closed), _) => room.round(&closed),
            (None, Terms::Beacon(named)) => Some(named.round),
            (None, Terms::Secret(_) | Terms::Before(_)) => None,
        }
    }

    /// What is left of the sale: always enough for one who comes and one who has not.
    fn left() -> Left {
        Left { free: 40, holds: false, tiers: vec![40], is_held_back: false }
    }

    /// A gate that remembers nothing yet lets a joiner in, as the function of the gate does.
    async fn let_in<D: Driver>(
        &self,
        ports: &Caller<D>,
        joiner: usize,
        (index, place): (u32, u32),
        now: Timestamp,
        looks: bool,
    ) -> Result<Outcome, enter::Refusal> {
        let memory = Arc::new(Mutex::new(RoomMemory::default()));
        let room = published(ports, &sale()).await?.expect("the room is published");
        let buyer = &self.joiners[joiner];
        let group = group();
        let claimed = Claimed { group: &group, place };
        let view = enter::view(ports, &memory, &room, now).await?;
        enter::check_place(ports, &memory, &room, &view, claimed, index).await?;
        Ok(if looks {
            Outcome::Looked(enter::begin(ports, &room, &view, claimed, buyer, index, now).await?)
        } else {
            Outcome::Entered(enter::enter(ports, &room, &view, claimed, buyer, index, now).await?)
        })
    }

    fn request(&self, joiner: usize, attempt: u8) -> JoinRequest {
        let mut nonce = [attempt; 16];
        nonce[0] = u8::try_from(joiner).unwrap();
        let buyer = self.joiners[joiner].clone();
        let (sale, group, nonce) = (sale(), group(), Nonce(nonce));
        JoinRequest { sale, group, buyer, nonce, more_time: false, code: Some(code()) }
    }
}

impl Setting for Scenario {
    type Flow = Flow;
    type Outcome = Outcome;

    fn deployment(&self) -> Deployment {
        let (grace, part_limit) = (Grace::NONE, PartLimit::STANDARD);
        let (listings, offers) = (Vec::new(), Vec::new());
        let started_elsewhere = true;
        Deployment { grace, part_limit, listings, offers, started_elsewhere, buckets: self.buckets }
    }

    async fn run<D: Driver>(&self, flow: &Flow, ports: &Caller<D>) -> Outcome {
        match flow {
            Flow::Publish => {
                let settings = Settings::new(group(), OPENS_AT.ms(), 4);
                let mut settings =
                    Settings { max_attempts: 1 + u16::from(self.enters), ..settings };
                for group in &mut settings.groups {
                    group.codes = self.code_uses.is_some();
                }
                match publish(ports, &sale(), &settings, 40, &self.draw_by(), START).await {
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
            Flow::Turn { now } => {
                let room = match published(ports, &sale()).await {
                    Ok(room) => room.expect("the room is published"),
                    Err(error) => return Outcome::Failed(error),
                };
                match turn(ports, &room, async { Some(Self::left()) }, *now).await {
                    Ok(turned) => Outcome::Turned(turned),
                    Err(error) => Outcome::Failed(error),
                }
            }
            Flow::Bring { number, is_true, now } => {
                let right = BeaconModel::signature(*number);
                let signature = if *is_true { right } else { Signature([7; 48]) };
                let round = Round { number: *number, signature };
                match bring(ports, &sale(), round, *now).await {
                    Ok(brought) => Outcome::Brought(brought),
                    Err(refusal) => Outcome::NotBrought(refusal),
                }
            }
            Flow::Enter { joiner, claim, now, .. } | Flow::Look { joiner, claim, now } => {
                let looks = matches!(flow, Flow::Look { .. });
                let came = self.let_in(ports, *joiner, *claim, *now, looks).await;
                came.unwrap_or_else(Outcome::NotLetIn)
            }
        }
    }
}
