//! Join: a buyer gets an index, and keeps it.
//!
//! The flow writes the membership first, and then reads the marker of its bucket with a strongly consistent read.
//! Without a marker, the draw has not begun to read the bucket, so it will find the membership. With a marker, the tree
//! decides, and the flow promises nothing until the tree is kept. That holds whatever clocks say, and however long a
//! process sleeps between the index, the write and the read.

use std::sync::{Mutex, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::admission::room::code::{CodeHash, CodeShard};
use crate::domain::admission::room::join::{
    Index, IndexStock, JoinWindow, MAX_INDICES, MAX_REJOINS, Membership, Replaced, bucket_of,
};
use crate::domain::admission::room::memory::RoomMemory;
use crate::domain::admission::room::serving::Room;
use crate::domain::admission::room::view::{Turn, View};
use crate::domain::basics::bytes::Nonce;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::basics::time::Timestamp;
use crate::flows::room::window::{GroupAt, place};
use crate::flows::room::{last_record, published};
use crate::ports::{Published, RoomPorts, Rooms, StoreError, Stored};

/// Most memberships that are looked at in one call. The second is of a later window, or of a request that
/// came at the same time.
const MAX_MEMBERSHIPS: usize = 3;

/// A buyer's wish to join.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JoinRequest {
    pub sale: SaleId,
    /// The group; who is a member already stays in the one that was joined.
    pub group: GroupId,
    pub buyer: UserId,
    /// Random bytes for a new membership.
    pub nonce: Nonce,
    /// Whether the buyer asks for more time.
    pub more_time: bool,
    /// The code that the buyer gave, if any, by its hash in the group.
    pub code: Option<CodeHash>,
}

/// What is certain of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It takes part in the draw of its window.
    Certain,
    /// Its window is being closed, and whether it came in time is not decided: ask again in some seconds.
    Undecided,
}

/// The reply to joining.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Joined {
    pub membership: Membership,
    /// What is certain of it.
    pub standing: Standing,
}

/// Why a buyer cannot join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sale has no room.
    #[error("the sale has no waiting room")]
    NoRoom,
    /// The room has no such group.
    #[error("the waiting room has no such group")]
    UnknownGroup,
    /// The group is joined with a code, and none was given.
    #[error("this group is joined with a code")]
    CodeMissing,
    /// There is no such code in the group, or it was used as often as it may be: which of them is not said.
    #[error("the code does not let you join this group")]
    CodeRefused,
    /// The buyer brings a code for a group, and is a member of this other one. The code is not used.
    #[error("you are a member of the group {0}, and no code was used")]
    GroupDiffers(GroupId),
    /// Joining begins at this time.
    #[error("joining begins at {0}")]
    NotOpen(Timestamp),
    /// Only who joined before the first window was closed takes part, and the buyer had not.
    #[error("only who joined before the draw takes part")]
    RegistrationOver,
    /// The sale is over.
    #[error("the sale is over")]
    SaleClosed,
    /// The sale is archived: it sells nothing any more.
    #[error("the sale is archived: it sells nothing any more")]
    SaleArchived,
    /// Every index of the group is given.
    #[error("the waiting room is full")]
    Full,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Refuses a sale that is over: nobody would be served.
///
/// # Errors
/// Returns a [`Refusal`].
pub fn open_sale(published: &Published, now: Timestamp) -> Result<(), Refusal> {
    if published.lifecycle.is_over() {
        return Err(Refusal::SaleArchived);
    }
    if now < published.sale.sells_until() { Ok(()) } else { Err(Refusal::SaleClosed) }
}

