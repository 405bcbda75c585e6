//! A record as CloudWatch reads it. The library writes the format; here is which of our metrics go
//! with which dimensions.

use std::io;

use metrique_writer_core::format::Format as _;
use metrique_writer_core::stream::IoStreamError;
use metrique_writer_core::{
    Entry, EntryWriter, MetricFlags, Observation, Unit, Value, ValueWriter,
};
use metrique_writer_format_emf::{Emf, MetricDefinition, MetricDirective, NoMetric};

use super::{Dimensions, Metric, NAMESPACE};
use engine::domain::basics::ids::SaleId;

/// The metrics of one piece of work, or of one sale within it.
#[derive(Debug, Clone)]
pub(super) struct Record<'a> {
    pub(super) stage: &'a str,
    pub(super) function: &'static str,
    pub(super) sale: Option<SaleId>,
    pub(super) reason: Option<&'static str>,
    pub(super) values: Vec<(Metric, Observation)>,
}

/// A number with its unit.
struct Figure {
    observation: Observation,
    unit: Unit,
}

impl Value for Figure {
    fn write(&self, writer: impl ValueWriter) {
        writer.metric([self.observation], self.unit, [], MetricFlags::empty());
    }
}

impl Record<'_> {
    /// The record as a line, its line feed included.
    ///
    /// # Errors
    /// The record is not one that the format allows.
    pub(super) fn line(&self) -> io::Result<Vec<u8>> {
        let mut groups = self.groups();
        let first = groups.next().unwrap_or(Dimensions::Stage);
        let owned = |set: &&[&str]| set.iter().map(|&name| name.to_owned()).collect();
        let mut emf = Emf::builder(NAMESPACE.to_owned(), first.sets().iter().map(owned).collect());
        for group in groups {
            emf = emf.directive(MetricDirective {
                dimensions: group.sets().iter().map(|set| set.to_vec()).collect(),
                metrics: self.of(group).map(definition).collect(),
                namespace: NAMESPACE,
            });
        }
        let mut line = Vec::with_capacity(1024);
        emf.build().format(&Grouped { record: self, first }, &mut line).map_err(
            |error| match error {
                IoStreamError::Validation(defect) => io::Error::other(defect),
                IoStreamError::Io(error) => error,
            },
        )?;
        Ok(line)
    }

    /// The dimensions that it has metrics for, each once.
    fn groups(&self) -> impl Iterator<Item = Dimensions> {
        Dimensions::ALL.into_iter().filter(|group| self.of(*group).next().is_some())
    }

    fn of(&self, group: Dimensions) -> impl Iterator<Item = Metric> {
        let metrics = self.values.iter().map(|(metric, _)| *metric);
        metrics.filter(move |metric| metric.row().dimensions == group)
    }
}

fn definition(metric: Metric) -> MetricDefinition<'static> {
    MetricDefinition { name: metric.row().name, unit: metric.unit(), storage_resolution: None }
}

/// A record whose metrics with the first dimensions declare themselves; the others are declared.
struct Grouped<'a> {
    record: &'a Record<'a>,
    first: Dimensions,
}

impl Entry for Grouped<'_> {
    fn write<'a>(&'a self, writer: &mut impl EntryWriter<'a>) {
        let Record { stage, function, sale, reason, values } = self.record;
        writer.value("Stage", *stage);
        writer.value("Function", *function);
        if let Some(sale) = sale {
            writer.value("Sale", sale.as_str());
        }
        if let Some(reason) = reason {
            writer.value("Reason", *reason);
        }
        for (metric, observation) in values {
            let figure = Figure { observation: *observation, unit: metric.unit() };
            let row = metric.row();
            if row.dimensions == self.first {
                writer.value(row.name, &figure);
            } else {
                writer.value(row.name, &NoMetric::from(figure));
            }
        }
    }
}
