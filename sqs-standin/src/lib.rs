//! A small stand-in for Amazon SQS.
