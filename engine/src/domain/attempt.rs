//! An attempt to pay an order at a provider: what is asked of the provider, and what it answers.
//!
//! The attempt has its name before it is made: [`AttemptKey`], by which the provider knows it too, so that
//! a lost answer is found by sending the very same request again.

use std::collections::BTreeMap;
use std::fmt;

use super::ids::{InvalidId, PaymentId, ProviderId};
use super::number::OrderNumber;
use super::order::{Capture, Order};
use super::time::Timestamp;

/// Most attempts of one order.
pub const MAX_ATTEMPTS: u8 = 8;
/// Most bytes of a [`ReturnUrl`]; Alipay takes no more.
/// Source: <https://docs.open.alipay.com/api_1/alipay.trade.page.pay>
pub const MAX_RETURN_URL_BYTES: usize = 256;

/// The number of an attempt within its order: 1 to [`MAX_ATTEMPTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNumber(u8);

impl AttemptNumber {
    /// The first attempt of an order.
    pub const FIRST: Self = Self(1);

    /// A number; `None` unless it is 1 to [`MAX_ATTEMPTS`].
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number >= 1 && number <= MAX_ATTEMPTS { Some(Self(number)) } else { None }
    }

    /// Every number, the first one first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=MAX_ATTEMPTS).map(Self)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for AttemptNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of an attempt, unique among all orders, as text `<order>-<n>`: the idempotency key of its
/// start, and the name by which its provider knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    /// The order.
    pub order: OrderNumber,
    /// The number of the attempt within it.
    pub number: AttemptNumber,
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.order, self.number)
    }
}

impl std::str::FromStr for AttemptKey {
    type Err = InvalidId;
    /// Reads what `Display` writes, and nothing else: one attempt has one text.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { kind: "attempt", rule: "an order number, - and 1 to 8" };
        let (order, number) = text.split_once('-').ok_or_else(|| invalid.clone())?;
        let number = match number.as_bytes() {
            [digit @ b'1'..=b'9'] => AttemptNumber::new(digit - b'0'),
            _ => None,
        };
        Ok(Self { order: order.parse()?, number: number.ok_or(invalid)? })
    }
}

/// The page to which a provider sends the buyer back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReturnUrl(String);

impl ReturnUrl {
    /// Wraps a text that is an `http://` or `https://` address. Whether its origin is one of the
    /// deployment's is for the caller to check.
    ///
    /// # Errors
    /// Refuses other schemes, more than [`MAX_RETURN_URL_BYTES`], and what is not printable ASCII.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let is_address = text.starts_with("https://") || text.starts_with("http://");
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_address && is_plain && text.len() <= MAX_RETURN_URL_BYTES {
            Ok(Self(text))
        } else {
            let rule = "an http:// or https:// address of at most 256 printable ASCII characters";
            Err(InvalidId { kind: "return URL", rule })
        }
    }

    /// The address.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How the buyer pays at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaymentMethod {
    /// On a page of the provider's, to which the buyer goes.
    Page,
    /// On a form of the seller's own, with a client secret.
    Form,
    /// By a QR code that the buyer scans.
    Code,
    /// In the provider's own app, with parameters for it.
    InApp,
}

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptState {
    /// Money may come of it.
    Open,
    /// No money can come of it any more.
    Closed,
}

/// One attempt to pay an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Its number within the order.
    pub number: AttemptNumber,
    /// The provider.
    pub provider: ProviderId,
    /// How the buyer pays.
    pub method: PaymentMethod,
    /// Where the provider sends the buyer afterwards, if it does.
    pub return_url: Option<ReturnUrl>,
    /// Time of its start.
    pub started_at: Timestamp,
    /// The time after which the provider takes no money for it, as the provider is told.
    pub expires_at: Timestamp,
    /// The provider's own name of it; `None` before the provider has answered.
    pub reference: Option<PaymentId>,
    /// Its state.
    pub state: AttemptState,
}

impl Attempt {
    /// Its name as an attempt of this order.
    #[must_use]
    pub fn key(&self, order: OrderNumber) -> AttemptKey {
        AttemptKey { order, number: self.number }
    }
}

/// What is asked of a provider to start an attempt; the amount is the order's total.
#[derive(Debug, Clone, Copy)]
pub struct StartPayment<'a> {
    /// The order.
    pub order: &'a Order,
    /// The attempt.
    pub attempt: &'a Attempt,
}

/// What the buyer's client does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentStep {
    /// It goes to a page.
    Page {
        /// The address of the page.
        url: String,
    },
    /// It shows a form.
    Form {
        /// The secret with which the form speaks to the provider.
        client_secret: String,
    },
    /// It shows a QR code.
    Code {
        /// The text of the code.
        text: String,
    },
    /// It calls the provider's app.
    InApp {
        /// The parameters of the call, by name.
        parameters: BTreeMap<String, String>,
    },
}

/// The provider's answer to a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartReply {
    /// It waits for the buyer.
    Started {
        /// The provider's name of it.
        reference: PaymentId,
        /// What the client does next.
        step: PaymentStep,
    },
    /// It will not, and says why.
    Refused(String),
}

/// The provider's answer to a close.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReply {
    /// No money can come of it.
    Closed,
    /// It is paid.
    Paid(Capture),
    /// It cannot be closed for now: ask again.
    NotYet,
    /// The provider knows no such trade, and may yet come to know it (Alipay, until the buyer opens it):
    /// it counts as closed only after the attempt's `expires_at`.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_has_one_text() {
        let key: AttemptKey = "169218430493097984-8".parse().unwrap();
        assert_eq!((key.order.to_string().as_str(), key.number.get()), ("169218430493097984", 8));
        assert_eq!(key.to_string(), "169218430493097984-8");
        for bad in
            ["", "7", "7-", "-1", "7-0", "7-9", "7-01", "7-1-1", "07-1", "7_1", "7-+1", "7- 1"]
        {
            assert!(bad.parse::<AttemptKey>().is_err(), "{bad:?} was taken as an attempt");
        }
        assert_eq!(AttemptNumber::all().count(), usize::from(MAX_ATTEMPTS));
        assert_eq!((AttemptNumber::new(0), AttemptNumber::new(9)), (None, None));
    }

    #[test]
    fn a_return_url_is_an_address() {
        assert!(ReturnUrl::new("https://shop.example/paid?order=7").is_ok());
        let long = format!("https://{}", "a".repeat(MAX_RETURN_URL_BYTES));
        for bad in ["", "shop.example", "javascript:alert(1)", "https://a b", "https://é", &long] {
            assert!(ReturnUrl::new(bad).is_err(), "{bad:?} was taken as a return URL");
        }
    }
}
