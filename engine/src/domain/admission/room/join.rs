//! Joining: the indices that a process has in stock, and the membership that a buyer gets.
//!
//! An index comes from the counter of its group, which gives none twice. The first window is closed at that
//! counter: what it gave before is below N and belongs to the window; what it gives later does not. So the
//! counter decides the window of an index, whatever any clock says.
//!
//! Memberships are kept in [`BUCKETS`] buckets, by buyer. A bucket that the draw is about to read has a
//! *marker*. A process that finds no marker after it has written a membership knows that the draw will read it.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::draw::Member;
use super::tree::{self, CHUNK_LEAVES};
use super::visit::{Admitted, Visit};
use crate::domain::basics::bytes::{Hash, Nonce};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::basics::time::Timestamp;

/// Buckets of a sale's memberships: 2,500 joins a second are ten a second in each, and a million
/// memberships 4,000 (below 1 MB, a page of a query). A sale's memberships are found by this number, so it
/// never changes.
pub const BUCKETS: u16 = 256;
/// Most indices that a process takes from a counter at once.
pub const MAX_TAKEN: u16 = 16;
/// Age beyond which an index in stock is dropped once the sale has opened, in milliseconds: later windows are
/// drawn every minute, and who gets an old index would know its place.
pub const MAX_STOCK_AGE_MS: i64 = 2_000;
/// Most times that a buyer joins again, after a place that ran out or a visit that is over.
pub const MAX_REJOINS: u8 = 3;
/// Most indices of a group: [`MAX_CHUNKS`] chunks of [`CHUNK_LEAVES`].
pub const MAX_INDICES: u32 = 10_240_000;
/// Most chunks of a tree. Their roots are one item.
pub const MAX_CHUNKS: usize = 10_000;

/// Most bytes of an item (a quota of DynamoDB: Developer Guide, "Constraints"), less 1 KB for keys and counts.
const MAX_ITEM_BYTES: usize = 399 * 1024;
/// Bytes of a hash.
const HASH_BYTES: usize = 32;
const _: () = assert!(MAX_CHUNKS * HASH_BYTES <= MAX_ITEM_BYTES);
const _: () = assert!(CHUNK_LEAVES * HASH_BYTES <= MAX_ITEM_BYTES);

/// The window that an index belongs to, as far as the counter knows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JoinWindow {
    /// The first, which is drawn with the tree.
    First,
    /// One after it, which the log ends.
    Later,
}

impl JoinWindow {
    pub const ALL: [Self; 2] = [Self::First, Self::Later];

    /// The word for it in items and replies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Later => "later",
        }
    }
}

/// An index with its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index {
    /// The index, from 0.
    pub number: u32,
    pub window: JoinWindow,
}

/// Neighbouring indices that a counter gave at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TakenIndices {
    /// The first of them.
    pub first: u32,
    /// How many they are, 1 or more.
    pub count: u16,
    /// The window of all of them.
    pub window: JoinWindow,
}

/// A buyer's membership of a room: one at a time for each buyer and sale.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Membership {
    pub sale: SaleId,
    pub group: GroupId,
    pub buyer: UserId,
    /// The index, nobody else's in the group.
    pub index: Index,
    /// The nonce of its leaf.
    pub nonce: Nonce,
    pub joined_at: Timestamp,
    /// Whether the buyer asked for more time on joining. Nobody is asked why.
    pub more_time: bool,
    /// The number of times that the buyer had joined before.
    pub rejoined: u8,
    /// The visit of its place; none before it begins.
    pub visit: Option<Visit>,
    /// The visits of the places that the buyer had before, at most [`MAX_REJOINS`].
    pub earlier: Vec<Admitted>,
}

impl Membership {
    /// Every index of the buyer's that was admitted, the present one last.
    #[must_use]
    pub fn admitted(&self) -> Vec<Admitted> {
        let present = self.visit.map(|Visit { place, turn, .. }| {
            let index = self.index.number;
            Admitted { index, place, turn }
        });
        self.earlier.iter().copied().chain(present).collect()
    }

