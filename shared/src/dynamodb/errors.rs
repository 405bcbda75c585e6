//! Classifies an error of AWS: the request did nothing, may have done something, or will never succeed.

use std::error::Error;

use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};

use engine::ports::StoreError;

/// Why one attempt of a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was turned away for now and did nothing.
    Busy(String),
    /// No answer, or one that leaves open whether it was carried out.
    Lost(String),
    /// The same request will never succeed.
    Broken(String),
}

/// The codes by which AWS turns a request away for now. `TransactionInProgress` says that an
/// earlier attempt with the same token is still at work.
const BUSY: [&str; 11] = [
    "LimitExceededException",
    "ProvisionedThroughputExceeded",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
];

/// Reads the error of one attempt.
pub(crate) fn failure<E>(error: &SdkError<E>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let text = DisplayErrorContext(error).to_string();
    let Some(answer) = error.as_service_error() else {
        // Without an answer only a request that could not be built surely did nothing.
        let unsent = matches!(error, SdkError::ConstructionFailure(_));
        return if unsent { Failure::Broken(text) } else { Failure::Lost(text) };
    };
    let status = error.raw_response().map_or(0, |response| response.status().as_u16());
    by_answer(answer.code().unwrap_or_default(), status, text)
}

fn by_answer(code: &str, status: u16, text: String) -> Failure {
    if BUSY.contains(&code) || status == 429 {
        Failure::Busy(text)
    } else if status >= 500 || code == "InternalServerError" {
        Failure::Lost(text)
    } else {
        Failure::Broken(text)
    }
}

impl Failure {
    /// What it means for a request that changes nothing: without an answer nothing happened.
    pub(crate) fn of_read(self) -> StoreError {
        match self {
            Self::Busy(text) | Self::Lost(text) => StoreError::Unavailable(text),
            Self::Broken(text) => StoreError::Contract(text),
        }
    }

    /// What it means for a request that changes something.
    pub(crate) fn of_write(self) -> StoreError {
        match self {
            Self::Busy(text) => StoreError::Unavailable(text),
            Self::Lost(text) => StoreError::Unknown(text),
            Self::Broken(text) => StoreError::Contract(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_says_whether_the_request_may_have_happened() {
        let cases = [
            ("ThrottlingException", 400, Failure::Busy(String::new())),
            ("ProvisionedThroughputExceededException", 400, Failure::Busy(String::new())),
            ("", 429, Failure::Busy(String::new())),
            ("InternalServerError", 500, Failure::Lost(String::new())),
            ("", 503, Failure::Lost(String::new())),
            ("ValidationException", 400, Failure::Broken(String::new())),
            ("ResourceNotFoundException", 400, Failure::Broken(String::new())),
        ];
        for (code, status, expected) in cases {
            assert_eq!(by_answer(code, status, String::new()), expected, "{code} {status}");
        }
    }
}
