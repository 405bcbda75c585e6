//! The environment variables of the functions: the inverse of [`Config::read`].

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use shared::beacon::Chain;
use shared::dynamodb::Tables;
use shared::redis::Topology;
use shared::runtime::config::{
    AdmissionConfig, BusConfig, Config, MetricsConfig, PaymentConfig, ProviderApi, Secret,
    SiteConfig,
};
use shared::runtime::functions::QueueName;
use shared::runtime::merchants::{MERCHANTS, MERCHANTS_FILE, MERCHANTS_SECRET, MerchantsSource};

/// The key that the admissions in `tests/events/` are signed with, and its id. Published: nothing but
/// a function that is tried on one machine may accept it.
pub const SAMPLE_KEY: (&str, &[u8]) = ("sample", b"published: only to try the sample events");
/// The secret that the payments in `tests/events/` are signed with. As published.
pub const SAMPLE_SECRET: &[u8] = b"whsec_published_only_to_try_the_sample_events";

/// The key of the path that the callbacks of the entry in `tests/events/` have. As published.
pub const SAMPLE_ENTRY_KEY: &str = "published-only-to-try-the-sample-events";

pub type Variables = BTreeMap<&'static str, String>;

/// The variables of functions that run as `config` says.
#[must_use]
pub fn variables(config: &Config) -> Variables {
    let text = |secret: &Secret| String::from_utf8_lossy(&secret.0).into_owned();
    let urls = &config.sqs.urls;
    let (redis, is_cluster) = match &config.redis.topology {
        Topology::Single(url) => (url.clone(), false),
        Topology::Cluster(urls) => (urls.join(","), true),
    };
    let verifiers = config.challenges.siteverify.iter();
    let verifier_secrets = verifiers.clone().map(|api| (api.provider.as_str(), text(&api.secret)));
    let verifier_urls = verifiers.filter_map(|api| Some((api.provider.as_str(), api.url.clone()?)));
    let payments = config.payments.secrets.iter();
    let payments = payments.map(|(provider, secret)| (provider, text(secret)));
    let apis = config.providers.apis.iter();
    let keys = apis.clone().map(|ProviderApi { provider, key, .. }| (provider, text(key)));
    let addresses =
        apis.filter_map(|ProviderApi { provider, url, .. }| Some((provider, url.clone()?)));
    let (metrics, stage, cloudwatch) = metrics(&config.metrics);
    let [merchants, merchants_file, merchants_secret] = merchants(&config.providers.merchants);
    let archive_after = config.sales.archive_after_days;
    let archive_after = archive_after.map_or_else(|| "never".to_owned(), |days| days.to_string());
    let queues = QueueName::ALL.map(|queue| (queue.url_variable(), urls.get(queue).clone()));
    let entry_keys: Vec<String> = config.callbacks.keys.iter().map(text).collect();
    let sources: Vec<String> = config.callbacks.sources.iter().map(ToString::to_string).collect();
    let origins: Vec<String> =
        config.providers.return_origins.iter().map(ToString::to_string).collect();
    let chains: Vec<String> = config.beacon.chains.others().iter().map(Chain::to_string).collect();
    let capture_refunds = config.providers.capture_refunds;
    let deployment = config.providers.deployment.as_ref().map(ToString::to_string);
    let others = [
        ("ONSALE_DEPLOYMENT_ID", deployment.unwrap_or_default()),
        ("ONSALE_CALLBACK_KEYS", entry_keys.join(",")),
        ("ONSALE_CALLBACK_SOURCES", sources.join(",")),
        ("ONSALE_EDGE_SECRETS", config.edge.text()),
        ("ONSALE_TICKET_KEYS", config.tickets.text()),
        ("ONSALE_WEBHOOK_KEYS", config.webhooks.keys.0.text()),
        ("ONSALE_WEBHOOK_ADDRESSES", config.webhooks.addresses.as_str().to_owned()),
        ("ONSALE_REDIS_URL", redis),
        ("ONSALE_REDIS_CLUSTER", is_cluster.to_string()),
        ("ONSALE_TABLE_PREFIX", prefix(&config.dynamodb.tables)),
        ("ONSALE_DYNAMODB_ENDPOINT", config.dynamodb.endpoint.clone().unwrap_or_default()),
        ("ONSALE_SQS_ENDPOINT", config.sqs.endpoint.clone().unwrap_or_default()),
        ("ONSALE_ADMISSION_KEYS", keys_by_id(&config.admission.keys)),
        ("ONSALE_ATTENDEE_KEYS", keys_by_id(&config.attendees.keys)),
        ("ONSALE_CHALLENGE_KEYS", keys_by_id(&config.challenges.keys)),
        ("ONSALE_SITEVERIFY_SECRETS", pairs(verifier_secrets)),
        ("ONSALE_SITEVERIFY_URLS", pairs(verifier_urls)),
        ("ONSALE_PAYMENT_SECRETS", pairs(payments)),
        ("ONSALE_PAYMENT_TOLERANCE_SECONDS", config.payments.tolerance_seconds.to_string()),
        ("ONSALE_PAYMENT_GRACE_SECONDS", config.providers.grace.seconds().to_string()),
        ("ONSALE_PROVIDER_CALLS_PER_SECOND", config.providers.call_rate.per_second().to_string()),
        ("ONSALE_CAPTURE_REFUNDS_PER_SECOND", capture_refunds.0.per_second().to_string()),
        ("ONSALE_PROVIDER_LIST_LAG_SECONDS", config.providers.list_lag.seconds().to_string()),
        ("ONSALE_PAYMENTS_ONLY_STARTED_HERE", config.providers.only_started_here.to_string()),
        ("ONSALE_RETURN_ORIGINS", origins.join(",")),
        ("ONSALE_PROVIDER_KEYS", pairs(keys)),
        ("ONSALE_PROVIDER_URLS", pairs(addresses)),
        (MERCHANTS, merchants),
        (MERCHANTS_FILE, merchants_file),
        (MERCHANTS_SECRET, merchants_secret),
        ("ONSALE_BEACON_URLS", config.beacon.urls.join(",")),
        ("ONSALE_BEACON_CHAINS", chains.join(",")),
        ("ONSALE_BEACON_DEFAULT", config.beacon.chains.default_chain().chain.to_string()),
        ("ONSALE_CATALOGUE_BYTES", config.sales.memory_bytes.to_string()),
        ("ONSALE_ARCHIVE_AFTER_DAYS", archive_after),
        ("ONSALE_METRICS", metrics),
        ("ONSALE_STAGE", stage),
        ("ONSALE_CLOUDWATCH_ENDPOINT", cloudwatch),
        ("ONSALE_OPERATOR_ISSUER", config.operators.issuer.clone().unwrap_or_default()),
        ("ONSALE_CA_FILE", config.ca_file.clone().unwrap_or_default()),
    ];
    queues.into_iter().chain(others).chain(bus(&config.bus)).chain(site(&config.site)).collect()
}

