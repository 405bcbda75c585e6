//! Callbacks of the payment provider.

use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};
use shared::providers::stripe::signature;

use super::Expected::{Fine, Outcome, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    fn callback(&self, body: impl AsRef<[u8]>, signature: &str) -> Raw {
        let post = Raw::new("POST", "/payments/stripe/callback");
        post.header("Stripe-Signature", signature).json(body)
    }

    /// A callback that is signed as it should be, whatever it says.
    fn signed(&self, body: impl AsRef<[u8]>) -> Raw {
        let signature = self.engine.sign_payment(body.as_ref());
        self.callback(body, &signature)
    }

    /// A good callback of a capture.
    fn captured(&self, payment: &str, order: &Value, amount: i64, currency: &str) -> Raw {
        self.signed(event(payment, order, json!(amount), currency).to_string())
    }

    /// Callbacks that are not trusted, or cannot be read, or come twice, or in the wrong order.
    pub(super) async fn callbacks(&self) -> Vec<Case> {
        let unsigned = Problem(401, "not-authenticated");
        let invalid = Problem(422, "invalid");
        let now = Timestamp::now();
        let secret = self.engine.secrets().stripe.as_bytes();
        let best = json!([{ "tier": "standing", "best": { "count": 2 } }]);
        let paid = self.buy("erin", &best).await;
        let (order, amount) = (&paid["order"], paid["amount_minor"].as_i64().unwrap());
        let good = event("pi_good", order, json!(amount), "eur").to_string();
        let sign_at = |at: Timestamp| signature::sign(secret, good.as_bytes(), at);
        let fresh = sign_at(now);
        let (time, tag) = fresh.split_once(',').unwrap();
        let says = |change: &dyn Fn(&mut Value)| {
            let mut event = event("pi_bad", order, json!(amount), "eur");
            change(&mut event);
            self.signed(event.to_string())
        };
        let object = |field: &'static str, value: Value| {
            says(&move |event| event["data"]["object"][field] = value.clone())
        };
        let twice = good.replacen("\"type\"", "\"type\":\"x\",\"type\"", 1);
        let deep = format!("{},\"deep\":{}", &good[..good.len() - 1], "[".repeat(10_000));
        let to_nobody = Raw::new("POST", "/payments/paypal/callback")
            .header("Stripe-Signature", &fresh)
            .json(&good);

        let cancelled = self.buy("frank", &best).await;
        let frank = self.engine.token("frank").unwrap();
        let cancel = format!("/orders/{}/cancel", cancelled["order"].as_str().unwrap());
        let cancel = Raw::new("POST", cancel).bearer(&frank);
        let money_first = self.buy("grace", &best).await;
        let grace = self.engine.token("grace").unwrap();
        let cancel_paid = format!("/orders/{}/cancel", money_first["order"].as_str().unwrap());
        vec![
            case("callback: no signature", Raw::new("POST", "/payments/stripe/callback").json(&good), unsigned),
            case("callback: empty signature", self.callback(&good, ""), unsigned),
            case("callback: garbage", self.callback(&good, "t=,v1="), unsigned),
            case("callback: no time", self.callback(&good, tag), unsigned),
            case("callback: no tag", self.callback(&good, time), unsigned),
            case("callback: the older scheme", self.callback(&good, &fresh.replace("v1=", "v0=")), unsigned),
            case("callback: another secret", self.callback(&good, &signature::sign(b"whsec_other", good.as_bytes(), now)), unsigned),
            case("callback: another body", self.callback(format!("{good} "), &fresh), unsigned),
            case("callback: another amount", self.callback(good.replace(&amount.to_string(), "1"), &fresh), unsigned),
            case("callback: stale", self.callback(&good, &sign_at(now.plus_seconds(-310))), unsigned),
            case("callback: from the future", self.callback(&good, &sign_at(now.plus_seconds(4000))), unsigned),
            case("callback: time of 2^63", self.callback(&good, &format!("t=9223372036854775808,{tag}")), unsigned),
            case("callback: time moved", self.callback(&good, &format!("t={},{tag}", now.ms() / 1000 - 5)), unsigned),
            case("callback: two times", self.callback(&good, &format!("{time},{fresh}")), unsigned),
            case("callback: two headers", self.callback(&good, &fresh).header("Stripe-Signature", &fresh), unsigned),
            case("callback: bad header before the good", self.callback(&good, "t=1,v1=00").header("Payment-Signature", &fresh), unsigned),
            case("callback: a header of 5 kB", self.callback(&good, &format!("{fresh},v1={}", "0".repeat(5000))), unsigned),
            case("callback: no such provider", to_nobody, Problem(404, "not-found")),
            case("callback: 64 KiB and one", self.signed(" ".repeat(64 * 1024 + 1)), Problem(413, "too-large")),
            case("callback: nothing", self.signed(""), invalid),
            case("callback: a list", self.signed("[]"), invalid),
            case("callback: fields as a list", self.signed(format!("[\"payment_intent.succeeded\",{{\"object\":[\"pi\",{amount},\"eur\",[{order}]]}}]")), invalid),
            case("callback: no type", says(&|event| event["type"] = Value::Null), invalid),
            case("callback: two types", self.signed(&twice), invalid),
            case("callback: 10,000 deep", self.signed(&deep), invalid),
            case("callback: no data", says(&|event| event["data"] = Value::Null), invalid),
            case("callback: no payment", object("id", Value::Null), invalid),
            case("callback: payment with #", object("id", json!("pi#1")), invalid),
            case("callback: payment of 129 bytes", object("id", json!("p".repeat(129))), invalid),
            case("callback: amount as text", object("amount_received", json!("5000")), invalid),
            case("callback: amount of -1", object("amount_received", json!(-1)), invalid),
            case("callback: amount of 0.5", object("amount_received", json!(0.5)), invalid),
            case("callback: amount of 2^63", object("amount_received", json!(9_223_372_036_854_775_808_u64)), invalid),
            case("callback: amount of 1e400", self.signed(good.replace(&format!("{amount},"), "1e400,")), invalid),
            case("callback: no currency", object("currency", Value::Null), invalid),
            case("callback: currency of two", object("currency", json!("EU")), invalid),
            case("callback: order is a number", object("metadata", json!({ "order": 1 })), invalid),
            case("callback: order is no number", object("metadata", json!({ "order": "first" })), Outcome("ignored", None)),
            case("callback: order in full width", object("metadata", json!({ "order": "１" })), Outcome("ignored", None)),
            case("callback: another event", says(&|event| event["type"] = json!("charge.failed")), Outcome("ignored", None)),
            case("callback: no order", object("metadata", json!({})), Outcome("ignored", None)),
            case("callback: unknown order", self.captured("pi_1", &json!("1"), amount, "eur"), Outcome("ignored", None)),
            case("callback: another deployment's", object("metadata", json!({ "onsale_deployment": "stage", "onsale_order": order, "order": order })), Outcome("ignored", None)),
            case("callback: a deployment of ten", object("metadata", json!({ "onsale_deployment": "a".repeat(10), "onsale_order": order })), Outcome("ignored", None)),
            case("callback: a deployment with a capital", object("metadata", json!({ "onsale_deployment": "Prod1", "order": order })), Outcome("ignored", None)),
            case("callback: a deployment that is empty", object("metadata", json!({ "onsale_deployment": "", "order": order })), Outcome("ignored", None)),
            case("callback: a deployment is a number", object("metadata", json!({ "onsale_deployment": 1 })), invalid),
            case("callback: too little", self.captured("pi_2", order, amount - 1, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: too much", self.captured("pi_3", order, amount + 1, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: nothing at all", self.captured("pi_4", order, 0, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: all there is", self.captured("pi_5", order, i64::MAX, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: another currency", self.captured("pi_6", order, amount, "cny"), Outcome("refund", Some("wrong_currency"))),
            case("callback: the control", self.callback(&good, &fresh), Outcome("accepted", None)),
            case("callback: replayed", self.callback(&good, &fresh), Outcome("accepted", None)),
            case("callback: signed anew", self.signed(&good), Outcome("accepted", None)),
            case("callback: a second payment", self.captured("pi_7", order, amount, "eur"), Outcome("refund", Some("second_payment"))),
            case("callback: paid, then cancelled", self.captured("pi_8", &money_first["order"], amount, "eur"), Outcome("accepted", None)),
            case("callback: cancelled after it", Raw::new("POST", cancel_paid).bearer(&grace), Problem(409, "order-resolved")),
            case("callback: cancelled before it", cancel, Fine(200)),
            case("callback: wrong amount after the end", self.captured("pi_9", &cancelled["order"], 1, "eur"), Outcome("refund", Some("wrong_amount"))),
        ]
    }
}

/// The event of a capture.
fn event(payment: &str, order: &Value, amount: Value, currency: &str) -> Value {
    json!({
        "id": "evt_1", "object": "event", "type": "payment_intent.succeeded",
        "data": { "object": {
            "id": payment, "amount_received": amount, "currency": currency, "metadata": { "order": order }
        } }
    })
}
