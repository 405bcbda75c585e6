//! Admission tokens: the signed right to make exactly one order, whose number they carry. The same keys sign
//! [place tokens](super::place_token), for another audience.
//!
//! A token is a JWT, HS256, with the key's `kid` in its header. The first key signs, and every key is
//! accepted. So a key is rotated by putting the new key in front, and by dropping the old key when its last
//! token has expired. Algorithm, issuer and audience are fixed: a token with another one
//! is refused (RFC 8725, sections 3.1, 3.8 and 3.9).

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::http::identity::Buyer;
use engine::domain::admission::room::counts::Entry;
use engine::domain::admission::room::slot::Asking;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::requested::RequestedLine;

pub(super) const ISSUER: &str = "onsale";
/// The most bytes of a token. A token of this deployment has about 400, and those of the user id.
const MAX_BYTES: usize = 2048;

/// The audience of a token: what the token is for. A token for another audience is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// To make an order.
    Orders,
    /// To claim a place in a waiting room.
    Places,
}

impl Audience {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Orders => "onsale-orders",
            Self::Places => "onsale-places",
        }
    }

    /// The claims that a token for this audience must have.
    const fn claims(self) -> &'static [&'static str] {
        match self {
            Self::Orders => &["exp", "iss", "aud", "sub"],
            Self::Places => &["iss", "aud", "sub"],
        }
    }
}

/// Why a token is not one of this deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// The token is no JWT.
    Malformed,
    /// The token is not signed with one of the keys, for this audience.
    NotOurs,
}

impl From<Unreadable> for Defect {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Malformed => Self::Malformed,
            Unreadable::NotOurs => Self::NotOurs,
        }
    }
}

/// Why a token does not admit its bearer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// The request has no admission token.
    #[error("an admission token is needed")]
    Missing,
    /// The token is too long, or is no JWT.
    #[error("the admission token cannot be read")]
    Malformed,
    /// The token is not signed with one of the keys, or its claims are not those of an admission token.
    #[error("the admission token's signature does not fit")]
    NotOurs,
    /// The token admits its buyer to another sale.
    #[error("the admission is for another sale")]
    OtherSale,
    /// The token was given to another buyer.
    #[error("the admission was given to another buyer")]
    OtherBuyer,
    /// The token is not valid yet: its `nbf` lies in the future.
    #[error("the admission is not valid yet")]
    NotYet,
    /// The token has expired, and no order was made with it.
    #[error("the admission has expired")]
    Expired,
    /// The buyer has a later admission to the same visit of the waiting room.
    #[error("a later admission of the same visit has ended this one")]
    Replaced,
    /// The token admits its buyer with at most this many tickets, and the request has more.
    #[error("the admission is for at most {0} tickets")]
    TooManyTickets(u16),
    /// Another buyer has an order under the number in the token.
    #[error("the admission's number is in use; ask for another admission")]
    NumberClash,
}

/// The content of an admission token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The id of the sale to which the token admits.
    pub sale: SaleId,
    /// The id of the admitted buyer.
    pub user: UserId,
    /// The number under which the buyer may make one order.
    pub order: OrderNumber,
    /// The most tickets of that order.
    pub tickets: u16,
    /// The time after which no new order can be made with the token.
    pub expires_at: Timestamp,
    /// The mark by which the waiting room counts the order; `None` if the sale has no room.
    pub entry: Option<Entry>,
    /// What the sale's slot has to know of its buyer's questions, if the sale has a room.
    pub asking: Asking,
}

/// The claims as the token has them; times are whole seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: UserId,
    sale: SaleId,
    jti: OrderNumber,
    tickets: u16,
    iat: i64,
    exp: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asking: Option<Asking>,
    /// Ours have none; another issuer with our key may set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<i64>,
}

/// The proof that a buyer was admitted to a sale. Only [`AdmissionKeys::check`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    grant: Grant,
}

impl Admission {
    /// The number under which the buyer may make one order.
    #[must_use]
    pub fn order(&self) -> OrderNumber {
        self.grant.order
    }

    /// The mark by which the waiting room counts the order; `None` if the sale has no room.
    #[must_use]
    pub fn entry(&self) -> Option<Entry> {
        self.grant.entry
    }

