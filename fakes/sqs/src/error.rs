//! Refusals of SQS: one kind per documented error, with the three forms the
//! wire needs (the type in the body, the code in the `x-amzn-query-error` header, the status).
//!
//! Source: the errors of the Amazon SQS API Reference and the `awsQueryError` codes of its
//! published model; clients of both generations read one or the other form.

/// A refusal: its kind and the sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", kind.code())]
pub(crate) struct SqsError {
    pub kind: ErrorKind,
    /// The sentence shown to people.
    pub message: String,
}

impl SqsError {
    /// A refusal of this kind with this sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        SqsError { kind, message: message.into() }
    }

    /// The refusal of a parameter's value, worded as SQS words it.
    pub fn invalid_value(value: impl std::fmt::Display, parameter: &str, reason: &str) -> Self {
        Self::new(
            ErrorKind::InvalidParameterValue,
            format!("Value {value} for parameter {parameter} is invalid. Reason: {reason}"),
        )
    }

    /// The refusal of a request that lacks a parameter.
    pub fn missing(parameter: &str) -> Self {
        Self::new(
            ErrorKind::MissingParameter,
            format!("The request must contain the parameter {parameter}."),
        )
    }

    /// The refusal of a queue that is not there.
    pub fn no_queue() -> Self {
        Self::new(ErrorKind::QueueDoesNotExist, "The specified queue does not exist.")
    }
}

/// The documented errors that this server answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Two entries of a batch share an id.
    BatchEntryIdsNotDistinct,
    /// The messages of a batch are too long together.
    BatchRequestTooLong,
    /// A batch without entries.
    EmptyBatchRequest,
    /// The request failed here, not at the caller's.
    Internal,
    /// A queue URL that names no queue.
    InvalidAddress,
    /// An attribute SQS does not have, or that cannot be set.
    InvalidAttributeName,
    /// An attribute's value is out of range.
    InvalidAttributeValue,
    /// A batch entry's id has characters it may not have.
    InvalidBatchEntryId,
    /// A message body with characters SQS does not carry.
    InvalidMessageContents,
    /// A parameter's value is out of range.
    InvalidParameterValue,
    /// The visibility of a message nobody holds cannot be changed.
    MessageNotInflight,
    /// A required parameter is absent.
    MissingParameter,
    /// Too many messages are in flight.
    OverLimit,
    /// A queue can be purged once in sixty seconds.
    PurgeQueueInProgress,
    /// A queue's name is free again sixty seconds after its deletion.
    QueueDeletedRecently,
    /// No queue has this name.
    QueueDoesNotExist,
    /// The name is taken by a queue with other attributes.
    QueueNameExists,
    /// A receipt handle that was never given out for this queue.
    ReceiptHandleIsInvalid,
    /// The body is larger than any request may be.
    RequestTooLarge,
    /// No queue or task behind this ARN or handle.
    ResourceNotFound,
    /// The body is not the JSON of the operation.
    Serialization,
    /// A batch of more than ten entries.
    TooManyEntriesInBatchRequest,
    /// The operation does not exist.
    UnknownOperation,
    /// The operation exists at Amazon and not here.
    UnsupportedOperation,
}

