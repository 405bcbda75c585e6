//! Attempts: the payments that were started for an order, and what is known of each.
//!
//! An attempt is written on its order before the provider is asked, with every parameter of that request. The order's
//! number and the attempt's are the idempotency key and the provider's own name of the attempt: a lost answer is found
//! by sending the same request again. The provider's reference and the step that the buyer takes next are written
//! before the buyer gets the step, and answer every repeated request. So an attempt without a reference is one that
//! nobody can pay (I14): it is closed without a call.
//!
//! One attempt is open at a time, so that a buyer who goes to another provider cannot pay at both. Beside it there may be
//! absent ones: pages that the buyer has chosen and not opened, so that their provider has nothing to close.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::basics::within_order::numbered_within_order;
use crate::domain::order::place::Place;

/// Most attempts of one order that were handed to its buyer, who then has the last one to pay by.
pub const MAX_HANDED: usize = 8;
/// Most attempts of one order. Those that a provider has failed to start have a number, too.
pub const MAX_ATTEMPTS: u8 = 32;
/// Seconds for which an attempt that was answered once is answered again; after that another one is made.
/// Stripe keeps an idempotency key for a day.
/// Source: <https://docs.stripe.com/api/idempotent_requests>
const REPEATED_FOR_SECONDS: i64 = 20 * 60 * 60;
/// Seconds for which the code of an attempt is shown; after that the provider is asked for another one of the same attempt.
/// One of WeChat Pay's is good for two hours.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
const CODE_SECONDS: i64 = 100 * 60;

/// Most times that the provider of an attempt that was given up is asked about it.
pub const MAX_ASKS: u8 = 8;
/// Seconds from an attempt's expiry until the first of them, and from one to the next.
const FIRST_ASK_SECONDS: i64 = 60 * 60;
const ASK_EVERY_SECONDS: i64 = 24 * 60 * 60;

numbered_within_order!(
    /// The number of an attempt within its order, from 1 to [`MAX_ATTEMPTS`].
    AttemptNumber, MAX_ATTEMPTS,
    /// A number that no attempt has.
    InvalidAttempt, "an attempt's number is from 1 to {MAX_ATTEMPTS}"
);

impl AttemptNumber {
    /// Every number, lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=MAX_ATTEMPTS).map(Self)
    }
}

impl FromStr for AttemptNumber {
    type Err = InvalidAttempt;
    fn from_str(text: &str) -> Result<Self, InvalidAttempt> {
        let number: u8 = text.parse().map_err(|_| InvalidAttempt)?;
        // One text for each number: `+1` and `01` are none.
        Self::try_from(number)
            .and_then(|number| (number.to_string() == text).then_some(number).ok_or(InvalidAttempt))
    }
}

/// The name of an attempt among all orders, as providers know it: `<order>-<attempt>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey {
    pub order: OrderNumber,
    /// The attempt's number within it.
    pub number: AttemptNumber,
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.order, self.number)
    }
}

impl FromStr for AttemptKey {
    type Err = InvalidAttempt;
    fn from_str(text: &str) -> Result<Self, InvalidAttempt> {
        let (order, number) = text.split_once('-').ok_or(InvalidAttempt)?;
        let order = order.parse().map_err(|_| InvalidAttempt)?;
        Ok(Self { order, number: number.parse()? })
    }
}

/// What a buyer pays with at a provider.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PaymentMethod {
    /// A page of the provider's to go to.
    Page,
    /// A form of the seller's own, which the provider's script fills with its fields.
    Form,
    /// A code for the provider's app to scan.
    Code,
}

impl PaymentMethod {
    /// Every method, for tables and tests.
    pub const ALL: [Self; 3] = [Self::Page, Self::Form, Self::Code];

    /// The method as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Form => "form",
            Self::Code => "code",
        }
    }
}

