//! The pure models of the orders and the catalogue (`tests/model-stores`) answer as the real ones do on a
//! DynamoDB, and a model with a condition taken out of it is found out. The simulator and the model
//! checker stand on these models.

mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::guard::{Guard, without};
use engine::ports::{Catalogue as _, Orders as _, Published, StoreError, Stored};
use local::servers::DynamoDb;
use local::stores::sdk_config;
use model_stores::{Call, Reply, StoredSeeds, Stores, seed_in, seed_of_commit};
use shared::dynamodb::{Dynamo, DynamoCatalogue, DynamoOrders, StoreConfig, Tables, create_tables};
use tokio::task::JoinSet;

use self::random::SeededRng;
use crate::backends::{self, Server};

/// The number of sequences that run at once.
const AT_ONCE: u64 = 4;
/// Number of sequences, and again as many as long as an answer was not met.
const SEQUENCES: u64 = 60;
/// The most times that this number is run.
const MAX_TIMES: u64 = 20;
/// Most sequences that a mistake in the model may survive.
const MUTANT_SEQUENCES: u64 = 2000;
/// For each condition that is taken out a sequence that finds it.
const SEEDS: StoredSeeds =
    StoredSeeds { file: concat!(env!("CARGO_MANIFEST_DIR"), "/store_model/mutants.txt") };

/// Every answer that the random calls should meet; what never occurs is not tested. Left out are those that
/// they seldom meet (a bound on names, an archiving that goes through), which have tests of their own.
const ANSWERS: [&str; 60] = [
    "Orders::create Created",
    "Orders::create Exists",
    "Orders::create SeatsTaken",
    "Orders::create LimitReached",
    "Orders::create AttendeeTaken",
    "Orders::create Contract",
    "Orders::end Done",
    "Orders::end Conflict",
    "Orders::end Contract",
    "Orders::write_tombstone Done",
    "Orders::write_tombstone Conflict",
    "Orders::write_tombstone Contract",
    "Orders::settle Settled",
    "Orders::settle Known",
    "Orders::settle Conflict",
    "Orders::settle Gone",
    "Orders::record_refund Done",
    "Orders::record_refund Conflict",
    "Orders::record_refund Contract",
    "Orders::dispute Done",
    "Orders::dispute Conflict",
    "Orders::reissue Done",
    "Orders::reissue Conflict",
    "Orders::check_in Done",
    "Orders::check_in Conflict",
    "Orders::check_in_again Done",
    "Orders::check_in_again Conflict",
    "Orders::sync Vec",
    "Orders::get Some",
    "Orders::block_claims BlockClaims",
    "Orders::get None",
    "Orders::get_many Vec",
    "Orders::payment Some",
    "Orders::payment None",
    "Orders::payments Vec",
    "Orders::of_user Page",
    "Orders::tickets_of 0",
    "Orders::tickets_of 1",
    "Orders::due Vec",
    "Orders::award Done",
    "Orders::award Conflict",
    "Orders::awarded Some",
    "Orders::statistics Vec",
    "Catalogue::sale Some",
    "Catalogue::sale None",
    "Catalogue::sales Vec",
    "Catalogue::trains TrainsPage",
    "Catalogue::stops StopsPage",
    "Catalogue::map Some",
    "Catalogue::map None",
    "Catalogue::publish Done",
    "Catalogue::publish Conflict",
    "Catalogue::lease Done",
    "Catalogue::prolong Conflict",
    "Catalogue::loaded Done",
    "Catalogue::listed SalesPage",
    "Catalogue::retire Conflict",
    "Catalogue::delist Conflict",
    "Catalogue::keep_tokens ",
    "Catalogue::kept_tokens Vec",
];

/// The conditions that the models restate: without any of them a discrepancy must be found.
const MUTANTS: [Guard; 16] = [
    Guard::ClaimCondition,
    Guard::StateCondition,
    Guard::NumberOnce,
    Guard::BuyerLimit,
    Guard::AttendeeOnce,
    Guard::CallbackDedupe,
    Guard::SyncOnce,
    Guard::LeaseFence,
    Guard::CheckedInStays,
    Guard::CheckInOnce,
    Guard::IssueSeen,
    Guard::DisputeOpen,
    Guard::DisputesSeen,
    Guard::KeptCounted,
    Guard::WalletLimit,
    Guard::AwardSeen,
];

/// One sequence on both sides, in tables of its own.
struct Sequence {
    db: Dynamo,
    orders: DynamoOrders,
    catalogue: DynamoCatalogue,
    model: Stores,
    rng: SeededRng,
    without: Option<Guard>,
}

