//! The waiting room of a sale, as its file describes it.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::{Defect, outside};
use super::file::SaleFile;
use super::serving::{self, GroupSettings, MAX_GROUPS};
use crate::domain::basics::bytes::Hash;
use crate::domain::basics::ids::GroupId;
use crate::domain::basics::time::Timestamp;

/// Bounds of a group's share of the serving.
const SHARE: RangeInclusive<u32> = 1..=1_000;
/// Bounds of what is done a second.
const PER_SECOND: RangeInclusive<u32> = 1..=1_000_000;
/// Bounds of the time after which an unused place has run out, in seconds: from twice the longest poll.
const SHOW_UP_SECONDS: RangeInclusive<u32> = 120..=3_600;
/// What that time is a multiple of, in seconds: the time between two marks of the serving number.
const SHOW_UP_STEP_SECONDS: u32 = 10;
/// Bounds of the length of a visit, in seconds. It is no shorter than the time in which to show up.
const VISIT_SECONDS: RangeInclusive<u32> = *SHOW_UP_SECONDS.start()..=86_400;
/// Bounds of the length of a later window, in seconds.
const WINDOW_SECONDS: RangeInclusive<u32> = 1..=3_600;
/// Bounds of the time between the draw's closing and the opening, in seconds.
const DRAW_LEAD_SECONDS: RangeInclusive<u32> = 1..=86_400;
/// Bounds of the admissions of one visit.
const MAX_ATTEMPTS: RangeInclusive<u16> = 1..=1_000;

/// The waiting room of a sale. It never changes once the sale is published, nor does `opens_at`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a waiting room, which is an object")]
pub struct RoomSettings {
    /// Who waits apart from whom.
    #[schemars(length(min = 1, max = MAX_GROUPS))]
    pub groups: Vec<RoomGroup>,
    /// Places that may be served a second; the engine serves fewer where it cannot keep up.
    #[schemars(range(min = *PER_SECOND.start(), max = *PER_SECOND.end()))]
    pub max_per_second: u32,
    /// Payments a second that the payment provider lets start; absent if it has no such limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = *PER_SECOND.start(), max = *PER_SECOND.end()))]
    pub provider_per_second: Option<u32>,
    /// Requests a second that the sale's slot of Redis can take.
    #[schemars(range(min = *PER_SECOND.start(), max = *PER_SECOND.end()))]
    pub max_requests_per_second: u32,
    /// How long after it was due a place that nobody used is kept, in seconds: a multiple of 10.
    #[schemars(range(min = *SHOW_UP_SECONDS.start(), max = *SHOW_UP_SECONDS.end()))]
    pub show_up_seconds: u32,
    /// How long after it was due a place that was used admits, in seconds.
    #[schemars(range(min = *VISIT_SECONDS.start(), max = *VISIT_SECONDS.end()))]
    pub visit_seconds: u32,
    /// How long joins are gathered after the first draw before they are drawn together, in seconds.
    #[schemars(range(min = *WINDOW_SECONDS.start(), max = *WINDOW_SECONDS.end()))]
    pub window_seconds: u32,
    /// How long before `opens_at` the first draw closes, in seconds.
    #[schemars(range(min = *DRAW_LEAD_SECONDS.start(), max = *DRAW_LEAD_SECONDS.end()))]
    pub draw_lead_seconds: u32,
    /// When joining begins; absent: with the publication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joins_open_at: Option<Timestamp>,
    /// Whether nobody may join after the first draw has closed.
    pub registered_only: bool,
    /// What decides the first draw: the hash of a drand chain, or `operator` for a secret of the operator's, which nobody
    /// can verify; absent: the deployment's beacon, which is drand's quicknet on AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beacon: Option<BeaconChoice>,
    /// Most admissions of one visit.
    #[schemars(range(min = *MAX_ATTEMPTS.start(), max = *MAX_ATTEMPTS.end()))]
    pub max_attempts: u16,
}

/// What a sale file says to decide the first draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "the hash of a drand chain in lower-case hexadecimal digits, or operator"
)]
pub enum BeaconChoice {
    /// A round of the drand chain of this hash.
    Chain(Hash),
    /// A secret of the operator's, which nobody can verify.
    Operator(ByOperator),
}

/// A secret of the operator's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ByOperator {
    /// Its name in a sale file.
    Operator,
}

/// A group of a waiting room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a group, which is an object")]
pub struct RoomGroup {
    /// The group's id, unique in the room.
    pub group: GroupId,
    /// Its share of the serving, in proportion to the shares of the others.
    #[serde(default = "least_share")]
    #[schemars(range(min = *SHARE.start(), max = *SHARE.end()))]
    pub share: u32,
    /// Whether only who has a code joins it. The codes are added with `onsale sale codes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub codes: bool,
}

