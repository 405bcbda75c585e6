//! The rules of a sale file, except those of its tiers: sizes, terms, stops and names.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Serialize;

use super::challenge::Stage;
use super::file::{
    FEE_PERCENT, GATE_BUDGET_PERCENT, GATE_SHARDS, GATE_TOKEN_SECONDS, GATE_USER_LOCK_MS,
    LIMIT_PER_BUYER, LIMITS, PAY_WINDOW_SECONDS, RefundSettings, SaleFile, SaleState,
};
use super::{
    BASIS_POINTS, MAX_BITMAP_BYTES, MAX_LEGS, MAX_PRICE_MINOR, MAX_SEATS_PER_SALE, MAX_TIERS, Tier,
};
use crate::domain::basics::bitmap;
use crate::domain::basics::ids::{SeatName, StopId, TierId};
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::time::Timestamp;

/// A rule that a sale file breaks, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, thiserror::Error)]
#[error("{at}: {rule}")]
pub struct Defect {
    /// Where in the file, as a path such as `tiers[2].sections[0]`.
    pub at: String,
    /// What is wrong there, in words.
    pub rule: String,
}

impl Defect {
    pub(crate) fn new(at: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { at: at.into(), rule: rule.into() }
    }
}

/// Measures what the file describes, without making it.
pub(super) fn check_size(file: &SaleFile) -> Result<(), Vec<Defect>> {
    let mut places = 0_usize;
    let mut bitmap_bytes = 0_usize;
    for tier in &file.tiers {
        let spots = bitmap::index(tier.general_admission.unwrap_or(0));
        places = places.saturating_add(spots);
        let (mut rows, mut longest) = (0_usize, 0_usize);
        for section in &tier.sections {
            for row in &section.rows {
                // A row without places is refused later; until then it takes memory as well.
                let long = row.places(&tier.columns).max(1);
                let many = row.rows().saturating_mul(section.sections());
                places = places.saturating_add(many.saturating_mul(long));
                longest = longest.max(long);
            }
            // One blank row may follow each section.
            rows = rows.saturating_add(section.rows_in_all());
            rows = rows.saturating_add(section.sections());
        }
        let bytes = rows.saturating_mul(longest.div_ceil(8));
        bitmap_bytes = bitmap_bytes.saturating_add(bytes).saturating_add(spots.div_ceil(8));
    }
    let legs = file.stops.len().max(2) - 1;
    if places > MAX_SEATS_PER_SALE {
        return Err(vec![Defect::new("tiers", "must have at most 1,000,000 places in all")]);
    }
    if bitmap_bytes.saturating_mul(legs) > MAX_BITMAP_BYTES {
        let rule = "rows × bytes of the longest row × legs must be at most 16,000,000 in all";
        return Err(vec![Defect::new("tiers", rule)]);
    }
    Ok(())
}

