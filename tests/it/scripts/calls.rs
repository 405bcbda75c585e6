//! What a random sequence does not show: lost replies, dead connections, a cold script cache, full
//! memory, and which keys the scripts touch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::domain::basics::ids::{
    Epoch, InventoryId, Leg, Legs, RequestFingerprint, SaleId, Seat, TierId, UserId,
};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::{Choice, Offset, Together};
use engine::domain::inventory::{
    Freed, Hold, HoldRecord, HoldReply, Inventory, Line, Load, LoadReply, Mark, Release,
    ReleaseReply, SeatLeg, Sell, SellReply, Terms, TierGrid,
};
use engine::domain::sale::SaleState;
use engine::ports::{Seats as _, StoreError};
use local::servers::{Flavour, RedisServer};
use shared::redis::keys::InventoryKeys;
use shared::redis::{Bounds, Connection, RedisSeats, Scripts, Topology};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::environment::Fixture;
use super::log::Log;
use super::wire::{Loss, Wire};
use super::{connect, long_deadlines, server};

const NOW: Timestamp = Timestamp::from_ms(1_795_000_000_000);

pub(super) fn inventory() -> InventoryId {
    InventoryId::whole(SaleId::new("show").unwrap())
}

pub(super) fn tier() -> TierId {
    TierId::new("a").unwrap()
}

pub(super) fn epoch() -> Epoch {
    Epoch::new("e1").unwrap()
}

/// A sale of one tier, four rows of eight seats.
pub(super) fn load(legs: u16) -> Load {
    let terms = Terms {
        state: SaleState::Open,
        opens_at: NOW,
        closes_at: NOW.plus_seconds(3600),
        limit: Tickets::new(1000),
        leg_count: legs,
    };
    let empty = || (0..legs).map(|_| vec![0; 4]).collect();
    let grid = TierGrid {
        tier: tier(),
        row_bytes: 1,
        middles: Vec::new(),
        taken: empty(),
        sold: empty(),
        freed: Freed::default(),
    };
    Load {
        inventory: inventory(),
        terms,
        expected: None,
        epoch: epoch(),
        tiers: vec![grid],
        holds: BTreeMap::new(),
        bought: BTreeMap::new(),
    }
}

pub(super) fn hold(order: u64, legs: Legs, choice: Choice) -> Hold {
    Hold {
        inventory: inventory(),
        epoch: epoch(),
        order: order.to_string().parse().unwrap(),
        user: UserId::new("alice").unwrap(),
        fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
        now: NOW,
        deadline: NOW.plus_seconds(600),
        replaced: Tickets::NONE,
        lines: vec![Line { tier: tier(), legs, choice }],
    }
}

pub(super) fn best(count: u16) -> Choice {
    Choice::Best { count, together: Together::Required }
}

pub(super) fn seats_of(reply: &HoldReply) -> Vec<u32> {
    let HoldReply::Held { record, .. } = reply else { panic!("not held: {reply:?}") };
    record.lines[0].seats.iter().map(|seat| seat.0).collect()
}

pub(super) fn record_of(reply: HoldReply) -> HoldRecord {
    let HoldReply::Held { record, .. } = reply else { panic!("not held: {reply:?}") };
    record
}

async fn loaded(server: &RedisServer, legs: u16) -> RedisSeats {
    let seats = RedisSeats::new(connect(server));
    assert_eq!(seats.load(&load(legs)).await, Ok(LoadReply::Loaded));
    seats
}

async fn tell(server: &RedisServer, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    let mut connection = server.connect().await.unwrap();
    command.query_async::<redis::Value>(&mut connection).await.unwrap();
}

#[tokio::test]
async fn a_cold_script_cache_is_filled_by_the_call_that_meets_it() {
    let server = server(Flavour::Valkey).await;
    let seats = loaded(&server, 1).await;
    for order in 1..4 {
        tell(&server, &["SCRIPT", "FLUSH"]).await;
        let reply = seats.hold(&hold(order, Legs::ONE, best(2))).await.unwrap();
        assert_eq!(seats_of(&reply)[0], (order as u32 - 1) * 2);
    }
}

