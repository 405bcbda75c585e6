//! Postings by the flow itself on the model of DynamoDB: in every order of the calls of two at once with one fault in
//! between, and in random ones of five with several. Each is made once, accounts have what the postings come to, and
//! no merchant is settled more than it has. Without each of the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use engine::domain::basics::guard::Guard;
#[cfg(debug_assertions)]
use engine::domain::basics::guard::without;
use engine::domain::basics::ids::PostingKey;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::posting::{Posting, PostingKind};
use engine::domain::ledger::{Account, Balance, entries};
use engine::flows::post::{Posted, Refusal, post};
use engine::ports::{Accounts, PostReply, SeenAccount, StoreError, Stored};
use model_stores::AccountsModel;
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::{SeededRng, base_seed, let_others_come_between};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// Runs with random orders of events.
const RUNS: u64 = 20_000;
/// How often a poster that was refused as busy, or got no answer, asks once more.
const REPEATS: usize = 2;
/// What the merchant has at first, in minor units.
const SOLD: i128 = 100;
/// What a refund takes of it.
const REFUNDED: i128 = 30;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// It happens, and its answer is lost.
    Lost,
    /// It does not happen.
    Refused,
}

struct Environment {
    accounts: AccountsModel,
    next: Fate,
    is_refunded: bool,
}

/// One poster's way to the accounts: each call is a point at which others may come between.
struct Client(Arc<Mutex<Environment>>);

fn locked(environment: &Mutex<Environment>) -> MutexGuard<'_, Environment> {
    environment.lock().unwrap()
}

impl Client {
    async fn call<T>(&self, act: impl FnOnce(&mut AccountsModel) -> T) -> Stored<T> {
        let_others_come_between().await;
        let mut environment = locked(&self.0);
        match std::mem::replace(&mut environment.next, Fate::Answered) {
            Fate::Answered => Ok(act(&mut environment.accounts)),
            Fate::Lost => {
                act(&mut environment.accounts);
                Err(StoreError::Unknown("the answer is lost".to_owned()))
            }
            Fate::Refused => Err(StoreError::Unavailable("not now".to_owned())),
        }
    }
}

impl Accounts for Client {
    async fn account(&self, account: &Account, currency: Currency) -> Stored<SeenAccount> {
        self.call(|accounts| accounts.account(account, currency)).await
    }

    async fn posting(&self, key: &PostingKey) -> Stored<Option<Posting>> {
        self.call(|accounts| accounts.posting(key)).await
    }

    async fn post(&self, posting: &Posting, seen: [SeenAccount; 2]) -> Stored<PostReply> {
        self.call(|accounts| accounts.post(posting, seen)).await
    }
}

fn currency() -> Currency {
    Currency::new("EUR").unwrap()
}

fn merchant() -> Account {
    "merchant:opera:carmen".parse().unwrap()
}

fn posting(key: &str, kind: PostingKind, amount: i64) -> Posting {
    let account = match kind {
        PostingKind::Settlement | PostingKind::SettlementBack => merchant(),
        PostingKind::ProviderFee
        | PostingKind::ProviderFeeBack
        | PostingKind::Payout
        | PostingKind::PayoutBack => "provider:stripe".parse().unwrap(),
    };
    let amount = Money { amount_minor: MinorUnits(amount), currency: currency() };
    let transfer = kind.transfer(account, amount).unwrap();
    Posting { key: PostingKey::new(key).unwrap(), transfer, at: NOW }
}

/// Accounts are what the postings come to (I8), a merchant has what it may have (I9).
fn check(environment: &Environment) -> Result<(), String> {
    let AccountsModel { posted, postings, .. } = &environment.accounts;
    let expected = entries(postings.values().map(|posting| &posting.transfer));
    let found: BTreeMap<(Account, Currency), Balance> =
        posted.iter().map(|(key, (balance, _))| (key.clone(), *balance)).collect();
    if found != expected {
        return Err(format!("I8: postings come to {expected:?}, accounts have {found:?}"));
    }
    let merchant = environment.accounts.account(&merchant(), currency());
    if merchant.posted.left() > 0 {
        return Err(format!("I9: {} more came back than was settled", merchant.posted.left()));
    }
    // A refund may come after a settlement, and then the merchant owes.
    if merchant.has < 0 && !environment.is_refunded {
        return Err(format!("I9: the merchant has {}", merchant.has));
    }
    Ok(())
}

/// Who is at work: what it posts, how often it asked, and its flow.
struct Poster {
    posting: Posting,
    asked: usize,
    flow: Pin<Box<dyn Future<Output = Result<Posted, Refusal>>>>,
}

fn flow(
    environment: &Arc<Mutex<Environment>>,
    posting: &Posting,
) -> Pin<Box<dyn Future<Output = Result<Posted, Refusal>>>> {
    let (client, posting) = (Client(Arc::clone(environment)), posting.clone());
    Box::pin(async move { post(&client, &posting, async |_| ()).await })
}

