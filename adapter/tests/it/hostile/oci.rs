//! The cases for `/v1/oci/scan`, served by a registry that does what each case says.

use super::registry::Registry;
use super::{assert_none, assert_unharmed, compare, differences, named_limits};
use crate::support::{CREDENTIAL, Setup, TestAdapter, run_id};
use assay_fixtures::hostile::{ImageCase, images};
use serde_json::{Map, Value, json};

#[test]
fn every_image_gets_exactly_its_verdict() {
    let adapter = Setup::real()
        .with("oci_plain_http_registries", "127.0.0.1")
        .start();
    adapter.wait_ready();
    let wrong = differences(images(), |case: ImageCase| wrong_with(&adapter, &case));
    assert_none(&wrong);
    assert_unharmed(&adapter);
}

fn wrong_with(adapter: &TestAdapter, case: &ImageCase) -> Vec<String> {
    let image = (case.make)();
    let digest = case
        .reference
        .map_or_else(|| image.root.clone(), ToOwned::to_owned);
    let run = run_id();
    let registry = Registry::serve(image, &format!("token-of-{run}"));
    let limits: Map<String, Value> = named_limits(&case.limits)
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .into_iter()
        .collect();
    let request = json!({
        "apiVersion": "v1", "runId": run, "idempotencyKey": run,
        "registryUrl": registry.url(), "repository": format!("hostile/{}", case.id),
        "manifestDigest": digest, "requiredPlatforms": case.platforms,
        "scopedBearerToken": registry.token(), "profileConfigurationDigest": "0".repeat(64), "limits": limits,
    });
    let headers = [
        ("x-kkrepo-scanner-credential", CREDENTIAL),
        ("x-kkrepo-api-version", "v1"),
        ("x-kkrepo-run-id", run.as_str()),
        ("content-type", "application/json"),
    ];
    let reply = adapter.send("POST", "/v1/oci/scan", &headers, request.to_string().as_bytes());
    let mut wrong = Vec::new();
    wrong.extend(compare(&case.verdict, &reply, |document| &document["catalog"]));
    if registry.was_asked_without_token() {
        wrong.push("asked the registry without the token".to_owned());
    }
    if String::from_utf8_lossy(&reply.bytes).contains(registry.token()) {
        wrong.push("the token is in the answer".to_owned());
    }
    wrong
        .into_iter()
        .map(|difference| format!("{}: {difference}", case.id))
        .collect()
}
