//! From a stored artifact to its inventory: gate, recognition, cataloguer, document, response. The same for HTTP and
//! for one-shot scans.

use crate::app::App;
use crate::http::upload::Received;
use crate::problem::Problem;
use crate::recognition::Distribution;
use crate::run::RunContext;
use crate::workspace::Workspace;
use assay_schemas::{ArtifactType, CatalogResponse, Code, ResourceLimits};
use std::fs::File;
use std::path::PathBuf;

/// A stored artifact.
#[derive(Debug)]
pub struct Artifact {
    /// Open for reading and writing; everything that is inspected is read through it.
    pub file: File,
    /// Where it lies in the workspace.
    pub path: PathBuf,
    /// The client's hint.
    pub artifact_type: ArtifactType,
    /// Size and hash.
    pub received: Received,
}

/// Takes the inventory of an artifact.
///
/// # Errors
/// Those of each stage.
pub async fn take(
    _app: &App,
    _workspace: &Workspace,
    _artifact: Artifact,
    _limits: &ResourceLimits,
    _distribution: Option<Distribution>,
    _run: &RunContext,
) -> Result<CatalogResponse, Problem> {
    Err(Problem::new(Code::NotReady, "not yet"))
}
