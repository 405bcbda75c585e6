//! The flows as values: which one runs, with which arguments. What they do is in `engine::flows`.

use engine::domain::basics::ids::{Epoch, ReaderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::AttemptKey;
use engine::domain::order::{Capture, Order, PaymentOutcome};
use engine::domain::payment::ours::Reported;
use engine::flows::award::award;
use engine::flows::cancel::{self, cancel};
use engine::flows::captures::read_captures;
use engine::flows::close::close_or_requeue;
use engine::flows::dispute::{self, record_dispute};
use engine::flows::expire::{Expiry, expire_or_requeue};
use engine::flows::give_back::{self, give_back};
use engine::flows::load::load;
use engine::flows::pay::{Answered, answer, pay_reported};
use engine::flows::reconcile::reconcile;
use engine::flows::refund::refund_or_requeue;
use engine::flows::reserve::{self, reserve};
use engine::flows::start::{self, start};
use engine::flows::sync::sync;
use engine::flows::wallet;
use engine::ports::{Ports, StoreError, Stored};
use model_stores::{Message, Sent};

use crate::scenario::{Refunded, Scenario, dispute, provider};

/// Most pages of a run of the reader.
const MAX_PAGES: u32 = 2;

/// A flow with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Flow {
    /// A buyer's request for seats.
    Reserve {
        /// The index of the buyer.
        buyer: usize,
        /// The epoch that the handler found in the catalogue.
        epoch: Option<Epoch>,
        /// The time of the request.
        now: Timestamp,
    },
    /// A buyer gives the order up.
    Cancel {
        /// The index of the buyer.
        buyer: usize,
        /// The time of the request.
        now: Timestamp,
    },
    /// A buyer's order is refunded, whole or one ticket of it.
    GiveBack {
        /// The index of the buyer.
        buyer: usize,
        /// Which of the buyer's refunds.
        refund: Refunded,
        /// The time of the request.
        now: Timestamp,
    },
    /// A buyer begins to pay.
    Start {
        /// The index of the buyer.
        buyer: usize,
        /// True for the second choice: another method.
        is_other: bool,
        /// The time of the request.
        now: Timestamp,
    },
    /// A buyer pays from the wallet.
    FromWallet {
        /// The index of the buyer.
        buyer: usize,
        /// The time of the request.
        now: Timestamp,
    },
    Pay {
        capture: Capture,
        /// The time of the request.
        now: Timestamp,
    },
    Consume {
        sent: Sent,
        /// True for a copy that the queue delivered besides.
        is_copy: bool,
        /// The name that a load would get.
        epoch: Epoch,
        /// The time of the delivery.
        now: Timestamp,
    },
    /// A load of the sale.
    Load {
        /// The name it would get.
        epoch: Epoch,
        /// The time at which it began.
        now: Timestamp,
    },
    /// A run of the reader of the provider's list.
    Read {
        /// The name of the run.
        reader: ReaderId,
        /// The time at which it began.
        now: Timestamp,
    },
    /// What the provider says of the dispute is recorded.
    Dispute {
        /// The time at which it began.
        now: Timestamp,
    },
    Sweep {
        /// The name that a load would get.
        epoch: Epoch,
        /// The time at which it began.
        now: Timestamp,
    },
}

/// The outcome of a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An order was acknowledged to the buyer.
    Ordered(Box<Order>),
    /// The buyer was refused.
    Refused(reserve::Refusal),
    /// The decision was acknowledged to the provider.
    Decided(PaymentOutcome),
    /// The provider was answered that it need not call again, and nothing is decided yet.
    Kept,
    /// The cancellation was acknowledged to the buyer.
    Cancelled,
    /// The cancellation was refused.
    NotCancelled(cancel::Refusal),
    /// The refund was acknowledged.
    GivenBack,
    /// The refund was refused.
    NotGivenBack(give_back::Refusal),
    /// A buyer was given the step of this attempt.
    Started(AttemptKey),
    /// No payment was started.
    NotStarted(start::Refusal),
    /// Nothing was paid from the wallet.
    NotFromWallet(wallet::Refusal),
    /// The dispute could not be recorded.
    NotRecorded(dispute::Refusal),
    /// It is done, and nothing is acknowledged to anyone.
    Done,
    /// A store failed; whoever asked will ask again.
    Failed(StoreError),
}

impl Outcome {
    /// The bug of ours that the flow ended with, if it did.
    #[must_use]
    pub fn broken_contract(&self) -> Option<&str> {
        let error = match self {
            Self::Refused(reserve::Refusal::Store(error))
            | Self::NotCancelled(cancel::Refusal::Store(error))
            | Self::NotGivenBack(give_back::Refusal::Store(error))
            | Self::NotStarted(start::Refusal::Store(error))
            | Self::NotFromWallet(wallet::Refusal::Store(error))
            | Self::Failed(error) => error,
            Self::Ordered(_)
            | Self::Refused(_)
            | Self::Decided(_)
            | Self::Kept
            | Self::Cancelled
            | Self::NotCancelled(_)
            | Self::GivenBack
            | Self::NotGivenBack(_)
            | Self::Started(_)
            | Self::NotStarted(_)
            | Self::NotFromWallet(_)
            | Self::NotRecorded(_)
            | Self::Done => return None,
        };
        match error {
            StoreError::Contract(what) => Some(what),
            StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::Limited(_) => None,
        }
    }
}

