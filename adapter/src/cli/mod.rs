//! The command line: arguments to configuration, and one module per verb.

pub mod check;
pub mod database;
pub mod health;
mod progress;
pub mod scan;
pub mod serve;
pub mod update;

use crate::app::App;
use crate::config::{Config, Layer, Mistake, Resolved, is_skipped_place, resolve};
use crate::scanner::Surroundings;
use crate::workspace;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code for a configuration or a command line that cannot be used (`EX_USAGE`).
pub const EXIT_USAGE: u8 = 64;

/// Scanner adapter: untrusted bytes in, CycloneDX SBOM or vulnerability report out.
#[derive(Debug, Parser)]
#[command(name = "assay-adapter", version)]
pub struct Cli {
    #[command(flatten)]
    settings: SettingArgs,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// Where settings come from, beside the environment.
#[derive(Debug, Args)]
struct SettingArgs {
    /// TOML file with settings; the environment and flags win over it.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "KKREPO_SCANNER_CONFIG_FILE",
        hide_env_values = true
    )]
    config: Option<PathBuf>,
    /// One setting, by its name in configuration files; wins over everything else.
    #[arg(long = "set", global = true, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve the HTTP API (the default).
    Serve {
        /// Address and port to listen on, such as 127.0.0.1:8080.
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<std::net::SocketAddr>,
    },
    /// Print the effective configuration, secrets redacted, and what is missing to be ready.
    Check,
    /// Scan files with the same pipeline, without HTTP.
    Scan(scan::ScanArgs),
    /// Update the vulnerability database: once, or again and again with --every.
    #[command(after_help = update::EXIT_CODES)]
    UpdateDatabase(update::UpdateArgs),
    /// Generations of the vulnerability database: list, verify, rollback, export, import, serve.
    #[command(after_help = database::EXIT_CODES)]
    Database(database::DatabaseArgs),
    /// Ask a running adapter on this machine for its liveness; for container health checks.
    Health {
        /// Ask for readiness instead of liveness.
        #[arg(long)]
        ready: bool,
    },
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return refused(&answer),
    };
    let mut flags = cli.settings.set;
    if let Some(Verb::Serve {
        listen: Some(address),
    }) = &cli.verb
    {
        flags.push(format!("listen_address={}", address.ip()));
        flags.push(format!("port={}", address.port()));
    }
    let (resolved, config) = match configuration(cli.settings.config, &flags) {
        Ok(done) => done,
        Err(mistakes) => {
            for mistake in mistakes {
                eprintln!("assay-adapter: {mistake}");
            }
            return ExitCode::from(EXIT_USAGE);
        }
    };
    match cli.verb {
        None if config.database.update_only => update::main(config, update::UpdateArgs::default()),
        None | Some(Verb::Serve { .. }) => serve::main(config, &resolved),
        Some(Verb::Scan(args)) => scan::main(config, &args),
        Some(Verb::UpdateDatabase(args)) => update::main(config, args),
        Some(Verb::Database(args)) => database::main(config, args),
        Some(Verb::Check) => check::main(config, &resolved),
        Some(Verb::Health { ready }) => health::main(&config, ready),
    }
}

/// Prints what the command line asks for instead of a verb, or what is wrong with it. The parser's own exit code for
/// the latter would be that of findings.
fn refused(answer: &clap::Error) -> ExitCode {
    // Where nobody reads it any more the exit code still says it.
    let _ = answer.print();
    if answer.use_stderr() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

/// The configuration of this process: flags over environment over file over defaults.
fn configuration(file: Option<PathBuf>, flags: &[String]) -> Result<(Resolved, Config), Vec<Mistake>> {
    let mut layers = vec![
        Layer::from_flags(flags.iter().map(String::as_str))?,
        Layer::from_environment(environment()),
    ];
    if let Some(path) = file {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| vec![Mistake::new(&path.display().to_string(), error.to_string())])?;
        layers.push(Layer::from_toml(&text)?);
    }
    let resolved = resolve(&layers)?;
    let config = Config::from_resolved(&resolved)?;
    Ok((resolved, config))
}

/// The environment as text; variables that are not UTF-8 cannot be settings.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// What the engines get from this process beside the configuration.
///
/// # Errors
/// When this executable cannot find itself.
fn surroundings() -> io::Result<Surroundings> {
    const UPDATE_VARIABLES: &[&str] = &[
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ];
    const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
    let present = |name: &&'static str| Some((OsString::from(name), std::env::var_os(name)?));
    Ok(Surroundings {
        launcher: std::env::current_exe()?,
        path: std::env::var_os("PATH").unwrap_or_else(|| PATH.into()),
        update_environment: UPDATE_VARIABLES.iter().filter_map(present).collect(),
    })
}

/// The application and its runtime, or the exit code of a process that cannot have them.
fn start(config: Config, runtime: &mut tokio::runtime::Builder) -> Result<(App, Runtime), ExitCode> {
    if let Err(mistake) = check_work_directory(&config.engine.work_directory) {
        eprintln!("assay-adapter: {mistake}");
        return Err(ExitCode::from(EXIT_USAGE));
    }
    workspace::sweep(&config.engine.work_directory);
    let prepared = surroundings().and_then(|surroundings| {
        let runtime = runtime.enable_all().build()?;
        Ok((App::new(config, surroundings), runtime))
    });
    prepared.map_err(|error| {
        eprintln!("assay-adapter: cannot start: {error}");
        ExitCode::FAILURE
    })
}

/// Cancels at SIGTERM or SIGINT. Process 1 of a container would otherwise not even notice them.
fn stop_on_signal(stop: CancellationToken) -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    })
}

/// Refuses a work directory in which the cataloguer would see nothing.
fn check_work_directory(path: &Path) -> Result<(), Mistake> {
    let existing = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if is_skipped_place(path) || existing.as_deref().is_some_and(is_skipped_place) {
        let what = format!("{} is in a place that the cataloguer skips", path.display());
        return Err(Mistake::new("work_directory", what));
    }
    Ok(())
}
