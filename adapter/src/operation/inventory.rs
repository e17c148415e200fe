//! From a stored artifact to its inventory: gate, recognition, cataloguer, document, response. The same for HTTP and
//! for one-shot scans.

use super::{completeness, in_background};
use crate::app::App;
use crate::archive::{self, GateLimits, Inspection};
use crate::engine::Warnings;
use crate::engine::syft::{CatalogFacts, CatalogJob, Source};
use crate::http::upload::Received;
use crate::problem::{Problem, sanitize};
use crate::recognition::{
    Collector, CondaFacts, Distribution, ExpectedFile, Form, LayoutLimits, Recognized, RootFacts,
};
use crate::run::RunContext;
use crate::sbom::budget;
use crate::sbom::cyclonedx::{self, NormalizedSbom, Origin};
use crate::workspace::Workspace;
use assay_schemas::catalog::{CatalogSummary, PartialCode, PartialReason};
use assay_schemas::version::{ADAPTER_NAME, ADAPTER_VERSION, CATALOG_ENGINE};
use assay_schemas::{ArtifactType, CatalogResponse, Code, Component, Document, ResourceLimits};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

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
    let started = Instant::now();
    let received = artifact.received.clone();
    let (inspection, recognized) = examine(workspace, artifact, limits, distribution, run).await?;
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
    let mut response = respond(app, &received, versions.syft, sbom, evidence)?;
    if !budget::fit_catalog(&mut response, budget::Budget::CLIENT) {
        return Err(Problem::new(
            Code::OutputTooLarge,
            "the SBOM does not fit into a response",
        ));
    }
    app.metrics.stage("parse", started.elapsed());
    Ok(response)
}

/// Gate and recognition: one pass over the bytes on a blocking thread.
async fn examine(
    workspace: &Workspace,
    artifact: Artifact,
    limits: &ResourceLimits,
    distribution: Option<Distribution>,
    run: &RunContext,
) -> Result<(Inspection, Recognized), Problem> {
    let layout = workspace
        .create_directory(LAYOUT)
        .map_err(|error| Problem::new(Code::WorkspaceIo, "the layout cannot be made").caused_by(error))?;
    let scratch = workspace.path().to_owned();
    let gate_limits = gate_limits(limits);
    let run = run.clone();
    in_background(move || {
        let profile = match artifact.artifact_type {
            ArtifactType::Conda => archive::Profile::Conda,
            _ => archive::Profile::Package,
        };
        let size = artifact.received.size;
        let mut collector = Collector::new(
            artifact.artifact_type,
            &layout,
            LayoutLimits::default(),
            distribution,
        )
        .named(artifact.file_name);
        let inspection = archive::inspect(
            &artifact.file,
            size,
            &scratch,
            &gate_limits,
            profile,
            &run,
            &mut collector,
        )?;
        archive::declared::check(artifact.artifact_type, inspection.format, size)?;
        let root = RootFacts {
            is_opaque: inspection.format == archive::Format::Opaque,
            is_rpm: inspection.format == archive::Format::Rpm,
            input_bytes: size,
            path: &artifact.path,
        };
        let recognized = collector.finish(&root)?;
        Ok((inspection, recognized))
    })
    .await
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
    if recognized.is_unnamed_jar && !projection.components.iter().any(is_the_artifact) {
        reasons.push(PartialReason {
            code: PartialCode::IdentityUnknown,
            detail: "the archive does not say its own name".to_owned(),
        });
    }
    if projection.without_distribution > 0 && reasons.iter().all(|r| r.code != PartialCode::DistroUnknown) {
        let detail = format!(
            "{} packages name no distribution",
            projection.without_distribution
        );
        reasons.push(PartialReason {
            code: PartialCode::DistroUnknown,
            detail,
        });
    }
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

/// Most paths in [`CatalogSummary::unyielding_files`].
const MAX_UNYIELDING: usize = 64;

/// Files of a known package type under which the cataloguers found no component. What only the artifact's own manifest
/// names does not show that they looked.
fn unyielding(expected: &[ExpectedFile], components: &[Component]) -> Vec<String> {
    let found: BTreeSet<&str> = components
        .iter()
        .filter(|c| !c.properties.contains_key(cyclonedx::IDENTITY_SOURCE))
        .flat_map(|c| &c.locations)
        .map(|location| location.trim_start_matches('/'))
        .collect();
    let yields = |file: &ExpectedFile| {
        if file.location.is_empty() {
            return !found.is_empty();
        }
        let inside = format!("{}!/", file.location);
        found.contains(file.location.as_str())
            || found
                .range(inside.as_str()..)
                .next()
                .is_some_and(|location| location.starts_with(&inside))
    };
    expected
        .iter()
        .filter(|file| !yields(file))
        .map(|file| sanitize(&file.location, 200))
        .take(MAX_UNYIELDING)
        .collect()
}

/// Whether a component is the artifact itself and not something inside it.
fn is_the_artifact(component: &Component) -> bool {
    component.locations.iter().any(|location| location == "/")
}

/// Whether a component is the Conda package that the artifact's index names.
fn is_conda_package(component: &Component, conda: &CondaFacts) -> bool {
    component.name == conda.name
        && component.version.as_deref() == Some(&conda.version)
        && component
            .properties
            .get("syft:package:type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("conda"))
}

/// Why an inventory may miss something, seen from its contents: nothing found in a known package type is never
/// complete.
fn doubts(form: Form, components: &[Component], unyielding: &[String], unopened: u64) -> Vec<PartialReason> {
    let mut doubts = Vec::new();
    let mut doubt = |code, detail: String| doubts.push(PartialReason { code, detail });
    if form.is_known_package_type() && components.is_empty() {
        doubt(
            PartialCode::NothingCataloged,
            format!("no component was found in a {form}"),
        );
    } else if !unyielding.is_empty() {
        let count = unyielding.len();
        doubt(
            PartialCode::NothingCataloged,
            format!("{count} files of a known package type yielded no component"),
        );
    }
    if unopened > 0 {
        doubt(
            PartialCode::UnsupportedFormat,
            format!("{unopened} files inside are of formats that are not opened"),
        );
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::{cyclonedx, unyielding};
    use crate::recognition::ExpectedFile;
    use assay_schemas::Component;

    #[test]
    fn only_what_the_cataloguers_found_shows_that_they_looked() {
        let expected = [ExpectedFile {
            layout_path: "package/package.json".to_owned(),
            location: "package/package.json".to_owned(),
        }];
        let document = |properties: &str| {
            format!(
                r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{{"name":"a","type":"library",
                "purl":"pkg:npm/a@1","properties":[{properties}]}}]}}"#
            )
        };
        let location = r#"{"name":"syft:location:0:path","value":"/package/package.json"}"#;
        let own = format!(
            r#"{{"name":"{}","value":"/package/package.json"}},{location}"#,
            cyclonedx::IDENTITY_SOURCE
        );
        for (properties, want) in [(location, 0), (own.as_str(), 1), ("", 1)] {
            let (_, projection) = cyclonedx::read(document(properties).as_bytes()).unwrap();
            let components: Vec<Component> = projection.components;
            assert_eq!(unyielding(&expected, &components).len(), want, "{properties}");
        }
    }
}
