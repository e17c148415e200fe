//! The machine-readable report: a stable shape of its own, made of wire types.

use super::{ScannedArtifact, by_severity, wire_word};
use assay_schemas::catalog::{CatalogSummary, PartialReason};
use assay_schemas::matching::MatchSummary;
use assay_schemas::{Completeness, Component, Finding};
use serde::Serialize;

/// The report of `--format json`. Members are added, never renamed or removed, while `format_version` stays.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JsonReport<'a> {
    /// Always `1`.
    pub format_version: u32,
    /// In the order of the command line.
    pub artifacts: Vec<JsonArtifact<'a>>,
}

/// One artifact of a [`JsonReport`].
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JsonArtifact<'a> {
    /// The path as it was given.
    pub path: &'a str,
    /// SHA-256 of the bytes, lower-case hexadecimal.
    pub sha256: &'a str,
    /// SHA-256 of the SBOM document, lower-case hexadecimal.
    pub sbom_sha256: String,
    /// The weaker of inventory and findings.
    pub completeness: Completeness,
    /// Why the result is not complete; empty when it is.
    pub partial_reasons: Vec<&'a PartialReason>,
    /// Engines and database.
    pub provenance: Provenance<'a>,
    /// The inventory, as `/v1/catalog` projects it.
    pub components: &'a [Component],
    /// Worst first; null when only the inventory was asked for.
    pub findings: Option<Vec<&'a Finding>>,
    /// What the inventory run did.
    pub catalog_summary: &'a CatalogSummary,
    /// What the match did; null when only the inventory was asked for.
    pub match_summary: Option<&'a MatchSummary>,
}

/// What a result was made with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance<'a> {
    /// Always `syft`.
    pub catalog_engine: &'a str,
    /// Its version.
    pub catalog_engine_version: &'a str,
    /// Always `grype`; null when only the inventory was asked for, as are the next three.
    pub matcher_engine: Option<&'a str>,
    /// Its version.
    pub matcher_engine_version: Option<&'a str>,
    /// Revision of the vulnerability database.
    pub vulnerability_database_revision: Option<&'a str>,
    /// Build time of the vulnerability database.
    pub vulnerability_database_updated_at: Option<&'a str>,
    /// Digest of the adapter's configuration that shapes documents.
    pub capability_digest: &'a str,
}

impl<'a> From<&'a [ScannedArtifact]> for JsonReport<'a> {
    fn from(scanned: &'a [ScannedArtifact]) -> Self {
        Self {
            format_version: 1,
            artifacts: scanned.iter().map(JsonArtifact::from).collect(),
        }
    }
}

impl<'a> From<&'a ScannedArtifact> for JsonArtifact<'a> {
    fn from(artifact: &'a ScannedArtifact) -> Self {
        let catalog = &artifact.catalog;
        let matched = artifact.matched.as_ref();
        Self {
            path: &artifact.path,
            sha256: &catalog.actual_input_sha256,
            sbom_sha256: catalog.cyclonedx_json.sha256(),
            completeness: artifact.completeness(),
            partial_reasons: artifact.partial_reasons().collect(),
            provenance: Provenance {
                catalog_engine: &catalog.engine_name,
                catalog_engine_version: &catalog.engine_version,
                matcher_engine: matched.map(|m| m.engine_name.as_str()),
                matcher_engine_version: matched.map(|m| m.engine_version.as_str()),
                vulnerability_database_revision: matched.map(|m| m.vulnerability_database_revision.as_str()),
                vulnerability_database_updated_at: matched
                    .map(|m| m.vulnerability_database_updated_at.as_str()),
                capability_digest: &catalog.capability_digest,
            },
            components: &catalog.components,
            findings: matched.map(|m| by_severity(&m.findings)),
            catalog_summary: &catalog.summary,
            match_summary: matched.map(|m| &m.summary),
        }
    }
}

/// The report as indented JSON with a final line break.
pub fn render_json(scanned: &[ScannedArtifact]) -> String {
    // Types with string keys only: serialising cannot fail.
    let text = serde_json::to_string_pretty(&JsonReport::from(scanned)).unwrap_or_default();
    text + "\n"
}

/// The code and the detail of a reason in one line.
pub(super) fn reason_line(reason: &PartialReason) -> String {
    let code = wire_word(&reason.code);
    if reason.detail.is_empty() {
        code
    } else {
        format!("{code}: {}", reason.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::render_json;
    use crate::report::{ScannedArtifact, sample};
    use assay_schemas::Severity;

    #[test]
    fn the_shape_is_stable() {
        let scanned = [sample::partial(sample::with_findings(&[
            Severity::Low,
            Severity::Critical,
        ]))];
        insta::assert_snapshot!(render_json(&scanned));
    }

    #[test]
    fn an_inventory_alone_has_null_findings_not_none_found() {
        let scanned = [ScannedArtifact {
            matched: None,
            ..sample::with_findings(&[])
        }];
        let report: serde_json::Value = serde_json::from_str(&render_json(&scanned)).unwrap();
        assert_eq!(
            report.pointer("/artifacts/0/findings"),
            Some(&serde_json::Value::Null)
        );
        assert_eq!(
            report.pointer("/artifacts/0/provenance/matcherEngine"),
            Some(&serde_json::Value::Null)
        );
    }
}
