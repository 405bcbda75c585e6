//! Draws on real servers, as the queue and reconcile have them: requested, repeated while the beacon's round is to
//! come, and decided by the secret where it does not come.

use engine::domain::admission::room::draw::{ROUNDS_AHEAD, Source};
use engine::domain::admission::room::log::{Entry, Record};
use engine::domain::admission::room::serving::Event;
use engine::domain::basics::bytes::{Hash, Secret, Signature};
use engine::domain::basics::ids::GroupId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::serving::{BEACON_MS, DRAW_LEAD_MS, Settings};
use engine::flows::room::bring::{Brought, Refusal, Round, bring};
use engine::flows::room::draw::Drawing;
use engine::flows::room::publish::publish;
use engine::flows::room::request::{Requested, draw_or_requeue, request_due};
use engine::ports::{RoomPorts, Rooms, Stored};
use fake_beacon::Fault;
use local::queues::{Queues, depth};
use local::stores;

use super::environment::{Fixture, NOW, sale_id};
use crate::backends::FIRST_ROUND;

/// The round that decides.
const ROUND: u64 = FIRST_ROUND + ROUNDS_AHEAD;
/// When the sale opens; its room closes now.
const OPENS: Timestamp = NOW.plus_ms(DRAW_LEAD_MS);
const SECRET: Secret = Secret([4; 32]);

impl Fixture {
    async fn with_room(beacon: Option<Hash>) -> Self {
        let fixture = Box::pin(Self::start()).await;
        let settings = Settings::new(GroupId::new("all").unwrap(), OPENS.ms(), 4);
        let earlier = NOW.plus_seconds(-1000);
        let sale = sale_id();
        let room = publish(&fixture.ports, &sale, &settings, beacon, &SECRET, earlier);
        Box::pin(room).await.unwrap();
        fixture
    }

    async fn draw(&self, now: Timestamp) -> Stored<Drawing> {
        Box::pin(draw_or_requeue(&self.ports, &sale_id(), now)).await
    }

    async fn bring(&self, number: u64, signature: Signature) -> Result<Brought, Refusal> {
        let round = Round { number, signature };
        Box::pin(bring(&self.ports, &sale_id(), round, NOW)).await
    }

    async fn requested(&self, now: Timestamp) -> Requested {
        Box::pin(request_due(&self.ports, now)).await.unwrap()
    }

    /// Messages in the draw queue, delayed ones included.
    async fn messages(&self) -> u64 {
        let sqs = stores::sqs(self.config.sqs.endpoint.as_ref().unwrap());
        let url = &self.config.sqs.urls.draw;
        let prefix = url.rsplit('/').next().unwrap().strip_suffix("draw").unwrap();
        let queues = Queues::find(&sqs, prefix).await.unwrap();
        depth(&sqs, &queues.draw).await.unwrap()
    }

    async fn last_record(&self) -> Record {
        self.ports.rooms().last_record(&sale_id()).await.unwrap().unwrap()
    }

    /// What the room was drawn by.
    async fn source(&self) -> Source {
        let Entry::Turn { events, .. } = self.last_record().await.entry else {
            panic!("it is not drawn")
        };
        match events.as_slice() {
            [Event::Drawn { source, .. }] => *source,
            other => panic!("{other:?}"),
        }
    }
}

const NONE: Requested = Requested { requested: 0, late: 0, failed: 0, ahead: 0, oldest_turn_ms: 0 };
const ONE: Requested = Requested { requested: 1, ..NONE };

#[tokio::test]
async fn a_draw_is_requested_until_it_is_done() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    assert_eq!(fixture.requested(NOW.plus_ms(-1)).await, NONE, "it is not due");
    assert_eq!(fixture.messages().await, 0);
    assert_eq!(fixture.requested(NOW).await, ONE);
    assert_eq!(fixture.messages().await, 1);
    let late = Requested { late: 1, ..ONE };
    assert_eq!(fixture.requested(OPENS).await, late, "the sale has opened");
    // Half of it is done: the window is closed.
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
    assert_eq!(fixture.requested(NOW).await, ONE);
    fixture.beacon.advance(ROUNDS_AHEAD);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.requested(OPENS).await, NONE);
    let without = Box::pin(Fixture::start()).await;
    assert_eq!(without.requested(OPENS).await, NONE, "the sale has no room");
    assert_eq!(without.draw(NOW).await, Ok(Drawing::NoRoom));
    assert_eq!(without.messages().await, 0);
}

