//! How far subscribers were told, as DynamoDB keeps it: the progress and what waits change in one transaction, under
//! the name of the teller.

use std::collections::BTreeMap;

use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::ReaderId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::subscriber::{Progress, Subscription, WaitingOrder};
use engine::ports::{ChangeReply, TakeReply, Waiting};

/// How far each subscription was told, and who tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionsModel {
    /// The last teller of each, and until when it has it.
    pub readers: BTreeMap<Subscription, (ReaderId, Timestamp)>,
    pub progress: BTreeMap<Subscription, Progress>,
    pub waiting: BTreeMap<(Subscription, OrderNumber), WaitingOrder>,
}

impl SubscriptionsModel {
    /// Takes the lease on a subscription, if nobody has it.
    pub fn take(
        &mut self,
        of: &Subscription,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> TakeReply {
        let held = self.readers.get(of).is_some_and(|(by, until)| by != reader && *until > now);
        if held {
            return TakeReply::Held;
        }
        self.readers.insert(of.clone(), (reader.clone(), until));
        TakeReply::Taken(self.progress.get(of).copied())
    }

    /// Writes how far it was told and what waits, if the reader has taken it last.
    pub fn keep(
        &mut self,
        of: &Subscription,
        reader: &ReaderId,
        progress: &Progress,
        waiting: &[Waiting],
        until: Timestamp,
    ) -> ChangeReply {
        let is_readers = self.readers.get(of).is_some_and(|(by, _)| by == reader);
        if stands(Guard::TellerLease) && !is_readers {
            return ChangeReply::Conflict;
        }
        if is_readers {
            self.readers.insert(of.clone(), (reader.clone(), until));
        }
        self.progress.insert(of.clone(), *progress);
        for change in waiting {
            match change {
                Waiting::Keep(order) => {
                    self.waiting.insert((of.clone(), order.order), *order);
                }
                Waiting::Told(order) => {
                    self.waiting.remove(&(of.clone(), *order));
                }
            }
        }
        ChangeReply::Done
    }

    /// The orders that wait, by number.
    #[must_use]
    pub fn waiting(&self, of: &Subscription) -> Vec<WaitingOrder> {
        let of_it = self.waiting.iter().filter(|((subscription, _), _)| subscription == of);
        of_it.map(|(_, order)| *order).collect()
    }
}
