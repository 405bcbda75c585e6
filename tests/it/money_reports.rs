//! `onsale money reconcile`: the reports of three providers, as their fakes make them, with defects planted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use encoding_rs::GBK;
use engine::domain::basics::time::Timestamp;
use local::up::Engine;
use reqwest::Method;
use serde_json::{Value, json};

use crate::money_commands::{hall, order, send};
use crate::program::{read, read_lines, run};

const PROVIDERS: [&str; 3] = ["stripe", "wechat", "alipay"];

/// The report that a provider's fake makes.
async fn report(engine: &Engine, provider: &str) -> Vec<u8> {
    let url = match provider {
        "stripe" => engine.provider().url(),
        _ => {
            let mut merchants = engine.merchants().iter();
            merchants.find(|merchant| merchant.form().as_str() == provider).unwrap().url()
        }
    };
    let reply = reqwest::get(format!("{url}/settlement")).await.unwrap();
    assert!(reply.status().is_success(), "{provider}");
    reply.bytes().await.unwrap().to_vec()
}

/// Reads a report of yesterday, today and tomorrow; what was said, and the exit code.
fn reconcile(dir: &Path, provider: &str, report: &[u8], more: &[&str]) -> (Value, i32) {
    let file = dir.join(format!("{provider}.csv"));
    std::fs::write(&file, report).unwrap();
    let day = |days: i64| Timestamp::now().plus_seconds(days * 86_400).to_string();
    let (from, to) = (&day(-1)[..10], &day(2)[..10]);
    let midnight = if provider == "stripe" { "T00:00:00Z" } else { "T00:00:00+08:00" };
    let (from, to) = (format!("{from}{midnight}"), format!("{to}{midnight}"));
    let file = file.to_str().unwrap();
    let arguments =
        ["money", "reconcile", file, "--provider", provider, "--from", &from, "--to", &to];
    read(dir, &[&arguments[..], more].concat())
}

/// The kinds of the defects, each with how often it was named.
fn kinds(said: &Value) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    for defect in said["defects"].as_array().unwrap() {
        *kinds.entry(defect["kind"].as_str().unwrap()).or_default() += 1;
    }
    kinds
}

/// The report with the first line that has a text changed.
fn changed(report: &str, with: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let mut is_open = true;
    let lines = report.lines().filter_map(|line| {
        if is_open && line.contains(with) {
            is_open = false;
            return change(line);
        }
        Some(line.to_owned())
    });
    let lines: Vec<String> = lines.collect();
    assert!(!is_open, "{with:?} is not in {report}");
    lines.join("\n") + "\n"
}

