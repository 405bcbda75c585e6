//! The engine on one machine: its servers, the gateway and the event sources.

pub mod concurrency;
pub mod data_dir;
mod dir_lock;
pub mod endpoints;
pub mod environment;
pub mod event_sources;
pub mod gateway;
pub mod handlers;
pub mod kept_metrics;
pub mod merchants;
pub mod open_files;
pub mod pages_config;
pub mod payment;
pub mod queues;
pub mod servers;
pub mod stores;
pub mod throttled;
pub mod up;
