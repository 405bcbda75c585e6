//! What an engine connects to: over TLS, with the authorities it was given; before its first request;
//! and again, when it wakes up with connections that are dead.
//!
//! All on one thread, as in the functions: on several, the next request may be quicker than the last
//! one's connection, which is back in the pool a moment after its answer, and connect once more.

use cold::certificates::Authority;
use cold::proxy::{Proxy, Severed};
use engine::domain::order::OrderState;
use engine::flows::reserve::reserve;
use engine::ports::{Catalogue, Freshness, Orders, Ports, Provider, Queue, Seats, StoreError};
use shared::redis::Topology;
use shared::runtime::app::{App, Need};
use shared::runtime::config::Config;
use tempfile::NamedTempFile;

use super::environment::{Fixture, NOW, inventory, sale_id};

/// Connections that `reserve` needs.
const NEEDS: [Need; 3] = [Need::Redis, Need::Sales, Need::Queues];
/// Names in the certificates of the servers.
const LOCALHOST: [&str; 2] = ["127.0.0.1", "localhost"];

/// A proxy before each server of a fixture, and the configuration that leads through them.
struct Proxies {
    redis: Proxy,
    dynamodb: Proxy,
    sqs: Proxy,
    provider: Proxy,
    config: Config,
    authority: Authority,
    _ca_file: NamedTempFile,
}

fn port_of(url: &str) -> u16 {
    url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap()
}

impl Proxies {
    async fn before(fixture: &Fixture, names: &[&str]) -> Self {
        let authority = Authority::new().unwrap();
        let tls = authority.server(names).unwrap();
        let proxy = async |url: &str| Proxy::start(port_of(url), Some(tls.clone())).await.unwrap();
        let mut config = fixture.config.clone();
        let Topology::Single(redis) = &config.redis.topology else { panic!("one server") };
        let redis = proxy(redis).await;
        config.redis.topology = Topology::Single(redis.redis_url());
        let dynamodb = proxy(config.dynamodb.endpoint.as_ref().unwrap()).await;
        config.dynamodb.endpoint = Some(dynamodb.http_url());
        let sqs = proxy(config.sqs.endpoint.as_ref().unwrap()).await;
        config.sqs.endpoint = Some(sqs.http_url());
        let provider = proxy(config.providers.apis[0].url.as_ref().unwrap()).await;
        config.providers.apis[0].url = Some(provider.http_url());
        let ca_file = NamedTempFile::new().unwrap();
        std::fs::write(&ca_file, authority.pem()).unwrap();
        config.ca_file = Some(ca_file.path().display().to_string());
        Self { redis, dynamodb, sqs, provider, config, authority, _ca_file: ca_file }
    }

    fn accepted(&self) -> [usize; 3] {
        [&self.redis, &self.dynamodb, &self.sqs].map(Proxy::accepted)
    }

    fn sever(&self, how: Severed) {
        for proxy in [&self.redis, &self.dynamodb, &self.sqs] {
            proxy.sever(how);
        }
    }
}

/// What the handler of a reservation does to the stores: the sale, and then the order.
async fn make_order(fixture: &Fixture, app: &App, user: &str) {
    let reservation = fixture.reservation(user).await;
    let number = reservation.number;
    let sale = app.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await;
    sale.unwrap().expect("the sale is published");
    reserve(&app.ports, &reservation, NOW).await.unwrap();
    assert_eq!(fixture.state(number).await, Some(OrderState::Pending));
}

#[tokio::test]
async fn a_first_reservation_over_tls_finds_every_connection_made() {
    let fixture = Fixture::start().await;
    let proxies = Proxies::before(&fixture, &LOCALHOST).await;
    let app = App::from_config(&proxies.config).await.unwrap();
    assert_eq!(proxies.accepted(), [0; 3], "nothing is connected before it is needed");
    app.warm_up(&NEEDS).await;
    assert_eq!(proxies.accepted(), [1; 3]);
    make_order(&fixture, &app, "alice").await;
    assert_eq!(proxies.accepted(), [1; 3], "the reservation had to connect");

    // Without the warm-up it does have to.
    let cold = App::from_config(&proxies.config).await.unwrap();
    cold.warm_up(&[Need::Sales]).await;
    assert_eq!(proxies.accepted(), [1, 2, 1], "only what is needed is connected to");
    make_order(&fixture, &cold, "bob").await;
    assert_eq!(proxies.accepted(), [2; 3]);

    // Providers are asked over TLS as well.
    let order = fixture.reservation("carol").await;
    reserve(&app.ports, &order, NOW).await.unwrap();
    let order = fixture.ports.orders().get(order.number).await.unwrap().unwrap();
    assert_eq!(app.ports.provider().captures(&order).await, Ok(Some(vec![])));
    assert_eq!(proxies.provider.accepted(), 1);
}

#[tokio::test]
async fn each_kind_of_need_connects_by_what_its_role_may_do() {
    let fixture = Fixture::start().await;
    let proxies = Proxies::before(&fixture, &LOCALHOST).await;
    for (round, need) in [Need::Sales, Need::Order, Need::Orders].into_iter().enumerate() {
        App::from_config(&proxies.config).await.unwrap().warm_up(&[need]).await;
        assert_eq!(proxies.accepted(), [0, round + 1, 0], "{need:?}");
    }
    App::from_config(&proxies.config).await.unwrap().warm_up(&[Need::Queues]).await;
    assert_eq!(proxies.accepted(), [0, 3, 1]);
}

