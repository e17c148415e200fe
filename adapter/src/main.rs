//! The adapter executable. All logic is in the library.

use assay_adapter::{cli, engine::launcher};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: as launcher this process becomes an engine.
    launcher::dispatch(std::env::args_os()).unwrap_or_else(cli::main)
}
