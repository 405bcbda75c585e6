//! Lambda function sales.
