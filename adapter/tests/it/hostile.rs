//! Every hostile and odd-but-legal input of the fixtures, sent to one running adapter with the real engines.

mod gate;
mod oci;
mod registry;

use crate::support::{Reply, TestAdapter};
use assay_fixtures::hostile::{Limits, Verdict};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Sends all cases, two at a time, and gives what was wrong with each.
fn differences<C: Copy + Send>(cases: Vec<C>, wrong_with: impl Fn(C) -> Vec<String> + Sync) -> Vec<String> {
    let queue = Mutex::new(cases.into_iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else {
                        break;
                    };
                    let found = wrong_with(case);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

/// What is wrong with an answer; `catalog` takes the catalog document out of it.
fn compare(verdict: &Verdict, reply: &Reply, catalog: impl Fn(&Value) -> &Value) -> Option<String> {
    let document = reply.json();
    match *verdict {
        Verdict::Accept {
            packages,
            absent,
            completeness,
        } => {
            if reply.status != 200 {
                return Some(format!("refused: {} {document}", reply.status));
            }
            let catalog = catalog(&document);
            let found = found_packages(catalog);
            let missing = packages.iter().find(|package| !found.contains(**package));
            if let Some(package) = missing {
                return Some(format!("no {package} in {found:?}"));
            }
            let named = |name: &&&str| {
                found
                    .iter()
                    .any(|found| found.rsplit_once('@').is_some_and(|(found, _)| found == **name))
            };
            if let Some(name) = absent.iter().find(named) {
                return Some(format!("{name} does not exist"));
            }
            (catalog["completeness"] != completeness).then(|| {
                let reasons = &catalog["summary"]["partialReasons"];
                format!("{}, not {completeness}: {reasons}", catalog["completeness"])
            })
        }
        Verdict::Refuse { code, retryable } => {
            if reply.status == 200 {
                return Some(format!("accepted, not {code}"));
            }
            let right = document["code"] == code && document["retryable"] == retryable;
            let message = document["message"].as_str().unwrap_or_default();
            if right && !message.is_empty() {
                None
            } else {
                Some(format!("not {code}, retryable {retryable}: {document}"))
            }
        }
    }
}

/// `name@version` of all components, without the epoch 0 that RPM versions may or may not spell out.
fn found_packages(catalog: &Value) -> BTreeSet<String> {
    let components = catalog["components"].as_array().into_iter().flatten();
    components
        .map(|component| {
            let text = |member: &str| component[member].as_str().unwrap_or_default();
            format!("{}@{}", text("name"), text("version").trim_start_matches("0:"))
        })
        .collect()
}

/// The limits as the contract's names and values.
fn named_limits(limits: &Limits) -> [(&'static str, u64); 6] {
    [
        ("maxInputBytes", limits.max_input_bytes),
        ("maxArchiveEntries", limits.max_archive_entries),
        ("maxUncompressedBytes", limits.max_uncompressed_bytes),
        ("maxSingleFileBytes", limits.max_single_file_bytes),
        ("maxNestedDepth", u64::from(limits.max_nested_depth)),
        ("timeoutSeconds", limits.timeout_seconds),
    ]
}

/// That the adapter came through: it answers, and nothing of any run is left behind.
fn assert_unharmed(adapter: &TestAdapter) {
    assert_eq!(adapter.get("/v1/readiness").json()["ready"], true);
    assert_eq!(adapter.run_directories(), Vec::<String>::new());
}

fn assert_none(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
