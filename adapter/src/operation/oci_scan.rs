//! `POST /v1/oci/scan`: image digest to SBOM and findings.

use super::MAX_RECORDED_KEY;
use super::oci_request::{self, ImageReference};
use super::{Answered, findings, inventory, oci_inventory, readiness};
use crate::app::App;
use crate::oci::layout::Store;
use crate::oci::stage::{self, Order, Staged};
use crate::problem::{Problem, sanitize};
use crate::run::{RunContext, StopOrder};
use crate::runs::RunId;
use crate::sbom::budget::{self, Budget, Cost};
use crate::workspace::Workspace;
use assay_schemas::oci::ExpectedSnapshot;
use assay_schemas::{Code, OciScanRequest, OciScanResponse, ResourceLimits};
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use zeroize::Zeroize as _;

/// Name of the merged SBOM.
const MERGED_FILE: &str = "merged.cdx.json";

/// Runs an OCI scan.
///
/// # Errors
/// The contract's codes in the contract's order.
pub async fn run(app: Arc<App>, body: Bytes, stop: StopOrder) -> Result<Answered<OciScanResponse>, Problem> {
    let request: Option<OciScanRequest> = serde_json::from_slice(&body).map_err(|error| {
        Problem::new(Code::RequestInvalid, "the request is not a valid JSON object").caused_by(error)
    })?;
    wipe(body);
    let Some(mut request) = request else {
        return Err(Problem::new(Code::RunIdInvalid, "the request is null"));
    };
    if let Some(limits) = &request.limits {
        limits
            .validate()
            .map_err(|error| Problem::new(Code::RequestInvalid, error.to_string()))?;
    }
    let run_id = RunId::parse(request.run_id.as_deref().unwrap_or(""))?;
    tracing::Span::current().record("run_id", run_id.as_str());
    if let Some(key) = &request.idempotency_key {
        tracing::Span::current().record("idempotency_key", sanitize(key, MAX_RECORDED_KEY));
    }
    let active = app.runs.enter(run_id, stop)?;
    let Some(limits) = request.limits else {
        return Err(Problem::new(Code::ResourceLimitsRequired, "limits are required"));
    };
    // How large an image is turns out only when its registry has been asked.
    let admitted = super::admit(&app, &active, &limits, &limits).await?;
    let run = &admitted.run;
    let limits = limits.lowered_to(&app.config.ceiling);
    let expected = request.expected_snapshot.take();
    let image = oci_request::image_reference(request)?;
    let workspace = Workspace::create(&app.config.engine.work_directory, "oci-")?;
    let outcome = async {
        run.bound(readiness::require_ready(&app)).await??;
        if let Some(expected) = expected {
            check_snapshot(&app, &expected).await?;
        }
        scan(&app, &workspace, image, &limits, run).await
    }
    .await;
    super::conclude(&app, workspace, admitted, outcome).await
}

async fn scan(
    app: &App,
    workspace: &Workspace,
    image: ImageReference,
    limits: &ResourceLimits,
    run: &RunContext,
) -> Result<OciScanResponse, Problem> {
    let started = Instant::now();
    let store = Store::create(workspace.path()).map_err(stage_io)?;
    let digest = image.digest.clone();
    // The token ends with this call.
    let staged = stage(app, workspace, &store, image, limits, run).await?;
    app.metrics.stage("stage", started.elapsed());

    let scanned: Vec<String> = staged
        .images
        .iter()
        .map(|image| image.requested.to_string())
        .collect();
    let missing: Vec<String> = staged.missing.iter().map(ToString::to_string).collect();
    let mut catalog = oci_inventory::take(app, workspace, &store, &digest, &staged, limits, run).await?;

    let merged = workspace.path().join(MERGED_FILE);
    tokio::fs::write(&merged, &catalog.cyclonedx_json.0)
        .await
        .map_err(|error| {
            Problem::new(Code::OciScanIo, "the merged SBOM cannot be stored").caused_by(error)
        })?;
    let mut matched = findings::find(app, workspace, MERGED_FILE, run).await?;
    let reasons = &mut matched.summary.partial_reasons;
    reasons.extend(oci_inventory::missing_reasons(&staged));
    matched.completeness = super::completeness(reasons);

    // Both parts travel in one answer.
    let left = Budget::CLIENT.minus(Cost::of(&matched));
    if !budget::fit_catalog(&mut catalog, left) {
        return Err(Problem::new(
            Code::OutputTooLarge,
            "SBOM and report do not fit into a response",
        ));
    }
    Ok(OciScanResponse {
        catalog,
        matched,
        scanned_platforms: scanned,
        missing_platforms: missing,
    })
}

async fn stage(
    app: &App,
    workspace: &Workspace,
    store: &Store,
    image: ImageReference,
    limits: &ResourceLimits,
    run: &RunContext,
) -> Result<Staged, Problem> {
    let registry = app
        .registries
        .repository(&image.registry, &image.repository, &image.token, run)?;
    drop(image.token);
    let order = Order {
        root: &image.digest,
        selection: &image.selection,
        limits,
        gate: inventory::gate_limits(limits),
        parallel_fetches: app.registries.parallel_fetches,
    };
    Ok(stage::stage(&registry, &order, store, workspace.path(), run).await?)
}

/// Cheaper to say it now than after a scan that the client will not take.
async fn check_snapshot(app: &Arc<App>, expected: &ExpectedSnapshot) -> Result<(), Problem> {
    let now = readiness::readiness(app).await;
    let is_other = |expected: &Option<String>, now: &str| expected.as_deref().is_some_and(|text| text != now);
    let is_mismatch = is_other(&expected.adapter_name, assay_schemas::version::ADAPTER_NAME)
        || is_other(&expected.engine_name, &now.engine_name)
        || is_other(&expected.engine_version, &now.engine_version)
        || is_other(
            &expected.vulnerability_database_revision,
            &now.vulnerability_database_revision,
        )
        || is_other(
            &expected.vulnerability_database_updated_at,
            &now.vulnerability_database_updated_at,
        )
        || is_other(&expected.capability_digest, &app.capability_digest);
    if is_mismatch {
        return Err(Problem::new(
            Code::SnapshotMismatch,
            "the expected scanner snapshot is not the one in use",
        ));
    }
    Ok(())
}

/// Overwrites the request's bytes, the token among them, where nobody else holds them.
fn wipe(body: Bytes) {
    if let Ok(mut bytes) = body.try_into_mut() {
        bytes.as_mut().zeroize();
    }
}

fn stage_io(error: io::Error) -> Problem {
    Problem::new(Code::OciStageIo, "the image cannot be stored").caused_by(error)
}
