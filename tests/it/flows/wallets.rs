//! Wallets on real servers: filled, paid from and refunded into, cut off at every call; two orders at once, many
//! writers at once, money that is spent already, and what a lost dispute takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use engine::domain::basics::ids::{Legs, ProviderId, SaleId, TierId, UserId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::Mint;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::ledger::wallet::WalletEntry;
use engine::domain::order::fact::FactKind;
use engine::domain::order::refund::RefundState;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, Order, OrderState};
use engine::domain::payment::refund::RefundRefusal;
use engine::domain::sale::{MerchantTerms, Sale, SaleFile};
use engine::flows::cancel_sale;
use engine::flows::dispute::record_dispute;
use engine::flows::give_back::{self, give_back};
use engine::flows::pay::pay;
use engine::flows::publish::{self, publish};
use engine::flows::refund::{Outcome, refund_part};
use engine::flows::reserve::{Reservation, reserve};
use engine::flows::wallet::{self, Refusal};
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports};
use fake_payments::PROVIDER;
use futures_util::future::join_all;
use serde_json::json;

use super::crash_points::at_every_call;
use super::crashing::{Crashing, Cut};
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, epoch, whole};

const FILLS: &str = "top-ups";
const OPERA: &str = "opera";
/// A sale whose tickets stay valid whatever becomes of the money.
const KEPT: &str = "kept";

fn euro() -> Currency {
    Currency::new("EUR").unwrap()
}

fn sales() -> [Sale; 4] {
    let sale = |name: &str, rest: serde_json::Value| {
        let mut file = json!({
            "sale": name, "title": name, "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
            "limit_per_buyer": 100, "pay_window_seconds": PAY_WINDOW_SECONDS,
            "tiers": [{ "tier": "t", "name": "T", "price_minor": 500, "general_admission": 900 }]
        });
        file.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        Sale::new(serde_json::from_value(file).unwrap()).unwrap()
    };
    [
        sale(FILLS, json!({ "merchant": { "merchant": "wallet" } })),
        sale(OPERA, json!({ "wallet": true })),
        sale("cash", json!({})),
        sale(KEPT, json!({ "wallet": true, "lost_dispute": "keeps" })),
    ]
}

/// The fixture with the sales.
struct Bank(Fixture);

impl Bank {
    async fn open() -> Self {
        let fixture = Fixture::start().await;
        for sale in sales() {
            publish(&fixture.ports, &sale, &epoch(sale.id().as_str()), NOW).await.unwrap();
        }
        Self(fixture)
    }

    async fn ordered(&self, user: &str, sale: &str, count: u16) -> Order {
        static PROCESSES: AtomicU16 = AtomicU16::new(100);
        let mint = Mint::new((PROCESSES.fetch_add(1, Ordering::Relaxed) % 900).into());
        let sale = SaleId::new(sale).unwrap();
        let published = self.0.ports.catalogue().sale(&sale, Freshness::Fresh).await;
        let published = published.unwrap().unwrap();
        let (user, tier) = (UserId::new(user).unwrap(), TierId::new("t").unwrap());
        let choice = Choice::Best { count, together: Together::Preferred };
        let line = Line { tier, legs: Legs::ONE, choice };
        let lines = vec![RequestedLine { line, price_minor: MinorUnits(500), attendees: vec![] }];
        let number = mint.mint(NOW, &user);
        let reservation = Reservation { published, number, user, lines, exchange: None };
        reserve(&self.0.ports, &reservation, NOW).await.unwrap().order
    }

    fn captured(&self, order: &Order) -> Capture {
        let payment = format!("pi_{}", order.number);
        self.0.provider.capture(&payment, order.number, order.total, NOW).unwrap()
    }

    /// A buyer has filled a wallet with so many times five euros.
    async fn filled(&self, user: &str, count: u16) -> (Order, Capture) {
        let order = self.ordered(user, FILLS, count).await;
        let capture = self.captured(&order);
        pay(&self.0.ports, &capture, NOW).await.unwrap();
        (self.now_is(&order).await, capture)
    }

    async fn now_is(&self, order: &Order) -> Order {
        self.0.ports.orders().get(order.number).await.unwrap().unwrap()
    }

    async fn has(&self, user: &str) -> i128 {
        let user = UserId::new(user).unwrap();
        self.0.ports.orders().wallet(&user, euro()).await.unwrap().left()
    }

