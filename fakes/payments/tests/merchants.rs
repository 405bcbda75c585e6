//! The fakes of WeChat Pay and Alipay and the engine's own adapters, over HTTP: each believes what the other
//! signs, and what a person does on the page is what the adapter finds and is told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{
    Attempt, AttemptNumber, AttemptState, Attempts, PaymentChoice, PaymentMethod, PaymentStep,
    ReturnUrl,
};
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{
    Capture, Order, OrderState, PaymentOutcome, PaymentRecord, RefundReason,
};
use engine::domain::payment::start::{CloseReply, StartReply};
use engine::ports::{Provider as _, StoreError};
use fake_limits::{Enforced, Throttles};
use fake_payments::{
    Behaviour, Form, MerchantFault, MerchantOptions, MerchantProvider, page_of_code,
};
use futures_util::future::join_all;
use serde_json::json;
use shared::providers::{Limits, Providers, SignatureDefect};
use shared::runtime::connections::{Https, Trust};
use shared::runtime::merchants::Merchants;
use tokio::net::TcpListener;

const ORDER: &str = "169218430493097984";

/// What a merchant's server was sent: the first `refuses` tries are answered with 500.
#[derive(Default)]
struct Inbox {
    letters: Mutex<Vec<(HeaderMap, Bytes)>>,
    verdict: Mutex<Option<Providers>>,
    refuses: Mutex<u32>,
    form: Mutex<Option<Form>>,
}

impl Inbox {
    fn letters(&self) -> Vec<(HeaderMap, Bytes)> {
        self.letters.lock().unwrap().clone()
    }
}

/// Answers as the engine would: what is not believed with 401.
async fn take(
    State(inbox): State<Arc<Inbox>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    inbox.letters.lock().unwrap().push((headers.clone(), body.clone()));
    let form = inbox.form.lock().unwrap().unwrap();
    let verdict = inbox.verdict.lock().unwrap();
    let name = ProviderId::new(form.as_str()).unwrap();
    let verified = verdict.as_ref().unwrap().verify(&name, &headers, &body, Timestamp::now());
    if verified.is_err() {
        return (StatusCode::UNAUTHORIZED, "");
    }
    let mut refuses = inbox.refuses.lock().unwrap();
    if *refuses > 0 {
        *refuses -= 1;
        return (StatusCode::INTERNAL_SERVER_ERROR, "success");
    }
    (StatusCode::OK, "success")
}

/// A fake, the adapter to it, and where its notifications go.
struct Shop {
    form: Form,
    fake: MerchantProvider,
    ours: Providers,
    inbox: Arc<Inbox>,
}

fn providers(form: Form, fake: &MerchantProvider, notify_url: &str) -> Providers {
    let document = json!({ form.as_str(): fake.settings(notify_url).unwrap() });
    let merchants = Merchants::read(document.to_string().as_bytes()).unwrap();
    let https = Https::new(&Trust::public());
    Providers::default().with_merchants(merchants, 300, &https, &Limits::none()).unwrap()
}

impl Shop {
    async fn open(form: Form, options: MerchantOptions) -> Self {
        let inbox = Arc::<Inbox>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let notify_url = format!("http://{}/notify", listener.local_addr().unwrap());
        let router = Router::new().route("/notify", post(take)).with_state(Arc::clone(&inbox));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let fake = MerchantProvider::start(form, options).unwrap();
        let ours = providers(form, &fake, &notify_url);
        *inbox.verdict.lock().unwrap() = Some(providers(form, &fake, &notify_url));
        *inbox.form.lock().unwrap() = Some(form);
        Self { form, fake, ours, inbox }
    }

    async fn kind(form: Form) -> Self {
        Self::open(form, MerchantOptions::default()).await
    }

    fn behaves(form: Form, behaviour: Behaviour) -> impl Future<Output = Self> {
        Self::open(form, MerchantOptions { behaviour, ..MerchantOptions::default() })
    }

    fn attempt(&self, method: PaymentMethod) -> Attempt {
        let now = Timestamp::now();
        let return_url = Some(ReturnUrl::new("https://shop.example/paid?order=7").unwrap());
        let provider = ProviderId::new(self.form.as_str()).unwrap();
        Attempt {
            number: AttemptNumber::FIRST,
            choice: PaymentChoice { provider, method, return_url },
            started_at: now,
            expires_at: now.plus_seconds(600),
            deployment: None,
            reference: None,
            is_named_first: true,
            step: None,
            is_absent: false,
            asks: 0,
            state: AttemptState::Open,
        }
    }

