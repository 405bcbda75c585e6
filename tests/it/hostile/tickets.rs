//! Tickets of others, and doors that are none.

use serde_json::{Value, json};

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Requests for others' tickets, for lists of sales that are none, and what doors never send.
    pub(super) async fn tickets(&self) -> Vec<Case> {
        let one = json!([{ "tier": "standing", "best": { "count": 1 } }]);
        let owner = "zo\u{eb}";
        let made = self.buy(owner, &one).await;
        let owner = self.engine.token(owner).unwrap();
        let order = made["order"].as_str().unwrap();
        let path = format!("/orders/{order}/tickets");
        let reissue = format!("/operator{path}/reissue");
        let line = "/operator/sales/hall/check-ins";
        let scopes = ["onsale/watch", "onsale/operate", "onsale/scan"];
        let token = |scopes: &[&str]| self.engine.operator_access_token("zhang", scopes).unwrap();
        let all = token(&scopes);
        let (door, watcher) = (token(&["onsale/scan"]), token(&["onsale/watch"]));
        let (invalid, nothing) = (Problem(422, "invalid"), Problem(404, "not-found"));
        let (nobody, refused) = (Problem(401, "not-authenticated"), Problem(403, "not-permitted"));
        let scan = |bearer: &str, body: &str| Raw::new("POST", line).bearer(bearer).json(body);
        let anew = |bearer: &str, body: &str| Raw::new("POST", &reissue).bearer(bearer).json(body);
        let code = "eyJ0eXAiOiJ0aWNrZXQiLCJhbGciOiJFZERTQSJ9.e30.c2ln";
        let one = format!(
            r#"{{"check_ins":[{{"code":"{code}","door":"north","at":"2026-11-21T18:30:00Z"}}]}}"#
        );
        let list = |path: &str| Raw::new("GET", format!("/sales/{path}"));
        let mut cases = vec![
            case("tickets: the control", Raw::new("GET", &path).bearer(&owner), Fine(200)),
            case("tickets: another's", Raw::new("GET", &path).bearer(&self.alice), nothing),
            case("tickets: nobody's", Raw::new("GET", &path), nobody),
            case("tickets: by an operator", Raw::new("GET", &path).bearer(&all), nobody),
            case("tickets: keys", Raw::new("GET", "/ticket-keys"), Fine(200)),
            case(
                "tickets: a key put",
                Raw::new("PUT", "/ticket-keys"),
                Problem(405, "method-not-allowed"),
            ),
            case("revoked: the control", list("hall/revoked"), Fine(200)),
            case("revoked: no such sale", list("nowhere/revoked"), nothing),
            case("revoked: from nowhere", list("hall/revoked?from=x"), invalid),
            case("revoked: from two", list("hall/revoked?from=1&from=2"), invalid),
            case("check-in: the control, a code of nobody's", scan(&door, &one), Fine(200)),
            case("check-in: nobody", Raw::new("POST", line).json(&one), nobody),
            case("check-in: a buyer", scan(&self.bob, &one), nobody),
            case("check-in: who may watch", scan(&watcher, &one), refused),
            case(
                "check-in: many bytes",
                scan(&door, &" ".repeat(70_000)),
                Problem(413, "too-large"),
            ),
            case("check-ins: who may scan", Raw::new("GET", line).bearer(&door), refused),
            case("check-ins: a buyer", Raw::new("GET", line).bearer(&self.bob), nobody),
            case(
                "check-ins: a mark that is long",
                Raw::new("GET", format!("{line}?conflicts=true&after={}", "9".repeat(97)))
                    .bearer(&watcher),
                invalid,
            ),
            case(
                "check-ins: conflicts of another word",
                Raw::new("GET", format!("{line}?conflicts=yes")).bearer(&watcher),
                invalid,
            ),
            case("reissue: not paid", anew(&all, "{}"), Problem(409, "order-not-paid")),
            case("reissue: its buyer", anew(&owner, "{}"), nobody),
            case("reissue: a door", anew(&door, "{}"), refused),
            case("reissue: no JSON", anew(&all, "{"), Problem(400, "malformed")),
            case("reissue: ticket 0", anew(&all, r#"{"tickets":[0]}"#), invalid),
            case("reissue: ticket 11", anew(&all, r#"{"tickets":[11]}"#), invalid),
            case("reissue: all", anew(&all, r#"{"tickets":"all"}"#), invalid),
        ];
        let with = |name: &str, value: Value| {
            let mut body: Value = serde_json::from_str(&one).unwrap();
            body["check_ins"][0][name] = value;
            body.to_string()
        };
        for (name, body) in [
            ("nothing", "{}".to_owned()),
            ("none", r#"{"check_ins":[]}"#.to_owned()),
            ("a list", format!("[{one}]")),
            ("a door of 33", with("door", json!("d".repeat(33)))),
            ("a door of two lines", with("door", json!("a\nb"))),
            ("yesterday", with("at", json!("yesterday"))),
            ("next year", with("at", json!("2099-01-01T00:00:00Z"))),
            ("a colour", with("colour", json!("red"))),
            ("a code of a number", with("code", json!(7))),
        ] {
            cases.push(case(&format!("check-in: {name}"), scan(&door, &body), invalid));
        }
        cases
    }
}
