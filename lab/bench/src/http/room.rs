//! The requests of a sale with a waiting room: joining, the room document, and what the gate refuses.

use std::time::{Duration, Instant};

use engine::domain::basics::time::Timestamp;
use serde_json::Value;

use super::requests::{self, WITH_ROOM};
use super::{Bench, Beside, Failure, json};

/// Time from the publication of the room to its opening, in seconds: in it one buyer joins.
const OPENS_IN_SECONDS: i64 = 3;
/// Time within which the room has to be drawn and to serve.
const SERVES_WITHIN: Duration = Duration::from_secs(120);
/// Time between two looks at the room.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// A place that is not due in any measurement.
const FAR_AWAY: u32 = 4_000_000_000;
/// The place of whoever joins first, and alone.
const FIRST: u32 = 0;

impl Bench {
    /// Puts the sale with the room on sale. One buyer alone is drawn first and served, so that place 0 is due
    /// and nobody else's.
    pub(super) async fn open_room(&self) -> Result<(), Failure> {
        let opens_at = Timestamp::now().plus_seconds(OPENS_IN_SECONDS);
        let file = requests::sale_with_room(opens_at);
        self.send(vec![self.write.publish(&file)?], 200).await?;
        let first = self.write.buyer("first")?;
        self.send(vec![self.write.join(&first)], 201).await?;
        let until = Instant::now() + SERVES_WITHIN;
        while self.serving().await? <= u64::from(FIRST) {
            if Instant::now() > until {
                return Err("the waiting room does not serve".into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// The serving number. Whoever asks makes the turn.
    async fn serving(&self) -> Result<u64, Failure> {
        let sent = self.send(vec![self.write.get(&document(), None)], 200).await?;
        let room = json(&sent.answers[0].body)?;
        room["groups"][0]["serving"].as_u64().ok_or_else(|| "no serving number".into())
    }

    /// One batch for each request of the room. Every buyer joins first.
    pub(super) async fn in_room(&mut self, buyers: &[requests::Buyer]) -> Result<(), Failure> {
        let joins = buyers.iter().map(|buyer| self.write.join(buyer)).collect();
        let joined = self.measure("join", Beside::Buyer, 201, joins).await?;
        let tokens: Vec<Value> = joined
            .answers
            .iter()
            .map(|answer| Ok(json(&answer.body)?["place_token"].take()))
            .collect::<Result<_, Failure>>()?;
        let again = buyers.iter().map(|buyer| self.write.join(buyer)).collect();
        self.measure("join: again", Beside::Buyer, 201, again).await?;
        let looks = vec![self.write.get(&document(), None); buyers.len()];
        self.measure("room", Beside::Anybody, 200, looks).await?;
        self.all_are_drawn(buyers, &tokens).await?;
        for (endpoint, place, status) in
            [("token-gate: not due", FAR_AWAY, 429), ("token-gate: false claim", FIRST, 403)]
        {
            let claims = buyers.iter().zip(&tokens);
            let claims = claims.map(|(buyer, token)| self.write.claim(buyer, place, token));
            self.measure(endpoint, Beside::Buyer, status, claims.collect()).await?;
        }
        Ok(())
    }

    /// Waits until every window that these buyers are in has ended: until then a false claim is only not due.
    async fn all_are_drawn(
        &self,
        buyers: &[requests::Buyer],
        tokens: &[Value],
    ) -> Result<(), Failure> {
        let until = Instant::now() + SERVES_WITHIN;
        loop {
            let claims = buyers.iter().zip(tokens);
            let claims = claims.map(|(buyer, token)| self.write.claim(buyer, FIRST, token));
            let sent =
                super::load::send(self.gateway, self.options.connections, claims.collect()).await?;
            if sent.answers.iter().all(|answer| answer.status == 403) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err("the windows of the waiting room do not end".into());
            }
            self.serving().await?;
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// The path of the room document.
fn document() -> String {
    format!("/sales/{WITH_ROOM}/room")
}