    /// The leaf at its index.
    #[must_use]
    pub fn leaf(&self) -> Hash {
        let Self { sale, group, buyer, index, nonce, .. } = self;
        Member { sale, group, index: index.number, buyer, nonce: *nonce }.leaf()
    }

    /// The chunk of leaves that its index is in, and the leaf's position there.
    #[must_use]
    pub fn position(&self) -> (u32, usize) {
        let leaves = u32::try_from(CHUNK_LEAVES).unwrap_or(u32::MAX);
        let position = usize::try_from(self.index.number % leaves).unwrap_or(usize::MAX);
        (self.index.number / leaves, position)
    }
}

/// The bucket of a buyer's membership, of some buckets: the first four bytes of the SHA-256 of the buyer's
/// id, modulo their number.
#[must_use]
pub fn bucket_of(buyer: &UserId, buckets: u16) -> u16 {
    let [a, b, c, d, ..] = Hash::of_parts(&[buyer.as_str().as_bytes()]).0;
    u16::try_from(u32::from_be_bytes([a, b, c, d]) % u32::from(buckets.max(1))).unwrap_or(0)
}

/// The tree of a group's first window, as it was fixed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tree {
    /// Number of leaves, N.
    pub count: u32,
    /// The roots of its chunks, in order.
    pub chunk_roots: Vec<Hash>,
}

impl Tree {
    #[must_use]
    pub fn root(&self) -> Hash {
        tree::root(&self.chunk_roots)
    }
}

/// What a process has in stock of one counter.
#[derive(Debug, Clone)]
struct Stock {
    /// What is left of each batch, with the time at which it was taken, the oldest first. There are several
    /// where several requests at once found nothing in stock.
    left: VecDeque<(TakenIndices, Timestamp)>,
    /// How many were last taken together.
    batch: u16,
    /// The time of that.
    at: Timestamp,
}

impl Stock {
    /// The next index, unless nothing is left.
    fn next(&mut self) -> Option<Index> {
        let (taken, _) = self.left.front_mut()?;
        let index = Index { number: taken.first, window: taken.window };
        taken.first = taken.first.saturating_add(1);
        taken.count = taken.count.saturating_sub(1);
        if taken.count == 0 {
            self.left.pop_front();
        }
        Some(index)
    }
}

/// The indices that a process has in stock. It takes more at once while it uses them up quickly, so that the
/// counter keeps up with a flood and few indices are left unused by everybody else.
#[derive(Debug, Default)]
pub struct IndexStock {
    stocks: BTreeMap<(SaleId, GroupId), Stock>,
}

/// The membership that a new one replaces, as it was read. If a visit of it has begun since, it is not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replaced {
    pub index: u32,
    /// The admissions of its visit; none if it has not begun.
    pub attempts: Option<u16>,
}

impl From<&Membership> for Replaced {
    fn from(membership: &Membership) -> Self {
        let attempts = membership.visit.map(|visit| visit.attempts);
        Self { index: membership.index.number, attempts }
    }
}

impl IndexStock {
    /// The next index in stock, at `now`, of a sale that opens at `opens_at`. What is too old is dropped.
    pub fn next(
        &mut self,
        sale: &SaleId,
        group: &GroupId,
        opens_at: Timestamp,
        now: Timestamp,
    ) -> Option<Index> {
        let stock = self.stocks.get_mut(&(sale.clone(), group.clone()))?;
        if now >= opens_at {
            let is_new = |at: Timestamp| now.ms_since(at).saturating_abs() <= MAX_STOCK_AGE_MS;
            stock.left.retain(|(_, at)| is_new(*at));
        }
        stock.next()
    }

    /// How many to take when there is none in stock: twice as many as the last time if those were used up
    /// quickly, else one.
    #[must_use]
    pub fn batch(&self, sale: &SaleId, group: &GroupId, now: Timestamp) -> u16 {
        let Some(stock) = self.stocks.get(&(sale.clone(), group.clone())) else { return 1 };
        let was_quick = now.ms_since(stock.at).saturating_abs() <= MAX_STOCK_AGE_MS;
        if was_quick { stock.batch.saturating_mul(2).clamp(1, MAX_TAKEN) } else { 1 }
    }

