//! The template against the engine's tables: of functions, and of the throttles of routes. Which
//! routes there are, `checks` compares.

use std::collections::BTreeSet;

use local::concurrency::RESERVED;
use serde_json::Value;
use shared::http::routes::{Access, OTHERS, ROUTES, Throttle};
use shared::runtime::functions::{Consumer, Function, QueueName, Trigger};

use super::stack::{Edit, Stack, Variant, name_in, translate, variants};

/// A number, which a parameter gives as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The logical id of a function: `PayCallbackFunction`.
fn logical_id(function: Function) -> String {
    format!("{function:?}Function")
}

/// Adds a fault if something differs from the table.
fn compare<T: PartialEq + std::fmt::Debug>(
    faults: &mut Vec<String>,
    what: &str,
    found: T,
    expected: T,
) {
    if found != expected {
        faults.push(format!("{what}: {found:?} instead of {expected:?}"));
    }
}

/// What of a function's resources differs from its row of the table.
fn faults_of(stack: &Stack, function: Function) -> Vec<String> {
    let (name, row) = (function.as_str(), function.row());
    let Some((_, logical, found)) = stack.functions().find(|(binary, ..)| *binary == name) else {
        return vec![format!("{name}: is not in the template")];
    };
    let mut faults = Vec::new();
    compare(&mut faults, name, logical, &logical_id(function));
    let deployed = format!("{}-onsale-{name}", stack.parameters["Stage"]);
    compare(&mut faults, name, text(&found["FunctionName"]), deployed.as_str());
    let memory = number(&found["MemorySize"]);
    compare(&mut faults, &format!("{name}: MiB"), memory, Some(row.memory_mib.into()));
    let timeout = number(&found["Timeout"]);
    compare(&mut faults, &format!("{name}: seconds"), timeout, Some(row.timeout.as_secs()));
    let consumer = match row.trigger {
        Trigger::Queue(consumer) => Some(consumer),
        Trigger::Http | Trigger::Schedule { .. } => None,
    };
    compare(&mut faults, &format!("{name}: queue"), mapped(stack, logical), consumer);
    let rate = match row.trigger {
        Trigger::Schedule { every_seconds } => Some(every_seconds),
        Trigger::Http | Trigger::Queue(_) => None,
    };
    compare(&mut faults, &format!("{name}: schedule"), scheduled(stack, logical), rate);
    faults.extend(unwatched(stack, function, row.trigger));
    faults
}

/// How a queue is emptied into a function, if one is.
fn mapped(stack: &Stack, logical: &str) -> Option<Consumer> {
    let (_, mapping) = stack
        .all("AWS::Lambda::EventSourceMapping")
        .find(|(_, mapping)| name_in(text(&mapping["FunctionName"])) == Some(logical))?;
    let (_, queue) = stack.behind(&mapping["EventSourceArn"])?;
    let name = text(&queue["QueueName"]).rsplit('-').next()?.trim_end_matches(".fifo");
    let small = |value: &Value| u16::try_from(number(value)?).ok();
    Some(Consumer {
        queue: QueueName::ALL.into_iter().find(|queue| queue.as_str() == name)?,
        max_batch: small(&mapping["BatchSize"])?,
        window_seconds: small(&mapping["MaximumBatchingWindowInSeconds"]).unwrap_or(0),
        max_concurrency: small(&mapping["ScalingConfig"]["MaximumConcurrency"])?,
    })
}

/// The seconds between two invocations of a function by a schedule, if there is one.
fn scheduled(stack: &Stack, logical: &str) -> Option<u32> {
    let (_, schedule) = stack
        .all("AWS::Scheduler::Schedule")
        .find(|(_, schedule)| name_in(text(&schedule["Target"]["Arn"])) == Some(logical))?;
    let rate = text(&schedule["ScheduleExpression"]);
    let (number, unit) = rate.strip_prefix("rate(")?.strip_suffix(')')?.split_once(' ')?;
    let seconds = if unit.starts_with("hour") { 3600 } else { 60 };
    Some(number.parse::<u32>().ok()? * seconds)
}

/// The alarms of a function, and of its queue, that are not there or watch something else.
fn unwatched(stack: &Stack, function: Function, trigger: Trigger) -> Vec<String> {
    let stage = &stack.parameters["Stage"];
    let watched = |alarm: &str, by: &str| {
        let is_it = |(_, found): &(&str, &Value)| {
            text(&found["AlarmName"]) == format!("{stage}-onsale-{alarm}")
                && found.to_string().contains(by)
        };
        stack.all("AWS::CloudWatch::Alarm").any(|alarm| is_it(&alarm))
    };
    let id = format!("\"${{{}}}\"", logical_id(function));
    let of_function = function.alarms().map(|alarm| (alarm.to_owned(), id.clone()));
    let mut expected: Vec<(String, String)> = of_function.into();
    if let Trigger::Queue(consumer) = trigger {
        // The queue's logical id, or that of its dead letters, begins with its name.
        let queue = format!("\"${{{:?}", consumer.queue);
        expected.extend(consumer.queue.alarms().map(|alarm| (alarm, queue.clone())));
    }
    let lacking = expected.into_iter().filter(|(alarm, by)| !watched(alarm, by));
    lacking
        .map(|(alarm, _)| format!("{}: alarm {alarm} does not watch it", function.as_str()))
        .collect()
}

