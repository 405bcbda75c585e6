//! What a rush came to: as a table for people and as JSON for programs.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::cpu::Shares;

/// Latency of one endpoint, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    /// How many requests.
    pub requests: u64,
    /// Half were quicker.
    pub p50_ms: f64,
    /// 95 of 100 were quicker.
    pub p95_ms: f64,
    /// 99 of 100 were quicker.
    pub p99_ms: f64,
    /// The slowest.
    pub max_ms: f64,
}

/// One sale of the report.
#[derive(Debug, Clone, Serialize)]
pub struct Sold {
    /// Which sale.
    pub sale: String,
    /// Seats × legs for sale.
    pub seat_legs: u64,
    /// Seats × legs that nobody can buy any more.
    pub taken: u64,
}

/// The report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The seed that repeats the crowd.
    pub seed: u64,
    /// The mix of the crowd, in words.
    pub mix: &'static str,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Who came.
    pub buyers: u64,
    /// Of these, those who came late to take what was left.
    pub late_buyers: u64,
    /// Orders that were made.
    pub orders: u64,
    /// Orders that were paid.
    pub paid: u64,
    /// Tickets that were paid.
    pub tickets: u64,
    /// Orders that their buyers cancelled.
    pub cancelled: u64,
    /// Orders that were never paid.
    pub forgotten: u64,
    /// Requests that were repeated.
    pub repeats: u64,
    /// Orders a second.
    pub orders_per_second: f64,
    /// True if nothing is left to sell.
    pub sold_out: bool,
    /// Sale by sale.
    pub sales: Vec<Sold>,
    /// Refusals by the problem's type.
    pub refusals: BTreeMap<String, u64>,
    /// Latency by endpoint, as the crowd saw it (closed loop).
    pub latency: BTreeMap<&'static str, Latency>,
    /// Everything that must never happen, and did.
    pub anomalies: Vec<String>,
    /// Where the processors' time went, if the engine runs on this machine.
    pub cpu: Option<Shares>,
}

impl Report {
    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        // Text keys, numbers and lists: nothing that JSON cannot say.
        serde_json::to_string_pretty(self)
            .unwrap_or_else(|error| unreachable!("a report is always JSON: {error}"))
    }

    /// The report as tables.
    #[must_use]
    pub fn tables(&self) -> String {
        let mut sales = Table::new();
        sales.load_style(presets::UTF8_FULL_CONDENSED).set_header([
            "sale",
            "seats × legs",
            "sold",
            "left",
        ]);
        for sold in &self.sales {
            let left = sold.seat_legs.saturating_sub(sold.taken);
            sales.add_row([
                sold.sale.clone(),
                sold.seat_legs.to_string(),
                sold.taken.to_string(),
                left.to_string(),
            ]);
        }
        let mut refusals = Table::new();
        refusals.load_style(presets::UTF8_FULL_CONDENSED).set_header(["refused because", "times"]);
        for (why, times) in &self.refusals {
            refusals.add_row([why.clone(), times.to_string()]);
        }
        let mut latency = Table::new();
        latency
            .load_style(presets::UTF8_FULL_CONDENSED)
            .set_header(["function", "requests", "p50 ms", "p95 ms", "p99 ms", "max ms"]);
        for (name, of) in &self.latency {
            let ms = |value: f64| format!("{value:.1}");
            latency.add_row([
                (*name).to_owned(),
                of.requests.to_string(),
                ms(of.p50_ms),
                ms(of.p95_ms),
                ms(of.p99_ms),
                ms(of.max_ms),
            ]);
        }
        let cpu = self.cpu.as_ref().map_or_else(String::new, |cpu| format!("\n{cpu}"));
        let anomalies: String =
            self.anomalies.iter().take(20).map(|anomaly| format!("\nanomaly: {anomaly}")).collect();
        format!(
            "{} buyers came in {:.0} s (seed {}): {} orders ({:.0} a second), {} paid for {} tickets, \
             {} cancelled, {} never paid; {} requests repeated\n{sales}\n{refusals}\n{latency}{cpu}{anomalies}",
            self.buyers,
            self.seconds,
            self.seed,
            self.orders,
            self.orders_per_second,
            self.paid,
            self.tickets,
            self.cancelled,
            self.forgotten,
            self.repeats,
        )
    }
}
