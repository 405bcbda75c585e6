//! The buyer's place in the waiting room, if the sale has one: the checks before the gate, and the visit that is
//! written last.

use std::sync::Arc;

use engine::domain::admission::room::serving::Room;
use engine::domain::admission::room::view::View;
use engine::domain::basics::ids::GroupId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::enter::{self, Claimed, Entrance};
use engine::ports::{Published, StoreError};
use shared::http::Problem;
use shared::http::admission::PlaceClaim;
use shared::http::identity::Buyer;
use shared::runtime::app::App;

/// A place that is due and belongs to the buyer who asks.
#[derive(Debug)]
pub struct CheckedPlace {
    room: Arc<Room>,
    view: Arc<View>,
    group: GroupId,
    place: u32,
    index: u32,
}

/// Checks the place that a request claims, cheapest check first: the room's mode, the claim, and only then the
/// place token and the place that it proves. `None` if the sale has no room.
///
/// # Errors
/// Returns the refusal of the first check that the request does not pass.
pub async fn check(
    app: &App,
    published_sale: &Published,
    claim: Option<&PlaceClaim>,
    buyer: &Buyer,
    now: Timestamp,
) -> Result<Option<CheckedPlace>, Problem> {
    let sale = &published_sale.sale;
    if sale.room().is_none() {
        return Ok(None);
    }
    let room = enter::room(&app.ports, &app.room_memory, sale.id()).await?;
    let room = room.ok_or_else(|| StoreError::Contract(format!("{} has no room", sale.id())))?;
    let view = enter::view(&app.ports, &app.room_memory, &room, now).await?;
    let claim = claim.ok_or(enter::Refusal::Missing)?;
    let claimed = Claimed { group: &claim.group, place: claim.place };
    enter::check_claim(&room, &view, claimed)?;
    let token = app.admissions.check_place(&claim.token, sale.id(), buyer)?;
    if *token.group() != claim.group {
        return Err(enter::Refusal::OtherPlace.into());
    }
    let index = token.index().number;
    enter::check_place(&app.ports, &app.room_memory, &room, &view, claimed, index).await?;
    Ok(Some(CheckedPlace { group: claim.group.clone(), place: claim.place, room, view, index }))
}

impl CheckedPlace {
    /// Begins the visit of the place without an admission: what is left of it, in milliseconds.
    ///
    /// # Errors
    /// Returns the refusal of [`enter::begin`].
    pub async fn begin(
        &self,
        app: &App,
        buyer: &Buyer,
        now: Timestamp,
    ) -> Result<u64, enter::Refusal> {
        let Self { room, view, group, place, index } = self;
        let claimed = Claimed { group, place: *place };
        enter::begin(&app.ports, room, view, claimed, buyer.user(), *index, now).await
    }

    /// Begins the visit of the place, or goes on with it.
    ///
    /// # Errors
    /// Returns the refusal of [`enter::enter`].
    pub async fn enter(
        &self,
        app: &App,
        buyer: &Buyer,
        now: Timestamp,
    ) -> Result<Entrance, enter::Refusal> {
        let Self { room, view, group, place, index } = self;
        let claimed = Claimed { group, place: *place };
        enter::enter(&app.ports, room, view, claimed, buyer.user(), *index, now).await
    }
}
