//! `check`: the effective configuration, and what is missing to be ready.

use super::start;
use crate::config::{Config, Resolved};
use crate::operation::status;
use std::process::ExitCode;

/// Prints and probes. Exit codes: 0 ready to serve, 1 something is missing.
pub fn main(config: Config, resolved: &Resolved) -> ExitCode {
    for line in resolved.lines() {
        println!("{line}");
    }
    let mut missing: Vec<String> = config
        .missing_to_serve()
        .iter()
        .map(ToString::to_string)
        .collect();
    for warning in &resolved.warnings {
        println!("warning: {warning}");
    }
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_current_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    let readiness = runtime.block_on(status::readiness(&app));
    if readiness.ready {
        for (name, value) in &readiness.details {
            println!("{name}: {value}");
        }
        println!(
            "vulnerabilityDatabaseRevision: {}",
            readiness.vulnerability_database_revision
        );
    } else {
        missing.extend(
            readiness
                .details
                .values()
                .map(|reason| format!("not ready: {reason}")),
        );
    }
    if missing.is_empty() {
        println!("ready to serve");
        return ExitCode::SUCCESS;
    }
    for line in missing {
        println!("missing: {line}");
    }
    ExitCode::FAILURE
}
