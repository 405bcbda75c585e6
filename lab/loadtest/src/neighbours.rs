//! Others on the same account: a web shop that numbers its orders, one that names them in words, and another deployment.
//! Their payments are captured while the crowd buys, and the engine is told of them as of any.

use engine::domain::basics::ids::UserId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use fake_payments::Metadata;
use local::payment::{SIGNATURE_HEADER, callback_path, sign};
use local::up::Engine;
use ops::audit::facts::{Book, BookFact, CaptureFact};
use serde::Serialize;
use serde_json::{Value, json};

use crate::demo::Error;

/// Payments of each of the others.
const OF_EACH: u64 = 4;
/// What each of them takes.
const AMOUNT: MinorUnits = MinorUnits(4600);

/// What became of the payments of others.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Neighbours {
    /// Payments that were captured.
    pub captured: u64,
    /// Those of which the engine said that they are none of its own.
    pub ignored: u64,
    /// Those that went back.
    pub sent_back: u64,
}

impl Neighbours {
    /// True if all were left alone.
    #[must_use]
    pub fn are_left_alone(&self) -> bool {
        self.captured == self.ignored && self.sent_back == 0
    }

    /// The whole of it in words.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { captured, ignored, sent_back } = self;
        format!(
            "payments of others on the account: {captured}, left alone {ignored}, sent back {sent_back}"
        )
    }
}

/// What the payments of others carry.
fn carried(number: u64, now: Timestamp, user: &UserId) -> [(&'static str, Value); 3] {
    let minted = Mint::new(9).mint(now, user).to_string();
    [
        ("shop", json!({ "order": (48_151 + number).to_string(), "event": "77", "code": "ABCDE" })),
        ("words", json!({ "order": format!("#{}", 1001 + number) })),
        ("stage", json!({ "onsale_deployment": "stage", "onsale_order": minted, "order": minted })),
    ]
}

/// Captures payments of others, and tells the engine of each.
///
/// # Errors
/// Fails if the provider or the engine does not answer.
pub(crate) async fn capture_for_others(engine: &Engine) -> Result<Neighbours, Error> {
    let mut neighbours = Neighbours::default();
    let client = reqwest::Client::new();
    let url = format!("{}{}", engine.url(), callback_path());
    let (currency, now) = (Currency::new("EUR")?, Timestamp::now());
    let user = UserId::new("neighbour")?;
    for number in 0..OF_EACH {
        for (name, metadata) in carried(number, now, &user) {
            let payment = format!("pi_{name}_{number}");
            let pairs = metadata.as_object().into_iter().flatten();
            let pairs =
                pairs.map(|(name, text)| (name.as_str(), text.as_str().unwrap_or_default()));
            let pairs: Vec<(&str, String)> =
                pairs.map(|(name, text)| (name, text.to_owned())).collect();
            let amount = Money { amount_minor: AMOUNT, currency };
            let metadata_kept = Metadata::new(pairs);
            engine.provider().capture_of_others(&payment, metadata_kept, amount, now)?;
            let event = json!({
                "id": format!("evt_{payment}"), "object": "event", "type": "payment_intent.succeeded",
                "created": now.ms().div_euclid(1000),
                "data": { "object": {
                    "id": payment, "object": "payment_intent", "status": "succeeded", "amount": AMOUNT,
                    "amount_received": AMOUNT, "currency": "eur", "metadata": metadata,
                } },
            });
            let body = event.to_string();
            let signature = sign(engine.secrets(), body.as_bytes(), Timestamp::now());
            let told =
                client.post(&url).header(SIGNATURE_HEADER, signature).body(body).send().await?;
            let reply: Value = told.json().await?;
            neighbours.captured += 1;
            neighbours.ignored += u64::from(reply["outcome"] == "ignored");
        }
    }
    Ok(neighbours)
}

/// What the provider's book says of them in the end, and the book for the audit.
///
/// # Errors
/// Fails if the book has what is no payment.
pub(crate) fn look_back(engine: &Engine, neighbours: &mut Neighbours) -> Result<Book, Error> {
    let own = engine.secrets().deployment()?;
    let mut captured = Vec::new();
    for entry in engine.provider().ledger() {
        let is_anothers =
            ["pi_shop_", "pi_stage_"].iter().any(|name| entry.payment.starts_with(name));
        neighbours.sent_back += u64::from(is_anothers && !entry.refunds.is_empty());
        let key = engine::domain::order::PaymentKey {
            provider: entry.provider.parse()?,
            payment: entry.payment.parse()?,
        };
        let amount = Money { amount_minor: entry.amount_minor, currency: entry.currency };
        let capture = CaptureFact { key, order: entry.order, amount };
        let sum = |state: &str| {
            let is_it = entry.refunds.iter().filter(|refund| refund.status == state);
            is_it.map(|refund| refund.amount_minor).sum::<MinorUnits>()
        };
        let (back_minor, pending_minor) = (Some(sum("succeeded")), sum("pending"));
        let deployment = entry.deployment.clone();
        captured.push(BookFact { capture, deployment, back_minor, pending_minor });
    }
    Ok(Book { own: Some(own), captured })
}
