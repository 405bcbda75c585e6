//! The client request tokens of transactions: for ten minutes, the same request under the same
//! token is answered as the first one was and not carried out again.
//!
//! The engine underneath could do this itself, but it looks at every token of the last ten minutes
//! in every transaction: after an on-sale of a few minutes that costs more than everything else
//! together. Here the oldest tokens leave from the front of a queue.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use dynoxide::AttributeValue;
use dynoxide::actions::transact_write_items::TransactWriteItem;

/// Time for which a token is remembered.
/// Source: `ClientRequestToken` of `TransactWriteItems` in the DynamoDB API reference.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// The state of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It was not used in the last ten minutes.
    No,
    /// The same request was carried out under it.
    Done,
    /// It was used for another request.
    Other,
}

/// The tokens of the last ten minutes, each with a digest of what was done under it.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    done: HashMap<String, u64>,
    oldest_first: VecDeque<(Instant, String)>,
}

impl Tokens {
    /// The state of a token at `now`.
    pub(super) fn known(&mut self, token: &str, digest: u64, now: Instant) -> Known {
        while let Some((at, _)) = self.oldest_first.front()
            && now.saturating_duration_since(*at) >= REMEMBERED_FOR
        {
            if let Some((_, token)) = self.oldest_first.pop_front() {
                self.done.remove(&token);
            }
        }
        match self.done.get(token) {
            None => Known::No,
            Some(done) if *done == digest => Known::Done,
            Some(_) => Known::Other,
        }
    }

    /// Records that a request was carried out under a token that was not known.
    pub(super) fn record(&mut self, token: String, digest: u64, now: Instant) {
        self.done.insert(token.clone(), digest);
        self.oldest_first.push_back((now, token));
    }
}

/// A digest of the actions of a transaction: the same for equal ones, whatever the order that their
/// maps were written in.
pub(super) fn digest(items: &[TransactWriteItem]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for TransactWriteItem { put, update, delete, condition_check } in items {
        if let Some(put) = put {
            let hash = hash_of(|h| {
                (1, &put.table_name, &put.condition_expression).hash(h);
                put.return_values_on_condition_check_failure.hash(h);
                h.write_u64(attributes(&put.item));
                h.write_u64(names(put.expression_attribute_names.as_ref()));
                h.write_u64(put.expression_attribute_values.as_ref().map_or(0, attributes));
            });
            hasher.write_u64(hash);
        }
        if let Some(update) = update {
            let hash = hash_of(|h| {
                (2, &update.table_name, &update.condition_expression).hash(h);
                (&update.update_expression, &update.return_values_on_condition_check_failure)
                    .hash(h);
                h.write_u64(attributes(&update.key));
                h.write_u64(names(update.expression_attribute_names.as_ref()));
                h.write_u64(update.expression_attribute_values.as_ref().map_or(0, attributes));
            });
            hasher.write_u64(hash);
        }
        if let Some(delete) = delete {
            let hash = hash_of(|h| {
                (3, &delete.table_name, &delete.condition_expression).hash(h);
                delete.return_values_on_condition_check_failure.hash(h);
                h.write_u64(attributes(&delete.key));
                h.write_u64(names(delete.expression_attribute_names.as_ref()));
                h.write_u64(delete.expression_attribute_values.as_ref().map_or(0, attributes));
            });
            hasher.write_u64(hash);
        }
        if let Some(check) = condition_check {
            let hash = hash_of(|h| {
                (4, &check.table_name, &check.condition_expression).hash(h);
                check.return_values_on_condition_check_failure.hash(h);
                h.write_u64(attributes(&check.key));
                h.write_u64(names(check.expression_attribute_names.as_ref()));
                h.write_u64(check.expression_attribute_values.as_ref().map_or(0, attributes));
            });
            hasher.write_u64(hash);
        }
    }
    hasher.finish()
}

fn hash_of(write: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    write(&mut hasher);
    hasher.finish()
}

/// Sums are the same in any order.
fn names(names: Option<&HashMap<String, String>>) -> u64 {
    let entries = names.into_iter().flatten();
    entries.fold(1, |sum, entry| sum.wrapping_add(hash_of(|h| entry.hash(h))))
}