/// Makes a buyer a member of a room, or finds the buyer's membership. `stock` has the indices that the process has
/// taken and not given out. A buyer who came too late for the first window, and was never answered `Certain`, becomes a
/// member of a later window, if the room admits members then. So does a buyer whose place has run out or whose visit is
/// over, up to [`MAX_REJOINS`] times. A group that requires a code asks each buyer for it once, for the first
/// membership.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn join(
    ports: &impl RoomPorts,
    stock: &Mutex<IndexStock>,
    request: &JoinRequest,
    now: Timestamp,
) -> Result<Joined, Refusal> {
    let room = published(ports, &request.sale).await?.ok_or(Refusal::NoRoom)?;
    if !room.settings.groups.iter().any(|known| known.group == request.group) {
        return Err(Refusal::UnknownGroup);
    }
    let bucket = bucket_of(&request.buyer, ports.buckets());
    let joining = Joining { ports, stock, request, bucket, room: &room, now };
    let known = ports.rooms().membership(&request.sale, bucket, &request.buyer).await?;
    // Who asks for no code gets the membership that there is: another device may have joined it.
    if let Some(known) = &known
        && known.group != request.group
        && request.code.is_some()
    {
        return Err(Refusal::GroupDiffers(known.group.clone()));
    }
    let mut membership = match known {
        Some(known) if known.rejoined < MAX_REJOINS && joining.is_over(&known).await? => {
            joining.write(&known.group, Some(&known), known.rejoined + 1).await?
        }
        Some(known) => known,
        None => {
            joining.is_open()?;
            joining.write_first().await?
        }
    };
    for _ in 0..MAX_MEMBERSHIPS {
        match joining.standing(&membership).await? {
            Fate::Known(standing) => return Ok(Joined { membership, standing }),
            Fate::CameTooLate => {
                let Membership { ref group, rejoined, .. } = membership;
                membership = joining.write(group, Some(&membership), rejoined).await?;
            }
        }
    }
    Err(StoreError::Unavailable("the same buyer joins again and again".to_owned()))?
}

/// What becomes of a membership.
enum Fate {
    Known(Standing),
    /// The tree stands without it.
    CameTooLate,
}

struct Joining<'a, P> {
    ports: &'a P,
    stock: &'a Mutex<IndexStock>,
    request: &'a JoinRequest,
    bucket: u16,
    room: &'a Room,
    now: Timestamp,
}

