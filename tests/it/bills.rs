//! The bills of three providers, as their fakes make them: what goes back outside is heard of by them, what differs is kept, and
//! a bill that is late, wrong, cut off or somebody else's loses nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::BillDay;
use engine::flows::bills::BillReading;
use engine::ports::Ports as _;
use fake_payments::{BillFault, Form, MerchantProvider};
use local::handlers::read_bills;
use local::up::Engine;
use serde_json::{Value, json};

use crate::money_commands::{hall, order};
use crate::program::{read, read_lines, run};

const PROVIDERS: [&str; 3] = ["stripe", "wechat", "alipay"];
const BEIJING_MS: i64 = 8 * 60 * 60 * 1000;

/// Milliseconds from now until the hour after noon of a day in Beijing, tomorrow's if `days` is 1, when every bill of the day
/// before is made; Stripe's day is over some hours before, or is read a day later. No two runs have the same time: what a run
/// has decided is told by that.
fn ahead_ms(days: i64) -> i64 {
    let now = Timestamp::now();
    let noon = BillDay::of(now, BEIJING_MS).plus(days).period(BEIJING_MS).from.plus_seconds(43_200);
    noon.ms() + now.ms().rem_euclid(3_600_000) - now.ms()
}

/// One run of the function, so far ahead of now, for the fakes, too.
async fn read_ahead(engine: &Engine, days: i64) -> BillReading {
    let ahead_ms = ahead_ms(days);
    engine.merchants().iter().for_each(|merchant| merchant.bills_ahead(ahead_ms));
    let clock = move || Timestamp::from_ms(Timestamp::now().ms() + ahead_ms);
    read_bills::read(engine.app(), clock).await.unwrap()
}

