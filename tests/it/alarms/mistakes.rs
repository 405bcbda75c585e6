//! Planted mistakes, each with the fault that it must lead to.

/// A mistake: the text that is replaced where it first occurs in the section, its replacement, and a part
/// of the fault that must then be found. Empty if the replacement is no mistake, and nothing may be found.
type Mistake = (&'static str, &'static str, &'static str);

/// Mistakes in the template.
pub(super) const OF_TEMPLATE: &[Mistake] = &[
    ("MetricName: DriftFound", "MetricName: Drift", "nobody writes Onsale Drift"),
    ("MetricName: TransactionFailures", "MetricName: Failures", "nobody writes Onsale Failures"),
    (
        "{ Name: Reason, Value: invalid }",
        "{ Name: Sale, Value: invalid }",
        "nobody writes Onsale PaymentsRefused",
    ),
    (
        "{ Name: Reason, Value: invalid }",
        "{ Name: Reason, Value: wrong }",
        "Reason wrong, which there is not",
    ),
    (
        "{ Name: Function, Value: reserve }",
        "{ Name: Function, Value: buy }",
        "Function buy, which there is not",
    ),
    (
        "docs/runbook.md#drift-found",
        "docs/runbook.md#drift",
        "DriftFound: no section of the runbook",
    ),
    ("Threshold: 1000", "Threshold: 10000", "ExpiryQueueBacklog: another threshold"),
    ("Threshold: 0.1", "Threshold: 1", "TransactionFailures: another threshold"),
    ("Threshold: 120\n", "Threshold: 130\n", "TurnsLate: another threshold"),
    ("SUM([failed, blind])", "SUM([failed])", "RoomsStalled: SUM([failed])"),
    ("MetricName: TurnsHalted", "MetricName: TurnsHeld", "nobody writes Onsale TurnsHeld"),
    ("\"RoomServing\"", "\"RoomPassed\"", "does not show RoomServing by Sale"),
    ("100 * failures / transactions", "100 * failed / transactions", "TransactionFailures: IF"),
    ("{ Id: held, ReturnData: false,", "{ Id: held,", "more than the expression is returned"),
    (
        "Name: QueueName, Value: !GetAtt RefundQueue.QueueName",
        "Name: QueueName, Value: !GetAtt SyncQueue.QueueName",
        "of RefundQueue",
    ),
    (
        "Name: FunctionName, Value: !Ref OrdersFunction",
        "Name: FunctionName, Value: !Ref SalesFunction",
        "no alarm watches Errors of OrdersFunction",
    ),
    ("DatapointsToAlarm: 2", "DatapointsToAlarm: 4", "more data points than periods"),
    ("TreatMissingData: breaching", "TreatMissingData: ignore", "ReconcileMissing: missing data"),
    ("-onsale-sync-queue-old", "-onsale-expiry-queue-old", "another alarm has its name"),
    (
        "KmsMasterKeyId: !Ref AlarmKey",
        "KmsMasterKeyId: alias/aws/sns",
        "the topic is not encrypted",
    ),
    (
        "Action: [kms:Decrypt, kms:GenerateDataKey]",
        "Action: kms:Decrypt",
        "the key lets no alarm publish",
    ),
    ("\"HeldTickets\"", "\"Tickets\"", "nobody writes Onsale Tickets"),
    (
        "\"Sale\", \"-\", {\"label\": \"tickets sold\"",
        "{\"label\": \"tickets sold\"",
        "does not show PaidTickets by Sale",
    ),
    ("MetricName=\\\"Refused\\\"", "MetricName=\\\"Held\\\"", "nobody writes Onsale Held"),
    ("\"stat\": \"p99\"", "\"stat\": \"p90\"", ""),
    ("\"property\": \"Sale\"", "\"property\": \"Function\"", "does not choose a sale"),
    ("\"x\": 8, ", "\"x\": 7, ", "lies over another widget"),
    ("\"view\": \"timeSeries\", ", "", "no view"),
    ("\"start\": \"-PT3H\",", "\"start\": \"-PT3H\"", "the dashboard is no JSON"),
    ("ONSALE_METRICS: emf", "ONSALE_METRICS: none", "the functions write no metrics"),
    ("AllowedValues: [DEBUG, INFO]", "AllowedValues: [INFO, WARN]", "a log level would drop"),
];

/// Mistakes in the runbook.
pub(super) const OF_RUNBOOK: &[Mistake] = &[
    ("## cold-starts\n", "## cold-start\n", "ColdStarts: no section of the runbook"),
    ("# Stores\n", "## sleep\n\n**Means.** **Look at.** **Do.**\n", "section sleep is of no alarm"),
    ("**Do.** Raise the quota", "Raise the quota", "section function-throttles lacks **Do.**"),
];
