//! What a timetable does not say: the classes of a train, its coaches and their seats.

use std::str::FromStr;

use engine::domain::basics::ids::TierId;
use engine::domain::basics::money::MinorUnits;
use engine::domain::sale::{Lettered, Places, Section, SectionRow, TierFile};

use super::super::MAX_SEATS_PER_SALE;
use super::super::slug::slug;
use super::super::terms::tier_id;

/// Most coaches of one class.
const MAX_COACHES: u16 = 99;
/// Most rows of a coach.
const MAX_ROWS: u16 = 200;
/// Dearest class, in per cent of the fare.
const MAX_PERCENT: u32 = 10_000;

/// A class of a train. Written `NAME=COACHESxROWSxLETTERS`, such as `Second=6x18xABC_DF` (six coaches of
/// 18 rows, three seats to the left of the aisle and two to the right), or `NAME=PLACES`, such as
/// `Standing=120`; and then `@PERCENT` where it costs more or less than the fare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    name: String,
    seats: Seats,
    percent: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seats {
    /// Numbered coaches of lettered seats; `None` is the aisle.
    Coaches { coaches: u16, rows: u16, columns: Vec<Option<String>> },
    /// Places without a seat.
    Places(usize),
}

/// The text describes no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a class is NAME=COACHESxROWSxLETTERS, such as Second=6x18xABC_DF (1 to 99 coaches, 1 to 200 rows, \
     distinct capital letters, _ for the aisle), or NAME=PLACES, with @PERCENT (1 to 10,000) if it does not cost 100"
)]
pub struct InvalidClass;

impl FromStr for Class {
    type Err = InvalidClass;
    fn from_str(text: &str) -> Result<Self, InvalidClass> {
        let (name, rest) = text.rsplit_once('=').ok_or(InvalidClass)?;
        let (seats, percent) = match rest.split_once('@') {
            Some((seats, percent)) => (seats, number(percent, MAX_PERCENT)?),
            None => (rest, 100),
        };
        let seats = match seats.split('x').collect::<Vec<_>>()[..] {
            [places] => Seats::Places(number(places, MAX_SEATS_PER_SALE)?),
            [coaches, rows, letters] => Seats::Coaches {
                coaches: number(coaches, MAX_COACHES)?,
                rows: number(rows, MAX_ROWS)?,
                columns: columns(letters)?,
            },
            _ => return Err(InvalidClass),
        };
        let name = name.trim();
        if name.is_empty() {
            Err(InvalidClass)
        } else {
            Ok(Self { name: name.to_owned(), seats, percent })
        }
    }
}

/// A number from 1 to `most`, of digits alone.
fn number<T: FromStr + PartialOrd + From<u8>>(text: &str, most: T) -> Result<T, InvalidClass> {
    let is_digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let number: T = is_digits.then(|| text.parse().ok()).flatten().ok_or(InvalidClass)?;
    if (T::from(1)..=most).contains(&number) { Ok(number) } else { Err(InvalidClass) }
}

fn columns(letters: &str) -> Result<Vec<Option<String>>, InvalidClass> {
    let is_column = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let mut seen: Vec<char> = letters.chars().filter(|letter| *letter != '_').collect();
    let seats = seen.len();
    seen.sort_unstable();
    seen.dedup();
    if seats == 0 || seen.len() != seats || !letters.chars().all(is_column) {
        return Err(InvalidClass);
    }
    let column = |letter: char| (letter != '_').then(|| letter.to_string());
    Ok(letters.chars().map(column).collect())
}

impl Class {
    /// The price of a fare in this class, rounded half up.
    pub(super) fn price_minor(&self, fare: MinorUnits) -> MinorUnits {
        MinorUnits(fare.0.saturating_mul(i64::from(self.percent)).saturating_add(50) / 100)
    }

    fn coaches(&self) -> u16 {
        match &self.seats {
            Seats::Coaches { coaches, .. } => *coaches,
            Seats::Places(_) => 0,
        }
    }
}

