#![doc = include_str!("../README.md")]

pub mod archive;
pub mod problem;
pub mod report;
pub mod run;
