//! The way through a waiting room: an account joins, waits by the public document, and asks the gate when its
//! place is due. Its place is computed as a page computes it, from the published seed.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use engine::domain::admission::room::document::{Document, GroupDocument, RoomState, wait_at};
use engine::domain::basics::ids::GroupId;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use serde_json::json;

use super::Class;
use super::promises::Shown;
use super::windows::{Member, Window};
use crate::client::{Bearer, Call, Reply};
use crate::profile::Buyer;
use crate::session::{GateReply, LoadTest};
use crate::stopwatch::Endpoint;
use crate::venue::Venue;

/// Most times that an account joins: once more when its place has run out.
const MAX_JOINS: u32 = 2;
/// Most times that an account whose place is due asks the gate.
const MAX_ASKS: u32 = 20;
/// An account polls after so small a part of the wait that it expects.
const POLL_PART: u32 = 10;
/// Times that a script asks again for a place that it has.
const SCRIPT_JOINS: u32 = 2;
/// Time from the opening on after which promises count: what was served in the first minute is what the later ones
/// go by.
const SECOND_MINUTE: Duration = Duration::from_secs(60);
/// Time that somebody oversleeps, in hundredths of the time for which a place stays due.
const OVERSLEEP_PERCENT: u64 = 150;

/// Time for which those look who never order.
const LOOKS_FOR: Duration = Duration::from_secs(240);
/// Time in which the others choose, in milliseconds.
const CHOOSES_MS: Range<u64> = 5_000..90_000;

/// A membership, as the room answers with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Joined {
    place_token: String,
    group: GroupId,
    index: u32,
    /// Milliseconds after which to ask again, while it is not certain that the draw sees this place.
    retry_ms: Option<u64>,
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

/// Time until the next look: a tenth of the wait, within the document's bounds, before what is added or taken at
/// random.
fn pause(document: &Document, group: &GroupDocument, ahead: Option<u32>) -> Duration {
    let bounds =
        [document.poll.min_seconds, document.poll.max_seconds.max(document.poll.min_seconds)];
    let [min, max] = bounds.map(Duration::from_secs);
    // Where nobody is served now, whoever is next may be in a moment, and the others later.
    let shortest = match document.state {
        // Nobody is served before the opening, which the document says, and then those before it: as pages have it.
        RoomState::Drawn => {
            let ms = u64::try_from(document.opens_at.ms_since(document.as_of)).unwrap_or(0);
            let before = ahead.map_or(0.0, f64::from) / document.rate.max(1) as f64;
            Some(Duration::from_millis(ms) + Duration::from_secs_f64(before))
        }
        RoomState::Joining
        | RoomState::Drawing
        | RoomState::Serving
        | RoomState::Paused
        | RoomState::Recovering
        | RoomState::Stalled
        | RoomState::SoldOut
        | RoomState::Closed => {
            ahead.zip(group.advance).map(|(ahead, (_, most))| wait_at(ahead, most))
        }
    };
    shortest.map_or(min, |shortest| (shortest / POLL_PART).clamp(min, max))
}

