//! The waiting rooms: one contract that the adapter keeps on DynamoDB and its model in memory, lost answers,
//! and a whole draw.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::admission::room::draw::{BeaconChain, NoRound, Source, Terms};
use engine::domain::admission::room::join::{
    BUCKETS, Index, IndexStock, JoinWindow, MAX_CHUNKS, MAX_INDICES, Membership, Replaced,
    TakenIndices, Tree, bucket_of,
};
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::serving::{Given, Room};
use engine::domain::admission::room::tree::{CHUNK_LEAVES, empty_leaf, root};
use engine::domain::admission::room::visit::{Enter, EnterReply, Entered, Visit};
use engine::domain::basics::bytes::{Hash, Nonce, Secret};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::serving::{DRAW_LEAD_MS, GroupSettings, MORE_TIME_FACTOR, Settings};
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::join::{self, JoinRequest, Joined, Standing, join};
use engine::flows::room::publish::{self, DrawBy, publish};
use engine::ports::{AppendReply, RoomPorts, Rooms, Stored};
use futures_util::future::join_all;
use model_stores::{Call, Caller, Counter, Driver, Reply, Stores};
use serde_json::json;
use shared::dynamodb::{DynamoRooms, Tables};

use super::{Fixture, NOW};

/// Stores in memory that answer at once.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Stores>>);

impl Driver for Memory {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.0.lock().unwrap().apply(NOW, &call)
    }
}

fn sale() -> SaleId {
    SaleId::new("show").unwrap()
}

fn group(name: &str) -> GroupId {
    GroupId::new(name).unwrap()
}

fn user(name: impl ToString) -> UserId {
    UserId::new(name.to_string()).unwrap()
}

fn member(buyer: &str, number: u32, window: JoinWindow) -> Membership {
    Membership {
        sale: sale(),
        group: group("all"),
        buyer: user(buyer),
        index: Index { number, window },
        nonce: Nonce([7; 16]),
        joined_at: NOW,
        more_time: false,
        rejoined: 0,
        visit: None,
        earlier: Vec::new(),
    }
}

/// A beacon whose rounds come each second.
const CHAIN: BeaconChain = BeaconChain { chain: Hash([5; 32]), genesis: 0, period: 1 };
/// A minute before the sale opens.
const ROUND: u64 = 1_800_000_241;

fn room() -> Room {
    let settings = Settings::new(group("all"), NOW.plus_ms(DRAW_LEAD_MS).ms(), 4);
    let named = CHAIN.name(settings.closes_at_ms, settings.opens_at_ms, 0).unwrap();
    Room::new(sale(), Terms::Beacon(named), 40, settings)
}

async fn keeps_secrets_and_a_log(rooms: &impl Rooms) {
    assert_eq!(rooms.secret(&sale()).await, Ok(None));
    for secret in [1, 2].map(|byte| Secret([byte; 32])) {
        assert_eq!(rooms.keep_secret(&sale(), &secret).await, Ok(Secret([1; 32])), "the first");
    }
    assert_eq!(rooms.secret(&sale()).await, Ok(Some(Secret([1; 32]))));

    let room = room();
    let first = Record::first(room.clone(), 7);
    assert_eq!(rooms.record(&sale(), 0).await, Ok(None));
    assert_eq!(rooms.last_record(&sale()).await, Ok(None));
    assert_eq!(rooms.append(&sale(), &first).await, Ok(AppendReply::Appended));
    assert_eq!(rooms.append(&sale(), &first).await, Ok(AppendReply::Appended), "the same again");
    let other = Record::first(room.clone(), 8);
    assert_eq!(rooms.append(&sale(), &other).await, Ok(AppendReply::Conflict));
    // As many that their numbers have two digits: the last one is found by number, not by text.
    let mut last = first.clone();
    for at_ms in 8..19 {
        let given = Given { joined: vec![0], ..Given::default() };
        last = last.next(&room, at_ms, Vec::new(), given).unwrap();
        assert_eq!(rooms.append(&sale(), &last).await, Ok(AppendReply::Appended));
    }
    assert_eq!(rooms.record(&sale(), 0).await, Ok(Some(first)));
    assert_eq!(rooms.record(&sale(), 12).await, Ok(None));
    assert_eq!(rooms.last_record(&sale()).await, Ok(Some(last)));
    for (from, most, expected) in
        [(0, 3, 0..3), (7, 2, 7..9), (9, 50, 9..12), (11, 1, 11..12), (12, 50, 0..0)]
    {
        let page = rooms.records(&sale(), from, most).await.unwrap();
        let numbers: Vec<u64> = page.iter().map(|record| record.number).collect();
        assert_eq!(numbers, expected.collect::<Vec<u64>>(), "{most} from {from}");
    }
    let another = SaleId::new("another").unwrap();
    assert_eq!(rooms.last_record(&another).await, Ok(None));
}

