//! Queues: what is shown again, what is given up, and who may send.

use std::collections::BTreeSet;

use local::queues::Redelivery;
use serde_json::{Value, json};
use shared::runtime::functions::Function;

use super::{Check, edit, is_true, number, text, unless};
use crate::template::permissions::list;
use crate::template::stack::{Stack, name_in};

/// Time that a message may wait for somebody to look at it, in seconds: the longest SQS allows.
const LONGEST_RETENTION: u64 = 1_209_600;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "a message stays hidden for six times its function's time, and the batching window",
        faults: visibility,
        with: &[],
        mistakes: &[
            edit("  SyncQueue:", "VisibilityTimeout: 200", "VisibilityTimeout: 181"),
            edit("  ExpireOrdersFunction:", "Timeout: 30", "Timeout: 60"),
            edit("  SyncDbFunction:", "InSeconds: 2", "InSeconds: 30"),
        ],
    },
    Check {
        rule: "messages are given out again as on one machine, where that is tested",
        faults: redelivery,
        with: &[],
        mistakes: &[
            edit("  LoadQueue:", "maxReceiveCount: 10", "maxReceiveCount: 3"),
            edit("  LoadQueue:", "VisibilityTimeout: 720", "VisibilityTimeout: 800"),
        ],
    },
    Check {
        rule: "each queue has dead letters of its own, which come from nowhere else and stay long",
        faults: dead_letters,
        with: &[],
        mistakes: &[
            edit("  SyncQueue:", "      RedrivePolicy: {", "      Tags: [] # {"),
            edit("  SyncQueue:", "!GetAtt SyncDeadLetterQueue", "!GetAtt LoadDeadLetterQueue"),
            edit("  SyncDeadLetterQueue:", "byQueue", "allowAll"),
            edit("  SyncDeadLetterQueue:", "-onsale-sync\"]", "-onsale-load\"]"),
            edit("  SyncDeadLetterQueue:", "Period: 1209600", "Period: 3600"),
        ],
    },
    Check {
        rule: "only what failed of a batch comes again",
        faults: partial_batches,
        with: &[],
        mistakes: &[edit("  RefundFunction:", "[ReportBatchItemFailures]", "[]")],
    },
    Check {
        rule: "each consumer has a bound, within what is reserved for it",
        faults: consumers,
        with: &[],
        mistakes: &[
            edit("  RefundFunction:", "ScalingConfig: { MaximumConcurrency: 2 }", "Enabled: true"),
            edit("  LoadSaleFunction:", "MaximumConcurrency: 2", "MaximumConcurrency: 20"),
            edit("  SyncDbFunction:", "MaximumBatchingWindowInSeconds: 2", "Enabled: true"),
        ],
    },
    Check {
        rule: "queues are encrypted, at rest and on the way",
        faults: queue_encryption,
        with: &[],
        mistakes: &[
            edit("  RefundQueue:", "SqsManagedSseEnabled: true", "SqsManagedSseEnabled: false"),
            edit("  LoadQueuePolicy:", "[!Ref LoadQueue, !Ref", "[!Ref"),
            edit("  LoadQueuePolicy:", "Effect: Deny", "Effect: Allow"),
            edit(
                "  LoadQueuePolicy:",
                "\"aws:SecureTransport\": \"false\"",
                "\"aws:SecureTransport\": \"true\"",
            ),
        ],
    },
];

/// A queue and the function that empties it.
pub(super) struct Consumed<'s> {
    pub(super) queue: &'s str,
    says: &'s Value,
    pub(super) binary: &'s str,
    function: &'s Value,
    mapping: &'s Value,
}

pub(super) fn consumed(stack: &Stack) -> Vec<Consumed<'_>> {
    let mut found = Vec::new();
    for (_, mapping) in stack.all("AWS::Lambda::EventSourceMapping") {
        let (queue, says) = stack.behind(&mapping["EventSourceArn"]).unwrap();
        let called = name_in(text(&mapping["FunctionName"])).unwrap();
        let (binary, _, function) =
            stack.functions().find(|(_, logical, _)| *logical == called).unwrap();
        found.push(Consumed { queue, says, binary, function, mapping });
    }
    found
}

