//! What the rule for the best seats leaves over: `onsale bench seats`.
//!
//! Seeded crowds buy made-up houses until nobody gets a seat any more, once by the rule of the engine
//! ([`Taken::choose`]) and once by the rule before it, the left edge of the first row. No server takes part. Parties ask
//! for neighbours; if there are none, half of them let their party be split and the others go home. Some orders are
//! given back, while others are made.

use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use engine::domain::basics::bitmap;
use engine::domain::basics::ids::{Legs, Seat};
use engine::domain::inventory::choice::{Choice, Taken, Together};
use engine::domain::sale::layout::Layout;
use engine::domain::sale::{Sale, SaleFile};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;
use serde_json::{Value, json};

/// The sizes of twenty parties.
const PARTIES: [u16; 20] = [1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6];
/// Orders of a hundred that are given back.
const GIVEN_BACK: u32 = 12;
/// Parties in a row that get nothing, after which the house is as full as it will be.
const MAX_REFUSED: usize = 5000;
/// The parties whose distance from the middle is measured: the first buyers of an empty house.
const FIRST_PARTIES: usize = 3;
/// The shares of a house that are looked at, in per cent.
const PICTURES: [u64; 3] = [10, 50, 90];
const COUNTED: [u64; 2] = [90, 99];
/// Units of a picture from a seat to the next.
const PITCH: u32 = 6;

/// Options of the measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of the first crowd; each following crowd has the next.
    pub seed: u64,
    /// Number of crowds.
    pub crowds: u64,
    /// The folder to write a picture of each house into, bought by the first crowd.
    pub pictures: Option<PathBuf>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a house is no sale: {0}")]
    House(String),
    #[error("the pictures: {0}")]
    Pictures(#[from] io::Error),
}

/// Which seats are the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// The leftmost of the first row that has them, as before.
    LeftEdge,
    /// The rule of the engine.
    Middle,
}

/// What a rule came to in a house: means over the crowds.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    house: &'static str,
    /// Seats times legs.
    seat_legs: u64,
    rule: Rule,
    /// Distance of the first three parties' seats from the middle of the row, in per cent of half a row.
    from_middle_percent: f64,
    /// Free seats without a free neighbour, of all legs, when 90 % and when 99 % were sold.
    orphans: [f64; 2],
    /// Parties of more than one that found no neighbours.
    without_neighbours: f64,
    /// Seats that nobody bought.
    stranded: f64,
}

/// What each rule came to.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    seed: u64,
    crowds: u64,
    rows: Vec<Row>,
}

impl Report {
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, crowds, .. } = self;
        writeln!(f, "{crowds} crowds, from seed {seed} on, each buy made-up houses; means.")?;
        write!(
            f,
            "{:<10} {:>9}  {:<9} {:>11} {:>12} {:>12} {:>13} {:>8}",
            "house",
            "seat-legs",
            "rule",
            "from middle",
            "orphans 90 %",
            "orphans 99 %",
            "no neighbours",
            "stranded"
        )?;
        for row in &self.rows {
            let rule = match row.rule {
                Rule::LeftEdge => "left edge",
                Rule::Middle => "middle",
            };
            let [ninety, last] = row.orphans;
            write!(
                f,
                "\n{:<10} {:>9}  {rule:<9} {:>9.0} % {ninety:>12.1} {last:>12.1} {:>13.1} {:>8.1}",
                row.house,
                row.seat_legs,
                row.from_middle_percent,
                row.without_neighbours,
                row.stranded
            )?;
        }
        Ok(())
    }
}

struct House {
    name: &'static str,
    layout: Layout,
    legs: u16,
}

fn house(name: &'static str, stops: u16, tier: &Value) -> Result<House, Error> {
    let stops: Vec<Value> =
        (0..stops).map(|stop| json!({ "stop": format!("S{stop}"), "name": "S" })).collect();
    let mut file = json!({
        "sale": name, "title": name, "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
        "limit_per_buyer": 6, "pay_window_seconds": 900,
        "stops": stops, "tiers": [{ "tier": "a", "name": "A", "price_minor": 1 }],
    });
    if let (Some(to), Some(from)) = (file["tiers"][0].as_object_mut(), tier.as_object()) {
        to.extend(from.clone());
    }
    let refused = |why: &dyn fmt::Debug| Error::House(format!("{name}: {why:?}"));
    let file: SaleFile = serde_json::from_value(file).map_err(|error| refused(&error))?;
    let sale = Sale::new(file).map_err(|defects| refused(&defects))?;
    let layout = sale.tiers()[0].layout.clone();
    Ok(House { name, layout, legs: sale.leg_count() })
}

