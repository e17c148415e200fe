//! From staged images to one inventory: one cataloguer run for each distinct image, one merged document.

use super::{completeness, in_background};
use crate::app::App;
use crate::engine::error::EngineError;
use crate::engine::syft::{CatalogJob, Source};
use crate::engine::{CatalogOutput, Warnings};
use crate::oci::Digest;
use crate::oci::layout::{LAYOUT, Store};
use crate::oci::stage::{Staged, StagedImage};
use crate::problem::{Problem, sanitize};
use crate::run::RunContext;
use crate::sbom::cyclonedx::{self, Origin};
use crate::sbom::merge::{self, MergeError, PlatformSbom};
use crate::sbom::project::Projection;
use crate::workspace::Workspace;
use assay_schemas::catalog::{CatalogSummary, PartialCode, PartialReason};
use assay_schemas::version::{ADAPTER_NAME, ADAPTER_VERSION, CATALOG_ENGINE};
use assay_schemas::{CatalogResponse, Code, Document, ResourceLimits};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

/// Most reasons that name platforms.
const MAX_REASONS: usize = 64;

/// What the cataloguer said about one image.
struct Cataloged {
    document: Vec<u8>,
    catalogers: Vec<String>,
    distribution: Option<String>,
    warnings: Warnings,
}

/// Catalogues every staged image and merges the documents.
///
/// # Errors
/// Those of each stage.
pub(super) async fn take(
    app: &App,
    workspace: &Workspace,
    store: &Store,
    root: &Digest,
    staged: &Staged,
    limits: &ResourceLimits,
    run: &RunContext,
) -> Result<CatalogResponse, Problem> {
    let versions = app.scanner.engines.versions(run).await?;
    let cap = u64::try_from(app.config.ceiling.max_output_bytes).unwrap_or(0);
    let job = CatalogJob {
        source: Source::Image {
            layout: LAYOUT,
            // The gate has held all layers together to this.
            max_layer_bytes: u64::try_from(limits.max_uncompressed_bytes).unwrap_or(1),
            withheld: &staged.withheld,
        },
        catalogers: &["image"],
    };
    // Platforms that differ in their configs only are catalogued once.
    let mut known = HashMap::new();
    let mut platforms: Vec<(String, usize)> = Vec::new();
    let mut cataloged: Vec<Cataloged> = Vec::new();
    let mut total: u64 = 0;
    for image in &staged.images {
        let next = cataloged.len();
        let index = *known.entry(image.content()).or_insert(next);
        platforms.push((image.requested.to_string(), index));
        if index < next {
            continue;
        }
        let name = format!("platform-{index}");
        let output = catalog(app, workspace, store, &name, image, &job, run).await?;
        let done = normalize(output, image, &versions.syft).await?;
        total = total.saturating_add(done.document.len() as u64);
        check_output(total, cap)?;
        cataloged.push(done);
    }

    let started = Instant::now();
    let (cataloged, document, spec_version, projection) = in_background(move || {
        let documents: Vec<PlatformSbom<'_>> = platforms
            .iter()
            .filter_map(|(platform, index)| {
                let document = &cataloged.get(*index)?.document;
                Some(PlatformSbom { platform, document })
            })
            .collect();
        let document = merge::merge(&documents)?;
        check_output(document.len() as u64, cap)?;
        let (spec_version, projection) = cyclonedx::read(&document).map_err(MergeError::Merged)?;
        Ok((cataloged, document, spec_version, projection))
    })
    .await?;
    app.metrics.stage("parse", started.elapsed());

    let facts = Facts {
        root,
        staged,
        cataloged: &cataloged,
    };
    Ok(respond(
        app,
        &facts,
        versions.syft,
        spec_version,
        document,
        projection,
    ))
}

fn check_output(got: u64, cap: u64) -> Result<(), Problem> {
    if got > cap {
        return Err(Problem::new(
            Code::OutputTooLarge,
            format!("the SBOMs have more than {cap} bytes"),
        ));
    }
    Ok(())
}

async fn catalog(
    app: &App,
    workspace: &Workspace,
    store: &Store,
    name: &str,
    image: &StagedImage,
    job: &CatalogJob<'_>,
    run: &RunContext,
) -> Result<CatalogOutput, Problem> {
    let directory = workspace
        .create_directory(name)
        .map_err(|error| Problem::new(Code::OciStageIo, "the layout cannot be made").caused_by(error))?;
    image.lay_out(store, &directory)?;
    app.metrics.engine_processes.inc();
    let output = app
        .scanner
        .engines
        .catalog(job, &directory, run)
        .await
        .map_err(|error| {
            let code = match &error {
                // That the layout is sound was checked before; why it could not be read may pass.
                EngineError::Failed { .. } => Code::OciRegistryScanFailed,
                other => other.code(),
            };
            Problem::new(code, error.to_string()).caused_by(error)
        })?;
    app.metrics.stage("engine", output.elapsed);
    // The cataloguer's own copy of the layers is of no more use, and the next image needs the space.
    let _ = tokio::fs::remove_dir_all(&directory).await;
    Ok(output)
}

