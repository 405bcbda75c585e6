//! The model of the Redis inventory.
