//! A load test as a page that stands by itself: one file, no script, nothing fetched.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::cpu::Part;
use crate::replay::Outcome;
use ops::audit;
use reporting::grouped;

use super::charts::{self, Curve};
use super::report::Report;
use super::series::Sample;

/// The page's style, but for the two colours of the plots that stand for text and grid.
const STYLE: &str = "
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2128; --soft: #5c6670; --grid: #d5dae0; --card: #f6f8fa;
  --good: #1a7f45; --bad: #c4314b; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e4e8ec; --soft: #9aa4ae; --grid: #343b43; --card: #1b2027; --good: #4cc37f; --bad: #ff7a8c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 28px 20px 60px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 17px; margin: 0 0 2px; }
p { margin: 4px 0; } .soft { color: var(--soft); } a { color: inherit; }
.verdict { font-weight: 600; margin: 10px 0 18px; } .good { color: var(--good); } .bad { color: var(--bad); }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(170px, 1fr)); gap: 10px; margin: 0 0 26px; }
.figure { background: var(--card); border-radius: 8px; padding: 10px 14px; }
.figure b { display: block; font-size: 22px; line-height: 1.3; font-variant-numeric: tabular-nums; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 520px), 1fr)); gap: 26px 22px; }
figure { margin: 0; } svg { display: block; width: 100%; height: auto; }
svg text { font-family: inherit; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 2px 0 4px; font-size: 13px; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 5px; vertical-align: -1px; }
section { margin-top: 34px; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin-top: 8px; }
th, td { text-align: right; padding: 4px 12px; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child, .text { text-align: left; padding-left: 0; }
td.text, th.text { padding-left: 12px; }
";

/// Writes a page.
///
/// # Errors
/// The file cannot be written; the error names it.
pub fn write(file: &Path, page: &str) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    fs::write(file, page).map_err(named)
}

/// The page of a load test.
///
/// # Errors
/// A plot cannot be drawn.
pub fn of_load_test(report: &Report) -> Result<String, charts::Error> {
    let sales: Vec<&str> = report.sales.iter().map(|sold| sold.sale.as_str()).collect();
    let title = format!("Load test for {}", sales.join(", "));
    let verdict = match (report.is_good(), report.thresholds.is_empty()) {
        (true, true) if report.rehearsal.is_some() => "Nothing impossible was met.",
        (true, true) => "Every seat sold, nothing impossible was met.",
        (false, _) if report.is_aborted() => "ABORTED.",
        (false, true) => "NOT as it should be: see the anomalies.",
        (true, false) => "Every threshold is met.",
        (false, false) => "NOT as it should be: a threshold is missed.",
    };
    let verdict = html! { p.verdict.(if report.is_good() { "good" } else { "bad" }) { (verdict) } };
    page(&title, &verdict, &[], report, None)
}

/// The page of a replay.
///
/// # Errors
/// A plot cannot be drawn.
pub fn of_replay(outcome: &Outcome) -> Result<String, charts::Error> {
    let published = &outcome.published;
    let title = format!("Replay of {}", published.sale);
    let head = html! {
        p.soft {
            "Published: “" (published.words) "” (" a href=(published.source) { (published.source) } ")."
            @if outcome.scale < 1.0 { " Replayed: " (format!("{:.1}", outcome.scale * 100.0)) " % of it." }
        }
        p.verdict.(if outcome.is_good() { "good" } else { "bad" }) {
            @if outcome.is_good() { "Sold out, and the audit is clean." }
            @else { "NOT as it should be: see the anomalies and the audit." }
            @if let Some((total, real)) = outcome.against_real() {
                " " (format!("{total:.0} s, everything included; the real sale took {real:.0} s."))
            }
        }
    };
    let times = &outcome.seconds;
    let figures = [
        (seconds(times.selling), "until nothing was left"),
        (seconds(times.settling), "until all was counted"),
        (seconds(times.auditing), "to audit both stores"),
        (format!("{:.0}", outcome.whole_sales_per_second), "whole sales a second"),
    ];
    page(&title, &head, &figures, &outcome.load_test, Some(&outcome.audit))
}

