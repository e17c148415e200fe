//! The adapter executable. All logic is in the library.

use assay_adapter::{cli, engine::cage};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this process may be an engine's supervisor, or become an engine.
    cage::dispatch(std::env::args_os()).unwrap_or_else(cli::main)
}
