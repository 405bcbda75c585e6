//! Limits and rules of the gate: which clients may not ask for an admission, how often other clients may, and whose
//! challenges become harder.
//!
//! [`RuleBook::plan`] lists the counters of a request, and [`Plan::judge`] decides from the counts. The order of
//! decision:
//! 1. the operator's rules that deny, the first by id;
//! 2. limits: of the buyer, the buyer's attempts in the sale, the device hint, the address. An operator's limit
//!    takes the place of the built-in one for whom it names; of several that name a client alike the one of
//!    the smallest network, then the first by id;
//! 3. otherwise the request passes, and challenges are as much harder as the highest of: the operator's rules,
//!    and the doublings of the counts of address and device hint over where they begin to count.
//!
//! Counts are of fixed windows, so at the edge of two windows twice a limit may pass within one. They lie in
//! Redis, which may forget them: then everybody has what a new window gives, and the attempts of a sale
//! begin again.

use std::collections::HashMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::domain::basics::ids::{DeviceHint, RuleId, UserId};
use crate::domain::basics::network::Network;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::LimitSettings;

/// Most rules of a sale: a process holds them all, and reads them when one changes.
pub const MAX_RULES: u32 = 1000;
/// Most bytes of what a rule says to whom it refuses.
pub const MAX_TEXT_BYTES: usize = 200;
/// The hardest that challenges become, in doublings.
pub const MAX_LEVEL: u8 = 8;
/// The longest window of a limit, in seconds.
pub const MAX_WINDOW_SECONDS: u32 = 86_400;
/// The window of the built-in limits, in seconds.
pub const WINDOW_SECONDS: u32 = 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its id, unique in the sale.
    pub rule: RuleId,
    /// Whom it is about.
    pub subject: Subject,
    /// What happens to them.
    pub action: Action,
    /// What it says to whom it refuses: 1 to 200 bytes without control characters. It need not say why.
    pub text: String,
    /// End of its validity; `None` until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// Whom a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Buyer(UserId),
    /// Everybody who comes from these addresses.
    Address(Network),
    /// Everybody whose client says this of its device.
    Device(DeviceHint),
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Deny,
    /// Lets so many requests pass in a window, all of those together whom the rule is about.
    Limit {
        /// Requests in a window, at least 1.
        count: u32,
        /// Length of a window, 1 to 86,400.
        seconds: u32,
    },
    /// Makes challenges harder by so many doublings, 1 to 8.
    Harder(u8),
}

/// Why a rule is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// A built-in limit has its id.
    #[error("the id is that of a built-in limit")]
    BuiltIn,
    /// Its text is empty, too long or no text.
    #[error("the text must have 1 to 200 bytes without control characters")]
    Text,
    /// Its limit is none.
    #[error("a limit must be at least 1 request in 1 to 86,400 seconds")]
    Limit,
    /// It makes challenges harder by nothing, or by too much.
    #[error("challenges become harder by 1 to 8 doublings")]
    Level,
}

impl Rule {
    /// Refuses a rule that means nothing.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn check(&self) -> Result<(), Unsound> {
        let text = &self.text;
        let is_text = !text.trim().is_empty() && !text.chars().any(char::is_control);
        if BuiltIn::ALL.iter().any(|built_in| built_in.as_str() == self.rule.as_str()) {
            return Err(Unsound::BuiltIn);
        }
        if !is_text || text.len() > MAX_TEXT_BYTES {
            return Err(Unsound::Text);
        }
        match self.action {
            Action::Deny => Ok(()),
            Action::Limit { count, seconds } => {
                let is_limit = count > 0 && (1..=MAX_WINDOW_SECONDS).contains(&seconds);
                if is_limit { Ok(()) } else { Err(Unsound::Limit) }
            }
            Action::Harder(level) if (1..=MAX_LEVEL).contains(&level) => Ok(()),
            Action::Harder(_) => Err(Unsound::Level),
        }
    }
}

