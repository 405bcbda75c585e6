//! A forecast, or the curves of many, as a page that stands by itself.

use loadtest::charts::{self, Curve};
use loadtest::page::{document, figure, in_figures};
use maud::{Markup, html};
use reporting::grouped;

use crate::curves::{Curves, Point};
use crate::forecast::{Forecast, time};
use crate::simulation::{Run, Sample};

/// The page of a forecast.
///
/// # Errors
/// A plot cannot be drawn.
pub fn of_forecast(forecast: &Forecast) -> Result<String, charts::Error> {
    let course = |run: &Run, of: fn(&Sample) -> f64| -> Vec<(f64, f64)> {
        let since = run.series.iter().filter(|sample| sample.second >= 0.0);
        since.map(|sample| (sample.second, of(sample))).collect()
    };
    let curves = |of: fn(&Sample) -> f64| -> Vec<Curve> {
        let runs = forecast.runs().into_iter().enumerate();
        runs.map(|(colour, (name, run))| Curve::new(name, colour, course(run, of))).collect()
    };
    let plots = [
        figure("Tickets paid", "From the opening.", &curves(|one| one.sold as f64), charts::lines)?,
        figure(
            "People who wait in the room",
            "From the opening.",
            &curves(|one| one.waiting as f64),
            charts::lines,
        )?,
        figure(
            "Requests of the API",
            "A second, logarithmic.",
            &curves(|one| one.api),
            |curves| charts::logarithmic(curves, 1.0),
        )?,
        figure(
            "Requests at the edge",
            "A second, logarithmic.",
            &curves(|one| one.edge),
            |curves| charts::logarithmic(curves, 1.0),
        )?,
    ];
    let names: Vec<&str> = forecast.runs().into_iter().map(|(name, _)| name).collect();
    let body = html! {
        p.soft {
            (grouped(forecast.run.places)) " tickets, " (grouped(forecast.crowd.visitors)) " people, "
            (grouped(forecast.sales.into())) " at once. Simulated, not run: docs/capacity.md says how."
        }
        (in_figures(&boxes(&forecast.run)))
        div.plots { @for plot in plots { (plot) } }
        section {
            h2 { "What happens" }
            table {
                tr { th {} @for name in names { th { (name) } } }
                @for (name, figures) in forecast.figures() {
                    tr { td { (name) } @for figure in figures { td { (figure) } } }
                }
            }
        }
        (advice(forecast))
        section {
            h2 { "Bill" }
            table {
                tr { th { "on this deployment" } th {} th {} th { (forecast.currency) } }
                @for line in &forecast.bill.lines {
                    tr {
                        td { (line.what) }
                        td { (format!("{:.1}", line.amount)) }
                        td.text { (line.unit) }
                        td { (format!("{:.2}", line.cost)) }
                    }
                }
                tr { td { "together" } td {} td {} td { (format!("{:.2}", forecast.bill.total)) } }
            }
        }
    };
    Ok(document("What the sale will take", &body))
}

fn boxes(run: &Run) -> Vec<(String, &'static str)> {
    let maybe = |at: Option<f64>| at.map_or_else(|| "not within the time".to_owned(), time);
    vec![
        (maybe(run.sold_out), "until everything is paid"),
        (maybe(run.nine_tenths), "until nine tenths are"),
        (time(run.wait.p50_ms / 1_000.0), "wait of half of those whose turn comes, at most"),
        (grouped(run.turned_away), "gave up: refused again and again"),
        (grouped(run.orders), "orders"),
        (grouped(run.edge_requests as u64), "requests at the edge"),
        (grouped(run.api_requests as u64), "requests of the API"),
    ]
}

