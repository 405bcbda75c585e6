//! What a journey costs: by the feed's own fares, by its length, or one price for all.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::domain::basics::money::{Currency, MinorUnits};

use super::super::Error;
use super::super::tables::{Lined, line_of};
use super::feed::{FareRow, FareRuleRow, Feed, StopRow};

/// Prices of journeys in a class at 100 per cent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prices {
    /// Fares of the feed (`fare_attributes.txt`, `fare_rules.txt`).
    #[default]
    OfTheFeed,
    /// By the length of the way from stop to stop.
    ByDistance {
        /// Price of every journey before its kilometres.
        base_minor: MinorUnits,
        /// Price of each kilometre.
        per_km_minor: MinorUnits,
    },
    /// The same for every journey.
    Flat(MinorUnits),
}

/// One of a feed's fares.
#[derive(Debug)]
struct FeedFare<'feed> {
    minor: MinorUnits,
    rules: Vec<&'feed FareRuleRow>,
}

/// The fares of a feed, all in one currency.
#[derive(Debug)]
pub(super) struct FareBook<'feed> {
    pub(super) currency: Currency,
    fares: Vec<FeedFare<'feed>>,
}

impl<'feed> FareBook<'feed> {
    /// Reads the fares of a feed; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a price that is no amount of its currency, [`Error::Flags`] for fares in
    /// several currencies.
    pub(super) fn from_feed(feed: &'feed Feed) -> Result<Option<Self>, Error> {
        let mut rules: HashMap<&str, Vec<&FareRuleRow>> = HashMap::new();
        for (_, rule) in &feed.fare_rules {
            rules.entry(rule.fare_id.as_str()).or_default().push(rule);
        }
        let mut book: Option<Self> = None;
        for row in &feed.fares {
            let (minor, currency) = price(row)?;
            let rules = rules.remove(row.1.fare_id.as_str()).unwrap_or_default();
            let fare = FeedFare { minor, rules };
            match &mut book {
                None => book = Some(Self { currency, fares: vec![fare] }),
                Some(book) if book.currency == currency => book.fares.push(fare),
                Some(book) => {
                    return Err(Error::Flags(format!(
                        "the feed has fares in {} and in {currency}; give --price-minor or --per-km",
                        book.currency
                    )));
                }
            }
        }
        Ok(book)
    }

    /// The cheapest fare that holds on a route between two zones, passing through `zones` (both ends
    /// among them). A fare without rules holds everywhere.
    pub(super) fn price_minor(
        &self,
        route: &str,
        from: Option<&str>,
        to: Option<&str>,
        zones: &BTreeSet<&str>,
    ) -> Option<MinorUnits> {
        let holds = |fare: &&FeedFare<'_>| {
            if fare.rules.is_empty() {
                return true;
            }
            let is = |expected: &Option<String>, actual: Option<&str>| {
                expected.as_deref().is_none_or(|expected| actual == Some(expected))
            };
            let matching = fare.rules.iter().filter(|rule| {
                is(&rule.route_id, Some(route))
                    && is(&rule.origin_id, from)
                    && is(&rule.destination_id, to)
            });
            // Rows that are alike but for the zone they contain are one rule: all of these zones.
            let mut contained: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
            for rule in matching {
                let of = (&rule.route_id, &rule.origin_id, &rule.destination_id);
                contained.entry(of).or_default().extend(rule.contains_id.as_deref());
            }
            contained.values().any(|contained| contained.is_empty() || contained == zones)
        };
        self.fares.iter().filter(holds).map(|fare| fare.minor).min()
    }
}

/// A price as a feed writes it, with its currency.
fn price((line, row): &Lined<FareRow>) -> Result<(MinorUnits, Currency), Error> {
    let malformed = |why: String| {
        let what = line_of("fare_attributes.txt", *line);
        Error::Malformed { what, why }
    };
    let currency =
        Currency::new(&row.currency_type).map_err(|error| malformed(error.to_string()))?;
    let minor = minor_units(&row.price, currency.exponent().into())
        .ok_or_else(|| malformed(format!("{:?} is no amount of {currency}", row.price)))?;
    Ok((minor, currency))
}

/// A decimal number in units of its last `digits` places, without a detour through floating point.
fn minor_units(text: &str, digits: usize) -> Option<MinorUnits> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    let part = part.trim_end_matches('0');
    if whole.is_empty()
        || whole.len() > 12
        || part.len() > digits
        || !is_digits(whole)
        || !is_digits(part)
    {
        return None;
    }
    format!("{whole}{part:0<digits$}").parse().ok()
}

