//! The actors: the operator, the schedule, the queues' pollers, the payment provider.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::domain::basics::bytes::Secret;
use engine::domain::basics::ids::{Epoch, ReaderId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{Capture, OrderState, PaymentRecord};
use engine::domain::sale::BeaconChoice;
use engine::domain::sale::archive::{Lifecycle, NotYet};
use engine::domain::sale::{Sale, SaleState};
use engine::flows::archive::{self, archive};
use engine::flows::award::award;
use engine::flows::cancel_sale::{self, IN_FLIGHT_SECONDS, Progress, stop, walk_once};
use engine::flows::captures::read_captures;
use engine::flows::close::close_or_requeue;
use engine::flows::expire::{Expiry, expire_or_requeue};
use engine::flows::load::load;
use engine::flows::pay::{Answered, answer, pay_reported};
use engine::flows::publish::{Refusal, publish, publish_with_room};
use engine::flows::reconcile::reconcile;
use engine::flows::refund::refund_or_requeue;
use engine::flows::room::publish::DrawBy;
use engine::flows::room::request::draw_or_requeue;
use engine::flows::sync::sync;
use engine::flows::unmatched::{Word, tell};
use engine::ports::messages::{Callback, ClosePayments, Refund};
use engine::ports::{Due, StoreError, Stored};
use model_stores::{Message, Sent};

use crate::environment::Pool;
use crate::executor::Executor;
use crate::fault::{Fault, LONGEST_FREEZE_MS};
use crate::oracle::debug_head;
use crate::plan::{Incident, sale_id};
use crate::random::{SeededRng, mix};
use crate::room::CHAIN;

/// Time that a message is hidden while a function works on it, in milliseconds (`template.yaml`).
const HIDDEN_MS: i64 = 200_000;
/// Number of times that a message is received before it goes to the dead letters (`template.yaml`).
const MAX_RECEIVES: u32 = 10;
/// Most messages of a draw that wait at once.
const MAX_DRAWS: usize = 3;
/// Most messages of a batch.
const MAX_TOGETHER: usize = 10;
/// Time between two runs of the sweeper, in milliseconds (`template.yaml`).
const SWEEP_MS: i64 = 60_000;
/// Number of times that an operator tries to archive the sale.
const ARCHIVINGS: u64 = 80;
/// Time between two runs of the reader, in milliseconds.
const READ_MS: i64 = 15_000;
/// Most pages of one of its runs.
const MAX_PAGES: u32 = 2;
/// Number of sweeps of a storm of them.
const STORM_SWEEPS: u64 = 40;
/// Seconds after which the provider calls again.
const CALL_AGAIN_SECONDS: [i64; 10] = [5, 30, 120, 300, 900, 1800, 3600, 7200, 14_400, 28_800];

/// The name of the next load.
fn new_epoch(executor: &Executor) -> Epoch {
    let count = {
        let mut environment = executor.environment.lock();
        environment.loads += 1;
        environment.loads
    };
    Epoch::new(format!("e{count}")).expect("it is a slug")
}

/// The operator publishes a sale, again until it is done.
pub(crate) async fn operator(executor: Executor, sale: Sale, place: u64) {
    for turn in 0..40 {
        let (sale, epoch) = (sale.clone(), new_epoch(&executor));
        let done = executor
            .invoke(format!("publish {turn}"), mix(place, turn), |ports, now| async move {
                if sale.room().is_some() {
                    let by = match sale.file().room.as_ref().and_then(|room| room.beacon) {
                        Some(BeaconChoice::Operator(_)) => DrawBy::Secret(Secret([4; 32])),
                        Some(BeaconChoice::Chain(_)) | None => DrawBy::Beacon(CHAIN),
                    };
                    return publish_with_room(&ports, &sale, &epoch, &by, now).await;
                }
                publish(&ports, &sale, &epoch, now).await
            })
            .await;
        match done {
            Some(Ok(_))
            | Some(Err(
                Refusal::SeatsDiffer
                | Refusal::Invalid(_)
                | Refusal::RoomDiffers
                | Refusal::Archived
                | Refusal::Cancelled,
            )) => return,
            Some(Err(Refusal::Busy | Refusal::Store(_))) | None => executor.sleep(5_000).await,
        }
    }
}

/// What happens to the whole environment, when its time comes.
pub(crate) async fn happen(executor: Executor, at_ms: i64, place: u64, incident: Incident) {
    executor.sleep(at_ms).await;
    match incident {
        Incident::Failover { writes } => executor.environment.lock().fail_over(place, writes),
        Incident::Flush => executor.environment.lock().flush(place),
        Incident::LoseTier { tier } => executor.environment.lock().lose_tier(place, tier),
        Incident::Cancel => cancel_sale(executor, place).await,
        Incident::Publish => {
            let (sale, seed) = {
                let environment = executor.environment.lock();
                (environment.plan.sale.clone(), environment.plan.seed)
            };
            let mut rng = SeededRng::from_label(seed, place);
            let mut file = sale.file().clone();
            file.limit_per_buyer = rng.between(1, 5) as u16;
            let pauses = rng.chance(500);
            file.state = if pauses { SaleState::Paused } else { SaleState::Open };
            let changed = Sale::new(file.clone()).expect("only terms differ");
            operator(executor.clone(), changed, place).await;
            if pauses {
                executor.sleep(rng.between(1_000, 60_000)).await;
                file.state = SaleState::Open;
                let open = Sale::new(file).expect("only terms differ");
                operator(executor, open, mix(place, 99)).await;
            }
        }
    }
}

/// An operator cancels the sale, again until a walk over its claims finds nothing that anybody who was on their
/// way could have left. A function that sleeps here may outlast what is allowed it, so they look again after that.
async fn cancel_sale(executor: Executor, place: u64) {
    let mut rng = SeededRng::from_label(place, executor.environment.lock().plan.seed);
    for turn in 0.. {
        let epoch = new_epoch(&executor);
        let began_at = executor.environment.lock().now;
        let done = executor
            .invoke(format!("cancel the sale {turn}"), mix(place, turn), |ports, now| async move {
                let published = stop(&ports, &sale_id(), &epoch, now).await?;
                let mut progress = Progress::default();
                let sale = &published.sale;
                let clock = ports.0.clone();
                let walked =
                    walk_once(&ports, sale, &clock, &async || (), &mut progress, |_| ()).await;
                Ok::<_, cancel_sale::Refusal>((walked?, progress.refunded, progress.ended))
            })
            .await;
        let calm_from = executor.environment.lock().plan.calm_from;
        let quiet_from = calm_from.plus_ms(LONGEST_FREEZE_MS).plus_seconds(IN_FLIGHT_SECONDS);
        let mut again_ms = rng.between(1_000, 60_000);
        let is_over = match done {
            Some(Ok((found, refunded, ended))) => {
                let environment = &mut *executor.environment.lock();
                if refunded > 0 {
                    environment.tally.reach("cancelled sale refunded");
                }
                if ended > 0 {
                    environment.tally.reach("cancelled sale ended");
                }
                if !found && began_at >= calm_from {
                    again_ms = (quiet_from.ms() - began_at.ms()).max(again_ms);
                }
                !found && began_at >= quiet_from
            }
            Some(Err(_)) | None => {
                executor.environment.lock().tally.reach("sale not cancelled yet");
                false
            }
        };
        if is_over {
            executor.environment.lock().tally.reach("sale cancelled");
            return;
        }
        executor.sleep(again_ms).await;
    }
}

/// An operator archives the sale once it has closed, again until it is done: often too early, while
/// orders are pending and money is on its way.
pub(crate) async fn archivist(executor: Executor, closes_ms: i64, place: u64) {
    let seed = executor.environment.lock().plan.seed;
    let mut rng = SeededRng::from_label(seed, place);
    executor.sleep(closes_ms + rng.between(-2_000, 60_000)).await;
    for turn in 0..ARCHIVINGS {
        let token = new_epoch(&executor);
        let done = executor
            .invoke(format!("archive {turn}"), mix(place, turn), |ports, _| async move {
                archive(&ports, &sale_id(), &token, ports.0.clone()).await
            })
            .await;
        let reached = match &done {
            Some(Ok(_)) => "archived",
            Some(Err(archive::Refusal::NotYet(NotYet::Sells(_)))) => "archiving refused: sells",
            Some(Err(archive::Refusal::NotYet(NotYet::Undecided(_)))) => {
                "archiving refused: undecided"
            }
            Some(Err(archive::Refusal::NoSuchSale | archive::Refusal::Busy)) => "archiving busy",
            Some(Err(archive::Refusal::Store(_))) | None => "archiving failed",
        };
        executor.environment.lock().tally.reach(reached);
        if matches!(done, Some(Ok(_))) {
            return;
        }
        executor.sleep(rng.between(1_000, 90_000)).await;
    }
}

/// What the sweeper has to do, as far as it can be seen from outside.
fn is_anything_due(executor: &Executor) -> bool {
    let environment = executor.environment.lock();
    let soon = environment.now.plus_ms(4_000);
    if let Some(lifecycle) = environment.over() {
        let due = environment.stores.orders.due.first().is_some_and(|(at, _)| *at <= soon);
        return due || lifecycle == Lifecycle::Unloading;
    }
    let named = environment.stores.catalogue.sales.get(&sale_id()).and_then(|s| s.epoch.clone());
    let seats = &environment.stores.seats;
    let mut inventories = seats.of_sale(&environment.plan.sale);
    let is_loaded = named.is_some()
        && environment.plan.sale.inventories().iter().all(|id| seats.epoch(id) == named);
    let due = environment.stores.orders.due.first().is_some_and(|(at, _)| *at <= soon);
    let hold = inventories.any(|(_, inventory)| !inventory.due(soon, 1).is_empty());
    due || hold || !is_loaded
}

/// The schedule: a sweep every minute. A sweep would do nothing if nothing has changed since one
/// that found nothing to do, and nothing became due: it is left out then, to have time for others.
pub(crate) async fn schedule(executor: Executor, quiet: Rc<RefCell<Option<u64>>>) {
    let (first_sweep_ms, is_storm) = {
        let plan = &executor.environment.lock().plan;
        (plan.first_sweep_ms, plan.is_storm)
    };
    for turn in 0.. {
        let place = {
            let environment = executor.environment.lock();
            mix(mix(environment.plan.seed, 0x5eeb), turn)
        };
        let in_storm = is_storm && turn < STORM_SWEEPS;
        executor
            .sleep(match turn {
                0 => first_sweep_ms,
                _ if in_storm => SeededRng::from_label(place, 1).between(50, 400),
                _ => SWEEP_MS,
            })
            .await;
        let changes = executor.environment.lock().changes;
        if !in_storm && *quiet.borrow() == Some(changes) && !is_anything_due(&executor) {
            executor.environment.lock().tally.skipped += 1;
            continue;
        }
        executor.act(sweep(executor.clone(), place, Rc::clone(&quiet)));
        let mut rng = SeededRng::from_label(place, 2);
        if executor.environment.lock().strikes(Fault::TwoSweepers, mix(place, 3), &mut rng) {
            let late = executor.clone();
            let (place, wait, quiet) = (mix(place, 4), rng.between(0, 800), Rc::clone(&quiet));
            executor.act(async move {
                late.sleep(wait).await;
                sweep(late, place, quiet).await;
            });
        }
    }
}

async fn sweep(executor: Executor, place: u64, quiet: Rc<RefCell<Option<u64>>>) {
    let before = executor.environment.lock().changes;
    let epoch = new_epoch(&executor);
    let report = executor
        .invoke("sweep".to_owned(), place, |ports, now| async move {
            reconcile(&ports, &epoch, now).await
        })
        .await;
    let mut environment = executor.environment.lock();
    let Some(Ok(report)) = report else {
        environment.tally.reach("sweep failed");
        return;
    };
    let counts = [
        ("sweep expired", report.expired),
        ("sweep synced", report.synced),
        ("sweep requested a refund", report.refunds),
        ("sweep loaded", report.loaded),
        ("sweep aligned", report.aligned),
        ("sweep restored", report.restored),
        ("sweep sold", report.sold),
        ("sweep freed", report.freed),
        ("sweep unloaded", report.unloaded),
        ("sweep failed in part", report.failed),
    ];
    for (name, _) in counts.into_iter().filter(|(_, count)| *count > 0) {
        environment.tally.reach(name);
    }
    // Quiet is what was so from the first read on: a sweep that was frozen has an old snapshot.
    let is_quiet = report.is_quiet() && environment.changes == before;
    *quiet.borrow_mut() = is_quiet.then_some(before);
}

/// The reader of the provider's list: a run every quarter of a minute while anything is due. It reads few
/// pages, so that a pass takes several runs.
pub(crate) async fn reader(executor: Executor) {
    for turn in 0.. {
        let (place, is_anything_due) = {
            let environment = executor.environment.lock();
            let mut due = environment.stores.orders.due.iter();
            // A refund that is asked about again in a day is nothing to read for.
            let is_anything_due = due.any(|(_, due)| matches!(due, Due::Order(_)));
            (mix(mix(environment.plan.seed, 0x4ead), turn), is_anything_due)
        };
        executor.sleep(if is_anything_due { READ_MS } else { SWEEP_MS }).await;
        if !is_anything_due {
            continue;
        }
        let reader = ReaderId::new(format!("r{place:x}")).expect("it is a slug");
        let reading = executor
            .invoke("reader".to_owned(), place, |ports, _| async move {
                read_captures(&ports, &reader, ports.0.clone(), MAX_PAGES).await
            })
            .await;
        let mut environment = executor.environment.lock();
        let Some(Ok(reading)) = reading else {
            environment.tally.reach("reader failed");
            continue;
        };
        let counts = [
            ("reader read", reading.pages),
            ("reader decided", reading.decided),
            ("reader unfinished", reading.unfinished),
        ];
        for (name, _) in counts.into_iter().filter(|(_, count)| *count > 0) {
            environment.tally.reach(name);
        }
    }
}

/// Function that a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Expiry,
    Sync,
    Refund,
    Load,
    Callback,
    Draw,
    Close,
    Points,
}

