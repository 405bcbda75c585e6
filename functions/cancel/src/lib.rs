//! Lambda function cancel.
