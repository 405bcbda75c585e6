//! The body of `PUT /sales/{sale}`: a sale file.

use lambda_http::Request;

use crate::beacon::Chains;
use crate::http::checks::{MAX_SALE_FILE_BYTES, Refusal, json_body};
use engine::domain::basics::ids::SaleId;
use engine::domain::sale::{Sale, SaleFile};

/// Reads a sale file whose id is the path's, with every rule checked.
///
/// # Errors
/// Returns the first check that it does not pass; broken rules of the file come all at once.
pub fn read(request: &Request, id: &SaleId) -> Result<Sale, Refusal> {
    let file: SaleFile = json_body(request, MAX_SALE_FILE_BYTES)?;
    if file.sale != *id {
        return Err(Refusal::invalid("sale", "must be the id in the path"));
    }
    Sale::new(file).map_err(Refusal::Defects)
}

/// Checks that the rounds of the beacon that the room of a sale names can be verified: else its draw, which cannot
/// be committed to another one, would never come to an end.
///
/// # Errors
/// The key of its chain is not known.
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
