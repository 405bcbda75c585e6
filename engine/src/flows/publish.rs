//! Publish: an operator puts a sale on sale, or changes its terms.

use std::borrow::Cow;

use crate::domain::admission::room::draw::NoRound;
use crate::domain::basics::ids::{Epoch, SaleId};
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::Load;
use crate::domain::sale::attachment::AttachmentKind;
use crate::domain::sale::event::{EventAbout, FileAbout, pictures};
use crate::domain::sale::{Defect, FileMap, MapName, Sale, SaleFile, SaleState, SeatMap};
use crate::flows::load::{Loaded, load, terms};
use crate::flows::room;
use crate::flows::room::publish::DrawBy;
use crate::ports::{
    Catalogue, ChangeReply, Freshness, Ports, Published, RoomPorts, Seats, StoreError, Stored,
};

/// Most attempts; terms that changed meanwhile are written again.
const ATTEMPTS: usize = 4;

/// Why a sale was not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A sale with this id has other seats, stops or currency, or keeps its tiers otherwise: those
    /// never change.
    #[error("a sale with this id has other seats, stops or currency, or another tiers_apart")]
    SeatsDiffer,
    /// The sale has a waiting room with other settings, or lets people join none any more: rooms never change.
    #[error("the sale's waiting room, its opens_at and the largest order cannot change")]
    RoomDiffers,
    /// The file breaks a rule beside what the sale has: it names a map that is not the sale's or does not fit it any
    /// more, or turns tickets into money or money into tickets.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Invalid(Vec<Defect>),
    /// The sale is archived: it sells nothing any more.
    #[error("the sale is archived: it sells nothing any more")]
    Archived,
    /// The sale is cancelled: that is not taken back.
    #[error("the sale is cancelled: that is not taken back")]
    Cancelled,
    /// Somebody else publishes it at this moment.
    #[error("the sale is being published by someone else")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Publishes a sale's room, if it has one, and then [`publish`]es the sale: whoever sees the sale can join. `draw_by` is
/// what decides the room's draw.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn publish_with_room(
    ports: &(impl Ports + RoomPorts),
    sale: &Sale,
    epoch: &Epoch,
    draw_by: &DrawBy,
    now: Timestamp,
) -> Result<Published, Refusal> {
    let sale = &*keep_event(ports, sale).await?;
    // A sale that is refused must leave no room behind: a room is never removed.
    let existing = replaced(ports, sale).await?;
    match sale.room() {
        Some(settings) => {
            let is_shown_without = existing.is_some_and(|existing| existing.sale.room().is_none());
            if is_shown_without && now.ms() >= settings.closes_at_ms {
                return Err(Refusal::RoomDiffers);
            }
            let stock = sale.seat_legs();
            room::publish::publish(ports, sale.id(), &settings, stock, draw_by, now).await?;
        }
        None => {
            if room::published(ports, sale.id()).await?.is_some() {
                return Err(Refusal::RoomDiffers);
            }
        }
    }
    publish(ports, sale, epoch, now).await
}

impl From<room::publish::Refusal> for Refusal {
    fn from(refusal: room::publish::Refusal) -> Self {
        use room::publish::Refusal as OfRoom;
        match refusal {
            // The bounds of sale files lie inside those of rooms.
            OfRoom::Settings(invalid) => StoreError::Contract(invalid.to_string()).into(),
            OfRoom::Differs => Self::RoomDiffers,
            OfRoom::Round(NoRound::Lead) => {
                let rule = "must leave time for a round of the beacon before the opening: at least 240 with quicknet";
                Self::Invalid(vec![Defect::new("room.draw_lead_seconds", rule)])
            }
            OfRoom::Round(NoRound::Soon) => {
                let rule =
                    "must be so late that the beacon's round, a minute before, is an hour ahead";
                Self::Invalid(vec![Defect::new("opens_at", rule)])
            }
            OfRoom::Store(error) => error.into(),
        }
    }
}

/// The published sale that this one replaces, if there is one and if replacing it is allowed.
async fn replaced(ports: &impl Ports, sale: &Sale) -> Result<Option<Published>, Refusal> {
    let existing = ports.catalogue().sale(sale.id(), Freshness::Fresh).await?;
    if existing.as_ref().is_some_and(|existing| existing.lifecycle.is_over()) {
        return Err(Refusal::Archived);
    }
    if existing.as_ref().is_some_and(|existing| !existing.sale.has_the_seats_of(sale)) {
        return Err(Refusal::SeatsDiffer);
    }
    // A sale's orders buy either money or tickets, and that never changes.
    let fills = |sale: &Sale| sale.file().fills_wallets();
    if existing.as_ref().is_some_and(|existing| fills(&existing.sale) != fills(sale)) {
        let rule = "must stay wallet, or another, once the sale is published";
        return Err(Refusal::Invalid(vec![Defect::new("merchant.merchant", rule)]));
    }
    // The refunds of a cancelled sale are under way, and nobody could tell which of its orders have theirs.
    let is_cancelled = |sale: &Sale| sale.file().state == SaleState::Cancelled;
    if existing.as_ref().is_some_and(|existing| is_cancelled(&existing.sale)) && !is_cancelled(sale)
    {
        return Err(Refusal::Cancelled);
    }
    if let Some(FileMap::Kept(MapName { hash })) = &sale.file().map
        && existing.as_ref().and_then(|existing| existing.map) != Some(*hash)
    {
        let rule = "must be the hash of the map that the sale has";
        return Err(Refusal::Invalid(vec![Defect::new("map.hash", rule)]));
    }
    Ok(existing)
}

