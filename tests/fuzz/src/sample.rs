//! The sales and senders that requests are made against.

use std::sync::LazyLock;

use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use shared::http::checks::parse;

use crate::must;

/// Time at which everything happens.
pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

/// Time at which the sales of imported timetables open: before any train of theirs leaves.
pub(crate) const LONG_AGO: Timestamp = Timestamp::from_ms(0);

/// A train whose tickets name their passengers, with columns; a theatre in sections; a club without
/// seats.
static SALES: LazyLock<Vec<Sale>> = LazyLock::new(|| {
    let files = [
        include_str!("../../../sales/g-train-g1307.json"),
        include_str!("../../../sales/theatre-old-quay.json"),
        include_str!("../../../sales/club-undertow.json"),
    ];
    let sale = |text: &str| must(Sale::new(must(parse(text.as_bytes()), text)), text);
    files.into_iter().map(sale).collect()
});

/// The sale with an id; another one if there is none, so that a request always meets a sale.
pub(crate) fn sale(id: &str) -> &'static Sale {
    SALES.iter().find(|sale| sale.id().as_str() == id).unwrap_or(&SALES[0])
}

pub(crate) fn provider() -> ProviderId {
    must(ProviderId::new("stripe"), "the provider")
}
