//! `scan`: one-shot use of the same pipeline, for people at a shell and for CI jobs.

use super::progress::Progress;
use super::{EXIT_USAGE, start};
use crate::app::App;
use crate::config::Config;
use crate::http::upload;
use crate::operation::findings;
use crate::operation::inventory::{self, Artifact};
use crate::operation::match_sbom::SBOM_FILE;
use crate::problem::{Problem, sanitize};
use crate::recognition::Distribution;
use crate::report::{self, CyclonedxError, FailOn, ScannedArtifact, TableStyle};
use crate::run::RunContext;
use crate::workspace::Workspace;
use assay_schemas::{ArtifactType, Code, RequestedLimits, Severity};
use clap::{Args, ValueEnum};
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::io::ReaderStream;

/// Block in which a file is read, bytes.
const BLOCK: usize = 256 << 10;

/// Arguments of `scan`.
#[derive(Debug, Args)]
#[command(after_help = report::EXIT_CODES_HELP)]
pub struct ScanArgs {
    /// Files to scan.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Exit with 2 when a finding is at least this severe.
    #[arg(long, value_name = "SEVERITY", value_parser = severity)]
    fail_on: Option<Severity>,
    /// Exit with 3 when a result is not complete.
    #[arg(long)]
    fail_on_partial: bool,
    /// Distribution of loose operating system packages, such as debian:12.
    #[arg(long, value_name = "ID:VERSION", value_parser = distribution)]
    distribution: Option<Distribution>,
    /// With the cyclonedx format: write one file for each path into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,
    /// Longest time for one file.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(i32).range(1..=3600))]
    timeout: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Findings as a table, provenance under it.
    Table,
    /// Findings, inventory and provenance as one JSON document.
    Json,
    /// The SBOM of the only path, or one file for each with --output.
    Cyclonedx,
    /// SARIF 2.1.0.
    Sarif,
}

fn severity(text: &str) -> Result<Severity, String> {
    Severity::ALL
        .into_iter()
        .find(|severity| severity.as_str().eq_ignore_ascii_case(text))
        .ok_or_else(|| "one of unknown, negligible, low, medium, high, critical".to_owned())
}

fn distribution(text: &str) -> Result<Distribution, String> {
    Distribution::parse(text).ok_or_else(|| "id:version, such as debian:12".to_owned())
}

/// Scans; the exit code is as [`report::EXIT_CODES_HELP`] says.
pub fn main(config: Config, args: &ScanArgs) -> ExitCode {
    if args.format == Format::Cyclonedx && args.paths.len() > 1 && args.output.is_none() {
        eprintln!("assay-adapter: the cyclonedx format takes one path, or --output DIRECTORY");
        return ExitCode::from(EXIT_USAGE);
    }
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_multi_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    let mut scanned = Vec::new();
    let mut failed = 0;
    for path in &args.paths {
        match runtime.block_on(until_interrupted(&app, path, args)) {
            Ok(artifact) => scanned.push(artifact),
            Err(problem) => {
                failed += 1;
                eprintln!("assay-adapter: {}: {}: {problem}", shown(path), problem.code);
                if problem.code == Code::Interrupted {
                    break;
                }
            }
        }
    }
    if !scanned.is_empty()
        && let Err(error) = print(&scanned, args)
    {
        failed += 1;
        eprintln!("assay-adapter: {error}");
    }
    let fail_on = FailOn {
        severity: args.fail_on,
        partial: args.fail_on_partial,
    };
    ExitCode::from(report::exit_code(&scanned, failed, fail_on).code())
}

