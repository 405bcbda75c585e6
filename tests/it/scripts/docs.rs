//! What `docs/architecture.md` says of Redis, held against what lies there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use engine::domain::admission::gate::tokens::{AddTokens, AddTokensReply};
use engine::domain::admission::gate::{Admit, AdmitReply, Share, TopUp};
use engine::domain::admission::room::code::Code;
use engine::domain::admission::rules::{Action, Client, Rule, RuleBook, Subject};
use engine::domain::basics::ids::{
    DeviceHint, Epoch, GroupId, InventoryId, Legs, RequestFingerprint, RuleId, SaleId, Seat,
    TierId, UserId,
};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{
    Freed, HeldLine, Hold, HoldRecord, HoldReply, Line, Load, LoadReply, PartLimit, Release,
    ReleaseReply, Terms, TierGrid,
};
use engine::domain::sale::challenge::Stage;
use engine::domain::sale::{LimitSettings, SaleState};
use engine::ports::{Gate as _, Seats as _};
use local::servers::Flavour;
use redis::aio::MultiplexedConnection;
use shared::redis::counters::Counters;
use shared::redis::keys::{ChallengeKeys, CopyKeys, GateKeys, InventoryKeys};
use shared::redis::{ChallengePlace, RedisChallenges, RedisGate, RedisSeats};

use super::{connect, server};

/// What the keys of the limits of a gate begin with.
const LIMITS: &str = "{sale/limits/";

const NOW: Timestamp = Timestamp::from_ms(1_795_000_000_000);

/// The words in backticks of a cell.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The plain names of fields among some words: neither an order's, nor a buyer's, nor a search's.
fn fields<'a>(words: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let is_plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    words.filter(is_plain).map(str::to_owned).collect()
}

/// Each key that the docs describe, with its type and the fields that it names.
fn described() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/architecture.md");
    let docs = fs::read_to_string(docs).unwrap();
    let mut keys = BTreeMap::new();
    for row in docs.lines().filter(|row| row.starts_with("| `{sale")) {
        let cells: Vec<&str> = row.trim_matches('|').splitn(3, " | ").collect();
        let types = cells[1].trim().split(", ").cycle();
        for (key, kind) in words(cells[0]).zip(types) {
            keys.insert(key.to_owned(), (kind.to_owned(), fields(words(cells[2]))));
        }
    }
    keys
}