/// What a buyer's client does next to pay. Whoever has it can pay the attempt, so it is shown to the order's buyer alone,
/// and its [`Debug`] says only what it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaymentStep {
    /// Goes to the page at this address.
    Page(String),
    /// Fills in a form with the provider's script, by this secret of the payment.
    Form(String),
    /// Shows this text as a code.
    Code(String),
}

impl PaymentStep {
    /// What is paid with by it.
    #[must_use]
    pub const fn method(&self) -> PaymentMethod {
        match self {
            Self::Page(_) => PaymentMethod::Page,
            Self::Form(_) => PaymentMethod::Form,
            Self::Code(_) => PaymentMethod::Code,
        }
    }

    /// The address, secret or text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Page(text) | Self::Form(text) | Self::Code(text) => text,
        }
    }

    /// The step of a method, from its text.
    #[must_use]
    pub fn of(method: PaymentMethod, text: String) -> Self {
        match method {
            PaymentMethod::Page => Self::Page(text),
            PaymentMethod::Form => Self::Form(text),
            PaymentMethod::Code => Self::Code(text),
        }
    }
}

impl fmt::Debug for PaymentStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PaymentStep({})", self.method().as_str())
    }
}

/// What is known of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttemptState {
    /// It may be paid, unless it has paid its order.
    Open,
    /// Its provider has closed it, or never had it: no money comes by it.
    Closed,
    /// Its provider did not close it in time. It is asked about again ([`Attempt::asked_at`]); money that comes by it is
    /// decided as any other that is late.
    GivenUp,
}

impl AttemptState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 3] = [Self::Open, Self::Closed, Self::GivenUp];

    /// The state as it is written in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::GivenUp => "given_up",
        }
    }
}

/// The address that a buyer comes back to from a provider's page: absolute, `https` or `http`, of printable
/// ASCII without quotation marks, `<`, `>`, `\` and blanks. Whose address it is is not looked at here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReturnUrl(String);

/// A text that is no [`ReturnUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "return_url must be an https or http address of at most {} printable ASCII characters",
    ReturnUrl::MAX_BYTES
)]
pub struct InvalidReturnUrl;

impl ReturnUrl {
    /// The longest address, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Checks and wraps an address.
    ///
    /// # Errors
    /// [`InvalidReturnUrl`] for any other text.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidReturnUrl> {
        let text = text.into();
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"'<>\\`".contains(&byte);
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        let is_one = is_web && text.len() <= Self::MAX_BYTES && text.bytes().all(fits);
        is_one.then_some(Self(text)).ok_or(InvalidReturnUrl)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ReturnUrl {
    type Error = InvalidReturnUrl;
    fn try_from(text: String) -> Result<Self, InvalidReturnUrl> {
        Self::new(text)
    }
}

impl FromStr for ReturnUrl {
    type Err = InvalidReturnUrl;
    fn from_str(text: &str) -> Result<Self, InvalidReturnUrl> {
        Self::new(text)
    }
}

impl From<ReturnUrl> for String {
    fn from(url: ReturnUrl) -> Self {
        url.0
    }
}

impl fmt::Display for ReturnUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a buyer chose to pay with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentChoice {
    pub provider: ProviderId,
    /// What is paid with there.
    pub method: PaymentMethod,
    /// Where the buyer comes back to; without a page nobody goes anywhere.
    pub return_url: Option<ReturnUrl>,
}

/// A payment that was started, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// Its number within its order.
    pub number: AttemptNumber,
    /// What the buyer chose.
    pub choice: PaymentChoice,
    /// The time at which it was written, before its provider was asked.
    pub started_at: Timestamp,
    /// The time at which the provider ends the attempt if nobody else does: at the order's deadline, or as soon after
    /// it as the provider allows.
    pub expires_at: Timestamp,
    /// The deployment's id that its payment carries, in the names that the provider has of it; `None` if it was started
    /// before payments carried one. Kept, so that the same names are sent for it whatever the deployment's id is later.
    pub deployment: Option<DeploymentId>,
    /// The provider's name of it, once it has answered.
    pub reference: Option<PaymentId>,
    /// True if its step is given to its buyer only once its reference is on the order. False for attempts of releases up
    /// to 0.2, which gave it out whether or not the reference could be written.
    pub is_named_first: bool,
    /// What its buyer does next, from the write of the reference until the attempt or the order ends.
    pub step: Option<PaymentStep>,
    /// True if its provider had none of its name when its buyer chose otherwise: its page was not opened. It may be opened
    /// until its expiry, and another attempt may be open beside it.
    pub is_absent: bool,
    /// How often its provider was asked about it since it was given up; at most [`MAX_ASKS`].
    pub asks: u8,
    /// What is known of it.
    pub state: AttemptState,
}

