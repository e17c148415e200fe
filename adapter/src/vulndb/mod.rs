//! Vulnerability database generations: immutable directories, one pointer, many readers that each hold what they read,
//! one writer.

mod attempt;
pub mod canary;
mod cleanup;
pub mod disk;
pub mod distribution;
pub mod export;
pub mod inspect;
pub mod layout;
pub mod lock;
pub mod pin;
pub mod pointer;
pub mod publish;
pub mod record;
pub mod retire;
pub mod source;
pub mod store;
pub mod trial;
pub mod updater;

#[cfg(test)]
mod crash_tests;

pub use layout::Layout;
pub use pin::Pin;
pub use store::{DatabaseError, Generation, Store, WriteLock};
pub use updater::{Outcome, Rejection, Request, UpdateError, UpdatePlan, update};
