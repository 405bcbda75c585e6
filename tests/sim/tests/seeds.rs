//! Twenty thousand runs, other ones for every commit: every promise is kept in each.

use std::time::Duration;

use sim::{Exploration, Fault, Tally, base_seed, explore, shrink};

/// Runs make and drop small values all the time: a tenth of their time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of runs of the test.
const RUNS: u64 = 20_000;

/// Outcomes that the runs must reach: else the simulator no longer tests what it should.
const MUST_REACH: [&str; 85] = [
    "Catalogue::lease Conflict",
    "Catalogue::lease Done",
    "Catalogue::loaded Done",
    "Catalogue::retire Conflict",
    "Catalogue::retire Done",
    "Catalogue::delist Done",
    "Gate::admit Admitted",
    "Gate::admit Exhausted",
    "Gate::admit BudgetUsedUp",
    "Gate::admit Locked",
    "Orders::write_tombstone Done",
    "Orders::create AttendeeLimit",
    "Orders::create AttendeeTaken",
    "Orders::create Created",
    "Orders::create Exists",
    "Orders::create LimitReached",
    "Orders::create SeatsTaken",
    "Orders::end Conflict",
    "Orders::end Done",
    "Orders::settle Conflict",
    "Orders::settle Gone",
    "Orders::settle Known",
    "Orders::settle Settled",
    "Seats::hold ContentDiffers",
    "Seats::hold Held",
    "Seats::hold LimitReached",
    "Seats::hold NoAdjacent",
    "Seats::hold NotLoaded",
    "Seats::hold SaleClosed",
    "Seats::hold SeatTaken",
    "Seats::hold SoldOut",
    "Seats::load_part Loaded",
    "Seats::load_part Staged",
    "Seats::load_part Stale",
    "Seats::load_part Updated",
    "Seats::mark Marked",
    "Seats::release NotHeld",
    "Seats::release Released",
    "Seats::restore Conflict",
    "Seats::restore Restored",
    "Seats::sell NotLoaded",
    "Seats::sell Sold",
    "archived",
    "archiving refused: undecided",
    "archiving failed",
    "cancelled by its buyer",
    "capture kept",
    "message comes again",
    "order cancelled",
    "order expired",
    "order paid",
    "order expired, and its provider's list was read",
    "payment Accepted",
    "payment Refund(SecondPayment)",
    "payment Refund(TooLate)",
    "payment Refund(UnknownOrder)",
    "payment Refund(WrongAmount)",
    "payment Refund(WrongCurrency)",
    "reader decided",
    "reader read",
    "reader unfinished",
    "refused: AttendeeLimit",
    "refused: AttendeeTaken",
    "refused: HoldExpired",
    "refused: LimitReached",
    "refused: NoAdjacent",
    "refused: NotLoaded",
    "refused: NumberClash",
    "refused: OneTierOnly",
    "refused: Resolved",
    "refused: SaleClosed",
    "refused: SeatTaken",
    "refused: SoldOut",
    "refused: TokenReused",
    "refused: Unavailable",
    "refused: Unknown",
    "reserve unheard",
    "sweep aligned",
    "sweep expired",
    "sweep loaded",
    "sweep requested a refund",
    "sweep restored",
    "sweep sold",
    "sweep synced",
    "sweep unloaded",
];

#[test]
fn every_promise_is_kept_in_every_run() {
    if let Some(seed) = std::env::var("ONSALE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        let outcome = sim::run(seed, true);
        println!("{outcome}");
        assert_eq!(outcome.violation, None);
        return;
    }
    let base = base_seed();
    println!("seeds from base {base} (ONSALE_SIM_BASE={base} repeats them)");
    let runs = std::env::var("ONSALE_SIM_RUNS").map_or(RUNS, |runs| runs.parse().unwrap());
    let for_at_most = Duration::from_secs(7200);
    let explored = explore(Exploration { base, runs, for_at_most, without: None });
    println!("{explored}");
    if let Some((failure, _)) = explored.failure {
        panic!("{}", shrink(failure.seed).unwrap());
    }
    assert_eq!(explored.tally.runs, runs, "time ran out");
    let Tally { faults, reached, .. } = &explored.tally;
    let rare: Vec<Fault> =
        Fault::ALL.into_iter().filter(|fault| !faults.contains_key(fault)).collect();
    assert_eq!(rare, [], "these faults never struck");
    let missing: Vec<&str> =
        MUST_REACH.into_iter().filter(|outcome| !reached.contains_key(*outcome)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}
