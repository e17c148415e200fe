//! `update-database`: updates of the vulnerability database, one or one after another. No credential, no port.

use super::{start, stop_on_signal};
use crate::app::App;
use crate::config::Config;
use crate::problem::error_chain;
use crate::run::{Deadline, RunContext};
use crate::telemetry::{self, OutcomeLabels};
use crate::vulndb::updater::{Outcome, UpdatePlan, UpdateSource, update};
use clap::Args;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Longest update: waiting for the lock, the download and the checks.
const LONGEST: Duration = Duration::from_mins(45);
/// Exit code when another updater holds the lock for too long (`EX_TEMPFAIL`).
const EXIT_BUSY: u8 = 75;

/// Arguments of `update-database`.
#[derive(Debug, Default, Args)]
pub struct UpdateArgs {
    /// Import this database file or archive instead of downloading one; always due.
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
    /// Look again after this time, until SIGTERM; 0 ends after the first look. An import is always the only one.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "KKREPO_SCANNER_DB_UPDATE_CHECK_SECONDS",
        default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=604_800)
    )]
    every: u32,
}

impl UpdateArgs {
    /// Pause between two looks; `None` for one look only.
    fn pause(&self) -> Option<Duration> {
        (self.import.is_none() && self.every > 0).then(|| Duration::from_secs(self.every.into()))
    }
}

/// Updates. Exit codes of a single update: 0 updated or not due, 75 another updater is at it, 1 failed; the old
/// database then stays. With a pause: 0 at SIGTERM or SIGINT; failures are logged and tried again after the pause.
pub fn main(config: Config, args: UpdateArgs) -> ExitCode {
    telemetry::install_logger(&config.log);
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_current_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    runtime.block_on(run(&app, args)).unwrap_or_else(|error| {
        tracing::error!(%error, "signals cannot be watched");
        ExitCode::FAILURE
    })
}

async fn run(app: &App, args: UpdateArgs) -> io::Result<ExitCode> {
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone())?);
    let pause = args.pause();
    let settings = &app.config.database;
    let plan = UpdatePlan {
        source: args.import.map_or(UpdateSource::Download, UpdateSource::Import),
        interval: settings.update_interval,
        lock_timeout: settings.lock_timeout,
    };
    loop {
        let context = RunContext {
            deadline: Deadline::after(LONGEST),
            cancel: stop.clone(),
        };
        let code = once(app, &plan, &context).await;
        let Some(pause) = pause else {
            return Ok(code);
        };
        if stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_none()
        {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

async fn once(app: &App, plan: &UpdatePlan, context: &RunContext) -> ExitCode {
    let outcome = update(&app.scanner.database, &app.scanner.engines, plan, context).await;
    let (outcome, code) = match outcome {
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

#[cfg(test)]
mod tests {
    use super::UpdateArgs;
    use std::time::Duration;

    #[test]
    fn only_downloads_are_repeated() {
        let arguments = |import: Option<&str>, every| UpdateArgs {
            import: import.map(Into::into),
            every,
        };
        assert_eq!(arguments(None, 0).pause(), None);
        assert_eq!(arguments(None, 300).pause(), Some(Duration::from_mins(5)));
        assert_eq!(arguments(Some("a.db"), 300).pause(), None);
    }
}