fn attributes(attributes: &HashMap<String, AttributeValue>) -> u64 {
    attributes.iter().fold(2, |sum, (name, value)| {
        let entry = hash_of(|h| {
            name.hash(h);
            hash_value(value, h);
        });
        sum.wrapping_add(entry)
    })
}

fn hash_value(value: &AttributeValue, hasher: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.hash(hasher),
        AttributeValue::B(bytes) => bytes.hash(hasher),
        AttributeValue::BOOL(flag) | AttributeValue::NULL(flag) => flag.hash(hasher),
        AttributeValue::SS(texts) | AttributeValue::NS(texts) => texts.hash(hasher),
        AttributeValue::BS(all) => all.hash(hasher),
        AttributeValue::L(values) => {
            values.len().hash(hasher);
            values.iter().for_each(|value| hash_value(value, hasher));
        }
        AttributeValue::M(map) => hasher.write_u64(attributes(map)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn items(actions: Value) -> Vec<TransactWriteItem> {
        serde_json::from_value(actions).unwrap()
    }

    fn an_order() -> Value {
        json!([
            {"Put": {"TableName": "t", "ConditionExpression": "c", "Item": {
                "sk": {"S": "order#1"}, "gene": {"N": "7"}, "b": {"B": "AAEC"}, "yes": {"BOOL": true},
                "lines": {"L": [{"M": {"tier": {"S": "a"}, "to": {"N": "1"}}}]}, "legs": {"NS": ["1", "2"]},
            }}},
            {"Update": {"TableName": "t", "UpdateExpression": "SET #a = :a", "Key": {"sk": {"S": "x"}},
                "ExpressionAttributeNames": {"#a": "a", "#b": "b"},
                "ExpressionAttributeValues": {":a": {"S": "1"}, ":b": {"S": "2"}}}},
            {"Delete": {"TableName": "t", "Key": {"sk": {"S": "y"}}}},
            {"ConditionCheck": {"TableName": "t", "Key": {"sk": {"S": "z"}}, "ConditionExpression": "c"}},
        ])
    }

    /// Every way to change one leaf of a document.
    fn changed(value: &Value) -> Vec<Value> {
        match value {
            Value::String(text) => vec![Value::String(format!("{text}0"))],
            Value::Bool(flag) => vec![Value::Bool(!flag)],
            Value::Array(values) => (0..values.len())
                .flat_map(|at| {
                    changed(&values[at]).into_iter().map(move |other| {
                        let mut values = values.clone();
                        values[at] = other;
                        Value::Array(values)
                    })
                })
                .collect(),
            Value::Object(map) => map
                .iter()
                .flat_map(|(name, value)| {
                    changed(value).into_iter().map(move |other| {
                        let mut map = map.clone();
                        map.insert(name.clone(), other);
                        Value::Object(map)
                    })
                })
                .collect(),
            Value::Null | Value::Number(_) => Vec::new(),
        }
    }

    #[test]
    fn whatever_differs_has_another_digest() {
        let order = an_order();
        let original = digest(&items(order.clone()));
        // Maps are drawn in another order each time they are read.
        assert!((0..20).all(|_| digest(&items(order.clone())) == original));
        let others = changed(&order);
        assert!(others.len() > 20, "{}", others.len());
        for other in others {
            // Base64 that no longer is any is refused before it gets here.
            let Ok(actions) = serde_json::from_value::<Vec<TransactWriteItem>>(other.clone())
            else {
                continue;
            };
            assert_ne!(digest(&actions), original, "{other}");
        }
        let Value::Array(mut actions) = order else { unreachable!() };
        actions.swap(2, 3);
        assert_ne!(digest(&items(Value::Array(actions))), original);
    }

    #[test]
    fn a_token_is_known_for_ten_minutes() {
        let mut tokens = Tokens::default();
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(tokens.known("a", 1, start), Known::No);
        tokens.record("a".to_owned(), 1, start);
        tokens.record("b".to_owned(), 2, after(300));
        assert_eq!(tokens.known("a", 1, after(599)), Known::Done);
        assert_eq!(tokens.known("a", 2, after(599)), Known::Other);
        assert_eq!(tokens.known("a", 2, after(600)), Known::No);
        assert_eq!(tokens.known("b", 2, after(600)), Known::Done);
        assert_eq!(tokens.known("b", 2, after(900)), Known::No);
        assert!(tokens.done.is_empty() && tokens.oldest_first.is_empty());
    }
}
