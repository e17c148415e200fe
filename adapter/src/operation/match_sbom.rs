//! `POST /v1/match`: SBOM to findings.

use crate::app::App;
use crate::http::headers::{self, MatchHead};
use crate::http::service::BodyInCustody;
use crate::problem::Problem;
use assay_schemas::{Code, MatchResponse};
use std::sync::Arc;

/// Runs a match request.
///
/// # Errors
/// The contract's codes in the contract's order.
pub async fn run(app: Arc<App>, head: MatchHead, body: BodyInCustody) -> Result<MatchResponse, Problem> {
    let active = app.runs.enter(head.run_id.clone(), body.gone.clone())?;
    let (_permit, _run) = super::admit(&app, &active, &head.limits).await?;
    headers::sha256(&head.sbom_sha256)?;
    Err(Problem::new(Code::NotReady, "not yet"))
}
