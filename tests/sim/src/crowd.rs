//! What tests share that have a crowd of their own: ports on the models, whose calls others come between and that fail
//! when they are told to, and the walk over seeds, with all guards and without each.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::mem::replace;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

#[cfg(debug_assertions)]
use engine::domain::basics::guard::{Guard, without};
use engine::domain::basics::time::Timestamp;
use engine::ports::{StoreError, Stored};
use model_stores::{Call, Driver, Reply, Stores};

use crate::base_seed;
#[cfg(debug_assertions)]
use crate::controls::absence_is_found;

/// Something that somebody does: what came of it, in a word.
pub type Flow = Pin<Box<dyn Future<Output = &'static str>>>;

/// What a crowd meets.
#[derive(Debug)]
pub struct Environment {
    pub now: Timestamp,
    /// The stores and the provider.
    pub stores: Stores,
    /// The next call of a store fails: with `true` it happens all the same.
    pub fault: Option<bool>,
}

/// One's way to the stores. All of a crowd share them.
#[derive(Debug, Clone)]
pub struct Client(Arc<Mutex<Environment>>);

impl Client {
    /// The first of a crowd.
    #[must_use]
    pub fn new(now: Timestamp, stores: Stores) -> Self {
        Self(Arc::new(Mutex::new(Environment { now, stores, fault: None })))
    }

    /// What the crowd meets, for as long as nobody else is polled.
    ///
    /// # Panics
    /// If somebody has panicked with it.
    pub fn locked(&self) -> MutexGuard<'_, Environment> {
        self.0.lock().expect("nobody panics with it")
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.locked().now
    }

    /// Lets time go by.
    pub fn wait(&self, seconds: i64) {
        let mut environment = self.locked();
        environment.now = environment.now.plus_seconds(seconds);
    }
}

/// Pending once. What a flow does at once in parts is woken by its parts.
async fn let_others_come_between() {
    let mut was_here = false;
    poll_fn(|context| {
        if replace(&mut was_here, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Driver for Client {
    async fn call(&self, call: Call) -> Stored<Reply> {
        let_others_come_between().await;
        let mut environment = self.locked();
        let now = environment.now;
        match environment.fault.take() {
            None => environment.stores.apply(now, &call),
            Some(false) => Err(StoreError::Unavailable("not now".to_owned())),
            Some(true) => {
                let _lost = environment.stores.apply(now, &call);
                Err(StoreError::Unknown("the answer is lost".to_owned()))
            }
        }
    }
}

/// Polls a flow until it is over; what came of it.
pub fn finish(mut flow: Flow) -> &'static str {
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(outcome) = flow.as_mut().poll(&mut context) {
            return outcome;
        }
    }
}

/// Makes `runs` runs from the base seed on; what came of them, counted.
///
/// # Panics
/// If a run breaks a promise, with its seed.
pub fn each_seed<K: Ord + Debug>(
    runs: u64,
    run: impl Fn(u64, &mut BTreeMap<K, u64>) -> Result<(), String>,
) -> BTreeMap<K, u64> {
    let base = base_seed();
    let mut outcomes = BTreeMap::new();
    for seed in base..base + runs {
        if let Err(what) = run(seed, &mut outcomes) {
            panic!("ONSALE_SIM_BASE={seed}: {what}");
        }
    }
    println!("{runs} runs from ONSALE_SIM_BASE={base}: {outcomes:?}");
    outcomes
}

/// Shows of each of the guards that a run of a crowd breaks a promise without it: by the stored seed, or by one of
/// `runs` from the base seed on.
///
/// # Panics
/// If none does.
#[cfg(debug_assertions)]
pub fn each_absence<K: Ord>(
    crowd: &str,
    guards: impl IntoIterator<Item = Guard>,
    runs: u64,
    run: impl Fn(u64, &mut BTreeMap<K, u64>) -> Result<(), String>,
) {
    let base = base_seed();
    let replay = |seed| run(seed, &mut BTreeMap::new()).err();
    for guard in guards {
        let search = || {
            (base..base + runs).find_map(|seed| {
                let broken = without(guard, || replay(seed));
                broken.map(|what| (seed, seed - base + 1, what))
            })
        };
        let is_found = absence_is_found(crowd, guard, replay, search);
        assert!(is_found, "without {guard}: nothing was found");
    }
}
