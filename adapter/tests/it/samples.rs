//! Every sample artifact, catalogued and matched over HTTP with the real engines and the offline database.

use crate::support::{Reply, Setup, TestAdapter};
use assay_fixtures::artifact::{self, Sample};
use base64::Engine as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Catalogues a sample as a client does: with limits of its profile, and with what the host knows.
fn catalog(adapter: &TestAdapter, sample: &Sample) -> Reply {
    let limits = [
        ("x-kkrepo-max-input-bytes", "67108864"),
        ("x-kkrepo-max-uncompressed-bytes", "268435456"),
        ("x-kkrepo-max-single-file-bytes", "67108864"),
        ("x-assay-distribution", sample.distribution),
    ];
    adapter.catalog(sample.artifact_type, &sample.bytes, &limits)
}

/// What is wrong with the answers for a sample; empty when nothing is.
fn differences(adapter: &TestAdapter, sample: &Sample) -> Vec<String> {
    let reply = catalog(adapter, sample);
    if reply.status != 200 {
        return vec![format!("catalog: {} {}", reply.status, reply.json())];
    }
    let catalog = reply.json();
    let mut wrong = Vec::new();
    let purls = texts(&catalog["components"], "packageUrl");
    for expected in sample.purls {
        let is_there = purls
            .iter()
            .any(|purl| purl == expected || without_qualifiers(purl) == *expected);
        if !is_there {
            wrong.push(format!("no {expected} in {purls:?}"));
        }
    }
    if catalog["completeness"] != sample.completeness {
        let reasons = &catalog["summary"]["partialReasons"];
        wrong.push(format!(
            "catalog is {}, not {}: {reasons}",
            catalog["completeness"], sample.completeness
        ));
    }
    let sbom = base64::engine::general_purpose::STANDARD
        .decode(catalog["cyclonedxJson"].as_str().unwrap())
        .unwrap();
    let reply = adapter.match_sbom(&sbom, &[]);
    if reply.status != 200 {
        wrong.push(format!("match: {} {}", reply.status, reply.json()));
        return wrong;
    }
    let matched = reply.json();
    if sample.completeness == "COMPLETE" && matched["completeness"] != "COMPLETE" {
        wrong.push(format!(
            "match is not complete: {}",
            matched["summary"]["partialReasons"]
        ));
    }
    let advisories = texts(&matched["findings"], "advisoryId");
    for expected in sample.advisories {
        if !advisories.contains(*expected) {
            wrong.push(format!("no {expected} in {advisories:?}"));
        }
    }
    if sample.clean && !advisories.is_empty() {
        wrong.push(format!("nothing should be found, but {advisories:?}"));
    }
    if matched["vulnerabilityDatabaseRevision"]
        .as_str()
        .is_none_or(str::is_empty)
    {
        wrong.push("the answer does not say which database it was checked against".to_owned());
    }
    wrong
}

fn texts(list: &Value, member: &str) -> BTreeSet<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item[member].as_str().map(str::to_owned))
        .collect()
}

fn without_qualifiers(purl: &str) -> &str {
    purl.split(['?', '#']).next().unwrap_or(purl)
}

#[test]
fn every_sample_yields_its_packages_and_its_advisories() {
    let adapter = Setup::real().start();
    adapter.wait_ready();
    let queue = Mutex::new(artifact::all().into_iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(sample) = queue.lock().unwrap().next() else {
                        break;
                    };
                    for difference in differences(&adapter, &sample) {
                        wrong.lock().unwrap().push(format!("{}: {difference}", sample.id));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_clean_package_names_the_database_it_was_checked_against() {
    let adapter = Setup::real().start();
    adapter.wait_ready();
    let sample = artifact::all()
        .into_iter()
        .find(|sample| sample.clean && !sample.purls.is_empty())
        .unwrap();
    let catalog = catalog(&adapter, &sample).json();
    let sbom = base64::engine::general_purpose::STANDARD
        .decode(catalog["cyclonedxJson"].as_str().unwrap())
        .unwrap();
    let matched = adapter.match_sbom(&sbom, &[]).json();
    let readiness = adapter.get("/v1/readiness").json();
    assert_eq!(matched["findings"], serde_json::json!([]));
    assert_eq!(matched["completeness"], "COMPLETE");
    assert_eq!(
        matched["vulnerabilityDatabaseRevision"],
        readiness["vulnerabilityDatabaseRevision"]
    );
    assert_eq!(
        matched["vulnerabilityDatabaseUpdatedAt"],
        readiness["vulnerabilityDatabaseUpdatedAt"]
    );
    assert_eq!(
        matched["capabilityDigest"],
        readiness["details"]["capabilityDigest"]
    );
    let severities: Vec<_> = matched["summary"]["severityCounts"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(severities.len(), 6);
}

#[test]
fn the_same_bytes_give_the_same_documents_on_every_replica() {
    let replicas = [Setup::real().start(), Setup::real().start()];
    for sample in artifact::all() {
        if !["war-nested", "npm-bundled", "go-module-text", "rpm-xz"].contains(&sample.id) {
            continue;
        }
        let documents: Vec<_> = replicas
            .iter()
            .map(|adapter| {
                adapter.wait_ready();
                let catalog = catalog(adapter, &sample).json();
                let sbom = base64::engine::general_purpose::STANDARD
                    .decode(catalog["cyclonedxJson"].as_str().unwrap())
                    .unwrap();
                let matched = adapter.match_sbom(&sbom, &[]).json();
                (
                    String::from_utf8(sbom).unwrap(),
                    matched["reportJson"].clone(),
                    matched["findings"].clone(),
                )
            })
            .collect();
        assert_eq!(documents[0], documents[1], "{}", sample.id);
        assert!(
            !documents[0].0.contains(replicas[0].scratch().to_str().unwrap()),
            "a private path leaks"
        );
    }
}
