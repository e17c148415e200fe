//! The adapter executable.

use assay_adapter::engine::launcher;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: as launcher this process becomes an engine.
    if let Some(code) = launcher::dispatch(std::env::args_os()) {
        return code;
    }
    ExitCode::SUCCESS
}
