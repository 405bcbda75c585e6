//! What the crowd sees of a sale: its seat map once, what is left every second.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Deserialize;
use tokio::sync::Mutex;

use engine::domain::ids::{Legs, Seat};
use engine::domain::room::document::Document;
use engine::domain::sale::{Sale, SaleFile, Tier};
use shared::http::journey_query::journey_query;

use super::client::{Call, Client, Reply};

/// Lifetime of a snapshot of the availability, as a browser's cache would keep it.
const SNAPSHOT_LIFETIME: Duration = Duration::from_secs(1);

/// Availability of one tier on one journey.
#[derive(Debug, Clone)]
pub struct Left {
    /// Number of free seats.
    pub count: u32,
    /// Bitmap of the seats, 1 where free, in the order of the tier's layout.
    pub free: Vec<u8>,
}

impl Left {
    fn is_free(&self, seat: Seat) -> bool {
        let byte = usize::try_from(seat.0 / 8).ok().and_then(|index| self.free.get(index));
        byte.is_some_and(|byte| byte & (0x80 >> (seat.0 % 8)) != 0)
    }

    /// True if any seat of these bytes is free.
    fn has_free(&self, bytes: Range<u32>) -> bool {
        let index = |byte: u32| usize::try_from(byte).unwrap_or(usize::MAX);
        let bytes = self.free.get(index(bytes.start)..index(bytes.end));
        bytes.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    }
}

type Snapshot = (Instant, Rc<HashMap<String, Left>>);

/// One sale as the crowd sees it.
#[derive(Debug)]
pub struct Venue {
    /// The sale.
    pub sale: Sale,
    /// Path of its admissions.
    pub admissions: String,
    /// Path of its orders.
    pub orders: String,
    /// Path of the places of its waiting room.
    pub places: String,
    /// Path of its waiting room.
    pub room: String,
    document: Mutex<Option<(Instant, Rc<Document>)>>,
    snapshots: Mutex<HashMap<Legs, Snapshot>>,
}

#[derive(Deserialize)]
struct Shown {
    file: SaleFile,
}

#[derive(Deserialize)]
struct Availability {
    tiers: Vec<TierAvailability>,
}

#[derive(Deserialize)]
struct TierAvailability {
    tier: String,
    available: u32,
    free: String,
}

impl Venue {
    /// Reads a sale from the gateway.
    ///
    /// # Errors
    /// Says what the gateway answered instead.
    pub async fn read(client: &Client, id: &str) -> Result<Self, String> {
        let path = format!("/sales/{id}");
        let call = Call::get(&path).map_err(|error| format!("sale {id}: {error}"))?;
        match client.send(&call).await {
            Reply::Ok(body) => {
                let Shown { file } = serde_json::from_slice(&body)
                    .map_err(|error| format!("sale {id} is not a sale file: {error}"))?;
                let sale = Sale::new(file)
                    .map_err(|defects| format!("sale {id} has defects: {}", defects.len()))?;
                let (admissions, orders) = (format!("{path}/admissions"), format!("{path}/orders"));
                let (places, room) = (format!("{path}/places"), format!("{path}/room"));
                let (document, snapshots) = (Mutex::default(), Mutex::default());
                Ok(Self { sale, admissions, orders, places, room, document, snapshots })
            }
            other @ (Reply::Problem(_) | Reply::Lost(_)) => Err(format!("GET {path}: {other}")),
        }
    }