fn houses() -> Result<[House; 4], Error> {
    // Curved rows with an aisle in the middle.
    let curved = |row: u32| {
        let count = 20 + row;
        json!({ "row": (row + 1).to_string(),
            "seats": { "first": 1, "count": count, "aisles_after": [count / 2] } })
    };
    let theatre = json!({ "sections": [
        { "section": "stalls", "rows": (0..20).map(curved).collect::<Vec<_>>() }] });
    let block = |name: &str, alike: &[&str], last: u32, count: u32, focus: Value| {
        let rows = json!([{ "row": "1", "to": last.to_string(), "seats": { "first": 1, "count": count } }]);
        json!({ "section": name, "alike": alike, "rows": rows, "focus": focus })
    };
    let stadium = json!({ "sections": [
        block("101", &["102", "103", "104", "105", "106"], 20, 25, Value::Null)] });
    // The blocks at the sides face home plate with their edge.
    let ballpark = json!({ "sections": [
        block("home", &[], 16, 22, Value::Null),
        block("first-base", &["right"], 16, 18, json!({ "percent": 0 })),
        block("third-base", &["left"], 16, 18, json!({ "percent": 100 }))] });
    let train = json!({ "columns": ["A", "B", "C", null, "D", "F"], "sections": [
        { "section": "01", "alike": ["02", "03", "04"],
            "rows": [{ "row": "1", "to": "17", "seats": "every_column" }] }] });
    Ok([
        house("theatre", 0, &theatre)?,
        house("stadium", 0, &stadium)?,
        house("ballpark", 0, &ballpark)?,
        house("train", 8, &train)?,
    ])
}

/// The house while a crowd buys it.
struct Sold<'h> {
    house: &'h House,
    middles: Vec<u16>,
    rule: Rule,
    rng: StdRng,
    /// What is taken on each leg.
    taken: Vec<Vec<u8>>,
    orders: Vec<(Legs, Vec<Seat>)>,
    /// Seat-legs that are sold.
    sold: u64,
    without_neighbours: u64,
    /// Number of parties that were measured; the sum over their seats, and how many seats.
    measured: usize,
    from_middle: (f64, u32),
}

impl<'h> Sold<'h> {
    fn new(house: &'h House, rule: Rule, seed: u64) -> Self {
        let middles = house.layout.middles();
        let taken = vec![house.layout.initial().to_vec(); usize::from(house.legs)];
        let rng = StdRng::seed_from_u64(seed);
        let (orders, sold, without_neighbours) = (Vec::new(), 0, 0);
        let (measured, from_middle) = (0, (0.0, 0));
        Self {
            house,
            middles,
            rule,
            rng,
            taken,
            orders,
            sold,
            without_neighbours,
            measured,
            from_middle,
        }
    }

    fn seat_legs(&self) -> u64 {
        u64::from(self.house.layout.sellable()) * u64::from(self.house.legs)
    }

    fn choose(&self, legs: Legs, count: u16, together: Together) -> Option<Vec<Seat>> {
        let mut bits = vec![0; self.house.layout.initial().len()];
        for leg in legs.iter() {
            bits.iter_mut().zip(&self.taken[leg.index()]).for_each(|(sum, byte)| *sum |= byte);
        }
        let row_bytes = self.house.layout.row_bytes();
        match self.rule {
            Rule::Middle => {
                let all = Taken { bits: &bits, row_bytes, middles: &self.middles };
                all.choose(&Choice::Best { count, together }).ok()
            }
            Rule::LeftEdge => leftmost(&bits, row_bytes, usize::from(count), together),
        }
    }

    fn mark(&mut self, legs: Legs, seats: &[Seat], is_taken: bool) {
        for leg in legs.iter() {
            for seat in seats {
                let byte = &mut self.taken[leg.index()][bitmap::index(seat.0 / 8)];
                let mask = 0x80 >> (seat.0 % 8);
                *byte = if is_taken { *byte | mask } else { *byte & !mask };
            }
        }
        let many = reporting::count(seats.len() * legs.iter().count());
        self.sold = if is_taken { self.sold + many } else { self.sold - many };
    }

