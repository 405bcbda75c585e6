//! DynamoDB's throttling in front of the database: what a request needs of which partition, and the
//! refusal if it cannot have it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dynoxide::Database;
use dynoxide::actions::describe_table::DescribeTableRequest;
use dynoxide::types::{ConsumedCapacity, KeySchemaElement, KeyType};
use fake_limits::dynamodb::{
    Access, Bound, Collections, Conflicts, IndexLag, Meter, Part, Refusal, Resource, Settings,
    write_units,
};
use fake_limits::table::{
    ACCOUNT_LIMIT, COLLECTION_TOO_LARGE, DYNAMODB_THROTTLED, Service, TRANSACTION_CONFLICT,
    TRANSACTION_COST,
};
use fake_limits::{Enforced, Now, Throttles};
use serde_json::{Map, Value, json};

/// The region and the account in the ARNs of refusals, as the database has them in those of tables.
const PLACE: (&str, &str) = ("us-east-1", "000000000000");

/// What a request needs: a part for each partition that each of its items touches.
#[derive(Debug)]
pub(super) struct Needs {
    access: Access,
    parts: Vec<Part>,
    /// For each part, which item of the request it is of.
    items: Vec<usize>,
    /// The items that it writes to, as text; empty for one that reads.
    written: Vec<String>,
    /// The item collections that it writes to, and the bytes.
    collections: Vec<(String, u64)>,
    is_transaction: bool,
}

/// A request that is refused for now.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    /// All of it, with this document and status 400.
    All(Value),
    /// These keys of a batch, by their position.
    Keys(Vec<usize>),
}

/// Keys and indexes of a table.
#[derive(Debug, Clone)]
struct Schema {
    partition: String,
    sort: Option<String>,
    /// True if it has a local index.
    is_collection: bool,
    /// The partition key of each global index.
    global: HashMap<String, String>,
}

impl Schema {
    /// An item, or the key of one, as text.
    fn name(&self, table: &str, key: &Value) -> String {
        let sort = self.sort.as_ref().map_or_else(String::new, |sort| scalar(&key[sort]));
        format!("{table}\0{}\0{sort}", scalar(&key[&self.partition]))
    }
}

#[derive(Debug)]
struct State {
    meter: Meter,
    conflicts: Conflicts,
    index_lag: IndexLag,
    collections: Collections,
    schemas: HashMap<String, Schema>,
}

/// The meter of a database.
#[derive(Debug)]
pub(super) struct Metered {
    state: Mutex<State>,
    throttles: Throttles,
    started: Instant,
}