/// A message in a queue.
#[derive(Debug, Clone)]
struct QueuedMessage {
    queue: Queue,
    message: Message,
    visible_at: Timestamp,
    receives: u32,
    /// True while a function works on it.
    is_out: bool,
}

/// The queues: every message is delivered at least once, unless it is lost, in any order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queues(Rc<RefCell<BTreeMap<u64, QueuedMessage>>>);

impl Queues {
    /// Takes what was sent, and lets it be lost, doubled or delayed.
    pub(crate) fn take(&self, executor: &Executor) {
        loop {
            let next = executor.environment.lock().sent.pop_front();
            let Some((place, sent)) = next else { return };
            let mut rng = SeededRng::from_label(place, 7);
            let mut strikes = |fault, label| {
                executor.environment.lock().strikes(fault, mix(place, label), &mut rng)
            };
            // Whoever looks at a room asks for its draw: more than some of those add nothing.
            let is_draw = |message: &Message| matches!(message, Message::Draw(_));
            let draws = self.0.borrow().values().filter(|queued| is_draw(&queued.message)).count();
            if is_draw(&sent.message) && draws >= MAX_DRAWS {
                continue;
            }
            // SQS keeps what it has accepted. That speed alone depends on it is shown by losing messages;
            // of a capture that is kept, its message may be all there is, and nothing else has points written.
            let is_kept = matches!(sent.message, Message::Callback(_) | Message::Points(_));
            if !is_kept && strikes(Fault::LoseMessage, 8) {
                continue;
            }
            let copies = if strikes(Fault::DoubleMessage, 9) { 2 } else { 1 };
            let is_late = strikes(Fault::DelayMessage, 10);
            for copy in 0..copies {
                let hours = if rng.chance(300) { 10_800_000 } else { 600_000 };
                let delay = if is_late { rng.between(1_000, hours) } else { rng.between(1, 900) };
                self.put(executor, mix(place, copy), &sent, delay);
            }
        }
    }