/// Sold to two people at each of three providers, to the first of whom 10.00 go back, and are back.
async fn sold(engine: &Engine, dir: &Path) -> BTreeMap<&'static str, Vec<String>> {
    let mut orders: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for provider in PROVIDERS {
        for number in 0..2 {
            let order = order(engine, &format!("{provider}-{number}"), 2).await;
            let (said, code) = run(dir, &["pay", "--order", &order, "--at", provider]);
            assert_eq!(code, 0, "{said}");
            orders.entry(provider).or_default().push(order);
        }
        let refund =
            ["orders", "refund", &orders[provider][0], "--amount", "1000", "--number", "1"];
        let (said, code) = read_lines(dir, &refund);
        assert_eq!(code, 0, "{said:?}");
    }
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        let (facts, _) = read_lines(dir, &["events", "tail", "--all", "--once"]);
        let back = facts.iter().filter(|fact| fact["kind"] == "refunded").count();
        if back == PROVIDERS.len() {
            return orders;
        }
        assert!(Instant::now() < until, "{back} refunds are back");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_three_providers_agree_and_each_planted_defect_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = hall(dir, 40, &json!({ "currency": "CNY" })).await;
    let orders = sold(&engine, dir).await;

    let mut reports = BTreeMap::new();
    for provider in PROVIDERS {
        let report = report(&engine, provider).await;
        let (said, code) = reconcile(dir, provider, &report, &["--book"]);
        assert_eq!((kinds(&said), code), (BTreeMap::new(), 0), "{provider}: {said}");
        assert_eq!(said["matched"], 3, "{provider}: two captures and a refund");
        let posted = |said: &Value, how: &str| {
            let booked = said["booked"].as_array().unwrap().iter();
            booked.filter(|one| one["posted"] == how).count()
        };
        // The fees of a day, and for Stripe a payout.
        let to_book = |name: &str| said[name].as_array().unwrap().len();
        let all = to_book("kept") + to_book("paid_out");
        assert!(all > usize::from(provider == "stripe"), "{provider}: {said}");
        assert_eq!(posted(&said, "posted"), all, "{provider}: {said}");
        let (again, code) = reconcile(dir, provider, &report, &["--book"]);
        assert_eq!((posted(&again, "posted before"), code), (all, 0), "{provider}: {again}");
        reports.insert(provider, report);
    }
    // What Stripe kept, and what is left after the payout of all that it had: nothing.
    let (stripe, _) = read_lines(dir, &["money", "account", "provider:stripe"]);
    assert_eq!(stripe[0]["has"][0]["balance_minor"], 0, "{stripe:?}");
    let (costs, _) = read_lines(dir, &["money", "account", "costs"]);
    // Stripe: 1.5 % and 25 of 5000, twice. The others: 0.6 % of 5000, twice, less that of 1000.
    assert_eq!(costs[0]["has"][0]["balance_minor"], -(2 * 100 + 2 * (2 * 30 - 6)), "{costs:?}");

    let named = |provider: &str, report: &[u8], more: &[&str]| {
        let (said, code) = reconcile(dir, provider, report, more);
        assert_eq!(code, 1, "{provider}: {said}");
        said
    };
    let expect = |said: &Value, expected: &[(&str, usize)]| {
        assert_eq!(kinds(said), expected.iter().copied().collect(), "{said}");
    };

    // Stripe: a line twice, another amount, a refund that is missing, one that is none of ours, a dispute.
    let text = String::from_utf8(reports["stripe"].clone()).unwrap();
    let charge = text.lines().find(|line| line.contains(",charge,")).unwrap();
    let twice = format!("{text}{charge}\n");
    let said = named("stripe", twice.as_bytes(), &["--book"]);
    expect(&said, &[("twice", 1)]);
    assert_eq!(said["booked"], json!([]), "nothing is booked of a report that is wrong itself");
    let other = changed(&text, ",charge,", |line| {
        Some(line.replace("50.00,1.00,49.00", "50.01,1.00,49.01"))
    });
    expect(&named("stripe", other.as_bytes(), &[]), &[("other_amount", 1)]);
    // A payout that comes back is another posting than itself; by hand it is the same one.
    let payout = text.lines().find(|line| line.contains(",payout,")).unwrap();
    let amount = payout.split(',').nth(4).unwrap();
    let back = payout.replace("txn_", "txn_back_").replace(",payout,", ",payout_reversal,");
    let back = format!("{text}{}\n", back.replace(amount, &amount[1..]));
    let (said, code) = reconcile(dir, "stripe", back.as_bytes(), &["--book"]);
    let booked = said["booked"].as_array().unwrap().iter();
    let new: Vec<&Value> = booked.filter(|one| one["posted"] == "posted").collect();
    assert_eq!((new.len(), &new[0]["key"], code), (1, &json!("stripe:po_1:back"), 0), "{said}");
    let minor = amount[1..].replace('.', "");
    let post = ["money", "post", "payout", "provider:stripe", &minor, "CNY", "--key"];
    let (said, code) = read_lines(dir, &[&post[..], &["stripe:po_1"]].concat());
    assert_eq!((&said[0]["is_new"], code), (&json!(false), 0), "{said:?}");
    // What somebody else has booked under the name of a payout is refused, and the exit code says so.
    let (said, code) = read_lines(dir, &[&post[..], &["stripe:po_2"]].concat());
    assert_eq!((&said[0]["is_new"], code), (&json!(true), 0), "{said:?}");
    let second = text.replace("po_1", "po_2").replace(amount, "-1.00");
    let (said, code) = reconcile(dir, "stripe", second.as_bytes(), &["--book"]);
    assert_eq!((kinds(&said), code), (BTreeMap::new(), 1), "{said}");
    // A second refund of the same amount, long after the first was back, is nobody's.
    let later = changed(&text, ",refund,", |line| {
        let day = Timestamp::now().plus_seconds(86_400).to_string();
        let mut fields: Vec<&str> = line.split(',').collect();
        let (id, at) = ("txn_later", format!("{} 12:00:00", &day[..10]));
        (fields[0], fields[1]) = (id, &at);
        Some(fields.join(","))
    });
    let said = named("stripe", later.as_bytes(), &[]);
    expect(&said, &[("missing_refund", 1), ("unknown_refund", 1)]);
    // Whose lines they are is not in this report, and half a day is none.
    let file = dir.join("stripe.csv");
    let file = file.to_str().unwrap();
    let from = ["--from", "2026-11-25T00:00:00Z"];
    let of = ["money", "reconcile", file, "--provider", "stripe"];
    let whose = ["--to", "2026-11-26T00:00:00Z", "--merchant", "acct_1"];
    assert_eq!(run(dir, &[&of[..], &from, &whose].concat()).1, 2);
    let half = ["--to", "2026-11-25T12:00:00Z", "--book"];
    assert_eq!(run(dir, &[&of[..], &from, &half].concat()).1, 2);
    let other = changed(&text, ",charge,", |line| {
        Some(line.replace("50.00,1.00,49.00", "50.00,1.00,50.00"))
    });
    expect(&named("stripe", other.as_bytes(), &[]), &[("missing_capture", 1), ("unreadable", 1)]);
    let without = changed(&text, ",refund,", |_| None);
    expect(&named("stripe", without.as_bytes(), &[]), &[("missing_refund", 1)]);
    let more = changed(&text, ",refund,", |line| {
        let again = line.replace("txn_", "txn_again_");
        Some(format!("{line}\n{again}"))
    });
    expect(&named("stripe", more.as_bytes(), &[]), &[("unknown_refund", 1)]);
    let dispute = changed(&text, ",refund,", |line| {
        let dispute = line.replace("txn_", "txn_dp_").replace(",refund,", ",dispute,");
        Some(format!("{line}\n{dispute}"))
    });
    expect(&named("stripe", dispute.as_bytes(), &[]), &[("unknown_dispute", 1)]);

    // A capture that nobody spoke of is decided as if its callback had come: it pays the order that it names.
    let silent = order(&engine, "silent", 2).await;
    let unknown = changed(&text, ",charge,", |line| {
        let known = &orders["stripe"];
        let mut new = line.replace("txn_ch_", "txn_new_").replace("ch_", "ch_new_");
        let id = line.split(',').nth(9).unwrap();
        new = new.replace(id, "pi_silent");
        for order in known {
            new = new.replace(order.as_str(), &silent);
        }
        // Not by an attempt: the last column.
        let new = new.rsplit_once(',').unwrap().0.to_owned() + ",";
        Some(format!("{line}\n{new}"))
    });
    expect(&named("stripe", unknown.as_bytes(), &[]), &[("unknown_capture", 1)]);
    let said = named("stripe", unknown.as_bytes(), &["--decide"]);
    assert_eq!(said["decided"][0]["outcome"], "accepted", "{said}");
    let buyer = engine.token("silent").unwrap();
    let shown = send(&engine, Method::GET, &format!("/orders/{silent}"), &buyer, &json!({})).await;
    assert_eq!(shown["state"], "paid", "{shown}");
    let (said, code) = reconcile(dir, "stripe", unknown.as_bytes(), &["--decide"]);
    assert_eq!((kinds(&said), code, &said["decided"]), (BTreeMap::new(), 0, &json!([])), "{said}");

    // WeChat Pay: somebody else's line, another currency, sums that are not those of the lines.
    let text = String::from_utf8(reports["wechat"].clone()).unwrap();
    let merchant = ["--merchant", "1900000001"];
    let other =
        changed(&text, "`SUCCESS", |line| Some(line.replacen("`1900000001", "`1900000002", 1)));
    let said = named("wechat", other.as_bytes(), &merchant);
    expect(&said, &[("missing_capture", 1), ("other_merchant", 1)]);
    let other = changed(&text, "`SUCCESS", |line| Some(line.replace("`CNY", "`USD")));
    expect(&named("wechat", other.as_bytes(), &merchant), &[("other_currency", 1)]);
    let without = changed(&text, "`SUCCESS", |_| None);
    let said = named("wechat", without.as_bytes(), &merchant);
    expect(&said, &[("missing_capture", 1), ("wrong_sum", 3)]);
    let cut = text.split_once("总交易单数").unwrap().0;
    expect(&named("wechat", cut.as_bytes(), &merchant), &[("wrong_sum", 1)]);

    // Alipay: a refund of another amount, a line that cannot be read, one of another day.
    let text = GBK.decode(&reports["alipay"]).0.into_owned();
    let gbk = |text: &str| GBK.encode(text).0.into_owned();
    let seller = ["--merchant", "2088102146225135"];
    let other = changed(&text, "退款,门票", |line| Some(line.replace("-10.00", "-10.01")));
    expect(&named("alipay", &gbk(&other), &seller), &[("other_amount", 1)]);
    let broken = changed(&text, "交易,门票", |line| Some(line.replace("50.00", "fifty")));
    let said = named("alipay", &gbk(&broken), &seller);
    expect(&said, &[("missing_capture", 1), ("unreadable", 1)]);
    let year = &Timestamp::now().to_string()[..4];
    let old =
        changed(&text, "交易,门票", |line| Some(line.replace(&format!(",{year}-"), ",2019-")));
    expect(&named("alipay", &gbk(&old), &seller), &[("missing_capture", 1), ("other_period", 1)]);
    let (said, code) = reconcile(dir, "alipay", &gbk(&text), &["--merchant", "2088000000000000"]);
    assert_eq!((kinds(&said)["other_merchant"], code), (3, 1));

    // What is no report at all.
    for (provider, bytes) in [("stripe", &b"a,b\n1,2\n"[..]), ("wechat", &[0xff]), ("alipay", b"")]
    {
        let file = dir.join("none.csv");
        std::fs::write(&file, bytes).unwrap();
        let file = file.to_str().unwrap();
        let (from, to) = ("2026-11-25T00:00:00Z", "2026-11-26T00:00:00Z");
        let arguments =
            ["money", "reconcile", file, "--provider", provider, "--from", from, "--to", to];
        let (said, code) = run(dir, &arguments);
        assert_eq!(code, 2, "{provider}: {said}");
    }
    engine.stop().await.unwrap();
}
