#![doc = include_str!("../README.md")]

pub mod admission;
pub mod app;
pub mod archive;
pub mod cli;
pub mod config;
pub mod http;
pub mod operation;
pub mod problem;
pub mod recognition;
pub mod run;
pub mod runs;
pub mod scanner;
pub mod telemetry;
pub mod workspace;
