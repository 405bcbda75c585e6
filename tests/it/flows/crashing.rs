//! Ports that stop answering after a number of calls, as if the process had died there, or that stop
//! there for a while, as a function that is frozen and thawed.

use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};

use engine::domain::gate::{Admit, AdmitReply};
use engine::domain::ids::{Epoch, Legs, SaleId, TierId, UserId};
use engine::domain::inventory::*;
use engine::domain::number::OrderNumber;
use engine::domain::order::{Capture, Order, PaymentKey, PaymentRecord, TierTotals};
use engine::domain::refund::RefundReply;
use engine::domain::sale::SaleFile;
use engine::domain::time::Timestamp;
use engine::ports::*;
use tokio::sync::Notify;

/// Where the last call is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It happens, and nobody hears of it.
    AfterTheCall,
    /// It never happens.
    BeforeTheCall,
}

/// Ports that die at one call: every later call fails too, as the process is gone.
pub struct Crashing<'a, P> {
    inner: &'a P,
    left: AtomicI64,
    cut: Cut,
    freeze: Option<Freeze>,
}

/// Where a call waits until it is told to go on.
#[derive(Default)]
struct Freeze {
    reached: Notify,
    thawed: Notify,
}

impl<'a, P: Ports> Crashing<'a, P> {
    /// Dies at call number `at`, counted from 0.
    pub fn at(inner: &'a P, at: i64, cut: Cut) -> Self {
        Self { inner, left: AtomicI64::new(at), cut, freeze: None }
    }

    /// Freezes before call number `at`, counted from 0, until [`Crashing::while_frozen`] thaws it.
    pub fn frozen_at(inner: &'a P, at: i64) -> Self {
        Self { freeze: Some(Freeze::default()), ..Self::at(inner, at, Cut::BeforeTheCall) }
    }

    /// Returns when the call is reached; never, if the flow ends before it.
    pub async fn reached(&self) {
        self.freeze().reached.notified().await;
    }

    /// Lets the flow go on.
    pub fn thaw(&self) {
        self.freeze().thawed.notify_one();
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
            self.thaw();
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
                freeze.thawed.notified().await;
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

impl<P: Ports> Ports for Crashing<'_, P> {
    type Seats = Self;
    type Gate = Self;
    type Orders = Self;
    type Catalogue = Self;
    type Queue = Self;
    type Provider = Self;

    fn seats(&self) -> &Self {
        self
    }
    fn gate(&self) -> &Self {
        self
    }
    fn orders(&self) -> &Self {
        self
    }
    fn catalogue(&self) -> &Self {
        self
    }
    fn queue(&self) -> &Self {
        self
    }
    fn provider(&self) -> &Self {
        self
    }
}

/// Writes the methods of one port as calls of the inner port's, each a step.
macro_rules! each_call_is_a_step {
    ($trait:ident by $port:ident: $(fn $name:ident($($arg:ident: $type:ty),*) -> $reply:ty;)*) => {
        impl<P: Ports> $trait for Crashing<'_, P> {
            $(async fn $name(&self, $($arg: $type),*) -> Stored<$reply> {
                self.step(self.inner.$port().$name($($arg),*)).await
            })*
        }
    };
}

each_call_is_a_step! { Seats by seats:
    fn load(command: &Load) -> LoadReply;
    fn hold(command: &Hold) -> HoldReply;
    fn sell(command: &Sell) -> SellReply;
    fn release(command: &Release) -> ReleaseReply;
    fn mark(command: &Mark) -> MarkReply;
    fn restore(command: &Restore) -> RestoreReply;
    fn repair(command: &Repair) -> RepairReply;
    fn epoch(sale: &SaleId) -> Option<Epoch>;
    fn head(sale: &SaleId) -> Option<(Epoch, Terms)>;
    fn record(sale: &SaleId, order: OrderNumber) -> Option<HoldRecord>;
    fn due(sale: &SaleId, now: Timestamp, most: usize) -> Vec<OrderNumber>;
    fn taken(sale: &SaleId, tiers: &[TierId], legs: Legs) -> Vec<Vec<u8>>;
    fn count_taken(sale: &SaleId, tiers: &[TierId], leg_count: u16) -> u64;
    fn count_holds(sale: &SaleId) -> u64;
    fn snapshot(sale: &SaleId, tier: &TierId, leg_count: u16) -> Snapshot;
}

each_call_is_a_step! { Gate by gate:
    fn admit(command: &Admit) -> AdmitReply;
}

each_call_is_a_step! { Orders by orders:
    fn create(order: &Order, limit: u16) -> CreateReply;
    fn end(end: &Order) -> ChangeReply;
    fn write_tombstone(tombstone: &Order) -> ChangeReply;
    fn settle(payment: &PaymentRecord, settlement: &Settlement, limit: u16) -> SettleReply;
    fn record_refund(payment: &PaymentRecord, order: Option<&Order>) -> ChangeReply;
    fn sync(orders: &[Order]) -> Vec<OrderNumber>;
    fn get(number: OrderNumber) -> Option<Order>;
    fn get_many(numbers: &[OrderNumber]) -> Vec<Order>;
    fn payment(order: OrderNumber, payment: &PaymentKey) -> Option<PaymentRecord>;
    fn payments(order: OrderNumber) -> Vec<PaymentRecord>;
    fn of_user(user: &UserId, before: Option<OrderNumber>, most: u16) -> Page;
    fn tickets_of(sale: &SaleId, user: &UserId) -> u16;
    fn due(shard: u8, now: Timestamp, most: u16) -> Vec<Due>;
    fn claims(sale: &SaleId, tier: &TierId, block: u32) -> Vec<Claim>;
    fn statistics(sale: &SaleId) -> Vec<(TierId, TierTotals)>;
}

each_call_is_a_step! { Catalogue by catalogue:
    fn sale(id: &SaleId, freshness: Freshness) -> Option<Published>;
    fn sales() -> Vec<SaleId>;
    fn publish(file: &SaleFile, replaces: Option<u64>) -> ChangeReply;
    fn lease(id: &SaleId, epoch: &Epoch, now: Timestamp, until: Timestamp) -> ChangeReply;
    fn prolong(id: &SaleId, epoch: &Epoch, until: Timestamp) -> ChangeReply;
    fn loaded(id: &SaleId, epoch: &Epoch) -> ChangeReply;
}

each_call_is_a_step! { Queue by queue:
    fn expire_later(sale: &SaleId, order: OrderNumber, now: Timestamp, deadline: Timestamp) -> ();
    fn sync(order: OrderNumber) -> ();
    fn load_again(sale: &SaleId) -> ();
    fn refund(payment: &PaymentRecord) -> ();
}

each_call_is_a_step! { Provider by provider:
    fn captures(order: &Order) -> Option<Vec<Capture>>;
    fn refund(payment: &PaymentRecord) -> RefundReply;
}