    /// True while something of what orders give is to be written.
    pub(crate) fn has_points(&self) -> bool {
        self.0.borrow().values().any(|queued| queued.queue == Queue::Points)
    }

    fn put(&self, executor: &Executor, place: u64, sent: &Sent, delay_ms: i64) {
        let queue = match sent.message {
            Message::Expiry { .. } => Queue::Expiry,
            Message::Sync(_) => Queue::Sync,
            Message::Refund(_) => Queue::Refund,
            Message::Load(_) => Queue::Load,
            Message::Callback(_) => Queue::Callback,
            Message::Draw(_) => Queue::Draw,
            Message::Close(_) => Queue::Close,
            Message::Points(_) => Queue::Points,
        };
        let visible_at = sent.visible_at.plus_ms(delay_ms);
        let message = sent.message.clone();
        let queued = QueuedMessage { queue, message, visible_at, receives: 0, is_out: false };
        self.0.borrow_mut().insert(place, queued);
        executor.act(self.clone().deliver(executor.clone(), queue, visible_at, mix(place, 11)));
    }

    /// Waits until a message is visible and hands it to its function, with others that are.
    async fn deliver(self, executor: Executor, queue: Queue, at: Timestamp, place: u64) {
        let wait = at.ms_since(executor.environment.lock().now);
        executor.sleep(wait).await;
        let now = executor.environment.lock().now;
        let mut rng = SeededRng::from_label(place, 12);
        let mut batch: Vec<(u64, Message)> = Vec::new();
        for (name, queued) in self.0.borrow_mut().iter_mut() {
            let is_there = queued.queue == queue && !queued.is_out && queued.visible_at <= now;
            // A poller takes what it finds, which need not be all there is.
            if is_there && batch.len() < MAX_TOGETHER && (batch.is_empty() || rng.chance(800)) {
                queued.is_out = true;
                queued.receives += 1;
                batch.push((*name, queued.message.clone()));
            }
        }
        if batch.is_empty() {
            return;
        }
        let messages: Vec<Message> = batch.iter().map(|(_, message)| message.clone()).collect();
        let done = consume(&executor, queue, messages, place).await;
        let now = executor.environment.lock().now;
        for (index, (name, _)) in batch.into_iter().enumerate() {
            let is_done =
                done.as_ref().is_some_and(|done| done.get(index).is_some_and(Result::is_ok));
            let mut queued_messages = self.0.borrow_mut();
            let Some(queued) = queued_messages.get_mut(&name) else { continue };
            if is_done {
                queued_messages.remove(&name);
                continue;
            }
            executor.environment.lock().tally.reach("message comes again");
            if queued.receives >= MAX_RECEIVES {
                executor.environment.lock().tally.reach("dead letter");
                if !matches!(queue, Queue::Callback | Queue::Points) {
                    queued_messages.remove(&name);
                    continue;
                }
                // An alarm tells the operator, who moves it back.
                queued.receives = 0;
            }
            queued.is_out = false;
            queued.visible_at = now.plus_ms(HIDDEN_MS);
            let place = mix(mix(name, 13), queued.receives.into());
            executor.act(self.clone().deliver(executor.clone(), queue, queued.visible_at, place));
        }
    }
}

