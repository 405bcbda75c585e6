//! A stadium of any size: what a replay sells, whose real plan was never published.

use engine::domain::basics::ids::{InvalidId, SaleId, TierId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::sections::{Places, Run, Section, SectionRow};
use engine::domain::sale::{GateSettings, SaleFile, TierFile};

/// Number of rows of a block.
const ROWS_PER_BLOCK: u32 = 20;
/// The standing tiers: id, name, price in minor units, parts of a hundred of all tickets.
const STANDING: [(&str, &str, MinorUnits, u32); 2] = [
    ("front", "Front of the stage, standing", MinorUnits(880_000), 6),
    ("floor", "Floor, standing", MinorUnits(580_000), 24),
];
/// The seated tiers: id, name, price, parts of a hundred, seats a row, whether the seats of a row have
/// letters, so that they can be had by pattern.
const SEATED: [(&str, &str, MinorUnits, u32, u32, bool); 3] = [
    ("boxes", "Boxes", MinorUnits(1_280_000), 2, 8, true),
    ("lower", "Lower tier", MinorUnits(480_000), 30, 26, true),
    ("upper", "Upper tier", MinorUnits(280_000), 38, 40, false),
];

/// A sale of exactly the given number of tickets, standing and seated, that is open now.
///
/// # Errors
/// The name makes no id.
pub fn sale(
    name: &str,
    title: &str,
    tickets: u32,
    pay_window_seconds: u32,
    gate: GateSettings,
) -> Result<SaleFile, InvalidId> {
    let part = |percent: u32| {
        u32::try_from(u64::from(tickets) * u64::from(percent) / 100).unwrap_or(u32::MAX)
    };
    let mut tiers = Vec::new();
    let mut left = tickets;
    for (id, name, price_minor, percent, per_row, lettered) in SEATED {
        let seats = part(percent);
        if seats == 0 {
            continue;
        }
        left -= seats;
        let letters = (b'A'..=b'Z').take(usize::try_from(per_row).unwrap_or(usize::MAX));
        let letters =
            letters.filter(|_| lettered).map(|letter| Some(char::from(letter).to_string()));
        tiers.push(TierFile {
            columns: letters.collect(),
            sections: sections(id, seats, per_row),
            ..tier(id, name, price_minor)?
        });
    }
    // What the parts leave over stands on the floor.
    for (id, name, price_minor, percent) in STANDING {
        let spots = if id == "floor" { left } else { part(percent) };
        left -= spots;
        if spots > 0 {
            tiers.push(TierFile { general_admission: Some(spots), ..tier(id, name, price_minor)? });
        }
    }
    let now = Timestamp::now();
    let selling = now.plus_seconds(-60)..now.plus_seconds(24 * 3600);
    let (sale, currency) = (SaleId::new(name)?, Currency::new("TWD")?);
    let file =
        SaleFile::new(sale, title.to_owned(), currency, selling, 4, pay_window_seconds, tiers);
    Ok(SaleFile { gate, ..file })
}

fn tier(id: &str, name: &str, price_minor: MinorUnits) -> Result<TierFile, InvalidId> {
    let price_minor = Some(price_minor);
    Ok(TierFile { price_minor, ..TierFile::new(TierId::new(id)?, name.to_owned()) })
}

/// Blocks of rows with the given number of seats together. All blocks are alike but the last, whose last row may be
/// shorter.
fn sections(tier: &str, seats: u32, per_row: u32) -> Vec<Section> {
    let full = seats / (per_row * ROWS_PER_BLOCK);
    let rest = seats % (per_row * ROWS_PER_BLOCK);
    let name = |block: u32| format!("{tier}-{}", block + 1);
    let row = |first: u32, last: u32, seats: u32| SectionRow {
        row: first.to_string(),
        to: (last > first).then(|| last.to_string()),
        seats: Places::Run(Run::plain(None, 1, seats)),
    };
    let alike = (full > 0).then(|| Section {
        section: name(0),
        alike: (1..full).map(name).collect(),
        rows: vec![row(1, ROWS_PER_BLOCK, per_row)],
        focus: None,
    });
    let whole = rest / per_row;
    let rows = (whole > 0).then(|| row(1, whole, per_row));
    let short = (!rest.is_multiple_of(per_row)).then(|| row(whole + 1, whole + 1, rest % per_row));
    let last = (rest > 0).then(|| Section {
        section: name(full),
        alike: Vec::new(),
        rows: rows.into_iter().chain(short).collect(),
        focus: None,
    });
    alike.into_iter().chain(last).collect()
}

#[cfg(test)]
mod tests {
    use engine::domain::sale::Sale;

    use super::*;

    #[test]
    fn every_size_has_exactly_so_many_tickets() {
        for tickets in [1, 7, 100, 1_500, 3_333, 150_000] {
            let file = sale("stadium", "Stadium", tickets, 30, GateSettings::default()).unwrap();
            let sale = Sale::new(file).unwrap();
            assert_eq!(sale.seat_legs(), u64::from(tickets));
        }
    }

    #[test]
    fn a_large_one_has_every_kind_of_place() {
        let file = sale("stadium", "Stadium", 1_500, 30, GateSettings::default()).unwrap();
        let sale = Sale::new(file).unwrap();
        let kinds = |has: &dyn Fn(&engine::domain::sale::Tier) -> bool| {
            sale.tiers().iter().filter(|tier| has(tier)).count()
        };
        assert_eq!(kinds(&|tier| tier.layout.is_general_admission()), 2);
        assert_eq!(kinds(&|tier| !tier.layout.columns().is_empty()), 2);
        assert_eq!(sale.tiers().len(), 5);
    }
}
