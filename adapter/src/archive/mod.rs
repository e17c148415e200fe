//! The gate: reads an artifact under one budget and tells a sink what is inside. It extracts nothing.
//!
//! **Invariant:** no file is created under a name that an artifact chose. Nested archives whose truth is at their end
//! (ZIP) are copied to an unnamed temporary file; everything else is read in place.
//!
//! One reader module per format turns bytes into entries; they share `level`, where names are checked and entries and
//! bytes are charged, and `open`, where archives inside are opened. `gate` is where it begins. `budget`, `path`, `links`, `sniff` and `tar_header` are pure.

pub mod budget;
pub mod declared;
pub mod entry;
pub mod error;
pub mod path;
pub mod sniff;

mod ar;
mod compressed;
mod cpio;
mod gate;
mod level;
mod links;
mod open;
mod rpm_package;
mod stream;
mod tar_header;
mod tar_reader;
mod tar_sparse;
mod zip_directory;
mod zip_reader;

#[cfg(test)]
mod tests;

pub use budget::GateLimits;
pub use entry::{Container, Discard, Entry, EntryKind, EntrySink, Interest};
pub use error::GateError;
pub use gate::{Inspection, Profile, Session, inspect};
pub use sniff::Format;

/// Most bytes that a byte of input may expand to.
pub const EXPANSION_RATIO: u64 = 1000;
/// Whatever the ratio says, so many bytes may come out: small files compress well.
pub const ENTRY_RATIO_FLOOR_BYTES: u64 = 1 << 20;
/// Most memory of one decompressor: its dictionary or window, bytes.
pub const DECODER_MEMORY_BYTES: u64 = 128 << 20;
/// Most bytes of one record about another entry (long name, pax header, name table).
pub const META_RECORD_BYTES: u64 = 1 << 20;