/// Gives a batch to its function: what became of each message, or `None` if nobody knows.
async fn consume(
    executor: &Executor,
    queue: Queue,
    messages: Vec<Message>,
    place: u64,
) -> Option<Vec<Stored<()>>> {
    let count = messages.len();
    match queue {
        Queue::Expiry => {
            let expiry = |message| match message {
                Message::Expiry { inventory, order, due_at: _, heard_at } => {
                    Some(Expiry { at: inventory, number: order, heard_at })
                }
                Message::Sync(_)
                | Message::Refund(_)
                | Message::Load(_)
                | Message::Callback(_)
                | Message::Draw(_)
                | Message::Points(_)
                | Message::Close(_) => None,
            };
            let due: Vec<Expiry> = messages.into_iter().filter_map(expiry).collect();
            executor
                .invoke("expire".to_owned(), place, |ports, now| async move {
                    expire_or_requeue(&ports, &due, now).await
                })
                .await
        }
        Queue::Sync => {
            let number = |message| match message {
                Message::Sync(number) => Some(number),
                Message::Expiry { .. }
                | Message::Refund(_)
                | Message::Load(_)
                | Message::Callback(_)
                | Message::Draw(_)
                | Message::Points(_)
                | Message::Close(_) => None,
            };
            let numbers: Vec<OrderNumber> = messages.into_iter().filter_map(number).collect();
            let done = executor
                .invoke("sync".to_owned(), place, |ports, now| async move {
                    sync(&ports, &numbers, now).await
                })
                .await?;
            Some(vec![done.map(|_| ()); count])
        }
        Queue::Refund => send_back(executor, messages, place).await,
        Queue::Callback => decide_kept(executor, messages, place).await,
        Queue::Close => close_payments(executor, messages, place).await,
        Queue::Points => award_points(executor, messages, place).await,
        Queue::Draw => {
            let done = executor
                .invoke_in(Pool::Room, "draw".to_owned(), place, |ports, _| async move {
                    draw_or_requeue(&ports, &sale_id(), ports.0.clone()).await
                })
                .await?;
            let mut environment = executor.environment.lock();
            match &done {
                Ok(drawing) => environment.tally.reach(&format!("room: {}", debug_head(drawing))),
                Err(StoreError::Contract(what)) => environment.broken("contract", what.clone()),
                Err(_) => environment.tally.reach("room: draw failed"),
            }
            Some(vec![done.map(|_| ()); count])
        }
        Queue::Load => {
            let epoch = new_epoch(executor);
            let done = executor
                .invoke("load".to_owned(), place, |ports, _| async move {
                    load(&ports, &sale_id(), &epoch, ports.0.clone()).await
                })
                .await?;
            Some(vec![done.map(|_| ()); count])
        }
    }
}

