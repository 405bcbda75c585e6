//! Lambda function orders.
