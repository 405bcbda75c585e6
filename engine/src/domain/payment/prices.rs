//! Prices that no buyer could pay: they are told when a sale is checked and when it is published, and not first by an
//! order that holds seats until it expires.

use std::collections::BTreeSet;

use crate::domain::basics::counting::{Counting, TakesOnly};
use crate::domain::basics::ids::TierId;
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::tickets::Tickets;
use crate::domain::payment::start::Offer;
use crate::domain::sale::Sale;

/// The smallest and the largest amount that a provider charges, in minor units of ISO 4217, as far as an account differs
/// from what its provider publishes ([`Counting::bounds`]): Stripe's smallest is that of the currency in which it pays
/// the account out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountBounds {
    pub smallest: Option<MinorUnits>,
    pub largest: Option<MinorUnits>,
}

/// The warnings to an operator about prices that a provider of `offers` cannot charge: no ticket's price is between two
/// amounts that it takes, a single one of the cheapest is not too small, and as many of the dearest as an order may have
/// are not too large. Free tickets are not charged. Without any offer the prices are compared with what Stripe takes: a
/// function that starts no payments, and a command on somebody's desk, do not know the providers.
#[must_use]
pub fn price_shortfalls(sale: &Sale, offers: &[Offer], account: AccountBounds) -> Vec<String> {
    let currency = sale.file().currency;
    let taking = || offers.iter().filter(|offer| offer.takes(currency));
    let countings: Vec<Counting> = match offers {
        [] => vec![Counting::Stripe],
        _ => taking().map(|offer| offer.counting).collect(),
    };
    let prices = prices(sale);
    if prices.is_empty() {
        return Vec::new();
    }
    if countings.is_empty() {
        return vec![format!("{currency}: no payment provider here takes it")];
    }
    // Two accounts of one provider say the same.
    let mut told = BTreeSet::new();
    let texts = countings.into_iter().flat_map(|counting| {
        let most = Tickets::new(sale.max_tickets_per_order());
        shortfalls(counting, currency, &prices, most, account)
    });
    texts.filter(|text| told.insert(text.clone())).collect()
}

/// Every price that is charged, with its tier, the lowest first.
fn prices(sale: &Sale) -> Vec<(MinorUnits, &TierId)> {
    let of_tiers = sale.tiers().iter().flat_map(|tier| {
        let all = tier.fares().into_values().chain(tier.price_minor(sale.whole()));
        all.map(move |price| (price, &tier.tier))
    });
    let charged = of_tiers.filter(|(price, _)| *price > MinorUnits::ZERO);
    charged.collect::<BTreeSet<_>>().into_iter().collect()
}

/// What a provider does not take of these prices, each kind once.
fn shortfalls(
    counting: Counting,
    currency: Currency,
    prices: &[(MinorUnits, &TierId)],
    most_tickets: Tickets,
    account: AccountBounds,
) -> Vec<String> {
    let published = counting.bounds(currency);
    let smallest = account.smallest.unwrap_or(*published.start());
    let largest = account.largest.unwrap_or(*published.end());
    let refusal = |amount_minor: MinorUnits| {
        counting.refusal(Money { amount_minor, currency }, &(smallest..=largest))
    };
    let takes = |only: TakesOnly| format!("{currency}: {counting} takes {only}");
    let between = prices.iter().find_map(|(price, tier)| match refusal(*price) {
        Some(only @ TakesOnly::Multiples(_)) => {
            Some(format!("{}, and a ticket of tier {tier} costs {price}", takes(only)))
        }
        Some(TakesOnly::AtLeast(_) | TakesOnly::AtMost(_)) | None => None,
    });
    let small = prices.first().and_then(|(price, tier)| match refusal(*price) {
        Some(only @ TakesOnly::AtLeast(_)) => {
            Some(format!("{}, and a ticket of tier {tier} costs {price}", takes(only)))
        }
        Some(TakesOnly::Multiples(_) | TakesOnly::AtMost(_)) | None => None,
    });
    let large = prices.last().and_then(|(price, tier)| {
        let total = *price * most_tickets;
        let only = (total > largest).then_some(TakesOnly::AtMost(largest))?;
        Some(format!("{}, and {most_tickets} tickets of tier {tier} cost {total}", takes(only)))
    });
    let in_minor_units = |text: String| format!("{text} (in minor units): no buyer can pay that");
    [between, small, large].into_iter().flatten().map(in_minor_units).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::domain::basics::ids::ProviderId;

    fn sale(currency: &str, prices: &[i64]) -> Sale {
        let tier = |(index, price): (usize, &i64)| json!({"tier": format!("t{index}"), "name": "T", "price_minor": price, "general_admission": 10});
        let file = json!({
            "sale": "hall", "title": "Hall", "currency": currency,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 600,
            "tiers": prices.iter().enumerate().map(tier).collect::<Vec<_>>()
        });
        Sale::new(serde_json::from_value(file).unwrap()).unwrap()
    }

    fn offer(counting: Counting, currency: Option<&str>) -> Offer {
        let provider = ProviderId::new("one").unwrap();
        let currencies = currency.map(|code| vec![Currency::new(code).unwrap()]);
        Offer { provider, methods: Vec::new(), currencies, counting, deployment: None }
    }

    #[test]
    fn a_price_that_stripe_does_not_take_is_told() {
        let told = |currency: &str, prices: &[i64]| {
            price_shortfalls(&sale(currency, prices), &[], AccountBounds::default())
        };
        assert_eq!(
            told("KWD", &[1230, 1234]),
            ["KWD: Stripe takes whole tens, and a ticket of tier t1 costs 1234 (in minor units): \
              no buyer can pay that"]
        );
        assert_eq!(
            told("EUR", &[300_000_000_000, 49]),
            [
                "EUR: Stripe takes 50 at least, and a ticket of tier t1 costs 49 (in minor units): \
                 no buyer can pay that",
                "EUR: Stripe takes 999999999999 at most, and 4 tickets of tier t0 cost \
                 1200000000000 (in minor units): no buyer can pay that"
            ]
        );
        for (currency, prices) in [
            ("KWD", [1230, 0]),
            ("EUR", [0, 50]),
            ("CNY", [1, 2]),
            ("ISK", [1, 3]),
            ("USD", [0, 0]),
        ] {
            assert_eq!(told(currency, &prices), Vec::<String>::new(), "{currency} {prices:?}");
        }
    }

    #[test]
    fn what_the_providers_here_take_counts_and_what_the_account_says() {
        let told = |offers: &[Offer]| {
            price_shortfalls(&sale("KWD", &[1234]), offers, AccountBounds::default())
        };
        let (stripe, iso) = (offer(Counting::Stripe, None), offer(Counting::Iso, None));
        assert_eq!(told(&[stripe.clone(), stripe.clone(), iso.clone()]).len(), 1);
        assert_eq!(told(&[iso]), Vec::<String>::new());
        let yuan = offer(Counting::Iso, Some("CNY"));
        assert_eq!(told(std::slice::from_ref(&yuan)), ["KWD: no payment provider here takes it"]);
        assert_eq!(told(&[yuan, stripe]).len(), 1);
        let account = AccountBounds { smallest: Some(MinorUnits(700)), largest: None };
        let told = price_shortfalls(&sale("EUR", &[600]), &[], account);
        assert!(told[0].starts_with("EUR: Stripe takes 700 at least"), "{told:?}");
    }
}