/// A pause with what the document lets a client add or take at random.
fn jittered(document: &Document, pause: Duration, random: &mut StdRng) -> Duration {
    let jitter = u32::try_from(document.poll.jitter_percent.min(100)).unwrap_or(0);
    pause * random.random_range(100 - jitter..=100 + jitter) / 100
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
            if self.people_look && !self.looks(&buyer, &bearer, &claim).await {
                return;
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

    /// Somebody opens the page of seats: whoever is no bot begins the visit there and chooses, the others ask at once.
    /// False if nothing is ordered.
    async fn looks(&self, buyer: &Buyer, bearer: &Bearer, claim: &serde_json::Value) -> bool {
        let never_orders = matches!(buyer.class(), Class::Looker | Class::Gazer);
        if buyer.class().is_bot() && !never_orders {
            return true;
        }
        let venue = &self.venues[buyer.sale];
        let body = json!({ "place": claim }).to_string();
        let call = self.made(Call::post(Endpoint::Visit, &venue.visits, body));
        let Some(call) = call.map(|call| call.by(bearer)) else { return false };
        let began = self.persist(&call, Instant::now(), None).await;
        if let Reply::Problem(_) = &began {
            self.refused(Endpoint::Visit, &began);
        }
        if never_orders {
            self.later(LOOKS_FOR).await;
            return false;
        }
        let mut random = StdRng::seed_from_u64(!buyer.seed);
        self.later(Duration::from_millis(random.random_range(CHOOSES_MS))).await;
        true
    }

    async fn join_room(&self, buyer: &Buyer, bearer: &Bearer, due: Instant) -> Option<Joined> {
        let venue = &self.venues[buyer.sale];
        let call = self.made(Call::post(Endpoint::Join, &venue.places, "{}"))?.by(bearer);
        let mut reply = self.persist(&call, due, None).await;
        if let Some(answered) = self.answered(buyer, &call, &reply).await {
            reply = self.persist(&answered, Instant::now(), None).await;
        }
        for _ in 0..MAX_ASKS {
            let Some(Joined { retry_ms: Some(ms), .. }) = reply.read() else { break };
            reply = self.persist(&call, self.later(Duration::from_millis(ms)).await, None).await;
        }
        let Some(joined) = reply.read::<Joined>() else {
            self.refused(Endpoint::Join, &reply);
            return None;
        };
        if buyer.class() == Class::Script {
            self.ask_for_another_place(buyer, &call, &joined).await;
        }
        self.visits.borrow_mut().of(buyer.index).joined = true;
        let is_bot = buyer.class().is_bot();
        let group = venue.room_group(&joined.group)?;
        let member = Member { sale: buyer.sale, group, index: joined.index, is_bot };
        self.members.borrow_mut().push(member);
        Some(joined)
    }

    /// A script asks for a place again and again: it must be the one that it has.
    async fn ask_for_another_place(&self, buyer: &Buyer, call: &Call, joined: &Joined) {
        for _ in 0..SCRIPT_JOINS {
            let reply = self.persist(call, Instant::now(), None).await;
            match reply.read::<Joined>() {
                Some(again) if again.index != joined.index => {
                    let (user, first, other) = (&buyer.user, joined.index, again.index);
                    self.tally.anomaly(format!("{user} has the indices {first} and {other}"));
                }
                // With challenges on joining it is asked for another answer.
                Some(_) | None => {}
            }
        }
    }

    /// Waits until the place of a membership is due; `None` if it will not be, or if its holder leaves before.
    async fn wait_for_turn(&self, buyer: &Buyer, joined: &Joined, until: Instant) -> Option<u32> {
        let venue = &self.venues[buyer.sale];
        let mut random = StdRng::seed_from_u64(buyer.seed);
        let (mut place, mut shown) = (None, Vec::new());
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
                place = self.place_of(venue, joined, group).await;
            }
            match look(&document, group, place) {
                Look::Over => {
                    self.tally.refuse("room-over");
                    return None;
                }
                Look::Due => {
                    self.served(venue, joined, place?, &shown);
                    return place;
                }
                Look::Waits(ahead) => {
                    if ahead.is_some() && buyer.class() == Class::Leaver {
                        self.tally.gave_up.one();
                        return None;
                    }
                    if let Some(ahead) = ahead {
                        let wait = group.wait_behind(ahead);
                        shown.push(Shown { at: Instant::now(), wait });
                    }
                    let pause = pause(&document, group, ahead);
                    self.later(jittered(&document, pause, &mut random)).await;
                }
            }
        }
        None
    }

    /// Holds what was shown from the second minute of serving on against when the place was due.
    fn served(&self, venue: &Venue, joined: &Joined, place: u32, shown: &[Shown]) {
        let group = venue.room_group(&joined.group);
        let due = group.and_then(|group| venue.due_at(group, place));
        let Some((opened, due)) = venue.opened_at().zip(due) else { return };
        let mut kept = self.promises.borrow_mut();
        for shown in shown.iter().filter(|shown| shown.at >= opened + SECOND_MINUTE) {
            kept.keep(*shown, due);
        }
    }

    /// The place of a membership, once its window is drawn. Whoever asks for a window that others ask for too asks
    /// by the last index that is drawn, which all see in the document: so a cache answers all but the first.
    async fn place_of(&self, venue: &Venue, joined: &Joined, group: &GroupDocument) -> Option<u32> {
        let at = venue.room_group(&joined.group)?;
        let mut windows = venue.windows.lock().await;
        if let Some((seed, end)) = group.seed.zip(group.count)
            && !windows.iter().any(|(of, window)| *of == at && window.first == 0)
        {
            windows.push((at, Window { first: 0, end, seed }));
        }
        if joined.index >= group.window {
            return None;
        }
        let known = |windows: &[(usize, Window)]| {
            let mut of = windows.iter().filter(|(of, _)| *of == at).map(|(_, window)| window);
            of.find(|window| window.has(joined.index)).copied()
        };
        for index in [group.window - 1, joined.index] {
            if let Some(window) = known(&windows) {
                return window.place(joined.index);
            }
            let path = format!("{}/windows/{}/{index}", venue.room, joined.group);
            let call = self.made(Call::get(&path))?;
            match self.client.send(&call).await {
                Reply::Ok(body) => windows.push((at, serde_json::from_slice(&body).ok()?)),
                Reply::Problem(_) | Reply::Lost(_) => return None,
            }
        }
        known(&windows)?.place(joined.index)
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
        assert_eq!(group.wait_behind(900), Some((seconds(400), seconds(720))));
        assert_eq!(pause(&document, &group, Some(900)), seconds(40));
        assert_eq!(
            pause(&document, &group, Some(9_000)),
            seconds(60),
            "no longer than the longest"
        );
        assert_eq!(pause(&document, &group, Some(1)), seconds(2), "no shorter than the shortest");
        assert_eq!(pause(&document, &group, None), seconds(2));
        let (document, still) = self::document("serving", json!({ "advance": [0, 0] }));
        for (ahead, expected) in [(0, 2), (1, 6), (90, 60)] {
            assert_eq!(pause(&document, &still, Some(ahead)), seconds(expected), "{ahead}");
        }
        for advance in [json!({}), json!({ "advance": [0, 0] })] {
            let (_, group) = self::document("serving", advance);
            assert_eq!(group.wait_behind(9), None);
        }
        // 100 are served, and what is left lasts for 20 to 40 more.
        let lasts = json!({ "advance": [75, 135], "lasts_to": [120, 140] });
        let (_, group) = self::document("serving", lasts);
        assert!(group.wait_behind(19).is_some());
        assert_eq!(group.wait_behind(20), None, "nobody knows when tickets come back");
    }
}
