//! The accounts at WeChat Pay and Alipay that messages are sent to, with the keys of the vectors of
//! `tests/providers`: those of the providers sign what they would send.

use std::sync::LazyLock;

use engine::domain::basics::ids::ProviderId;
use lambda_http::http::HeaderMap;
use serde_json::{Value, json};
use shared::providers::rsa::{SigningKey, VerifyingKey};
use shared::providers::{Limits, Providers};
use shared::runtime::connections::{Https, Trust};
use shared::runtime::merchants::Merchants;

use crate::must;

/// The vectors, which other people's implementations made.
pub(crate) static VECTORS: LazyLock<Value> = LazyLock::new(|| {
    must(serde_json::from_str(include_str!("../../providers/vectors.json")), "the vectors")
});

pub(crate) static PROVIDERS: LazyLock<Providers> = LazyLock::new(|| {
    let (wechat, alipay) = (&VECTORS["wechat"], &VECTORS["alipay"]);
    let notify_url = "https://api.example/notify";
    let document = json!({
        "wechat": {
            "form": "wechat", "notify_url": notify_url, "description": "x",
            "merchant_id": wechat["merchant_id"], "app_id": wechat["app_id"],
            "serial": wechat["serial"], "private_key": key("merchant", "pkcs8_pem"),
            "api_v3_keys": [wechat["api_v3_key"]],
            "public_keys": { text(&wechat["key_id"]): key("platform", "public_pem") },
        },
        "alipay": {
            "form": "alipay", "notify_url": notify_url, "description": "x",
            "app_id": alipay["app_id"], "seller_id": alipay["seller_id"],
            "private_key": key("merchant", "pkcs8_pem"), "public_keys": [key("platform", "public_pem")],
        },
    });
    let merchants = must(Merchants::read(document.to_string().as_bytes()), "the accounts");
    let https = Https::new(&Trust::public());
    must(
        Providers::default().with_merchants(merchants, 300, &https, &Limits::none()),
        "two accounts",
    )
});

/// What the providers sign with.
pub(crate) static PLATFORM: LazyLock<SigningKey> =
    LazyLock::new(|| must(SigningKey::read(&key("platform", "pkcs8_pem")), "a key"));

pub(crate) static PUBLIC: LazyLock<[VerifyingKey; 1]> =
    LazyLock::new(|| [must(VerifyingKey::read(&key("platform", "public_pem")), "a key")]);

/// A text of the vectors.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn key(name: &str, form: &str) -> String {
    text(&VECTORS["keys"][name][form])
}

/// The provider of a form.
pub(crate) fn provider(form: &str) -> ProviderId {
    must(ProviderId::new(form), form)
}

/// The signature of the providers.
pub(crate) fn sign(message: &[u8]) -> String {
    must(PLATFORM.sign(message), "a signature")
}

/// Headers; `None` if a value cannot be one.
pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> Option<HeaderMap> {
    pairs.iter().map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?))).collect()
}
