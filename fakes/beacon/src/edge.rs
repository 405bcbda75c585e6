//! The beacon's HTTP API.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State as Extracted};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use engine::domain::basics::bytes::Hash;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::chain::{self, GENESIS_SECONDS, NAME, PERIOD_SECONDS, SCHEME};
use crate::{Fault, State};

type Shared = Extracted<Arc<State>>;

/// Serves connections until it is aborted.
pub(crate) async fn serve(state: Arc<State>, listener: TcpListener) -> io::Result<()> {
    let router = Router::new()
        .route("/{chain}/info", get(info))
        .route("/{chain}/public/{round}", get(public))
        .with_state(state);
    axum::serve(listener, router).await
}

fn written(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
}

fn refused(status: StatusCode, why: &str) -> Response {
    written(status, &json!({ "error": why }))
}

async fn info(Path(chain): Path<String>) -> Response {
    if chain != chain::hash().to_string() {
        return refused(StatusCode::NOT_FOUND, "no such chain");
    }
    let info = json!({
        "public_key": chain::key(), "period": PERIOD_SECONDS, "genesis_time": GENESIS_SECONDS,
        "genesis_seed": chain::genesis_seed(), "hash": chain::hash(),
        "schemeID": SCHEME, "metadata": { "beaconID": NAME },
    });
    written(StatusCode::OK, &info)
}

async fn public(
    Path((chain, round)): Path<(String, String)>,
    Extracted(state): Shared,
) -> Response {
    state.calls.fetch_add(1, Ordering::SeqCst);
    if chain != chain::hash().to_string() {
        return refused(StatusCode::NOT_FOUND, "no such chain");
    }
    let fault = state.fault();
    let latest = state.latest();
    let asked = match round.as_str() {
        "latest" => latest,
        number => match number.parse() {
            Ok(number) => number,
            Err(_) => return refused(StatusCode::BAD_REQUEST, "no number of a round"),
        },
    };
    if asked > latest || (fault == Some(Fault::NoRound) && round != "latest") {
        return refused(StatusCode::TOO_EARLY, "the round is to come");
    }
    let before = asked.saturating_sub(1);
    let (number, signature) = match fault {
        Some(Fault::Silent) => pending().await,
        Some(Fault::Fail) => {
            return refused(StatusCode::INTERNAL_SERVER_ERROR, "a fault that was asked for");
        }
        Some(Fault::Endless) => return endless(),
        Some(Fault::FalseSignature) => (asked, chain::forged(asked)),
        Some(Fault::OtherRound) => (before, chain::sign(before)),
        Some(Fault::OtherSignature) => (asked, chain::sign(before)),
        Some(Fault::NoRound | Fault::Late(_)) | None => (asked, chain::sign(asked)),
    };
    let randomness = Hash::of_parts(&[&signature.0]);
    let body = json!({ "round": number, "randomness": randomness, "signature": signature });
    written(StatusCode::OK, &body)
}

/// Blanks, which JSON may begin with, without an end.
fn endless() -> Response {
    let blanks = Bytes::from_static(&[b' '; 1024]);
    Response::new(Body::from_stream(stream::repeat_with(move || {
        Ok::<_, io::Error>(blanks.clone())
    })))
}
