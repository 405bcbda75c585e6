//! Sale files: the schema, what is wrong with one, what it sells.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use engine::domain::basics::money::MinorUnits;
use engine::domain::payment::prices::{AccountBounds, price_shortfalls};
use engine::domain::sale::attachment::Attachment;
use engine::domain::sale::{Defect, Sale, SaleFile, Tier};
use importers::pictures::of_sale_file;
use importers::read_bounded;
use serde_json::{Value, json};

use super::{DECLINED, Error, out, pretty};

/// The JSON schema of sale files, as `docs/sale-file.schema.json` has it.
pub(super) fn schema() -> String {
    let mut schema = schemars::schema_for!(SaleFile);
    schema.insert("title".to_owned(), "Onsale sale file".into());
    format!("{:#}\n", schema.as_value())
}

/// A sale file, with the pictures that it names.
pub(super) struct ReadSale {
    pub(super) sale: Sale,
    pub(super) pictures: Vec<Attachment>,
}

/// Reads a sale file, and its pictures from a folder, which is `pictures` beside it unless another is named. What is not JSON
/// of this shape, and a picture that cannot be used, is reported like a broken rule.
pub(super) fn read_sale(
    path: &Path,
    images: Option<&Path>,
) -> Result<Result<ReadSale, Vec<Defect>>, Error> {
    let broken = |at: &str, rule: String| Err(vec![Defect { at: at.to_owned(), rule }]);
    let bytes = read_bounded(path)?;
    let mut file: Value = match serde_json::from_slice(&bytes) {
        Ok(file) => file,
        Err(error) => return Ok(broken("file", error.to_string())),
    };
    let event = file.get("event").cloned();
    let beside = path.with_file_name("pictures");
    let pictures = match of_sale_file(&mut file, images.unwrap_or(&beside)) {
        Ok(pictures) => pictures,
        Err(error) => return Ok(broken("event.about.images", error.to_string())),
    };
    // What is wrong with the file as it is written is told with its line.
    let is_as_written = file.get("event") == event.as_ref();
    let read = match is_as_written {
        true => serde_json::from_slice::<SaleFile>(&bytes),
        false => serde_json::from_value(file),
    };
    Ok(match read {
        Ok(file) => Sale::new(file).map(|sale| ReadSale { sale, pictures }),
        Err(error) => broken("file", error.to_string()),
    })
}

