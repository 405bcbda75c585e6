//! What a waiting room uses: joins, the room document, turns, and the gate.

use engine::domain::admission::room::draw::Window;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::{Drawing, draw};
use engine::ports::{RoomPorts as _, Rooms as _};
use http::{Method, StatusCode};
use serde_json::json;
use shared::runtime::functions::Function;

use super::Failure;
use super::actions::{Action, TICKETS, Who, Work, Worker, request};
use super::usage::Usage;
use crate::selling::hall;

/// The sale with the room.
const SALE: &str = "cost-room";
const SEATS: u32 = 10_000;
/// A place that is never due.
const FAR_AWAY: u32 = 4_000_000_000;

/// Somebody who has joined.
struct Member {
    user: String,
    token: String,
    index: u32,
}

impl Worker<'_> {
    /// The work of a room, in the order of reports.
    pub(super) async fn room(&self, times: usize) -> Result<Vec<(Action, Usage)>, Failure> {
        let id = SaleId::new(SALE)?;
        self.publish_room().await?;
        let mut members = Vec::with_capacity(times);
        for index in 0..times {
            members.push(self.member(&format!("member-{index}")).await?);
        }
        if draw(&self.app.ports, &id, Timestamp::now()).await? != Drawing::Drawn {
            return Err("the room was not drawn".into());
        }
        // They wait until the first turn, and come after the last.
        let turns =
            (0..times).map(|_| Ok(Work::Turn(document()?))).collect::<Result<_, Failure>>()?;
        let turns = self.measured(turns, 1).await?;
        let shown =
            (0..times).map(|_| Ok(Work::Http(Function::WaitingRoom, document()?, StatusCode::OK)));
        let shown = self.measured(shown.collect::<Result<_, Failure>>()?, 1).await?;
        let joins = (0..times).map(|index| join(&format!("joins-{index}")));
        let joins = self.measured(joins.collect::<Result<_, _>>()?, 1).await?;
        let early =
            members.iter().map(|member| member.claim(FAR_AWAY, StatusCode::TOO_MANY_REQUESTS));
        let early = self.measured(early.collect::<Result<_, _>>()?, 1).await?;

        let last = self.app.ports.rooms().last_record(&id).await?.ok_or("the room has no log")?;
        let group = last.state.groups.first().ok_or("the room has no group")?;
        let closed = group.closed.ok_or("the room is not closed")?;
        let seed = group.seed.ok_or("the room is not drawn")?;
        let window = Window::new(seed, 0, closed.closing.count);
        let mut due = Vec::with_capacity(times);
        for member in &members {
            let place = window.place(member.index).ok_or("the index is not drawn")?;
            due.push(member.claim(place, StatusCode::CREATED)?);
        }
        let entrances = self.measured(due, 1).await?;
        Ok(vec![
            (Action::Join, joins),
            (Action::Document, shown),
            (Action::Turn, turns),
            (Action::NotDue, early),
            (Action::Entrance, entrances),
        ])
    }

    /// Puts a sale on sale that has opened, and whose room is to be drawn.
    async fn publish_room(&self) -> Result<(), Failure> {
        let mut file = serde_json::to_value(hall(SALE, SEATS, 1)?)?;
        file["opens_at"] = json!("2024-01-01T00:00:00Z");
        file["room"] =
            json!({ "show_up_seconds": 3_600, "visit_seconds": 3_600, "beacon": "operator" });
        let path = format!("/sales/{SALE}");
        let event = request(Who::Operator, (Method::PUT, &path), None, Some(&file))?;
        self.http(&Work::Http(Function::Sales, event, StatusCode::OK)).await.map(drop)
    }

    async fn member(&self, user: &str) -> Result<Member, Failure> {
        let (joined, _) = self.http(&join(user)?).await?;
        let index = joined["index"].as_u64().ok_or("no index")?;
        let token = joined["place_token"].as_str().ok_or("no token")?.to_owned();
        Ok(Member { user: user.to_owned(), token, index: u32::try_from(index)? })
    }
}

impl Member {
    /// The request that asks to be let in with a place.
    fn claim(&self, place: u32, expected: StatusCode) -> Result<Work, Failure> {
        let body = json!({ "tickets": TICKETS, "place": { "place": place, "token": self.token } });
        let path = format!("/sales/{SALE}/admissions");
        let event = request(Who::Buyer(&self.user), (Method::POST, &path), None, Some(&body))?;
        Ok(Work::Http(Function::TokenGate, event, expected))
    }
}

fn join(user: &str) -> Result<Work, Failure> {
    let path = format!("/sales/{SALE}/places");
    let event = request(Who::Buyer(user), (Method::POST, &path), None, Some(&json!({})))?;
    Ok(Work::Http(Function::WaitingRoom, event, StatusCode::CREATED))
}

fn document() -> Result<String, Failure> {
    request(Who::Anybody, (Method::GET, &format!("/sales/{SALE}/room")), None, None)
}