fn advice(forecast: &Forecast) -> Markup {
    html! {
        section {
            h2 { "What throttles, the first first" }
            @if forecast.advice.is_empty() { p { "Nothing." } }
            @else {
                table {
                    tr { th { "limit" } th { "at" } th { "refused" } th { "has" } th { "asked for" } th { "raise to" } }
                    @for one in &forecast.advice {
                        @let (name, unit, setting) = one.limit.row();
                        tr {
                            td { (name) }
                            td { (one.first.map_or_else(|| "behind these".to_owned(), time)) }
                            td { (grouped(one.refused as u64)) }
                            td { (one.has.map_or_else(|| "-".to_owned(), |has| grouped(has as u64))) }
                            td { (format!("{:.1} {unit}", one.asked)) }
                            td {
                                @match (one.raise_to, setting) {
                                    (Some(to), Some(setting)) => { (setting) " " (grouped(to as u64)) }
                                    _ => { "nothing raises it" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The page of curves.
///
/// # Errors
/// A plot cannot be drawn.
pub fn of_curves(curves: &Curves) -> Result<String, charts::Error> {
    let mut plots =
        plots_over(&curves.crowds, curves.hours, "by people", |point| point.visitors as f64)?;
    plots.extend(plots_over(&curves.sales, curves.hours, "by sales at once", |point| {
        point.sales.into()
    })?);
    let body = html! {
        p.soft {
            "Each point is a simulation of its own, not a run: docs/capacity.md says how. Both axes are logarithmic."
        }
        div.plots { @for plot in plots { (plot) } }
    };
    Ok(document("Capacity by crowd and by number of sales", &body))
}

/// A figure of a point.
type Of = fn(&Point) -> f64;

/// The names of curves, and what they show of a point.
const TIMES: [(&str, Of); 4] = [
    ("half, on this deployment", |point| point.forecast.run.half.unwrap_or(f64::INFINITY)),
    ("half, once raised", |point| point.best().half.unwrap_or(f64::INFINITY)),
    ("nine tenths, on this deployment", |point| {
        point.forecast.run.nine_tenths.unwrap_or(f64::INFINITY)
    }),
    ("nine tenths, once raised", |point| point.best().nine_tenths.unwrap_or(f64::INFINITY)),
];
const REQUESTS: [(&str, Of); 2] = [
    ("at the edge", |point| point.best().edge_requests),
    ("of the API", |point| point.best().api_requests),
];
const PEAKS: [(&str, Of); 2] = [
    ("at the edge", |point| point.forecast.unlimited.peak_edge),
    ("of the API", |point| point.forecast.unlimited.peak_api),
];
const GAVE_UP: [(&str, Of); 2] = [
    ("on this deployment", |point| point.forecast.run.turned_away as f64),
    ("once raised", |point| point.best().turned_away as f64),
];
const BILLS: [(&str, Of); 2] = [
    ("on this deployment", |point| point.forecast.bill.total),
    ("once raised", |point| {
        point.forecast.raised_bill.as_ref().unwrap_or(&point.forecast.bill).total
    }),
];

/// The plots of points along an axis.
fn plots_over(
    points: &[Point],
    hours: f64,
    over: &str,
    along: Of,
) -> Result<Vec<Markup>, charts::Error> {
    let most = hours * 3_600.0;
    let plot = |title: &str, caption: &str, lines: &[(&str, Of)], least: f64| {
        let of_line = |(colour, (name, of)): (usize, &(&str, Of))| {
            let within = |figure: f64| if figure.is_finite() { figure } else { most };
            let points = points.iter().map(|point| (along(point), within(of(point))));
            Curve::new(*name, colour, points.collect())
        };
        let curves: Vec<Curve> = lines.iter().enumerate().map(of_line).collect();
        figure(&format!("{title}, {over}"), caption, &curves, |curves| {
            charts::logarithmic_over_numbers(curves, least)
        })
    };
    Ok(vec![
        plot(
            "Time until half and nine tenths are paid",
            &format!("Seconds; at the top where it is not within {hours} hours."),
            &TIMES,
            10.0,
        )?,
        plot("Requests", "Once raised.", &REQUESTS, 1_000.0)?,
        plot("Peak", "Requests a second, without limits.", &PEAKS, 1.0)?,
        plot("People who gave up", "Refused again and again.", &GAVE_UP, 1.0)?,
        plot("Bill", "USD, beyond the fixed costs.", &BILLS, 1.0)?,
    ])
}