fn least_share() -> u32 {
    *SHARE.start()
}

impl Default for RoomSettings {
    fn default() -> Self {
        Self {
            groups: vec![RoomGroup { group: GroupId::all(), share: least_share(), codes: false }],
            max_per_second: 200,
            provider_per_second: None,
            max_requests_per_second: 10_000,
            show_up_seconds: 180,
            visit_seconds: 600,
            window_seconds: 60,
            draw_lead_seconds: 300,
            joins_open_at: None,
            registered_only: false,
            beacon: None,
            max_attempts: 10,
        }
    }
}

impl RoomSettings {
    /// The time at which the first draw of a sale that opens at `opens_at` closes.
    #[must_use]
    pub fn closes_at(&self, opens_at: Timestamp) -> Timestamp {
        opens_at.plus_seconds(-i64::from(self.draw_lead_seconds))
    }

    /// The settings of the room of a sale that opens at `opens_at`, and of which an order has at most
    /// `max_units` seat-legs.
    pub(super) fn serving(&self, opens_at: Timestamp, max_units: u32) -> serving::Settings {
        let ms = |seconds: u32| u64::from(seconds) * 1_000;
        let group = |of: &RoomGroup| GroupSettings {
            group: of.group.clone(),
            share: of.share,
            codes: of.codes,
        };
        serving::Settings {
            groups: self.groups.iter().map(group).collect(),
            joins_open_at_ms: self.joins_open_at.map(Timestamp::ms),
            closes_at_ms: self.closes_at(opens_at).ms(),
            opens_at_ms: opens_at.ms(),
            registered_only: self.registered_only,
            max_per_second: self.max_per_second,
            provider_per_second: self.provider_per_second,
            max_requests_per_second: self.max_requests_per_second,
            max_units,
            max_attempts: self.max_attempts,
            show_up_ms: ms(self.show_up_seconds),
            visit_ms: ms(self.visit_seconds),
            window_ms: ms(self.window_seconds),
        }
    }
}