    /// What the sale's slot has to know of its buyer's questions, if the sale has a room.
    #[must_use]
    pub fn asking(&self) -> Asking {
        self.grant.asking
    }

    /// True while a new order may be made with the admission. Later the admission only finds the order that was made.
    #[must_use]
    pub fn is_current(&self, now: Timestamp) -> bool {
        now < self.grant.expires_at
    }

    /// Refuses an order of more tickets than the admission allows.
    ///
    /// # Errors
    /// Returns [`Defect::TooManyTickets`].
    pub fn check_tickets(&self, lines: &[RequestedLine]) -> Result<(), Defect> {
        let most = self.grant.tickets;
        let tickets: usize = lines.iter().map(|requested| requested.line.choice.count()).sum();
        if tickets <= usize::from(most) { Ok(()) } else { Err(Defect::TooManyTickets(most)) }
    }
}

/// One signing key.
struct Key {
    kid: String,
    signing: EncodingKey,
    checking: DecodingKey,
}

/// The keys that sign and check admission tokens and place tokens.
pub struct AdmissionKeys {
    keys: Vec<Key>,
}

/// The deployment has no key to sign with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no admission key is configured")]
pub struct NoKey;

impl AdmissionKeys {
    /// The keys, each with its id: the first signs, all are accepted.
    #[must_use]
    pub fn new<'a>(keys: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let key = |(kid, secret): (&str, &[u8])| Key {
            kid: kid.to_owned(),
            signing: EncodingKey::from_secret(secret),
            checking: DecodingKey::from_secret(secret),
        };
        Self { keys: keys.into_iter().map(key).collect() }
    }

    /// True if there is no key: no token can be signed, and every token is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Signs the admission token of a grant, issued at `now`.
    ///
    /// # Errors
    /// Returns [`NoKey`] if there is no key: a function that admits buyers must have one.
    pub fn sign(&self, grant: &Grant, now: Timestamp) -> Result<String, NoKey> {
        self.sign_claims(&Claims {
            iss: ISSUER.to_owned(),
            aud: Audience::Orders.as_str().to_owned(),
            sub: grant.user.clone(),
            sale: grant.sale.clone(),
            jti: grant.order,
            tickets: grant.tickets,
            iat: now.ms().div_euclid(1000),
            exp: grant.expires_at.ms().div_euclid(1000),
            entry: grant.entry,
            asking: Some(grant.asking).filter(|asking| *asking != Asking::default()),
            nbf: None,
        })
    }

    /// Signs claims with the first key.
    pub(super) fn sign_claims(&self, claims: &impl Serialize) -> Result<String, NoKey> {
        let key = self.keys.first().ok_or(NoKey)?;
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, claims, &key.signing).map_err(|_| NoKey)
    }

    /// Checks that a token is signed with one of the keys, for this sale and this buyer, and is valid at `now`
    /// already. An expired token passes: [`Admission::is_current`] tells, and a repeated request whose order exists
    /// still gets its answer.
    ///
    /// # Errors
    /// Returns the first [`Defect`].
    pub fn check(
        &self,
        token: &str,
        sale: &SaleId,
        buyer: &Buyer,
        now: Timestamp,
    ) -> Result<Admission, Defect> {
        let claims: Claims = self.claims(token, Audience::Orders)?;
        // Source: RFC 7519, section 4.1.5. Our clocks sign and check in whole seconds.
        if claims.nbf.is_some_and(|nbf| nbf > now.ms().div_euclid(1000)) {
            return Err(Defect::NotYet);
        }
        if claims.sale != *sale {
            return Err(Defect::OtherSale);
        }
        if claims.sub != *buyer.user() {
            return Err(Defect::OtherBuyer);
        }
        let grant = Grant {
            sale: claims.sale,
            user: claims.sub,
            order: claims.jti,
            tickets: claims.tickets,
            expires_at: Timestamp::from_ms(claims.exp.saturating_mul(1000)),
            entry: claims.entry,
            asking: claims.asking.unwrap_or_default(),
        };
        Ok(Admission { grant })
    }

    /// The claims of a token that one of our keys has signed for an audience.
    pub(super) fn claims<C: DeserializeOwned>(
        &self,
        token: &str,
        audience: Audience,
    ) -> Result<C, Unreadable> {
        if token.len() > MAX_BYTES {
            return Err(Unreadable::Malformed);
        }
        let header = jsonwebtoken::decode_header(token).map_err(|_| Unreadable::Malformed)?;
        let kid = header.kid.ok_or(Unreadable::NotOurs)?;
        let key = self.keys.iter().find(|key| key.kid == kid).ok_or(Unreadable::NotOurs)?;
        let decoded = jsonwebtoken::decode(token, &key.checking, &validation(audience));
        decoded.map(|data| data.claims).map_err(|_| Unreadable::NotOurs)
    }
}