#[tokio::test]
async fn the_docs_name_every_key_and_field() {
    let described = described();
    let (sale, tier) = (SaleId::new("sale").unwrap(), TierId::new("t").unwrap());
    let user = UserId::new("user").unwrap();
    let inventory = InventoryId::whole(sale.clone());
    let keys = InventoryKeys(&inventory);
    let gate = GateKeys { sale: &sale, shard: 0 };
    let challenges = ChallengeKeys { sale: &sale, shard: 0 };
    let copy = CopyKeys { sale: &sale, copy: 0 };
    // As the docs write them, and as they are for tier t, shard 0 and one user.
    let ours = [
        ("{sale}:sale", keys.sale()),
        ("{sale}:tier:<t>", keys.tier(&tier)),
        ("{sale}:middles:<t>", keys.middles(&tier)),
        ("{sale}:freed:<t>", keys.freed(&tier)),
        ("{sale}:taken:<t>", keys.taken(&tier)),
        ("{sale}:sold:<t>", keys.sold(&tier)),
        ("{sale}:due", keys.due()),
        ("{sale}:loading", keys.loading()),
        ("{sale}:loading_due", keys.loading_due()),
        ("{sale/gate/k}:gate", gate.gate()),
        ("{sale/gate/k}:lock:<user>", gate.lock(&user)),
        ("{sale/left/k}:copy", copy.copy()),
        ("{sale/left/k}:lock", copy.lock()),
        ("{sale/challenge/k}:asked:<stage>:<window>", challenges.asked(Stage::Visit, 179_500_000)),
        ("{sale/challenge/k}:used:<challenge>", challenges.used("one")),
    ];
    let names: BTreeSet<&str> = ours.iter().map(|(name, _)| *name).collect();
    let but_limits = described.keys().filter(|name| !name.starts_with(LIMITS));
    assert_eq!(but_limits.map(String::as_str).collect::<BTreeSet<_>>(), names);
    for (name, key) in &ours {
        let spelt = [
            ("<t>", "t"),
            ("gate/k", "gate/0"),
            ("left/k", "left/0"),
            ("challenge/k", "challenge/0"),
            ("<stage>", "visit"),
            ("<window>", "179500000"),
            ("<challenge>", "one"),
            ("<user>", "user"),
        ];
        let spelt = spelt.iter().fold((*name).to_owned(), |key, (what, by)| key.replace(what, by));
        assert_eq!(spelt, *key);
    }

    let server = server(Flavour::Valkey).await;
    let seats = RedisSeats::new(connect(&server));
    let mut connection = server.connect().await.unwrap();
    // While a load is under way it has keys of its own, and the sale none.
    let (while_loading, ours): (Vec<_>, Vec<_>) =
        ours.into_iter().partition(|(name, _)| name.starts_with("{sale}:loading"));
    begin(&seats, &inventory, &tier, &user).await;
    check(&mut connection, &described, &while_loading).await;
    fill(&seats, &inventory, &tier, &user).await;
    for (name, key) in &while_loading {
        let left: bool = redis::cmd("EXISTS").arg(key).query_async(&mut connection).await.unwrap();
        assert!(!left, "{name}");
    }
    let admit = Admit {
        sale: sale.clone(),
        shard: 0,
        user: user.clone(),
        tickets: 1,
        now: Timestamp::now(),
        user_lock_ms: 600_000,
        rate_per_second: 10,
        first: Share { budget: 10, left: 10 },
        top_up: None,
    };
    let share = Share { budget: 9, left: 9 };
    let top_up = TopUp { generation: 0, share, exhausted_ms: 1, holds: false };
    let admit = Admit { top_up: Some(top_up), ..admit };
    let gate = RedisGate::new(connect(&server));
    assert_eq!(gate.admit(&admit).await.unwrap(), AdmitReply::Admitted);
    let (challenges, place) =
        (RedisChallenges::new(connect(&server)), ChallengePlace::new(&sale, &user, 1));
    assert_eq!(challenges.count(&place, Stage::Visit, NOW).await, Ok(0));
    assert_eq!(challenges.use_up(&place, "one", 600_000, &[1; 8]).await, Ok(true));
    let add = AddTokens {
        sale: sale.clone(),
        shard: 0,
        id: "a".parse().unwrap(),
        tokens: 1,
        total: 4,
        max_additions: 1,
        first: share,
        now: admit.now,
    };
    assert_eq!(gate.add_tokens(&add).await.unwrap(), AddTokensReply::Added);

    check(&mut connection, &described, &ours).await;
    count_everything(&Counters::new(connect(&server), Some(b"secret")), &sale, &user).await;
    check_limits(&mut connection, &described).await;
}

/// Counts once whatever the limits of a gate count.
async fn count_everything(counters: &Counters, sale: &SaleId, user: &UserId) {
    let hint = DeviceHint::new("d").unwrap();
    let limit = Rule {
        rule: RuleId::new("r").unwrap(),
        subject: Subject::Device(hint.clone()),
        action: Action::Limit { count: 1, seconds: 86_400 },
        text: "wait".to_owned(),
        until: None,
    };
    let address = Some([192, 0, 2, 1].into());
    let client = Client { buyer: user.clone(), address, device: Some(hint) };
    let book = RuleBook::new(vec![limit]);
    let plan = book.plan(&LimitSettings::default(), &client, NOW).unwrap();
    counters.count(sale, user, &plan.checks, NOW).await.unwrap();
    counters.given_up(sale, user, "7".parse().unwrap()).await.unwrap();
    let code = Code::new("FANS-2026").unwrap().hash(sale, &GroupId::all());
    counters.code_tried(sale, user, code).await.unwrap();
    counters.refused(sale, "r-1").await.unwrap();
}

/// Checks that every key of the limits is described, is of its type and has a time to live.
async fn check_limits(
    connection: &mut MultiplexedConnection,
    described: &BTreeMap<String, (String, BTreeSet<String>)>,
) {
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("{LIMITS}*")).query_async(connection).await.unwrap();
    let mut found = BTreeMap::new();
    for key in &keys {
        let kind: String = redis::cmd("TYPE").arg(key).query_async(connection).await.unwrap();
        let ttl: i64 = redis::cmd("PTTL").arg(key).query_async(connection).await.unwrap();
        assert!(ttl > 0, "{key} lives for {ttl} ms");
        let parts: Vec<&str> = key.split(':').collect();
        let rest = match parts[1..] {
            ["buyer", _, "user"] => "buyer:<window>:<user>",
            ["rule", _, "r"] => "rule:<window>:<rule>",
            ["hashed", _] => "hashed:<hash>",
            ["asks", "user"] => "asks:<user>",
            ["given_up", "user"] => "given_up:<user>",
            ["codes", "user"] => "codes:<user>",
            ["refused"] => "refused",
            _ => panic!("{key} is not described"),
        };
        let slot = if rest == "refused" { "0" } else { "k" };
        let kind = if kind == "string" { "number".to_owned() } else { kind };
        found.insert(format!("{LIMITS}{slot}}}:{rest}"), kind);
    }
    let expected = described.iter().filter(|(name, _)| name.starts_with(LIMITS));
    let expected = expected.map(|(name, (kind, _))| (name.clone(), kind.clone()));
    assert_eq!(found, expected.collect());
}

