//! The tokens of the two issuers: RS256, and checked as API Gateway's JWT authorizer checks them.

use std::path::Path;

use engine::domain::basics::time::Timestamp;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde_json::{Map, Value, json};

use crate::keys::{LazyKey, NoKey};
use crate::{Claims, Realm, Refused, checked};

/// Lifetime of an access token and of an id token, in seconds.
pub const ACCESS_SECONDS: u32 = 60 * 60;

/// The two issuers at an address: their keys, and the tokens that they sign.
#[derive(Debug)]
pub struct Issuers {
    url: String,
    buyers: LazyKey,
    operators: LazyKey,
}

impl Issuers {
    /// The issuers at `url`, `http://127.0.0.1:PORT`, whose keys are kept in the directory.
    #[must_use]
    pub fn new(url: String, keys: &Path) -> Self {
        let key = |realm| LazyKey::new(realm, keys);
        Self { url, buyers: key(Realm::Buyers), operators: key(Realm::Operators) }
    }

    /// The issuer (`iss`) of a realm.
    #[must_use]
    pub fn issuer(&self, realm: Realm) -> String {
        format!("{}/{}", self.url, realm.as_str())
    }

    fn key(&self, realm: Realm) -> &LazyKey {
        match realm {
            Realm::Buyers => &self.buyers,
            Realm::Operators => &self.operators,
        }
    }

    /// The public keys of a realm, as RFC 7517 writes them.
    ///
    /// # Errors
    /// [`NoKey`] if there is none and none can be made.
    pub fn public_keys(&self, realm: Realm) -> Result<Value, NoKey> {
        Ok(json!({ "keys": [self.key(realm).get()?.public] }))
    }

    /// An access token with these scopes, separated by blanks.
    ///
    /// # Errors
    /// [`Refused::Invalid`] when it cannot be signed.
    pub fn access_token(
        &self,
        realm: Realm,
        subject: &str,
        scope: &str,
        now: Timestamp,
    ) -> Result<String, Refused> {
        let mut claims = self.claims(realm, subject, now);
        claims.insert("aud".to_owned(), realm.audience().into());
        claims.insert("client_id".to_owned(), realm.client_id().into());
        claims.insert("scope".to_owned(), scope.into());
        claims.insert("token_use".to_owned(), "access".into());
        // RFC 9068.
        self.signed(realm, "at+jwt", &claims)
    }

    /// An id token: it tells the pages who has signed in, and opens nothing.
    pub(crate) fn id_token(
        &self,
        realm: Realm,
        subject: &str,
        nonce: &str,
        now: Timestamp,
    ) -> Result<String, Refused> {
        let mut claims = self.claims(realm, subject, now);
        claims.insert("aud".to_owned(), realm.client_id().into());
        claims.insert("nonce".to_owned(), nonce.into());
        claims.insert("token_use".to_owned(), "id".into());
        self.signed(realm, "JWT", &claims)
    }

    fn claims(&self, realm: Realm, subject: &str, now: Timestamp) -> Map<String, Value> {
        let iat = now.ms().div_euclid(1000);
        let claims = [
            ("iss", self.issuer(realm).into()),
            ("sub", subject.into()),
            ("iat", iat.into()),
            ("nbf", iat.into()),
            ("exp", (iat + i64::from(ACCESS_SECONDS)).into()),
        ];
        claims.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
    }

    fn signed(
        &self,
        realm: Realm,
        kind: &str,
        claims: &Map<String, Value>,
    ) -> Result<String, Refused> {
        let key = self.key(realm).get().map_err(|error| Refused::Invalid(error.to_string()))?;
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some(key.id.clone());
        header.typ = Some(kind.to_owned());
        jsonwebtoken::encode(&header, claims, &key.sign)
            .map_err(|error| Refused::Invalid(error.to_string()))
    }

    /// The claims of a realm's token that is good at `now`.
    ///
    /// # Errors
    /// A [`Refused`] says why it is not. Only RS256 is accepted.
    pub fn verify(&self, realm: Realm, token: &str, now: Timestamp) -> Result<Claims, Refused> {
        let invalid = |why: String| Refused::Invalid(why);
        let key = self.key(realm).get().map_err(|error| invalid(error.to_string()))?;
        let header =
            jsonwebtoken::decode_header(token).map_err(|error| invalid(error.to_string()))?;
        if header.kid.as_deref() != Some(key.id.as_str()) {
            return Err(invalid("the key is none of this issuer's".to_owned()));
        }
        let mut rules = Validation::new(Algorithm::RS256);
        rules.set_issuer(&[self.issuer(realm)]);
        rules.set_audience(&[realm.audience()]);
        rules.set_required_spec_claims(&["iss", "aud", "exp"]);
        rules.validate_exp = false;
        checked(token, &key.verify, &rules, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realm::WATCH;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_500);

    #[test]
    fn a_token_is_good_at_its_own_issuer_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let issuers = Issuers::new("http://127.0.0.1:4100".to_owned(), dir.path());
        let token = issuers.access_token(Realm::Operators, "zhang", WATCH, NOW).unwrap();
        let claims = issuers.verify(Realm::Operators, &token, NOW).unwrap().into_inner();
        let claim = |name: &str| claims[name].clone();
        assert_eq!(claim("iss"), "http://127.0.0.1:4100/operators");
        assert_eq!((claim("sub"), claim("scope")), ("zhang".to_owned(), WATCH.to_owned()));
        assert!(matches!(issuers.verify(Realm::Buyers, &token, NOW), Err(Refused::Invalid(_))));
        let later = NOW.plus_seconds(i64::from(ACCESS_SECONDS));
        assert_eq!(issuers.verify(Realm::Operators, &token, later), Err(Refused::Expired));
        let before = NOW.plus_seconds(-1);
        assert_eq!(issuers.verify(Realm::Operators, &token, before), Err(Refused::NotYet));
        // The same keys at another address are another issuer.
        let moved = Issuers::new("http://127.0.0.1:4101".to_owned(), dir.path());
        assert!(moved.verify(Realm::Operators, &token, NOW).is_err());
    }

    #[test]
    fn an_id_token_of_a_buyer_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let issuers = Issuers::new("http://127.0.0.1:4100".to_owned(), dir.path());
        let token = issuers.id_token(Realm::Buyers, "alice", "n", NOW).unwrap();
        assert!(matches!(issuers.verify(Realm::Buyers, &token, NOW), Err(Refused::Invalid(_))));
        // That of an operator has no scope.
        let token = issuers.id_token(Realm::Operators, "zhang", "n", NOW).unwrap();
        let claims = issuers.verify(Realm::Operators, &token, NOW).unwrap().into_inner();
        assert!(!claims.contains_key("scope"));
    }
}
