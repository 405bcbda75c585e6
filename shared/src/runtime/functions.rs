//! The functions of the engine and the queues that they consume: the one table of each.
//!
//! Each function's `main.rs`, the metrics, the local event sources and the tests read it.
//! `template.yaml` is held against it by `tests/it/template/tables.rs`. Which routes a function
//! answers is in [`crate::http::routes::ROUTES`].

use std::time::Duration;

use engine::ports::messages::{Malformed, Message, QueueMessage};
use serde::Serialize;

use crate::runtime::app::Need;

/// Writes [`QueueName`] and [`PerQueue`] from the table of queues. A queue is called as its variant
/// of [`QueueMessage`].
macro_rules! queues {
    ($(#[doc = $about:literal] $queue:ident: $name:ident, $variable:literal;)*) => {
        /// A queue that a function consumes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum QueueName {
            $(#[doc = $about] $queue,)*
        }

        impl QueueName {
            /// Every queue, in the order of the table.
            pub const ALL: [Self; [$($variable),*].len()] = [$(Self::$queue),*];

            /// The queue that a message goes to.
            #[must_use]
            pub const fn of(message: &QueueMessage) -> Self {
                match message {
                    $(QueueMessage::$queue(_) => Self::$queue,)*
                }
            }

            /// Reads a body of the queue's messages.
            ///
            /// # Errors
            /// [`Malformed`] if it is not one.
            pub fn read(self, body: &str) -> Result<QueueMessage, Malformed> {
                match self {
                    $(Self::$queue => Message::read(body).map(QueueMessage::$queue),)*
                }
            }

            /// The queue's name without the prefix of its stage.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$queue => stringify!($name),)*
                }
            }

            /// The contents of its messages, as a sentence.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$queue => $about.trim(),)*
                }
            }

            /// The environment variable with the URL of the queue.
            #[must_use]
            pub const fn url_variable(self) -> &'static str {
                match self {
                    $(Self::$queue => $variable,)*
                }
            }
        }

        /// A value for each queue.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct PerQueue<T> {
            $(#[doc = $about] pub $name: T,)*
        }

        impl<T> PerQueue<T> {
            /// The value that `value` gives for each queue.
            ///
            /// # Errors
            /// Returns the first error of `value`.
            pub fn try_each<E>(
                mut value: impl FnMut(QueueName) -> Result<T, E>,
            ) -> Result<Self, E> {
                Ok(Self { $($name: value(QueueName::$queue)?,)* })
            }

            /// The value that `value` gives for each queue.
            #[must_use]
            pub fn each(mut value: impl FnMut(QueueName) -> T) -> Self {
                Self { $($name: value(QueueName::$queue),)* }
            }

            /// The value of a queue.
            #[must_use]
            pub const fn get(&self, queue: QueueName) -> &T {
                match queue {
                    $(QueueName::$queue => &self.$name,)*
                }
            }
        }

        impl<T, E, F: Future<Output = Result<T, E>>> PerQueue<F> {
            /// Awaits the values, one after the other.
            ///
            /// # Errors
            /// Returns the first error, and drops the futures that are left.
            pub async fn in_order(self) -> Result<PerQueue<T>, E> {
                Ok(PerQueue { $($name: self.$name.await?,)* })
            }
        }
    };
}

queues! {
    /// Orders whose payment window ends.
    Expiry: expiry, "ONSALE_EXPIRY_QUEUE_URL";
    /// Paid orders to count.
    Sync: sync, "ONSALE_SYNC_QUEUE_URL";
    /// Sales that Redis has lost.
    Load: load, "ONSALE_LOAD_QUEUE_URL";
    /// Payments to refund.
    Refund: refund, "ONSALE_REFUND_QUEUE_URL";
    /// Captures that were reported while a store did not answer.
    Callback: callback, "ONSALE_CALLBACK_QUEUE_URL";
    /// Waiting rooms to draw.
    Draw: draw, "ONSALE_DRAW_QUEUE_URL";
    /// Orders whose payments are to be closed at their providers.
    Close: close, "ONSALE_CLOSE_QUEUE_URL";
    /// Orders that give their buyers points. The one FIFO queue.
    Points: points, "ONSALE_POINTS_QUEUE_URL";
}

impl QueueName {
    /// True for a FIFO queue: the messages of one group come one after the other, in the order of their sending.
    #[must_use]
    pub const fn is_fifo(self) -> bool {
        matches!(self, Self::Points)
    }

    /// What SQS calls the queue of a stage: the name of a FIFO queue must end so.
    /// Source: <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html>
    #[must_use]
    pub fn named(self, prefix: &str, suffix: &str) -> String {
        let ending = if self.is_fifo() { ".fifo" } else { "" };
        format!("{prefix}{}{suffix}{ending}", self.as_str())
    }