impl Metered {
    /// A meter of tables that are new.
    pub(super) fn new(enforced: Enforced) -> Self {
        let Enforced { quotas, throttles } = enforced;
        let meter = Meter::new(quotas, Settings::default());
        let (conflicts, index_lag, collections, schemas) = Default::default();
        let state = State { meter, conflicts, index_lag, collections, schemas };
        let state = Mutex::new(state);
        Self { state, throttles, started: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Now {
        self.started.elapsed()
    }

    /// Forgets a table that is created or deleted.
    pub(super) fn forget(&self, body: &[u8]) {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let table = text(&request["TableName"]);
        let mut state = self.state();
        state.meter.forget(table);
        state.schemas.remove(table);
    }

    /// What a request needs; `None` if it is not metered, or so malformed that the database refuses it.
    pub(super) fn needs(&self, database: &Database, operation: &str, body: &[u8]) -> Option<Needs> {
        let request: Value = serde_json::from_slice(body).ok()?;
        let mut state = self.state();
        let mut planner = Planner { database, schemas: &mut state.schemas, found: None };
        match operation {
            "GetItem" => planner.read(0, &request, 1.0),
            "Query" => planner.query(&request),
            "Scan" => planner.scan(&request),
            "BatchGetItem" => planner.batch_get(&request),
            "TransactGetItems" => {
                let gets = list(&request["TransactItems"]).enumerate();
                gets.for_each(|(at, item)| planner.read(at, &item["Get"], TRANSACTION_COST.rate()));
            }
            "PutItem" | "UpdateItem" | "DeleteItem" => planner.write(0, &request, 1.0),
            "TransactWriteItems" => {
                planner.needs(Access::Write).is_transaction = true;
                for (at, item) in list(&request["TransactItems"]).enumerate() {
                    let action = item.as_object().and_then(|kinds| kinds.values().next())?;
                    planner.write(at, action, TRANSACTION_COST.rate());
                }
            }
            _ => {}
        }
        planner.found
    }

    /// Whether a request may be carried out now.
    pub(super) fn admit(&self, operation: &str, needs: &Needs) -> Result<(), Refused> {
        self.admit_at(operation, needs, self.now())
    }

    fn admit_at(&self, operation: &str, needs: &Needs, now: Now) -> Result<(), Refused> {
        let mut state = self.state();
        let refusals = state.meter.admit(needs.access, &needs.parts, now);
        let is_throttled = refusals.iter().any(Option::is_some);
        let fits =
            needs.collections.iter().all(|(name, bytes)| state.collections.add(name, *bytes));
        let met = if is_throttled {
            Vec::new()
        } else {
            state.conflicts.met(&needs.written, needs.is_transaction, now)
        };
        drop(state);
        for refusal in refusals.iter().flatten() {
            self.throttles.one(Service::DynamoDb.name(), &refusal.shown());
        }
        if is_throttled {
            return Err(throttled(operation, needs, &refusals));
        }
        if !fits {
            self.throttles.one(Service::DynamoDb.name(), "ItemCollectionSizeLimitExceeded");
            let kind = "com.amazonaws.dynamodb.v20120810#ItemCollectionSizeLimitExceededException";
            return Err(Refused::All(error(kind, COLLECTION_TOO_LARGE.text())));
        }
        if !met.contains(&true) {
            self.state().index_lag.written(&needs.written, now);
            return Ok(());
        }
        self.throttles.one(Service::DynamoDb.name(), "TransactionConflict");
        let text = TRANSACTION_CONFLICT.text();
        Err(Refused::All(if needs.is_transaction {
            let reason = |is_met: &bool| is_met.then_some(("TransactionConflict", text));
            cancelled(&met.iter().map(reason).collect::<Vec<_>>())
        } else {
            error("com.amazonaws.dynamodb.v20120810#TransactionConflictException", text)
        }))
    }

    /// The answer to a query of a global index without what the index does not have yet.
    pub(super) fn as_indexed(&self, body: &[u8], answer: String) -> String {
        self.as_indexed_at(body, answer, self.now())
    }

    fn as_indexed_at(&self, body: &[u8], answer: String, now: Now) -> String {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        let table = text(&request["TableName"]);
        let state = self.state();
        let (Some(schema), Some(index)) = (state.schemas.get(table), request["IndexName"].as_str())
        else {
            return answer;
        };
        if !schema.global.contains_key(index) {
            return answer;
        }
        let mut shown: Value = serde_json::from_str(&answer).unwrap_or_default();
        let Some(items) = shown["Items"].as_array_mut() else { return answer };
        let before = items.len();
        items.retain(|item| state.index_lag.is_shown(&schema.name(table, item), now));
        if items.len() == before {
            return answer;
        }
        shown["Count"] = json!(items.len());
        shown.to_string()
    }

    /// Charges what a request cost more than it needed at least.
    pub(super) fn charge(&self, needs: &Needs, spent: &[ConsumedCapacity]) {
        self.charge_at(needs, spent, self.now());
    }

    fn charge_at(&self, needs: &Needs, spent: &[ConsumedCapacity], now: Now) {
        let mut state = self.state();
        let units = |detail: &dynoxide::types::CapacityDetail| detail.capacity_units;
        for capacity in spent {
            let local = capacity.local_secondary_indexes.iter().flatten();
            let local: f64 = local.map(|(_, detail)| units(detail)).sum();
            let table = capacity.table.as_ref().map_or(capacity.capacity_units, units);
            let global = capacity.global_secondary_indexes.iter().flatten();
            let global = global.map(|(index, detail)| (Some(index.clone()), units(detail)));
            for (index, units) in std::iter::once((None, table + local)).chain(global) {
                let resource = Resource { table: capacity.table_name.clone(), index };
                state.meter.charge_rest(needs, &resource, units, now);
            }
        }
    }
}

/// The rest of a charge, over the parts of a table or an index.
trait ChargeRest {
    fn charge_rest(&mut self, needs: &Needs, resource: &Resource, units: f64, now: Now);
}

impl ChargeRest for Meter {
    fn charge_rest(&mut self, needs: &Needs, resource: &Resource, units: f64, now: Now) {
        let parts: Vec<&Part> =
            needs.parts.iter().filter(|part| part.resource == *resource).collect();
        let rest = units - parts.iter().map(|part| part.units).sum::<f64>();
        if rest <= 0.0 {
            return;
        }
        let count = u32::try_from(parts.len()).map_or(1.0, f64::from);
        for part in &parts {
            self.charge(needs.access, part, rest / count, now);
        }
        if parts.is_empty() {
            // An entry of an index that is removed: whose partition it is in, no request says.
            let part =
                Part { resource: resource.clone(), key: None, units: 0.0, is_collection: false };
            self.charge(needs.access, &part, rest, now);
        }
    }
}

/// Finds out what a request needs.
struct Planner<'p> {
    database: &'p Database,
    schemas: &'p mut HashMap<String, Schema>,
    found: Option<Needs>,
}

impl Planner<'_> {
    fn needs(&mut self, access: Access) -> &mut Needs {
        self.found.get_or_insert_with(|| Needs {
            access,
            parts: Vec::new(),
            items: Vec::new(),
            written: Vec::new(),
            collections: Vec::new(),
            is_transaction: false,
        })
    }

