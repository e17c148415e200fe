//! `update-database`: one update of the vulnerability database, then exit. No credential, no port.

use super::start;
use crate::app::App;
use crate::config::Config;
use crate::problem::error_chain;
use crate::run::RunContext;
use crate::telemetry::{self, OutcomeLabels};
use crate::vulndb::updater::{Outcome, UpdatePlan, UpdateSource, update};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Longest update: waiting for the lock, the download and the checks.
const LONGEST: Duration = Duration::from_secs(45 * 60);
/// Exit code when another updater holds the lock for too long (`EX_TEMPFAIL`).
const EXIT_BUSY: u8 = 75;

/// Arguments of `update-database`.
#[derive(Debug, Default, Args)]
pub struct UpdateArgs {
    /// Import this database file or archive instead of downloading one; always due.
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
}

/// Updates. Exit codes: 0 updated or not due, 75 another updater is at it, 1 failed; the old database then stays.
pub fn main(config: Config, args: UpdateArgs) -> ExitCode {
    telemetry::install_logger(&config.log);
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_current_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    runtime.block_on(run(&app, args))
}

async fn run(app: &App, args: UpdateArgs) -> ExitCode {
    let settings = &app.config.database;
    let plan = UpdatePlan {
        source: args.import.map_or(UpdateSource::Download, UpdateSource::Import),
        interval: settings.update_interval,
        lock_timeout: settings.lock_timeout,
    };
    let context = RunContext::with_timeout(LONGEST);
    let (outcome, code) = match update(&app.scanner.database, &app.scanner.engines, &plan, &context).await {
        Ok(outcome) => {
            if let Outcome::Updated(generation, provenance) = &outcome {
                tracing::info!(generation = generation.name.as_str(), built = %provenance.built, "published");
            }
            let code = if outcome == Outcome::Busy {
                ExitCode::from(EXIT_BUSY)
            } else {
                ExitCode::SUCCESS
            };
            (outcome.label(), code)
        }
        Err(error) => {
            let cause = error_chain(&error);
            tracing::error!(code = %error.code(), cause, "the database was not updated: {error}");
            ("failed", ExitCode::FAILURE)
        }
    };
    app.metrics
        .database_updates
        .get_or_create(&OutcomeLabels { outcome })
        .inc();
    tracing::info!(outcome, "database update ended");
    code
}
