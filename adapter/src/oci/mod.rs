//! Staging of images: from a digest in a registry to verified blobs on disk, held to the same budgets as any artifact.
//!
//! `document`, `platform`, `select`, `meter`, `endpoint` and `address` are pure: they read manifests, decide which
//! images are scanned, and say what may be asked and where. `registry` asks, `stage` tells the story and `layout` writes
//! what the cataloguer reads.
//!
//! **Invariant:** only `registry` opens connections, by digest only, to one origin only. A blob has its final name only
//! when its size and its digest are right, and the name is that digest.

pub mod address;
pub mod digest;
pub mod document;
pub mod endpoint;
pub mod error;
pub mod layout;
pub mod meter;
pub mod platform;
pub mod registry;
pub mod select;
pub mod stage;

mod layers;
mod strict;
pub(crate) mod trust;

pub use digest::Digest;
pub use error::OciError;
pub use platform::Platform;
pub use registry::Registries;
