//! The categories of a plan, each of which becomes a tier.

use std::collections::HashMap;

use engine::domain::basics::money::MinorUnits;

use super::super::report::Findings;
use super::super::{Error, Place, Remedy, SourceDefect};
use super::plan::{Index, Plan, PlanSeat, indexes};

/// The tier of the seats that have no category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncategorised {
    /// Name of the tier; no category of the plan has it.
    pub name: String,
    /// Price of its seats, in the sale's currency.
    pub price_minor: MinorUnits,
}

/// The categories that seats can be of.
pub(super) struct Categories<'plan> {
    /// The declared names in order, each once, and after them the name for seats without a category.
    names: Vec<&'plan str>,
    /// The index of each declared name in `names`.
    index_of: HashMap<&'plan str, usize>,
    /// The index of the name for seats without a category.
    uncategorised: Option<usize>,
}

impl<'plan> Categories<'plan> {
    /// The categories that a plan declares, and the one that its other seats are given.
    ///
    /// # Errors
    /// [`Error::Flags`] if the given one has no name, or that of a declared category.
    pub(super) fn from_plan(
        plan: &'plan Plan,
        uncategorised: Option<&'plan Uncategorised>,
        findings: &mut Findings,
    ) -> Result<Self, Error> {
        let mut names = declared(plan, findings);
        let given = uncategorised.map(|given| given.name.as_str());
        if let Some(name) = given.filter(|name| name.is_empty() || names.contains(name)) {
            return Err(Error::Flags(format!(
                "--uncategorised-tier needs a name that no category of the plan has, not {name:?}"
            )));
        }
        let index_of = names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        let uncategorised = given.map(|_| names.len());
        names.extend(given);
        Ok(Self { names, index_of, uncategorised })
    }

    /// Every name, in the order of the tiers.
    pub(super) fn names(&self) -> &[&'plan str] {
        &self.names
    }

    /// The names that the plan declares.
    pub(super) fn declared(&self) -> &[&'plan str] {
        &self.names[..self.uncategorised.unwrap_or(self.names.len())]
    }

    /// The category of a seat, as an index of [`Self::names`].
    pub(super) fn of_seat(&self, seat: &PlanSeat) -> Option<usize> {
        match seat.category.as_deref() {
            Some(name) => self.index_of.get(name).copied(),
            None => self.uncategorised,
        }
    }

    /// The number of seats without a category, and the option that sells them, if no tier is named
    /// for them.
    pub(super) fn note(&self, plan: &Plan) -> Option<String> {
        let has_none = |(zone, row, seat): &Index| {
            plan.zones[*zone].rows[*row].seats[*seat].category.is_none()
        };
        let count = indexes(plan).filter(has_none).count();
        (count > 0 && self.uncategorised.is_none()).then(|| {
            format!(
                "{count} seats have no category; --uncategorised-tier NAME=MINOR sells them as a tier"
            )
        })
    }
}

/// The declared categories in order, each name once.
fn declared<'plan>(plan: &'plan Plan, findings: &mut Findings) -> Vec<&'plan str> {
    let place = |index: usize, name: &str| Place {
        at: format!("categories[{index}]"),
        label: name.to_owned(),
    };
    let mut first_of = HashMap::new();
    let mut declared = Vec::new();
    for (index, category) in plan.categories.iter().enumerate() {
        let Some(name) = category.name.as_deref() else { continue };
        if let Some(first) = first_of.get(name) {
            let defect = SourceDefect::DeclaredTwice {
                what: format!("category {name:?}"),
                first: place(*first, name),
                again: place(index, name),
            };
            findings.add(defect, Remedy::Believe { what: "both are one tier".to_owned() });
        } else {
            first_of.insert(name, index);
            declared.push(name);
        }
    }
    declared
}