/// An answer as text, the way both sides are compared: of a sale its file, of an error its kind.
fn text(reply: &Stored<Reply>) -> String {
    match reply {
        Ok(Reply::Sale(Some(Published { sale, map, epoch, version, lifecycle }))) => {
            format!("Sale(Some({version}, {map:?}, {epoch:?}, {lifecycle:?}, {:?}))", sale.file())
        }
        Ok(reply) => format!("{reply:?}"),
        Err(StoreError::Contract(_)) => "Contract".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// The name of an answer: the first word inside its reply.
fn name(call: &Call, text: &str) -> String {
    let inner = text.split_once('(').map_or(text, |(_, inner)| inner);
    let word: String = inner.chars().take_while(|c| c.is_alphanumeric()).collect();
    let word = if inner.starts_with('[') { "Vec" } else { &word };
    format!("{} {word}", call.name())
}

impl Sequence {
    async fn new(server: &Server<DynamoDb>, seed: u64, without: Option<Guard>) -> Self {
        let tables = Tables::with_prefix(&backends::prefix());
        let config = StoreConfig { endpoint: Some(server.url.clone()), ..StoreConfig::new(tables) };
        let db = Dynamo::new(&sdk_config(), config);
        create_tables(db.client(), &db.config().tables).await.unwrap();
        Self {
            orders: DynamoOrders::new(db.clone()),
            catalogue: DynamoCatalogue::new(db.clone()),
            db,
            model: Stores::default(),
            rng: SeededRng::new(seed),
            without,
        }
    }

    /// What the real stores answer; `None` for a call of another port.
    async fn real(&self, call: &Call) -> Option<Stored<Reply>> {
        let Self { orders, catalogue, .. } = self;
        macro_rules! ask {
            ($($call:pat => $variant:ident: $answer:expr,)*) => {
                $(if let $call = call {
                    return Some($answer.await.map(Reply::$variant));
                })*
            };
        }
        ask! {
            Call::Create { order, limit } => Create: orders.create(order, *limit),
            Call::KeepAttempts { order } => KeepAttempts: orders.keep_attempts(order),
            Call::End { end } => End: orders.end(end),
            Call::WriteTombstone { tombstone } => WriteTombstone: orders.write_tombstone(tombstone),
            Call::Settle { payment, settlement, limit } =>
                Settle: orders.settle(payment, settlement, *limit),
            Call::RecordRefund { payment, order } =>
                RecordRefund: orders.record_refund(payment, order.as_ref()),
            Call::GiveBack { plan } => GiveBack: orders.give_back(plan),
            Call::RecordOrderRefund { refund, order } =>
                RecordOrderRefund: orders.record_order_refund(refund, order.as_ref()),
            Call::OrderRefund { key } => OrderRefund: orders.order_refund(*key),
            Call::OrderRefunds { order } => OrderRefunds: orders.order_refunds(*order),
            Call::Dispute { plan } => Dispute: orders.dispute(plan),
            Call::Reissue { plan } => Reissue: orders.reissue(plan),
            Call::CheckIn { plan } => CheckIn: orders.check_in(plan),
            Call::CheckInAgain { double } => CheckInAgain: orders.check_in_again(double),
            Call::Revoked { sale, from, most } => Revoked: orders.revoked(sale, *from, *most),
            Call::CheckIns { sale } => CheckIns: orders.check_ins(sale),
            Call::Doubles { sale, after, most } =>
                Doubles: orders.doubles(sale, after.as_ref(), *most),
            Call::Count { orders: paid, now } => Count: orders.sync(paid, *now),
            Call::Order { number } => Order: orders.get(*number),
            Call::ManyOrders { numbers } => ManyOrders: orders.get_many(numbers),
            Call::Payment { order, payment } => Payment: orders.payment(*order, payment),
            Call::Payments { order } => Payments: orders.payments(*order),
            Call::OrdersOf { user, before, most } =>
                OrdersOf: orders.of_user(user, *before, *most),
            Call::TicketsOf { sale, user } => TicketsOf: orders.tickets_of(sale, user),
            Call::Statement { user } => Statement: orders.statement(user),
            Call::Wallet { user, currency } => Wallet: orders.wallet(user, *currency),
            Call::Awarded { user, order } => Awarded: orders.awarded(user, *order),
            Call::Award { user, order, award, before } =>
                Award: orders.award(user, *order, award, *before),
            Call::Points { user } => Points: orders.points(user),
            Call::Due { shard, now, most } => Due: orders.due(*shard, *now, *most),
            Call::Claims { sale, tier, block } => Claims: orders.block_claims(sale, tier, *block),
            Call::Statistics { sale } => Statistics: orders.statistics(sale),
            Call::Sale { id, freshness } => Sale: catalogue.sale(id, *freshness),
            Call::Sales {} => Sales: catalogue.sales(),
            Call::Trains { day, from, to, after, now, most } => Trains:
                catalogue.trains(*day, from, to, after.as_ref(), *now, *most),
            Call::Stops { day, after, most } => Stops: catalogue.stops(*day, after.as_ref(), *most),
            Call::Map { id } => Map: catalogue.map(id),
            Call::KeepAttachment { attachment } =>
                KeepAttachment: catalogue.keep_attachment(attachment),
            Call::Attachment { hash } => Attachment: catalogue.attachment(*hash),
            Call::AttachmentKind { hash } => AttachmentKind: catalogue.attachment_kind(*hash),
            Call::Listed { after, most } => Listed: catalogue.listed(after.as_ref(), *most),
            Call::Publish { file, replaces } => Publish: catalogue.publish(file, *replaces),
            Call::Lease { id, epoch, now, until } =>
                Lease: catalogue.lease(id, epoch, *now, *until),
            Call::Prolong { id, epoch, until } => Prolong: catalogue.prolong(id, epoch, *until),
            Call::Loaded { id, epoch } => Loaded: catalogue.loaded(id, epoch),
            Call::Retire { id, epoch, version } =>
                Retire: catalogue.retire(id, epoch, *version),
            Call::Delist { id } => Delist: catalogue.delist(id),
            Call::KeepTokens { id, snapshot } => KeepTokens: catalogue.keep_tokens(id, snapshot),
            Call::KeptTokens { id, since } => KeptTokens: catalogue.kept_tokens(id, *since),
        }
        None
    }

    /// Gives one call to both sides; answers what both have said.
    async fn ask(&mut self, call: &Call) -> Result<String, String> {
        let real = self.real(call).await.expect("only orders and catalogue are asked");
        let now = self.rng.now();
        let mut apply = || self.model.apply(now, call);
        let model = match self.without {
            Some(guard) => without(guard, apply),
            None => apply(),
        };
        let (real, model) = (text(&real), text(&model));
        match real == model {
            true => Ok(model),
            false => Err(format!("{call:?}\n  DynamoDB: {real}\n  model:    {model}")),
        }
    }

    async fn items(&self, table: &str) -> Vec<BTreeMap<String, AttributeValue>> {
        let scan = self.db.client().scan().table_name(table).consistent_read(true);
        let found = scan.send().await.unwrap();
        assert!(found.last_evaluated_key.is_none(), "a sequence fits one page");
        found.items.unwrap_or_default().into_iter().map(|item| item.into_iter().collect()).collect()
    }

    /// What no port reads: the buyers' counts, whom they have named, the attendees.
    async fn compare_unread(&self) -> Result<(), String> {
        let tables = self.db.config().tables.clone();
        let (mut counts, mut attendees) = (BTreeMap::new(), BTreeMap::new());
        let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for item in self.items(&tables.orders).await {
            let sk = item["sk"].as_s().unwrap();
            if let Some(key) = sk.strip_prefix("buyer#") {
                let tickets: u16 = item["tickets"].as_n().unwrap().parse().unwrap();
                if tickets > 0 {
                    counts.insert(key.to_owned(), tickets);
                }
                if let Some(people) = item.get("named") {
                    let people = people.as_ss().unwrap().iter().cloned();
                    named.insert(key.to_owned(), people.collect());
                }
            }
            if let Some(key) = sk.strip_prefix("attendee#") {
                attendees.insert(key.to_owned(), item["order"].as_s().unwrap().clone());
            }
        }
        let orders = &self.model.orders;
        let model_counts: BTreeMap<String, u16> = orders
            .counts
            .iter()
            .map(|((sale, user), n)| (format!("{sale}#{user}"), n.get()))
            .collect();
        let model_attendees: BTreeMap<String, String> = orders
            .attendees
            .iter()
            .map(|((sale, name), order)| (format!("{sale}#{name}"), order.to_string()))
            .collect();
        let model_named: BTreeMap<String, BTreeSet<String>> = orders
            .named
            .iter()
            .map(|((sale, user), people)| {
                (format!("{sale}#{user}"), people.iter().map(ToString::to_string).collect())
            })
            .collect();
        let real = format!("{counts:?} {named:?} {attendees:?}");
        let model = format!("{model_counts:?} {model_named:?} {model_attendees:?}");
        let differs = || format!("at the end\n  DynamoDB: {real}\n  model:    {model}");
        if real == model { Ok(()) } else { Err(differs()) }
    }

    /// Runs it and compares every answer, and everything at the end. The answers by name.
    async fn run(mut self) -> Result<BTreeMap<String, usize>, String> {
        let mut answers = BTreeMap::new();
        for step in 0..self.rng.length() {
            let call = self.rng.call(&self.model);
            let answer = self.ask(&call).await;
            let answer = answer.map_err(|differs| format!("step {step}: {differs}"))?;
            *answers.entry(name(&call, &answer)).or_default() += 1;
        }
        for call in self.rng.everything() {
            self.ask(&call).await.map_err(|differs| format!("at the end: {differs}"))?;
        }
        self.compare_unread().await?;
        Ok(answers)
    }
}

/// The seed of the first sequence; each following sequence has the next.
fn first_seed() -> u64 {
    seed_in("ONSALE_SEED").unwrap_or_else(seed_of_commit)
}

/// Runs a number of sequences; stops at the first that finds a discrepancy, with its seed and how many
/// had passed.
async fn run(
    server: &Server<DynamoDb>,
    first: u64,
    sequences: u64,
    without: Option<Guard>,
) -> Result<BTreeMap<String, usize>, (u64, u64, String)> {
    let mut running = JoinSet::new();
    let mut waiting = first..first + sequences;
    let (mut all, mut passed) = (BTreeMap::new(), 0);
    loop {
        while running.len() < AT_ONCE as usize
            && let Some(seed) = waiting.next()
        {
            let sequence = Sequence::new(server, seed, without).await;
            running.spawn(async move { (seed, sequence.run().await) });
        }
        let Some(ended) = running.join_next().await else { return Ok(all) };
        let (seed, outcome) = ended.unwrap();
        for (answer, count) in outcome.map_err(|what| (seed, passed, what))? {
            *all.entry(answer).or_default() += count;
        }
        passed += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_answers_as_the_store() {
    let server = backends::dynamodb();
    let (seed, begun) = (first_seed(), Instant::now());
    let asked_for = seed_in("ONSALE_SEQUENCES");
    let sequences = asked_for.unwrap_or(SEQUENCES);
    println!("store: {sequences} sequences from ONSALE_SEED={seed}");
    let mut answers = BTreeMap::new();
    for time in 0..if asked_for.is_some() { 1 } else { MAX_TIMES } {
        let more = run(&server, seed + time * sequences, sequences, None).await;
        let more = more.unwrap_or_else(|(seed, passed, what)| {
            panic!(
                "after {passed} sequences; repeat with ONSALE_SEED={seed} ONSALE_SEQUENCES=1\n{what}"
            )
        });
        for (answer, count) in more {
            *answers.entry(answer).or_default() += count;
        }
        if missing(&answers).is_empty() {
            break;
        }
    }
    let calls: usize = answers.values().sum();
    println!("store: {calls} calls, {:.1} s: {answers:#?}", begun.elapsed().as_secs_f64());
    let missing = missing(&answers);
    assert!(asked_for.is_some() || missing.is_empty(), "the random calls never met {missing:?}");
}

/// The outcomes that should be met and were not.
fn missing(answers: &BTreeMap<String, usize>) -> Vec<&'static str> {
    ANSWERS.into_iter().filter(|name| !answers.contains_key(*name)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_taken_out_of_the_model_is_missed() {
    let server = backends::dynamodb();
    let mut missed = Vec::new();
    for guard in MUTANTS {
        let control = guard.to_string();
        if let Some(seed) = SEEDS.to_replay(&control) {
            let with_it = run(&server, seed, 1, None).await;
            assert!(with_it.is_ok(), "seed {seed} differs with {guard} in place: {with_it:?}");
            if run(&server, seed, 1, Some(guard)).await.is_err() {
                continue;
            }
            println!(
                "{guard}: seed {seed} no longer finds it: ONSALE_CONTROLS=write stores another"
            );
        }
        match run(&server, first_seed(), MUTANT_SEQUENCES, Some(guard)).await {
            Ok(_) => missed.push(guard),
            Err((seed, passed, what)) => {
                let step: String = what.chars().take_while(|c| *c != '{').collect();
                println!("without {guard}: found after {} sequences, {step}", passed + 1);
                SEEDS.found(&control, seed);
            }
        }
    }
    let first = first_seed();
    assert!(missed.is_empty(), "{MUTANT_SEQUENCES} sequences from {first} do not find {missed:?}");
}
