//! `onsale up` killed with -9 while a crowd is buying, again and again: whatever was acknowledged is
//! there afterwards, and the audit is clean.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::domain::basics::time::Timestamp;
use loadtest::credentials::Credentials;
use loadtest::profile::LoadProfile;
use loadtest::{CallbackRepeats, Load, Options};
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::servers::free_port;
use ops::audit;
use ops::audit::facts::LedgerFacts;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::backends;
use crate::program::onsale;

/// Time that anything may take before the test fails.
const DEADLINE: Duration = Duration::from_secs(300);
/// At how many acknowledgements and captures the engine is killed.
const KILLS: [usize; 3] = [60, 200, 400];

/// `onsale up` on one port and one directory.
struct Up {
    child: Child,
    dir: PathBuf,
    port: u16,
    /// The prefix of the names of its tables and queues.
    prefix: String,
}

impl Up {
    async fn start(dir: &Path, port: u16, prefix: &str) -> Self {
        Endpoints::remove(dir).unwrap();
        let child = Command::new(onsale())
            .arg("--data-dir")
            .arg(dir)
            .args(["up", "--reconcile-seconds", "2", "--port", &port.to_string()])
            .args(backends::up_arguments(prefix))
            .env("ONSALE_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut up = Self { child, dir: dir.to_owned(), port, prefix: prefix.to_owned() };
        let is_up = async {
            while Endpoints::read(dir).is_err() {
                assert!(up.child.try_wait().unwrap().is_none(), "the engine ended by itself");
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(DEADLINE, is_up).await.expect("the engine comes up");
        up
    }

    /// Kills it, and starts it again on what it left.
    async fn kill_and_start(mut self) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let (dir, port, prefix) = (self.dir.clone(), self.port, self.prefix.clone());
        Self::start(&dir, port, &prefix).await
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run_onsale(dir: &Path, arguments: &[&str]) {
    let done = Command::new(onsale()).arg("--data-dir").arg(dir).args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_engine_is_killed_while_it_sells() {
    let dir = tempfile::tempdir().unwrap();
    // The port must be the same after each kill: the crowd knows no other.
    let port = free_port().unwrap();
    let mut up = Up::start(dir.path(), port, &backends::prefix()).await;
    let sale = json!({
        "sale": "killed", "title": "Killed", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 5,
        "gate": { "user_lock_ms": 500, "rate_per_second": 20000 },
        "stops": [{"stop": "A", "name": "a"}, {"stop": "B", "name": "b"}, {"stop": "C", "name": "c"}],
        "tiers": [
            { "tier": "seats", "name": "Seats", "price_minor": 900, "sections": [
                { "section": "1", "rows": (0..15).map(|row| json!({ "row": row.to_string(),
                    "seats": { "prefix": format!("{row}-"), "first": 1, "count": 20 } }))
                    .collect::<Vec<_>>() } ] },
            { "tier": "standing", "name": "Standing", "price_minor": 500, "general_admission": 200 }
        ]
    });
    let file = dir.path().join("killed.json");
    std::fs::write(&file, sale.to_string()).unwrap();
    run_onsale(dir.path(), &["sale", "put", file.to_str().unwrap()]);

    let ledger = dir.path().join("ledger.jsonl");
    let options = Options {
        url: format!("http://127.0.0.1:{port}"),
        sales: vec!["killed".to_owned()],
        load: Load::Closed { arrivals: 600, at_once: 24 },
        profile: LoadProfile::Everything,
        seed: 9,
        most: DEADLINE,
        may_take_longer: false,
        ledger: Some(ledger.clone()),
        progress: false,
        callback_repeats: CallbackRepeats::Soon,
        pages: None,
        grace: Endpoints::read(dir.path()).unwrap().grace(),
        endpoints: None,
        rehearsal: None,
        crowd: loadtest::people::plan::Crowd::default(),
    };
    let credentials = Credentials::new(&Secrets::read(dir.path()).unwrap());
    let crowd = tokio::spawn(async move { loadtest::run(&options, credentials).await });
    let promised = || std::fs::read_to_string(&ledger).map_or(0, |text| text.lines().count());
    for kill in KILLS {
        let selling = async {
            while promised() < kill && !crowd.is_finished() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(DEADLINE, selling).await.expect("the crowd goes on buying");
        assert!(!crowd.is_finished(), "the crowd was done before kill {kill}");
        up = up.kill_and_start().await;
    }
    let report = timeout(DEADLINE, crowd).await.unwrap().unwrap().unwrap();
    println!("{}", report.tables());
    assert!(report.repeats > 0, "no request met a dead engine");
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert!(report.sold_out, "seats were left");

    let target = backends::audited(&Endpoints::read(dir.path()).unwrap());
    let settled = async {
        loop {
            let ledger = Some(LedgerFacts::read(&ledger).unwrap());
            let options = audit::Options { ledger, ..audit::Options::at(Timestamp::now()) };
            let report = audit::run(&target, &options).await.unwrap();
            if report.clean {
                return report;
            }
            println!("not yet at rest: {} violations", report.violations().count());
            sleep(Duration::from_millis(500)).await;
        }
    };
    let clean = timeout(DEADLINE, settled).await.expect("the audit becomes clean");
    println!("{clean}");
    drop(up);
}