async fn normalize(
    output: CatalogOutput,
    image: &StagedImage,
    engine_version: &str,
) -> Result<Cataloged, Problem> {
    let (sha256, engine_version) = (image.manifest.digest.hex().to_owned(), engine_version.to_owned());
    let document = output.document;
    let document = in_background(move || {
        let origin = Origin {
            input_sha256: &sha256,
            engine_version: &engine_version,
            renamed: &BTreeMap::new(),
        };
        let normalized = cyclonedx::normalize(&document, &[], &origin)
            .map_err(|error| Problem::new(Code::OciSbomInvalid, error.to_string()).caused_by(error))?;
        Ok(normalized.document)
    })
    .await?;
    Ok(Cataloged {
        document,
        catalogers: output.facts.catalogers,
        distribution: output.facts.distribution,
        warnings: output.warnings,
    })
}

struct Facts<'f> {
    root: &'f Digest,
    staged: &'f Staged,
    cataloged: &'f [Cataloged],
}

fn respond(
    app: &App,
    facts: &Facts<'_>,
    engine_version: String,
    spec_version: String,
    document: Vec<u8>,
    projection: Projection,
) -> CatalogResponse {
    let Facts {
        root,
        staged,
        cataloged,
    } = facts;
    let mut catalogers: BTreeMap<String, u64> = cataloged
        .iter()
        .flat_map(|done| &done.catalogers)
        .map(|name| (name.clone(), 0))
        .collect();
    catalogers.extend(projection.catalogers);
    let distributions: BTreeSet<&str> = cataloged
        .iter()
        .filter_map(|done| done.distribution.as_deref())
        .collect();
    let mut reasons = missing_reasons(staged);
    for reason in cataloged
        .iter()
        .flat_map(|done| &done.warnings.reasons)
        .chain(&projection.reasons)
    {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    if projection.without_distribution > 0 && reasons.iter().all(|r| r.code != PartialCode::DistroUnknown) {
        reasons.push(PartialReason {
            code: PartialCode::DistroUnknown,
            detail: format!(
                "{} packages name no distribution",
                projection.without_distribution
            ),
        });
    }
    CatalogResponse {
        adapter_name: ADAPTER_NAME.to_owned(),
        adapter_version: ADAPTER_VERSION.to_owned(),
        engine_name: CATALOG_ENGINE.to_owned(),
        engine_version,
        capability_digest: app.capability_digest.clone(),
        actual_input_sha256: root.hex().to_owned(),
        completeness: completeness(&reasons),
        spec_name: "CycloneDX".to_owned(),
        spec_version: Some(spec_version),
        component_count: projection.component_count,
        dependency_count: projection.dependency_count,
        cyclonedx_json: Document(document),
        summary: CatalogSummary {
            component_projection_count: projection.components.len() as u64,
            dependency_projection_count: u64::from(projection.dependency_count),
            input_bytes: staged.bytes,
            archive_entries: staged.inspection.entries,
            expanded_bytes: staged.inspection.expanded_bytes,
            nested_archives: staged.inspection.nested_archives,
            recognized_as: if staged.is_index { "oci-index" } else { "oci-image" }.to_owned(),
            catalogers,
            distribution: (!distributions.is_empty())
                .then(|| distributions.into_iter().collect::<Vec<_>>().join(", ")),
            partial_reasons: reasons,
            other_engine_warnings: cataloged.iter().map(|done| done.warnings.other).sum(),
            scanned_platforms: Some(
                staged
                    .images
                    .iter()
                    .map(|image| image.requested.to_string())
                    .collect(),
            ),
            companions: staged
                .companions
                .iter()
                .map(|(kind, count)| (kind.as_str().to_owned(), *count))
                .collect(),
            missing_platforms: Some(staged.missing.iter().map(ToString::to_string).collect()),
            ..CatalogSummary::default()
        },
        components: projection.components,
    }
}

/// One reason for each platform that is not there, and for each that is not all there.
pub(super) fn missing_reasons(staged: &Staged) -> Vec<PartialReason> {
    let platforms = staged.missing.iter().map(|platform| PartialReason {
        code: PartialCode::PlatformMissing,
        detail: format!("{platform} is not available"),
    });
    let layers = staged
        .images
        .iter()
        .filter(|image| image.absent_layers() > 0)
        .map(|image| PartialReason {
            code: PartialCode::LayerMissing,
            detail: format!(
                "the registry lacks {} foreign layers of {}",
                image.absent_layers(),
                image.requested
            ),
        });
    let withheld = staged.withheld.first().map(|first| PartialReason {
        code: PartialCode::UnsupportedFormat,
        detail: format!(
            "{} broken archives in the image were not opened, such as {}",
            staged.withheld.len(),
            sanitize(first, 200)
        ),
    });
    withheld
        .into_iter()
        .chain(platforms)
        .chain(layers)
        .take(MAX_REASONS)
        .collect()
}
