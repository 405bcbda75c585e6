//! Disputes at the fake of Stripe: what is listed and shown of them, what of a disputed payment is refunded, what the
//! balance report says, and what the engine's own adapter reads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::path::Path;

use engine::domain::basics::ids::{DisputeId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Capture, PaymentOutcome, PaymentRecord, RefundReason};
use engine::domain::payment::captures::{Hint, ListedHint};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Mark;
use engine::ports::{Provider as _, StoreError, Stored};
use fake_payments::{API_KEY, Lags, PROVIDER, PaymentProvider};
use serde_json::{Value, json};
use shared::providers::Providers;
use shared::providers::stripe::{API_VERSION, VERSION_HEADER};
use shared::runtime::config::{PaymentConfig, ProviderApi, ProvidersConfig, Secret};
use shared::runtime::connections::{Https, Trust};

const ORDER: &str = "169218430493097984";
const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

fn at(seconds: i64) -> Timestamp {
    NOW.plus_seconds(seconds)
}

fn euros(amount: i64) -> Money {
    Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() }
}

fn stripe() -> ProviderId {
    ProviderId::new(PROVIDER).unwrap()
}

/// The fake, and the adapter to it.
struct Bank {
    fake: PaymentProvider,
    ours: Providers,
}

impl Bank {
    fn open(file: Option<&Path>, lags: Lags) -> Self {
        let fake = PaymentProvider::start_lagging(file, lags).unwrap();
        let no_callbacks = PaymentConfig { secrets: Vec::new(), tolerance_seconds: 0 };
        let api = ProviderApi {
            provider: stripe(),
            url: Some(fake.url()),
            key: Secret(API_KEY.as_bytes().to_vec()),
        };
        let apis = ProvidersConfig { apis: vec![api], ..ProvidersConfig::default() };
        let https = Https::new(&Trust::public());
        let ours = Providers::new(&no_callbacks, &apis, &https).unwrap();
        Self { fake, ours }
    }

    fn start() -> Self {
        Self::open(None, Lags::default())
    }

    /// 10 euros are captured for the order.
    fn captured(&self, payment: &str, now: Timestamp) -> Capture {
        self.fake.capture(payment, ORDER.parse().unwrap(), euros(1000), now).unwrap()
    }

    /// What the adapter reads of a dispute.
    async fn read(&self, id: &str) -> Stored<Option<DisputeReport>> {
        self.ours.dispute(&stripe(), &DisputeId::new(id).unwrap()).await
    }

    /// The marks of the entries that tell of disputes, newest first, as the adapter lists them, each with its dispute.
    async fn listed(&self, from: Timestamp) -> Vec<String> {
        let page = self.ours.list_captures(&stripe(), from, None).await.unwrap();
        assert_eq!((page.unreadable, page.next), (0, None));
        let named = |listed: &ListedHint| match &listed.hint {
            Hint::Dispute(dispute) => Some(format!("{} {dispute}", listed.mark)),
            Hint::Refunds(_) => None,
        };
        page.hints.iter().filter_map(named).collect()
    }

    /// The status and the body of an answer.
    async fn get(&self, path: &str) -> (u16, Value) {
        let request = reqwest::Client::new().get(format!("{}{path}", self.fake.url()));
        let request = request.bearer_auth(API_KEY).header(VERSION_HEADER, API_VERSION);
        let reply = request.send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
    }

    /// The status of the answer to a request for a refund, and the code if it is refused.
    async fn refund(&self, form: &'static str) -> (u16, Value) {
        let request = reqwest::Client::new().post(format!("{}/v1/refunds", self.fake.url()));
        let request = request.bearer_auth(API_KEY).header(VERSION_HEADER, API_VERSION);
        let reply = request.body(form).send().await.unwrap();
        let status = reply.status().as_u16();
        let body: Value = reply.json().await.unwrap();
        (status, body["error"]["code"].clone())
    }
}

/// A payment that goes back whole.
fn to_refund(capture: &Capture) -> PaymentRecord {
    PaymentRecord::decided(capture, PaymentOutcome::Refund(RefundReason::TooLate), NOW)
}

