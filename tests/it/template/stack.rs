//! The template, translated and worked out: what would be made, and with which properties.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use text::root;

/// The stages that `samconfig.toml` knows, with the file's names for them.
pub const STAGES: [&str; 3] = ["default", "staging", "prod"];
/// What belongs to an account and has no default.
const ACCOUNT: [(&str, &str); 5] = [
    ("JwtIssuer", "https://issuer.example/"),
    ("JwtAudience", "buyers"),
    ("OperatorIssuer", "https://operators.example/"),
    ("OperatorAudience", "operators"),
    ("DynamoDbPrefixListId", "pl-0123abcd"),
];

/// A program of the environment that `scripts/setup sam` makes.
pub fn tool(name: &str) -> Command {
    let mut command = Command::new(root().join(".onsale/tools/sam/bin").join(name));
    command.current_dir(root());
    // It asks nobody, and keeps nothing in anybody's home.
    command.env("SAM_CLI_TELEMETRY", "0").env("AWS_DEFAULT_REGION", "eu-central-1");
    command
}

/// A template to translate: of a stage, with some parameters set, and with some changes made.
#[derive(Debug, Clone)]
pub struct Variant {
    pub stage: &'static str,
    pub with: BTreeMap<String, String>,
    pub edits: Vec<Edit>,
}

