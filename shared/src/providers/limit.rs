//! The limit on calls: every request to a provider waits for its turn here, by provider and operation.
//!
//! The turns of all processes are kept in one place ([`Turns`], in DynamoDB: not every function has
//! Redis). A process takes several at once if several of its requests wait, so that the place is asked less
//! often than calls are made; and it remembers for a moment that none were left.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, try_join_all};
use tokio::sync::{Mutex, OnceCell};

use engine::domain::admission::call_rate::{
    Ahead, CallRate, TURNS_AHEAD_SECONDS, Take, first_free_ms,
};
use engine::domain::basics::ids::{DeploymentId, ProviderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::start::Turn;
use engine::ports::{StoreError, Stored};

/// Most turns that a process takes at once.
const MAX_TURNS: u32 = 10;
/// The longest that a process remembers that no turns were left, in microseconds.
const REMEMBERED_US: i64 = 500_000;
/// Age at which a turn that was taken and not used is given up, in microseconds: a process that was frozen
/// must not make up for it all at once.
const STALE_US: i64 = 1_000_000;
/// Time for which what was read of the next starts is good, in microseconds.
const READ_EVERY_US: i64 = 1_000_000;

/// What a provider is asked to do, each with a limit of its own: providers count by endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// To start a payment.
    StartPayment,
    /// To close a payment.
    ClosePayment,
    /// To read a payment that cannot be closed.
    ReadPayment,
    /// To find an order's captures.
    SearchCaptures,
    /// To list captures by time.
    ListCaptures,
    /// To read a dispute.
    ReadDispute,
    /// To read the bill of a day, or a page of it.
    ReadBill,
    /// To list the refunds of a payment.
    ListRefunds,
    /// To refund a payment.
    Refund,
    /// To refund one because a capture decided so, and nobody else: a turn of this before that of the call.
    RefundCapture,
}

impl Operation {
    pub const ALL: [Self; 10] = [
        Self::StartPayment,
        Self::ClosePayment,
        Self::ReadPayment,
        Self::SearchCaptures,
        Self::ListCaptures,
        Self::ReadDispute,
        Self::ReadBill,
        Self::ListRefunds,
        Self::Refund,
        Self::RefundCapture,
    ];

    /// The operation's part of the calls of an account, in hundredths. Starts come first: no order is sold
    /// without one. The parts add up to the whole, so that nobody has to count the calls of an account
    /// together: what one operation does not use is not another's.
    #[must_use]
    pub const fn share(self) -> u32 {
        match self {
            Self::StartPayment => 25,
            Self::ClosePayment => 20,
            Self::ReadPayment => 3,
            Self::SearchCaptures => 15,
            Self::ListCaptures => 5,
            Self::ReadDispute | Self::ReadBill => 1,
            Self::ListRefunds | Self::Refund => 15,
            // It is no call: its rate is its own.
            Self::RefundCapture => 0,
        }
    }

    /// The operation's calls, from those of an endpoint: five endpoints' calls are an account's, as at Stripe.
    /// Source: <https://docs.stripe.com/rate-limits>
    #[must_use]
    pub fn rate(self, endpoint: CallRate) -> CallRate {
        endpoint.part(self.share() * 5, 100)
    }

    /// How far ahead its calls are given out to a caller that waits for its turn.
    const fn turns(self) -> Ahead {
        match self {
            Self::StartPayment => Ahead::TurnsAmongPlaces,
            Self::RefundCapture => Ahead::Refunds,
            Self::ClosePayment
            | Self::ReadPayment
            | Self::SearchCaptures
            | Self::ListCaptures
            | Self::ReadDispute
            | Self::ReadBill
            | Self::ListRefunds
            | Self::Refund => Ahead::Turns,
        }
    }

    /// True if only the deployment may do it whose tables these are: what changes something at the provider, and the list
    /// of captures and the bills, whose reader would pass what it takes for another's.
    #[must_use]
    pub const fn is_owners(self) -> bool {
        match self {
            Self::StartPayment
            | Self::ClosePayment
            | Self::Refund
            | Self::RefundCapture
            | Self::ListCaptures
            | Self::ReadBill => true,
            Self::ReadPayment | Self::SearchCaptures | Self::ReadDispute | Self::ListRefunds => {
                false
            }
        }
    }

