//! Both engines as the operations see them: one catalog is one process, one match is one process, and everything that
//! does not change is learnt once.

mod launch;

use self::launch::{Reach, write};
use super::cage::{Force, Mode, probe};
use super::error::EngineError;
use super::growth::MinimumRate;
use super::grype::{self, DatabasePolicy};
use super::process::{self, Finished};
use super::provenance::{
    DatabaseProvenance, Facts, FileIdentity, Learnt, Memory, Versions, engine_name, parse_check,
    parse_status, parse_version,
};
use super::syft::{self, CatalogFacts, CatalogJob};
use super::warnings::{self, Warnings};
use crate::run::RunContext;
use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest run of a helper: versions and database status.
const HELPER_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest run of a database update.
const UPDATE_TIMEOUT: Duration = Duration::from_mins(30);
/// How long a failure to learn something is taken for granted.
const FAILURE_MEMORY: Duration = Duration::from_secs(1);
/// Most bytes of a helper's output.
const HELPER_OUTPUT: u64 = 1 << 20;
/// Most bytes of the cataloguer's side output that are read.
const MAX_FACTS: u64 = 8 << 20;

/// How the engines are found and held.
#[derive(Debug, Clone)]
pub struct EnginesConfig {
    /// The adapter's own executable, for the launcher.
    pub launcher: PathBuf,
    /// Name or path of Syft.
    pub syft: PathBuf,
    /// Name or path of Grype.
    pub grype: PathBuf,
    /// `PATH` of the adapter: for finding the engines, and what they get.
    pub path: OsString,
    /// `SSL_CERT_FILE`, `SSL_CERT_DIR` and proxy settings where they are set; only downloads of databases get them.
    pub update_environment: Vec<(OsString, OsString)>,
    /// Directory in which helpers get a private directory each.
    pub scratch: PathBuf,
    /// Most bytes of one engine document.
    pub max_output: u64,
    /// Most bytes of one engine's diagnostics.
    pub max_stderr: u64,
    /// Largest file that an engine may write, bytes.
    pub max_file: u64,
    /// Writable memory of one engine process, bytes.
    pub max_memory: u64,
    /// Whether engines run in a sandbox.
    pub sandbox: Mode,
    /// What engines may read in it beside what they need, for engines that are installed in odd places.
    pub readable: Vec<PathBuf>,
    /// Oldest database that is used; `None` accepts any.
    pub max_database_age: Option<Duration>,
    /// Takes how long the end of an engine took that was ordered to end.
    pub ending: Histogram,
    /// Where versions and provenance outlive the process; `None` keeps them in memory only.
    pub cache_file: Option<PathBuf>,
}

/// How a database is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Address of the distribution; `None` means the matcher's own.
    pub url: Option<String>,
    /// Slower than this is stopped.
    pub rate: MinimumRate,
}

/// What a catalog run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogOutput {
    /// The document as the engine wrote it, unchecked.
    pub document: Vec<u8>,
    /// What only the side output tells.
    pub facts: CatalogFacts,
    /// What the diagnostics and the side output say about completeness.
    pub warnings: Warnings,
    /// Wall time of the process.
    pub elapsed: Duration,
}

/// What a match run gave.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchOutput {
    /// The report as the engine wrote it, unchecked.
    pub document: Vec<u8>,
    /// What the diagnostics say about completeness.
    pub warnings: Warnings,
    /// Wall time of the process.
    pub elapsed: Duration,
}

/// Both engines.
#[derive(Debug)]
pub struct Engines {
    config: EnginesConfig,
    memory: Mutex<Memory>,
    failures: Mutex<Vec<(PathBuf, Instant, EngineError)>>,
    /// Held while something is being learnt, so that many askers cost one process.
    learning: tokio::sync::Mutex<()>,
}

impl Engines {
    /// Reads the cache file; starts nothing.
    pub fn new(config: EnginesConfig) -> Self {
        let memory = config.cache_file.as_deref().map(Memory::load).unwrap_or_default();
        Self {
            config,
            memory: Mutex::new(memory),
            failures: Mutex::default(),
            learning: tokio::sync::Mutex::default(),
        }
    }

    /// Runs Syft once in the private directory `dir`, which holds the source.
    pub async fn catalog(
        &self,
        job: &CatalogJob<'_>,
        dir: &Path,
        run: &RunContext,
    ) -> Result<CatalogOutput, EngineError> {
        for (name, content) in syft::setup(job) {
            write(&dir.join(name), content).await?;
        }
        let command = self.command(
            self.resolve_syft()?,
            syft::arguments(job),
            syft::ENVIRONMENT
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            dir,
            Reach::default(),
        );
        let Finished {
            stdout,
            stderr,
            elapsed,
        } = process::run(&command, run).await?;
        let mut warnings = warnings::parse(&stderr);
        let facts = read_facts(&dir.join(syft::files::FACTS)).await;
        match &facts {
            Some(facts) => syft::add_unreadable(facts, &mut warnings),
            // The document stands without it; that something was not told is counted.
            None => warnings.other += 1,
        }
        Ok(CatalogOutput {
            document: stdout,
            facts: facts.unwrap_or_default(),
            warnings,
            elapsed,
        })
    }

