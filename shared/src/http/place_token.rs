//! Place tokens: a buyer gets one on joining a waiting room. A place token names a buyer and an index, so the gate
//! computes the place from the token without asking a store.
//!
//! A place token is signed as [admission tokens](super::tokens) are, by the same keys, for an audience of its own.
//! A place token is no bearer token: it is checked together with the verified JWT of the same buyer, so a token that
//! leaks through a log or a shared link is of no use to others. The token does not expire; the place does.

use serde::{Deserialize, Serialize};

use super::identity::Buyer;
use super::tokens::{AdmissionKeys, Audience, ISSUER, NoKey, Unreadable};
use engine::domain::admission::room::draw::Member;
use engine::domain::admission::room::join::{Index, JoinWindow, Membership};
use engine::domain::basics::bytes::{Hash, Nonce};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;

/// Why a place token is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// The token is too long, or is no JWT.
    #[error("the place token cannot be read")]
    Malformed,
    /// The token is not signed with one of the keys, or its claims are not those of a place token.
    #[error("the place token's signature does not fit")]
    NotOurs,
    /// The token is for the room of another sale.
    #[error("the place is one of another sale")]
    OtherSale,
    /// The token was given to another buyer.
    #[error("the place was given to another buyer")]
    OtherBuyer,
}

impl From<Unreadable> for Defect {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Malformed => Self::Malformed,
            Unreadable::NotOurs => Self::NotOurs,
        }
    }
}

/// The claims as the token has them; the time is whole seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: UserId,
    sale: SaleId,
    group: GroupId,
    window: JoinWindow,
    index: u32,
    nonce: Nonce,
    iat: i64,
}

/// The proof that a buyer has an index of a room. Only [`AdmissionKeys::check_place`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    sale: SaleId,
    buyer: UserId,
    group: GroupId,
    index: Index,
    nonce: Nonce,
}

impl Place {
    /// The id of the group in which the buyer has the index.
    #[must_use]
    pub fn group(&self) -> &GroupId {
        &self.group
    }

    /// The buyer's index, with the window to which it belongs.
    #[must_use]
    pub fn index(&self) -> Index {
        self.index
    }

    /// The leaf that stands at the index, if the index takes part in the draw of a first window.
    #[must_use]
    pub fn leaf(&self) -> Hash {
        let Self { sale, buyer, group, index, nonce } = self;
        Member { sale, group, index: index.number, buyer, nonce: *nonce }.leaf()
    }
}

impl AdmissionKeys {
    /// Signs the place token of a membership, issued at `now`.
    ///
    /// # Errors
    /// Returns [`NoKey`] if there is no key.
    pub fn sign_place(&self, membership: &Membership, now: Timestamp) -> Result<String, NoKey> {
        let Membership { sale, group, buyer, index, nonce, .. } = membership;
        self.sign_claims(&Claims {
            iss: ISSUER.to_owned(),
            aud: Audience::Places.as_str().to_owned(),
            sub: buyer.clone(),
            sale: sale.clone(),
            group: group.clone(),
            window: index.window,
            index: index.number,
            nonce: *nonce,
            iat: now.ms().div_euclid(1000),
        })
    }

