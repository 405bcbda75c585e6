//! The memory of a gate, which saves it a read for every buyer: the latest view of each room, the rooms as they were
//! published, and the windows that have ended. The last two never change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::serving::Room;
use super::view::View;
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::{GroupId, SaleId};
use crate::domain::basics::time::Timestamp;

/// Age beyond which a view is read again, in milliseconds.
pub const MAX_VIEW_AGE_MS: i64 = 1_000;
/// Most sales that are remembered. What is beyond is forgotten all at once, and read again.
const MAX_SALES: usize = 100;
/// Most windows that are remembered of all sales: a sale has sixty an hour in each group at most.
const MAX_WINDOWS: usize = 4_096;

/// A later window: the indices that were drawn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndedWindow {
    pub first: u32,
    /// One past its last index.
    pub end: u32,
    pub seed: Hash,
    /// The number of the record that ended it.
    pub record: u64,
}

/// What a process remembers of rooms.
#[derive(Debug, Default)]
pub struct RoomMemory {
    rooms: HashMap<SaleId, Arc<Room>>,
    views: HashMap<SaleId, (Arc<View>, Timestamp)>,
    windows: BTreeMap<(SaleId, GroupId, u32), EndedWindow>,
}

impl RoomMemory {
    /// The room of a sale, if it is remembered.
    #[must_use]
    pub fn room(&self, sale: &SaleId) -> Option<Arc<Room>> {
        self.rooms.get(sale).cloned()
    }

    /// Remembers a room as it was published.
    pub fn keep_room(&mut self, room: Room) -> Arc<Room> {
        if self.rooms.len() >= MAX_SALES {
            self.rooms.clear();
        }
        let room = Arc::new(room);
        self.rooms.insert(room.sale.clone(), Arc::clone(&room));
        room
    }

    /// The view of a sale that was read a moment before `now`.
    #[must_use]
    pub fn view(&self, sale: &SaleId, now: Timestamp) -> Option<Arc<View>> {
        let (view, read_at) = self.views.get(sale)?;
        let age_ms = now.ms_since(*read_at);
        (0..MAX_VIEW_AGE_MS).contains(&age_ms).then(|| Arc::clone(view))
    }

    /// Remembers a view that was read at `now`, unless a later one is known. Returns the later of both: what
    /// Redis shows may be older than what was seen there before it forgot.
    pub fn keep_view(&mut self, sale: &SaleId, view: View, now: Timestamp) -> Arc<View> {
        let known = self.views.remove(sale).map(|(known, _)| known);
        let later = match known {
            Some(known) if known.number > view.number => known,
            Some(_) | None => Arc::new(view),
        };
        if self.views.len() >= MAX_SALES {
            self.views.clear();
        }
        self.views.insert(sale.clone(), (Arc::clone(&later), now));
        later
    }

    /// The window that an index of a group was drawn in, if it is remembered.
    #[must_use]
    pub fn window(&self, sale: &SaleId, group: &GroupId, index: u32) -> Option<EndedWindow> {
        let from = (sale.clone(), group.clone(), index.checked_add(1)?);
        let (key, window) = self.windows.range(from..).next()?;
        let is_of = (&key.0, &key.1) == (sale, group) && window.first <= index;
        is_of.then_some(*window)
    }

    pub fn keep_window(&mut self, sale: &SaleId, group: &GroupId, window: EndedWindow) {
        if self.windows.len() >= MAX_WINDOWS {
            self.windows.clear();
        }
        self.windows.insert((sale.clone(), group.clone(), window.end), window);
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Terms;
    use super::super::serving::Mode;
    use super::*;
    use crate::domain::sale::serving::Settings;

    fn sale() -> SaleId {
        SaleId::new("s").unwrap()
    }

    fn view(number: u64) -> View {
        let groups = Vec::new();
        let requests_per_second = 0;
        View { number, mode: Mode::Open, sold_out: false, clock_ms: 0, requests_per_second, groups }
    }

    #[test]
    fn a_room_is_remembered_until_there_are_too_many() {
        let mut memory = RoomMemory::default();
        let room = |number: usize| {
            let settings = Settings::new(GroupId::new("all").unwrap(), 0, 4);
            let sale = SaleId::new(format!("s{number}")).unwrap();
            Room::new(sale, Terms::Secret(Hash([7; 32])), 0, settings)
        };
        assert_eq!(memory.room(&room(0).sale), None);
        for number in 0..MAX_SALES {
            assert_eq!(*memory.keep_room(room(number)), room(number));
        }
        let known = |memory: &RoomMemory| memory.room(&room(0).sale).map(|room| (*room).clone());
        assert_eq!(known(&memory), Some(room(0)));
        memory.keep_room(room(MAX_SALES));
        assert_eq!(known(&memory), None);
    }

    #[test]
    fn a_view_is_remembered_for_a_second_and_never_goes_back() {
        let mut memory = RoomMemory::default();
        let now = Timestamp::from_ms(50_000);
        assert_eq!(memory.view(&sale(), now), None);
        assert_eq!(memory.keep_view(&sale(), view(5), now).number, 5);
        for (after_ms, expected) in [(0, true), (999, true), (1_000, false), (-1, false)] {
            let found = memory.view(&sale(), now.plus_ms(after_ms));
            assert_eq!(found.is_some(), expected, "{after_ms}");
        }
        assert_eq!(memory.keep_view(&sale(), view(4), now.plus_ms(1_000)).number, 5);
        assert_eq!(memory.keep_view(&sale(), view(6), now.plus_ms(2_000)).number, 6);
    }

    #[test]
    fn a_window_is_found_by_its_indices_alone() {
        let mut memory = RoomMemory::default();
        let group = GroupId::new("all").unwrap();
        let window = |first, end| EndedWindow { first, end, seed: Hash([1; 32]), record: 7 };
        memory.keep_window(&sale(), &group, window(10, 20));
        memory.keep_window(&sale(), &group, window(30, 31));
        for (index, first) in
            [(9, None), (10, Some(10)), (19, Some(10)), (20, None), (30, Some(30)), (31, None)]
        {
            let found = memory.window(&sale(), &group, index);
            assert_eq!(found.map(|window| window.first), first, "{index}");
        }
        assert_eq!(memory.window(&sale(), &GroupId::new("b").unwrap(), 10), None);
        assert_eq!(memory.window(&sale(), &group, u32::MAX), None);
    }
}
