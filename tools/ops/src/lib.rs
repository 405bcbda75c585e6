//! What operators ask of a sale, safe on production: the audit of its invariants, and the dead-letter
//! queues.

pub mod audit;
pub mod dead_letters;
