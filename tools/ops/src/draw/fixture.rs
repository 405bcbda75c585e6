//! A publication in which nothing is wrong: 2,500 who joined, some of whom left no trace but their index, a
//! draw, a later window of 20, and who was admitted.

use engine::domain::admission::room::draw::{
    Closing, Commitment, Latest, Member, Source, Terms, Window, later_seed,
};
use engine::domain::admission::room::log::{NONE_BEFORE, Record};
use engine::domain::admission::room::serving::{Counts, Event, Given, Room};
use engine::domain::admission::room::tree;
use engine::domain::basics::bytes::{Hash, Nonce, Secret};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::sale::serving::Settings;
use shared::beacon::Chains;
use shared::beacon::signature::QUICKNET;

use super::publication::{Admission, Chunk, Counted, OrderLine, Orders, Publication};

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

/// A minute after round 1000 of quicknet is out.
pub const OPENS_MS: i64 = 1_692_806_424_000;
pub const STOCK: u64 = 10_000;
pub const JOINED: u32 = 2_500;
pub const LATER: u32 = 20;

pub fn group() -> GroupId {
    GroupId::new("all").unwrap()
}

pub fn sale() -> SaleId {
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

pub fn closing() -> Closing {
    Closing { count: JOINED, root: tree::root(&leaves()), latest_round: None }
}

pub fn settings(opens_ms: i64) -> Settings {
    let mut settings = Settings::new(group(), opens_ms, 4);
    settings.max_per_second = 100;
    settings
}

pub fn room(has_beacon: bool) -> Room {
    let settings = settings(OPENS_MS);
    let quicknet = Chains::default().rounds(QUICKNET).unwrap();
    let named = quicknet.name(settings.closes_at_ms, OPENS_MS, 0).unwrap();
    let draw = if has_beacon { Terms::Beacon(named) } else { Terms::Secret(secret().commitment()) };
    Room::new(sale(), draw, STOCK, settings)
}

/// The room of an engine on one machine, which can sign each of its rounds.
pub fn local_room() -> Room {
    let settings = settings(1_800_000_000_000);
    let Settings { closes_at_ms, opens_at_ms, .. } = settings;
    let named = fake_beacon::rounds().name(closes_at_ms, opens_at_ms, 0).unwrap();
    Room::new(sale(), Terms::Beacon(named), STOCK, settings)
}

/// A room that was published before, by quicknet.
pub fn room_of_before() -> Room {
    let draw = Commitment { commitment: secret().commitment(), beacon: Some(QUICKNET) };
    Room::before(sale(), draw, settings(OPENS_MS))
}

/// The records up to the closing, the draw by some event, which the rules do not have to allow, and 200 s of serving.
pub fn records_of(
    room: &Room,
    closing: Closing,
    (closed_ms, drawn_ms): (i64, i64),
    draw: Event,
) -> Vec<Record> {
    let opens_ms = room.settings.opens_at_ms;
    let mut records = vec![Record::first(room.clone(), opens_ms - 5_000_000)];
    let mut add = |at_ms, events, joined, free| {
        let given = Given {
            free: Some(free),
            joined: vec![joined],
            counts: Some(Counts::default()),
            ..Given::default()
        };
        let next = records.last().unwrap().next(room, at_ms, events, given).unwrap();
        records.push(next);
    };
    add(opens_ms - 400_000, vec![], 2_000, STOCK);
    add(closed_ms, vec![Event::Closed { group: group(), closing }], JOINED, STOCK);
    add(drawn_ms, vec![draw], JOINED, STOCK);
    for second in 0..200 {
        let joined = if second < 10 { JOINED } else { JOINED + LATER };
        add(opens_ms.max(drawn_ms) + second * 1_000, vec![], joined, STOCK);
    }
    records
}

/// The records of the room of the fixture, drawn by `source`.
pub fn records(has_beacon: bool, source: Source) -> Vec<Record> {
    let draw = Event::Drawn { group: group(), source };
    let times = (OPENS_MS - 295_000, OPENS_MS - 50_000);
    records_of(&room(has_beacon), closing(), times, draw)
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

/// The windows of the group, of which the first has this seed, and the later one that of the record that ended it.
pub fn windows_of(records: &[Record], seed: Hash) -> Vec<Window> {
    let ended = records.iter().find(|record| record.state.groups[0].window_end > JOINED).unwrap();
    let later = later_seed(ended.hash(), &group());
    vec![Window::new(seed, 0, JOINED), Window::new(later, JOINED, JOINED + LATER)]
}

pub fn windows(records: &[Record], source: &Source) -> Vec<Window> {
    windows_of(records, closing().seed(&sale(), &group(), source))
}

/// The admission of an index as soon as its place is due.
pub fn admission(index: u32, windows: &[Window], records: &[Record]) -> Admission {
    let place = windows.iter().find_map(|window| window.place(index)).unwrap();
    let due = records.iter().find(|record| record.state.groups[0].serving > place).unwrap();
    Admission { group: group(), index, place, turn: due.number }
}

/// An order of a seat for each of these admissions.
pub fn orders(admissions: &[Admission]) -> Orders {
    let order = |Admission { group, index, turn, .. }: &Admission| OrderLine {
        group: Some(group.clone()),
        index: Some(*index),
        turn: Some(*turn),
        operator: None,
        seat_legs: 1,
    };
    let orders: Vec<OrderLine> = admissions.iter().map(order).collect();
    let left = STOCK - orders.len() as u64;
    Orders { counted: Counted { at_ms: OPENS_MS + 1_000_000, left }, orders }
}

/// Everything of these records. Of those who joined every third was admitted, of the later ones all, and each has a seat.
pub fn published(records: &[Record], seed: Hash) -> Publication {
    let windows = windows_of(records, seed);
    let came = (0..JOINED).step_by(3).filter(|index| is_held(*index));
    let admissions: Vec<Admission> = came
        .chain(JOINED..JOINED + LATER)
        .map(|index| admission(index, &windows, records))
        .collect();
    let orders = Some(orders(&admissions));
    Publication { log: log(records), chunks: chunks(&leaves()), admissions, orders }
}

pub fn publication_by(has_beacon: bool, source: Source) -> (Publication, Vec<Record>) {
    let records = records(has_beacon, source);
    (published(&records, closing().seed(&sale(), &group(), &source)), records)
}

/// Everything, drawn by the beacon.
pub fn publication() -> (Publication, Vec<Record>) {
    publication_by(true, by_beacon())
}

/// A room of before, by the round that its closing quotes the eighth before of; there is nothing of its orders.
pub fn publication_of_before() -> Publication {
    let quoting = Closing { latest_round: Some(Latest(Some(992))), ..closing() };
    let draw = Event::Drawn { group: group(), source: by_beacon() };
    let times = (OPENS_MS - 120_000, OPENS_MS - 90_000);
    let records = records_of(&room_of_before(), quoting, times, draw);
    let seed = quoting.seed(&sale(), &group(), &by_beacon());
    Publication { orders: None, ..published(&records, seed) }
}

/// A room of one machine whose window was closed at this time, drawn by the round that decides then.
pub fn publication_closed_at(closed_ms: i64) -> (Publication, Vec<Record>) {
    let room = local_room();
    let Terms::Beacon(named) = room.draw else { panic!() };
    let round = named.decides(closed_ms);
    let source = Source::Beacon { round, signature: fake_beacon::sign(round) };
    let draw = Event::Drawn { group: group(), source };
    let drawn_ms = named.time_ms(round).max(closed_ms);
    let records = records_of(&room, closing(), (closed_ms, drawn_ms), draw);
    (published(&records, closing().seed(&sale(), &group(), &source)), records)
}
