//! The event bus: told of every fact by `send-events`, whatever the bus refuses, loses or is away for; and of nothing
//! that was settled before it was there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::flows::cancel::cancel;
use engine::flows::reserve::reserve;
use engine::flows::sync::sync;
use engine::ports::{Orders, Ports};
use fake_eventbridge::{EventBridge as FakeEventBridge, Taken};
use local::handlers::send_events;
use serde_json::Value;
use shared::dynamodb::DynamoSubscriptions;
use shared::events::eventbridge::EventBridge;
use shared::events::{EventBus, bus_subscriber};
use shared::runtime::app::App;
use shared::runtime::config::{BusConfig, Config};

use super::environment::{Fixture, NOW};

const BUS: &str = "orders";

/// The function with this bus.
async fn app(fixture: &Fixture, bus: &FakeEventBridge, name: &str) -> App {
    let told = BusConfig { name: Some(name.to_owned()), endpoint: Some(bus.url()) };
    let config = Config { bus: told, ..fixture.config.clone() };
    let bus = EventBridge::from_config(&config).await.unwrap().unwrap();
    let app = App::from_config(&config).await.unwrap();
    app.with_bus(Some(Arc::new(bus) as Arc<dyn EventBus>))
}

impl Fixture {
    /// Orders that were made and cancelled, and settled.
    async fn told(&self, buyers: &[&str]) -> Vec<OrderNumber> {
        let mut numbers = Vec::new();
        for buyer in buyers {
            let reservation = self.reservation(buyer).await;
            let order = reserve(&self.ports, &reservation, NOW).await.unwrap().order;
            cancel(&self.ports, &order.user, order.number, NOW).await.unwrap();
            numbers.push(order.number);
        }
        // The record has the time of the clock by which the function runs.
        sync(&self.ports, &numbers, Timestamp::now()).await.unwrap();
        numbers
    }

    /// What is not taken is tried again at once.
    async fn retried(&self) {
        let subscriptions = DynamoSubscriptions::new(self.dynamo.clone());
        let (bus, reader) = (bus_subscriber().unwrap(), "operator".parse().unwrap());
        let held = subscriptions.retry(&bus, &reader, Timestamp::now()).await;
        assert_eq!(held, Ok(Vec::<LogShard>::new()));
    }

    /// The facts of these orders, by number.
    async fn facts(&self, numbers: &[OrderNumber]) -> BTreeMap<String, Vec<String>> {
        let mut facts = BTreeMap::new();
        for number in numbers {
            let order = self.ports.orders().get(*number).await.unwrap().unwrap();
            let kinds = order.facts.settled().iter().map(|fact| fact.kind.as_str().to_owned());
            facts.insert(number.to_string(), kinds.collect());
        }
        facts
    }
}

/// The kinds of each order's facts, each in the place where it was first taken.
fn first_taken(taken: &[Taken]) -> BTreeMap<String, Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut by_order: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Taken { kind, detail } in taken {
        let order = detail["order"].as_str().unwrap().to_owned();
        assert_eq!(*kind, format!("order.{}", detail["kind"].as_str().unwrap()));
        assert_eq!(detail["id"], format!("{order}-{}", detail["fact"]));
        if seen.insert(detail["id"].to_string()) {
            let heard = by_order.entry(order).or_default();
            heard.push(detail["kind"].as_str().unwrap().to_owned());
            assert_eq!(detail["fact"], heard.len(), "its facts come in their order");
        }
    }
    by_order
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fact_is_taken_by_the_bus_whatever_it_refuses_or_loses() {
    let fixture = Fixture::start().await;
    let bus = FakeEventBridge::start(BUS).await.unwrap();
    // It names the bus by its ARN, and is there from now on.
    let app =
        app(&fixture, &bus, "arn:aws:events:eu-central-1:111122223333:event-bus/orders").await;
    fixture.told(&["before"]).await;
    let first = send_events::tell(&app).await.unwrap();
    assert_eq!((first.told, bus.taken().len()), (0, 0), "what was settled before is not told");

    let names: Vec<String> = (0..25).map(|number| format!("buyer-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut numbers = fixture.told(&names[..12]).await;
    bus.refuse_entries(3);
    let some = send_events::tell(&app).await.unwrap();
    assert!(some.told > 0 && some.failed == 3 && some.waiting == 3, "{some:?}");
    // A call of ten whose answer is lost is made again by the SDK; one that is throttled too.
    bus.lose_answers(1);
    bus.throttle(1);
    numbers.extend(fixture.told(&names[12..20]).await);
    send_events::tell(&app).await.unwrap();
    bus.set_away(true);
    numbers.extend(fixture.told(&names[20..]).await);
    let none = send_events::tell(&app).await.unwrap();
    assert!(none.told == 0 && none.failed > 0, "{none:?}");
    bus.set_away(false);
    fixture.retried().await;
    let rest = send_events::tell(&app).await.unwrap();
    assert_eq!((rest.failed, rest.waiting), (0, 0), "{rest:?}");

    let taken = bus.taken();
    assert_eq!(first_taken(&taken), fixture.facts(&numbers).await);
    let names = taken.iter().map(|one| one.detail["id"].to_string()).collect::<BTreeSet<_>>();
    assert!(names.len() < taken.len(), "what was lost came twice, under the same name");
    let seats = &taken[0].detail["lines"][0]["seats"];
    assert!(seats.as_array().is_some_and(|seats| seats.iter().all(Value::is_string)), "{seats}");
    let calls = u64::try_from(taken.len()).unwrap();
    assert!(bus.calls() < calls, "several go with a call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_of_another_name_takes_nothing_and_everything_waits() {
    let fixture = Fixture::start().await;
    let bus = FakeEventBridge::start(BUS).await.unwrap();
    let wrong = app(&fixture, &bus, "others").await;
    send_events::tell(&wrong).await.unwrap();
    let numbers = fixture.told(&["ann", "ben"]).await;
    let none = send_events::tell(&wrong).await.unwrap();
    assert!(none.told == 0 && none.failed > 0, "{none:?}");
    // Whoever corrects the setting has what was not taken told.
    let right = app(&fixture, &bus, BUS).await;
    fixture.retried().await;
    send_events::tell(&right).await.unwrap();
    assert_eq!(first_taken(&bus.taken()), fixture.facts(&numbers).await);
}
