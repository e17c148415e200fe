//! `database`: what an operator does with generations: look at them, go back, carry them elsewhere, hand them out.

use super::update::{self, EXIT_BUSY, EXIT_REFUSED, UpdateArgs};
use super::{EXIT_USAGE, start, stop_on_signal};
use crate::app::App;
use crate::config::Config;
use crate::http::connection::Patience;
use crate::problem::error_chain;
use crate::run::{Deadline, RunContext};
use crate::telemetry;
use crate::vulndb::distribution::{self, Distribution};
use crate::vulndb::export::{self, Format};
use crate::vulndb::inspect::{Entry, VerifyError};
use crate::vulndb::record::Hold;
use crate::vulndb::{DatabaseError, Generation, Store, WriteLock};
use crate::workspace::Workspace;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::{Table, presets};
use jiff::Timestamp;
use serde::Serialize;
use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Exit codes, for `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0   done
  1   failed
  64  the command line or a setting cannot be used
  65  import: the database was refused; rollback, verify: the generation is missing or cannot be used
  73  import: the directory is on a file system without atomic renames or locks
  75  another updater is at it";

/// Arguments of `database`.
#[derive(Debug, Args)]
pub struct DatabaseArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the generations that are there, newest first.
    List {
        /// Form of the list.
        #[arg(long, value_enum, default_value_t = Form::Table)]
        format: Form,
    },
    /// Read a generation whole, let the matcher open it, and compare with what was published.
    Verify {
        /// Its name; the current one when there is none.
        generation: Option<String>,
        /// Form of what was found.
        #[arg(long, value_enum, default_value_t = Form::Table)]
        format: Form,
    },
    /// Make an older generation current; updates leave the build that was current alone until there is a newer one.
    Rollback {
        /// Its name; the one before the current one when there is none.
        generation: Option<String>,
    },
    /// Write a generation to an archive that `import` takes.
    Export {
        /// The archive: `*.tar.zst` or `*.tar.gz`.
        file: PathBuf,
        /// Name of the generation; the current one when there is none.
        #[arg(long, value_name = "NAME")]
        generation: Option<String>,
    },
    /// Publish a database file or archive; the same as `update-database --import`.
    Import {
        /// The file.
        file: PathBuf,
        /// Take even what is older than the current database, held back, or further from it than the canary allows.
        #[arg(long)]
        force: bool,
    },
    /// Hand out the current generation to other updaters over HTTP, until SIGTERM; without credential, read-only.
    Serve {
        /// Address and port to listen on, such as 127.0.0.1:8081.
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: SocketAddr,
    },
}

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// Why a verb could not be done.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// With the words for the operator.
    #[error("{0}")]
    Failed(&'static str, #[source] Box<dyn Error + Send + Sync>),
    /// The generation is missing or cannot be used.
    #[error("the generation cannot be used")]
    Refused(#[source] Box<dyn Error + Send + Sync>),
    /// Another writer.
    #[error("another updater is at it")]
    Busy,
    /// The file's name says nothing of its form.
    #[error("the name of an archive ends in .tar.zst or .tar.gz")]
    Format,
}

impl Failure {
    fn failed<E: Error + Send + Sync + 'static>(words: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Failed(words, Box::new(error))
    }

    const fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(..) => 1,
            Self::Refused(_) => EXIT_REFUSED,
            Self::Busy => EXIT_BUSY,
            Self::Format => EXIT_USAGE,
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Io { .. } => {
                Self::Failed("the database directory cannot be used", Box::new(error))
            }
            error => Self::Refused(Box::new(error)),
        }
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        Self::Refused(Box::new(error))
    }
}

/// Does it. Exit codes: [`EXIT_CODES`].
pub fn main(config: Config, args: DatabaseArgs) -> ExitCode {
    if let Verb::Import { file, force } = args.verb {
        return update::main(config, UpdateArgs::of_import(file, force));
    }
    telemetry::install_logger(&config.log, None);
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_multi_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    match runtime.block_on(run(app, args.verb)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("assay-adapter: {}", error_chain(&failure));
            ExitCode::from(failure.exit_code())
        }
    }
}

async fn run(app: App, verb: Verb) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let signals = stop_on_signal(stop.clone()).map_err(Failure::failed("signals cannot be watched"))?;
    tokio::spawn(signals);
    let context = RunContext {
        deadline: Deadline::after(app.config.database.update_timeout),
        cancel: stop.clone(),
    };
    let store = app.scanner.database.clone();
    match verb {
        Verb::List { format } => {
            let entries = store.list(&app.scanner.engines, &context).await;
            print(format, &entries, || table(&entries))
        }
        Verb::Verify { generation, format } => {
            let generation = store.hold(named(&store, generation.as_deref())?)?;
            let verified = store.verify(&app.scanner.engines, &generation, &context).await?;
            print(format, &verified, || {
                let as_published = match verified.as_published {
                    Some(_) => "as published",
                    None => "what was published is not noted",
                };
                format!(
                    "{}\nbuilt {}, revision {}, schema {}\n{} bytes, SHA-256 {}\nfrom {}; {as_published}\n",
                    verified.name,
                    verified.built,
                    verified.revision,
                    verified.schema,
                    verified.bytes,
                    verified.sha256,
                    verified.source.as_deref().unwrap_or("an unknown source"),
                )
            })
        }
        Verb::Rollback { generation } => roll_back(&app, &store, generation.as_deref(), &context).await,
        Verb::Export { file, generation } => {
            let format = Format::of(&file).ok_or(Failure::Format)?;
            let generation = store.hold(named(&store, generation.as_deref())?)?;
            let facts = tokio::task::spawn_blocking(move || export::write(&generation.path, &file, format))
                .await
                .map_err(Failure::failed("the archive could not be written"))?
                .map_err(Failure::failed("the archive could not be written"))?;
            println!(
                "{} bytes, SHA-256 {}",
                facts.bytes,
                facts.sha256.unwrap_or_default()
            );
            Ok(())
        }
        Verb::Serve { listen } => serve(app, listen, stop).await,
        // Done by the updater.
        Verb::Import { .. } => Ok(()),
    }
}

fn named(store: &Store, name: Option<&str>) -> Result<Generation, DatabaseError> {
    match name {
        Some(name) => store.generation(name),
        None => store.current(),
    }
}

fn print(form: Form, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let text = match form {
        Form::Table => text(),
        Form::Json => {
            let json = serde_json::to_string_pretty(value);
            json.map_err(Failure::failed("the answer cannot be written"))? + "\n"
        }
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(Failure::failed("the answer cannot be written"))
}

fn table(entries: &[Entry]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "GENERATION",
        "PUBLISHED",
        "BUILT",
        "BYTES",
        "CURRENT",
        "IN USE",
    ]);
    for entry in entries {
        let answer = |yes: Option<bool>| match yes {
            Some(true) => "yes",
            Some(false) => "",
            None => "unknown",
        };
        table.add_row([
            entry.name.clone(),
            format!("{:.0}", entry.published),
            entry
                .built
                .map_or_else(|| "unknown".to_owned(), |built| built.to_string()),
            entry.bytes.to_string(),
            answer(Some(entry.current)).to_owned(),
            answer(entry.pinned).to_owned(),
        ]);
    }
    format!("{table}\n")
}

/// The writer's lock, or why there is none.
async fn write_lock(app: &App, store: &Store) -> Result<WriteLock, Failure> {
    store.prepare()?;
    store
        .lock(app.config.database.lock_timeout)
        .await?
        .ok_or(Failure::Busy)
}

async fn roll_back(app: &App, store: &Store, name: Option<&str>, run: &RunContext) -> Result<(), Failure> {
    let lock = write_lock(app, store).await?;
    let target = match name {
        Some(name) => store.generation(name)?,
        None => store.previous()?,
    };
    let verified = store.verify(&app.scanner.engines, &target, run).await?;
    let kept: Option<Hold> = store.record(&store.layout().hold());
    let left = match store.current() {
        Ok(current) if current.name == target.name => {
            println!("{} is current", target.name);
            return Ok(());
        }
        Ok(current) => store.verify(&app.scanner.engines, &current, run).await.ok(),
        Err(_) => None,
    };
    // What is newer than the target is held back: the build that is left now, or one that was left before.
    let hold = left
        .map(|left| Hold {
            built: left.built,
            sha256: Some(left.sha256),
            generation: left.name,
            since: Timestamp::now(),
        })
        .into_iter()
        .chain(kept.clone())
        .filter(|hold| hold.built > verified.built)
        .max_by_key(|hold| hold.built);
    store.roll_back(&lock, &target, hold.as_ref(), Timestamp::now())?;
    if hold.is_none() && kept.is_some() {
        store.forget(&lock, &store.layout().hold())?;
    }
    println!("{} is current, built {}", target.name, verified.built);
    if let Some(hold) = hold {
        println!("updates wait for a build after {}", hold.built);
    }
    Ok(())
}

async fn serve(app: App, listen: SocketAddr, stop: CancellationToken) -> Result<(), Failure> {
    let workspace = Workspace::create(&app.config.engine.work_directory, "db-update-")
        .map_err(Failure::failed("the work directory cannot be used"))?;
    let http = &app.config.http;
    let bounds = distribution::Bounds {
        connections: http.max_connections,
        patience: Patience::of(http),
    };
    let distribution = Arc::new(Distribution::new(
        app.scanner.database.clone(),
        app.scanner.engines,
        workspace.path().to_owned(),
    ));
    let listener = TcpListener::bind(listen)
        .await
        .map_err(Failure::failed("listening failed"))?;
    let address = listener
        .local_addr()
        .map_err(Failure::failed("listening failed"))?;
    tracing::info!(%address, "listening");
    // An empty directory is no reason to end: an updater may be about to fill it.
    if let Err(problem) = distribution.warm().await {
        tracing::warn!(code = %problem.code, cause = error_chain(&problem), "nothing to hand out yet");
    }
    distribution::serve(distribution, listener, bounds, stop).await;
    workspace.remove().await;
    Ok(())
}
