//! The adapter as a process, over real sockets. `cargo xtask test` gives these tests their engines and database.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cli;
mod execution;
mod fake;
mod given;
mod oci;
mod protocol;
mod samples;
mod support;
mod vectors;
