//! Lambda function reserve.
