//! Writes `openapi.yaml` and `json/*.schema.json` beside this crate, or with `--check` says whether they drifted.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => match assay_schemas::generate::write(directory) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("generate-schemas: {error}");
                ExitCode::FAILURE
            }
        },
        ["--check"] => {
            let drift = assay_schemas::generate::drift(directory);
            for difference in &drift {
                eprintln!("generate-schemas: {difference}");
            }
            if drift.is_empty() {
                ExitCode::SUCCESS
            } else {
                eprintln!("generate-schemas: run it without --check and commit the result");
                ExitCode::FAILURE
            }
        }
        _ => {
            eprintln!("usage: generate-schemas [--check]");
            ExitCode::from(64)
        }
    }
}