impl Attempt {
    /// Its name among all orders.
    #[must_use]
    pub const fn key(&self, order: OrderNumber) -> AttemptKey {
        AttemptKey { order, number: self.number }
    }

    /// True if a request for this choice is answered with this very attempt.
    #[must_use]
    pub fn answers(&self, choice: &PaymentChoice, now: Timestamp) -> bool {
        self.choice == *choice && now < self.started_at.plus_seconds(REPEATED_FOR_SECONDS)
    }

    /// What its buyer does next, if that can still be done: a code ends before its attempt.
    #[must_use]
    pub fn step_at(&self, now: Timestamp) -> Option<&PaymentStep> {
        let is_code = self.choice.method == PaymentMethod::Code;
        let is_over = is_code && self.started_at.plus_seconds(CODE_SECONDS) <= now;
        self.step.as_ref().filter(|_| !is_over)
    }

    /// When its provider is asked again whether it was paid, once it was given up: an hour after its expiry, then daily for
    /// a week. `None` if it was not given up, or was asked about often enough.
    #[must_use]
    pub fn asked_at(&self) -> Option<Timestamp> {
        let is_asked = self.state == AttemptState::GivenUp && self.asks < MAX_ASKS;
        let after = FIRST_ASK_SECONDS + i64::from(self.asks) * ASK_EVERY_SECONDS;
        is_asked.then(|| self.expires_at.plus_seconds(after))
    }

    /// True if its buyer may have been given the step, so that money may come by it. The others are closed without a call
    /// (I14).
    #[must_use]
    pub const fn may_be_handed(&self) -> bool {
        self.reference.is_some() || !self.is_named_first
    }
}

/// The attempts of an order, each with its number in the order in which they were started.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempts {
    /// All of them; at most [`MAX_ATTEMPTS`].
    pub all: Vec<Attempt>,
    /// How often they were written: whoever changes them, or ends the order, says which it has seen.
    pub version: u32,
    /// The one that paid the order.
    pub paid: Option<AttemptNumber>,
    /// The starts that its buyer waits for, at most one a provider. They go when the order is paid or ends.
    pub places: Vec<Place>,
    /// The time to which a place has extended the order; written once.
    pub extended_to: Option<Timestamp>,
}

impl Attempts {
    /// The attempts that may still bring money, apart from the one that paid.
    pub fn open(&self) -> impl Iterator<Item = &Attempt> {
        let is_open = |attempt: &&Attempt| {
            attempt.state == AttemptState::Open && Some(attempt.number) != self.paid
        };
        self.all.iter().filter(is_open)
    }

    /// The ones that were given up and are to be asked about by now.
    pub fn asked_again(&self, now: Timestamp) -> impl Iterator<Item = &Attempt> {
        self.given_up().filter(move |attempt| attempt.asked_at().is_some_and(|at| at <= now))
    }

    /// When the first of those that were given up is asked about again.
    #[must_use]
    pub fn asked_at(&self) -> Option<Timestamp> {
        self.given_up().filter_map(Attempt::asked_at).min()
    }

