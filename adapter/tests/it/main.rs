//! The adapter as a process, over real sockets. `cargo xtask test` gives these tests their engines and database.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cli;
mod execution;
mod fake;
mod gate;
mod given;
mod hostile;
mod observability;
mod oci;
mod protocol;
mod real_packages;
mod samples;
mod support;
mod vectors;
mod vulndb;
