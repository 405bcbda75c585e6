//! Proxies in front of the servers, for what networks and services do and servers on one machine
//! never do: lose a reply, cut a connection, answer late or twice, throttle, refuse.

pub mod faults;
pub mod http;
pub mod pipe;
