//! What is let in, and what functions reach.

use serde_json::{Value, json};

use super::{Check, edit, is_true, is_without_redis, number, text, unless};
use crate::template::permissions::list;
use crate::template::stack::Stack;

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "nothing is let in from an address, and nothing made is public",
        faults: exposure,
        with: &[],
        mistakes: &[
            edit(
                "  CacheFromFunctions:",
                "SourceSecurityGroupId: !Ref FunctionSecurityGroup",
                "CidrIp: 0.0.0.0/0",
            ),
            edit("  EndpointFromFunctions:", "FromPort: 443", "FromPort: 0"),
            edit(
                "  FunctionSecurityGroup:",
                "      SecurityGroupEgress:",
                "      SecurityGroupIngress: [{ IpProtocol: tcp, FromPort: 22, ToPort: 22, CidrIp: 10.0.0.0/8 }]\n      SecurityGroupEgress:",
            ),
            edit(
                "  PrivateSubnetA:",
                "      VpcId: !Ref Vpc\n",
                "      VpcId: !Ref Vpc\n      MapPublicIpOnLaunch: true\n",
            ),
            edit("  WayOutA:", "NatGatewayId: !Ref NatA", "GatewayId: !Ref InternetGateway"),
            edit(
                "  RefundFunction:",
                "      Timeout: 30\n",
                "      Timeout: 30\n      FunctionUrlConfig: { AuthType: NONE }\n",
            ),
        ],
    },
    Check {
        rule: "functions reach their stores and nothing else; two of them a provider of challenges",
        faults: ways_out,
        with: &[],
        mistakes: &[
            edit(
                "  FunctionSecurityGroup:",
                "DestinationPrefixListId: !Ref DynamoDbPrefixListId",
                "CidrIp: 0.0.0.0/0",
            ),
            edit(
                "  FunctionSecurityGroup:",
                "FromPort: 6379, ToPort: 6380",
                "FromPort: 0, ToPort: 65535",
            ),
            edit(
                "  CacheSecurityGroup:",
                "      SecurityGroupEgress: [{ Description: Nothing, IpProtocol: \"-1\", CidrIp: 127.0.0.1/32 }]\n",
                "",
            ),
            edit(
                "  ReserveFunction:",
                "[!Ref FunctionSecurityGroup]",
                "[!Ref FunctionSecurityGroup, !Ref ProviderSecurityGroup]",
            ),
            edit("  SqsEndpoint:", "[sqs:SendMessage, sqs:GetQueueAttributes]", "\"sqs:*\""),
            edit("  DynamoDbEndpoint:", "${Stage}-onsale-*", "*"),
            edit("  SqsEndpoint:", "PrivateDnsEnabled: true", "PrivateDnsEnabled: false"),
            edit("  SqsEndpoint:", "            Condition: {", "            Sid: a # {"),
        ],
    },
];

fn exposure(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |name: &str, rule: &Value| {
        let ports = (number(&rule["FromPort"]), number(&rule["ToPort"]));
        let expected = [(Some(443), Some(443)), (Some(6379), Some(6380))];
        let from = stack.behind(&rule["SourceSecurityGroupId"]).map(|(name, _)| name);
        faults.extend(unless(
            name,
            [
                (from == Some("FunctionSecurityGroup"), "lets in what is no function of ours"),
                (rule["IpProtocol"] == "tcp" && expected.contains(&ports), "opens other ports"),
            ],
        ));
    };
    for (name, rule) in stack.all("AWS::EC2::SecurityGroupIngress") {
        check(name, rule);
    }
    for (name, group) in stack.all("AWS::EC2::SecurityGroup") {
        group["SecurityGroupIngress"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|rule| check(name, rule));
    }
    for (name, subnet) in stack.all("AWS::EC2::Subnet") {
        let is_public = is_true(&subnet["MapPublicIpOnLaunch"]);
        faults.extend(unless(name, [(!is_public, "gives out public addresses")]));
    }
    for (name, route) in stack.all("AWS::EC2::Route") {
        let to_internet = route["GatewayId"].is_string();
        let is_public = text(&route["RouteTableId"]) == "${PublicRoutes}";
        faults.extend(unless(name, [(to_internet == is_public, "leads to the internet")]));
    }
    let urls = stack.all("AWS::Lambda::Url").count();
    faults.extend(unless("functions", [(urls == 0, "one has an address of its own")]));
    faults
}

