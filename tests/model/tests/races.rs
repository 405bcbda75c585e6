//! Every small scenario is explored whole and holds; without a guard, the way to what breaks is found.

use std::collections::BTreeSet;

use engine::domain::basics::guard::Guard;
use model::explore::{MAX_STEPS_OF_SMALL, explore, explore_small};
use model::scenario::Scenario;
use model::scenarios;

/// States are made and dropped all the time: a third of the time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Explores a scenario: all of it holds, and it is a scenario in which something can happen.
fn holds(scenario: Scenario) {
    let explored = explore_small(scenario);
    println!("{explored}");
    assert!(explored.broken.is_none(), "{explored}");
    assert!(explored.steps < MAX_STEPS_OF_SMALL, "not all of it was explored: {explored}");
    assert!(explored.states > 100 && explored.depth > 10, "{explored}");
}

macro_rules! races {
    ($($scenario:ident)*) => {
        $(#[test]
        fn $scenario() {
            holds(scenarios::$scenario());
        })*

        #[test]
        fn every_scenario_has_its_test() {
            let tested = [$(scenarios::$scenario().name),*].map(str::to_owned);
            let known: BTreeSet<String> =
                scenarios::small().iter().map(|scenario| scenario.name.to_owned()).collect();
            assert_eq!(BTreeSet::from(tested), known);
        }
    };
}

races! {
    expiry_against_payment
    payment_listed_late
    captures_that_are_read
    captures_that_are_read_again
    cancel_against_payment
    cancel_that_fails
    rescue_against_another_buyer
    refund
    kept_against_expiry
    kept_twice
    start_against_expiry
    expiry_that_comes_twice
    close_that_fails
    place_against_expiry
    two_starts
    absent_page
    start_that_fails
    start_against_cancel
    absent_page_against_cancel
    two_buyers_for_one_seat
    two_buyers_over_legs
    forgetting_against_claims
    forgetting_against_payment
    reload_against_traffic
    load_in_parts
    tier_lost
    limit_over_tiers
    duplicates
    crash_at_every_step
    sweeper_against_traffic
    second_and_wrong_payments
    limit_against_forgetting
    one_attendee
    refund_against_another_buyer
    one_ticket_twice
    refund_against_a_late_sale
    refund_against_forgetting
    refunds_at_once
    dispute_against_refund
    dispute_heard_twice
    dispute_cut_off
    exchange_against_refund
    exchanges_at_once
    exchange_against_expiry
    dearer_exchange_against_refund
    exchange_against_dispute
    exchange_before_refund
    exchange_cut_off
    one_wallet_twice
    wallet_against_expiry
    wallet_against_payment
    wallet_refunded
    top_up_against_dispute
}

/// The guards that so small a scenario can show, each with a scenario that shows it.
const PLANTED: [(Guard, fn() -> Scenario); 34] = [
    (Guard::ClaimCondition, scenarios::rescue_against_another_buyer),
    (Guard::StateCondition, scenarios::second_and_wrong_payments),
    (Guard::NumberOnce, scenarios::two_buyers_for_one_seat),
    (Guard::BuyerLimit, scenarios::limit_against_forgetting),
    (Guard::BuyerLimit, scenarios::limit_over_tiers),
    (Guard::AttendeeOnce, scenarios::one_attendee),
    (Guard::SyncOnce, scenarios::duplicates),
    (Guard::RefundOnce, scenarios::refund),
    (Guard::ReleaseOnlyHeld, scenarios::rescue_against_another_buyer),
    (Guard::ReleaseKeepsSold, scenarios::rescue_against_another_buyer),
    (Guard::LoadComplete, scenarios::load_in_parts),
    (Guard::LoadUnnamed, scenarios::load_in_parts),
    (Guard::EveryInventory, scenarios::tier_lost),
    (Guard::HoldReplay, scenarios::one_attendee),
    (Guard::Tombstone, scenarios::crash_at_every_step),
    (Guard::AmountCheck, scenarios::second_and_wrong_payments),
    (Guard::KeepBeforeAnswer, scenarios::kept_against_expiry),
    (Guard::KeepBeforeAnswer, scenarios::kept_twice),
    (Guard::AskProvider, scenarios::expiry_against_payment),
    (Guard::Grace, scenarios::payment_listed_late),
    (Guard::CloseBeforeEnd, scenarios::start_against_expiry),
    (Guard::AttemptsSeen, scenarios::start_against_expiry),
    (Guard::WriteBeforeStart, scenarios::start_against_expiry),
    (Guard::NamedFirst, scenarios::start_against_expiry),
    (Guard::ReadAgain, scenarios::captures_that_are_read_again),
    (Guard::ListLag, scenarios::captures_that_are_read),
    (Guard::TicketOnce, scenarios::one_ticket_twice),
    (Guard::RefundsSeen, scenarios::refunds_at_once),
    (Guard::SellCounter, scenarios::refund_against_a_late_sale),
    (Guard::DisputeOpen, scenarios::dispute_against_refund),
    (Guard::DisputesSeen, scenarios::dispute_heard_twice),
    (Guard::KeptCounted, scenarios::exchange_before_refund),
    (Guard::WalletLimit, scenarios::one_wallet_twice),
    (Guard::DebtTakesBack, scenarios::top_up_against_dispute),
];

#[test]
fn without_a_guard_the_way_to_what_breaks_is_found() {
    for (guard, scenario) in PLANTED {
        let explored = explore(scenario().without(guard), 1);
        println!("without {guard}, {explored}\n");
        assert!(explored.broken.is_some(), "without {guard} nothing breaks: {explored}");
    }
}
