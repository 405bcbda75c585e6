//! The way through a waiting room: an account joins, waits by the public document, and asks the gate when its
//! place is due. Its place is computed as a page computes it, from the published seed.

use std::rc::Rc;
use std::time::{Duration, Instant};

use engine::domain::ids::GroupId;
use engine::domain::room::bytes::Hash;
use engine::domain::room::document::{Document, GroupDocument, RoomState};
use engine::domain::room::shuffle::Shuffle;
use serde::Deserialize;
use serde_json::json;

use super::Class;
use super::fairness::Wait;
use crate::client::{Bearer, Call};
use crate::profile::Buyer;
use crate::session::{GateReply, LoadTest};
use crate::stopwatch::Endpoint;

/// Most times that an account joins: once more when its place has run out.
const MAX_JOINS: u32 = 2;
/// Most times that an account whose place is due asks the gate.
const MAX_ASKS: u32 = 20;
/// An account polls after so small a part of the wait that it expects.
const POLL_PART: u32 = 10;
/// Time that somebody oversleeps, in hundredths of the time for which a place stays due.
const OVERSLEEP_PERCENT: u64 = 150;

/// A membership, as the room answers with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Joined {
    place_token: String,
    group: GroupId,
    index: u32,
}

/// The window that an index was drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct Window {
    first: u32,
    end: u32,
    seed: Hash,
}

impl Window {
    /// The place of an index.
    fn place(self, index: u32) -> Option<u32> {
        let shuffle = Shuffle::new(self.seed, self.end.checked_sub(self.first)?);
        shuffle.place(index.checked_sub(self.first)?).map(|place| self.first + place)
    }
}

/// What a buyer does next who looks at the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// The place is not known yet, or this number of places are served before it.
    Waits(Option<u32>),
    /// The place is due.
    Due,
    /// Nobody is let in any more.
    Over,
}

/// What the document says to the holder of a place, which may not be known.
fn look(document: &Document, group: &GroupDocument, place: Option<u32>) -> Look {
    match document.state {
        RoomState::SoldOut | RoomState::Closed => Look::Over,
        RoomState::Joining
        | RoomState::Drawing
        | RoomState::Drawn
        | RoomState::Serving
        | RoomState::Paused
        | RoomState::Recovering
        | RoomState::Stalled => match place.map(|place| place.checked_sub(group.serving)) {
            None => Look::Waits(None),
            Some(Some(ahead)) => Look::Waits(Some(ahead)),
            Some(None) => Look::Due,
        },
    }
}

/// The shortest and the longest wait behind so many places, as the document lets expect it.
fn promised(group: &GroupDocument, ahead: u32) -> Option<(Duration, Duration)> {
    let (least, most) = group.advance.filter(|(least, _)| *least > 0)?;
    let wait = |a_minute: u64| Duration::from_secs_f64(f64::from(ahead) * 60.0 / a_minute as f64);
    Some((wait(most), wait(least)))
}

/// Time until the next look: a tenth of the wait, within the document's bounds.
fn pause(document: &Document, group: &GroupDocument, ahead: Option<u32>) -> Duration {
    let bounds =
        [document.poll.min_seconds, document.poll.max_seconds.max(document.poll.min_seconds)];
    let [min, max] = bounds.map(Duration::from_secs);
    let wait = ahead.and_then(|ahead| promised(group, ahead));
    wait.map_or(min, |(least, _)| (least / POLL_PART).clamp(min, max))
}

