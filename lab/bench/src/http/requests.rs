//! The requests that are measured, written out before the clock runs: each does the real work of its
//! endpoint, for a buyer or an order of its own.

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};

use super::Failure;
use fake_identity::{Identity, Role};
use local::data_dir::Secrets;
use local::payment;

/// The sale that is bought from.
pub(super) const SALE: &str = "bench";
/// The sale that has nothing left.
pub(super) const SOLD_OUT: &str = "bench-sold-out";
/// The sale that has a waiting room.
pub(super) const WITH_ROOM: &str = "bench-room";
/// Number of tiers that the sale has; buyers spread over them.
pub(super) const TIERS: usize = 4;
/// Number of seats of an order.
pub(super) const SEATS: usize = 2;
/// Seats of a row.
const ROW_SEATS: usize = 50;
/// Time that a bearer token is good for, in seconds: longer than any measurement.
const TOKEN_SECONDS: u32 = 24 * 60 * 60;
/// Price of a seat, in minor units.
const PRICE_MINOR: i64 = 4500;

/// The two sales, the first with `seats` seats at least.
pub(super) fn sales(seats: usize) -> [Value; 2] {
    let rows = seats.div_ceil(TIERS * ROW_SEATS);
    let row = |tier: usize, row: usize| json!({ "row": row.to_string(), "seats": { "prefix": format!("{tier}-{row}-"), "first": 1, "count": ROW_SEATS } });
    let tier = |tier: usize| {
        let rows: Vec<Value> = (1..=rows).map(|number| row(tier, number)).collect();
        json!({ "tier": format!("t{tier}"), "name": format!("Tier {tier}"), "price_minor": PRICE_MINOR,
            "sections": [{ "section": "A", "rows": rows }] })
    };
    let sale = |sale: &str, tiers: Vec<Value>| {
        json!({
            "sale": sale, "title": sale, "currency": "EUR", "limit_per_buyer": 4, "pay_window_seconds": 900,
            "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-12-31T23:59:59Z",
            "gate": { "shards": 4, "budget_percent": 150, "rate_per_second": 1_000_000, "user_lock_ms": 1, "token_seconds": 900 },
            "tiers": tiers,
        })
    };
    let floor = json!({ "tier": "t0", "name": "Floor", "price_minor": PRICE_MINOR, "general_admission": SEATS });
    [sale(SALE, (0..TIERS).map(tier).collect()), sale(SOLD_OUT, vec![floor])]
}

/// A sale with a waiting room that opens at `opens_at`, and is drawn a second before. Nobody buys in it.
pub(super) fn sale_with_room(opens_at: Timestamp) -> Value {
    json!({
        "sale": WITH_ROOM, "title": WITH_ROOM, "currency": "EUR", "limit_per_buyer": 4, "pay_window_seconds": 900,
        "opens_at": opens_at, "closes_at": "2099-12-31T23:59:59Z",
        "room": { "draw_lead_seconds": 1, "window_seconds": 1, "max_per_second": 1_000_000, "beacon": "operator" },
        "tiers": [{ "tier": "t0", "name": "Floor", "price_minor": PRICE_MINOR, "general_admission": 60_000 }],
    })
}

/// Writes requests as bytes.
pub(super) struct Writer {
    identity: Identity,
    secrets: Secrets,
    host: String,
}

#[derive(Debug, Clone)]
pub(super) struct Buyer {
    /// The `Authorization` header.
    bearer: String,
}

/// An order that was made.
#[derive(Debug, Clone)]
pub(super) struct Made {
    /// The buyer who made it.
    pub(super) buyer: Buyer,
    number: OrderNumber,
    amount: Money,
}

impl Writer {
    /// Writes for the gateway at `host`, with its secrets.
    pub(super) fn new(host: String, secrets: Secrets) -> Self {
        Self { identity: Identity::new(secrets.identity.as_bytes()), secrets, host }
    }

    /// A buyer with this name.
    pub(super) fn buyer(&self, name: &str) -> Result<Buyer, Failure> {
        let token = self.identity.token(name, Role::Buyer, Timestamp::now(), TOKEN_SECONDS)?;
        Ok(Buyer { bearer: format!("Bearer {token}") })
    }

