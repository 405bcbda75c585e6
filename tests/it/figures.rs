//! What the metrics say of the last minutes: counted by the handlers, logged as a deployment logs it, extracted by a
//! fake of CloudWatch and read again; and kept by the engine itself on one machine, which must come to the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_cloudwatch::config::{
    BehaviorVersion, Credentials, Region, SharedCredentialsProvider, retry::RetryConfig,
};
use aws_sdk_cloudwatch::error::ProvideErrorMetadata as _;
use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{Metric as Named, MetricDataQuery, MetricStat};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::StoreError;
use fake_cloudwatch::{CloudWatch as Fake, Query};
use local::kept_metrics::{self, Kept};
use serde_json::{Value, json};
use shared::figures::cloudwatch::{CloudWatch, DELAY_SECONDS};
use shared::figures::{FigureSource as _, Figures, MAX_MINUTES, Minute};
use shared::http::figures::FiguresReply;
use shared::http::problem::Kind;
use shared::runtime::config::Config;
use shared::runtime::connections::{Https, Trust};
use shared::runtime::functions::Function;
use shared::runtime::metrics::{Metric, Metrics, Sink, Tally};

use crate::handlers::{Fixture, OPERATOR_ISSUER, Sender, best, hall};
use crate::metrics::{Lines, STAGE};

const ZHANG: Sender<'_> = Sender::Token(OPERATOR_ISSUER, "onsale/watch");

fn sale() -> SaleId {
    SaleId::new("hall").unwrap()
}

/// What a function reads the figures with.
async fn reader(fake: &Fake, changes: &[(&str, &str)]) -> Option<CloudWatch> {
    let changes: BTreeMap<&str, &str> = changes.iter().copied().collect();
    let variable = |name: &str| {
        let given = match name {
            "ONSALE_METRICS" => "emf",
            "ONSALE_STAGE" => STAGE,
            "ONSALE_CLOUDWATCH_ENDPOINT" => &fake.url(),
            "ONSALE_REDIS_URL" => "redis://127.0.0.1:1",
            "ONSALE_DYNAMODB_ENDPOINT" | "ONSALE_SQS_ENDPOINT" => "http://127.0.0.1:1",
            name if name.ends_with("_QUEUE_URL") => "http://127.0.0.1:1/queue",
            _ => "",
        };
        Some((*changes.get(name).unwrap_or(&given)).to_owned())
    };
    CloudWatch::from_config(&Config::read(variable).unwrap()).await.unwrap()
}

/// Somebody pays, somebody cancels, somebody finds nothing left, and somebody is not known.
async fn shop(fixture: &Fixture) {
    fixture.publish(&hall()).await.ok(200);
    let paid = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    fixture.callback("pi_1", &paid["order"], 5000).await.ok(200);
    let given_up = fixture.buy("bob", "hall", best("vip", 1)).await.ok(201);
    let cancel = format!("/orders/{}/cancel", given_up["order"].as_str().unwrap());
    fixture.json(Sender::Buyer("bob"), "POST", &cancel, &json!({})).await.ok(200);
    fixture.buy("carol", "hall", best("small", 4)).await.ok(201);
    fixture.buy("dave", "hall", best("small", 1)).await.problem(409, "sold-out");
    for _ in 0..2 {
        let target = "/sales/hall/orders";
        let refused = fixture.json(Sender::Nobody, "POST", target, &json!({})).await;
        refused.problem(401, "not-authenticated");
    }
}

/// What the points of a reply come to together.
fn sum(figures: &Value, name: &str) -> u64 {
    figures["points"].as_array().unwrap().iter().map(|point| point[name].as_u64().unwrap()).sum()
}

