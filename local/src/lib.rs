//! The engine on one machine: its servers, the gateway, the event sources and all that they share.

pub mod data_dir;
pub mod endpoints;
pub mod environment;
pub mod event_sources;
pub mod gateway;
pub mod handlers;
pub mod identity;
mod owned_dir;
pub mod payment;
pub mod queues;
pub mod servers;
pub mod stores;
pub mod up;
