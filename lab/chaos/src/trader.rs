//! A buyer with a wallet, while something breaks: pays tickets of a play from it and exchanges them, again and again,
//! however often each has to be asked for. What the wallet has in the end is what it was filled with without what the
//! tickets cost that were kept.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;
use engine::domain::sale::SaleFile;
use fake_identity::{Identity, Role};
use loadtest::pages::Till;
use loadtest::payment::pay_on_page;
use local::endpoints::Endpoints;
use ops::audit::facts::SaleFacts;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Error;
use super::persistent::Persistent;
use super::rig::Rig;

/// The play, whose tickets are paid from the wallet and exchanged.
const PLAY: &str = "chaos-play";
/// The sale that fills the wallet.
const TOP_UPS: &str = "chaos-top-ups";
/// The tiers of the play, and what a ticket costs: each is exchanged for one of the other.
const TIERS: [(&str, i64); 2] = [("stalls", 900), ("gallery", 500)];
/// What fills the wallet: more than all rounds cost.
const FILLED_MINOR: i64 = 100_000;
/// Tickets that are bought and exchanged in each round.
const A_ROUND: usize = 2;
/// Time between two steps, in milliseconds: some come before something breaks, some meanwhile, and some when it works
/// again.
const PAUSE_MS: Range<u64> = 50..500;
/// Time that the buyer's token is good, in seconds.
const TOKEN_SECONDS: u32 = 24 * 3600;
/// Pause between two reads of the wallet.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Tries of an order whose admission has run out while something was broken.
const TRIES: usize = 10;
/// What is answered when there was no time left to pay, or no admission any more.
const TOO_LATE: [&str; 4] = ["order-resolved", "hold-expired", "not-admitted", "payment-over"];

#[derive(Debug, Deserialize)]
struct Admission {
    token: String,
}

/// An order, as its buyer sees it.
#[derive(Debug, Clone, Deserialize)]
struct Shown {
    order: OrderNumber,
    state: String,
    lines: Value,
}

#[derive(Debug, Deserialize)]
struct Wallets {
    wallets: Vec<Wallet>,
}

#[derive(Debug, Deserialize)]
struct Wallet {
    balance_minor: i64,
}

/// What came of a round.
#[derive(Debug, Default)]
struct Outcome {
    /// Orders that are paid, with their prices.
    kept: BTreeMap<OrderNumber, i64>,
    /// Orders whose ticket was given for another.
    given: Vec<OrderNumber>,
    violations: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Trader {
    api: Arc<Persistent>,
    random: StdRng,
    kept: BTreeMap<OrderNumber, i64>,
    given: Vec<OrderNumber>,
    round: Option<JoinHandle<Outcome>>,
}

impl Trader {
    /// Puts the play on sale and fills the buyer's wallet: before anything breaks.
    pub(super) async fn start(rig: &Rig, seed: u64) -> Result<Self, Error> {
        for file in files()? {
            rig.put(&file).await?;
        }
        let secrets = rig.secrets()?;
        let identity = Identity::new(secrets.identity.as_bytes());
        let bearer = identity.token("trader", Role::Buyer, Timestamp::now(), TOKEN_SECONDS)?;
        let url = rig.url().to_owned();
        let api = Persistent::new(Persistent::client()?, url, bearer);
        let filled = order(&api, TOP_UPS, "much", None).await.map_err(Error::Refused)?;
        let endpoints = Endpoints::read(rig.dir())?;
        let till = Till::of("stripe").ok_or_else(|| Error::Refused("no till".to_owned()))?;
        let paid = pay_on_page(&endpoints, &secrets, filled.order, till).await;
        paid.map_err(|error| Error::Refused(format!("filling a wallet: {error}")))?;
        Ok(Self {
            api: Arc::new(api),
            random: StdRng::seed_from_u64(seed ^ 8),
            kept: BTreeMap::new(),
            given: Vec::new(),
            round: None,
        })
    }