/// The result could not be given.
#[derive(Debug, thiserror::Error)]
enum PrintError {
    #[error(transparent)]
    Render(#[from] CyclonedxError),
    #[error("the result cannot be written: {0}")]
    Write(#[from] io::Error),
}

fn print(scanned: &[ScannedArtifact], args: &ScanArgs) -> Result<(), PrintError> {
    if let (Format::Cyclonedx, Some(directory)) = (args.format, &args.output) {
        std::fs::create_dir_all(directory)?;
        for (name, document) in report::cyclonedx_files(scanned) {
            std::fs::write(directory.join(name), document)?;
        }
        return Ok(());
    }
    let mut out = io::stdout();
    match args.format {
        Format::Table => out.write_all(report::render_table(scanned, table_style(&out)).as_bytes())?,
        Format::Json => out.write_all(report::render_json(scanned).as_bytes())?,
        Format::Sarif => out.write_all(report::render_sarif(scanned).as_bytes())?,
        Format::Cyclonedx => out.write_all(report::render_cyclonedx(scanned)?)?,
    }
    out.flush()?;
    Ok(())
}

/// Colours and wrapping only on a terminal, and colours only where the user has not said no.
fn table_style(out: &io::Stdout) -> TableStyle {
    if !out.is_terminal() {
        return TableStyle::default();
    }
    let (_, columns) = console::Term::stdout().size();
    TableStyle {
        color: console::colors_enabled(),
        width: Some(usize::from(columns)),
    }
}

/// A path as a message may show it.
fn shown(path: &Path) -> String {
    sanitize(&path.to_string_lossy(), 300)
}

async fn until_interrupted(app: &App, path: &Path, args: &ScanArgs) -> Result<ScannedArtifact, Problem> {
    let run = RunContext::with_timeout(Duration::from_secs(u64::try_from(args.timeout).unwrap_or(1)));
    let cancel = run.cancel.clone();
    let interrupt = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancel.cancel();
        }
    });
    let outcome = scan(app, path, args, &run).await;
    interrupt.abort();
    outcome
}

async fn scan(app: &App, path: &Path, args: &ScanArgs, run: &RunContext) -> Result<ScannedArtifact, Problem> {
    let workspace = Workspace::create(&app.config.engine.work_directory, "scan-")?;
    let progress = Progress::new(path);
    let outcome = async {
        let limits = RequestedLimits::default()
            .or_defaults(app.config.ceiling.max_input_bytes)
            .lowered_to(&app.config.ceiling);
        let artifact = store(app, &workspace, path, &progress, run).await?;
        progress.stage("cataloguing");
        let catalog =
            inventory::take(app, &workspace, artifact, &limits, args.distribution.clone(), run).await?;
        progress.stage("matching");
        let sbom = workspace.path().join(SBOM_FILE);
        tokio::fs::write(&sbom, &catalog.cyclonedx_json.0)
            .await
            .map_err(|error| Problem::new(Code::WorkspaceIo, "the SBOM cannot be stored").caused_by(error))?;
        let matched = findings::find(app, &workspace, SBOM_FILE, run).await?;
        Ok(ScannedArtifact {
            path: path.display().to_string(),
            catalog,
            matched: Some(matched),
        })
    }
    .await;
    progress.finish();
    workspace.remove().await;
    outcome
}

/// Copies the file into the workspace: what is inspected is exactly what the engines read.
async fn store(
    app: &App,
    workspace: &Workspace,
    path: &Path,
    progress: &Progress,
    run: &RunContext,
) -> Result<Artifact, Problem> {
    let unreadable = |error| Problem::new(Code::InputIo, "the file cannot be read").caused_by(error);
    let source = tokio::fs::File::open(path).await.map_err(unreadable)?;
    let metadata = source.metadata().await.map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Problem::new(Code::RequestInvalid, "not a regular file"));
    }
    progress.reading(metadata.len());
    let artifact_type = ArtifactType::from_file_name(&path.to_string_lossy());
    let (file, stored) = workspace
        .create_file(artifact_type.file_name())
        .map_err(unreadable)?;
    let blocks = ReaderStream::with_capacity(source, BLOCK);
    let mut body = StreamBody::new(progress.count(blocks));
    let limit = u64::try_from(app.config.ceiling.max_input_bytes).unwrap_or(0);
    let stall = app.config.http.body_timeout;
    let copy = file.try_clone().map_err(unreadable)?;
    let received = upload::receive(&mut body, copy, limit, stall, run).await?;
    Ok(Artifact {
        file,
        path: stored,
        artifact_type,
        file_name: path.file_name().and_then(OsStr::to_str).map(str::to_owned),
        received,
    })
}

/// A block as a body frame.
pub(super) fn frame(block: io::Result<bytes::Bytes>) -> io::Result<Frame<bytes::Bytes>> {
    block.map(Frame::data)
}