    /// The alarms of the queue, without the prefix of their stage.
    #[must_use]
    pub fn alarms(self) -> [String; 3] {
        ["queue-old", "queue-backlog", "dead-letters"]
            .map(|alarm| format!("{}-{alarm}", self.as_str()))
    }
}

/// How Lambda empties a queue into a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumer {
    /// The queue.
    pub queue: QueueName,
    /// The most messages of a batch.
    pub max_batch: u16,
    /// Time that a batch that is not full is gathered, in seconds.
    pub window_seconds: u16,
    /// Number of batches that may be worked on at once.
    pub max_concurrency: u16,
}

/// Trigger of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// API Gateway, for the routes that name the function.
    Http,
    /// A queue.
    Queue(Consumer),
    /// EventBridge, at a fixed rate.
    Schedule {
        /// Seconds between two invocations.
        every_seconds: u32,
    },
}

impl Trigger {
    /// The alarms that watch the function's failures and throttles, without the prefix of their
    /// stage.
    #[must_use]
    pub const fn alarms(self) -> [&'static str; 2] {
        match self {
            Self::Http => ["endpoint-failures", "endpoint-throttles"],
            Self::Queue(_) => ["consumer-failures", "consumer-throttles"],
            Self::Schedule { .. } => ["schedule-failures", "schedule-throttles"],
        }
    }
}

const fn queue(queue: QueueName, max_batch: u16, window_seconds: u16, concurrency: u16) -> Trigger {
    Trigger::Queue(Consumer { queue, max_batch, window_seconds, max_concurrency: concurrency })
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Name of the binary, of the crate in `functions/`, and in the metrics' dimension `Function`.
    pub name: &'static str,
    /// Its trigger.
    pub trigger: Trigger,
    /// Connections that it opens before its first request.
    pub needs: &'static [Need],
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Time that one invocation may take, in whole seconds.
    pub timeout: Duration,
}

/// Writes [`Function`] from its table.
macro_rules! functions {
    ($($function:ident: $name:literal, $trigger:expr, [$($need:ident),*],
        $memory_mib:literal MiB, $timeout_seconds:literal s;)*) => {
        /// A function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Function {
            $(#[doc = concat!("`functions/", $name, "`")] $function,)*
        }

        impl Function {
            /// Every function, in the order of the table.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$function),*];
            /// The name of every function, in the same order.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($name),*];

            /// Its row of the table.
            #[must_use]
            pub const fn row(self) -> Row {
                match self {
                    $(Self::$function => Row {
                        name: $name,
                        trigger: $trigger,
                        needs: &[$(Need::$need),*],
                        memory_mib: $memory_mib,
                        timeout: Duration::from_secs($timeout_seconds),
                    },)*
                }
            }
        }
    };
}

functions! {
    Sales: "sales", Trigger::Http, [Redis, Sales], 256 MiB, 29 s;
    WaitingRoom: "waiting-room", Trigger::Http, [Redis, Sales, Queues, AdmissionKeys, ChallengeKeys], 256 MiB, 10 s;
    TokenGate: "token-gate", Trigger::Http, [Redis, Sales, AdmissionKeys, ChallengeKeys], 256 MiB, 10 s;
    Reserve: "reserve", Trigger::Http, [Redis, Sales, Queues, AdmissionKeys, AttendeeKeys], 256 MiB, 10 s;
    Orders: "orders", Trigger::Http, [Sales, TicketKeys], 256 MiB, 10 s;
    Cancel: "cancel", Trigger::Http, [Redis, Sales], 256 MiB, 10 s;
    StartPayment: "start-payment", Trigger::Http, [Order], 256 MiB, 20 s;
    PayFromWallet: "pay-from-wallet", Trigger::Http, [Redis, Sales, Queues], 256 MiB, 10 s;
    RefundOrder: "refund-order", Trigger::Http, [Redis, Sales, Queues], 256 MiB, 10 s;
    Operator: "operator", Trigger::Http, [Redis, Sales, Orders, AttendeeKeys, TicketKeys], 256 MiB, 10 s;
    Figures: "figures", Trigger::Http, [Sales], 256 MiB, 10 s;
    PayCallback: "pay-callback",
        Trigger::Http, [Redis, Sales, Queues, PaymentSecrets], 256 MiB, 10 s;
    TakeCallback: "take-callback",
        Trigger::Http, [Redis, Sales, Queues, PaymentSecrets, CallbackKey], 256 MiB, 10 s;
    ExpireOrders: "expire-orders",
        queue(QueueName::Expiry, 10, 0, 20), [Redis, Sales, Queues], 256 MiB, 30 s;
    SyncDb: "sync-db", queue(QueueName::Sync, 100, 2, 2), [Orders, Queues], 256 MiB, 30 s;
    AwardPoints: "award-points", queue(QueueName::Points, 10, 0, 4), [Order], 256 MiB, 30 s;
    LoadSale: "load-sale", queue(QueueName::Load, 10, 0, 2), [Redis, Sales], 1024 MiB, 120 s;
    DecidePayment: "decide-payment",
        queue(QueueName::Callback, 10, 0, 10), [Redis, Sales, Queues], 256 MiB, 30 s;
    ClosePayments: "close-payments", queue(QueueName::Close, 10, 0, 4), [Order, Queues], 256 MiB, 60 s;
    Refund: "refund", queue(QueueName::Refund, 10, 0, 2), [Order], 256 MiB, 30 s;
    Draw: "draw", queue(QueueName::Draw, 1, 0, 2), [Queues], 1024 MiB, 120 s;
    ReadCaptures: "read-captures",
        Trigger::Schedule { every_seconds: 60 }, [Orders, Queues], 256 MiB, 90 s;
    ReadBills: "read-bills",
        Trigger::Schedule { every_seconds: 3600 }, [Orders, Queues], 1024 MiB, 900 s;
    SendEvents: "send-events",
        Trigger::Schedule { every_seconds: 60 }, [Orders, Sales, WebhookKeys], 256 MiB, 90 s;
    Reconcile: "reconcile",
        Trigger::Schedule { every_seconds: 60 }, [Redis, Sales], 1024 MiB, 300 s;
}

