//! Lambda function token-gate.
