#![doc = include_str!("../README.md")]

pub mod admission;
pub mod archive;
pub mod config;
pub mod problem;
pub mod run;
pub mod runs;
pub mod telemetry;
pub mod workspace;
