//! Bearer tokens that are none, or another's.

use engine::domain::basics::time::Timestamp;
use fake_identity::{AUDIENCE, ISSUER, Identity, Role};
use serde_json::{Value, json};

use super::Expected::{Fine, Problem};
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Bearer tokens that are none, and one that is: the control.
    pub(super) fn bearers(&self) -> Vec<Case> {
        let secret = self.engine.secrets().identity.as_bytes();
        let now = Timestamp::now();
        let exp = now.ms() / 1000 + 600;
        let header = |alg: &str| json!({ "alg": alg, "typ": "JWT" });
        let claims = |change: Value| {
            let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": exp });
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            claims
        };
        let good = |change: Value| Self::token(secret, header("HS256"), claims(change));
        let list = |authorization: String| {
            Raw::new("GET", "/orders").header("Authorization", authorization)
        };
        let with = |token: String| Raw::new("GET", "/orders").bearer(&token);
        let unknown = Problem(401, "not-authenticated");
        let unsigned = {
            let token = Self::token(secret, header("none"), claims(json!({})));
            format!("{}.", token.rsplit_once('.').unwrap().0)
        };
        let old = Identity::new(secret).token("alice", Role::Buyer, now.plus_seconds(-60), 60);
        let foreign = Identity::new(b"guessed").token("alice", Role::Buyer, now, 600);
        vec![
            case("bearer: the control", with(good(json!({}))), Fine(200)),
            case("bearer: none", Raw::new("GET", "/orders"), unknown),
            case("bearer: another scheme", list("Basic YWxpY2U6".to_owned()), unknown),
            case("bearer: empty", list("Bearer ".to_owned()), unknown),
            case("bearer: garbage", list("Bearer \u{fffd}.x.y".to_owned()), unknown),
            case("bearer: two", with(good(json!({}))).bearer(&self.bob), unknown),
            case("bearer: expired", with(old.unwrap()), unknown),
            case("bearer: foreign key", with(foreign.unwrap()), unknown),
            case("bearer: alg none", with(unsigned), unknown),
            case(
                "bearer: alg RS256",
                with(Self::token(secret, header("RS256"), claims(json!({})))),
                unknown,
            ),
            case(
                "bearer: alg HS512",
                with(Self::token(secret, header("HS512"), claims(json!({})))),
                unknown,
            ),
            case("bearer: issuer", with(good(json!({ "iss": "https://evil.example" }))), unknown),
            case("bearer: audience", with(good(json!({ "aud": "another" }))), unknown),
            case("bearer: no expiry", with(good(json!({ "exp": null }))), unknown),
            case("bearer: expiry as text", with(good(json!({ "exp": exp.to_string() }))), unknown),
            case("bearer: not valid yet", with(good(json!({ "nbf": exp - 300 }))), unknown),
            case("bearer: valid from text", with(good(json!({ "nbf": "0" }))), unknown),
            case("bearer: sub with #", with(good(json!({ "sub": "a#b" }))), unknown),
            case("bearer: sub empty", with(good(json!({ "sub": "" }))), unknown),
            case(
                "bearer: sub missing",
                with(good(json!({ "sub": null }))).header("X", "y"),
                Fine(200),
            ),
            case("bearer: sub too long", with(good(json!({ "sub": "a".repeat(129) }))), unknown),
            case("bearer: sub with NUL", with(good(json!({ "sub": "al\u{0}ice" }))), unknown),
            case("bearer: an admission", with(self.admission("alice", |_| {}).0), unknown),
            case("operator: nobody", Raw::new("PUT", "/sales/hall").json("{}"), unknown),
            case(
                "operator: a buyer",
                Raw::new("PUT", "/sales/hall").bearer(&self.alice).json("{}"),
                Problem(403, "not-permitted"),
            ),
            case(
                "operator: a list of roles",
                Raw::new("PUT", "/sales/hall")
                    .bearer(&good(json!({ "role": ["operator"] })))
                    .json("{}"),
                Problem(403, "not-permitted"),
            ),
        ]
    }
}
