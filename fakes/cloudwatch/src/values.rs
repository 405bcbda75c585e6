//! The values of metrics, and what CloudWatch makes of them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A metric: namespace, name, and dimensions by name.
pub(crate) type Named = (String, String, BTreeMap<String, String>);

/// Every value that was written, with its time in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Values(BTreeMap<Named, Vec<(i64, f64)>>);

impl Values {
    pub(crate) fn put(&mut self, metric: Named, at_ms: i64, value: f64) {
        self.0.entry(metric).or_default().push((at_ms, value));
    }

    /// Takes the metrics of a line in the embedded metric format, as CloudWatch Logs does: a value of each metric for
    /// each set of dimensions that is declared with it. A line of another kind has none.
    pub(crate) fn take(&mut self, line: &Value) {
        let at_ms = line["_aws"]["Timestamp"].as_i64().unwrap_or_default();
        for directive in list(&line["_aws"]["CloudWatchMetrics"]) {
            let namespace = text(&directive["Namespace"]);
            for metric in list(&directive["Metrics"]) {
                let name = text(&metric["Name"]);
                let numbers = numbers(&line[name.as_str()]);
                for set in list(&directive["Dimensions"]) {
                    let of = |name: &Value| (text(name), text(&line[text(name).as_str()]));
                    let dimensions: BTreeMap<String, String> = list(set).map(of).collect();
                    for number in &numbers {
                        self.put(
                            (namespace.clone(), name.clone(), dimensions.clone()),
                            at_ms,
                            *number,
                        );
                    }
                }
            }
        }
    }

    /// A statistic of each period that has values, from `start_ms` up to before `end_ms`; in milliseconds.
    pub(crate) fn statistic(
        &self,
        metric: &Named,
        statistic: &Statistic,
        period_ms: i64,
        (start_ms, end_ms): (i64, i64),
    ) -> BTreeMap<i64, f64> {
        let mut periods: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for (at_ms, value) in self.0.get(metric).into_iter().flatten() {
            if (start_ms..end_ms).contains(at_ms) {
                periods.entry(at_ms.div_euclid(period_ms) * period_ms).or_default().push(*value);
            }
        }
        periods.into_iter().map(|(at_ms, values)| (at_ms, statistic.of(values))).collect()
    }
}

/// What is made of the values of a period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statistic {
    Sum,
    SampleCount,
    Percentile(f64),
}

impl Statistic {
    /// One of those that CloudWatch knows; of the others this one knows none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if text == "Sum" {
            return Some(Self::Sum);
        }
        if text == "SampleCount" {
            return Some(Self::SampleCount);
        }
        let percent: f64 = text.strip_prefix('p')?.parse().ok()?;
        (0.0..=100.0).contains(&percent).then_some(Self::Percentile(percent))
    }

    fn of(&self, mut values: Vec<f64>) -> f64 {
        match self {
            Self::Sum => values.iter().sum(),
            Self::SampleCount => values.iter().map(|_| 1.0).sum(),
            Self::Percentile(percent) => {
                values.sort_by(f64::total_cmp);
                let count = u32::try_from(values.len()).map_or(f64::INFINITY, f64::from);
                let below = |rank: u32| f64::from(rank) < count * percent / 100.0;
                let ranked = values.iter().zip(1_u32..);
                let found = ranked.skip_while(|(_, rank)| below(*rank)).map(|(value, _)| *value);
                found.chain(values.last().copied()).next().unwrap_or_default()
            }
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The values of a metric in a line: one, several, or values with how often each occurred.
fn numbers(value: &Value) -> Vec<f64> {
    value.as_f64().map_or_else(|| list(value).filter_map(Value::as_f64).collect(), |one| vec![one])
}
