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
    if let Some(pause) = args.pause() {
        repeat(app, pause, &stop).await;
        return Ok(ExitCode::SUCCESS);
    }
    let source = args.import.map_or(UpdateSource::Download, UpdateSource::Import);
    Ok(once(app, source, &stop).await)
}

/// Downloads whenever an update is due, until `stop`; what failed is logged and tried again after the pause.
pub(super) async fn repeat(app: &App, pause: Duration, stop: &CancellationToken) {
    loop {
        once(app, UpdateSource::Download, stop).await;
        if stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_none()
        {
            return;
        }
    }
}

async fn once(app: &App, source: UpdateSource, stop: &CancellationToken) -> ExitCode {
    let settings = &app.config.database;
    let plan = UpdatePlan {
        source,
        interval: settings.update_interval,
        lock_timeout: settings.lock_timeout,
    };
    let context = RunContext {
        deadline: Deadline::after(LONGEST),
        cancel: stop.clone(),
    };
    let outcome = update(&app.scanner.database, &app.scanner.engines, &plan, &context).await;
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
    use super::{UpdateArgs, repeat};
    use crate::app::App;
    use crate::config::{Config, Layer, resolve};
    use crate::scanner::Surroundings;
    use crate::telemetry::OutcomeLabels;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

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
