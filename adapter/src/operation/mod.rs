//! One straight story each: what an operation does from its head to its response. No parsing, no policy.

pub mod catalog;
pub mod findings;
pub mod inventory;
pub mod match_sbom;
pub mod oci_request;
pub mod oci_scan;
pub mod status;

use crate::admission::Permit;
use crate::app::App;
use crate::problem::Problem;
use crate::run::{Deadline, RunContext};
use crate::runs::ActiveRun;
use assay_schemas::ResourceLimits;
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
