//! `POST /v1/match`: SBOM to findings.

use super::catalog::check_received;
use super::findings;
use super::status;
use crate::app::App;
use crate::http::headers::{self, MatchHead};
use crate::http::service::BodyInCustody;
use crate::http::upload;
use crate::problem::Problem;
use crate::run::RunContext;
use crate::workspace::Workspace;
use assay_schemas::{Code, MatchResponse, ResourceLimits};
use std::sync::Arc;
use std::time::Instant;

/// Name of a stored SBOM.
pub const SBOM_FILE: &str = "sbom.cdx.json";

/// Runs a match request.
///
/// # Errors
/// The contract's codes in the contract's order.
pub async fn run(app: Arc<App>, head: MatchHead, mut body: BodyInCustody) -> Result<MatchResponse, Problem> {
    let active = app.runs.enter(head.run_id.clone(), body.gone.clone())?;
    let (permit, run) = super::admit(&app, &active, &reservation(&head.limits)).await?;
    let limit = head.limits.lowered_to(&app.config.ceiling).max_input_bytes;
    let workspace = Workspace::create(&app.config.engine.work_directory, "match-")?;
    let outcome = async {
        let sha256 = headers::sha256(&head.sbom_sha256)?;
        // Cheaper to say it now than after an upload.
        run.bound(status::require_ready(&app)).await??;
        receive(&app, &workspace, limit, &sha256, &mut body, &run).await?;
        findings::find(&app, &workspace, SBOM_FILE, &run).await
    }
    .await;
    super::clean_up(&app, workspace, permit).await;
    outcome
}

/// The limits that a match reserves scratch for: nothing is unpacked. The whole input counts, because all of it is
/// stored before an SBOM over the output cap is refused.
fn reservation(limits: &ResourceLimits) -> ResourceLimits {
    ResourceLimits {
        max_nested_depth: 0,
        ..*limits
    }
}

async fn receive(
    app: &App,
    workspace: &Workspace,
    limit: i64,
    sha256: &str,
    body: &mut BodyInCustody,
    run: &RunContext,
) -> Result<(), Problem> {
    let started = Instant::now();
    let (file, _) = workspace
        .create_file(SBOM_FILE)
        .map_err(|error| Problem::new(Code::InputIo, "the input cannot be stored").caused_by(error))?;
    let limit = u64::try_from(limit).unwrap_or(0);
    let received = upload::receive(body, file, limit, app.config.http.body_timeout, run).await?;
    app.metrics.stage("receive", started.elapsed());
    check_received(&received, sha256, None)?;
    let cap = u64::try_from(app.config.ceiling.max_output_bytes).unwrap_or(0);
    if received.size > cap {
        let message = format!(
            "the SBOM has {} bytes, at most {cap} can be matched",
            received.size
        );
        return Err(Problem::new(Code::SbomTooLarge, message));
    }
    Ok(())
}