fn ways_out(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, group) in stack.all("AWS::EC2::SecurityGroup") {
        let rules = group["SecurityGroupEgress"].as_array().cloned().unwrap_or_default();
        faults.extend(unless(name, [(!rules.is_empty(), "lets everything out")]));
        for rule in &rules {
            let ports = (number(&rule["FromPort"]), number(&rule["ToPort"]));
            let is_narrow =
                match (text(&rule["CidrIp"]), stack.behind(&rule["DestinationSecurityGroupId"])) {
                    ("127.0.0.1/32", _) => true,
                    ("0.0.0.0/0", _) => {
                        name == "ProviderSecurityGroup" && ports == (Some(443), Some(443))
                    }
                    (_, Some(("CacheSecurityGroup", _))) => ports == (Some(6379), Some(6380)),
                    (_, Some(("EndpointSecurityGroup", _))) => ports == (Some(443), Some(443)),
                    _ => {
                        rule["DestinationPrefixListId"] == "pl-0123abcd"
                            && ports == (Some(443), Some(443))
                    }
                };
            faults.extend(unless(name, [(is_narrow, "lets too much out")]));
        }
    }
    let has_way_out = stack.parameters["WayOut"] != "none";
    let has_siteverify = !stack.parameters["SiteverifySecretsSecretArn"].is_empty();
    for (binary, _, function) in stack.functions() {
        let groups = function["VpcConfig"]["SecurityGroupIds"].as_array();
        let has = |group: &str| {
            groups.is_some_and(|groups| groups.contains(&json!(format!("${{{group}}}"))))
        };
        let verifies = ["token-gate", "waiting-room"].contains(&binary) && has_siteverify;
        let asks = verifies && has_way_out;
        faults.extend(unless(
            binary,
            [
                (has("ProviderSecurityGroup") == asks, "reaches the provider, or does not"),
                (
                    has("FunctionSecurityGroup") != is_without_redis(binary),
                    "is in the network for nothing, or is not",
                ),
            ],
        ));
    }
    for (name, endpoint) in stack.all("AWS::EC2::VPCEndpoint") {
        let is_interface = endpoint["VpcEndpointType"] == "Interface";
        faults.extend(unless(
            name,
            [(is_true(&endpoint["PrivateDnsEnabled"]) == is_interface, "is not found")],
        ));
        for statement in endpoint["PolicyDocument"]["Statement"].as_array().into_iter().flatten() {
            let actions = list(&statement["Action"]);
            let stage = format!("{}-onsale-*", stack.parameters["Stage"]);
            let merchants = &stack.parameters["MerchantsSecretArn"];
            let is_ours = |arn: &String| {
                arn.ends_with(&stage) || (name == "SecretsEndpoint" && arn == merchants)
            };
            let is_ours = list(&statement["Resource"]).iter().all(is_ours);
            let account = json!({ "StringEquals": { "aws:PrincipalAccount": "000000000000" } });
            faults.extend(unless(
                name,
                [
                    (actions.iter().all(|action| !action.contains('*')), "allows every action"),
                    (is_ours, "leads to what is not ours"),
                    (statement["Condition"] == account, "lets other accounts through"),
                ],
            ));
        }
    }
    let secrets = usize::from(!stack.parameters["MerchantsSecretArn"].is_empty());
    let made = if stack.parameters["VpcId"].is_empty() { 2 + secrets } else { 0 };
    let endpoints = stack.all("AWS::EC2::VPCEndpoint").count();
    faults.extend(unless("endpoints", [(endpoints == made, "there are others")]));
    faults
}