    /// Starts an attempt: the address of the page on which it is paid.
    async fn start(&self, attempt: &Attempt) -> String {
        let mut reply = self.ours.start(&order(), attempt).await;
        for _ in 0..2 {
            // On a busy machine a connection or an answer may come too late; the same attempt is started again then, as a
            // buyer does.
            if matches!(reply, Err(StoreError::Unknown(_) | StoreError::Unavailable(_))) {
                reply = self.ours.start(&order(), attempt).await;
            }
        }
        let reply = reply.unwrap();
        let StartReply::Started { step, .. } = reply else { panic!("{reply:?}") };
        match step {
            PaymentStep::Page(url) => url,
            PaymentStep::Code(code) => page_of_code(&self.fake.url(), &code).unwrap(),
            PaymentStep::Form(_) => panic!("no form was asked for"),
        }
    }

    async fn started(&self) -> (Attempt, String) {
        let attempt = self.attempt(PaymentMethod::Code);
        let page = self.start(&attempt).await;
        (attempt, page)
    }

    async fn close(&self, attempt: &Attempt) -> CloseReply {
        self.ours.close(&order(), attempt).await.unwrap()
    }

    /// The capture of a paid attempt, as a close finds it.
    async fn capture(&self, attempt: &Attempt) -> Capture {
        match self.close(attempt).await {
            CloseReply::Paid(capture) => capture,
            other @ (CloseReply::Closed | CloseReply::NotYet | CloseReply::Absent) => {
                panic!("{other:?}")
            }
        }
    }

