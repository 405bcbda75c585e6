//! Codes in DynamoDB: a membership and its use are one step, under concurrent joins and lost answers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::admission::room::code::{Code, CodeHash, CodeShard, CodeUses};
use engine::domain::admission::room::join::{
    BUCKETS, Index, IndexStock, JoinWindow, Membership, Replaced, bucket_of,
};
use engine::domain::basics::bytes::{Nonce, Secret};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::sale::serving::{DRAW_LEAD_MS, Settings};
use engine::flows::room::join::{JoinRequest, Joined, Refusal, join};
use engine::flows::room::publish::{DrawBy, publish};
use engine::ports::{RoomPorts, Rooms, Stored};
use futures_util::future::join_all;
use model_stores::{Call, Caller, Driver, Reply, Stores};
use shared::dynamodb::{CodeCounts, DynamoRooms};

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

fn group() -> GroupId {
    GroupId::new("fans").unwrap()
}

fn code(text: &str) -> CodeHash {
    Code::new(text).unwrap().hash(&sale(), &group())
}

fn member(buyer: &str, number: u32) -> Membership {
    Membership {
        sale: sale(),
        group: group(),
        buyer: UserId::new(buyer).unwrap(),
        index: Index { number, window: JoinWindow::First },
        nonce: Nonce([7; 16]),
        joined_at: NOW,
        more_time: false,
        rejoined: 0,
        visit: None,
        earlier: Vec::new(),
    }
}

/// Rooms in DynamoDB, and a beacon in memory that nobody asks.
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
}

impl Environment {
    /// A room with a group that is joined with a code.
    async fn published(rooms: DynamoRooms) -> Self {
        let ports = Self { rooms, beacon: Caller(Memory::default()) };
        let mut settings = Settings::new(group(), NOW.plus_ms(DRAW_LEAD_MS).ms(), 4);
        settings.groups[0].codes = true;
        publish(&ports, &sale(), &settings, 40, &DrawBy::Secret(Secret([4; 32])), NOW)
            .await
            .unwrap();
        ports
    }

    async fn ask(&self, buyer: u32, code: CodeHash) -> Result<Joined, Refusal> {
        // Each request has a process of its own.
        let stock = Mutex::new(IndexStock::default());
        let request = JoinRequest {
            sale: sale(),
            group: group(),
            buyer: UserId::new(buyer.to_string()).unwrap(),
            nonce: Nonce([9; 16]),
            more_time: false,
            code: Some(code),
        };
        join(self, &stock, &request, NOW).await
    }

    async fn counts(&self) -> CodeCounts {
        self.rooms.count_codes(&sale(), &group()).await.unwrap()
    }
}

#[tokio::test]
async fn many_at_once_use_a_code_as_often_as_it_may_be_used() {
    let fixture = Fixture::new().await;
    let ports = Environment::published(DynamoRooms::new(fixture.db.clone())).await;
    // In two shards: whoever finds the own one used up goes on to the other.
    let shared = code("FRIENDS-2026");
    assert_eq!(CodeUses::shared(130).count(), 2);
    assert!(ports.rooms.add_code(&sale(), &group(), shared, 130).await.unwrap());
    // Every buyer asks from two devices.
    let mut joined = BTreeSet::new();
    let mut refused = BTreeSet::new();
    for some in (0..150).collect::<Vec<u32>>().chunks(25) {
        let asked = some.iter().flat_map(|buyer| [*buyer, *buyer]);
        let asked = asked.map(async |buyer| (buyer, ports.ask(buyer, shared).await));
        for (buyer, answer) in join_all(asked).await {
            match answer {
                Ok(_) => joined.insert(buyer),
                Err(Refusal::CodeRefused) => refused.insert(buyer),
                Err(other) => panic!("{other}"),
            };
        }
    }
    assert_eq!((joined.len(), refused.len()), (130, 20));
    assert!(joined.is_disjoint(&refused));
    assert_eq!(ports.counts().await, CodeCounts { codes: 1, uses: 130, used: 130 });
    let mut members = 0;
    for bucket in 0..BUCKETS {
        members += ports.rooms.memberships(&sale(), bucket, None).await.unwrap().memberships.len();
    }
    assert_eq!(members, 130);
}

