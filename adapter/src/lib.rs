#![doc = include_str!("../README.md")]

pub mod archive;
pub mod problem;
pub mod recognition;
pub mod run;