    /// Begins to buy and to exchange.
    pub(super) fn begin(&mut self) {
        let random = StdRng::seed_from_u64(self.random.random());
        self.round = Some(tokio::spawn(trade(Arc::clone(&self.api), random)));
    }

    /// Waits until everything of the round is answered: what was answered that must not be.
    pub(super) async fn end(&mut self) -> Vec<String> {
        let Some(round) = self.round.take() else { return Vec::new() };
        let Ok(Outcome { kept, given, violations }) = round.await else {
            return vec!["the buyer with a wallet has panicked".to_owned()];
        };
        self.kept.extend(kept);
        self.given.extend(given);
        violations
    }

    /// Number of tickets that were given for others.
    pub(super) fn exchanged(&self) -> usize {
        self.given.len()
    }

    pub(super) fn play() -> Result<SaleId, Error> {
        Ok(SaleId::new(PLAY)?)
    }

    pub(super) fn sales() -> Result<[SaleId; 2], Error> {
        Ok([Self::play()?, SaleId::new(TOP_UPS)?])
    }

    /// Orders that are not as they were answered.
    pub(super) fn differs(&self, facts: &SaleFacts) -> Vec<String> {
        let state = |number: &OrderNumber| facts.orders.get(number).map(|order| order.state);
        let kept = self.kept.keys().filter(|number| state(number) != Some(OrderState::Paid));
        let kept =
            kept.map(|number| format!("order {number} was paid, and is {:?}", state(number)));
        let given = self
            .given
            .iter()
            .filter(|number| facts.orders.get(number).is_none_or(|order| order.refunds != 1));
        let given = given.map(|number| format!("order {number} gave its ticket, and has it"));
        kept.chain(given).collect()
    }

    /// What the wallet must have: what it was filled with without what is kept.
    fn due(&self) -> i64 {
        FILLED_MINOR - self.kept.values().sum::<i64>()
    }

    /// Waits until the wallet has what it must.
    pub(super) async fn settled(&self) -> Result<(), String> {
        while self.balance().await? != Some(self.due()) {
            tokio::time::sleep(ASK_AGAIN).await;
        }
        Ok(())
    }

    async fn balance(&self) -> Result<Option<i64>, String> {
        let shown = self.api.ask::<Wallets>(Method::GET, "wallets", None).await;
        let shown = shown.map_err(|kind| format!("a wallet is not shown: {kind}"))?;
        Ok(shown.wallets.first().map(|wallet| wallet.balance_minor))
    }

