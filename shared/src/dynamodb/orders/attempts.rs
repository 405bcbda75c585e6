//! The attempts to pay an order: written under the condition that neither the attempts nor the order have changed.

use super::facts::{FACTS_SEEN, facts_seen};
use super::{Committed, DynamoOrders, Part, must};
use crate::dynamodb::expressions::{Value, update};
use crate::dynamodb::items::{
    attempts_attributes, due, extension_attribute, number, order_key, places_attribute,
    steps_attribute, text,
};
use engine::domain::order::Order;
use engine::domain::order::attempt::Attempts;
use engine::ports::{ChangeReply, Stored};

/// The condition that an order has still these attempts, and what it compares with.
pub(super) fn attempts_seen(attempts: &Attempts) -> (&'static str, Option<Value>) {
    match attempts.version {
        0 => ("attribute_not_exists(#attempts_version)", None),
        version => ("#attempts_version = :seen", Some(("seen", number(version)))),
    }
}

/// Takes what buyers do next, and the places that they wait for, out of an order: the end of an expression behind one of
/// [`due_of`].
pub(super) fn without_steps(due: &str) -> String {
    removing(due, &["#steps", "#places"])
}

/// The end of an expression behind one of [`due_of`] that removes attributes.
fn removing(due: &str, names: &[&str]) -> String {
    if names.is_empty() {
        return due.to_owned();
    }
    let also = if due.contains(" REMOVE ") { ", " } else { " REMOVE " };
    format!("{due}{also}{}", names.join(", "))
}

/// The end of an expression that puts an order into the index of due work, or takes it out, and what it puts
/// there.
pub(super) fn due_of(order: &Order) -> (&'static str, impl Iterator<Item = Value> + use<>) {
    let at = order.due_at().map(|at| due(order.number, at));
    let expression = match at {
        Some(_) => ", #due_shard = :due_shard, #due_ms = :due_ms",
        None => " REMOVE #due_shard, #due_ms",
    };
    (expression, at.into_iter().flatten())
}

impl DynamoOrders {
    pub(super) async fn keep_attempts(&self, order: &Order) -> Stored<ChangeReply> {
        let attempts = &order.attempts;
        must(order, attempts.version > 0, "keeps attempts that follow none")?;
        let before = Attempts { version: attempts.version - 1, ..Attempts::default() };
        let (seen, version) = attempts_seen(&before);
        let mut with: Vec<Value> = attempts_attributes(attempts).collect();
        with.push(("state", text(order.state.as_str())));
        with.extend(version);
        with.extend(facts_seen(&order.facts));
        let (due, at) = due_of(order);
        with.extend(at);
        let (steps, places) = (steps_attribute(attempts), places_attribute(attempts));
        let mut set = String::new();
        let mut gone = Vec::new();
        for (name, set_to, is_there) in [
            ("#steps", ", #steps = :steps", steps.is_some()),
            ("#places", ", #places = :places", places.is_some()),
        ] {
            if is_there { set.push_str(set_to) } else { gone.push(name) }
        }
        let extension = extension_attribute(attempts);
        if extension.is_some() {
            set.push_str(", #extended_ms = :extended_ms");
        }
        let due = format!("{set}{}", removing(due, &gone));
        with.extend(steps.into_iter().chain(places).chain(extension));
        let change = update(
            self.orders(),
            order_key(order.number),
            &format!("SET #attempts = :attempts, #attempts_version = :attempts_version{due}"),
            &format!("#state = :state AND {FACTS_SEEN} AND {seen}"),
            with,
        )?;
        Ok(match self.commit(1, vec![(Part::Order, change)]).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }
}
