//! Ports that stop answering after a number of calls, as if the process had died there, or that stop
//! there for a while, as a function that is frozen and resumed.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};

use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::ports::methods::*;
use engine::{port_argument, port_methods};
use tokio::sync::Notify;

/// The point at which the last call is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It happens, and nobody hears of it.
    AfterTheCall,
    BeforeTheCall,
}

/// Ports that die at one call: every later call fails too, as the process is gone.
pub struct Crashing<'a, P> {
    inner: &'a P,
    left: AtomicI64,
    cut: Cut,
    freeze: Option<Freeze>,
    part_limit: PartLimit,
}

/// A point at which a call waits until it is resumed.
#[derive(Default)]
struct Freeze {
    reached: Notify,
    resumed: Notify,
}

impl<'a, P: Ports> Crashing<'a, P> {
    /// Dies at call number `at`, counted from 0.
    pub fn at(inner: &'a P, at: i64, cut: Cut) -> Self {
        let part_limit = inner.part_limit();
        Self { inner, left: AtomicI64::new(at), cut, freeze: None, part_limit }
    }

    /// Freezes before call number `at`, counted from 0, until [`Crashing::while_frozen`] resumes it.
    pub fn frozen_at(inner: &'a P, at: i64) -> Self {
        Self { freeze: Some(Freeze::default()), ..Self::at(inner, at, Cut::BeforeTheCall) }
    }

    /// Loads in parts of this size.
    pub fn in_parts(self, part_limit: PartLimit) -> Self {
        Self { part_limit, ..self }
    }

    /// Returns when the call is reached; never, if the flow ends before it.
    pub async fn reached(&self) {
        self.freeze().reached.notified().await;
    }

    /// Lets the flow go on.
    pub fn resume(&self) {
        self.freeze().resumed.notify_one();
    }

    fn freeze(&self) -> &Freeze {
        self.freeze.as_ref().expect("made by frozen_at")
    }

    /// Runs `frozen`, a flow on these ports, up to its call, then `meanwhile`, then the rest of it.
    /// A flow that ends before its call is followed by `meanwhile` all the same.
    pub async fn while_frozen<T, M>(
        &self,
        frozen: impl Future<Output = T>,
        meanwhile: impl Future<Output = M>,
    ) -> (T, M) {
        let frozen = async {
            let done = frozen.await;
            self.freeze().reached.notify_one();
            done
        };
        let meanwhile = async {
            self.reached().await;
            let done = meanwhile.await;
            self.resume();
            done
        };
        tokio::join!(frozen, meanwhile)
    }

    /// True if the call where it dies or freezes was reached.
    pub fn has_died(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    async fn step<T>(&self, call: impl Future<Output = Stored<T>>) -> Stored<T> {
        let dead = || StoreError::Unknown("the process has died".to_owned());
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if let Some(freeze) = &self.freeze {
            if left == 0 {
                freeze.reached.notify_one();
                freeze.resumed.notified().await;
            }
            return call.await;
        }
        match left {
            left if left > 0 => call.await,
            0 if self.cut == Cut::AfterTheCall => {
                let _ = call.await;
                Err(dead())
            }
            _ => Err(dead()),
        }
    }
}

/// Writes each port, and each of its methods as a call of the inner port's, which is a step.
macro_rules! each_call_is_a_step {
    ($($trait:ident by $port:ident { $(
        $variant:ident: $name:ident($($how:ident $arg:ident: $type:ty),*) -> $reply:ty;
    )* })*) => {
        impl<P: Ports> Ports for Crashing<'_, P> {
            $(
                type $trait = Self;
                fn $port(&self) -> &Self {
                    self
                }
            )*
            fn grace(&self) -> Grace {
                self.inner.grace()
            }
            fn part_limit(&self) -> PartLimit {
                self.part_limit
            }

            fn listings(&self) -> Vec<Listing> {
                self.inner.listings()
            }
            fn offers(&self) -> Vec<Offer> {
                self.inner.offers()
            }
            fn started_elsewhere(&self) -> bool {
                self.inner.started_elsewhere()
            }
        }

        $(impl<P: Ports> $trait for Crashing<'_, P> {
            $(async fn $name(&self, $($arg: port_argument!($how $type)),*) -> Stored<$reply> {
                self.step(self.inner.$port().$name($($arg),*)).await
            })*
        })*
    };
}

port_methods!(each_call_is_a_step);

/// Ports whose reads of claims and of many orders are refused a number of times.
pub struct Refusing<'a, P> {
    inner: &'a P,
    left: AtomicI64,
}

impl<'a, P: Ports> Refusing<'a, P> {
    /// Refuses the first `count` of these reads.
    pub fn reads(inner: &'a P, count: i64) -> Self {
        Self { inner, left: AtomicI64::new(count) }
    }

    async fn read<T>(&self, name: &str, call: impl Future<Output = Stored<T>>) -> Stored<T> {
        let is_page = matches!(name, "claims" | "get_many");
        if is_page && self.left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Err(StoreError::Unavailable("throttled".to_owned()));
        }
        call.await
    }
}

macro_rules! some_reads_are_refused {
    ($($trait:ident by $port:ident { $(
        $variant:ident: $name:ident($($how:ident $arg:ident: $type:ty),*) -> $reply:ty;
    )* })*) => {
        impl<P: Ports> Ports for Refusing<'_, P> {
            $(
                type $trait = Self;
                fn $port(&self) -> &Self {
                    self
                }
            )*
            fn grace(&self) -> Grace {
                self.inner.grace()
            }
            fn listings(&self) -> Vec<Listing> {
                self.inner.listings()
            }
            fn offers(&self) -> Vec<Offer> {
                self.inner.offers()
            }
            fn started_elsewhere(&self) -> bool {
                self.inner.started_elsewhere()
            }
        }

        $(impl<P: Ports> $trait for Refusing<'_, P> {
            $(async fn $name(&self, $($arg: port_argument!($how $type)),*) -> Stored<$reply> {
                self.read(stringify!($name), self.inner.$port().$name($($arg),*)).await
            })*
        })*
    };
}

port_methods!(some_reads_are_refused);