fn page(
    title: &str,
    head: &Markup,
    figures: &[(String, &str)],
    report: &Report,
    audit: Option<&audit::Report>,
) -> Result<String, charts::Error> {
    let common = [
        (grouped(report.buyers), "people came"),
        (grouped(report.requests), "requests"),
        (format!("{:.0}", report.requests_per_second), "requests a second"),
        (grouped(report.tickets), "tickets sold"),
        (grouped(report.paid), "orders paid"),
        (format!("{:.0}", report.sales_per_second), "orders paid a second"),
        (grouped(report.anomaly_count), "anomalies"),
        (format!("{:.1} ms", report.generator.lag.p99_ms), "generator lag, p99"),
    ];
    let plots = plots(report)?;
    let body = html! {
        p.soft { (report.how()) ", seed " (report.seed) ", mix: " (report.ways) }
        (head)
        (in_figures(figures.iter().chain(&common)))
        div.plots { @for plot in plots { (plot) } }
        (latency(report))
        (behaviours(report))
        (people(report))
        (fairness(report))
        (thresholds(report))
        (refusals(report))
        @if let Some(cpu) = &report.cpu { section { h2 { "Processors" } p { (cpu) } } }
        @if let Some(audit) = audit { (audited(audit)) }
        @if report.anomaly_count > 0 {
            section { h2.bad { "Anomalies" } ul { @for anomaly in &report.anomalies { li { (anomaly) } } } }
        }
        section { p.soft { (report.verdict()) "." } }
    };
    Ok(document(title, &body))
}

/// A report as a page that stands by itself, in the style of all of them.
#[must_use]
pub fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style {
                    (PreEscaped(STYLE))
                    "svg [fill='" (charts::INK) "'] { fill: var(--ink); } "
                    "svg [stroke='" (charts::GRID) "'] { stroke: var(--grid); }"
                }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    };
    page.into_string()
}

