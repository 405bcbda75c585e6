//! Paths and methods that there are not.

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{BARE, Case, Fixture, case};

impl Fixture {
    /// Paths and methods that there are not, however they are spelt.
    pub(super) fn paths(&self) -> Vec<Case> {
        let nothing = Problem(404, "not-found");
        let method = Problem(405, "method-not-allowed");
        let get = |target: &str| Raw::new("GET", target);
        let mine = |target: &str| Raw::new("GET", target).bearer(&self.alice);
        let post =
            |target: &str| Raw::new("POST", target).bearer(&self.alice).json(r#"{"tickets":1}"#);
        let long = format!("/sales/{}", "a".repeat(65));
        let mut cases = vec![
            case("path: the control", get("/sales/hall"), Fine(200)),
            case("path: absolute", get("http://elsewhere.example/sales/hall"), Fine(200)),
            case("path: length of 60 kB", get(&format!("/{}", "a".repeat(60_000))), nothing),
            case("path: connect", Raw::new("CONNECT", "tickets.example:443"), nothing),
            case("path: asterisk", Raw::new("OPTIONS", "*"), nothing),
            case("path: post with dots", post("/sales/../admissions"), nothing),
            case("path: post with %2f", post("/sales/hall%2f..%2ffull/admissions"), nothing),
            case("path: an order with dots", post("/orders/../cancel"), nothing),
            case("path: provider with dots", post("/payments/%2e%2e/callback"), nothing),
            case("path: no such provider", post("/payments/paypal/callback"), nothing),
            case(
                "path: a guessed key",
                post(&format!("/callbacks/{}/stripe", "0".repeat(64))),
                nothing,
            ),
            case("path: a key cut short", post("/callbacks/0/stripe"), nothing),
            case("path: no such sale", post("/sales/nowhere/admissions"), nothing),
            case("path: get where one posts", get("/sales/../orders"), method),
            case("path: where the pages would be", get("/"), Fine(404)),
            case("path: raw NUL", get("/sales/hall\0"), Problem(400, BARE)),
            case("path: raw blank", get("/sales/ha ll"), Problem(400, BARE)),
        ];
        for target in [
            "//sales",
            "/sales/",
            "/SALES",
            "/sales;v=1",
            "/sales/Hall",
            "/sales/hall%00",
            "/sales/hall%20",
            "/sales/h%61ll",
            "/sales/..",
            "/sales/%2e%2e/availability",
            "/sales/..%2f..%2fetc%2fpasswd/availability",
            "/sales/hall%5c..",
            "/sales/%ff%fe",
            "/sales/%EF%BD%88all",
            "/sales/-hall",
            "/openapi.yaml",
            "/openapi.json/",
            "/sales/hall/availability/",
            "/sales/%7Bsale%7D",
            "/sales/hall%0d%0aX:%20y",
            "/.git/config",
            &long,
        ] {
            cases.push(case(&format!("path: {target}"), get(target), nothing));
        }
        for number in [
            "007",
            "-1",
            "+1",
            "1.0",
            "1e3",
            "0x10",
            "9223372036854775808",
            "18446744073709551616",
            "1%00",
            "%31",
            "%EF%BC%91",
            "1",
            "9223372036854775807",
        ] {
            cases.push(case(
                &format!("path: order {number}"),
                mine(&format!("/orders/{number}")),
                nothing,
            ));
        }
        for name in ["DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH", "get", "QUERY", "PROPFIND"] {
            cases.push(case(&format!("method: {name}"), Raw::new(name, "/sales/hall"), method));
        }
        cases.push(case("method: post", post("/orders"), method));
        let tunnelled = post("/sales").header("X-HTTP-Method-Override", "GET");
        cases.push(case("method: tunnelled", tunnelled, method));
        cases
    }
}