    /// Gives out the first of what was taken at `now`, and puts the others in stock, behind what several
    /// requests at once may have put there; `None` if nothing was taken.
    pub fn put(
        &mut self,
        sale: &SaleId,
        group: &GroupId,
        taken: TakenIndices,
        now: Timestamp,
    ) -> Option<Index> {
        let key = (sale.clone(), group.clone());
        let new = || Stock { left: VecDeque::new(), batch: 0, at: now };
        let stock = self.stocks.entry(key).or_insert_with(new);
        (stock.batch, stock.at) = (taken.count, now);
        let others = taken.count.checked_sub(1)?;
        if others > 0 {
            let first = taken.first.saturating_add(1);
            stock.left.push_back((TakenIndices { first, count: others, ..taken }, now));
        }
        Some(Index { number: taken.first, window: taken.window })
    }

    /// Puts an index back that its buyer does not need: another request of the same buyer was quicker.
    pub fn give_back(&mut self, sale: &SaleId, group: &GroupId, index: Index, now: Timestamp) {
        if let Some(stock) = self.stocks.get_mut(&(sale.clone(), group.clone())) {
            let Index { number, window } = index;
            stock.left.push_front((TakenIndices { first: number, count: 1, window }, now));
        }
    }

    /// Drops what is in stock of a first window: it was closed.
    pub fn drop_first_window(&mut self, sale: &SaleId, group: &GroupId) {
        if let Some(stock) = self.stocks.get_mut(&(sale.clone(), group.clone())) {
            stock.left.retain(|(taken, _)| taken.window == JoinWindow::Later);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENS: Timestamp = Timestamp::from_ms(1_000_000);

    fn sale() -> SaleId {
        SaleId::new("s").unwrap()
    }

    fn group() -> GroupId {
        GroupId::new("all").unwrap()
    }

    fn taken(first: u32, count: u16) -> TakenIndices {
        TakenIndices { first, count, window: JoinWindow::First }
    }

    /// Draws from the stock until it is empty.
    fn drain(stock: &mut IndexStock, now: Timestamp) -> Vec<u32> {
        std::iter::from_fn(|| stock.next(&sale(), &group(), OPENS, now))
            .map(|index| index.number)
            .collect()
    }

    #[test]
    fn what_was_taken_is_given_out_once_each() {
        let mut stock = IndexStock::default();
        let early = OPENS.plus_seconds(-100_000);
        assert_eq!(drain(&mut stock, early), [0; 0]);
        let first = stock.put(&sale(), &group(), taken(7, 3), early);
        assert_eq!(first, Some(Index { number: 7, window: JoinWindow::First }));
        // Before the opening nothing grows old.
        assert_eq!(drain(&mut stock, OPENS.plus_ms(-1)), [8, 9]);
        assert_eq!(drain(&mut stock, OPENS.plus_ms(-1)), [0; 0]);
        assert_eq!(stock.put(&sale(), &group(), taken(7, 0), early), None);
        let other = GroupId::new("club").unwrap();
        stock.put(&sale(), &group(), taken(20, 2), early);
        assert_eq!(stock.next(&sale(), &other, OPENS, early), None);
    }

    #[test]
    fn requests_at_once_lose_no_index() {
        let mut stock = IndexStock::default();
        // Three find nothing, and each takes some before the others have put theirs.
        let firsts = [(0, 4), (4, 4), (8, 1)]
            .map(|(first, count)| stock.put(&sale(), &group(), taken(first, count), OPENS));
        assert_eq!(firsts.map(|index| index.unwrap().number), [0, 4, 8]);
        assert_eq!(drain(&mut stock, OPENS), [1, 2, 3, 5, 6, 7]);
        // What is old is dropped by itself.
        stock.put(&sale(), &group(), taken(9, 2), OPENS);
        stock.put(&sale(), &group(), taken(11, 2), OPENS.plus_ms(2_000));
        assert_eq!(drain(&mut stock, OPENS.plus_ms(2_001)), [12]);
    }

    #[test]
    fn after_the_opening_what_is_old_is_dropped() {
        for (age_ms, left) in [(0, 2), (2_000, 2), (2_001, 0), (-2_001, 0)] {
            let mut stock = IndexStock::default();
            stock.put(&sale(), &group(), taken(0, 3), OPENS.plus_seconds(5));
            let now = OPENS.plus_seconds(5).plus_ms(age_ms);
            assert_eq!(drain(&mut stock, now).len(), left, "{age_ms} ms");
            assert_eq!(drain(&mut stock, OPENS.plus_seconds(5)), [0; 0], "it stays dropped");
        }
        let mut stock = IndexStock::default();
        stock.put(&sale(), &group(), taken(0, 3), OPENS);
        let later = TakenIndices { window: JoinWindow::Later, ..taken(10, 3) };
        stock.put(&sale(), &group(), later, OPENS);
        stock.drop_first_window(&sale(), &group());
        assert_eq!(
            drain(&mut stock, OPENS),
            [11, 12],
            "only what may be of the window that is closed"
        );
    }

    #[test]
    fn an_index_that_its_buyer_does_not_need_is_the_next_one_s() {
        let mut stock = IndexStock::default();
        let first = stock.put(&sale(), &group(), taken(7, 2), OPENS).unwrap();
        stock.give_back(&sale(), &group(), first, OPENS);
        assert_eq!(drain(&mut stock, OPENS), [7, 8]);
    }

    #[test]
    fn a_process_takes_more_while_it_uses_them_up() {
        let mut stock = IndexStock::default();
        let mut sizes = Vec::new();
        for _ in 0..6 {
            let batch = stock.batch(&sale(), &group(), OPENS);
            sizes.push(batch);
            stock.put(&sale(), &group(), taken(0, batch), OPENS);
            drain(&mut stock, OPENS);
        }
        assert_eq!(sizes, [1, 2, 4, 8, 16, 16]);
        assert_eq!(stock.batch(&sale(), &group(), OPENS.plus_ms(2_000)), 16);
        assert_eq!(stock.batch(&sale(), &group(), OPENS.plus_ms(2_001)), 1);
    }

    #[test]
    fn buyers_spread_over_the_buckets_and_keep_theirs() {
        let mut counts = vec![0; usize::from(BUCKETS)];
        for number in 0..100_000 {
            let bucket = bucket_of(&UserId::new(number.to_string()).unwrap(), BUCKETS);
            counts[usize::from(bucket)] += 1;
        }
        // 391 each on average, with a standard deviation of 20.
        assert!(counts.iter().all(|count| (290..=490).contains(count)), "{counts:?}");
        // SHA-256("abc") begins with ba7816bf: the bucket is part of a key, and must not change.
        let abc = UserId::new("abc").unwrap();
        assert_eq!(bucket_of(&abc, 256), 0xbf);
        assert_eq!((bucket_of(&abc, 1), bucket_of(&abc, 0)), (0, 0));
    }

    #[test]
    fn a_membership_has_its_place_in_a_chunk() {
        let member = |number| Membership {
            sale: sale(),
            group: group(),
            buyer: UserId::new("7").unwrap(),
            index: Index { number, window: JoinWindow::First },
            nonce: Nonce([1; 16]),
            joined_at: OPENS,
            more_time: false,
            rejoined: 0,
            visit: None,
            earlier: Vec::new(),
        };
        for (number, expected) in
            [(0, (0, 0)), (1_023, (0, 1_023)), (1_024, (1, 0)), (3_000, (2, 952))]
        {
            assert_eq!(member(number).position(), expected);
        }
        assert_eq!(usize::try_from(MAX_INDICES), Ok(MAX_CHUNKS * CHUNK_LEAVES));
        assert_ne!(member(1).leaf(), member(2).leaf());
        let chunk_roots = vec![Hash([1; 32]), Hash([2; 32])];
        assert_eq!(
            Tree { count: 1_030, chunk_roots: chunk_roots.clone() }.root(),
            tree::root(&chunk_roots)
        );
    }
}
