//! I8, I9 and I10: money.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use super::corruption::{Change, Corruptions, Item, Snapshot, number, text, with};

fn amount(item: &Item, name: &str) -> i64 {
    item[name].as_n().unwrap().parse().unwrap()
}

fn string<'a>(item: &'a Item, name: &str) -> &'a str {
    item[name].as_s().unwrap()
}

fn transfers(record: &Item) -> Vec<Value> {
    let written = record.get("transfers").map(|value| value.as_s().unwrap().as_str());
    serde_json::from_str(written.unwrap_or("[]")).unwrap()
}

/// Account, currency and part as the audit names them.
fn name(part: &Item) -> String {
    let (currency, of_account) = string(part, "part").split_once('#').unwrap();
    format!("account {} in {currency}, part {of_account},", string(part, "account"))
}

/// The parts of an account.
fn parts<'a>(snapshot: &'a Snapshot, account: &'a str) -> impl Iterator<Item = &'a Item> {
    snapshot.tables["accounts"].iter().filter(move |part| string(part, "account") == account)
}

/// One of them; `None` if it was never written.
fn part<'a>(snapshot: &'a Snapshot, account: &'a str, key: &str) -> Option<&'a Item> {
    parts(snapshot, account).find(|part| string(part, "part") == key)
}

/// I8, I9, and of I10 what the log books.
pub(super) fn wrong_ledger(snapshot: &Snapshot) -> Corruptions {
    let log = &snapshot.tables["log"];
    let is_of_train = |record: &&Item| string(record, "sale") == "g1";
    let records: Vec<&Item> = log.iter().filter(is_of_train).collect();
    let record = records.iter().find(|record| !transfers(record).is_empty()).unwrap();
    let moved = transfers(record);
    let (from, to, code) = (&moved[0][0], &moved[0][1], &moved[0][2]);
    let [from, to, code] = [from, to, code].map(|text| text.as_str().unwrap());
    let currency = moved[0][4].as_str().unwrap();
    let shard = record["shard"].as_n().unwrap();
    let key = format!("{currency}#{shard}");
    let [giver, taker] = [from, to].map(|account| part(snapshot, account, &key).unwrap().clone());
    let sums = |part: &Item| (amount(part, "in_minor"), amount(part, "out_minor"));
    let has = |part: &Item| {
        let ((incoming, outgoing), left) = (sums(part), amount(part, "balance_minor"));
        format!("I8 {} has {incoming} in, {outgoing} out and {left} left", name(part))
    };

    let of_all = records.iter().flat_map(|record| transfers(record));
    let of_key = of_all.filter(|one| one[0] == from && one[1] == to && one[2] == code);
    let booked: i64 = of_key.map(|one| one[3].as_i64().unwrap()).sum();
    let mut more = moved.clone();
    more[0][3] = json!(moved[0][3].as_i64().unwrap() + 1);

    let richer = amount(&giver, "balance_minor") + 1;
    let mut strange = moved.clone();
    strange.push(json!(["owed", "fees", "sale", 5_000_000, currency]));
    let is_of_currency = |part: &Item| string(part, "part").starts_with(currency);
    assert!(parts(snapshot, "owed").any(is_of_currency), "a capture was refused");
    let owed_left: i64 = parts(snapshot, "owed").map(|part| amount(part, "balance_minor")).sum();
    let new_part = |account: &str, incoming: i64, outgoing: i64| -> Item {
        let (before_in, before_out) = part(snapshot, account, &key).map_or((0, 0), sums);
        let (incoming, outgoing) = (before_in + incoming, before_out + outgoing);
        [
            ("account", text(account)),
            ("part", text(&key)),
            ("in_minor", number(incoming)),
            ("out_minor", number(outgoing)),
            ("balance_minor", number(incoming - outgoing)),
            ("version", number(1)),
        ]
        .map(|(name, value): (&str, AttributeValue)| (name.to_owned(), value))
        .into()
    };
    let is_of_no_order = |part: &&Item| string(part, "part").ends_with("#orderless");
    let nobodys = parts(snapshot, "owed").find(is_of_no_order).expect("something was of no order");
    let payout = parts(snapshot, "posting:po_1").next().unwrap();
    let of_postings = ["bank", "provider:stripe"].map(|account| {
        let key = format!("{currency}#posted");
        part(snapshot, account, &key).unwrap_or_else(|| panic!("{account} has no {key}"))
    });
    let come_to = |paid: i64| {
        let [bank, provider] = of_postings;
        vec![
            format!("{}, and its transfers come to 0 and {paid}", has(bank)),
            format!("{}, and its transfers come to {paid} and 0", has(provider)),
        ]
    };
    let with_transfers =
        |transfers: &[Value]| with((**record).clone(), [("transfers", text(json!(transfers)))]);
    vec![
        (
            Change::Put("accounts", with(giver.clone(), [("balance_minor", number(richer))])),
            vec![
                format!(
                    "{}, and its transfers come to {} and {}",
                    has(&with(giver.clone(), [("balance_minor", number(richer))])),
                    sums(&giver).0,
                    sums(&giver).1
                ),
                format!("I8 the ledger in {currency} has 1 more than nothing"),
            ],
        ),
        (
            Change::Delete("accounts", giver.clone()),
            vec![
                format!("I8 {} is missing, and has transfers", name(&giver)),
                format!(
                    "I8 the ledger in {currency} has {} more than nothing",
                    -amount(&giver, "balance_minor")
                ),
            ],
        ),
        (
            Change::Put("log", with_transfers(&more)),
            vec![
                format!(
                    "{}, and its transfers come to {} and {}",
                    has(&giver),
                    sums(&giver).0,
                    sums(&giver).1 + 1
                ),
                format!(
                    "{}, and its transfers come to {} and {}",
                    has(&taker),
                    sums(&taker).0 + 1,
                    sums(&taker).1
                ),
                format!(
                    "I10 g1: the sale has {} {currency} booked from {from} to {to} as {code}, and its orders tell {booked}",
                    booked + 1
                ),
            ],
        ),
        (
            Change::Delete("accounts", nobodys.clone()),
            vec![
                format!("I8 {} is missing, and has transfers", name(nobodys)),
                format!(
                    "I8 the ledger in {} has {} more than nothing",
                    string(nobodys, "part").split_once('#').unwrap().0,
                    -amount(nobodys, "balance_minor")
                ),
            ],
        ),
        (Change::Delete("accounts", payout.clone()), come_to(0)),
        (
            Change::Put("accounts", with(payout.clone(), [("amount_minor", number(61))])),
            come_to(61),
        ),
        (
            Change::All(vec![
                Change::Put("log", with_transfers(&strange)),
                Change::Put("accounts", new_part("owed", 0, 5_000_000)),
                Change::Put("accounts", new_part("fees", 5_000_000, 0)),
            ]),
            vec![
                format!("I9 account owed in {currency} has {}", owed_left - 5_000_000),
                format!(
                    "I10 g1: the sale has 5000000 {currency} booked from owed to fees as sale, and its orders tell 0"
                ),
            ],
        ),
    ]
}
