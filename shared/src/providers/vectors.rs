//! The part of `tests/providers/vectors.json` that unit tests read. Other people's implementations made these vectors.

use std::sync::LazyLock;

use http::HeaderMap;
use http::header::HeaderName;
use serde_json::{Value, json};

use super::rsa::VerifyingKey;
use super::wechat::signature::PlatformKeys;
use engine::domain::basics::time::Timestamp;

/// The time of every vector.
pub(super) const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

pub(super) fn vectors() -> &'static Value {
    static READ: LazyLock<Value> = LazyLock::new(|| {
        let file = include_str!("../../../tests/providers/vectors.json");
        serde_json::from_str(file).unwrap()
    });
    &READ
}

/// A text of theirs.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A key in one of its forms.
pub(super) fn key(name: &str, form: &str) -> String {
    text(&vectors()["keys"][name][form])
}

pub(super) fn headers(object: &Value) -> HeaderMap {
    let header = |(name, value): (&String, &Value)| {
        let name: HeaderName = name.parse().unwrap();
        (name, text(value).parse().unwrap())
    };
    object.as_object().unwrap().iter().map(header).collect()
}

/// The key with which WeChat Pay's vectors are signed, under its id, and another one beside it.
pub(super) fn platform_keys(tolerance_seconds: u32) -> PlatformKeys {
    let read = |name: &str| VerifyingKey::read(&key(name, "public_pem")).unwrap();
    let id = text(&vectors()["wechat"]["key_id"]);
    let keys = [(id, read("platform")), ("OLD".to_owned(), read("merchant"))];
    PlatformKeys::new(keys.into(), tolerance_seconds)
}

/// The settings of an account at WeChat Pay, with the keys of the vectors.
pub(crate) fn wechat_settings() -> Value {
    let wechat = &vectors()["wechat"];
    let id = text(&wechat["key_id"]);
    json!({
        "form": "wechat", "notify_url": "https://api.example/callbacks/k/wechat", "description": "演唱会门票",
        "merchant_id": wechat["merchant_id"], "app_id": wechat["app_id"], "serial": wechat["serial"],
        "private_key": key("merchant", "pkcs8_pem"), "api_v3_keys": [wechat["api_v3_key"]],
        "public_keys": { id: key("platform", "public_pem") },
    })
}

/// The settings of an account at Alipay, with the keys of the vectors.
pub(crate) fn alipay_settings() -> Value {
    let alipay = &vectors()["alipay"];
    json!({
        "form": "alipay", "notify_url": "https://api.example/payments/alipay/callback", "description": "演唱会门票",
        "app_id": alipay["app_id"], "seller_id": alipay["seller_id"],
        "private_key": key("merchant", "pkcs8_base64"), "public_keys": [key("platform", "public_base64")],
    })
}
