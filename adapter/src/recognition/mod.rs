//! Recognition.
pub mod distribution;
pub mod form;
pub mod identity;
pub mod manifest;