impl<P: RoomPorts> Joining<'_, P> {
    /// The stock, locked; never while anything is awaited.
    fn stocked<T>(&self, act: impl FnOnce(&mut IndexStock) -> T) -> T {
        act(&mut self.stock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Refuses who is no member, unless members may be made now.
    fn is_open(&self) -> Result<(), Refusal> {
        let settings = &self.room.settings;
        if let Some(opens_at) = settings.joins_open_at_ms.map(Timestamp::from_ms)
            && self.now < opens_at
        {
            return Err(Refusal::NotOpen(opens_at));
        }
        // It saves an index. The counter decides, by the window of the index that it gives.
        if settings.registered_only && self.now.ms() >= settings.closes_at_ms {
            return Err(Refusal::RegistrationOver);
        }
        Ok(())
    }

    /// An index that nobody has.
    async fn index(&self, group: &GroupId) -> Result<Index, Refusal> {
        let (sale, now) = (&self.request.sale, self.now);
        let opens_at = Timestamp::from_ms(self.room.settings.opens_at_ms);
        let index = match self.stocked(|stock| stock.next(sale, group, opens_at, now)) {
            Some(index) => index,
            None => {
                let batch = self.stocked(|stock| stock.batch(sale, group, now));
                let taken = self.ports.rooms().take_indices(sale, group, batch).await?;
                let first = self.stocked(|stock| stock.put(sale, group, taken, now));
                first.ok_or_else(|| StoreError::Contract("the counter gave no index".to_owned()))?
            }
        };
        if index.number < MAX_INDICES { Ok(index) } else { Err(Refusal::Full) }
    }

    /// True if a membership can bring no admission any more: its place has run out, or its visit is over.
    async fn is_over(&self, membership: &Membership) -> Stored<bool> {
        let settings = &self.room.settings;
        // Before the opening nothing is served.
        if self.now.ms() < settings.opens_at_ms {
            return Ok(false);
        }
        let view = View::of(&last_record(self.ports, &self.room.sale).await?, false);
        if let Some(visit) = &membership.visit {
            return Ok(visit.left_ms(membership.more_time, settings.visit_ms, view.clock_ms) == 0);
        }
        let Membership { sale, group, index, .. } = membership;
        let mut groups = settings.groups.iter();
        let Some(at) = groups.position(|known| known.group == *group) else { return Ok(false) };
        let memory = Mutex::new(RoomMemory::default());
        let place = place(self.ports, &memory, &view, GroupAt { sale, group, at }, index.number);
        let turn = view.groups.get(at).zip(place.await?).map(|(group, place)| group.turn(place));
        Ok(turn == Some(Turn::RunOut))
    }

    /// Writes a membership with a new index, of a buyer who has joined that many times before; returns the membership
    /// that is kept.
    async fn write(
        &self,
        group: &GroupId,
        replaces: Option<&Membership>,
        rejoined: u8,
    ) -> Result<Membership, Refusal> {
        if replaces.is_some() {
            self.stocked(|stock| stock.drop_first_window(&self.request.sale, group));
        }
        let mut membership = self.new_membership(group, rejoined).await?;
        membership.earlier = replaces.map(Membership::admitted).unwrap_or_default();
        let replaces = replaces.map(Replaced::from);
        let kept = self.ports.rooms().join(&membership, self.bucket, replaces).await?;
        if kept.index != membership.index {
            let JoinRequest { sale, .. } = self.request;
            let index = membership.index;
            self.stocked(|stock| stock.give_back(sale, group, index, self.now));
        }
        Ok(kept)
    }

    /// Writes the first membership of a buyer, in the requested group; returns the membership that is kept.
    async fn write_first(&self) -> Result<Membership, Refusal> {
        let JoinRequest { group, code, .. } = self.request;
        let mut groups = self.room.settings.groups.iter();
        if !groups.any(|known| known.group == *group && known.codes) {
            return self.write(group, None, 0).await;
        }
        self.write_by_code(code.ok_or(Refusal::CodeMissing)?).await
    }

    /// Writes the first membership of a buyer, and uses a code in the same transaction: a request that is cut off loses
    /// no use, and nobody gets two places for one.
    async fn write_by_code(&self, code: CodeHash) -> Result<Membership, Refusal> {
        let JoinRequest { sale, group, buyer, .. } = self.request;
        let rooms = self.ports.rooms();
        // The code is read before an index is taken: a guessed code leaves no gap.
        let first = rooms.code(sale, group, CodeShard { code, shard: 0 }).await?;
        let first = first.ok_or(Refusal::CodeRefused)?;
        let mut made = None;
        for shard in CodeShard::tried_by(code, buyer, first.shards) {
            let uses = match shard.shard {
                0 => Some(first),
                _ => rooms.code(sale, group, shard).await?,
            };
            if !uses.is_some_and(|uses| uses.has_left()) {
                continue;
            }
            let membership = match made.take() {
                Some(made) => made,
                None => self.new_membership(group, 0).await?,
            };
            if let Some(kept) = rooms.join_by_code(&membership, self.bucket, shard).await? {
                return Ok(kept);
            }
            made = Some(membership);
        }
        Err(Refusal::CodeRefused)
    }

    /// Makes a membership with a new index, of a buyer who has joined that many times before, without writing it.
    async fn new_membership(&self, group: &GroupId, rejoined: u8) -> Result<Membership, Refusal> {
        let index = self.index(group).await?;
        if self.room.settings.registered_only && index.window == JoinWindow::Later {
            return Err(Refusal::RegistrationOver);
        }
        Ok(Membership {
            sale: self.request.sale.clone(),
            group: group.clone(),
            buyer: self.request.buyer.clone(),
            index,
            nonce: self.request.nonce,
            joined_at: self.now,
            more_time: self.request.more_time,
            rejoined,
            visit: None,
            earlier: Vec::new(),
        })
    }

    /// What is certain of a membership that is written.
    async fn standing(&self, membership: &Membership) -> Stored<Fate> {
        // A later window has no tree: a record of the log ends it, and has every index below the end in it.
        let is_later = membership.index.window == JoinWindow::Later;
        if is_later || !stands(Guard::RoomMarker) {
            return Ok(Fate::Known(Standing::Certain));
        }
        let Membership { sale, group, .. } = membership;
        if !self.ports.rooms().is_marked(sale, self.bucket).await? {
            return Ok(Fate::Known(Standing::Certain));
        }
        let (chunk, at) = membership.position();
        let leaves = self.ports.rooms().chunk(sale, group, chunk).await?;
        Ok(match leaves {
            None => Fate::Known(Standing::Undecided),
            Some(leaves) if leaves.get(at) == Some(&membership.leaf()) => {
                Fate::Known(Standing::Certain)
            }
            Some(_) => Fate::CameTooLate,
        })
    }
}