    /// What is wrong with the wallet, by how waiting for it ended; `None` if it took too long.
    pub(super) fn wallet_differs(&self, settled: Option<Result<(), String>>) -> Vec<String> {
        match settled {
            Some(Ok(())) => Vec::new(),
            Some(Err(what)) => vec![what],
            None => vec![format!(
                "a wallet was filled with {FILLED_MINOR}, and does not come to have {}",
                self.due()
            )],
        }
    }
}

/// The play, and what fills the wallet.
fn files() -> Result<Vec<SaleFile>, Error> {
    let file = |sale: &str, tiers: Value| {
        json!({
            "sale": sale, "title": "Chaos", "currency": "EUR",
            "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
            "limit_per_buyer": 100, "pay_window_seconds": 60, "tiers": tiers,
            "gate": { "shards": 1, "user_lock_ms": 1, "rate_per_second": 20_000 },
        })
    };
    let tier = |(name, price): (&str, i64)| json!({ "tier": name, "name": name, "price_minor": price, "general_admission": 1000 });
    let mut play = file(PLAY, TIERS.map(tier).into());
    play["exchanges"] = json!({ "until": "2098-12-31T23:59:59Z" });
    play["wallet"] = json!(true);
    let mut top_ups = file(TOP_UPS, [tier(("much", FILLED_MINOR))].into_iter().collect());
    top_ups["merchant"] = json!({ "merchant": "wallet" });
    Ok(vec![serde_json::from_value(play)?, serde_json::from_value(top_ups)?])
}

/// Buys tickets of the play, and exchanges each.
async fn trade(api: Arc<Persistent>, mut random: StdRng) -> Outcome {
    let mut outcome = Outcome::default();
    for index in 0..A_ROUND {
        if let Err(what) = buy_and_exchange(&api, index, &mut random, &mut outcome).await {
            outcome.violations.push(format!("a buyer with a wallet: {what}"));
        }
    }
    outcome
}

/// Buys one ticket, and exchanges it. What comes too late ends by itself.
async fn buy_and_exchange(
    api: &Persistent,
    index: usize,
    random: &mut StdRng,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let (from, to) = match index.is_multiple_of(2) {
        true => (TIERS[1], TIERS[0]),
        false => (TIERS[0], TIERS[1]),
    };
    let old = order(api, PLAY, from.0, None).await?;
    pause(random).await;
    if !paid(api, &old).await? {
        return Ok(());
    }
    outcome.kept.insert(old.order, from.1);
    pause(random).await;
    let new = order(api, PLAY, to.0, Some(&old)).await?;
    // What is cheaper is paid by the old ticket as it is made.
    if new.state != "paid" {
        pause(random).await;
        if !paid(api, &new).await? {
            return Ok(());
        }
    }
    outcome.kept.remove(&old.order);
    outcome.given.push(old.order);
    outcome.kept.insert(new.order, to.1);
    Ok(())
}

async fn pause(random: &mut StdRng) {
    tokio::time::sleep(Duration::from_millis(random.random_range(PAUSE_MS))).await;
}

/// Orders one ticket of a tier, for the ticket of another order perhaps.
async fn order(
    api: &Persistent,
    sale: &str,
    tier: &str,
    old: Option<&Shown>,
) -> Result<Shown, String> {
    let mut body = json!({ "lines": [{ "tier": tier, "best": { "count": 1 } }] });
    if let Some(old) = old {
        let line = &old.lines[0];
        let ticket = json!({ "tier": line["tier"], "seat": line["tickets"][0]["seat"] });
        body["exchange"] = json!({ "order": old.order, "tickets": [ticket] });
    }
    let mut why = String::new();
    for _ in 0..TRIES {
        let admissions = format!("sales/{sale}/admissions");
        let asked = api.ask(Method::POST, &admissions, Some(&json!({ "tickets": 1 }))).await;
        let admission: Admission = asked.map_err(|kind| format!("was not admitted: {kind}"))?;
        body["admission"] = json!(admission.token);
        match api.ask::<Shown>(Method::POST, &format!("sales/{sale}/orders"), Some(&body)).await {
            Ok(made) => return Ok(made),
            Err(kind) if TOO_LATE.contains(&kind.as_str()) => why = kind,
            Err(kind) => return Err(format!("got no ticket: {kind}")),
        }
    }
    Err(format!("got no ticket: {why}"))
}

/// Pays an order from the wallet, and once more: false if it is too late for that.
async fn paid(api: &Persistent, order: &Shown) -> Result<bool, String> {
    let path = format!("orders/{}/payments/wallet", order.order);
    let ask = async || api.ask::<Shown>(Method::POST, &path, Some(&json!({}))).await;
    let first = match ask().await {
        Ok(first) => first,
        Err(kind) if TOO_LATE.contains(&kind.as_str()) => return Ok(false),
        Err(kind) => return Err(format!("order {} was not paid: {kind}", order.order)),
    };
    let again = ask().await.map_err(|kind| format!("repeated, a payment was refused: {kind}"))?;
    match (first.state.as_str(), again.state.as_str()) {
        ("paid", "paid") => Ok(true),
        (first, again) => Err(format!("order {} was {first}, and then {again}", order.order)),
    }
}