    /// Reads what is left on a journey; `fresh` does not accept a snapshot of a moment ago.
    ///
    /// # Errors
    /// The answer that does not say so.
    pub async fn left(
        &self,
        client: &Client,
        legs: Legs,
        fresh: bool,
    ) -> Result<Rc<HashMap<String, Left>>, Reply> {
        let mut snapshots = self.snapshots.lock().await;
        if let Some((at, left)) = snapshots.get(&legs)
            && !fresh
            && at.elapsed() < SNAPSHOT_LIFETIME
        {
            return Ok(Rc::clone(left));
        }
        let query = match (self.sale.stop(legs.from()), self.sale.stop(legs.to())) {
            (Some(from), Some(to)) => journey_query(from, to),
            (Some(_) | None, _) => String::new(),
        };
        let path = format!("/sales/{}/availability{query}", self.sale.id());
        let call = Call::get(&path).map_err(|error| Reply::Lost(error.to_string()))?;
        let reply = client.send(&call).await;
        let Some(answer) = reply.read::<Availability>() else { return Err(reply) };
        let decode = |tier: TierAvailability| {
            let free = base64::engine::general_purpose::STANDARD.decode(tier.free).ok()?;
            Some((tier.tier, Left { count: tier.available, free }))
        };
        let left: Option<HashMap<String, Left>> = answer.tiers.into_iter().map(decode).collect();
        let left = Rc::new(left.ok_or(reply)?);
        snapshots.insert(legs, (Instant::now(), Rc::clone(&left)));
        Ok(left)
    }

    /// True if it has a waiting room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.sale.file().room.is_some()
    }

    /// The room document, as a cache has it that all people share: a second old at most.
    ///
    /// # Errors
    /// The answer that is none.
    pub async fn room(&self, client: &Client) -> Result<Rc<Document>, Reply> {
        let mut kept = self.document.lock().await;
        if let Some((at, document)) = &*kept
            && at.elapsed() < SNAPSHOT_LIFETIME
        {
            return Ok(Rc::clone(document));
        }
        let call = Call::get(&self.room).map_err(|error| Reply::Lost(error.to_string()))?;
        let reply = client.send(&call).await;
        let document = Rc::new(reply.read::<Document>().ok_or(reply)?);
        *kept = Some((Instant::now(), Rc::clone(&document)));
        Ok(document)
    }

    /// Places that were served by the last room document; `None` if none was read.
    #[must_use]
    pub fn places_served(&self) -> Option<u64> {
        let kept = self.document.try_lock().ok()?;
        let (_, document) = kept.as_ref()?;
        Some(document.groups.iter().map(|group| u64::from(group.serving)).sum())
    }

    /// A journey that somebody would want, in a tier that sells it.
    pub fn some_journey(&self, random: &mut StdRng) -> Legs {
        let from = random.random_range(0..self.sale.leg_count());
        let to = random.random_range(from + 1..=self.sale.leg_count());
        Legs::new(from, to).unwrap_or(self.sale.whole())
    }

    /// A tier that sells a journey: larger tiers are chosen more often.
    pub fn some_tier(&self, legs: Legs, random: &mut StdRng) -> Option<&Tier> {
        let sells: Vec<&Tier> =
            self.sale.tiers().iter().filter(|tier| tier.price_minor(legs).is_some()).collect();
        let size = |tier: &Tier| u64::from(tier.layout.sellable());
        let all: u64 = sells.iter().map(|tier| size(tier)).sum();
        let mut ticket = random.random_range(0..all.max(1));
        sells.into_iter().find(|tier| {
            let is_this = ticket < size(tier);
            ticket = ticket.saturating_sub(size(tier));
            is_this
        })
    }

    /// Some free seats of one row, as a person would pick them on the seat map: neighbours, at a
    /// place of their own liking.
    pub fn some_seats(
        &self,
        tier: &Tier,
        left: &Left,
        count: u16,
        random: &mut StdRng,
    ) -> Option<Vec<String>> {
        let row_bits = tier.layout.row_bytes() * 8;
        let rows = u32::try_from(tier.layout.rows().len()).unwrap_or(u32::MAX);
        let start = random.random_range(0..rows.max(1));
        let last = row_bits.checked_sub(u32::from(count))?;
        let row_bytes = tier.layout.row_bytes();
        let free = |row: &u32| left.has_free(row * row_bytes..(row + 1) * row_bytes);
        (0..rows).map(|offset| (start + offset) % rows).filter(free).find_map(|row| {
            (0..=last).find_map(|column| {
                let first = row * row_bits + column;
                let mut seats = (first..first + u32::from(count)).map(Seat);
                if !seats.clone().all(|seat| left.is_free(seat)) {
                    return None;
                }
                seats.try_fold(Vec::new(), |mut names, seat| {
                    names.push(tier.layout.name(seat)?.to_string());
                    Some(names)
                })
            })
        })
    }
}
