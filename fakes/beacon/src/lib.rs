//! A fake randomness beacon with the part of drand's HTTP API that the engine uses, and with fault injection.
//!
//! | request | as at drand |
//! |---|---|
//! | `GET /{chain}/info` | the chain, whose hash is that of what it says |
//! | `GET /{chain}/public/latest` | the latest round that is out |
//! | `GET /{chain}/public/{round}` | a round; 425 if it is still to come |
//!
//! Its chain has a key of its own, which everybody can read below: whoever believes it believes anybody. Its
//! rounds come by the clock, or when the test says so.
//! Source: <https://docs.drand.love/dev-guide/developer/http-api>.

mod chain;
mod edge;

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::domain::basics::bytes::Signature;
use engine::domain::basics::time::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use crate::chain::{GENESIS_SECONDS, PERIOD_SECONDS, hash, key, rounds, sign};

/// How its rounds come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// By the clock, one each so often. The first was out at [`GENESIS_SECONDS`].
    Every(Duration),
    /// When [`FakeBeacon::advance`] says so; this is the latest at the beginning.
    ByHand(u64),
}

impl Pace {
    /// What the chain says of itself.
    pub const OF_CHAIN: Self = Self::Every(Duration::from_secs(PERIOD_SECONDS));
}

/// What goes wrong with every answer until it is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No round comes: each that is asked for by its number is still to come.
    NoRound,
    /// Rounds come late by so many rounds.
    Late(u64),
    /// The signature is somebody else's.
    FalseSignature,
    /// The answer is the round before the one that was asked for.
    OtherRound,
    /// The signature is that of the round before, under the number that was asked for.
    OtherSignature,
    /// The answer has no end.
    Endless,
    /// There is no answer.
    Silent,
    /// The answer is 500.
    Fail,
}

/// Why the beacon could not be started.
#[derive(Debug, thiserror::Error)]
#[error("listening for the beacon: {0}")]
pub struct Error(#[from] std::io::Error);

/// What its server knows.
#[derive(Debug)]
pub(crate) struct State {
    pace: Pace,
    /// Rounds that were added by hand.
    added: AtomicU64,
    fault: Mutex<Option<Fault>>,
    calls: AtomicU64,
}

impl State {
    fn fault(&self) -> Option<Fault> {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest round that is out.
    fn latest(&self) -> u64 {
        let (first, added) = match self.pace {
            Pace::ByHand(first) => (first, self.added.load(Ordering::SeqCst)),
            Pace::Every(period) => {
                let genesis = GENESIS_SECONDS.saturating_mul(1000);
                let since_ms = u128::try_from(Timestamp::now().ms()).unwrap_or(0);
                let since_ms = since_ms.saturating_sub(u128::from(genesis));
                let rounds = since_ms / period.as_millis().max(1);
                (1, u64::try_from(rounds).unwrap_or(u64::MAX))
            }
        };
        let late = match self.fault() {
            Some(Fault::Late(rounds)) => rounds,
            Some(
                Fault::NoRound
                | Fault::FalseSignature
                | Fault::OtherRound
                | Fault::OtherSignature
                | Fault::Endless
                | Fault::Silent
                | Fault::Fail,
            )
            | None => 0,
        };
        first.saturating_add(added).saturating_sub(late)
    }
}

/// A running beacon on a port of 127.0.0.1; stopped when dropped.
#[derive(Debug)]
pub struct FakeBeacon {
    address: SocketAddr,
    state: Arc<State>,
    server: JoinHandle<std::io::Result<()>>,
}

impl FakeBeacon {
    /// Starts a beacon on this runtime.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(pace: Pace) -> Result<Self, Error> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let state = Arc::new(State {
            pace,
            added: AtomicU64::new(0),
            fault: Mutex::new(None),
            calls: AtomicU64::new(0),
        });
        let server = tokio::spawn(edge::serve(Arc::clone(&state), listener));
        Ok(Self { address, state, server })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The latest round that is out.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.state.latest()
    }

    /// Lets so many rounds come at once, if its rounds come by hand.
    pub fn advance(&self, rounds: u64) {
        self.state.added.fetch_add(rounds, Ordering::SeqCst);
    }

    /// The signature of a round, whether it is out or not.
    #[must_use]
    pub fn signature(&self, round: u64) -> Signature {
        sign(round)
    }

    /// What goes wrong from now on; `None` for nothing.
    pub fn set_fault(&self, fault: Option<Fault>) {
        *self.state.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// How many requests it was sent.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state.calls.load(Ordering::SeqCst)
    }

    /// True if it serves no more though nobody has stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.is_finished()
    }
}

impl Drop for FakeBeacon {
    fn drop(&mut self) {
        self.server.abort();
    }
}
