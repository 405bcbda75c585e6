//! Checks that every request with a body passes: size, content type, JSON. The first refusal wins.

use std::ops::RangeInclusive;

use lambda_http::http::header::CONTENT_TYPE;
use lambda_http::{Request, RequestExt as _};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::http::objects::Objects;
use engine::domain::basics::ids::SaleId;
use engine::domain::sale::Defect;
use engine::ports::{Catalogue, Freshness, Ports, Published, StoreError};

/// The most bytes of a buyer's or a provider's request body: 64 KiB.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// The most bytes of a sale file: 5 MiB. API Gateway takes bodies of 10 MB, Lambda of 6 MB.
pub const MAX_SALE_FILE_BYTES: usize = 5 * 1024 * 1024;
/// The most characters of a parser's message in a reply: the message quotes the request.
const MAX_MESSAGE_CHARS: usize = 200;

/// Why a request is refused before any flow sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body has more than this many bytes.
    #[error("the body must have at most {0} bytes")]
    TooLarge(usize),
    /// The body is not declared as JSON.
    #[error("the content type must be application/json")]
    NotJson,
    /// The body is not well-formed JSON. Has the parser's message.
    #[error("the body is not well-formed JSON: {0}")]
    Malformed(String),
    /// The body is JSON, but not of the shape that the route asks for. Has the parser's message.
    #[error("the body does not have the shape asked for: {0}")]
    Shape(String),
    /// A part of the request breaks a rule.
    #[error("{at}: {rule}")]
    Invalid {
        /// Path of the part, such as `lines[0].seats[1]`.
        at: String,
        /// The rule, in words.
        rule: String,
    },
    /// A sale file breaks rules, each with its place.
    #[error("the sale file breaks {} rules", .0.len())]
    Defects(Vec<Defect>),
    /// There is no such sale.
    #[error("there is no such sale")]
    NoSuchSale,
    /// The sale has no map, or its map is no longer the requested one.
    #[error("the sale has no such map")]
    NoSuchMap,
    /// No picture, or no document, of this hash is kept.
    #[error("nothing is kept under this hash")]
    NoSuchAttachment,
    /// The sale has no waiting room.
    #[error("the sale has no waiting room")]
    NoRoom,
    /// The group, chunk or index does not exist, or its window is not drawn yet.
    #[error("there is no such group, or it is not drawn that far")]
    NotDrawn,
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Refusal {
    /// [`Refusal::Invalid`] for the part of the request at a path, with the rule in words.
    pub fn invalid(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Self::Invalid { at: at.into(), rule: rule.into() }
    }
}

/// Reads a JSON body of at most `most_bytes`. The type `T` refuses unknown and duplicate fields; the parser bounds the
/// nesting.
///
/// # Errors
/// Returns the first rule that the body breaks.
pub fn json_body<T: DeserializeOwned>(request: &Request, most_bytes: usize) -> Result<T, Refusal> {
    check_size(request, most_bytes)?;
    check_content_type(request)?;
    parse(request.body().as_ref())
}

/// Refuses a body of more than `most_bytes`.
///
/// # Errors
/// Returns [`Refusal::TooLarge`].
pub fn check_size(request: &Request, most_bytes: usize) -> Result<(), Refusal> {
    if request.body().len() <= most_bytes { Ok(()) } else { Err(Refusal::TooLarge(most_bytes)) }
}

/// Refuses a body that is not declared as JSON; parameters such as a charset do not matter.
fn check_content_type(request: &Request) -> Result<(), Refusal> {
    let declared = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = declared.and_then(|value| value.split(';').next()).map(str::trim);
    match media_type {
        Some(media_type) if media_type.eq_ignore_ascii_case("application/json") => Ok(()),
        Some(_) | None => Err(Refusal::NotJson),
    }
}

/// Reads JSON text, and refuses anything behind it. Where `T` has a struct, the text must have an object.
///
/// # Errors
/// Returns [`Refusal::Malformed`], or [`Refusal::Shape`] if it is not a `T`.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Refusal> {
    let mut parser = serde_json::Deserializer::from_slice(text);
    let read = T::deserialize(Objects(&mut parser)).and_then(|read| parser.end().map(|()| read));
    read.map_err(|error| {
        let message: String = error.to_string().chars().take(MAX_MESSAGE_CHARS).collect();
        match error.classify() {
            Category::Data => Refusal::Shape(message),
            Category::Syntax | Category::Eof | Category::Io => Refusal::Malformed(message),
        }
    })
}