#[tokio::test]
async fn a_hold_whose_reply_was_lost_is_answered_with_the_same_seats() {
    let server = server(Flavour::Valkey).await;
    let direct = loaded(&server, 1).await;
    let wire = Wire::to(server.port()).await;
    let once = Connection::new(&Topology::Single(wire.url()), long_deadlines()).unwrap();
    once.warm_up().await.unwrap();
    let seats = RedisSeats::new(once);
    let first = hold(1, Legs::ONE, best(3));
    direct.hold(&hold(9, Legs::ONE, best(1))).await.unwrap();

    wire.lose(Loss::Cut, 1);
    let lost = seats.hold(&first).await;
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    let record =
        direct.record(&inventory(), first.order).await.unwrap().expect("the hold was made");
    let again = seats.hold(&first).await.unwrap();
    assert_eq!(record_of(again), record);
    assert_eq!(direct.count_holds(&inventory()).await, Ok(2));

    let twice = Bounds { attempts: 2, ..long_deadlines() };
    let twice = Connection::new(&Topology::Single(wire.url()), twice).unwrap();
    twice.warm_up().await.unwrap();
    wire.lose(Loss::Cut, 1);
    let second = hold(2, Legs::ONE, best(2));
    let reply = RedisSeats::new(twice).hold(&second).await.unwrap();
    let record = direct.record(&inventory(), second.order).await.unwrap();
    assert_eq!(Some(record_of(reply)), record, "the repetition found what the first has done");
    assert_eq!(direct.count_holds(&inventory()).await, Ok(3));
}

/// Two clients lose the same replies; answers how long each has paused before it asked again, as it
/// says in the log. None has asked earlier than it says.
async fn pauses_of_two(server: &RedisServer, pauses: (Duration, Duration)) -> [Vec<Duration>; 2] {
    let wire = Wire::to(server.port()).await;
    let mut of_each = [Vec::new(), Vec::new()];
    for paused in &mut of_each {
        let bounds = Bounds { attempts: 2, pauses, ..long_deadlines() };
        let connection = Connection::new(&Topology::Single(wire.url()), bounds).unwrap();
        let seats = RedisSeats::new(connection);
        for _ in 0..4 {
            assert_eq!(seats.epoch(&inventory()).await, Ok(Some(epoch())));
            wire.lose(Loss::Cut, 1);
            let (log, _kept) = Log::keep();
            let since = Instant::now();
            assert_eq!(seats.epoch(&inventory()).await, Ok(Some(epoch())));
            let taken = since.elapsed();
            let lines = log.text();
            let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
            let pause = lines
                .filter_map(|line: serde_json::Value| line["fields"]["pause_us"].as_u64())
                .map(Duration::from_micros)
                .collect::<Vec<_>>();
            assert_eq!(pause.len(), 1, "one reply was lost");
            assert!(taken >= pause[0], "{taken:?}");
            paused.extend(pause);
        }
    }
    of_each
}

#[tokio::test]
async fn before_a_request_is_repeated_each_client_pauses_for_a_time_of_its_own() {
    let server = server(Flavour::Valkey).await;
    loaded(&server, 1).await;
    let (least, most) = Bounds::default().pauses;
    let kept = |[one, other]: &[Vec<Duration>; 2]| {
        let is_within = |pause: &Duration| (least..=most).contains(pause);
        one.iter().chain(other).all(is_within) && one != other
    };
    let paused = pauses_of_two(&server, (least, most)).await;
    assert!(kept(&paused), "{paused:?}");
    // What it was before: no pause; and what jitter is against: the same for all.
    for without in [(Duration::ZERO, Duration::ZERO), (least, least)] {
        let paused = pauses_of_two(&server, without).await;
        assert!(!kept(&paused), "{paused:?}");
    }
}

#[tokio::test]
async fn a_pause_takes_its_time_from_connecting() {
    let server = server(Flavour::Valkey).await;
    loaded(&server, 1).await;
    let wire = Wire::to(server.port()).await;
    let hour = Duration::from_secs(3600);
    let (short, long) = (Duration::from_secs(1), long_deadlines().connect);
    for (pauses, connect, is_answered) in
        [((hour, hour), short, false), (Bounds::default().pauses, long, true)]
    {
        let bounds = Bounds { connect, attempts: 2, pauses, ..long_deadlines() };
        let connection = Connection::new(&Topology::Single(wire.url()), bounds).unwrap();
        // A machine that is busy may take longer than the short time.
        while connection.warm_up().await.is_err() {}
        wire.lose(Loss::Cut, 1);
        let reply = RedisSeats::new(connection).epoch(&inventory()).await;
        match is_answered {
            true => assert_eq!(reply, Ok(Some(epoch()))),
            // What was sent may have run, also when there was no time left to repeat it.
            false => assert!(matches!(reply, Err(StoreError::Unknown(_))), "{reply:?}"),
        }
    }
}

