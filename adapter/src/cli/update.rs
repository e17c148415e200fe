//! `update-database`: updates of the vulnerability database, one or one after another. No credential, no port.

use super::{EXIT_USAGE, start, stop_on_signal};
use crate::app::App;
use crate::config::Config;
use crate::problem::error_chain;
use crate::run::{Deadline, RunContext};
use crate::telemetry::{self, OutcomeLabels};
use crate::vulndb::trial::Canary;
use crate::vulndb::{DatabaseError, Outcome, Request, UpdateError, UpdatePlan, update};
use clap::Args;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Exit code when a database was there and refused (`EX_DATAERR`).
pub const EXIT_REFUSED: u8 = 65;
/// Exit code when the directory is where generations would not be safe (`EX_CANTCREAT`).
pub const EXIT_UNSUITABLE: u8 = 73;
/// Exit code when another updater holds the lock for too long (`EX_TEMPFAIL`).
pub const EXIT_BUSY: u8 = 75;
/// Least time between two updates in update-only mode, however often a schedule starts it.
const UPDATE_ONLY_INTERVAL: Duration = Duration::from_hours(6);

/// Exit codes, for `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0   updated, nothing newer, not due, or left alone for a while because the sources had refused
  1   failed; the old database stays
  64  the command line or a setting cannot be used
  65  the new database was refused (older than the current one, or the canary); the old one stays
  73  the directory is on a file system without atomic renames or locks
  75  another updater is at it";

/// Arguments of `update-database` and `database import`.
#[derive(Debug, Default, Args)]
pub struct UpdateArgs {
    /// Import this database file or archive instead of downloading one; always due.
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
    /// Import even what is older than the current database, held back, or further from it than the canary allows.
    #[arg(long, requires = "import")]
    force: bool,
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
    /// The import of one file.
    pub fn of_import(file: PathBuf, force: bool) -> Self {
        Self {
            import: Some(file),
            force,
            every: 0,
        }
    }

    /// Pause between two looks; `None` for one look only.
    fn pause(&self) -> Option<Duration> {
        (self.import.is_none() && self.every > 0).then(|| Duration::from_secs(self.every.into()))
    }
}

/// Updates. Exit codes of a single update: [`EXIT_CODES`]. With a pause: 0 at SIGTERM or SIGINT; failures are logged
/// and tried again after the pause.
pub fn main(config: Config, args: UpdateArgs) -> ExitCode {
    telemetry::install_logger(&config.log, None);
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
    if let Some(pause) = args.pause() {
        repeat(app, pause, &stop).await;
        return Ok(ExitCode::SUCCESS);
    }
    let request = match args.import {
        Some(file) => Request::Import {
            file,
            force: args.force,
        },
        None => newer(app),
    };
    Ok(once(app, request, &stop).await)
}

fn newer(app: &App) -> Request {
    Request::Newer(app.config.database.sources.clone())
}

/// Downloads whenever an update is due, until `stop`; what failed is logged and tried again after the pause.
pub(super) async fn repeat(app: &App, pause: Duration, stop: &CancellationToken) {
    loop {
        once(app, newer(app), stop).await;
        if stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_none()
        {
            return;
        }
    }
}

async fn once(app: &App, request: Request, stop: &CancellationToken) -> ExitCode {
    let settings = &app.config.database;
    let plan = UpdatePlan {
        request,
        interval: if settings.update_only {
            settings.update_interval.max(UPDATE_ONLY_INTERVAL)
        } else {
            settings.update_interval
        },
        lock_timeout: settings.lock_timeout,
        rate: settings.minimum_rate,
        canary: Canary {
            set: settings.canary.clone(),
            bounds: settings.canary_bounds,
            scratch: app.config.engine.work_directory.clone(),
        },
    };
    let context = RunContext {
        deadline: Deadline::after(settings.update_timeout),
        cancel: stop.clone(),
    };
    let outcome = update(&app.scanner.database, &app.scanner.engines, &plan, &context).await;
    let (label, word, code) = match &outcome {
        Ok(outcome) => {
            tell(outcome);
            let busy = *outcome == Outcome::Busy;
            (outcome.label(), outcome.word(), if busy { EXIT_BUSY } else { 0 })
        }
        Err(error) => {
            let cause = error_chain(error);
            tracing::error!(code = %error.code(), reason = error.reason(), cause, "the database was not updated: {error}");
            ("failed", error.reason(), exit_code(error))
        }
    };
    let labels = OutcomeLabels { outcome: label };
    app.metrics.database_updates.get_or_create(&labels).inc();
    tracing::info!(outcome = label, detail = word, "database update ended");
    ExitCode::from(code)
}

