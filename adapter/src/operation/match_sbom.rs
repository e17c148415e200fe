//! `POST /v1/match`: SBOM to findings.

use super::catalog::check_received;
use super::findings;
use super::{Answered, readiness};
use crate::app::App;
use crate::http::headers::{self, MatchHead};
use crate::http::service::BodyInCustody;
use crate::http::upload::{self, Bounds};
use crate::problem::Problem;
use crate::run::RunContext;
use crate::spool;
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
pub async fn run(
    app: Arc<App>,
    head: MatchHead,
    mut body: BodyInCustody,
) -> Result<Answered<MatchResponse>, Problem> {
    let active = app.runs.enter(head.run_id.clone(), body.stop.clone())?;
    let reserved = reservation(&head.limits, app.config.ceiling.max_output_bytes);
    let admitted = super::admit(&app, &active, &reserved, &reserved).await?;
    let run = &admitted.run;
    let limit = head.limits.lowered_to(&app.config.ceiling).max_input_bytes;
    let workspace = Workspace::create(&app.config.engine.work_directory, "match-")?;
    let outcome = async {
        let sha256 = headers::sha256(&head.sbom_sha256)?;
        // Cheaper to say it now than after an upload.
        run.bound(readiness::require_ready(&app)).await??;
        receive(&app, &workspace, limit, &sha256, &mut body, run).await?;
        findings::find(&app, &workspace, SBOM_FILE, run).await
    }
    .await;
    super::conclude(&app, workspace, admitted, outcome).await
}

/// The limits that a match reserves scratch for: nothing is unpacked, and no more is stored of an SBOM than can be
/// matched. The contract allows it, because it only admits more.
fn reservation(limits: &ResourceLimits, max_output_bytes: i64) -> ResourceLimits {
    ResourceLimits {
        max_input_bytes: limits.max_input_bytes.min(max_output_bytes),
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
    let cap = u64::try_from(app.config.ceiling.max_output_bytes).unwrap_or(0);
    // Nobody reads along.
    let (spool, _) = spool::growing();
    let bounds = Bounds {
        limit: u64::try_from(limit).unwrap_or(0),
        kept: cap,
        stall: app.config.http.body_timeout,
    };
    let received = upload::receive_for_reader(body, file, spool, bounds, run).await?;
    app.metrics.stage("receive", started.elapsed());
    check_received(&received, sha256, None)?;
    if received.size > cap {
        let message = format!(
            "the SBOM has {} bytes, at most {cap} can be matched",
            received.size
        );
        return Err(Problem::new(Code::SbomTooLarge, message));
    }
    Ok(())
}
