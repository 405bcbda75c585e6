//! The metrics on one machine, and the figures of the last minutes that are made of them: what the handlers count, kept in memory by the minute. A
//! deployment has CloudWatch for it ([`shared::figures::cloudwatch`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::Stored;
use futures_util::future::{BoxFuture, ready};
use hdrhistogram::Histogram;
use shared::figures::{
    FigureSource, Figures, Latency, MAX_MINUTES, Minute, OF_SALE, SaleMinute, StageMinute,
};
use shared::http::problem::Kind;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::runtime::metrics::{Metrics, Sink, Tally};

/// Most sales of which a minute has counts; what is counted of others then is not shown.
pub const MAX_SALES: usize = 2_000;
/// Digits to which a latency is kept: its percentiles are right to a hundredth.
const DIGITS: u8 = 2;

/// Longest time of a piece of work that is kept as it is.
const MAX_LATENCY: Duration = Duration::from_secs(3600);

/// What was counted in a minute.
#[derive(Debug, Default)]
struct Counted {
    sales: BTreeMap<SaleId, SaleMinute>,
    problems: BTreeMap<Kind, u64>,
    latency: BTreeMap<Function, Histogram<u64>>,
}

/// What the handlers of a process counted in the last hour.
#[derive(Debug, Default)]
pub struct Kept {
    minutes: Mutex<BTreeMap<Minute, Counted>>,
}

/// The engine, which keeps what its handlers count from now on and shows it.
#[must_use]
pub fn kept(app: App) -> App {
    let kept = Arc::new(Kept::default());
    let metrics = Metrics::with_sink(Arc::<Kept>::clone(&kept));
    let mut app = app.with_figures(Some(kept));
    app.metrics = metrics;
    app
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Minute, Counted>> {
        self.minutes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a piece of work counted that ended at `now`, and forgets what is older than an hour.
    pub fn keep(&self, tally: &Tally, took: Duration, now: Timestamp) {
        let minute = Minute::of(now);
        let mut minutes = self.lock();
        let counted = minutes.entry(minute).or_default();
        for (sale, metric, number) in tally.of_sales() {
            if !OF_SALE.contains(&metric) {
                continue;
            }
            let has_room = counted.sales.len() < MAX_SALES || counted.sales.contains_key(sale);
            if has_room {
                *counted.sales.entry(sale.clone()).or_default().entry(metric).or_default() +=
                    number;
            }
        }
        if let Some(kind) = tally.reason() {
            *counted.problems.entry(kind).or_default() += 1;
        }
        counted.time(tally.function(), took);
        minutes.retain(|of, _| *of > minute.before(MAX_MINUTES));
    }

    /// The figures of a sale, and of everything, of the last minutes; the latest of them is not over.
    #[must_use]
    pub fn figures(&self, sale: &SaleId, minutes: u16, now: Timestamp) -> Figures {
        let last = Minute::of(now);
        let (mut of_sale, mut of_stage) = (BTreeMap::new(), BTreeMap::new());
        for (minute, counted) in self.lock().range(last.before(minutes)..=last) {
            if let Some(counts) = counted.sales.get(sale) {
                of_sale.insert(*minute, counts.clone());
            }
            of_stage.insert(*minute, counted.stage());
        }
        Figures { last, minutes, as_of: now, delay_seconds: 0, sale: of_sale, stage: of_stage }
    }
}

impl Counted {
    /// Keeps how long a piece of work took.
    fn time(&mut self, function: Function, took: Duration) {
        if !self.latency.contains_key(&function)
            && let Ok(histogram) = Histogram::new(DIGITS)
        {
            self.latency.insert(function, histogram);
        }
        if let Some(histogram) = self.latency.get_mut(&function) {
            let us = took.min(MAX_LATENCY).as_micros();
            // It grows to what it is given.
            if let Err(error) = histogram.record(u64::try_from(us).unwrap_or_default()) {
                tracing::warn!(%error, "a latency is not kept");
            }
        }
    }

    fn stage(&self) -> StageMinute {
        let ms = |us: u64| Duration::from_micros(us).as_secs_f64() * 1000.0;
        let latency = |histogram: &Histogram<u64>| Latency {
            count: histogram.len(),
            p50_ms: ms(histogram.value_at_quantile(0.5)),
            p99_ms: ms(histogram.value_at_quantile(0.99)),
        };
        let each = self.latency.iter().map(|(function, of)| (*function, latency(of)));
        StageMinute { problems: self.problems.clone(), latency: each.collect() }
    }
}

impl Sink for Kept {
    fn take(&self, tally: Tally, took: Duration) {
        self.keep(&tally, took, Timestamp::now());
    }
}

impl FigureSource for Kept {
    fn read<'a>(
        &'a self,
        sale: &'a SaleId,
        minutes: u16,
        now: Timestamp,
    ) -> BoxFuture<'a, Stored<Figures>> {
        Box::pin(ready(Ok(self.figures(sale, minutes, now))))
    }
}
