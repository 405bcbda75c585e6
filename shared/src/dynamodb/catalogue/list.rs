//! The list of the sales that are not archived: one item each, with the terms that the list repeats.

use aws_sdk_dynamodb::types::TransactWriteItem;
use serde::de::DeserializeOwned;

use super::super::expressions::{Value, update};
use super::super::items::{Fields, Item, item, number, text};
use super::super::tables::SALES_LIST;
use super::broken;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::event::EventFacts;
use engine::domain::sale::timetable::TrainRoute;
use engine::domain::sale::{SaleFile, SaleState};
use engine::ports::{ListedSale, ListedTerms, StoreError, Stored};

/// The key of a sale in the list of sales.
pub(super) fn key(sale: &SaleId) -> Item {
    item([("pk", text(SALES_LIST)), ("sk", text(sale))])
}

/// Writes the entry of a file.
pub(super) fn write(table: &str, file: &SaleFile, version: u64) -> Stored<TransactWriteItem> {
    let terms = ListedTerms::from_file(file);
    let ListedTerms { title, opens_at, closes_at, state, sold_out, price_from, event, route } =
        terms;
    let mut with: Vec<Value> = vec![
        ("version", number(version)),
        ("title", text(title)),
        ("opens", number(opens_at.ms())),
        ("closes", number(closes_at.ms())),
        ("state", text(state.as_str())),
    ];
    let (mut set, mut gone) = (String::new(), Vec::new());
    match price_from {
        Some(Money { amount_minor: MinorUnits(minor), currency }) => {
            with.extend([("price", number(minor)), ("currency", text(currency))]);
            set += ", #price_minor = :price, #currency = :currency, #price_of = :version";
        }
        None => gone.push("#price_of"),
    }
    if sold_out {
        set += ", #sold_out_of = :version";
    } else {
        gone.push("#sold_out_of");
    }
    match event {
        Some(event) => {
            let json = serde_json::to_string(&event).map_err(|error| broken(&file.sale, error))?;
            with.push(("event", text(json)));
            set += ", #event = :event, #event_of = :version";
        }
        None => gone.extend(["#event", "#event_of"]),
    }
    match route {
        Some(route) => {
            let json = serde_json::to_string(&route).map_err(|error| broken(&file.sale, error))?;
            with.push(("route", text(json)));
            set += ", #route = :route, #route_of = :version";
        }
        None => gone.extend(["#route", "#route_of"]),
    }
    let remove =
        if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
    let expression = format!(
        "SET #version = :version, #title = :title, #opens_ms = :opens, #closes_ms = :closes, \
         #state = :state{set}{remove}"
    );
    update(table, key(&file.sale), &expression, "", with)
}

/// A sale as the list has it; without its terms if it was published before the list had them.
pub(super) fn read(item: &Item) -> Stored<ListedSale> {
    let fields = Fields::from_item(item);
    let sale: SaleId = fields.text("sk")?;
    let Some(title) = fields.maybe_text("title")? else {
        return Ok(ListedSale { sale, terms: None });
    };
    let time = |name: &str| fields.number(name).map(Timestamp::from_ms);
    let state: String = fields.text("state")?;
    let state = SaleState::from_text(&state)
        .ok_or_else(|| broken(&sale, format!("it is listed as {state}")))?;
    let (opens_at, closes_at) = (time("opens_ms")?, time("closes_ms")?);
    let price_from = read_price(&fields)?;
    let event: Option<EventFacts> = read_json(&sale, &fields, "event", "event_of")?;
    let route: Option<TrainRoute> = read_json(&sale, &fields, "route", "route_of")?;
    let sold_out = is_of_version(&fields, "sold_out_of")?;
    let terms =
        ListedTerms { title, opens_at, closes_at, state, sold_out, price_from, event, route };
    Ok(ListedSale { sale, terms: Some(terms) })
}

/// True if what an entry says belongs to its version, by the attribute that has that version. A release that does not list it
/// replaces the terms and leaves what it finds: that is of another version.
fn is_of_version(fields: &Fields<'_>, name: &str) -> Stored<bool> {
    let of: Option<u64> = fields.maybe_number(name)?;
    Ok(of.is_some() && of == fields.maybe_number("version")?)
}

/// What an attribute of a sale says in JSON, if the attribute `of` says that it is of this version. What only a later
/// release can read is left out: the list is everybody's.
fn read_json<T: DeserializeOwned>(
    sale: &SaleId,
    fields: &Fields<'_>,
    name: &str,
    of: &str,
) -> Stored<Option<T>> {
    if !is_of_version(fields, of)? {
        return Ok(None);
    }
    let json: String = fields.text(name)?;
    let read = serde_json::from_str(&json);
    let read =
        read.inspect_err(|error| tracing::warn!(%sale, name, %error, "the list leaves it out"));
    Ok(read.ok())
}

/// The lowest price of a sale.
fn read_price(fields: &Fields<'_>) -> Stored<Option<Money>> {
    if !is_of_version(fields, "price_of")? {
        return Ok(None);
    }
    let currency: String = fields.text("currency")?;
    let currency = Currency::new(&currency)
        .map_err(|error| StoreError::Contract(format!("a listed sale: {error}")))?;
    Ok(Some(Money { amount_minor: MinorUnits(fields.number("price_minor")?), currency }))
}
