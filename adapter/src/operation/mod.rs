//! One straight story each: what an operation does from its head to its response. No parsing, no policy.

pub mod catalog;
pub mod findings;
pub mod inventory;
pub mod match_sbom;
mod oci_inventory;
pub mod oci_request;
pub mod oci_scan;
pub mod readiness;
pub mod status;

use crate::admission::Permit;
use crate::app::App;
use crate::problem::Problem;
use crate::run::{Deadline, RunContext, StopOrder, StopReason};
use crate::runs::ActiveRun;
use crate::workspace::Workspace;
use assay_schemas::catalog::PartialReason;
use assay_schemas::{Code, Completeness, ResourceLimits};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinError;

/// Most characters of a client's idempotency key that go into the log.
pub const MAX_RECORDED_KEY: usize = 255;

/// What an operation gives.
#[derive(Debug)]
pub struct Answered<T> {
    /// Its response.
    pub response: T,
    /// The memory for it; to be held until it is written.
    pub memory: Permit,
}

/// A run that has its slot.
#[derive(Debug)]
struct Admitted {
    permit: Permit,
    run: RunContext,
    stop: StopOrder,
}

/// Waits for a slot and starts the run's clock. `limits` decide whether the run can ever fit; `reserved`, which are no
/// larger, what it takes.
async fn admit(
    app: &App,
    active: &ActiveRun,
    limits: &ResourceLimits,
    reserved: &ResourceLimits,
) -> Result<Admitted, Problem> {
    let ceiling = &app.config.ceiling;
    let estimate = |limits: &ResourceLimits| limits.lowered_to(ceiling).scratch_mebibytes(ceiling);
    app.admission.check_estimate(estimate(limits))?;
    let stop = active.stop.clone();
    let permit = app.admission.admit(estimate(reserved), stop.token()).await?;
    let seconds = limits.lowered_to(ceiling).timeout_seconds;
    let timeout = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
    let run = RunContext {
        deadline: Deadline::after(timeout),
        cancel: stop.token().clone(),
    };
    Ok(Admitted { permit, run, stop })
}

/// Runs blocking or long work off the async threads. A panic in it is this run's error, not the service's.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    unless_panicked(tokio::task::spawn_blocking(work).await)
}

/// The outcome of background work.
fn unless_panicked<T>(outcome: Result<Result<T, Problem>, JoinError>) -> Result<T, Problem> {
    outcome.unwrap_or_else(|error| {
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
async fn conclude<T>(
    app: &App,
    workspace: Workspace,
    admitted: Admitted,
    outcome: Result<T, Problem>,
) -> Result<Answered<T>, Problem> {
    let ordered = outcome
        .as_ref()
        .err()
        .and_then(|problem| admitted.ordered(problem));
    let metrics = Arc::clone(&app.metrics);
    let mut permit = admitted.permit;
    let memory = permit.split_memory();
    let removal = app.operations.spawn(async move {
        workspace.remove().await;
        drop(permit);
        if let Some((reason, at)) = ordered {
            metrics.ended(reason, at.elapsed());
        }
    });
    let _ = tokio::time::timeout(CLEAN_UP_PATIENCE, removal).await;
    outcome.map(|response| Answered { response, memory })
}

impl Admitted {
    /// What ended the run that failed so, if it was ordered to end, and when the order was given.
    fn ordered(&self, problem: &Problem) -> Option<(StopReason, Instant)> {
        let deadline = self.run.deadline;
        let is_late = problem.code == Code::Timeout && deadline.remaining().is_zero();
        self.stop
            .given()
            .or_else(|| is_late.then(|| (StopReason::Deadline, deadline.instant())))
    }
}