/// The sale with the map that it keeps, if its file names one in place of its own.
async fn with_map<'a>(ports: &impl Ports, sale: &'a Sale) -> Result<Cow<'a, Sale>, Refusal> {
    let Some(FileMap::Kept(MapName { hash })) = &sale.file().map else {
        return Ok(Cow::Borrowed(sale));
    };
    let document = ports.catalogue().map(sale.id()).await?;
    // The map differs: another operator has published the sale a moment ago.
    let document = document.filter(|document| document.hash == *hash).ok_or(Refusal::Busy)?;
    let map = SeatMap::from_document(&document)
        .map_err(|error| StoreError::Contract(format!("the map of {}: {error}", sale.id())))?;
    let file = SaleFile { map: Some(FileMap::Own(map)), ..sale.file().clone() };
    // The names on the map were checked with the file.
    Sale::from_published(file).map(Cow::Owned).map_err(Refusal::Invalid)
}

/// Keeps the document of the sale's event, if its file has it, and checks that every attachment which the event names is
/// kept: the sale with the document's hash in its place. An attachment that no sale names harms nobody.
async fn keep_event<'a>(ports: &impl Ports, sale: &'a Sale) -> Result<Cow<'a, Sale>, Refusal> {
    let Some(event) = &sale.file().event else { return Ok(Cow::Borrowed(sale)) };
    let catalogue = ports.catalogue();
    let invalid = |at: &str, rule: &str| Refusal::Invalid(vec![Defect::new(at, rule)]);
    let about = match &event.about {
        None => None,
        Some(FileAbout::Own(about)) => Some((**about).clone()),
        Some(FileAbout::Kept(hash)) => {
            let kept = catalogue.attachment(*hash).await?;
            let kept = kept.filter(|kept| kept.kind == AttachmentKind::About);
            let kept = kept.ok_or_else(|| {
                invalid("event.about", "must be a document, or the hash of one that is kept")
            })?;
            let about = EventAbout::from_attachment(&kept);
            Some(about.map_err(|error| StoreError::Contract(format!("document {hash}: {error}")))?)
        }
    };
    for picture in pictures(event, about.as_ref()) {
        let kind = catalogue.attachment_kind(picture).await?;
        if kind != Some(AttachmentKind::Jpeg) {
            let rule = format!("must name pictures that are kept: {picture} is not");
            return Err(invalid("event", &rule));
        }
    }
    let (event, document) = event.kept();
    let Some(document) = document else { return Ok(Cow::Borrowed(sale)) };
    catalogue.keep_attachment(&document).await?;
    let file = SaleFile { event: Some(event), ..sale.file().clone() };
    Sale::from_published(file).map(Cow::Owned).map_err(Refusal::Invalid)
}

/// Writes the sale to the catalogue and to Redis. Repeating it finishes what a crash left. It leaves the sale's
/// room alone: [`publish_with_room`] is for whoever may be given a sale with one.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn publish(
    ports: &impl Ports,
    sale: &Sale,
    epoch: &Epoch,
    now: Timestamp,
) -> Result<Published, Refusal> {
    publish_over(ports, sale, None, epoch, now).await
}

/// [`publish`] of a file that was made from the publication `made_from`: if another has come since, nothing of that is undone
/// and the sale is busy. `None`: the file is whole and replaces whatever is there.
///
/// # Errors
/// Returns a [`Refusal`].
pub(super) async fn publish_over(
    ports: &impl Ports,
    sale: &Sale,
    made_from: Option<u64>,
    epoch: &Epoch,
    now: Timestamp,
) -> Result<Published, Refusal> {
    let file: &SaleFile = sale.file();
    let catalogue = ports.catalogue();
    let existing = replaced(ports, sale).await?;
    let version = existing.as_ref().map(|existing| existing.version);
    if made_from.is_some_and(|made_from| version != Some(made_from)) {
        return Err(Refusal::Busy);
    }
    let map = file.map.as_ref().map(FileMap::hash);
    let is_same = existing
        .as_ref()
        .is_some_and(|existing| existing.map == map && *existing.sale.file() == file.without_map());
    if !is_same {
        let replaces = existing.as_ref().map(|existing| existing.version);
        let whole = with_map(ports, sale).await?;
        if catalogue.publish(whole.file(), replaces).await? == ChangeReply::Conflict {
            return Err(Refusal::Busy);
        }
    }
    match load(ports, sale.id(), epoch, now).await? {
        Loaded::Now { .. } => {}
        Loaded::Busy => return Err(Refusal::Busy),
        Loaded::Archived => return Err(Refusal::Archived),
        Loaded::Already => replace_terms(ports, sale.id()).await?,
    }
    let published = catalogue.sale(sale.id(), Freshness::Fresh).await?;
    published.ok_or_else(|| StoreError::Contract("a published sale is not there".to_owned()).into())
}

/// Writes the terms of a loaded sale to Redis, and repeats that until the catalogue still has the same terms
/// afterwards: if two operators publish at once, the write that is late must not win.
///
/// # Errors
/// Fails if a store does; `Unavailable` if the sale keeps changing.
pub(crate) async fn replace_terms(ports: &impl Ports, id: &SaleId) -> Stored<()> {
    let mut written = None;
    for _ in 0..ATTEMPTS {
        let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
        let Some(Published { sale, version, .. }) = published else { return Ok(()) };
        if written == Some(version) {
            return Ok(());
        }
        for inventory in sale.inventories() {
            // If Redis has lost the sale, the next load writes these terms.
            if let Some(epoch) = ports.seats().epoch(&inventory).await? {
                let expected = Some(epoch.clone());
                let command = Load::empty(inventory, terms(&sale), expected, epoch);
                ports.seats().load(&command).await?;
            }
        }
        written = Some(version);
    }
    Err(StoreError::Unavailable(format!("sale {id} keeps changing")))
}