/// The limits that every sale has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuiltIn {
    /// Requests of a buyer.
    Buyer,
    /// Requests of a buyer in the sale.
    Asks,
    /// Orders that a buyer began and gave up in the sale.
    GivenUp,
    /// Requests with a device hint.
    Device,
    /// Requests from an address.
    Address,
}

impl BuiltIn {
    /// Each of them, in the order in which they decide.
    pub const ALL: [Self; 5] =
        [Self::Buyer, Self::Asks, Self::GivenUp, Self::Device, Self::Address];

    /// Its name, where a rule has its id.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buyer => "buyer-requests",
            Self::Asks => "asks-in-sale",
            Self::GivenUp => "given-up-in-sale",
            Self::Device => "device-requests",
            Self::Address => "address-requests",
        }
    }

    /// What it says to whom it refuses.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Buyer => "you ask too often",
            Self::Asks => "you have asked too often in this sale",
            Self::GivenUp => "you have given up too many orders in this sale",
            Self::Device | Self::Address => "too many requests come from where you are",
        }
    }
}

/// Who asks. Address and hint are personal data: nobody writes them anywhere but as keyed hashes.
#[derive(Clone, PartialEq, Eq)]
pub struct Client {
    pub buyer: UserId,
    /// The address that the request came from; `None` if whoever passed it on does not say.
    pub address: Option<IpAddr>,
    /// What the client says of its device, if anything.
    pub device: Option<DeviceHint>,
}

impl std::fmt::Debug for Client {
    /// Shows nothing of the client.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// What is counted for a request.
#[derive(Clone, PartialEq, Eq)]
pub enum Counter {
    Buyer,
    /// The buyer's requests in the sale.
    Asks,
    /// The orders that the buyer has given up in the sale. The request adds none.
    GivenUp,
    /// Requests of a device hint.
    Device(DeviceHint),
    /// Requests of a sender.
    Address(Network),
    /// Requests of all whom a rule is about.
    Rule(RuleId),
}

/// One count that decides.
#[derive(Clone, PartialEq, Eq)]
pub struct Check {
    pub counter: Counter,
    /// Length of its windows in seconds; `None` for the whole sale.
    pub seconds: Option<u32>,
    max: u32,
    harder_over: Option<u32>,
    by: RefusedBy,
    text: String,
}

/// The rule that refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedBy {
    /// An operator's rule that denies.
    Denied(RuleId),
    Limited(RuleId),
    BuiltIn(BuiltIn),
}

impl RefusedBy {
    /// The id of the rule, or the name of the limit.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Denied(rule) | Self::Limited(rule) => rule.as_str(),
            Self::BuiltIn(limit) => limit.as_str(),
        }
    }
}

/// A refusal, with its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub by: RefusedBy,
    /// What the rule says to whom it refuses.
    pub text: String,
    /// Milliseconds after which asking again is worth it; `None` if it is not, as long as the rule stands.
    pub retry_ms: Option<i64>,
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// It passes, and a challenge is this many doublings harder than otherwise: 1 to [`MAX_LEVEL`].
    Harder(u8),
    Refused(Refusal),
}

/// What is to be counted for a request that no rule denies.
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    /// The counts, in the order in which they decide.
    pub checks: Vec<Check>,
    harder: u8,
}

/// The operator's rules of a sale, ready to be asked.
#[derive(Debug, Default)]
pub struct RuleBook {
    rules: Vec<Rule>,
    of_buyer: HashMap<UserId, Vec<usize>>,
    of_device: HashMap<DeviceHint, Vec<usize>>,
    of_network: Vec<(Network, usize)>,
}

