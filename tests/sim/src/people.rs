//! What people and workers of a crowd do, each as one flow: order, pay, ask for money back, send it, end an order,
//! settle facts. What came of each is told in a word.

use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

use engine::domain::basics::ids::{
    Epoch, InventoryId, Legs, PaymentId, ProviderId, SaleId, TierId, UserId,
};
use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::order_refund::RefundKey;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, Order, OrderState, PaymentKey};
use engine::domain::payment::refund::RefundRequest;
use engine::domain::sale::Sale;
use engine::flows::expire::{Expiry, expire_all};
use engine::flows::give_back::{self, give_back};
use engine::flows::pay::pay;
use engine::flows::publish::publish as publish_sale;
use engine::flows::refund::{refund, refund_part};
use engine::flows::reserve::{Refusal, Reservation, reserve};
use engine::flows::sync::sync;
use engine::ports::{Catalogue as _, Freshness, Ports as _, StoreError};
use model_stores::{Caller, Stores};

use crate::crowd::{Client, Flow, finish};
use crate::random::SeededRng;

/// What a broken contract of a store is called: none is ever broken.
pub const BROKEN: &str = "broken";

/// A request of a store that failed, in a word.
#[must_use]
pub fn failed(error: &StoreError) -> &'static str {
    if matches!(error, StoreError::Contract(_)) { BROKEN } else { "failed" }
}

/// The one capture that there may be of an order.
///
/// # Panics
/// Never: the names are valid.
#[must_use]
pub fn capture_of(order: &Order) -> Capture {
    let payment = PaymentId::new(format!("pi_{}", order.number)).expect("a valid name");
    let key = PaymentKey { provider: ProviderId::new("stripe").expect("a valid name"), payment };
    Capture { key, order: order.number, amount: order.total, attempt: None }
}

/// Publishes a sale; everything is in order then.
///
/// # Panics
/// If it cannot be published.
pub fn publish(client: &Client, sale: Sale) {
    let publishing = client.clone();
    let published = finish(Box::pin(async move {
        let (at, epoch) = (publishing.now(), Epoch::new("first").expect("a valid name"));
        let published = publish_sale(&Caller(publishing), &sale, &epoch, at).await;
        published.map_or("not published", |_| "published")
    }));
    assert_eq!(published, "published");
}

/// What somebody orders: that many tickets of a tier, each one's best, for what they give up, if they do.
#[derive(Debug)]
pub struct Wish {
    /// The number that the order shall have.
    pub number: OrderNumber,
    pub user: UserId,
    pub sale: SaleId,
    /// The tier, by its name.
    pub tier: &'static str,
    pub count: u16,
    /// What is given for it.
    pub exchange: Option<ExchangeRequest>,
}

/// Orders tickets.
///
/// # Panics
/// If the sale has no such tier.
pub fn buyer(client: &Client, wish: Wish) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        let at = client.now();
        let ports = Caller(client);
        let published = match ports.catalogue().sale(&wish.sale, Freshness::Fresh).await {
            Ok(Some(published)) => published,
            Ok(None) => return BROKEN,
            Err(error) => return failed(&error),
        };
        let tier = TierId::new(wish.tier).expect("a valid name");
        let of_sale = published.sale.tier(&tier).and_then(|tier| tier.price_minor(Legs::ONE));
        let price_minor = of_sale.expect("a tier of the sale");
        let choice = Choice::Best { count: wish.count, together: Together::Preferred };
        let line = Line { tier, legs: Legs::ONE, choice };
        let lines = vec![RequestedLine { line, price_minor, attendees: Vec::new() }];
        let Wish { number, user, exchange, .. } = wish;
        let reservation = Reservation { published, number, user, lines, exchange };
        match reserve(&ports, &reservation, at).await {
            Ok(reserved) if reserved.order.state == OrderState::Paid => "exchanged at once",
            Ok(_) => "ordered",
            Err(Refusal::Store(error)) => failed(&error),
            Err(Refusal::Exchange(_)) => "not exchanged",
            Err(Refusal::Resolved(_)) => "called off",
            Err(_) => "not ordered",
        }
    })
}

/// The provider tells of a capture.
pub fn payer(client: &Client, capture: Capture) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        let at = client.now();
        match pay(&Caller(client), &capture, at).await {
            Ok(record) if record.refund.is_none() => "paid at the provider",
            Ok(_) => "sent back whole",
            Err(error) => failed(&error),
        }
    })
}

/// An operator asks for money of an order, or for its tickets, to be given back.
pub fn operator(client: &Client, order: OrderNumber, request: RefundRequest) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        let at = client.now();
        match give_back(&Caller(client), None, order, &request, at).await {
            Ok(_) => "refunded",
            Err(give_back::Refusal::Store(error)) => failed(&error),
            Err(_) => "not refunded",
        }
    })
}