    /// Checks that a place token is signed with one of the keys, for this sale and this buyer.
    ///
    /// # Errors
    /// Returns the first [`Defect`].
    pub fn check_place(&self, token: &str, sale: &SaleId, buyer: &Buyer) -> Result<Place, Defect> {
        let claims: Claims = self.claims(token, Audience::Places)?;
        if claims.sale != *sale {
            return Err(Defect::OtherSale);
        }
        if claims.sub != *buyer.user() {
            return Err(Defect::OtherBuyer);
        }
        Ok(Place {
            sale: claims.sale,
            buyer: claims.sub,
            group: claims.group,
            index: Index { number: claims.index, window: claims.window },
            nonce: claims.nonce,
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use engine::domain::admission::room::slot::Asking;
    use engine::domain::basics::number::Mint;
    use serde_json::{Value, json};

    use super::super::tokens::Grant;
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_999);
    const OLD: (&str, &[u8]) = ("2026-01", b"0123456789abcdef0123456789abcdef");
    const NEW: (&str, &[u8]) = ("2026-02", b"fedcba9876543210fedcba9876543210");
    const NONCE: &str = "00112233445566778899aabbccddeeff";

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

    fn membership() -> Membership {
        Membership {
            sale: sale("g1"),
            group: GroupId::new("club").unwrap(),
            buyer: UserId::new("alice").unwrap(),
            index: Index { number: 4_711, window: JoinWindow::First },
            nonce: NONCE.parse().unwrap(),
            joined_at: NOW,
            more_time: false,
            rejoined: 0,
            visit: None,
            earlier: Vec::new(),
        }
    }

    fn keys() -> AdmissionKeys {
        AdmissionKeys::new([NEW, OLD])
    }

    fn check(token: &str) -> Result<Place, Defect> {
        keys().check_place(token, &sale("g1"), &buyer("alice"))
    }

    #[test]
    fn a_token_gives_the_place_of_the_membership() {
        let token = AdmissionKeys::new([NEW]).sign_place(&membership(), NOW).unwrap();
        let place = check(&token).unwrap();
        assert_eq!((place.group(), place.index()), (&membership().group, membership().index));
        assert_eq!(place.leaf(), membership().leaf());
        let later = Index { number: 4_712, window: JoinWindow::Later };
        let later = Membership { index: later, ..membership() };
        let place = check(&keys().sign_place(&later, NOW).unwrap()).unwrap();
        assert_eq!(place.index(), later.index);
        assert!(token.len() < 500, "{} bytes", token.len());
    }

    #[test]
    fn the_first_key_signs_and_every_key_is_accepted() {
        let by_old = AdmissionKeys::new([OLD, NEW]).sign_place(&membership(), NOW).unwrap();
        assert!(check(&by_old).is_ok());
        let without_old = AdmissionKeys::new([NEW]);
        let refused = without_old.check_place(&by_old, &sale("g1"), &buyer("alice"));
        assert_eq!(refused, Err(Defect::NotOurs));
        assert_eq!(AdmissionKeys::new([]).sign_place(&membership(), NOW), Err(NoKey));
    }

    #[test]
    fn another_sale_or_buyer_is_refused() {
        let token = keys().sign_place(&membership(), NOW).unwrap();
        let check = |id, user| keys().check_place(&token, &sale(id), &buyer(user)).map(drop);
        assert_eq!(check("g2", "alice"), Err(Defect::OtherSale));
        assert_eq!(check("g1", "bob"), Err(Defect::OtherBuyer));
        assert_eq!(check("g1", "alice"), Ok(()), "the control");
    }

    #[test]
    fn a_place_is_no_admission_and_an_admission_no_place() {
        let user = UserId::new("alice").unwrap();
        let order = Mint::new(7).mint(NOW, &user);
        let expires_at = NOW.plus_seconds(60);
        let grant = Grant {
            sale: sale("g1"),
            user,
            order,
            tickets: 2,
            expires_at,
            entry: None,
            asking: Asking::default(),
        };
        let admission = keys().sign(&grant, NOW).unwrap();
        assert_eq!(check(&admission), Err(Defect::NotOurs));
        let place = keys().sign_place(&membership(), NOW).unwrap();
        let admitted = keys().check(&place, &sale("g1"), &buyer("alice"), NOW);
        assert_eq!(admitted, Err(super::super::tokens::Defect::NotOurs));
    }

    /// A token with any header and claims, signed with HS256 unless the header says otherwise.
    fn forged(header: Value, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = json!({
            "iss": ISSUER, "aud": "onsale-places", "sub": "alice", "sale": "g1", "group": "club",
            "window": "first", "index": 4_711, "nonce": NONCE, "iat": 1_800_000_000
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
        let good = keys().sign_place(&membership(), NOW).unwrap();
        let (signed, _) = good.rsplit_once('.').unwrap();
        let alg = |alg: &str| json!({ "alg": alg, "typ": "JWT", "kid": NEW.0 });
        let with = |name: &str, value: Value| forged(header(), |claims| claims[name] = value);
        let cases: [(&str, String, Defect); 20] = [
            ("foreign key", foreign.sign_place(&membership(), NOW).unwrap(), Defect::NotOurs),
            ("alg none", forged(alg("none"), |_| {}), Defect::Malformed),
            ("alg HS384", forged(alg("HS384"), |_| {}), Defect::NotOurs),
            ("alg RS256", forged(alg("RS256"), |_| {}), Defect::NotOurs),
            ("no kid", forged(json!({ "alg": "HS256" }), |_| {}), Defect::NotOurs),
            ("unknown kid", forged(json!({ "alg": "HS256", "kid": "x" }), |_| {}), Defect::NotOurs),
            ("issuer", with("iss", json!("x")), Defect::NotOurs),
            ("audience", with("aud", json!("x")), Defect::NotOurs),
            ("both audiences", with("aud", json!(["onsale-orders", "x"])), Defect::NotOurs),
            ("group", with("group", json!("Club")), Defect::NotOurs),
            ("window", with("window", json!("second")), Defect::NotOurs),
            ("index", with("index", json!(-1)), Defect::NotOurs),
            ("index of 2^32", with("index", json!(4_294_967_296_u64)), Defect::NotOurs),
            ("nonce", with("nonce", json!("00")), Defect::NotOurs),
            ("no buyer", with("sub", json!(null)), Defect::NotOurs),
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
}
