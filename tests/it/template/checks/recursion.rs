//! Chains of invocations: Lambda ends a chain function → queue → function at about 16 invocations, unless the function
//! says that it is meant to (Lambda Developer Guide, "Recursive loop detection").

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::queues::consumed;
use super::{Check, edit, unless};
use crate::template::permissions::list;
use crate::template::stack::{Stack, name_in};

pub(super) const CHECKS: &[Check] = &[Check {
    rule: "who is on a circle of queues may go round it, and nobody else",
    faults: recursion,
    with: &[],
    mistakes: &[
        edit("  ClosePaymentsFunction:", "RecursiveLoop: Allow", "RecursiveLoop: Terminate"),
        edit("  DrawFunction:", "      RecursiveLoop: Allow\n", ""),
        edit(
            "  LoadSaleFunction:",
            "    Properties:\n",
            "    Properties:\n      RecursiveLoop: Allow\n",
        ),
        // A new way back that nobody thought of.
        edit(
            "  AwardPointsRole:",
            "            Statement:\n",
            "            Statement:\n              - { Effect: Allow, Action: sqs:SendMessage, Resource: !GetAtt SyncQueue.Arn }\n",
        ),
    ],
}];

/// The functions that each function calls by a queue.
fn calls(stack: &Stack) -> BTreeMap<&str, BTreeSet<&str>> {
    let consumers: BTreeMap<&str, &str> =
        consumed(stack).into_iter().map(|of| (of.queue, of.binary)).collect();
    let called = |function: &Value| {
        let sends = |statement: &&Value| {
            list(&statement["Action"]).iter().any(|action| action == "sqs:SendMessage")
        };
        let sending = stack.statements(function).filter(sends);
        let queues = sending.flat_map(|statement| list(&statement["Resource"]));
        queues.filter_map(|queue| consumers.get(name_in(&queue)?).copied()).collect()
    };
    stack.functions().map(|(binary, _, function)| (binary, called(function))).collect()
}

/// True if a function comes back to itself.
fn is_on_a_circle(function: &str, calls: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = calls[function].iter().copied().collect();
    while let Some(one) = next.pop() {
        if reached.insert(one) {
            next.extend(&calls[one]);
        }
    }
    reached.contains(function)
}

fn recursion(stack: &Stack) -> Vec<String> {
    let calls = calls(stack);
    let of = |(binary, _, properties): (&str, &str, &Value)| {
        let goes_round = is_on_a_circle(binary, &calls);
        let may = properties["RecursiveLoop"] == "Allow";
        unless(
            binary,
            [
                (may || !goes_round, "Lambda ends its chain"),
                (!may || goes_round, "goes round no circle, and nothing would end one"),
            ],
        )
    };
    stack.functions().flat_map(of).collect()
}
