//! The report: one row a rule, then everything that breaks one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use comfy_table::{CellAlignment, Table};
use engine::domain::basics::ids::{SaleId, TierId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;
use serde::Serialize;

use super::facts::Facts;
use super::invariants::Finding;
use super::violation::{Rule, Violation};
use reporting::{self, grouped};

/// Most violations of one rule that the text names; JSON names all.
const MAX_NAMED: usize = 40;

/// Result of an audit.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Time of the audit.
    pub now: Timestamp,
    /// Time after its deadline for which an order could still be pending, in seconds.
    pub bound_seconds: u32,
    /// The sales that were audited.
    pub sales: Vec<SaleId>,
    /// True if no rule is broken.
    pub clean: bool,
    /// Each rule.
    pub findings: Vec<Finding>,
    /// What the paid orders have, by sale and tier.
    pub sold: Vec<SoldTier>,
}

/// What the paid orders of a sale have of a tier, summed from the orders themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SoldTier {
    /// The sale.
    pub sale: SaleId,
    /// The tier.
    pub tier: TierId,
    /// Tickets that are not refunded.
    pub tickets: i64,
    /// What they cost, in minor units.
    pub revenue_minor: MinorUnits,
}

/// What the paid orders have, by sale and tier.
pub(super) fn sold(facts: &Facts) -> Vec<SoldTier> {
    let mut sold = Vec::new();
    for (id, sale) in &facts.sales {
        let mut tiers: BTreeMap<&TierId, (i64, MinorUnits)> = BTreeMap::new();
        let paid = sale.orders.values().filter(|order| order.state == OrderState::Paid);
        for line in paid.flat_map(|order| &order.lines) {
            let (tickets, revenue_minor) = tiers.entry(&line.tier).or_default();
            *tickets += line.tickets();
            *revenue_minor += line.total_minor();
        }
        let of_sale = tiers.into_iter().map(|(tier, (tickets, revenue_minor))| SoldTier {
            sale: id.clone(),
            tier: tier.clone(),
            tickets,
            revenue_minor,
        });
        sold.extend(of_sale);
    }
    sold
}

impl Report {
    pub(super) fn new(
        now: Timestamp,
        bound_seconds: u32,
        sales: Vec<SaleId>,
        findings: Vec<Finding>,
        sold: Vec<SoldTier>,
    ) -> Self {
        let clean = findings.iter().all(|finding| finding.violations.is_empty());
        Self { now, bound_seconds, sales, clean, findings, sold }
    }

    /// Everything that breaks a rule.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.findings.iter().flat_map(|finding| &finding.violations)
    }

    /// The rules that are broken.
    #[must_use]
    pub fn broken(&self) -> BTreeSet<Rule> {
        self.violations().map(|violation| violation.rule).collect()
    }

    fn table(&self) -> Table {
        let mut table = reporting::table(["rule", "what it says", "checked", "of", "violations"]);
        for finding in &self.findings {
            table.add_row([
                finding.rule.name().to_owned(),
                finding.rule.says().to_owned(),
                grouped(finding.checked),
                finding.rule.unit().to_owned(),
                grouped(reporting::count(finding.violations.len())),
            ]);
        }
        for index in [2, 4] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sales: Vec<&str> = self.sales.iter().map(SaleId::as_str).collect();
        let sales = if sales.is_empty() { "no sale".to_owned() } else { sales.join(", ") };
        writeln!(f, "Audit of {sales} at {}", self.now)?;
        writeln!(f, "{}", self.table())?;
        for finding in &self.findings {
            for violation in finding.violations.iter().take(MAX_NAMED) {
                writeln!(f, "{violation}")?;
            }
            let rest = finding.violations.len().saturating_sub(MAX_NAMED);
            if rest > 0 {
                writeln!(f, "{} and {rest} more (--json names all)", finding.rule.name())?;
            }
        }
        match self.violations().count() {
            // Nothing breaks a rule, and nothing was there that could.
            0 if self.sales.is_empty() => f.write_str("Nothing was checked: there is no sale."),
            0 => f.write_str("Clean."),
            1 => f.write_str("1 violation."),
            many => write!(f, "{} violations.", grouped(reporting::count(many))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::violation::Subject;

    #[test]
    fn the_text_names_many_violations_and_counts_the_rest() {
        let violation = |number: usize| Violation {
            rule: Rule::I7,
            sale: Some(SaleId::new("s").unwrap()),
            subject: Subject::Order { order: number.to_string().parse().unwrap() },
            what: "is pending 200 s after its deadline".to_owned(),
        };
        let finding = Finding {
            rule: Rule::I7,
            checked: 1500,
            violations: (1..=MAX_NAMED + 2).map(violation).collect(),
        };
        let sales = vec![SaleId::new("s").unwrap()];
        let report = Report::new(Timestamp::from_ms(0), 120, sales.clone(), vec![finding], vec![]);
        let text = report.to_string();
        for expected in [
            "Audit of s at 1970-01-01",
            "I7 s: order 1 is pending 200 s after its deadline",
            "I7 and 2 more",
            "1,500",
            "42 violations.",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!report.clean);
        let clean = Report::new(Timestamp::from_ms(0), 120, sales, Vec::new(), Vec::new());
        assert!(clean.clean && clean.to_string().ends_with("Clean."));
        let empty = Report::new(Timestamp::from_ms(0), 120, Vec::new(), Vec::new(), Vec::new());
        assert!(empty.clean && empty.to_string().ends_with("there is no sale."));
    }
}