/// Everything about a token but the time, which is an argument of ours.
fn validation(audience: Audience) -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[audience.as_str()]);
    validation.set_required_spec_claims(audience.claims());
    validation.validate_exp = false;
    validation
}

impl std::fmt::Debug for AdmissionKeys {
    /// Names the keys and shows none of them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.kid)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use engine::domain::basics::ids::{Legs, TierId};
    use engine::domain::basics::money::MinorUnits;
    use engine::domain::basics::number::Mint;
    use engine::domain::inventory::Line;
    use engine::domain::inventory::choice::{Choice, Together};
    use serde_json::{Value, json};

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_999);
    const OLD: (&str, &[u8]) = ("2026-01", b"0123456789abcdef0123456789abcdef");
    const NEW: (&str, &[u8]) = ("2026-02", b"fedcba9876543210fedcba9876543210");

    fn sale(id: &str) -> SaleId {
        SaleId::new(id).unwrap()
    }

    /// A buyer as the authorizer would have verified it.
    fn buyer(sub: &str) -> Buyer {
        let event = json!({
            "version": "2.0", "rawPath": "/", "headers": {}, "isBase64Encoded": false,
            "requestContext": {
                "timeEpoch": 0, "http": { "method": "GET" },
                "authorizer": { "jwt": { "claims": { "sub": sub } } }
            }
        });
        Buyer::from_request(&lambda_http::request::from_str(&event.to_string()).unwrap()).unwrap()
    }

    fn grant() -> Grant {
        let user = UserId::new("alice").unwrap();
        Grant {
            sale: sale("g1"),
            order: Mint::new(7).mint(NOW, &user),
            user,
            tickets: 2,
            expires_at: NOW.plus_seconds(60),
            entry: None,
            asking: Asking::default(),
        }
    }

    fn check(token: &str) -> Result<Admission, Defect> {
        AdmissionKeys::new([NEW, OLD]).check(token, &sale("g1"), &buyer("alice"), NOW)
    }

    #[test]
    fn a_token_says_what_was_granted_and_expiry_does_not_unsay_it() {
        let token = AdmissionKeys::new([NEW]).sign(&grant(), NOW).unwrap();
        let admission = check(&token).unwrap();
        assert_eq!(admission.order(), grant().order);
        assert!(admission.is_current(NOW) && admission.is_current(NOW.plus_seconds(59)));
        assert!(!admission.is_current(NOW.plus_seconds(60)));
        assert!(token.len() < 500);
    }

    #[test]
    fn the_first_key_signs_and_every_key_is_accepted() {
        let by_old = AdmissionKeys::new([OLD, NEW]).sign(&grant(), NOW).unwrap();
        assert!(check(&by_old).is_ok());
        let without_old = AdmissionKeys::new([NEW]);
        let refused = without_old.check(&by_old, &sale("g1"), &buyer("alice"), NOW);
        assert_eq!(refused, Err(Defect::NotOurs));
        assert_eq!(AdmissionKeys::new([]).sign(&grant(), NOW), Err(NoKey));
    }

    #[test]
    fn another_sale_or_buyer_is_refused() {
        let keys = AdmissionKeys::new([NEW]);
        let token = keys.sign(&grant(), NOW).unwrap();
        let check = |sale_id, user| keys.check(&token, &sale(sale_id), &buyer(user), NOW);
        assert_eq!(check("g2", "alice"), Err(Defect::OtherSale));
        assert_eq!(check("g1", "bob"), Err(Defect::OtherBuyer));
    }

    /// A token with any header and claims, signed with HS256 unless the header says otherwise.
    fn forged(header: Value, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = json!({
            "iss": ISSUER, "aud": "onsale-orders", "sub": "alice", "sale": "g1", "jti": grant().order,
            "tickets": 2, "iat": 1_800_000_000, "exp": 1_800_000_060
        });
        change(&mut claims);
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, NEW.1);
        let tag = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    fn header() -> Value {
        json!({ "alg": "HS256", "typ": "JWT", "kid": NEW.0 })
    }

    #[test]
    fn every_forgery_is_refused() {
        assert!(check(&forged(header(), |_| {})).is_ok(), "the control is a good token");
        let foreign = AdmissionKeys::new([(NEW.0, b"another secret of 32 bytes......".as_slice())]);
        let good = AdmissionKeys::new([NEW]).sign(&grant(), NOW).unwrap();
        let (signed, _) = good.rsplit_once('.').unwrap();
        let alg = |alg: &str| json!({ "alg": alg, "typ": "JWT", "kid": NEW.0 });
        let cases: [(&str, String, Defect); 17] = [
            ("foreign key", foreign.sign(&grant(), NOW).unwrap(), Defect::NotOurs),
            ("alg none", forged(alg("none"), |_| {}), Defect::Malformed),
            ("alg HS384", forged(alg("HS384"), |_| {}), Defect::NotOurs),
            ("alg RS256", forged(alg("RS256"), |_| {}), Defect::NotOurs),
            ("no kid", forged(json!({ "alg": "HS256" }), |_| {}), Defect::NotOurs),
            ("unknown kid", forged(json!({ "alg": "HS256", "kid": "x" }), |_| {}), Defect::NotOurs),
            ("issuer", forged(header(), |claims| claims["iss"] = json!("x")), Defect::NotOurs),
            ("audience", forged(header(), |claims| claims["aud"] = json!("x")), Defect::NotOurs),
            ("no exp", forged(header(), |claims| claims["exp"] = json!(null)), Defect::NotOurs),
            ("nbf is text", forged(header(), |claims| claims["nbf"] = json!("0")), Defect::NotOurs),
            ("number", forged(header(), |claims| claims["jti"] = json!("-1")), Defect::NotOurs),
            ("tickets", forged(header(), |claims| claims["tickets"] = json!(-1)), Defect::NotOurs),
            ("no signature", format!("{signed}."), Defect::NotOurs),
            ("two parts", signed.to_owned(), Defect::Malformed),
            ("not a token", "alice".to_owned(), Defect::Malformed),
            ("empty", String::new(), Defect::Malformed),
            ("long", "a".repeat(10_000), Defect::Malformed),
        ];
        for (name, token, defect) in cases {
            assert_eq!(check(&token), Err(defect), "{name}");
        }
    }

    #[test]
    fn a_token_is_refused_before_the_time_that_it_names() {
        let from = |nbf: i64| check(&forged(header(), |claims| claims["nbf"] = json!(nbf)));
        let now = NOW.ms() / 1000;
        assert_eq!(from(now + 1), Err(Defect::NotYet));
        assert_eq!(from(now + 3600), Err(Defect::NotYet));
        assert!(from(now).is_ok() && from(now - 3600).is_ok());
    }

    #[test]
    fn an_order_has_no_more_tickets_than_were_admitted() {
        let token = AdmissionKeys::new([NEW]).sign(&grant(), NOW).unwrap();
        let admission = check(&token).unwrap();
        let line = |count| RequestedLine {
            line: Line {
                tier: TierId::new("a").unwrap(),
                legs: Legs::ONE,
                choice: Choice::Best { count, together: Together::Preferred },
            },
            price_minor: MinorUnits(1),
            attendees: Vec::new(),
        };
        assert_eq!(admission.check_tickets(&[line(1), line(1)]), Ok(()));
        let three = admission.check_tickets(&[line(2), line(1)]);
        assert_eq!(three, Err(Defect::TooManyTickets(2)));
    }

    #[test]
    fn debug_names_the_keys_only() {
        assert_eq!(format!("{:?}", AdmissionKeys::new([NEW, OLD])), r#"["2026-02", "2026-01"]"#);
    }
}
