//! The part of the demo in which buyers exchange tickets of a play: at every provider one for a dearer seat, which is
//! paid whole, and one for a cheaper seat, which the old money pays. Others fill a wallet at every provider, pay a
//! ticket from it and exchange that.

use std::collections::BTreeMap;

use engine::domain::basics::ids::{ProviderId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::sale::SaleFile;
use local::up::Engine;

use crate::demo::{Error, publish};
use crate::pages::Till;
use crate::shop::Shop;

const PLAY: &str = include_str!("../../../sales/demo-play.json");
const TOP_UPS: &str = include_str!("../../../sales/demo-top-ups.json");

#[derive(Debug, Clone, Default)]
pub struct Exchanged {
    /// Exchanges by the provider of the old order's payment.
    pub tickets: BTreeMap<ProviderId, u64>,
    /// Orders that were paid from wallets, by the provider at which those were filled.
    pub from_wallets: BTreeMap<ProviderId, u64>,
    /// The orders that gave their tickets.
    pub orders: Vec<OrderNumber>,
    /// Who bought all of this. The play gives points.
    pub buyers: Vec<UserId>,
}

/// Puts the play on sale, and has tickets of it bought and exchanged at every provider.
///
/// # Errors
/// Fails if the engine does not do what it is asked for.
pub async fn exchange(engine: &Engine, providers: &[ProviderId]) -> Result<Exchanged, Error> {
    let file: SaleFile = serde_json::from_str(PLAY)?;
    let top_ups: SaleFile = serde_json::from_str(TOP_UPS)?;
    publish(engine, &[file.clone(), top_ups.clone()]).await?;
    let (sale, top_ups) = (file.sale, Shop::new(engine, top_ups.sale));
    let play = Shop::new(engine, sale.clone());
    let mut exchanged = Exchanged::default();
    for provider in providers {
        let refused = || Error::Refused(sale.clone(), format!("no till of {provider}"));
        let till = Till::of(provider.as_str()).ok_or_else(refused)?;
        for (from, to) in [("gallery", "stalls"), ("stalls", "gallery")] {
            let user = format!("demo-{provider}-{from}");
            let old = play.order(&user, from, 1, None).await?;
            let number = play.paid(&old, till).await?;
            let new = play.order(&user, to, 1, Some(&old)).await?;
            // What is cheaper is paid with the old money as it is made.
            if new["state"] != "paid" {
                play.paid(&new, till).await?;
            }
            *exchanged.tickets.entry(provider.clone()).or_default() += 1;
            exchanged.orders.push(number);
            exchanged.buyers.extend(user.parse());
        }
        let user = format!("demo-{provider}-purse");
        let filled = top_ups.order(&user, "five-hundred", 1, None).await?;
        top_ups.paid(&filled, till).await?;
        let old = play.order(&user, "gallery", 1, None).await?;
        let number = play.paid_from_wallet(&user, &old).await?;
        let new = play.order(&user, "stalls", 1, Some(&old)).await?;
        play.paid_from_wallet(&user, &new).await?;
        exchanged.from_wallets.insert(provider.clone(), 2);
        exchanged.orders.push(number);
        exchanged.buyers.extend(user.parse());
    }
    Ok(exchanged)
}
