//! Trains as the 12306 sample's tables have them, all in one input.

use importers::Terms;
use importers::train12306::Tables;

use super::seating_plan::accounted;
use crate::sample::LONG_AGO;
use crate::tables::files;
use crate::{Outcome, Target};

pub(crate) const TRAIN_TABLES: Target = Target {
    name: "train-tables",
    about: "Trains (12306's tables), each table after a line `=== NAME`: every seat of a train is \
            placed or reported as left out.",
    run,
};

/// Most trains of the tables that are tried.
const MAX_TRAINS: usize = 3;

fn run(input: &[u8]) -> Outcome {
    let files = files(input);
    let table = |name: &str| Ok(files.get(name).cloned().unwrap_or_default());
    let Ok(tables) = Tables::parse("tables", table) else { return Outcome::Refused };
    let trains: Vec<&str> = tables.trains().into_iter().take(MAX_TRAINS).collect();
    let import =
        |train: &&str| tables.import(train, &Terms::opening(LONG_AGO)).is_ok_and(accounted);
    Outcome::from_accepted(trains.iter().filter(|train| import(train)).count() > 0)
}