pub(super) fn check_terms(file: &SaleFile, defects: &mut Vec<Defect>) {
    let title = file.title.as_str();
    let is_text = !title.trim().is_empty() && !title.chars().any(char::is_control);
    let pay_window = outside(file.pay_window_seconds, &PAY_WINDOW_SECONDS);
    let (gate, limits) = (&file.gate, &file.limits);
    let is_title = title.len() <= 200 && is_text;
    let unless = |holds: bool, rule: &str| (!holds).then(|| rule.to_owned());
    let rules = [
        ("title", unless(is_title, "must have 1 to 200 bytes without control characters")),
        ("closes_at", unless(file.opens_at < file.closes_at, "must be later than opens_at")),
        ("limit_per_buyer", outside(file.limit_per_buyer, &LIMIT_PER_BUYER)),
        ("pay_window_seconds", pay_window.map(|rule| format!("{rule} seconds"))),
        ("gate.shards", outside(gate.shards, &GATE_SHARDS)),
        ("gate.budget_percent", outside(gate.budget_percent, &GATE_BUDGET_PERCENT)),
        ("gate.rate_per_second", unless(gate.rate_per_second > 0, "must be at least 1")),
        ("gate.user_lock_ms", outside(gate.user_lock_ms, &GATE_USER_LOCK_MS)),
        ("gate.token_seconds", outside(gate.token_seconds, &GATE_TOKEN_SECONDS)),
        ("limits.buyer_per_minute", outside(limits.buyer_per_minute, &LIMITS)),
        ("limits.asks_per_buyer", outside(limits.asks_per_buyer, &LIMITS)),
        ("limits.given_up_per_buyer", outside(limits.given_up_per_buyer, &LIMITS)),
        ("limits.address_harder_over", outside(limits.address_harder_over, &LIMITS)),
        ("limits.address_per_minute", outside(limits.address_per_minute, &LIMITS)),
        ("limits.device_harder_over", outside(limits.device_harder_over, &LIMITS)),
        ("limits.device_per_minute", outside(limits.device_per_minute, &LIMITS)),
        ("tiers", unless(!file.tiers.is_empty(), "must not be empty")),
        ("tiers", unless(file.tiers.len() <= MAX_TIERS, "must be at most 64")),
    ];
    let defect = |(at, rule): (&str, Option<String>)| Some(Defect::new(at, rule?));
    defects.extend(rules.into_iter().filter_map(defect));
    check_refunds("refunds", file.refunds.as_ref(), defects);
    check_refunds("exchanges", file.exchanges.as_ref(), defects);
    let commission = file.merchant.as_ref().map_or(0, |terms| terms.commission_basis_points);
    if let Some(rule) = outside(commission, &(0..=BASIS_POINTS)) {
        defects.push(Defect::new("merchant.commission_basis_points", rule));
    }
    check_wallet(file, defects);
    if file.points.is_some_and(|terms| (terms.points, terms.growth) == (0, 0)) {
        defects.push(Defect::new("points", "must give points or growth"));
    }
    for (index, tier) in file.tiers.iter().enumerate() {
        check_refunds(&format!("tiers[{index}].refunds"), tier.refunds.as_ref(), defects);
        check_refunds(&format!("tiers[{index}].exchanges"), tier.exchanges.as_ref(), defects);
    }
    let Some(challenges) = &file.challenges else { return };
    let broken = challenges.defects().into_iter();
    defects.extend(broken.map(|(at, rule)| Defect::new(format!("challenges.{at}"), rule)));
    // Where nobody joins nobody would be asked, and the operator believes that everybody is.
    if challenges.asks_at(Stage::Join) && file.room.is_none() {
        let rule = "must be visit alone where there is no room to join";
        defects.push(Defect::new("challenges.at", rule));
    }
}

/// A sale that fills wallets sells money: places alone, to whoever pays, all of which is the buyer's, and that is neither
/// exchanged nor paid from a wallet, nor taken back from everybody at once, as some have spent it.
fn check_wallet(file: &SaleFile, defects: &mut Vec<Defect>) {
    let Some(terms) = file.merchant.as_ref().filter(|_| file.fills_wallets()) else {
        return;
    };
    let exchanges = file.exchanges.is_some() || file.tiers.iter().any(|it| it.exchanges.is_some());
    let mut refunds =
        file.refunds.iter().chain(file.tiers.iter().filter_map(|it| it.refunds.as_ref()));
    let fees = refunds.any(|it| it.fee_percent != 0 || it.fee_minor != MinorUnits::ZERO);
    let rules = [
        ("merchant.commission_basis_points", terms.commission_basis_points != 0, "be 0"),
        ("wallet", file.wallet, "be false"),
        ("points", file.points.is_some(), "be absent"),
        ("exchanges", exchanges, "be absent, here and of each tier"),
        ("refunds", fees, "have no fee, here and of each tier"),
        ("state", file.state == SaleState::Cancelled, "not be cancelled"),
    ];
    let broken = rules.into_iter().filter(|(_, is_broken, _)| *is_broken);
    let of_wallets = |must: &str| format!("must {must} in a sale that fills wallets");
    defects.extend(broken.map(|(at, _, must)| Defect::new(at, of_wallets(must))));
    for (index, tier) in file.tiers.iter().enumerate() {
        if tier.general_admission.is_none() {
            let at = format!("tiers[{index}].general_admission");
            defects.push(Defect::new(at, of_wallets("be given")));
        }
    }
}

