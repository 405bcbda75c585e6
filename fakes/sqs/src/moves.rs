//! Move tasks: the messages of a dead-letter queue go back to where they came from, or to
//! another queue. A task lives as long as the process: the file does not keep it.

use crate::broker::Broker;
use crate::error::{ErrorKind, SqsError};
use crate::message::Message;
use crate::queue::QueueId;
use crate::wire::{MoveStatus, Reply};

/// The most messages one step moves, so that no step delays other requests for long.
const STEP_MAX: u64 = 500;

/// Tasks remembered after their end.
const REMEMBERED_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct MoveTask {
    handle: String,
    source: QueueId,
    destination: Option<QueueId>,
    next_ms: u64,
    status: MoveStatus,
}

impl MoveTask {
    fn runs(&self) -> bool {
        self.status.status == "RUNNING"
    }
}

impl Broker {
    /// Starts a task and takes its first step.
    pub(crate) fn start_move(
        &mut self,
        source_arn: String,
        destination_arn: Option<String>,
        per_second: Option<u64>,
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let source = self.resource(&source_arn, "SourceArn")?;
        let destination = match &destination_arn {
            Some(arn) => Some(self.resource(arn, "DestinationArn")?),
            None => None,
        };
        let refused = |reason: &str| Err(SqsError::new(ErrorKind::InvalidParameterValue, reason));
        if !self.queues.keys().any(|id| self.redrives_to(*id, &source_arn)) {
            return refused("Source queue must be configured as a Dead Letter Queue.");
        }
        if destination == Some(source) {
            return refused("Source queue arn and destination queue arn cannot be the same.");
        }
        if self.moves.iter().any(|task| task.runs() && task.source == source) {
            return refused(
                "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
            );
        }
        self.tidy(source, now_ms);
        let to_move = u64::try_from(self.queue(source)?.counts().0).unwrap_or(u64::MAX);
        let handle = format!("move-{:016x}", self.next_number());
        if self.moves.len() >= REMEMBERED_MAX {
            let oldest = self.moves.iter().position(|task| !task.runs());
            oldest.map(|index| self.moves.remove(index));
        }
        self.moves.push(MoveTask {
            handle: handle.clone(),
            source,
            destination,
            next_ms: now_ms,
            status: MoveStatus {
                handle: Some(handle.clone()),
                status: "RUNNING",
                source_arn,
                destination_arn,
                per_second,
                moved: 0,
                to_move,
                failure: None,
                started_ms: now_ms,
            },
        });
        self.step_moves(now_ms);
        Ok(Reply::MoveStarted { handle })
    }

    /// Stops a running task.
    pub(crate) fn cancel_move(&mut self, handle: &str) -> Result<Reply, SqsError> {
        let task =
            self.moves.iter_mut().find(|task| task.handle == handle).ok_or_else(|| {
                SqsError::new(ErrorKind::ResourceNotFound, "Task does not exist.")
            })?;
        if !task.runs() {
            return Err(SqsError::new(
                ErrorKind::UnsupportedOperation,
                "Only a running task can be cancelled.",
            ));
        }
        task.status.status = "CANCELLED";
        Ok(Reply::MoveCancelled { moved: task.status.moved })
    }

    /// The latest tasks of a queue, newest first.
    pub(crate) fn list_moves(&self, source_arn: &str, count: usize) -> Result<Reply, SqsError> {
        let source = self.resource(source_arn, "SourceArn")?;
        let of_source = self.moves.iter().rev().filter(|task| task.source == source);
        Ok(Reply::Moves(
            of_source
                .take(count)
                .map(|task| MoveStatus {
                    handle: task.status.handle.clone().filter(|_| task.runs()),
                    ..task.status.clone()
                })
                .collect(),
        ))
    }

    /// Time at which a running task takes its next step, Unix milliseconds.
    pub(crate) fn next_move_ms(&self) -> Option<u64> {
        self.moves.iter().filter(|task| task.runs()).map(|task| task.next_ms).min()
    }

    /// Takes a step of every task that is due.
    pub(crate) fn step_moves(&mut self, now_ms: u64) {
        if self.next_move_ms().is_none_or(|at_ms| at_ms > now_ms) {
            return;
        }
        let mut tasks = std::mem::take(&mut self.moves);
        for task in tasks.iter_mut().filter(|task| task.runs() && task.next_ms <= now_ms) {
            self.step(task, now_ms);
        }
        self.moves = tasks;
    }

    fn step(&mut self, task: &mut MoveTask, now_ms: u64) {
        self.tidy(task.source, now_ms);
        let left = task.status.to_move.saturating_sub(task.status.moved);
        let most = left.min(STEP_MAX).min(task.status.per_second.unwrap_or(STEP_MAX));
        let mut moved_here = 0;
        while moved_here < most {
            let next = self.queues.get(&task.source).and_then(|queue| queue.next_ready());
            let Some((seq, origin)) = next.map(|next| (next.seq, next.source.clone())) else {
                break;
            };
            let target = task.destination.or_else(|| self.by_arn(origin.as_deref()?));
            let Some(target) = target.filter(|id| self.queues.contains_key(id)) else {
                task.status.status = "FAILED";
                task.status.failure = Some("CouldNotDetermineMessageSource".to_owned());
                return;
            };
            let removed = self.queues.get_mut(&task.source).and_then(|queue| queue.remove(seq));
            let Some(message) = removed else { break };
            // It starts again: its receives are counted anew.
            let again = Message {
                visible_ms: now_ms,
                receive_count: 0,
                first_receive_ms: None,
                source: None,
                ..message
            };
            self.put(target, again, now_ms);
            task.status.moved += 1;
            moved_here += 1;
        }
        task.next_ms = if task.status.per_second.is_some() { now_ms + 1_000 } else { now_ms };
        if moved_here < most || task.status.moved >= task.status.to_move {
            task.status.status = "COMPLETED";
        }
    }

    fn resource(&self, arn: &str, parameter: &str) -> Result<QueueId, SqsError> {
        self.by_arn(arn).ok_or_else(|| {
            SqsError::new(
                ErrorKind::ResourceNotFound,
                format!(
                    "The resource that you specified for the {parameter} parameter doesn't exist."
                ),
            )
        })
    }
}