    /// The ones that were given up, apart from the one that paid.
    fn given_up(&self) -> impl Iterator<Item = &Attempt> {
        let is_given_up = |attempt: &&Attempt| {
            attempt.state == AttemptState::GivenUp && Some(attempt.number) != self.paid
        };
        self.all.iter().filter(is_given_up)
    }

    /// Those that the buyer may have, so that money may come by them.
    pub fn handed(&self) -> impl Iterator<Item = &Attempt> {
        self.all.iter().filter(|attempt| attempt.may_be_handed())
    }

    /// The one that is open and not absent: another one is started only once it is closed or absent.
    #[must_use]
    pub fn current(&self) -> Option<&Attempt> {
        self.open().find(|attempt| !attempt.is_absent)
    }

    /// The time from which it is late that attempts are open of an order that was paid or has ended at `ended_at`: an absent
    /// one is until its expiry. `None` if none is open.
    #[must_use]
    pub fn open_since(&self, ended_at: Timestamp) -> Option<Timestamp> {
        let since = |attempt: &Attempt| {
            if attempt.is_absent { attempt.expires_at.max(ended_at) } else { ended_at }
        };
        self.open().map(since).min()
    }

    /// True if an attempt may still bring money, apart from the one that paid.
    #[must_use]
    pub fn any_open(&self) -> bool {
        self.open().next().is_some()
    }

    /// An attempt by its number.
    #[must_use]
    pub fn get(&self, number: AttemptNumber) -> Option<&Attempt> {
        self.all.iter().find(|attempt| attempt.number == number)
    }

    /// Adds an open attempt of this choice, which carries `deployment` and which its provider ends at `expires_at`; returns
    /// the attempts with its number. `None` if there are [`MAX_ATTEMPTS`] already, or [`MAX_HANDED`] that a buyer may have.
    #[must_use]
    pub fn with_another(
        &self,
        choice: &PaymentChoice,
        deployment: Option<&DeploymentId>,
        expires_at: Timestamp,
        now: Timestamp,
    ) -> Option<(Self, AttemptNumber)> {
        if self.handed().count() >= MAX_HANDED {
            return None;
        }
        let last = self.all.last().map_or(0, |attempt| attempt.number.get());
        let number = AttemptNumber::try_from(last.checked_add(1)?).ok()?;
        let another = Attempt {
            number,
            choice: choice.clone(),
            started_at: now,
            expires_at,
            deployment: deployment.cloned(),
            reference: None,
            is_named_first: true,
            step: None,
            is_absent: false,
            asks: 0,
            state: AttemptState::Open,
        };
        let all = self.all.iter().cloned().chain([another]).collect();
        Some((self.next(all), number))
    }

    /// The attempts with the provider's answer to one: its name, and what the buyer does next.
    #[must_use]
    pub fn with_answer(
        &self,
        number: AttemptNumber,
        reference: &PaymentId,
        step: &PaymentStep,
    ) -> Self {
        self.changed(number, |attempt| {
            attempt.reference = Some(reference.clone());
            attempt.step = Some(step.clone());
        })
    }

    /// The attempts with one that its provider has none of, or that its buyer has come back to.
    #[must_use]
    pub fn with_absent(&self, number: AttemptNumber, is_absent: bool) -> Self {
        self.changed(number, |attempt| attempt.is_absent = is_absent)
    }

    /// The attempts with one that was given up and of whose provider nothing new was heard.
    #[must_use]
    pub fn with_ask(&self, number: AttemptNumber) -> Self {
        self.changed(number, |attempt| attempt.asks = attempt.asks.saturating_add(1))
    }

    /// The attempts with one of them in a state. One that is not open has no step.
    #[must_use]
    pub fn with_state(&self, number: AttemptNumber, state: AttemptState) -> Self {
        self.changed(number, |attempt| {
            attempt.state = state;
            attempt.step = attempt.step.take().filter(|_| state == AttemptState::Open);
        })
    }

    /// The attempts of an order that is paid or has ended: nobody takes a step any more, or waits for a start.
    #[must_use]
    pub fn without_steps(mut self) -> Self {
        self.all.iter_mut().for_each(|attempt| attempt.step = None);
        self.places.clear();
        self
    }

