//! The settings by which a waiting room serves, as [`RoomSettings`](super::RoomSettings) makes them.

use serde::{Deserialize, Serialize};

use crate::domain::basics::ids::GroupId;

/// Time between two marks of the serving number, in milliseconds.
pub const MARK_MS: u64 = 10_000;

/// Time that the beacon has from the closing on in rooms that were published before, in milliseconds. Then the secret
/// decides. As late their window may be closed without a round.
pub const BEACON_MS: i64 = 120_000;

/// By how much a visit is longer of who asked for more time.
pub const MORE_TIME_FACTOR: u64 = 3;

/// Most groups of a room.
pub const MAX_GROUPS: usize = 4;
/// The longest poll of a page, in milliseconds.
pub const MAX_POLL_MS: u64 = 60_000;
/// The largest share of a group.
const MAX_SHARE: u32 = 1_000;
/// The largest rate, in places or requests a second.
const MAX_RATE: u32 = 1_000_000;
/// Most admissions that a visit may be allowed.
const MAX_ATTEMPTS: u16 = 1_000;
/// Time between the closing of the first draw and the opening unless the settings say otherwise, in
/// milliseconds: enough for up to a million, and for everybody to see the root before the round.
pub const DRAW_LEAD_MS: i64 = 300_000;

/// A group of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSettings {
    /// The group.
    pub group: GroupId,
    /// Its share of the serving, in proportion to the shares of the others: from 1 to 1,000.
    pub share: u32,
    /// Whether only who has a code joins it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub codes: bool,
}

/// The settings of a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The groups, at most [`MAX_GROUPS`].
    pub groups: Vec<GroupSettings>,
    /// Time before which nobody may join, in milliseconds since the Unix epoch; none if everybody may from
    /// the publication on.
    pub joins_open_at_ms: Option<i64>,
    /// Time at which the first window is closed, to be drawn, in milliseconds since the Unix epoch; not later
    /// than `opens_at_ms`.
    pub closes_at_ms: i64,
    /// Time before which nobody is served, in milliseconds since the Unix epoch.
    pub opens_at_ms: i64,
    /// Whether nobody may join after the first window was closed.
    pub registered_only: bool,
    /// Places that may be served a second, configured or measured.
    pub max_per_second: u32,
    /// Payments a second that the provider lets start; none if it has no such limit.
    pub provider_per_second: Option<u32>,
    /// Requests a second that the sale's slot can take.
    pub max_requests_per_second: u32,
    /// Most seat-legs of an order.
    pub max_units: u32,
    /// Most admissions of a visit.
    pub max_attempts: u16,
    /// Time after which a place that is due and unused has run out, in milliseconds; a multiple of
    /// [`MARK_MS`], and twice the longest poll or more.
    pub show_up_ms: u64,
    /// Length of a visit, in milliseconds.
    pub visit_ms: u64,
    /// Length of a later window, in milliseconds.
    pub window_ms: u64,
}

/// Why settings are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{setting} must be {rule}")]
pub struct InvalidSettings {
    /// The setting.
    pub setting: &'static str,
    /// The rule it breaks, in words.
    pub rule: &'static str,
}

impl Settings {
    /// Settings that need no tuning: one group, and a maximum that the capacity rule corrects downwards.
    #[must_use]
    pub fn new(group: GroupId, opens_at_ms: i64, max_units: u32) -> Self {
        Self {
            groups: vec![GroupSettings { group, share: 1, codes: false }],
            joins_open_at_ms: None,
            closes_at_ms: opens_at_ms.saturating_sub(DRAW_LEAD_MS),
            opens_at_ms,
            registered_only: false,
            max_per_second: 200,
            provider_per_second: None,
            max_requests_per_second: 10_000,
            max_units,
            max_attempts: 10,
            show_up_ms: 180_000,
            visit_ms: 600_000,
            window_ms: 60_000,
        }
    }

    /// Time from which the first window of a room that was published before may be closed without a round of the beacon
    /// that is named, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn closes_without_round_ms(&self) -> i64 {
        self.closes_at_ms.saturating_add(BEACON_MS)
    }

    /// Length of the visit of somebody who asked for more time, in milliseconds.
    #[must_use]
    pub fn longest_visit_ms(&self) -> u64 {
        self.visit_ms.saturating_mul(MORE_TIME_FACTOR)
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// Names the first setting that breaks its rule.
    pub fn check(&self) -> Result<(), InvalidSettings> {
        let mut names: Vec<&GroupId> = self.groups.iter().map(|group| &group.group).collect();
        names.sort_unstable();
        names.dedup();
        let is_rate = |rate: u32| (1..=MAX_RATE).contains(&rate);
        let rules = [
            (
                (1..=MAX_GROUPS).contains(&self.groups.len()) && names.len() == self.groups.len(),
                "groups",
                "one to four groups of different names",
            ),
            (
                self.groups.iter().all(|group| (1..=MAX_SHARE).contains(&group.share)),
                "share",
                "from 1 to 1,000",
            ),
            (
                self.joins_open_at_ms.is_none_or(|opens_at_ms| opens_at_ms < self.closes_at_ms),
                "joins_open_at_ms",
                "before closes_at_ms",
            ),
            (self.closes_at_ms <= self.opens_at_ms, "closes_at_ms", "not later than opens_at_ms"),
            (is_rate(self.max_per_second), "max_per_second", "from 1 to 1,000,000"),
            (
                self.provider_per_second.is_none_or(is_rate),
                "provider_per_second",
                "from 1 to 1,000,000",
            ),
            (
                is_rate(self.max_requests_per_second),
                "max_requests_per_second",
                "from 1 to 1,000,000",
            ),
            ((1..=65_535).contains(&self.max_units), "max_units", "from 1 to 65,535"),
            ((1..=MAX_ATTEMPTS).contains(&self.max_attempts), "max_attempts", "from 1 to 1,000"),
            (
                self.show_up_ms.is_multiple_of(MARK_MS)
                    && (2 * MAX_POLL_MS..=3_600_000).contains(&self.show_up_ms),
                "show_up_ms",
                "a multiple of 10,000 from 120,000 to 3,600,000",
            ),
            (
                (self.show_up_ms..=24 * 3_600_000).contains(&self.visit_ms),
                "visit_ms",
                "from show_up_ms to a day",
            ),
            ((1_000..=3_600_000).contains(&self.window_ms), "window_ms", "from 1,000 to 3,600,000"),
        ];
        match rules.into_iter().find(|(is_kept, ..)| !is_kept) {
            Some((_, setting, rule)) => Err(InvalidSettings { setting, rule }),
            None => Ok(()),
        }
    }
}
