//! WeChat Pay v3.

mod event;
mod refund;
pub(crate) mod resource;
pub(in crate::providers) mod signature;
mod transaction;
