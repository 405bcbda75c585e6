//! The payment provider: our fake speaks as Stripe does, by the word of Stripe's own Python
//! package, and our adapter understands what it says in every way it can fail.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use engine::domain::basics::ids::{RequestFingerprint, SaleId, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::Attempts;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{
    Capture, Order, OrderState, PaymentOutcome, PaymentRecord, RefundReason,
};
use engine::ports::{Provider, StoreError};
use fake_payments::{API_KEY, Fault, LedgerRefund};
use local::servers::PaymentProvider;
use serde_json::{Value, json};
use shared::providers::Providers;
use shared::providers::stripe::{API_VERSION, VERSION_HEADER};
use shared::runtime::config::{PaymentConfig, ProvidersConfig};
use shared::runtime::connections::{Https, Trust};

use crate::backends;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

fn euros(amount: i64) -> Money {
    Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() }
}

fn order(number: OrderNumber) -> Order {
    Order {
        number,
        sale: SaleId::new("s").unwrap(),
        user: UserId::new("alice").unwrap(),
        state: OrderState::Pending,
        lines: Vec::new(),
        total: euros(500),
        fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
        created_at: NOW,
        pay_by: NOW,
        changed_at: NOW,
        payment: None,
        attempts: Attempts::default(),
        facts: engine::domain::order::fact::Facts::default(),
        refunds: engine::domain::order::order_refund::RefundCounts::default(),
        merchant: engine::domain::sale::MerchantTerms::house(),
        exchange: None,
    }
}

fn number() -> OrderNumber {
    Mint::new(7).mint(NOW, &UserId::new("alice").unwrap())
}

fn to_refund(capture: &Capture) -> PaymentRecord {
    PaymentRecord::decided(capture, PaymentOutcome::Refund(RefundReason::TooLate), NOW)
}

fn https() -> Https {
    Https::new(&Trust::public())
}

/// The providers of a function that takes no callbacks.
fn providers(apis: &ProvidersConfig) -> Providers {
    let no_callbacks = PaymentConfig { secrets: Vec::new(), tolerance_seconds: 0 };
    Providers::new(&no_callbacks, apis, &https()).unwrap()
}

fn adapter(provider: &PaymentProvider) -> Providers {
    providers(&backends::providers(provider))
}

fn refunds(provider: &PaymentProvider, payment: &str) -> Vec<LedgerRefund> {
    let mut ledger = provider.ledger().into_iter();
    ledger.find(|entry| entry.payment == payment).unwrap().refunds
}

