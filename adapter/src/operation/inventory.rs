//! From a stored artifact to its inventory: gate, recognition, cataloguer, document, response. The same for HTTP and
//! for one-shot scans.

mod doubt;

use self::doubt::{doubts, is_conda_package, is_the_named_artifact, settle_distribution, unyielding};
use super::{completeness, in_background, unless_panicked};
use crate::app::App;
use crate::archive::{self, Gate, GateLimits, Input, Inspection};
use crate::engine::Warnings;
use crate::engine::syft::{CatalogFacts, CatalogJob, Source};
use crate::http::upload::Received;
use crate::problem::Problem;
use crate::recognition::{Collector, Distribution, LayoutLimits, Recognized, RootFacts};
use crate::run::RunContext;
use crate::sbom::budget;
use crate::sbom::cyclonedx::{self, NormalizedSbom, Origin};
use crate::spool::Reader;
use crate::workspace::Workspace;
use assay_schemas::catalog::{CatalogSummary, PartialCode, PartialReason};
use assay_schemas::version::{ADAPTER_NAME, ADAPTER_VERSION, CATALOG_ENGINE};
use assay_schemas::{ArtifactType, CatalogResponse, Code, Document, ResourceLimits};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::task::JoinHandle;
use tokio_util::sync::DropGuard;

/// Directory of the files that the cataloguers may read.
const LAYOUT: &str = "layout";

/// A stored artifact.
#[derive(Debug)]
pub struct Artifact {
    /// Open for reading and writing; everything that is inspected is read through it.
    pub file: File,
    /// Where it lies in the workspace.
    pub path: PathBuf,
    /// The client's hint.
    pub artifact_type: ArtifactType,
    /// The name that the file has where it comes from, if that is known; it may be anything.
    pub file_name: Option<String>,
    /// Size and hash.
    pub received: Received,
}

/// Takes the inventory of an artifact.
///
/// # Errors
/// Those of each stage.
pub async fn take(
    app: &App,
    workspace: &Workspace,
    artifact: Artifact,
    limits: &ResourceLimits,
    distribution: Option<Distribution>,
    run: &RunContext,
) -> Result<CatalogResponse, Problem> {
    let subject = Subject {
        file: artifact.file,
        path: artifact.path,
        artifact_type: artifact.artifact_type,
        file_name: artifact.file_name,
        size: artifact.received.size,
        growth: None,
    };
    let examination = Examination::begin(workspace, subject, limits, distribution, run)?;
    conclude(app, workspace, examination, &artifact.received, run).await
}

/// From an examination of bytes that turned out to be `received` to the response.
///
/// # Errors
/// Those of each stage.
pub(super) async fn conclude(
    app: &App,
    workspace: &Workspace,
    examination: Examination,
    received: &Received,
    run: &RunContext,
) -> Result<CatalogResponse, Problem> {
    let started = Instant::now();
    let (inspection, recognized) = examination.outcome().await?;
    app.metrics.stage("inspect", started.elapsed());

    let versions = app.scanner.engines.versions(run).await?;
    let job = CatalogJob {
        source: Source::Directory(LAYOUT),
        catalogers: recognized.plan.catalogers,
    };
    app.metrics.engine_processes.inc();
    let output = app.scanner.engines.catalog(&job, workspace.path(), run).await?;
    app.metrics.stage("engine", output.elapsed);

    let started = Instant::now();
    let (identities, renamed) = (recognized.identities.clone(), recognized.renamed.clone());
    let (sha256, engine_version) = (received.sha256.clone(), versions.syft.clone());
    let document = output.document;
    let sbom = in_background(move || {
        let origin = Origin {
            input_sha256: &sha256,
            engine_version: &engine_version,
            renamed: &renamed,
        };
        Ok(cyclonedx::normalize(&document, &identities, &origin)?)
    })
    .await?;
    let cap = u64::try_from(app.config.ceiling.max_output_bytes).unwrap_or(0);
    if sbom.document.len() as u64 > cap {
        return Err(Problem::new(
            Code::OutputTooLarge,
            format!("the SBOM has more than {cap} bytes"),
        ));
    }
    let evidence = Evidence {
        inspection,
        recognized,
        facts: output.facts,
        warnings: output.warnings,
    };
    let mut response = respond(app, received, versions.syft, sbom, evidence)?;
    if !budget::fit_catalog(&mut response, budget::Budget::CLIENT) {
        return Err(Problem::new(
            Code::OutputTooLarge,
            "the SBOM does not fit into a response",
        ));
    }
    app.metrics.stage("parse", started.elapsed());
    Ok(response)
}