#[tokio::test]
async fn whoever_is_cut_off_loses_no_use_and_gets_no_second_place() {
    let fixture = Fixture::new().await;
    let ports = Environment::published(DynamoRooms::new(fixture.db.clone())).await;
    let single = code("7K2M-Q9XD-0ABC-5TWV");
    ports.rooms.add_code(&sale(), &group(), single, 1).await.unwrap();

    // The transaction is never sent: the code is as good as before.
    let act = |request: &Request, _: usize| match request.operation.as_str() {
        "TransactWriteItems" => Act::LoseRequest,
        _ => Act::Forward,
    };
    let proxy = HttpProxy::start(&fixture.server.url, act).await.unwrap();
    let cut = Environment {
        rooms: DynamoRooms::new(fixture.db_at(proxy.url(), 1)),
        beacon: Caller(Memory::default()),
    };
    assert!(matches!(cut.ask(1, single).await, Err(Refusal::Store(_))));
    assert_eq!(ports.counts().await.used, 0);

    // It happens, and its answer is lost: the buyer has the place, and asking again uses nothing.
    let act = |request: &Request, _: usize| match request.operation.as_str() {
        "TransactWriteItems" => Act::LoseAnswer,
        _ => Act::Forward,
    };
    let proxy = HttpProxy::start(&fixture.server.url, act).await.unwrap();
    let deaf = Environment {
        rooms: DynamoRooms::new(fixture.db_at(proxy.url(), 1)),
        beacon: Caller(Memory::default()),
    };
    assert!(matches!(deaf.ask(1, single).await, Err(Refusal::Store(_))));
    assert_eq!(ports.counts().await.used, 1);
    ports.ask(1, single).await.unwrap();
    assert_eq!(ports.ask(2, single).await, Err(Refusal::CodeRefused));
    assert_eq!(ports.counts().await.used, 1);
}

/// What each store has to do with codes.
async fn keeps_the_contract(rooms: &impl Rooms, shard: CodeShard) {
    let bucket = |member: &Membership| bucket_of(&member.buyer, BUCKETS);
    let (alice, bob, carol) = (member("alice", 0), member("bob", 1), member("carol", 2));
    let uses = |used| Ok(Some(CodeUses { shards: 1, uses: 2, used }));
    assert_eq!(rooms.code(&sale(), &group(), shard).await, uses(0));
    let joined = rooms.join_by_code(&alice, bucket(&alice), shard).await;
    assert_eq!(joined, Ok(Some(alice.clone())));
    let other =
        Membership { index: Index { number: 9, window: JoinWindow::First }, ..alice.clone() };
    let again = rooms.join_by_code(&other, bucket(&alice), shard).await;
    assert_eq!(again, Ok(Some(alice)), "the first stays, and uses nothing more");
    assert_eq!(rooms.code(&sale(), &group(), shard).await, uses(1));
    assert!(rooms.join_by_code(&bob, bucket(&bob), shard).await.unwrap().is_some());
    assert_eq!(rooms.join_by_code(&carol, bucket(&carol), shard).await, Ok(None));
    let kept = rooms.membership(&sale(), bucket(&carol), &carol.buyer).await;
    assert_eq!(kept, Ok(None), "nothing is written");
    assert_eq!(rooms.code(&sale(), &group(), shard).await, uses(2));
    let unknown = CodeShard { code: code("NO-SUCH-CODE"), shard: 0 };
    assert_eq!(rooms.code(&sale(), &group(), unknown).await, Ok(None));
    assert_eq!(rooms.join_by_code(&carol, bucket(&carol), unknown).await, Ok(None));
}

#[tokio::test]
async fn dynamodb_and_its_model_use_codes_alike() {
    let shard = CodeShard { code: code("FRIENDS-2026"), shard: 0 };
    let fixture = Fixture::new().await;
    let rooms = DynamoRooms::new(fixture.db.clone());
    assert!(rooms.add_code(&sale(), &group(), shard.code, 2).await.unwrap());
    keeps_the_contract(&rooms, shard).await;
    let memory = Memory::default();
    let uses = CodeUses { shards: 1, uses: 2, used: 0 };
    memory.0.lock().unwrap().rooms.codes.insert((sale(), group(), shard), uses);
    keeps_the_contract(&Caller(memory), shard).await;
}

#[tokio::test]
async fn visits_of_before_are_kept_when_somebody_joins_again() {
    use engine::domain::admission::room::visit::{Admitted, Visit};
    let fixture = Fixture::new().await;
    let rooms = DynamoRooms::new(fixture.db.clone());
    let first = member("alice", 4);
    let bucket = bucket_of(&first.buyer, BUCKETS);
    rooms.join(&first, bucket, None).await.unwrap();
    let visited = |index, place, turn| Admitted { index, place, turn };
    let earlier = vec![visited(4, 17, 230), visited(90, 12, 1_021)];
    let second = Membership { rejoined: 2, earlier: earlier.clone(), ..member("alice", 120) };
    assert_eq!(rooms.join(&second, bucket, Some(Replaced::from(&first))).await, Ok(second.clone()));
    let kept = rooms.membership(&sale(), bucket, &second.buyer).await.unwrap().unwrap();
    assert_eq!((&kept.earlier, kept.admitted()), (&earlier, earlier.clone()));
    let visit = Visit { place: 130, turn: 2_000, began_clock_ms: 5, attempts: 1 };
    let admitted = Membership { visit: Some(visit), ..kept }.admitted();
    assert_eq!(admitted, [earlier, vec![visited(120, 130, 2_000)]].concat());
}
