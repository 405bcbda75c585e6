//! Lambda function expire-orders.
