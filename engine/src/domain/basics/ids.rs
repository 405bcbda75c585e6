//! The names of things, as types that cannot be mixed up.
//!
//! Identifiers are untrusted input. Each type has one constructor, which refuses what
//! would be ambiguous in a Redis key, a DynamoDB key or a URL, so that nothing behind it needs to
//! escape anything.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be {rule}")]
pub struct InvalidId {
    /// The kind of name that the text should have been, for example `sale id`.
    pub kind: &'static str,
    /// The rule it breaks, in words.
    pub rule: &'static str,
}

/// True for `a-z`, `0-9` and `-`, one to `longest` of them, neither first nor last a `-`.
fn is_slug(text: &str, longest: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= longest
        && text.bytes().all(allowed)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// True for one to `longest` bytes of text without control characters or surrounding blanks.
fn is_plain_text(text: &str, longest: usize) -> bool {
    !text.is_empty()
        && text.len() <= longest
        && text.trim() == text
        && !text.chars().any(char::is_control)
}

/// What a schema says of a slug of at most `longest` characters.
fn slug_schema(longest: usize) -> schemars::Schema {
    let inner = longest - 2;
    schemars::json_schema!({
        "type": "string",
        "pattern": format!("^[a-z0-9]([a-z0-9-]{{0,{inner}}}[a-z0-9])?$")
    })
}

/// What a schema says of text of at most `longest` bytes, without control characters, surrounding
/// blanks and `without`. Schemas count characters, of which there may be fewer than bytes.
fn plain_text_schema(longest: usize, without: &str) -> schemars::Schema {
    let inner = format!(r"[^{without}\u0000-\u001f\u007f-\u009f]");
    let outer = format!(r"[^{without}\s\u0000-\u001f\u007f-\u009f]");
    schemars::json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": longest,
        "pattern": format!("^{outer}({inner}*{outer})?$")
    })
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $most:literal, $kind:literal, $rule:literal, $accepts:expr, $schema:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The longest text, in bytes.
            pub const MAX_BYTES: usize = $most;

            /// Checks and wraps a text.
            ///
            /// # Errors
            #[doc = concat!("Refuses a text that is not ", $rule, ".")]
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(&text) {
                    Ok(Self(text))
                } else {
                    Err(InvalidId { kind: $kind, rule: $rule })
                }
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema: schemars::Schema = $schema;
                schema.insert("description".to_owned(), concat!($kind, ": ", $rule).into());
                schema
            }
        }
    };
}

text_id!(
    /// A deployment among all that share an account at a payment provider. Every payment that it starts carries it, so
    /// that one deployment never acts on the payments of another. Nine characters leave room for an order's number and
    /// an attempt's in the 32 that WeChat Pay gives a trade number.
    DeploymentId, 9, "deployment id", "4 to 9 of a-z and 0-9",
    |text| (4..=DeploymentId::MAX_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()),
    schemars::json_schema!({ "type": "string", "pattern": "^[a-z0-9]{4,9}$" })
);
text_id!(
    /// A sale: a show on a date, or a train on a date. Part of every Redis and DynamoDB key.
    SaleId, 64, "sale id", "1 to 64 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, SaleId::MAX_BYTES), slug_schema(SaleId::MAX_BYTES)
);
text_id!(
    /// A tier of a sale: a price tier, or a seat class on a train. Part of Redis keys.
    TierId, 32, "tier id", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, TierId::MAX_BYTES), slug_schema(TierId::MAX_BYTES)
);
text_id!(
    /// A group of a waiting room, such as a presale or a fan club: it has a draw and a share of its own.
    GroupId, 32, "group id", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, GroupId::MAX_BYTES), slug_schema(GroupId::MAX_BYTES)
);

impl GroupId {
    /// The group of a room that has no other: everybody.
    #[must_use]
    pub fn all() -> Self {
        Self("all".to_owned())
    }
}