/// What a reply says, without its times.
fn told(figures: &Value) -> Value {
    let sums: BTreeMap<&str, u64> =
        ["admitted", "waiting", "held", "paid", "expired", "cancelled", "joined", "served", "came"]
            .map(|name| (name, sum(figures, name)))
            .into();
    let worked: BTreeMap<&str, &Value> = figures["latency"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (of["function"].as_str().unwrap(), &of["count"]))
        .filter(|(function, _)| *function != "figures")
        .collect();
    json!({ "sums": sums, "refused": figures["refused"], "errors": figures["server_errors"], "worked": worked })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_the_same_from_cloudwatch_and_on_one_machine() {
    let fake = Fake::start().await.unwrap();
    let mut deployed = Fixture::start().await;
    let lines = Lines::default();
    deployed.app.metrics = Metrics::to(STAGE, lines.clone());
    shop(&deployed).await;
    for line in lines.text().lines() {
        fake.log(line);
    }
    // What is logged now is shown when its minute has been over for a minute.
    let later = Timestamp::now().plus_seconds(120);
    let reader = reader(&fake, &[]).await.unwrap();
    let figures = reader.read(&sale(), 15, later).await.unwrap();
    let from_cloudwatch = json!(FiguresReply::new(sale(), &figures));
    assert_eq!(from_cloudwatch["delay_seconds"], DELAY_SECONDS);

    let mut local = Fixture::start().await;
    local.app = kept_metrics::kept(local.another_process().await);
    shop(&local).await;
    let kept = local.get(ZHANG, "/operator/sales/hall/figures").await.ok(200);
    assert_eq!((&kept["delay_seconds"], &kept["period_seconds"]), (&json!(0), &json!(60)));

    assert_eq!(told(&kept), told(&from_cloudwatch));
    let title = |kind: Kind, count: u64| json!({ "reason": kind.slug(), "title": kind.title(), "count": count });
    let expected = json!({
        "sums": { "admitted": 4, "waiting": 0, "held": 3, "paid": 1, "expired": 0, "cancelled": 1,
            "joined": 0, "served": 0, "came": 0 },
        "refused": [title(Kind::NotAuthenticated, 2), title(Kind::SoldOut, 1)],
        "errors": [],
        "worked": { "sales": 1, "token-gate": 4, "reserve": 6, "cancel": 1, "pay-callback": 1 },
    });
    assert_eq!(told(&kept), expected);
    for figures in [kept, from_cloudwatch] {
        for latency in figures["latency"].as_array().unwrap() {
            let (p50, p99) = (latency["p50_ms"].as_f64(), latency["p99_ms"].as_f64());
            assert!(Some(0.0) < p50 && p50 <= p99, "{latency}");
        }
    }
    // Another sale has none of its counts, and the same of the stage.
    let other = SaleId::new("other").unwrap();
    let figures =
        json!(FiguresReply::new(other.clone(), &reader.read(&other, 60, later).await.unwrap()));
    assert_eq!((sum(&figures, "held"), figures["points"].as_array().unwrap().len()), (0, 60));
    assert_eq!(figures["refused"][0]["count"], 2);
}

/// Checks what a whole request asks for: each metric by its name with dimensions that it is kept by, once.
fn check(queries: &[Query]) {
    let mut seen = BTreeSet::new();
    for query in queries {
        let names: Vec<&str> = query.dimensions.keys().map(String::as_str).collect();
        let metric = Metric::ALL.into_iter().find(|metric| metric.row().name == query.metric);
        let sets = metric.unwrap().row().dimensions.sets();
        let has_set = sets.iter().any(|set| {
            let mut set = set.to_vec();
            set.sort_unstable();
            set == names
        });
        assert!(has_set, "{query:?}");
        assert_eq!((query.namespace.as_str(), query.period_seconds), ("Onsale", 60));
        assert_eq!(query.dimensions["Stage"], STAGE);
        assert!(
            seen.insert((&query.metric, &query.dimensions, &query.statistic)),
            "twice: {query:?}"
        );
    }
    let of = |metric: &str, statistic: &str| -> BTreeSet<String> {
        let of =
            queries.iter().filter(|query| query.metric == metric && query.statistic == statistic);
        of.map(|query| query.dimensions.values().next().unwrap().clone()).collect()
    };
    let (errors, refusals): (Vec<Kind>, Vec<Kind>) =
        Kind::ALL.into_iter().partition(|kind| kind.status().is_server_error());
    let slugs = |kinds: Vec<Kind>| kinds.into_iter().map(|kind| kind.slug().to_owned()).collect();
    assert_eq!(of("ServerErrors", "Sum"), slugs(errors));
    assert_eq!(of("Refused", "Sum"), slugs(refusals));
    let functions: BTreeSet<String> = Function::NAMES.map(str::to_owned).into();
    for statistic in ["p50", "p99", "SampleCount"] {
        assert_eq!(of("Latency", statistic), functions);
    }
    assert_eq!(of("Paid", "Sum"), BTreeSet::from(["hall".to_owned()]));
}

#[tokio::test]
async fn a_process_asks_once_a_minute_for_an_hour_of_every_metric() {
    let fake = Fake::start().await.unwrap();
    let reader = reader(&fake, &[]).await.unwrap();
    let now = Timestamp::from_ms(1_800_000_000_000);
    let of_hall = [("Stage", STAGE), ("Sale", "hall")];
    let minute = Minute::of(now).before(2);
    fake.put("Paid", &of_hall, minute.start().ms(), 2.0);
    fake.put("Paid", &of_hall, minute.end().ms() - 1, 3.0);
    fake.put("Paid", &of_hall, minute.end().ms(), 50.0);
    fake.put("Paid", &[("Stage", "other"), ("Sale", "hall")], minute.start().ms(), 70.0);
    let read = async |of: &SaleId, minutes, at| reader.read(of, minutes, at).await.unwrap();
    let figures = read(&sale(), 2, now).await;
    // The minute before the last one is over for a minute; the last one is not.
    assert_eq!((figures.last, figures.as_of), (minute, minute.end()));
    let counts = figures.each_minute().map(|minute| figures.count(minute, Metric::Paid));
    assert_eq!(counts.collect::<Vec<_>>(), [0, 5]);

    let asked = fake.asked();
    assert_eq!(asked.len(), 1);
    check(&asked[0].queries);
    let hour_ms = i64::from(MAX_MINUTES) * 60_000;
    assert_eq!(
        (asked[0].start_ms, asked[0].end_ms),
        (minute.end().ms() - hour_ms, minute.end().ms())
    );

    // Ten boards, of any length, ask nothing more within the minute.
    for minutes in 1..=10 {
        assert_eq!(read(&sale(), minutes, now.plus_ms(59_999)).await.sale, figures.sale);
    }
    assert_eq!(fake.asked().len(), 1);
    // Another sale asks for what is its own.
    let other = SaleId::new("other").unwrap();
    for _ in 0..2 {
        read(&other, 15, now).await;
    }
    let asked = fake.asked();
    let of_other = &asked[1].queries;
    assert_eq!((asked.len(), of_other.len()), (2, 9));
    assert!(of_other.iter().all(|query| query.dimensions["Sale"] == "other"));
    // The next minute is another one.
    assert_eq!(read(&sale(), 1, now.plus_seconds(60)).await.last, Minute::of(now).before(1));
    assert_eq!(fake.asked().len(), 3);
}

#[tokio::test]
async fn a_throttled_request_is_repeated_and_no_answer_is_no_figures() {
    let fake = Fake::start().await.unwrap();
    let reader = reader(&fake, &[]).await.unwrap();
    let now = Timestamp::from_ms(1_800_000_000_000);
    fake.throttle(2);
    reader.read(&sale(), 15, now).await.unwrap();
    assert_eq!(fake.asked().len(), 1);
    // What was told stays while it holds; then there is nothing to show, and nothing is made up.
    fake.throttle(u32::MAX);
    reader.read(&sale(), 15, now).await.unwrap();
    let failed = reader.read(&sale(), 15, now.plus_seconds(60)).await;
    assert!(matches!(&failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    fake.throttle(0);
    reader.read(&sale(), 15, now.plus_seconds(60)).await.unwrap();
}

#[tokio::test]
async fn every_page_of_an_answer_is_read() {
    let fake = Fake::start().await.unwrap();
    let now = Timestamp::from_ms(1_800_000_000_000);
    let minute = Minute::of(now).before(2);
    for (metric, value) in [("Held", 3.0), ("Paid", 2.0), ("Cancelled", 1.0)] {
        for at in [minute, minute.before(1)] {
            fake.put(metric, &[("Stage", STAGE), ("Sale", "hall")], at.start().ms(), value);
        }
    }
    let whole = reader(&fake, &[]).await.unwrap().read(&sale(), 15, now).await.unwrap();
    fake.page_values(2);
    let paged = reader(&fake, &[]).await.unwrap().read(&sale(), 15, now).await.unwrap();
    let tokens: Vec<bool> = fake.asked()[1..].iter().map(|asked| asked.token.is_some()).collect();
    assert_eq!(tokens, [false, true, true]);
    assert_eq!(paged, whole);
    assert_eq!(paged.count(minute, Metric::Cancelled), 1);
}

#[tokio::test]
async fn nothing_is_asked_where_nothing_is_written() {
    let fake = Fake::start().await.unwrap();
    assert!(reader(&fake, &[("ONSALE_METRICS", "")]).await.is_none());
    // An emulator of the stores without one of CloudWatch: the real one is not asked.
    assert!(reader(&fake, &[("ONSALE_CLOUDWATCH_ENDPOINT", "")]).await.is_none());
    assert!(reader(&fake, &[]).await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_refused_as_every_request_is() {
    let mut fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let target = "/operator/sales/hall/figures";
    // Nothing keeps metrics here: that is said, and no zeros.
    fixture.get(ZHANG, target).await.problem(503, "unavailable");
    fixture.app = kept_metrics::kept(fixture.another_process().await);
    for query in [
        "minutes=0",
        "minutes=61",
        "minutes=-1",
        "minutes=x",
        "minutes=1&minutes=2",
        "minutes=99999999999",
    ] {
        let refused = fixture.get(ZHANG, &format!("{target}?{query}")).await;
        assert_eq!(refused.problem(422, "invalid")["at"], "minutes", "{query}");
    }
    fixture.get(ZHANG, "/operator/sales/nowhere/figures").await.problem(404, "not-found");
    for (query, minutes) in [("", 15), ("?minutes=1", 1), ("?minutes=60", 60)] {
        let figures = fixture.get(ZHANG, &format!("{target}{query}")).await.ok(200);
        assert_eq!(figures["points"].as_array().unwrap().len(), minutes);
    }
}

/// The SDK's client, without repetitions.
fn client(fake: &Fake, is_known: bool) -> aws_sdk_cloudwatch::Client {
    let keys = Credentials::new("local", "local", None, None, "local");
    let builder = aws_sdk_cloudwatch::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .endpoint_url(fake.url())
        .retry_config(RetryConfig::disabled())
        .http_client(Https::new(&Trust::public()));
    let builder = match is_known {
        true => builder.credentials_provider(SharedCredentialsProvider::new(keys)),
        false => builder.allow_no_auth(),
    };
    aws_sdk_cloudwatch::Client::from_conf(builder.build())
}

fn query(id: &str, period: i32, statistic: &str) -> MetricDataQuery {
    let metric = Named::builder().namespace("Onsale").metric_name("Paid").build();
    let statistic = MetricStat::builder().metric(metric).period(period).stat(statistic).build();
    MetricDataQuery::builder().id(id).metric_stat(statistic).build()
}

#[tokio::test]
async fn the_fake_refuses_what_cloudwatch_refuses() {
    let fake = Fake::start().await.unwrap();
    let many = |count: usize| (0..count).map(|id| query(&format!("m{id}"), 60, "Sum")).collect();
    let ask = async |queries: Vec<MetricDataQuery>, (from, to): (i64, i64), is_known: bool| {
        let request =
            client(&fake, is_known).get_metric_data().set_metric_data_queries(Some(queries));
        let time = DateTime::from_secs;
        let answered = request.start_time(time(from)).end_time(time(to)).send().await;
        answered.map(drop).map_err(|error| error.code().unwrap_or("?").to_owned())
    };
    let hour = (1_800_000_000, 1_800_003_600);
    assert_eq!(ask(many(500), hour, true).await, Ok(()));
    let cases: [(&str, Vec<MetricDataQuery>, (i64, i64)); 9] = [
        ("too many", many(501), hour),
        ("none", Vec::new(), hour),
        ("an id twice", vec![query("a", 60, "Sum"), query("a", 60, "Sum")], hour),
        ("an id that is none", vec![query("1a", 60, "Sum")], hour),
        ("a period of 45 s", vec![query("a", 45, "Sum")], hour),
        ("no period", vec![query("a", 0, "Sum")], hour),
        ("a statistic that is none", vec![query("a", 60, "p101")], hour),
        ("no time", vec![query("a", 60, "Sum")], (hour.0, hour.0)),
        ("times the wrong way round", vec![query("a", 60, "Sum")], (hour.1, hour.0)),
    ];
    for (what, queries, times) in cases {
        assert_eq!(ask(queries, times, true).await, Err("ValidationError".to_owned()), "{what}");
    }
    fake.throttle(1);
    assert_eq!(ask(many(1), hour, true).await, Err("Throttling".to_owned()));
    assert_eq!(ask(many(1), hour, false).await, Err("MissingAuthenticationToken".to_owned()));
    assert_eq!(ask(many(1), hour, true).await, Ok(()));
}

/// Keeps each piece of work as if it had ended at a time, and taken 2.5 ms.
#[derive(Debug)]
struct At(Arc<Kept>, Timestamp);

impl Sink for At {
    fn take(&self, tally: Tally, _: Duration) {
        self.0.keep(&tally, Duration::from_micros(2500), self.1);
    }
}

#[tokio::test]
async fn what_is_kept_on_one_machine_is_an_hour() {
    let kept = Arc::new(Kept::default());
    let now = Timestamp::from_ms(1_800_000_000_000);
    let figures = |at| -> Figures { kept.figures(&sale(), MAX_MINUTES, at) };
    let worked = |at| figures(at).latency().get(&Function::Reserve).map(|of| of.count);
    for minutes in [0, 1, 59] {
        let sink = At(Arc::clone(&kept), now.plus_seconds(60 * minutes));
        Metrics::with_sink(Arc::new(sink)).of(Function::Reserve, async {}).await;
    }
    let last = now.plus_seconds(60 * 59);
    assert_eq!(worked(last), Some(3));
    let latency = figures(last).latency()[&Function::Reserve];
    assert!((latency.p50_ms - 2.5).abs() < 0.03 && latency.p99_ms >= latency.p50_ms, "{latency:?}");
    assert_eq!(worked(last.plus_seconds(60)), Some(2));
    assert_eq!(worked(last.plus_seconds(3600)), None);
}
