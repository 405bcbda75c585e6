//! Random sequences of commands: the scripts answer as the model does, on every server, and a
//! script with a mistake in it is found out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use local::servers::Flavour;
use model_stores::{seed_in, seed_of_commit};
use shared::redis::{Connection, Script, Scripts, Topology};
use tokio::task::JoinSet;

use super::environment::{Fixture, Tally};
use super::{cluster, connect, long_deadlines, server};

/// The number of sequences that run at once.
const AT_ONCE: u64 = 8;
/// How many sequences a planted mistake may survive.
const MUTANT_SEQUENCES: u64 = 1000;

/// The seed of the first sequence; each following sequence has the next.
fn first_seed() -> u64 {
    seed_in("ONSALE_SEED").unwrap_or_else(seed_of_commit)
}

/// A sequence that failed: its seed, how many had passed, and what differed.
struct Difference {
    seed: u64,
    passed: u64,
    what: String,
}

/// Runs a number of sequences; stops at the first that finds a discrepancy.
async fn run(
    connection: &Connection,
    scripts: &Arc<Scripts>,
    prefix: &str,
    (first, sequences): (u64, u64),
) -> Result<Tally, Difference> {
    let mut running = JoinSet::new();
    let mut waiting = first..first + sequences;
    let (mut all, mut passed) = (Tally::default(), 0);
    let spawn = |running: &mut JoinSet<_>, seed: u64| {
        let fixture = Fixture::new(connection, scripts, seed, prefix);
        running.spawn(async move { (seed, fixture.run().await) });
    };
    waiting.by_ref().take(AT_ONCE as usize).for_each(|seed| spawn(&mut running, seed));
    while let Some(ended) = running.join_next().await {
        let (seed, outcome) = ended.unwrap();
        let tally = outcome.map_err(|what| Difference { seed, passed, what })?;
        passed += 1;
        all.commands += tally.commands;
        for (reply, count) in tally.replies {
            *all.replies.entry(reply).or_default() += count;
        }
        if let Some(seed) = waiting.next() {
            spawn(&mut running, seed);
        }
    }
    Ok(all)
}

/// Runs the suite on one server or cluster, and says what it came to.
async fn check(connection: &Connection, prefix: &str, sequences: u64) -> BTreeMap<String, usize> {
    let sequences = seed_in("ONSALE_SEQUENCES").unwrap_or(sequences);
    let seed = first_seed();
    println!("{prefix}: {sequences} sequences from ONSALE_SEED={seed}");
    let begun = Instant::now();
    let outcome = run(connection, &Scripts::standard(), prefix, (seed, sequences)).await;
    let tally = outcome.unwrap_or_else(|difference| {
        let Difference { seed, passed, what } = difference;
        panic!(
            "after {passed} sequences; repeat with ONSALE_SEED={seed} ONSALE_SEQUENCES=1\n{what}"
        )
    });
    let took = begun.elapsed().as_secs_f64();
    println!("{prefix}: {sequences} sequences, {} commands, {took:.1} s", tally.commands);
    tally.replies
}