    fn part(&mut self, access: Access, item: usize, part: Part) {
        let needs = self.needs(access);
        needs.parts.push(part);
        needs.items.push(item);
    }

    /// The keys of a table; `None` if there is none of this name.
    fn schema(&mut self, table: &str) -> Option<Schema> {
        if let Some(known) = self.schemas.get(table) {
            return Some(known.clone());
        }
        let request = DescribeTableRequest { table_name: table.to_owned() };
        let found = self.database.describe_table(request).ok()?.table;
        let global = found.global_secondary_indexes.iter().flatten();
        let global = global.filter_map(|index| {
            let partition = partition(&index.key_schema, &KeyType::HASH)?;
            Some((index.index_name.clone(), partition))
        });
        let schema = Schema {
            partition: partition(&found.key_schema, &KeyType::HASH)?,
            sort: partition(&found.key_schema, &KeyType::RANGE),
            is_collection: found.local_secondary_indexes.is_some_and(|some| !some.is_empty()),
            global: global.collect(),
        };
        self.schemas.insert(table.to_owned(), schema.clone());
        Some(schema)
    }

    /// The read of one item.
    fn read(&mut self, item: usize, request: &Value, times: f64) {
        let table = text(&request["TableName"]);
        let Some(schema) = self.schema(table) else { return };
        // A transaction is consistent by itself.
        let units = if times > 1.0 { times } else { consistency(request) };
        let key = Some(scalar(&request["Key"][&schema.partition]));
        let part = Part { resource: of_table(table), key, units, is_collection: false };
        self.part(Access::Read, item, part);
    }

    fn query(&mut self, request: &Value) {
        let table = text(&request["TableName"]);
        let Some(schema) = self.schema(table) else { return };
        let index = request["IndexName"].as_str();
        // A local index is in the partitions of its table.
        let global = index.and_then(|index| Some((index, schema.global.get(index)?)));
        let attribute = global.map_or(&schema.partition, |(_, attribute)| attribute);
        let index = global.map(|(index, _)| index.to_owned());
        let key = assigned(request, "KeyConditionExpression", attribute);
        let resource = Resource { index, ..of_table(table) };
        let part = Part { resource, key, units: consistency(request), is_collection: false };
        self.part(Access::Read, 0, part);
    }