    /// The order's place at a provider.
    #[must_use]
    pub fn place_at(&self, provider: &ProviderId) -> Option<&Place> {
        self.places.iter().find(|place| place.provider == *provider)
    }

    /// These attempts without the place at a provider, to be written along with something else.
    #[must_use]
    pub fn without_place(mut self, provider: &ProviderId) -> Self {
        self.places.retain(|place| place.provider != *provider);
        self
    }

    /// The attempts once the place at a provider is used.
    #[must_use]
    pub fn with_place_used(&self, provider: &ProviderId) -> Self {
        let without = self.clone().without_place(provider);
        Self { places: without.places, ..self.next(without.all) }
    }

    /// The attempts with a place in that of the same provider's, and the time to which it extends the order, if it does.
    #[must_use]
    pub fn with_place(&self, place: Place, extends_to: Option<Timestamp>) -> Self {
        let mut placed = self.clone().without_place(&place.provider);
        placed.places.push(place);
        let extended_to = extends_to.or(self.extended_to);
        Self { places: placed.places, extended_to, ..self.next(placed.all) }
    }

    fn changed(&self, number: AttemptNumber, change: impl Fn(&mut Attempt)) -> Self {
        let mut all = self.all.clone();
        all.iter_mut().filter(|attempt| attempt.number == number).for_each(change);
        self.next(all)
    }

