//! The settings of a deployment, read once from the environment. `docs/configuration.md` lists the
//! variables.
//!
//! Secrets are never printed: neither by an error here nor by `Debug`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::beacon::{Chain, Chains};
use crate::dynamodb::{DEFAULT_CATALOGUE_BYTES, Tables};
use crate::events::{Addresses, WEBHOOK_KEYS, WebhookKeys};
use crate::http::origin::Origin;
use crate::providers::CaptureRefunds;
use crate::redis::Topology;
use crate::runtime::callbacks::{CallbackEntry, is_key};
use crate::runtime::edge::{EDGE_SECRETS, EdgeSecrets};
use crate::runtime::listed_secrets::ListedSecrets;
use crate::runtime::merchants::{self, MERCHANTS_FILE, MerchantsSource};
use crate::sqs::QueueUrls;
use crate::tickets::{TICKET_KEYS, TicketSecrets};
use engine::domain::admission::call_rate::CallRate;
use engine::domain::basics::ids::{DeploymentId, ProviderId};
use engine::domain::basics::network::Network;
use engine::domain::inventory::capacity::CacheKind;
use engine::domain::order::attendee::MAX_ATTENDEE_KEYS;
use engine::domain::payment::captures::ListLag;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::challenge::SiteverifyProvider;

/// Fewest bytes of a key of admissions, attendees or challenges: those of a SHA-256 (RFC 7518, section 3.2).
pub const MIN_KEY_BYTES: usize = 32;
/// Most bytes of the name or the ARN of an event bus.
/// Source: <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html>
const MAX_BUS_BYTES: usize = 1600;
/// Most keys of challenges: one, and the one that replaces it.
pub const MAX_CHALLENGE_KEYS: usize = 2;
/// Names a file of certificate authorities.
pub const CA_FILE: &str = "ONSALE_CA_FILE";
/// Days after its closing at which a sale is archived by itself, unless configured: late enough for the
/// money that banks return or capture late.
pub const DEFAULT_ARCHIVE_AFTER_DAYS: u16 = 30;
/// Most days after which a sale is archived by itself.
pub const MAX_ARCHIVE_AFTER_DAYS: u16 = 3650;
/// Fewest bytes of the sales that a process remembers.
pub const MIN_CATALOGUE_BYTES: usize = 1024 * 1024;
/// The public servers of drand's mainnet, of two operators.
/// Source: <https://docs.drand.love/dev-guide/developer/http-api>
pub const DEFAULT_BEACON_URLS: [&str; 4] = [
    "https://api.drand.sh",
    "https://api2.drand.sh",
    "https://api3.drand.sh",
    "https://drand.cloudflare.com",
];
/// Most servers of the beacon that are asked: each may take its time limit, one after the other.
pub const MAX_BEACON_URLS: usize = 8;
/// Most seconds by which a payment signature's time may differ from ours, unless configured.
pub const DEFAULT_TOLERANCE_SECONDS: u32 = 300;

/// Everything a deployment decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The server of Redis, or its cluster.
    pub redis: RedisConfig,
    /// The tables in DynamoDB.
    pub dynamodb: DynamoDbConfig,
    /// How sales are remembered and archived.
    pub sales: SalesConfig,
    /// The queues in SQS.
    pub sqs: SqsConfig,
    /// The keys of admission tokens; empty in functions that neither admit nor reserve.
    pub admission: AdmissionConfig,
    /// The keys that hash attendees; empty in functions that take no names.
    pub attendees: AttendeeConfig,
    /// What challenges are made and checked with; without keys in functions that ask for none.
    pub challenges: ChallengeConfig,
    /// The secrets of payment providers; empty in functions that take no callbacks.
    pub payments: PaymentConfig,
    /// The entry of callbacks; without keys in functions that are not it.
    pub callbacks: CallbackEntry,
    /// The secrets of the edge; none if requests may come past it.
    pub edge: EdgeSecrets,
    /// The payment providers that can be asked; empty in functions that ask none.
    pub providers: ProvidersConfig,
    /// The beacon of draws.
    pub beacon: BeaconConfig,
    /// Who operators are; without an issuer in functions that operators do not call.
    pub operators: OperatorsConfig,
    /// The secrets that the keys of tickets are made from.
    pub tickets: TicketSecrets,
    /// How webhooks are told; without keys in functions that tell none.
    pub webhooks: WebhooksConfig,
    /// The event bus that is told.
    pub bus: BusConfig,
    /// The metrics that are written.
    pub metrics: MetricsConfig,
    /// Where the pages are, and what they may call.
    pub site: SiteConfig,
    /// The file of the certificate authorities that are trusted in place of the public ones.
    pub ca_file: Option<String>,
}

/// Where the pages are, and what their scripts may call. Only the function that makes pages is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteConfig {
    /// The origin of the pages, for addresses that others keep; `None` where it is not known.
    pub origin: Option<Origin>,
    /// The origins that a page's script may call besides its own: those of the issuers. Each stands once.
    pub connect: Vec<Origin>,
}

/// How webhooks are told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebhooksConfig {
    /// The keys that their secrets are made from.
    pub keys: WebhookKeys,
    /// Where they may lead.
    pub addresses: Addresses,
}

/// The event bus that is told of facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusConfig {
    /// Its name or ARN; `None` if there is none.
    pub name: Option<String>,
    /// Address of EventBridge; `None` for the service of the region.
    pub endpoint: Option<String>,
}

/// Who operators are, beside those whom IAM knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorsConfig {
    /// Issuer (`iss`) of their tokens; `None` where no token makes an operator.
    pub issuer: Option<String>,
}

/// How to reach Redis.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// One server or a cluster. An address may hold a password.
    pub topology: Topology,
    /// The kind of cache; `None` if nobody says, as on one machine.
    pub kind: Option<CacheKind>,
}