#[tokio::test]
async fn a_window_that_a_clock_ahead_has_closed_is_noticed() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    let early = NOW.plus_seconds(-900);
    assert_eq!(fixture.requested(early).await, NONE);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
    assert_eq!(fixture.requested(early).await, Requested { ahead: 1, ..NONE });
    let minute = NOW.plus_seconds(-60);
    assert_eq!(fixture.requested(minute).await, NONE, "clocks differ");
}

#[tokio::test]
async fn a_draw_that_is_early_or_awaits_the_beacon_asks_for_itself_again() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    assert_eq!(fixture.draw(NOW.plus_seconds(-1)).await, Ok(Drawing::NotDue(NOW)));
    assert_eq!(fixture.messages().await, 1);
    for messages in [2, 3] {
        assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
        assert_eq!(fixture.messages().await, messages, "asking again is never left out");
    }
    fixture.beacon.advance(ROUNDS_AHEAD - 1);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
    fixture.beacon.advance(1);
    // What comes is not the round: the draw asks again.
    let faults = [Fault::FalseSignature, Fault::OtherRound, Fault::OtherSignature, Fault::Endless];
    for fault in faults {
        fixture.beacon.set_fault(Some(fault));
        let awaits = Ok(Drawing::AwaitsBeacon { round: ROUND });
        assert_eq!(fixture.draw(NOW).await, awaits, "{fault:?}");
    }
    fixture.beacon.set_fault(None);
    assert_eq!(fixture.messages().await, 8);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.messages().await, 8, "it is done");
    let signature = fixture.beacon.signature(ROUND);
    assert_eq!(fixture.source().await, Source::Beacon { round: ROUND, signature });
    // Drawn once.
    let last = fixture.last_record().await;
    assert_eq!(fixture.draw(OPENS).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.last_record().await, last);
}

#[tokio::test]
async fn the_secret_decides_when_the_round_does_not_come() {
    let (early, in_time) = (NOW.plus_ms(BEACON_MS - 1), NOW.plus_ms(BEACON_MS));
    // Nothing of the beacon's is needed any more, whatever it does.
    for fault in [Fault::NoRound, Fault::Late(ROUNDS_AHEAD), Fault::FalseSignature, Fault::Fail] {
        let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
        assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
        fixture.beacon.advance(ROUNDS_AHEAD);
        fixture.beacon.set_fault(Some(fault));
        assert_ne!(fixture.draw(early).await, Ok(Drawing::Drawn), "{fault:?}");
        assert_eq!(fixture.draw(in_time).await, Ok(Drawing::Drawn), "{fault:?}");
        assert_eq!(fixture.source().await, Source::Secret(SECRET), "{fault:?}");
    }
    let alone = Fixture::with_room(None).await;
    assert_eq!(alone.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(alone.source().await, Source::Secret(SECRET));
}

#[tokio::test]
async fn a_beacon_that_says_nothing_closes_no_window() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    fixture.beacon.set_fault(Some(Fault::Fail));
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::BeaconSilent));
    assert_eq!(fixture.last_record().await.number, 0, "nothing is recorded");
    let early = NOW.plus_ms(BEACON_MS - 1);
    assert_eq!(fixture.draw(early).await, Ok(Drawing::BeaconSilent), "it still has time");
    assert_eq!(fixture.messages().await, 2, "it asks again");
    fixture.beacon.set_fault(None);
    assert_eq!(fixture.draw(early).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
}

