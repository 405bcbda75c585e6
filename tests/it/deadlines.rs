//! Every chain of waits ends before the function that waits is stopped.

use std::time::Duration;

use local::handlers::reconcile::{ARCHIVING_ENDS, PARTS_END};
use local::handlers::{read_bills, read_captures, send_events};
use shared::dynamodb::{StoreConfig, Tables};
use shared::http::respond::{MAX_ANSWER, MAX_PUBLISH};
use shared::redis::Bounds;
use shared::runtime::app::MAX_WARM_UP;
use shared::runtime::functions::{Function, Trigger};
use shared::sqs::batch::MAX_BATCH;
use shared::sqs::{QueueConfig, QueueUrls};

/// What a function needs besides to read its event, write its answer and log.
const REST: Duration = Duration::from_millis(1500);
/// After how long API Gateway gives up on a function, less a second.
/// Source: <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html>
const GATEWAY_SECONDS: u64 = 29;
/// How long a function may take to start. Source:
/// <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>
const INIT: Duration = Duration::from_secs(10);

/// The functions of the template and their deadlines in seconds.
fn deadlines(template: &str) -> Vec<(String, u64)> {
    let mut by_default = None;
    let mut functions: Vec<(String, Option<u64>)> = Vec::new();
    let mut in_globals = false;
    for line in template.lines() {
        let depth = line.len() - line.trim_start().len();
        match line.trim().split_once(':') {
            _ if depth == 0 && !line.trim().is_empty() => in_globals = line.starts_with("Globals:"),
            Some((name, "")) if depth == 2 && !in_globals => {
                functions.push((name.to_owned(), None))
            }
            Some(("Timeout", seconds)) if in_globals => by_default = seconds.trim().parse().ok(),
            Some(("Timeout", seconds)) if depth == 6 => {
                let function = functions.last_mut().expect("a resource");
                function.1 = seconds.trim().parse().ok();
            }
            Some(_) | None => {}
        }
    }
    let is_function = |(name, _): &(String, Option<u64>)| name.ends_with("Function");
    let own = |(name, own): (String, Option<u64>)| (name, own.or(by_default).expect("a deadline"));
    functions.into_iter().filter(is_function).map(own).collect()
}

/// The functions that are stopped before they are done with waiting.
fn stopped_while_waiting(template: &str) -> Vec<String> {
    let mut stopped = Vec::new();
    for (name, seconds) in deadlines(template) {
        let mut functions = Function::ALL.into_iter();
        let function = functions.find(|function| format!("{function:?}Function") == name);
        let function = function.unwrap_or_else(|| panic!("{name} is in no table"));
        let (longest, is_behind_gateway) = match function.row().trigger {
            Trigger::Http if function == Function::Sales => (MAX_PUBLISH, true),
            Trigger::Http => (MAX_ANSWER, true),
            Trigger::Queue(_) => (MAX_BATCH, false),
            Trigger::Schedule { .. } if function == Function::ReadCaptures => {
                (read_captures::MAX_RUN, false)
            }
            Trigger::Schedule { .. } if function == Function::ReadBills => {
                (read_bills::MAX_RUN, false)
            }
            Trigger::Schedule { .. } if function == Function::SendEvents => {
                (send_events::MAX_RUN, false)
            }
            Trigger::Schedule { .. } => (ARCHIVING_ENDS, false),
        };
        let is_too_long_for_gateway = is_behind_gateway && seconds > GATEWAY_SECONDS;
        if longest + REST > Duration::from_secs(seconds) || is_too_long_for_gateway {
            stopped.push(name);
        }
    }
    stopped
}

#[test]
fn a_function_answers_before_it_is_stopped() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml");
    let template = std::fs::read_to_string(path).unwrap();
    assert_eq!(deadlines(&template).len(), Function::ALL.len(), "{:?}", deadlines(&template));
    assert_eq!(stopped_while_waiting(&template), [""; 0]);
    // A deadline that is too short is found, and one that API Gateway does not wait for.
    let planted = "Globals:\n  Function:\n    Timeout: 9\nResources:\n  CancelFunction:\n    Properties:\n      Timeout: 30\n  ReserveFunction:\n    Type: x\n  RefundFunction:\n    Properties:\n      Timeout: 28\n  ReconcileFunction:\n    Properties:\n      Timeout: 291\n  ReadCapturesFunction:\n    Properties:\n      Timeout: 81\n  ReadBillsFunction:\n    Properties:\n      Timeout: 841\n  SendEventsFunction:\n    Properties:\n      Timeout: 81\n  OrdersFunction:\n    Properties:\n      Timeout: 10\n";
    assert_eq!(
        stopped_while_waiting(planted),
        [
            "CancelFunction",
            "ReserveFunction",
            "RefundFunction",
            "ReconcileFunction",
            "ReadCapturesFunction",
            "ReadBillsFunction",
            "SendEventsFunction"
        ]
    );
    let has_time = PARTS_END.is_sorted() && PARTS_END[2] < ARCHIVING_ENDS;
    assert!(has_time, "each part has time of its own");
}

#[test]
fn one_service_that_does_not_answer_leaves_time_to_say_so() {
    let redis = Bounds::default();
    assert!((redis.connect + redis.response) * redis.attempts < MAX_ANSWER);
    // A pause is part of the time to connect, and leaves most of it for that.
    assert!(redis.pauses.1 * 10 <= redis.connect);
    let store = StoreConfig::new(Tables::with_prefix(""));
    assert!(store.call_timeout + store.attempt_timeout < MAX_ANSWER);
    let urls = QueueUrls::each(|_| String::new());
    let queue = QueueConfig::new(urls);
    assert!(queue.call_timeout < MAX_ANSWER && queue.attempt_timeout < queue.call_timeout);
    assert!(MAX_WARM_UP + REST < INIT);
}