/// The tables in DynamoDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamoDbConfig {
    pub tables: Tables,
    /// Address of a DynamoDB emulator; `None` for the service of the region.
    pub endpoint: Option<String>,
}

impl DynamoDbConfig {
    /// The name of the deployment, as its tickets have it: what its tables' names begin with.
    #[must_use]
    pub fn deployment(&self) -> &str {
        let prefix = self.tables.orders.strip_suffix("orders").unwrap_or_default();
        match prefix.trim_end_matches(['-', '_', '.']) {
            "" => "onsale",
            name => name,
        }
    }
}

/// How sales are remembered and archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SalesConfig {
    /// Most bytes of the sales that a process remembers.
    pub memory_bytes: usize,
    /// Days after its closing at which a sale is archived by itself; `None` never.
    pub archive_after_days: Option<u16>,
}

impl Default for SalesConfig {
    fn default() -> Self {
        let archive_after_days = Some(DEFAULT_ARCHIVE_AFTER_DAYS);
        Self { memory_bytes: DEFAULT_CATALOGUE_BYTES, archive_after_days }
    }
}

/// The queues in SQS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqsConfig {
    pub urls: QueueUrls,
    /// Address of an SQS emulator; `None` for the service of the region.
    pub endpoint: Option<String>,
}

/// The keys of admission tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionConfig {
    /// Key id and secret: the first signs, all are accepted.
    pub keys: Vec<(String, Secret)>,
}

/// The keys that hash attendees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttendeeConfig {
    /// Key id and secret: one, or two while one is replaced, the old one last.
    pub keys: Vec<(String, Secret)>,
}

/// What challenges are made and checked with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChallengeConfig {
    /// Key id and secret: one, or two while one is replaced; the first signs, both are accepted.
    pub keys: Vec<(String, Secret)>,
    /// Accounts at providers of challenges, one for each provider.
    pub siteverify: Vec<SiteverifyApi>,
}

/// An account at a provider of challenges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteverifyApi {
    pub provider: SiteverifyProvider,
    /// URL of its `siteverify`; `None` for the provider's own address.
    pub url: Option<String>,
    /// The account's secret key.
    pub secret: Secret,
}

/// The secrets of payment providers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentConfig {
    /// Provider and secret; a provider has several while one is being replaced.
    pub secrets: Vec<(ProviderId, Secret)>,
    /// Most seconds by which a signature's time may differ from ours, in either direction.
    pub tolerance_seconds: u32,
}

/// The payment providers that can be asked, and how long an unpaid order waits for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvidersConfig {
    /// One for each provider.
    pub apis: Vec<ProviderApi>,
    /// The accounts at WeChat Pay and Alipay, of which callbacks are taken as well.
    pub merchants: MerchantsSource,
    /// How long an unpaid order waits past its deadline.
    pub grace: Grace,
    /// Calls a second to each operation of each provider.
    pub call_rate: CallRate,
    /// Refunds a second that captures decide, at each provider.
    pub capture_refunds: CaptureRefunds,
    /// The longest that a provider's list has a capture late.
    pub list_lag: ListLag,
    /// True if no payment is started but by `POST /orders/{order}/payments`: then an order without an open
    /// attempt ends at its deadline, and nobody is asked.
    pub only_started_here: bool,
    /// The origins that buyers may come back to from a provider's page.
    pub return_origins: Vec<Origin>,
    /// The deployment's id, which every payment carries that is started here; `None` if they carry none.
    pub deployment: Option<DeploymentId>,
}

/// The API of a payment provider: its address and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderApi {
    pub provider: ProviderId,
    /// URL of its API; `None` for the provider's own address.
    pub url: Option<String>,
    pub key: Secret,
}

/// The randomness beacon of draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeaconConfig {
    /// Addresses of servers of drand's HTTP API; the first is asked first.
    pub urls: Vec<String>,
    /// The chains whose public keys are known.
    pub chains: Chains,
}

impl Default for BeaconConfig {
    /// drand's quicknet at its public servers.
    fn default() -> Self {
        let urls = DEFAULT_BEACON_URLS.iter().map(|url| (*url).to_owned()).collect();
        Self { urls, chains: Chains::default() }
    }
}

/// The metrics that are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MetricsConfig {
    #[default]
    Off,
    /// Those of `docs/metrics.md`, in CloudWatch's embedded metric format, to standard output.
    Emf {
        /// The value of the dimension `Stage`.
        stage: String,
        /// Address of CloudWatch, where they are read again; `None` for the service of the region.
        endpoint: Option<String>,
    },
}

/// Bytes that are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for RedisConfig {
    /// Leaves the addresses out: they may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.topology {
            Topology::Single(_) => "RedisConfig(one server)",
            Topology::Cluster(_) => "RedisConfig(a cluster)",
        })
    }
}

/// A variable that is missing or not what it must be. Never says what it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {rule}")]
pub struct Defect {
    pub variable: &'static str,
    /// The rule it breaks, in words.
    pub rule: &'static str,
}

/// Reads variables by name; an empty one counts as absent.
struct Variables<F>(F);

impl<F: Fn(&str) -> Option<String>> Variables<F> {
    fn optional(&self, variable: &str) -> Option<String> {
        (self.0)(variable).filter(|value| !value.is_empty())
    }

    fn required(&self, variable: &'static str) -> Result<String, Defect> {
        self.optional(variable).ok_or(Defect { variable, rule: "must be set" })
    }