/// Checks that keys are of the type and have the fields that the docs say.
async fn check(
    connection: &mut MultiplexedConnection,
    described: &BTreeMap<String, (String, BTreeSet<String>)>,
    keys: &[(&str, String)],
) {
    for (name, key) in keys {
        let name = *name;
        let (kind, expected) = &described[name];
        let found: String = redis::cmd("TYPE").arg(key).query_async(connection).await.unwrap();
        match (kind.as_str(), found.as_str()) {
            ("bitmap" | "counters" | "string", "string") | ("sorted set", "zset") => {}
            // Written when somebody asks what is left.
            ("string", "none") => assert!(name.starts_with("{sale/left/"), "{name}"),
            ("hash", "hash") => {
                let all: Vec<String> =
                    redis::cmd("HKEYS").arg(key).query_async(connection).await.unwrap();
                assert_eq!(&fields(all.iter().map(String::as_str)), expected, "{name}");
            }
            _ => panic!("{name} is a {found}, not a {kind}"),
        }
    }
}

/// All parts but the last of a load with a hold and a buyer.
async fn begin(seats: &RedisSeats, inventory: &InventoryId, tier: &TierId, user: &UserId) {
    let record = HoldRecord {
        user: user.clone(),
        fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
        deadline: NOW,
        lines: vec![HeldLine {
            tier: tier.clone(),
            legs: Legs::new(0, 2).unwrap(),
            seats: vec![Seat(0)],
        }],
    };
    let load = Load {
        epoch: Epoch::new("e0").unwrap(),
        holds: BTreeMap::from([("7".parse().unwrap(), record)]),
        bought: BTreeMap::from([(user.clone(), Tickets::new(1))]),
        ..load(inventory, tier)
    };
    let parts = load.into_parts(PartLimit::SMALLEST);
    for part in &parts[..parts.len() - 1] {
        assert_eq!(seats.load_part(part).await, Ok(LoadReply::Staged));
    }
}

/// A sale of one tier and two legs.
fn load(inventory: &InventoryId, tier: &TierId) -> Load {
    let terms = Terms {
        state: SaleState::Open,
        opens_at: NOW,
        closes_at: NOW.plus_seconds(3600),
        limit: Tickets::new(4),
        leg_count: 2,
    };
    let empty = || vec![vec![0; 2]; 2];
    let grid = TierGrid {
        tier: tier.clone(),
        row_bytes: 1,
        middles: vec![7, 7],
        taken: empty(),
        sold: empty(),
        freed: Freed::default(),
    };
    Load {
        inventory: inventory.clone(),
        terms,
        expected: None,
        epoch: Epoch::new("e1").unwrap(),
        tiers: vec![grid],
        holds: BTreeMap::new(),
        bought: BTreeMap::new(),
    }
}

/// A sale of one tier and two legs, with a hold.
async fn fill(seats: &RedisSeats, inventory: &InventoryId, tier: &TierId, user: &UserId) {
    let load = load(inventory, tier);
    let epoch = load.epoch.clone();
    assert_eq!(seats.load(&load).await, Ok(LoadReply::Loaded));
    let choice = Choice::Best { count: 2, together: Together::Required };
    let hold = Hold {
        inventory: inventory.clone(),
        epoch,
        order: "7".parse().unwrap(),
        user: user.clone(),
        fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
        now: NOW,
        deadline: NOW.plus_seconds(600),
        replaced: Tickets::NONE,
        lines: vec![Line { tier: tier.clone(), legs: Legs::new(0, 2).unwrap(), choice }],
    };
    let other = Hold { order: "8".parse().unwrap(), ..hold.clone() };
    let held = seats.hold(&hold).await.unwrap();
    assert!(matches!(held, HoldReply::Held { .. }), "{held:?}");
    // One that is given back, from which on its block is counted.
    let HoldReply::Held { record, .. } = seats.hold(&other).await.unwrap() else {
        panic!("no seats are left")
    };
    let release = Release { inventory: other.inventory, order: other.order, record };
    assert_eq!(seats.release(&release).await, Ok(ReleaseReply::Released));
}
