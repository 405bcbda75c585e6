//! The turns of calls to providers in DynamoDB: one item of the table of sales for each provider and
//! operation, with the time of the next call that nobody has been given.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::dynamo::Dynamo;
use super::expressions::conditional;
use super::items::{Fields, Item, item, number, text};
use super::tables::{DEPLOYMENT, calls_key, provider_key};
use crate::providers::{Operation, TurnRequest, Turns};
use engine::domain::admission::call_rate::Take;
use engine::domain::basics::ids::{DeploymentId, ProviderId};
use engine::ports::{StoreError, Stored};

/// Most attempts, where other processes take turns at the same moment.
const ATTEMPTS: usize = 8;
/// What is said after the last one: others have taken what there was.
const BUSY_US: i64 = 250_000;

/// An error after which nothing was sent to a provider, whatever was written here.
fn known(error: StoreError) -> StoreError {
    match error {
        StoreError::Unknown(text) => StoreError::Unavailable(text),
        error @ (StoreError::Unavailable(_) | StoreError::Limited(_) | StoreError::Contract(_)) => {
            error
        }
    }
}

/// The turns, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoCalls {
    db: Dynamo,
}

impl DynamoCalls {
    /// The turns behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    /// Writes the next time over the one that was read; false if another process was quicker.
    async fn replace(&self, key: Item, kept_us: Option<i64>, next_us: i64) -> Stored<bool> {
        let update = self.db.client().update_item().table_name(&self.db.tables().sales);
        let condition = match kept_us {
            Some(_) => "#next_us = :kept",
            None => "attribute_not_exists(#next_us)",
        };
        let mut with = vec![("next", number(next_us))];
        with.extend(kept_us.map(|kept_us| ("kept", number(kept_us))));
        let update = update.set_key(Some(key));
        let update = conditional(update, "SET #next_us = :next", condition, with);
        Ok(self.db.update(update).await?.is_some())
    }

    async fn take(&self, request: TurnRequest<'_>) -> Stored<Take> {
        let TurnRequest { provider, operation, rate, ahead, calls, now_us } = request;
        let (pk, sk) = (provider_key(provider), calls_key(operation.as_str()));
        let key = item([("pk", text(pk)), ("sk", text(sk))]);
        for _ in 0..ATTEMPTS {
            let kept = self.db.get(&self.db.tables().sales, key.clone()).await?;
            let kept_us = match &kept {
                Some(kept) => Fields::from_item(kept).maybe_number("next_us")?,
                None => None,
            };
            let take = rate.take(kept_us, calls, ahead, now_us);
            match take {
                Take::UsedUp { .. } => return Ok(take),
                Take::Calls { next_us, .. } => {
                    if self.replace(key.clone(), kept_us, next_us).await? {
                        return Ok(take);
                    }
                }
            }
        }
        Ok(Take::UsedUp { for_us: BUSY_US })
    }
}

impl DynamoCalls {
    /// Writes the deployment's id for a provider if none is written; the one that is.
    async fn owner(&self, provider: &ProviderId, own: &DeploymentId) -> Stored<String> {
        let key = item([("pk", text(provider_key(provider))), ("sk", text(DEPLOYMENT))]);
        let update = self.db.client().update_item().table_name(&self.db.tables().sales);
        let condition = "attribute_not_exists(#deployment) OR #deployment = :own";
        let with = [("own", text(own))];
        let update = update.set_key(Some(key.clone()));
        let update = conditional(update, "SET #deployment = :own", condition, with);
        if self.db.update(update).await?.is_some() {
            return Ok(own.to_string());
        }
        let kept = self.db.get(&self.db.tables().sales, key).await?.unwrap_or_default();
        Fields::from_item(&kept).text("deployment")
    }
}

impl Turns for DynamoCalls {
    fn own<'a>(
        &'a self,
        provider: &'a ProviderId,
        deployment: &'a DeploymentId,
    ) -> BoxFuture<'a, Stored<()>> {
        let own = async move {
            let owner = self.owner(provider, deployment).await.map_err(known)?;
            if owner == deployment.as_str() {
                return Ok(());
            }
            tracing::error!(%provider, owner, own = %deployment, "the tables are another deployment's");
            let text = format!(
                "the payments of these tables at {provider} are the deployment {owner}'s, and this is {deployment}"
            );
            Err(StoreError::Contract(text))
        };
        own.boxed()
    }

    fn next<'a>(
        &'a self,
        provider: &'a ProviderId,
        operation: Operation,
    ) -> BoxFuture<'a, Stored<Option<i64>>> {
        let next = async move {
            let (pk, sk) = (provider_key(provider), calls_key(operation.as_str()));
            let key = item([("pk", text(pk)), ("sk", text(sk))]);
            // As it was a moment ago: many processes read it, and one item has 3,000 units a second.
            let kept = self.db.get_as(&self.db.tables().sales, key, false).await.map_err(known)?;
            match kept {
                Some(kept) => Fields::from_item(&kept).maybe_number("next_us"),
                None => Ok(None),
            }
        };
        next.boxed()
    }

    fn take<'a>(&'a self, request: TurnRequest<'a>) -> BoxFuture<'a, Stored<Take>> {
        let take = async move {
            let taken = Self::take(self, request).await;
            // Whether or not turns were taken: none of them was used.
            taken.map_err(known)
        };
        take.boxed()
    }
}