/// What is to be examined.
#[derive(Debug)]
pub(super) struct Subject {
    /// Open for reading.
    pub(super) file: File,
    /// Where it lies in the workspace.
    pub(super) path: PathBuf,
    /// The client's hint.
    pub(super) artifact_type: ArtifactType,
    /// As in [`Artifact::file_name`].
    pub(super) file_name: Option<String>,
    /// Size of the whole file, bytes.
    pub(super) size: u64,
    /// How far it has grown, if it is not whole yet.
    pub(super) growth: Option<Reader>,
}

/// Gate and recognition: one pass over the bytes on a blocking thread, while they may still be arriving.
///
/// Whoever begins it must wait for its end, with [`Self::outcome`] or [`Self::abandon`], before the workspace goes.
#[derive(Debug)]
pub(super) struct Examination {
    work: JoinHandle<Result<(Inspection, Recognized), Problem>>,
    stop: DropGuard,
}

impl Examination {
    /// Begins it.
    pub(super) fn begin(
        workspace: &Workspace,
        subject: Subject,
        limits: &ResourceLimits,
        distribution: Option<Distribution>,
        run: &RunContext,
    ) -> Result<Self, Problem> {
        let layout = workspace
            .create_directory(LAYOUT)
            .map_err(|error| Problem::new(Code::WorkspaceIo, "the layout cannot be made").caused_by(error))?;
        let scratch = workspace.path().to_owned();
        let gate_limits = gate_limits(limits);
        let run = RunContext {
            deadline: run.deadline,
            cancel: run.cancel.child_token(),
        };
        let stop = run.cancel.clone().drop_guard();
        let work = tokio::task::spawn_blocking(move || {
            examine(subject, &layout, &scratch, &gate_limits, distribution, &run)
        });
        Ok(Self { work, stop })
    }

    /// Waits for it.
    pub(super) async fn outcome(self) -> Result<(Inspection, Recognized), Problem> {
        // Held until the work has ended: dropping it would end the work.
        let Self { work, stop } = self;
        let outcome = work.await;
        drop(stop);
        unless_panicked(outcome)
    }

    /// Ends it early and waits until it has ended. Whatever it found is of no interest.
    pub(super) async fn abandon(self) {
        let Self { work, stop } = self;
        drop(stop);
        let _ = work.await;
    }
}

/// All of it, blocking.
fn examine(
    subject: Subject,
    layout: &Path,
    scratch: &Path,
    limits: &GateLimits,
    distribution: Option<Distribution>,
    run: &RunContext,
) -> Result<(Inspection, Recognized), Problem> {
    let profile = match subject.artifact_type {
        ArtifactType::Conda => archive::Profile::Conda,
        _ => archive::Profile::Package,
    };
    let mut collector = Collector::new(
        subject.artifact_type,
        layout,
        LayoutLimits::default(),
        distribution,
    )
    .named(subject.file_name);
    let size = subject.size;
    let input = match &subject.growth {
        Some(growth) => Input::growing(&subject.file, size, growth),
        None => Input::complete(&subject.file, size),
    };
    let gate = Gate::new(*limits, size, scratch, profile, run);
    let inspection = gate.inspect(input, &mut collector)?;
    archive::declared::check(subject.artifact_type, inspection.format, size)?;
    let root = RootFacts {
        is_opaque: inspection.format == archive::Format::Opaque,
        is_rpm: inspection.format == archive::Format::Rpm,
        input_bytes: size,
        path: &subject.path,
    };
    let recognized = collector.finish(&root)?;
    Ok((inspection, recognized))
}