fn check_refunds(at: &str, refunds: Option<&RefundSettings>, defects: &mut Vec<Defect>) {
    let Some(refunds) = refunds else { return };
    if let Some(rule) = outside(refunds.fee_percent, &FEE_PERCENT) {
        defects.push(Defect::new(format!("{at}.fee_percent"), rule));
    }
    if !(MinorUnits::ZERO..=MAX_PRICE_MINOR).contains(&refunds.fee_minor) {
        let rule = format!("must be 0 to {MAX_PRICE_MINOR}");
        defects.push(Defect::new(format!("{at}.fee_minor"), rule));
    }
}

/// The rule that a number breaks which is not in its range.
pub(super) fn outside<N: Copy + PartialOrd + Into<u64>>(
    number: N,
    range: &RangeInclusive<N>,
) -> Option<String> {
    let [start, end] = [range.start(), range.end()].map(|bound| grouped((*bound).into()));
    (!range.contains(&number)).then(|| format!("must be {start} to {end}"))
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}

/// The index of each stop, checked to be one of at least two and at most 65 distinct ones.
pub(super) fn check_stops(file: &SaleFile, defects: &mut Vec<Defect>) -> HashMap<StopId, u16> {
    let mut index_of = HashMap::new();
    // Beyond 16 bits there is a defect besides: too many stops.
    for (index, stop) in (0_u16..=u16::MAX).zip(&file.stops) {
        if index_of.insert(stop.stop.clone(), index).is_some() {
            defects.push(Defect::new(
                format!("stops[{index}]"),
                format!("stop {} is duplicated", stop.stop),
            ));
        }
    }
    check_times(file, defects);
    if file.stops.len() == 1 || file.stops.len() > MAX_LEGS + 1 {
        defects.push(Defect::new("stops", "must be absent, or 2 to 65 stops"));
    }
    index_of
}

/// The times of a train go up along its way, and say nothing without its day. Where a stop has clocks of its own, the times
/// of all are moments: on the way west a train may arrive before it has left, by the clocks.
fn check_times(file: &SaleFile, defects: &mut Vec<Defect>) {
    let mut last: Option<i64> = None;
    let mut is_timed = false;
    let has_zones = file.stops.iter().any(|stop| stop.time_zone.is_some());
    for (index, stop) in file.stops.iter().enumerate() {
        for (name, time) in [("arrives", stop.arrives), ("departs", stop.departs)] {
            let Some(time) = time else { continue };
            is_timed = true;
            let zone = file.zone_of(stop).filter(|_| has_zones);
            if has_zones && zone.is_none() {
                let rule = "must be there, here or of the event, where other stops have one";
                defects.push(Defect::new(format!("stops[{index}].time_zone"), rule));
                return;
            }
            let time = match zone.zip(file.runs_on) {
                Some((zone, runs_on)) => {
                    zone.moment_after(time.on(runs_on), last.map(Timestamp::from_ms)).ms()
                }
                None => time.minutes().into(),
            };
            if last.is_some_and(|last| time < last) {
                let rule = "must not be before the time that stands before it";
                defects.push(Defect::new(format!("stops[{index}].{name}"), rule));
            }
            last = Some(time);
        }
    }
    if file.runs_on.is_some() && file.stops.is_empty() {
        defects.push(Defect::new("runs_on", "must be absent where there are no stops"));
    }
    if file.runs_on.is_none() && is_timed {
        defects.push(Defect::new("runs_on", "must be there where stops have times"));
    }
}

/// Most seats in two tiers that are reported one by one: a few lines can describe a million of them.
const MAX_CLASHES: usize = 100;