    /// These attempts, as the next write after `self`.
    fn next(&self, all: Vec<Attempt>) -> Self {
        let (places, extended_to) = (self.places.clone(), self.extended_to);
        let version = self.version.saturating_add(1);
        Self { all, version, paid: self.paid, places, extended_to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn choice(provider: &str) -> PaymentChoice {
        PaymentChoice {
            provider: ProviderId::new(provider).unwrap(),
            method: PaymentMethod::Page,
            return_url: None,
        }
    }

    #[test]
    fn attempts_are_numbered_and_bounded() {
        let mut attempts = Attempts::default();
        for expected in 1..=MAX_ATTEMPTS {
            let (next, number) = attempts.with_another(&choice("stripe"), None, NOW, NOW).unwrap();
            assert_eq!((number.get(), next.version), (expected, u32::from(expected)));
            attempts = next;
        }
        assert_eq!(attempts.with_another(&choice("stripe"), None, NOW, NOW), None);
        assert_eq!(attempts.open().count(), usize::from(MAX_ATTEMPTS));
        let paid = Attempts { paid: Some(AttemptNumber::FIRST), ..attempts.clone() };
        assert_eq!(paid.open().count(), usize::from(MAX_ATTEMPTS) - 1, "it has done what it could");
        let closed = attempts.with_state(AttemptNumber::FIRST, AttemptState::Closed);
        assert_eq!(closed.open().count(), usize::from(MAX_ATTEMPTS) - 1);
        assert_eq!(closed.version, attempts.version + 1);
    }

    #[test]
    fn only_what_a_buyer_may_have_counts_towards_the_bound_of_a_buyer() {
        let handed = |is_named_first: bool, reference: Option<&str>| {
            let mut attempts = Attempts::default();
            for _ in 0..MAX_HANDED {
                attempts = attempts.with_another(&choice("stripe"), None, NOW, NOW).unwrap().0;
            }
            for attempt in &mut attempts.all {
                attempt.is_named_first = is_named_first;
                attempt.reference = reference.map(|name| PaymentId::new(name).unwrap());
            }
            attempts
        };
        let may_go_on =
            |attempts: Attempts| attempts.with_another(&choice("a"), None, NOW, NOW).is_some();
        assert!(may_go_on(handed(true, None)));
        assert!(!may_go_on(handed(true, Some("cs_1"))));
        assert!(!may_go_on(handed(false, None)), "of before attempts were named first");
    }

    #[test]
    fn what_was_given_up_is_asked_about_after_an_hour_and_then_daily_for_a_week() {
        let (mut attempts, number) =
            Attempts::default().with_another(&choice("a"), None, NOW, NOW).unwrap();
        assert_eq!(attempts.asked_at(), None, "it is open");
        attempts = attempts.with_state(number, AttemptState::GivenUp);
        let mut days = Vec::new();
        while let Some(at) = attempts.asked_at() {
            assert_eq!(attempts.asked_again(at.plus_ms(-1)).count(), 0);
            assert_eq!(attempts.asked_again(at).count(), 1);
            let paid = Attempts { paid: Some(number), ..attempts.clone() };
            assert_eq!((paid.asked_at(), paid.asked_again(at).count()), (None, 0));
            days.push((at.ms_since(NOW) - 3_600_000) / 86_400_000);
            attempts = attempts.with_ask(number);
        }
        assert_eq!(days, (0..=7).collect::<Vec<_>>());
    }

    #[test]
    fn a_step_goes_when_its_attempt_or_its_order_ends() {
        let (attempts, number) =
            Attempts::default().with_another(&choice("a"), None, NOW, NOW).unwrap();
        let (reference, step) =
            (PaymentId::new("cs_1").unwrap(), PaymentStep::Form("secret".to_owned()));
        let answered = attempts.with_answer(number, &reference, &step);
        let of = |attempts: &Attempts| attempts.get(number).unwrap().step.clone();
        assert_eq!(of(&answered), Some(step));
        assert_eq!(of(&answered.with_state(number, AttemptState::GivenUp)), None);
        assert_eq!(of(&answered.clone().without_steps()), None);
        let mut attempt = answered.get(number).unwrap().clone();
        let shown =
            |attempt: &Attempt, seconds| attempt.step_at(NOW.plus_seconds(seconds)).is_some();
        assert!(shown(&attempt, CODE_SECONDS));
        attempt.choice.method = PaymentMethod::Code;
        assert!(shown(&attempt, CODE_SECONDS - 1) && !shown(&attempt, CODE_SECONDS));
        assert!(!format!("{answered:?}").contains("secret"));
    }

    #[test]
    fn an_attempts_name_is_read_as_it_was_written() {
        let key = AttemptKey { order: "42".parse().unwrap(), number: AttemptNumber::FIRST };
        assert_eq!(key.to_string(), "42-1");
        assert_eq!("42-1".parse(), Ok(key));
        for other in ["42", "42-01", "42-+1", "42-0", "42-33", "42-x", "x-1", "42-1-1", ""] {
            assert_eq!(other.parse::<AttemptKey>(), Err(InvalidAttempt), "{other}");
        }
    }

    #[test]
    fn an_address_to_return_to_is_one_of_the_web() {
        let longest = format!("https://a.example/{}", "x".repeat(ReturnUrl::MAX_BYTES - 18));
        for good in ["https://a.example/x?y=1#z", "http://127.0.0.1:8080/", &longest] {
            assert!(ReturnUrl::new(good).is_ok(), "{good}");
        }
        let long = format!("{longest}x");
        for bad in ["javascript:alert(1)", "//a.example", "https://a b", "https://a\"", "", &long] {
            assert_eq!(ReturnUrl::new(bad), Err(InvalidReturnUrl), "{bad}");
        }
    }

    #[test]
    fn the_same_choice_is_answered_with_the_same_attempt_for_less_than_a_day() {
        let (attempts, number) =
            Attempts::default().with_another(&choice("a"), None, NOW, NOW).unwrap();
        let attempt = attempts.get(number).unwrap();
        assert!(attempt.answers(&choice("a"), NOW.plus_seconds(REPEATED_FOR_SECONDS - 1)));
        assert!(!attempt.answers(&choice("a"), NOW.plus_seconds(REPEATED_FOR_SECONDS)));
        assert!(!attempt.answers(&choice("b"), NOW));
    }
}