/// The bounds of the gate in the limits of a run.
pub(super) fn gate_limits(limits: &ResourceLimits) -> GateLimits {
    let bytes = |value: i64| u64::try_from(value).unwrap_or(0);
    GateLimits {
        max_entries: bytes(i64::from(limits.max_archive_entries)),
        max_expanded_bytes: bytes(limits.max_uncompressed_bytes),
        max_single_file_bytes: bytes(limits.max_single_file_bytes),
        max_nested_depth: u32::try_from(limits.max_nested_depth).unwrap_or(0),
    }
}

/// What the stages before the document learnt.
struct Evidence {
    inspection: Inspection,
    recognized: Recognized,
    facts: CatalogFacts,
    warnings: Warnings,
}

fn respond(
    app: &App,
    received: &Received,
    engine_version: String,
    sbom: NormalizedSbom,
    evidence: Evidence,
) -> Result<CatalogResponse, Problem> {
    let Evidence {
        inspection,
        recognized,
        facts,
        warnings,
    } = evidence;
    let projection = sbom.projection;
    let conda = recognized.conda.as_ref();
    if let Some(conda) = conda
        && !projection
            .components
            .iter()
            .any(|component| is_conda_package(component, conda))
    {
        return Err(Problem::new(
            Code::CondaCatalogEmpty,
            "the cataloguer did not find the Conda package",
        ));
    }
    let unyielding = unyielding(&recognized.expected_files, &projection.components);
    let mut reasons = recognized.reasons;
    reasons.extend(projection.reasons);
    reasons.extend(warnings.reasons);
    reasons.extend(doubts(
        recognized.form,
        &projection.components,
        &unyielding,
        inspection.unopened,
    ));
    if recognized.is_unnamed_jar && !projection.components.iter().any(is_the_named_artifact) {
        reasons.push(PartialReason {
            code: PartialCode::IdentityUnknown,
            detail: "the archive does not say its own name".to_owned(),
        });
    }
    settle_distribution(
        &mut reasons,
        projection.without_distribution,
        u64::from(projection.component_count) > projection.components.len() as u64,
    );
    let mut catalogers: BTreeMap<String, u64> = facts.catalogers.into_iter().map(|name| (name, 0)).collect();
    catalogers.extend(projection.catalogers);
    let distribution = recognized
        .distribution
        .map(|d| d.to_string())
        .or(facts.distribution);
    Ok(CatalogResponse {
        adapter_name: ADAPTER_NAME.to_owned(),
        adapter_version: ADAPTER_VERSION.to_owned(),
        engine_name: CATALOG_ENGINE.to_owned(),
        engine_version,
        capability_digest: app.capability_digest.clone(),
        actual_input_sha256: received.sha256.clone(),
        completeness: completeness(&reasons),
        spec_name: "CycloneDX".to_owned(),
        spec_version: Some(sbom.spec_version),
        component_count: projection.component_count,
        dependency_count: projection.dependency_count,
        cyclonedx_json: Document(sbom.document),
        summary: CatalogSummary {
            component_projection_count: projection.components.len() as u64,
            dependency_projection_count: u64::from(projection.dependency_count),
            input_bytes: received.size,
            archive_entries: inspection.entries,
            expanded_bytes: inspection.expanded_bytes,
            nested_archives: inspection.nested_archives,
            laid_out_bytes: recognized.laid_out_bytes,
            laid_out_files: recognized.laid_out_files,
            recognized_as: recognized.form.to_string(),
            identities: recognized
                .identities
                .into_iter()
                .map(|identity| identity.purl)
                .collect(),
            catalogers,
            unyielding_files: unyielding,
            distribution,
            partial_reasons: reasons,
            other_engine_warnings: warnings.other,
            conda_name: conda.map(|c| c.name.clone()),
            conda_version: conda.map(|c| c.version.clone()),
            conda_build: conda.map(|c| c.build.clone()),
            conda_subdir: conda.map(|c| c.subdir.clone()),
            scanned_platforms: None,
            missing_platforms: None,
            companions: BTreeMap::new(),
        },
        components: projection.components,
    })
}