fn done<T>(result: Stored<T>) -> Outcome {
    match result {
        Ok(_) => Outcome::Done,
        Err(error) => Outcome::Failed(error),
    }
}

impl Flow {
    /// Runs the production code.
    pub async fn run(&self, scenario: &Scenario, ports: &impl Ports) -> Outcome {
        match self {
            Self::Reserve { buyer, epoch, now } => {
                let reservation = scenario.reservation(*buyer, epoch.clone());
                match reserve(ports, &reservation, *now).await {
                    Ok(reserved) => Outcome::Ordered(Box::new(reserved.order)),
                    Err(refusal) => Outcome::Refused(refusal),
                }
            }
            Self::Cancel { buyer, now } => {
                let buyer = &scenario.buyers[*buyer];
                match cancel(ports, &buyer.user, buyer.number, *now).await {
                    Ok(_) => Outcome::Cancelled,
                    Err(refusal) => Outcome::NotCancelled(refusal),
                }
            }
            Self::GiveBack { buyer, refund, now } => {
                let number = scenario.buyers[*buyer].number;
                match give_back(ports, None, number, &scenario.refund(*refund), *now).await {
                    Ok(_) => Outcome::GivenBack,
                    Err(refusal) => Outcome::NotGivenBack(refusal),
                }
            }
            Self::Start { buyer, is_other, now } => {
                let (buyer, choice) = (&scenario.buyers[*buyer], scenario.choice(*is_other));
                match start(ports, &buyer.user, buyer.number, &choice, *now).await {
                    Ok(started) => Outcome::Started(started.key()),
                    Err(refusal) => Outcome::NotStarted(refusal),
                }
            }
            Self::FromWallet { buyer, now } => {
                let buyer = &scenario.buyers[*buyer];
                match wallet::pay(ports, &buyer.user, buyer.number, *now).await {
                    Ok(_) => Outcome::Done,
                    Err(refusal) => Outcome::NotFromWallet(refusal),
                }
            }
            Self::Pay { capture, now } => {
                let reported = Reported::ours(capture.clone());
                let decision = pay_reported(ports, &reported, *now).await;
                let answered = match scenario.keeps {
                    true => answer(ports, &reported, decision).await,
                    false => {
                        decision.map(|known| known.map_or(Answered::Ignored, Answered::Decided))
                    }
                };
                match answered {
                    Ok(Answered::Decided(record)) => Outcome::Decided(record.outcome),
                    Ok(Answered::Kept) => Outcome::Kept,
                    Ok(Answered::Ignored) => Outcome::Done,
                    Err(error) => Outcome::Failed(error),
                }
            }
            Self::Consume { sent, is_copy: _, epoch, now } => {
                done(consume(ports, sent, epoch, *now).await)
            }
            Self::Load { epoch, now } => done(load(ports, scenario.id(), epoch, *now).await),
            Self::Read { reader, now } => done(read_captures(ports, reader, *now, MAX_PAGES).await),
            Self::Dispute { now } => {
                match record_dispute(ports, &provider(), &dispute(), *now).await {
                    Ok(()) => Outcome::Done,
                    Err(dispute::Refusal::Store(error)) => Outcome::Failed(error),
                    Err(refusal) => Outcome::NotRecorded(refusal),
                }
            }
            Self::Sweep { epoch, now } => done(reconcile(ports, epoch, *now).await),
        }
    }
}

/// What the functions behind the queues do with one message.
async fn consume(ports: &impl Ports, sent: &Sent, epoch: &Epoch, now: Timestamp) -> Stored<()> {
    match &sent.message {
        Message::Expiry { inventory, order, due_at: _, heard_at } => {
            let due = [Expiry { at: inventory.clone(), number: *order, heard_at: *heard_at }];
            expire_or_requeue(ports, &due, now).await.into_iter().collect()
        }
        Message::Sync(order) => sync(ports, &[*order], now).await.map(|_counted| ()),
        Message::Load(sale) => load(ports, sale, epoch, now).await.map(|_loaded| ()),
        Message::Refund(message) => {
            refund_or_requeue(ports, message.clone(), now).await.map(|_refund| ())
        }
        Message::Callback(kept) => {
            pay_reported(ports, &kept.clone().into(), now).await.map(|_record| ())
        }
        Message::Close(message) => close_or_requeue(ports, message, now).await,
        Message::Points(order) => award(ports, *order).await.map(|_awarded| ()),
        // The model of rooms runs draws by itself.
        Message::Draw(_) => Ok(()),
    }
}