    /// Runs Grype once in the private directory `dir` on the file `sbom` in it, against the database under `database`.
    pub async fn match_sbom(
        &self,
        sbom: &str,
        database: &Path,
        dir: &Path,
        run: &RunContext,
    ) -> Result<MatchOutput, EngineError> {
        let policy = DatabasePolicy {
            max_age: self.config.max_database_age,
            // Published generations were validated and never change.
            validate_hash: false,
        };
        write(&dir.join(grype::CONFIG_FILE), grype::config(policy)).await?;
        let command = self.command(
            self.resolve_grype()?,
            grype::match_arguments(sbom),
            grype::environment(database),
            dir,
            Reach::reading(database),
        );
        let done = process::run(&command, run).await?;
        Ok(MatchOutput {
            document: done.stdout,
            warnings: warnings::parse(&done.stderr),
            elapsed: done.elapsed,
        })
    }

    /// Which layers of the cage are in force for engines that run now: starts a program in it that tries.
    pub async fn probe_cage(&self, run: &RunContext) -> Result<Force, EngineError> {
        let done = self
            .helper(
                self.config.launcher.clone(),
                vec![probe::VERB.into(), probe::network_namespace().into()],
                None,
                Reach::default(),
                run,
            )
            .await?;
        Force::parse(&done.stdout).map_err(|error| EngineError::io("probed")(error.into()))
    }

    /// Versions of both engines; a process runs only for a binary that was not seen before.
    pub async fn versions(&self, run: &RunContext) -> Result<Versions, EngineError> {
        Ok(Versions {
            syft: self.syft_version(run).await?,
            grype: self.grype_version(run).await?,
        })
    }

    /// Version of the cataloguer alone.
    pub async fn syft_version(&self, run: &RunContext) -> Result<String, EngineError> {
        self.version(false, run).await
    }

    /// Version of the matcher alone.
    pub async fn grype_version(&self, run: &RunContext) -> Result<String, EngineError> {
        self.version(true, run).await
    }

    /// Provenance of the generation under `database`; a process runs only for one that was not seen before. The age
    /// is checked at every call.
    pub async fn database(
        &self,
        database: &Path,
        run: &RunContext,
    ) -> Result<DatabaseProvenance, EngineError> {
        let provenance = self.provenance(database, run).await?;
        provenance.check_age(self.config.max_database_age, Timestamp::now())?;
        Ok(provenance)
    }

    /// Asks Grype itself about the database under `cache`, with its hash checked. Nothing is remembered.
    pub async fn validate_database(
        &self,
        cache: &Path,
        run: &RunContext,
    ) -> Result<DatabaseProvenance, EngineError> {
        let policy = DatabasePolicy {
            max_age: self.config.max_database_age,
            validate_hash: true,
        };
        let done = self
            .helper(
                self.resolve_grype()?,
                grype::status_arguments(),
                Some((cache, policy)),
                Reach::reading(cache),
                run,
            )
            .await?;
        parse_status(&done.stdout)
    }