/// Every reply that the random commands should meet; what never occurs is not tested.
const REPLIES: [&str; 31] = [
    "Load Loaded",
    "Load Updated",
    "Load Stale",
    "Hold Held",
    "Hold NotLoaded",
    "Hold ContentDiffers",
    "Hold HoldExpired",
    "Hold SaleClosed",
    "Hold LimitReached",
    "Hold SeatTaken",
    "Hold SoldOut",
    "Hold NoAdjacent",
    "Sell Sold",
    "Sell NotLoaded",
    "Release Released",
    "Release NotHeld",
    "Release Conflict",
    "Mark Marked",
    "Mark NotHeld",
    "Mark Conflict",
    "Restore Restored",
    "Restore NotLoaded",
    "Repair Repaired",
    "Repair Conflict",
    "Repair NotLoaded",
    "Admit Admitted",
    "Admit Exhausted",
    "Admit Locked",
    "Admit TooFast",
    "Admit BudgetUsedUp",
    "Forget Forgotten",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_answer_as_the_model_on_valkey() {
    let server = server(Flavour::Valkey).await;
    let replies = check(&connect(&server), "valkey", 1000).await;
    println!("{replies:#?}");
    if seed_in("ONSALE_SEQUENCES").is_none() {
        let missing: Vec<_> = REPLIES.iter().filter(|name| !replies.contains_key(**name)).collect();
        assert!(missing.is_empty(), "the random commands never met {missing:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_answer_as_the_model_on_redis() {
    let server = server(Flavour::Redis).await;
    check(&connect(&server), "redis", 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_answer_as_the_model_on_a_cluster() {
    let cluster = cluster().await;
    let connection = Connection::new(&Topology::Cluster(cluster.urls()), long_deadlines()).unwrap();
    check(&connection, "cluster", 1_000).await;
}

/// A mistake to plant: which script, what to replace in it, and with what.
struct Mutant {
    name: &'static str,
    script: fn(&mut Scripts) -> &mut Script,
    fragment: &'static str,
    with: &'static str,
}

const MUTANTS: [Mutant; 12] = [
    Mutant {
        name: "release clears sold seats",
        script: |scripts| &mut scripts.release,
        fragment: "if kept[i] ~= 0 then",
        with: "if false then",
    },
    Mutant {
        name: "hold forgets the limit",
        script: |scripts| &mut scripts.hold,
        fragment: "if tickets > left then",
        with: "if false then",
    },
    Mutant {
        name: "hold ignores the last leg",
        script: |scripts| &mut scripts.hold,
        fragment: "unpack(KEYS, first_leg, last_leg))",
        with: "unpack(KEYS, first_leg, last_leg - 1))",
    },
    Mutant {
        name: "release forgets that searches must go back",
        script: |scripts| &mut scripts.release,
        fragment: "tonumber(fields[i + 1]) > first then",
        with: "false then",
    },
    Mutant {
        name: "repair forgets that searches must go back",
        script: |scripts| &mut scripts.repair,
        fragment: "call('DEL', tier_key)",
        with: "",
    },
    Mutant {
        name: "release gives back what it did not see",
        script: |scripts| &mut scripts.release,
        fragment: "elseif record ~= seen then",
        with: "elseif false then",
    },
    Mutant {
        name: "mark frees what others own",
        script: |scripts| &mut scripts.mark,
        fragment: "if not is_lost[line.tier .. ',' .. leg .. ',' .. seat] then",
        with: "if true then",
    },
    Mutant {
        name: "a run crosses the end of its row",
        script: |scripts| &mut scripts.hold,
        fragment: "if run == 0 or place % row_bytes == 0 then",
        with: "if run == 0 then",
    },
    Mutant {
        name: "parted seats are taken for all there are",
        script: |scripts| &mut scripts.hold,
        fragment: "search = string.gsub(search, '^%d+', '1')",
        with: "",
    },
    Mutant {
        name: "a buyer's tickets are forgotten",
        script: |scripts| &mut scripts.hold,
        fragment: "record, buyer, bought + tickets)",
        with: "record, buyer, tickets)",
    },
    Mutant {
        name: "a sale reported again counts again",
        script: |scripts| &mut scripts.sell,
        fragment: "elseif not all_sold then",
        with: "else",
    },
    Mutant {
        name: "of many that top up, all do",
        script: |scripts| &mut scripts.admit,
        fragment: "if found_exhausted == generation then",
        with: "if found_exhausted ~= '' then",
    },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planted_mistake_is_found() {
    let server = server(Flavour::Valkey).await;
    let connection = connect(&server);
    let seed = first_seed();
    println!("mutants: from ONSALE_SEED={seed}");
    for (index, mutant) in MUTANTS.iter().enumerate() {
        let mut scripts = Scripts::clone(&Scripts::standard());
        let script = (mutant.script)(&mut scripts);
        let name = mutant.name;
        let replaced = script.replaced(mutant.fragment, mutant.with);
        *script = replaced.unwrap_or_else(|| panic!("{name}: its fragment is not in the script"));
        let prefix = format!("mutant{index}");
        let outcome = run(&connection, &Arc::new(scripts), &prefix, (seed, MUTANT_SEQUENCES)).await;
        match outcome {
            Ok(_) => panic!("{name}: not found in {MUTANT_SEQUENCES} sequences from {seed}"),
            Err(found) => println!("{name}: found after {} sequences", found.passed + 1),
        }
    }
}
