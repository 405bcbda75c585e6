//! The fakes of WeChat Pay and Alipay speak as the services do, by the word of the published packages
//! `wechatpayv3` and `python-alipay-sdk`: these believe what the fakes send, and refuse it once it was tampered
//! with.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails where it stands"
)]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fake_payments::{Form, MerchantOptions, MerchantProvider};
use serde_json::{Value, json};

/// Names another Python that has both packages than that of `make setup`.
const PYTHON: &str = "ONSALE_MERCHANTS_PYTHON";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the script against fakes with these settings.
fn published(settings: &Value) -> Value {
    let ours = || root().join(".onsale/tools/merchants/bin/python");
    let python = std::env::var_os(PYTHON).map_or_else(ours, PathBuf::from);
    let mut child = Command::new(python)
        .arg(root().join("tests/providers/published.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python environment is missing: run `make setup`");
    child.stdin.take().unwrap().write_all(settings.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the script failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_packages_believe_the_fakes_and_nobody_else() {
    let start = |form| MerchantProvider::start(form, MerchantOptions::default()).unwrap();
    let (wechat, alipay) = (start(Form::Wechat), start(Form::Alipay));
    // Where notifications go, the packages say themselves.
    let of = |provider: &MerchantProvider| provider.settings("http://127.0.0.1/").unwrap();
    let settings = json!({ "wechat": of(&wechat), "alipay": of(&alipay) });
    let said = tokio::task::block_in_place(|| published(&settings));
    let wechat_said = json!({
        "placed": [200, "weixin://wxpay/bizpayurl?pr"], "again": true, "other": "OUT_TRADE_NO_USED",
        "waits": "NOTPAY", "paid": "SUCCESS",
        "told": ["TRANSACTION.SUCCESS", "169218430493097984-1", 110_600],
        "tampered": [null, null, null], "refund": ["SUCCESS", "SUCCESS"], "found": "SUCCESS",
        "closed": [204, "CLOSED", 204], "paid_is_not_closed": 400, "forged": [401, "SIGN_ERROR"],
    });
    assert_eq!(said["wechat"], wechat_said);
    let alipay_said = json!({
        "made": "10000", "unopened": "ACQ.TRADE_NOT_EXIST", "unopened_close": "ACQ.TRADE_NOT_EXIST",
        "paid": ["TRADE_SUCCESS", "1106.00"],
        "told": ["169218430493097984_1", "TRADE_SUCCESS", true],
        "tampered": [false, false, false], "refund": ["Y", "N"],
        "found": ["REFUND_SUCCESS", "1106.00"], "page": true,
        "closed": ["10000", "TRADE_CLOSED"], "forged": "isv.invalid-signature", "answer": "refused",
    });
    assert_eq!(said["alipay"], alipay_said);
    assert_eq!((wechat.ledger().len(), alipay.ledger().len()), (1, 1));
    assert_eq!((wechat.notified().taken, alipay.notified().taken), (1, 1));
}