impl RuleBook {
    /// The book of these rules.
    #[must_use]
    pub fn new(mut rules: Vec<Rule>) -> Self {
        rules.sort_by(|one, other| one.rule.cmp(&other.rule));
        let mut book = Self::default();
        for (index, rule) in rules.iter().enumerate() {
            match &rule.subject {
                Subject::Buyer(user) => book.of_buyer.entry(user.clone()).or_default().push(index),
                Subject::Device(hint) => {
                    book.of_device.entry(hint.clone()).or_default().push(index);
                }
                Subject::Address(network) => book.of_network.push((*network, index)),
            }
        }
        Self { rules, ..book }
    }

    /// The rules, by id.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What is to be counted for a request.
    ///
    /// # Errors
    /// Returns the refusal of the first rule that denies.
    pub fn plan(
        &self,
        limits: &LimitSettings,
        client: &Client,
        now: Timestamp,
    ) -> Result<Plan, Refusal> {
        let rules = self.about(client, now);
        let denies = |rule: &&&Rule| matches!(rule.action, Action::Deny);
        if let Some(rule) = rules.iter().filter(denies).min_by_key(|rule| &rule.rule) {
            let by = RefusedBy::Denied(rule.rule.clone());
            return Err(Refusal { by, text: rule.text.clone(), retry_ms: None });
        }
        let mut checks = Vec::with_capacity(5);
        checks.push(limit_of(&rules, Kind::Buyer).unwrap_or_else(|| {
            let max = limits.buyer_per_minute;
            Check::built_in(BuiltIn::Buyer, Counter::Buyer, Some(WINDOW_SECONDS), max, None)
        }));
        for (limit, counter, max) in [
            (BuiltIn::Asks, Counter::Asks, limits.asks_per_buyer),
            (BuiltIn::GivenUp, Counter::GivenUp, limits.given_up_per_buyer),
        ] {
            checks.push(Check::built_in(limit, counter, None, max, None));
        }
        if let Some(hint) = &client.device {
            checks.push(limit_of(&rules, Kind::Device).unwrap_or_else(|| {
                let (counter, over) = (Counter::Device(hint.clone()), limits.device_harder_over);
                let max = limits.device_per_minute;
                Check::built_in(BuiltIn::Device, counter, Some(WINDOW_SECONDS), max, Some(over))
            }));
        }
        if let Some(address) = client.address {
            checks.push(limit_of(&rules, Kind::Address).unwrap_or_else(|| {
                let sender = Counter::Address(Network::of_sender(address));
                let (max, over) = (limits.address_per_minute, limits.address_harder_over);
                Check::built_in(BuiltIn::Address, sender, Some(WINDOW_SECONDS), max, Some(over))
            }));
        }
        let harder = rules.iter().map(|rule| match rule.action {
            Action::Harder(level) => level,
            Action::Deny | Action::Limit { .. } => 0,
        });
        Ok(Plan { checks, harder: harder.max().unwrap_or(0) })
    }

    /// The rules about a client that are valid now.
    fn about(&self, client: &Client, now: Timestamp) -> Vec<&Rule> {
        let of_buyer = self.of_buyer.get(&client.buyer).into_iter().flatten();
        let of_device =
            client.device.as_ref().and_then(|hint| self.of_device.get(hint)).into_iter().flatten();
        let contains =
            |network: &Network| client.address.is_some_and(|address| network.contains(address));
        let of_network =
            self.of_network.iter().filter(|(network, _)| contains(network)).map(|(_, index)| index);
        of_buyer
            .chain(of_device)
            .chain(of_network)
            .filter_map(|index| self.rules.get(*index))
            .filter(|rule| rule.until.is_none_or(|until| now < until))
            .collect()
    }
}

/// The kinds of subjects, each of which has a limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Buyer,
    Device,
    Address,
}

impl Subject {
    fn kind(&self) -> Kind {
        match self {
            Self::Buyer(_) => Kind::Buyer,
            Self::Device(_) => Kind::Device,
            Self::Address(_) => Kind::Address,
        }
    }