fn visibility(stack: &Stack) -> Vec<String> {
    let of = |Consumed { queue, says, function, mapping, .. }: Consumed<'_>| {
        let timeout = number(&function["Timeout"]).unwrap();
        let window = number(&mapping["MaximumBatchingWindowInSeconds"]).unwrap_or(0);
        let visibility = number(&says["VisibilityTimeout"]).unwrap_or(0);
        unless(queue, [(visibility >= 6 * timeout + window, "shows a message too early")])
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn redelivery(stack: &Stack) -> Vec<String> {
    let usual = Redelivery::default();
    let max_receives = usual.max_receives;
    let of = |Consumed { queue, says, binary, .. }: Consumed<'_>| {
        let consumer = Function::ALL.into_iter().find(|function| function.as_str() == binary);
        let queue_name = consumer.and_then(Function::consumer).unwrap().queue;
        let visibility = usual.visibility_of(queue_name);
        let receives = number(&says["RedrivePolicy"]["maxReceiveCount"]);
        let hidden = number(&says["VisibilityTimeout"]);
        unless(
            queue,
            [
                (receives == Some(max_receives.into()), "another number of receives"),
                (hidden == Some(visibility.as_secs()), "another visibility"),
            ],
        )
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn dead_letters(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut taken = BTreeSet::new();
    for Consumed { queue, says: properties, .. } in consumed(stack) {
        let dead = stack.behind(&properties["RedrivePolicy"]["deadLetterTargetArn"]);
        let Some((dead, letters)) = dead else {
            faults.push(format!("{queue}: forgets what fails"));
            continue;
        };
        let allow = &letters["RedriveAllowPolicy"];
        let arn =
            format!("arn:aws:sqs:eu-central-1:000000000000:{}", text(&properties["QueueName"]));
        let stays = [properties, letters]
            .map(|queue| number(&queue["MessageRetentionPeriod"]) == Some(LONGEST_RETENTION));
        faults.extend(unless(
            queue,
            [
                (taken.insert(dead), "shares its dead letters"),
                (allow["redrivePermission"] == "byQueue", "its dead letters come from anywhere"),
                (allow["sourceQueueArns"] == json!([arn]), "its dead letters come from another"),
                (stays == [true, true], "its letters do not stay long"),
            ],
        ));
    }
    let queues = stack.all("AWS::SQS::Queue").count();
    faults.extend(unless("queues", [(taken.len() * 2 == queues, "some have no consumer")]));
    faults
}

fn partial_batches(stack: &Stack) -> Vec<String> {
    let of = |Consumed { queue, mapping, .. }: Consumed<'_>| {
        let answers = mapping["FunctionResponseTypes"] == json!(["ReportBatchItemFailures"]);
        unless(queue, [(answers, "a whole batch comes again for one message")])
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn consumers(stack: &Stack) -> Vec<String> {
    let of = |Consumed { binary, function, mapping, .. }: Consumed<'_>| {
        let most = number(&mapping["ScalingConfig"]["MaximumConcurrency"]);
        let reserved = number(&function["ReservedConcurrentExecutions"]);
        let batch = number(&mapping["BatchSize"]).unwrap_or(10);
        let window = number(&mapping["MaximumBatchingWindowInSeconds"]).unwrap_or(0);
        unless(
            binary,
            [
                (most.is_some_and(|most| most >= 2), "has no bound"),
                (reserved.is_none_or(|own| most.is_some_and(|most| most <= own)), "is throttled"),
                (batch <= 10 || window > 0, "a batch of more than ten needs a window"),
            ],
        )
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn queue_encryption(stack: &Stack) -> Vec<String> {
    let mut guarded = BTreeSet::new();
    for (_, policy) in stack.all("AWS::SQS::QueuePolicy") {
        let queues: BTreeSet<&str> = policy["Queues"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|queue| name_in(text(queue)))
            .collect();
        for statement in policy["PolicyDocument"]["Statement"].as_array().unwrap() {
            let refuses = statement["Effect"] == "Deny"
                && statement["Principal"] == "*"
                && statement["Condition"] == json!({ "Bool": { "aws:SecureTransport": "false" } });
            if refuses {
                let of = list(&statement["Resource"]);
                let of: BTreeSet<&str> = of.iter().filter_map(|arn| name_in(arn)).collect();
                guarded.extend(queues.intersection(&of).map(|name| (*name).to_owned()));
            }
        }
    }
    let of = |(queue, properties): (&str, &Value)| {
        unless(
            queue,
            [
                (is_true(&properties["SqsManagedSseEnabled"]), "is not encrypted"),
                (guarded.contains(queue), "accepts plaintext"),
            ],
        )
    };
    stack.all("AWS::SQS::Queue").flat_map(of).collect()
}