    /// A number that `value` makes a setting of; `None` if the variable is not set.
    fn number<T>(
        &self,
        variable: &'static str,
        rule: &'static str,
        value: impl Fn(u32) -> Option<T>,
    ) -> Result<Option<T>, Defect> {
        let Some(text) = self.optional(variable) else { return Ok(None) };
        let number = text.parse().ok().and_then(value);
        number.map(Some).ok_or(Defect { variable, rule })
    }

    /// A list separated by commas.
    fn list(&self, variable: &'static str) -> Vec<String> {
        let text = self.optional(variable).unwrap_or_default();
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    }

    /// A list `name:value,name:value`; a value may contain colons.
    fn pairs(&self, variable: &'static str) -> Result<Vec<(String, String)>, Defect> {
        let items = self.list(variable);
        let pair = |item: String| match item.split_once(':') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok((name.to_owned(), value.to_owned()))
            }
            Some(_) | None => Err(Defect { variable, rule: "must be name:value,name:value" }),
        };
        items.into_iter().map(pair).collect()
    }

    /// Secrets that are listed, one or two.
    fn listed_secrets(&self, variable: &'static str) -> Result<ListedSecrets, Defect> {
        ListedSecrets::read(variable, self.optional(variable).as_deref())
    }

    /// A list of keys by id, `kid:secret,kid:secret`, the secrets in base64.
    fn keys(&self, variable: &'static str) -> Result<Vec<(String, Secret)>, Defect> {
        let key = |(kid, secret): (String, String)| {
            let bytes = STANDARD
                .decode(secret)
                .map_err(|_| Defect { variable, rule: "must hold secrets in base64" })?;
            if bytes.len() < MIN_KEY_BYTES {
                return Err(Defect { variable, rule: "must hold secrets of at least 32 bytes" });
            }
            Ok((kid, Secret(bytes)))
        };
        let keys: Vec<(String, Secret)> =
            self.pairs(variable)?.into_iter().map(key).collect::<Result<_, _>>()?;
        let is_again = |index: usize| keys[..index].iter().any(|(kid, _)| *kid == keys[index].0);
        if (0..keys.len()).any(is_again) {
            return Err(Defect { variable, rule: "must not name a key twice" });
        }
        Ok(keys)
    }
}

impl Config {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// Returns the first variable that is missing or wrong.
    pub fn from_env() -> Result<Self, Defect> {
        Self::read(|variable| std::env::var(variable).ok())
    }

    /// Reads the variables that `variable` gives.
    ///
    /// # Errors
    /// Returns the first variable that is missing or wrong.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Defect> {
        let variables = Variables(variable);
        Ok(Self {
            redis: RedisConfig::read(&variables)?,
            dynamodb: DynamoDbConfig::read(&variables),
            sales: SalesConfig::read(&variables)?,
            sqs: SqsConfig::read(&variables)?,
            admission: AdmissionConfig::read(&variables)?,
            attendees: AttendeeConfig::read(&variables)?,
            challenges: ChallengeConfig::read(&variables)?,
            payments: PaymentConfig::read(&variables)?,
            callbacks: callback_entry(&variables)?,
            edge: EdgeSecrets::read(variables.optional(EDGE_SECRETS).as_deref())?,
            providers: ProvidersConfig::read(&variables)?,
            beacon: BeaconConfig::read(&variables)?,
            operators: OperatorsConfig::read(&variables)?,
            tickets: variables.listed_secrets(TICKET_KEYS)?,
            webhooks: WebhooksConfig::read(&variables)?,
            bus: BusConfig::read(&variables)?,
            metrics: MetricsConfig::read(&variables)?,
            site: SiteConfig::read(&variables)?,
            ca_file: variables.optional(CA_FILE),
        })
    }
}

impl WebhooksConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let keys = variables.listed_secrets(WEBHOOK_KEYS)?;
        let variable = "ONSALE_WEBHOOK_ADDRESSES";
        let addresses = match variables.optional(variable).as_deref() {
            None | Some("public") => Addresses::Public,
            Some("any") => Addresses::Any,
            Some(_) => return Err(Defect { variable, rule: "must be public or any" }),
        };
        Ok(Self { keys: WebhookKeys(keys), addresses })
    }
}

impl BusConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let variable = "ONSALE_EVENT_BUS";
        let name = variables.optional(variable);
        // As EventBridge has names and ARNs of buses.
        let is_name = |name: &str| {
            name.len() <= MAX_BUS_BYTES
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.-_:".contains(&byte))
        };
        if !name.as_deref().is_none_or(is_name) {
            return Err(Defect { variable, rule: "must be the name or the ARN of an event bus" });
        }
        Ok(Self { name, endpoint: variables.optional("ONSALE_EVENTBRIDGE_ENDPOINT") })
    }
}

impl SiteConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        const ORIGIN: &str = "ONSALE_SITE_ORIGIN";
        const CONNECT: &str = "ONSALE_CONNECT_ORIGINS";
        let origin = variables.optional(ORIGIN).map(|text| {
            let rule = "must be an origin such as https://tickets.example";
            Origin::new(&text).ok_or(Defect { variable: ORIGIN, rule })
        });
        let mut connect = Vec::new();
        for text in variables.list(CONNECT) {
            let rule = "must be http:// or https:// addresses, separated by commas";
            let origin = Origin::of_address(&text).ok_or(Defect { variable: CONNECT, rule })?;
            if !connect.contains(&origin) {
                connect.push(origin);
            }
        }
        Ok(Self { origin: origin.transpose()?, connect })
    }
}

impl OperatorsConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let variable = "ONSALE_OPERATOR_ISSUER";
        let issuer = variables.optional(variable);
        let is_address = |url: &str| url.starts_with("https://") || url.starts_with("http://");
        if !issuer.as_deref().is_none_or(is_address) {
            return Err(Defect { variable, rule: "must be an http:// or https:// address" });
        }
        Ok(Self { issuer })
    }
}

