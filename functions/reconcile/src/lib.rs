//! Lambda function reconcile.