/// Asks each server once, and expects none to be trusted.
async fn must_trust_nobody(fixture: &Fixture, config: &Config, what: &str) {
    let app = App::from_config(config).await.unwrap();
    // It starts all the same, and says no to its first buyer.
    app.warm_up(&NEEDS).await;
    let refused = app.ports.seats().epoch(&inventory()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{what}: {refused:?}");
    let refused = app.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await.unwrap_err();
    assert!(refused.retryable() && refused.to_string().contains("ertificate"), "{what}: {refused}");
    let number = fixture.reservation("mallory").await.number;
    let refused = app.ports.queue().sync(number).await.unwrap_err();
    assert!(refused.retryable() && refused.to_string().contains("ertificate"), "{what}: {refused}");
}

#[tokio::test]
async fn a_server_that_cannot_prove_who_it_is_is_not_talked_to() {
    let fixture = Fixture::start().await;
    // Somebody else's name, by the right authority.
    let elsewhere = Proxies::before(&fixture, &["tickets.example"]).await;
    must_trust_nobody(&fixture, &elsewhere.config, "another name").await;
    // The right name, by an authority that nobody told us of.
    let proxies = Proxies::before(&fixture, &LOCALHOST).await;
    let public = Config { ca_file: None, ..proxies.config.clone() };
    must_trust_nobody(&fixture, &public, "the public authorities").await;
    std::fs::write(proxies._ca_file.path(), elsewhere.authority.pem()).unwrap();
    must_trust_nobody(&fixture, &proxies.config, "another authority").await;

    // And the control: told of it, it talks to the same servers.
    std::fs::write(proxies._ca_file.path(), proxies.authority.pem()).unwrap();
    let app = App::from_config(&proxies.config).await.unwrap();
    make_order(&fixture, &app, "alice").await;

    std::fs::write(proxies._ca_file.path(), "no certificate").unwrap();
    let defect = App::from_config(&proxies.config).await.unwrap_err();
    assert_eq!(defect.to_string(), "ONSALE_CA_FILE must name a file of authorities in PEM");
}

#[tokio::test]
async fn a_sandbox_that_wakes_up_with_dead_connections_serves_its_next_request() {
    let fixture = Fixture::start().await;
    let proxies = Proxies::before(&fixture, &LOCALHOST).await;
    let app = App::from_config(&proxies.config).await.unwrap();
    app.warm_up(&NEEDS).await;
    for (round, how) in [Severed::Closed, Severed::Reset, Severed::Silent].into_iter().enumerate() {
        proxies.sever(how);
        make_order(&fixture, &app, &format!("buyer-{round}")).await;
        let connected = proxies.accepted();
        assert_eq!(connected, [round + 2; 3], "{how:?}: once again each, and no more");
    }
    fixture.must_be_consistent().await;
}

/// Several connections in the pool, all dead: one request must not try them one by one.
#[tokio::test]
async fn a_pool_of_dead_connections_costs_one_attempt() {
    let fixture = Fixture::start().await;
    let proxies = Proxies::before(&fixture, &LOCALHOST).await;
    let app = App::from_config(&proxies.config).await.unwrap();
    let mut orders = Vec::new();
    for buyer in 0..8 {
        orders.push(fixture.reservation(&format!("buyer-{buyer}")).await);
    }
    let read_all = || {
        let reads = orders.iter().map(|order| app.ports.orders().get(order.number));
        futures_util::future::join_all(reads.collect::<Vec<_>>())
    };
    assert!(read_all().await.iter().all(Result::is_ok));
    let pooled = proxies.dynamodb.accepted();
    assert!(pooled >= 4, "only {pooled} connections in the pool: too few to tell");
    proxies.sever(Severed::Silent);
    // Each attempt may take 1.5 s and no attempt begins after 5: four dead ones would end it.
    assert_eq!(app.ports.orders().get(orders[0].number).await, Ok(None));
    assert_eq!(proxies.dynamodb.accepted(), pooled + 1);
}

#[tokio::test]
async fn a_function_starts_and_refuses_while_nobody_is_there() {
    let fixture = Fixture::start().await;
    let mut config = fixture.config.clone();
    let nowhere = "http://127.0.0.1:1".to_owned();
    config.redis.topology = Topology::Single("redis://127.0.0.1:1".to_owned());
    config.dynamodb.endpoint = Some(nowhere.clone());
    config.sqs.endpoint = Some(nowhere);
    let app = App::from_config(&config).await.unwrap();
    app.warm_up(&NEEDS).await;
    let refused = app.ports.seats().epoch(&inventory()).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    // One need that cannot be met keeps nobody from the others.
    let proxies = Proxies::before(&fixture, &LOCALHOST).await;
    let mut half = proxies.config.clone();
    half.redis.topology = Topology::Single("redis://127.0.0.1:1".to_owned());
    let app = App::from_config(&half).await.unwrap();
    app.warm_up(&NEEDS).await;
    assert_eq!(proxies.accepted(), [0, 1, 1]);
}