/// A change of the text: the first `from` behind the first `after` becomes `to`.
#[derive(Debug, Clone, Copy)]
pub struct Edit {
    pub after: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

impl Variant {
    /// The template as it is, for a stage.
    pub fn from_stage(stage: &'static str) -> Self {
        let with = ACCOUNT.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { stage, with: with.into(), edits: Vec::new() }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.with.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn edited(mut self, edit: Edit) -> Self {
        self.edits.push(edit);
        self
    }
}

/// Every stage with either cache, one in a network that was there already, one with secrets of one's own, and one
/// under a name of its own that sends the other secret.
pub fn variants() -> Vec<Variant> {
    let caches = ["serverless", "nodes"];
    let of = |stage| caches.map(|cache| Variant::from_stage(stage).with("CacheKind", cache));
    let mut all: Vec<Variant> = STAGES.into_iter().flat_map(of).collect();
    let own = Variant::from_stage("prod").with("VpcId", "vpc-0a").with("WayOut", "own");
    all.push(own.with("SubnetIds", "subnet-0a,subnet-0b"));
    let secrets =
        Variant::from_stage("prod").with("ProvisionedReserve", "10").with("WarmWrites", "20000");
    let arn = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:mine";
    let secrets = secrets.with("AdmissionKeysSecretArn", arn).with("AttendeeKeysSecretArn", arn);
    let secrets = secrets
        .with("TicketKeysSecretArn", arn)
        .with("ChallengeKeysSecretArn", arn)
        .with("SiteverifySecretsSecretArn", arn);
    let secrets = secrets.with("PaymentSecretsSecretArn", arn);
    let secrets = secrets.with("ProviderKeysSecretArn", arn);
    all.push(secrets.with("MerchantsSecretArn", arn));
    let edge = Variant::from_stage("prod").with("DomainName", "tickets.example");
    let certificate = "arn:aws:acm:us-east-1:000000000000:certificate/1";
    let edge = edge.with("CertificateArn", certificate).with("EdgeSecretInUse", "B");
    all.push(edge.with("OriginShieldRegion", "eu-central-1"));
    all
}

/// What the translation of a variant says: CloudFormation, or why there is none.
pub type Translation = Result<Value, String>;

/// Translates templates, all in one process.
pub fn translate(variants: &[Variant]) -> Vec<Translation> {
    let edits = |edits: &[Edit]| -> Vec<Value> {
        edits.iter().map(|edit| json!([edit.after, edit.from, edit.to])).collect()
    };
    let templates: Vec<Value> = variants
        .iter()
        .map(|one| json!({ "stage": one.stage, "with": one.with, "edits": edits(&one.edits) }))
        .collect();
    let mut python = tool("python")
        .arg("scripts/translate-template")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("aws-sam-cli is missing: run `make setup`");
    // All is read before anything is written: neither side waits for the other.
    python.stdin.take().unwrap().write_all(json!(templates).to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let translation = |mut answer: Value| match answer.get("fault") {
        Some(fault) => Err(fault.as_str().unwrap().to_owned()),
        None => Ok(answer.take()),
    };
    answers.into_iter().map(translation).collect()
}

/// The parameters and resources of a deployed stack.
#[derive(Debug)]
pub struct Stack {
    pub parameters: BTreeMap<String, String>,
    pub resources: BTreeMap<String, Resource>,
}

/// One thing that would be made. What only AWS knows is left as `${Name.Attribute}`.
#[derive(Debug)]
pub struct Resource {
    pub kind: String,
    pub properties: Value,
    pub deletion_policy: Option<String>,
    pub binary: Option<String>,
}

impl Stack {
    /// Works out what a translation says.
    pub fn from_translation(translation: &Value) -> Self {
        let given = translation["parameters"].as_object().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let parameters: BTreeMap<_, _> =
            given.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let template = &translation["template"];
        let terms = Terms { template, parameters: &parameters };
        let mut resources = BTreeMap::new();
        for (name, resource) in template["Resources"].as_object().unwrap() {
            let is_made = resource.get("Condition").is_none_or(|name| terms.holds(name));
            if is_made {
                let binary = &resource["Metadata"]["BuildProperties"]["Binary"];
                let resource = Resource {
                    kind: text(&resource["Type"]),
                    properties: terms.value(&resource["Properties"]).unwrap_or_default(),
                    deletion_policy: resource["DeletionPolicy"].as_str().map(str::to_owned),
                    binary: binary.as_str().map(str::to_owned),
                };
                resources.insert(name.clone(), resource);
            }
        }
        Self { parameters, resources }
    }

    /// The resources of a type.
    pub fn all<'s>(&'s self, kind: &'s str) -> impl Iterator<Item = (&'s str, &'s Value)> {
        let of_kind = self.resources.iter().filter(move |(_, resource)| resource.kind == kind);
        of_kind.map(|(name, resource)| (name.as_str(), &resource.properties))
    }

    /// The functions, by the name of their program.
    pub fn functions(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        let functions =
            self.resources.iter().filter(|(_, made)| made.kind == "AWS::Lambda::Function");
        functions.filter_map(|(name, resource)| {
            Some((resource.binary.as_deref()?, name.as_str(), &resource.properties))
        })
    }

    /// The statements of the policies of a function's role, of which other functions have none.
    pub fn statements<'s>(&'s self, function: &Value) -> impl Iterator<Item = &'s Value> {
        let role = self.behind(&function["Role"]).map(|(_, role)| &role["Policies"]);
        let policies = role.and_then(Value::as_array).into_iter().flatten();
        policies.flat_map(|policy| policy["PolicyDocument"]["Statement"].as_array().unwrap())
    }

    /// The properties of a resource that another names, as `${Name}` or `${Name.Attribute}`.
    pub fn behind(&self, reference: &Value) -> Option<(&str, &Value)> {
        let name = name_in(reference.as_str()?)?;
        let (name, resource) = self.resources.get_key_value(name)?;
        Some((name, &resource.properties))
    }
}

/// The resource that `${Name}` or `${Name.Attribute}` names.
pub fn name_in(reference: &str) -> Option<&str> {
    let inner = reference.strip_prefix("${")?.split('}').next()?;
    inner.split('.').next()
}

/// The values with which intrinsic functions are resolved.
struct Terms<'t> {
    template: &'t Value,
    parameters: &'t BTreeMap<String, String>,
}

