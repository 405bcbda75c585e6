//! Admission tokens that are none, or another's.

use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use fake_identity::ISSUER;
use serde_json::{Value, json};

use super::Expected::Problem;
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Admissions that are none, or another's.
    pub(super) fn admissions(&self) -> Vec<Case> {
        let refused = Problem(403, "not-admitted");
        let secret = self.engine.secrets().admission.as_bytes();
        let now = Timestamp::now();
        let number = |buyer: &str| self.mint.mint(now, &UserId::new(buyer).unwrap());
        let one = json!([{ "tier": "standing", "best": { "count": 1 } }]);
        let with = |token: &str| self.order(&self.alice, "hall", &json!(token), &one);
        let claims = |change: Value| {
            let seconds = now.ms() / 1000;
            let mut claims = json!({
                "iss": "onsale", "aud": "onsale-orders", "sub": "alice", "sale": "hall", "jti": number("alice"),
                "tickets": 1, "iat": seconds, "exp": seconds + 600
            });
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            claims
        };
        let header = |alg: &str, kid: Value| json!({ "alg": alg, "typ": "JWT", "kid": kid });
        let forged = |header: Value, change: Value| Self::token(secret, header, claims(change));
        let local = || header("HS256", json!("local"));
        let good = self.admission("alice", |_| {}).0;
        let (signed, _) = good.rsplit_once('.').unwrap();
        let expired = self.admission("alice", |grant| grant.expires_at = now.plus_seconds(-1)).0;
        let elsewhere =
            self.admission("alice", |grant| grant.sale = SaleId::new("full").unwrap()).0;
        let bobs = self.admission("bob", |_| {}).0;
        let few = self.admission("alice", |grant| grant.tickets = 2).0;
        let three = json!([{ "tier": "standing", "best": { "count": 3 } }]);
        let bare = json!({ "lines": one }).to_string();
        let bare = || Raw::new("POST", "/sales/hall/orders").bearer(&self.alice).json(&bare);
        let foreign = Self::token(b"another secret of 32 bytes......", local(), claims(json!({})));
        vec![
            case("admission: none", bare(), refused),
            case("admission: null", self.order(&self.alice, "hall", &Value::Null, &one), refused),
            case("admission: empty", with(""), refused),
            case("admission: garbage", with("a.b.c"), refused),
            case("admission: 10 kB", with(&"a".repeat(10_000)), refused),
            case("admission: the bearer token", with(&self.alice), refused),
            case("admission: foreign key", with(&foreign), refused),
            case("admission: no signature", with(&format!("{signed}.")), refused),
            case("admission: two parts", with(signed), refused),
            case(
                "admission: alg none",
                with(&format!(
                    "{}.",
                    forged(header("none", json!("local")), json!({})).rsplit_once('.').unwrap().0
                )),
                refused,
            ),
            case(
                "admission: alg RS256",
                with(&forged(header("RS256", json!("local")), json!({}))),
                refused,
            ),
            case(
                "admission: alg HS384",
                with(&forged(header("HS384", json!("local")), json!({}))),
                refused,
            ),
            case("admission: no kid", with(&forged(json!({ "alg": "HS256" }), json!({}))), refused),
            case(
                "admission: unknown kid",
                with(&forged(header("HS256", json!("../../dev/null")), json!({}))),
                refused,
            ),
            case("admission: issuer", with(&forged(local(), json!({ "iss": ISSUER }))), refused),
            case(
                "admission: audience",
                with(&forged(local(), json!({ "aud": "onsale" }))),
                refused,
            ),
            case("admission: number", with(&forged(local(), json!({ "jti": "-1" }))), refused),
            case(
                "admission: number of 2^63",
                with(&forged(local(), json!({ "jti": "9223372036854775808" }))),
                refused,
            ),
            case("admission: tickets", with(&forged(local(), json!({ "tickets": -1 }))), refused),
            case("admission: no expiry", with(&forged(local(), json!({ "exp": null }))), refused),
            case(
                "admission: not valid yet",
                with(&forged(local(), json!({ "nbf": Timestamp::now().ms() / 1000 + 300 }))),
                refused,
            ),
            case("admission: sub", with(&forged(local(), json!({ "sub": "a#b" }))), refused),
            case("admission: expired", with(&expired), refused),
            case("admission: of another sale", with(&elsewhere), refused),
            case("admission: of another buyer", with(&bobs), refused),
            case(
                "admission: for fewer tickets",
                self.order(&self.alice, "hall", &json!(few), &three),
                refused,
            ),
            case(
                "admission: two headers",
                bare().header("Admission", &good).header("Admission", &good),
                refused,
            ),
            case(
                "admission: at another sale",
                self.order(
                    &self.alice,
                    "full",
                    &json!(good),
                    &json!([{ "tier": "stalls", "best": { "count": 1 } }]),
                ),
                refused,
            ),
            case(
                "admission: a number",
                self.order(&self.alice, "hall", &json!(1), &one),
                Problem(422, "invalid"),
            ),
        ]
    }
}
