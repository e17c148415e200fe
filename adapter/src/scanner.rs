//! Engines and vulnerability database as the operations see them: one place that says whether a scan can be done and
//! with which provenance.

use crate::config::Config;
use crate::problem::Problem;
use crate::run::RunContext;
use assay_schemas::Code;

/// Versions of both engines and provenance of one database generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Cataloguer version.
    pub syft: String,
    /// Matcher version.
    pub grype: String,
    /// Database revision, never blank.
    pub revision: String,
    /// Database build time, RFC 3339 UTC in milliseconds.
    pub updated_at: String,
}

/// Engines and database of this process.
#[derive(Debug)]
pub struct Scanner {}

impl Scanner {
    /// The scanner of this configuration. Does no I/O.
    pub fn new(_config: &Config) -> Self {
        Self {}
    }

    /// Identity of the published database generation; changes when another one is published.
    pub fn generation_identity(&self) -> Option<String> {
        None
    }

    /// What a scan would use now.
    ///
    /// # Errors
    /// The reason why no scan can be done.
    pub async fn snapshot(&self, _run: &RunContext) -> Result<Snapshot, Problem> {
        Err(Problem::new(Code::DatabaseUnavailable, "not yet"))
    }
}
