//! What an operator asks of a gateway: to publish a sale, and what is on sale.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::basics::ids::{SaleId, StopId};
use engine::domain::sale::attachment::Attachment;
use engine::domain::sale::{Defect, Sale, SaleFile};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use shared::http::journey_query::journey_query;

/// The longest that a gateway may take to answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Most pages of sales that are asked for.
const MAX_PAGES: usize = 1000;

/// Why a gateway gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway cannot be reached, or what it says cannot be read.
    #[error("{url} does not answer: {}", root_of(source))]
    Unreachable {
        /// The URL of the request.
        url: String,
        /// Error of the request.
        source: reqwest::Error,
    },
    /// The gateway declined.
    #[error("{}", declined(*status, problem))]
    Declined {
        /// The status of its reply.
        status: StatusCode,
        /// The reply: an RFC 9457 problem, if it comes from Onsale.
        problem: Value,
    },
    /// The gateway answered something that is no sale.
    #[error("{url} answered what is no sale: {why}")]
    Unexpected {
        /// The path of the request.
        url: String,
        /// What is wrong with the answer, in words.
        why: String,
    },
}

/// The innermost cause: "connection refused" rather than "error sending request".
fn root_of(error: &dyn std::error::Error) -> &dyn std::error::Error {
    error.source().map_or(error, root_of)
}

fn declined(status: StatusCode, problem: &Value) -> String {
    let text = |field: &str| problem.get(field).and_then(Value::as_str);
    match (text("title"), text("detail")) {
        (Some(title), Some(detail)) => format!("{} {title}: {detail}", status.as_u16()),
        (Some(only), None) | (None, Some(only)) => format!("{} {only}", status.as_u16()),
        (None, None) => format!("the gateway answered {status}: {problem}"),
    }
}

/// The HTTP API of an engine.
#[derive(Debug)]
pub struct Gateway {
    url: String,
}

