//! The API as an OpenAPI 3.1 document.
//!
//! Every schema is made by schemars from the very type that a handler reads or writes, every problem
//! from its [`Kind`], with the operations that answer it; the routes and who may call them from the table
//! of routes. What no type says (what an operation is for, its parameters and examples) is one table,
//! `operations`. Tests hold the document against what the engine does answer.
//!
//! The document is in the repository (`docs/openapi.json`), because the function `sales` serves it as
//! it is: no function carries the code that makes it.

mod examples;
mod operations;
mod operators;
mod pages;
mod pictures;
mod rooms;
mod tickets;

use std::collections::BTreeMap;

use engine::domain::basics::bytes;
use engine::domain::basics::ids::{GroupId, ProviderId, SaleId};
use engine::domain::basics::number::OrderNumber;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use shared::http::problem::Kind;
use shared::http::respond::HTML;
use shared::http::routes::{Access, ROUTES, RouteName, Row, parameter_names};

use operations::{Body, Operation, Success, operation};

/// What the document says of the whole API.
const DESCRIPTION: &str = "\
Tickets, from the gate to the payment. JSON over HTTPS; amounts are integers in minor units, numbers of orders \
are text (they have up to 19 digits), times are RFC 3339 in UTC.

A request is refused if a field is unknown, missing or given twice, or if something is not of its type: a list is \
no object, `1.0` and `\"1\"` are no integers. Every refusal is a problem document (RFC 9457), whose `type` names \
its page in `docs/problems`. Where trying the same request again is worth it, `Retry-After` says when.

On AWS, API Gateway answers by itself what never reaches a function: no route (404), no token that it accepts \
(401), no permission (403), a request too large for it (413), too many requests for the whole API (429). Its \
answers are `{\"message\": …}` with content type `application/json`.";

/// The document, as `docs/openapi.json` and `GET /openapi.json` have it.
#[must_use]
pub fn print() -> String {
    format!("{:#}\n", document())
}

#[must_use]
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut refusals = Refusals::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    // The entry of callbacks is another API, at an address that only providers are told.
    let is_published = |route: &&Row| route.access != Access::ProviderWithKey;
    for route in ROUTES.iter().filter(is_published) {
        let described = describe(route, operation(route.name), &mut schemas, &mut refusals);
        paths.entry(route.path).or_default().insert(route.method.to_ascii_lowercase(), described);
    }
    for (path, operations) in &mut paths {
        let parameters: Vec<Value> =
            parameter_names(path).map(|name| path_parameter(name, &mut schemas)).collect();
        if !parameters.is_empty() {
            operations.insert("parameters".to_owned(), json!(parameters));
        }
    }
    let problems: Vec<(String, Value)> = Kind::ALL.map(|kind| schemas.problem(kind)).into();
    let mut components = schemas.finish();
    components.extend(problems);
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Onsale",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "A ticket on-sale engine",
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" }
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "sales", "description": "What is on sale, and what is left of it." },
            { "name": "rooms", "description": "Waiting rooms: who is served in what order, and how to check it." },
            { "name": "buying", "description": "From the gate to the order." },
            { "name": "orders", "description": "A buyer's own orders." },
            { "name": "operators", "description": "What operators see and do, by a token of their issuer." },
            { "name": "payments", "description": "What a payment provider says." },
            { "name": "meta", "description": "The API itself." }
        ],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": refusals,
            "securitySchemes": security_schemes()
        }
    })
}

/// The name that a problem's schema has among the components.
#[must_use]
pub fn problem_component(kind: Kind) -> String {
    format!("{kind:?}Problem")
}

fn reference(component: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{component}") })
}

/// The schemas of the types that have been mentioned, and of what these are made of.
///
/// What is read and what is written differ: a field with a default may be left out by whoever sends
/// it, and is always there in what we send.
pub(crate) struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings
        };
        Self {
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
        }
    }

    /// The schema of a type that handlers read.
    fn read<T: schemars::JsonSchema>(&mut self) -> Value {
        self.read.subschema_for::<T>().to_value()
    }

    /// The schema of a type that handlers write.
    fn written<T: schemars::JsonSchema>(&mut self) -> Value {
        self.written.subschema_for::<T>().to_value()
    }

    fn problem(&mut self, kind: Kind) -> (String, Value) {
        (problem_component(kind), kind.schema(&mut self.written).to_value())
    }

    /// All of them by name. A type that is both read and written (a sale file) is described as it is
    /// read, which is the wider of the two.
    fn finish(mut self) -> Map<String, Value> {
        let mut all = self.written.take_definitions(true);
        for schema in all.values_mut() {
            forget_nulls(schema);
        }
        all.extend(self.read.take_definitions(true));
        all
    }
}

