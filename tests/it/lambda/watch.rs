//! `cargo lambda watch` with the deployed binaries: its routes are those of the gateway, and the sample
//! events do with `cargo lambda invoke` what their table says.
//!
//! The functions are started here, not by cargo-lambda, which would build them once more; what it would
//! give them of the environment it reads all the same.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use engine::domain::basics::time::Timestamp;
use local::environment::{Variables, env_file, variables, with_sample_events};
use local::payment;
use local::servers::free_port;
use local::up::{self, Engine, Options};
use serde_json::Value;
use shared::http::routes::ROUTES;
use tempfile::TempDir;

use super::rie::{FUNCTIONS, Sandbox, bootstrap};
use super::sample_events::samples;
use crate::backends;
use text::root;

const DEADLINE: Duration = Duration::from_secs(180);

/// Processes that end with the test.
struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _gone = child.kill();
            let _ended = child.wait();
        }
    }
}

/// `cargo lambda watch`, with functions behind it.
struct Watch {
    port: u16,
    directory: TempDir,
    _running: Running,
}

fn cargo_lambda() -> Command {
    let program = root().join(".onsale/tools/lambda/bin/cargo-lambda");
    assert!(program.exists(), "no {}: make setup", program.display());
    let mut command = Command::new(program);
    command.arg("lambda").current_dir(root());
    command
}

/// The variables in a file of them.
fn read(environment: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(environment).unwrap();
    let pair = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        (name.to_owned(), value.trim_matches('"').to_owned())
    };
    text.lines().map(pair).collect()
}

impl Watch {
    async fn start(variables: &Variables) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let log = || {
            File::options().append(true).create(true).open(directory.path().join("log")).unwrap()
        };
        let environment = directory.path().join("functions.env");
        std::fs::write(&environment, env_file(variables)).unwrap();
        let watch = cargo_lambda()
            .arg("watch")
            .args(["--env-file".as_ref(), environment.as_path()])
            .args(["--only-lambda-apis", "--invoke-address", "127.0.0.1"])
            .args(["--invoke-port", &port.to_string()])
            .stdin(Stdio::null())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap();
        let mut running = Running(vec![watch]);
        let since = Instant::now();
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let said = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
            assert!(since.elapsed() < DEADLINE, "cargo lambda watch does not listen: {said}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for function in FUNCTIONS {
            let api = format!("http://127.0.0.1:{port}/.rt/{function}");
            let mut started = Command::new(bootstrap(function));
            started
                .env_clear()
                .env("AWS_LAMBDA_RUNTIME_API", api)
                .env("AWS_LAMBDA_FUNCTION_NAME", function)
                .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
                .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
                .envs(read(&environment))
                .stdin(Stdio::null())
                .stdout(log())
                .stderr(log());
            running.0.push(started.spawn().unwrap());
        }
        Self { port, directory, _running: running }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// `cargo lambda invoke` with a file.
    async fn invoke(&self, function: &str, file: &str) -> Value {
        let mut command = cargo_lambda();
        command.args(["invoke", function, "--data-file", &format!("tests/events/{file}")]).args([
            "--invoke-address",
            "127.0.0.1",
            "--invoke-port",
            &self.port.to_string(),
        ]);
        let done = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        serde_json::from_str(&said).unwrap_or_else(|_| {
            panic!("{file}: {said}{}{}", String::from_utf8_lossy(&done.stderr), self.log())
        })
    }
}

pub(super) async fn engine() -> (Engine, Variables) {
    let engine = Engine::start(backends::engine(Options::ephemeral())).await.unwrap();
    let (topology, endpoints) = (engine.stack().topology(), engine.endpoints());
    let config = up::config(topology, endpoints, engine.queues(), engine.secrets()).unwrap();
    (engine, variables(&with_sample_events(config)))
}