impl Function {
    /// Its name: of its binary, of its crate, and in the metrics' dimension `Function`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Connections that it opens before its first request.
    #[must_use]
    pub const fn needs(self) -> &'static [Need] {
        self.row().needs
    }

    /// The alarms that watch its failures and throttles, without the prefix of their stage. An alarm adds up ten
    /// metrics at most: what operators ask, buyers too or not, has two of their own.
    #[must_use]
    pub const fn alarms(self) -> [&'static str; 2] {
        match self {
            Self::Operator | Self::Figures | Self::RefundOrder => {
                ["operator-failures", "operator-throttles"]
            }
            Self::Sales
            | Self::WaitingRoom
            | Self::TokenGate
            | Self::Reserve
            | Self::Orders
            | Self::Cancel
            | Self::StartPayment
            | Self::PayFromWallet
            | Self::PayCallback
            | Self::TakeCallback
            | Self::ExpireOrders
            | Self::SyncDb
            | Self::LoadSale
            | Self::DecidePayment
            | Self::ClosePayments
            | Self::AwardPoints
            | Self::Refund
            | Self::Draw
            | Self::ReadCaptures
            | Self::ReadBills
            | Self::SendEvents
            | Self::Reconcile => self.row().trigger.alarms(),
        }
    }

    /// How its queue is emptied, if a queue invokes it.
    #[must_use]
    pub const fn consumer(self) -> Option<Consumer> {
        match self.row().trigger {
            Trigger::Queue(consumer) => Some(consumer),
            Trigger::Http | Trigger::Schedule { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::routes::ROUTES;

    #[test]
    fn every_queue_has_one_consumer_and_every_endpoint_a_route() {
        for queue in QueueName::ALL {
            let consumers = Function::ALL.iter().filter_map(|function| function.consumer());
            let of_queue = consumers.filter(|consumer| consumer.queue == queue).count();
            assert_eq!(of_queue, 1, "{queue:?}");
        }
        for function in Function::ALL {
            let has_route = ROUTES.iter().any(|route| route.function == function);
            assert_eq!(has_route, function.row().trigger == Trigger::Http, "{function:?}");
        }
    }

    /// The rows of the queues' variables; `ONSALE_WRITE_DOCS=1` writes them anew.
    #[test]
    fn the_documentation_has_a_row_for_the_url_of_each_queue() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap();
        let is_row = |line: &&str| line.starts_with("| `ONSALE_") && line.contains("_QUEUE_URL`");
        let rows = QueueName::ALL.map(|queue| {
            let (variable, name, about) = (queue.url_variable(), queue.as_str(), queue.about());
            format!("| `{variable}` | yes | URL of the queue `{name}`. {about} |\n")
        });
        let lines = || page.split_inclusive('\n');
        let before = lines().take_while(|line| !is_row(line)).map(str::to_owned);
        let after = lines().skip_while(|line| !is_row(line)).filter(|line| !is_row(line));
        let expected: String = before.chain(rows).chain(after.map(str::to_owned)).collect();
        if std::env::var("ONSALE_WRITE_DOCS").is_ok_and(|write| write == "1") {
            std::fs::write(path, &expected).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page == expected, "ONSALE_WRITE_DOCS=1 writes the rows of the queues anew");
    }

    #[test]
    fn every_function_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Function::NAMES.into();
        assert_eq!(names.len(), Function::ALL.len());
        for (function, name) in Function::ALL.into_iter().zip(Function::NAMES) {
            assert_eq!(function.as_str(), name);
        }
    }
}
