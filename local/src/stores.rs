//! Clients of the servers that take the place of AWS on this machine.

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use shared::dynamodb::{Dynamo, StoreConfig, Tables};
use shared::runtime::app::LOCAL_REGION;
use shared::runtime::connections::{Https, Trust};

use crate::endpoints::Endpoints;

/// Configuration of every client. The servers check no credentials, so fixed ones are used.
#[must_use]
pub fn sdk_config() -> SdkConfig {
    let credentials = Credentials::new("local", "local", None, None, "local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(LOCAL_REGION))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(Https::new(&Trust::public()))
        .build()
}

/// A client of the queues at `url`.
#[must_use]
pub fn sqs(url: &str) -> aws_sdk_sqs::Client {
    let config = aws_sdk_sqs::config::Builder::from(&sdk_config()).endpoint_url(url).build();
    aws_sdk_sqs::Client::from_conf(config)
}

/// The database of a running engine.
#[must_use]
pub fn dynamo(endpoints: &Endpoints) -> Dynamo {
    let config = StoreConfig {
        endpoint: Some(endpoints.dynamodb.clone()),
        ..StoreConfig::new(Tables::with_prefix(&endpoints.table_prefix))
    };
    Dynamo::new(&sdk_config(), config)
}
