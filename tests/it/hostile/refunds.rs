//! Refunds that nobody is owed.

use serde_json::{Value, json};

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Requests for refunds of others' orders, of orders that are not paid, and in forms that are none.
    pub(super) async fn refunds(&self) -> Vec<Case> {
        let one = json!([{ "tier": "standing", "best": { "count": 1 } }]);
        let bobs = self.buy("bob", &one).await;
        let shown = format!("/orders/{}", bobs["order"].as_str().unwrap());
        let (path, operators) = (format!("{shown}/refunds"), format!("{shown}/refunds/operator"));
        let ask = |bearer: &str, body: &str| Raw::new("POST", &path).bearer(bearer).json(body);
        let bob = |body: &str| ask(&self.bob, body);
        let operator = |body: &str| Raw::new("POST", &operators).bearer(&self.operator).json(body);
        let whole = r#"{"number":1,"tickets":"all"}"#;
        let (invalid, nothing) = (Problem(422, "invalid"), Problem(404, "not-found"));
        let unpaid = Problem(409, "order-not-paid");
        let list = |bearer: &str| Raw::new("GET", &path).bearer(bearer);
        let many: Vec<Value> = vec![json!({ "tier": "standing", "seat": "1" }); 11];
        let many = json!({ "number": 1, "tickets": many }).to_string();
        let mut cases = vec![
            case("refund: the control", list(&self.bob), Fine(200)),
            case("refund: another's list", list(&self.alice), nothing),
            case(
                "refund: nobody's list",
                Raw::new("GET", &path),
                Problem(401, "not-authenticated"),
            ),
            case("refund: not paid", bob(whole), unpaid),
            case("refund: not paid, by an operator", operator(whole), unpaid),
            case("refund: another's", ask(&self.alice, whole), nothing),
            case(
                "refund: nobody",
                Raw::new("POST", &path).json(whole),
                Problem(401, "not-authenticated"),
            ),
            case(
                "refund: a buyer as operator",
                Raw::new("POST", &operators).bearer(&self.bob).json(whole),
                Problem(403, "not-permitted"),
            ),
            case(
                "refund: nobody as operator",
                Raw::new("POST", &operators).json(whole),
                Problem(401, "not-authenticated"),
            ),
            case(
                "refund: an order that is none",
                Raw::new("POST", "/orders/0x1/refunds/operator").bearer(&self.operator).json(whole),
                nothing,
            ),
            case(
                "refund: looked at by an operator",
                Raw::new("GET", &operators).bearer(&self.operator),
                Problem(405, "method-not-allowed"),
            ),
            case("refund: eleven tickets", bob(&many), invalid),
            case(
                "refund: no JSON",
                Raw::new("POST", &operators).bearer(&self.operator).json("{\"number\":1,"),
                Problem(400, "malformed"),
            ),
            case(
                "refund: much",
                operator(&format!("{}{}", whole, " ".repeat(65_536))),
                Problem(413, "too-large"),
            ),
            case(
                "refund: no content type",
                Raw::new("POST", &path).bearer(&self.bob).body(whole),
                Problem(415, "unsupported-media-type"),
            ),
        ];
        for (name, body) in [
            ("nothing", "{}"),
            ("a list", "[1,\"all\"]"),
            ("number 0", r#"{"number":0,"tickets":"all"}"#),
            ("number 51", r#"{"number":51,"tickets":"all"}"#),
            ("number 1.0", r#"{"number":1.0,"tickets":"all"}"#),
            ("a number of text", r#"{"number":"1","tickets":"all"}"#),
            ("no tickets", r#"{"number":1}"#),
            ("two numbers", r#"{"number":1,"number":2,"tickets":"all"}"#),
            ("tickets of another word", r#"{"number":1,"tickets":"ALL"}"#),
            ("tickets of null", r#"{"number":1,"tickets":null}"#),
            ("a ticket that is a list", r#"{"number":1,"tickets":[["standing","1"]]}"#),
            ("a ticket without a seat", r#"{"number":1,"tickets":[{"tier":"standing"}]}"#),
            ("a tier of dots", r#"{"number":1,"tickets":[{"tier":"..","seat":"1"}]}"#),
            ("a colour", r#"{"number":1,"tickets":"all","colour":"red"}"#),
        ] {
            cases.push(case(&format!("refund: {name}"), bob(body), invalid));
            cases.push(case(&format!("refund: {name}, by an operator"), operator(body), invalid));
        }
        // What only operators may say.
        for (name, field) in [
            ("an amount", r#""amount_minor":1,"currency":"EUR""#),
            ("a reason", r#""reason":"because""#),
            ("somebody else", r#""asked_by":"operator""#),
        ] {
            let body = format!(r#"{{"number":1,"tickets":"all",{field}}}"#);
            cases.push(case(&format!("refund: {name} of a buyer's"), bob(&body), invalid));
        }
        for (name, field) in [
            ("less than nothing", r#""amount_minor":-1,"currency":"EUR""#),
            ("half a cent", r#""amount_minor":0.5,"currency":"EUR""#),
            ("2^63", r#""amount_minor":9223372036854775808,"currency":"EUR""#),
            ("no currency", r#""amount_minor":1"#),
            ("a currency alone", r#""currency":"EUR""#),
            ("two letters", r#""amount_minor":1,"currency":"EU""#),
            ("an empty reason", r#""reason":"""#),
        ] {
            let body = format!(r#"{{"number":1,"tickets":[],{field}}}"#);
            cases.push(case(&format!("refund: {name}"), operator(&body), invalid));
        }
        cases
    }
}
