//! Development tokens: what a real deployment gets from its identity provider.
//!
//! A token is a JWT signed with a secret of the data directory (HS256). The local gateway checks
//! it as API Gateway's JWT authorizer checks a real one: signature, issuer, audience, expiry, `nbf`.
//!
//! Beside them are two issuers of OpenID Connect on a port of 127.0.0.1 ([`FakeIssuers`]), one of buyers and
//! one of operators, where people sign in with a page:
//!
//! | request | answer |
//! |---|---|
//! | `GET /{realm}/.well-known/openid-configuration` | what there is (OpenID Connect Discovery) |
//! | `GET /{realm}/jwks` | the public key (RFC 7517) |
//! | `GET /{realm}/authorize`, and `POST` of its form | a form, then a code (RFC 6749 with RFC 7636, S256 only) |
//! | `POST /{realm}/token` | an access token (RFC 9068) and an id token for a code, RS256 |
//! | `GET /{realm}/logout` | back to the pages (OpenID Connect RP-Initiated Logout) |

mod authorize;
mod codes;
mod edge;
mod keys;
mod page;
pub mod realm;
mod server;
mod tokens;

use std::collections::HashMap;
use std::sync::Arc;

use engine::domain::basics::time::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::codes::challenge;
pub use crate::keys::NoKey;
pub use crate::realm::Realm;
pub use crate::server::{Error, FakeIssuers};
pub use crate::tokens::{ACCESS_SECONDS, Issuers};

/// Issuer (`iss`) of development tokens.
pub const ISSUER: &str = "onsale-local";
/// Audience (`aud`) of development tokens.
pub const AUDIENCE: &str = "onsale";
/// Value of the claim `role` of operators.
const OPERATOR: &str = "operator";

/// The role of a token's bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    #[default]
    Buyer,
    /// Publish sales. Stands for the IAM permission that the operator has on AWS.
    Operator,
}

/// A token that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not a token of this issuer: the signature or a claim is wrong.
    #[error("the token is not valid: {0}")]
    Invalid(String),
    /// Before the time from which it is valid (`nbf`).
    #[error("the token is not valid yet")]
    NotYet,
    #[error("the token has expired")]
    Expired,
}

/// Claims as API Gateway passes them to a function: all text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims(HashMap<String, String>);

impl Claims {
    /// The user id (`sub`); empty if there is none.
    #[must_use]
    pub fn subject(&self) -> &str {
        self.0.get("sub").map_or("", String::as_str)
    }

    /// The role of its bearer.
    #[must_use]
    pub fn role(&self) -> Role {
        match self.0.get("role").map(String::as_str) {
            Some(OPERATOR) => Role::Operator,
            Some(_) | None => Role::Buyer,
        }
    }

    /// True if the claim `scope` names a scope.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.get("scope").is_some_and(|scopes| scopes.split(' ').any(|one| one == scope))
    }

    /// The claims by name.
    #[must_use]
    pub fn into_inner(self) -> HashMap<String, String> {
        self.0
    }
}

/// The claims that are signed.
#[derive(Debug, Serialize, Deserialize)]
struct SignedClaims<'text> {
    iss: &'text str,
    aud: &'text str,
    sub: &'text str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'text str>,
    /// Time of issue, Unix seconds.
    iat: i64,
    exp: i64,
}