impl ErrorKind {
    /// The shape name, as the body's `__type` carries it after the namespace.
    pub fn shape(self) -> &'static str {
        match self {
            ErrorKind::BatchEntryIdsNotDistinct => "BatchEntryIdsNotDistinct",
            ErrorKind::BatchRequestTooLong => "BatchRequestTooLong",
            ErrorKind::EmptyBatchRequest => "EmptyBatchRequest",
            ErrorKind::Internal => "InternalFailure",
            ErrorKind::InvalidAddress => "InvalidAddress",
            ErrorKind::InvalidAttributeName => "InvalidAttributeName",
            ErrorKind::InvalidAttributeValue => "InvalidAttributeValue",
            ErrorKind::InvalidBatchEntryId => "InvalidBatchEntryId",
            ErrorKind::InvalidMessageContents => "InvalidMessageContents",
            ErrorKind::InvalidParameterValue => "InvalidParameterValueException",
            ErrorKind::MessageNotInflight => "MessageNotInflight",
            ErrorKind::MissingParameter => "MissingRequiredParameterException",
            ErrorKind::OverLimit => "OverLimit",
            ErrorKind::PurgeQueueInProgress => "PurgeQueueInProgress",
            ErrorKind::QueueDeletedRecently => "QueueDeletedRecently",
            ErrorKind::QueueDoesNotExist => "QueueDoesNotExist",
            ErrorKind::QueueNameExists => "QueueNameExists",
            ErrorKind::ReceiptHandleIsInvalid => "ReceiptHandleIsInvalid",
            ErrorKind::RequestTooLarge => "RequestEntityTooLargeException",
            ErrorKind::ResourceNotFound => "ResourceNotFoundException",
            ErrorKind::Serialization => "SerializationException",
            ErrorKind::TooManyEntriesInBatchRequest => "TooManyEntriesInBatchRequest",
            ErrorKind::UnknownOperation => "UnknownOperationException",
            ErrorKind::UnsupportedOperation => "UnsupportedOperation",
        }
    }

    /// The body's `__type`: errors of the model live in the service's namespace, those of the
    /// framework below it in the framework's.
    pub fn type_name(self) -> String {
        let namespace = match self {
            ErrorKind::Internal
            | ErrorKind::InvalidParameterValue
            | ErrorKind::MissingParameter
            | ErrorKind::RequestTooLarge
            | ErrorKind::Serialization
            | ErrorKind::UnknownOperation => "com.amazon.coral.service",
            ErrorKind::BatchEntryIdsNotDistinct
            | ErrorKind::BatchRequestTooLong
            | ErrorKind::EmptyBatchRequest
            | ErrorKind::InvalidAddress
            | ErrorKind::InvalidAttributeName
            | ErrorKind::InvalidAttributeValue
            | ErrorKind::InvalidBatchEntryId
            | ErrorKind::InvalidMessageContents
            | ErrorKind::MessageNotInflight
            | ErrorKind::OverLimit
            | ErrorKind::PurgeQueueInProgress
            | ErrorKind::QueueDeletedRecently
            | ErrorKind::QueueDoesNotExist
            | ErrorKind::QueueNameExists
            | ErrorKind::ReceiptHandleIsInvalid
            | ErrorKind::ResourceNotFound
            | ErrorKind::TooManyEntriesInBatchRequest
            | ErrorKind::UnsupportedOperation => "com.amazonaws.sqs",
        };
        format!("{namespace}#{}", self.shape())
    }

    /// The code of the older protocol, which the `x-amzn-query-error` header and the failed
    /// entries of a batch carry.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::BatchEntryIdsNotDistinct => {
                "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"
            }
            ErrorKind::BatchRequestTooLong => "AWS.SimpleQueueService.BatchRequestTooLong",
            ErrorKind::EmptyBatchRequest => "AWS.SimpleQueueService.EmptyBatchRequest",
            ErrorKind::Internal => "InternalFailure",
            ErrorKind::InvalidAddress => "InvalidAddress",
            ErrorKind::InvalidAttributeName => "InvalidAttributeName",
            ErrorKind::InvalidAttributeValue => "InvalidAttributeValue",
            ErrorKind::InvalidBatchEntryId => "AWS.SimpleQueueService.InvalidBatchEntryId",
            ErrorKind::InvalidMessageContents => "InvalidMessageContents",
            ErrorKind::InvalidParameterValue => "InvalidParameterValue",
            ErrorKind::MessageNotInflight => "AWS.SimpleQueueService.MessageNotInflight",
            ErrorKind::MissingParameter => "MissingParameter",
            ErrorKind::OverLimit => "OverLimit",
            ErrorKind::PurgeQueueInProgress => "AWS.SimpleQueueService.PurgeQueueInProgress",
            ErrorKind::QueueDeletedRecently => "AWS.SimpleQueueService.QueueDeletedRecently",
            ErrorKind::QueueDoesNotExist => "AWS.SimpleQueueService.NonExistentQueue",
            ErrorKind::QueueNameExists => "QueueAlreadyExists",
            ErrorKind::ReceiptHandleIsInvalid => "ReceiptHandleIsInvalid",
            ErrorKind::RequestTooLarge => "RequestEntityTooLarge",
            ErrorKind::ResourceNotFound => "ResourceNotFoundException",
            ErrorKind::Serialization => "SerializationException",
            ErrorKind::TooManyEntriesInBatchRequest => {
                "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
            }
            ErrorKind::UnknownOperation => "UnknownOperationException",
            ErrorKind::UnsupportedOperation => "AWS.SimpleQueueService.UnsupportedOperation",
        }
    }

    pub fn status(self) -> u16 {
        match self {
            ErrorKind::Internal => 500,
            ErrorKind::OverLimit | ErrorKind::PurgeQueueInProgress => 403,
            ErrorKind::InvalidAddress
            | ErrorKind::ReceiptHandleIsInvalid
            | ErrorKind::ResourceNotFound => 404,
            ErrorKind::RequestTooLarge => 413,
            ErrorKind::BatchEntryIdsNotDistinct
            | ErrorKind::BatchRequestTooLong
            | ErrorKind::EmptyBatchRequest
            | ErrorKind::InvalidAttributeName
            | ErrorKind::InvalidAttributeValue
            | ErrorKind::InvalidBatchEntryId
            | ErrorKind::InvalidMessageContents
            | ErrorKind::InvalidParameterValue
            | ErrorKind::MessageNotInflight
            | ErrorKind::MissingParameter
            | ErrorKind::QueueDeletedRecently
            | ErrorKind::QueueDoesNotExist
            | ErrorKind::QueueNameExists
            | ErrorKind::Serialization
            | ErrorKind::TooManyEntriesInBatchRequest
            | ErrorKind::UnknownOperation
            | ErrorKind::UnsupportedOperation => 400,
        }
    }

    /// True if the caller is at fault, as the header and a batch's failed entry say.
    pub fn sender_fault(self) -> bool {
        self.status() < 500
    }
}
