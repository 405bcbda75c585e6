//! Consumer of the points queue: writes the points and the growth that orders give their buyers.

use std::collections::BTreeMap;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use engine::flows::award::award;
use engine::ports::Stored;
use engine::ports::messages::AwardPoints;
use futures_util::future::join_all;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use shared::sqs::batch;

pub async fn handle(app: &App, event: SqsEvent) -> SqsBatchResponse {
    let work = batch::each(event, |messages| award_all(app, messages));
    app.metrics.of(Function::AwardPoints, work).await
}

/// Writes the award of each order; the messages of one group one after the other, in the order of the queue. If one
/// fails, the later messages of its group fail too, so that the queue delivers them again in the same order.
async fn award_all(app: &App, messages: Vec<AwardPoints>) -> Vec<Stored<()>> {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, message) in messages.iter().enumerate() {
        groups.entry(message.group()).or_default().push(index);
    }
    let each = groups.into_values().map(async |indices| {
        let mut outcomes: Vec<(usize, Stored<()>)> = Vec::new();
        for index in indices {
            let failed = outcomes.last().and_then(|(_, outcome)| outcome.clone().err());
            let outcome = match failed {
                Some(failed) => Err(failed),
                None => award(&app.ports, messages[index].order).await.map(|_| ()),
            };
            outcomes.push((index, outcome));
        }
        outcomes
    });
    let mut outcomes: Vec<_> = join_all(each).await.into_iter().flatten().collect();
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