/// The function of the refund queue.
async fn send_back(
    executor: &Executor,
    messages: Vec<Message>,
    place: u64,
) -> Option<Vec<Stored<()>>> {
    let request = |message| match message {
        Message::Refund(request) => Some(request),
        Message::Expiry { .. }
        | Message::Sync(_)
        | Message::Load(_)
        | Message::Callback(_)
        | Message::Draw(_)
        | Message::Points(_)
        | Message::Close(_) => None,
    };
    let requests: Vec<Refund> = messages.into_iter().filter_map(request).collect();
    executor
        .invoke("refund".to_owned(), place, |ports, now| async move {
            let mut done = Vec::new();
            for request in requests {
                done.push(refund_or_requeue(&ports, request, now).await.map(|_| ()));
            }
            done
        })
        .await
}

/// The function of the close queue.
async fn close_payments(
    executor: &Executor,
    messages: Vec<Message>,
    place: u64,
) -> Option<Vec<Stored<()>>> {
    let request = |message| match message {
        Message::Close(request) => Some(request),
        Message::Expiry { .. }
        | Message::Sync(_)
        | Message::Load(_)
        | Message::Refund(_)
        | Message::Callback(_)
        | Message::Points(_)
        | Message::Draw(_) => None,
    };
    let requests: Vec<ClosePayments> = messages.into_iter().filter_map(request).collect();
    executor
        .invoke("close".to_owned(), place, |ports, now| async move {
            let mut done = Vec::new();
            for request in requests {
                done.push(close_or_requeue(&ports, &request, now).await);
            }
            done
        })
        .await
}

