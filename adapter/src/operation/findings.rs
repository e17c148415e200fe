//! From a stored SBOM to its findings: pinned database generation, matcher, report, response. The same for HTTP and
//! for one-shot scans.

use crate::app::App;
use crate::problem::Problem;
use crate::run::RunContext;
use crate::workspace::Workspace;
use assay_schemas::{Code, MatchResponse};
use std::path::Path;

/// Matches an SBOM.
///
/// # Errors
/// Those of each stage.
pub async fn find(
    _app: &App,
    _workspace: &Workspace,
    _sbom: &Path,
    _run: &RunContext,
) -> Result<MatchResponse, Problem> {
    Err(Problem::new(Code::NotReady, "not yet"))
}
