//! The fakes of DynamoDB and SQS in a process of their own, so that they go on when the engine
//! is killed, as AWS does, and can be made to stand still themselves.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use fake_limits::{Limits, Throttles};
use local::servers::{Deadline, DynamoDb, FakeSqs, Kept, Signal, signal};
use local::throttled::{self, Recorder};

use super::Error;

/// Time that they may take to start.
const UP_SECONDS: u64 = 60;
/// The file that says where they are.
const FILE: &str = "fakes.json";

/// Where the fakes are.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Addresses {
    dynamodb: String,
    sqs: String,
    pid: u32,
}

/// Runs both until the process is killed, and writes where they are into `dir`.
///
/// # Errors
/// One of them does not start, or the file cannot be written.
pub async fn serve(dir: &Path, limits: Limits) -> Result<(), Error> {
    let throttles = Throttles::default();
    let dynamodb = DynamoDb::memory_within(limits.enforced(&throttles))?;
    let options = fake_sqs::Options { throttles: throttles.clone(), ..Default::default() };
    let sqs = FakeSqs::start(options).map_err(local::servers::Error::Sqs)?;
    let file = dir.join(throttled::SERVERS_FILE);
    let _recorder = Recorder::start(limits, throttles, file, None);
    let addresses = Addresses {
        dynamodb: dynamodb.url(),
        sqs: sqs.endpoint().to_owned(),
        pid: std::process::id(),
    };
    let text = serde_json::to_vec(&addresses).map_err(std::io::Error::other);
    let fresh = dir.join(format!("{FILE}.new"));
    text.and_then(|text| fs::write(&fresh, text))
        .and_then(|()| fs::rename(&fresh, dir.join(FILE)))
        .map_err(Error::io("writing where the fakes are"))?;
    std::future::pending::<()>().await;
    Ok(())
}

/// The process of both.
#[derive(Debug)]
pub struct Fakes {
    addresses: Addresses,
    _child: Kept,
}

impl Fakes {
    /// Starts `program` with `stand-ins`, and waits until both listen.
    pub(super) async fn start(program: &Path, dir: &Path, limits: Limits) -> Result<Self, Error> {
        let log = fs::File::create(dir.join("fakes.log"));
        let log = log.map_err(Error::io("creating the fakes' log"))?;
        let dir_argument: PathBuf = dir.to_owned();
        let arguments = ["--data-dir".into(), dir_argument.into_os_string(), "stand-ins".into()];
        let arguments = arguments.into_iter().chain(limits.arguments().into_iter().map(Into::into));
        let output = (std::process::Stdio::null(), log.into());
        let mut child = Kept::start(program, arguments, dir, output, &[("ONSALE_LOG", "error")])
            .map_err(Error::io(format!("running {}", program.display())))?;
        let deadline = Deadline::with("the fakes to start", UP_SECONDS);
        loop {
            if let Ok(text) = fs::read(dir.join(FILE)) {
                let addresses = serde_json::from_slice(&text).map_err(std::io::Error::other);
                let addresses = addresses.map_err(Error::io("reading where the fakes are"))?;
                return Ok(Self { addresses, _child: child });
            }
            if let Some(status) = child.ended().map_err(Error::io("watching the fakes"))? {
                return Err(Error::Ended(format!("the fakes ended while starting: {status}")));
            }
            deadline.pause().await?;
        }
    }

    pub(super) fn dynamodb(&self) -> &str {
        &self.addresses.dynamodb
    }

    pub(super) fn sqs(&self) -> &str {
        &self.addresses.sqs
    }

    /// Makes both stand still, or lets them go on.
    pub(super) fn signal(&self, what: Signal) -> Result<(), Error> {
        let signalled = signal(&self.addresses.pid.to_string(), what);
        signalled.map_err(Error::io("signalling the fakes"))
    }
}
