//! The golden exchanges agree with the types, with the schemas and with themselves.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use assay_schemas::vectors::{Credential, Framing, Given, Vector, directory, load_all};
use assay_schemas::{Code, Endpoint, headers};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn vectors() -> Vec<Vector> {
    load_all(directory()).unwrap()
}

fn validator(schema: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("json/{schema}.schema.json"));
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

#[test]
fn a_vector_is_named_as_its_file() {
    for vector in vectors() {
        assert!(
            directory().join(format!("{}.json", vector.name)).is_file(),
            "{}",
            vector.name
        );
    }
}

#[test]
fn status_and_retryable_follow_from_the_code() {
    for vector in vectors() {
        let expect = &vector.expect;
        match expect.code {
            Some(code) => {
                assert_eq!(expect.status, code.status(), "{}", vector.name);
                assert_eq!(expect.retryable, Some(code.retryable()), "{}", vector.name);
            }
            None => assert_eq!(expect.retryable, None, "{}", vector.name),
        }
    }
}

#[test]
fn examples_obey_their_schema_and_their_own_expectation() {
    let mut validators = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for vector in vectors() {
        let expect = &vector.expect;
        let (Some(schema), Some(example)) = (&expect.schema, &expect.example) else {
            assert_eq!(
                expect.schema.is_some(),
                expect.example.is_some(),
                "{}",
                vector.name
            );
            continue;
        };
        let validator = validators
            .entry(schema.clone())
            .or_insert_with(|| validator(schema));
        let errors: Vec<_> = validator
            .iter_errors(example)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", vector.name);
        let mut body_only = expect.clone();
        body_only.headers.clear();
        let body = serde_json::to_vec(example).unwrap();
        let wrong = body_only.differences(expect.status, |_| None, &body);
        assert!(wrong.is_empty(), "{}: {wrong:?}", vector.name);
        seen.insert(schema.clone());
    }
    assert!(seen.len() >= 7, "{seen:?}");
}

#[test]
fn an_answer_that_differs_is_noticed() {
    let all = vectors();
    let vector = all
        .iter()
        .find(|v| v.name == "catalog-capacity-exhausted")
        .unwrap();
    let body = br#"{"code":"SCANNER_TIMEOUT","message":"","retryable":false}"#;
    let wrong = vector.expect.differences(504, |_| Some("soon"), body);
    assert_eq!(wrong.len(), 4, "{wrong:?}");
}

/// A vector about one fault must not have another by accident: all hashes and sizes fit unless the name says otherwise.
#[test]
fn hashes_and_sizes_fit_where_success_is_expected() {
    for vector in vectors().iter().filter(|v| v.expect.status == 200) {
        let bytes = vector.request.body_bytes().unwrap();
        let digest = hex::encode(Sha256::digest(&bytes));
        for name in [headers::EXPECTED_SHA256, headers::SBOM_SHA256] {
            if let Some(value) = vector.request.header(name) {
                assert_eq!(value.to_ascii_lowercase(), digest, "{}", vector.name);
            }
        }
        if let Some(value) = vector.request.header(headers::EXPECTED_SIZE) {
            assert_eq!(value, bytes.len().to_string(), "{}", vector.name);
        }
    }
}

#[test]
fn headers_are_lines_without_what_the_sender_adds() {
    for vector in vectors() {
        assert_eq!(
            vector.request.header_pairs().count(),
            vector.request.headers.len(),
            "{}",
            vector.name
        );
        for name in [headers::CREDENTIAL, "host", "content-length", "transfer-encoding"] {
            assert_eq!(vector.request.header(name), None, "{}", vector.name);
        }
    }
}

#[test]
fn every_code_of_catalog_and_match_has_a_vector() {
    let all = vectors();
    for endpoint in [Endpoint::Catalog, Endpoint::Match] {
        let mut seen: BTreeSet<Code> = all
            .iter()
            .filter(|v| v.request.path == endpoint.path())
            .filter_map(|v| v.expect.code)
            .collect();
        // An unknown path is by its nature none of the endpoint's.
        seen.insert(Code::NotFound);
        let missing: Vec<_> = endpoint
            .codes()
            .into_iter()
            .filter(|code| !seen.contains(code))
            .collect();
        assert!(missing.is_empty(), "{endpoint:?}: {missing:?}");
        let foreign: Vec<_> = seen
            .into_iter()
            .filter(|code| !endpoint.codes().contains(code))
            .collect();
        assert!(foreign.is_empty(), "{endpoint:?}: {foreign:?}");
    }
    assert!(all.iter().any(|v| v.expect.code == Some(Code::NotFound)));
}

#[test]
fn auth_framing_and_states_are_all_used() {
    let all = vectors();
    for credential in [Credential::Valid, Credential::Wrong, Credential::Absent] {
        assert!(
            all.iter().any(|v| v.request.credential == credential),
            "{credential:?}"
        );
    }
    for framing in [Framing::Length, Framing::Chunked, Framing::Broken] {
        assert!(all.iter().any(|v| v.request.framing == framing), "{framing:?}");
    }
    let plain = all.iter().filter(|v| v.given == Given::Ready).count();
    assert!(plain > 100, "{plain} vectors need no special state");
}

#[test]
fn the_readme_lists_every_code_with_a_vector() {
    let readme = std::fs::read_to_string(directory().join("README.md")).unwrap();
    for vector in vectors() {
        if let Some(code) = vector.expect.code {
            assert!(readme.contains(&format!("| {code} |")), "{code}");
        }
    }
}
