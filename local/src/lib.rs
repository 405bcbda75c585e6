//! Onsale on one machine.

pub mod audit;
pub mod bench;
pub mod chaos;
pub mod cli;
pub mod cost;
pub mod cpu;
pub mod data_dir;
pub mod dead_letters;
pub mod demo;
pub mod endpoints;
pub mod environment;
pub mod event_sources;
pub mod gateway;
pub mod identity;
pub mod importers;
pub mod openapi;
mod owned_dir;
pub mod payment;
pub mod queues;
pub mod replay;
pub mod reporting;
pub mod rush;
pub mod servers;
pub mod stores;
pub mod up;