/// What differs from the table of functions.
fn functions(stack: &Stack) -> Vec<String> {
    let deployed: BTreeSet<&str> = stack.functions().map(|(binary, ..)| binary).collect();
    let mut faults = Vec::new();
    compare(&mut faults, "functions", deployed, Function::NAMES.into());
    faults.extend(Function::ALL.into_iter().flat_map(|function| faults_of(stack, function)));
    faults
}

/// What differs from the throttles in the table of routes.
fn throttles(stack: &Stack) -> Vec<String> {
    let (_, stage) = stack.all("AWS::ApiGatewayV2::Stage").next().unwrap();
    let limits = |settings: &Value| {
        let rate = number(&settings["ThrottlingRateLimit"]);
        (rate, number(&settings["ThrottlingBurstLimit"]))
    };
    let expected = |throttle: Throttle| {
        let rate = stack.parameters.get(throttle.rate_parameter);
        (rate.and_then(|rate| rate.parse::<u64>().ok()), Some(u64::from(throttle.burst)))
    };
    let others = &stage["DefaultRouteSettings"];
    let entry = &stack.resources["CallbackStage"].properties["DefaultRouteSettings"];
    let mut faults = Vec::new();
    compare(&mut faults, "other routes", limits(others), expected(OTHERS));
    for route in &ROUTES {
        if route.access == Access::ProviderWithKey {
            compare(&mut faults, route.key, limits(entry), expected(route.throttle));
            continue;
        }
        let own = &stage["RouteSettings"][route.key];
        let settings = if own.is_null() { others } else { own };
        compare(&mut faults, route.key, limits(settings), expected(route.throttle));
        let is_own = route.throttle != OTHERS;
        compare(
            &mut faults,
            &format!("{}: a throttle of its own", route.key),
            !own.is_null(),
            is_own,
        );
    }
    faults
}

fn faults(stack: &Stack) -> Vec<String> {
    let mut faults = functions(stack);
    faults.extend(throttles(stack));
    faults
}

/// A mistake: behind the first `after`, the first `from` becomes `to`.
const fn edit(after: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { after, from, to }
}

/// What the local engine takes for reserved and for a route's share, and the template's defaults are not.
fn defaults(stack: &Stack, parameters: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for route in &ROUTES {
        let Throttle { rate_parameter, rate, .. } = route.throttle;
        let default = number(&parameters[rate_parameter]["Default"]);
        compare(&mut faults, rate_parameter, default, Some(u64::from(rate)));
    }
    let reserved = stack.functions().filter_map(|(binary, _, function)| {
        Some((binary, u32::try_from(number(&function["ReservedConcurrentExecutions"])?).ok()?))
    });
    let reserved: BTreeSet<(&str, u32)> = reserved.collect();
    let known = RESERVED.map(|(function, own)| (function.as_str(), own));
    compare(&mut faults, "reserved", reserved, known.into());
    faults
}

#[test]
fn the_local_engine_has_the_shares_of_the_template() {
    let reserving = Variant::from_stage("default").with("ReserveConcurrency", "true");
    let translation = translate(&[reserving]).remove(0).unwrap();
    let stack = Stack::from_translation(&translation);
    let mut parameters = translation["template"]["Parameters"].clone();
    assert_eq!(defaults(&stack, &parameters), [""; 0]);
    // The control.
    parameters["CallbackEntryRate"]["Default"] = 1.into();
    assert_eq!(defaults(&stack, &parameters).len(), 1);
}

const MISTAKES: [Edit; 12] = [
    edit("  LoadSaleFunction:", "MemorySize: 1024", "MemorySize: 512"),
    edit("  RefundFunction:", "Timeout: 30", "Timeout: 29"),
    edit("Globals:", "MemorySize: 256", "MemorySize: 128"),
    edit("  SyncDbFunction:", "BatchSize: 100", "BatchSize: 10"),
    edit("  SyncDbFunction:", "InSeconds: 2", "InSeconds: 1"),
    edit("  RefundFunction:", "MaximumConcurrency: 2", "MaximumConcurrency: 3"),
    edit("  LoadSaleFunction:", "Queue: !GetAtt LoadQueue.Arn", "Queue: !GetAtt SyncQueue.Arn"),
    edit("  ReconcileFunction:", "rate(1 minute)", "rate(5 minutes)"),
    edit("  ReadCapturesFunction:", "Timeout: 90", "Timeout: 60"),
    edit("      RouteSettings:", "ThrottlingBurstLimit: 750", "ThrottlingBurstLimit: 700"),
    edit("      RouteSettings:", "!Ref ReadRate", "!Ref OtherRate"),
    edit("  CallbackStage:", "ThrottlingBurstLimit: 500", "ThrottlingBurstLimit: 250"),
];

#[test]
fn the_template_has_the_functions_and_throttles_of_the_tables() {
    let variants = variants();
    for (variant, translation) in variants.iter().zip(translate(&variants)) {
        let found = faults(&Stack::from_translation(&translation.unwrap()));
        assert_eq!(found, [""; 0], "{} {:?}", variant.stage, variant.with);
    }
    let mistaken: Vec<Variant> =
        MISTAKES.into_iter().map(|mistake| Variant::from_stage("prod").edited(mistake)).collect();
    for (mistake, translation) in MISTAKES.iter().zip(translate(&mistaken)) {
        let found = faults(&Stack::from_translation(&translation.unwrap()));
        assert!(!found.is_empty(), "nobody notices {mistake:?}");
    }
}
