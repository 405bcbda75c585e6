//! What runs a function: its [`config`], the [`app`] that is built from it, [`metrics`] and
//! [`connections`].

pub mod app;
pub mod config;
pub mod connections;
pub mod metrics;