#[tokio::test]
async fn a_connection_that_fell_silent_is_dropped_and_the_next_request_works() {
    let server = server(Flavour::Valkey).await;
    loaded(&server, 1).await;
    let wire = Wire::to(server.port()).await;
    let bounds = Bounds { response: Duration::from_millis(300), ..long_deadlines() };
    let connection = Connection::new(&Topology::Single(wire.url()), bounds).unwrap();
    connection.warm_up().await.unwrap();
    let seats = RedisSeats::new(connection);
    until_answered(&seats).await;
    wire.lose(Loss::Silence, 1);
    let silent = seats.epoch(&inventory()).await;
    assert!(matches!(silent, Err(StoreError::Unknown(_))), "{silent:?}");
    until_answered(&seats).await;
}

/// Asks until there is an answer: a machine that is busy may be late with one and another, where the bound
/// is short. On a connection that fell silent there is none ever.
async fn until_answered(seats: &RedisSeats) {
    let begun = Instant::now();
    loop {
        match seats.epoch(&inventory()).await {
            Ok(found) => return assert_eq!(found, Some(epoch())),
            Err(late) => assert!(begun.elapsed() < Duration::from_secs(120), "{late}"),
        }
    }
}

#[tokio::test]
async fn a_cluster_that_fell_silent_is_connected_to_anew() {
    let cluster = super::cluster().await;
    let bounds = Bounds { response: Duration::from_secs(1), ..long_deadlines() };
    let topology = Topology::Cluster(cluster.urls());
    let patient = Connection::new(&topology, long_deadlines()).unwrap();
    RedisSeats::new(patient).load(&load(1)).await.unwrap();
    let seats = RedisSeats::new(Connection::new(&topology, bounds).unwrap());
    until_answered(&seats).await;
    // A frozen server accepts everything and answers nothing.
    for node in cluster.nodes() {
        node.freeze().unwrap();
    }
    let silent = seats.epoch(&inventory()).await;
    assert!(matches!(silent, Err(StoreError::Unknown(_))), "{silent:?}");
    for node in cluster.nodes() {
        node.resume().unwrap();
    }
    until_answered(&seats).await;
}

