//! `POST /v1/oci/scan`: request validation. Staging is not built yet; a valid request is answered with a retryable
//! error that says so, never with an empty result.

use super::oci_request::image_reference;
use crate::app::App;
use crate::problem::Problem;
use crate::runs::RunId;
use assay_schemas::{Code, OciScanRequest, OciScanResponse};
use bytes::Bytes;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Runs an OCI scan.
///
/// # Errors
/// The contract's codes in the contract's order.
pub async fn run(app: Arc<App>, body: Bytes, gone: CancellationToken) -> Result<OciScanResponse, Problem> {
    let request: Option<OciScanRequest> = serde_json::from_slice(&body).map_err(|error| {
        Problem::new(Code::RequestInvalid, "the request is not a valid JSON object").caused_by(error)
    })?;
    let Some(request) = request else {
        return Err(Problem::new(Code::RunIdInvalid, "the request is null"));
    };
    if let Some(limits) = &request.limits {
        limits
            .validate()
            .map_err(|error| Problem::new(Code::RequestInvalid, error.to_string()))?;
    }
    let run_id = RunId::parse(request.run_id.as_deref().unwrap_or(""))?;
    tracing::Span::current().record("run_id", run_id.as_str());
    let active = app.runs.enter(run_id, gone)?;
    let Some(limits) = request.limits else {
        return Err(Problem::new(Code::ResourceLimitsRequired, "limits are required"));
    };
    let (_permit, _run) = super::admit(&app, &active, &limits).await?;
    let image = image_reference(request)?;
    Err(Problem::new(
        Code::OciRegistryScanFailed,
        format!(
            "this build cannot stage images yet ({} platforms were requested)",
            image.platforms.len()
        ),
    ))
}
