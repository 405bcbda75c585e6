//! The two sales, and what is ordered of them.

use engine::domain::basics::ids::{Legs, PaymentId, ProviderId, Seat};
use engine::domain::basics::money::MinorUnits;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::PaymentKey;
use engine::domain::order::requested::RequestedLine;
use engine::domain::sale::Sale;
use engine::domain::sale::attachment::{Attachment, AttachmentKind};
use serde_json::json;

use super::id;

/// The document of the train.
pub(super) fn about() -> Attachment {
    Attachment::new(AttachmentKind::About, b"{}".to_vec())
}

/// Two legs. Tier `a` has the row A1 to A4, of which A4 is not for sale; `ga` has five spots.
pub(super) fn train() -> Sale {
    let stop = |stop: &str| json!({"stop": stop, "name": stop});
    let names = json!(["A1", "A2", "A3", "A4"]);
    let file = json!({
        "sale": "g1", "title": "G1", "currency": "EUR", "limit_per_buyer": 3,
        "merchant": { "merchant": "rail", "commission_basis_points": 500 },
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "pay_window_seconds": 600, "runs_on": "2026-11-21", "event": { "about": about().hash() },
        "stops": [{"stop": "X", "name": "Xanten", "departs": "08:05"}, stop("Y"), stop("Z")],
        "tiers": [
            {"tier": "a", "name": "A", "price_minor": 50, "not_for_sale": ["A4"],
             "sections": [{"section": "1", "rows": [{"row": "1", "seats": names}]}]},
            {"tier": "ga", "name": "GA", "price_minor": 20, "general_admission": 5}
        ]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// One leg and three spots.
pub(super) fn show() -> Sale {
    let file = json!({
        "sale": "show", "title": "Show", "currency": "EUR", "limit_per_buyer": 3,
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "pay_window_seconds": 600,
        "tiers": [{"tier": "floor", "name": "F", "price_minor": 70, "general_admission": 3}]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

pub(super) fn requested(tier: &str, legs: (u16, u16), choice: Choice, price: i64) -> RequestedLine {
    let legs = Legs::new(legs.0, legs.1).unwrap();
    RequestedLine {
        line: Line { tier: id(tier), legs, choice },
        price_minor: MinorUnits(price),
        attendees: Vec::new(),
    }
}

pub(super) fn seats(seats: &[u32]) -> Choice {
    Choice::Seats(seats.iter().copied().map(Seat).collect())
}

pub(super) fn best(count: u16) -> Choice {
    Choice::Best { count, together: Together::Preferred }
}

pub(super) fn payment(name: &str) -> PaymentKey {
    PaymentKey {
        provider: ProviderId::new("stripe").unwrap(),
        payment: PaymentId::new(name).unwrap(),
    }
}