    /// The operation as the table has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartPayment => "start-payment",
            Self::ClosePayment => "close-payment",
            Self::ReadPayment => "read-payment",
            Self::SearchCaptures => "search-captures",
            Self::ListCaptures => "list-captures",
            Self::ReadDispute => "read-dispute",
            Self::ReadBill => "read-bill",
            Self::ListRefunds => "list-refunds",
            Self::Refund => "refund",
            Self::RefundCapture => "refund-capture",
        }
    }
}

/// A process's request for turns of an operation of a provider.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    pub provider: &'a ProviderId,
    pub operation: Operation,
    /// The limit on its calls.
    pub rate: CallRate,
    /// How far ahead they are given out.
    pub ahead: Ahead,
    /// The number of calls, of which fewer may be given.
    pub calls: u32,
    /// The time now, in microseconds since 1970.
    pub now_us: i64,
}

/// Refunds a second that captures decide, at one provider: one by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureRefunds(pub CallRate);

impl Default for CaptureRefunds {
    fn default() -> Self {
        Self(CallRate::from_per_second(1).unwrap_or_default())
    }
}

/// Where the turns of all processes are kept.
pub trait Turns: fmt::Debug + Send + Sync {
    /// Takes turns.
    ///
    /// # Errors
    /// `Unavailable` if the place does not answer. Turns may then be lost, which harms nobody.
    fn take<'a>(&'a self, request: TurnRequest<'a>) -> BoxFuture<'a, Stored<Take>>;

    /// The time of the next call of an operation that nobody was given, as it is kept; `None` if none was ever taken.
    ///
    /// # Errors
    /// `Unavailable` if the place does not answer.
    fn next<'a>(
        &'a self,
        provider: &'a ProviderId,
        operation: Operation,
    ) -> BoxFuture<'a, Stored<Option<i64>>>;

    /// Makes sure that the store's payments at a provider are started under this deployment's id: writes it if none
    /// is written.
    ///
    /// # Errors
    /// `Contract` if another id is written, as in a copy of another deployment's tables; `Unavailable` if the place does
    /// not answer.
    fn own<'a>(
        &'a self,
        provider: &'a ProviderId,
        deployment: &'a DeploymentId,
    ) -> BoxFuture<'a, Stored<()>>;
}

/// The limits of every provider: where turns are kept, and how many there are.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    turns: Option<(Arc<dyn Turns>, CallRate)>,
    /// Refunds a second that captures decide, at each provider.
    capture_refunds: CaptureRefunds,
    own: Option<DeploymentId>,
}

impl Limits {
    /// None: every request leaves at once.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// These calls a second for an endpoint of each provider, of which each operation has its part.
    #[must_use]
    pub fn new(turns: Arc<dyn Turns>, rate: CallRate) -> Self {
        Self { turns: Some((turns, rate)), ..Self::default() }
    }

    /// These, with so many turns a second for refunds that captures decide.
    #[must_use]
    pub fn with_capture_refunds(self, capture_refunds: CaptureRefunds) -> Self {
        Self { capture_refunds, ..self }
    }

    /// These, and nothing is sent to a provider whose payments the store has under another deployment's id.
    #[must_use]
    pub fn of_deployment(self, own: Option<DeploymentId>) -> Self {
        Self { own, ..self }
    }

    /// The next free start of these accounts.
    pub(super) fn next_starts(&self, providers: Vec<ProviderId>) -> NextStarts {
        let turns = self.turns.as_ref().map(|(turns, _)| Arc::clone(turns));
        NextStarts { turns, providers, read: Mutex::default() }
    }

    /// The limits of one provider.
    pub(super) fn of(&self, provider: &ProviderId) -> Limit {
        let queues = || Operation::ALL.map(|_| Queue::default());
        Limit(self.turns.as_ref().map(|(turns, rate)| Shared {
            own: self.own.clone(),
            is_owned: OnceCell::new(),
            turns: Arc::clone(turns),
            rate: *rate,
            capture_refunds: self.capture_refunds,
            provider: provider.clone(),
            queues: queues(),
        }))
    }
}

/// The next free start of some accounts, read at most once a second.
#[derive(Debug, Default)]
pub(super) struct NextStarts {
    turns: Option<Arc<dyn Turns>>,
    providers: Vec<ProviderId>,
    /// When it was read last, and the times that are kept.
    read: Mutex<Option<(i64, Vec<i64>)>>,
}

