use super::{Budget, Cost, fit_catalog, fit_match};
use assay_schemas::catalog::{
    CatalogResponse, CatalogSummary, Completeness, Component, Directness, PartialCode,
};
use assay_schemas::matching::{Finding, MatchResponse, MatchSummary};
use assay_schemas::{Document, Severity};
use std::collections::BTreeMap;

fn component(i: usize, properties: usize, locations: usize) -> Component {
    Component {
        component_ref: format!("ref-{i}"),
        package_url: Some(format!("pkg:npm/a@{i}")),
        kind: None,
        namespace: None,
        name: "a".into(),
        version: None,
        directness: Directness::Unknown,
        locations: (0..locations).map(|l| format!("/p/{l}")).collect(),
        licenses: vec!["MIT".into()],
        properties: (0..properties)
            .map(|p| (format!("k{p:03}"), "v".into()))
            .collect(),
    }
}

fn catalog(components: Vec<Component>) -> CatalogResponse {
    CatalogResponse {
        adapter_name: String::new(),
        adapter_version: String::new(),
        engine_name: String::new(),
        engine_version: String::new(),
        capability_digest: String::new(),
        actual_input_sha256: String::new(),
        completeness: Completeness::Complete,
        spec_name: String::new(),
        spec_version: None,
        component_count: 0,
        dependency_count: 0,
        cyclonedx_json: Document(vec![0; 300]),
        components,
        summary: CatalogSummary::default(),
    }
}

/// Tokens as another reader of the same bytes counts them.
fn tokens(response: &impl serde::Serialize) -> u64 {
    let bytes = serde_json::to_vec(response).unwrap();
    crate::sbom::json::check(&bytes, &crate::sbom::json::JsonLimits::ENGINE).unwrap()
}

#[test]
fn the_estimate_is_exact() {
    let response = catalog(vec![component(1, 3, 2)]);
    let cost = Cost::of(&response);
    assert_eq!(cost.tokens, tokens(&response));
    assert_eq!(
        cost.bytes,
        u64::try_from(serde_json::to_vec(&response).unwrap().len()).unwrap()
    );
    let escapes = BTreeMap::from([("a\"\\,{", "\n\u{1}]"), ("", "")]);
    assert_eq!(Cost::of(&escapes).tokens, 6);
    assert_eq!(Cost::of(&[Some(1.5), None]).tokens, 4);
    assert_eq!(Cost::of(&(true, false, 10, -3)).tokens, 6);
}

#[test]
fn the_largest_projection_fits_the_client() {
    let components = (0..4096).map(|i| component(i, 128, 256)).collect();
    let mut response = catalog(components);
    assert!(fit_catalog(&mut response, Budget::CLIENT));
    assert!(tokens(&response) <= Budget::CLIENT.tokens);
    assert_eq!(response.components.len(), 4096);
    assert_eq!(response.completeness, Completeness::Partial);
    let codes: Vec<_> = response.summary.partial_reasons.iter().map(|r| r.code).collect();
    assert_eq!(codes, [PartialCode::ResponseSizeLimit]);
}

#[test]
fn cuts_come_in_order_and_what_fits_is_left_alone() {
    let components: Vec<_> = (0..10).map(|i| component(i, 64, 20)).collect();
    let whole = Cost::of(&catalog(components.clone()));

    let mut response = catalog(components.clone());
    let roomy = Budget {
        tokens: whole.tokens + 100,
        bytes: whole.bytes + 2000,
    };
    assert!(fit_catalog(&mut response, roomy));
    assert_eq!(response.components, components);
    assert_eq!(response.completeness, Completeness::Complete);

    let mut response = catalog(components.clone());
    let fewer_properties = Budget {
        tokens: 1000,
        ..Budget::CLIENT
    };
    assert!(fit_catalog(&mut response, fewer_properties));
    assert!(response.components.iter().all(|c| c.locations.len() == 20));
    assert!(response.components.iter().all(|c| c.properties.len() < 64));

    let mut response = catalog(components.clone());
    let fewer_locations = Budget {
        tokens: 500,
        ..Budget::CLIENT
    };
    assert!(fit_catalog(&mut response, fewer_locations));
    assert_eq!(response.components.len(), 10);
    assert!(response.components.iter().all(|c| c.locations.len() < 20));

    let mut response = catalog(components);
    let fewer_components = Budget {
        tokens: 250,
        ..Budget::CLIENT
    };
    assert!(fit_catalog(&mut response, fewer_components));
    assert!(!response.components.is_empty() && response.components.len() < 10);
    assert_eq!(
        response.summary.component_projection_count,
        u64::try_from(response.components.len()).unwrap()
    );
    assert!(
        response
            .summary
            .partial_reasons
            .iter()
            .any(|r| r.code == PartialCode::ComponentProjectionLimit)
    );
}

#[test]
fn a_document_that_is_too_large_by_itself_is_told() {
    let mut response = catalog(Vec::new());
    let budget = Budget {
        tokens: 1000,
        bytes: 350,
    };
    assert!(!fit_catalog(&mut response, budget));
}

#[test]
fn long_descriptions_go_before_findings() {
    let finding = Finding {
        finding_key: "k".into(),
        advisory_id: "X".into(),
        aliases: vec![],
        data_source: None,
        package_url: None,
        package_name: "a".into(),
        installed_version: None,
        fixed_versions: vec![],
        severity: Severity::Low,
        severity_source: None,
        cvss_vector: None,
        cvss_score: None,
        title: None,
        description: Some("d".repeat(65_535)),
        primary_url: None,
        locations: vec![],
        source_status: None,
        platforms: vec![],
        layers: vec![],
    };
    let mut response = MatchResponse {
        adapter_name: String::new(),
        adapter_version: String::new(),
        engine_name: String::new(),
        engine_version: String::new(),
        vulnerability_database_revision: String::new(),
        vulnerability_database_updated_at: String::new(),
        capability_digest: String::new(),
        completeness: Completeness::Complete,
        report_json: Document::default(),
        findings: vec![finding; 2048],
        summary: MatchSummary::default(),
    };
    assert!(fit_match(&mut response, Budget::CLIENT));
    assert_eq!(response.findings.len(), 2048);
    assert!(
        response
            .findings
            .iter()
            .all(|f| f.description.as_ref().unwrap().len() < 65_535)
    );
}
