//! Lambda function pay-callback.