text_id!(
    /// A buyer: the `sub` claim that the authorizer verified. A decimal integer is its own gene.
    UserId, 128, "user id", "1 to 128 bytes without control characters or #", |text| is_plain_text(text, UserId::MAX_BYTES) && !text.contains('#'), plain_text_schema(UserId::MAX_BYTES, "#")
);
text_id!(
    /// The person who will use a ticket (an id document or a passenger number).
    AttendeeId, 64, "attendee id", "1 to 64 bytes without control characters or #", |text| is_plain_text(text, AttendeeId::MAX_BYTES) && !text.contains('#'), plain_text_schema(AttendeeId::MAX_BYTES, "#")
);
text_id!(
    /// A door, as the people who check tickets there call it.
    DoorName, 32, "door", "1 to 32 bytes without control characters or #", |text| is_plain_text(text, DoorName::MAX_BYTES) && !text.contains('#'), plain_text_schema(DoorName::MAX_BYTES, "#")
);
text_id!(
    /// The name of a seat, unique within its sale, as printed on the ticket.
    SeatName, 64, "seat name", "1 to 64 bytes without control characters", |text| is_plain_text(text, SeatName::MAX_BYTES), plain_text_schema(SeatName::MAX_BYTES, "")
);
text_id!(
    /// A stop of a train: the operator's own code, kept and shown as it is. Part of no key of Redis or
    /// DynamoDB, where a stop is its index in the sale, so it may have blanks and be long; the query of
    /// a URL carries it percent-encoded.
    StopId, 255, "stop id", "1 to 255 bytes without control characters",
    |text| is_plain_text(text, StopId::MAX_BYTES), plain_text_schema(StopId::MAX_BYTES, "")
);
text_id!(
    /// One load of a sale into Redis. A script that finds another epoch than its caller knows answers
    /// `not_loaded`: the fence after a total loss of Redis.
    Epoch, 32, "epoch", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, Epoch::MAX_BYTES), slug_schema(Epoch::MAX_BYTES)
);
text_id!(
    /// A rule of the gate, as its operator named it, or one of the built-in limits.
    RuleId, 32, "rule id", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, RuleId::MAX_BYTES), slug_schema(RuleId::MAX_BYTES)
);
text_id!(
    /// What a client says of the device that it runs on. It can say anything, so it is a hint and no more.
    DeviceHint, 64, "device hint", "1 to 64 printable ASCII bytes without blanks",
    |text| !text.is_empty() && text.len() <= DeviceHint::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic()),
    schemars::json_schema!({ "type": "string", "pattern": "^[!-~]{1,64}$" })
);
text_id!(
    /// A payment provider, as named in the callback's path.
    ProviderId, 32, "provider", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, ProviderId::MAX_BYTES), slug_schema(ProviderId::MAX_BYTES)
);
text_id!(
    /// A merchant, for whom sales are sold.
    MerchantId, 32, "merchant", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, MerchantId::MAX_BYTES), slug_schema(MerchantId::MAX_BYTES)
);

impl MerchantId {
    /// The merchant of sales that name none: the deployment itself.
    #[must_use]
    pub fn house() -> Self {
        Self("house".to_owned())
    }
}