impl Gateway {
    /// The gateway at a URL, with or without a slash at its end.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self { url: url.trim_end_matches('/').to_owned() }
    }

    /// Publishes a sale, or new terms of it, with an operator's token; the API's answer.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn publish(&self, file: &SaleFile, token: &str) -> Result<Value, Error> {
        let path = format!("/sales/{}", file.sale);
        self.ask(Method::PUT, &path, Some(token), Some(file)).await
    }

    /// Keeps a picture, with an operator's token; the API's answer.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn keep_picture(&self, picture: &Attachment, token: &str) -> Result<Value, Error> {
        let path = format!("/pictures/{}", picture.hash());
        let body = json!({ "data": STANDARD.encode(&picture.bytes) });
        self.ask(Method::PUT, &path, Some(token), Some(&body)).await
    }

    /// A published sale: the API's answer, and the sale that its file describes.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn sale(&self, id: &SaleId) -> Result<(Value, Sale), Error> {
        let path = format!("/sales/{id}");
        let reply = self.get(&path).await?;
        let unexpected = |why: String| Error::Unexpected { url: path.clone(), why };
        let file = reply.get("file").cloned().unwrap_or_default();
        let file: SaleFile =
            serde_json::from_value(file).map_err(|error| unexpected(error.to_string()))?;
        let sale = Sale::new(file).map_err(|defects| {
            unexpected(defects.first().map_or_else(String::new, Defect::to_string))
        })?;
        Ok((reply, sale))
    }

    /// What is left of a sale, on a journey if it has several legs; the API's answer.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn availability(
        &self,
        id: &SaleId,
        journey: Option<(&StopId, &StopId)>,
    ) -> Result<Value, Error> {
        let query = journey.map_or_else(String::new, |(from, to)| journey_query(from, to));
        self.get(&format!("/sales/{id}/availability{query}")).await
    }

    /// All sales that are not archived, however many pages they are: the API's answer, as one page.
    ///
    /// # Errors
    /// See [`Error`]; also if the pages do not end.
    pub async fn sales(&self) -> Result<Value, Error> {
        let mut all: Vec<Value> = Vec::new();
        let mut path = "/sales".to_owned();
        for _ in 0..MAX_PAGES {
            let mut page = self.get(&path).await?;
            let no_list =
                || Error::Unexpected { url: path.clone(), why: "there is no list".to_owned() };
            let listed = page.get_mut("sales").and_then(Value::as_array_mut);
            all.append(listed.ok_or_else(no_list)?);
            match page.get("next").and_then(Value::as_str) {
                // A cursor has no character that a query would have to escape.
                Some(next) => path = format!("/sales?cursor={next}"),
                None => return Ok(json!({ "sales": all })),
            }
        }
        Err(Error::Unexpected { url: path, why: "the list does not end".to_owned() })
    }

    async fn get(&self, path: &str) -> Result<Value, Error> {
        self.ask(Method::GET, path, None, None::<&()>).await
    }

    /// Sends a request; anything but success is an error that carries its problem.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        token: Option<&str>,
        body: Option<&impl Serialize>,
    ) -> Result<Value, Error> {
        let url = format!("{}{path}", self.url);
        let unreachable = |source| Error::Unreachable { url: url.clone(), source };
        let client = reqwest::Client::builder().timeout(DEADLINE).build().map_err(unreachable)?;
        let mut request = client.request(method, &url);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let reply = request.send().await.map_err(unreachable)?;
        let status = reply.status();
        let text = reply.text().await.map_err(unreachable)?;
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        if status.is_success() {
            Ok(value)
        } else {
            Err(Error::Declined { status, problem: value })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers one request with `reply` and hands over what was asked.
    async fn gateway(status: &str, reply: &str) -> (Gateway, tokio::task::JoinHandle<String>) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
            reply.len()
        );
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = String::new();
            while !asked.ends_with("\r\n\r\n") && !asked.ends_with('}') {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).await.unwrap();
                asked.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            asked
        });
        (Gateway::new(&url), asked)
    }

    #[tokio::test]
    async fn a_sale_is_put_as_the_operator() {
        let text = include_str!("../../../sales/demo-train.json");
        let mut file: SaleFile = serde_json::from_str(text).unwrap();
        file.tiers.truncate(1);
        let (gateway, asked) = gateway("200 OK", r#"{"version": 1}"#).await;
        let reply = gateway.publish(&file, "t0k").await;
        assert_eq!(reply.unwrap(), json!({"version": 1}));
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("PUT /sales/demo-train HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("authorization: Bearer t0k\r\n"), "{asked}");
        let (_, body) = asked.split_once("\r\n\r\n").unwrap();
        assert_eq!(serde_json::from_str::<SaleFile>(body).unwrap(), file);
    }

    #[tokio::test]
    async fn what_the_gateway_declines_is_an_error() {
        let problem = r#"{"title": "Not found", "detail": "There is no sale s."}"#;
        let (gateway, asked) = gateway("404 Not Found", problem).await;
        let error = gateway.sales().await.unwrap_err();
        assert_eq!(error.to_string(), "404 Not found: There is no sale s.");
        assert!(asked.await.unwrap().starts_with("GET /sales HTTP/1.1"));
        let nobody = Gateway::new("http://127.0.0.1:1");
        let error = nobody.sales().await.unwrap_err().to_string();
        assert!(error.starts_with("http://127.0.0.1:1/sales does not answer"), "{error}");
    }

    #[tokio::test]
    async fn one_page_is_a_list_and_an_answer_without_one_is_an_error() {
        let (listing, _) = gateway("200 OK", r#"{"sales": [{"sale": "a"}]}"#).await;
        assert_eq!(listing.sales().await.unwrap(), json!({"sales": [{"sale": "a"}]}));
        let (other, _) = gateway("200 OK", "{}").await;
        assert!(other.sales().await.unwrap_err().to_string().contains("there is no list"));
    }

    #[test]
    fn a_problem_is_told_in_its_own_words() {
        let problem = json!({"type": "t", "title": "Not found", "detail": "There is no sale s."});
        let error = Error::Declined { status: StatusCode::NOT_FOUND, problem };
        assert_eq!(error.to_string(), "404 Not found: There is no sale s.");
        let error = Error::Declined { status: StatusCode::BAD_GATEWAY, problem: json!("<html>") };
        assert_eq!(error.to_string(), "the gateway answered 502 Bad Gateway: \"<html>\"");
    }
}
