//! Vulnerability database generations: immutable directories, one pointer, many readers without a lock, one writer.

pub mod pointer;
pub mod retire;
pub mod store;
pub mod updater;

pub use store::{DatabaseError, Generation, Store};
pub use updater::{Outcome, UpdateError, UpdatePlan, UpdateSource, update};
