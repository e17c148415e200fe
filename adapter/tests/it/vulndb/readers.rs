//! Readers while generations come and go.

use super::{SBOM, Site, build, built, change};
use assay_adapter::vulndb::record::Published;
use assay_adapter::vulndb::{Layout, Store};
use base64::Engine as _;
use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const MATCHERS: usize = 8;
const GENERATIONS: usize = 50;
const VARIANTS: i64 = 4;

/// Databases that differ in their build time and in a name that the findings show.
fn variants(root: &Path) -> Vec<(PathBuf, String, String)> {
    (1..=VARIANTS)
        .map(|hours| {
            let site = Site::new();
            let (file, marker) = (site.path("variant.db"), format!("GHSA-jfh8-c2jp-{hours:04}"));
            build(&file, hours);
            change(
                &file,
                &format!(
                    "UPDATE blobs SET value = replace(value, 'GHSA-jfh8-c2jp-5v3q', '{marker}');
                     UPDATE vulnerability_handles SET name = '{marker}' WHERE name = 'GHSA-jfh8-c2jp-5v3q'"
                ),
            );
            site.expect(0, &["update-database", "--import", file.to_str().unwrap()]);
            let generation = Store::new(site.database()).current().unwrap();
            let kept = root.join(format!("variant-{hours}"));
            std::fs::rename(generation.path, &kept).unwrap();
            (kept, built(hours).to_string(), marker)
        })
        .collect()
}

/// A store with its first generation, what drives it, and when that was published.
fn first(site: &Site, variant: &Path) -> (Store, tokio::runtime::Runtime, Timestamp) {
    let store = Store::new(site.database());
    store.prepare().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let start = Timestamp::now();
    publish(&store, &runtime, variant, start);
    (store, runtime, start)
}

/// Publishes the next variant and retires everything that nobody holds, without the usual waiting time.
fn publish(store: &Store, runtime: &tokio::runtime::Runtime, variant: &Path, now: Timestamp) {
    let lock = runtime
        .block_on(store.lock(Duration::from_secs(5)))
        .unwrap()
        .unwrap();
    let staging = store.stage(&lock).unwrap();
    std::fs::create_dir(staging.path().join("6")).unwrap();
    for name in ["vulnerability.db", "import.json"] {
        std::fs::copy(variant.join("6").join(name), staging.path().join("6").join(name)).unwrap();
    }
    store
        .publish(&lock, staging, now, |facts| Published {
            built: now,
            revision: String::new(),
            schema: String::new(),
            sha256: facts.sha256,
            bytes: facts.bytes,
            source: "test".to_owned(),
        })
        .unwrap();
    store.clean_up(&lock, now, Duration::ZERO);
    store.clean_up(&lock, now + 48.hours(), Duration::ZERO);
}

#[test]
fn every_answer_is_of_the_database_that_its_engine_opened() {
    let site = Site::new()
        .with("max_concurrent_scans", "4")
        .with("max_queued_scans", "64")
        .with("admission_timeout", "5m");
    let variants = variants(site.root.path());
    let (store, runtime, start) = first(&site, &variants[0].0);
    let adapter = site.setup.start();
    adapter.wait_ready();

    let (done, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let markers: BTreeMap<&str, &str> = variants
        .iter()
        .map(|(_, built, marker)| (built.as_str(), marker.as_str()))
        .collect();
    let seen = std::thread::scope(|scope| {
        let matchers: Vec<_> = (0..MATCHERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = BTreeSet::new();
                    while !done.load(Ordering::Relaxed) {
                        let reply = adapter.match_sbom(SBOM.as_bytes(), &[]);
                        let answer = reply.json();
                        assert_eq!(reply.status, 200, "{answer}");
                        let revision = answer["vulnerabilityDatabaseRevision"]
                            .as_str()
                            .unwrap()
                            .to_owned();
                        let report = base64::engine::general_purpose::STANDARD
                            .decode(answer["reportJson"].as_str().unwrap())
                            .unwrap();
                        let report: Value = serde_json::from_slice(&report).unwrap();
                        // What the engine says that it opened, and what only that database holds.
                        assert_eq!(report["descriptor"]["db"]["status"]["built"], revision.as_str());
                        let found: BTreeSet<String> = report["matches"]
                            .as_array()
                            .unwrap()
                            .iter()
                            .map(|found| found["vulnerability"]["id"].as_str().unwrap().to_owned())
                            .filter(|id| id.starts_with("GHSA-jfh8-c2jp-"))
                            .collect();
                        assert_eq!(found, BTreeSet::from([markers[revision.as_str()].to_owned()]));
                        seen.insert(revision);
                        answers.fetch_add(1, Ordering::Relaxed);
                    }
                    seen
                })
            })
            .collect();
        let mut held_back = 0;
        for index in 1..=GENERATIONS {
            let (variant, ..) = &variants[index % variants.len()];
            publish(
                &store,
                &runtime,
                variant,
                start + i64::try_from(index).unwrap().seconds(),
            );
            held_back = held_back.max(store.generations().len());
            std::thread::sleep(Duration::from_millis(150));
        }
        // Some were read while they were to be retired.
        assert!(held_back > 1, "no generation was ever held");
        done.store(true, Ordering::Relaxed);
        matchers
            .into_iter()
            .flat_map(|matcher| matcher.join().unwrap())
            .collect::<BTreeSet<_>>()
    });
    assert!(seen.len() > 1, "all answers are of {seen:?}");
    assert!(answers.load(Ordering::Relaxed) >= MATCHERS, "{answers:?}");

    // With the last reader gone, all but the current one may go.
    let last = start + 1.hours();
    publish(&store, &runtime, &variants[0].0, last);
    assert_eq!(store.generations().len(), 1);
}

#[test]
fn a_generation_that_is_held_outlives_its_waiting_time() {
    let site = Site::new();
    let variants = variants(site.root.path());
    let (store, runtime, start) = first(&site, &variants[0].0);
    let pin = runtime.block_on(store.pin()).unwrap();
    assert!(pin.is_locked());
    publish(&store, &runtime, &variants[1].0, start + 1.seconds());
    assert!(Layout::database(&pin.path).exists());
    let listed: Vec<_> = site.list().iter().map(|entry| entry["pinned"].clone()).collect();
    assert_eq!(listed, [false, true]);
    drop(pin);
    publish(&store, &runtime, &variants[2].0, start + 2.seconds());
    assert_eq!(store.generations().len(), 1);
}
