//! Which journeys of a trip are sold, and what they cost.

use std::collections::BTreeSet;

use engine::domain::basics::money::MinorUnits;

use super::super::tables::Lined;
use super::super::{Error, Remedy, SourceDefect};
use super::calls::Call;
use super::fares::{FareBook, by_distance, metres};
use super::feed::{Rule, StopRow, StopTimeRow};
use super::{Prices, Reading};

impl Reading<'_> {
    /// The journeys that are sold and what they cost at 100 per cent, by the indexes of their stops.
    pub(super) fn fares(
        &mut self,
        prices: Prices,
        calls: &[Call<'_>],
        book: Option<&FareBook<'_>>,
    ) -> Result<Vec<(usize, usize, MinorUnits)>, Error> {
        let times = || calls.iter().map(|call| call.time);
        let sold = journeys(times(), |rule| rule == Rule::Regular);
        let arranged = journeys(times(), |rule| rule != Rule::Never).len() - sold.len();
        let all = calls.len() * calls.len().saturating_sub(1) / 2;
        let stops: Vec<&StopRow> = calls.iter().map(|call| call.stop).collect();
        let lengths = match prices {
            Prices::ByDistance { .. } => metres(&stops).map_err(|stop| {
                let id = &stop.stop_id;
                Error::Flags(format!(
                    "stop {id} has no usable stop_lat and stop_lon; give --price-minor"
                ))
            })?,
            Prices::OfTheFeed | Prices::Flat(_) => Vec::new(),
        };
        let price = |from: usize, to: usize| match prices {
            Prices::Flat(minor) => Some(minor),
            Prices::ByDistance { base_minor, per_km_minor } => {
                Some(by_distance(base_minor, per_km_minor, lengths[from..to].iter().sum()))
            }
            Prices::OfTheFeed => {
                let zone = |index: usize| stops[index].zone_id.as_deref();
                let passed: BTreeSet<&str> = (from..=to).filter_map(zone).collect();
                book?.price_minor(&self.trip.route_id, zone(from), zone(to), &passed)
            }
        };
        let with_price = |(from, to): &(usize, usize)| Some((*from, *to, price(*from, *to)?));
        let fares: Vec<(usize, usize, MinorUnits)> = sold.iter().filter_map(with_price).collect();
        self.notes.push(format!("{} of {all} journeys are sold", fares.len()));
        let forbidden = all - sold.len() - arranged;
        let unpriced = sold.len() - fares.len();
        for (count, why) in [
            (forbidden, "are not: nobody boards at their first stop, or alights at their last"),
            (arranged, "are not: one has to arrange boarding or alighting with the operator"),
            (unpriced, "are not: the feed has no fare for them"),
        ] {
            if count > 0 {
                self.notes.push(format!("{count} {why}"));
            }
        }
        if fares.is_empty() && calls.len() > 1 {
            let at = self.at.clone();
            self.findings.add(SourceDefect::NothingToSell { at }, Remedy::None);
        }
        Ok(fares)
    }
}

/// The journeys between stops whose rules are allowed at both ends, by their indexes in order.
pub(super) fn journeys<'row>(
    calls: impl Iterator<Item = &'row Lined<StopTimeRow>>,
    is_allowed: impl Fn(Rule) -> bool,
) -> Vec<(usize, usize)> {
    let rules: Vec<(bool, bool)> = calls
        .map(|(_, row)| (is_allowed(row.pickup_type), is_allowed(row.drop_off_type)))
        .collect();
    let ends = |from: usize| (from + 1..rules.len()).map(move |to| (from, to));
    let begins = (0..rules.len()).filter(|from| rules[*from].0);
    begins.flat_map(ends).filter(|(_, to)| rules[*to].1).collect()
}