/// Has the bills of an account read from a day on; the engine's own run may have them at the moment.
async fn read_from(dir: &Path, provider: &str, day: BillDay) {
    let until = Instant::now() + Duration::from_secs(60);
    let day = day.to_string();
    loop {
        let from = ["money", "bills", "--provider", provider, "--read-from", &day];
        let (said, code) = run(dir, &from);
        if code == 0 {
            return;
        }
        assert!(Instant::now() < until, "{said}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Bills are read from yesterday on, as by an engine that was there before today.
async fn begin(dir: &Path) {
    for provider in PROVIDERS {
        read_from(dir, provider, BillDay::of(Timestamp::now(), 0).plus(-1)).await;
    }
}

fn merchant(engine: &Engine, form: Form) -> &MerchantProvider {
    engine.merchants().of(form).unwrap()
}

/// An order of two tickets that is paid at a provider, and the provider's name of the payment.
async fn paid(engine: &Engine, dir: &Path, buyer: &str, provider: &str) -> (String, String) {
    let order = order(engine, buyer, 2).await;
    let (said, code) = run(dir, &["pay", "--order", &order, "--at", provider]);
    assert_eq!(code, 0, "{said}");
    let ledger = match provider {
        "stripe" => engine.provider().ledger(),
        "wechat" => merchant(engine, Form::Wechat).ledger(),
        _ => merchant(engine, Form::Alipay).ledger(),
    };
    let entry = ledger.into_iter().find(|entry| entry.order.to_string() == order).unwrap();
    (order, entry.payment)
}

/// What the audit finds of what went back (I15), once it is quiet.
fn unknown_to(dir: &Path) -> Vec<String> {
    let (audit, _) = read(dir, &["audit"]);
    let found = audit["findings"].as_array().unwrap().iter();
    let found = found.flat_map(|finding| finding["violations"].as_array().unwrap());
    found.filter(|found| found["rule"] == "I15").map(Value::to_string).collect()
}

/// The amounts of the refunds of an order whose money is back, by its facts.
fn refunds(dir: &Path, order: &str) -> Vec<i64> {
    let (facts, _) = read_lines(dir, &["events", "tail", "--all", "--once"]);
    let of_order = facts.iter().filter(|fact| fact["order"] == order);
    let back = of_order.filter(|fact| fact["kind"] == "refunded");
    back.map(|fact| fact["amount"]["amount_minor"].as_i64().unwrap()).collect()
}

/// The kinds of what waits for an operator, each with how often it does.
fn differences(dir: &Path) -> BTreeMap<String, usize> {
    let (said, _) = read(dir, &["money", "bills"]);
    let mut kinds = BTreeMap::new();
    for difference in said["differences"].as_array().unwrap() {
        let kind = difference["kind"].as_str().unwrap().to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// A refund made on the provider's own page is recorded once, as Stripe's is by its event: the tickets wait for an operator,
/// and the rest of the payment is what is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_back_outside_is_told_by_the_bill() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = hall(dir, 40, &json!({ "currency": "CNY" })).await;
    begin(dir).await;
    let mut orders = BTreeMap::new();
    for (provider, form) in [("wechat", Form::Wechat), ("alipay", Form::Alipay)] {
        let (order, payment) = paid(&engine, dir, provider, provider).await;
        // One that the engine asks for is not one of those.
        let ours = ["orders", "refund", &order, "--amount", "500", "--number", "1"];
        assert_eq!(run(dir, &ours).1, 0);
        back_at_provider(&engine, form, &payment, 1).await;
        let name = format!("dashboard{provider}");
        // WeChat Pay takes one a minute.
        let now = Timestamp::now().plus_seconds(61);
        let refund = merchant(&engine, form).refund_by_hand(&payment, &name, MinorUnits(1000), now);
        refund.unwrap();
        orders.insert(provider, order);
    }
    let (order, payment) = paid(&engine, dir, "stripe", "stripe").await;
    engine.provider().refund_by_hand(&payment, MinorUnits(1000), Timestamp::now()).unwrap();
    orders.insert("stripe", order);
    // Stripe's event is read within the hour; of the others nothing tells: without the bills nobody ever hears.
    let unknown = unknown_to(dir);
    assert_eq!(unknown.len(), 3, "{unknown:?}");

    let mut reading = read_ahead(&engine, 1).await;
    if reading.unfinished > 0 {
        reading = BillReading { recorded: reading.recorded, ..read_ahead(&engine, 2).await };
    }
    assert_eq!((reading.recorded, reading.differences, reading.failed), (2, 0, 0), "{reading:?}");
    assert_eq!(unknown_to(dir), Vec::<String>::new());
    // Its fact is told as any other.
    let until = Instant::now() + Duration::from_secs(60);
    for provider in PROVIDERS {
        let expected = if provider == "stripe" { 1000 } else { 1500 };
        loop {
            let amounts: i64 = refunds(dir, &orders[provider]).iter().sum();
            if amounts == expected {
                break;
            }
            assert!(amounts < expected && Instant::now() < until, "{provider}: {amounts}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
    let (stuck, code) = read(dir, &["stuck", "--older-than", "0"]);
    let outside = stuck["stuck"].as_array().unwrap().iter().filter(|one| one["kind"] == "outside");
    assert_eq!((outside.count(), code), (3, 1), "tickets wait for an operator: {stuck}");
    // However often it is read.
    begin(dir).await;
    let again = read_ahead(&engine, 2).await;
    assert_eq!((again.recorded, again.differences), (0, 0), "{again:?}");
    assert!(again.matched >= 8, "{again:?}");
    assert_eq!(unknown_to(dir), Vec::<String>::new());
    assert_eq!(run(dir, &["money", "bills"]).1, 0);
    engine.stop().await.unwrap();
}

/// Waits until a provider has so many refunds of a payment.
async fn back_at_provider(engine: &Engine, form: Form, payment: &str, count: usize) {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let ledger = merchant(engine, form).ledger();
        let entry = ledger.iter().find(|entry| entry.payment == payment).unwrap();
        if entry.refunds.len() == count {
            return;
        }
        assert!(Instant::now() < until, "{entry:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Bills that are not there, or not what they should be, are read the next time; nothing of them is recorded before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bill_that_is_late_or_wrong_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = hall(dir, 40, &json!({ "currency": "CNY" })).await;
    let own = engine.app().ports.provider().deployment().unwrap().to_string();
    begin(dir).await;
    let now = Timestamp::now();
    for (provider, form, separator) in
        [("wechat", Form::Wechat, "-"), ("alipay", Form::Alipay, "_")]
    {
        let other = PROVIDERS.iter().find(|other| **other != provider && **other != "stripe");
        pass_over(dir, &["stripe", other.unwrap()]).await;
        let (_, payment) = paid(&engine, dir, provider, provider).await;
        let at = merchant(&engine, form);
        at.refund_by_hand(&payment, "byhand1", MinorUnits(700), now.plus_seconds(1)).unwrap();
        // Of another system, of another deployment, and of this one, whose order is gone.
        let shop = at.trade_of_others("SHOP20261125", MinorUnits(100), now).unwrap();
        at.refund_by_hand(&shop, "shop1", MinorUnits(100), now).unwrap();
        let staging = format!("staging{separator}169218430493097984{separator}1");
        at.trade_of_others(&staging, MinorUnits(100), now).unwrap();
        let lost = format!("{own}{separator}169218430493097984{separator}1");
        let lost = at.trade_of_others(&lost, MinorUnits(300), now).unwrap();
        at.refund_by_hand(&lost, "byhand2", MinorUnits(300), now).unwrap();

        let faults = [
            BillFault::NotYet,
            BillFault::Absent,
            BillFault::TooMany,
            BillFault::WrongSum,
            BillFault::Expired,
            BillFault::Cut,
            BillFault::Elsewhere,
            BillFault::Bomb,
        ];
        // Alipay's has no sum; that WeChat Pay has no bill of a day means that there was no trade.
        let of_it = |fault: &BillFault| {
            (*fault != BillFault::WrongSum || form == Form::Wechat)
                && (*fault != BillFault::Absent || form == Form::Alipay)
        };
        for fault in faults.into_iter().filter(of_it) {
            // The day before has no trades, and is not asked for with a fault.
            let first = read_before(&engine, dir, provider).await;
            assert_eq!(first.lines, 0, "{provider}: {first:?}");
            at.next_bill(fault);
            let reading = read_ahead(&engine, 1).await;
            let is_read = reading.lines > 0 || reading.recorded > 0 || reading.differences > 0;
            assert!(!is_read && reading.behind_days >= 1, "{provider} {fault:?}: {reading:?}");
        }
        let first = read_before(&engine, dir, provider).await;
        assert_eq!(first.lines, 0, "{first:?}");
        at.next_bill(BillFault::Garbled);
        let reading = read_ahead(&engine, 1).await;
        let BillReading { recorded, others, decided, .. } = reading;
        assert_eq!((recorded, others, decided), (1, 3, 1), "{provider}: {reading:?}");
        let mut expected = BTreeMap::from([("unreadable", 2), ("unknown_refund", 1)]);
        assert_eq!(differences(dir), named(&expected), "{provider}");

        for (fault, kind) in [
            (BillFault::Doubled, Some("twice")),
            (BillFault::Reordered, None),
            (BillFault::TwoFiles, None),
        ] {
            let first = read_before(&engine, dir, provider).await;
            assert_eq!(first.lines, 0, "{first:?}");
            at.next_bill(fault);
            let reading = read_ahead(&engine, 1).await;
            assert_eq!((reading.recorded, reading.decided), (0, 0), "{fault:?}: {reading:?}");
            if let Some(kind) = kind {
                expected.insert(kind, differences(dir)[kind]);
            }
            assert_eq!(differences(dir), named(&expected), "{provider} {fault:?}");
        }
        done(dir, provider);
    }
    assert_eq!(differences(dir), BTreeMap::new());
    engine.stop().await.unwrap();
}

fn named(kinds: &BTreeMap<&str, usize>) -> BTreeMap<String, usize> {
    kinds.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
}

/// The bills of these accounts are passed over.
async fn pass_over(dir: &Path, providers: &[&str]) {
    for provider in providers {
        read_from(dir, provider, BillDay::of(Timestamp::now(), 0).plus(9)).await;
    }
}

/// The bills of an account are read from today on, in Beijing, at a time at which that of today is not made.
async fn read_before(engine: &Engine, dir: &Path, provider: &str) -> BillReading {
    read_from(dir, provider, BillDay::of(Timestamp::now(), BEIJING_MS)).await;
    read_ahead(engine, 0).await
}

/// An operator says of everything that differs what it was.
fn done(dir: &Path, provider: &str) {
    let (said, code) = read(dir, &["money", "bills"]);
    assert_eq!(code, 1);
    let (stuck, code) = read(dir, &["stuck"]);
    let of_bill = stuck["stuck"].as_array().unwrap().iter().filter(|one| one["kind"] == "bill");
    assert!(of_bill.count() > 0 && code == 1, "{stuck}");
    for difference in said["differences"].as_array().unwrap() {
        let name = difference["name"].as_str().unwrap();
        let arguments = ["money", "bills", "--provider", provider, "--done", name];
        let words = ["--by", "ann", "--reason", "looked at"];
        let (said, code) = run(dir, &[&arguments[..], &words].concat());
        assert_eq!(code, 0, "{said}");
    }
    let none = ["money", "bills", "--provider", provider, "--done", "none", "--by", "a"];
    assert_eq!(run(dir, &[&none[..], &["--reason", "b"]].concat()).1, 2);
    let (all, code) = read(dir, &["money", "bills", "--all"]);
    assert!(code == 0 && all["differences"][0]["done"] == "ann: looked at", "{all}");
}
