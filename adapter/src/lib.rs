#![doc = include_str!("../README.md")]

pub mod archive;
pub mod engine;
pub mod problem;
pub mod run;
pub mod sbom;
pub mod vulndb;