    /// What has moved a buyer's wallet, which is what it has.
    async fn entries(&self, user: &str) -> Vec<(FactKind, i64)> {
        let user_id = UserId::new(user).unwrap();
        let statement = self.0.ports.orders().statement(&user_id).await.unwrap();
        let Some(wallet) = statement.wallets.get(&euro()) else { return Vec::new() };
        let entry = |entry: &WalletEntry| (entry.name.kind, entry.change.amount_minor.0);
        let entries: Vec<_> = wallet.entries.iter().map(entry).collect();
        let sum: i64 = entries.iter().map(|(_, amount)| amount).sum();
        assert_eq!(i128::from(sum), self.has(user).await, "{entries:?}");
        entries
    }

    async fn paid_from_wallet(&self, order: &Order) -> Result<Order, Refusal> {
        wallet::pay(&self.0.ports, &order.user, order.number, NOW).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_is_filled_once_from_any_crash_point_on() {
    let bank = Bank::open().await;
    let calls = at_every_call(async |call, cut: Cut| {
        let user = format!("u{call}{cut:?}");
        let order = bank.ordered(&user, FILLS, 2).await;
        let capture = bank.captured(&order);
        let crashing = Crashing::at(&bank.0.ports, call, cut);
        let _ = pay(&crashing, &capture, NOW).await;
        for _ in 0..2 {
            pay(&bank.0.ports, &capture, NOW).await.unwrap();
        }
        assert_eq!(bank.entries(&user).await, [(FactKind::Paid, 1000)]);
        crashing.has_died()
    })
    .await;
    println!("a wallet that is filled: cut off at each of {calls} calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_paid_and_refunded_once_from_any_crash_point_on() {
    let bank = Bank::open().await;
    let calls = at_every_call(async |call, cut: Cut| {
        let user = format!("u{call}{cut:?}");
        bank.filled(&user, 2).await;
        let order = bank.ordered(&user, OPERA, 1).await;
        let paying = Crashing::at(&bank.0.ports, call, cut);
        let _ = wallet::pay(&paying, &order.user, order.number, NOW).await;
        for _ in 0..2 {
            let paid = bank.paid_from_wallet(&order).await.unwrap();
            assert_eq!(paid.state, OrderState::Paid);
        }
        assert_eq!(bank.entries(&user).await, [(FactKind::Paid, 1000), (FactKind::Paid, -500)]);

        let back = Crashing::at(&bank.0.ports, call, cut);
        let _ = give_back(&back, None, order.number, &whole(), NOW).await;
        let made = give_back(&bank.0.ports, None, order.number, &whole(), NOW).await.unwrap();
        let sending = Crashing::at(&bank.0.ports, call, cut);
        let _ = refund_part(&sending, made.refund.key, NOW).await;
        for _ in 0..2 {
            let sent = refund_part(&bank.0.ports, made.refund.key, NOW).await.unwrap();
            let Outcome::Asked(refund) = sent else { panic!("{sent:?}") };
            assert_eq!(refund.state, RefundState::Refunded);
        }
        let refunded = [(FactKind::Paid, 1000), (FactKind::Paid, -500), (FactKind::Refunded, 500)];
        assert_eq!(bank.entries(&user).await, refunded);
        assert_eq!(bank.now_is(&order).await.state, OrderState::Refunded);
        paying.has_died() || back.has_died() || sending.has_died()
    })
    .await;
    println!("an order that a wallet pays: cut off at each of {calls} calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_pays_no_more_than_it_has_and_gives_back_no_more_than_is_left() {
    let bank = Bank::open().await;
    let (filled, _) = bank.filled("li", 1).await;
    let [first, second] = [bank.ordered("li", OPERA, 1).await, bank.ordered("li", OPERA, 1).await];
    let (one, other) = tokio::join!(bank.paid_from_wallet(&first), bank.paid_from_wallet(&second));
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1, "{one:?} {other:?}");
    let refused = one.err().or(other.err());
    assert_eq!(refused, Some(Refusal::Short(0)));
    // What has filled it is spent.
    let refused = give_back(&bank.0.ports, None, filled.number, &whole(), NOW).await;
    let short = RefundRefusal::WalletShort(MinorUnits::ZERO);
    assert_eq!(refused, Err(give_back::Refusal::Refused(short)));
    assert_eq!(bank.has("li").await, 0);
    // Where it is not, it goes back the way it came.
    let (filled, capture) = bank.filled("wu", 2).await;
    let made = give_back(&bank.0.ports, None, filled.number, &whole(), NOW).await.unwrap();
    assert_eq!(bank.has("wu").await, 0, "it is taken before it is sent");
    refund_part(&bank.0.ports, made.refund.key, NOW).await.unwrap();
    assert_eq!(bank.has("wu").await, 0);
    let ledger = bank.0.provider.ledger();
    let entry = ledger.iter().find(|entry| entry.payment == capture.key.payment.as_str()).unwrap();
    assert_eq!(entry.refunds.len(), 1, "{entry:?}");

    // Only the buyer's own orders, of sales that take wallets, in time, and not what fills one.
    bank.filled("sun", 1).await;
    let order = bank.ordered("sun", OPERA, 1).await;
    let stranger = UserId::new("wu").unwrap();
    let not_theirs = wallet::pay(&bank.0.ports, &stranger, order.number, NOW).await;
    assert_eq!(not_theirs, Err(Refusal::NotFound));
    let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let too_late = wallet::pay(&bank.0.ports, &order.user, order.number, late).await;
    assert_eq!(too_late, Err(Refusal::TooLate(order.pay_by)));
    for sale in ["cash", FILLS] {
        let order = bank.ordered("sun", sale, 1).await;
        assert_eq!(bank.paid_from_wallet(&order).await, Err(Refusal::NotTaken), "{sale}");
    }
    let paid = bank.ordered("sun", "cash", 1).await;
    pay(&bank.0.ports, &bank.captured(&paid), NOW).await.unwrap();
    let refused = bank.paid_from_wallet(&paid).await;
    assert_eq!(refused, Err(Refusal::Resolved(OrderState::Paid)));
    assert_eq!(bank.has("sun").await, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_stays_money_and_is_refunded_however_late() {
    let bank = Bank::open().await;
    // Neither is a sale of money turned into one of tickets, nor the other way round, nor is the former cancelled.
    let [fills, opera, ..] = sales();
    for (sale, merchant) in [(&fills, "opera"), (&opera, "wallet")] {
        let merchant =
            MerchantTerms { merchant: merchant.parse().unwrap(), ..MerchantTerms::house() };
        let file = SaleFile { merchant: Some(merchant), wallet: false, ..sale.file().clone() };
        let other = Sale::new(file).unwrap();
        let refused = publish(&bank.0.ports, &other, &epoch("other"), NOW).await;
        let refused = refused.map(drop).unwrap_err();
        assert!(matches!(&refused, publish::Refusal::Invalid(_)), "{refused}");
    }
    let refused = cancel_sale::stop(&bank.0.ports, fills.id(), &epoch("stop"), NOW).await;
    let refused = refused.map(drop).unwrap_err().to_string();
    assert_eq!(refused, "state: must not be cancelled in a sale that fills wallets");
    // A provider takes refunds for a year, and nobody is asked for what goes into a wallet.
    bank.filled("qian", 2).await;
    let order = bank.ordered("qian", OPERA, 1).await;
    bank.paid_from_wallet(&order).await.unwrap();
    let years_later = NOW.plus_seconds(3 * 366 * 86_400);
    let made = give_back(&bank.0.ports, None, order.number, &whole(), years_later).await.unwrap();
    refund_part(&bank.0.ports, made.refund.key, years_later).await.unwrap();
    assert_eq!(bank.has("qian").await, 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_lost_dispute_takes_is_owed() {
    let bank = Bank::open().await;
    let (_, capture) = bank.filled("zhou", 2).await;
    let order = bank.ordered("zhou", KEPT, 1).await;
    bank.paid_from_wallet(&order).await.unwrap();
    let payment = capture.key.payment.as_str();
    let dispute = bank.0.provider.open_dispute(payment, MinorUnits(1000), false, NOW).unwrap();
    let id = dispute.parse().unwrap();
    let provider = ProviderId::new(PROVIDER).unwrap();
    record_dispute(&bank.0.ports, &provider, &id, NOW).await.unwrap();
    assert_eq!(bank.has("zhou").await, 500, "whose it is, is not decided");
    bank.0.provider.close_dispute(&dispute, false, NOW).unwrap();
    for _ in 0..2 {
        record_dispute(&bank.0.ports, &provider, &id, NOW).await.unwrap();
    }
    assert_eq!(bank.has("zhou").await, -500);
    let order = bank.ordered("zhou", OPERA, 1).await;
    assert_eq!(bank.paid_from_wallet(&order).await, Err(Refusal::Short(-500)));
    // What fills it pays that first.
    bank.filled("zhou", 2).await;
    bank.paid_from_wallet(&order).await.unwrap();
    assert_eq!(bank.has("zhou").await, 0);
}

/// Finding H2 of top-ups: what was bought with the money that a lost dispute takes is taken back, the newest first, until the
/// wallet has no debt. A ticket that has let somebody in is passed over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_dispute_of_a_top_up_takes_the_newest_unused_tickets_back() {
    let bank = Bank::open().await;
    let (_, capture) = bank.filled("thief", 3).await;
    let mut bought = Vec::new();
    for _ in 0..3 {
        let order = bank.ordered("thief", OPERA, 1).await;
        bank.paid_from_wallet(&order).await.unwrap();
        bought.push(order);
    }
    let payment = capture.key.payment.as_str();
    let dispute = bank.0.provider.open_dispute(payment, MinorUnits(1000), false, NOW).unwrap();
    bank.0.provider.close_dispute(&dispute, false, NOW).unwrap();
    let (provider, id) = (ProviderId::new(PROVIDER).unwrap(), dispute.parse().unwrap());
    for _ in 0..2 {
        record_dispute(&bank.0.ports, &provider, &id, NOW).await.unwrap();
    }
    let mut live = Vec::new();
    for order in &bought {
        live.push(bank.now_is(order).await.live_tickets().count());
    }
    assert_eq!((live, bank.has("thief").await), (vec![1, 0, 0], 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_writers_make_no_money_and_lose_none() {
    const WRITERS: u16 = 64;
    const FOR: u16 = 40;
    let bank = Arc::new(Bank::open().await);
    let locks = bank.0.ports.wallet_locks();
    bank.filled("alone", FOR).await;
    let mut alone = Vec::new();
    for _ in 0..FOR {
        alone.push(bank.ordered("alone", OPERA, 1).await);
    }
    let begun = Instant::now();
    for order in &alone {
        bank.paid_from_wallet(order).await.unwrap();
    }
    let a_second = |begun: Instant| f64::from(FOR) / begun.elapsed().as_secs_f64();
    println!("one writer alone: {:.0} payments a second", a_second(begun));
    for locked in [true, false] {
        let user = format!("busy-{locked}");
        bank.filled(&user, FOR).await;
        let mut orders = Vec::new();
        for _ in 0..WRITERS {
            orders.push(bank.ordered(&user, OPERA, 1).await);
        }
        let (begun, retried) = (Instant::now(), Arc::new(AtomicU16::new(0)));
        let paying = orders.into_iter().map(|order| {
            let (bank, locks) = (Arc::clone(&bank), locks.clone());
            let retried = Arc::clone(&retried);
            tokio::spawn(async move {
                loop {
                    let paying = bank.paid_from_wallet(&order);
                    let paid = match locked {
                        true => locks.with(&order.user, paying).await,
                        false => paying.await,
                    };
                    match paid {
                        Ok(_) => return true,
                        Err(Refusal::Short(0)) => return false,
                        // Others were at work each time: a buyer tries again.
                        Err(Refusal::Store(error)) => {
                            assert!(error.retryable(), "{error}");
                            retried.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        });
        let paid = join_all(paying).await.into_iter().filter(|paid| *paid.as_ref().unwrap());
        assert_eq!(paid.count(), usize::from(FOR), "locked: {locked}");
        println!(
            "{WRITERS} writers {} the lock: {:.0} payments a second, {} were told to try again",
            if locked { "with" } else { "without" },
            a_second(begun),
            retried.load(Ordering::Relaxed)
        );
        assert_eq!(bank.has(&user).await, 0);
        assert_eq!(bank.entries(&user).await.len(), usize::from(FOR) + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_its_owners_alone() {
    let fixture = Fixture::start().await;
    let locks = fixture.ports.wallet_locks();
    let [user, other] = ["7", "8"].map(|user| UserId::new(user).unwrap());
    let owner = locks.take(&user).await.unwrap().unwrap();
    assert_eq!(locks.take(&user).await, Ok(None), "it is had by somebody");
    let others = locks.take(&other).await.unwrap().unwrap();
    assert_eq!(locks.give_back(&user, &others).await, Ok(false));
    assert_eq!(locks.take(&user).await, Ok(None), "whoever does not have it cannot give it back");
    assert_eq!(locks.give_back(&user, &owner).await, Ok(true));
    assert_eq!(locks.give_back(&user, &owner).await, Ok(false));
    // Nobody waits for an owner who has died for longer than the lock lives.
    let mut redis = fixture.redis().await;
    let owner = locks.take(&user).await.unwrap().unwrap();
    let left: i64 =
        redis::cmd("PTTL").arg("{wallet:7}:lock").query_async(&mut redis).await.unwrap();
    assert!((1..=5000).contains(&left), "{left} ms");
    let () = redis::cmd("UNLINK").arg("{wallet:7}:lock").query_async(&mut redis).await.unwrap();
    let next = locks.take(&user).await.unwrap().unwrap();
    assert_eq!(locks.give_back(&user, &owner).await, Ok(false), "it is another's by now");
    assert_eq!(locks.give_back(&user, &next).await, Ok(true));
    // With nobody to ask there is no lock, and what is to be done is done.
    drop(fixture);
    assert_eq!(locks.with(&user, async { 7 }).await, 7);
}
