//! Engines and vulnerability database as the operations see them: one place that says whether a scan can be done and
//! with which provenance.

use crate::config::Config;
use crate::engine::cage::{Force, Layer, Mode};
use crate::engine::{Engines, EnginesConfig, Versions};
use crate::problem::Problem;
use crate::run::RunContext;
use crate::telemetry::Metrics;
use crate::vulndb::store::{Generation, Store};
use assay_schemas::Code;
use std::ffi::OsString;
use std::path::PathBuf;

/// Versions of both engines and provenance of one database generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Versions of the engines.
    pub versions: Versions,
    /// Database revision, never blank.
    pub revision: String,
    /// Database build time, RFC 3339 UTC in milliseconds.
    pub updated_at: String,
}

/// What the engines get from this process beside its configuration.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The adapter's own executable, which becomes the engine.
    pub launcher: PathBuf,
    /// `PATH`.
    pub path: OsString,
    /// `SSL_CERT_FILE`, `SSL_CERT_DIR` and proxy settings, for database updates only.
    pub update_environment: Vec<(OsString, OsString)>,
}

/// Engines and database of this process.
#[derive(Debug)]
pub struct Scanner {
    /// Both engines.
    pub engines: Engines,
    /// Database generations.
    pub database: Store,
    sandbox: Mode,
    cage: tokio::sync::OnceCell<Force>,
}

impl Scanner {
    /// The scanner of this configuration. Reads the provenance cache and starts nothing.
    pub fn new(config: &Config, surroundings: Surroundings, metrics: &Metrics) -> Self {
        let bytes = |value: i64| u64::try_from(value).unwrap_or(0);
        let engines = Engines::new(EnginesConfig {
            launcher: surroundings.launcher,
            syft: config.engine.syft.clone().into(),
            grype: config.engine.grype.clone().into(),
            path: surroundings.path,
            update_environment: surroundings.update_environment,
            scratch: config.engine.work_directory.clone(),
            max_output: bytes(config.ceiling.max_output_bytes),
            max_stderr: bytes(config.ceiling.max_stderr_bytes),
            max_file: config.admission.scratch_mebibytes << 20,
            max_memory: config.engine.memory_bytes.unwrap_or(u64::MAX),
            sandbox: config.engine.sandbox,
            readable: config.engine.sandbox_readable.clone(),
            ending: metrics.engine_ending.clone(),
            max_database_age: config.database.max_age,
            cache_file: Some(config.engine.provenance_cache.clone()),
        });
        Self {
            engines,
            database: Store::new(&config.database.directory),
            sandbox: config.engine.sandbox,
            cage: tokio::sync::OnceCell::new(),
        }
    }

    /// Which layers hold the engines; tried once, because the kernel does not change.
    ///
    /// # Errors
    /// [`Code::ProcessIsolationUnavailable`] when one that the configuration insists on is not in force, and those of
    /// the process that tries.
    pub async fn cage(&self, run: &RunContext) -> Result<&Force, Problem> {
        let force = self.cage.get_or_try_init(|| self.engines.probe_cage(run)).await?;
        let missing: Vec<_> = force
            .missing(self.sandbox)
            .into_iter()
            .map(Layer::as_str)
            .collect();
        if missing.is_empty() {
            return Ok(force);
        }
        let message = format!("engines cannot be isolated: {} not in force", missing.join(", "));
        Err(Problem::new(Code::ProcessIsolationUnavailable, message))
    }

    /// Identity of the published database generation; changes when another one is published.
    pub fn generation_identity(&self) -> Option<String> {
        self.database
            .current()
            .ok()
            .map(|generation| generation.name.as_str().to_owned())
    }

    /// What a scan would use now.
    ///
    /// # Errors
    /// The reason why no scan can be done.
    pub async fn snapshot(&self, run: &RunContext) -> Result<Snapshot, Problem> {
        let generation = self.database.pin().await?;
        self.snapshot_of(&generation, run).await
    }

    /// What a match against this generation would say of itself.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub async fn snapshot_of(&self, generation: &Generation, run: &RunContext) -> Result<Snapshot, Problem> {
        let versions = self.engines.versions(run).await?;
        let provenance = self.engines.database(&generation.path, run).await?;
        let updated_at = provenance.updated_at();
        Ok(Snapshot {
            versions,
            revision: provenance.revision,
            updated_at,
        })
    }
}
