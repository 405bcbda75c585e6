//! Five thousand runs, other ones for every commit: every promise is kept in each. `make test-all` makes twenty thousand.

use std::time::Duration;

use sim::{Exploration, Fault, Of, Tally, base_seed, explore, shrink};

/// Runs make and drop small values all the time: a tenth of their time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of runs of the test.
const RUNS: u64 = 5_000;

/// The number of runs of `make test-all`, which must reach the rare outcomes too.
const ALL_RUNS: u64 = 20_000;

/// Outcomes of [`MUST_REACH`] that come less than twice in a thousand runs: [`RUNS`] may miss them.
const RARE: [&str; 5] = [
    "Catalogue::retire Conflict",
    "Orders::create SeatsTaken",
    "Seats::mark Marked",
    "room: NotMember",
    "room: gate NotMember",
];

/// Outcomes that the runs must reach: else the simulator no longer tests what it should.
const MUST_REACH: [&str; 135] = [
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
    "a place extends an order",
    "a place is used or late",
    "archived",
    "archiving refused: undecided",
    "archiving failed",
    "cancelled by its buyer",
    "capture ignored",
    "capture kept",
    "message comes again",
    "not started: Waits",
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
    "refused: Departed",
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
    "unmatched explained",
    "unmatched sent back",
    "room: AwaitsBeacon",
    "room: Close",
    "room: Drawn",
    "room: NotDue",
    "room: NotMember",
    "room: Notice",
    "room: Over",
    "room: Pause",
    "room: Rate",
    "room: Resume",
    "room: RunOut",
    "room: SoldOut",
    "room: TooManyAttempts",
    "room: draw failed",
    "room: draw requested",
    "room: BeaconGivenUp",
    "room: drawn after a late closing",
    "room: drawn by the beacon",
    "room: drawn by the secret",
    "room: entered",
    "room: gate Closed",
    "room: gate NotDue",
    "room: gate NotMember",
    "room: gate NotOpen",
    "room: gate OtherPlace",
    "room: gate Over",
    "room: gate Paused",
    "room: gate RunOut",
    "room: gate SaleClosed",
    "room: gate SoldOut",
    "room: gate Store",
    "room: gate TooFast",
    "room: join NotOpen",
    "room: join RegistrationOver",
    "room: join SaleClosed",
    "room: joined again",
    "room: later window",
    "room: never came",
    "room: round Forged",
    "room: round NotAwaited",
    "room: round brought",
    "room: served",
    "room: undecided",
];

/// The seeds that `ONSALE_SIM_OF` names: all of them, or those with or without a room.
fn of_seeds() -> Of {
    match std::env::var("ONSALE_SIM_OF").as_deref() {
        Ok("rooms") => Of::Rooms,
        Ok("plain") => Of::Plain,
        Ok("") | Err(_) => Of::Every,
        Ok(other) => panic!("ONSALE_SIM_OF is rooms or plain, not {other}"),
    }
}

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
    let explored = explore(Exploration { base, runs, for_at_most, without: None, of: of_seeds() });
    println!("{explored}");
    if let Some((failure, _)) = explored.failure {
        // Before it is made small, which may take long.
        println!("make sim SEED={}", failure.seed);
        panic!("{}", shrink(failure.seed).unwrap());
    }
    assert_eq!(explored.tally.runs, runs, "time ran out");
    if runs < RUNS {
        println!("too few runs to reach every outcome");
        return;
    }
    let Tally { faults, reached, .. } = &explored.tally;
    let rare: Vec<Fault> =
        Fault::ALL.into_iter().filter(|fault| !faults.contains_key(fault)).collect();
    assert_eq!(rare, [], "these faults never struck");
    let is_due = |outcome: &&str| runs >= ALL_RUNS || !RARE.contains(outcome);
    let is_missing = |outcome: &&str| is_due(outcome) && !reached.contains_key(*outcome);
    let missing: Vec<&str> = MUST_REACH.into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}
