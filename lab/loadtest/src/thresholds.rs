//! Thresholds: which figures of the report must hold, from a file. They decide the exit code.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most thresholds in a file.
const MAX_THRESHOLDS: usize = 1_000;

/// A file of thresholds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    thresholds: Vec<Threshold>,
}

/// One figure of the report, and what it must be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The figure, as a JSON Pointer (RFC 6901) into the report, such as
    /// `/latency/token-gate/response/p99_ms`; true counts as 1 and false as 0.
    pub figure: String,
    /// The largest value that is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The smallest value that is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The value of a figure that the report does not have, such as the count of a refusal that did not
    /// occur. Without it such a figure is missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_absent: Option<f64>,
}

/// A threshold, and the figure that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    #[serde(flatten)]
    pub threshold: Threshold,
    /// The figure; absent if the report does not have it as a number.
    pub value: Option<f64>,
    /// True if the figure is good.
    pub met: bool,
}

/// Why there are no thresholds to be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    Unreadable(String, std::io::Error),
    /// It is not a file of thresholds.
    #[error("{0}: {1}")]
    Malformed(String, serde_json::Error),
    /// It has no threshold, or too many.
    #[error("{0}: 1 to {MAX_THRESHOLDS} thresholds are needed")]
    Count(String),
    /// A threshold can neither be met nor missed.
    #[error("{file}: {figure}: {why}")]
    Meaningless {
        file: String,
        /// The figure of the threshold.
        figure: String,
        why: &'static str,
    },
}

impl Thresholds {
    /// Reads thresholds from a JSON file.
    ///
    /// # Errors
    /// It cannot be read, or a threshold of it could not decide anything.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let name = file.display().to_string();
        let text =
            fs::read_to_string(file).map_err(|error| Error::Unreadable(name.clone(), error))?;
        Self::from_json(&name, &text)
    }

    fn from_json(name: &str, text: &str) -> Result<Self, Error> {
        let read: Self =
            serde_json::from_str(text).map_err(|error| Error::Malformed(name.to_owned(), error))?;
        if !(1..=MAX_THRESHOLDS).contains(&read.thresholds.len()) {
            return Err(Error::Count(name.to_owned()));
        }
        let defect = read.thresholds.iter().find_map(|one| Some((one, one.defect()?)));
        match defect {
            Some((threshold, why)) => Err(Error::Meaningless {
                file: name.to_owned(),
                figure: threshold.figure.clone(),
                why,
            }),
            None => Ok(read),
        }
    }

    /// Holds a report against every threshold.
    #[must_use]
    pub fn check(&self, report: &impl Serialize) -> Vec<Checked> {
        // Every field of a report can be written as JSON; were one not, every figure would be missed.
        let report = serde_json::to_value(report).unwrap_or(Value::Null);
        self.thresholds.iter().map(|threshold| threshold.check(&report)).collect()
    }
}

impl Threshold {
    fn defect(&self) -> Option<&'static str> {
        if !self.figure.starts_with('/') {
            return Some("a figure is a JSON Pointer and begins with /");
        }
        match (self.at_least, self.at_most) {
            (None, None) => Some("at_most or at_least is needed"),
            (Some(least), Some(most)) if least > most => {
                Some("no figure can be so large and so small")
            }
            (Some(_) | None, Some(_)) | (Some(_), None) => None,
        }
    }

    fn check(&self, report: &Value) -> Checked {
        let found = report.pointer(&self.figure);
        let value = match found {
            Some(Value::Bool(holds)) => Some(f64::from(u8::from(*holds))),
            Some(other) => other.as_f64(),
            None => self.if_absent,
        };
        let is_good = |value: f64| {
            self.at_most.is_none_or(|most| value <= most)
                && self.at_least.is_none_or(|least| value >= least)
        };
        Checked { threshold: self.clone(), value, met: value.is_some_and(is_good) }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Threshold { figure, at_most, at_least, .. } = &self.threshold;
        formatter.write_str(if self.met { "met" } else { "MISSED" })?;
        write!(formatter, ": {figure} ")?;
        match self.value {
            Some(value) => write!(formatter, "is {value}")?,
            None => formatter.write_str("is no number of the report")?,
        }
        let bound =
            |name: &str, bound: &Option<f64>| bound.map(|bound| format!(", {name} {bound}"));
        let bounds = [bound("at most", at_most), bound("at least", at_least)];
        bounds.iter().flatten().try_for_each(|bound| formatter.write_str(bound))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thresholds(all: Value) -> Result<Thresholds, Error> {
        Thresholds::from_json("t.json", &json!({ "thresholds": all }).to_string())
    }

    #[test]
    fn a_figure_is_met_or_missed_and_named() {
        let report = json!({
            "sold_out": true, "latency": { "token-gate": { "response": { "p99_ms": 120.5 } } },
            "sales": [{ "taken": 7 }], "refusals": {}, "cpu": null,
        });
        let p99 = "/latency/token-gate/response/p99_ms";
        for (threshold, met) in [
            (json!({ "figure": p99, "at_most": 120.5 }), true),
            (json!({ "figure": p99, "at_most": 120.4 }), false),
            (json!({ "figure": p99, "at_least": 120.6 }), false),
            (json!({ "figure": p99, "at_least": 100, "at_most": 130 }), true),
            (json!({ "figure": "/sold_out", "at_least": 1 }), true),
            (json!({ "figure": "/sold_out", "at_most": 0 }), false),
            (json!({ "figure": "/sales/0/taken", "at_least": 7 }), true),
            (json!({ "figure": "/refusals/no-answer", "at_most": 0 }), false),
            (json!({ "figure": "/refusals/no-answer", "at_most": 0, "if_absent": 0 }), true),
            (json!({ "figure": "/cpu", "at_most": 9, "if_absent": 0 }), false),
            (json!({ "figure": "/latency", "at_most": 9 }), false),
        ] {
            let checked = thresholds(json!([threshold])).unwrap().check(&report);
            assert_eq!(checked[0].met, met, "{}", checked[0]);
        }
        let missed = thresholds(json!([{ "figure": p99, "at_most": 100 }])).unwrap().check(&report);
        let said = missed[0].to_string();
        assert_eq!(said, format!("MISSED: {p99} is 120.5, at most 100"));
    }

    #[test]
    fn a_file_that_could_decide_nothing_is_refused() {
        for defective in [
            json!([]),
            json!([{ "figure": "/paid" }]),
            json!([{ "figure": "paid", "at_most": 1 }]),
            json!([{ "figure": "/paid", "at_most": 1, "at_least": 2 }]),
            json!([{ "figure": "/paid", "atmost": 1 }]),
            json!([{ "at_most": 1 }]),
        ] {
            assert!(thresholds(defective.clone()).is_err(), "{defective}");
        }
        assert!(Thresholds::from_json("t", "{}").is_err());
        assert!(Thresholds::read(Path::new("/no/such/file")).is_err());
    }
}
