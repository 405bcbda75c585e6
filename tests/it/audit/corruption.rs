//! Ways in which a store can be wrong, and what both stores hold.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::number::OrderNumber;

pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) fn text(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

pub(super) fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// One way in which a store can be wrong.
pub(super) enum Change {
    /// A command to Redis.
    Redis(Vec<String>),
    /// An item put into a table.
    Put(&'static str, Item),
    /// An item taken out of a table.
    Delete(&'static str, Item),
    All(Vec<Change>),
}

pub(super) fn redis<const N: usize>(command: [&str; N]) -> Change {
    Change::Redis(command.map(str::to_owned).into())
}

/// Everything both stores hold.
pub(super) struct Snapshot {
    pub(super) redis: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) tables: BTreeMap<&'static str, Vec<Item>>,
}

impl Snapshot {
    /// The item with this sort key, in the partition if one is named.
    pub(super) fn item(&self, table: &str, partition: Option<&str>, sort: &str) -> Item {
        let has = |item: &Item, name: &str, requested: &str| matches!(item.get(name), Some(AttributeValue::S(text) | AttributeValue::N(text)) if text == requested);
        let is_it = |item: &&Item| {
            has(item, "sk", sort) && partition.is_none_or(|partition| has(item, "pk", partition))
        };
        self.tables[table].iter().find(is_it).unwrap_or_else(|| panic!("{table} {sort}")).clone()
    }

    pub(super) fn order(&self, order: OrderNumber) -> Item {
        self.item("orders", None, &format!("order#{order}"))
    }

    pub(super) fn seat(&self, tier: &str, seat: u32) -> Item {
        self.item("seats", Some(&format!("g1#{tier}#0")), &seat.to_string())
    }
}

/// The item with some attributes set.
pub(super) fn with<const N: usize>(
    mut item: Item,
    attributes: [(&str, AttributeValue); N],
) -> Item {
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

/// The item without some attributes.
pub(super) fn without<const N: usize>(mut item: Item, attributes: [&str; N]) -> Item {
    attributes.iter().for_each(|name| drop(item.remove(*name)));
    item
}

pub(super) type Corruptions = Vec<(Change, Vec<String>)>;

pub(super) fn named<const N: usize>(expected: [&str; N]) -> Vec<String> {
    expected.map(str::to_owned).into()
}