    /// A request without a body.
    pub(super) fn get(&self, path: &str, buyer: Option<&Buyer>) -> Vec<u8> {
        self.write("GET", path, &headers(buyer), None)
    }

    /// A request with a JSON body.
    pub(super) fn post(&self, path: &str, buyer: Option<&Buyer>, body: &Value) -> Vec<u8> {
        self.write("POST", path, &headers(buyer), Some(&body.to_string()))
    }

    /// The request that asks to be let in.
    pub(super) fn admission(&self, sale: &str, buyer: &Buyer) -> Vec<u8> {
        self.post(&format!("/sales/{sale}/admissions"), Some(buyer), &json!({ "tickets": SEATS }))
    }

    /// The request that joins the waiting room.
    pub(super) fn join(&self, buyer: &Buyer) -> Vec<u8> {
        self.post(&format!("/sales/{WITH_ROOM}/places"), Some(buyer), &json!({}))
    }

    /// The request that asks to be let in with a place.
    pub(super) fn claim(&self, buyer: &Buyer, place: u32, token: &Value) -> Vec<u8> {
        let body = json!({ "tickets": SEATS, "place": { "place": place, "token": token } });
        self.post(&format!("/sales/{WITH_ROOM}/admissions"), Some(buyer), &body)
    }

    /// The order that an admission allows, for seats side by side in a tier.
    pub(super) fn reserve(
        &self,
        sale: &str,
        buyer: &Buyer,
        admission: &Value,
        tier: usize,
    ) -> Vec<u8> {
        let body = json!({
            "admission": admission["token"],
            "lines": [{ "tier": format!("t{tier}"), "best": { "count": SEATS, "together": "required" } }],
        });
        self.post(&format!("/sales/{sale}/orders"), Some(buyer), &body)
    }

    /// A look at an order.
    pub(super) fn order(&self, made: &Made) -> Vec<u8> {
        self.get(&format!("/orders/{}", made.number), Some(&made.buyer))
    }

    /// The end of an order that is not paid.
    pub(super) fn cancel(&self, made: &Made) -> Vec<u8> {
        let path = format!("/orders/{}/cancel", made.number);
        self.write("POST", &path, &headers(Some(&made.buyer)), None)
    }

    /// The provider's callback for an order, signed now.
    pub(super) fn payment(&self, made: &Made) -> Vec<u8> {
        let now = Timestamp::now();
        let event =
            payment::captured(&format!("pi_{}", made.number), made.number, made.amount, now);
        let body = event.to_string();
        let signature = payment::sign(&self.secrets, body.as_bytes(), now);
        let headers = [(payment::SIGNATURE_HEADER, signature.as_str())];
        self.write("POST", &payment::callback_path(), &headers, Some(&body))
    }

    /// A sale put on sale by the operator.
    pub(super) fn publish(&self, file: &Value) -> Result<Vec<u8>, Failure> {
        let now = Timestamp::now();
        let token = self.identity.token("operator", Role::Operator, now, TOKEN_SECONDS)?;
        let path = format!("/sales/{}", file["sale"].as_str().unwrap_or_default());
        let bearer = format!("Bearer {token}");
        Ok(self.write("PUT", &path, &[("Authorization", &bearer)], Some(&file.to_string())))
    }

    fn write(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Vec<u8> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if let Some(body) = body {
            request +=
                &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        request += "\r\n";
        request += body.unwrap_or_default();
        request.into_bytes()
    }
}

impl Made {
    /// What the engine answered to a reservation.
    pub(super) fn read(buyer: &Buyer, answer: &[u8]) -> Result<Self, Failure> {
        let order: Value = serde_json::from_slice(answer)?;
        let text = |name: &str| order[name].as_str().ok_or("an order lacks a field");
        let amount_minor =
            MinorUnits(order["amount_minor"].as_i64().ok_or("an order lacks its amount")?);
        let number = text("order")?.parse()?;
        let currency = Currency::new(text("currency")?)?;
        let amount = Money { amount_minor, currency };
        Ok(Self { buyer: buyer.clone(), number, amount })
    }
}

fn headers(buyer: Option<&Buyer>) -> Vec<(&'static str, &str)> {
    buyer.map(|buyer| ("Authorization", buyer.bearer.as_str())).into_iter().collect()
}
