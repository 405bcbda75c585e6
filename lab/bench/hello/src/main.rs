//! The least Lambda function there can be: it answers, and does nothing. What every other one's cold
//! start is compared with (`make bench-cold`).

use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    run(service_fn(async |_event: LambdaEvent<Value>| Ok::<_, Error>(json!("hello")))).await
}
