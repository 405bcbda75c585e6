//! What the crowd sees of a sale: its seat map once, what is left every second.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Deserialize;
use tokio::sync::Mutex;

use engine::domain::admission::room::document::Document;
use engine::domain::basics::ids::{GroupId, Legs, Seat};
use engine::domain::sale::{Sale, SaleFile, Tier};
use shared::http::journey_query::journey_query;

use super::client::{Call, Client, Reply};
use super::people::windows::Window;

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
    pub sale: Sale,
    /// Path of its admissions.
    pub admissions: String,
    /// Path of its orders.
    pub orders: String,
    /// Path of the visits of its waiting room.
    pub visits: String,
    /// Path of the places of its waiting room.
    pub places: String,
    /// Path of its waiting room.
    pub room: String,
    document: Mutex<Option<(Instant, Rc<Document>)>>,
    /// S of each group by each document that was read, and when.
    served: RefCell<Vec<(Instant, Vec<u32>)>>,
    /// The windows of the groups that are known, by the position of the group.
    pub windows: Mutex<Vec<(usize, Window)>>,
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
                // What is asked of buyers is not shown in full, and no part of what is sold.
                let file = SaleFile { challenges: None, ..file };
                let sale = Sale::new(file)
                    .map_err(|defects| format!("sale {id} has defects: {}", defects.len()))?;
                let (admissions, orders) = (format!("{path}/admissions"), format!("{path}/orders"));
                let visits = format!("{path}/visits");
                let (places, room) = (format!("{path}/places"), format!("{path}/room"));
                Ok(Self {
                    sale,
                    admissions,
                    orders,
                    visits,
                    places,
                    room,
                    document: Mutex::default(),
                    served: RefCell::default(),
                    windows: Mutex::default(),
                    snapshots: Mutex::default(),
                })
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
        let (now, serving) = (Instant::now(), document.groups.iter().map(|group| group.serving));
        self.served.borrow_mut().push((now, serving.collect()));
        *kept = Some((now, Rc::clone(&document)));
        Ok(document)
    }

    /// Position of a group in the room.
    #[must_use]
    pub fn room_group(&self, group: &GroupId) -> Option<usize> {
        self.sale.file().room.as_ref()?.groups.iter().position(|known| known.group == *group)
    }

    /// When a document first said that a place of a group is due; `None` if none has.
    #[must_use]
    pub fn due_at(&self, group: usize, place: u32) -> Option<Instant> {
        let served = self.served.borrow();
        // Serving numbers only grow.
        let first = served.partition_point(|(_, serving)| {
            serving.get(group).is_none_or(|serving| *serving <= place)
        });
        served.get(first).map(|(at, _)| *at)
    }

    /// When a document first said that anybody is served; `None` if none has.
    #[must_use]
    pub fn opened_at(&self) -> Option<Instant> {
        let served = self.served.borrow();
        let first = served.partition_point(|(_, serving)| serving.iter().all(|many| *many == 0));
        served.get(first).map(|(at, _)| *at)
    }

    /// The serving numbers by the last document, by the positions of the groups; none if no document was read.
    #[must_use]
    pub fn serving(&self) -> Vec<u32> {
        self.served.borrow().last().map(|(_, serving)| serving.clone()).unwrap_or_default()
    }

    /// What the last room document says is left of each tier, in seat-legs; `None` without one.
    fn left_of_tiers(&self) -> Option<Vec<u64>> {
        let kept = self.document.try_lock().ok()?;
        kept.as_ref()?.1.tiers.clone()
    }

    /// At most what is left of a tier, of these tickets; at least one. All that are wanted where no room document
    /// says what is left.
    #[must_use]
    pub fn fitting(&self, tier: &Tier, tickets: u16) -> u16 {
        let left = self.left_of_tiers().and_then(|left| {
            let at = self.sale.tiers().iter().position(|other| other.tier == tier.tier)?;
            left.get(at).copied()
        });
        let left = left.map_or(tickets, |left| u16::try_from(left).unwrap_or(u16::MAX));
        tickets.min(left).max(1)
    }

    /// A journey that somebody would want, in a tier that sells it.
    pub fn some_journey(&self, random: &mut StdRng) -> Legs {
        let from = random.random_range(0..self.sale.leg_count());
        let to = random.random_range(from + 1..=self.sale.leg_count());
        Legs::new(from, to).unwrap_or(self.sale.whole())
    }

    /// A tier that sells a journey: larger tiers are chosen more often. With a waiting room those of which more is
    /// left: whoever waits reads that.
    pub fn some_tier(&self, legs: Legs, random: &mut StdRng) -> Option<&Tier> {
        let left = self.left_of_tiers().filter(|left| left.iter().any(|left| *left > 0));
        let sizes: Vec<(&Tier, u64)> = (self.sale.tiers().iter().enumerate())
            .filter(|(_, tier)| tier.price_minor(legs).is_some())
            .map(|(at, tier)| {
                let left = left.as_ref().and_then(|left| left.get(at).copied());
                (tier, left.unwrap_or_else(|| tier.layout.sellable().into()))
            })
            .collect();
        let all: u64 = sizes.iter().map(|(_, size)| size).sum();
        let mut ticket = random.random_range(0..all.max(1));
        let drawn = sizes.into_iter().find(|(_, size)| {
            let is_this = ticket < *size;
            ticket = ticket.saturating_sub(*size);
            is_this
        });
        drawn.map(|(tier, _)| tier)
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
