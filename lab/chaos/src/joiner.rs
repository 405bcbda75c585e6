//! A person in a waiting room: joins, waits until the place is due, is let in and orders a ticket, whatever breaks
//! meanwhile.

use std::sync::Arc;
use std::time::Duration;

use engine::domain::admission::room::document::Document;
use engine::domain::basics::bytes::Nonce;
use engine::domain::basics::ids::GroupId;
use engine::domain::basics::number::OrderNumber;
use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::persistent::Persistent;
use super::rooms::{People, Step};

/// Time between two looks at the room document, in milliseconds.
const LOOK_MS: std::ops::Range<u64> = 700..1_300;

/// Somebody who comes to a room.
#[derive(Debug)]
pub(super) struct Joiner {
    /// The position among the people of the room.
    pub(super) who: usize,
    /// The people of the room.
    pub(super) people: Arc<People>,
    /// The person's connection to the API of the sale, `http://127.0.0.1:PORT/sales/SALE`.
    pub(super) api: Persistent,
    /// The time after which this person comes.
    pub(super) comes_after: Duration,
    /// Seeded generator of every choice.
    pub(super) random: StdRng,
}

/// A membership, as the room answers with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Joined {
    /// The token of the place.
    place_token: String,
    pub(super) group: GroupId,
    /// The window that the index is drawn in, `first` or `later`.
    pub(super) window: String,
    /// The index in the group.
    pub(super) index: u32,
    /// The nonce of the leaf.
    pub(super) nonce: Nonce,
    /// The place, once it is drawn.
    pub(super) place: Option<u32>,
    /// Milliseconds after which to ask again, while it is not certain that the draw sees this membership.
    retry_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Admission {
    token: String,
}

#[derive(Debug, Deserialize)]
struct Ordered {
    order: OrderNumber,
}

impl Joiner {
    /// Goes all the way; whatever must not be answered is remembered.
    pub(super) async fn run(mut self) {
        tokio::time::sleep(self.comes_after).await;
        if let Err(what) = self.go().await {
            self.people.violation(self.who, &what);
        }
    }

    async fn go(&mut self) -> Result<(), String> {
        let mut joined = self.join().await?;
        self.people.at(self.who, Step::Draw);
        while joined.place.is_none() {
            let document = self.document().await?;
            let drawn = document.groups.iter().find(|of| of.group == joined.group);
            if drawn.is_some_and(|of| joined.index < of.window) {
                joined = self.join().await?;
            }
            if joined.place.is_none() {
                self.pause().await;
            }
        }
        self.people.at(self.who, Step::Turn);
        let place = joined.place.unwrap_or_default();
        loop {
            let document = self.document().await?;
            let served = document.groups.iter().find(|of| of.group == joined.group);
            if served.is_some_and(|of| place < of.serving) {
                break;
            }
            self.pause().await;
        }
        self.people.at(self.who, Step::Visit);
        let order = self.order(&joined, place).await?;
        self.people.done(self.who, order);
        Ok(())
    }

    /// Joins, or asks for the membership again, until it is certain.
    async fn join(&self) -> Result<Joined, String> {
        loop {
            let asked = self.api.ask(Method::POST, "places", Some(&json!({}))).await;
            let joined: Joined = asked.map_err(|kind| format!("was refused to join: {kind}"))?;
            match joined.retry_ms {
                Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                None => {
                    self.people.told(self.who, &joined)?;
                    return Ok(joined);
                }
            }
        }
    }

    async fn document(&self) -> Result<Document, String> {
        let asked = self.api.ask(Method::GET, "room", None).await;
        asked.map_err(|kind| format!("was not shown the room: {kind}"))
    }

    /// Claims the place until an admission has made an order: one that a fault made too old is replaced.
    async fn order(&mut self, joined: &Joined, place: u32) -> Result<OrderNumber, String> {
        let claim = json!({ "place": place, "token": joined.place_token });
        loop {
            let claim = json!({ "tickets": 1, "place": claim });
            let asked = self.api.ask(Method::POST, "admissions", Some(&claim)).await;
            let admission: Admission = asked.map_err(|kind| {
                format!("has place {place} of index {}, and was not let in: {kind}", joined.index)
            })?;
            let lines = json!([{ "tier": "standing", "best": { "count": 1 } }]);
            let order = json!({ "admission": admission.token, "lines": lines });
            match self.api.ask::<Ordered>(Method::POST, "orders", Some(&order)).await {
                Ok(ordered) => return Ok(ordered.order),
                Err(kind) if ["not-admitted", "order-resolved"].contains(&kind.as_str()) => {
                    self.pause().await;
                }
                Err(kind) => return Err(format!("was let in and could not order: {kind}")),
            }
        }
    }

    async fn pause(&mut self) {
        let ms = self.random.random_range(LOOK_MS);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