    /// How closely it names a client, compared with others of its kind.
    fn closeness(&self) -> u32 {
        match self {
            Self::Address(network) => network.bits(),
            Self::Buyer(_) | Self::Device(_) => 0,
        }
    }
}

/// The operator's limit that takes the place of the built-in one of a kind, if there is one.
fn limit_of(rules: &[&Rule], kind: Kind) -> Option<Check> {
    let limits = rules.iter().filter(|rule| rule.subject.kind() == kind).filter_map(|rule| {
        match rule.action {
            Action::Limit { count, seconds } => Some((*rule, count, seconds)),
            Action::Deny | Action::Harder(_) => None,
        }
    });
    let closest = |(rule, ..): &(&Rule, u32, u32)| {
        (std::cmp::Reverse(rule.subject.closeness()), rule.rule.clone())
    };
    limits.min_by_key(closest).map(|(rule, count, seconds)| Check {
        counter: Counter::Rule(rule.rule.clone()),
        seconds: Some(seconds),
        max: count,
        harder_over: None,
        by: RefusedBy::Limited(rule.rule.clone()),
        text: rule.text.clone(),
    })
}

impl Check {
    fn built_in(
        limit: BuiltIn,
        counter: Counter,
        seconds: Option<u32>,
        max: u32,
        harder_over: Option<u32>,
    ) -> Self {
        let text = limit.text().to_owned();
        Self { counter, seconds, max, harder_over, by: RefusedBy::BuiltIn(limit), text }
    }

    /// The window that a time lies in, counted from 1970; 0 if the count is of the whole sale.
    #[must_use]
    pub fn window(&self, now: Timestamp) -> i64 {
        self.seconds.map_or(0, |seconds| now.ms().div_euclid(i64::from(seconds) * 1000))
    }

    /// Milliseconds until the window ends; `None` if the count is of the whole sale.
    #[must_use]
    pub fn left_ms(&self, now: Timestamp) -> Option<i64> {
        let length_ms = i64::from(self.seconds?) * 1000;
        Some(length_ms - now.ms().rem_euclid(length_ms))
    }

    /// True if this many are too many, the request itself included. Orders given up do not include one.
    fn is_over(&self, count: u64) -> bool {
        match self.counter {
            Counter::GivenUp => count >= u64::from(self.max),
            Counter::Buyer
            | Counter::Asks
            | Counter::Device(_)
            | Counter::Address(_)
            | Counter::Rule(_) => count > u64::from(self.max),
        }
    }

    /// By how many doublings a count makes challenges harder.
    fn level(&self, count: u64) -> u8 {
        let Some(over) = self.harder_over.map(u64::from) else { return 0 };
        if count <= over {
            return 0;
        }
        let doublings = (count / over.max(1)).ilog2();
        u8::try_from(doublings + 1).unwrap_or(MAX_LEVEL).min(MAX_LEVEL)
    }
}

impl Plan {
    /// The number of orders in the sale that the buyer has given up, of these counts; 0 if it is not among them.
    #[must_use]
    pub fn given_up(&self, counts: &[u64]) -> u64 {
        let mut counted = self.checks.iter().zip(counts);
        let given_up = counted.find(|(check, _)| check.counter == Counter::GivenUp);
        given_up.map_or(0, |(_, count)| *count)
    }

    /// What the counts mean: one for each of the checks, in their order, the request itself included.
    #[must_use]
    pub fn judge(&self, counts: &[u64], now: Timestamp) -> Verdict {
        let mut harder = self.harder;
        for (check, count) in self.checks.iter().zip(counts) {
            if check.is_over(*count) {
                let (by, text) = (check.by.clone(), check.text.clone());
                return Verdict::Refused(Refusal { by, text, retry_ms: check.left_ms(now) });
            }
            harder = harder.max(check.level(*count));
        }
        if harder == 0 { Verdict::Pass } else { Verdict::Harder(harder) }
    }
}

#[cfg(test)]
mod tests;
