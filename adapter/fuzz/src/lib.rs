//! What the fuzz targets check, and how they change their inputs.
//!
//! Nothing here needs the fuzzer: the tests of the adapter replay the committed inputs through the same functions on
//! the stable toolchain, so this folder is a module there and its own crate for the fuzzer.

mod build;
mod compress;
mod document;
mod gate;
mod heap;
mod mutate;
mod oci;
mod repair;
mod target;

pub use compress::decompress;
pub use heap::begin;
pub use target::Target;
