//! The body of `PUT /sales/{sale}`: a sale file.

use lambda_http::Request;

use crate::beacon::Chains;
use crate::http::Problem;
use crate::http::checks::{MAX_SALE_FILE_BYTES, Refusal, json_body};
use engine::domain::basics::bytes::Secret;
use engine::domain::basics::ids::SaleId;
use engine::domain::sale::{BeaconChoice, ByOperator, Sale, SaleFile};
use engine::flows::room::publish::DrawBy;
use engine::ports::Stored;

/// Reads a sale file, and checks every rule of it and that its id is the path's.
///
/// # Errors
/// Returns the first check that the request does not pass. All broken rules of the file come in one refusal.
pub fn read(request: &Request, id: &SaleId) -> Result<Sale, Refusal> {
    let file: SaleFile = json_body(request, MAX_SALE_FILE_BYTES)?;
    if file.sale != *id {
        return Err(Refusal::invalid("sale", "must be the id in the path"));
    }
    Sale::new(file).map_err(Refusal::Defects)
}

/// What decides the draw of the sale's room: the beacon that its file names or, if it names none, that of this deployment;
/// a new secret if the file asks for one. The deployment must know the beacon's chain: otherwise the draw would never end.
///
/// # Errors
/// Returns a problem if the beacon's chain is not known, or if there is no randomness for a secret.
pub fn draw_by(
    sale: &Sale,
    chains: &Chains,
    new_secret: impl FnOnce() -> Stored<Secret>,
) -> Result<DrawBy, Problem> {
    let choice = sale.file().room.as_ref().and_then(|room| room.beacon);
    let known = match choice {
        None => Some(chains.default_chain()),
        Some(BeaconChoice::Chain(chain)) => chains.rounds(chain),
        Some(BeaconChoice::Operator(ByOperator::Operator)) => {
            return Ok(DrawBy::Secret(new_secret()?));
        }
    };
    let rule = "must be drand's quicknet, a chain whose key is configured, or operator";
    known.map(DrawBy::Beacon).ok_or_else(|| Refusal::invalid("room.beacon", rule).into())
}
