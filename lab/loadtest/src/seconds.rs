//! The seconds of a run as CSV: a row for each second and class of people, for spreadsheets and plots.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::people::Class;
use super::series::{ClassSample, Sample};

/// Columns before those of the refusals.
const COLUMNS: [&str; 12] = [
    "second", "class", "arrived", "returned", "requests", "answered", "admitted", "orders", "paid",
    "tickets", "p50_ms", "p99_ms",
];
/// What the column of a kind of refusal begins with.
const REFUSED: &str = "refused_";
/// The class of the rows that are of everybody.
const ALL: &str = "all";

/// Writes the seconds of a run to a file.
///
/// # Errors
/// The file cannot be written; the error names it.
pub fn write(file: &Path, series: &[Sample]) -> io::Result<()> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    fs::File::create(file).and_then(|out| write_to(out, series)).map_err(named)
}

/// Writes a header, and for each second a row of everybody (`all`) and one of each class that occurs in
/// the run. `refused_KIND` has a column for each kind of refusal that occurs in the run.
///
/// # Errors
/// It cannot be written.
fn write_to(out: impl Write, series: &[Sample]) -> io::Result<()> {
    let seen = || series.iter().flat_map(|sample| &sample.people);
    let classes: BTreeSet<Class> = seen().map(|(class, _)| *class).collect();
    let kinds: BTreeSet<&str> =
        seen().flat_map(|(_, of_class)| of_class.refused.keys()).map(AsRef::as_ref).collect();
    let mut rows = csv::Writer::from_writer(out);
    let refused = kinds.iter().map(|kind| format!("{REFUSED}{kind}"));
    rows.write_record(COLUMNS.into_iter().map(str::to_owned).chain(refused))?;
    let nothing = ClassSample::default();
    for sample in series {
        rows.write_record(row(sample, ALL, &everybody(sample), &kinds))?;
        for class in Class::ALL.into_iter().filter(|class| classes.contains(class)) {
            let of_class = sample.people.get(&class).unwrap_or(&nothing);
            rows.write_record(row(sample, class.name(), of_class, &kinds))?;
        }
    }
    rows.flush()
}

/// The second of everybody: the sums of the classes, and the times of all answers.
fn everybody(sample: &Sample) -> ClassSample {
    let mut all = ClassSample {
        sent: sample.sent,
        answered: sample.answered,
        response_p50_ms: sample.response_p50_ms,
        response_p99_ms: sample.response_p99_ms,
        ..ClassSample::default()
    };
    for of_class in sample.people.values() {
        all.deeds = all.deeds.and(of_class.deeds);
        for (kind, times) in &of_class.refused {
            *all.refused.entry(kind.clone()).or_default() += times;
        }
    }
    all
}

fn row(
    sample: &Sample,
    class: &str,
    of_class: &ClassSample,
    kinds: &BTreeSet<&str>,
) -> Vec<String> {
    let ClassSample { deeds, sent, answered, refused, response_p50_ms, response_p99_ms } = of_class;
    let counts = [
        deeds.arrived,
        deeds.returned,
        *sent,
        *answered,
        deeds.admitted,
        deeds.orders,
        deeds.paid,
        deeds.tickets,
    ];
    let mut row = vec![format!("{:.3}", sample.at_seconds), class.to_owned()];
    row.extend(counts.iter().map(u64::to_string));
    row.extend([response_p50_ms, response_p99_ms].map(|ms| format!("{ms:.3}")));
    row.extend(kinds.iter().map(|kind| refused.get(*kind).copied().unwrap_or(0).to_string()));
    row
}

#[cfg(test)]
mod tests {
    use super::super::people::Deeds;
    use super::*;

    #[test]
    fn a_second_has_a_row_of_everybody_and_one_of_each_class_of_the_run() {
        let of = |arrived, sent, refused: &'static [(&'static str, u64)]| ClassSample {
            deeds: Deeds { arrived, ..Deeds::default() },
            sent,
            answered: sent,
            refused: refused.iter().map(|(kind, times)| ((*kind).into(), *times)).collect(),
            response_p50_ms: 1.5,
            response_p99_ms: 20.0,
        };
        let sample = |at_seconds, people: Vec<(Class, ClassSample)>| Sample {
            at_seconds,
            sent: 9,
            answered: 8,
            people: people.into_iter().collect(),
            ..Sample::default()
        };
        let series = [
            sample(1.0, vec![(Class::Person, of(5, 6, &[("waiting", 2)]))]),
            sample(
                2.0004,
                vec![
                    (Class::Person, of(1, 1, &[("waiting", 1), ("sold-out", 1)])),
                    (Class::Hammer, of(1, 20, &[("sold-out", 19)])),
                ],
            ),
        ];
        let mut out = Vec::new();
        write_to(&mut out, &series).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "\
second,class,arrived,returned,requests,answered,admitted,orders,paid,tickets,p50_ms,p99_ms,refused_sold-out,refused_waiting
1.000,all,5,0,9,8,0,0,0,0,0.000,0.000,0,2
1.000,person,5,0,6,6,0,0,0,0,1.500,20.000,0,2
1.000,hammer,0,0,0,0,0,0,0,0,0.000,0.000,0,0
2.000,all,2,0,9,8,0,0,0,0,0.000,0.000,20,1
2.000,person,1,0,1,1,0,0,0,0,1.500,20.000,1,1
2.000,hammer,1,0,20,20,0,0,0,0,1.500,20.000,19,0
";
        assert_eq!(text, expected);
    }
}
