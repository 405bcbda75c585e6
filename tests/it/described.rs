//! What the engine answers, held against what its OpenAPI document says that it may answer.
//!
//! Values are collected, and checked all at once by a validator that is not ours, in the Python
//! environment of `make setup`.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Map, Value, json};
use shared::http::respond::{CSV, HTML, JSON_LINES, XML};

/// An answer, whoever asked.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub async fn from_reply(reply: reqwest::Response) -> Self {
        let (status, headers) = (reply.status().as_u16(), reply.headers().clone());
        Self { status, headers, body: reply.bytes().await.unwrap().to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{} {:?}: {error}", self.status, String::from_utf8_lossy(&self.body))
        })
    }
}

/// The document, and what was held against it.
pub struct Description {
    pub document: Value,
    checks: Mutex<Vec<Value>>,
}

/// Reads a document and checks, and prints what is wrong: a line for each.
const VALIDATOR: &str = "
import json, sys
from jsonschema_rs import Draft202012Validator
asked = json.load(sys.stdin)
components = asked['components']
validators = {}
for check in asked['checks']:
    key = json.dumps(check['schema'])
    if key not in validators:
        root = {'components': components, **check['schema']}
        validators[key] = Draft202012Validator(root, validate_formats=True)
    for error in validators[key].iter_errors(check['value']):
        print(check['what'], list(error.instance_path), error.message, sep=': ')";

impl Description {
    pub fn new() -> Self {
        Self { document: openapi::document(), checks: Mutex::new(Vec::new()) }
    }

    fn checks(&self) -> MutexGuard<'_, Vec<Value>> {
        self.checks.lock().unwrap()
    }

    /// What is wrong with the values that were checked since the last time.
    pub fn faults(&self) -> Vec<String> {
        let checks = std::mem::take(&mut *self.checks());
        assert!(!checks.is_empty(), "nothing was held against the document");
        let asked = json!({ "components": self.document["components"], "checks": checks });
        let mut child =
            Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/python"))
                .args(["-c", VALIDATOR])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the Python environment is missing: run `make setup`");
        child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "the validator failed");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// The operation with an id: method, path pattern, description.
    pub fn operation(&self, id: &str) -> (String, String, &Value) {
        let found = self.operations().find(|(_, _, operation)| operation["operationId"] == id);
        found.unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// Every operation: method, path pattern, description.
    pub fn operations(&self) -> impl Iterator<Item = (String, String, &Value)> {
        let paths = self.document["paths"].as_object().unwrap();
        paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            let operations = methods.filter(|(name, _)| *name != "parameters");
            operations.map(|(method, operation)| (method.to_uppercase(), path.clone(), operation))
        })
    }

    /// A response of an operation, which may be one of the components.
    pub fn resolved<'d>(&'d self, response: &'d Value) -> &'d Value {
        response["$ref"].as_str().map_or(response, |reference| {
            let pointer = reference.strip_prefix('#').unwrap();
            self.document.pointer(pointer).unwrap_or_else(|| panic!("no {reference}"))
        })
    }

    /// What the document says of a request: its operation, or `None` for another method, or an
    /// error if there is no such path.
    fn of(&self, method: &str, target: &str) -> Result<Option<&Value>, ()> {
        let path = target.split('?').next().unwrap();
        let fits = |pattern: &str| {
            let (ours, theirs) = (pattern.split('/'), path.split('/'));
            ours.clone().count() == theirs.clone().count()
                && ours.zip(theirs).all(|(ours, theirs)| {
                    ours == theirs || (ours.starts_with('{') && !theirs.is_empty())
                })
        };
        let mut there = self.operations().filter(|(_, pattern, _)| fits(pattern)).peekable();
        there.peek().ok_or(())?;
        Ok(there.find(|(ours, _, _)| ours == method).map(|(_, _, operation)| operation))
    }

    /// Notes that a value must be of a schema of the document.
    pub fn check(&self, what: &str, schema: &Value, value: &Value) {
        self.checks().push(json!({ "what": what, "schema": schema, "value": value }));
    }

    /// Fails unless a request may be answered with this status, these headers and this content type,
    /// and notes that the body must be of its schema.
    pub fn check_answer(&self, what: &str, method: &str, target: &str, answer: &Answer) {
        let content_type = answer.header(CONTENT_TYPE.as_str());
        let described = match self.of(method, target) {
            Ok(Some(operation)) => {
                let responses = operation["responses"].as_object().unwrap();
                let response = responses.get(&answer.status.to_string());
                let response = response
                    .unwrap_or_else(|| panic!("{what}: {} is not described", answer.status));
                self.resolved(response).clone()
            }
            Ok(None) => self.only("MethodNotAllowedProblem"),
            Err(()) => self.only("NotFoundProblem"),
        };
        for (name, header) in described["headers"].as_object().unwrap_or(&Map::new()) {
            let value = answer.header(name).unwrap_or_else(|| panic!("{what}: no {name}"));
            let value = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
            self.check(&format!("{what}: {name}"), &header["schema"], &value);
        }
        let content = described["content"].as_object().unwrap();
        let media = content_type.and_then(|content_type| content.get(content_type));
        let media = media.unwrap_or_else(|| panic!("{what}: {content_type:?} is not described"));
        if method == "HEAD" {
            assert_eq!(answer.body, b"", "{what}");
        } else {
            let text = || String::from_utf8(answer.body.clone()).unwrap();
            let value = match content_type {
                Some(JSON_LINES | CSV | HTML | XML) => json!(text()),
                Some("image/jpeg") => json!(String::from_utf8_lossy(&answer.body)),
                Some(_) | None => answer.json(),
            };
            self.check(what, &media["schema"], &value);
        }
    }

    /// A response that is always the same problem.
    fn only(&self, component: &str) -> Value {
        let schema = json!({ "$ref": format!("#/components/schemas/{component}") });
        json!({ "content": { "application/problem+json": { "schema": schema } } })
    }
}