/// Issues and verifies development tokens, and verifies those of the two issuers if it knows them.
pub struct Identity {
    sign: EncodingKey,
    verify: DecodingKey,
    rules: Validation,
    issuers: Option<Arc<Issuers>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// An issuer with this secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.set_issuer(&[ISSUER]);
        rules.set_audience(&[AUDIENCE]);
        rules.set_required_spec_claims(&["iss", "aud", "exp"]);
        // The clock is an argument of `verify`, not the library's.
        rules.validate_exp = false;
        Self {
            sign: EncodingKey::from_secret(secret),
            verify: DecodingKey::from_secret(secret),
            rules,
            issuers: None,
        }
    }

    /// The same, that accepts the tokens of these issuers as well.
    #[must_use]
    pub fn with_issuers(self, issuers: Arc<Issuers>) -> Self {
        Self { issuers: Some(issuers), ..self }
    }

    /// The claims of a buyer's token that is good at `now`: a development token, or one of the buyers' issuer.
    /// The algorithm says which of them it must be, and each has a key of its own kind.
    ///
    /// # Errors
    /// A [`Refused`] says why it is not.
    pub fn verify_buyer(&self, token: &str, now: Timestamp) -> Result<Claims, Refused> {
        match jsonwebtoken::decode_header(token).map(|header| header.alg) {
            Ok(Algorithm::RS256) => self.verify_issued(Realm::Buyers, token, now),
            Ok(_) | Err(_) => self.verify(token, now),
        }
    }

    /// The claims of an operator's token that is good at `now`: one of the operators' issuer alone.
    ///
    /// # Errors
    /// A [`Refused`] says why it is not.
    pub fn verify_operator(&self, token: &str, now: Timestamp) -> Result<Claims, Refused> {
        self.verify_issued(Realm::Operators, token, now)
    }

    fn verify_issued(&self, realm: Realm, token: &str, now: Timestamp) -> Result<Claims, Refused> {
        let unknown = || Refused::Invalid("there are no issuers".to_owned());
        self.issuers.as_ref().ok_or_else(unknown)?.verify(realm, token, now)
    }

    /// A token for `user` that ends `ttl_seconds` after `now`.
    ///
    /// # Errors
    /// [`Refused::Invalid`] when it cannot be signed, which no text is known to cause.
    pub fn token(
        &self,
        user: &str,
        role: Role,
        now: Timestamp,
        ttl_seconds: u32,
    ) -> Result<String, Refused> {
        let iat = now.ms().div_euclid(1000);
        let role = match role {
            Role::Buyer => None,
            Role::Operator => Some(OPERATOR),
        };
        let exp = iat + i64::from(ttl_seconds);
        let claims = SignedClaims { iss: ISSUER, aud: AUDIENCE, sub: user, role, iat, exp };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.sign)
            .map_err(|error| Refused::Invalid(error.to_string()))
    }

    /// The claims of a token that is good at `now`.
    ///
    /// # Errors
    /// A [`Refused`] says why it is not.
    pub fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Refused> {
        checked(token, &self.verify, &self.rules, now)
    }
}

/// The claims of a token that keeps the rules and is good at `now`.
fn checked(
    token: &str,
    key: &DecodingKey,
    rules: &Validation,
    now: Timestamp,
) -> Result<Claims, Refused> {
    let claims = jsonwebtoken::decode::<Map<String, Value>>(token, key, rules)
        .map_err(|error| Refused::Invalid(error.to_string()))?
        .claims;
    let no_number = |name: &str| Refused::Invalid(format!("{name} is no whole number"));
    let expires = claims.get("exp").and_then(Value::as_i64).ok_or_else(|| no_number("exp"))?;
    let now = now.ms().div_euclid(1000);
    if expires <= now {
        return Err(Refused::Expired);
    }
    // Source: <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html>
    if let Some(from) = claims.get("nbf") {
        let from = from.as_i64().ok_or_else(|| no_number("nbf"))?;
        if from > now {
            return Err(Refused::NotYet);
        }
    }
    Ok(Claims(claims.into_iter().map(|(name, value)| (name, as_text(&value))).collect()))
}

/// A claim as API Gateway writes it into the request context.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(as_text).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_500);

    #[test]
    fn a_token_says_who_until_it_ends() {
        let identity = Identity::new(b"secret");
        let token = identity.token("alice", Role::Buyer, NOW, 60).unwrap();
        let claims = identity.verify(&token, NOW.plus_seconds(59)).unwrap();
        assert_eq!((claims.subject(), claims.role()), ("alice", Role::Buyer));
        assert_eq!(claims.into_inner()["exp"], "1800000060");
        assert_eq!(identity.verify(&token, NOW.plus_seconds(60)), Err(Refused::Expired));

        let token = identity.token("ops", Role::Operator, NOW, 60).unwrap();
        assert_eq!(identity.verify(&token, NOW).unwrap().role(), Role::Operator);
    }

    #[test]
    fn a_token_is_refused_before_the_time_that_it_names() {
        let identity = Identity::new(b"secret");
        let now = NOW.ms() / 1000;
        let from = |nbf: Value| {
            let claims = serde_json::json!({
                "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": now + 60, "nbf": nbf,
            });
            let header = Header::new(Algorithm::HS256);
            let token = jsonwebtoken::encode(&header, &claims, &identity.sign).unwrap();
            identity.verify(&token, NOW).map(|claims| claims.subject().to_owned())
        };
        assert_eq!(from((now + 1).into()), Err(Refused::NotYet));
        assert_eq!(from((now + 3600).into()), Err(Refused::NotYet));
        assert!(matches!(from("soon".into()), Err(Refused::Invalid(_))));
        assert_eq!(from(now.into()), Ok("alice".to_owned()));
    }

    #[test]
    fn what_we_did_not_sign_is_refused() {
        let identity = Identity::new(b"secret");
        let forged = Identity::new(b"other").token("alice", Role::Operator, NOW, 60).unwrap();
        // `alg` is `none`: a token that needs no signature at all.
        let unsigned = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.eyJzdWIiOiJhbGljZSJ9.";
        for token in [forged.as_str(), unsigned, "nonsense", ""] {
            assert!(matches!(identity.verify(token, NOW), Err(Refused::Invalid(_))), "{token}");
        }
    }
}
