//! What no linter knows of the template, each with mistakes that it finds.

mod api;
mod cache;
mod edge;
mod environment;
mod functions;
mod logs;
mod network;
mod queues;
mod recursion;
mod rights;
mod tables;

use serde_json::{Value, json};
use shared::runtime::app::Need;
use shared::runtime::functions::Function;

use crate::template::stack::{Edit, Stack, Variant, translate, variants};
use model_stores::size::first_of;

/// A rule, and mistakes against it.
struct Check {
    rule: &'static str,
    /// Finds what breaks the rule, in words.
    faults: fn(&Stack) -> Vec<String>,
    /// Parameters with which the mistakes are mistakes, besides those of production.
    with: &'static [(&'static str, &'static str)],
    /// Each is one change of the template.
    mistakes: &'static [Edit],
}

/// A mistake: behind the first `after`, the first `from` becomes `to`.
const fn edit(after: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { after, from, to }
}

/// True for a function that speaks to no Redis, and so is in no network and has no password.
fn is_without_redis(binary: &str) -> bool {
    let mut functions = Function::ALL.into_iter();
    let function = functions.find(|function| function.as_str() == binary);
    function.is_some_and(|function| !function.needs().contains(&Need::Redis))
}

/// The rules, by their subjects.
const CHECKS: [&[Check]; 11] = [
    queues::CHECKS,
    recursion::CHECKS,
    tables::CHECKS,
    cache::CHECKS,
    network::CHECKS,
    api::CHECKS,
    edge::CHECKS,
    logs::CHECKS,
    functions::CHECKS,
    rights::CHECKS,
    environment::CHECKS,
];

/// A number, which a parameter gives as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn is_true(value: &Value) -> bool {
    *value == json!(true)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The faults of which the condition is false.
fn unless<const N: usize>(name: &str, conditions: [(bool, &str); N]) -> Vec<String> {
    let broken = conditions.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, what)| format!("{name}: {what}")).collect()
}

#[test]
fn the_template_keeps_every_rule_in_every_stage() {
    let variants = variants();
    let mut faults = Vec::new();
    for (variant, translation) in variants.iter().zip(translate(&variants)) {
        let stack = Stack::from_translation(&translation.unwrap());
        for check in CHECKS.into_iter().flatten() {
            let found = (check.faults)(&stack).into_iter();
            faults.extend(found.map(|fault| {
                format!("{} {:?}: {}: {fault}", variant.stage, variant.with, check.rule)
            }));
        }
    }
    assert_eq!(faults, [""; 0]);
}

#[test]
fn every_planted_mistake_is_found_by_its_rule() {
    let production = |check: &Check| {
        let with = check.with.iter();
        with.fold(Variant::from_stage("prod"), |variant, (name, value)| variant.with(name, value))
    };
    let mut planted = Vec::new();
    for check in CHECKS.into_iter().flatten() {
        assert!(!check.mistakes.is_empty(), "{}", check.rule);
        planted.push((check, None, production(check)));
        // The template is translated anew for each.
        let mistakes = first_of(check.mistakes, 1).iter();
        planted.extend(
            mistakes.map(|mistake| (check, Some(mistake), production(check).edited(*mistake))),
        );
    }
    let variants: Vec<Variant> = planted.iter().map(|(.., variant)| variant.clone()).collect();
    let mut wrong = Vec::new();
    for ((check, mistake, _), translation) in planted.into_iter().zip(translate(&variants)) {
        let is_found = translation
            .map(|template| !(check.faults)(&Stack::from_translation(&template)).is_empty());
        // And without a mistake none.
        if is_found != Ok(mistake.is_some()) {
            wrong.push(format!("{}: {mistake:?}: {is_found:?}", check.rule));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
