//! The repair that the schedule does each minute, done now or only described.

use engine::domain::basics::time::Timestamp;
use engine::flows::reconcile::{Run, dry_run, reconcile_all};
use engine::ports::{Ports, Stored};
use shared::runtime::app::new_epoch;

/// What a run found, and what it did about it.
#[derive(Debug)]
pub struct Repair {
    /// Every discrepancy with its outcome, and the counts.
    pub run: Run,
    /// True if nothing was changed.
    pub is_dry: bool,
}

impl Repair {
    /// Repairs whatever can be repaired, or, if `is_dry`, only finds it.
    ///
    /// # Errors
    /// A store is out of reach; what was repaired before stays repaired.
    pub async fn run(ports: &impl Ports, is_dry: bool, now: Timestamp) -> Stored<Self> {
        let run = match is_dry {
            true => dry_run(ports, now).await?,
            false => reconcile_all(ports, &new_epoch(now)?, now).await?,
        };
        Ok(Self { run, is_dry })
    }

    /// True if nothing is left to repair: a dry run found nothing and read everything, or a repair
    /// failed nowhere.
    #[must_use]
    pub fn is_well(&self) -> bool {
        match self.is_dry {
            true => self.run.found.is_empty() && self.run.unread.is_empty(),
            false => self.run.report.failed == 0,
        }
    }
}
