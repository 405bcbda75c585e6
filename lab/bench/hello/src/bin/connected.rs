//! `hello` with a TLS connection to each of the three services that `reserve` needs, and nothing said
//! over them: the least that a function of ours could cost (`make bench-cold`).

use std::env;
use std::sync::Arc;

use lambda_runtime::{Error, LambdaEvent, run, service_fn, tracing};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Variables with the addresses of the services: on AWS each is another host.
const SERVICES: [&str; 3] =
    ["ONSALE_REDIS_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(env::var("ONSALE_CA_FILE")?)? {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let [redis, dynamodb, sqs] = SERVICES.map(|service| connect(&connector, service));
    let _connections = tokio::try_join!(redis, dynamodb, sqs)?;
    run(service_fn(async |_event: LambdaEvent<Value>| Ok::<_, Error>(json!("hello")))).await
}

async fn connect(connector: &TlsConnector, service: &str) -> Result<TlsStream<TcpStream>, Error> {
    let url = env::var(service)?;
    let address =
        url.split_once("://").map_or(url.as_str(), |(_, rest)| rest).trim_end_matches('/');
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
    let stream = TcpStream::connect(address).await?;
    Ok(connector.connect(ServerName::try_from(host)?, stream).await?)
}
