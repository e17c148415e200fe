//! `serve`: the HTTP API until SIGTERM or SIGINT.

use super::{EXIT_USAGE, start, stop_on_signal, update};
use crate::app::App;
use crate::config::{Config, Resolved};
use crate::engine::cage::Layer;
use crate::http::server;
use crate::operation::readiness;
use crate::problem::error_chain;
use crate::run::RunContext;
use crate::telemetry::{self, LayerLabels, Traces};
use assay_schemas::Code;
use nix::sys::resource::{Resource, setrlimit};
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves. Exit codes: 0 after a clean stop, 1 when listening fails, 64 when the configuration cannot serve.
pub fn main(config: Config, resolved: &Resolved) -> ExitCode {
    let missing = config.missing_to_serve();
    if !missing.is_empty() {
        for mistake in missing {
            eprintln!("assay-adapter: {mistake}");
        }
        return ExitCode::from(EXIT_USAGE);
    }
    let traces = match config.log.collector.as_deref().map(Traces::to).transpose() {
        Ok(traces) => traces,
        Err(error) => {
            eprintln!("assay-adapter: otlp_endpoint: {}", error_chain(&error));
            return ExitCode::from(EXIT_USAGE);
        }
    };
    telemetry::install_logger(&config.log, traces.as_ref());
    let code = serve(config, resolved);
    if let Some(traces) = traces {
        traces.end();
    }
    code
}

fn serve(config: Config, resolved: &Resolved) -> ExitCode {
    // The credential is in this process's memory; a crash must not put it on a disk.
    if let Err(error) = setrlimit(Resource::RLIMIT_CORE, 0, 0) {
        tracing::warn!(%error, "core dumps cannot be turned off");
    }
    for warning in &resolved.warnings {
        tracing::warn!("{warning}");
    }
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_multi_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    if let Err(error) = app.registries.trust() {
        tracing::error!(cause = error_chain(&error), "oci_ca_file cannot be used");
        return ExitCode::from(EXIT_USAGE);
    }
    match runtime.block_on(run(Arc::new(app))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &io::Error) -> ExitCode {
    tracing::error!(%error, "serving failed");
    ExitCode::FAILURE
}

/// Longest time that the look at the cage may take.
const CAGE_PROBE: Duration = Duration::from_secs(15);

/// Notes which layers hold the engines.
///
/// # Errors
/// When the configuration insists on one that is not in force: then nothing is served. Whatever else is wrong with
/// the host is a matter of readiness.
async fn hold_engines(app: &App) -> io::Result<()> {
    let force = match app.scanner.cage(&RunContext::with_timeout(CAGE_PROBE)).await {
        Ok(force) => force,
        Err(problem) if problem.code == Code::ProcessIsolationUnavailable => {
            return Err(io::Error::other(problem));
        }
        Err(problem) => {
            tracing::warn!(code = %problem.code, "the isolation of engines could not be tried: {problem}");
            return Ok(());
        }
    };
    for layer in Layer::ALL {
        let gauge = LayerLabels {
            layer: layer.as_str(),
        };
        app.metrics
            .isolation
            .get_or_create(&gauge)
            .set(i64::from(force.has(*layer)));
    }
    tracing::info!(layers = force.layers(), "engines are isolated");
    Ok(())
}

async fn run(app: Arc<App>) -> io::Result<()> {
    hold_engines(&app).await?;
    let address = SocketAddr::new(app.config.http.address, app.config.http.port);
    let stop = CancellationToken::new();
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    tokio::spawn(stop_on_signal(stop.clone())?);
    // Learn versions and provenance before the first request asks for them.
    tokio::spawn({
        let app = Arc::clone(&app);
        async move {
            let readiness = readiness::readiness(&app).await;
            tracing::info!(ready = readiness.ready, "observed engines and database");
        }
    });
    let updates = tokio::spawn({
        let (app, stop) = (Arc::clone(&app), stop.clone());
        async move {
            let settings = &app.config.database;
            if settings.auto_update {
                update::repeat(&app, settings.check_interval, &stop).await;
            }
        }
    });
    server::serve(app, listener, stop).await?;
    updates.await?;
    tracing::info!("stopped");
    Ok(())
}
