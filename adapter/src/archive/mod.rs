//! The gate: reads an artifact under one budget and tells a sink what is inside. It extracts nothing.
//!
//! **Invariant:** no file is created under a name that an artifact chose.

pub mod entry;

pub use entry::{Container, Discard, Entry, EntryKind, EntrySink, Interest};