async fn counts(rooms: &impl Rooms) {
    let taken = |first, count, window| Ok(TakenIndices { first, count, window });
    let (all, club) = (group("all"), group("club"));
    let sale = sale();
    assert_eq!(rooms.joined(&sale, &all).await, Ok(0));
    let take = |group, count| rooms.take_indices(&sale, group, count);
    assert_eq!(take(&all, 16).await, taken(0, 16, JoinWindow::First));
    assert_eq!(take(&all, 1).await, taken(16, 1, JoinWindow::First));
    assert_eq!(take(&club, 2).await, taken(0, 2, JoinWindow::First));
    assert_eq!(rooms.close_window(&sale, &all).await, Ok(17));
    assert_eq!(take(&all, 3).await, taken(17, 3, JoinWindow::Later));
    assert_eq!(
        [rooms.joined(&sale, &all).await, rooms.joined(&sale, &club).await],
        [Ok(20), Ok(2)]
    );
    assert_eq!(rooms.close_window(&sale, &all).await, Ok(17), "it was closed before");
    assert_eq!(take(&club, 1).await, taken(2, 1, JoinWindow::First), "another group's is open");
    let nobody = group("nobody");
    assert_eq!(rooms.close_window(&sale, &nobody).await, Ok(0));
    assert_eq!(take(&nobody, 1).await, taken(0, 1, JoinWindow::Later));
}