/// A seat's name is unique in its sale, so that a ticket needs no tier to be read.
pub(super) fn check_names(tiers: &[Tier], defects: &mut Vec<Defect>) {
    for (index, tier) in tiers.iter().enumerate() {
        let clash = tier.layout.duplicate();
        let defect = clash.map(|clash| Defect::new(format!("tiers[{index}]"), clash.to_string()));
        defects.extend(defect);
    }
    if tiers.len() < 2 || !defects.is_empty() {
        return;
    }
    let seats = tiers.iter().map(|tier| bitmap::index(tier.layout.sellable())).sum();
    let mut tier_of: HashMap<SeatName, &TierId> = HashMap::with_capacity(seats);
    let names =
        tiers.iter().flat_map(|tier| tier.layout.names().map(move |name| (name, &tier.tier)));
    let clashes = names.filter_map(|(name, tier)| {
        let first = tier_of.insert(name.clone(), tier)?;
        let rule = format!("seat {name} stands in tier {first} and again in tier {tier}");
        Some(Defect::new("tiers", rule))
    });
    defects.extend(clashes.take(MAX_CLASHES));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{read, train};
    use super::*;

    #[test]
    fn blanks_do_not_hide_how_long_a_title_is() {
        let mut file = train();
        file["title"] = json!(format!("G1{}", " ".repeat(199)));
        assert!(read(file.clone()).unwrap_err()[0].starts_with("title: "));
        file["title"] = json!(" G1 ");
        assert!(read(file).is_ok());
    }

    #[test]
    fn a_range_is_named_with_its_ends() {
        assert_eq!(outside(86_400_u32, &GATE_TOKEN_SECONDS), None);
        let rule = |number: u32, range: &RangeInclusive<u32>| outside(number, range).unwrap();
        assert_eq!(rule(4, &PAY_WINDOW_SECONDS), "must be 5 to 86,400");
        assert_eq!(rule(2_000_000, &(1..=1_000_007)), "must be 1 to 1,000,007");
        assert_eq!(rule(65, &(1..=64)), "must be 1 to 64");
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of rules")]
    fn each_broken_rule_is_named_with_its_place() {
        let broken = |change: fn(&mut serde_json::Value)| {
            let mut file = train();
            change(&mut file);
            read(file).unwrap_err().join("; ")
        };
        type Change = fn(&mut serde_json::Value);
        let cases: [(Change, &str); 29] = [
            (|f| f["closes_at"] = json!("2020-01-01T00:00:00Z"), "closes_at"),
            (|f| f["limit_per_buyer"] = json!(0), "limit_per_buyer"),
            (|f| f["limits"] = json!({"buyer_per_minute": 0}), "limits.buyer_per_minute"),
            (
                |f| f["limits"] = json!({"device_per_minute": 2_000_000_000_u32}),
                "limits.device_per_minute: must be 1 to 1,000,000,000",
            ),
            (|f| f["pay_window_seconds"] = json!(4), "pay_window_seconds"),
            (|f| f["opens_at"] = json!("2026-01-01T00:00:00"), "RFC 3339"),
            (|f| f["stops"][1]["stop"] = json!("A"), "stops[1]"),
            (|f| f["stops"] = json!([{"stop": "A", "name": "a"}]), "stops: must be absent"),
            (|f| f["stops"][0]["departs"] = json!("08:05"), "runs_on: must be there"),
            (|f| f["stops"][0]["departs"] = json!("8:05"), "a time from 00:00 to 99:59"),
            (|f| f["stops"][0]["time_zone"] = json!("Mars/Olympus"), "a time zone of the IANA"),
            (
                |f| {
                    f["runs_on"] = json!("2026-02-28");
                    f["stops"][0]["departs"] = json!("08:05");
                    f["stops"][1]["time_zone"] = json!("Europe/Paris");
                },
                "stops[0].time_zone: must be there",
            ),
            (|f| f["runs_on"] = json!("2026-02-30"), "a day from 1900 to 2999"),
            (|f| f["tiers"][0]["focus"] = json!({ "place": 0 }), "tiers[0].focus: must be a place"),
            (|f| f["tiers"][0]["focus"] = json!({ "percent": 101 }), "tiers[0].focus: must be 0"),
            (
                |f| f["tiers"][0]["sections"][0]["focus"] = json!({ "place": 1_000 }),
                "tiers[0].sections[0].focus: must be a place of a row: 1 to",
            ),
            (
                |f| {
                    let tier = json!({ "tier": "a", "name": "A", "price_minor": 1 });
                    f["tiers"][0] = tier;
                    f["tiers"][0]["general_admission"] = json!(5);
                    f["tiers"][0]["focus"] = json!({ "percent": 50 });
                },
                "tiers[0].focus: must be absent",
            ),
            (
                |f| {
                    f["runs_on"] = json!("2026-02-28");
                    f["stops"][0]["departs"] = json!("08:05");
                    f["stops"][2]["arrives"] = json!("08:04");
                },
                "stops[2].arrives: must not be before",
            ),
            (|f| f["tiers"][0]["price_minor"] = json!(1), "either price_minor or fares"),
            (|f| f["tiers"][0]["fares"][0]["to"] = json!("Z"), "no journey"),
            (
                |f| f["tiers"][0]["general_admission"] = json!(5),
                "either sections or general_admission",
            ),
            (
                |f| f["tiers"][0]["sections"][1]["rows"][0]["seats"][0] = json!("01-1A"),
                "row 01 1 and again in row 02 1",
            ),
            (|f| f["tiers"][0]["not_for_sale"] = json!(["nowhere"]), "not in the tier"),
            (|f| f["tiers"][0]["columns"] = json!(["A", "A", "B"]), "distinct"),
            (|f| f["tiers"][0]["sections"][0]["rows"][0]["seats"] = json!([]), "1 to 1,024 places"),
            (|f| f["colour"] = json!("red"), "unknown field"),
            (|f| f["title"] = json!("a\u{0}b"), "without control characters"),
            (
                |f| {
                    f["tiers"][0]["sections"][0]["rows"][0]["seats"] =
                        json!({"prefix": "", "first": 1, "count": 4_000_000_000u32})
                },
                "at most 1,000,000 places",
            ),
            (
                |f| {
                    f["tiers"][0]["sections"] = (0..200_000).map(|row| json!({"section": row.to_string(), "rows": [{"row": "1", "seats": {"prefix": format!("{row}-"), "first": 1, "count": if row == 0 { 1000 } else { 1 }}}]})).collect()
                },
                "16,000,000",
            ),
        ];
        for (change, expected) in cases {
            let message = broken(change);
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
    }

    #[test]
    fn a_description_is_bounded_before_it_is_laid_out() {
        let hall = |section: serde_json::Value| {
            let mut file = train();
            file["tiers"][0] = json!({"tier": "a", "name": "A", "fares": [{"from": "A", "to": "C", "price_minor": 300}], "sections": [section]});
            read(file)
        };
        let row = |seats: serde_json::Value| json!({"row": "0", "to": "999999999", "seats": seats});
        for (section, expected) in [
            (json!({"section": "S", "rows": [row(json!(["x"]))]}), "at most 1,000,000 places"),
            (json!({"section": "S", "rows": [row(json!([]))]}), "at most 1,000,000 places"),
            (
                json!({"section": "S", "rows": [row(json!("every_column"))]}),
                "at most 1,000,000 places",
            ),
            // What cannot be named is reported once, not once a row.
            (
                json!({"section": "S", "alike": ["T"], "rows": [{"row": "1", "to": "999", "seats": {"first": 0, "count": 3, "step": -1}}]}),
                "tiers[0].sections[0].rows[0]: seat numbers",
            ),
            (
                json!({"section": "S", "alike": ["T"], "rows": [{"row": "1", "seats": {"prefix": "x", "first": 0, "count": 3}}]}),
                "x0 stands in row S 1 and again in row T 1",
            ),
            (
                json!({"section": "S", "rows": [{"row": "1", "seats": "every_column"}]}),
                "columns of the tier",
            ),
        ] {
            let refused = hall(section).unwrap_err();
            assert_eq!(refused.len(), 1, "{refused:?}");
            assert!(refused[0].contains(expected), "{refused:?} does not say {expected:?}");
        }
        let alike = json!({"section": "S", "alike": ["T"], "rows": [{"row": "A", "to": "Z", "seats": {"first": 1, "count": 40, "aisles_after": [12]}}]});
        let sale = hall(alike).unwrap();
        assert_eq!((sale.seat_legs(), sale.tiers()[0].layout.rows().len()), (2 * 2 * 26 * 40, 52));
        assert!(sale.tiers()[0].layout.seat(&SeatName::new("T-Z-40").unwrap()).is_some());
    }

    #[test]
    fn many_clashes_are_not_reported_one_by_one() {
        let mut file = train();
        let tier = |tier: &str| json!({"tier": tier, "name": tier, "price_minor": 1, "sections": [{"section": "S", "rows": [{"row": "1", "to": "40", "seats": {"first": 1, "count": 10}}]}]});
        file["tiers"] = json!([tier("a"), tier("b")]);
        assert_eq!(read(file).unwrap_err().len(), MAX_CLASHES);
    }
}