impl NextStarts {
    /// Milliseconds until then; `None` if no payment was started lately.
    ///
    /// # Errors
    /// As [`Turns::next`].
    pub(super) async fn in_ms(&self) -> Stored<Option<u32>> {
        let Some(turns) = &self.turns else { return Ok(None) };
        let mut read = self.read.lock().await;
        let now_us = now_us();
        let is_fresh =
            |(at_us, _): &&(i64, Vec<i64>)| (0..READ_EVERY_US).contains(&(now_us - at_us));
        if let Some((_, kept_us)) = read.as_ref().filter(is_fresh) {
            return Ok(first_free_ms(kept_us.iter().copied(), now_us));
        }
        let each = self.providers.iter().map(|of| turns.next(of, Operation::StartPayment));
        let kept_us: Vec<i64> = try_join_all(each).await?.into_iter().flatten().collect();
        let free_ms = first_free_ms(kept_us.iter().copied(), now_us);
        *read = Some((now_us, kept_us));
        Ok(free_ms)
    }
}

/// The limits of one provider, as this process sees them.
#[derive(Debug)]
pub(super) struct Limit(Option<Shared>);

#[derive(Debug)]
struct Shared {
    own: Option<DeploymentId>,
    /// Set once the store's payments are known to be this deployment's.
    is_owned: OnceCell<()>,
    turns: Arc<dyn Turns>,
    rate: CallRate,
    capture_refunds: CaptureRefunds,
    provider: ProviderId,
    /// By the place of the operation in the list.
    queues: [Queue; Operation::ALL.len()],
}

/// The requests of this process that wait for one operation.
#[derive(Debug, Default)]
struct Queue {
    waiting: AtomicU32,
    taken: Mutex<Taken>,
}

/// Turns that this process has and has not used, and what it remembers.
#[derive(Debug, Default)]
struct Taken {
    calls: u32,
    first_us: i64,
    /// Until when there are none, and how far ahead.
    used_up: Option<(Ahead, i64)>,
}

/// Counts a request as waiting for as long as it lives.
struct Waiting<'a>(&'a AtomicU32);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Limit {
    /// Makes sure that the tables are this deployment's.
    ///
    /// # Errors
    /// As [`Turns::own`].
    pub(super) async fn own(&self) -> Stored<()> {
        match &self.0 {
            Some(shared) => shared.own().await,
            None => Ok(()),
        }
    }

    /// Waits for the turn of a request, two seconds at most.
    ///
    /// # Errors
    /// [`StoreError::Limited`] if there is no turn within that time; [`StoreError::Contract`] for an operation of
    /// the tables' owner, if they are another deployment's.
    pub(super) async fn turn(&self, operation: Operation) -> Stored<()> {
        let Some(shared) = &self.0 else { return Ok(()) };
        if operation.is_owners() {
            shared.own().await?;
        }
        let ahead = operation.turns();
        match come(shared.turn_at(operation, ahead).await?).await {
            Turn::Now => Ok(()),
            Turn::At(at) => {
                let wait_ms = at.ms_since(Timestamp::from_ms(now_us() / 1000));
                Err(limited(wait_ms * 1000))
            }
        }
    }

    /// Takes the next turn of a refund that a capture decides, and waits for it if it is near.
    ///
    /// # Errors
    /// As [`Limit::turn`]; [`StoreError::Limited`] if there is none within a day.
    pub(super) async fn refund_turn(&self) -> Stored<Turn> {
        self.kept(Operation::RefundCapture, Ahead::Refunds).await
    }

    /// Takes the next start of a payment, and waits for it if it is a turn.
    ///
    /// # Errors
    /// As [`Limit::turn`]; [`StoreError::Limited`] if the next start is later than places are given out.
    pub(super) async fn start(&self) -> Stored<Turn> {
        self.kept(Operation::StartPayment, Ahead::Places).await
    }

    /// Takes the next call of an operation of the tables' owner, and waits for it if it is near; the caller keeps one that is
    /// later.
    async fn kept(&self, operation: Operation, ahead: Ahead) -> Stored<Turn> {
        let Some(shared) = &self.0 else { return Ok(Turn::Now) };
        shared.own().await?;
        Ok(come(shared.turn_at(operation, ahead).await?).await)
    }
}

/// Waits for the time of a call if that is near.
async fn come(at_us: i64) -> Turn {
    let wait_us = at_us - now_us();
    if wait_us > TURNS_AHEAD_SECONDS * 1_000_000 {
        // The first millisecond that is not before it.
        return Turn::At(Timestamp::from_ms(at_us.div_euclid(1000) + 1));
    }
    tokio::time::sleep(Duration::from_micros(u64::try_from(wait_us).unwrap_or(0))).await;
    Turn::Now
}

