//! `template.yaml` as AWS would apply it: translated to CloudFormation for each stage, and held
//! against what no linter knows. Every check is shown at work on a template with a planted mistake.

mod checks;
mod deployed;
mod docs;
mod edge_functions;
mod linters;
mod pages_deployment;
mod permissions;
mod recorder;
mod released;
mod stack;
mod tables;
