//! Results for the tests of the renderers.

use super::ScannedArtifact;
use assay_schemas::catalog::{CatalogSummary, Directness, PartialCode, PartialReason};
use assay_schemas::matching::MatchSummary;
use assay_schemas::{CatalogResponse, Completeness, Component, Document, Finding, MatchResponse, Severity};

/// A jar with one finding of each of these severities, in this order.
pub(super) fn with_findings(severities: &[Severity]) -> ScannedArtifact {
    let findings: Vec<Finding> = severities
        .iter()
        .enumerate()
        .map(|(n, severity)| finding(n, *severity))
        .collect();
    let count = |severity: &Severity| {
        let count = severities.iter().filter(|s| *s == severity).count();
        (severity.as_str().to_owned(), u64::try_from(count).unwrap())
    };
    let total = u64::try_from(findings.len()).unwrap();
    ScannedArtifact {
        path: "target/app.jar".into(),
        catalog: catalog(),
        matched: Some(MatchResponse {
            adapter_name: "syft-grype-v1".into(),
            adapter_version: "1".into(),
            engine_name: "grype".into(),
            engine_version: "0.121.3".into(),
            vulnerability_database_revision: "2026-11-01T00:00:00Z".into(),
            vulnerability_database_updated_at: "2026-11-01T00:00:00Z".into(),
            capability_digest: "c".repeat(64),
            completeness: Completeness::Complete,
            report_json: Document(b"{}".to_vec()),
            findings,
            summary: MatchSummary {
                finding_projection_count: total,
                severity_counts: Severity::ALL.iter().map(count).collect(),
                matches_reported: total,
                components_matched_against: 1,
                ..MatchSummary::default()
            },
        }),
    }
}

/// The same with a failed cataloguer and an unknown distribution.
pub(super) fn partial(mut artifact: ScannedArtifact) -> ScannedArtifact {
    artifact.catalog.completeness = Completeness::Partial;
    artifact.catalog.summary.partial_reasons = vec![PartialReason {
        code: PartialCode::CatalogerFailed,
        detail: "java-archive-cataloger".into(),
    }];
    if let Some(matched) = artifact.matched.as_mut() {
        matched.completeness = Completeness::Partial;
        matched.summary.partial_reasons = vec![PartialReason {
            code: PartialCode::DistroUnknown,
            detail: String::new(),
        }];
    }
    artifact
}

/// The same with text that would harm a terminal or a reader of SARIF, wherever text comes from outside.
pub(super) fn hostile() -> ScannedArtifact {
    let mut artifact = partial(with_findings(&[Severity::High]));
    let bad = "a\u{1b}[2J\r\nb\u{202e}c [x](http://evil) {0} \u{4e2d}\u{6587}";
    artifact.path = bad.into();
    for reason in &mut artifact.catalog.summary.partial_reasons {
        reason.detail = bad.into();
    }
    if let Some(matched) = artifact.matched.as_mut() {
        matched.vulnerability_database_revision = bad.into();
        for finding in &mut matched.findings {
            finding.advisory_id = bad.into();
            finding.aliases = vec![bad.into()];
            finding.package_name = bad.into();
            finding.installed_version = Some(bad.into());
            finding.fixed_versions = vec![bad.into()];
            finding.title = Some(bad.into());
            finding.description = Some(bad.into());
            finding.primary_url = Some("javascript:alert(1)".into());
            finding.data_source = Some("https://example.org/a b\u{1b}".into());
            finding.locations = vec![bad.into()];
        }
    }
    artifact
}

fn finding(n: usize, severity: Severity) -> Finding {
    Finding {
        finding_key: format!("{n:064x}"),
        advisory_id: format!("GHSA-aaaa-bbbb-{n:04}"),
        aliases: vec![format!("CVE-2021-{n:04}")],
        data_source: Some(format!("https://example.org/GHSA-aaaa-bbbb-{n:04}")),
        package_url: Some("pkg:maven/org.example/lib@1.0".into()),
        package_name: "lib".into(),
        installed_version: Some("1.0".into()),
        fixed_versions: if n == 0 {
            Vec::new()
        } else {
            vec!["1.1".into(), "2.0".into()]
        },
        severity,
        severity_source: Some("grype".into()),
        cvss_vector: None,
        cvss_score: (severity == Severity::Critical).then_some(9.8),
        title: Some("Something is wrong in lib".into()),
        description: Some("A longer text.".into()),
        primary_url: None,
        locations: vec!["artifact.jar:lib-1.0.jar".into()],
        source_status: Some(if n == 0 { "not-fixed" } else { "fixed" }.into()),
        platforms: vec![],
        layers: vec![],
    }
}

fn catalog() -> CatalogResponse {
    CatalogResponse {
        adapter_name: "syft-grype-v1".into(),
        adapter_version: "1".into(),
        engine_name: "syft".into(),
        engine_version: "1.57.1".into(),
        capability_digest: "c".repeat(64),
        actual_input_sha256: "a".repeat(64),
        completeness: Completeness::Complete,
        spec_name: "CycloneDX".into(),
        spec_version: Some("1.6".into()),
        component_count: 1,
        dependency_count: 0,
        cyclonedx_json: Document(br#"{"bomFormat":"CycloneDX"}"#.to_vec()),
        components: vec![Component {
            component_ref: "lib".into(),
            package_url: Some("pkg:maven/org.example/lib@1.0".into()),
            kind: Some("library".into()),
            namespace: Some("org.example".into()),
            name: "lib".into(),
            version: Some("1.0".into()),
            directness: Directness::Unknown,
            locations: vec!["artifact.jar:lib-1.0.jar".into()],
            licenses: Vec::new(),
            properties: std::collections::BTreeMap::new(),
        }],
        summary: CatalogSummary {
            component_projection_count: 1,
            input_bytes: 12_345,
            archive_entries: 17,
            expanded_bytes: 45_678,
            nested_archives: 1,
            ..CatalogSummary::default()
        },
    }
}
