//! Postings: once by their key, and under the versions of both accounts, however many write at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::basics::guard::{Guard, without};
use engine::domain::basics::ids::PostingKey;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::ledger::posting::{PAUSES_MS, Posting, PostingKind};
use engine::domain::ledger::{Account, Balance, Transfer};
use engine::flows::post::{Posted, Refusal, post, post_withholding};
use engine::ports::{Accounts as _, PostReply, SeenAccount};
use futures_util::future::join_all;
use model_stores::{AccountsModel, seed_of_commit};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use shared::dynamodb::DynamoLedger;

use super::{Fixture, NOW};

const WRITERS: u32 = 64;
const EACH: u32 = 5;
/// Sequences in which the model and DynamoDB are asked the same.
const SEQUENCES: u64 = 12;
const STEPS: u32 = 40;

fn euros(amount: i64) -> Money {
    Money { amount_minor: MinorUnits(amount), currency: currency() }
}

fn currency() -> Currency {
    Currency::new("EUR").unwrap()
}

fn account(name: &str) -> Account {
    name.parse().unwrap()
}

fn posting(key: &str, kind: PostingKind, on: &str, amount: Money) -> Posting {
    let transfer = kind.transfer(account(on), amount).unwrap();
    Posting { key: PostingKey::new(key).unwrap(), transfer, at: NOW }
}

fn payout(key: &str, amount: i64) -> Posting {
    posting(key, PostingKind::Payout, "provider:stripe", euros(amount))
}

