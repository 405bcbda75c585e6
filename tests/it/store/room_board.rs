//! The board of a waiting room: one contract that the adapter keeps on a real server and its model in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::domain::admission::room::counts::{
    Came, Coming, Entry, MarkCounts, ReservationReport, Tally,
};
use engine::domain::admission::room::serving::{Mode, Reservations};
use engine::domain::admission::room::slot::Asked;
use engine::domain::admission::room::view::{GroupView, View};
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::ports::{Board, Shown, Stored};
use futures_util::future::join_all;
use local::servers::{Flavour, RedisOptions, RedisServer};
use model_stores::{Call, Caller, Driver, Reply, Stores};
use redis::aio::MultiplexedConnection;
use shared::redis::{Bounds, Connection, RedisBoard, Topology};

use super::NOW;

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

fn shown(number: u64, made_at: Timestamp) -> Shown {
    let group = GroupView { serving: 7, passed: 3, drawn: None, window_end: 9, marks: vec![1, 2] };
    let view = View {
        number,
        mode: Mode::Open,
        sold_out: true,
        clock_ms: 61_000,
        requests_per_second: 8_000,
        groups: vec![group],
    };
    Shown { view, document: format!("{{\"record\":{number}}}"), made_at }
}

async fn never_goes_back(board: &impl Board) {
    assert_eq!(board.shown(&sale()).await, Ok(None));
    let second = |seconds| NOW.plus_seconds(seconds);
    // Of what is written in any order, what is shown is of the last record, and the last made of it.
    for (number, made_at, expected) in [
        (9, second(5), (9, second(5))),
        (10, second(1), (10, second(1))),
        (9, second(9), (10, second(1))),
        (10, second(0), (10, second(1))),
        (10, second(2), (10, second(2))),
        (10, second(2), (10, second(2))),
    ] {
        board.show(&sale(), &shown(number, made_at)).await.unwrap();
        let expected = shown(expected.0, expected.1);
        assert_eq!(board.shown(&sale()).await, Ok(Some(expected)), "{number} {made_at}");
    }
    let other = SaleId::new("other").unwrap();
    assert_eq!(board.shown(&other).await, Ok(None));
}

async fn counts(board: &impl Board) {
    let epoch = u64::try_from(NOW.ms()).unwrap();
    let nobody = Tally { epoch, ..Tally::default() };
    assert_eq!(board.tally(&sale(), 0, NOW).await, Ok(nobody.clone()));
    let later = NOW.plus_seconds(60);
    assert_eq!(board.tally(&sale(), 0, later).await, Ok(nobody), "the epoch stays");
    let asks = |due_mark| Coming::Asks { due_mark };
    let decides = |is_late| Coming::Decides { is_late };
    for (mark, how) in [
        (5, asks(4)),
        (6, asks(4)),
        (6, asks(5)),
        (6, Coming::Looks { due_mark: 4 }),
        (6, Coming::Looks { due_mark: 4 }),
        (6, Coming::Looks { due_mark: 6 }),
        (6, decides(false)),
        (6, decides(true)),
    ] {
        let came = Came { entry: Entry { mark }, how };
        board.came(&sale(), &came, later).await.unwrap();
    }
    let report = |mark: Option<u64>, held, is_bad| ReservationReport {
        entry: mark.map(|mark| Entry { mark }),
        held,
        is_bad,
    };
    for (at, report) in [
        (later, report(Some(5), 3, false)),
        (later, report(Some(6), 0, true)),
        (later.plus_ms(999), report(None, 2, true)),
        (later.plus_seconds(4), report(Some(6), 4, false)),
    ] {
        board.reserved(&sale(), &report, at).await.unwrap();
    }
    let mark =
        |came, entered, ordered| MarkCounts { came, entered, ordered, ..MarkCounts::default() };
    let looked = MarkCounts { looked: 3, asked: 1, asked_late: 1, ..mark(1, 4, 1) };
    let expected = Tally {
        epoch,
        came: 6,
        looked: 3,
        asked_after_look: 1,
        asked_late: 1,
        held: 7,
        marks: [(4, mark(4, 0, 0)), (5, mark(1, 1, 1)), (6, looked)].into(),
        reservations: Reservations { all: 4, bad: 2 },
        asked: 0,
    };
    assert_eq!(board.tally(&sale(), 0, later.plus_seconds(5)).await, Ok(expected.clone()));
    let [one, other] = ["7", "8"].map(|user| UserId::new(user).unwrap());
    // Of admissions that are noted in any order, the latest stays.
    for attempt in [2, 11, 3] {
        board.admitted(&sale(), &other, attempt).await.unwrap();
    }
    for (buyer, at, own, buyers, before, latest) in [
        (&one, later, 1, 1, 0, 0),
        (&other, later.plus_ms(999), 1, 2, 0, 11),
        (&one, later.plus_ms(999), 2, 2, 0, 0),
        (&one, later.plus_seconds(1), 1, 1, 2, 0),
    ] {
        let asked = Asked { own, buyers, before, latest };
        assert_eq!(board.asked(&sale(), buyer, at).await, Ok(asked));
    }
    // A second is over before it counts, and counts for five.
    for (after, all, bad, asked) in
        [(0, 0, 0, 0), (1, 3, 2, 2), (4, 3, 2, 3), (6, 1, 0, 1), (9, 1, 0, 0), (10, 0, 0, 0)]
    {
        let tally = board.tally(&sale(), 0, later.plus_seconds(after)).await.unwrap();
        assert_eq!(tally.reservations, Reservations { all, bad }, "{after}");
        assert_eq!(tally.asked, asked, "{after}");
    }
    // What is dropped is dropped, and the totals stay.
    for oldest in [5, 0] {
        let tally = board.tally(&sale(), oldest, NOW).await.unwrap();
        assert_eq!(tally.marks.keys().copied().collect::<Vec<_>>(), [5, 6], "{oldest}");
        assert_eq!((tally.came, tally.held), (expected.came, expected.held));
    }
}