    /// Waits until the notifications are as `ready` says.
    async fn until(&self, ready: impl Fn(&Self) -> bool) {
        for _ in 0..6000 {
            if ready(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.fake.notified());
    }
}

fn yuan() -> Money {
    Money { amount_minor: MinorUnits(110_600), currency: Currency::new("CNY").unwrap() }
}

fn order() -> Order {
    let now = Timestamp::now();
    Order {
        number: ORDER.parse().unwrap(),
        sale: "s".parse().unwrap(),
        user: "alice".parse().unwrap(),
        state: OrderState::Pending,
        lines: Vec::new(),
        total: yuan(),
        fingerprint: "0123456789abcdef".parse().unwrap(),
        created_at: now,
        pay_by: now.plus_seconds(900),
        changed_at: now,
        payment: None,
        attempts: Attempts::default(),
        facts: engine::domain::order::fact::Facts::default(),
        refunds: engine::domain::order::order_refund::RefundCounts::default(),
        merchant: engine::domain::sale::MerchantTerms::house(),
        exchange: None,
    }
}

fn browser() -> reqwest::Client {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// A person looks at a page: what is in it.
async fn look(page: &str) -> String {
    browser().get(page).send().await.unwrap().text().await.unwrap()
}

/// A person presses a button: the status, and where they are sent.
async fn press(page: &str, action: &str) -> (u16, Option<String>) {
    let sent = browser().post(page).body(format!("action={action}")).send().await.unwrap();
    let to = sent.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
    (sent.status().as_u16(), to)
}

fn record(capture: &Capture) -> PaymentRecord {
    let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
    PaymentRecord::decided(capture, outcome, Timestamp::now())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_paid_on_its_page_and_the_merchant_is_told() {
    for form in Form::ALL {
        let shop = Shop::kind(form).await;
        let (attempt, page) = shop.started().await;
        assert_eq!(shop.start(&attempt).await, page, "asked for again, it is the same");
        assert!(look(&page).await.contains("¥1106.00"), "{form:?}");
        assert_eq!(press(&page, "refuse").await.0, 200);
        assert!(shop.fake.ledger().is_empty(), "{form:?}");
        assert_eq!(press(&page, "pay").await.0, 200, "it says nothing of where to go");
        shop.until(|shop| shop.fake.notified().taken == 1).await;

        let (headers, body) = shop.inbox.letters().remove(0);
        let name = ProviderId::new(form.as_str()).unwrap();
        let verified = shop.ours.verify(&name, &headers, &body, Timestamp::now()).unwrap();
        let told = shop.ours.capture(&verified).unwrap().unwrap().capture;
        assert_eq!(told, shop.capture(&attempt).await, "{form:?}");
        assert_eq!((told.order.to_string().as_str(), told.amount), (ORDER, yuan()));
        assert_eq!(told.attempt, Some(AttemptNumber::FIRST));
        let ledger = shop.fake.ledger();
        assert_eq!((ledger.len(), ledger[0].provider.as_str()), (1, form.as_str()));
        assert_eq!(ledger[0].payment, told.key.payment.as_str());

        // One byte of the body is another one: it is refused.
        let text = String::from_utf8(body.to_vec()).unwrap();
        let changed = text.replacen('1', "2", 1);
        let refused = shop.ours.verify(&name, &headers, changed.as_bytes(), Timestamp::now());
        assert_eq!(refused.unwrap_err(), SignatureDefect::Mismatch, "{form:?}");
    }
}

/// A key that is being replaced is tried first, and the one that replaces it once the provider refuses that.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_key_signs_when_the_first_is_no_longer_accepted() {
    for form in Form::ALL {
        let mut shop = Shop::kind(form).await;
        let other = MerchantProvider::start(form, MerchantOptions::default()).unwrap();
        let notify_url = "http://127.0.0.1:9/";
        let foreign = other.settings(notify_url).unwrap()["private_key"].clone();
        let right = shop.fake.settings(notify_url).unwrap();
        let with = |first: &serde_json::Value, next: &serde_json::Value| {
            let mut settings = right.clone();
            settings["private_key"] = first.clone();
            settings["next_private_key"] = next.clone();
            if form == Form::Wechat {
                settings["next_serial"] = right["serial"].clone();
            }
            let document = json!({ form.as_str(): settings });
            let merchants = Merchants::read(document.to_string().as_bytes()).unwrap();
            let https = Https::new(&Trust::public());
            Providers::default().with_merchants(merchants, 300, &https, &Limits::none()).unwrap()
        };
        let own = &right["private_key"];
        shop.ours = with(&foreign, own);
        // One attempt, which says the same each time: another one of the same number would have another expiry.
        let attempt = shop.attempt(PaymentMethod::Code);
        let page = shop.start(&attempt).await;
        let asked = shop.fake.calls();
        assert_eq!(shop.start(&attempt).await, page, "{form:?}");
        let more = shop.fake.calls().values().sum::<u64>() - asked.values().sum::<u64>();
        assert_eq!(more, 1, "{form:?}: the key that is accepted is used from then on");
        shop.ours = with(own, &foreign);
        assert_eq!(shop.start(&attempt).await, page, "{form:?}: the first one still is");
        shop.ours = with(&foreign, &foreign);
        let refused = shop.ours.start(&order(), &attempt).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{form:?}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_alipays_makes_its_trade_when_it_is_opened_and_sends_the_payer_back() {
    let shop = Shop::kind(Form::Alipay).await;
    let attempt = shop.attempt(PaymentMethod::Page);
    let address = shop.start(&attempt).await;
    assert_eq!(shop.close(&attempt).await, CloseReply::Absent, "nobody has opened it");
    let forged = address.replace("1106.00", "0.01");
    assert_ne!(forged, address);
    assert!(look(&forged).await.contains("isv.invalid-signature"));
    assert_eq!(shop.close(&attempt).await, CloseReply::Absent, "still nobody");

    let opened = browser().get(&address).send().await.unwrap();
    let to = opened.headers()["location"].to_str().unwrap();
    let page = format!("{}{to}", shop.fake.url());
    let back = Some("https://shop.example/paid?order=7".to_owned());
    assert_eq!(press(&page, "leave").await, (303, back.clone()));
    assert_eq!(press(&page, "pay").await, (303, back));
    shop.capture(&attempt).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_closed_is_never_paid_and_alipays_code_exists_once_it_was_opened() {
    for form in Form::ALL {
        let shop = Shop::kind(form).await;
        let (attempt, page) = shop.started().await;
        if form == Form::Alipay {
            assert_eq!(shop.close(&attempt).await, CloseReply::Absent);
        }
        look(&page).await;
        assert_eq!(shop.close(&attempt).await, CloseReply::Closed, "{form:?}");
        assert_eq!(shop.close(&attempt).await, CloseReply::Closed, "{form:?}: again");
        assert!(look(&page).await.contains("It is closed"));
        assert_eq!(press(&page, "pay").await.0, 200);
        assert_eq!((shop.fake.ledger().len(), shop.fake.notified().tries), (0, 0), "{form:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_at_wechat_cannot_be_closed_at_once_nor_while_its_payer_is_at_it() {
    let behaviour = Behaviour {
        no_close_for: Duration::from_secs(300),
        slow_payer_takes: Duration::from_secs(3600),
        ..Behaviour::default()
    };
    let shop = Shop::behaves(Form::Wechat, behaviour).await;
    let (attempt, _) = shop.started().await;
    assert_eq!(shop.close(&attempt).await, CloseReply::NotYet);
    for form in Form::ALL {
        let slow = Behaviour { no_close_for: Duration::ZERO, ..behaviour };
        let shop = Shop::behaves(form, slow).await;
        let (attempt, page) = shop.started().await;
        press(&page, "late").await;
        assert_eq!(shop.close(&attempt).await, CloseReply::NotYet, "{form:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_payer_pays_though_it_was_asked_to_close() {
    for form in Form::ALL {
        let takes = Duration::from_millis(400);
        let shop =
            Shop::behaves(form, Behaviour { slow_payer_takes: takes, ..Behaviour::default() });
        let shop = shop.await;
        let (attempt, page) = shop.started().await;
        press(&page, "late").await;
        // Not yet, or already: that depends on the clock alone.
        let asked = shop.close(&attempt).await;
        assert!(matches!(asked, CloseReply::NotYet | CloseReply::Paid(_)), "{asked:?}");
        shop.until(|shop| shop.fake.notified().taken == 1).await;
        shop.capture(&attempt).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_lags_and_nothing_is_believed_paid_or_closed_meanwhile() {
    for form in Form::ALL {
        let query_lag = Duration::from_secs(3600);
        let shop = Shop::behaves(form, Behaviour { query_lag, ..Behaviour::default() }).await;
        let (attempt, page) = shop.started().await;
        press(&page, "pay").await;
        assert_eq!(shop.close(&attempt).await, CloseReply::NotYet, "{form:?}");
        assert_eq!(shop.fake.ledger().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_goes_back_once_whatever_is_lost() {
    for form in Form::ALL {
        let shop = Shop::kind(form).await;
        let (attempt, page) = shop.started().await;
        press(&page, "pay").await;
        let record = record(&shop.capture(&attempt).await);
        // Each asks about the refund first, and then for it.
        shop.fake.next(MerchantFault::FailRequest);
        let failed = shop.ours.refund(&record).await;
        assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{form:?}: {failed:?}");
        shop.fake.next(MerchantFault::Spare);
        shop.fake.next(MerchantFault::LoseAnswer);
        let lost = shop.ours.refund(&record).await;
        assert!(matches!(lost, Err(StoreError::Unknown(_))), "{form:?}: {lost:?}");
        shop.fake.next(MerchantFault::ProbeAnswer);
        let probed = shop.ours.refund(&record).await;
        assert!(matches!(probed, Err(StoreError::Unavailable(_))), "{form:?}: {probed:?}");
        assert_eq!(shop.ours.refund(&record).await, Ok(RefundReply::Refunded), "{form:?}");
        assert_eq!(shop.ours.refund(&record).await, Ok(RefundReply::Refunded), "{form:?}");
        let refunds = &shop.fake.ledger()[0].refunds;
        assert_eq!((refunds.len(), refunds[0].amount_minor), (1, MinorUnits(110_600)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_a_start_is_found_by_asking_again() {
    for form in Form::ALL {
        let shop = Shop::kind(form).await;
        let attempt = shop.attempt(PaymentMethod::Code);
        for fault in [MerchantFault::LoseAnswer, MerchantFault::ProbeAnswer] {
            shop.fake.next(fault);
            let lost = shop.ours.start(&order(), &attempt).await;
            assert!(matches!(lost, Err(StoreError::Unknown(_))), "{form:?} {fault:?}: {lost:?}");
        }
        let page = shop.start(&attempt).await;
        press(&page, "pay").await;
        assert_eq!(shop.fake.ledger().len(), 1, "{form:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unruly_provider_repeats_reorders_and_probes() {
    for form in Form::ALL {
        let behaviour = Behaviour { is_unruly: true, hurry: 1000, ..Behaviour::default() };
        let shop = Shop::behaves(form, behaviour).await;
        *shop.inbox.refuses.lock().unwrap() = 3;
        let mut pages = Vec::new();
        for number in AttemptNumber::all().take(8) {
            let attempt = Attempt { number, ..shop.attempt(PaymentMethod::Code) };
            pages.push(shop.start(&attempt).await);
        }
        // At once: on a slow machine payments one after the other would come later than what is held back.
        join_all(pages.iter().map(|page| press(page, "pay"))).await;
        // Eight payments; the first, fourth and seventh are told twice; three tries were refused.
        shop.until(|shop| shop.fake.notified().taken == 11).await;
        let notified = shop.fake.notified();
        assert_eq!(notified.tries, 14, "{form:?}");
        assert_eq!((notified.probes_believed, notified.given_up), (0, 0));
        let probes = if form == Form::Wechat { 2 } else { 0 };
        assert_eq!(notified.probes_refused, probes, "{form:?}");
        let of = |(headers, body): &(HeaderMap, Bytes)| {
            let name = ProviderId::new(form.as_str()).unwrap();
            let verified = shop.ours.verify(&name, headers, body, Timestamp::now()).ok()?;
            shop.ours.capture(&verified).unwrap()?.capture.attempt.map(AttemptNumber::get)
        };
        let told: Vec<u8> = shop.inbox.letters().iter().filter_map(of).collect();
        assert!(!told.is_sorted(), "{form:?}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fake_that_was_killed_knows_its_trades_and_tells_what_it_has_not_told() {
    for form in Form::ALL {
        let dir = tempfile::tempdir().unwrap();
        let file = Some(dir.path().join(format!("{}.jsonl", form.as_str())));
        let options = MerchantOptions { file, ..MerchantOptions::default() };
        let shop = Shop::open(form, options.clone()).await;
        // Nothing of it is believed here: its settings have the keys of another one.
        let other = MerchantProvider::start(form, MerchantOptions::default()).unwrap();
        *shop.inbox.verdict.lock().unwrap() = Some(providers(form, &other, "http://127.0.0.1/"));
        let (_, page) = shop.started().await;
        press(&page, "pay").await;
        shop.until(|shop| shop.fake.notified().tries == 1 && shop.inbox.letters().len() == 1).await;
        let Shop { fake, inbox, .. } = shop;
        let before = (fake.url(), fake.ledger());
        fake.stop().await;
        let again = MerchantProvider::start(form, options).unwrap();
        assert_eq!((again.url(), again.ledger()), before, "{form:?}");
        *inbox.verdict.lock().unwrap() = Some(providers(form, &again, "http://127.0.0.1/"));
        let shop =
            Shop { form, ours: providers(form, &again, "http://127.0.0.1/"), fake: again, inbox };
        shop.until(|shop| shop.inbox.letters().len() >= 2).await;
        let (headers, body) = shop.inbox.letters().pop().unwrap();
        let name = ProviderId::new(form.as_str()).unwrap();
        assert!(shop.ours.verify(&name, &headers, &body, Timestamp::now()).is_ok(), "{form:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_beyond_the_published_rates_are_refused_and_come_again_after_seconds() {
    let throttles = Throttles::default();
    let limits = Some(Enforced { throttles: throttles.clone(), ..Enforced::default() });
    let shop = Shop::open(Form::Wechat, MerchantOptions { limits, ..Default::default() }).await;
    let mut answers = Vec::new();
    // Of payments that there are not, as fast as can be: 150 a second are taken, 6 faulty ones.
    for number in 0..200 {
        let (attempt, amount) = (None, yuan());
        let key = format!("{number}");
        let capture = Capture {
            key: engine::domain::order::PaymentKey {
                provider: "wechat".parse().unwrap(),
                payment: key.parse().unwrap(),
            },
            order: ORDER.parse().unwrap(),
            attempt,
            amount,
        };
        answers.push(shop.ours.refund(&record(&capture)).await);
        if matches!(answers.last(), Some(Err(_))) {
            break;
        }
    }
    let throttled = answers.pop().unwrap();
    assert!(matches!(throttled, Err(StoreError::Limited(5))), "{throttled:?}");
    assert!(answers.len() >= 6, "{answers:?}");
    assert!(throttles.rows().iter().any(|row| row.service == "WeChat Pay"));
}