/// Posts without a pause.
async fn at_once(ledger: &DynamoLedger, posting: &Posting) -> Result<Posted, Refusal> {
    post(ledger, posting, async |_| ()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_posting_is_made_once_and_one_of_its_key_moves_the_same() {
    let fixture = Fixture::new().await;
    let ledger = fixture.orders.ledger();
    assert_eq!(at_once(&ledger, &payout("po_1", 500)).await, Ok(Posted::Made));
    assert_eq!(at_once(&ledger, &payout("po_1", 500)).await, Ok(Posted::Before));
    let later = Posting { at: NOW.plus_seconds(5), ..payout("po_1", 500) };
    assert_eq!(at_once(&ledger, &later).await, Ok(Posted::Before));
    let yen = Money { currency: Currency::new("JPY").unwrap(), ..euros(500) };
    for other in [
        payout("po_1", 501),
        posting("po_1", PostingKind::Payout, "provider:stripe", yen),
        posting("po_1", PostingKind::Payout, "provider:alipay", euros(500)),
        posting("po_1", PostingKind::PayoutBack, "provider:stripe", euros(500)),
    ] {
        assert_eq!(at_once(&ledger, &other).await, Err(Refusal::Differs), "{other:?}");
    }
    assert_eq!(ledger.posting(&payout("po_1", 1).key).await, Ok(Some(payout("po_1", 500))));
    assert_eq!(ledger.posting(&payout("po_2", 1).key).await, Ok(None));
    let moved = |incoming, outgoing| [(currency(), Balance { incoming, outgoing })].into();
    assert_eq!(ledger.balances(&Account::Bank).await, Ok(moved(0, 500)));
    assert_eq!(ledger.balances(&account("provider:stripe")).await, Ok(moved(500, 0)));
    assert_eq!(ledger.balances(&account("provider:alipay")).await, Ok([].into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_settled_what_it_has_and_no_more() {
    let fixture = Fixture::new().await;
    let ledger = fixture.orders.ledger();
    let merchant = "merchant:opera:carmen";
    let settle = |key, amount| posting(key, PostingKind::Settlement, merchant, euros(amount));
    assert_eq!(at_once(&ledger, &settle("s1", 1)).await, Err(Refusal::Short(0)));
    // What a batch of settled facts has given it.
    let numbers = [("in_minor", 700), ("out_minor", 0), ("balance_minor", 700), ("version", 1)];
    let numbers =
        numbers.map(|(name, value)| (name.to_owned(), AttributeValue::N(value.to_string())));
    let names = [("account", merchant), ("part", "EUR#0")];
    let names = names.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned())));
    let item = names.into_iter().chain(numbers).collect();
    let put = fixture.db.client().put_item().table_name(&fixture.db.config().tables.accounts);
    put.set_item(Some(item)).send().await.unwrap();
    assert_eq!(at_once(&ledger, &settle("s1", 701)).await, Err(Refusal::Short(700)));
    assert_eq!(at_once(&ledger, &settle("s1", 700)).await, Ok(Posted::Made));
    // It has nothing left, and the same again is still the same.
    assert_eq!(at_once(&ledger, &settle("s1", 700)).await, Ok(Posted::Before));
    // What it owes of other sales is withheld from the next one, and from nothing else.
    let back = posting("w0", PostingKind::SettlementBack, merchant, euros(500));
    assert_eq!(at_once(&ledger, &back).await, Ok(Posted::Made));
    let withholding =
        async |posting: Posting| post_withholding(&ledger, &posting, 120, async |_| ()).await;
    let owes = Err(Refusal::Owes { has: 500, owes: 120 });
    assert_eq!(withholding(settle("w1", 381)).await, owes);
    assert_eq!(withholding(payout("w2", 1)).await, Ok(Posted::Made));
    assert_eq!(withholding(settle("w1", 380)).await, Ok(Posted::Made));
    assert_eq!(withholding(settle("w1", 380)).await, Ok(Posted::Before));
    assert_eq!(at_once(&ledger, &settle("w3", 120)).await, Ok(Posted::Made));
    assert_eq!(at_once(&ledger, &settle("s1", 699)).await, Err(Refusal::Differs));
    assert_eq!(at_once(&ledger, &settle("s2", 1)).await, Err(Refusal::Short(0)));
    // And no more comes back than was settled.
    let back = |key, amount| posting(key, PostingKind::SettlementBack, merchant, euros(amount));
    assert_eq!(at_once(&ledger, &back("b1", 701)).await, Err(Refusal::Unsettled(700)));
    assert_eq!(at_once(&ledger, &back("b1", 700)).await, Ok(Posted::Made));
    assert_eq!(at_once(&ledger, &back("b1", 700)).await, Ok(Posted::Before));
    assert_eq!(at_once(&ledger, &back("b2", 1)).await, Err(Refusal::Unsettled(0)));
    assert_eq!(at_once(&ledger, &settle("s2", 700)).await, Ok(Posted::Made));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_read_an_older_account_writes_nothing_and_is_refused_after_three_more_tries() {
    let fixture = Fixture::new().await;
    let ledger = fixture.orders.ledger();
    let never = SeenAccount::default();
    assert_eq!(ledger.post(&payout("a", 5), [never; 2]).await, Ok(PostReply::Made));
    assert_eq!(ledger.post(&payout("b", 5), [never; 2]).await, Ok(PostReply::Conflict));
    let seen = [
        ledger.account(&Account::Bank, currency()).await.unwrap(),
        ledger.account(&account("provider:stripe"), currency()).await.unwrap(),
    ];
    assert_eq!((seen[0].version, seen[0].has, seen[1].has), (1, -5, 5));
    let richer = SeenAccount { posted: Balance { incoming: 1, ..seen[0].posted }, ..seen[0] };
    assert_eq!(ledger.post(&payout("b", 5), [richer, seen[1]]).await, Ok(PostReply::Conflict));
    assert_eq!(ledger.post(&payout("b", 5), seen).await, Ok(PostReply::Made));

    // Somebody else is always first.
    let others = AtomicU32::new(0);
    let pauses = std::sync::Mutex::new(Vec::new());
    let busy = Busy { ledger: &ledger, others: &others };
    let refused = post(&busy, &payout("c", 5), async |longest: Duration| {
        pauses.lock().unwrap().push(longest.as_millis());
    })
    .await;
    assert_eq!(refused, Err(Refusal::Busy));
    assert_eq!(*pauses.lock().unwrap(), PAUSES_MS.map(u128::from));
    assert_eq!(others.into_inner(), 4);
    assert_eq!(ledger.posting(&payout("c", 5).key).await, Ok(None));
}

/// A ledger in which another posting always comes between reading and writing.
struct Busy<'a> {
    ledger: &'a DynamoLedger,
    others: &'a AtomicU32,
}

impl engine::ports::Accounts for Busy<'_> {
    async fn account(
        &self,
        account: &Account,
        currency: Currency,
    ) -> engine::ports::Stored<SeenAccount> {
        self.ledger.account(account, currency).await
    }

    async fn posting(&self, key: &PostingKey) -> engine::ports::Stored<Option<Posting>> {
        self.ledger.posting(key).await
    }

    async fn post(
        &self,
        posting: &Posting,
        seen: [SeenAccount; 2],
    ) -> engine::ports::Stored<PostReply> {
        let other = self.others.fetch_add(1, Ordering::Relaxed);
        let first = payout(&format!("other-{other}"), 1);
        assert_eq!(self.ledger.post(&first, seen).await, Ok(PostReply::Made));
        self.ledger.post(posting, seen).await
    }
}

/// Posts at random from what was read now or earlier, and tells the first answer in which the model, perhaps without
/// a guard, and DynamoDB differ.
async fn compare(seed: u64, removed: Option<Guard>) -> Result<(), String> {
    let fixture = Fixture::new().await;
    let ledger = fixture.orders.ledger();
    let mut model = AccountsModel::default();
    let mut random = StdRng::seed_from_u64(seed);
    let kinds = [PostingKind::ProviderFee, PostingKind::Payout, PostingKind::PayoutBack];
    let mut seen: BTreeMap<Account, SeenAccount> = BTreeMap::new();
    for step in 0..STEPS {
        let kind = kinds[random.random_range(0..kinds.len())];
        let key = format!("key-{}", random.random_range(0..8));
        let amount = euros(random.random_range(1..4));
        let posting = posting(&key, kind, "provider:stripe", amount);
        let Transfer { from, to, .. } = &posting.transfer;
        for account in [from, to] {
            if random.random_bool(0.3) && seen.contains_key(account) {
                continue;
            }
            let read = ledger.account(account, currency()).await.unwrap();
            let expected = model.account(account, currency());
            if read != expected {
                return Err(format!("step {step}: {account} has {read:?}, the model {expected:?}"));
            }
            seen.insert(account.clone(), read);
        }
        let as_seen = [seen[from], seen[to]];
        let reply = ledger.post(&posting, as_seen).await.unwrap();
        let expected = match removed {
            Some(guard) => without(guard, || model.post(&posting, as_seen)),
            None => model.post(&posting, as_seen),
        };
        if reply != expected {
            return Err(format!("step {step}: {posting:?}: {reply:?}, the model {expected:?}"));
        }
        let made = ledger.posting(&posting.key).await.unwrap();
        if made != model.posting(&posting.key) {
            return Err(format!("step {step}: {made:?} is the posting of {key}"));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_of_accounts_answers_as_dynamodb() {
    let base = seed_of_commit();
    for seed in base..base + SEQUENCES {
        compare(seed, None).await.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_accounts_without_a_condition_is_found_out() {
    for guard in [Guard::PostingOnce, Guard::AccountSeen] {
        let mut found = None;
        for seed in 0..SEQUENCES {
            found = found.or(compare(seed, Some(guard)).await.err());
        }
        println!("without {guard}: {}", found.expect("the model differs from DynamoDB"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_posting_whose_answer_is_lost_is_made_once() {
    let fixture = Fixture::new().await;
    let lose = |request: &Request, before: usize| {
        let is_first = request.operation == "TransactWriteItems" && before == 0;
        if is_first { Act::LoseAnswer } else { Act::Forward }
    };
    let proxy = HttpProxy::start(&fixture.server.url, lose).await.unwrap();
    let ledger = DynamoLedger::new(fixture.db_at(proxy.url(), 4));
    let posted = at_once(&ledger, &payout("po_1", 500)).await.unwrap();
    assert!(matches!(posted, Posted::Made | Posted::Before));
    let bank = ledger.account(&Account::Bank, currency()).await.unwrap();
    assert_eq!((bank.has, bank.version), (-500, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_writers_of_one_account_lose_and_make_nothing() {
    let fixture = Fixture::new().await;
    let ledger = fixture.orders.ledger();
    let writers = (0..WRITERS).map(async |writer| {
        let (mut conflicts, mut busy) = (0_u32, 0_u32);
        for number in 0..EACH {
            let posting = payout(&format!("{writer}-{number}"), i64::from(writer + 1));
            loop {
                let retries = AtomicU32::new(0);
                let pause = async |longest: Duration| {
                    retries.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(longest).await;
                };
                let posted = post(&ledger, &posting, pause).await;
                conflicts += retries.into_inner();
                match posted {
                    Ok(Posted::Made) => break,
                    // Whoever posts tries again later, with the same key.
                    Err(Refusal::Busy) => busy += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        (conflicts, busy)
    });
    let each = join_all(writers).await;
    let conflicts: u32 = each.iter().map(|(conflicts, _)| conflicts).sum();
    let busy: u32 = each.iter().map(|(_, busy)| busy).sum();
    let all = i128::from(EACH) * (1..=i128::from(WRITERS)).sum::<i128>();
    println!(
        "{} postings of {WRITERS} writers on one account: {conflicts} conflicts tried again, {busy} refused as busy",
        WRITERS * EACH
    );
    assert!(conflicts > 0, "nobody met anybody");
    for (name, has) in [("bank", -all), ("provider:stripe", all)] {
        let seen = ledger.account(&account(name), currency()).await.unwrap();
        assert_eq!((seen.has, seen.version), (has, u64::from(WRITERS * EACH)), "{name}");
    }
}
