//! Every small world is explored whole and holds; without a guard, the way to what breaks is found.

use std::collections::BTreeSet;

use engine::domain::guard::Guard;
use model::explore::explore;
use model::scenario::Scenario;
use model::scenarios as worlds;

/// Explores a world: all of it holds, and it is a world in which something can happen.
fn holds(world: Scenario) {
    let explored = explore(world, 1);
    println!("{explored}");
    assert!(explored.broken.is_none(), "{explored}");
    assert!(explored.states > 100 && explored.depth > 10, "{explored}");
}

macro_rules! races {
    ($($world:ident)*) => {
        $(#[test]
        fn $world() {
            holds(worlds::$world());
        })*

        #[test]
        fn every_world_has_its_test() {
            let tested = [$(worlds::$world().name),*].map(str::to_owned);
            let known: BTreeSet<String> =
                worlds::small().iter().map(|world| world.name.to_owned()).collect();
            assert_eq!(BTreeSet::from(tested), known);
        }
    };
}

races! {
    expiry_against_payment
    cancel_against_payment
    rescue_against_another_buyer
    refund
    two_buyers_for_one_seat
    two_buyers_over_legs
    forgetting_against_claims
    forgetting_against_payment
    reload_against_traffic
    duplicates
    crash_at_every_step
    sweeper_against_traffic
    second_and_wrong_payments
    limit_against_forgetting
    one_attendee
}

/// The guards that so small a world can show, each with a world that shows it.
const PLANTED: [(Guard, fn() -> Scenario); 13] = [
    (Guard::ClaimCondition, worlds::rescue_against_another_buyer),
    (Guard::StateCondition, worlds::second_and_wrong_payments),
    (Guard::NumberOnce, worlds::two_buyers_for_one_seat),
    (Guard::BuyerLimit, worlds::limit_against_forgetting),
    (Guard::AttendeeOnce, worlds::one_attendee),
    (Guard::SyncOnce, worlds::duplicates),
    (Guard::RefundOnce, worlds::refund),
    (Guard::ReleaseOnlyHeld, worlds::rescue_against_another_buyer),
    (Guard::ReleaseKeepsSold, worlds::rescue_against_another_buyer),
    (Guard::HoldReplay, worlds::one_attendee),
    (Guard::Tombstone, worlds::crash_at_every_step),
    (Guard::AmountCheck, worlds::second_and_wrong_payments),
    (Guard::AskProvider, worlds::expiry_against_payment),
];

#[test]
fn without_a_guard_the_way_to_what_breaks_is_found() {
    for (guard, world) in PLANTED {
        let explored = explore(world().without(guard), 1);
        println!("without {guard}, {explored}\n");
        assert!(explored.broken.is_some(), "without {guard} nothing breaks: {explored}");
    }
}
