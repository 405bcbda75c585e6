//! The text of a secret in AWS Secrets Manager, which a function reads when it starts because its environment is too
//! small for the text.

use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata as _;

use crate::runtime::config::Secret;
use engine::ports::{StoreError, Stored};

/// Longest time that it may take, with what the SDK repeats: the init phase of a function has ten seconds.
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>
const MAX_WAIT: Duration = Duration::from_secs(7);

/// Reads the current version of a secret, by name or ARN.
///
/// # Errors
/// [`StoreError::Unavailable`] with the code of the refusal. What the service answered is never in it: it may be
/// the secret.
pub(super) async fn read(sdk: &SdkConfig, name: &str) -> Stored<Secret> {
    let asked = Client::new(sdk).get_secret_value().secret_id(name).send();
    let answered = tokio::time::timeout(MAX_WAIT, asked).await;
    let unread = |why: &str| StoreError::Unavailable(format!("secret {name}: {why}"));
    let answered = answered.map_err(|_| unread("no answer in time"))?;
    let secret = answered.map_err(|error| {
        let code = error.as_service_error().and_then(|refused| refused.code());
        unread(code.unwrap_or("no answer"))
    })?;
    let text = secret.secret_string().ok_or_else(|| unread("it has no text"))?;
    Ok(Secret(text.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::connections::{Https, Trust};
    use aws_config::{BehaviorVersion, Region};
    use aws_sdk_secretsmanager::config::{Credentials, SharedCredentialsProvider};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// A server that answers one request so; what it was asked.
    async fn served(status: &str, body: &str) -> (SdkConfig, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.1\r\ncontent-length: {length}\r\n\r\n"
        );
        let answer = head + body;
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"}") {
                assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(bytes).unwrap()
        });
        let credentials = Credentials::new("local", "local", None, None, "local");
        let sdk = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .http_client(Https::new(&Trust::public()))
            .endpoint_url(url)
            .build();
        (sdk, asked)
    }

    #[tokio::test]
    async fn the_text_of_a_secret_is_read_by_its_name() {
        let (sdk, asked) = served("200 OK", r#"{"Name":"m","SecretString":"{\"a\":1}"}"#).await;
        assert_eq!(read(&sdk, "onsale/merchants").await, Ok(Secret(b"{\"a\":1}".to_vec())));
        let asked = asked.await.unwrap();
        assert!(asked.contains("secretsmanager.GetSecretValue"), "{asked}");
        assert!(asked.ends_with(r#"{"SecretId":"onsale/merchants"}"#), "{asked}");
    }

    #[tokio::test]
    async fn an_error_says_why_and_nothing_of_the_secret() {
        for (status, body, why) in [
            (
                "400 Bad Request",
                r#"{"__type":"ResourceNotFoundException","message":"hunter2"}"#,
                "ResourceNotFoundException",
            ),
            (
                "400 Bad Request",
                r#"{"__type":"AccessDeniedException","Message":"hunter2"}"#,
                "AccessDeniedException",
            ),
            ("200 OK", r#"{"SecretString":["hunter2"]}"#, "no answer"),
            ("200 OK", r#"{"SecretBinary":"aHVudGVyMg=="}"#, "it has no text"),
        ] {
            let (sdk, _asked) = served(status, body).await;
            let error = read(&sdk, "m").await.unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("hunter2"), "{error}");
        }
    }
}
