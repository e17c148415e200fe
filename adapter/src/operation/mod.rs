//! One straight story each: what an operation does from its head to its response. No parsing, no policy.

pub mod catalog;
pub mod findings;
pub mod inventory;
pub mod match_sbom;
mod oci_inventory;
pub mod oci_request;
pub mod oci_scan;
pub mod status;

use crate::admission::Permit;
use crate::app::App;
use crate::problem::Problem;
use crate::run::{Deadline, RunContext};
use crate::runs::ActiveRun;
use crate::workspace::Workspace;
use assay_schemas::catalog::PartialReason;
use assay_schemas::{Code, Completeness, ResourceLimits};
use std::time::Duration;

/// Waits for a slot and starts the run's clock.
async fn admit(
    app: &App,
    active: &ActiveRun,
    limits: &ResourceLimits,
) -> Result<(Permit, RunContext), Problem> {
    let ceiling = &app.config.ceiling;
    let effective = limits.lowered_to(ceiling);
    let cancel = active.cancel.clone();
    let permit = app
        .admission
        .admit(effective.scratch_mebibytes(ceiling), &cancel)
        .await?;
    let timeout = Duration::from_secs(u64::try_from(effective.timeout_seconds).unwrap_or(1));
    Ok((
        permit,
        RunContext {
            deadline: Deadline::after(timeout),
            cancel,
        },
    ))
}

/// Runs blocking or long work off the async threads. A panic in it is this run's error, not the service's.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Problem::new(Code::InternalError, "the run failed in an unexpected way").caused_by(error))
    })
}

/// Complete is only what has no reason against it.
fn completeness(reasons: &[PartialReason]) -> Completeness {
    if reasons.is_empty() {
        Completeness::Complete
    } else {
        Completeness::Partial
    }
}

/// Longest time for which an answer waits for its run's directory to be gone.
const CLEAN_UP_PATIENCE: Duration = Duration::from_millis(500);

/// Ends a run whose outcome is known. A small workspace is gone before the answer goes out; a large one takes longer
/// than a client waits behind its deadline, so the answer goes first. Slot and scratch come back when it is gone.
async fn clean_up(app: &App, workspace: Workspace, permit: Permit) {
    let removal = app.operations.spawn(async move {
        workspace.remove().await;
        drop(permit);
    });
    let _ = tokio::time::timeout(CLEAN_UP_PATIENCE, removal).await;
}
