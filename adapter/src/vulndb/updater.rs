//! One update: lock, stage, fill, validate, publish, clean up.

use super::publish::FileFacts;
use super::record::Published;
use super::retire::is_due;
use super::store::{DatabaseError, Generation, Store};
use crate::engine::{DatabaseProvenance, EngineError, Engines};
use crate::problem::Problem;
use crate::run::RunContext;
use assay_schemas::Code;
use jiff::Timestamp;
use std::path::PathBuf;
use std::time::Duration;

/// Where the next database comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdateSource {
    /// The engine's own download, when the published one is old enough.
    Download,
    /// A local database file or archive; always due.
    Import(PathBuf),
}

/// How an update behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePlan {
    /// See [`UpdateSource`].
    pub source: UpdateSource,
    /// Time between updates; zero is always due.
    pub interval: Duration,
    /// How long to wait for another writer.
    pub lock_timeout: Duration,
}

/// How an update ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A new generation is current.
    Updated(Generation, DatabaseProvenance),
    /// The current one is young enough.
    NotDue,
    /// Another writer is at it.
    Busy,
}

impl Outcome {
    /// The metric label.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Updated(..) => "updated",
            Self::NotDue => "not_due",
            Self::Busy => "busy",
        }
    }
}

/// A failed update; the old generation stays current.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The store.
    #[error(transparent)]
    Store(#[from] DatabaseError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The new database was built before the current one.
    #[error("the new vulnerability database, built {new}, is older than the current one, built {current}")]
    Older {
        /// Build time of the new one.
        new: Timestamp,
        /// Build time of the current one.
        current: Timestamp,
    },
}

impl UpdateError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Engine(error) => match error {
                EngineError::Failed { .. } => Code::DatabaseUpdateIo,
                other => other.code(),
            },
            Self::Older { .. } => Code::DatabaseUpdateIo,
        }
    }
}

impl From<UpdateError> for Problem {
    fn from(error: UpdateError) -> Self {
        Self::new(error.code(), error.to_string()).caused_by(error)
    }
}

/// Runs one update to its end.
pub async fn update(
    store: &Store,
    engines: &Engines,
    plan: &UpdatePlan,
    run: &RunContext,
) -> Result<Outcome, UpdateError> {
    store.prepare()?;
    let Some(lock) = run
        .bound(store.lock(plan.lock_timeout))
        .await
        .map_err(EngineError::from)??
    else {
        return Ok(Outcome::Busy);
    };
    // A pointer that cannot be followed is healed by publishing anew.
    let current = store.current().ok();
    let now = Timestamp::now();
    let published = current.as_ref().map(|generation| generation.published);
    if plan.source == UpdateSource::Download && !is_due(published, now, plan.interval) {
        return Ok(Outcome::NotDue);
    }

    let staging = store.stage(&lock)?;
    match &plan.source {
        UpdateSource::Download => engines.update_database(staging.path(), run).await?,
        UpdateSource::Import(file) => engines.import_database(file, staging.path(), run).await?,
    }
    let provenance = engines.validate_database(staging.path(), run).await?;
    if plan.source == UpdateSource::Download
        && let Some(current) = &current
        // A current database that cannot be read is no reason to keep it.
        && let Ok(known) = engines.validate_database(&current.path, run).await
        && known.built > provenance.built
    {
        return Err(UpdateError::Older {
            new: provenance.built,
            current: known.built,
        });
    }
    let describe = |facts: FileFacts| Published {
        built: provenance.built,
        revision: provenance.revision.clone(),
        schema: provenance.schema.clone(),
        sha256: facts.sha256,
        bytes: facts.bytes,
        source: "upstream".to_owned(),
    };
    let generation = store.publish(&lock, staging, Timestamp::now(), describe)?;
    store.clean_up(&lock, Timestamp::now(), plan.interval);
    Ok(Outcome::Updated(generation, provenance))
}
