//! Lambda function sync-db.