/// The function of the points queue. The queue hands out the messages of one buyer one after the other; here they
/// come in any order and side by side, which makes no difference.
async fn award_points(
    executor: &Executor,
    messages: Vec<Message>,
    place: u64,
) -> Option<Vec<Stored<()>>> {
    let number = |message| match message {
        Message::Points(number) => Some(number),
        Message::Expiry { .. }
        | Message::Sync(_)
        | Message::Load(_)
        | Message::Refund(_)
        | Message::Callback(_)
        | Message::Draw(_)
        | Message::Close(_) => None,
    };
    let numbers: Vec<OrderNumber> = messages.into_iter().filter_map(number).collect();
    executor
        .invoke("award".to_owned(), place, |ports, _| async move {
            let mut done = Vec::new();
            for number in numbers {
                done.push(award(&ports, number).await.map(|_| ()));
            }
            done
        })
        .await
}

/// The function of the callback queue.
async fn decide_kept(
    executor: &Executor,
    messages: Vec<Message>,
    place: u64,
) -> Option<Vec<Stored<()>>> {
    let kept = |message| match message {
        Message::Callback(kept) => Some(kept),
        Message::Expiry { .. }
        | Message::Sync(_)
        | Message::Load(_)
        | Message::Refund(_)
        | Message::Draw(_)
        | Message::Points(_)
        | Message::Close(_) => None,
    };
    let kept: Vec<Callback> = messages.into_iter().filter_map(kept).collect();
    executor
        .invoke("decide".to_owned(), place, |ports, now| async move {
            let mut done = Vec::new();
            for kept in kept {
                done.push(pay_reported(&ports, &kept.into(), now).await.map(|_| ()));
            }
            done
        })
        .await
}