/// Figures in boxes, each with what it is.
pub fn in_figures<'f>(figures: impl IntoIterator<Item = &'f (String, &'f str)>) -> Markup {
    html! {
        div.figures {
            @for (value, what) in figures {
                div.figure { b { (value) } span.soft { (what) } }
            }
        }
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// Every plot, in the order of the page.
fn plots(report: &Report) -> Result<Vec<Markup>, charts::Error> {
    let series = &report.series;
    let seats: u64 = report.sales.iter().map(|sold| sold.seat_legs).sum();
    let rate = |of: fn(&Sample) -> u64| rates(series, |sample| of(sample) as f64);
    let level = |of: fn(&Sample) -> f64| -> Vec<(f64, f64)> {
        series.iter().map(|sample| (sample.at_seconds, of(sample))).collect()
    };
    let sold = [Curve::new("tickets paid", 0, sums(series, |sample| sample.tickets))];
    let people = [
        Curve::new("came", 0, rate(|sample| sample.arrived)),
        Curve::new("came back", 6, rate(|sample| sample.returned)),
        Curve::new("answers", 2, rate(|sample| sample.answered)),
    ];
    let orders = [
        Curve::new("admissions", 6, rate(|sample| sample.admitted)),
        Curve::new("orders", 0, rate(|sample| sample.orders)),
        Curve::new("paid", 2, rate(|sample| sample.paid)),
    ];
    // A second in which nothing was measured has no point.
    let measured = |of: fn(&Sample) -> f64| -> Vec<(f64, f64)> {
        level(of).into_iter().filter(|(_, ms)| *ms > 0.0).collect()
    };
    let times = [
        Curve::new("slowest", 7, measured(|sample| sample.response_max_ms)),
        Curve::new("p99", 3, measured(|sample| sample.response_p99_ms)),
        Curve::new("p50", 0, measured(|sample| sample.response_p50_ms)),
        Curve::new("generator lag, p99", 5, measured(|sample| sample.lag_p99_ms)),
    ];
    let line = [
        Curve::new("waiting for a connection", 1, level(|sample| sample.waiting as f64)),
        Curve::new("under way", 0, level(|sample| sample.under_way as f64)),
    ];
    let (refused, cpu) = (refusal_curves(report), processor_curves(series));
    let on_sale = format!("{} seats × legs were on sale.", grouped(seats));
    let mut plots = vec![
        figure("Tickets sold", &on_sale, &sold, charts::lines)?,
        figure("People and answers", "A second.", &people, charts::lines)?,
        figure("Orders", "A second.", &orders, charts::lines)?,
        figure(
            "Response time",
            "Milliseconds from the moment a request was due to its answer, logarithmic.",
            &times,
            |curves| charts::logarithmic(curves, 0.1),
        )?,
    ];
    if !refused.is_empty() {
        plots.push(figure("Refusals by reason", "A second.", &refused, charts::stacked)?);
    }
    plots.push(figure(
        "Waiting and under way",
        "Requests, at the end of each second.",
        &line,
        charts::lines,
    )?);
    if !cpu.is_empty() {
        plots.push(figure("Processors at work", "By part.", &cpu, charts::stacked)?);
    }
    Ok(plots)
}

/// Refusals a second, a curve for each reason, the most frequent first.
fn refusal_curves(report: &Report) -> Vec<Curve> {
    let mut reasons: Vec<(&Cow<'static, str>, &u64)> = report.refusals.iter().collect();
    reasons.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    (0..)
        .zip(reasons)
        .map(|(colour, (why, _))| {
            let times = |sample: &Sample| sample.refused.get(why).copied().unwrap_or(0) as f64;
            Curve::new(why.as_ref(), colour, rates(&report.series, times))
        })
        .collect()
}

/// Processors at work, a curve for each part.
fn processor_curves(series: &[Sample]) -> Vec<Curve> {
    let parts: BTreeMap<Part, f64> =
        series.iter().flat_map(|sample| sample.cpu_seconds.clone()).collect();
    (0..)
        .zip(parts.into_keys())
        .map(|(colour, part)| {
            let of = |sample: &Sample| sample.cpu_seconds.get(&part).copied().unwrap_or(0.0);
            Curve::new(part.name(), colour, rates(series, of))
        })
        .collect()
}

/// A plot with its title, its caption and its legend.
///
/// # Errors
/// The plot cannot be drawn.
pub fn figure(
    title: &str,
    caption: &str,
    curves: &[Curve],
    draw: impl Fn(&[Curve]) -> Result<String, charts::Error>,
) -> Result<Markup, charts::Error> {
    let svg = draw(curves)?;
    Ok(html! {
        figure {
            h2 { (title) }
            figcaption.soft { (caption) }
            div.legend {
                @for curve in curves {
                    span { i style={ "background:" (curve.css()) } {} (curve.name) }
                }
            }
            (PreEscaped(scalable(&svg)))
        }
    })
}

/// The plot with a view box instead of a size, so that it is as wide as its place.
fn scalable(svg: &str) -> String {
    match svg.find(" viewBox") {
        Some(rest) => format!("<svg role=\"img\"{}", &svg[rest..]),
        None => svg.to_owned(),
    }
}

/// Counts of samples a second: the last sample is shorter than the others.
fn rates(series: &[Sample], of: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let begins = std::iter::once(0.0).chain(series.iter().map(|sample| sample.at_seconds));
    let long_enough = series
        .iter()
        .zip(begins)
        .filter(|(sample, begin)| sample.at_seconds - begin >= 0.5 || series.len() == 1);
    long_enough
        .map(|(sample, begin)| {
            let seconds = (sample.at_seconds - begin).max(f64::EPSILON);
            (sample.at_seconds, of(sample) / seconds)
        })
        .collect()
}

/// Counts of samples, added up.
fn sums(series: &[Sample], of: impl Fn(&Sample) -> u64) -> Vec<(f64, f64)> {
    let mut sum = 0;
    let added = series.iter().map(|sample| {
        sum += of(sample);
        (sample.at_seconds, sum as f64)
    });
    std::iter::once((0.0, 0.0)).chain(added).collect()
}

fn latency(report: &Report) -> Markup {
    let ms = |value: f64| format!("{value:.1}");
    html! {
        section {
            h2 { "Response and service time by function" }
            p.soft { "Milliseconds. The response time runs from when a request was due, the service time from when it was sent." }
            table {
                tr {
                    th { "function" } th { "requests" } th { "p50" } th { "p90" } th { "p95" } th { "p99" } th { "p99.9" }
                    th { "max" } th { "service p50" } th { "p99" } th { "max" }
                }
                @for (name, of) in &report.latency {
                    tr {
                        td { (name) } td { (grouped(of.response.count)) } td { (ms(of.response.p50_ms)) }
                        td { (ms(of.response.p90_ms)) } td { (ms(of.response.p95_ms)) } td { (ms(of.response.p99_ms)) }
                        td { (ms(of.response.p999_ms)) } td { (ms(of.response.max_ms)) }
                        td { (ms(of.service.p50_ms)) } td { (ms(of.service.p99_ms)) } td { (ms(of.service.max_ms)) }
                    }
                }
            }
        }
    }
}

fn behaviours(report: &Report) -> Markup {
    html! {
        section {
            h2 { "The mix, and how it was answered" }
            p.soft { "Shown: got as far as showing it; the others were refused before." }
            table {
                tr {
                    th { "behaviour" } th { "‰" } th { "people" } th { "shown" } th { "as expected" }
                    th.text { "must be answered" }
                }
                @for one in &report.behaviours {
                    tr {
                        td { (one.behaviour) } td { (one.per_mille) } td { (grouped(one.people)) }
                        td { (grouped(one.shown)) }
                        td.(if one.shown == one.as_expected { "good" } else { "bad" }) { (grouped(one.as_expected)) }
                        td.text { (one.expected) }
                    }
                }
            }
        }
    }
}

fn people(report: &Report) -> Markup {
    html! {
        section {
            h2 { "People by class" }
            table {
                tr {
                    th { "class" } th { "came" } th { "came back" } th { "admitted" } th { "orders" }
                    th { "paid" } th { "tickets" }
                }
                @for (class, deeds) in &report.people {
                    tr {
                        td { (class.name()) } td { (grouped(deeds.arrived)) } td { (grouped(deeds.returned)) }
                        td { (grouped(deeds.admitted)) } td { (grouped(deeds.orders)) }
                        td { (grouped(deeds.paid)) } td { (grouped(deeds.tickets)) }
                    }
                }
            }
        }
    }
}

fn fairness(report: &Report) -> Markup {
    let percent = |part: u64, whole: u64| match whole {
        0 => String::new(),
        whole => format!("{:.0} %", 100.0 * part as f64 / whole as f64),
    };
    html! {
        @if let Some(fairness) = &report.fairness {
            section {
                h2 { "Fairness" }
                p.soft { "Accounts by tenths of the crowd, in the order of their coming. " (fairness.words()) "." }
                table {
                    tr {
                        th { "by arrival" } th { "people" } th { "admitted" } th { "" } th { "bots" } th { "admitted" }
                        th { "" }
                    }
                    @for (number, tenth) in (1..).zip(&fairness.deciles) {
                        tr {
                            td { "tenth " (number) }
                            td { (grouped(tenth.people)) } td { (grouped(tenth.people_admitted)) }
                            td { (percent(tenth.people_admitted, tenth.people)) }
                            td { (grouped(tenth.bots)) } td { (grouped(tenth.bots_admitted)) }
                            td { (percent(tenth.bots_admitted, tenth.bots)) }
                        }
                    }
                }
            }
        }
    }
}

fn thresholds(report: &Report) -> Markup {
    html! {
        @if !report.thresholds.is_empty() {
            section {
                h2 { "Thresholds" }
                ul {
                    @for checked in &report.thresholds {
                        li.(if checked.met { "good" } else { "bad" }) { (checked) }
                    }
                }
            }
        }
    }
}

fn refusals(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Refusals by reason" }
            table {
                tr { th { "reason" } th { "times" } }
                @for (why, times) in &report.refusals { tr { td { (why) } td { (grouped(*times)) } } }
            }
            p.soft { (report.refused_reservations()) ". " (report.callbacks()) "." }
        }
    }
}

fn audited(audit: &audit::Report) -> Markup {
    html! {
        section {
            h2 { "Audit" }
            p.soft { "Both stores were read, and every rule checked without the code that keeps it." }
            table {
                tr { th { "rule" } th.text { "what it says" } th { "checked" } th.text { "of" } th { "violations" } }
                @for finding in &audit.findings {
                    tr {
                        td { (finding.rule.name()) } td.text { (finding.rule.says()) } td { (grouped(finding.checked)) }
                        td.text { (finding.rule.unit()) }
                        td.(if finding.violations.is_empty() { "good" } else { "bad" }) {
                            (finding.violations.len())
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_last_sample_makes_no_spike() {
        let sample = |at_seconds, tickets| Sample { at_seconds, tickets, ..Sample::default() };
        let series = [sample(1.0, 10), sample(3.0, 10), sample(3.1, 10)];
        let rates = rates(&series, |sample| sample.tickets as f64);
        assert_eq!(rates, [(1.0, 10.0), (3.0, 5.0)]);
        let sums = sums(&series, |sample| sample.tickets);
        assert_eq!(sums, [(0.0, 0.0), (1.0, 10.0), (3.0, 20.0), (3.1, 30.0)]);
    }
}
