//! What runs a function: the table of [`functions`], a function's [`config`], the [`app`] that is
//! built from it, [`metrics`] and [`connections`].

pub mod app;
pub mod config;
pub mod connections;
pub mod functions;
pub mod metrics;