    /// A party comes, and perhaps an order is given back; false if the party got nothing.
    fn party(&mut self) -> bool {
        let from = self.rng.random_range(0..self.house.legs);
        let to = self.rng.random_range(from + 1..=self.house.legs);
        let count = PARTIES[self.rng.random_range(0..PARTIES.len())];
        let is_split = self.rng.random_bool(0.5);
        let is_given_back = self.rng.random_range(0..100) < GIVEN_BACK;
        let which = self.rng.random_range(0..u32::MAX);
        let legs = Legs::new(from, to).unwrap_or(Legs::ONE);
        let mut seats = self.choose(legs, count, Together::Required);
        if seats.is_none() && count > 1 {
            self.without_neighbours += 1;
            seats = self.choose(legs, count, Together::Preferred).filter(|_| is_split);
        }
        let Some(seats) = seats else { return false };
        self.mark(legs, &seats, true);
        if self.measured < FIRST_PARTIES {
            self.measured += 1;
            self.measure(&seats);
        }
        self.orders.push((legs, seats));
        // Near the end the house fills up.
        if is_given_back && self.sold * 100 < self.seat_legs() * 99 {
            let which = bitmap::index(which) % self.orders.len();
            let (legs, seats) = self.orders.swap_remove(which);
            self.mark(legs, &seats, false);
        }
        true
    }

    fn measure(&mut self, seats: &[Seat]) {
        let layout = &self.house.layout;
        for seat in seats {
            let row = bitmap::index(layout.row(*seat));
            let half = layout.rows()[row].places.len() as f64 / 2.0;
            let column = f64::from(2 * layout.column_of(*seat));
            let way = (column - f64::from(self.middles[row])).abs() / 2.0 / half;
            self.from_middle = (self.from_middle.0 + way, self.from_middle.1 + 1);
        }
    }

    /// Free seats of all legs without a free neighbour.
    fn orphans(&self) -> u64 {
        let row_bits = self.house.layout.row_bytes() * 8;
        let of_leg = |bits: &Vec<u8>| {
            let is_free = |row: u32, column: Option<u32>| {
                let column = column.filter(|column| *column < row_bits);
                let seat = column.map(|column| Seat(row * row_bits + column));
                seat.and_then(|seat| bitmap::get(bits, seat)) == Some(false)
            };
            let places =
                (0..bitmap::places(bits)).map(|place| (place / row_bits, place % row_bits));
            let orphans = places.filter(|(row, column)| {
                is_free(*row, Some(*column))
                    && !is_free(*row, column.checked_sub(1))
                    && !is_free(*row, Some(column + 1))
            });
            reporting::count(orphans.count())
        };
        self.taken.iter().map(of_leg).sum()
    }
}

/// The rule before: the leftmost run in the first row that has one; of a party that may be split the first seats.
fn leftmost(bits: &[u8], row_bytes: u32, count: usize, together: Together) -> Option<Vec<Seat>> {
    let is_free = |seat: &Seat| bitmap::get(bits, *seat) == Some(false);
    let all = || (0..bitmap::places(bits)).map(Seat);
    let mut run: Vec<Seat> = Vec::new();
    for seat in all() {
        if seat.0 % (row_bytes * 8) == 0 || !is_free(&seat) {
            run.clear();
        }
        run.extend(Some(seat).filter(is_free));
        if run.len() == count {
            return Some(run);
        }
    }
    let free: Vec<Seat> = all().filter(is_free).take(count).collect();
    (together == Together::Preferred && free.len() == count).then_some(free)
}

