//! The figures of one function, and all of them side by side.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use comfy_table::CellAlignment;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::Failure;
use crate::environment::Environment;
use crate::sandbox::Sandbox;

/// Further requests that a sandbox answers, to measure a warm one.
const WARM_REQUESTS: u32 = 20;

/// Usage of one sandbox.
#[derive(Debug, Clone, Copy)]
struct Sample {
    init_ms: f64,
    first_ms: f64,
    warm_ms: f64,
    peak_mb: f64,
    connected: usize,
}

/// The medians of a function's samples.
#[derive(Debug, Clone)]
pub struct Figures {
    pub function: String,
    /// The binary, in megabytes.
    pub binary_mb: f64,
    /// The same in a zip archive.
    pub zip_mb: f64,
    /// Processor time until it asks for its first event.
    pub init_ms: f64,
    /// Processor time of its first request.
    pub first_ms: f64,
    /// Both together, per sandbox.
    pub cold_ms: f64,
    /// The longest of them.
    pub cold_most_ms: f64,
    /// Processor time of a request to a warm sandbox.
    pub warm_ms: f64,
    /// The most memory, in megabytes.
    pub peak_mb: f64,
    /// Connections that the first request had to make.
    pub connected: f64,
}

/// Measures a function in `samples` sandboxes.
///
/// # Errors
/// It does not start, or fails.
pub async fn measure(
    environment: &Environment,
    function: &str,
    bootstrap: &Path,
    samples: usize,
) -> Result<Figures, Failure> {
    let mut taken = Vec::new();
    for _ in 0..samples {
        taken.push(sample(environment, function, bootstrap).await?);
    }
    let binary = fs::read(bootstrap)?;
    let mut zip = DeflateEncoder::new(Vec::new(), Compression::default());
    zip.write_all(&binary)?;
    let megabytes = |bytes: usize| bytes as f64 / 1024.0 / 1024.0;
    let median = |of: fn(&Sample) -> f64| quantile(taken.iter().map(of).collect(), 0.5);
    Ok(Figures {
        function: function.to_owned(),
        binary_mb: megabytes(binary.len()),
        zip_mb: megabytes(zip.finish()?.len()),
        init_ms: median(|sample| sample.init_ms),
        first_ms: median(|sample| sample.first_ms),
        cold_ms: median(|sample| sample.init_ms + sample.first_ms),
        cold_most_ms: quantile(taken.iter().map(|one| one.init_ms + one.first_ms).collect(), 1.0),
        warm_ms: median(|sample| sample.warm_ms),
        peak_mb: median(|sample| sample.peak_mb),
        connected: median(|sample| sample.connected as f64),
    })
}

async fn sample(
    environment: &Environment,
    function: &str,
    bootstrap: &Path,
) -> Result<Sample, Failure> {
    let mut events = Vec::new();
    for _ in 0..=WARM_REQUESTS {
        events.push(environment.event(function).await?);
    }
    let mut events = events.into_iter();
    let mut sandbox = Sandbox::start(bootstrap, &environment.environment()).await?;
    let init = sandbox.used().await?;
    let before: usize = environment.accepted().iter().sum();
    answered(function, &sandbox.invoke(events.next().unwrap_or_default()).await?)?;
    let first = sandbox.used().await?;
    let connected = environment.accepted().iter().sum::<usize>() - before;
    for event in events {
        answered(function, &sandbox.invoke(event).await?)?;
    }
    let warm = sandbox.used().await?;
    sandbox.stop().await?;
    Ok(Sample {
        init_ms: init.cpu_ms,
        first_ms: first.cpu_ms - init.cpu_ms,
        warm_ms: (warm.cpu_ms - first.cpu_ms) / f64::from(WARM_REQUESTS),
        peak_mb: first.peak_mb,
        connected,
    })
}

/// An answer must say that the work was done: nothing else is worth measuring.
fn answered(function: &str, answer: &[u8]) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(answer);
    let json: serde_json::Value = serde_json::from_slice(answer)?;
    let is_done = match (&json["statusCode"], &json["batchItemFailures"]) {
        (serde_json::Value::Number(status), _) => status.as_u64().is_some_and(|is| is < 300),
        (_, serde_json::Value::Array(failures)) => failures.is_empty(),
        _ => true,
    };
    if is_done { Ok(()) } else { Err(format!("{function}: {text}").into()) }
}

fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1) as f64;
    let at = |index: f64| values.get(index as usize).copied().unwrap_or(f64::NAN);
    let middle = last * share;
    f64::midpoint(at(middle.floor()), at(middle.ceil()))
}

/// The figures as a table; the first function is what the others are compared with.
#[must_use]
pub fn table(figures: &[Figures]) -> String {
    let mut table = reporting::table([
        "function",
        "binary MB",
        "zip MB",
        "init ms",
        "first ms",
        "cold ms",
        "most",
        "of hello",
        "warm ms",
        "peak MB",
        "connects",
    ]);
    let hello = figures.first().map_or(f64::NAN, |first| first.cold_ms);
    for of in figures {
        let number = |value: f64| format!("{value:.1}");
        table.add_row([
            of.function.clone(),
            number(of.binary_mb),
            number(of.zip_mb),
            number(of.init_ms),
            number(of.first_ms),
            number(of.cold_ms),
            number(of.cold_most_ms),
            format!("{:.2}", of.cold_ms / hello),
            format!("{:.2}", of.warm_ms),
            number(of.peak_mb),
            format!("{:.0}", of.connected),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}
