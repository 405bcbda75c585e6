//! What an operator says of a sale while it sells: that it is paused, goes on, is sold out, and a notice. Every gate follows
//! once its copy of the sale is renewed; the scripts in Redis at once.

use std::fmt;

use super::publish::{self, Refusal};
use crate::domain::basics::ids::{Epoch, SaleId};
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::event::Text;
use crate::domain::sale::{FileMap, MapName, Sale, SaleFile, SaleState};
use crate::ports::{Catalogue as _, Freshness, Ports, Published};

/// What is said anew; all else stays as it is. As text, what is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it takes new reservations: never that it is cancelled, which is more than a word.
    pub state: Option<SaleState>,
    /// Whether nothing is left.
    pub sold_out: Option<bool>,
    /// What everybody reads, or that there is nothing to read.
    pub notice: Option<Option<Text>>,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sold_out = self.sold_out.map(|is| if is { "sold out" } else { "not sold out" });
        let notice = self.notice.as_ref().map(|notice| match notice {
            Some(notice) => format!("notice: {}", notice.each().collect::<Vec<_>>().join(" / ")),
            None => "no notice".to_owned(),
        });
        let said = [self.state.map(SaleState::as_str), sold_out, notice.as_deref()];
        f.write_str(&said.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

/// Changes what is said of a sale; `None` if there is no such sale. What another operator publishes at the same time is not
/// undone: then the sale is busy. `epoch` is a name that no load has.
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
    publish::publish_over(ports, &sale, Some(published.version), epoch, now).await.map(Some)
}