    /// Asks the source whether it has a database newer than the one in `cache`, which is only read.
    pub async fn check_database(
        &self,
        cache: &Path,
        source: &Download,
        run: &RunContext,
    ) -> Result<bool, EngineError> {
        let policy = DatabasePolicy {
            max_age: None,
            validate_hash: false,
        };
        let reach = Reach {
            download: Some(source.clone()),
            ..Reach::reading(cache)
        };
        let done = self
            .helper(
                self.resolve_grype()?,
                grype::check_arguments(),
                Some((cache, policy)),
                reach,
                run,
            )
            .await;
        match done {
            Ok(done) => Ok(parse_check(&done.stdout)),
            Err(EngineError::Failed { exit, .. }) if exit == grype::UPDATE_AVAILABLE => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Fetches the newest database into `cache`.
    pub async fn update_database(
        &self,
        cache: &Path,
        source: &Download,
        run: &RunContext,
    ) -> Result<(), EngineError> {
        let reach = Reach {
            download: Some(source.clone()),
            ..Reach::default()
        };
        self.fill_database(grype::update_arguments(), reach, cache, run)
            .await
    }

    /// Imports a local database file or archive into `cache`.
    pub async fn import_database(
        &self,
        file: &Path,
        cache: &Path,
        run: &RunContext,
    ) -> Result<(), EngineError> {
        let file = std::path::absolute(file).map_err(EngineError::io("prepared"))?;
        let reach = Reach::reading(&file);
        self.fill_database(grype::import_arguments(&file), reach, cache, run)
            .await
    }

    async fn fill_database(
        &self,
        args: Vec<OsString>,
        mut reach: Reach,
        cache: &Path,
        run: &RunContext,
    ) -> Result<(), EngineError> {
        reach.fills = Some(cache.to_owned());
        // An update may bring a database of any age; whether it is young enough is asked before it is published.
        let policy = DatabasePolicy {
            max_age: None,
            validate_hash: true,
        };
        self.helper(self.resolve_grype()?, args, Some((cache, policy)), reach, run)
            .await
            .map(drop)
    }

    async fn version(&self, is_matcher: bool, run: &RunContext) -> Result<String, EngineError> {
        let (executable, args) = if is_matcher {
            (self.resolve_grype()?, grype::version_arguments())
        } else {
            (self.resolve_syft()?, syft::version_arguments())
        };
        let of = FileIdentity::of(&executable).map_err(EngineError::io("inspected"))?;
        let learn = async {
            let done = self
                .helper(executable.clone(), args, None, Reach::default(), run)
                .await?;
            parse_version(&done.stdout, engine_name(is_matcher))
        };
        self.known(|memory| &mut memory.versions, &executable, of, learn, run)
            .await
    }

    async fn provenance(&self, database: &Path, run: &RunContext) -> Result<DatabaseProvenance, EngineError> {
        let file = database.join("6").join("vulnerability.db");
        let of = FileIdentity::of(&file).map_err(|error| EngineError::DatabaseUnreadable {
            stderr: error.kind().to_string(),
        })?;
        let learn = self.validate_database(database, run);
        self.known(|memory| &mut memory.databases, &file, of, learn, run)
            .await
    }

    /// The fact about a file that is remembered, or that `learn` gives: one caller at a time learns, and nobody right
    /// after a failure.
    async fn known<T: Clone>(
        &self,
        facts: fn(&mut Memory) -> &mut Facts<T>,
        file: &Path,
        of: FileIdentity,
        learn: impl Future<Output = Result<T, EngineError>>,
        run: &RunContext,
    ) -> Result<T, EngineError> {
        if let Some(fact) = self.remembered(facts, file, &of) {
            return Ok(fact);
        }
        let _learning = run.bound(self.learning.lock()).await?;
        if let Some(fact) = self.remembered(facts, file, &of) {
            return Ok(fact);
        }
        self.check_failures(file)?;
        let fact = self.note_failure(file, learn.await)?;
        self.remember(|memory| {
            let fact = fact.clone();
            facts(memory).insert(file.to_owned(), Learnt { of, fact });
        });
        Ok(fact)
    }

    fn remembered<T: Clone>(
        &self,
        facts: fn(&mut Memory) -> &mut Facts<T>,
        file: &Path,
        of: &FileIdentity,
    ) -> Option<T> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let learnt = facts(&mut memory).get(file)?;
        (learnt.of == *of).then(|| learnt.fact.clone())
    }

    fn remember(&self, add: impl FnOnce(&mut Memory)) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut memory);
        memory.bound();
        if let Some(path) = &self.config.cache_file
            && let Err(error) = memory.save(path)
        {
            // Only the next start is slower for it.
            tracing::warn!(%error, "the provenance cache could not be written");
        }
    }

    /// A failure of a moment ago stands, so that a broken engine is not started by every asker.
    fn check_failures(&self, about: &Path) -> Result<(), EngineError> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|(_, at, _)| at.elapsed() < FAILURE_MEMORY);
        match failures.iter().find(|(path, _, _)| path == about) {
            Some((_, _, error)) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn note_failure<T>(&self, about: &Path, learnt: Result<T, EngineError>) -> Result<T, EngineError> {
        if let Err(error) = &learnt
            // One asker's deadline says nothing about the engine.
            && !matches!(error, EngineError::Stopped(_))
        {
            self.failures
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((about.to_owned(), Instant::now(), error.clone()));
        }
        learnt
    }

    fn resolve_syft(&self) -> Result<PathBuf, EngineError> {
        process::resolve(&self.config.syft, &self.config.path)
    }

    fn resolve_grype(&self) -> Result<PathBuf, EngineError> {
        process::resolve(&self.config.grype, &self.config.path)
    }
}

async fn read_facts(path: &Path) -> Option<CatalogFacts> {
    use tokio::io::AsyncReadExt as _;
    let file = tokio::fs::File::open(path).await.ok()?;
    let mut text = String::new();
    file.take(MAX_FACTS).read_to_string(&mut text).await.ok()?;
    syft::parse_facts(&text)
}
