//! Top-up: a lost dispute has taken money out of a wallet that had spent it. What was bought with the wallet goes back, the
//! newest unused ticket first, each with a refund to the wallet, until the wallet has no debt. What is left is owed: the wallet
//! pays nothing until it is filled again.
//!
//! Each step is one transaction, and a process may die after any of them: whoever reads of the dispute again goes on. As
//! [`dispute`](super::dispute) it cannot reach Redis: the comparison finds the seats.

use std::collections::BTreeSet;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::DisputeId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::ledger::wallet::Wallet;
use crate::domain::order::Order;
use crate::domain::payment::dispute::take_back_bought;
use crate::domain::payment::outside::Holder;
use crate::domain::payment::refund::decide_refund;
use crate::flows::dispute::revokes;
use crate::flows::outside::holders;
use crate::flows::refund::refund_part;
use crate::flows::sync::settle_soon;
use crate::ports::{ChangeReply, Orders, Ports, StoreError, Stored};

/// Most steps of one order: it has fewer tickets, and one that changed meanwhile is read again.
const STEPS: usize = 60;
/// Most orders that are looked at: what was bought before them is years old.
const MAX_ORDERS: usize = 200;

/// Takes back what was bought with a wallet which a lost dispute of this top-up has left with a debt.
///
/// # Errors
/// Fails if a store does; running it again goes on.
pub(crate) async fn take_back(
    ports: &impl Ports,
    top_up: &Order,
    dispute: &DisputeId,
    now: Timestamp,
) -> Stored<()> {
    if !stands(Guard::DebtTakesBack) || !has_debt(ports, top_up).await? {
        return Ok(());
    }
    let statement = ports.orders().statement(&top_up.user).await?;
    let wallet = statement.wallets.get(&top_up.total.currency);
    for number in wallet.map(paid_newest_first).unwrap_or_default() {
        let Some(order) = ports.orders().get(number).await? else { continue };
        let Some(key) = &order.payment else { continue };
        let mut seen = 0;
        loop {
            // Tickets that were exchanged since are newer than those that were given for them.
            let money = holders(ports, number, key).await?;
            if money.len() <= seen {
                break;
            }
            for holder in money.iter().rev() {
                if revokes(ports, &holder.order).await?
                    && is_covered_by(ports, holder, dispute, now).await?
                {
                    return Ok(());
                }
            }
            seen = money.len();
        }
    }
    tracing::error!(user = %top_up.user, %dispute, "a wallet has a debt that no ticket covers");
    Ok(())
}

/// The orders that a wallet has paid, the newest first.
fn paid_newest_first(wallet: &Wallet) -> Vec<OrderNumber> {
    let mut known = BTreeSet::new();
    let paid = wallet.entries.iter().rev().filter(|entry| {
        let is_payment = entry.name.refund.is_none() && entry.name.kind.sells();
        is_payment && entry.change.needs().is_some() && known.insert(entry.name.order)
    });
    paid.map(|entry| entry.name.order).take(MAX_ORDERS).collect()
}

/// True if the wallet that an order fills is below nothing.
async fn has_debt(ports: &impl Ports, order: &Order) -> Stored<bool> {
    Ok(ports.orders().wallet(&order.user, order.total.currency).await?.left() < 0)
}

/// Takes tickets of an order back until its buyer's wallet has no debt; false if it has one still.
async fn is_covered_by(
    ports: &impl Ports,
    holder: &Holder,
    dispute: &DisputeId,
    now: Timestamp,
) -> Stored<bool> {
    let (number, key) = (holder.order.number, &holder.payment.capture.key);
    for _ in 0..STEPS {
        // What another reader has taken back may be on its way into the wallet.
        for refund in ports.orders().order_refunds(number).await? {
            if !refund.refund.state.is_back() {
                refund_part(ports, refund.key, now).await?;
            }
        }
        if !has_debt(ports, &holder.order).await? {
            return Ok(true);
        }
        let order = ports.orders().get(number).await?;
        let payment = ports.orders().payment(number, key).await?;
        let Some((order, payment)) = order.zip(payment) else { return Ok(false) };
        let Some(request) = take_back_bought(&order, &payment, dispute) else { return Ok(false) };
        let plan = match decide_refund(&order, Some(&payment), &request, now) {
            Ok(plan) => plan,
            Err(refusal) => {
                tracing::error!(order = %number, %refusal, "a ticket cannot be taken back");
                return Ok(false);
            }
        };
        if ports.orders().give_back(&plan).await? == ChangeReply::Done {
            settle_soon(ports, number).await;
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")))
}