impl Shared {
    async fn own(&self) -> Stored<()> {
        let Some(own) = &self.own else { return Ok(()) };
        let asked = || self.turns.own(&self.provider, own);
        self.is_owned.get_or_try_init(asked).await.map(drop)
    }

    /// The time of the next turn of an operation.
    async fn turn_at(&self, operation: Operation, ahead: Ahead) -> Stored<i64> {
        let place = Operation::ALL.iter().position(|one| *one == operation).unwrap_or_default();
        let queue = &self.queues[place];
        let waiting = queue.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        let _waiting = Waiting(&queue.waiting);
        let mut taken = queue.taken.lock().await;
        let now_us = now_us();
        if taken.calls > 0 && taken.first_us + STALE_US < now_us {
            taken.calls = 0;
        }
        if taken.calls == 0 {
            if let Some((of, until_us)) = taken.used_up
                && of == ahead
                && now_us < until_us
            {
                return Err(limited(until_us - now_us));
            }
            let waiting = queue.waiting.load(Ordering::Relaxed).max(waiting);
            let calls = waiting.min(MAX_TURNS);
            let (provider, rate) = (&self.provider, self.rate_of(operation));
            let request = TurnRequest { provider, operation, rate, ahead, calls, now_us };
            match self.turns.take(request).await? {
                Take::Calls { calls, first_us, .. } => {
                    (taken.calls, taken.first_us) = (calls, first_us);
                }
                Take::UsedUp { for_us } => {
                    taken.used_up = Some((ahead, now_us + for_us.min(REMEMBERED_US)));
                    return Err(limited(for_us));
                }
            }
        }
        let at_us = taken.first_us;
        taken.calls -= 1;
        taken.first_us += self.rate_of(operation).interval_us();
        Ok(at_us)
    }

    fn rate_of(&self, operation: Operation) -> CallRate {
        if operation == Operation::RefundCapture {
            return self.capture_refunds.0;
        }
        operation.rate(self.rate)
    }
}

fn limited(for_us: i64) -> StoreError {
    let seconds = for_us.max(0).div_euclid(1_000_000) + 1;
    StoreError::Limited(u32::try_from(seconds).unwrap_or(u32::MAX))
}

fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex as StdMutex;

    use futures_util::future::join_all;

    use super::*;

    /// Turns of processes that share this memory, and how often they were asked for.
    #[derive(Debug, Default)]
    struct Memory {
        kept: StdMutex<(BTreeMap<Operation, i64>, u32)>,
        owner: StdMutex<Option<DeploymentId>>,
    }

    impl Turns for Memory {
        fn own<'a>(
            &'a self,
            _provider: &'a ProviderId,
            deployment: &'a DeploymentId,
        ) -> BoxFuture<'a, Stored<()>> {
            let mut owner = self.owner.lock().unwrap();
            let is_own = owner.get_or_insert_with(|| deployment.clone()) == deployment;
            let other = || Err(StoreError::Contract("another deployment's".to_owned()));
            Box::pin(async move { if is_own { Ok(()) } else { other() } })
        }

        fn next<'a>(
            &'a self,
            _provider: &'a ProviderId,
            operation: Operation,
        ) -> BoxFuture<'a, Stored<Option<i64>>> {
            let mut kept = self.kept.lock().unwrap();
            kept.1 += 1;
            let next_us = kept.0.get(&operation).copied();
            Box::pin(async move { Ok(next_us) })
        }

        fn take<'a>(&'a self, request: TurnRequest<'a>) -> BoxFuture<'a, Stored<Take>> {
            let TurnRequest { operation, rate, ahead, calls, now_us, .. } = request;
            Box::pin(async move {
                // As a store does: it answers later, and others come meanwhile.
                tokio::task::yield_now().await;
                let mut kept = self.kept.lock().unwrap();
                kept.1 += 1;
                let take = rate.take(kept.0.get(&operation).copied(), calls, ahead, now_us);
                if let Take::Calls { next_us, .. } = take {
                    kept.0.insert(operation, next_us);
                }
                Ok(take)
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_sent_from_the_tables_of_another_deployment() {
        let memory = Arc::new(Memory::default());
        let provider = ProviderId::new("stripe").unwrap();
        let of = |deployment: &str| {
            let rate = CallRate::from_per_second(1000).unwrap();
            let own = DeploymentId::new(deployment).ok();
            Limits::new(Arc::clone(&memory) as Arc<dyn Turns>, rate)
                .of_deployment(own)
                .of(&provider)
        };
        let (first, copy) = (of("prod1"), of("stage"));
        for operation in Operation::ALL {
            assert_eq!(first.turn(operation).await, Ok(()), "{operation:?}");
            let is_refused = matches!(copy.turn(operation).await, Err(StoreError::Contract(_)));
            assert_eq!(is_refused, operation.is_owners(), "{operation:?}");
        }
    }

    #[tokio::test]
    async fn the_next_start_is_read_once_a_second() {
        let memory = Arc::new(Memory::default());
        let provider = ProviderId::new("stripe").unwrap();
        let rate = CallRate::from_per_second(1).unwrap();
        let limits = Limits::new(Arc::<Memory>::clone(&memory), rate);
        let starts = limits.next_starts(vec![provider.clone()]);
        assert_eq!(starts.in_ms().await, Ok(None), "nobody has started a payment");
        memory.kept.lock().unwrap().0.insert(Operation::StartPayment, now_us() + 50_000_000);
        let starts = limits.next_starts(vec![provider]);
        let asked = memory.kept.lock().unwrap().1;
        for _ in 0..100 {
            let in_ms = starts.in_ms().await.unwrap().unwrap();
            assert!((40_000..=50_000).contains(&in_ms), "{in_ms}");
        }
        let times = memory.kept.lock().unwrap().1 - asked;
        assert!((1..=10).contains(&times), "{times}");
        assert_eq!(Limits::none().next_starts(Vec::new()).in_ms().await, Ok(None));
    }

    #[test]
    fn the_parts_of_all_operations_are_the_account() {
        assert_eq!(Operation::ALL.map(Operation::share).iter().sum::<u32>(), 100);
        let rate = |operation: Operation| operation.rate(CallRate::DEFAULT).per_second();
        assert_eq!((rate(Operation::StartPayment), rate(Operation::ListCaptures)), (25, 5));
        let least = CallRate::from_per_second(1).unwrap();
        assert_eq!(Operation::ListCaptures.rate(least).per_second(), 1, "never none");
    }

    #[tokio::test]
    async fn turns_are_shared_by_processes_and_refused_beyond_two_seconds() {
        let memory = Arc::new(Memory::default());
        let rate = CallRate::from_per_second(100).unwrap();
        let limits = Limits::new(Arc::<Memory>::clone(&memory), rate);
        let provider = ProviderId::new("stripe").unwrap();
        let processes: Vec<Limit> = (0..4).map(|_| limits.of(&provider)).collect();
        let search = Operation::StartPayment;
        let rate = search.rate(rate);
        let asked = processes.iter().flat_map(|process| {
            let shared = process.0.as_ref().unwrap();
            (0..100).map(move |_| shared.turn_at(search, search.turns()))
        });
        let begin_us = now_us();
        let answers = join_all(asked).await;
        let meanwhile = usize::try_from((now_us() - begin_us) / rate.interval_us()).unwrap();
        let mut times: Vec<i64> = answers.iter().filter_map(|at| at.clone().ok()).collect();
        times.sort_unstable();
        let most = 251 + meanwhile;
        assert!((250..=most).contains(&times.len()), "{} turns, at most {most}", times.len());
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= rate.interval_us()));
        let refused = answers.iter().filter(|at| matches!(at, Err(StoreError::Limited(1))));
        assert_eq!(refused.count(), 400 - times.len());
        let asked = memory.kept.lock().unwrap().1;
        let most = 35 + u32::try_from(meanwhile).unwrap();
        assert!(asked <= most, "{asked} requests for {} turns, and 400 calls", times.len());

        // Who starts a payment is not refused then: one has the start after the last turn, and waits for it.
        // Where time has gone by, one has become free.
        match processes[1].start().await.unwrap() {
            Turn::At(place) => {
                let after_us = place.ms() * 1000 - times.last().unwrap();
                let next = rate.interval_us()..rate.interval_us() + 1001;
                assert!(next.contains(&after_us), "{after_us}");
            }
            Turn::Now => assert!(now_us() - begin_us >= rate.interval_us(), "it has a place"),
        }

        // Searches leave refunds their own.
        assert_eq!(processes[0].turn(Operation::Refund).await, Ok(()));
        let unlimited = Limits::none().of(&provider);
        assert_eq!(unlimited.turn(search).await, Ok(()));
        assert_eq!(unlimited.start().await, Ok(Turn::Now));
    }
}
