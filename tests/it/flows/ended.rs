//! An expiry as the queues carry it out: what is handed over to whoever speaks to providers is closed, and
//! given back.

use engine::domain::basics::ids::InventoryId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::flows::close::{Closing, close};
use engine::flows::expire::{Expired, Expiry, expire, expire_all};
use engine::ports::{Ports, Stored};

/// Ends what is under a number, if its time is up and its providers were heard.
pub async fn ended(
    ports: &impl Ports,
    at: &InventoryId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<Expired> {
    match expire(ports, at, number, now).await? {
        Expired::HandedOver => {}
        ended @ (Expired::Ended | Expired::NotDue(_) | Expired::Resolved | Expired::Nothing) => {
            return Ok(ended);
        }
    }
    match close(ports, at, number, now).await? {
        Closing::Again(again) => return Ok(Expired::NotDue(again)),
        Closing::Done => {}
    }
    let expiry = Expiry { at: at.clone(), number, heard_at: Some(now) };
    expire_all(ports, &[expiry], now).await.remove(0)
}