    fn scan(&mut self, request: &Value) {
        let resource = of_table(text(&request["TableName"]));
        let part = Part { resource, key: None, units: consistency(request), is_collection: false };
        self.part(Access::Read, 0, part);
    }

    /// Each key of a batch is an item of it, table by table.
    fn batch_get(&mut self, request: &Value) {
        let tables = request["RequestItems"].as_object();
        let mut item = 0;
        for (table, requested) in tables.into_iter().flatten() {
            for key in list(&requested["Keys"]) {
                let one = json!({
                    "TableName": table, "Key": key, "ConsistentRead": requested["ConsistentRead"],
                });
                self.read(item, &one, 1.0);
                item += 1;
            }
        }
    }

    /// The write of one item, or the check of one in a transaction.
    fn write(&mut self, item: usize, request: &Value, times: f64) {
        let table = text(&request["TableName"]);
        let Some(schema) = self.schema(table) else { return };
        let whole = &request["Item"];
        let key = if whole.is_object() { whole } else { &request["Key"] };
        let partition = scalar(&key[&schema.partition]);
        let name = schema.name(table, key);
        self.needs(Access::Write).written.push(name);
        if schema.is_collection {
            let bytes = size(whole).max(size(&request["ExpressionAttributeValues"]));
            let collection = format!("{table}\0{partition}");
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            self.needs(Access::Write).collections.push((collection, bytes));
        }
        let units = if whole.is_object() { write_units(size(whole)) } else { 1.0 };
        let resource = of_table(table);
        let is_collection = schema.is_collection;
        let part = Part { resource, key: Some(partition), units: units * times, is_collection };
        self.part(Access::Write, item, part);
        for (index, attribute) in &schema.global {
            let put = whole.get(attribute).map(scalar);
            let Some(key) = put.or_else(|| assigned(request, "UpdateExpression", attribute)) else {
                continue;
            };
            let resource = Resource { index: Some(index.clone()), ..of_table(table) };
            let part = Part { resource, key: Some(key), units: 1.0, is_collection: false };
            self.part(Access::Write, item, part);
        }
    }
}

/// The refusal of a request that cannot have what it needs.
fn throttled(operation: &str, needs: &Needs, refusals: &[Option<Refusal>]) -> Refused {
    let refused_items =
        || refusals.iter().zip(&needs.items).filter(|(refusal, _)| refusal.is_some());
    let count = needs.items.iter().max().map_or(0, |last| last + 1);
    if operation.starts_with("Transact") {
        let mut reasons = vec![None; count];
        for (_, item) in refused_items() {
            reasons[*item] = Some(("ThrottlingError", DYNAMODB_THROTTLED.text()));
        }
        return Refused::All(cancelled(&reasons));
    }
    let mut items: Vec<usize> = refused_items().map(|(_, item)| *item).collect();
    items.dedup();
    if operation == "BatchGetItem" && items.len() < count {
        return Refused::Keys(items);
    }
    let reasons: Vec<Value> = refusals
        .iter()
        .flatten()
        .map(|refusal| {
            let (region, account) = PLACE;
            let resource = refusal.resource.arn(region, account);
            json!({ "reason": refusal.reason(), "resource": resource })
        })
        .collect();
    let is_quota = refusals.iter().flatten().any(|refusal| refusal.bound == Bound::Quota);
    let (kind, text, field) = if is_quota {
        let kind = "com.amazonaws.dynamodb.v20120810#RequestLimitExceeded";
        (kind, ACCOUNT_LIMIT.text(), "ThrottlingReasons")
    } else {
        let kind = "com.amazon.coral.availability#ThrottlingException";
        (kind, DYNAMODB_THROTTLED.text(), "throttlingReasons")
    };
    let mut refusal = error(kind, text);
    refusal[field] = Value::Array(reasons);
    Refused::All(refusal)
}