text_id!(
    /// A payment as its provider names it.
    PaymentId, 128, "payment id", "1 to 128 printable ASCII bytes without # or blank",
    |text| !text.is_empty() && text.len() <= PaymentId::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'),
    schemars::json_schema!({ "type": "string", "pattern": "^[!\"$-~]{1,128}$" })
);
text_id!(
    /// A dispute as its provider names it.
    DisputeId, 128, "dispute id", "1 to 128 printable ASCII bytes without # or blank",
    |text| !text.is_empty() && text.len() <= DisputeId::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'),
    schemars::json_schema!({ "type": "string", "pattern": "^[!\"$-~]{1,128}$" })
);
text_id!(
    /// A refund as its provider names it.
    ProviderRefundId, 128, "provider refund id", "1 to 128 printable ASCII bytes without # or blank",
    |text| !text.is_empty() && text.len() <= ProviderRefundId::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'),
    schemars::json_schema!({ "type": "string", "pattern": "^[!\"$-~]{1,128}$" })
);
text_id!(
    /// The name of a posting, which makes it once: a provider and its id of a payout, say.
    PostingKey, 128, "posting key", "1 to 128 printable ASCII bytes without # or blank",
    |text| !text.is_empty() && text.len() <= PostingKey::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'),
    schemars::json_schema!({ "type": "string", "pattern": "^[!\"$-~]{1,128}$" })
);
text_id!(
    /// Sales that take each other's tickets in exchange.
    ExchangeGroup, 32, "exchange group", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, ExchangeGroup::MAX_BYTES), slug_schema(ExchangeGroup::MAX_BYTES)
);
text_id!(
    /// A subscriber of facts: a webhook.
    SubscriberId, 32, "subscriber", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, SubscriberId::MAX_BYTES), slug_schema(SubscriberId::MAX_BYTES)
);
text_id!(
    /// A place in a provider's list, as the provider names the entry before it.
    PageMark, 128, "page mark", "1 to 128 printable ASCII bytes",
    |text| !text.is_empty() && text.len() <= PageMark::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic()),
    schemars::json_schema!({ "type": "string", "pattern": "^[!-~]{1,128}$" })
);
text_id!(
    /// One run of the reader of a provider's list. Its lease on the cursor is of this name, which no
    /// other run has.
    ReaderId, 32, "reader", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, ReaderId::MAX_BYTES), slug_schema(ReaderId::MAX_BYTES)
);
text_id!(
    /// An addition of tokens to a gate by hand: repeated with the same id, it adds nothing.
    AdditionId, 32, "addition id", "1 to 32 of a-z, 0-9 and - (not first or last)", |text| is_slug(text, AdditionId::MAX_BYTES), slug_schema(AdditionId::MAX_BYTES)
);
text_id!(
    /// The fingerprint of what an order asks for: 16 hexadecimal digits. The same token with
    /// another fingerprint is refused.
    RequestFingerprint, 16, "content fingerprint", "16 hexadecimal digits",
    |text| text.len() == RequestFingerprint::MAX_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()),
    schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
);

/// A seat of a tier: its bit in each leg's bitmap, counted row by row (see [`crate::domain::sale::layout`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seat(pub u32);

/// A leg of a sale: its index, counted from 0. Leg 0 runs from stop 0 to stop 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Leg(pub u16);

impl Leg {
    /// The legs of a sale that has `count` of them.
    pub fn first(count: u16) -> impl DoubleEndedIterator<Item = Self> {
        (0..count).map(Self)
    }

    /// The leg as an index of what has one entry a leg.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Decimal digits, as they stand in Redis keys and DynamoDB attributes.
impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Leg {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// The legs of a journey, half-open: from stop `from` to stop `to` are legs `from..to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Legs {
    from: u16,
    to: u16,
}

impl Legs {
    /// The only leg of a concert.
    pub const ONE: Self = Self { from: 0, to: 1 };

    /// A journey over legs `from..to`.
    ///
    /// Returns `None` unless `from < to`.
    #[must_use]
    pub fn new(from: u16, to: u16) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// The first leg; also the index of the stop where the journey begins.
    #[must_use]
    pub fn from(self) -> u16 {
        self.from
    }

    /// One past the last leg; also the index of the stop where the journey ends.
    #[must_use]
    pub fn to(self) -> u16 {
        self.to
    }

    /// Number of legs of the journey.
    #[must_use]
    pub fn count(self) -> u16 {
        self.to - self.from
    }

    /// Each leg of the journey.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Leg> {
        (self.from..self.to).map(Leg)
    }
}

/// The part of a sale that lies in one slot of Redis: all of its tiers, or one of them if the sale keeps its tiers
/// apart. Every script works on one inventory, and every key of an inventory has its hash tag.
///
/// [`Sale::inventory_of`](crate::domain::sale::Sale::inventory_of) says which one a tier is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InventoryId {
    sale: SaleId,
    tier: Option<TierId>,
}

impl InventoryId {
    /// The inventory of a sale that keeps its tiers together.
    #[must_use]
    pub fn whole(sale: SaleId) -> Self {
        Self { sale, tier: None }
    }