impl LoadTest {
    /// An account comes to a sale with a waiting room: joins, waits, is let in and orders, or leaves; nobody
    /// begins anything any more after `until`.
    pub(crate) async fn through_the_room(
        self: &Rc<Self>,
        buyer: Buyer,
        due: Instant,
        until: Instant,
    ) {
        let Some(bearer) = self.bearer_of(&buyer) else { return };
        let mut due = due;
        for _ in 0..MAX_JOINS {
            let Some(joined) = self.join_room(&buyer, &bearer, due).await else { return };
            let Some(place) = self.wait_for_turn(&buyer, &joined, until).await else { return };
            if buyer.class() == Class::Sleeper {
                let venue = &self.venues[buyer.sale];
                let show_up_ms = venue.sale.room().map_or(0, |room| room.show_up_ms);
                let sleep = Duration::from_millis(show_up_ms * OVERSLEEP_PERCENT / 100);
                self.later(sleep.min(until.saturating_duration_since(Instant::now()))).await;
                if Instant::now() >= until {
                    return self.tally.gave_up.one();
                }
            }
            let claim = json!({ "place": place, "token": joined.place_token });
            if buyer.class() == Class::Sharer {
                self.share_the_place(&buyer, &claim).await;
            }
            for _ in 0..MAX_ASKS {
                match self.ask(&buyer, Some(&claim), true, Instant::now(), None).await {
                    GateReply::Admitted(admission) => {
                        return Box::pin(self.order_with(buyer, admission)).await;
                    }
                    GateReply::Later(wait) | GateReply::Waiting(wait) if Instant::now() < until => {
                        self.later(wait).await;
                    }
                    GateReply::Later(_) | GateReply::Waiting(_) => return self.tally.gave_up.one(),
                    GateReply::Refused => break,
                }
            }
            // Whoever has overslept joins again, behind everybody else.
            if buyer.class() != Class::Sleeper || Instant::now() >= until {
                return;
            }
            self.tally.returned(buyer.class());
            due = Instant::now();
        }
    }

    async fn join_room(&self, buyer: &Buyer, bearer: &Bearer, due: Instant) -> Option<Joined> {
        let venue = &self.venues[buyer.sale];
        let call = self.made(Call::post(Endpoint::Join, &venue.places, "{}"))?.by(bearer);
        let reply = self.persist(&call, due, None).await;
        let joined = reply.read();
        match &joined {
            Some(_) => self.visits.borrow_mut().of(buyer.index).joined = true,
            None => self.refused(Endpoint::Join, &reply),
        }
        joined
    }

    /// Waits until the place of a membership is due; `None` if it will not be, or if its holder leaves before.
    async fn wait_for_turn(&self, buyer: &Buyer, joined: &Joined, until: Instant) -> Option<u32> {
        let venue = &self.venues[buyer.sale];
        let (mut place, mut expects) = (None, None);
        while Instant::now() < until {
            let document = match venue.room(&self.client).await {
                Ok(document) => document,
                Err(reply) => {
                    self.tally.repeat(crate::session::repeated_for(&reply));
                    self.later(Duration::from_secs(2)).await;
                    continue;
                }
            };
            let group = document.groups.iter().find(|group| group.group == joined.group)?;
            if place.is_none() {
                place = self.place_of(buyer, joined, group).await;
            }
            match look(&document, group, place) {
                Look::Over => {
                    self.tally.refuse("room-over");
                    return None;
                }
                Look::Due => {
                    if let Some((since, least, most)) = expects {
                        let had = Instant::now().duration_since(since);
                        let wait = Wait { least, most, had };
                        self.visits.borrow_mut().of(buyer.index).wait = Some(wait);
                    }
                    return place;
                }
                Look::Waits(ahead) => {
                    if ahead.is_some() && buyer.class() == Class::Leaver {
                        self.tally.gave_up.one();
                        return None;
                    }
                    let range = ahead.and_then(|ahead| promised(group, ahead));
                    if let Some((least, most)) = range.filter(|_| expects.is_none()) {
                        expects = Some((Instant::now(), least, most));
                    }
                    self.later(pause(&document, group, ahead)).await;
                }
            }
        }
        None
    }

    /// The place of a membership, once its window is drawn.
    async fn place_of(&self, buyer: &Buyer, joined: &Joined, group: &GroupDocument) -> Option<u32> {
        let first = group.seed.zip(group.count);
        if let Some((seed, count)) = first.filter(|(_, count)| joined.index < *count) {
            return Window { first: 0, end: count, seed }.place(joined.index);
        }
        if joined.index >= group.window {
            return None;
        }
        let venue = &self.venues[buyer.sale];
        let path = format!("{}/windows/{}/{}", venue.room, joined.group, joined.index);
        let call = self.made(Call::get(&path))?;
        let window: Window = self.client.send(&call).await.read()?;
        window.place(joined.index)
    }