#[tokio::test]
async fn a_sale_does_not_wait_for_a_beacon_that_is_gone() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    fixture.beacon.set_fault(Some(Fault::Fail));
    assert_eq!(fixture.draw(NOW.plus_ms(BEACON_MS)).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.source().await, Source::Secret(SECRET));
    // It is back, and too late: the closing has fixed no round.
    fixture.beacon.set_fault(None);
    let brought = fixture.bring(ROUND, fixture.beacon.signature(ROUND)).await;
    assert_eq!(brought, Err(Refusal::NotAwaited));
    let last = fixture.last_record().await;
    assert_eq!(fixture.draw(OPENS).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.last_record().await, last);
}

#[tokio::test]
async fn without_its_secret_a_room_is_not_drawn() {
    let fixture = Fixture::with_room(None).await;
    let table = &fixture.config.dynamodb.tables.rooms;
    let key = |name: &str| {
        let delete = fixture.dynamo.client().delete_item().table_name(table);
        let text = aws_sdk_dynamodb::types::AttributeValue::S;
        delete.key("pk", text(format!("secret#{}", sale_id()))).key("sk", text(name.to_owned()))
    };
    key(shared::dynamodb::tables::ONLY).send().await.unwrap();
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::NoSecret));
    assert_eq!(fixture.messages().await, 0, "nothing would change by itself");
    let other = fixture.ports.rooms().keep_secret(&sale_id(), &Secret([5; 32])).await;
    assert_eq!(other, Ok(Secret([5; 32])));
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::NoSecret), "another one decides nothing");
    assert_eq!(fixture.requested(OPENS).await, Requested { late: 1, ..ONE }, "it is looked for");
}

#[tokio::test]
async fn anybody_brings_the_round_and_its_signature_decides() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    let signature = fixture.beacon.signature(ROUND);
    assert_eq!(fixture.bring(ROUND, signature).await, Err(Refusal::NotAwaited), "it is open");
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
    // From here on our own servers are of no use.
    fixture.beacon.set_fault(Some(Fault::Fail));
    let calls = fixture.beacon.calls();
    for other in [ROUND - 1, ROUND + 1, 0, u64::MAX] {
        let brought = fixture.bring(other, fixture.beacon.signature(other)).await;
        assert_eq!(brought, Err(Refusal::NotAwaited), "{other}");
    }
    let of_another = fixture.beacon.signature(ROUND + 1);
    for forged in [of_another, Signature([0; 48]), Signature([0xc0; 48])] {
        assert_eq!(fixture.bring(ROUND, forged).await, Err(Refusal::Forged), "{forged}");
    }
    let closed = fixture.last_record().await;
    assert_eq!(fixture.bring(ROUND, signature).await, Ok(Brought::Drawn));
    assert_eq!(fixture.source().await, Source::Beacon { round: ROUND, signature });
    let drawn = fixture.last_record().await;
    assert_eq!(drawn.number, closed.number + 1);
    for again in [signature, of_another] {
        assert_eq!(fixture.bring(ROUND, again).await, Ok(Brought::Before));
    }
    assert_eq!(fixture.last_record().await, drawn);
    assert_eq!(fixture.beacon.calls(), calls, "nobody was asked");
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::Drawn));
}

#[tokio::test]
async fn a_round_comes_too_late_for_what_the_secret_has_drawn() {
    let fixture = Fixture::with_room(Some(fake_beacon::hash())).await;
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::AwaitsBeacon { round: ROUND }));
    assert_eq!(fixture.draw(NOW.plus_ms(BEACON_MS)).await, Ok(Drawing::Drawn));
    let brought = fixture.bring(ROUND, fixture.beacon.signature(ROUND)).await;
    assert_eq!(brought, Ok(Brought::Before));
    assert_eq!(fixture.source().await, Source::Secret(SECRET));
    let alone = Fixture::with_room(None).await;
    assert_eq!(alone.draw(NOW).await, Ok(Drawing::Drawn));
    let signature = alone.beacon.signature(ROUND);
    assert_eq!(alone.bring(ROUND, signature).await, Err(Refusal::NotAwaited), "it names none");
    let without = Box::pin(Fixture::start()).await;
    assert_eq!(without.bring(ROUND, signature).await, Err(Refusal::NoRoom));
}