#[tokio::test]
async fn nothing_was_sent_where_nobody_listens() {
    let mut server = server(Flavour::Valkey).await;
    let url = server.url();
    server.kill().unwrap();
    for topology in [Topology::Single(url.clone()), Topology::Cluster(vec![url])] {
        let bounds = Bounds { connect: Duration::from_secs(2), ..long_deadlines() };
        let seats = RedisSeats::new(Connection::new(&topology, bounds).unwrap());
        let refused = seats.epoch(&inventory()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{topology:?}: {refused:?}");
    }
}

#[tokio::test]
async fn what_only_a_bug_can_cause_is_told_apart() {
    let server = server(Flavour::Valkey).await;
    let seats = loaded(&server, 1).await;
    let beyond = hold(1, Legs::new(0, 2).unwrap(), best(1));
    let broken = seats.hold(&beyond).await;
    assert!(matches!(broken, Err(StoreError::Contract(_))), "{broken:?}");
    let mut twice = hold(1, Legs::ONE, best(1));
    twice.lines.push(twice.lines[0].clone());
    let broken = seats.hold(&twice).await;
    assert!(matches!(broken, Err(StoreError::Contract(_))), "{broken:?}");
    tell(&server, &["HSET", &InventoryKeys(&inventory()).sale(), "@alice", "no number"]).await;
    let broken = seats.hold(&hold(1, Legs::ONE, best(1))).await;
    assert!(matches!(broken, Err(StoreError::Contract(_))), "{broken:?}");
    assert_eq!(seats.count_holds(&inventory()).await, Ok(0));
    assert_eq!(seats.count_taken(&inventory(), &[tier()]).await, Ok(0));
}

#[tokio::test]
async fn full_memory_refuses_a_hold_whole_and_lets_orders_end() {
    for flavour in [Flavour::Valkey, Flavour::Redis] {
        let server = server(flavour).await;
        let seats = loaded(&server, 1).await;
        let first = record_of(seats.hold(&hold(1, Legs::ONE, best(2))).await.unwrap());
        let second = record_of(seats.hold(&hold(2, Legs::ONE, best(2))).await.unwrap());
        tell(&server, &["CONFIG", "SET", "maxmemory", "1"]).await;
        let refused = seats.hold(&hold(3, Legs::ONE, best(2))).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        assert_eq!(seats.count_taken(&inventory(), &[tier()]).await, Ok(4));
        let order = |number: u64| number.to_string().parse().unwrap();
        let release = Release { inventory: inventory(), order: order(1), record: first };
        assert_eq!(seats.release(&release).await, Ok(ReleaseReply::Released));
        let user = second.user.clone();
        let sell = Sell {
            inventory: inventory(),
            epoch: epoch(),
            order: order(2),
            user,
            lines: second.lines,
            freed: None,
        };
        assert_eq!(seats.sell(&sell).await, Ok(SellReply::Sold));
        assert_eq!(seats.count_taken(&inventory(), &[tier()]).await, Ok(2));
    }
}

/// The scripts with one fragment of one of them replaced.
fn with_mistake(script: &str, fragment: &str, with: &str) -> Arc<Scripts> {
    let mut scripts = Scripts::clone(&Scripts::standard());
    let slot = match script {
        "load" => &mut scripts.load,
        "mark" => &mut scripts.mark,
        _ => &mut scripts.release,
    };
    *slot = slot.replaced(fragment, with).expect("the fragment is in the script");
    Arc::new(scripts)
}

#[tokio::test]
async fn a_load_starts_over_when_another_came_between_its_steps() {
    let server = server(Flavour::Valkey).await;
    let first = loaded(&server, 1).await;
    let show = inventory();
    let keys = InventoryKeys(&show);
    // Read no tiers, as before the first load, and yet expects what the first load has written.
    let mut late = redis::cmd("EVAL");
    late.arg(Scripts::standard().load.source()).arg(4);
    late.arg(&[keys.sale(), keys.due(), keys.loading(), keys.loading_due()]);
    late.arg(&[epoch().as_str(), "e2", "0", "1", "open", "0", "1", "4", "1", "", ""]);
    late.arg(&["0", "0", "0"]);
    let mut connection = server.connect().await.unwrap();
    let reply: Vec<String> = late.query_async(&mut connection).await.unwrap();
    assert_eq!(reply, ["other_tiers"]);
    assert_eq!(first.epoch(&inventory()).await, Ok(Some(epoch())), "nothing was written");

    let condition = "(sale[2] or loading[3] or '') ~= old_tiers";
    let once = with_mistake("load", condition, "call('HSETNX', sale_key, 'other', '1') == 1");
    let again = Load { expected: Some(epoch()), epoch: Epoch::new("e2").unwrap(), ..load(1) };
    let seats = RedisSeats::with_scripts(connect(&server), once);
    assert_eq!(seats.load(&again).await, Ok(LoadReply::Loaded));
    let always = with_mistake("load", condition, "true");
    let seats = RedisSeats::with_scripts(connect(&server), always);
    let load = Load { expected: Some(again.epoch), epoch: epoch(), ..load(1) };
    let given_up = seats.load(&load).await;
    assert!(matches!(given_up, Err(StoreError::Unavailable(_))), "{given_up:?}");
}

#[tokio::test]
async fn a_search_goes_back_to_seats_that_a_mark_has_freed() {
    let server = server(Flavour::Valkey).await;
    let careless =
        with_mistake("mark", "if fields[i + 1] == '-' or", "if fields[i + 1] ~= '-' and");
    for (scripts, is_found) in [(Scripts::standard(), true), (careless, false)] {
        tell(&server, &["FLUSHALL"]).await;
        let seats = RedisSeats::with_scripts(connect(&server), scripts);
        let mut model = Inventory::default();
        let (both, second) = (Legs::new(0, 2).unwrap(), Legs::new(1, 2).unwrap());
        seats.load(&load(2)).await.unwrap();
        model.load(&load(2));
        let lost = record_of(seats.hold(&hold(1, both, best(1))).await.unwrap());
        model.hold(&hold(1, both, best(1)));
        // Fills every other seat of the second leg, so that the search ends with nothing left.
        for order in 2..5 {
            let eight = hold(order, second, best(8));
            assert_eq!(seats.hold(&eight).await.unwrap(), model.hold(&eight));
        }
        let seven = hold(6, second, best(7));
        assert_eq!(seats.hold(&seven).await.unwrap(), model.hold(&seven));
        let one = hold(7, second, best(1));
        assert_eq!(seats.hold(&one).await.unwrap(), HoldReply::SoldOut(tier()));
        let taken = vec![SeatLeg { tier: tier(), leg: Leg(0), seat: Seat(0) }];
        let order = "1".parse().unwrap();
        let mark = Mark { inventory: inventory(), order, record: lost, taken };
        assert_eq!(seats.mark(&mark).await.unwrap(), model.mark(&mark));
        let reply = seats.hold(&one).await.unwrap();
        assert_eq!(reply == model.hold(&one), is_found, "{reply:?}");
    }
}

#[tokio::test]
async fn a_pattern_goes_back_to_the_row_above_freed_seats() {
    let server = server(Flavour::Valkey).await;
    let careless = with_mistake("release", "math.max(row - reach, 0)", "row");
    for (scripts, is_found) in [(Scripts::standard(), true), (careless, false)] {
        tell(&server, &["FLUSHALL"]).await;
        let seats = RedisSeats::with_scripts(connect(&server), scripts);
        let mut model = Inventory::default();
        seats.load(&load(1)).await.unwrap();
        model.load(&load(1));
        // The seat below the first is taken; then the column is searched from the third row on.
        let below = hold(1, Legs::ONE, Choice::Seats(vec![Seat(8)]));
        let record = record_of(seats.hold(&below).await.unwrap());
        model.hold(&below);
        let offsets = vec![Offset { row: 1, column: 0 }];
        let column = |order| {
            let offsets = offsets.clone();
            hold(order, Legs::ONE, Choice::Pattern { column: 0, offsets })
        };
        assert_eq!(seats_of(&seats.hold(&column(2)).await.unwrap()), [16, 24]);
        model.hold(&column(2));
        let release = Release { inventory: inventory(), order: below.order, record };
        assert_eq!(seats.release(&release).await.unwrap(), model.release(&release));
        let reply = seats.hold(&column(3)).await.unwrap();
        assert_eq!(reply == model.hold(&column(3)), is_found, "{reply:?}");
    }
}

/// The words of a line of MONITOR: `+time [db client] "WORD" "word"`. Keys hold no quotes.
fn words(line: &str) -> Option<(bool, Vec<&str>)> {
    let (source, command) = line.split_once("] \"")?;
    let words = command.strip_suffix('"')?.split("\" \"").collect();
    Some((source.ends_with(" lua"), words))
}

#[tokio::test]
async fn no_script_touches_a_key_that_it_was_not_given() {
    let server = server(Flavour::Valkey).await;
    let mut monitor = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    monitor.write_all(b"MONITOR\r\n").await.unwrap();
    let mut lines = BufReader::new(monitor).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "+OK");
    let watching = tokio::spawn(async move {
        let (mut given, mut touched) = (Vec::<String>::new(), 0);
        while let Some(line) = lines.next_line().await.unwrap() {
            let Some((by_script, words)) = words(&line) else { continue };
            match (by_script, words[0]) {
                (false, "EVALSHA" | "EVAL") => {
                    let count: usize = words[2].parse().unwrap();
                    given = words[3..3 + count].iter().map(|key| (*key).to_owned()).collect();
                }
                (false, "ECHO") => break,
                (false, _) => {}
                (true, command) => {
                    let keys = match command {
                        "UNLINK" => &words[1..],
                        "RENAME" => &words[1..3],
                        _ => &words[1..2],
                    };
                    for key in keys {
                        touched += 1;
                        assert!(given.iter().any(|known| known == key), "{line}\nnot in {given:?}");
                    }
                }
            }
        }
        touched
    });
    let connection = connect(&server);
    for seed in 0..60 {
        Fixture::new(&connection, &Scripts::standard(), seed, "watched").run().await.unwrap();
    }
    tell(&server, &["ECHO", "end"]).await;
    let touched = watching.await.unwrap();
    println!("{touched} keys touched, all of them given");
    assert!(touched > 5000, "only {touched} keys were seen");
}