/// Sells a house; draws it at each share of [`PICTURES`].
fn sell(house: &House, rule: Rule, seed: u64, mut draw: impl FnMut(u64, &Sold<'_>)) -> Row {
    let mut sold = Sold::new(house, rule, seed);
    let (mut refused, mut percent) = (0, 0);
    let mut orphans = [0; 2];
    while refused < MAX_REFUSED && sold.sold < sold.seat_legs() {
        refused = if sold.party() { 0 } else { refused + 1 };
        while percent < 100 * sold.sold / sold.seat_legs() {
            percent += 1;
            if PICTURES.contains(&percent) {
                draw(percent, &sold);
            }
            if let Some(at) = COUNTED.iter().position(|counted| *counted == percent) {
                orphans[at] = sold.orphans();
            }
        }
    }
    Row {
        house: house.name,
        seat_legs: sold.seat_legs(),
        rule,
        from_middle_percent: 100.0 * sold.from_middle.0 / f64::from(sold.from_middle.1.max(1)),
        orphans: orphans.map(|count| count as f64),
        without_neighbours: sold.without_neighbours as f64,
        stranded: (sold.seat_legs() - sold.sold) as f64,
    }
}

/// The means of what a rule came to with some crowds, at least one.
fn mean(rows: &[Row]) -> Option<Row> {
    let first = rows.first()?.clone();
    let mean = |value: fn(&Row) -> f64| rows.iter().map(value).sum::<f64>() / rows.len() as f64;
    Some(Row {
        from_middle_percent: mean(|row| row.from_middle_percent),
        orphans: [mean(|row| row.orphans[0]), mean(|row| row.orphans[1])],
        without_neighbours: mean(|row| row.without_neighbours),
        stranded: mean(|row| row.stranded),
        ..first
    })
}

/// One drawing of a house as SVG: its rows from the top, what is taken on the first leg dark.
fn drawn(sold: &Sold<'_>, left: u32, top: u32, svg: &mut String) {
    let layout = &sold.house.layout;
    let (widest, size) = (layout.row_bytes() * 8, PITCH - 1);
    for (is_taken, colour) in [(false, "#cfd8dc"), (true, "#1d3557")] {
        let is_drawn = |seat: &Seat| {
            let is_seat = layout.name(*seat).is_some();
            is_seat && (bitmap::get(&sold.taken[0], *seat) == Some(true)) == is_taken
        };
        let seats: Vec<Seat> = (0..layout.places()).map(Seat).filter(is_drawn).collect();
        let _ = write!(
            svg,
            "<path stroke=\"{colour}\" stroke-width=\"{size}\" stroke-dasharray=\"{size} 1\" d=\""
        );
        // Seats side by side are the dashes of one line.
        let are_beside =
            |one: &Seat, next: &Seat| one.0 + 1 == next.0 && layout.row(*one) == layout.row(*next);
        for line in seats.chunk_by(are_beside) {
            let row = layout.row(line[0]);
            // Rows are centred, as the house is built.
            let places = layout.rows()[bitmap::index(row)].places.len();
            let short = widest - u32::try_from(places).unwrap_or(0);
            let x = left + layout.column_of(line[0]) * PITCH + short * PITCH / 2;
            let y = top + row * PITCH + PITCH / 2;
            let length = u32::try_from(line.len()).unwrap_or(0) * PITCH - 1;
            let _ = write!(svg, "M{x} {y}h{length}");
        }
        svg.push_str("\"/>");
    }
}

/// Writes the pictures of a house: the rule before above, the rule of the engine below.
fn write_picture(folder: &Path, house: &House, drawings: &[(Rule, u64, String)]) -> io::Result<()> {
    let width = house.layout.row_bytes() * 8 * PITCH + 40;
    let height = u32::try_from(house.layout.rows().len()).unwrap_or(0) * PITCH + 60;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        3 * width,
        2 * height
    );
    for (rule, percent, drawing) in drawings {
        let column = PICTURES.iter().position(|of| of == percent).unwrap_or(0);
        let (x, name) = (u32::try_from(column).unwrap_or(0) * width, house.name);
        let (y, rule) = match rule {
            Rule::LeftEdge => (0, "left edge"),
            Rule::Middle => (height, "middle"),
        };
        let _ = writeln!(
            svg,
            "<g transform=\"translate({x} {y})\"><text x=\"20\" y=\"20\">{name}, {rule}, {percent} % sold</text>\
             {drawing}</g>"
        );
    }
    svg.push_str("</svg>\n");
    std::fs::write(folder.join(format!("best-seats-{}.svg", house.name)), svg)
}

/// Has each house sold by both rules.
///
/// # Errors
/// Fails if the pictures cannot be written.
pub fn run(options: &Options) -> Result<Report, Error> {
    let mut rows = Vec::new();
    if let Some(folder) = &options.pictures {
        std::fs::create_dir_all(folder)?;
    }
    for house in houses()? {
        let mut drawings = Vec::new();
        for rule in [Rule::LeftEdge, Rule::Middle] {
            let of_crowd = |seed: u64| {
                let draw = |percent: u64, sold: &Sold<'_>| {
                    if options.pictures.is_some() && seed == options.seed {
                        let mut svg = String::new();
                        drawn(sold, 20, 30, &mut svg);
                        drawings.push((rule, percent, svg));
                    }
                };
                sell(&house, rule, seed, draw)
            };
            let seeds = options.seed..options.seed.saturating_add(options.crowds.max(1));
            rows.extend(mean(&seeds.map(of_crowd).collect::<Vec<_>>()));
        }
        if let Some(folder) = &options.pictures {
            write_picture(folder, &house, &drawings)?;
        }
    }
    Ok(Report { seed: options.seed, crowds: options.crowds.max(1), rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sit_in_the_middle_and_nobody_is_stranded() {
        let report = run(&Options { seed: 7, crowds: 2, pictures: None }).unwrap();
        println!("{report}");
        for pair in report.rows.chunks(2) {
            let [before, after] = pair else { panic!("two rules") };
            assert_eq!((before.rule, after.rule), (Rule::LeftEdge, Rule::Middle));
            assert!(after.from_middle_percent < before.from_middle_percent, "{before:?} {after:?}");
            assert!(before.stranded.max(after.stranded) < 0.5, "{before:?} {after:?}");
        }
    }
}
