//! Runs the canary: the matcher on each SBOM of the golden set, with the staged database and with the current one.

use super::canary::{Bounds, Findings, Golden, Set, Trial};
use crate::engine::{EngineError, Engines};
use crate::run::RunContext;
use crate::workspace::Workspace;
use std::io;
use std::path::{Path, PathBuf};

/// Name of an SBOM in its run's directory.
const SBOM: &str = "sbom.cdx.json";

/// A golden set and what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    /// The SBOMs.
    pub set: Set,
    /// How far findings may move.
    pub bounds: Bounds,
    /// Where runs get a private directory each.
    pub scratch: PathBuf,
}

impl Canary {
    /// Tries the staged database on the set that was loaded, beside the current one. A current one that the matcher cannot use is no measure.
    ///
    /// # Errors
    /// When the matcher fails on the staged database, or its report is none.
    pub async fn run(
        &self,
        engines: &Engines,
        golden: &[Golden],
        staged: &Path,
        current: Option<&Path>,
        run: &RunContext,
    ) -> Result<Vec<Trial>, EngineError> {
        let mut trials = Vec::new();
        for golden in golden {
            let new = self.find(engines, golden, staged, run).await?;
            let old = match current {
                Some(current) => self.find(engines, golden, current, run).await.ok(),
                None => None,
            };
            run.check()?;
            trials.push(Trial::new(golden, old.as_ref(), &new, self.bounds));
        }
        Ok(trials)
    }

    async fn find(
        &self,
        engines: &Engines,
        golden: &Golden,
        database: &Path,
        run: &RunContext,
    ) -> Result<Findings, EngineError> {
        let prepared = EngineError::io("prepared");
        let workspace = Workspace::create(&self.scratch, "db-update-")
            .map_err(|error| EngineError::io("prepared")(error.into_inner()))?;
        tokio::fs::write(workspace.path().join(SBOM), &golden.sbom)
            .await
            .map_err(prepared)?;
        let matched = engines.match_sbom(SBOM, database, workspace.path(), run).await;
        workspace.remove().await;
        Findings::parse(&matched?.document)
            .map_err(|error| EngineError::io("understood")(io::Error::from(error)))
    }
}
