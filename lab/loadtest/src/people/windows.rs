//! Whose places were served, window by window: the share of bots among them against their share of the places.

use engine::domain::admission::room::shuffle::Shuffle;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::GroupId;
use serde::{Deserialize, Serialize};

/// The window that an index was drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Window {
    pub first: u32,
    /// One past its last index.
    pub end: u32,
    pub seed: Hash,
}

impl Window {
    /// The place of an index; `None` if it is of another window.
    #[must_use]
    pub fn place(self, index: u32) -> Option<u32> {
        let shuffle = Shuffle::new(self.seed, self.end.checked_sub(self.first)?);
        shuffle.place(index.checked_sub(self.first)?).map(|place| self.first + place)
    }

    /// True if an index is of this window.
    #[must_use]
    pub fn has(self, index: u32) -> bool {
        (self.first..self.end).contains(&index)
    }
}

/// One membership of a room: each has one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Position of the sale.
    pub sale: usize,
    /// Position of the group in the room.
    pub group: usize,
    pub index: u32,
    /// True if it is a bot's.
    pub is_bot: bool,
}

/// Places of one window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowShare {
    pub group: GroupId,
    pub first: u32,
    /// One past the last index.
    pub end: u32,
    pub places: u64,
    /// Those of them that are bots'.
    pub bots: u64,
    /// Places that were served.
    pub served: u64,
    /// Those of them that are bots'.
    pub bots_served: u64,
    /// Share of bots among the places that were served, in parts of their share of the places; 1 is fair.
    pub ratio: f64,
    /// Standard error of the ratio if places are drawn: by how much chance makes it another than 1.
    pub standard_error: f64,
}

impl WindowShare {
    /// The figures of a window of these members, where places below `serving` were served; `None` if nobody was.
    pub fn new(group: GroupId, window: Window, members: &[Member], serving: u32) -> Option<Self> {
        let (mut places, mut bots, mut served, mut bots_served) = (0_u64, 0_u64, 0_u64, 0_u64);
        for member in members.iter().filter(|member| window.has(member.index)) {
            let is_served = window.place(member.index).is_some_and(|place| place < serving);
            let is_bot = u64::from(member.is_bot);
            places += 1;
            bots += is_bot;
            served += u64::from(is_served);
            bots_served += if is_served { is_bot } else { 0 };
        }
        if served == 0 {
            return None;
        }
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let expected = share(bots, places);
        let ratio = if bots == 0 { 1.0 } else { share(bots_served, served) / expected };
        // So many are drawn of the places without putting any back.
        let variance = expected * (1.0 - expected) / served as f64
            * share(places - served, places.saturating_sub(1));
        let standard_error = if bots == 0 { 0.0 } else { variance.sqrt() / expected };
        let Window { first, end, .. } = window;
        Some(Self { group, first, end, places, bots, served, bots_served, ratio, standard_error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { first: 500, end: 600, seed: Hash([7; 32]) };

    #[test]
    fn a_place_is_computed_as_the_gate_computes_it() {
        let mut places: Vec<u32> = (500..600).map(|index| WINDOW.place(index).unwrap()).collect();
        assert!(!places.is_sorted(), "they are drawn");
        places.sort_unstable();
        assert_eq!(places, (500..600).collect::<Vec<_>>());
        for index in [499, 600] {
            assert_eq!(WINDOW.place(index), None);
            assert!(!WINDOW.has(index));
        }
    }

    fn members(is_bot: impl Fn(u32) -> bool) -> Vec<Member> {
        // Indices 590 to 599 were given to nobody, and 600 is of another window.
        let indices = (500..590).chain([600]);
        indices.map(|index| Member { sale: 0, group: 0, index, is_bot: is_bot(index) }).collect()
    }

    #[test]
    fn the_share_of_bots_served_is_held_against_their_share_of_the_places() {
        let group = GroupId::all;
        let place = |index: u32| WINDOW.place(index).unwrap_or(u32::MAX);
        // Bots have every place below 550: all that is served is theirs.
        let first = members(|index| place(index) < 550);
        let share = WindowShare::new(group(), WINDOW, &first, 550).unwrap();
        assert_eq!((share.places, share.served), (90, share.bots));
        assert_eq!(share.bots_served, share.served);
        assert!((share.ratio - 90.0 / share.bots as f64).abs() < 1e-9, "{share:?}");
        // Once all are served, the share is the same whatever the order, and chance has no part in it.
        let all = WindowShare::new(group(), WINDOW, &first, 600).unwrap();
        assert!((all.ratio - 1.0).abs() < 1e-9 && all.standard_error == 0.0, "{all:?}");
        assert!(share.standard_error > 0.05, "{share:?}");
        // Nobody was served, and no bot joined.
        assert_eq!(WindowShare::new(group(), WINDOW, &first, 500), None);
        let people = WindowShare::new(group(), WINDOW, &members(|_| false), 550).unwrap();
        assert_eq!((people.bots, people.ratio, people.standard_error), (0, 1.0, 0.0));
    }
}