/// Reads a parameter of the query; `None` if the request does not have it.
///
/// # Errors
/// Returns [`Refusal::Invalid`] if the parameter is not a `T`, or is duplicated.
pub fn query<T: std::str::FromStr>(request: &Request, name: &str) -> Result<Option<T>, Refusal>
where
    T::Err: std::fmt::Display,
{
    let Some(text) = query_text(request, name)? else { return Ok(None) };
    text.parse().map(Some).map_err(|error: T::Err| Refusal::invalid(name, error.to_string()))
}

/// Reads a number of the query, which must be within `range`; `None` if the request does not have it.
///
/// # Errors
/// Returns [`Refusal::Invalid`] if the parameter is not such a number, or is duplicated.
pub fn query_within(
    request: &Request,
    name: &str,
    range: RangeInclusive<u16>,
) -> Result<Option<u16>, Refusal> {
    let Some(text) = query_text(request, name)? else { return Ok(None) };
    // Whatever is not a number of 16 bits is outside of every range of such numbers.
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.map(Some).ok_or_else(|| outside(name, &range))
}

/// The text of a parameter of the query. A duplicated parameter is refused: it might mean one thing to this function
/// and another to a proxy that read the request before.
fn query_text<'a>(request: &'a Request, name: &str) -> Result<Option<&'a str>, Refusal> {
    let given = request.query_string_parameters_ref().and_then(|query| query.all(name));
    match given.as_deref() {
        None | Some([]) => Ok(None),
        Some([text]) => Ok(Some(text)),
        Some([_, _, ..]) => Err(Refusal::invalid(name, "must be given once")),
    }
}

/// Refuses a number outside of `range`.
///
/// # Errors
/// Returns [`Refusal::Invalid`] for the part of the request at `at`.
pub fn within(at: &str, number: u16, range: RangeInclusive<u16>) -> Result<(), Refusal> {
    if range.contains(&number) { Ok(()) } else { Err(outside(at, &range)) }
}

fn outside(at: &str, range: &RangeInclusive<u16>) -> Refusal {
    Refusal::invalid(at, format!("must be {} to {}", range.start(), range.end()))
}

/// Reads the sale that a request is about from the catalogue, or from a copy that is a few seconds old.
///
/// # Errors
/// Returns [`Refusal::NoSuchSale`], or why the catalogue failed.
pub async fn sale(ports: &impl Ports, id: &SaleId) -> Result<Published, Refusal> {
    ports.catalogue().sale(id, Freshness::Cached).await?.ok_or(Refusal::NoSuchSale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::Body;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct AdmissionRequest {
        tickets: u16,
    }

    fn read(content_type: Option<&str>, body: impl Into<Body>) -> Result<AdmissionRequest, String> {
        let mut request = Request::new(body.into());
        if let Some(content_type) = content_type {
            request.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
        }
        json_body(&request, 64).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_first_refusal_wins() {
        let json = Some("application/json");
        let deep = "[".repeat(60);
        let long = " ".repeat(65);
        let cases: [(Option<&str>, &str, &str); 10] = [
            (None, long.as_str(), "at most 64 bytes"),
            (None, "{}", "content type"),
            (Some("text/plain"), "{}", "content type"),
            (Some("application/jsonp"), "{}", "content type"),
            (json, "", "not well-formed"),
            (json, "{\"tickets\":", "not well-formed"),
            (json, deep.as_str(), "shape"),
            (json, "{}", "missing field `tickets`"),
            (json, "{\"tickets\":1,\"colour\":2}", "unknown field `colour`"),
            (json, "{\"tickets\":1,\"tickets\":2}", "duplicate field `tickets`"),
        ];
        for (content_type, body, expected) in cases {
            let refusal = read(content_type, body).unwrap_err();
            assert!(refusal.contains(expected), "{refusal:?} does not say {expected:?}");
        }
    }

    #[test]
    fn json_is_read_however_it_is_spelt_and_carried() {
        let expected = Ok(AdmissionRequest { tickets: 2 });
        assert_eq!(read(Some("Application/JSON; charset=utf-8"), "{\"tickets\":2}"), expected);
        assert_eq!(read(Some("application/json"), b"{\"tickets\":2}".to_vec()), expected);
    }

    #[test]
    fn a_long_message_is_cut() {
        let name = "x".repeat(10_000);
        let body = format!("{{\"{name}\":1}}");
        let refusal = parse::<AdmissionRequest>(body.as_bytes()).unwrap_err().to_string();
        assert!(refusal.len() < 300, "{} bytes of the request came back", refusal.len());
    }
}
