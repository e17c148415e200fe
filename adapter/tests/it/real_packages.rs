//! Real packages, fetched by name with the ordinary clients and built with the ordinary builders: none may be refused,
//! each must be named right, and nothing that the bare cataloguer finds in the file may be missing.
//!
//! The list is `fixtures/real-packages.tsv`. Files are fetched one after the other, each once, and kept in
//! `target/real-packages`.

mod built;
mod fetch;

use crate::support::{Setup, TestAdapter, engines};
use base64::Engine as _;
use fetch::Kind;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Versions disappear from where packages are served. So many may be gone before the list proves nothing.
const MAX_MISSING: usize = 8;

/// Packages that are not complete, and why: broken, unsafe or encrypted archives among their test data, a requirement
/// without a version, or no name of their own.
const PARTIAL: [(&str, &str); 6] = [
    ("pkg:cargo/zip@0.6.6", "UNSUPPORTED_FORMAT"),
    ("pkg:cargo/async-compression@0.4.6", "UNSUPPORTED_FORMAT"),
    (
        "pkg:golang/github.com/klauspost/compress@v1.17.7",
        "UNSUPPORTED_FORMAT",
    ),
    ("pkg:cargo/flate2@1.0.28", "UNSUPPORTED_FORMAT"),
    ("pkg:pypi/pathlib2@2.3.7.post1", "UNREADABLE_FILE"),
    ("pkg:maven/junit/junit@4.13.2", "IDENTITY_UNKNOWN"),
];

/// Stands for the package URL of a package that does not say what it is called: its answer must say so.
const UNNAMED: &str = "-";

/// One line of the list.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    kind: Kind,
    name: String,
    version: String,
    sha256: String,
    purl: String,
}

/// A package that is there to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    artifact_type: &'static str,
    file: PathBuf,
    /// Distribution that the host names; empty when it names none.
    distribution: &'static str,
    purl: String,
    /// Qualifiers that the component must have, as they stand in its package URL.
    qualifiers: Vec<&'static str>,
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn list() -> Vec<Listed> {
    let path = workspace().join("fixtures/real-packages.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let [kind, name, version, sha256, purl] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("not five fields: {line}");
            };
            Listed {
                kind: Kind::parse(kind).unwrap_or_else(|| panic!("an unknown kind: {line}")),
                name: name.to_owned(),
                version: version.to_owned(),
                sha256: sha256.to_owned(),
                purl: purl.to_owned(),
            }
        })
        .collect()
}

#[test]
fn the_list_is_long_and_each_entry_is_pinned_once() {
    let list = list();
    let mut seen = BTreeSet::new();
    for entry in &list {
        let key = (entry.kind, entry.name.as_str(), entry.version.as_str());
        assert!(seen.insert(key), "{key:?} stands twice");
        assert!(
            entry.sha256.len() == 64 && entry.sha256.bytes().all(|b| b.is_ascii_hexdigit()),
            "{key:?} is not pinned"
        );
    }
    assert!(list.len() >= 150, "{}", list.len());
}

#[test]
#[ignore = "slow: fetches packages and catalogues each twice"]
fn real_packages_pass_and_name_themselves() {
    let cache = workspace().join("target/real-packages");
    let mut wrong = Vec::new();
    let mut missing = Vec::new();
    let mut packages = Vec::new();
    for entry in list() {
        match fetch::file(&cache, entry.kind, &entry.name, &entry.version) {
            Ok(file) => {
                let digest = hex::encode(Sha256::digest(std::fs::read(&file).unwrap()));
                if digest != entry.sha256 {
                    wrong.push(format!("{} {}: SHA-256 is {digest}", entry.name, entry.version));
                }
                packages.push(Package {
                    artifact_type: entry.kind.artifact_type(&file),
                    file,
                    distribution: entry.kind.distribution(),
                    purl: entry.purl,
                    qualifiers: Vec::new(),
                });
            }
            Err(why) => {
                println!("MISSING {} {} {}: {why}", entry.kind, entry.name, entry.version);
                missing.push(format!("{} {}", entry.name, entry.version));
            }
        }
    }
    packages.extend(built::rpms(&cache.join("rpm")));
    let fetched = packages.len();
    wrong.extend(examine(packages));
    println!("{fetched} packages were sent, {} are missing", missing.len());
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        missing.len() <= MAX_MISSING,
        "{} packages are missing: {missing:?}",
        missing.len()
    );
}

