//! A room whose document nobody asks for makes its turns by the schedule.

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::awaited::{AwaitedTurns, make_turns};
use engine::flows::room::draw::{Drawing, draw};
use engine::ports::{RoomPorts as _, Rooms as _};
use local::handlers::reconcile;
use serde_json::json;

use super::{Fixture, Sender, hall};

fn sale() -> SaleId {
    SaleId::new("hall").unwrap()
}

/// Records of the room's log.
async fn records(fixture: &Fixture) -> u64 {
    fixture.app.ports.rooms().last_record(&sale()).await.unwrap().unwrap().number + 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schedule_makes_a_turn_where_somebody_waits_and_nobody_asks() {
    let fixture = Fixture::start().await;
    let mut open = hall();
    open["room"] = json!({ "beacon": "operator" });
    fixture.publish(&open).await.ok(200);
    let ports = &fixture.app.ports;
    assert_eq!(draw(ports, &sale(), Timestamp::now()).await, Ok(Drawing::Drawn));
    let mut later = hall();
    later["sale"] = json!("later");
    later["opens_at"] = json!("2099-01-01T00:00:00Z");
    later["room"] = json!({});
    fixture.publish(&later).await.ok(200);
    let mut none = hall();
    none["sale"] = json!("none");
    fixture.publish(&none).await.ok(200);

    // Nobody waits: nothing is written.
    let drawn = records(&fixture).await;
    let in_a_minute = |minutes: i64| Timestamp::now().plus_seconds(60 * minutes);
    let one = AwaitedTurns { open: 1, failed: 0 };
    assert_eq!(make_turns(ports, in_a_minute(1)).await, Ok(one), "the others are not open");
    assert_eq!(records(&fixture).await, drawn);
    // Somebody joins a later window, and nobody asks for the room: the schedule ends the window, and serves.
    let target = "/sales/hall/places";
    fixture.json(Sender::Buyer("wren"), "POST", target, &json!({})).await.ok(201);
    for minutes in 2..=3 {
        assert_eq!(make_turns(ports, in_a_minute(minutes)).await, Ok(one));
    }
    let last = ports.rooms().last_record(&sale()).await.unwrap().unwrap();
    assert_eq!(last.number + 1, drawn + 2);
    assert_eq!(last.state.groups[0].serving, 1, "{last:?}");
    // The function itself, by its own clock, which is behind what is shown: it makes a turn unless one was just made.
    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    reconcile::handle(&fixture.app, serde_json::from_value(event).unwrap()).await.unwrap();
    let made = records(&fixture).await;
    assert!((drawn + 2..=drawn + 3).contains(&made), "{made}");
    // Redis has lost what is left: nobody is served, and visits run out all the same.
    fixture.lose_redis().await;
    assert_eq!(make_turns(ports, in_a_minute(4)).await, Ok(one));
    let last = ports.rooms().last_record(&sale()).await.unwrap().unwrap();
    assert_eq!(last.number + 1, made + 1);
}