async fn keeps_the_contract(board: &impl Board) {
    never_goes_back(board).await;
    for is_ours in [true, false] {
        assert_eq!(board.take_turn(&sale(), 600_000).await, Ok(is_ours));
        assert_eq!(board.take_draw(&sale(), 600).await, Ok(is_ours));
    }
    counts(board).await;
}

async fn on(flavour: Flavour) -> (RedisServer, RedisBoard, MultiplexedConnection) {
    let options = RedisOptions::default().flavour(flavour);
    let server = RedisServer::start(options).await.unwrap();
    // Nothing here is about being late.
    let seconds = Duration::from_secs(30);
    let bounds = Bounds { connect: seconds, response: seconds, attempts: 1, ..Bounds::default() };
    let topology = Topology::Single(server.url());
    let board = RedisBoard::new(Connection::new(&topology, bounds).unwrap());
    let connection = server.connect().await.unwrap();
    (server, board, connection)
}

#[tokio::test]
async fn the_model_keeps_the_contract() {
    keeps_the_contract(&Caller(Memory::default())).await;
}

#[tokio::test]
async fn the_adapter_keeps_the_contract_and_every_key_has_a_time_to_live() {
    for flavour in [Flavour::Valkey, Flavour::Redis] {
        let (_server, board, mut redis) = on(flavour).await;
        keeps_the_contract(&board).await;
        let mut keys: Vec<String> =
            redis::cmd("KEYS").arg("*").query_async(&mut redis).await.unwrap();
        keys.sort_unstable();
        assert!(
            keys.len() >= 5 && keys.iter().all(|key| key.starts_with("{room:show}:")),
            "{keys:?}"
        );
        for key in &keys {
            let seconds: i64 = redis::cmd("TTL").arg(key).query_async(&mut redis).await.unwrap();
            assert!(seconds > 0, "{key} stays");
        }
        let texts: u64 =
            redis::cmd("ZCARD").arg("{room:show}:board").query_async(&mut redis).await.unwrap();
        assert_eq!(texts, 1, "what is not shown is removed");
        // Redis forgets: the counters begin again in another epoch, and somebody else takes the turn.
        let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
        assert_eq!(board.shown(&sale()).await, Ok(None));
        assert_eq!(board.take_turn(&sale(), 600_000).await, Ok(true));
        let came = Came { entry: Entry { mark: 2 }, how: Coming::Asks { due_mark: 1 } };
        let later = NOW.plus_seconds(100);
        board.came(&sale(), &came, later).await.unwrap();
        let tally = board.tally(&sale(), 0, later.plus_seconds(9)).await.unwrap();
        assert_eq!((tally.epoch, tally.came), (u64::try_from(later.ms()).unwrap(), 1));
    }
}

#[tokio::test]
async fn writers_at_once_leave_the_last_record_shown() {
    let (_server, board, _redis) = on(Flavour::Valkey).await;
    // In an order that is neither up nor down.
    let numbers: Vec<u64> = (0..64).map(|number| number * 37 % 64).collect();
    let writes = numbers.iter().map(|number| {
        let shown = shown(*number, NOW);
        let board = board.clone();
        async move { board.show(&sale(), &shown).await }
    });
    for written in join_all(writes).await {
        written.unwrap();
    }
    assert_eq!(board.shown(&sale()).await, Ok(Some(shown(63, NOW))));
}
