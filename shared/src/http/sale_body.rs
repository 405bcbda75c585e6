//! The body of `PUT /sales/{sale}`: a sale file.

use lambda_http::Request;

use crate::beacon::Chains;
use crate::http::checks::{MAX_SALE_FILE_BYTES, Refusal, json_body};
use engine::domain::basics::ids::SaleId;
use engine::domain::sale::{Sale, SaleFile};

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

/// Checks that this deployment can verify the rounds of the beacon that the room of a sale names. Otherwise the draw
/// would never end, because it cannot be committed to another beacon.
///
/// # Errors
/// Returns a refusal if the key of the beacon's chain is not known.
pub fn check_beacon(sale: &Sale, chains: &Chains) -> Result<(), Refusal> {
    let chain = sale.file().room.as_ref().and_then(|room| room.beacon);
    match chain {
        Some(chain) if !chains.has(chain) => {
            let rule = "must be drand's quicknet, or a chain whose key is configured";
            Err(Refusal::invalid("room.beacon", rule))
        }
        Some(_) | None => Ok(()),
    }
}
