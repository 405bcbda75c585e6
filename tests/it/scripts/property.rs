//! Random sequences of commands: the scripts answer as the model does, on every server, and a
//! script with a mistake in it is found out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use local::servers::Flavour;
use model_stores::{StoredSeeds, seed_in, seed_of_commit};
use shared::redis::{Connection, Script, Scripts, Topology};
use tokio::task::JoinSet;

use super::environment::{Fixture, Tally};
use super::{cluster, connect, long_deadlines, server};

/// Number of sequences that run at once.
const AT_ONCE: usize = 8;
/// Most sequences that a planted mistake may survive in a search. What takes longest was found after 1,244.
const MUTANT_SEQUENCES: u64 = 10_000;
/// For each planted mistake a sequence that finds it.
const SEEDS: StoredSeeds =
    StoredSeeds { file: concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/mutants.txt") };

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

/// Runs `sequences` sequences from the seed `first`; stops at the first that finds a difference.
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
    waiting.by_ref().take(AT_ONCE).for_each(|seed| spawn(&mut running, seed));
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

/// Every reply of a script by its tag, and the model's name of it, that the random commands must
/// meet; what never occurs is not tested.
const REPLIES: &[(&str, &str, &str)] = &[
    ("load", "staged", "LoadPart Staged"),
    ("load", "loaded", "Load Loaded"),
    ("load", "updated", "Load Updated"),
    ("load", "stale", "Load Stale"),
    ("load", "absent", "Load Absent"),
    ("hold", "held", "Hold Held"),
    ("hold", "not_loaded", "Hold NotLoaded"),
    ("hold", "content_differs", "Hold ContentDiffers"),
    ("hold", "hold_expired", "Hold HoldExpired"),
    ("hold", "sale_closed", "Hold SaleClosed"),
    ("hold", "limit_reached", "Hold LimitReached"),
    ("hold", "seat_taken", "Hold SeatTaken"),
    ("hold", "sold_out", "Hold SoldOut"),
    ("hold", "no_adjacent", "Hold NoAdjacent"),
    ("sell", "sold", "Sell Sold"),
    ("sell", "not_held", "Sell NotHeld"),
    ("sell", "changed", "Sell Conflict"),
    ("sell", "not_loaded", "Sell NotLoaded"),
    ("unsell", "unsold", "Unsell Unsold"),
    ("unsell", "not_sold", "Unsell NotSold"),
    ("unsell", "changed", "Unsell Conflict"),
    ("unsell", "not_loaded", "Unsell NotLoaded"),
    ("release", "released", "Release Released"),
    ("release", "not_held", "Release NotHeld"),
    ("release", "changed", "Release Conflict"),
    ("mark", "marked", "Mark Marked"),
    ("mark", "not_held", "Mark NotHeld"),
    ("mark", "changed", "Mark Conflict"),
    ("restore", "restored", "Restore Restored"),
    ("restore", "changed", "Restore Conflict"),
    ("restore", "not_loaded", "Restore NotLoaded"),
    ("repair", "repaired", "Repair Repaired"),
    ("repair", "changed", "Repair Conflict"),
    ("repair", "not_loaded", "Repair NotLoaded"),
    ("recount", "counted", "Recount Counted"),
    ("recount", "changed", "Recount Conflict"),
    ("recount", "not_loaded", "Recount NotLoaded"),
    ("admit", "admitted", "Admit Admitted"),
    ("admit", "dry", "Admit Exhausted"),
    ("admit", "locked", "Admit Locked"),
    ("admit", "too_fast", "Admit TooFast"),
    ("admit", "exhausted", "Admit BudgetUsedUp"),
    ("add_tokens", "added", "AddTokens Added"),
    ("add_tokens", "known", "AddTokens Known"),
    ("add_tokens", "differs", "AddTokens Differs"),
    ("add_tokens", "too_many", "AddTokens TooMany"),
];

/// The replies that a sequence of commands cannot meet, and why.
const UNMET: &[(&str, &str, &str)] = &[
    (
        "load",
        "other_tiers",
        "another load must come between the two steps of one, \
         as in a_load_starts_over_when_another_came_between_its_steps",
    ),
    (
        "unlock",
        "unlocked",
        "no command of an inventory, see flows::wallets::a_lock_is_its_owners_alone",
    ),
    ("unlock", "not_owned", "likewise"),
];

/// The replies of the contracts that neither list names, and the listed ones of no contract.
fn unlisted_replies(scripts: &Scripts, listed: &[(&str, &str)]) -> Vec<String> {
    let contracts = scripts.all().map(|script| script.contract());
    let answered: BTreeSet<(&str, &str)> = contracts
        .iter()
        .flat_map(|contract| contract.replies.iter().map(move |reply| (contract.script, reply.tag)))
        .collect();
    let listed: BTreeSet<(&str, &str)> = listed.iter().copied().collect();
    let differing = answered.symmetric_difference(&listed);
    differing.map(|(script, tag)| format!("{script} {tag}")).collect()
}

#[test]
fn every_reply_of_every_script_is_met_or_excepted() {
    let met = REPLIES.iter().map(|(script, tag, _)| (*script, *tag));
    let listed: Vec<_> = met.chain(UNMET.iter().map(|(script, tag, _)| (*script, *tag))).collect();
    let scripts = Scripts::standard();
    assert_eq!(unlisted_replies(&scripts, &listed), Vec::<String>::new());
    // The comparison finds a reply that is missing, and one that no script gives.
    assert_eq!(unlisted_replies(&scripts, &listed[1..]), ["load staged"]);
    let more = [&listed[..], &[("sell", "parted")]].concat();
    assert_eq!(unlisted_replies(&scripts, &more), ["sell parted"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scripts_answer_as_the_model_on_valkey() {
    let server = server(Flavour::Valkey).await;
    let replies = check(&connect(&server), "valkey", 1000).await;
    println!("{replies:#?}");
    if seed_in("ONSALE_SEQUENCES").is_none() {
        let names = REPLIES.iter().map(|(_, _, name)| *name).chain(["Forget Forgotten"]);
        let missing: Vec<_> = names.filter(|name| !replies.contains_key(*name)).collect();
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

const MUTANTS: &[Mutant] = &[
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
        fragment: "before + from + 1, before + to)",
        with: "before + from + 1, before + to - 1)",
    },
    Mutant {
        name: "seats of two bytes are taken in one",
        script: |scripts| &mut scripts.hold,
        fragment: "until not seats[i] or floor(seats[i] / 8) ~= at",
        with: "until not seats[i]",
    },
    Mutant {
        name: "chosen seats are looked at on the first leg of the tier",
        script: |scripts| &mut scripts.hold,
        fragment: "legs - 1), 1, legs, from, to)",
        with: "legs - 1), 1, legs, 0, 1)",
    },
    Mutant {
        name: "a sale over several legs crosses the end of a byte",
        script: |scripts| &mut scripts.sell,
        fragment: "and (legs == 1 or seat % 8 > 0) then",
        with: "then",
    },
    Mutant {
        name: "mark frees every leg of a seat that is lost on one",
        script: |scripts| &mut scripts.mark,
        fragment: "runs_of(mine, grid.places, grid.legs, leg, leg + 1)",
        with: "runs_of(mine, grid.places, grid.legs, line.from, line.to)",
    },
    Mutant {
        name: "release forgets that searches must go back",
        script: |scripts| &mut scripts.release,
        fragment: "tonumber(fields[i + 1]) > first then",
        with: "false then",
    },
    Mutant {
        name: "a repair does not count as freeing",
        script: |scripts| &mut scripts.repair,
        fragment: "count_freed(tier_key, freed_key, grid, seats)\nreturn",
        with: "return",
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
        fragment: "if (at + i - 1) % row_bytes == 0 then",
        with: "if false then",
    },
    Mutant {
        name: "a search goes by two free neighbours",
        script: |scripts| &mut scripts.hold,
        fragment: "'^[\\255",
        with: "'^[\\249\\255",
    },
    Mutant {
        name: "the left edge is best",
        script: |scripts| &mut scripts.hold,
        fragment: "local ideal = middle - count + 1",
        with: "local ideal = 0",
    },
    Mutant {
        name: "the middle of the run is best",
        script: |scripts| &mut scripts.hold,
        fragment: "local at = start\n",
        with: "local at = floor((least + most) / 2)\n",
    },
    Mutant {
        name: "of equal seats the right are best",
        script: |scripts| &mut scripts.hold,
        fragment: "if way < distance then",
        with: "if way <= distance then",
    },
    Mutant {
        name: "the last run of a row is best",
        script: |scripts| &mut scripts.hold,
        fragment: "if way < distance then",
        with: "if true then",
    },
    Mutant {
        name: "a single seat is left beside a long run",
        script: |scripts| &mut scripts.hold,
        fragment: "elseif at == least + 1 or at == most - 1 then",
        with: "elseif false then",
    },
    Mutant {
        name: "a single seat is left of a run that is one longer",
        script: |scripts| &mut scripts.hold,
        fragment: "local leaves_single = most == least + 1",
        with: "local leaves_single = false",
    },
    Mutant {
        name: "no seats end where their run does",
        script: |scripts| &mut scripts.hold,
        fragment: "least, most = column - run, column - count",
        with: "least, most = column - run, column - count - 1",
    },
    Mutant {
        name: "a run goes on behind a full byte",
        script: |scripts| &mut scripts.hold,
        fragment: "elseif value < 255 or run > 0 then",
        with: "elseif value < 255 or i > #values then",
    },
    Mutant {
        name: "a row ends with its last free seat",
        script: |scripts| &mut scripts.hold,
        fragment: "for i = 1, #values + 1 do",
        with: "for i = 1, #values do",
    },
    Mutant {
        name: "every row has the middle of the first",
        script: |scripts| &mut scripts.hold,
        fragment: "2 * row, 2 * row + 1)",
        with: "0, 1)",
    },
    Mutant {
        name: "rows that differ are loaded with one middle",
        script: |scripts| &mut scripts.load,
        fragment: "if middles == string.rep(first, rows) then",
        with: "if true then",
    },
    Mutant {
        name: "seats of a party that is split are not put in order",
        script: |scripts| &mut scripts.hold,
        fragment: "        table.sort(seats)\n",
        with: "",
    },
    Mutant {
        name: "a part of a party that is split is held twice",
        script: |scripts| &mut scripts.hold,
        fragment: "values[i] = bit.bor(values[i], bit.rshift(128, place % 8))",
        with: "values[i] = values[i]",
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
        fragment: "  if all_sold then\n    return { 'sold' }\n  elseif not ARGV[FIRST_FREED_ARG] then",
        with: "  if not ARGV[FIRST_FREED_ARG] then",
    },
    Mutant {
        name: "of many that top up, all do",
        script: |scripts| &mut scripts.admit,
        fragment: "if found_exhausted == generation then",
        with: "if found_exhausted ~= '' then",
    },
    Mutant {
        name: "a top-up forgets who was admitted",
        script: |scripts| &mut scripts.admit,
        fragment: "share - (earlier + later), 0)",
        with: "share - earlier, 0)",
    },
    Mutant {
        name: "a top-up forgets who was admitted before the last",
        script: |scripts| &mut scripts.admit,
        fragment: "share - (earlier + later), 0)",
        with: "share - later, 0)",
    },
    Mutant {
        name: "what was reserved counts as outstanding",
        script: |scripts| &mut scripts.admit,
        fragment: "math.max((last[2] or 0) - left, 0)",
        with: "0",
    },
    Mutant {
        name: "what was reserved is paid off twice",
        script: |scripts| &mut scripts.admit,
        fragment: "math.max(reserved - outstanding, 0), 0)",
        with: "reserved, 0)",
    },
    Mutant {
        name: "whoever never reserves is outstanding for ever",
        script: |scripts| &mut scripts.admit,
        fragment: "/ 2 ^ seconds",
        with: "",
    },
    Mutant {
        name: "outstanding admissions halve once however long it is",
        script: |scripts| &mut scripts.admit,
        fragment: "math.max(math.floor((now - topped_up) / 1000), 1)",
        with: "1",
    },
    Mutant {
        name: "a shard is topped up as often as it is used up",
        script: |scripts| &mut scripts.admit,
        fragment: "if next_top_up > now then",
        with: "if false then",
    },
    Mutant {
        name: "what is promised is sold out",
        script: |scripts| &mut scripts.admit,
        fragment: "tonumber(share) > 0 and 'held' or new_holds",
        with: "new_holds",
    },
    Mutant {
        name: "a top-up takes what was added by hand meanwhile",
        script: |scripts| &mut scripts.admit,
        fragment: "+ math.max(before, 0)",
        with: "",
    },
    Mutant {
        name: "a top-up is not issued",
        script: |scripts| &mut scripts.admit,
        fragment: "issued and issued + budget - before or budget",
        with: "issued or budget",
    },
    Mutant {
        name: "a repeated addition is made again",
        script: |scripts| &mut scripts.add_tokens,
        fragment: "if known then",
        with: "if known and known ~= total then",
    },
    Mutant {
        name: "an addition of another number is taken for the same",
        script: |scripts| &mut scripts.add_tokens,
        fragment: "return known == total and",
        with: "return",
    },
    Mutant {
        name: "additions are remembered without end",
        script: |scripts| &mut scripts.add_tokens,
        fragment: "elseif additions >= tonumber(max_additions) then",
        with: "elseif false then",
    },
    Mutant {
        name: "an addition does not open a gate that refuses",
        script: |scripts| &mut scripts.add_tokens,
        fragment: ", 'dry_until_ms', '')",
        with: ")",
    },
    Mutant {
        name: "an addition pays for what the last buyer took too many",
        script: |scripts| &mut scripts.add_tokens,
        fragment: "math.max(tonumber(budget), 0) + tokens",
        with: "budget + tokens",
    },
    Mutant {
        name: "tokens that were added count as admitted",
        script: |scripts| &mut scripts.add_tokens,
        fragment: "'filled', filled + after - budget",
        with: "'filled', filled",
    },
    Mutant {
        name: "restore forgets that seats were freed meanwhile",
        script: |scripts| &mut scripts.restore,
        fragment: "if not grid or counters_of(KEYS[grid.key + 1], lines[i].seats) ~= seen then",
        with: "if not grid then",
    },
    Mutant {
        name: "repair forgets that seats were freed meanwhile",
        script: |scripts| &mut scripts.repair,
        fragment: "elseif counters_of(freed_key, seats) ~= freed then",
        with: "elseif false then",
    },
    Mutant {
        name: "a release is counted in the wrong block",
        script: |scripts| &mut scripts.release,
        fragment: "seats[i] - seats[i] % BLOCK_SEATS",
        with: "seats[i] - seats[i] % BLOCK_SEATS % 16",
    },
    Mutant {
        name: "a release of two blocks is counted in one",
        script: |scripts| &mut scripts.release,
        fragment: "for i = 1, #blocks do",
        with: "for i = 1, math.min(#blocks, 1) do",
    },
    Mutant {
        name: "restore takes what is sold",
        script: |scripts| &mut scripts.restore,
        fragment: "  if sold ~= sold_seen then\n    return { 'changed' }\n  end",
        with: "",
    },
    Mutant {
        name: "restore replaces a hold of other seats",
        script: |scripts| &mut scripts.restore,
        fragment: "elseif held and held ~= record then",
        with: "elseif false then",
    },
    Mutant {
        name: "restore forgets the deadline",
        script: |scripts| &mut scripts.restore,
        fragment: "call('ZADD', due_key, deadline, order)",
        with: "",
    },
    Mutant {
        name: "load replaces a sale that the caller did not expect",
        script: |scripts| &mut scripts.load,
        fragment: "(current or '') ~= expected then",
        with: "false then",
    },
    Mutant {
        name: "load leaves the holds of before due",
        script: |scripts| &mut scripts.load,
        fragment: "call('UNLINK', sale_key, due_key, loading_key, loading_due_key)",
        with: "call('UNLINK', sale_key, loading_key, loading_due_key)",
    },
    Mutant {
        name: "load leaves the tiers of before",
        script: |scripts| &mut scripts.load,
        fragment: "call('UNLINK', unpack(KEYS, first_old, #KEYS))",
        with: "",
    },
    Mutant {
        name: "load forgets a lone buyer",
        script: |scripts| &mut scripts.load,
        fragment: "if bought_count > 0 then",
        with: "if bought_count > 1 then",
    },
    Mutant {
        name: "load leaves what an unfinished load has put aside",
        script: |scripts| &mut scripts.load,
        fragment: "call('UNLINK', sale_key, due_key, loading_key, loading_due_key)",
        with: "call('UNLINK', sale_key, due_key)",
    },
    Mutant {
        name: "load publishes without a part",
        script: |scripts| &mut scripts.load,
        fragment: "elseif place > 0 and comes_next ~= place then",
        with: "elseif false then",
    },
    Mutant {
        name: "load names the sale before its last part",
        script: |scripts| &mut scripts.load,
        fragment: "call('HSET', loading_key, 'load', epoch, 'next', place + 1,",
        with: "call('HSET', sale_key, 'loaded', epoch) call('HSET', loading_key, 'load', epoch, 'next', place + 1,",
    },
    Mutant {
        name: "load begins again when its first part comes twice",
        script: |scripts| &mut scripts.load,
        fragment: "elseif comes_next and place < comes_next then",
        with: "elseif false then",
    },
    Mutant {
        name: "load forgets the deadlines that it has put aside",
        script: |scripts| &mut scripts.load,
        fragment: "call('RENAME', loading_due_key, due_key)",
        with: "",
    },
];

/// Runs sequences on scripts with a mistake until one finds it: its seed, and how many it took.
async fn search(
    connection: &Connection,
    scripts: &Arc<Scripts>,
    prefix: &str,
    first: u64,
) -> Option<(u64, u64)> {
    let ended = run(connection, scripts, prefix, (first, MUTANT_SEQUENCES)).await;
    ended.err().map(|found| (found.seed, found.passed + 1))
}

/// True if a sequence differs from the model on scripts with a mistake, and does not on those without.
async fn is_found_by(
    seed: u64,
    connection: &Connection,
    scripts: &Arc<Scripts>,
    prefix: &str,
) -> bool {
    if run(connection, scripts, prefix, (seed, 1)).await.is_ok() {
        return false;
    }
    let (standard, prefix) = (Scripts::standard(), format!("without-{prefix}"));
    if let Err(Difference { what, .. }) = run(connection, &standard, &prefix, (seed, 1)).await {
        panic!("seed {seed} differs on the scripts as they are: {what}");
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planted_mistake_is_found() {
    let server = server(Flavour::Valkey).await;
    let connection = connect(&server);
    let mut missed = Vec::new();
    for (index, mutant) in MUTANTS.iter().enumerate() {
        let mut scripts = Scripts::clone(&Scripts::standard());
        let script = (mutant.script)(&mut scripts);
        let name = mutant.name;
        let replaced = script.replaced(mutant.fragment, mutant.with);
        *script = replaced.unwrap_or_else(|| panic!("{name}: its fragment is not in the script"));
        let (scripts, prefix) = (Arc::new(scripts), format!("mutant{index}"));
        if let Some(seed) = SEEDS.to_replay(name) {
            if is_found_by(seed, &connection, &scripts, &prefix).await {
                continue;
            }
            println!(
                "{name}: seed {seed} no longer finds it: ONSALE_CONTROLS=write stores another"
            );
        }
        match search(&connection, &scripts, &format!("search{index}"), first_seed()).await {
            None => missed.push(name),
            Some((seed, after)) => {
                println!("{name}: found after {after} sequences");
                SEEDS.found(name, seed);
            }
        }
    }
    let first = first_seed();
    assert!(missed.is_empty(), "{MUTANT_SEQUENCES} sequences from {first} do not find {missed:?}");
}
