//! Integration tests against real servers; one binary, one module a subject.

#![allow(
    clippy::expect_used,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod alarms;
mod audit;
mod backends;
mod beacon;
mod bench_http;
mod bench_sales;
mod bench_scripts;
mod bills;
mod capacity_commands;
mod chaos;
mod command_lines;
mod cost;
mod deadlines;
mod described;
mod edge;
mod event_sources;
mod figures;
mod flows;
mod gtfs;
mod handlers;
mod hazards;
mod hostile;
mod importers;
mod kill;
mod lambda;
mod limits;
mod load_test;
mod metrics;
mod money_commands;
mod money_reports;
mod openapi;
mod people;
mod program;
mod provider;
mod queue;
mod rehearsal;
mod repair_commands;
mod room_commands;
mod runbook;
mod samples;
mod scripts;
mod servers;
mod sign_in;
mod store;
mod store_model;
mod stripe_signature;
mod template;
mod ticket_commands;
mod tour;
mod up;
mod verify_draw;
mod webhooks;
