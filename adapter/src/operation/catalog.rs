//! `POST /v1/catalog`: bytes to SBOM.

use super::inventory::{self, Examination, Subject};
use super::{Answered, readiness};
use crate::app::App;
use crate::archive::{ENTRY_RATIO_FLOOR_BYTES, EXPANSION_RATIO};
use crate::http::headers::{self, CatalogHead};
use crate::http::service::BodyInCustody;
use crate::http::upload::{self, Bounds, Received};
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
) -> Result<Answered<CatalogResponse>, Problem> {
    let active = app.runs.enter(head.run_id.clone(), body.stop.clone())?;
    let admitted = super::admit(&app, &active, &head.limits, &reservation(&head)).await?;
    let run = &admitted.run;
    let limits = head.limits.lowered_to(&app.config.ceiling);
    let artifact_type = artifact_type(head.artifact_type.as_deref())?;
    let distribution = distribution(head.distribution.as_deref())?;
    let workspace = Workspace::create(&app.config.engine.work_directory, "catalog-")?;
    let outcome = async {
        let expected_sha256 = headers::sha256(&head.expected_sha256)?;
        let expected_size = expected_size(head.expected_size, &limits)?;
        // Cheaper to say it now than after an upload.
        run.bound(readiness::require_ready(&app)).await??;
        // What was announced is what the body must turn out to be, so the gate can hold the body to it while it comes.
        let (spool, file, subject) = store(&workspace, artifact_type, expected_size)?;
        let examination = Examination::begin(&workspace, subject, &limits, distribution, run)?;
        // Whatever the gate finds on the way: an input that is not what was announced has its own code.
        let storage = Storage {
            file,
            spool,
            limit: u64::try_from(limits.max_input_bytes).unwrap_or(0),
            kept: expected_size,
        };
        let received = receive(&app, storage, run, &mut body).await.and_then(|received| {
            check_received(&received, &expected_sha256, Some(expected_size))?;
            Ok(received)
        });
        match received {
            Ok(received) => inventory::conclude(&app, &workspace, examination, &received, run).await,
            Err(problem) => {
                examination.abandon().await;
                Err(problem)
            }
        }
    }
    .await;
    super::conclude(&app, workspace, admitted, outcome).await
}

/// The limits that a catalog reserves scratch for. No more is stored of an artifact than was announced, and the gate
/// lets no more come out of it than its ratio to that allows.
fn reservation(head: &CatalogHead) -> ResourceLimits {
    let limits = &head.limits;
    // What is refused in the slot reserves what its limits say until then.
    let Ok(announced) = u64::try_from(head.expected_size) else {
        return *limits;
    };
    let most_expanded = announced
        .saturating_mul(EXPANSION_RATIO)
        .max(ENTRY_RATIO_FLOOR_BYTES);
    let bound = |most: u64, limit: i64| i64::try_from(most).unwrap_or(i64::MAX).min(limit);
    ResourceLimits {
        max_input_bytes: bound(announced, limits.max_input_bytes),
        max_uncompressed_bytes: bound(most_expanded, limits.max_uncompressed_bytes),
        ..*limits
    }
}

/// Where a body goes.
struct Storage {
    file: File,
    spool: Writer,
    /// Most bytes of it.
    limit: u64,
    /// How many of them are stored; the others only count.
    kept: u64,
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
    storage: Storage,
    run: &RunContext,
    body: &mut BodyInCustody,
) -> Result<Received, Problem> {
    let started = Instant::now();
    let bounds = Bounds {
        limit: storage.limit,
        kept: storage.kept,
        stall: app.config.http.body_timeout,
    };
    let received = upload::receive_for_reader(body, storage.file, storage.spool, bounds, run).await?;
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

#[cfg(test)]
mod tests {
    use super::reservation;
    use crate::http::headers::CatalogHead;
    use crate::runs::RunId;
    use assay_schemas::{Ceiling, ResourceLimits};

    /// The contract's default profile and default ceiling.
    fn mebibytes(expected_size: i64) -> u64 {
        const CEILING: Ceiling = Ceiling {
            max_input_bytes: 2 << 30,
            max_output_bytes: 16 << 20,
            max_stderr_bytes: 256 << 10,
        };
        let head = CatalogHead {
            run_id: RunId::parse("a").unwrap(),
            expected_sha256: String::new(),
            expected_size,
            artifact_type: None,
            limits: ResourceLimits {
                max_input_bytes: 1 << 30,
                max_archive_entries: 100_000,
                max_uncompressed_bytes: 10 << 30,
                max_single_file_bytes: 1 << 30,
                max_nested_depth: 3,
                timeout_seconds: 600,
            },
            distribution: None,
        };
        reservation(&head)
            .lowered_to(&CEILING)
            .scratch_mebibytes(&CEILING)
    }

    #[test]
    fn what_is_announced_is_what_is_reserved() {
        // Three documents and the diagnostics are 48.25 MiB.
        for (size, expected) in [
            (0, 50),
            (1 << 10, 50),
            (100 << 10, 147),
            (1 << 20, 1050),
            (50 << 20, 3171),
            (1 << 30, 4145),
            // Refused in the slot, and until then the formula of the contract.
            (-1, 4145),
            (2 << 30, 4145),
        ] {
            assert_eq!(mebibytes(size), expected, "{size}");
        }
        assert!(
            2 * mebibytes(400 << 20) <= 7 << 10,
            "two of them fit into the default budget"
        );
    }
}