/// Sends every package; what is wrong with the answers.
fn examine(packages: Vec<Package>) -> Vec<String> {
    let adapter = Setup::real().start();
    adapter.wait_ready();
    let queue = Mutex::new(packages.into_iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(package) = queue.lock().unwrap().next() else {
                        break;
                    };
                    let name = package.file.file_name().unwrap().to_string_lossy().into_owned();
                    for difference in differences(&adapter, &package) {
                        println!("{name}: {difference}");
                        wrong.lock().unwrap().push(format!("{name}: {difference}"));
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

fn differences(adapter: &TestAdapter, package: &Package) -> Vec<String> {
    let bytes = std::fs::read(&package.file).unwrap();
    let headers = [("x-assay-distribution", package.distribution)];
    // A machine that is busy with other things is no fault of the package.
    let reply = std::iter::repeat_with(|| adapter.catalog(package.artifact_type, &bytes, &headers))
        .find(|reply| reply.status != 429)
        .unwrap();
    if reply.status != 200 {
        return vec![format!("refused: {} {}", reply.status, reply.json())];
    }
    let catalog = reply.json();
    let document = base64::engine::general_purpose::STANDARD
        .decode(catalog["cyclonedxJson"].as_str().unwrap())
        .unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let ours = purls(&document);
    let mut wrong = Vec::new();
    let reasons = catalog["summary"]["partialReasons"].as_array().unwrap();
    let codes: Vec<&str> = reasons
        .iter()
        .filter_map(|reason| reason["code"].as_str())
        .collect();
    if package.purl == UNNAMED {
        // The bare cataloguer takes the name of the file, which no client sends.
        if !codes.contains(&"IDENTITY_UNKNOWN") {
            wrong.push(format!("silent about its name: {reasons:?}"));
        }
        return wrong;
    }
    match ours.iter().find(|purl| bare(purl) == package.purl) {
        None => wrong.push(format!("no {} among {ours:?}", package.purl)),
        Some(purl) => {
            for qualifier in &package.qualifiers {
                if !purl.contains(qualifier) {
                    wrong.push(format!("no {qualifier} in {purl}"));
                }
            }
        }
    }
    if codes != Vec::from_iter(expected(&PARTIAL, package)) {
        wrong.push(format!("not as complete as it should be: {reasons:?}"));
    }
    let ours: BTreeSet<String> = ours.iter().map(|purl| bare(purl)).collect();
    let lost: Vec<String> = purls(&bare_cataloguer(&package.file))
        .iter()
        .map(|purl| bare(purl))
        .filter(|purl| !is_among(purl, &ours))
        .collect();
    if !lost.is_empty() {
        wrong.push(format!("the bare cataloguer finds {lost:?}"));
    }
    wrong
}

fn expected(list: &[(&str, &'static str)], package: &Package) -> Option<&'static str> {
    list.iter()
        .find(|(purl, _)| *purl == package.purl)
        .map(|(_, code)| *code)
}

/// What the cataloguer finds in the file under its own name, with its own defaults.
fn bare_cataloguer(file: &Path) -> Value {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(engines().join("syft"))
        .args(["scan", "--quiet", "--output", "cyclonedx-json"])
        .arg(format!("file:{}", file.display()))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .env("SYFT_CHECK_FOR_APP_UPDATE", "false")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {:?}", file.display(), output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn purls(document: &Value) -> BTreeSet<String> {
    document["components"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|component| component["purl"].as_str().map(str::to_owned))
        .collect()
}

/// Whether a package is there, perhaps in the namespace of its distribution, which the bare cataloguer does not know.
fn is_among(purl: &str, ours: &BTreeSet<String>) -> bool {
    let is_in_distribution = |kind: &str| {
        purl.strip_prefix(kind).is_some_and(|package| {
            let end = format!("/{package}");
            ours.iter()
                .any(|own| own.starts_with(kind) && own.ends_with(&end))
        })
    };
    ours.contains(purl) || is_in_distribution("pkg:deb/") || is_in_distribution("pkg:rpm/")
}

/// A package URL without qualifiers, and with the colon of an epoch as it is.
fn bare(purl: &str) -> String {
    purl.split(['?', '#']).next().unwrap_or(purl).replace("%3A", ":")
}