/// A field that may be absent from what we write is never null there: it is left out.
fn forget_nulls(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    let required: Vec<Value> =
        schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties {
        let Some(property) = property.as_object_mut() else { continue };
        if required.contains(&json!(name)) {
            continue;
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                property.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
            choices.retain(|choice| *choice != json!({ "type": "null" }));
            if let [Value::Object(only)] = choices.as_slice() {
                let only = only.clone();
                property.remove("anyOf");
                property.extend(only);
            }
        }
    }
}

fn path_parameter(name: &str, schemas: &mut Schemas) -> Value {
    let number = || json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let (schema, example) = match name {
        "group" => (schemas.read::<GroupId>(), "all"),
        "chunk" | "index" => (number(), "0"),
        "sale" => (schemas.read::<SaleId>(), examples::SALE),
        "order" => (schemas.read::<OrderNumber>(), examples::ORDER),
        "provider" => (schemas.read::<ProviderId>(), local::payment::PROVIDER),
        "picture" | "document" => (schemas.read::<bytes::Hash>(), examples::PICTURE),
        other => unreachable!("a path parameter without a type: {other}"),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema, "example": example })
}

fn security_schemes() -> Value {
    let signature = |name: &str| {
        json!({
            "type": "apiKey", "in": "header", "name": name,
            "description": "`t=<unix seconds>,v1=<hex>`: the HMAC-SHA256 of `<unix seconds>.<body>` with the \
                            provider's secret, over the bytes of the body as they are sent."
        })
    };
    json!({
        "buyer": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "A token of the identity provider; its `sub` is the buyer."
        },
        "operator": {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "An AWS Signature Version 4 (service execute-api). A local engine takes a bearer \
                            token of an operator instead: `onsale token --operator`.",
            "x-amazon-apigateway-authtype": "awsSigv4"
        },
        "operator_token": {
            "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
            "description": "An access token of the operators' identity provider, with the scope of the operation. A \
                            local engine has an issuer of its own: GET /config.json says where."
        },
        "stripe_signature": signature("Stripe-Signature"),
        "payment_signature": signature("Payment-Signature")
    })
}

/// Who may call a route.
fn security(route: &Row) -> Value {
    match route.access {
        Access::Buyer => json!([{ "buyer": [] }]),
        Access::Operator => json!([{ "operator": [] }]),
        Access::Watch | Access::Operate | Access::Refund | Access::Scan => {
            let scopes: Vec<&str> =
                route.access.scope().iter().map(|scope| scope.as_str()).collect();
            json!([{ "operator_token": scopes }])
        }
        Access::Provider | Access::ProviderWithKey => {
            json!([{ "stripe_signature": [] }, { "payment_signature": [] }])
        }
        Access::Anyone => json!([]),
    }
}

/// The responses that refuse, by name: several operations answer the same.
type Refusals = BTreeMap<String, Value>;

fn describe(
    route: &Row,
    operation: Operation,
    schemas: &mut Schemas,
    refusals: &mut Refusals,
) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": operation.description,
        "security": security(route),
        "responses": responses(route.name, &operation, schemas, refusals)
    });
    let parameters: Vec<Value> =
        operation.parameters.iter().map(|parameter| parameter.describe(schemas)).collect();
    if !parameters.is_empty() {
        described["parameters"] = json!(parameters);
    }
    if let Some(Body { schema, most_bytes, examples }) = operation.body {
        let description = format!("At most {most_bytes} bytes.");
        let content = json!({ "schema": schema(schemas), "examples": named(examples()) });
        described["requestBody"] = json!({
            "required": true, "description": description, "content": { "application/json": content }
        });
    }
    described
}

fn named(examples: Vec<(&'static str, &'static str, Value)>) -> Value {
    let example = |(name, summary, value): (&str, &str, Value)| {
        (name.to_owned(), json!({ "summary": summary, "value": value }))
    };
    Value::Object(examples.into_iter().map(example).collect())
}

