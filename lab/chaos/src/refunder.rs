//! An operator who refunds paid orders while something breaks: each is refunded once, however often it has to be
//! asked for, and its money goes back.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use fake_identity::{Identity, Role};
use ops::audit::facts::{LedgerFacts, SaleFacts};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Error;
use super::persistent::Persistent;
use super::rig::Rig;

/// Orders that are refunded in each round.
const A_ROUND: usize = 6;
/// Time between two of them, in milliseconds: some are asked for before something breaks, some meanwhile, and some
/// when it works again.
const PAUSE_MS: Range<u64> = 100..800;
/// Time that the operator's token is good, in seconds.
const TOKEN_SECONDS: u32 = 24 * 3600;
/// What is answered for an order that is not paid: the provider captured another amount, or too late.
const NOT_PAID: &str = "order-not-paid";

/// A refund, as the engine answers with it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Refund {
    number: u8,
    amount_minor: i64,
}

/// What came of the refunds of a round.
#[derive(Debug, Default)]
struct Outcome {
    made: Vec<OrderNumber>,
    violations: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Refunder {
    api: Arc<Persistent>,
    random: StdRng,
    asked: BTreeSet<OrderNumber>,
    made: BTreeSet<OrderNumber>,
    round: Option<JoinHandle<Outcome>>,
}

impl Refunder {
    /// The operator of a rig.
    pub(super) fn new(rig: &Rig, seed: u64) -> Result<Self, Error> {
        let identity = Identity::new(rig.secrets()?.identity.as_bytes());
        let bearer = identity.token("operator", Role::Operator, Timestamp::now(), TOKEN_SECONDS)?;
        let url = rig.url().to_owned();
        Ok(Self {
            api: Arc::new(Persistent::new(Persistent::client()?, url, bearer)),
            random: StdRng::seed_from_u64(seed ^ 4),
            asked: BTreeSet::new(),
            made: BTreeSet::new(),
            round: None,
        })
    }

    /// Begins to refund orders of which the ledger says that money was captured: the latest, none twice.
    pub(super) fn begin(&mut self, ledger: &Path) -> Result<(), Error> {
        let captured = LedgerFacts::read(ledger)?.captured;
        let mut chosen = Vec::new();
        for capture in captured.iter().rev() {
            if chosen.len() < A_ROUND && self.asked.insert(capture.order) {
                chosen.push(capture.order);
            }
        }
        let (api, random) = (Arc::clone(&self.api), StdRng::seed_from_u64(self.random.random()));
        self.round = Some(tokio::spawn(refund(api, chosen, random)));
        Ok(())
    }

    /// Waits until every refund of the round is answered: what was answered that must not be.
    pub(super) async fn end(&mut self) -> Vec<String> {
        let Some(round) = self.round.take() else { return Vec::new() };
        let Ok(Outcome { made, violations }) = round.await else {
            return vec!["the operator who refunds has panicked".to_owned()];
        };
        self.made.extend(made);
        violations
    }

    /// Number of orders that were refunded.
    pub(super) fn made(&self) -> usize {
        self.made.len()
    }

    /// Orders that do not have the one refund that the engine has answered with.
    pub(super) fn not_once(&self, facts: &SaleFacts) -> Vec<String> {
        let made = self.made.iter().filter_map(|number| {
            let refunds = facts.orders.get(number).map(|order| order.refunds);
            (refunds != Some(1)).then(|| {
                format!("order {number} was refunded once, and the stores have {refunds:?} refunds")
            })
        });
        made.collect()
    }

    /// Orders whose money is not back.
    pub(super) fn not_back(&self, facts: &SaleFacts) -> Vec<String> {
        let is_back = |number: &&OrderNumber| {
            facts.orders.get(number).is_some_and(|order| order.refunds_back == 1)
        };
        let waiting = self.made.iter().filter(|number| !is_back(number));
        waiting.map(|number| format!("the money of order {number} did not go back")).collect()
    }
}

/// Refunds every other order whole, and one minor unit of each of the others.
async fn refund(api: Arc<Persistent>, orders: Vec<OrderNumber>, mut random: StdRng) -> Outcome {
    let mut outcome = Outcome::default();
    for (index, order) in orders.into_iter().enumerate() {
        let body = if index.is_multiple_of(2) {
            json!({ "number": 1, "tickets": "all", "reason": "Chaos." })
        } else {
            json!({ "number": 1, "tickets": [], "amount_minor": 1, "currency": "EUR" })
        };
        match twice(&api, order, &body).await {
            Ok(true) => outcome.made.push(order),
            Ok(false) => {}
            Err(what) => outcome.violations.push(format!("a refund of order {order}: {what}")),
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(PAUSE_MS))).await;
    }
    outcome
}

/// Asks for a refund, and once more: false if the order is not paid.
async fn twice(api: &Persistent, order: OrderNumber, body: &Value) -> Result<bool, String> {
    let path = format!("orders/{order}/refunds/operator");
    let ask = async || api.ask::<Refund>(Method::POST, &path, Some(body)).await;
    let first = match ask().await {
        Ok(first) => first,
        Err(kind) if kind == NOT_PAID => return Ok(false),
        Err(kind) => return Err(format!("it was refused: {kind}")),
    };
    let again = ask().await.map_err(|kind| format!("repeated, it was refused: {kind}"))?;
    if first == again { Ok(true) } else { Err(format!("it was {first:?}, and then {again:?}")) }
}