impl RedisConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let urls = variables.required("ONSALE_REDIS_URL")?;
        let is_url = |url: &str| url.starts_with("redis://") || url.starts_with("rediss://");
        let split: Vec<String> = urls.split(',').map(|url| url.trim().to_owned()).collect();
        if !split.iter().all(|url| is_url(url)) {
            let rule = "must be redis:// or rediss:// addresses, separated by commas";
            return Err(Defect { variable: "ONSALE_REDIS_URL", rule });
        }
        let variable = "ONSALE_REDIS_CLUSTER";
        let topology = match (variables.optional(variable).as_deref(), split.as_slice()) {
            (Some("true"), _) => Topology::Cluster(split),
            (Some("false") | None, [url]) => Topology::Single(url.clone()),
            (Some("false") | None, _) => {
                return Err(Defect { variable, rule: "must be true for several addresses" });
            }
            (Some(_), _) => return Err(Defect { variable, rule: "must be true or false" }),
        };
        let variable = "ONSALE_CACHE_KIND";
        let kind = match variables.optional(variable).as_deref() {
            None => None,
            Some("serverless") => Some(CacheKind::Serverless),
            Some("nodes") => Some(CacheKind::Nodes),
            Some(_) => return Err(Defect { variable, rule: "must be serverless or nodes" }),
        };
        Ok(Self { topology, kind })
    }
}

impl DynamoDbConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Self {
        let prefix = variables.optional("ONSALE_TABLE_PREFIX").unwrap_or_default();
        Self {
            tables: Tables::with_prefix(&prefix),
            endpoint: variables.optional("ONSALE_DYNAMODB_ENDPOINT"),
        }
    }
}

impl SalesConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        const BYTES: &str = "ONSALE_CATALOGUE_BYTES";
        const DAYS: &str = "ONSALE_ARCHIVE_AFTER_DAYS";
        let unset = Self::default();
        let memory_bytes = match variables.optional(BYTES) {
            None => unset.memory_bytes,
            Some(text) => {
                let rule = "must be a whole number of bytes, at least 1048576";
                let bytes = text.parse().ok().filter(|bytes| *bytes >= MIN_CATALOGUE_BYTES);
                bytes.ok_or(Defect { variable: BYTES, rule })?
            }
        };
        let archive_after_days = match variables.optional(DAYS).as_deref() {
            None => unset.archive_after_days,
            Some("never") => None,
            Some(text) => {
                let rule = "must be a whole number of days, at most 3650, or never";
                let days = text.parse().ok().filter(|days| *days <= MAX_ARCHIVE_AFTER_DAYS);
                Some(days.ok_or(Defect { variable: DAYS, rule })?)
            }
        };
        Ok(Self { memory_bytes, archive_after_days })
    }
}

impl SqsConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let urls = QueueUrls::try_each(|queue| variables.required(queue.url_variable()))?;
        Ok(Self { urls, endpoint: variables.optional("ONSALE_SQS_ENDPOINT") })
    }
}

impl AdmissionConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        Ok(Self { keys: variables.keys("ONSALE_ADMISSION_KEYS")? })
    }
}

impl AttendeeConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let variable = "ONSALE_ATTENDEE_KEYS";
        let keys = variables.keys(variable)?;
        if keys.len() > MAX_ATTENDEE_KEYS {
            return Err(Defect { variable, rule: "must hold at most two keys" });
        }
        Ok(Self { keys })
    }
}

impl ChallengeConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        const KEYS: &str = "ONSALE_CHALLENGE_KEYS";
        const SECRETS: &str = "ONSALE_SITEVERIFY_SECRETS";
        const URLS: &str = "ONSALE_SITEVERIFY_URLS";
        let keys = variables.keys(KEYS)?;
        if keys.len() > MAX_CHALLENGE_KEYS {
            return Err(Defect { variable: KEYS, rule: "must hold at most two keys" });
        }
        let provider = |variable: &'static str, name: &str| {
            let mut all = SiteverifyProvider::ALL.into_iter();
            let rule = "must name turnstile, hcaptcha or recaptcha";
            all.find(|provider| provider.as_str() == name).ok_or(Defect { variable, rule })
        };
        let mut siteverify: Vec<SiteverifyApi> = Vec::new();
        for (name, secret) in variables.pairs(SECRETS)? {
            let provider = provider(SECRETS, &name)?;
            if siteverify.iter().any(|api| api.provider == provider) {
                return Err(Defect { variable: SECRETS, rule: "must not name a provider twice" });
            }
            let secret = Secret(secret.into_bytes());
            siteverify.push(SiteverifyApi { provider, url: None, secret });
        }
        for (name, url) in variables.pairs(URLS)? {
            let provider = provider(URLS, &name)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                let rule = "must hold http:// or https:// addresses";
                return Err(Defect { variable: URLS, rule });
            }
            let api = siteverify.iter_mut().find(|api| api.provider == provider);
            let rule = "must not name a provider that has no secret";
            api.ok_or(Defect { variable: URLS, rule })?.url = Some(url);
        }
        Ok(Self { keys, siteverify })
    }
}

impl MetricsConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let variable = "ONSALE_METRICS";
        let stage = variables.required("ONSALE_STAGE");
        let endpoint = variables.optional("ONSALE_CLOUDWATCH_ENDPOINT");
        match variables.optional(variable).as_deref() {
            None => Ok(Self::Off),
            Some("emf") => Ok(Self::Emf { stage: stage?, endpoint }),
            Some(_) => Err(Defect { variable, rule: "must be emf, or absent" }),
        }
    }
}

