//! Vulnerability database generations: immutable directories, one pointer, many readers that each hold what they read,
//! one writer.

mod cleanup;
pub mod disk;
pub mod layout;
pub mod lock;
pub mod pin;
pub mod pointer;
pub mod publish;
pub mod record;
pub mod retire;
pub mod store;
pub mod updater;

#[cfg(test)]
mod crash_tests;

pub use layout::Layout;
pub use pin::Pin;
pub use store::{DatabaseError, Generation, Store};
pub use updater::{Outcome, UpdateError, UpdatePlan, UpdateSource, update};
