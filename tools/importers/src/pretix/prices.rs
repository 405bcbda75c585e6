//! The tiers of a plan's categories, with the prices that were given for them.

use std::collections::BTreeMap;

use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::{Section, TierFile};

use super::super::Error;
use super::super::slug::slug;
use super::super::terms::tier_id;
use super::categories::{Categories, Uncategorised};

/// Prices of the tiers, in the sale's currency; the format has none.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The price of every category that has none of its own.
    pub for_all: Option<MinorUnits>,
    /// Prices by the name of a category.
    pub by_category: BTreeMap<String, MinorUnits>,
    /// The tier of the seats without a category; without it these seats are left out.
    pub uncategorised: Option<Uncategorised>,
}

/// The tiers of the categories that have seats, with their prices.
pub(super) fn priced(
    categories: &Categories<'_>,
    sections: Vec<Vec<Section>>,
    prices: &Prices,
) -> Result<Vec<TierFile>, Error> {
    let declared = categories.declared();
    let unknown: Vec<String> = prices
        .by_category
        .keys()
        .filter(|name| !declared.contains(&name.as_str()))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        let known: Vec<String> = declared.iter().map(|name| format!("{name:?}")).collect();
        let known = if known.is_empty() {
            "none; give --uncategorised-tier NAME=MINOR".to_owned()
        } else {
            known.join(", ")
        };
        let unknown = unknown.join(", ");
        return Err(Error::Flags(format!(
            "--price names no category of the plan: {unknown}; it has {known}"
        )));
    }
    let mut tiers: Vec<TierFile> = Vec::new();
    let mut taken = Vec::new();
    let mut unpriced = Vec::new();
    for (index, (name, sections)) in categories.names().iter().zip(sections).enumerate() {
        let tier = tier_id(slug(name), index + 1, &taken);
        taken.push(tier.clone());
        if sections.is_empty() {
            continue;
        }
        let uncategorised = prices.uncategorised.as_ref().filter(|_| index >= declared.len());
        let price_minor = uncategorised
            .map(|tier| tier.price_minor)
            .or_else(|| prices.by_category.get(*name).copied())
            .or(prices.for_all);
        if price_minor.is_none() {
            unpriced.push(format!("{name:?}"));
        }
        let name = (*name).to_owned();
        tiers.push(TierFile { price_minor, sections, ..TierFile::new(tier, name) });
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
