//! The requests of sales with waiting rooms: joins, the room document, the gate, and the draw.

use std::time::Duration;

use engine::domain::admission::room::draw::Window;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::turn::TURN_MS;
use engine::ports::{Board as _, BoardPorts as _, RoomPorts as _, Rooms as _};
use serde_json::{Value, json};

use crate::cases::{ALL_DONE, CREATED, Case, Function, OK, Preparation, Work, body};
use crate::environment::{AMPLE_SECONDS, Environment, Failure};
use crate::event::{self, Sender};

/// A sale of one tier, whose room has one group.
const SALE: &str = "costs-room";
/// A sale of as many tiers and groups as there may be.
const LARGE: &str = "costs-large-room";
/// Tiers of the large sale, and seats of each.
const TIERS: u32 = 64;
const SEATS: u32 = 900;
/// A place that is never due.
const FAR_AWAY: u32 = 4_000_000_000;
/// Members of each room that is drawn.
const MEMBERS: usize = 3;
/// Age up to which what is shown is taken for what the next request will find, in milliseconds.
const YOUNG_MS: i64 = TURN_MS / 2;
/// Age from which on a turn is due and the catalogue's copy of the sale, which is kept for two seconds, is read again:
/// else it would be in some of the requests that are counted and not in others.
const OLD_MS: i64 = 2_000 + TURN_MS / 4;

/// Beginnings of the answers that are expected.
const NOT_DUE: &str = r#"{"statusCode":429"#;
const REFUSED: &str = r#"{"statusCode":403"#;

/// What has to be so before a request of a room document is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Before {
    Anything,
    /// What is shown is young: the request is answered from it.
    Shown(SaleId),
    /// What is shown is too old: the request makes a turn.
    Due(SaleId),
}

impl Before {
    /// Waits until it is so.
    pub(crate) async fn wait(&self, environment: &Environment) -> Result<(), Failure> {
        match self {
            Self::Anything => Ok(()),
            Self::Shown(sale) => {
                if age_ms(environment, sale).await? >= YOUNG_MS {
                    until_due(environment, sale).await?;
                    document(sale, Self::Anything).perform(environment).await;
                }
                Ok(())
            }
            Self::Due(sale) => until_due(environment, sale).await,
        }
    }
}

/// Age of what is shown of a room, in milliseconds.
async fn age_ms(environment: &Environment, sale: &SaleId) -> Result<i64, Failure> {
    let shown = environment.app.ports.board().shown(sale).await?;
    Ok(shown.map_or(i64::MAX, |shown| Timestamp::now().ms_since(shown.made_at)))
}