    /// Another account comes with the place of a sharer: it must be refused.
    async fn share_the_place(&self, buyer: &Buyer, claim: &serde_json::Value) {
        let friend = format!("{}-friend", buyer.user);
        let Some(bearer) = self.bearer(&friend, buyer.class()) else { return };
        let venue = &self.venues[buyer.sale];
        let body = json!({ "tickets": 1, "place": claim }).to_string();
        let call = self.made(Call::post(Endpoint::Admission, &venue.admissions, body));
        let Some(call) = call.map(|call| call.by(&bearer)) else { return };
        let reply = self.persist(&call, Instant::now(), None).await;
        if let GateReply::Admitted(_) = self.gate_reply(buyer.class(), reply) {
            self.tally.anomaly(format!("{friend} was let in with the place of {}", buyer.user));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn document(state: &str, group: Value) -> (Document, GroupDocument) {
        let mut all =
            json!({ "group": "all", "serving": 100, "passed": 40, "joined": 900, "window": 900 });
        for (name, value) in group.as_object().unwrap() {
            all[name] = value.clone();
        }
        let document: Document = serde_json::from_value(json!({
            "state": state, "as_of": "2027-01-15T08:00:00Z", "draw_closes_at": "2027-01-15T07:58:00Z",
            "opens_at": "2027-01-15T08:00:00Z", "groups": [all], "rate": 10, "record": 3,
            "head": "0".repeat(64), "poll": { "min_seconds": 2, "max_seconds": 60, "jitter_percent": 30 },
        }))
        .unwrap();
        let group = document.groups[0].clone();
        (document, group)
    }

    #[test]
    fn a_place_is_waited_for_until_it_is_due() {
        let (serving, group) = document("serving", json!({}));
        for (place, expected) in [
            (None, Look::Waits(None)),
            (Some(100), Look::Waits(Some(0))),
            (Some(130), Look::Waits(Some(30))),
            (Some(99), Look::Due),
            (Some(0), Look::Due),
        ] {
            assert_eq!(look(&serving, &group, place), expected, "{place:?}");
        }
        for (state, expected) in
            [("paused", Look::Waits(Some(5))), ("sold_out", Look::Over), ("closed", Look::Over)]
        {
            let (document, group) = document(state, json!({}));
            assert_eq!(look(&document, &group, Some(105)), expected, "{state}");
        }
    }

    #[test]
    fn what_is_promised_is_the_advance_and_looks_are_a_tenth_of_it() {
        let seconds = |seconds: u64| Duration::from_secs(seconds);
        let (document, group) = document("serving", json!({ "advance": [75, 135] }));
        // 900 places at 135 a minute are 400 s, at 75 a minute 720 s.
        assert_eq!(promised(&group, 900), Some((seconds(400), seconds(720))));
        assert_eq!(pause(&document, &group, Some(900)), seconds(40));
        assert_eq!(
            pause(&document, &group, Some(9_000)),
            seconds(60),
            "no longer than the longest"
        );
        assert_eq!(pause(&document, &group, Some(1)), seconds(2), "no shorter than the shortest");
        assert_eq!(pause(&document, &group, None), seconds(2));
        for advance in [json!({}), json!({ "advance": [0, 0] })] {
            let (_, group) = self::document("serving", advance);
            assert_eq!(promised(&group, 9), None);
        }
    }

    #[test]
    fn a_place_is_computed_as_the_gate_computes_it() {
        let seed = Hash([7; 32]);
        let mut places: Vec<u32> = (500..600)
            .map(|index| Window { first: 500, end: 600, seed }.place(index).unwrap())
            .collect();
        assert!(!places.is_sorted(), "they are drawn");
        places.sort_unstable();
        assert_eq!(places, (500..600).collect::<Vec<_>>());
        for index in [499, 600] {
            assert_eq!(Window { first: 500, end: 600, seed }.place(index), None);
        }
    }
}