/// Number of the seats and places of the classes.
pub(super) fn seats(classes: &[Class]) -> usize {
    let seats = |class: &Class| match &class.seats {
        Seats::Coaches { coaches, rows, columns } => {
            usize::from(*coaches) * usize::from(*rows) * columns.iter().flatten().count()
        }
        Seats::Places(places) => *places,
    };
    classes.iter().map(seats).sum()
}

/// The tiers of the classes, without prices. Coaches are numbered from 01 through all classes, seats
/// by row and letter: `03-07A`.
pub(super) fn tiers(classes: &[Class]) -> Vec<TierFile> {
    let mut coach = 0;
    let mut taken: Vec<TierId> = Vec::new();
    let tier = |(index, class): (usize, &Class)| {
        let tier = tier_id(slug(&class.name), index + 1, &taken);
        taken.push(tier.clone());
        let numbers = coach + 1..=coach + class.coaches();
        coach += class.coaches();
        let (columns, sections, places) = match &class.seats {
            Seats::Places(places) => (Vec::new(), Vec::new(), u32::try_from(*places).ok()),
            Seats::Coaches { rows, columns, .. } => {
                let mut names = numbers.map(|number| format!("{number:02}"));
                let row = SectionRow {
                    row: "01".to_owned(),
                    to: (*rows > 1).then(|| format!("{rows:02}")),
                    seats: Places::Lettered(Lettered::EveryColumn),
                };
                // Rows of three digits are all written with three.
                let row =
                    if *rows > 99 { SectionRow { row: "001".to_owned(), ..row } } else { row };
                let section = names.next().map(|section| Section {
                    section,
                    alike: names.collect(),
                    rows: vec![row],
                    focus: None,
                });
                (columns.clone(), section.into_iter().collect(), None)
            }
        };
        let general_admission = places;
        let bare = TierFile::new(tier, class.name.clone());
        TierFile { columns, sections, general_admission, ..bare }
    };
    classes.iter().enumerate().map(tier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_line() {
        let class: Class = "Second=6x18xABC_DF@80".parse().unwrap();
        let price = |fare| class.price_minor(MinorUnits(fare)).0;
        assert_eq!((class.coaches(), price(999), price(1)), (6, 799, 1));
        let standing: Class = "No=seat=120".parse().unwrap();
        assert_eq!((standing.name.as_str(), standing.coaches()), ("No=seat", 0));
        assert_eq!(seats(&[class, standing]), 6 * 18 * 5 + 120);
        for text in [
            "",
            "Second",
            "=6x18xAB",
            "Second=",
            "Second=0",
            "Second=0x18xAB",
            "Second=1x0xAB",
            "Second=1x1x",
            "Second=1x1x_",
            "Second=1x1xAA",
            "Second=1x1xab",
            "Second=1x1",
            "Second=1x1xAx1",
            "Second=5@0",
            "Second=5@",
            "Second=-5",
            "Second=+5",
            "Second=100x1xA",
            "Second=1x201xA",
            "Second=1000001",
            "Second=5@1.5",
        ] {
            assert_eq!(text.parse::<Class>(), Err(InvalidClass), "{text:?}");
        }
    }

    #[test]
    fn coaches_are_numbered_through_the_train() {
        let classes = ["First=1x1xA_B", "第二=2x100xAB_CD", "Standing=9", "Third=1x9xA"]
            .map(|text| text.parse().unwrap());
        let tiers = tiers(&classes);
        let ids: Vec<&str> = tiers.iter().map(|tier| tier.tier.as_str()).collect();
        assert_eq!(ids, ["first", "t2", "standing", "third"]);
        let coaches = |tier: &TierFile| {
            tier.sections
                .iter()
                .flat_map(|section| section.names().map(str::to_owned).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            tiers.iter().map(coaches).collect::<Vec<_>>(),
            [vec!["01"], vec!["02", "03"], vec![], vec!["04"]]
        );
        let rows = |tier: &TierFile| tier.sections[0].rows_in_all();
        assert_eq!((rows(&tiers[0]), rows(&tiers[1]), rows(&tiers[3])), (1, 200, 9));
    }
}
