//! A publication in which nothing is wrong: 2,500 who joined, some of whom left no trace but their index, a
//! draw, a later window of 20, and who was admitted.

use engine::domain::admission::room::draw::{
    Closing, Commitment, Member, Source, Window, later_seed,
};
use engine::domain::admission::room::log::{NONE_BEFORE, Record};
use engine::domain::admission::room::serving::{Counts, Event, Given, Room};
use engine::domain::admission::room::tree;
use engine::domain::basics::bytes::{Hash, Nonce, Secret};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::sale::serving::Settings;
use shared::beacon::signature::QUICKNET;

use super::publication::{Admission, Chunk, Publication};

/// Rounds as quicknet published them.
/// Source: <https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/123>
pub const ROUNDS: [(u64, &str); 2] = [
    (
        123,
        "b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482e26cd02df835d3546d23c4b13e0dfc92",
    ),
    (
        1000,
        "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
    ),
];

pub const OPENS_MS: i64 = 1_800_000_000_000;
pub const JOINED: u32 = 2_500;
pub const LATER: u32 = 20;

pub fn group() -> GroupId {
    GroupId::new("all").unwrap()
}

fn sale() -> SaleId {
    SaleId::new("fixture").unwrap()
}

pub fn secret() -> Secret {
    Secret([4; 32])
}

/// Round 1000 of quicknet.
pub fn by_beacon() -> Source {
    let (round, signature) = ROUNDS[1];
    Source::Beacon { round, signature: signature.parse().unwrap() }
}

/// Every hundredth index is held by nobody.
pub fn is_held(index: u32) -> bool {
    index % 100 != 7
}

pub fn buyer(index: u32) -> UserId {
    UserId::new(format!("buyer-{index}")).unwrap()
}

pub fn nonce(index: u32) -> Nonce {
    let mut nonce = Nonce([0; 16]);
    nonce.0[..4].copy_from_slice(&index.to_be_bytes());
    nonce
}

pub fn leaves() -> Vec<Hash> {
    let (sale, group) = (sale(), group());
    let leaf = |index| match is_held(index) {
        true => {
            let (buyer, nonce) = (&buyer(index), nonce(index));
            Member { sale: &sale, group: &group, index, buyer, nonce }.leaf()
        }
        false => tree::empty_leaf(),
    };
    (0..JOINED).map(leaf).collect()
}

pub fn chunks(leaves: &[Hash]) -> Vec<Chunk> {
    Chunk::all(&group(), leaves)
}

pub fn closing(has_beacon: bool) -> Closing {
    let latest_round = has_beacon.then_some(992);
    Closing { count: JOINED, root: tree::root(&leaves()), latest_round }
}

pub fn room(has_beacon: bool) -> Room {
    let mut settings = Settings::new(group(), OPENS_MS, 4);
    settings.max_per_second = 100;
    let beacon = has_beacon.then_some(QUICKNET);
    Room { sale: sale(), draw: Commitment { commitment: secret().commitment(), beacon }, settings }
}

/// The records up to the draw by `source`, which the rules do not have to allow, and 200 s of serving.
pub fn records(has_beacon: bool, source: Source) -> Vec<Record> {
    let room = room(has_beacon);
    let mut records = vec![Record::first(room.clone(), OPENS_MS - 600_000)];
    let mut add = |at_ms, events, joined, free| {
        let given = Given {
            free: Some(free),
            joined: vec![joined],
            counts: Some(Counts::default()),
            ..Given::default()
        };
        let next = records.last().unwrap().next(&room, at_ms, events, given).unwrap();
        records.push(next);
    };
    add(OPENS_MS - 300_000, vec![], 2_000, 10_000);
    let closed = Event::Closed { group: group(), closing: closing(has_beacon) };
    add(OPENS_MS - 120_000, vec![closed], JOINED, 10_000);
    add(OPENS_MS - 90_000, vec![Event::Drawn { group: group(), source }], JOINED, 10_000);
    for second in 0..200 {
        let joined = if second < 10 { JOINED } else { JOINED + LATER };
        add(OPENS_MS + second * 1_000, vec![], joined, 10_000);
    }
    records
}

/// Gives each record the hash of the one before, as whoever forges a whole log would.
pub fn rechain(records: &mut [Record]) {
    let mut before = NONE_BEFORE;
    for record in records {
        record.before = before;
        before = record.hash();
    }
}

pub fn log(records: &[Record]) -> Vec<String> {
    records.iter().map(Record::line).collect()
}

/// The windows of the group, the later one by the record that ended it.
pub fn windows(records: &[Record], has_beacon: bool, source: &Source) -> Vec<Window> {
    let seed = closing(has_beacon).seed(&sale(), &group(), source);
    let ended = records.iter().find(|record| record.state.groups[0].window_end > JOINED).unwrap();
    let later = later_seed(ended.hash(), &group());
    vec![Window::new(seed, 0, JOINED), Window::new(later, JOINED, JOINED + LATER)]
}

/// The admission of an index as soon as its place is due.
pub fn admission(index: u32, windows: &[Window], records: &[Record]) -> Admission {
    let place = windows.iter().find_map(|window| window.place(index)).unwrap();
    let due = records.iter().find(|record| record.state.groups[0].serving > place).unwrap();
    Admission { group: group(), index, place, turn: due.number }
}

/// Everything, drawn by `source`. Of those who joined every third was admitted, of the later ones all.
pub fn publication_by(has_beacon: bool, source: Source) -> (Publication, Vec<Record>) {
    let records = records(has_beacon, source);
    let windows = windows(&records, has_beacon, &source);
    let came = (0..JOINED).step_by(3).filter(|index| is_held(*index));
    let admissions = came
        .chain(JOINED..JOINED + LATER)
        .map(|index| admission(index, &windows, &records))
        .collect();
    (Publication { log: log(&records), chunks: chunks(&leaves()), admissions }, records)
}

/// Everything, drawn by the beacon.
pub fn publication() -> (Publication, Vec<Record>) {
    publication_by(true, by_beacon())
}
