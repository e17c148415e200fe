//! The gate beside the readers that Syft uses: both must see the same in the same bytes. `cargo xtask test` builds
//! those readers (`fixtures/differential`).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod compressors;
mod legal;
mod listing;
mod mutated;
mod mutation;
mod packagers;
mod pins;
mod reader;
mod recipe;
mod tars;
mod tree;
mod zips;
