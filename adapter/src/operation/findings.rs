//! From a stored SBOM to its findings: pinned database generation, matcher, report, response. The same for HTTP and
//! for one-shot scans.

use super::{completeness, in_background};
use crate::app::App;
use crate::problem::{Problem, sanitize};
use crate::run::RunContext;
use crate::sbom::merge::{self, PlatformsByRef};
use crate::sbom::{budget, cyclonedx, report};
use crate::workspace::Workspace;
use assay_schemas::catalog::{PartialCode, PartialReason};
use assay_schemas::matching::MatchSummary;
use assay_schemas::version::{ADAPTER_NAME, ADAPTER_VERSION, MATCHER_ENGINE};
use assay_schemas::{Code, Document, MatchResponse};
use std::io;
use std::time::Instant;

/// Matches the SBOM that is stored as `sbom` in the workspace.
///
/// # Errors
/// Those of each stage.
pub async fn find(
    app: &App,
    workspace: &Workspace,
    sbom: &str,
    run: &RunContext,
) -> Result<MatchResponse, Problem> {
    let facts = in_background({
        let path = workspace.path().join(sbom);
        move || {
            let document = std::fs::read(path).map_err(unreadable)?;
            let (_, projection) = cyclonedx::read(&document).map_err(Problem::from)?;
            Ok((projection, merge::platforms(&document)))
        }
    })
    .await;
    let (inventory, platforms, doubt) = match facts {
        Ok((projection, platforms)) => (Some(projection), platforms, None),
        // What the matcher makes of such a document is its verdict; but nobody knows what it was matched against.
        Err(problem) if problem.code == Code::SbomInvalid => {
            (None, PlatformsByRef::new(), Some(unknown_inventory(&problem)))
        }
        Err(problem) => return Err(problem),
    };

    // From here on this generation and no other, whatever is published meanwhile.
    let generation = app.scanner.database.pin().await?;
    let snapshot = app.scanner.snapshot_of(&generation, run).await?;
    app.metrics.engine_processes.inc();
    let matched = app
        .scanner
        .engines
        .match_sbom(sbom, &generation.path, workspace.path(), run)
        .await?;
    // The engine and all that it has started are gone.
    drop(generation);
    app.metrics.stage("engine", matched.elapsed);

    let started = Instant::now();
    let report = in_background(move || Ok(report::normalize(&matched.document, &platforms)?)).await?;
    let mut reasons = report.reasons;
    reasons.extend(matched.warnings.reasons);
    reasons.extend(doubt);
    let mut components = 0;
    if let Some(inventory) = inventory {
        components = u64::from(inventory.component_count);
        reasons.extend(blind_spots(
            inventory.unmatchable,
            inventory.without_distribution,
            &reasons,
        ));
    }
    let mut response = MatchResponse {
        adapter_name: ADAPTER_NAME.to_owned(),
        adapter_version: ADAPTER_VERSION.to_owned(),
        engine_name: MATCHER_ENGINE.to_owned(),
        engine_version: snapshot.versions.grype,
        vulnerability_database_revision: snapshot.revision,
        vulnerability_database_updated_at: snapshot.updated_at,
        capability_digest: app.capability_digest.clone(),
        completeness: completeness(&reasons),
        report_json: Document(report.document),
        summary: MatchSummary {
            finding_projection_count: report.findings.len() as u64,
            severity_counts: report.severity_counts,
            matches_reported: report.matches_reported,
            components_matched_against: components,
            partial_reasons: reasons,
            other_engine_warnings: matched.warnings.other,
        },
        findings: report.findings,
    };
    if !budget::fit_match(&mut response, budget::Budget::CLIENT) {
        return Err(Problem::new(
            Code::OutputTooLarge,
            "the report does not fit into a response",
        ));
    }
    app.metrics.stage("parse", started.elapsed());
    Ok(response)
}

/// Components that no matcher can see: an empty result says nothing about them.
fn blind_spots(unmatchable: u64, without_distribution: u64, known: &[PartialReason]) -> Vec<PartialReason> {
    let mut reasons = Vec::new();
    if unmatchable > 0 {
        reasons.push(PartialReason {
            code: PartialCode::UnmatchableComponents,
            detail: format!("{unmatchable} components have no package URL or no version"),
        });
    }
    if without_distribution > 0
        && known
            .iter()
            .all(|reason| reason.code != PartialCode::DistroUnknown)
    {
        reasons.push(PartialReason {
            code: PartialCode::DistroUnknown,
            detail: format!("{without_distribution} operating system packages name no distribution"),
        });
    }
    reasons
}

/// The SBOM is no CycloneDX document within the contract's bounds: no result about it is a whole one.
fn unknown_inventory(problem: &Problem) -> PartialReason {
    let detail = sanitize(&format!("it is not known what was matched: {problem}"), 200);
    PartialReason {
        code: PartialCode::UnsupportedFormat,
        detail,
    }
}

fn unreadable(error: io::Error) -> Problem {
    Problem::new(Code::MatchIo, "the stored SBOM cannot be read").caused_by(error)
}