/// Checks the room of a file, if it has one.
pub(super) fn check_room(file: &SaleFile, defects: &mut Vec<Defect>) {
    let Some(room) = &file.room else { return };
    let unless = |holds: bool, rule: &str| (!holds).then(|| rule.to_owned());
    let names: HashSet<&GroupId> = room.groups.iter().map(|group| &group.group).collect();
    let is_some = (1..=MAX_GROUPS).contains(&room.groups.len());
    let is_each_once = is_some && names.len() == room.groups.len();
    let share = room.groups.iter().find_map(|group| outside(group.share, &SHARE));
    let is_step = room.show_up_seconds.is_multiple_of(SHOW_UP_STEP_SECONDS);
    let show_up = outside(room.show_up_seconds, &SHOW_UP_SECONDS)
        .or_else(|| unless(is_step, "must be a multiple of 10"));
    let is_long = room.visit_seconds >= room.show_up_seconds;
    let visit = outside(room.visit_seconds, &VISIT_SECONDS)
        .or_else(|| unless(is_long, "must be at least show_up_seconds"));
    let closes_at = room.closes_at(file.opens_at);
    let is_before = room.joins_open_at.is_none_or(|opens_at| opens_at < closes_at);
    let provider = room.provider_per_second.and_then(|rate| outside(rate, &PER_SECOND));
    let rules = [
        ("groups", unless(is_each_once, "must be one to four groups of different names")),
        ("groups.share", share),
        ("max_per_second", outside(room.max_per_second, &PER_SECOND)),
        ("provider_per_second", provider),
        ("max_requests_per_second", outside(room.max_requests_per_second, &PER_SECOND)),
        ("show_up_seconds", show_up),
        ("visit_seconds", visit),
        ("window_seconds", outside(room.window_seconds, &WINDOW_SECONDS)),
        ("draw_lead_seconds", outside(room.draw_lead_seconds, &DRAW_LEAD_SECONDS)),
        ("joins_open_at", unless(is_before, "must be before draw_lead_seconds before opens_at")),
        ("max_attempts", outside(room.max_attempts, &MAX_ATTEMPTS)),
    ];
    let defect =
        |(at, rule): (&str, Option<String>)| Some(Defect::new(format!("room.{at}"), rule?));
    defects.extend(rules.into_iter().filter_map(defect));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Sale;
    use super::super::fixtures::{read, train};
    use super::*;
    use crate::domain::sale::serving::Settings;

    fn with(room: Value) -> Result<Sale, Vec<String>> {
        let mut file = train();
        file["room"] = room;
        read(file)
    }

    #[test]
    fn a_room_without_settings_has_those_that_need_no_tuning() {
        assert_eq!(read(train()).unwrap().room(), None);
        let sale = with(json!({})).unwrap();
        // Five tickets on two legs.
        let settings = Settings::new(GroupId::all(), sale.file().opens_at.ms(), 10);
        assert_eq!(sale.room(), Some(settings));
        let text = serde_json::to_value(read(train()).unwrap().file()).unwrap();
        assert_eq!(text.get("room"), None, "the release before does not know it");
    }

    #[test]
    fn what_a_file_may_say_a_room_may_have() {
        let least = json!({
            "groups": [{"group": "a"}], "max_per_second": 1, "provider_per_second": 1,
            "max_requests_per_second": 1, "show_up_seconds": 120, "visit_seconds": 120,
            "window_seconds": 1, "draw_lead_seconds": 1, "max_attempts": 1,
            "joins_open_at": "2025-12-31T23:59:58.999Z"
        });
        let group = |name: &str| json!({"group": name, "share": 1_000});
        let most = json!({
            "groups": [group("a"), group("b"), group("c"), { "group": "d", "codes": true }],
            "max_per_second": 1_000_000, "provider_per_second": 1_000_000,
            "max_requests_per_second": 1_000_000, "show_up_seconds": 3_600,
            "visit_seconds": 86_400, "window_seconds": 3_600, "draw_lead_seconds": 86_400,
            "max_attempts": 1_000, "registered_only": true, "beacon": "ab".repeat(32)
        });
        for room in [least, most] {
            let settings = with(room).unwrap().room().unwrap();
            assert_eq!(settings.check(), Ok(()));
            let file = with(json!({"draw_lead_seconds": 90})).unwrap();
            assert_eq!(file.room().unwrap().closes_at_ms, file.file().opens_at.ms() - 90_000);
        }
    }

    #[test]
    fn a_secret_is_asked_for_by_name() {
        let beacon = |value: Value| {
            let file = with(json!({ "beacon": value })).unwrap().file().clone();
            assert_eq!(serde_json::to_value(&file).unwrap()["room"]["beacon"], value);
            file.room.unwrap().beacon
        };
        assert_eq!(with(json!({})).unwrap().file().room.as_ref().unwrap().beacon, None);
        let by_operator = BeaconChoice::Operator(ByOperator::Operator);
        assert_eq!(beacon(json!("operator")), Some(by_operator));
        let hash = Hash([0xab; 32]);
        assert_eq!(beacon(json!(hash)), Some(BeaconChoice::Chain(hash)));
    }

    #[test]
    fn each_broken_rule_is_named_with_its_place() {
        let groups = |names: &[&str]| -> Value {
            names.iter().map(|name| json!({"group": name, "share": 1})).collect()
        };
        let cases = [
            (json!({"groups": []}), "room.groups: "),
            (json!({"groups": groups(&["a", "b", "c", "d", "e"])}), "room.groups: "),
            (json!({"groups": groups(&["a", "a"])}), "room.groups: "),
            (json!({"groups": [{"group": "a", "share": 0}]}), "room.groups.share: "),
            (json!({"groups": [{"group": "a", "share": 1_001}]}), "room.groups.share: "),
            (json!({"max_per_second": 0}), "room.max_per_second: "),
            (json!({"provider_per_second": 1_000_001}), "room.provider_per_second: "),
            (json!({"max_requests_per_second": 0}), "room.max_requests_per_second: "),
            (json!({"show_up_seconds": 110}), "room.show_up_seconds: must be 120"),
            (json!({"show_up_seconds": 125}), "room.show_up_seconds: must be a multiple"),
            (json!({"visit_seconds": 170}), "room.visit_seconds: must be at least show_up"),
            (json!({"visit_seconds": 86_401}), "room.visit_seconds: must be 120 to 86,400"),
            (json!({"window_seconds": 0}), "room.window_seconds: "),
            (json!({"draw_lead_seconds": 0}), "room.draw_lead_seconds: "),
            (json!({"joins_open_at": "2025-12-31T23:55:00Z"}), "room.joins_open_at: "),
            (json!({"max_attempts": 0}), "room.max_attempts: "),
            (json!({"beacon": "AB".repeat(32)}), "lower-case hexadecimal"),
            (json!({"beacon": "Operator"}), "or operator"),
            (json!({"colour": "red"}), "unknown field"),
        ];
        for (room, expected) in cases {
            let defects = with(room.clone()).unwrap_err();
            assert_eq!(defects.len(), 1, "{room}: {defects:?}");
            assert!(defects[0].contains(expected), "{defects:?} does not say {expected:?}");
        }
    }
}
