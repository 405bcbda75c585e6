//! Draws on real servers, as the queue and reconcile have them: requested, repeated while the beacon's round is to
//! come, however long it is silent, and decided by the secret where the sale asks for one.

use engine::domain::admission::room::draw::{Commitment, LATE_ROUNDS, Latest, Source};
use engine::domain::admission::room::log::{Entry, Record};
use engine::domain::admission::room::serving::{Event, Room};
use engine::domain::basics::bytes::{Hash, Secret, Signature};
use engine::domain::basics::ids::GroupId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::serving::{BEACON_MS, DRAW_LEAD_MS, Settings};
use engine::flows::room::bring::{Brought, Refusal, Round, bring};
use engine::flows::room::draw::Drawing;
use engine::flows::room::publish::{DrawBy, publish};
use engine::flows::room::request::{Requested, draw_or_requeue, request_due};
use engine::ports::{RoomPorts, Rooms, Stored};
use fake_beacon::Fault;
use local::queues::{Queues, depth};
use local::stores;

use super::environment::{Fixture, NOW, sale_id};
use crate::backends::FIRST_ROUND;

/// The round that decides: a minute before the sale opens. The chain's rounds come each second from its genesis on.
const ROUND: u64 = 1_800_000_240 - fake_beacon::GENESIS_SECONDS + 1;
/// When the sale opens; its room closes now.
const OPENS: Timestamp = NOW.plus_ms(DRAW_LEAD_MS);
const SECRET: Secret = Secret([4; 32]);

/// The draw awaits this round of the fake beacon.
fn awaits(round: u64) -> Drawing {
    let out_at = Timestamp::from_ms(fake_beacon::rounds().time_ms(round));
    Drawing::AwaitsBeacon { round, out_at }
}

impl Fixture {
    /// A room whose beacon has had every round but the one that decides, or one that is drawn by its secret.
    async fn with_room(has_beacon: bool) -> Self {
        let fixture = Box::pin(Self::start()).await;
        let settings = Settings::new(GroupId::new("all").unwrap(), OPENS.ms(), 4);
        let earlier = NOW.plus_seconds(-1000);
        let sale = sale_id();
        let by = match has_beacon {
            true => DrawBy::Beacon(fake_beacon::rounds()),
            false => DrawBy::Secret(SECRET),
        };
        let room = publish(&fixture.ports, &sale, &settings, 40, &by, earlier);
        Box::pin(room).await.unwrap();
        fixture.beacon.advance(ROUND - 1 - FIRST_ROUND);
        fixture
    }

    /// A room that was published by the rules before.
    async fn with_room_of_before(beacon: Option<Hash>) -> Self {
        let fixture = Box::pin(Self::start()).await;
        let settings = Settings::new(GroupId::new("all").unwrap(), OPENS.ms(), 4);
        let draw = Commitment { commitment: SECRET.commitment(), beacon };
        let room = Room::before(sale_id(), draw, settings);
        let first = Record::first(room, NOW.plus_seconds(-1000).ms());
        let rooms = fixture.ports.rooms();
        rooms.keep_secret(&sale_id(), &SECRET).await.unwrap();
        rooms.append(&sale_id(), &first).await.unwrap();
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
    let fixture = Fixture::with_room(true).await;
    assert_eq!(fixture.requested(NOW.plus_ms(-90_001)).await, NONE, "it is not due");
    assert_eq!(fixture.messages().await, 0);
    // It is requested by a message that comes with the closing.
    assert_eq!(fixture.requested(NOW.plus_ms(-90_000)).await, ONE);
    assert_eq!(fixture.messages().await, 1);
    assert_eq!(fixture.requested(NOW).await, ONE);
    assert_eq!(fixture.messages().await, 2);
    let late = Requested { late: 1, ..ONE };
    assert_eq!(fixture.requested(OPENS).await, late, "the sale has opened");
    // Half of it is done: the window is closed.
    assert_eq!(fixture.draw(NOW).await, Ok(awaits(ROUND)));
    assert_eq!(fixture.requested(NOW).await, ONE);
    fixture.beacon.advance(1);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.requested(OPENS).await, NONE);
    let without = Box::pin(Fixture::start()).await;
    assert_eq!(without.requested(OPENS).await, NONE, "the sale has no room");
    assert_eq!(without.draw(NOW).await, Ok(Drawing::NoRoom));
    assert_eq!(without.messages().await, 0);
}

#[tokio::test]
async fn a_window_that_a_clock_ahead_has_closed_is_noticed() {
    let fixture = Fixture::with_room(true).await;
    let early = NOW.plus_seconds(-900);
    assert_eq!(fixture.requested(early).await, NONE);
    assert_eq!(fixture.draw(NOW).await, Ok(awaits(ROUND)));
    assert_eq!(fixture.requested(early).await, Requested { ahead: 1, ..NONE });
    let minute = NOW.plus_seconds(-60);
    assert_eq!(fixture.requested(minute).await, ONE, "clocks differ");
}

#[tokio::test]
async fn a_draw_that_is_early_or_awaits_the_beacon_asks_for_itself_again() {
    let fixture = Fixture::with_room(true).await;
    assert_eq!(fixture.draw(NOW.plus_seconds(-1)).await, Ok(Drawing::NotDue(NOW)));
    assert_eq!(fixture.messages().await, 1);
    for messages in [2, 3] {
        assert_eq!(fixture.draw(NOW).await, Ok(awaits(ROUND)));
        assert_eq!(fixture.messages().await, messages, "asking again is never left out");
    }
    fixture.beacon.advance(1);
    // What comes is not the round: the draw asks again.
    let faults = [Fault::FalseSignature, Fault::OtherRound, Fault::OtherSignature, Fault::Endless];
    for fault in faults {
        fixture.beacon.set_fault(Some(fault));
        let awaits = Ok(awaits(ROUND));
        assert_eq!(fixture.draw(NOW).await, awaits, "{fault:?}");
    }
    fixture.beacon.set_fault(None);
    assert_eq!(fixture.messages().await, 7);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.messages().await, 7, "it is done");
    let signature = fixture.beacon.signature(ROUND);
    assert_eq!(fixture.source().await, Source::Beacon { round: ROUND, signature });
    // Drawn once, by a record that is not dated before the round.
    let last = fixture.last_record().await;
    assert_eq!(last.at_ms, OPENS.plus_seconds(-60).ms());
    assert_eq!(fixture.draw(OPENS).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.last_record().await, last);
}