impl PaymentConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        let variable = "ONSALE_PAYMENT_SECRETS";
        let secret = |(provider, secret): (String, String)| {
            let provider = provider_named(variable, provider)?;
            Ok((provider, Secret(secret.into_bytes())))
        };
        let secrets =
            variables.pairs(variable)?.into_iter().map(secret).collect::<Result<_, _>>()?;
        let variable = "ONSALE_PAYMENT_TOLERANCE_SECONDS";
        let tolerance_seconds = match variables.optional(variable) {
            None => DEFAULT_TOLERANCE_SECONDS,
            Some(text) => text
                .parse()
                .map_err(|_| Defect { variable, rule: "must be a whole number of seconds" })?,
        };
        Ok(Self { secrets, tolerance_seconds })
    }
}

/// A provider's name; not that of what costs nothing, of which nobody may say that it was captured.
fn provider_named(variable: &'static str, name: String) -> Result<ProviderId, Defect> {
    let provider = ProviderId::new(name)
        .map_err(|_| Defect { variable, rule: "must name providers by a-z, 0-9 and -" })?;
    if provider.is_reserved() {
        return Err(Defect { variable, rule: "must not name a provider free or wallet" });
    }
    Ok(provider)
}

fn callback_entry<F: Fn(&str) -> Option<String>>(
    variables: &Variables<F>,
) -> Result<CallbackEntry, Defect> {
    const KEYS: &str = "ONSALE_CALLBACK_KEYS";
    const SOURCES: &str = "ONSALE_CALLBACK_SOURCES";
    let key = |text: String| {
        let rule = "must be keys of 32 to 128 letters, digits, - and _, separated by commas";
        let key = is_key(&text).then(|| Secret(text.into_bytes()));
        key.ok_or(Defect { variable: KEYS, rule })
    };
    let source = |text: String| {
        let rule = "must be networks such as 203.0.113.0/24, separated by commas";
        text.parse::<Network>().map_err(|_| Defect { variable: SOURCES, rule })
    };
    let keys = variables.list(KEYS).into_iter().map(key).collect::<Result<_, _>>()?;
    let sources = variables.list(SOURCES).into_iter().map(source).collect::<Result<_, _>>()?;
    Ok(CallbackEntry { keys, sources })
}

impl ProvidersConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        const KEYS: &str = "ONSALE_PROVIDER_KEYS";
        const URLS: &str = "ONSALE_PROVIDER_URLS";
        const GRACE: &str = "ONSALE_PAYMENT_GRACE_SECONDS";
        const CALLS: &str = "ONSALE_PROVIDER_CALLS_PER_SECOND";
        const CAPTURE_REFUNDS: &str = "ONSALE_CAPTURE_REFUNDS_PER_SECOND";
        const LIST_LAG: &str = "ONSALE_PROVIDER_LIST_LAG_SECONDS";
        const ONLY_HERE: &str = "ONSALE_PAYMENTS_ONLY_STARTED_HERE";
        const ORIGINS: &str = "ONSALE_RETURN_ORIGINS";
        const DEPLOYMENT: &str = "ONSALE_DEPLOYMENT_ID";
        let provider = provider_named;
        let mut apis: Vec<ProviderApi> = Vec::new();
        for (name, key) in variables.pairs(KEYS)? {
            let provider = provider(KEYS, name)?;
            if apis.iter().any(|api| api.provider == provider) {
                return Err(Defect { variable: KEYS, rule: "must not name a provider twice" });
            }
            apis.push(ProviderApi { provider, url: None, key: Secret(key.into_bytes()) });
        }
        for (name, url) in variables.pairs(URLS)? {
            let provider = provider(URLS, name)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(Defect {
                    variable: URLS,
                    rule: "must hold http:// or https:// addresses",
                });
            }
            let api = apis.iter_mut().find(|api| api.provider == provider);
            let rule = "must not name a provider that has no key";
            api.ok_or(Defect { variable: URLS, rule })?.url = Some(url);
        }
        let seconds = "must be a whole number of seconds, at most 3600";
        let grace = variables.number(GRACE, seconds, Grace::from_seconds)?.unwrap_or_default();
        let rule = "must be a whole number of calls, 1 to 10,000";
        let call_rate = variables.number(CALLS, rule, CallRate::from_per_second)?;
        let capture_refunds = variables.number(CAPTURE_REFUNDS, rule, CallRate::from_per_second)?;
        let capture_refunds = capture_refunds.map(CaptureRefunds).unwrap_or_default();
        let rule = "must be a whole number of seconds, at most 240";
        let list_lag = variables.number(LIST_LAG, rule, ListLag::from_seconds)?;
        let (call_rate, list_lag) = (call_rate.unwrap_or_default(), list_lag.unwrap_or_default());
        let only_started_here = match variables.optional(ONLY_HERE).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                return Err(Defect { variable: ONLY_HERE, rule: "must be true or false" });
            }
        };
        let origin = |text: String| {
            let rule = "must be origins such as https://shop.example, separated by commas";
            Origin::new(&text).ok_or(Defect { variable: ORIGINS, rule })
        };
        let return_origins =
            variables.list(ORIGINS).into_iter().map(origin).collect::<Result<_, _>>()?;
        let merchants = MerchantsSource::read(|variable| variables.optional(variable));
        let merchants = merchants
            .map_err(|_| Defect { variable: MERCHANTS_FILE, rule: merchants::ONE_SOURCE })?;
        let deployment = variables.optional(DEPLOYMENT).map(DeploymentId::new).transpose();
        let rule = "must be 4 to 9 of a-z and 0-9";
        let deployment = deployment.map_err(|_| Defect { variable: DEPLOYMENT, rule })?;
        Ok(Self {
            apis,
            merchants,
            grace,
            call_rate,
            capture_refunds,
            list_lag,
            only_started_here,
            return_origins,
            deployment,
        })
    }
}