/// One run: `choose` picks one of so many, for whose turn it is and for what becomes of a call.
fn run(
    asked: &[Posting],
    mut refunds: u32,
    mut faults: u32,
    choose: &mut dyn FnMut(usize) -> usize,
    outcomes: &mut BTreeMap<String, u64>,
) -> Result<(), String> {
    let mut accounts = AccountsModel::default();
    let sold = Balance { incoming: SOLD, ..Balance::default() };
    accounts.moved.insert((merchant(), currency()), sold);
    let environment = Environment { accounts, next: Fate::Answered, is_refunded: false };
    let environment = Arc::new(Mutex::new(environment));
    let start = |posting: &Posting| Poster {
        posting: posting.clone(),
        asked: 0,
        flow: flow(&environment, posting),
    };
    let mut posters: Vec<Poster> = asked.iter().map(start).collect();
    let mut made: BTreeMap<PostingKey, u32> = BTreeMap::new();
    let mut context = Context::from_waker(Waker::noop());
    while !posters.is_empty() {
        let turn = choose(posters.len() + usize::from(refunds > 0));
        let Some(poster) = posters.get_mut(turn) else {
            refunds -= 1;
            let mut environment = locked(&environment);
            environment.is_refunded = true;
            let moved = environment.accounts.moved.get_mut(&(merchant(), currency())).unwrap();
            moved.outgoing += REFUNDED;
            continue;
        };
        let fate = match if faults > 0 { choose(3) } else { 0 } {
            0 => Fate::Answered,
            1 => Fate::Lost,
            _ => Fate::Refused,
        };
        faults -= u32::from(fate != Fate::Answered);
        locked(&environment).next = fate;
        let polled = poster.flow.as_mut().poll(&mut context);
        check(&locked(&environment))?;
        let Poll::Ready(outcome) = polled else { continue };
        let name = match &outcome {
            Err(refusal) => refusal.to_string().split(|c: char| c.is_ascii_digit()).collect(),
            Ok(posted) => format!("{posted:?}"),
        };
        *outcomes.entry(name).or_default() += 1;
        match outcome {
            Ok(posted) => {
                let known = locked(&environment).accounts.posting(&poster.posting.key);
                if known.as_ref().map(|known| &known.transfer) != Some(&poster.posting.transfer) {
                    return Err(format!("I10: {:?} is {posted:?}, and not there", poster.posting));
                }
                let times = made.entry(poster.posting.key.clone()).or_default();
                *times += u32::from(posted == Posted::Made);
                if *times > 1 {
                    return Err(format!("I10: {:?} was made twice", poster.posting));
                }
            }
            Err(Refusal::Store(_) | Refusal::Busy) if poster.asked < REPEATS => {
                poster.asked += 1;
                poster.flow = flow(&environment, &poster.posting);
                continue;
            }
            Err(_) => {}
        }
        posters.remove(turn);
    }
    Ok(())
}

/// What two at once are asked for, where the order of their calls matters.
fn pairs() -> [Vec<Posting>; 5] {
    [
        vec![posting("a", PostingKind::Settlement, 70), posting("b", PostingKind::Settlement, 60)],
        vec![posting("a", PostingKind::Settlement, 70), posting("a", PostingKind::Settlement, 70)],
        vec![posting("a", PostingKind::Settlement, 70), posting("a", PostingKind::Settlement, 71)],
        vec![posting("a", PostingKind::Payout, 70), posting("b", PostingKind::PayoutBack, 70)],
        vec![
            posting("a", PostingKind::Settlement, 70),
            posting("b", PostingKind::SettlementBack, 60),
        ],
    ]
}

/// Runs every order of events of each pair, with one fault at any call. Their number.
fn every_order(outcomes: &mut BTreeMap<String, u64>) -> Result<u64, String> {
    let mut runs = 0;
    for asked in pairs() {
        // What was chosen, of how many: the last choice that has another one left goes on to it.
        let mut way: Vec<(usize, usize)> = Vec::new();
        loop {
            let mut at = 0;
            let mut choose = |of: usize| {
                if at == way.len() {
                    way.push((0, of));
                }
                at += 1;
                way[at - 1].0
            };
            run(&asked, 0, 1, &mut choose, outcomes)?;
            runs += 1;
            while way.pop_if(|(chosen, of)| *chosen + 1 == *of).is_some() {}
            let Some((chosen, _)) = way.last_mut() else { break };
            *chosen += 1;
        }
    }
    Ok(runs)
}

/// Five posters with random orders of events, refunds and faults.
fn random_order(seed: u64, outcomes: &mut BTreeMap<String, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let mut below = |end: usize| usize::try_from(rng.below(u64::try_from(end).unwrap())).unwrap();
    let asked: Vec<Posting> = (0..5)
        .map(|_| {
            let kind = PostingKind::ALL[below(PostingKind::ALL.len())];
            // Keys that come twice, with the same amount and with another one.
            let key = ["a", "b", "c", "d"][below(4)];
            posting(&format!("{kind}-{key}"), kind, [40, 60, 70][below(3)])
        })
        .collect();
    let (refunds, faults) = (u32::from(below(3) == 0), u32::try_from(below(4)).unwrap());
    run(&asked, refunds, faults, &mut below, outcomes)
}

#[test]
fn each_posting_is_made_once_and_accounts_are_their_postings() {
    let mut outcomes = BTreeMap::new();
    let runs = every_order(&mut outcomes).unwrap();
    println!("{runs} orders of events of two postings: {outcomes:?}");
    let base = base_seed();
    for seed in base..base + RUNS {
        if let Err(what) = random_order(seed, &mut outcomes) {
            panic!("ONSALE_SIM_BASE={seed}: {what}");
        }
    }
    println!("and {RUNS} random ones of five from ONSALE_SIM_BASE={base}: {outcomes:?}");
    for outcome in ["Made", "Before", "the account has only ", "only  was settled"] {
        assert!(outcomes.contains_key(outcome), "{outcome} never came");
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_postings_is_found() {
    for guard in Guard::OF_POSTINGS {
        let what = without(guard, || every_order(&mut BTreeMap::new())).unwrap_err();
        println!("{guard:<18} {what}");
        each_absence("postings", [guard], RUNS, random_order);
    }
}