/// `/mischief` is the former name of `/faults`, which programs may still use.
#[tokio::test(flavor = "multi_thread")]
async fn faults_are_planned_over_http_under_both_names() {
    let provider = PaymentProvider::start(None).unwrap();
    let ours = adapter(&provider);
    let order = order(number());
    let client = reqwest::Client::new();
    for path in ["faults", "mischief"] {
        let url = format!("{}/{path}", provider.url());
        let planned = client.post(&url).json(&[Fault::FailSearch]).send().await.unwrap();
        assert_eq!(planned.status(), 200, "{path}");
        assert!(ours.captures(&order).await.is_err(), "{path}");
        assert_eq!(ours.captures(&order).await, Ok(Some(Vec::new())), "{path}");
        let refused = client.post(&url).json(&["no_such_fault"]).send().await.unwrap();
        assert_eq!(refused.status(), 400, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn captures_are_found_and_go_back_once_whatever_is_lost() {
    let provider = PaymentProvider::start(None).unwrap();
    let ours = adapter(&provider);
    let order = order(number());
    assert_eq!(ours.captures(&order).await, Ok(Some(Vec::new())));
    let later = NOW.plus_seconds(1);
    let second = provider.capture("pi_a", order.number, euros(300), later).unwrap();
    let first = provider.capture("pi_b", order.number, euros(500), NOW).unwrap();
    let another = Mint::new(8).mint(NOW, &UserId::new("bob").unwrap());
    provider.capture("pi_c", another, euros(500), NOW).unwrap();
    assert_eq!(ours.captures(&order).await, Ok(Some(vec![first.clone(), second.clone()])));
    provider.next(Fault::FailSearch);
    assert!(matches!(ours.captures(&order).await, Err(StoreError::Unavailable(_))));

    let record = to_refund(&first);
    provider.next(Fault::FailRefund);
    assert!(matches!(ours.refund(&record).await, Err(StoreError::Unknown(_))));
    assert!(refunds(&provider, "pi_b").is_empty());
    provider.next(Fault::LoseRefundAnswer);
    assert!(matches!(ours.refund(&record).await, Err(StoreError::Unknown(_))));
    let (one, other) = tokio::join!(ours.refund(&record), ours.refund(&record));
    assert_eq!((one, other), (Ok(RefundReply::Refunded), Ok(RefundReply::Refunded)));
    let whole = LedgerRefund { amount_minor: MinorUnits(500), status: "succeeded".to_owned() };
    assert_eq!(refunds(&provider, "pi_b"), [whole]);

    let record = to_refund(&second);
    provider.next(Fault::LeaveRefundPending);
    assert_eq!(ours.refund(&record).await, Ok(RefundReply::Pending));
    assert_eq!(ours.refund(&record).await, Ok(RefundReply::Pending));
    provider.settle_refunds("pi_a", true).unwrap();
    // The first answer under the key was "pending"; the list is asked, not the key.
    assert_eq!(ours.refund(&record).await, Ok(RefundReply::Refunded));
    assert_eq!(refunds(&provider, "pi_a").len(), 1);

    let mut unknown = first;
    unknown.key.payment = engine::domain::basics::ids::PaymentId::new("pi_x").unwrap();
    let reply = ours.refund(&to_refund(&unknown)).await;
    let why = "resource_missing: No such payment_intent: 'pi_x'".to_owned();
    assert_eq!(reply, Ok(RefundReply::Refused(why)));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_refunds_at_once_are_one() {
    let provider = PaymentProvider::start(None).unwrap();
    let ours = adapter(&provider);
    for round in 0..20 {
        let name = format!("pi_{round}");
        let record = to_refund(&provider.capture(&name, number(), euros(500), NOW).unwrap());
        let (one, other) = tokio::join!(ours.refund(&record), ours.refund(&record));
        assert_eq!((one, other), (Ok(RefundReply::Refunded), Ok(RefundReply::Refunded)));
        assert_eq!(refunds(&provider, &name).len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_there_or_does_not_know_us_is_asked_again_later() {
    let provider = PaymentProvider::start(None).unwrap();
    let record = to_refund(&provider.capture("pi_1", number(), euros(500), NOW).unwrap());
    let unavailable = |error: StoreError| {
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        assert!(!error.to_string().contains(API_KEY), "{error}");
    };
    let mut config = backends::providers(&provider);
    config.apis[0].key.0 = b"sk_wrong".to_vec();
    let foreign = providers(&config);
    unavailable(foreign.captures(&order(number())).await.unwrap_err());
    unavailable(foreign.refund(&record).await.unwrap_err());
    assert!(!format!("{foreign:?}").contains("sk_wrong"));

    config.apis[0].url = Some("http://127.0.0.1:1".to_owned());
    let nowhere = providers(&config);
    unavailable(nowhere.captures(&order(number())).await.unwrap_err());
    unavailable(nowhere.refund(&record).await.unwrap_err());

    let nobody = providers(&ProvidersConfig::default());
    assert_eq!(nobody.captures(&order(number())).await, Ok(None));
    unavailable(nobody.refund(&record).await.unwrap_err());
    assert!(refunds(&provider, "pi_1").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_still_known_after_a_kill() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("provider.jsonl");
    let provider = PaymentProvider::start(Some(&file)).unwrap();
    let (ours, url) = (adapter(&provider), provider.url());
    let record = to_refund(&provider.capture("pi_1", number(), euros(500), NOW).unwrap());
    assert_eq!(ours.refund(&record).await, Ok(RefundReply::Refunded));
    let before = provider.ledger();
    // Dropped as a killed process is: in the middle of a line that nobody was told of.
    drop(provider);
    let mut log = std::fs::File::options().append(true).open(&file).unwrap();
    log.write_all(br#"{"captured":{"id":"pi_2","or"#).unwrap();
    drop(log);

    let provider = PaymentProvider::start(Some(&file)).unwrap();
    assert_eq!(provider.ledger(), before);
    let reply = adapter(&provider).refund(&record).await;
    assert_eq!((reply, provider.ledger()), (Ok(RefundReply::Refunded), before));
    provider.capture("pi_2", number(), euros(1), NOW).unwrap();
    let (count, again) = (provider.ledger().len(), provider.url());
    drop(provider);
    let provider = PaymentProvider::start(Some(&file)).unwrap();
    assert_eq!(provider.ledger().len(), count);
    // It is where it was, unless somebody took its port meanwhile.
    println!("at {url}, {again} and {}", provider.url());
}

/// Runs a script in the Python environment that `make setup` makes, against the fake.
fn stripe(provider: &PaymentProvider, script: &str, arguments: &Value) -> Value {
    const HEAD: &str = "
import json, sys, stripe
asked = json.load(sys.stdin)
stripe.api_base, stripe.api_key = asked['url'], asked['key']
stripe.max_network_retries = 0
";
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut child = Command::new(root.join(".venv/bin/python"))
        .args(["-c", &format!("{HEAD}{script}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python environment is missing: run `make setup`");
    let asked = json!({ "url": provider.url(), "key": API_KEY, "with": arguments });
    child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the script failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Stripe's package starts what our adapter starts, with the same fields, and reads what becomes of it; and our
/// adapter closes what the package started.
#[tokio::test(flavor = "multi_thread")]
async fn stripes_own_package_starts_reads_and_expires_sessions_at_the_fake() {
    const SCRIPT: &str = "
import time
order = asked['with']['order']
def start(number, **other):
    fields = dict(
        mode='payment', payment_method_types=['card'], client_reference_id='%s-%d' % (order, number),
        line_items=[{'quantity': 1, 'price_data': {
            'currency': 'eur', 'unit_amount': 500, 'product_data': {'name': 'Order'}}}],
        expires_at=int(time.time()) + 31 * 60, metadata={'order': order, 'attempt': str(number)},
        payment_intent_data={'metadata': {'order': order, 'attempt': str(number)}},
        success_url='https://shop.example/back', cancel_url='https://shop.example/back')
    return stripe.checkout.Session.create(**(fields | other))
def raised(call):
    try:
        call()
    except stripe.StripeError as error:
        return [type(error).__name__, error.http_status, error.code]
def seen(session):
    return [session.status, session.payment_status, session.amount_total, session.currency, session.metadata['order']]
first = start(1, idempotency_key='k')
again = start(1, idempotency_key='k', expires_at=first.expires_at)
second = start(2)
expired = stripe.checkout.Session.expire(second.id)
print(json.dumps({
    'first': first.id, 'again': again.id, 'url': first.url, 'seen': seen(first),
    'expired': [expired.id == second.id, expired.status, expired.url],
    'twice': raised(lambda: stripe.checkout.Session.expire(second.id)),
    'read': seen(stripe.checkout.Session.retrieve(second.id)),
    'short': raised(lambda: start(3, expires_at=int(time.time()) + 60)),
    'other': raised(lambda: start(4, idempotency_key='k')),
    'missing': raised(lambda: stripe.checkout.Session.retrieve('cs_x')),
    'foreign': raised(lambda: stripe.checkout.Session.retrieve(first.id, api_key='sk_x')),
}))";
    let provider = PaymentProvider::start(None).unwrap();
    let number = number();
    let arguments = json!({ "order": number });
    let said = tokio::task::block_in_place(|| stripe(&provider, SCRIPT, &arguments));
    let first = said["first"].as_str().unwrap();
    assert_eq!(said["again"], first, "one session for each key");
    assert_eq!(said["url"], format!("{}/pay/{first}", provider.url()));
    assert_eq!(said["seen"], json!(["open", "unpaid", 500, "eur", number]));
    assert_eq!(said["expired"], json!([true, "expired", null]));
    assert_eq!(said["twice"], json!(["InvalidRequestError", 400, null]));
    assert_eq!(said["read"], json!(["expired", "unpaid", 500, "eur", number]));
    assert_eq!(said["short"], json!(["InvalidRequestError", 400, null]));
    assert_eq!(said["other"], json!(["IdempotencyError", 400, null]));
    assert_eq!(said["missing"], json!(["InvalidRequestError", 404, "resource_missing"]));
    assert_eq!(said["foreign"], json!(["AuthenticationError", 401, null]));

    // It is paid at the page: the package reads that, and the adapter finds the capture.
    let paid = provider.pay(first, Timestamp::now()).unwrap().unwrap();
    const PAID: &str = "
session = stripe.checkout.Session.retrieve(asked['with']['session'])
print(json.dumps([session.status, session.payment_status, session.url]))";
    let arguments = json!({ "session": first });
    let said = tokio::task::block_in_place(|| stripe(&provider, PAID, &arguments));
    assert_eq!(said, json!(["complete", "paid", null]));
    assert_eq!(adapter(&provider).captures(&order(number)).await, Ok(Some(vec![paid])));
}

/// Stripe states what goes back in its own units: hundredths of krónur and of shillings, whole ariary.
#[tokio::test(flavor = "multi_thread")]
async fn what_went_back_by_hand_is_counted_in_the_units_of_the_capture() {
    let provider = PaymentProvider::start(None).unwrap();
    let ours = adapter(&provider);
    let client = reqwest::Client::new();
    // What was captured, what goes back by hand in Stripe's units, and what that is in ours.
    for (code, captured, by_hand, is) in
        [("ISK", 5000, 5000, 50), ("UGX", 900, 90_000, 900), ("MGA", 500_000, 1000, 100_000)]
    {
        let currency = Currency::new(code).unwrap();
        let amount = Money { amount_minor: MinorUnits(captured), currency };
        let payment = format!("pi_{code}");
        let record = to_refund(&provider.capture(&payment, number(), amount, NOW).unwrap());
        let form = format!("payment_intent={payment}&amount={by_hand}");
        let asked = client.post(format!("{}/v1/refunds", provider.url())).bearer_auth(API_KEY);
        let asked = asked.header(VERSION_HEADER, API_VERSION).body(form);
        assert_eq!(asked.send().await.unwrap().status(), 200, "{code}");
        assert_eq!(refunds(&provider, &payment)[0].amount_minor, MinorUnits(is), "{code}");
        assert_eq!(ours.refund(&record).await, Ok(RefundReply::Refunded), "{code}");
        let back = refunds(&provider, &payment).iter().map(|refund| refund.amount_minor).sum();
        assert_eq!(MinorUnits(captured), back, "{code}: all of it is back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_that_we_name_is_that_of_the_package_that_the_fake_is_held_against() {
    const SCRIPT: &str = "print(json.dumps(stripe.api_version))";
    let provider = PaymentProvider::start(None).unwrap();
    let said = tokio::task::block_in_place(|| stripe(&provider, SCRIPT, &json!({})));
    assert_eq!(said, API_VERSION);
}

/// Every call names the version: this fake refuses those that do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_no_version_of_the_api_is_refused() {
    let provider = PaymentProvider::start(None).unwrap();
    let client = reqwest::Client::new();
    let url = format!("{}/v1/refunds?payment_intent=pi_1", provider.url());
    for (version, status) in [(None, 400), (Some("newest"), 400), (Some(API_VERSION), 200)] {
        let asked = client.get(&url).bearer_auth(API_KEY);
        let asked = version.into_iter().fold(asked, |asked, it| asked.header(VERSION_HEADER, it));
        assert_eq!(asked.send().await.unwrap().status(), status, "{version:?}");
    }
    let ours = adapter(&provider);
    assert_eq!(ours.captures(&order(number())).await, Ok(Some(Vec::new())));
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_own_package_pays_finds_and_refunds_at_the_fake() {
    const SCRIPT: &str = "
order = asked['with']['order']
intent = stripe.PaymentIntent.create(amount=500, currency='eur', confirm=True, metadata={'order': order})
found = stripe.PaymentIntent.search(query=\"metadata['order']:'%s'\" % order)
first = stripe.Refund.create(payment_intent=intent.id, idempotency_key='k')
again = stripe.Refund.create(payment_intent=intent.id, idempotency_key='k')
listed = stripe.Refund.list(payment_intent=intent.id)
def raised(call):
    try:
        call()
    except stripe.StripeError as error:
        return [type(error).__name__, error.code]
print(json.dumps({
    'intent': [intent.id, intent.status, intent.amount_received, intent.currency, intent.metadata['order']],
    'found': [each.id for each in found.auto_paging_iter()],
    'refunds': [first.id, first.status, first.amount, again.id, [each.id for each in listed.auto_paging_iter()]],
    'twice': raised(lambda: stripe.Refund.create(payment_intent=intent.id)),
    'other': raised(lambda: stripe.Refund.create(payment_intent='pi_x', idempotency_key='k')),
    'missing': raised(lambda: stripe.Refund.create(payment_intent='pi_x')),
    'foreign': raised(lambda: stripe.Refund.list(payment_intent=intent.id, api_key='sk_x')),
}))";
    let provider = PaymentProvider::start(None).unwrap();
    let order_number = number();
    let arguments = json!({ "order": order_number });
    let said = tokio::task::block_in_place(|| stripe(&provider, SCRIPT, &arguments));
    let paid = json!(["pi_onsale_1", "succeeded", 500, "eur", order_number]);
    assert_eq!(said["intent"], paid);
    assert_eq!(said["found"], json!(["pi_onsale_1"]));
    assert_eq!(said["refunds"], json!(["re_1", "succeeded", 500, "re_1", ["re_1"]]));
    assert_eq!(said["twice"], json!(["InvalidRequestError", "charge_already_refunded"]));
    assert_eq!(said["other"], json!(["IdempotencyError", null]));
    assert_eq!(said["missing"], json!(["InvalidRequestError", "resource_missing"]));
    assert_eq!(said["foreign"], json!(["AuthenticationError", null]));
    // What Stripe's package did is what our adapter finds.
    let found = adapter(&provider).captures(&order(order_number)).await.unwrap().unwrap();
    assert_eq!(found.len(), 1);
    let reply = adapter(&provider).refund(&to_refund(&found[0])).await;
    assert_eq!(reply, Ok(RefundReply::Refunded), "it is back already");
}