impl BeaconConfig {
    fn read<F: Fn(&str) -> Option<String>>(variables: &Variables<F>) -> Result<Self, Defect> {
        const URLS: &str = "ONSALE_BEACON_URLS";
        const CHAINS: &str = "ONSALE_BEACON_CHAINS";
        const DEFAULT: &str = "ONSALE_BEACON_DEFAULT";
        let mut urls = variables.list(URLS);
        if urls.is_empty() {
            urls = Self::default().urls;
        }
        let is_address = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if urls.len() > MAX_BEACON_URLS || !urls.iter().all(is_address) {
            let rule = "must hold at most eight http:// or https:// addresses";
            return Err(Defect { variable: URLS, rule });
        }
        let chain = |text: String| {
            let rule = "must be hash:key:genesis:period, more of them after commas: lower-case hexadecimal digits and seconds";
            text.parse().map_err(|_| Defect { variable: CHAINS, rule })
        };
        let chains: Vec<Chain> =
            variables.list(CHAINS).into_iter().map(chain).collect::<Result<_, _>>()?;
        let chains = Chains::with(chains);
        let Some(default) = variables.optional(DEFAULT) else { return Ok(Self { urls, chains }) };
        let known = default.parse().ok().and_then(|default| chains.by_default(default));
        let rule = "must be the hash of drand's quicknet, or of one of ONSALE_BEACON_CHAINS";
        let chains = known.ok_or(Defect { variable: DEFAULT, rule })?;
        Ok(Self { urls, chains })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::functions::QueueName;

    const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

    /// The value of a variable in the least configuration.
    fn least(variable: &str) -> Option<String> {
        let named = |queue: &QueueName| queue.url_variable() == variable;
        match QueueName::ALL.into_iter().find(named) {
            Some(queue) => Some(format!("http://q/1/{}", queue.as_str())),
            None => (variable == "ONSALE_REDIS_URL").then(|| "redis://:hunter2@cache:6379".into()),
        }
    }

    fn read(changes: &[(&str, &str)]) -> Result<Config, Defect> {
        let changed = |variable: &str| {
            changes.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned())
        };
        Config::read(|variable| changed(variable).or_else(|| least(variable)))
    }

    #[test]
    fn the_least_configuration_has_defaults() {
        let config = read(&[]).unwrap();
        assert!(matches!(config.redis.topology, Topology::Single(_)));
        assert_eq!(config.dynamodb.tables, Tables::with_prefix(""));
        assert_eq!((config.dynamodb.endpoint, config.sqs.endpoint), (None, None));
        assert!(config.admission.keys.is_empty() && config.payments.secrets.is_empty());
        assert!(config.attendees.keys.is_empty());
        assert_eq!(config.challenges, ChallengeConfig::default());
        assert_eq!(config.payments.tolerance_seconds, 300);
        assert!(config.providers.apis.is_empty() && config.ca_file.is_none());
        assert_eq!(config.providers.grace.seconds(), 120);
        assert_eq!(config.sales, SalesConfig::default());
        assert_eq!(config.providers.call_rate.per_second(), 20);
        assert_eq!(config.providers.capture_refunds.0.per_second(), 1);
        assert_eq!(config.providers.list_lag.seconds(), 60);
        assert_eq!(config.metrics, MetricsConfig::Off);
        assert!(config.edge.is_empty());
        assert_eq!(config.operators.issuer, None);
        assert_eq!(config.webhooks, WebhooksConfig::default());
        assert_eq!(config.bus, BusConfig::default());
        assert_eq!(config.beacon.urls, DEFAULT_BEACON_URLS);
        assert_eq!(config.beacon.chains, Chains::default());
    }

    #[test]
    fn an_event_bus_has_the_name_or_the_arn_of_one() {
        let arn = "arn:aws:events:eu-central-1:111122223333:event-bus/orders";
        for name in ["default", "orders_1.x-y", arn] {
            let read = read(&[("ONSALE_EVENT_BUS", name)]).unwrap().bus;
            assert_eq!(read, BusConfig { name: Some(name.to_owned()), endpoint: None });
        }
        for bad in ["my bus", "bus\n", &"b".repeat(MAX_BUS_BYTES + 1)] {
            let defect = read(&[("ONSALE_EVENT_BUS", bad)]).unwrap_err();
            assert_eq!(defect.variable, "ONSALE_EVENT_BUS");
        }
    }

    #[test]
    fn the_beacon_has_addresses_and_chains_with_their_keys() {
        let (hash, key) = ("ab".repeat(32), "cd".repeat(96));
        let changes = [
            ("ONSALE_BEACON_URLS", "http://127.0.0.1:9, https://b.example/"),
            ("ONSALE_BEACON_CHAINS", &format!("{hash}:{key}:1767225600:1")),
            ("ONSALE_BEACON_DEFAULT", &hash),
        ];
        let beacon = read(&changes).unwrap().beacon;
        assert_eq!(beacon.urls, ["http://127.0.0.1:9", "https://b.example/"]);
        let chains: Vec<String> = beacon.chains.others().iter().map(Chain::to_string).collect();
        assert_eq!(chains, [format!("{hash}:{key}:1767225600:1")]);
        assert_eq!(beacon.chains.default_chain().chain.to_string(), hash);
        let nine = ["http://a"; 9].join(",");
        let short = format!("{hash}:{}", &key[2..]);
        for (variable, bad) in [
            ("ONSALE_BEACON_URLS", nine.as_str()),
            ("ONSALE_BEACON_CHAINS", short.as_str()),
            ("ONSALE_BEACON_CHAINS", hash.as_str()),
        ] {
            assert_eq!(read(&[(variable, bad)]).unwrap_err().variable, variable, "{bad}");
        }
    }

