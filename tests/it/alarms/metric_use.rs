//! A use of a metric, and whether somebody writes that metric.

use serde_json::Value;
use shared::http::problem::Kind;
use shared::runtime::metrics::{Function, Metric, NAMESPACE};

use super::template::text;

/// What AWS publishes of what we deploy: namespace, metric, dimensions.
const OF_AWS: [(&str, &str, &[&str]); 18] = [
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", &["QueueName"]),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", &["QueueName"]),
    ("AWS/ApiGateway", "5xx", &["ApiId"]),
    ("AWS/CloudFront", "Requests", &["DistributionId", "Region"]),
    ("AWS/CloudFront", "4xxErrorRate", &["DistributionId", "Region"]),
    ("AWS/CloudFront", "5xxErrorRate", &["DistributionId", "Region"]),
    ("AWS/Lambda", "Errors", &["FunctionName"]),
    ("AWS/Lambda", "Throttles", &["FunctionName"]),
    ("AWS/Lambda", "ConcurrentExecutions", &["FunctionName"]),
    ("AWS/DynamoDB", "ReadThrottleEvents", &["TableName"]),
    ("AWS/DynamoDB", "WriteThrottleEvents", &["TableName"]),
    ("AWS/DynamoDB", "ReadThrottleEvents", &["TableName", "GlobalSecondaryIndexName"]),
    ("AWS/DynamoDB", "WriteThrottleEvents", &["TableName", "GlobalSecondaryIndexName"]),
    ("AWS/ElastiCache", "ThrottledCmds", &["clusterId"]),
    ("AWS/ElastiCache", "Evictions", &["clusterId"]),
    ("AWS/ElastiCache", "ElastiCacheProcessingUnits", &["clusterId"]),
    ("AWS/ElastiCache", "EngineCPUUtilization", &["ReplicationGroupId", "Role"]),
    (
        "AWS/ElastiCache",
        "DatabaseMemoryUsageCountedForEvictPercentage",
        &["ReplicationGroupId", "Role"],
    ),
];

/// A use of a metric: by an alarm or a widget, of a name and dimensions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MetricUse {
    pub(super) by: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) dimensions: Vec<(String, String)>,
}

impl MetricUse {
    pub(super) fn dimension(&self, name: &str) -> Option<&str> {
        let found = self.dimensions.iter().find(|(dimension, _)| dimension == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What is wrong with it: nobody writes such a metric, or of nothing that is deployed.
    pub(super) fn faults(&self, resources: &Value) -> Vec<String> {
        let Self { by, namespace, name, .. } = self;
        let names: Vec<&str> = self.dimensions.iter().map(|(name, _)| name.as_str()).collect();
        let is_emitted = if namespace == NAMESPACE {
            let metric = Metric::ALL.into_iter().find(|metric| metric.row().name == name);
            metric.is_some_and(|metric| metric.row().dimensions.sets().contains(&names.as_slice()))
        } else {
            OF_AWS.iter().any(|(space, metric, dimensions)| {
                space == namespace && metric == name && *dimensions == names.as_slice()
            })
        };
        let mut faults = Vec::new();
        if !is_emitted {
            faults.push(format!("{by}: nobody writes {namespace} {name} by {names:?}"));
        }
        let types = [
            ("QueueName", "AWS::SQS::Queue"),
            ("FunctionName", "AWS::Serverless::Function"),
            ("TableName", "AWS::DynamoDB::Table"),
            ("ApiId", "AWS::Serverless::HttpApi"),
            ("DistributionId", "AWS::CloudFront::Distribution"),
        ];
        for (dimension, value) in &self.dimensions {
            let is_known = match dimension.as_str() {
                "Stage" => value == "dev",
                "Function" => Function::ALL.iter().any(|function| value == function.as_str()),
                "Reason" => Kind::ALL.iter().any(|kind| value == kind.slug()),
                "Sale" => value == "-",
                "Region" => value == "Global",
                other => match types.iter().find(|(name, _)| *name == other) {
                    Some((_, kind)) => of_type(resources, kind, value),
                    None => true,
                },
            };
            if !is_known {
                faults.push(format!("{by}: {name} by {dimension} {value}, which there is not"));
            }
        }
        faults
    }
}

/// True if a resource of this type is referred to, or has this name.
fn of_type(resources: &Value, kind: &str, value: &str) -> bool {
    resources.as_object().unwrap().iter().any(|(id, resource)| {
        let name = text(&resource["Properties"]["QueueName"]);
        resource["Type"] == kind && (value == format!("<{id}>") || value == name)
    })
}

pub(super) fn metric(by: &str, stat: &Value) -> MetricUse {
    let dimension = |one: &Value| (text(&one["Name"]), text(&one["Value"]));
    MetricUse {
        by: by.to_owned(),
        namespace: text(&stat["Namespace"]),
        name: text(&stat["MetricName"]),
        dimensions: stat["Dimensions"].as_array().into_iter().flatten().map(dimension).collect(),
    }
}