#[tokio::test]
async fn nothing_of_a_sale_has_a_time_to_live() {
    let server = server(Flavour::Valkey).await;
    let seats = loaded(&server, 2).await;
    let both = Legs::new(0, 2).unwrap();
    let record = record_of(seats.hold(&hold(1, both, best(2))).await.unwrap());
    seats.hold(&hold(2, both, best(2))).await.unwrap();
    let release = Release { inventory: inventory(), order: "1".parse().unwrap(), record };
    seats.release(&release).await.unwrap();
    let mut connection = server.connect().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert!(keys.len() >= 6, "{keys:?}");
    for key in keys {
        let ttl: i64 = redis::cmd("TTL").arg(&key).query_async(&mut connection).await.unwrap();
        assert_eq!(ttl, -1, "{key}");
    }
}

/// What a hold of one line does, command by command, as MONITOR shows it.
async fn commands_of_holds(
    server: &RedisServer,
    seats: &RedisSeats,
    holds: &[Hold],
) -> Vec<Vec<Vec<String>>> {
    let mut monitor = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    monitor.write_all(b"MONITOR\r\n").await.unwrap();
    let mut lines = BufReader::new(monitor).lines();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "+OK");
    for hold in holds {
        assert!(matches!(seats.hold(hold).await, Ok(HoldReply::Held { .. })), "{hold:?}");
    }
    tell(server, &["ECHO", "end"]).await;
    let mut seen: Vec<Vec<Vec<String>>> = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let Some((by_script, words)) = words(&line) else { continue };
        match (by_script, words[0]) {
            (false, "ECHO") => break,
            (false, "EVALSHA") => seen.push(Vec::new()),
            (false, _) => {}
            (true, _) => {
                let words = words.iter().map(|word| (*word).to_owned()).collect();
                seen.last_mut().unwrap().push(words);
            }
        }
    }
    seen
}