    #[test]
    fn the_grace_is_set_in_seconds() {
        let grace = |seconds: &str| {
            let changes = [("ONSALE_PAYMENT_GRACE_SECONDS", seconds)];
            read(&changes).map(|config| config.providers.grace.seconds())
        };
        assert_eq!((grace("0"), grace("3600")), (Ok(0), Ok(3600)));
    }

    #[test]
    fn sales_are_archived_after_days_or_never_and_remembered_in_bytes() {
        let days = |text: &str| {
            let changes = [("ONSALE_ARCHIVE_AFTER_DAYS", text)];
            read(&changes).map(|config| config.sales.archive_after_days)
        };
        assert_eq!(
            (days("0"), days("3650"), days("never")),
            (Ok(Some(0)), Ok(Some(3650)), Ok(None))
        );
        let bytes = read(&[("ONSALE_CATALOGUE_BYTES", "1048576")]);
        assert_eq!(bytes.map(|config| config.sales.memory_bytes), Ok(MIN_CATALOGUE_BYTES));
    }

    #[test]
    fn metrics_have_a_stage() {
        let on = [("ONSALE_METRICS", "emf"), ("ONSALE_STAGE", "prod")];
        let emf = MetricsConfig::Emf { stage: "prod".to_owned(), endpoint: None };
        assert_eq!(read(&on).unwrap().metrics, emf);
        assert_eq!(read(&on[..1]).unwrap_err().variable, "ONSALE_STAGE");
        assert_eq!(read(&on[1..]).unwrap().metrics, MetricsConfig::Off);
    }

    #[test]
    fn a_provider_is_asked_at_its_own_address_unless_told_where() {
        let changes = [
            ("ONSALE_PROVIDER_KEYS", "stripe:sk_1,eu:sk_2"),
            ("ONSALE_PROVIDER_URLS", "eu:http://127.0.0.1:9"),
        ];
        let apis = read(&changes).unwrap().providers.apis;
        let asked: Vec<(&str, Option<&str>, &[u8])> = apis
            .iter()
            .map(|api| (api.provider.as_str(), api.url.as_deref(), api.key.0.as_slice()))
            .collect();
        let eu = ("eu", Some("http://127.0.0.1:9"), b"sk_2".as_slice());
        assert_eq!(asked, [("stripe", None, b"sk_1".as_slice()), eu]);
    }

    #[test]
    fn merchants_come_as_text_or_from_a_file_and_not_both() {
        let merchants = |changes: &[(&str, &str)]| {
            read(changes).map(|config| config.providers.merchants).map_err(|defect| defect.variable)
        };
        let text = MerchantsSource::Text(Secret(b"{}".to_vec()));
        assert_eq!(merchants(&[]), Ok(MerchantsSource::Absent));
        assert_eq!(merchants(&[("ONSALE_MERCHANTS", "{}")]), Ok(text));
        let file = ("ONSALE_MERCHANTS_FILE", "/opt/merchants.json");
        assert_eq!(merchants(&[file]), Ok(MerchantsSource::File(file.1.to_owned())));
        assert_eq!(merchants(&[("ONSALE_MERCHANTS", "{}"), file]), Err(MERCHANTS_FILE));
        let secret = ("ONSALE_MERCHANTS_SECRET", "onsale/merchants");
        assert_eq!(merchants(&[secret]), Ok(MerchantsSource::Secret(secret.1.to_owned())));
        assert_eq!(merchants(&[secret, file]), Err(MERCHANTS_FILE));
    }

    #[test]
    fn a_provider_of_challenges_is_asked_at_its_own_address_unless_told_where() {
        let changes = [
            ("ONSALE_SITEVERIFY_SECRETS", "turnstile:1x:00,hcaptcha:0x00"),
            ("ONSALE_SITEVERIFY_URLS", "hcaptcha:http://127.0.0.1:9/siteverify"),
        ];
        let apis = read(&changes).unwrap().challenges.siteverify;
        let [turnstile, hcaptcha] = apis.as_slice() else { panic!("{apis:?}") };
        assert_eq!((turnstile.provider, &turnstile.url), (SiteverifyProvider::Turnstile, &None));
        assert_eq!(turnstile.secret, Secret(b"1x:00".to_vec()));
        assert_eq!(hcaptcha.url.as_deref(), Some("http://127.0.0.1:9/siteverify"));
    }

    #[test]
    fn keys_and_secrets_come_in_order_and_may_be_several() {
        let keys = format!("new:{KEY}, old:{KEY}");
        let changes = [
            ("ONSALE_ADMISSION_KEYS", keys.as_str()),
            ("ONSALE_ATTENDEE_KEYS", keys.as_str()),
            ("ONSALE_CHALLENGE_KEYS", keys.as_str()),
            ("ONSALE_PAYMENT_SECRETS", "stripe:whsec_1,stripe:whsec:2"),
            ("ONSALE_REDIS_CLUSTER", "true"),
        ];
        let config = read(&changes).unwrap();
        let kids: Vec<&str> = config.admission.keys.iter().map(|(kid, _)| kid.as_str()).collect();
        assert_eq!(kids, ["new", "old"]);
        assert_eq!(config.attendees.keys, config.admission.keys);
        assert_eq!(config.challenges.keys, config.admission.keys);
        assert_eq!(config.payments.secrets[1].1, Secret(b"whsec:2".to_vec()));
        assert!(matches!(config.redis.topology, Topology::Cluster(_)));
    }