async fn until_due(environment: &Environment, sale: &SaleId) -> Result<(), Failure> {
    while age_ms(environment, sale).await? < OLD_MS {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Makes `count` requests of every kind.
pub(crate) async fn cases(
    preparation: &Preparation<'_>,
    count: usize,
) -> Result<Vec<Case>, Failure> {
    let tier = |number: u32, seats: u32| json!({ "tier": format!("t{number}"), "name": "T", "price_minor": 1, "general_admission": seats });
    let sale = publish(preparation, SALE, json!([{ "group": "all" }]), vec![tier(0, 60_000)]).await;
    let large = (0..TIERS).map(|number| tier(number, SEATS)).collect();
    let groups =
        json!(["all", "club", "presale", "accessible"].map(|group| json!({ "group": group })));
    let large = publish(preparation, LARGE, groups, large).await;

    let mut members = Vec::with_capacity(count);
    for index in 0..count {
        members.push(Member::join(preparation, SALE, &format!("member-{index}")).await?);
    }
    Member::join(preparation, LARGE, "waits").await?;
    for sale in [&sale, &large] {
        open(preparation.environment, sale).await?;
    }
    let ports = &preparation.environment.app.ports;
    let last = ports.rooms().last_record(&sale).await?.ok_or("the room has no log")?;
    let group = last.state.groups.first().ok_or("the room has no group")?;
    let window = Window::new(group.seed.ok_or("the room is not drawn")?, 0, group.window_end);
    let place = |member: &Member| window.place(member.index).ok_or("the index is not drawn");
    let claims = |expect: &'static str, of: &dyn Fn(usize) -> Result<u32, &'static str>| {
        let claims =
            members.iter().enumerate().map(|(at, member)| Ok(member.claim(of(at)?, expect)));
        claims.collect::<Result<Vec<Work>, &'static str>>()
    };
    // Everybody claims the place of the next.
    let others = claims(REFUSED, &|at| place(&members[(at + 1) % members.len()]))?;
    let own = claims(CREATED, &|at| place(&members[at]))?;
    let case = |name, works| Case { name, works };
    Ok(vec![
        case("join", (0..count).map(|index| join(SALE, &format!("joins-{index}"))).collect()),
        case("join: again", members.iter().map(|member| join(SALE, &member.user)).collect()),
        case("room", vec![document(&sale, Before::Shown(sale.clone())); count]),
        case("room: a turn", vec![document(&sale, Before::Due(sale.clone())); count]),
        case("room: a turn, 64 tiers", vec![document(&large, Before::Due(large.clone())); count]),
        case("token-gate: not due", claims(NOT_DUE, &|_| Ok(FAR_AWAY))?),
        case("token-gate: false claim", others),
        case("token-gate: with a place", own),
        case("draw", draws(preparation, count).await?),
    ])
}

/// Puts a sale on sale that has opened, and whose room is to be drawn.
async fn publish(
    preparation: &Preparation<'_>,
    id: &str,
    groups: Value,
    tiers: Vec<Value>,
) -> SaleId {
    let file = json!({
        "sale": id, "title": "A hall", "currency": "EUR", "limit_per_buyer": 4,
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-12-31T23:59:59Z",
        "pay_window_seconds": AMPLE_SECONDS,
        "gate": { "shards": 1, "user_lock_ms": 1, "token_seconds": AMPLE_SECONDS }, "tiers": tiers,
        "room": { "groups": groups, "show_up_seconds": AMPLE_SECONDS, "visit_seconds": AMPLE_SECONDS, "beacon": "operator" },
    });
    let event = event::http(Sender::Operator, "PUT", &format!("/sales/{id}"), None, Some(&file));
    Work::new(Function::Sales, event, OK).perform(preparation.environment).await;
    SaleId::new(id).unwrap_or_else(|error| panic!("our own sale: {error}"))
}

/// Draws a room, and serves until everybody who joined is due.
async fn open(environment: &Environment, sale: &SaleId) -> Result<(), Failure> {
    let ports = &environment.app.ports;
    if draw(ports, sale, Timestamp::now()).await? != Drawing::Drawn {
        return Err("the room was not drawn".into());
    }
    loop {
        let last = ports.rooms().last_record(sale).await?.ok_or("the room has no log")?;
        if last.state.groups.iter().all(|group| group.serving == group.window_end) {
            return Ok(());
        }
        until_due(environment, sale).await?;
        document(sale, Before::Anything).perform(environment).await;
    }
}

fn document(sale: &SaleId, before: Before) -> Work {
    let event = event::http(Sender::Nobody, "GET", &format!("/sales/{sale}/room"), None, None);
    Work::new(Function::WaitingRoom, event, OK).when(before)
}

fn join(sale: &str, user: &str) -> Work {
    let path = format!("/sales/{sale}/places");
    let event = event::http(Sender::Buyer(user), "POST", &path, None, Some(&json!({})));
    Work::new(Function::WaitingRoom, event, CREATED)
}

/// Somebody who has joined.
#[derive(Debug)]
struct Member {
    user: String,
    token: String,
    index: u32,
}

impl Member {
    async fn join(preparation: &Preparation<'_>, sale: &str, user: &str) -> Result<Self, Failure> {
        let joined = body(&join(sale, user).perform(preparation.environment).await)?;
        let index = joined["index"].as_u64().and_then(|index| u32::try_from(index).ok());
        let token = joined["place_token"].as_str().ok_or("no token")?.to_owned();
        Ok(Self { user: user.to_owned(), token, index: index.ok_or("no index")? })
    }

    /// The request that asks to be let in with a place.
    fn claim(&self, place: u32, expect: &'static str) -> Work {
        let body = json!({ "tickets": 2, "place": { "place": place, "token": self.token } });
        let path = format!("/sales/{SALE}/admissions");
        let event = event::http(Sender::Buyer(&self.user), "POST", &path, None, Some(&body));
        Work::new(Function::TokenGate, event, expect)
    }
}

/// The draws of rooms with a few members each.
async fn draws(preparation: &Preparation<'_>, count: usize) -> Result<Vec<Work>, Failure> {
    let mut works = Vec::with_capacity(count);
    for number in 0..count {
        let sale = format!("costs-drawn-{number}");
        let tier = json!({ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 10 });
        publish(preparation, &sale, json!([{ "group": "all" }]), vec![tier]).await;
        for member in 0..MEMBERS {
            Member::join(preparation, &sale, &format!("drawn-{member}")).await?;
        }
        let event = event::sqs(&[json!({ "sale": sale }).to_string()]);
        works.push(Work::new(Function::Draw, event, ALL_DONE));
    }
    Ok(works)
}
