//! What an operator may ask of the generations that are there.

use super::Layout;
use super::lock::{self, Attempt};
use super::publish::FileFacts;
use super::record::Published;
use super::store::{DatabaseError, Generation, Store};
use crate::engine::{DatabaseProvenance, EngineError, Engines};
use crate::run::RunContext;
use jiff::Timestamp;
use serde::Serialize;
use std::io;

/// One generation, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// When it was published, by its name.
    pub published: Timestamp,
    /// Build time of the database; `None` when nobody can say.
    pub built: Option<Timestamp>,
    /// Bytes of the database file.
    pub bytes: u64,
    /// Whether the pointer names it.
    pub current: bool,
    /// Whether a reader holds it; `None` where files cannot be locked.
    pub pinned: Option<bool>,
    /// Where it came from, when that was noted.
    pub source: Option<String>,
}

/// A generation that was read and opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// Revision as the engine tells it.
    pub revision: String,
    /// Build time.
    pub built: Timestamp,
    /// Schema version.
    pub schema: String,
    /// Lower-case SHA-256 of the database file.
    pub sha256: String,
    /// Bytes of the database file.
    pub bytes: u64,
    /// Whether it is what was published; `None` when that was not noted.
    pub as_published: Option<bool>,
    /// Where it came from, when that was noted.
    pub source: Option<String>,
}

/// Why a generation is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is no such generation.
    #[error(transparent)]
    Store(#[from] DatabaseError),
    /// The engine cannot use it.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It cannot be read.
    #[error("the database file cannot be read")]
    Io(#[from] io::Error),
    /// It changed while it was looked at.
    #[error("the database file changed while the matcher had it open")]
    Unstable,
    /// It is not what was published.
    #[error("the database file has SHA-256 {found}, {published} was published")]
    Changed {
        /// What is there.
        found: String,
        /// What was noted when it was published.
        published: String,
    },
}

impl Store {
    /// All generations, newest first. The engine is asked only about those of which nothing is noted.
    pub async fn list(&self, engines: &Engines, run: &RunContext) -> Vec<Entry> {
        let current = self.current().ok().map(|generation| generation.name);
        let mut entries = Vec::new();
        for generation in self.generations() {
            let record: Option<Published> = self.record(&self.record_of(&generation.name));
            let built = match &record {
                Some(record) => Some(record.built),
                None => engines
                    .validate_database(&generation.path, run)
                    .await
                    .ok()
                    .map(|provenance| provenance.built),
            };
            entries.push(Entry {
                published: generation.published,
                built,
                bytes: std::fs::metadata(Layout::database(&generation.path)).map_or(0, |meta| meta.len()),
                current: current.as_ref() == Some(&generation.name),
                pinned: match lock::exclude(&generation.path) {
                    Ok(Attempt::Taken) => Some(true),
                    Ok(Attempt::Locked(_) | Attempt::Absent) => Some(false),
                    Ok(Attempt::Unsupported) | Err(_) => None,
                },
                source: record.map(|record| record.source),
                name: generation.name.to_string(),
            });
        }
        entries
    }

    /// Reads a generation whole, lets the engine open it, and reads it again. Blocking for as long as that takes.
    ///
    /// # Errors
    /// [`VerifyError`].
    pub async fn verify(
        &self,
        engines: &Engines,
        generation: &Generation,
        run: &RunContext,
    ) -> Result<Verified, VerifyError> {
        let database = Layout::database(&generation.path);
        let before = FileFacts::of(&database)?;
        let DatabaseProvenance {
            revision,
            built,
            schema,
        } = engines.validate_database(&generation.path, run).await?;
        let after = FileFacts::of(&database)?;
        if before != after {
            return Err(VerifyError::Unstable);
        }
        let record: Option<Published> = self.record(&self.record_of(&generation.name));
        let found = after.sha256.unwrap_or_default();
        let published = record.as_ref().and_then(|record| record.sha256.clone());
        if let Some(published) = &published
            && *published != found
        {
            return Err(VerifyError::Changed {
                found,
                published: published.clone(),
            });
        }
        Ok(Verified {
            name: generation.name.to_string(),
            revision,
            built,
            schema,
            sha256: found,
            bytes: after.bytes,
            as_published: published.map(|_| true),
            source: record.map(|record| record.source),
        })
    }

    /// The generation to go back to when none is named: the newest that was published before the current one.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when there is none.
    pub fn previous(&self) -> Result<Generation, DatabaseError> {
        let generations = self.generations();
        let Ok(current) = self.current() else {
            return generations.into_iter().next().ok_or(DatabaseError::Unavailable);
        };
        generations
            .into_iter()
            .skip_while(|generation| generation.name != current.name)
            .nth(1)
            .ok_or(DatabaseError::Unavailable)
    }
}