    /// The inventory of one tier of a sale that keeps its tiers apart.
    #[must_use]
    pub fn of_tier(sale: SaleId, tier: TierId) -> Self {
        Self { sale, tier: Some(tier) }
    }

    /// The inventory that a message or a key names: `tier` if its sale keeps its tiers apart.
    #[must_use]
    pub fn from_parts(sale: SaleId, tier: Option<TierId>) -> Self {
        Self { sale, tier }
    }

    /// The sale.
    #[must_use]
    pub fn sale(&self) -> &SaleId {
        &self.sale
    }

    /// The tier; `None` if all tiers of the sale are in it.
    #[must_use]
    pub fn tier(&self) -> Option<&TierId> {
        self.tier.as_ref()
    }

    /// The inventory of the same sale that has a tier.
    #[must_use]
    pub fn with_tier(&self, tier: &TierId) -> Self {
        let tier = self.tier.as_ref().map(|_| tier.clone());
        Self { sale: self.sale.clone(), tier }
    }
}

/// The hash tag: `sale`, or `sale/tier`.
impl fmt::Display for InventoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tier {
            None => self.sale.fmt(f),
            Some(tier) => write!(f, "{}/{tier}", self.sale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_refuse_what_keys_could_not_carry() {
        for bad in ["", "-a", "a-", "A", "a b", "a#b", "a{b}", "a:b", &"x".repeat(65)] {
            assert!(SaleId::new(bad).is_err(), "{bad:?} was taken as a sale id");
        }
        assert!(SaleId::new("taipei-2026-11-21").is_ok());
        for bad in ["", " alice", "al\u{0}ice", "a#b", &"x".repeat(129)] {
            assert!(UserId::new(bad).is_err(), "{bad:?} was taken as a user id");
        }
        assert!(UserId::new("auth0|张三").is_ok());
        assert!(PaymentId::new("pi_3 x").is_err());
        for bad in ["", " A", "A ", "A\nB", "A\u{7f}", &"é".repeat(128)] {
            assert!(StopId::new(bad).is_err(), "{bad:?} was taken as a stop id");
        }
        for good in
            ["007", "StopPoint:OCECorail Intercité-87184002", "a&b#c%20+d", &"x".repeat(255)]
        {
            assert_eq!(
                StopId::new(good).map(String::from).as_deref(),
                Ok(good),
                "it is kept as it is"
            );
        }
        assert!(RequestFingerprint::new("0123456789abcdeF").is_err());
    }

    #[test]
    fn an_inventory_is_a_sale_or_one_of_its_tiers() {
        let (sale, tier) = (SaleId::new("s").unwrap(), |id: &str| TierId::new(id).unwrap());
        let whole = InventoryId::whole(sale.clone());
        assert_eq!((whole.to_string().as_str(), whole.tier()), ("s", None));
        assert_eq!(whole.with_tier(&tier("b")), whole);
        let one = InventoryId::of_tier(sale, tier("a"));
        assert_eq!(one.to_string(), "s/a");
        assert_eq!(one.with_tier(&tier("b")).to_string(), "s/b");
    }

    #[test]
    fn legs_are_never_empty() {
        assert!(Legs::new(2, 2).is_none());
        assert!(Legs::new(3, 2).is_none());
        let journey = Legs::new(1, 4).unwrap();
        assert_eq!(journey.count(), 3);
        assert!(journey.iter().eq([Leg(1), Leg(2), Leg(3)]));
        assert!(Leg::first(2).eq([Leg(0), Leg(1)]));
    }

    #[test]
    fn a_leg_is_a_bare_number_wherever_it_is_written() {
        assert_eq!(Leg(14).to_string(), "14");
        assert_eq!("14".parse(), Ok(Leg(14)));
        assert!("-1".parse::<Leg>().is_err());
        assert_eq!(serde_json::to_string(&Leg(14)).unwrap(), "14");
        assert_eq!(serde_json::from_str::<Leg>("14").unwrap(), Leg(14));
    }
}
