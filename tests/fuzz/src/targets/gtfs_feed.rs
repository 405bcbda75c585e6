//! Timetables: a GTFS feed, all tables in one input.

use engine::domain::basics::money::MinorUnits;
use importers::Terms;
use importers::gtfs::{Class, Day, Feed, Prices, Train};

use super::seating_plan::accounted;
use crate::sample::LONG_AGO;
use crate::tables::files;
use crate::{Outcome, Target, must};

pub(crate) const GTFS_FEED: Target = Target {
    name: "gtfs-feed",
    about: "A timetable (GTFS), each table after a line `=== NAME`: every seat of a train is placed \
            or reported as left out, whatever the journeys cost.",
    run,
};

/// Most trips of a feed that are tried.
const MAX_TRIPS: usize = 3;

fn run(input: &[u8]) -> Outcome {
    let files = files(input);
    let table = |name: &str| Ok(files.get(name).cloned());
    let Ok(feed) = Feed::parse("a feed", None, table) else { return Outcome::Refused };
    let class = |text: &str| -> Class { must(text.parse(), "a class") };
    let classes = vec![class("Second=2x3xAB_CD"), class("First=1x2xA_C@160"), class("Standing=7")];
    let any_day: Day = must("2016-04-06".parse(), "a day");
    let prices = [
        Prices::OfTheFeed,
        Prices::ByDistance { base_minor: MinorUnits(100), per_km_minor: MinorUnits(12) },
        Prices::Flat(MinorUnits(500)),
    ];
    let mut outcome = Outcome::Refused;
    for trip in feed.trips().take(MAX_TRIPS) {
        let day = feed.first_day(trip).unwrap_or(any_day);
        for prices in prices {
            let train = Train { classes: classes.clone(), prices };
            let import = feed.import(trip, day, &train, &Terms::opening(LONG_AGO));
            if import.is_ok_and(accounted) {
                outcome = Outcome::Accepted;
            }
        }
    }
    outcome
}