/// A refund is sent to its provider.
pub fn worker(client: &Client, key: RefundKey) -> Flow {
    let client = client.clone();
    Box::pin(async move {
        let at = client.now();
        refund_part(&Caller(client), key, at)
            .await
            .map_or_else(|error| failed(&error), |_| "sent back")
    })
}

/// The time of an order is up.
pub fn deadline(client: &Client, order: &Order) -> Flow {
    let (client, number, sale) = (client.clone(), order.number, order.sale.clone());
    Box::pin(async move {
        let at = client.now();
        let expiry = Expiry { at: InventoryId::whole(sale), number, heard_at: Some(at) };
        let ended = expire_all(&Caller(client), &[expiry], at).await.remove(0);
        ended.map_or_else(|error| failed(&error), |_| "over")
    })
}

/// Everybody's work until nothing is left to do, `seconds` later, when every order has ended and nothing goes wrong
/// any more: captures are told of again, orders end, refunds are sent, facts are settled.
pub fn come_to_rest(client: &Client, seconds: i64) {
    client.locked().fault = None;
    client.wait(seconds);
    let captures: Vec<Capture> =
        client.locked().stores.provider.captured.values().cloned().collect();
    for capture in captures {
        finish(payer(client, capture));
    }
    let orders: Vec<Order> = client.locked().stores.orders.orders.values().cloned().collect();
    for order in &orders {
        finish(deadline(client, order));
    }
    let refunds: Vec<RefundKey> = client.locked().stores.orders.refunds.keys().copied().collect();
    for key in refunds {
        // A minute lies between two refunds of an order.
        client.wait(120);
        finish(worker(client, key));
    }
    let whole: Vec<(OrderNumber, PaymentKey)> = {
        let payments = &client.locked().stores.orders.payments;
        let going = payments.iter().filter(|(_, record)| record.refund.is_some());
        going.map(|(key, _)| key.clone()).collect()
    };
    for (order, key) in whole {
        let sending = client.clone();
        finish(Box::pin(async move {
            let at = sending.now();
            refund(&Caller(sending), order, &key, at).await.map_or("not sent back", |_| "sent back")
        }));
    }
    let settling = client.clone();
    let numbers: Vec<OrderNumber> = orders.iter().map(|order| order.number).collect();
    finish(Box::pin(async move {
        let at = settling.now();
        sync(&Caller(settling), &numbers, at).await.map_or("not settled", |_| "settled")
    }));
}

/// Somebody pays an order at the provider, or the provider tells of it again; `None` where neither can be.
pub fn paying(client: &Client, order: &Order) -> Option<Flow> {
    let capture = capture_of(order);
    let provider = &mut client.locked().stores.provider;
    if !provider.captured.contains_key(&capture.key) {
        if order.state != OrderState::Pending {
            return None;
        }
        provider.capture(capture.clone());
    }
    Some(payer(client, capture))
}

/// How a crowd walks.
#[derive(Debug, Clone, Copy)]
pub struct Walk {
    pub steps: u32,
    /// How many go at once.
    pub turns: usize,
    /// The seconds that pass now and then.
    pub pause_seconds: i64,
}

/// A crowd at random: at each step one goes on with what was begun, or begins something, while calls fail, flows are cut
/// off and time goes by. What came of each flow is counted.
///
/// # Errors
/// What `check` says is wrong with the stores after a step, or a contract that is broken.
pub fn walk(
    client: &Client,
    rng: &mut SeededRng,
    Walk { steps, turns, pause_seconds }: Walk,
    begun: impl Fn(&mut SeededRng, usize) -> Option<Flow>,
    check: impl Fn(&Stores) -> Result<(), String>,
    outcomes: &mut BTreeMap<&'static str, u64>,
) -> Result<(), String> {
    let mut flows: Vec<Option<Flow>> = (0..turns).map(|_| None).collect();
    let mut context = Context::from_waker(Waker::noop());
    for step in 0..steps {
        match rng.below(24) {
            0 => client.locked().fault = Some(rng.below(2) == 0),
            1 => flows[rng.below(turns as u64) as usize] = None,
            2 => client.wait(pause_seconds),
            _ => {}
        }
        let turn = rng.below(turns as u64) as usize;
        let flow = flows[turn].take();
        let Some(mut flow) = flow.or_else(|| begun(rng, turn)) else { continue };
        let polled = flow.as_mut().poll(&mut context);
        check(&client.locked().stores).map_err(|what| format!("step {step}: {what}"))?;
        match polled {
            Poll::Pending => flows[turn] = Some(flow),
            Poll::Ready(BROKEN) => return Err(format!("step {step}: a contract is broken")),
            Poll::Ready(outcome) => *outcomes.entry(outcome).or_default() += 1,
        }
    }
    Ok(())
}
