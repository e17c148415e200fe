//! The adapter executable. All logic is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    assay_adapter::cli::main()
}