/// How metrics are written, of which stage, and where they are read.
fn metrics(config: &MetricsConfig) -> (String, String, String) {
    match config {
        MetricsConfig::Off => Default::default(),
        MetricsConfig::Emf { stage, endpoint } => {
            ("emf".to_owned(), stage.clone(), endpoint.clone().unwrap_or_default())
        }
    }
}

/// Where the pages are, and what they may call.
fn site(config: &SiteConfig) -> [(&'static str, String); 2] {
    let SiteConfig { origin, connect } = config;
    let connect: Vec<String> = connect.iter().map(ToString::to_string).collect();
    [
        ("ONSALE_SITE_ORIGIN", origin.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("ONSALE_CONNECT_ORIGINS", connect.join(",")),
    ]
}

/// The event bus, if there is one.
fn bus(config: &BusConfig) -> [(&'static str, String); 2] {
    let BusConfig { name, endpoint } = config;
    [("ONSALE_EVENT_BUS", name), ("ONSALE_EVENTBRIDGE_ENDPOINT", endpoint)]
        .map(|(variable, value)| (variable, value.clone().unwrap_or_default()))
}

/// The document of merchants, the file that has it, and the secret: one of them at most is not empty.
fn merchants(source: &MerchantsSource) -> [String; 3] {
    let none = String::new;
    match source {
        MerchantsSource::Absent => [none(), none(), none()],
        MerchantsSource::Text(Secret(text)) => {
            [String::from_utf8_lossy(text).into_owned(), none(), none()]
        }
        MerchantsSource::File(file) => [none(), file.clone(), none()],
        MerchantsSource::Secret(secret) => [none(), none(), secret.clone()],
    }
}

/// The variables as a file for `cargo lambda watch --env-file`, which cannot read an empty value or a
/// `=` in one unless it is quoted. It knows no quotes within them.
#[must_use]
pub fn env_file(variables: &Variables) -> String {
    variables.iter().map(|(name, value)| format!("{name}=\"{value}\"\n")).collect()
}

/// Makes functions accept the events in `tests/events/` as well: their signatures, and payments of any
/// age.
#[must_use]
pub fn with_sample_events(mut config: Config) -> Config {
    let AdmissionConfig { keys } = &mut config.admission;
    let PaymentConfig { secrets, tolerance_seconds } = &mut config.payments;
    let (kid, key) = SAMPLE_KEY;
    keys.push((kid.to_owned(), Secret(key.to_vec())));
    config.callbacks.keys.push(Secret(SAMPLE_ENTRY_KEY.as_bytes().to_vec()));
    let providers: Vec<_> = secrets.iter().map(|(provider, _)| provider.clone()).collect();
    secrets
        .extend(providers.into_iter().map(|provider| (provider, Secret(SAMPLE_SECRET.to_vec()))));
    *tolerance_seconds = u32::MAX;
    config
}

/// Prefix of the tables' names.
fn prefix(tables: &Tables) -> String {
    let bare = Tables::with_prefix("").orders;
    tables.orders.strip_suffix(&bare).unwrap_or_default().to_owned()
}

/// Keys by id, the secrets in base64.
fn keys_by_id(keys: &[(String, Secret)]) -> String {
    pairs(keys.iter().map(|(kid, key)| (kid, BASE64_STANDARD.encode(&key.0))))
}

/// `name:value,name:value`.
fn pairs(all: impl Iterator<Item = (impl std::fmt::Display, String)>) -> String {
    all.map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use engine::domain::admission::call_rate::CallRate;
    use engine::domain::basics::ids::ProviderId;
    use engine::domain::payment::captures::ListLag;
    use engine::domain::payment::grace::Grace;
    use engine::domain::sale::challenge::SiteverifyProvider;
    use shared::beacon::Chains;
    use shared::events::{Addresses, WebhookKeys};
    use shared::http::origin::Origin;
    use shared::providers::CaptureRefunds;
    use shared::runtime::callbacks::CallbackEntry;
    use shared::runtime::config::{
        AttendeeConfig, BeaconConfig, BusConfig, ChallengeConfig, DynamoDbConfig, OperatorsConfig,
        ProvidersConfig, RedisConfig, SalesConfig, SiteverifyApi, SqsConfig, WebhooksConfig,
    };
    use shared::runtime::edge::EdgeSecrets;
    use shared::runtime::listed_secrets::ListedSecrets;
    use shared::sqs::QueueUrls;
    use shared::tickets::TicketSecrets;

    use super::*;

    #[expect(clippy::too_many_lines, reason = "every field of the configuration")]
    fn config(topology: Topology, metrics: MetricsConfig) -> Config {
        let stripe = || ProviderId::new("stripe").unwrap();
        Config {
            redis: RedisConfig { topology, kind: None },
            sales: SalesConfig::default(),
            dynamodb: DynamoDbConfig {
                tables: Tables::with_prefix("try-"),
                endpoint: Some("http://127.0.0.1:2".to_owned()),
            },
            sqs: SqsConfig {
                urls: QueueUrls::each(|queue| format!("http://127.0.0.1:3/{}", queue.as_str())),
                endpoint: Some("http://127.0.0.1:3".to_owned()),
            },
            admission: AdmissionConfig { keys: vec![("local".to_owned(), Secret(vec![200; 32]))] },
            attendees: AttendeeConfig { keys: vec![("local".to_owned(), Secret(vec![201; 32]))] },
            challenges: ChallengeConfig {
                keys: vec![("local".to_owned(), Secret(vec![202; 32]))],
                siteverify: vec![SiteverifyApi {
                    provider: SiteverifyProvider::Turnstile,
                    url: Some("http://127.0.0.1:5/siteverify".to_owned()),
                    secret: Secret(b"1x00".to_vec()),
                }],
            },
            payments: PaymentConfig {
                secrets: vec![(stripe(), Secret(b"whsec_1".to_vec()))],
                tolerance_seconds: 300,
            },
            callbacks: CallbackEntry {
                keys: vec![Secret(vec![b'k'; 32])],
                sources: vec!["203.0.113.0/24".parse().unwrap()],
            },
            edge: EdgeSecrets::new(vec!["e".repeat(32), "f".repeat(32)]).unwrap(),
            tickets: TicketSecrets::new(vec!["t".repeat(32), "u".repeat(32)]).unwrap(),
            bus: BusConfig {
                name: Some("orders".to_owned()),
                endpoint: Some("http://127.0.0.1:7".to_owned()),
            },
            webhooks: WebhooksConfig {
                keys: WebhookKeys(
                    ListedSecrets::new(vec!["v".repeat(32), "w".repeat(32)]).unwrap(),
                ),
                addresses: Addresses::Any,
            },
            providers: ProvidersConfig {
                apis: vec![ProviderApi {
                    provider: stripe(),
                    url: Some("http://127.0.0.1:4".to_owned()),
                    key: Secret(b"sk_1".to_vec()),
                }],
                merchants: MerchantsSource::File("merchants.json".to_owned()),
                grace: Grace::NONE,
                call_rate: CallRate::from_per_second(7).unwrap(),
                capture_refunds: CaptureRefunds(CallRate::from_per_second(2).unwrap()),
                list_lag: ListLag::from_seconds(3).unwrap(),
                only_started_here: true,
                return_origins: vec![Origin::new("http://127.0.0.1:7").unwrap()],
                deployment: Some("0123abcd".parse().unwrap()),
            },
            beacon: BeaconConfig {
                urls: vec!["http://127.0.0.1:5".to_owned(), "http://127.0.0.1:6".to_owned()],
                chains: Chains::with([Chain {
                    rounds: fake_beacon::rounds(),
                    key: fake_beacon::key(),
                }])
                .by_default(fake_beacon::hash())
                .unwrap(),
            },
            operators: OperatorsConfig { issuer: Some("http://127.0.0.1:8/operators".to_owned()) },
            metrics,
            site: SiteConfig {
                origin: Origin::new("http://127.0.0.1:8"),
                connect: vec![Origin::new("http://127.0.0.1:9").unwrap()],
            },
            ca_file: None,
        }
    }

    #[test]
    fn functions_read_what_was_written() {
        let one = Topology::Single("redis://127.0.0.1:1".to_owned());
        let url = |port: u16| format!("redis://127.0.0.1:{port}");
        let emf = MetricsConfig::Emf {
            stage: "dev".to_owned(),
            endpoint: Some("http://127.0.0.1:9".to_owned()),
        };
        let cluster = Topology::Cluster(vec![url(1), url(2)]);
        for config in [config(one, MetricsConfig::Off), config(cluster, emf)] {
            for config in [config.clone(), with_sample_events(config)] {
                let variables = variables(&config);
                let read = Config::read(|name| variables.get(name).cloned()).unwrap();
                assert_eq!(read, config);
            }
        }
    }

    #[test]
    fn sample_events_are_accepted_besides_and_sign_nothing() {
        let config =
            with_sample_events(config(Topology::Single(String::new()), MetricsConfig::Off));
        let kids: Vec<&str> = config.admission.keys.iter().map(|(kid, _)| kid.as_str()).collect();
        assert_eq!(kids, ["local", SAMPLE_KEY.0], "the first key signs");
        assert_eq!(config.payments.secrets.len(), 2);
    }
}
