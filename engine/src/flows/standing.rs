//! What an operator says of a sale while it sells: that it is paused, goes on, is sold out, and a notice. Every gate follows
//! once its copy of the sale is renewed; the scripts in Redis at once.

use super::publish::{self, Refusal};
use crate::domain::basics::ids::{Epoch, SaleId};
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::event::Text;
use crate::domain::sale::{FileMap, MapName, Sale, SaleFile, SaleState};
use crate::ports::{Catalogue as _, Freshness, Ports, Published};

/// What is said anew; all else stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it takes new reservations: never that it is cancelled, which is more than a word.
    pub state: Option<SaleState>,
    /// Whether nothing is left.
    pub sold_out: Option<bool>,
    /// What everybody reads, or that there is nothing to read.
    pub notice: Option<Option<Text>>,
}

/// Changes what is said of a sale; `None` if there is no such sale. `epoch` is a name that no load has.
///
/// # Errors
/// Returns a [`Refusal`]; running it again finishes it.
pub async fn say(
    ports: &impl Ports,
    id: &SaleId,
    standing: &Standing,
    epoch: &Epoch,
    now: Timestamp,
) -> Result<Option<Published>, Refusal> {
    let Some(published) = ports.catalogue().sale(id, Freshness::Fresh).await? else {
        return Ok(None);
    };
    let before = published.sale.file();
    let file = SaleFile {
        state: standing.state.unwrap_or(before.state),
        sold_out: standing.sold_out.unwrap_or(before.sold_out),
        notice: standing.notice.clone().unwrap_or_else(|| before.notice.clone()),
        map: published.map.map(|hash| FileMap::Kept(MapName { hash })),
        ..before.clone()
    };
    let sale = Sale::from_published(file).map_err(Refusal::Invalid)?;
    publish::publish(ports, &sale, epoch, now).await.map(Some)
}
