//! Developer commands of this repository: `cargo xtask VERB`. External checks call them, so names stay.

mod adapter;
mod bench;
mod cli;
mod corpus;
mod database;
mod demo;
mod engines;
mod error;
mod fuzz;
mod go_program;
mod http;
mod lint;
mod mutants;
mod needs;
mod process;
mod reader;
mod registries;
mod service;
mod services;
mod suites;
mod table;
mod testing;
mod tidy;
mod workspace;

use std::error::Error as _;
use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("xtask: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprint!(": {error}");
                cause = error.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}
