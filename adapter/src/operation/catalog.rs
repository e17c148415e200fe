//! `POST /v1/catalog`: bytes to SBOM.

use super::inventory::{self, Examination, Subject};
use super::status;
use crate::app::App;
use crate::http::headers::{self, CatalogHead};
use crate::http::service::BodyInCustody;
use crate::http::upload::{self, Received};
use crate::problem::{Problem, sanitize};
use crate::recognition::Distribution;
use crate::run::RunContext;
use crate::spool::{self, Writer};
use crate::workspace::Workspace;
use assay_schemas::{ArtifactType, CatalogResponse, Code, ResourceLimits};
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

/// Runs a catalog request.
///
/// # Errors
/// The contract's codes in the contract's order.
pub async fn run(
    app: Arc<App>,
    head: CatalogHead,
    mut body: BodyInCustody,
) -> Result<CatalogResponse, Problem> {
    let active = app.runs.enter(head.run_id.clone(), body.gone.clone())?;
    let (permit, run) = super::admit(&app, &active, &head.limits).await?;
    let limits = head.limits.lowered_to(&app.config.ceiling);
    let artifact_type = artifact_type(head.artifact_type.as_deref())?;
    let distribution = distribution(head.distribution.as_deref())?;
    let workspace = Workspace::create(&app.config.engine.work_directory, "catalog-")?;
    let outcome = async {
        let expected_sha256 = headers::sha256(&head.expected_sha256)?;
        let expected_size = expected_size(head.expected_size, &limits)?;
        // Cheaper to say it now than after an upload.
        run.bound(status::require_ready(&app)).await??;
        // What was announced is what the body must turn out to be, so the gate can hold the body to it while it comes.
        let (spool, file, subject) = store(&workspace, artifact_type, expected_size)?;
        let examination = Examination::begin(&workspace, subject, &limits, distribution, &run)?;
        // Whatever the gate finds on the way: an input that is not what was announced has its own code.
        let received = receive(&app, file, spool, &limits, &run, &mut body)
            .await
            .and_then(|received| {
                check_received(&received, &expected_sha256, Some(expected_size))?;
                Ok(received)
            });
        match received {
            Ok(received) => inventory::conclude(&app, &workspace, examination, &received, &run).await,
            Err(problem) => {
                examination.abandon().await;
                Err(problem)
            }
        }
    }
    .await;
    super::clean_up(&app, workspace, permit).await;
    outcome
}

/// Makes the file for a body under the only name that its type can have: to be written, and to be examined meanwhile.
fn store(
    workspace: &Workspace,
    artifact_type: ArtifactType,
    size: u64,
) -> Result<(Writer, File, Subject), Problem> {
    let failed = |error| Problem::new(Code::InputIo, "the input cannot be stored").caused_by(error);
    let (file, path) = workspace.create_file(artifact_type.file_name()).map_err(failed)?;
    let (writer, reader) = spool::growing();
    let subject = Subject {
        file: file.try_clone().map_err(failed)?,
        path,
        artifact_type,
        file_name: None,
        size,
        growth: Some(reader),
    };
    Ok((writer, file, subject))
}

async fn receive(
    app: &App,
    file: File,
    spool: Writer,
    limits: &ResourceLimits,
    run: &RunContext,
    body: &mut BodyInCustody,
) -> Result<Received, Problem> {
    let started = Instant::now();
    let limit = u64::try_from(limits.max_input_bytes).unwrap_or(0);
    let stall = app.config.http.body_timeout;
    let received = upload::receive_for_reader(body, file, spool, limit, stall, run).await?;
    app.metrics.stage("receive", started.elapsed());
    tracing::debug!(bytes = received.size, "the input is here");
    Ok(received)
}

/// Compares what arrived with what was announced: the hash first, as the contract has it.
///
/// # Errors
/// [`Code::InputSha256Mismatch`], [`Code::InputSizeMismatch`].
pub(super) fn check_received(received: &Received, sha256: &str, size: Option<u64>) -> Result<(), Problem> {
    if received.sha256 != sha256 {
        return Err(Problem::new(
            Code::InputSha256Mismatch,
            "the input does not have the expected SHA-256",
        ));
    }
    match size {
        Some(expected) if expected != received.size => {
            let message = format!("the input has {} bytes, {expected} were expected", received.size);
            Err(Problem::new(Code::InputSizeMismatch, message))
        }
        _ => Ok(()),
    }
}

fn artifact_type(text: Option<&str>) -> Result<ArtifactType, Problem> {
    let text = text.unwrap_or("");
    ArtifactType::parse(text).ok_or_else(|| {
        Problem::new(
            Code::RequestInvalid,
            format!("unknown artifact type '{}'", sanitize(text, 64)),
        )
    })
}

fn distribution(text: Option<&str>) -> Result<Option<Distribution>, Problem> {
    text.map(|text| {
        Distribution::parse(text)
            .ok_or_else(|| Problem::new(Code::RequestInvalid, "the distribution is not id:version"))
    })
    .transpose()
}

fn expected_size(declared: i64, limits: &ResourceLimits) -> Result<u64, Problem> {
    match u64::try_from(declared) {
        Ok(size) if declared <= limits.max_input_bytes => Ok(size),
        _ => {
            let message = format!(
                "the declared size {declared} is not within 0..={}",
                limits.max_input_bytes
            );
            Err(Problem::new(Code::InputSizeInvalid, message))
        }
    }
}
