//! Reads the number of messages in a queue's dead-letter queue.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::operation::get_queue_attributes::builders::GetQueueAttributesFluentBuilder;
use aws_sdk_sqs::types::QueueAttributeName as Name;
use engine::ports::{StoreError, Stored};
use std::collections::HashMap;

/// The messages of the dead-letter queue of the queue at `url`, by its own count; it is in the same account.
pub(super) async fn count(client: &Client, url: &str) -> Stored<u64> {
    let asked = client.get_queue_attributes().queue_url(url).attribute_names(Name::RedrivePolicy);
    let attributes = read(asked).await?;
    let policy = attributes.get(&Name::RedrivePolicy).map_or("{}", String::as_str);
    let broken = |why: String| StoreError::Contract(format!("{url}: {why}"));
    let policy: serde_json::Value =
        serde_json::from_str(policy).map_err(|error| broken(error.to_string()))?;
    let arn = policy["deadLetterTargetArn"].as_str();
    let arn = arn.ok_or_else(|| broken("it has no dead-letter queue".to_owned()))?;
    let url = beside(url, arn).ok_or_else(|| broken(format!("{arn} is no queue")))?;
    let names = [
        Name::ApproximateNumberOfMessages,
        Name::ApproximateNumberOfMessagesNotVisible,
        Name::ApproximateNumberOfMessagesDelayed,
    ];
    let asked = client.get_queue_attributes().queue_url(url);
    let attributes = read(asked.set_attribute_names(Some(names.to_vec()))).await?;
    Ok(names.iter().filter_map(|name| attributes.get(name)?.parse::<u64>().ok()).sum())
}

async fn read(asked: GetQueueAttributesFluentBuilder) -> Stored<HashMap<Name, String>> {
    let answer = asked.send().await;
    let unavailable = |error| StoreError::Unavailable(DisplayErrorContext(error).to_string());
    Ok(answer.map_err(unavailable)?.attributes.unwrap_or_default())
}

/// The URL of the queue of an ARN, which is in the account and region of the queue at `url`.
fn beside(url: &str, arn: &str) -> Option<String> {
    let (account, _) = url.rsplit_once('/')?;
    let (_, name) = arn.rsplit_once(':')?;
    (!name.is_empty()).then(|| format!("{account}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_letter_queue_is_beside_its_queue() {
        let url = "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-onsale-expiry";
        let arn = "arn:aws:sqs:eu-west-1:123456789012:prod-onsale-expiry-dead";
        let expected = "https://sqs.eu-west-1.amazonaws.com/123456789012/prod-onsale-expiry-dead";
        assert_eq!(beside(url, arn).as_deref(), Some(expected));
        assert_eq!(beside(url, "nothing"), None);
    }
}
