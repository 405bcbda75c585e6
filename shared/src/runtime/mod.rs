//! What runs a function: the table of [`functions`], a function's [`config`], the [`app`] that is
//! built from it, the entry of [`callbacks`], [`metrics`] and [`connections`].

pub mod app;
pub mod callbacks;
pub mod config;
pub mod connections;
pub mod edge;
pub mod functions;
pub mod given_up;
pub mod listed_secrets;
pub mod merchants;
pub mod metrics;
mod secret_document;