/// What a function said, in the words of the table.
fn in_words(answer: &Value) -> String {
    if let Some(status) = answer["statusCode"].as_u64() {
        status.to_string()
    } else if let Some(failures) = answer["batchItemFailures"].as_array() {
        match failures.len() {
            0 => "no failure".to_owned(),
            1 => "1 failure".to_owned(),
            many => format!("{many} failures"),
        }
    } else if ["loaded", "pages", "told", "days"].iter().any(|count| answer[*count].is_u64()) {
        "report".to_owned()
    } else {
        answer.to_string()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sample_events_are_answered_as_they_should_be() {
    let (engine, environment) = engine().await;
    let watch = Watch::start(&environment).await;
    for sample in samples() {
        let answer = watch.invoke(sample.function.as_str(), &sample.file()).await;
        assert_eq!(in_words(&answer), sample.answer, "{}: {answer} {}", sample.name, watch.log());
    }
    // A function that does not run with the sample key refuses them.
    let config = up::config(
        engine.stack().topology(),
        engine.endpoints(),
        engine.queues(),
        engine.secrets(),
    )
    .unwrap();
    let usual = Sandbox::start("reserve", &variables(&config)).await;
    let event = std::fs::read_to_string(root().join("tests/events/reserve.json")).unwrap();
    let answer = usual.invoke(&serde_json::from_str(&event).unwrap()).await;
    assert_eq!(answer["statusCode"], 403, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_serves_the_routes() {
    let (engine, variables) = engine().await;
    let watch = Watch::start(&variables).await;
    let published = watch.invoke("sales", "sales-publish.json").await;
    assert_eq!(published["statusCode"], 200, "{published}");
    let http = reqwest::Client::new();
    let at = |base: &str, path: &str| format!("{base}{path}");
    let base = format!("http://127.0.0.1:{}", watch.port);
    for path in ["/sales", "/sales/sample", "/openapi.json", "/sales/nowhere"] {
        let served = http.get(at(&base, path)).send().await.unwrap();
        let gateway = http.get(at(engine.url(), path)).send().await.unwrap();
        assert_eq!(served.status(), gateway.status(), "{path}");
        let (served, gateway) = (served.text().await.unwrap(), gateway.text().await.unwrap());
        assert_eq!(served, gateway, "{path}");
    }
    let left = http.get(at(&base, "/sales/sample/availability")).send().await.unwrap();
    let left: Value = left.json().await.unwrap();
    assert_eq!(left["tiers"][0]["available"], 30);
    // There is no authorizer: nobody is a buyer, and nobody an operator.
    for (method, path) in [
        ("POST", "/sales/sample/admissions"),
        ("POST", "/sales/sample/orders"),
        ("GET", "/orders"),
        ("GET", "/orders/1"),
        ("POST", "/orders/1/cancel"),
        ("PUT", "/sales/sample"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let refused =
            http.request(method.clone(), at(&base, path)).body("{}").send().await.unwrap();
        assert_eq!(refused.status(), 401, "{method} {path}");
    }
    // What is signed needs none.
    let body = r#"{"id":"evt_1","object":"event","type":"charge.updated","data":{"object":{}}}"#;
    let signature = payment::sign(engine.secrets(), body.as_bytes(), Timestamp::now());
    let callback = http.post(at(&base, &payment::callback_path())).body(body);
    let callback = callback.header("content-type", "application/json");
    let taken = callback.header(payment::SIGNATURE_HEADER, signature).send().await.unwrap();
    assert_eq!(taken.status(), 200, "{}", taken.text().await.unwrap());
}

/// The routes in Cargo.toml as `cargo lambda watch` reads them: method and path, function.
fn watched() -> BTreeSet<(String, String)> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let router = metadata["metadata"]["lambda"]["watch"]["router"].as_object().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let routes = router.iter().flat_map(|(path, methods)| {
        let methods = methods.as_array().unwrap().iter();
        methods.map(move |route| {
            (format!("{} {path}", text(&route["method"])), text(&route["function"]))
        })
    });
    routes.collect()
}

#[test]
fn watch_has_the_routes_of_the_table() {
    let routes =
        ROUTES.iter().map(|route| (route.key.to_owned(), route.function.as_str().to_owned()));
    let routes: BTreeSet<(String, String)> = routes.collect();
    assert_eq!(watched(), routes);
}
