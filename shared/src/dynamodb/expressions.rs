//! Expressions of requests, and the items of a transaction that carry them.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::delete_item::builders::DeleteItemFluentBuilder;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};

use super::items::Item;
use engine::ports::{StoreError, Stored};

/// An attribute that an expression calls `:name`.
pub(super) type Value = (&'static str, AttributeValue);

fn values(values: impl IntoIterator<Item = Value>) -> Option<HashMap<String, AttributeValue>> {
    let values: HashMap<_, _> =
        values.into_iter().map(|(name, value)| (format!(":{name}"), value)).collect();
    (!values.is_empty()).then_some(values)
}

/// The attributes that expressions call `#name`, by name. Every attribute in our expressions is
/// called so, because a good many names (`state`, `user`) are reserved words.
fn names(expressions: &[&str]) -> Option<HashMap<String, String>> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let mut names = HashMap::new();
    for expression in expressions {
        for part in expression.split('#').skip(1) {
            let name = part.split(|c| !is_name(c)).next().unwrap_or_default();
            names.insert(format!("#{name}"), name.to_owned());
        }
    }
    (!names.is_empty()).then_some(names)
}

pub(super) fn built(error: BuildError) -> StoreError {
    StoreError::Contract(error.to_string())
}

/// Puts an item if there is none with its key, in a table whose sort key is `sk`.
pub(super) fn put_new(table: &str, item: Item) -> Stored<TransactWriteItem> {
    put_under(table, item, "attribute_not_exists(#sk)")
}

/// Puts an item under a condition on the one that is there; an empty condition always holds.
pub(super) fn put_under(table: &str, item: Item, condition: &str) -> Stored<TransactWriteItem> {
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
        .set_expression_attribute_names(names(&[condition]))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    Ok(TransactWriteItem::builder().put(put.build().map_err(built)?).build())
}

/// Updates an item under a condition; an empty condition always holds.
pub(super) fn update(
    table: &str,
    key: Item,
    expression: &str,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> Stored<TransactWriteItem> {
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(key))
        .update_expression(expression)
        .set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
        .set_expression_attribute_names(names(&[expression, condition]))
        .set_expression_attribute_values(values(with))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    Ok(TransactWriteItem::builder().update(update.build().map_err(built)?).build())
}

/// Deletes an item under a condition; an empty condition always holds.
pub(super) fn delete(
    table: &str,
    key: Item,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> Stored<TransactWriteItem> {
    let delete = Delete::builder()
        .table_name(table)
        .set_key(Some(key))
        .set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
        .set_expression_attribute_names(names(&[condition]))
        .set_expression_attribute_values(values(with))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    Ok(TransactWriteItem::builder().delete(delete.build().map_err(built)?).build())
}

/// Sets a scan's filter.
pub(super) fn filtered(
    scan: ScanFluentBuilder,
    filter: &str,
    with: impl IntoIterator<Item = Value>,
) -> ScanFluentBuilder {
    scan.filter_expression(filter)
        .set_expression_attribute_names(names(&[filter]))
        .set_expression_attribute_values(values(with))
}

/// Sets what a single update does, its condition, and that it answers with the item as it is then; an empty condition always
/// holds.
pub(super) fn conditional(
    update: UpdateItemFluentBuilder,
    expression: &str,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> UpdateItemFluentBuilder {
    update
        .update_expression(expression)
        .set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
        .set_expression_attribute_names(names(&[expression, condition]))
        .set_expression_attribute_values(values(with))
        .return_values(ReturnValue::AllNew)
}

/// Sets the condition of a single put; an empty condition always holds.
pub(super) fn placed(
    put: PutItemFluentBuilder,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> PutItemFluentBuilder {
    put.set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
        .set_expression_attribute_names(names(&[condition]))
        .set_expression_attribute_values(values(with))
}

/// Sets the condition of a single delete.
pub(super) fn removed(
    delete: DeleteItemFluentBuilder,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> DeleteItemFluentBuilder {
    delete
        .condition_expression(condition)
        .set_expression_attribute_names(names(&[condition]))
        .set_expression_attribute_values(values(with))
}

/// Sets a query's condition on its keys.
pub(super) fn keyed(
    query: QueryFluentBuilder,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> QueryFluentBuilder {
    query
        .key_condition_expression(condition)
        .set_expression_attribute_names(names(&[condition]))
        .set_expression_attribute_values(values(with))
}

/// Sets a query's condition on its keys, and what is left out of what they find.
pub(super) fn keyed_and_filtered(
    query: QueryFluentBuilder,
    condition: &str,
    filter: &str,
    with: impl IntoIterator<Item = Value>,
) -> QueryFluentBuilder {
    query
        .key_condition_expression(condition)
        .filter_expression(filter)
        .set_expression_attribute_names(names(&[condition, filter]))
        .set_expression_attribute_values(values(with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_expressions() {
        let found = names(&["SET #state = :s, #l4=:o", "attribute_not_exists(#by_user)"]).unwrap();
        let mut found: Vec<&String> = found.values().collect();
        found.sort();
        assert_eq!(found, ["by_user", "l4", "state"]);
        assert_eq!(names(&[""]), None);
    }
}
