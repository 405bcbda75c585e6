//! Integration tests against real servers; one binary, one module a subject.

mod servers;
