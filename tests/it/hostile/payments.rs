//! Payments that nobody may begin.

use serde_json::{Value, json};

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Requests to begin a payment: of others' orders, with addresses elsewhere, at providers and by ways that
    /// are none, and in forms that are none.
    pub(super) async fn payments(&self) -> Vec<Case> {
        let one = json!([{ "tier": "standing", "best": { "count": 1 } }]);
        let bobs = self.buy("bob", &one).await;
        let shown = format!("/orders/{}", bobs["order"].as_str().unwrap());
        let path = format!("{shown}/payments");
        let ask = |bearer: &str, body: &str| Raw::new("POST", &path).bearer(bearer).json(body);
        let bob = |body: &Value| ask(&self.bob, &body.to_string());
        let page = |back: &str| json!({ "provider": "stripe", "return_url": back });
        let (invalid, nothing) = (Problem(422, "invalid"), Problem(404, "not-found"));
        let not_offered = Problem(422, "payment-not-offered");
        let good = page("https://shop.example/orders/1").to_string();
        let mut cases = vec![
            case("payment: the control", Raw::new("GET", &shown).bearer(&self.bob), Fine(200)),
            case("payment: another's", ask(&self.alice, &good), nothing),
            case(
                "payment: nobody's",
                Raw::new("POST", &path).json(&good),
                Problem(401, "not-authenticated"),
            ),
            case("payment: an operator's", ask(&self.operator, &good), nothing),
            case(
                "payment: an order that is none",
                Raw::new("POST", "/orders/0x1/payments").bearer(&self.bob).json(&good),
                nothing,
            ),
            case(
                "payment: an order that is nobody's",
                Raw::new("POST", "/orders/7/payments").bearer(&self.bob).json(&good),
                nothing,
            ),
            case(
                "payment: put",
                Raw::new("PUT", &path).bearer(&self.bob).json(&good),
                Problem(405, "method-not-allowed"),
            ),
        ];
        for (name, back) in [
            ("elsewhere", "https://evil.example/"),
            ("a longer host", "https://shop.example.evil.example/"),
            ("a user before the host", "https://shop.example@evil.example/"),
            ("no encryption", "http://shop.example/orders/1"),
            ("another port", "https://shop.example:8443/"),
            ("a script", "javascript:alert(1)//https://shop.example"),
            ("no scheme", "//shop.example/"),
            ("a path", "/orders/1"),
            ("nothing", ""),
            ("a backslash", "https:\\\\shop.example\\"),
            ("a line feed", "https://shop.example/\n"),
        ] {
            cases.push(case(&format!("payment: back to {name}"), bob(&page(back)), invalid));
        }
        for (name, body, expected) in [
            ("a page without a way back", json!({ "provider": "stripe" }), invalid),
            (
                "a form with a way back",
                json!({ "provider": "stripe", "method": "form", "return_url": "https://shop.example/" }),
                invalid,
            ),
            ("no provider", json!({ "method": "form" }), invalid),
            ("a provider of dots", json!({ "provider": "..", "method": "form" }), invalid),
            (
                "a provider that is a list",
                json!({ "provider": ["stripe"], "method": "form" }),
                invalid,
            ),
            ("no such provider", json!({ "provider": "paypal", "method": "form" }), not_offered),
            (
                "the provider of free orders",
                json!({ "provider": "free", "method": "form" }),
                not_offered,
            ),
            ("no such method", json!({ "provider": "stripe", "method": "cheque" }), invalid),
            (
                "a way that it has not",
                json!({ "provider": "stripe", "method": "code" }),
                not_offered,
            ),
            (
                "a currency that it has not",
                json!({ "provider": "wechat", "method": "code" }),
                not_offered,
            ),
            (
                "an amount",
                json!({ "provider": "stripe", "method": "form", "amount_minor": 1 }),
                invalid,
            ),
        ] {
            cases.push(case(&format!("payment: {name}"), bob(&body), expected));
        }
        let cut = &good[..good.len() - 1];
        cases.push(case("payment: cut off", ask(&self.bob, cut), Problem(400, "malformed")));
        cases
    }
}