fn responses(
    route: RouteName,
    operation: &Operation,
    schemas: &mut Schemas,
    refusals: &mut Refusals,
) -> Value {
    let mut responses = BTreeMap::from([success(&operation.success, schemas)]);
    let mut by_status: BTreeMap<u16, Vec<Kind>> = BTreeMap::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.routes().contains(&route)) {
        by_status.entry(kind.status().as_u16()).or_default().push(kind);
    }
    for (status, kinds) in by_status {
        if route == RouteName::ShowSalePage && PROBLEMS_AS_PAGES.contains(&status) {
            responses.insert(status.to_string(), as_page(refusal(&kinds)));
            continue;
        }
        let name = kinds.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>().join("Or");
        responses.insert(
            status.to_string(),
            json!({ "$ref": format!("#/components/responses/{name}") }),
        );
        refusals.entry(name).or_insert_with(|| refusal(&kinds));
    }
    json!(responses)
}

/// The statuses of problems that `GET /s/{sale}` says to people, on a page.
const PROBLEMS_AS_PAGES: [u16; 3] = [404, 500, 503];

/// A refusal as a page, or, if the function had no time left for one, as a problem document.
fn as_page(mut refusal: Value) -> Value {
    refusal["content"][HTML] = json!({ "schema": pages::page() });
    refusal
}

fn success(success: &Success, schemas: &mut Schemas) -> (String, Value) {
    let Success { status, description, caching, media_type, schema, examples } = success;
    let response = json!({
        "description": description,
        "headers": { "Cache-Control": header("How long it keeps.", one_of(caching)) },
        "content": { (*media_type): { "schema": schema(schemas), "examples": named(examples()) } }
    });
    (status.to_string(), response)
}

/// The schema of one of some texts.
fn one_of(texts: &[&str]) -> Value {
    if let [only] = texts { json!({ "const": only }) } else { json!({ "enum": texts }) }
}

fn header(description: &str, schema: Value) -> Value {
    json!({ "description": description, "required": true, "schema": schema })
}

/// The response of a status, which is one of these problems.
fn refusal(kinds: &[Kind]) -> Value {
    let titles: Vec<String> =
        kinds.iter().map(|kind| format!("{} (`{}`)", kind.title(), kind.uri())).collect();
    let schema = match kinds {
        [only] => reference(&problem_component(*only)),
        several => {
            let of = |kind: &Kind| reference(&problem_component(*kind));
            let mapped = |kind: &Kind| (kind.uri(), of(kind)["$ref"].clone());
            json!({
                "oneOf": several.iter().map(of).collect::<Vec<_>>(),
                "discriminator": {
                    "propertyName": "type",
                    "mapping": several.iter().map(mapped).collect::<Map<_, _>>()
                }
            })
        }
    };
    let mut headers =
        json!({ "Cache-Control": header("Not to be kept.", json!({ "const": "no-store" })) });
    if kinds.iter().all(|kind| kind.has_retry_after()) {
        let seconds = json!({ "type": "integer", "minimum": 1 });
        headers["Retry-After"] = header("After how many seconds to try again.", seconds);
    }
    json!({
        "description": format!("{}.", titles.join("; ")),
        "headers": headers,
        "content": { "application/problem+json": { "schema": schema } }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_document_is_the_one_that_is_printed() {
        let published: Value =
            serde_json::from_str(include_str!("../../../docs/openapi.json")).unwrap();
        assert!(
            published == document(),
            "docs/openapi.json is out of date: write what `onsale openapi` prints"
        );
    }

    #[test]
    fn what_we_write_is_never_null_where_it_may_be_absent() {
        let mut schema = json!({
            "properties": {
                "from": { "anyOf": [{ "$ref": "#/x" }, { "type": "null" }], "description": "d" },
                "left": { "type": ["integer", "null"] },
                "seen": { "type": ["integer", "null"] }
            },
            "required": ["seen"]
        });
        forget_nulls(&mut schema);
        let properties = &schema["properties"];
        assert_eq!(properties["from"], json!({ "$ref": "#/x", "description": "d" }));
        assert_eq!(properties["left"], json!({ "type": "integer" }));
        assert_eq!(properties["seen"], json!({ "type": ["integer", "null"] }));
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(members) => {
                    found.extend(members.get("$ref").and_then(Value::as_str));
                    members.values().for_each(|member| references(member, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 50);
        for reference in &found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            let reference = format!("#/components/schemas/{name}");
            // The one problem that no operation answers: it is for the methods that there are not.
            let is_answered = name != "MethodNotAllowedProblem";
            assert_eq!(found.contains(&reference.as_str()), is_answered, "{name} is used");
        }
    }
}