/// The provider tells of a capture until it is heard.
pub(crate) async fn call_back(executor: Executor, capture: Capture, wait_ms: i64, place: u64) {
    executor.sleep(wait_ms).await;
    for (turn, seconds) in CALL_AGAIN_SECONDS.into_iter().enumerate() {
        let reported = executor.environment.lock().stores.provider.reported(&capture);
        let name = format!("callback {}", capture.key.payment);
        let done = executor
            .invoke(name, mix(place, turn as u64), |ports, now| async move {
                let decision = pay_reported(&ports, &reported, now).await;
                answer(&ports, &reported, decision).await
            })
            .await;
        match done {
            Some(Ok(Answered::Decided(_))) => return,
            Some(Ok(Answered::Ignored)) => {
                executor.environment.lock().tally.reach("capture ignored");
                return;
            }
            Some(Ok(Answered::Kept)) => {
                executor.environment.lock().tally.reach("capture kept");
                return;
            }
            Some(Err(_)) | None => {}
        }
        executor.sleep(seconds * 1000).await;
    }
    executor.environment.lock().broken("callback", format!("{:?} is never heard", capture.key));
}

/// An operator looks at what is unmatched once a while, and says what becomes of a capture.
pub(crate) async fn decide_unmatched(executor: Executor, capture: Capture, word: Word, place: u64) {
    for turn in 0.. {
        executor.sleep(3_600_000).await;
        let (order, key) = (capture.order, capture.key.clone());
        {
            let mut environment = executor.environment.lock();
            let record = environment.stores.orders.payments.get(&(order, key.clone()));
            if !record.is_some_and(PaymentRecord::is_unmatched) {
                // It is on its way to be heard of, or an answer was lost.
                if environment.oracle.told.contains(&key) {
                    return;
                }
                continue;
            }
            environment.oracle.told.insert(key.clone());
        }
        let name = format!("operator on {}", key.payment);
        let told = executor.invoke(name, mix(place, turn), |ports, now| async move {
            tell(&ports, order, &key, (word, "-"), now).await
        });
        if let Some(Ok(_)) = told.await {
            let said = if word == Word::Explain { "explained" } else { "sent back" };
            executor.environment.lock().tally.reach(&format!("unmatched {said}"));
            return;
        }
    }
}

/// The provider does not call while the order is pending, nor for ten minutes after its end: only if
/// nobody has found the payment by then.
pub(crate) async fn never_call(executor: Executor, capture: Capture, place: u64) {
    let decision = (capture.order, capture.key.clone());
    loop {
        executor.sleep(20_000).await;
        let environment = executor.environment.lock();
        if environment.stores.orders.payments.contains_key(&decision) {
            return;
        }
        let order = environment.stores.orders.orders.get(&capture.order);
        if order.is_none_or(|order| order.state != OrderState::Pending) {
            break;
        }
    }
    // Whoever has found it may be at work still.
    executor.sleep(600_000).await;
    if executor.environment.lock().stores.orders.payments.contains_key(&decision) {
        return;
    }
    call_back(executor, capture, 0, place).await;
}