/// Length of the way from each stop to the next, in metres: great circles on a sphere of 6,371 km.
///
/// # Errors
/// The first stop that has no place on the globe.
pub(super) fn metres<'feed>(stops: &[&'feed StopRow]) -> Result<Vec<f64>, &'feed StopRow> {
    let place = |stop: &'feed StopRow| {
        let (lat, lon) = stop.stop_lat.zip(stop.stop_lon).ok_or(stop)?;
        let is_place = (-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon);
        if is_place { Ok((lat.to_radians(), lon.to_radians())) } else { Err(stop) }
    };
    let places: Vec<(f64, f64)> = stops.iter().map(|stop| place(stop)).collect::<Result<_, _>>()?;
    let between = |pair: &[(f64, f64)]| {
        let ((lat, lon), (other_lat, other_lon)) = (pair[0], pair[1]);
        let half = |a: f64, b: f64| ((b - a) / 2.0).sin().powi(2);
        let chord = half(lat, other_lat) + lat.cos() * other_lat.cos() * half(lon, other_lon);
        2.0 * 6_371_000.0 * chord.sqrt().min(1.0).asin()
    };
    Ok(places.windows(2).map(between).collect())
}

/// Price of a way, to the nearest minor unit.
pub(super) fn by_distance(base: MinorUnits, per_km: MinorUnits, metres: f64) -> MinorUnits {
    base + MinorUnits((per_km.0 as f64 * metres / 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_last_digit() {
        for (text, digits, minor) in [
            ("3.75", 2, Some(375)),
            ("13.7", 2, Some(1370)),
            ("10", 2, Some(1000)),
            ("0.10", 2, Some(10)),
            ("1.2300", 2, Some(123)),
            ("220", 0, Some(220)),
            ("220.00", 0, Some(220)),
            ("1.234", 3, Some(1234)),
            ("1.005", 2, None),
            ("220.5", 0, None),
            ("", 2, None),
            (".5", 2, None),
            ("-1", 2, None),
            ("1,5", 2, None),
            ("1e3", 2, None),
            ("1234567890123", 2, None),
        ] {
            assert_eq!(minor_units(text, digits), minor.map(MinorUnits), "{text:?}");
        }
    }

    fn rule(fare: &str, route: &str, from: &str, to: &str, contains: &str) -> FareRuleRow {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        FareRuleRow {
            fare_id: fare.to_owned(),
            route_id: some(route),
            origin_id: some(from),
            destination_id: some(to),
            contains_id: some(contains),
        }
    }

    #[test]
    fn the_cheapest_fare_that_holds_counts() {
        let (by_zone, by_route) = (rule("a", "", "1", "2", ""), rule("b", "R", "", "", ""));
        let contains = [rule("c", "", "", "", "1"), rule("c", "", "", "", "3")];
        let fare = |minor, rules| FeedFare { minor: MinorUnits(minor), rules };
        let mut book = FareBook {
            currency: Currency::new("EUR").unwrap(),
            fares: vec![
                fare(300, vec![&by_zone]),
                fare(500, vec![&by_route]),
                fare(100, contains.iter().collect()),
            ],
        };
        let ask = |book: &FareBook<'_>, route: &str, zones: &[&'static str]| {
            let (first, last) = (zones.first().copied(), zones.last().copied());
            let price = book.price_minor(route, first, last, &zones.iter().copied().collect());
            price.map(|price| price.0)
        };
        assert_eq!(ask(&book, "R", &["1", "2"]), Some(300));
        assert_eq!(ask(&book, "R", &["2", "1"]), Some(500));
        assert_eq!(ask(&book, "S", &["2", "1"]), None);
        assert_eq!(ask(&book, "S", &["1", "3"]), Some(100), "all zones of c, and no other");
        assert_eq!(ask(&book, "S", &["1", "2", "3"]), None);
        assert_eq!(ask(&book, "S", &[]), None, "stops without zones");
        book.fares.push(fare(700, Vec::new()));
        assert_eq!(ask(&book, "S", &[]), Some(700), "a fare without rules holds everywhere");
    }

    #[test]
    fn a_way_is_as_long_as_it_is() {
        let stop = |lat: f64, lon: f64| StopRow {
            stop_id: String::new(),
            stop_name: None,
            stop_lat: Some(lat),
            stop_lon: Some(lon),
            zone_id: None,
            stop_timezone: None,
            parent_station: None,
        };
        // A degree of the equator is 111.19 km on this sphere.
        let (a, b, pole) = (stop(0.0, 0.0), stop(0.0, 1.0), stop(90.0, 0.0));
        let lengths = metres(&[&a, &b, &pole]).unwrap();
        assert_eq!(
            lengths.iter().map(|metres| metres.round()).collect::<Vec<_>>(),
            [111_195.0, 10_007_543.0]
        );
        assert_eq!(by_distance(MinorUnits(100), MinorUnits(7), lengths[0]), MinorUnits(878));
        let nowhere = StopRow { stop_lat: None, ..stop(0.0, 0.0) };
        assert!(metres(&[&a, &nowhere]).is_err() && metres(&[&a, &stop(91.0, 0.0)]).is_err());
    }
}