fn tell(outcome: &Outcome) {
    match outcome {
        Outcome::Updated(generation, provenance) => {
            tracing::info!(generation = generation.name.as_str(), built = %provenance.built, "published");
        }
        Outcome::Held(hold) => {
            tracing::warn!(
                built = %hold.built,
                generation = hold.generation,
                "the newest database is not newer than the one that was rolled back from"
            );
        }
        Outcome::BackingOff(pause) => {
            tracing::info!(until = %pause.until, reason = pause.reason, "the sources are left alone");
        }
        Outcome::Unchanged | Outcome::NotDue | Outcome::Busy => {}
    }
}

const fn exit_code(error: &UpdateError) -> u8 {
    match error {
        UpdateError::Golden(_) => EXIT_USAGE,
        UpdateError::Rejected(_) => EXIT_REFUSED,
        UpdateError::Store(DatabaseError::Unsuitable(_)) => EXIT_UNSUITABLE,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{EXIT_REFUSED, EXIT_UNSUITABLE, EXIT_USAGE, UpdateArgs, exit_code, repeat};
    use crate::app::App;
    use crate::config::{Config, Layer, resolve};
    use crate::scanner::Surroundings;
    use crate::telemetry::OutcomeLabels;
    use crate::vulndb::canary::GoldenError;
    use crate::vulndb::lock::Unsuitable;
    use crate::vulndb::{DatabaseError, Rejection, UpdateError};
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    #[test]
    fn ends_are_told_apart() {
        let older = Rejection::Unusable("x".to_owned());
        for (error, want) in [
            (UpdateError::from(older), EXIT_REFUSED),
            (DatabaseError::from(Unsuitable::NoLocks).into(), EXIT_UNSUITABLE),
            (DatabaseError::Unavailable.into(), 1),
            (UpdateError::NoSource, 1),
            (GoldenError::Empty.into(), EXIT_USAGE),
        ] {
            assert_eq!(exit_code(&error), want, "{error}");
        }
    }

    #[test]
    fn only_downloads_are_repeated() {
        let arguments = |import: Option<&str>, every| UpdateArgs {
            import: import.map(Into::into),
            force: false,
            every,
        };
        assert_eq!(arguments(None, 0).pause(), None);
        assert_eq!(arguments(None, 300).pause(), Some(Duration::from_mins(5)));
        assert_eq!(arguments(Some("a.db"), 300).pause(), None);
    }

    #[tokio::test]
    async fn a_failed_update_is_tried_again_until_it_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let flags = [
            format!("db_directory={}", dir.path().join("database").display()),
            format!("work_directory={}", dir.path().join("work").display()),
            format!("grype_executable={}", dir.path().join("absent").display()),
        ];
        let layer = Layer::from_flags(flags.iter().map(String::as_str)).unwrap();
        let config = Config::from_resolved(&resolve(&[layer]).unwrap()).unwrap();
        let app = App::new(config, Surroundings::default());
        let failed = || {
            let labels = OutcomeLabels { outcome: "failed" };
            app.metrics.database_updates.get_or_create(&labels).get()
        };
        let stop = CancellationToken::new();
        let enough = async {
            while failed() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stop.cancel();
        };
        let both = async { tokio::join!(repeat(&app, Duration::from_millis(1), &stop), enough) };
        tokio::time::timeout(Duration::from_mins(1), both).await.unwrap();
        assert!(failed() >= 3, "{}", failed());
    }
}
