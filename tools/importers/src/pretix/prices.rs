//! The tiers of a plan's categories, with the prices that were given for them.

use std::collections::BTreeMap;

use engine::domain::sale::{Section, TierFile};

use super::super::Error;
use super::super::slug::slug;
use super::super::terms::tier_id;

/// What the tiers cost, in minor units of the sale's currency; the format has no prices.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The price of every category that has none of its own.
    pub for_all: Option<i64>,
    /// Prices by the name of a category.
    pub by_category: BTreeMap<String, i64>,
}

/// The tiers of the categories that have seats, with their prices.
pub(super) fn priced(
    categories: &[&str],
    sections: Vec<Vec<Section>>,
    prices: &Prices,
) -> Result<Vec<TierFile>, Error> {
    let unknown: Vec<String> = prices
        .by_category
        .keys()
        .filter(|name| !categories.contains(&name.as_str()))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        let known: Vec<String> = categories.iter().map(|name| format!("{name:?}")).collect();
        return Err(Error::Flags(format!(
            "--price names no category of the plan: {}; it has {}",
            unknown.join(", "),
            known.join(", ")
        )));
    }
    let mut tiers: Vec<TierFile> = Vec::new();
    let mut taken = Vec::new();
    let mut unpriced = Vec::new();
    for (index, (name, sections)) in categories.iter().zip(sections).enumerate() {
        let tier = tier_id(slug(name), index + 1, &taken);
        taken.push(tier.clone());
        if sections.is_empty() {
            continue;
        }
        let price_minor = prices.by_category.get(*name).copied().or(prices.for_all);
        if price_minor.is_none() {
            unpriced.push(format!("{name:?}"));
        }
        tiers.push(TierFile {
            tier,
            name: (*name).to_owned(),
            price_minor,
            fares: Vec::new(),
            columns: Vec::new(),
            sections,
            general_admission: None,
            not_for_sale: Vec::new(),
        });
    }
    if unpriced.is_empty() {
        Ok(tiers)
    } else {
        Err(Error::Flags(format!(
            "no price for {}; give --price CATEGORY=MINOR for each, or --price-minor for all",
            unpriced.join(", ")
        )))
    }
}