/// A batch of keys without those that are refused, and these as the answer names them.
pub(super) fn split(body: &[u8], refused: &[usize]) -> (Vec<u8>, Value) {
    let mut request: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut left = Map::new();
    let mut item = 0;
    let tables = request.get_mut("RequestItems").and_then(Value::as_object_mut);
    for (table, requested) in tables.into_iter().flatten() {
        let keys = requested.get_mut("Keys").and_then(Value::as_array_mut).map(std::mem::take);
        let (mut some, mut others) = (Vec::new(), Vec::new());
        for key in keys.into_iter().flatten() {
            if refused.contains(&item) {
                others.push(key)
            } else {
                some.push(key)
            }
            item += 1;
        }
        if !others.is_empty() {
            let mut again = requested.clone();
            again["Keys"] = Value::Array(others);
            left.insert(table.clone(), again);
        }
        requested["Keys"] = Value::Array(some);
    }
    if let Some(tables) = request.get_mut("RequestItems").and_then(Value::as_object_mut) {
        tables.retain(|_, requested| list(&requested["Keys"]).next().is_some());
    }
    (request.to_string().into_bytes(), Value::Object(left))
}

/// The answer to a transaction that is cancelled: for each item its code and text, or none.
fn cancelled(reasons: &[Option<(&str, &str)>]) -> Value {
    let codes: Vec<&str> =
        reasons.iter().map(|reason| reason.map_or("None", |(code, _)| code)).collect();
    let reason = |reason: &Option<(&str, &str)>| match reason {
        Some((code, text)) => json!({ "Code": code, "Message": text }),
        None => json!({ "Code": "None" }),
    };
    json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
            codes.join(", ")
        ),
        "CancellationReasons": reasons.iter().map(reason).collect::<Vec<_>>(),
    })
}

fn error(kind: &str, text: &str) -> Value {
    json!({ "__type": kind, "message": text })
}

fn partition(schema: &[KeySchemaElement], kind: &KeyType) -> Option<String> {
    let key = schema.iter().find(|key| key.key_type == *kind)?;
    Some(key.attribute_name.clone())
}

fn of_table(table: &str) -> Resource {
    Resource { table: table.to_owned(), index: None }
}

/// The least that a read costs.
fn consistency(request: &Value) -> f64 {
    if request["ConsistentRead"] == true { 1.0 } else { 0.5 }
}

