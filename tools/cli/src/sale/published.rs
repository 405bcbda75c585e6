//! Published sales: put on sale and looked at, through a gateway.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use comfy_table::{Table, presets};
use engine::domain::basics::ids::{SaleId, StopId};
use engine::domain::basics::time::Timestamp;
use engine::flows::archive;
use ops::gateway::Gateway;
use serde_json::{Value, json};
use shared::runtime::app::new_epoch;

use super::files::{ReadSale, headline, read_sale, refusal, refusal_facts, tier_table};
use super::{DECLINED, Error, FAILED, out, pretty};
use crate::engine::{EngineArgs, Reached};

/// Publishes a sale file with the pictures that it names; one with defects is refused before anybody is asked.
pub(super) async fn put(
    path: &Path,
    images: Option<&Path>,
    gateway: &Gateway,
    token: &str,
    json: bool,
) -> Result<ExitCode, Error> {
    let ReadSale { sale, pictures } = match read_sale(path, images)? {
        Ok(read) => read,
        Err(defects) => {
            let facts = || pretty(&Value::Array(vec![refusal_facts(path, &defects)]));
            out(&if json { facts() } else { refusal(path, &defects) })?;
            return Ok(ExitCode::from(DECLINED));
        }
    };
    for picture in &pictures {
        gateway.keep_picture(picture, token).await?;
    }
    let reply = gateway.publish(sale.file(), token).await?;
    if json {
        return out(&pretty(&reply));
    }
    let warnings = reply["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let warnings: String = warnings.map(|warning| format!("  warning: {warning}\n")).collect();
    out(&format!("published {}\n{warnings}", headline(&sale)))
}

/// Shows a sale and what is left of it, on the whole line unless a journey is named.
pub(super) async fn status(
    id: &SaleId,
    gateway: &Gateway,
    journey: Option<(&StopId, &StopId)>,
    json: bool,
) -> Result<ExitCode, Error> {
    let (reply, sale) = gateway.sale(id).await?;
    let ends = sale.file().stops.first().zip(sale.file().stops.last());
    let journey = journey.or(ends.map(|(first, last)| (&first.stop, &last.stop)));
    let left = gateway.availability(id, journey).await?;
    if json {
        return out(&pretty(&json!({"sale": reply, "availability": left})));
    }
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or("unknown").to_owned()
    };
    let file = sale.file();
    let between = journey.map_or_else(String::new, |(from, to)| format!(", {from} to {to}"));
    // A tier that does not sell the journey is not part of the answer.
    let listed = left.get("tiers").and_then(Value::as_array);
    let available: HashMap<String, u64> = listed
        .into_iter()
        .flatten()
        .filter_map(|tier| Some((text(tier, "tier"), tier.get("available")?.as_u64()?)))
        .collect();
    out(&format!(
        "{}\n{}, on sale from {} to {}\navailable as of {}{between}:\n{}\n",
        headline(&sale),
        text(&reply, "state"),
        file.opens_at,
        sale.sells_until(),
        text(&left, "as_of"),
        tier_table(&sale, Some(&available))
    ))
}

pub(super) async fn list(gateway: &Gateway, json: bool) -> Result<ExitCode, Error> {
    let reply = gateway.sales().await?;
    if json {
        return out(&pretty(&reply));
    }
    let listed = reply.get("sales").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let fields = ["sale", "title", "state", "opens_at", "closes_at"];
    table.set_header(fields);
    for sale in listed {
        let cell = |field: &&str| sale.get(*field).and_then(Value::as_str).unwrap_or_default();
        table.add_row(fields.iter().map(cell));
    }
    out(&format!("{table}\n"))
}

/// Archives a sale through the stores of an engine.
pub(super) async fn archive(
    id: &SaleId,
    engine: &EngineArgs,
    data_dir: &Path,
    json: bool,
) -> Result<ExitCode, Error> {
    let Reached { app, .. } = engine.reach(data_dir).await.map_err(Error::Engine)?;
    let token = new_epoch(Timestamp::now()).map_err(archive::Refusal::from);
    let reached = match token {
        Ok(token) => archive::archive(&app.ports, id, &token, Timestamp::now).await,
        Err(error) => Err(error),
    };
    let said = match &reached {
        Ok(archive::Archived::Now) => "archived".to_owned(),
        Ok(archive::Archived::Already) => "archived already".to_owned(),
        Err(refusal) => format!("not archived: {refusal}"),
    };
    let facts = json!({ "sale": id, "archived": reached.is_ok(), "what": said });
    out(&if json { pretty(&facts) } else { format!("{id}: {said}\n") })?;
    Ok(match reached {
        Ok(_) => ExitCode::SUCCESS,
        Err(archive::Refusal::Store(_)) => ExitCode::from(FAILED),
        Err(
            archive::Refusal::NoSuchSale | archive::Refusal::NotYet(_) | archive::Refusal::Busy,
        ) => ExitCode::from(DECLINED),
    })
}
