//! A sale with a waiting room: what is drawn of it before the run begins.
//!
//! [`visitor`] is who comes, [`actors`] everybody else, [`rules`] what must hold.

pub(crate) mod actors;
pub(crate) mod rules;
pub(crate) mod visitor;

use std::sync::Mutex;

use engine::domain::admission::room::draw::BeaconChain;
use engine::domain::admission::room::join::IndexStock;
use engine::domain::admission::room::memory::RoomMemory;
use engine::domain::admission::room::serving::Command;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::GroupId;
use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};

use crate::plan::{FAULTS_FROM_MS, START};
use crate::random::SeededRng;

/// Sales with a room, in thousandths.
const ROOMS_PER_MILLE: u16 = 60;
/// Buckets of memberships: few, so that several buyers are in one.
pub(crate) const BUCKETS: u16 = 3;
/// The beacon's latest round when the run begins.
const FIRST_ROUND: i64 = 100;
/// The beacon, whose rounds come each second, as of the chain of an engine on one machine.
pub(crate) const CHAIN: BeaconChain =
    BeaconChain { chain: Hash([5; 32]), genesis: START.ms() / 1_000 - FIRST_ROUND + 1, period: 1 };

/// What a process remembers of rooms, until it is replaced.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The indices in stock.
    pub indices: Mutex<IndexStock>,
    pub memory: Mutex<RoomMemory>,
}

/// How the functions reach the beacon's rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BeaconPlan {
    /// The operator's secret decides.
    Unnamed,
    Comes,
    /// This number of milliseconds after the closing, or never: somebody else may bring the round, or the operator gives
    /// the beacon up.
    SilentFor(Option<i64>),
    /// Its rounds come this number of milliseconds after their time.
    Late(i64),
    /// Its rounds come this number of milliseconds before their time: its clock is wrong, or somebody knows them.
    Ahead(i64),
}

/// The room of a run.
#[derive(Debug, Clone)]
pub(crate) struct RoomPlan {
    /// When the first window closes, in milliseconds from the start, by a clock that is right.
    pub closes_ms: i64,
    /// When the sale opens, in milliseconds from the start.
    pub opens_ms: i64,
    pub groups: Vec<GroupId>,
    /// How the beacon is reached.
    pub beacon: BeaconPlan,
    /// True if anybody brings rounds, right and false ones.
    pub brings: bool,
    /// Commands of the operator, each with its time in milliseconds from the start and the name of its place.
    pub commands: Vec<(i64, u64, Command)>,
    /// `room` of the sale file.
    pub file: Value,
}

impl RoomPlan {
    /// True if the sale of a seed has a room.
    pub(crate) fn is_of(seed: u64) -> bool {
        SeededRng::from_label(seed, 0x15).chance(ROOMS_PER_MILLE)
    }

    /// The room of a seed, if its sale has one.
    pub(crate) fn from_seed(seed: u64) -> Option<Self> {
        if !Self::is_of(seed) {
            return None;
        }
        let mut rng = SeededRng::from_label(seed, 0x16);
        let lead_seconds = rng.between(5, 40);
        let closes_ms = FAULTS_FROM_MS + rng.between(5_000, 40_000);
        let opens_ms = closes_ms + lead_seconds * 1_000;
        let beacon = match rng.below(10) {
            0..3 => BeaconPlan::Unnamed,
            3..7 => BeaconPlan::Comes,
            7 => BeaconPlan::SilentFor(Some(rng.between(10_000, 200_000))),
            8 if rng.chance(500) => BeaconPlan::Late(rng.between(1_000, 60_000)),
            8 => BeaconPlan::Ahead(rng.between(1_000, 60_000)),
            _ => BeaconPlan::SilentFor(None),
        };
        let mut groups = vec![GroupId::all()];
        if rng.chance(250) {
            groups.push(GroupId::new("club").expect("it is a slug"));
        }
        let of_file = |(group, share): (&GroupId, u32)| json!({ "group": group, "share": share });
        let mut file = json!({
            "groups": groups.iter().zip(1..).map(of_file).collect::<Vec<Value>>(),
            "max_per_second": rng.pick(&[1, 5, 200]),
            "show_up_seconds": 120,
            "visit_seconds": rng.pick(&[120, 300]),
            "window_seconds": rng.pick(&[2, 10, 60]),
            "draw_lead_seconds": lead_seconds,
            "registered_only": rng.chance(100),
            "max_attempts": rng.pick(&[1, 2, 10]),
        });
        if rng.chance(150) {
            file["joins_open_at"] = json!(START.plus_ms(rng.between(0, closes_ms - 2_000)));
        }
        file["beacon"] = match beacon {
            BeaconPlan::Unnamed => json!("operator"),
            BeaconPlan::Comes
            | BeaconPlan::SilentFor(_)
            | BeaconPlan::Late(_)
            | BeaconPlan::Ahead(_) => json!(CHAIN.chain),
        };
        let brings = beacon != BeaconPlan::Unnamed && rng.chance(500);
        let commands = commands(&mut rng, opens_ms);
        Some(Self { closes_ms, opens_ms, groups, beacon, brings, commands, file })
    }

    /// Time over which people arrive, in milliseconds from the first faults on.
    pub(crate) const fn arrivals_ms(&self) -> i64 {
        self.opens_ms + 60_000 - FAULTS_FROM_MS
    }
}

/// What an operator does: what stops the serving is taken back after a while, but for a closing.
fn commands(rng: &mut SeededRng, opens_ms: i64) -> Vec<(i64, u64, Command)> {
    let mut commands = Vec::new();
    for turn in 0..rng.pick(&[0, 0, 1, 2]) {
        let at = rng.between(FAULTS_FROM_MS, opens_ms + 120_000);
        let back = at + rng.between(1_000, 60_000);
        let (then, after) = match rng.below(9) {
            0..3 => (Command::Pause, Some(Command::Resume)),
            3 | 4 => (Command::Rate(Some(1)), Some(Command::Rate(None))),
            5 | 6 => (Command::SoldOut(true), Some(Command::SoldOut(false))),
            7 => (Command::Notice(Some("soon".to_owned())), None),
            _ => (Command::Close, None),
        };
        commands.push((at, 0xc033_0000 + 2 * turn, then));
        commands.extend(after.map(|after| (back, 0xc033_0001 + 2 * turn, after)));
    }
    // Of two that overlap, what takes back comes last.
    commands.sort_by_key(|(at, ..)| *at);
    commands
}

/// The latest round of the beacon that is out by its plan.
pub(crate) fn latest_round(plan: BeaconPlan, now: Timestamp) -> u64 {
    CHAIN.last_by(
        now.ms()
            + match plan {
                BeaconPlan::Late(ms) => -ms,
                BeaconPlan::Ahead(ms) => ms,
                BeaconPlan::Unnamed | BeaconPlan::Comes | BeaconPlan::SilentFor(_) => 0,
            },
    )
}