#[tokio::test]
async fn what_a_hold_does_and_reads_grows_neither_with_the_tier_nor_as_it_fills() {
    const ROW_BYTES: usize = 5;
    let server = server(Flavour::Valkey).await;
    let seats = RedisSeats::new(connect(&server));
    // So that no call meets a server that does not know the script, and sends it twice.
    tell(&server, &["SCRIPT", "LOAD", Scripts::standard().hold.source()]).await;
    for (rows, filled) in [(50, 0), (50, 50), (1250, 0), (1250, 90), (12_500, 90)] {
        tell(&server, &["FLUSHALL"]).await;
        // A single seat is left in every other full row: enough for one, not for two.
        let row = |row: usize| match (row * 100 < rows * filled, row % 2) {
            (false, _) => [0; ROW_BYTES],
            (true, 0) => [0xff; ROW_BYTES],
            (true, _) => [0xff, 0xff, 0xdf, 0xff, 0xff],
        };
        let taken: Vec<u8> = (0..rows).flat_map(row).collect();
        let mut load = load(1);
        load.tiers[0].row_bytes = ROW_BYTES as u32;
        load.tiers[0].sold = vec![vec![0; taken.len()]];
        load.tiers[0].taken = vec![taken];
        seats.load(&load).await.unwrap();
        let last = (rows * ROW_BYTES * 8) as u32 - 100;
        let beside = vec![Offset { row: 0, column: 2 }];
        let choices = |call: u32| {
            let together = Together::Preferred;
            [
                best(2),
                Choice::Best { count: 2, together },
                best(1),
                Choice::Pattern { column: 3, offsets: beside.clone() },
                Choice::Seats(vec![Seat(last + 2 * call), Seat(last + 2 * call + 1)]),
            ]
        };
        let ways = choices(0).len();
        let wishes = (0..16).flat_map(choices).zip(1..);
        let holds: Vec<Hold> =
            wishes.map(|(choice, order)| hold(order, Legs::ONE, choice)).collect();
        let seen = commands_of_holds(&server, &seats, &holds).await;
        assert_eq!(seen.len(), holds.len());
        // The first of each way must find where free seats begin. The others go on from there.
        for (commands, hold) in seen.iter().zip(&holds).skip(ways) {
            let read: usize = commands
                .iter()
                .filter(|words| words[0] == "GETRANGE")
                .map(|words| {
                    1 + words[3].parse::<usize>().unwrap() - words[2].parse::<usize>().unwrap()
                })
                .sum();
            let state = format!("{rows} rows, filled {filled} %: {hold:?}\n{commands:?}");
            assert!(commands.len() <= 8, "{} commands; {state}", commands.len());
            assert!(read <= 64, "{read} bytes; {state}");
        }
        let total: usize = seen[ways..].iter().map(Vec::len).sum();
        let mean = total as f64 / (seen.len() - ways) as f64;
        assert!(mean < 7.0, "{rows} rows, filled {filled} %: {mean} commands a hold");
    }
}