    #[test]
    fn a_defect_names_its_variable_and_shows_no_value() {
        let twice = format!("a:{KEY},a:{KEY}");
        let thrice = format!("a:{KEY},b:{KEY},c:{KEY}");
        let cases = [
            ("ONSALE_REDIS_URL", ""),
            ("ONSALE_REDIS_URL", "hunter2"),
            ("ONSALE_REDIS_CLUSTER", "hunter2"),
            ("ONSALE_SYNC_QUEUE_URL", ""),
            ("ONSALE_ADMISSION_KEYS", "hunter2"),
            ("ONSALE_ADMISSION_KEYS", "a:hunter2"),
            ("ONSALE_ADMISSION_KEYS", "a:aHVudGVyMg=="),
            ("ONSALE_ADMISSION_KEYS", twice.as_str()),
            ("ONSALE_ATTENDEE_KEYS", "a:aHVudGVyMg=="),
            ("ONSALE_ATTENDEE_KEYS", thrice.as_str()),
            ("ONSALE_CHALLENGE_KEYS", "a:aHVudGVyMg=="),
            ("ONSALE_CHALLENGE_KEYS", thrice.as_str()),
            ("ONSALE_SITEVERIFY_SECRETS", "hunter2"),
            ("ONSALE_SITEVERIFY_SECRETS", "hunter2:hunter2"),
            ("ONSALE_SITEVERIFY_SECRETS", "hcaptcha:hunter2,hcaptcha:hunter2"),
            ("ONSALE_SITEVERIFY_URLS", "hcaptcha:hunter2"),
            ("ONSALE_SITEVERIFY_URLS", "hcaptcha:https://hunter2"),
            ("ONSALE_PAYMENT_SECRETS", "Stripe:hunter2"),
            ("ONSALE_PAYMENT_TOLERANCE_SECONDS", "hunter2"),
            ("ONSALE_CALLBACK_KEYS", "hunter2"),
            ("ONSALE_EDGE_SECRETS", "hunter2"),
            ("ONSALE_EDGE_SECRETS", "[]"),
            ("ONSALE_EDGE_SECRETS", "[\"hunter2\"]"),
            ("ONSALE_CALLBACK_SOURCES", "hunter2"),
            ("ONSALE_PROVIDER_KEYS", "Stripe:hunter2"),
            ("ONSALE_PROVIDER_KEYS", "stripe:hunter2,stripe:hunter2"),
            ("ONSALE_PROVIDER_URLS", "stripe:hunter2"),
            ("ONSALE_PROVIDER_URLS", "stripe:https://hunter2"),
            ("ONSALE_PAYMENT_GRACE_SECONDS", "hunter2"),
            ("ONSALE_PAYMENT_GRACE_SECONDS", "3601"),
            ("ONSALE_PROVIDER_CALLS_PER_SECOND", "hunter2"),
            ("ONSALE_PROVIDER_CALLS_PER_SECOND", "0"),
            ("ONSALE_PROVIDER_LIST_LAG_SECONDS", "241"),
            ("ONSALE_BEACON_URLS", "hunter2"),
            ("ONSALE_BEACON_CHAINS", "hunter2"),
            ("ONSALE_METRICS", "hunter2"),
            ("ONSALE_OPERATOR_ISSUER", "hunter2"),
            ("ONSALE_SITE_ORIGIN", "hunter2"),
            ("ONSALE_SITE_ORIGIN", "https://hunter2/path"),
            ("ONSALE_CONNECT_ORIGINS", "https://issuer.example,hunter2"),
            ("ONSALE_CATALOGUE_BYTES", "hunter2"),
            ("ONSALE_CATALOGUE_BYTES", "1048575"),
            ("ONSALE_ARCHIVE_AFTER_DAYS", "hunter2"),
            ("ONSALE_ARCHIVE_AFTER_DAYS", "3651"),
        ];
        for (variable, value) in cases {
            // An empty variable of the least configuration must not fall back to it.
            let defect = read(&[(variable, value)]).unwrap_err();
            assert_eq!(defect.variable, variable, "{value:?}");
            assert!(!format!("{defect} {defect:?}").contains("hunter2"));
        }
    }

    #[test]
    fn the_documentation_lists_exactly_what_is_read() {
        let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let find = |variable: &str| {
            asked.borrow_mut().insert(variable.to_owned());
            least(variable)
        };
        Config::read(find).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let listed = rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned());
        assert_eq!(listed.collect::<std::collections::BTreeSet<_>>(), asked.into_inner());
    }

    #[test]
    fn what_pages_may_call_are_the_origins_of_addresses_each_once() {
        let issuers = "https://issuer.example/pool,https://staff.example/,https://issuer.example,";
        let site = read(&[("ONSALE_CONNECT_ORIGINS", issuers)]).unwrap().site;
        let connect: Vec<String> = site.connect.iter().map(ToString::to_string).collect();
        assert_eq!(connect, ["https://issuer.example", "https://staff.example"]);
        assert_eq!(site.origin, None);
    }

    #[test]
    fn debug_shows_no_secret() {
        let keys = format!("a:{KEY}");
        let changes = [
            ("ONSALE_ADMISSION_KEYS", keys.as_str()),
            ("ONSALE_ATTENDEE_KEYS", keys.as_str()),
            ("ONSALE_PAYMENT_SECRETS", "stripe:hunter2"),
            ("ONSALE_CHALLENGE_KEYS", keys.as_str()),
            ("ONSALE_SITEVERIFY_SECRETS", "turnstile:hunter2"),
            ("ONSALE_PROVIDER_KEYS", "stripe:hunter2"),
            ("ONSALE_MERCHANTS", "hunter2"),
            ("ONSALE_CALLBACK_KEYS", "hunter2hunter2hunter2hunter2hunter2"),
            ("ONSALE_EDGE_SECRETS", "[\"hunter2hunter2hunter2hunter2hunter2\"]"),
        ];
        let shown = format!("{:?}", read(&changes).unwrap());
        assert!(!shown.contains("hunter2") && !shown.contains("49, 50"), "{shown}");
    }
}