/// Checks sale files and prints what they sell, with prices that nobody could pay, or what is wrong with them.
pub(super) fn check(
    files: &[PathBuf],
    account: AccountBounds,
    json: bool,
) -> Result<ExitCode, Error> {
    let mut all_good = true;
    let mut reports = Vec::new();
    for path in files {
        let name = path.display();
        match read_sale(path, None)? {
            Ok(ReadSale { sale, .. }) if json => {
                reports.push(json!({
                    "file": name.to_string(), "sale": sale.id(), "defects": [],
                    "tiers": sale.tiers().iter().map(tier_facts).collect::<Vec<_>>(),
                    "legs": sale.leg_count(), "seat_legs": sale.seat_legs(),
                    "warnings": price_shortfalls(&sale, &[], account),
                }));
            }
            Ok(ReadSale { sale, .. }) => {
                out(&format!("{name}: {}\n{}\n", headline(&sale), tier_table(&sale, None)))?;
                for warning in price_shortfalls(&sale, &[], account) {
                    out(&format!("  warning: {warning}\n"))?;
                }
            }
            Err(defects) => {
                all_good = false;
                if json {
                    reports.push(refusal_facts(path, &defects));
                } else {
                    out(&refusal(path, &defects))?;
                }
            }
        }
    }
    if json {
        out(&pretty(&Value::Array(reports)))?;
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
}

pub(super) fn refusal(path: &Path, defects: &[Defect]) -> String {
    let lines: String = defects.iter().map(|defect| format!("  {defect}\n")).collect();
    let count = defects.len();
    let noun = if count == 1 { "defect" } else { "defects" };
    format!("{}: {count} {noun}\n{lines}", path.display())
}

/// The same as JSON.
pub(super) fn refusal_facts(path: &Path, defects: &[Defect]) -> Value {
    json!({"file": path.display().to_string(), "defects": defects})
}

fn tier_facts(tier: &Tier) -> Value {
    json!({
        "tier": tier.tier, "name": tier.name, "seats": tier.layout.sellable(),
        "general_admission": tier.layout.is_general_admission(),
    })
}

pub(super) fn headline(sale: &Sale) -> String {
    let file = sale.file();
    let seats: u64 = sale.tiers().iter().map(|tier| u64::from(tier.layout.sellable())).sum();
    let legs = match sale.leg_count() {
        1 => String::new(),
        legs => format!(" on {legs} legs ({} seat-legs)", sale.seat_legs()),
    };
    format!("{} ({}): {seats} seats{legs} for sale", file.sale, file.title)
}

/// The tiers with their seats and prices, and what is left where that is known.
pub(super) fn tier_table(sale: &Sale, available: Option<&HashMap<String, u64>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut header = vec!["  tier", "name", "seats", "price (minor units)"];
    if available.is_some() {
        header.push("available");
    }
    table.set_header(header);
    for tier in sale.tiers() {
        let prices: Vec<MinorUnits> = tier.fares().into_values().collect();
        let price = match (prices.iter().min(), prices.iter().max()) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (None, _) | (_, None) => {
                tier.price_minor(sale.whole()).map_or_else(String::new, |price| price.to_string())
            }
        };
        let mut cells = vec![
            format!("  {}", tier.tier),
            tier.name.clone(),
            tier.layout.sellable().to_string(),
            format!("{price} {}", sale.file().currency),
        ];
        if let Some(available) = available {
            let left = available.get(tier.tier.as_str());
            cells.push(left.map_or_else(|| "not sold".to_owned(), |left| left.to_string()));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Reads a sale file that has to be good.
///
/// # Errors
/// It cannot be read, or breaks a rule: as `onsale sale check` says it.
pub(crate) fn read_good(path: &Path) -> Result<Sale, crate::Failure> {
    let read = read_sale(path, None)?.map(|read| read.sale);
    read.map_err(|defects| refusal(path, &defects).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_the_one_that_is_printed() {
        let published = include_str!("../../../../docs/sale-file.schema.json");
        let published: Value = serde_json::from_str(published).unwrap();
        let printed: Value = serde_json::from_str(&schema()).unwrap();
        assert!(
            published == printed,
            "docs/sale-file.schema.json is out of date: write what `onsale sale schema` prints"
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.json");
        for (text, what) in [
            ("{\n\"sale\": \"a\",\n\"sale\": \"a\"}", "duplicate field `sale` at line 3"),
            ("{\n\"sale\": 7}", "at line 2"),
            ("{\n", "at line 2"),
        ] {
            std::fs::write(&path, text).unwrap();
            let defects = read_sale(&path, None).unwrap().err().unwrap();
            assert!(defects[0].rule.contains(what), "{text}: {}", defects[0]);
        }
    }

    #[test]
    fn the_documentation_has_a_row_for_every_setting() {
        let page = include_str!("../../../../docs/sale-file.md");
        let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let names: Vec<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        let schema: Value = serde_json::from_str(&schema()).unwrap();
        let objects = ["TierFile", "GateSettings", "RoomSettings", "ChallengeSettings"];
        let objects = objects.map(|name| format!("/$defs/{name}"));
        for object in [String::new()].into_iter().chain(objects) {
            let settings = schema.pointer(&format!("{object}/properties")).unwrap();
            for name in settings.as_object().unwrap().keys() {
                assert!(names.contains(&name.as_str()), "docs/sale-file.md has no row of `{name}`");
            }
        }
    }
}