/// What the adapter reads of a dispute of 7 euros.
fn report(capture: &Capture, id: &str, state: DisputeState) -> Stored<Option<DisputeReport>> {
    Ok(Some(DisputeReport {
        id: DisputeId::new(id).unwrap(),
        payment: capture.key.clone(),
        order: capture.order,
        amount: euros(700),
        state,
        mark: Mark::None,
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_is_listed_and_read_until_it_is_decided() {
    let bank = Bank::start();
    let (won_by, lost_by) = (bank.captured("pi_1", NOW), bank.captured("pi_2", NOW));
    let won = bank.fake.open_dispute("pi_1", MinorUnits(700), false, at(1)).unwrap();
    let lost = bank.fake.open_dispute("pi_2", MinorUnits(700), false, at(2)).unwrap();
    assert_eq!((won.as_str(), lost.as_str()), ("dp_1", "dp_2"));
    assert_eq!(bank.read("dp_1").await, report(&won_by, "dp_1", DisputeState::Open));
    let opened = [
        "evt_dp_2-withdrawn dp_2",
        "evt_dp_2-created dp_2",
        "evt_dp_1-withdrawn dp_1",
        "evt_dp_1-created dp_1",
    ];
    assert_eq!(bank.listed(NOW).await, opened);

    bank.fake.close_dispute("dp_1", true, at(3)).unwrap();
    bank.fake.close_dispute("dp_2", false, at(4)).unwrap();
    assert_eq!(bank.read("dp_1").await, report(&won_by, "dp_1", DisputeState::Won));
    assert_eq!(bank.read("dp_2").await, report(&lost_by, "dp_2", DisputeState::Lost));
    // Money comes back with the one that is won.
    let decided = ["evt_dp_2-closed dp_2", "evt_dp_1-reinstated dp_1", "evt_dp_1-closed dp_1"];
    assert_eq!(bank.listed(NOW).await, [&decided[..], &opened].concat());
    assert_eq!(bank.listed(at(3)).await, decided);

    // What is decided stays so, and is listed once.
    assert!(bank.fake.close_dispute("dp_1", false, at(5)).is_err());
    assert!(bank.fake.close_dispute("dp_3", false, at(5)).is_err());
    assert_eq!(bank.listed(at(3)).await, decided);
    // Nobody disputes more than was captured, nothing, or what was never paid.
    for (payment, amount) in [("pi_1", 1001), ("pi_1", 0), ("pi_9", 1)] {
        let opened = bank.fake.open_dispute(payment, MinorUnits(amount), false, at(5));
        assert!(opened.is_err(), "{amount} of {payment}");
    }
    assert!(matches!(bank.read("dp_9").await, Err(StoreError::Contract(_))), "there is none");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inquiry_takes_no_money() {
    let bank = Bank::start();
    let capture = bank.captured("pi_1", NOW);
    let id = bank.fake.open_dispute("pi_1", MinorUnits(700), true, at(1)).unwrap();
    assert_eq!(bank.read(&id).await, Ok(None));
    assert_eq!(bank.listed(at(1)).await, ["evt_dp_1-created dp_1"]);
    let shown = bank.get("/v1/disputes/dp_1").await.1;
    assert_eq!(shown["status"], "warning_needs_response");
    assert!(bank.fake.close_dispute(&id, false, at(2)).is_err(), "there is nothing to lose");
    bank.fake.close_dispute(&id, true, at(2)).unwrap();
    assert_eq!(bank.read(&id).await, Ok(None));
    assert_eq!(bank.listed(at(2)).await, ["evt_dp_1-closed dp_1"]);
    assert_eq!(bank.get("/v1/disputes/dp_1").await.1["status"], "warning_closed");
    assert_eq!(categories(&bank).await, [("charge".to_owned(), "10.00".to_owned())]);
    // All of it can go back.
    assert_eq!(bank.ours.refund(&to_refund(&capture)).await, Ok(RefundReply::Refunded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_is_shown_as_stripe_shows_it() {
    let bank = Bank::start();
    bank.captured("pi_1", NOW);
    bank.fake.open_dispute("pi_1", MinorUnits(700), false, at(1)).unwrap();
    let (status, plain) = bank.get("/v1/disputes/dp_1").await;
    assert_eq!((status, &plain["object"]), (200, &json!("dispute")));
    let (amount, currency) = (&plain["amount"], &plain["currency"]);
    assert_eq!((amount, currency), (&json!(700), &json!("eur")));
    assert_eq!((&plain["payment_intent"], &plain["charge"]), (&json!("pi_1"), &json!("ch_pi_1")));
    let (_, whole) = bank.get("/v1/disputes/dp_1?expand%5B%5D=payment_intent").await;
    assert_eq!(whole["payment_intent"]["id"], "pi_1");
    assert_eq!(whole["payment_intent"]["metadata"], json!({ "order": ORDER }));
    let (status, none) = bank.get("/v1/disputes/dp_2").await;
    assert_eq!((status, &none["error"]["code"]), (404, &json!("resource_missing")));

    // Events are of the types that are asked for, with one type as before.
    let kinds = async |query: &str| {
        let (status, list) = bank.get(&format!("/v1/events?{query}")).await;
        assert_eq!(status, 200, "{list}");
        let events = list["data"].as_array().unwrap().iter();
        let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
        events.map(kind).collect::<Vec<String>>()
    };
    let captured = "payment_intent.succeeded";
    assert_eq!(kinds(&format!("type={captured}")).await, [captured]);
    assert_eq!(kinds(&format!("types%5B%5D={captured}")).await, [captured]);
    let both = format!("types%5B%5D={captured}&types%5B%5D=charge.dispute.created");
    assert_eq!(kinds(&both).await, ["charge.dispute.created", captured]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_disputed_payment_is_refunded_and_what_is_lost_is_gone() {
    let bank = Bank::start();
    let won = bank.captured("pi_1", NOW);
    bank.captured("pi_2", NOW);
    for payment in ["pi_1", "pi_2"] {
        bank.fake.open_dispute(payment, MinorUnits(700), false, at(1)).unwrap();
    }
    assert_eq!(bank.refund("payment_intent=pi_1&amount=1").await, (400, json!("charge_disputed")));
    let whole = to_refund(&won);
    let refused = bank.ours.refund(&whole).await.unwrap();
    let RefundReply::Refused(why) = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("charge_disputed: "), "{why}");

    // Asked without the key under which the refusal is kept: Stripe forgets it after a day, the fake never.
    bank.fake.close_dispute("dp_1", true, at(2)).unwrap();
    assert_eq!(bank.refund("payment_intent=pi_1").await, (200, Value::Null));
    assert_eq!(bank.ours.refund(&whole).await, Ok(RefundReply::Refunded));
    bank.fake.close_dispute("dp_2", false, at(2)).unwrap();
    let too_much = (400, json!("amount_too_large"));
    assert_eq!(bank.refund("payment_intent=pi_2&amount=301").await, too_much);
    assert_eq!(bank.refund("payment_intent=pi_2&amount=300").await, (200, Value::Null));
    let gone = (400, json!("charge_already_refunded"));
    assert_eq!(bank.refund("payment_intent=pi_2&amount=1").await, gone);
}

/// The category and the gross amount of each line of the balance report, but for the payout at its end.
async fn categories(bank: &Bank) -> Vec<(String, String)> {
    let report = reqwest::get(format!("{}/settlement", bank.fake.url())).await.unwrap();
    let report = report.text().await.unwrap();
    let mut lines = report.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let heading = lines.next().unwrap();
    let place = |name: &str| heading.iter().position(|column| *column == name).unwrap();
    let (category, gross) = (place("reporting_category"), place("gross"));
    let lines = lines.filter(|line| line[category] != "payout");
    lines.map(|line| (line[category].to_owned(), line[gross].to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_balance_report_has_what_was_taken_and_what_came_back() {
    let bank = Bank::start();
    bank.captured("pi_1", NOW);
    bank.captured("pi_2", NOW);
    for (payment, seconds) in [("pi_1", 1), ("pi_2", 2)] {
        bank.fake.open_dispute(payment, MinorUnits(700), false, at(seconds)).unwrap();
    }
    bank.fake.close_dispute("dp_1", true, at(3)).unwrap();
    bank.fake.close_dispute("dp_2", false, at(4)).unwrap();
    let lines = [
        ("charge", "10.00"),
        ("charge", "10.00"),
        ("dispute", "-7.00"),
        ("dispute", "-7.00"),
        ("dispute_reversal", "7.00"),
    ];
    let lines = lines.map(|(category, gross)| (category.to_owned(), gross.to_owned()));
    assert_eq!(categories(&bank).await, lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn disputes_are_listed_as_late_as_captures_and_are_known_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("provider.jsonl");
    let late = Lags { search_seconds: 0, list_seconds: 3600 };
    let bank = Bank::open(Some(&file), late);
    let now = Timestamp::now();
    let (long_ago, before) = (now.plus_seconds(-3 * 3600), now.plus_seconds(-4 * 3600));
    let capture = bank.captured("pi_1", long_ago);
    bank.captured("pi_2", long_ago);
    bank.fake.open_dispute("pi_1", MinorUnits(700), false, long_ago).unwrap();
    bank.fake.open_dispute("pi_2", MinorUnits(700), false, now).unwrap();
    let listed = ["evt_dp_1-withdrawn dp_1", "evt_dp_1-created dp_1"];
    assert_eq!(bank.listed(before).await, listed);
    assert!(matches!(bank.read("dp_2").await, Ok(Some(_))), "who knows its name finds it");
    bank.fake.close_dispute("dp_1", false, now).unwrap();

    // Dropped as a killed process is.
    drop(bank);
    let bank = Bank::open(Some(&file), late);
    assert_eq!(bank.read("dp_1").await, report(&capture, "dp_1", DisputeState::Lost));
    assert_eq!(bank.listed(before).await, listed);
}

/// Arbitration and banks change what was decided: the list of events and the report tell of each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_reversed_and_each_time_is_told_and_moves_the_money() {
    let bank = Bank::start();
    bank.captured("pi_1", NOW);
    bank.captured("pi_2", NOW);
    for (payment, is_won) in [("pi_1", true), ("pi_2", false)] {
        let id = bank.fake.open_dispute(payment, MinorUnits(700), false, at(1)).unwrap();
        assert!(bank.fake.reverse_dispute(&id, at(2)).is_err(), "it is open");
        bank.fake.close_dispute(&id, is_won, at(2)).unwrap();
        for seconds in [3, 4] {
            bank.fake.reverse_dispute(&id, at(seconds)).unwrap();
        }
        let state = if is_won { DisputeState::Won } else { DisputeState::Lost };
        assert_eq!(bank.read(&id).await.unwrap().unwrap().state, state);
    }
    let told = bank.listed(at(3)).await;
    for name in [
        "evt_dp_1-withdrawn-1 dp_1",
        "evt_dp_1-reinstated-2 dp_1",
        "evt_dp_2-reinstated-1 dp_2",
        "evt_dp_2-withdrawn-2 dp_2",
    ] {
        assert!(told.iter().any(|one| one == name), "{name}: {told:?}");
    }
}
