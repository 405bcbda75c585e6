//! Seating plans in pretix's format, and the events that are sold with them.

use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::Sale;
use importers::pretix::{Event, Prices, RowOrder, Uncategorised, import};
use importers::{Import, Terms};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::sale_file;
use crate::sample::LONG_AGO;
use crate::{Outcome, Target, must};

pub(crate) const SEATING_PLAN: Target = Target {
    name: "seating-plan",
    about: "A seating plan (pretix): every seat that stands in it is placed or reported as left out, \
            whichever row is the front, and the sale that comes out holds what was placed. Or an event of pretix: \
            a sale with it breaks no rule, or says which.",
    run,
};

/// A plan of one seat.
const ONE_SEAT: &[u8] = br#"{"categories": [{"name": "Hall"}], "zones": [{"rows": [{"seats": [
    {"seat_guid": "1", "category": "Hall", "position": {"x": 0, "y": 0}}]}]}]}"#;

fn run(input: &[u8]) -> Outcome {
    let uncategorised = Uncategorised { name: "Other".to_owned(), price_minor: MinorUnits(500) };
    let prices = [None, Some(uncategorised)].map(|uncategorised| Prices {
        for_all: Some(MinorUnits(1000)),
        uncategorised,
        ..Prices::default()
    });
    let orders = [
        RowOrder::ByHeight,
        RowOrder::AsListed,
        RowOrder::NearestTo(must("560,0".parse(), "a point")),
    ];
    let mut outcome = if sold_with(input) { Outcome::Accepted } else { Outcome::Refused };
    for (order, prices) in
        orders.into_iter().flat_map(|order| prices.each_ref().map(|prices| (order, prices)))
    {
        let Ok(import) = import("a plan", input, &Terms::opening(LONG_AGO), prices, order, None)
        else {
            continue;
        };
        assert_eq!(import.report().seats_read, seats(input), "seats are lost while reading");
        if accounted(import) {
            outcome = Outcome::Accepted;
        }
    }
    outcome
}

/// True if the input is an event with which a seat can be sold.
fn sold_with(input: &[u8]) -> bool {
    let Ok(event) = Event::read(&[("an event".to_owned(), input.to_vec())]) else { return false };
    let prices = Prices { for_all: Some(MinorUnits(1000)), ..Prices::default() };
    let terms = Terms::opening(LONG_AGO);
    import("hall", ONE_SEAT, &terms, &prices, RowOrder::ByHeight, Some(&event)).is_ok_and(accounted)
}

/// Consents to every remedy; true if a sale comes out, which then is whole.
pub(super) fn accounted(import: Import) -> bool {
    let Ok((file, report)) = import.accept(true) else { return false };
    let sale = must(Sale::new(file), "an imported sale breaks no rule");
    sale_file::check(&sale);
    let places: usize = sale.tiers().iter().map(|tier| tier.layout.sellable() as usize).sum();
    assert_eq!(places, report.seats_placed, "the sale has other seats than were placed");
    let tiers: usize = report.tiers.iter().map(|tier| tier.seats).sum();
    assert_eq!(tiers, report.seats_placed);
    true
}

/// Number of seats that stand in a plan, counted without a type of the importer's.
fn seats(input: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Plan {
        zones: Vec<Zone>,
    }
    #[derive(Deserialize)]
    struct Zone {
        rows: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        seats: Vec<IgnoredAny>,
    }
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let plan: Plan = must(serde_json::from_slice(input), "an imported plan is JSON");
    plan.zones.iter().flat_map(|zone| &zone.rows).map(|row| row.seats.len()).sum()
}
