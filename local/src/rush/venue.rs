//! What the crowd sees of a sale: its seat map once, what is left every second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use reqwest::Method;
use serde::Deserialize;
use tokio::sync::Mutex;

use shared::domain::ids::{Legs, Seat};
use shared::domain::sale::{Sale, SaleFile, Tier};

use super::client::{Client, Endpoint, Reply};

/// How long a look at what is left stays good, as a browser's cache would keep it.
const LOOK: Duration = Duration::from_secs(1);

/// What is left of one tier on one journey.
#[derive(Debug, Clone)]
pub struct Left {
    /// How many seats.
    pub count: u32,
    /// Which: 1 is free, in the order of the tier's layout.
    pub free: Vec<u8>,
}

impl Left {
    fn is_free(&self, seat: Seat) -> bool {
        self.free.get((seat.0 / 8) as usize).is_some_and(|byte| byte & (0x80 >> (seat.0 % 8)) != 0)
    }
}

type Look = (Instant, Arc<HashMap<String, Left>>);

/// One sale as the crowd sees it.
#[derive(Debug)]
pub struct Venue {
    /// The sale.
    pub sale: Sale,
    looks: Mutex<HashMap<Legs, Look>>,
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
        match client.send(Endpoint::Query, Method::GET, &path, &[], None).await {
            Reply::Ok(mut body) => {
                let file: SaleFile = serde_json::from_value(body["file"].take())
                    .map_err(|error| format!("sale {id} is not a sale file: {error}"))?;
                let sale = Sale::new(file)
                    .map_err(|defects| format!("sale {id} has defects: {}", defects.len()))?;
                Ok(Self { sale, looks: Mutex::default() })
            }
            other @ (Reply::Problem { .. } | Reply::Lost(_)) => Err(format!("GET {path}: {other}")),
        }
    }

    /// Looks at what is left on a journey; `fresh` does not accept a look of a moment ago.
    pub async fn left(
        &self,
        client: &Client,
        legs: Legs,
        fresh: bool,
    ) -> Option<Arc<HashMap<String, Left>>> {
        let mut looks = self.looks.lock().await;
        if let Some((at, left)) = looks.get(&legs)
            && !fresh
            && at.elapsed() < LOOK
        {
            return Some(Arc::clone(left));
        }
        let query = match (self.sale.stop(legs.from()), self.sale.stop(legs.to())) {
            (Some(from), Some(to)) => format!("?from={from}&to={to}"),
            (Some(_) | None, _) => String::new(),
        };
        let path = format!("/sales/{}/availability{query}", self.sale.id());
        let Reply::Ok(body) = client.send(Endpoint::Query, Method::GET, &path, &[], None).await
        else {
            return None;
        };
        let answer: Availability = serde_json::from_value(body).ok()?;
        let decode = |tier: TierAvailability| {
            let free = base64::engine::general_purpose::STANDARD.decode(tier.free).ok()?;
            Some((tier.tier, Left { count: tier.available, free }))
        };
        let left: HashMap<String, Left> =
            answer.tiers.into_iter().map(decode).collect::<Option<_>>()?;
        let left = Arc::new(left);
        looks.insert(legs, (Instant::now(), Arc::clone(&left)));
        Some(left)
    }

    /// A journey that somebody would want, in a tier that sells it.
    pub fn some_journey(&self, random: &mut StdRng) -> Legs {
        let from = random.random_range(0..self.sale.legs());
        let to = random.random_range(from + 1..=self.sale.legs());
        Legs::new(from, to).unwrap_or(self.sale.whole())
    }

    /// A tier that sells a journey: larger tiers are wanted more.
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
        let rows = tier.layout.rows().len() as u32;
        let start = random.random_range(0..rows.max(1));
        let last = row_bits.checked_sub(u32::from(count))?;
        (0..rows).map(|offset| (start + offset) % rows).find_map(|row| {
            (0..=last).find_map(|column| {
                let first = row * row_bits + column;
                let seats = (first..first + u32::from(count)).map(Seat);
                let named = |seat| {
                    let name = tier.layout.name(seat).filter(|_| left.is_free(seat))?;
                    Some(name.to_string())
                };
                seats.map(named).collect()
            })
        })
    }
}