/// The value that an expression compares an attribute with, or sets it to: `name = :value`.
fn assigned(request: &Value, expression: &str, attribute: &str) -> Option<String> {
    let words: String = text(&request[expression]).replace('=', " = ").replace(',', " , ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let names = &request["ExpressionAttributeNames"];
    let is_it = |word: &str| word == attribute || text(&names[word]) == attribute;
    let value = words.windows(3).find_map(|three| match three {
        [name, "=", value] if is_it(name) => Some(*value),
        _ => None,
    })?;
    let value = request["ExpressionAttributeValues"].get(value)?;
    Some(scalar(value))
}

/// A value as text: `{"N": "7"}` is `7`.
fn scalar(value: &Value) -> String {
    let inner = value.as_object().and_then(|types| types.values().next());
    inner.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// About the bytes of an item: its names and its texts.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => text.len(),
        Value::Array(all) => all.iter().map(size).sum(),
        Value::Object(all) => all.iter().map(|(name, value)| name.len() + size(value)).sum(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use fake_limits::Quotas;

    use super::*;

    /// The time of every request here.
    const NOW: Now = Now::from_secs(1);

    /// A database with a table as the orders' is, and the meter before it.
    fn metered(quotas: Quotas) -> (Database, Metered, Throttles) {
        let database = Database::memory().unwrap();
        let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
        let table = json!({
            "TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                { "AttributeName": "gene", "AttributeType": "N" },
                { "AttributeName": "sk", "AttributeType": "S" },
                { "AttributeName": "shard", "AttributeType": "N" },
            ],
            "KeySchema": [key("gene", "HASH"), key("sk", "RANGE")],
            "GlobalSecondaryIndexes": [{
                "IndexName": "due", "KeySchema": [key("shard", "HASH")],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            }],
        });
        database.create_table(serde_json::from_value(table).unwrap()).unwrap();
        let throttles = Throttles::default();
        let enforced = Enforced { quotas, throttles: throttles.clone() };
        (database, Metered::new(enforced), throttles)
    }

    fn put(gene: u32, sk: &str) -> Value {
        let item = json!({
            "gene": { "N": gene.to_string() }, "sk": { "S": sk }, "shard": { "N": "3" },
        });
        json!({ "TableName": "orders", "Item": item })
    }

    #[test]
    fn a_transaction_needs_twice_the_units_of_each_partition_and_those_of_its_indexes() {
        let (database, metered, _) = metered(Quotas::default());
        let update = json!({
            "TableName": "orders", "Key": { "gene": { "N": "8" }, "sk": { "S": "b" } },
            "UpdateExpression": "SET #state = :state, #s=:shard REMOVE x",
            "ExpressionAttributeNames": { "#s": "shard", "#state": "state" },
            "ExpressionAttributeValues": { ":shard": { "N": "5" }, ":state": { "S": "paid" } },
        });
        let body = json!({ "TransactItems": [{ "Put": put(7, "a") }, { "Update": update }] });
        let needs =
            metered.needs(&database, "TransactWriteItems", body.to_string().as_bytes()).unwrap();
        let shown: Vec<_> = needs
            .parts
            .iter()
            .zip(&needs.items)
            .map(|(part, item)| {
                let index = part.resource.index.as_deref().unwrap_or("table");
                (*item, index, part.key.as_deref().unwrap_or_default(), part.units)
            })
            .collect();
        assert_eq!(
            shown,
            [
                (0, "table", "7", 2.0),
                (0, "due", "3", 1.0),
                (1, "table", "8", 2.0),
                (1, "due", "5", 1.0)
            ]
        );
        assert_eq!(needs.written, ["orders\x007\0a", "orders\x008\0b"]);
    }

    #[test]
    fn a_refusal_names_its_reason_and_the_item_that_met_it() {
        let (database, metered, throttles) = metered(Quotas::default());
        let needs = |operation: &str, body: Value| {
            metered.needs(&database, operation, body.to_string().as_bytes()).unwrap()
        };
        let hot = needs("PutItem", put(7, "a"));
        let spent = ConsumedCapacity {
            table_name: "orders".to_owned(),
            capacity_units: 3000.0,
            ..ConsumedCapacity::default()
        };
        assert!(metered.admit_at("PutItem", &hot, NOW).is_ok());
        metered.charge_at(&hot, &[spent], NOW);
        let refused = metered.admit_at("PutItem", &hot, NOW);
        let text = DYNAMODB_THROTTLED.text();
        let expected = json!({
            "__type": "com.amazon.coral.availability#ThrottlingException",
            "message": text,
            "throttlingReasons": [{
                "reason": "TableWriteKeyRangeThroughputExceeded",
                "resource": "arn:aws:dynamodb:us-east-1:000000000000:table/orders",
            }],
        });
        assert_eq!(refused, Err(Refused::All(expected)));

        let both = json!({ "TransactItems": [{ "Put": put(8, "a") }, { "Put": put(7, "b") }] });
        let transaction = needs("TransactWriteItems", both);
        let Err(Refused::All(refused)) = metered.admit_at("TransactWriteItems", &transaction, NOW)
        else {
            panic!("it is refused");
        };
        assert_eq!(refused["CancellationReasons"][0], json!({ "Code": "None" }));
        let reason = json!({ "Code": "ThrottlingError", "Message": text });
        assert_eq!(refused["CancellationReasons"][1], reason);
        assert!(text_of(&refused).ends_with("[None, ThrottlingError]"), "{refused}");
        assert_eq!(throttles.rows()[0].times, 2, "{:?}", throttles.rows());
    }

    #[test]
    fn an_index_does_not_show_what_was_just_written_and_the_table_does() {
        let (database, metered, _) = metered(Quotas::default());
        let body = put(7, "a").to_string();
        let needs = metered.needs(&database, "PutItem", body.as_bytes()).unwrap();
        assert_eq!(metered.admit_at("PutItem", &needs, NOW), Ok(()));
        let query = |index: &str| json!({ "TableName": "orders", "IndexName": index }).to_string();
        let key = |sk: &str| json!({ "gene": { "N": "7" }, "sk": { "S": sk } });
        let answer = json!({ "Items": [key("a"), key("b")], "Count": 2 }).to_string();
        let shown = metered.as_indexed_at(query("due").as_bytes(), answer.clone(), NOW);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((&shown["Items"], &shown["Count"]), (&json!([key("b")]), &json!(1)));
        // A local index has it at once, as the table itself.
        assert_eq!(metered.as_indexed_at(query("by-user").as_bytes(), answer.clone(), NOW), answer);
    }

    fn text_of(refused: &Value) -> &str {
        text(&refused["Message"])
    }

    #[test]
    fn a_batch_leaves_out_the_keys_that_are_throttled() {
        let (database, metered, _) = metered(Quotas::default());
        let key = |gene: u32| json!({ "gene": { "N": gene.to_string() }, "sk": { "S": "a" } });
        let body = json!({ "RequestItems": {
            "orders": { "ConsistentRead": true, "Keys": [key(7), key(8), key(7)] },
        } });
        let body = body.to_string();
        let needs = metered.needs(&database, "BatchGetItem", body.as_bytes()).unwrap();
        metered.state().meter.charge(Access::Read, &needs.parts[0], 9000.0, NOW);
        let refused = metered.admit_at("BatchGetItem", &needs, NOW);
        assert_eq!(refused, Err(Refused::Keys(vec![0, 2])));
        let (rest, left) = split(body.as_bytes(), &[0, 2]);
        let rest: Value = serde_json::from_slice(&rest).unwrap();
        assert_eq!(rest["RequestItems"]["orders"]["Keys"], json!([key(8)]));
        assert_eq!(left["orders"]["Keys"], json!([key(7), key(7)]));
        assert_eq!(left["orders"]["ConsistentRead"], true);
    }

    #[test]
    fn a_write_to_an_item_that_a_transaction_is_at_work_on_fails_at_once() {
        let (database, metered, throttles) = metered(Quotas::default());
        let needs = |operation: &str, body: Value| {
            metered.needs(&database, operation, body.to_string().as_bytes()).unwrap()
        };
        let first =
            needs("TransactWriteItems", json!({ "TransactItems": [{ "Put": put(7, "a") }] }));
        let both = json!({ "TransactItems": [{ "Put": put(9, "x") }, { "Put": put(7, "a") }] });
        let second = needs("TransactWriteItems", both);
        assert!(metered.admit_at("TransactWriteItems", &first, NOW).is_ok());
        let Err(Refused::All(refused)) = metered.admit_at("TransactWriteItems", &second, NOW)
        else {
            panic!("it is refused");
        };
        assert!(text_of(&refused).ends_with("[None, TransactionConflict]"), "{refused}");
        assert_eq!(throttles.rows()[0].reason, "TransactionConflict");
    }

    #[test]
    fn a_query_is_of_the_partition_that_it_names() {
        let (database, metered, _) = metered(Quotas::default());
        let query = |index: Value| {
            let body = json!({
                "TableName": "orders", "IndexName": index, "ConsistentRead": true,
                "KeyConditionExpression": "#shard = :shard AND gene = :gene",
                "ExpressionAttributeNames": { "#shard": "shard" },
                "ExpressionAttributeValues": { ":shard": { "N": "3" }, ":gene": { "N": "7" } },
            });
            let needs = metered.needs(&database, "Query", body.to_string().as_bytes()).unwrap();
            needs.parts[0].key.clone()
        };
        assert_eq!(query(json!("due")).as_deref(), Some("3"));
        assert_eq!(query(Value::Null).as_deref(), Some("7"));
        assert!(metered.needs(&database, "ListTables", b"{}").is_none());
        assert!(metered.needs(&database, "PutItem", b"no json").is_none());
    }
}