impl Terms<'_> {
    fn holds(&self, name: &Value) -> bool {
        let condition = &self.template["Conditions"][name.as_str().unwrap()];
        assert!(!condition.is_null(), "there is no condition {name}");
        self.is_true(condition)
    }

    fn is_true(&self, condition: &Value) -> bool {
        let (function, of) = condition.as_object().unwrap().iter().next().unwrap();
        let each = || of.as_array().unwrap().iter();
        match function.as_str() {
            "Condition" => self.holds(of),
            "Fn::Equals" => {
                let sides: Vec<String> = each().map(|side| self.text(side)).collect();
                sides[0] == sides[1]
            }
            "Fn::Not" => !self.is_true(&of[0]),
            "Fn::And" => each().all(|one| self.is_true(one)),
            "Fn::Or" => each().any(|one| self.is_true(one)),
            other => panic!("no condition: {other}"),
        }
    }

    fn text(&self, value: &Value) -> String {
        match self.value(value) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }

    /// The value, or `None` where there shall be none.
    fn value(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Object(object) => match self.intrinsic(object) {
                Some(found) => found,
                None => {
                    let each = object.iter();
                    let kept =
                        each.filter_map(|(name, value)| Some((name.clone(), self.value(value)?)));
                    Some(Value::Object(kept.collect()))
                }
            },
            Value::Array(array) => {
                Some(array.iter().filter_map(|value| self.value(value)).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Some(value.clone())
            }
        }
    }

    fn intrinsic(&self, object: &Map<String, Value>) -> Option<Option<Value>> {
        let (function, of) = object.iter().next().filter(|_| object.len() == 1)?;
        Some(match function.as_str() {
            "Ref" => self.reference(of.as_str()?),
            "Fn::GetAtt" => {
                let path: Vec<&str> = of.as_array()?.iter().filter_map(Value::as_str).collect();
                Some(json!(format!("${{{}}}", path.join("."))))
            }
            "Fn::If" => self.value(&of[if self.holds(&of[0]) { 1 } else { 2 }]),
            "Fn::Sub" => Some(json!(self.substituted(of))),
            "Fn::Join" => {
                let parts: Vec<String> =
                    of[1].as_array()?.iter().map(|part| self.text(part)).collect();
                Some(json!(parts.join(of[0].as_str()?)))
            }
            "Fn::Split" => {
                let text = self.text(&of[1]);
                Some(text.split(of[0].as_str()?).collect())
            }
            "Fn::Select" => {
                let from = self.value(&of[1]);
                let index = usize::try_from(of[0].as_u64()?).ok()?;
                let found = from.as_ref().and_then(|from| from.get(index)).cloned();
                Some(found.unwrap_or_else(|| json!(format!("{function} {of}"))))
            }
            "Fn::GetAZs" | "Fn::Cidr" => Some(json!(format!("{function} {of}"))),
            _ => return None,
        })
    }

    fn reference(&self, name: &str) -> Option<Value> {
        if name == "AWS::NoValue" {
            return None;
        }
        let is_list = |name: &str| {
            let kind = self.template["Parameters"][name]["Type"].as_str();
            kind.is_some_and(|kind| kind.contains("List"))
        };
        Some(match self.parameters.get(name) {
            Some(value) if is_list(name) => value.split(',').collect(),
            Some(value) => json!(value),
            None => json!(pseudo(name).map_or_else(|| format!("${{{name}}}"), str::to_owned)),
        })
    }

    fn substituted(&self, of: &Value) -> String {
        let pattern = of.as_str().or_else(|| of[0].as_str()).unwrap();
        let with = of[1].as_object();
        let mut text = String::new();
        let mut rest = pattern;
        while let Some((before, behind)) = rest.split_once("${") {
            let (name, after) = behind.split_once('}').unwrap();
            text.push_str(before);
            match with.and_then(|with| with.get(name)) {
                Some(value) => text.push_str(&self.text(value)),
                None => text.push_str(&self.text(&json!({ "Ref": name }))),
            }
            rest = after;
        }
        text + rest
    }
}

/// The pseudo parameters of CloudFormation.
fn pseudo(name: &str) -> Option<&'static str> {
    match name {
        "AWS::Partition" => Some("aws"),
        "AWS::Region" => Some("eu-central-1"),
        "AWS::AccountId" => Some("000000000000"),
        "AWS::StackName" => Some("onsale"),
        "AWS::StackId" => Some(
            "arn:aws:cloudformation:eu-central-1:000000000000:stack/onsale/0a1b2c3d-4e5f-11f0-8a9b-0123456789ab",
        ),
        "AWS::URLSuffix" => Some("amazonaws.com"),
        _ => None,
    }
}
