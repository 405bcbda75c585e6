//! The executor: a single-threaded executor whose only clock is the run's.
//!
//! An actor (a buyer, the provider, a poller of queues) is a task, and so is every run of a function.
//! A task is polled when something it waits for has happened; when the process of a function dies, its
//! tasks are dropped where they stand.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use engine::domain::basics::time::Timestamp;
use model_stores::Caller;

use crate::environment::{Environment, Pool, PortHandle, Shared};
use crate::fault::Fault;
use crate::random::{SeededRng, mix};

type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Something that runs, and the process it would die with.
struct Task {
    work: Work,
    home: Option<(usize, u32)>,
}

/// Gives way to others once: where a call may come before or after theirs.
pub async fn let_others_come_between() {
    let mut was_here = false;
    poll_fn(
        |_| if std::mem::replace(&mut was_here, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

/// Tasks that have something to do.
type Ready = Arc<Mutex<Vec<usize>>>;

struct Waken {
    task: usize,
    ready: Ready,
}

impl Wake for Waken {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
    }
}

/// Counts a task as unfinished for as long as it lives, however it ends.
struct Busy(Rc<Cell<u64>>);

impl Busy {
    fn new(count: &Rc<Cell<u64>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The place of an answer, and the task that waits for it.
struct ReplySlot<T> {
    answer: Option<T>,
    is_gone: bool,
    waker: Option<Waker>,
}

/// Leaves the answer, or says that there will be none.
struct Sender<T>(Rc<RefCell<ReplySlot<T>>>);

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut slot = self.0.borrow_mut();
        slot.is_gone = true;
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

/// A handle of the executor, which actors hold.
#[derive(Clone)]
pub(crate) struct Executor {
    pub environment: Shared,
    spawned: Rc<RefCell<Vec<Task>>>,
    busy: Rc<Cell<u64>>,
}

impl Executor {
    pub(crate) fn new(environment: Environment) -> Self {
        let busy = Rc::new(Cell::new(0));
        Self { environment: Shared::new(environment), spawned: Rc::default(), busy }
    }

    /// Waits for a number of milliseconds.
    pub(crate) async fn sleep(&self, ms: i64) {
        self.environment.sleep(ms).await;
    }

    /// Starts an actor. The run is not at rest before it has finished.
    pub(crate) fn act(&self, work: impl Future<Output = ()> + 'static) {
        let busy = Busy::new(&self.busy);
        self.act_forever(async move {
            let _busy = busy;
            work.await;
        });
    }

    /// Starts an actor that the end of the run does not wait for.
    pub(crate) fn act_forever(&self, work: impl Future<Output = ()> + 'static) {
        self.spawned.borrow_mut().push(Task { work: Box::pin(work), home: None });
    }

    /// True if no actor is busy and no function runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.get() == 0
    }

    /// Runs a function in one of the processes; `place` names its draws. `None` if the process died
    /// before it had answered, or the answer was lost.
    pub(crate) async fn invoke<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        name: String,
        place: u64,
        function: impl FnOnce(Caller<PortHandle>, Timestamp) -> F,
    ) -> Option<T> {
        self.invoke_in(Pool::Orders, name, place, function).await
    }

    /// The same in one of the processes of a pool.
    pub(crate) async fn invoke_in<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        pool: Pool,
        name: String,
        place: u64,
        function: impl FnOnce(Caller<PortHandle>, Timestamp) -> F,
    ) -> Option<T> {
        let (invocation, now) = self.environment.lock().invoke(pool, name, place);
        let ports = Caller(PortHandle { environment: self.environment.clone(), invocation });
        let slot = Rc::new(RefCell::new(ReplySlot { answer: None, is_gone: false, waker: None }));
        let sender = Sender(Rc::clone(&slot));
        let (work, busy) = (function(ports, now), Busy::new(&self.busy));
        let work = async move {
            let _busy = busy;
            let answer = work.await;
            sender.0.borrow_mut().answer = Some(answer);
        };
        let home = Some(self.environment.lock().home(invocation));
        self.spawned.borrow_mut().push(Task { work: Box::pin(work), home });
        let answer = poll_fn(|context| {
            let mut slot = slot.borrow_mut();
            if slot.is_gone {
                return Poll::Ready(slot.answer.take());
            }
            slot.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        let (place, mut rng) = (mix(place, 5), SeededRng::from_label(place, 6));
        let is_lost = self.environment.lock().strikes(Fault::LoseAnswer, place, &mut rng);
        answer.filter(|_| !is_lost)
    }
}

/// Runs everything until nothing happens any more, or `is_over` says so.
pub(crate) fn run(executor: &Executor, mut is_over: impl FnMut(&Executor) -> bool) {
    let ready: Ready = Arc::default();
    let mut tasks: Vec<Option<Task>> = Vec::new();
    let mut wakers: Vec<Waker> = Vec::new();
    loop {
        loop {
            for task in executor.spawned.borrow_mut().drain(..) {
                let waken = Waken { task: tasks.len(), ready: Arc::clone(&ready) };
                wakers.push(Waker::from(Arc::new(waken)));
                ready.lock().unwrap_or_else(PoisonError::into_inner).push(tasks.len());
                tasks.push(Some(task));
            }
            let next = std::mem::take(&mut *ready.lock().unwrap_or_else(PoisonError::into_inner));
            if next.is_empty() && executor.spawned.borrow().is_empty() {
                break;
            }
            for index in next {
                let Some(task) = &mut tasks[index] else { continue };
                let mut context = Context::from_waker(&wakers[index]);
                if task.work.as_mut().poll(&mut context).is_ready() {
                    tasks[index] = None;
                }
            }
        }
        if executor.environment.lock().violation.is_some() || is_over(executor) {
            break;
        }
        if !executor.environment.lock().step() {
            break;
        }
        let gone = executor.environment.lock().take_gone();
        if !gone.is_empty() {
            for task in &mut tasks {
                if task.as_ref().and_then(|task| task.home).is_some_and(|home| gone.contains(&home))
                {
                    *task = None;
                }
            }
        }
    }
    // What still runs must not outlive the run.
    executor.spawned.borrow_mut().clear();
    tasks.clear();
}