async fn everybody(rooms: &impl Rooms, bucket: u16, after: Option<&UserId>) -> Vec<Membership> {
    let mut found = Vec::new();
    let mut after = after.cloned();
    loop {
        let page = rooms.memberships(&sale(), bucket, after.as_ref()).await.unwrap();
        found.extend(page.memberships);
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}

/// A membership without a visit that another takes the place of.
fn unvisited(index: u32) -> Option<Replaced> {
    Some(Replaced { index, attempts: None })
}

async fn keeps_memberships(rooms: &impl Rooms) {
    assert_eq!(rooms.membership(&sale(), 3, &user("b")).await, Ok(None));
    assert_eq!(everybody(rooms, 3, None).await, Vec::new());
    let first = member("b", 5, JoinWindow::First);
    let second = member("b", 6, JoinWindow::First);
    assert_eq!(rooms.join(&first, 3, None).await.as_ref(), Ok(&first));
    assert_eq!(rooms.join(&second, 3, None).await.as_ref(), Ok(&first), "one at a time");
    assert_eq!(rooms.membership(&sale(), 3, &user("b")).await, Ok(Some(first.clone())));
    let later = member("b", 9, JoinWindow::Later);
    assert_eq!(rooms.join(&later, 3, unvisited(4)).await.as_ref(), Ok(&first), "another index");
    let of_club = Membership { group: group("club"), ..later.clone() };
    assert_eq!(rooms.join(&of_club, 3, unvisited(5)).await.as_ref(), Ok(&first), "another group");
    assert_eq!(rooms.join(&later, 3, unvisited(5)).await.as_ref(), Ok(&later));
    assert_eq!(rooms.join(&later, 3, unvisited(5)).await.as_ref(), Ok(&later), "done before");
    assert!(rooms.join(&member("x", 1, JoinWindow::Later), 3, unvisited(0)).await.is_err());

    // A marker is no membership, wherever it sorts.
    assert_eq!(rooms.is_marked(&sale(), 3).await, Ok(false));
    for _ in 0..2 {
        assert_eq!(rooms.mark(&sale(), 3).await, Ok(()));
    }
    assert_eq!(rooms.is_marked(&sale(), 3).await, Ok(true));
    assert_eq!(rooms.is_marked(&sale(), 4).await, Ok(false));
    let mut expected = vec![later];
    for (buyer, number) in [("张", 1), ("zz", 2), ("Z", 3), ("a", 4), ("only", 5)] {
        let member = member(buyer, number, JoinWindow::First);
        rooms.join(&member, 3, None).await.unwrap();
        expected.push(member);
    }
    rooms.join(&member("elsewhere", 9, JoinWindow::First), 4, None).await.unwrap();
    expected.sort_by(|one, other| one.buyer.cmp(&other.buyer));
    assert_eq!(everybody(rooms, 3, None).await, expected);
    assert_eq!(everybody(rooms, 3, Some(&user("b"))).await, expected[3..]);
    assert_eq!(everybody(rooms, 3, Some(&user("c"))).await, expected[3..], "nobody of that name");
}

/// Admissions of members: each by the rule of [`Enter::reply`].
async fn keeps_visits(rooms: &impl Rooms) {
    let visit =
        |clock_ms: u64, attempts| Visit { place: 7, turn: 12, began_clock_ms: clock_ms, attempts };
    let enter = |buyer: &str, index, clock_ms| Enter {
        sale: sale(),
        bucket: 9,
        buyer: user(buyer),
        group: group("all"),
        index,
        visit: visit(clock_ms, 1),
        begun_only: false,
        visit_ms: 600_000,
        max_attempts: 3,
    };
    let did = |clock_ms, attempts, begins, more_time| {
        Ok(EnterReply::Entered(Entered { visit: visit(clock_ms, attempts), begins, more_time }))
    };
    let begun = |clock_ms| did(clock_ms, 1, true, false);
    let entered = |clock_ms, attempts| did(clock_ms, attempts, false, false);
    let plain = member("plain", 1, JoinWindow::First);
    let slow = Membership { more_time: true, rejoined: 2, ..member("slow", 2, JoinWindow::Later) };
    for member in [&plain, &slow] {
        rooms.join(member, 9, None).await.unwrap();
        assert_eq!(rooms.membership(&sale(), 9, &member.buyer).await, Ok(Some(member.clone())));
    }
    let ask = async |enter: Enter| rooms.enter(&enter).await;
    assert_eq!(ask(enter("nobody", 1, 5_000)).await, Ok(EnterReply::NotMember));
    assert_eq!(ask(enter("plain", 2, 5_000)).await, Ok(EnterReply::NotMember));
    let of_club = Enter { group: group("club"), ..enter("plain", 1, 5_000) };
    assert_eq!(ask(of_club).await, Ok(EnterReply::NotMember));
    let run_out = |clock_ms| Enter { begun_only: true, ..enter("plain", 1, clock_ms) };
    assert_eq!(ask(run_out(5_000)).await, Ok(EnterReply::RunOut));
    assert_eq!(ask(enter("plain", 1, 5_000)).await, begun(5_000));
    // An older view, another place and turn: the visit stays as it began.
    let other = Visit { place: 8, turn: 13, ..visit(0, 1) };
    assert_eq!(ask(Enter { visit: other, ..enter("plain", 1, 0) }).await, entered(5_000, 2));
    assert_eq!(ask(run_out(605_000)).await, Ok(EnterReply::Over));
    assert_eq!(ask(run_out(604_999)).await, entered(5_000, 3));
    assert_eq!(ask(enter("plain", 1, 604_999)).await, Ok(EnterReply::TooManyAttempts));
    assert_eq!(ask(enter("plain", 1, 605_000)).await, Ok(EnterReply::Over));
    let kept = Membership { visit: Some(visit(5_000, 3)), ..plain.clone() };
    assert_eq!(rooms.membership(&sale(), 9, &plain.buyer).await, Ok(Some(kept)));

    let end_ms = 600_000 * MORE_TIME_FACTOR;
    assert_eq!(ask(enter("slow", 2, 0)).await, did(0, 1, true, true));
    assert_eq!(ask(enter("slow", 2, end_ms - 1)).await, did(0, 2, false, true));
    assert_eq!(ask(enter("slow", 2, end_ms)).await, Ok(EnterReply::Over));
    // Who joins again begins anew.
    let again = member("plain", 3, JoinWindow::Later);
    let old = Replaced { index: 1, attempts: Some(2) };
    let kept = rooms.join(&again, 9, Some(old)).await.unwrap();
    assert_eq!(kept.index.number, 1, "its visit went on meanwhile");
    rooms.join(&again, 9, Some(Replaced { attempts: Some(3), ..old })).await.unwrap();
    assert_eq!(ask(enter("plain", 1, 5_000)).await, Ok(EnterReply::NotMember));
    assert_eq!(ask(enter("plain", 3, 700_000)).await, begun(700_000));

    // Who looks begins the visit, and keeps it when the place has run out; no attempt is used up.
    let looker = member("looker", 4, JoinWindow::First);
    rooms.join(&looker, 9, None).await.unwrap();
    let look = |clock_ms| Enter { visit: visit(clock_ms, 0), ..enter("looker", 4, clock_ms) };
    let late = |enter: Enter| Enter { begun_only: true, ..enter };
    assert_eq!(ask(late(look(0))).await, Ok(EnterReply::RunOut));
    assert_eq!(ask(Enter { index: 5, ..look(0) }).await, Ok(EnterReply::NotMember));
    assert_eq!(ask(look(1_000)).await, did(1_000, 0, true, false));
    for again in [look(2_000), late(look(300_000))] {
        assert_eq!(ask(again).await, did(1_000, 0, false, false), "another device");
    }
    assert_eq!(ask(late(enter("looker", 4, 300_000))).await, entered(1_000, 1));
    assert_eq!(ask(look(600_999)).await, entered(1_000, 1));
    assert_eq!(ask(look(601_000)).await, Ok(EnterReply::Over));
    let kept = Membership { visit: Some(visit(1_000, 1)), ..looker.clone() };
    assert_eq!(rooms.membership(&sale(), 9, &looker.buyer).await, Ok(Some(kept)));
}

async fn keeps_leaves(rooms: &impl Rooms) {
    let hashes = |count: usize, byte: u8| vec![Hash([byte; 32]); count];
    let all = group("all");
    assert_eq!(rooms.chunk(&sale(), &all, 0).await, Ok(None));
    let (full, last) = (hashes(CHUNK_LEAVES, 1), hashes(1, 2));
    assert_eq!(rooms.keep_chunk(&sale(), &all, 0, &full).await.as_ref(), Ok(&full));
    assert_eq!(rooms.keep_chunk(&sale(), &all, 1, &last).await.as_ref(), Ok(&last));
    assert_eq!(rooms.keep_chunk(&sale(), &all, 0, &last).await.as_ref(), Ok(&full), "the first");
    assert_eq!(rooms.chunk(&sale(), &all, 0).await, Ok(Some(full)));
    assert_eq!(rooms.chunk(&sale(), &group("club"), 0).await, Ok(None));

    // The largest tree fits its item; the smallest has no chunk.
    let largest = Tree { count: 10_240_000, chunk_roots: hashes(MAX_CHUNKS, 3) };
    let smallest = Tree { count: 0, chunk_roots: Vec::new() };
    assert_eq!(rooms.tree(&sale(), &all).await, Ok(None));
    assert_eq!(rooms.keep_tree(&sale(), &all, &largest).await.as_ref(), Ok(&largest));
    assert_eq!(rooms.keep_tree(&sale(), &all, &smallest).await.as_ref(), Ok(&largest));
    assert_eq!(rooms.tree(&sale(), &all).await, Ok(Some(largest)));
    let nobody = group("nobody");
    assert_eq!(rooms.keep_tree(&sale(), &nobody, &smallest).await.as_ref(), Ok(&smallest));
    assert_eq!(rooms.tree(&sale(), &nobody).await, Ok(Some(smallest)));
}

async fn keeps_the_contract(rooms: &impl Rooms) {
    keeps_secrets_and_a_log(rooms).await;
    counts(rooms).await;
    keeps_memberships(rooms).await;
    keeps_visits(rooms).await;
    keeps_leaves(rooms).await;
}

#[tokio::test]
async fn the_adapter_keeps_the_contract() {
    let fixture = Fixture::new().await;
    keeps_the_contract(&DynamoRooms::new(fixture.db.clone())).await;
}

#[tokio::test]
async fn the_model_keeps_the_contract() {
    keeps_the_contract(&Caller(Memory::default())).await;
}

#[tokio::test]
async fn what_is_taken_at_once_is_taken_once() {
    let fixture = Fixture::new().await;
    let rooms = DynamoRooms::new(fixture.db.clone());
    let (sale, all) = (sale(), group("all"));
    let closing = rooms.close_window(&sale, &all);
    let taking = join_all((0..40).map(|_| rooms.take_indices(&sale, &all, 3)));
    let (count, taken) = futures_util::future::join(closing, taking).await;
    let count = count.unwrap();
    let mut seen = BTreeSet::new();
    for TakenIndices { first, window, .. } in taken.into_iter().map(Result::unwrap) {
        assert!((0..3).all(|index| seen.insert(first + index)), "{first} is taken twice");
        assert_eq!(window == JoinWindow::First, first < count, "{first} of {count}");
    }
    assert_eq!(seen, (0..120).collect());
}

#[tokio::test]
async fn devices_that_enter_at_once_share_the_attempts_of_one_visit() {
    let fixture = Fixture::new().await;
    let rooms = DynamoRooms::new(fixture.db.clone());
    rooms.join(&member("b", 5, JoinWindow::First), 3, None).await.unwrap();
    let enter = |clock_ms: u64| Enter {
        sale: sale(),
        bucket: 3,
        buyer: user("b"),
        group: group("all"),
        index: 5,
        visit: Visit { place: 7, turn: 12, began_clock_ms: clock_ms, attempts: 1 },
        begun_only: false,
        visit_ms: 600_000,
        max_attempts: 4,
    };
    let enters: Vec<Enter> = (0..12).map(enter).collect();
    let replies = join_all(enters.iter().map(|enter| rooms.enter(enter))).await;
    let mut attempts = Vec::new();
    let (mut began, mut beginners) = (BTreeSet::new(), 0);
    for reply in replies {
        match reply.unwrap() {
            EnterReply::Entered(Entered { visit, begins, .. }) => {
                attempts.push(visit.attempts);
                began.insert(visit.began_clock_ms);
                beginners += usize::from(begins);
            }
            EnterReply::TooManyAttempts => {}
            refused @ (EnterReply::NotMember | EnterReply::RunOut | EnterReply::Over) => {
                panic!("{refused:?}")
            }
        }
    }
    attempts.sort_unstable();
    assert_eq!((attempts, began.len(), beginners), (vec![1, 2, 3, 4], 1, 1));
}

#[tokio::test]
async fn an_attempt_whose_answer_was_lost_finds_its_own() {
    let fixture = Fixture::new().await;
    let lose_the_first =
        |_: &Request, before: usize| if before == 0 { Act::LoseAnswer } else { Act::Forward };
    let proxies = Mutex::new(Vec::new());
    let losing = async || {
        let proxy = HttpProxy::start(&fixture.server.url, lose_the_first).await.unwrap();
        let rooms = DynamoRooms::new(fixture.db_at(proxy.url(), 4));
        proxies.lock().unwrap().push(proxy);
        rooms
    };
    let record = Record::first(room(), 7);
    assert_eq!(losing().await.append(&sale(), &record).await, Ok(AppendReply::Appended));
    let secret = Secret([1; 32]);
    assert_eq!(losing().await.keep_secret(&sale(), &secret).await, Ok(secret));
    let first = member("b", 5, JoinWindow::First);
    assert_eq!(losing().await.join(&first, 3, None).await.as_ref(), Ok(&first));
    let later = member("b", 9, JoinWindow::Later);
    assert_eq!(losing().await.join(&later, 3, unvisited(5)).await.as_ref(), Ok(&later));
    let enter = Enter {
        sale: sale(),
        bucket: 3,
        buyer: user("b"),
        group: group("all"),
        index: 9,
        visit: Visit { place: 7, turn: 12, began_clock_ms: 0, attempts: 1 },
        begun_only: false,
        visit_ms: 600_000,
        max_attempts: 2,
    };
    let visit = Visit { attempts: 2, ..enter.visit };
    let entered = EnterReply::Entered(Entered { visit, begins: false, more_time: false });
    assert_eq!(losing().await.enter(&enter).await, Ok(entered), "a lost answer costs an attempt");
    // What was taken and not answered is a gap.
    let taken = losing().await.take_indices(&sale(), &group("all"), 4).await.unwrap();
    assert_eq!((taken.first, taken.count), (4, 4));
    let count = losing().await.close_window(&sale(), &group("all")).await;
    assert_eq!(count, Ok(8));
}

#[tokio::test]
async fn a_page_that_ends_early_says_where_the_next_one_begins() {
    let fixture = Fixture::new().await;
    let proxy = HttpProxy::start(&fixture.server.url, |_, _| {
        let key = json!({ "pk": { "S": "members#show#3" }, "sk": { "S": "buyer#m" } });
        Act::Answer(200, json!({ "Items": [], "Count": 0, "LastEvaluatedKey": key }))
    });
    let proxy = proxy.await.unwrap();
    let rooms = DynamoRooms::new(fixture.db_at(proxy.url(), 1));
    let page = rooms.memberships(&sale(), 3, Some(&user("c"))).await.unwrap();
    assert_eq!((page.memberships, page.next), (Vec::new(), Some(user("m"))));
    let seen = proxy.seen("Query");
    let query = &seen[0].body;
    assert_eq!(query["ExclusiveStartKey"]["sk"]["S"], "buyer#c");
    assert_eq!(query["ConsistentRead"], true);
    let tables: &Tables = &fixture.db.config().tables;
    assert_eq!(query["TableName"], tables.rooms);
}

/// Rooms in DynamoDB, in four buckets, and a beacon in memory.
struct Environment {
    rooms: DynamoRooms,
    beacon: Caller<Memory>,
}

impl RoomPorts for Environment {
    type Rooms = DynamoRooms;
    type Beacon = Caller<Memory>;
    fn rooms(&self) -> &DynamoRooms {
        &self.rooms
    }
    fn beacon(&self) -> &Self::Beacon {
        &self.beacon
    }
    fn buckets(&self) -> u16 {
        4
    }
}

async fn joining(ports: &Environment, stock: &Mutex<IndexStock>, number: u32) -> Joined {
    let nonce = Nonce([u8::try_from(number % 251).unwrap(); 16]);
    let (sale, group, buyer) = (sale(), group("all"), user(number));
    join(
        ports,
        stock,
        &JoinRequest { sale, group, buyer, nonce, more_time: false, code: None },
        NOW,
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn a_room_is_joined_and_drawn_by_two_at_once() {
    let fixture = Fixture::new().await;
    let memory = Memory::default();
    memory.0.lock().unwrap().beacon.latest = Some(ROUND - 1);
    let rooms = DynamoRooms::new(fixture.db.clone());
    let ports = Environment { rooms, beacon: Caller(memory.clone()) };
    let Room { settings, .. } = room();
    let by = DrawBy::Beacon(CHAIN);
    let published = publish(&ports, &sale(), &settings, 40, &by, NOW).await.unwrap();
    assert_eq!(published, room());
    assert_eq!(draw(&ports, &sale(), NOW.plus_ms(-1)).await, Ok(Drawing::NotDue(NOW)));

    let stock = Mutex::new(IndexStock::default());
    let early = join_all((0..60).map(|number| joining(&ports, &stock, number))).await;
    assert!(early.iter().all(|joined| joined.standing == Standing::Certain));
    let (one, other, late) = futures_util::future::join3(
        draw(&ports, &sale(), NOW),
        draw(&ports, &sale(), NOW),
        join_all((60..90).map(|number| joining(&ports, &stock, number))),
    )
    .await;
    for drawing in [one, other] {
        assert_eq!(
            drawing,
            Ok(Drawing::AwaitsBeacon {
                round: ROUND,
                out_at: Timestamp::from_ms(CHAIN.time_ms(ROUND))
            })
        );
    }
    memory.0.lock().unwrap().beacon.latest = Some(ROUND);
    assert_eq!(draw(&ports, &sale(), NOW).await, Ok(Drawing::Drawn));

    // Whoever was told is in the tree, whoever was not is told now.
    let tree = ports.rooms.tree(&sale(), &group("all")).await.unwrap().unwrap();
    let mut leaves = Vec::new();
    for (chunk, _) in (0..).zip(&tree.chunk_roots) {
        leaves.extend(ports.rooms.chunk(&sale(), &group("all"), chunk).await.unwrap().unwrap());
    }
    let log = ports.rooms.last_record(&sale()).await.unwrap().unwrap();
    let closing = log.state.groups[0].closed.unwrap().closing;
    assert_eq!((closing.count, closing.root), (tree.count, tree.root()));
    assert!(log.state.groups[0].seed.is_some());
    let mut indices = BTreeSet::new();
    for told in early.iter().chain(&late) {
        let number: u32 = told.membership.buyer.as_str().parse().unwrap();
        let now = joining(&ports, &stock, number).await;
        let Joined { membership: Membership { index, buyer, .. }, standing } = &now;
        assert_eq!(*standing, Standing::Certain, "{buyer}");
        let is_kept = now.membership == told.membership;
        assert!(is_kept || told.standing == Standing::Undecided, "{buyer}");
        assert!(indices.insert(index.number), "{} is held twice", index.number);
        let at = usize::try_from(index.number).unwrap();
        let is_in_tree = leaves.get(at) == Some(&now.membership.leaf());
        assert_eq!(is_in_tree, index.window == JoinWindow::First, "{buyer}");
        let bucket = bucket_of(buyer, 4);
        let kept = ports.rooms.membership(&sale(), bucket, buyer).await;
        assert_eq!(kept, Ok(Some(now.membership.clone())));
    }
}

#[tokio::test]
async fn a_draw_of_many_goes_on_from_what_is_kept() {
    let ports = Caller(Memory::default());
    let mut settings = room().settings;
    settings.groups.push(GroupSettings { group: group("club"), share: 1, codes: false });
    let secret = Secret([4; 32]);
    publish(&ports, &sale(), &settings, 40, &DrawBy::Secret(secret), NOW).await.unwrap();
    let members = async |name: &str, count: u16| {
        let taken = ports.take_indices(&sale(), &group(name), count).await.unwrap();
        let numbers = taken.first..taken.first + u32::from(count);
        let of_group = |number| {
            let buyer = format!("{name} {number}");
            Membership { group: group(name), ..member(&buyer, number, JoinWindow::First) }
        };
        let members: Vec<Membership> = numbers.map(of_group).collect();
        for member in &members {
            ports.join(member, bucket_of(&member.buyer, BUCKETS), None).await.unwrap();
        }
        members
    };
    let (all, club) = (members("all", 3_000).await, members("club", 5).await);
    // An earlier run kept a chunk, died, and had not seen the last member of it.
    let late = &all[2 * CHUNK_LEAVES - 1];
    let mut leaves: Vec<Hash> = all.iter().map(Membership::leaf).collect();
    leaves[2 * CHUNK_LEAVES - 1] = empty_leaf();
    let kept = &leaves[CHUNK_LEAVES..2 * CHUNK_LEAVES];
    ports.keep_chunk(&sale(), &group("all"), 1, kept).await.unwrap();

    assert_eq!(draw(&ports, &sale(), NOW).await, Ok(Drawing::Drawn));
    let last = ports.last_record(&sale()).await.unwrap().unwrap();
    let club_leaves: Vec<Hash> = club.iter().map(Membership::leaf).collect();
    for (state, leaves) in last.state.groups.iter().zip([&leaves, &club_leaves]) {
        let closing = state.closed.unwrap().closing;
        assert_eq!(usize::try_from(closing.count), Ok(leaves.len()));
        assert_eq!(closing.root, root(leaves));
        let source = Source::Secret(secret);
        let group = if leaves.len() > 5 { group("all") } else { group("club") };
        assert_eq!(state.seed, Some(closing.seed(&sale(), &group, &source)));
    }
    assert_eq!(draw(&ports, &sale(), NOW).await, Ok(Drawing::Drawn), "once more");
    assert_eq!(ports.last_record(&sale()).await, Ok(Some(last)), "nothing is added");

    let stock = Mutex::new(IndexStock::default());
    let ask = async |member: &Membership| {
        let Membership { sale, group, buyer, .. } = member.clone();
        join(
            &ports,
            &stock,
            &JoinRequest {
                sale,
                group,
                buyer,
                nonce: Nonce([9; 16]),
                more_time: false,
                code: None,
            },
            NOW,
        )
        .await
    };
    for member in [&all[0], &all[2_999], &club[4]] {
        let joined = Joined { membership: member.clone(), standing: Standing::Certain };
        assert_eq!(ask(member).await, Ok(joined));
    }
    let joined = ask(late).await.unwrap();
    assert_eq!(joined.standing, Standing::Certain);
    assert_eq!(joined.membership.index, Index { number: 3_000, window: JoinWindow::Later });
}

#[tokio::test]
async fn a_secret_that_is_gone_or_wrong_draws_nothing() {
    for kept in [None, Some(Secret([9; 32]))] {
        let memory = Memory::default();
        let ports = Caller(memory.clone());
        let Room { settings, .. } = room();
        publish(&ports, &sale(), &settings, 40, &DrawBy::Secret(Secret([4; 32])), NOW)
            .await
            .unwrap();
        let secrets = kept.map(|kept| (sale(), kept));
        memory.0.lock().unwrap().rooms.secrets = secrets.into_iter().collect();
        assert_eq!(draw(&ports, &sale(), NOW).await, Ok(Drawing::NoSecret));
        let last = ports.last_record(&sale()).await.unwrap().unwrap();
        assert!(last.state.groups[0].closed.is_some() && last.state.groups[0].seed.is_none());
    }
}

#[tokio::test]
async fn a_room_is_published_once() {
    let ports = Caller(Memory::default());
    let Room { settings, .. } = room();
    let publishing = async |settings: &Settings, by: DrawBy| {
        publish(&ports, &sale(), settings, 40, &by, NOW).await
    };
    let secret = |byte| DrawBy::Secret(Secret([byte; 32]));
    let beacon = DrawBy::Beacon(CHAIN);
    assert_eq!(draw(&ports, &sale(), NOW).await, Ok(Drawing::NoRoom));
    let late = BeaconChain { period: 3, ..CHAIN };
    let refused = publishing(&settings, DrawBy::Beacon(late)).await;
    assert_eq!(refused, Err(publish::Refusal::Round(NoRound::Soon)), "it leaves no room behind");
    let first = publishing(&settings, secret(1)).await.unwrap();
    assert_eq!(first.draw, Terms::Secret(Secret([1; 32]).commitment()));
    assert_eq!(publishing(&settings, secret(2)).await, Ok(first.clone()), "the first secret's");
    let smaller = Settings { max_units: 3, ..settings.clone() };
    assert_eq!(publishing(&smaller, secret(1)).await, Ok(first), "orders may become smaller");
    let larger = Settings { max_units: 5, ..settings.clone() };
    assert_eq!(publishing(&larger, secret(1)).await, Err(publish::Refusal::Differs));
    let other = Settings { visit_ms: 700_000, ..settings.clone() };
    assert_eq!(publishing(&other, secret(1)).await, Err(publish::Refusal::Differs));
    assert_eq!(publishing(&settings, beacon).await, Err(publish::Refusal::Differs));
    let wrong = Settings { groups: Vec::new(), ..settings };
    let refused = publishing(&wrong, secret(1)).await;
    assert!(matches!(refused, Err(publish::Refusal::Settings(_))), "{refused:?}");
}

#[tokio::test]
async fn a_room_is_joined_while_it_lets_people_join() {
    let memory = Memory::default();
    let ports = Caller(memory.clone());
    let stock = Mutex::new(IndexStock::default());
    let ask = async |buyer: u32, now: Timestamp| {
        let (sale, group, buyer) = (sale(), group("all"), user(buyer));
        let request =
            JoinRequest { sale, group, buyer, nonce: Nonce([9; 16]), more_time: false, code: None };
        join(&ports, &stock, &request, now).await
    };
    let opens_at = NOW.plus_seconds(-60);
    let settings = Settings {
        joins_open_at_ms: Some(opens_at.ms()),
        registered_only: true,
        ..room().settings
    };
    publish(&ports, &sale(), &settings, 40, &DrawBy::Secret(Secret([4; 32])), NOW).await.unwrap();
    let early = ask(1, opens_at.plus_ms(-1)).await;
    assert_eq!(early, Err(join::Refusal::NotOpen(opens_at)));
    let member = ask(1, opens_at).await.unwrap();
    assert_eq!(ask(2, NOW).await, Err(join::Refusal::RegistrationOver), "by the clock");
    assert_eq!(ask(1, NOW).await, Ok(member.clone()), "who is a member stays one");
    // The counter decides, whatever a clock says; and it leaves no membership behind.
    ports.close_window(&sale(), &group("all")).await.unwrap();
    for _ in 0..2 {
        let late = ask(3, NOW.plus_ms(-1)).await;
        assert_eq!(late, Err(join::Refusal::RegistrationOver), "by the counter");
    }
    let members = &memory.0.lock().unwrap().rooms.members;
    assert_eq!(members.values().map(|bucket| bucket.len()).sum::<usize>(), 1);
}

#[tokio::test]
async fn who_cannot_join_is_told_why() {
    let memory = Memory::default();
    let ports = Caller(memory.clone());
    let stock = Mutex::new(IndexStock::default());
    let ask = async |name: &str| {
        let (sale, group, buyer) = (sale(), group(name), user(1));
        join(
            &ports,
            &stock,
            &JoinRequest {
                sale,
                group,
                buyer,
                nonce: Nonce([9; 16]),
                more_time: false,
                code: None,
            },
            NOW,
        )
        .await
    };
    assert_eq!(ask("all").await, Err(join::Refusal::NoRoom));
    let Room { settings, .. } = room();
    publish(&ports, &sale(), &settings, 40, &DrawBy::Secret(Secret([4; 32])), NOW).await.unwrap();
    assert_eq!(ask("club").await, Err(join::Refusal::UnknownGroup));
    let counter = Counter { next: MAX_INDICES, closed: None };
    memory.0.lock().unwrap().rooms.counters.insert((sale(), group("all")), counter);
    assert_eq!(ask("all").await, Err(join::Refusal::Full));
}