/// Each message that a silence found under way, and each copy of one, would else come again every three seconds for as long.
#[tokio::test]
async fn a_long_silence_is_asked_about_once_a_minute() {
    let fixture = Fixture::with_room(true).await;
    fixture.beacon.set_fault(Some(Fault::NoRound));
    let out = OPENS.plus_seconds(-60);
    for (now, messages) in [
        (NOW, 1),
        (out, 2),
        (out.plus_ms(59_999), 3),
        (out.plus_seconds(60), 3),
        (out.plus_seconds(3_600), 3),
    ] {
        assert_eq!(fixture.draw(now).await, Ok(awaits(ROUND)), "{now}");
        assert_eq!(fixture.messages().await, messages, "{now}");
    }
    assert_eq!(fixture.requested(out.plus_seconds(61)).await.requested, 1);
    assert_eq!(fixture.messages().await, 4, "the check of each minute goes on");
}

/// Its round comes for everybody or for nobody: no fault of it lets a secret decide, for there is none.
#[tokio::test]
async fn a_silent_beacon_is_waited_for() {
    let awaits = Ok(awaits(ROUND));
    let late = OPENS.plus_seconds(3 * 3_600);
    for fault in [Fault::NoRound, Fault::Late(8), Fault::FalseSignature, Fault::Fail] {
        let fixture = Fixture::with_room(true).await;
        assert_eq!(fixture.ports.rooms().secret(&sale_id()).await, Ok(None));
        fixture.beacon.set_fault(Some(fault));
        assert_eq!(fixture.draw(NOW).await, awaits, "the window is closed all the same");
        fixture.beacon.advance(1);
        for now in [NOW.plus_seconds(120), OPENS, late] {
            assert_eq!(fixture.draw(now).await, awaits, "{fault:?}");
        }
        fixture.beacon.set_fault(None);
        assert_eq!(fixture.draw(late).await, Ok(Drawing::Drawn), "{fault:?}");
        let signature = fixture.beacon.signature(ROUND);
        assert_eq!(fixture.source().await, Source::Beacon { round: ROUND, signature });
    }
    let alone = Fixture::with_room(false).await;
    assert_eq!(alone.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(alone.source().await, Source::Secret(SECRET));
}

#[tokio::test]
async fn a_late_closing_awaits_the_next_round_of_the_series() {
    let fixture = Fixture::with_room(true).await;
    fixture.beacon.advance(1);
    // The round that is named is out.
    let late = OPENS.plus_seconds(-60);
    let round = (ROUND / LATE_ROUNDS + 1) * LATE_ROUNDS;
    assert_eq!(fixture.draw(late).await, Ok(awaits(round)));
    let named = fixture.beacon.signature(ROUND);
    assert_eq!(fixture.bring(ROUND, named).await, Err(Refusal::NotAwaited));
    fixture.beacon.advance(round - ROUND);
    assert_eq!(fixture.draw(late).await, Ok(Drawing::Drawn));
    let signature = fixture.beacon.signature(round);
    assert_eq!(fixture.source().await, Source::Beacon { round, signature });
}

/// As their rules have it: where no round is quoted by two minutes after the closing, the secret decides.
#[tokio::test]
async fn a_room_of_before_ends_by_the_rules_of_before() {
    let alone = Fixture::with_room_of_before(None).await;
    assert_eq!(alone.draw(NOW).await, Ok(Drawing::Drawn));
    assert_eq!(alone.source().await, Source::Secret(SECRET));
    let fixture = Fixture::with_room_of_before(Some(fake_beacon::hash())).await;
    let may = NOW.plus_ms(BEACON_MS);
    assert_eq!(fixture.draw(NOW).await, Ok(Drawing::NotDue(may)));
    assert_eq!(fixture.draw(may).await, Ok(Drawing::Drawn));
    assert_eq!(fixture.source().await, Source::Secret(SECRET));
    let closed = fixture.last_record().await.state.groups[0].closed.unwrap();
    assert_eq!(closed.closing.latest_round, Some(Latest(None)));
}

#[tokio::test]
async fn without_its_secret_a_room_is_not_drawn() {
    let fixture = Fixture::with_room(false).await;
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
    let fixture = Fixture::with_room(true).await;
    let signature = fixture.beacon.signature(ROUND);
    assert_eq!(fixture.bring(ROUND, signature).await, Err(Refusal::NotAwaited), "it is open");
    assert_eq!(fixture.draw(NOW).await, Ok(awaits(ROUND)));
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
async fn no_round_is_brought_where_none_decides() {
    let alone = Fixture::with_room(false).await;
    assert_eq!(alone.draw(NOW).await, Ok(Drawing::Drawn));
    let signature = alone.beacon.signature(ROUND);
    assert_eq!(alone.bring(ROUND, signature).await, Err(Refusal::NotAwaited), "it names none");
    let without = Box::pin(Fixture::start()).await;
    assert_eq!(without.bring(ROUND, signature).await, Err(Refusal::NoRoom));
}
