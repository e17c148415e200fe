//! `cargo xtask demo`: sample artifacts in, findings out, in front of your eyes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::{Error, on};
use crate::http::{Client, Input};
use crate::service::{Adapter, credential, free_address};
use crate::workspace::{Profile, Workspace};
use crate::{adapter, process, table};

/// Wire names of the types that the demo shows, one sample each.
const SHOWN: [&str; 3] = ["JAR", "TGZ", "WHL"];

/// One file that the fixtures made, from their `manifest.json`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sample {
    /// Path of the file below the manifest.
    pub(crate) file: String,
    /// Wire name of its type.
    pub(crate) artifact_type: String,
}

/// What the demo and the benchmarks read of a catalog answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Catalog {
    engine_name: String,
    engine_version: String,
    completeness: String,
    component_count: u64,
    cyclonedx_json: String,
}

impl Catalog {
    /// The SBOM document as it was hashed.
    pub(crate) fn sbom(&self) -> Result<Vec<u8>, Error> {
        STANDARD
            .decode(&self.cyclonedx_json)
            .map_err(|error| Error::Unexpected {
                what: "cyclonedxJson",
                why: error.to_string(),
            })
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Matches {
    engine_name: String,
    engine_version: String,
    vulnerability_database_revision: String,
    vulnerability_database_updated_at: String,
    completeness: String,
    findings: Vec<Finding>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    advisory_id: String,
    package_name: String,
    installed_version: Option<String>,
    fixed_versions: Vec<String>,
    severity: String,
    locations: Vec<String>,
}

/// Shows what the project is for; without a finding it fails.
pub(crate) fn run(workspace: &Workspace, wait: bool) -> Result<(), Error> {
    let (credential, _) = credential();
    let listen = free_address()?;
    let mut options = adapter::options(workspace, listen, Profile::Dev, credential, "demo")?;
    let log = workspace.target().join("run/demo/adapter.log");
    options.log = Some(log.clone());
    let directory = workspace.target().join("artifacts");
    let samples = samples(workspace, &directory)?;

    let mut adapter = Adapter::start(&options)?;
    let shown = adapter
        .wait_ready(Duration::from_millis(10))
        .and_then(|()| show(adapter.client(), &directory, &samples))
        .inspect_err(|_| eprintln!("the adapter's log is {}", log.display()))?;
    if wait {
        println!("\nthe adapter stays on {} until Ctrl-C", adapter.client().base());
        while adapter.ended()?.is_none() {
            thread::sleep(Duration::from_millis(200));
        }
    }
    adapter.stop()?;
    if shown == 0 { Err(Error::NoFinding) } else { Ok(()) }
}

/// Makes the sample artifacts and reads their index.
pub(crate) fn samples(workspace: &Workspace, directory: &Path) -> Result<Vec<Sample>, Error> {
    process::output(process::fixture_program(workspace, "make-artifacts").arg(directory))?;
    let index = directory.join("manifest.json");
    let text = fs::read_to_string(&index).map_err(on("read", &index))?;
    serde_json::from_str(&text).map_err(|source| Error::Json {
        what: index.display().to_string(),
        source,
    })
}

/// The first sample of a type.
pub(crate) fn sample_of<'a>(samples: &'a [Sample], artifact_type: &'static str) -> Result<&'a Sample, Error> {
    samples
        .iter()
        .find(|sample| sample.artifact_type == artifact_type)
        .ok_or(Error::SampleMissing(artifact_type))
}

/// Scans and prints; gives the number of findings.
fn show(client: &Client, directory: &Path, samples: &[Sample]) -> Result<usize, Error> {
    let mut shown = 0;
    for artifact_type in SHOWN {
        let sample = sample_of(samples, artifact_type)?;
        let path = directory.join(&sample.file);
        let bytes = fs::read(&path).map_err(on("read", &path))?;
        let catalog: Catalog = client.catalog(Input {
            bytes: &bytes,
            artifact_type,
        })?;
        let matches: Matches = client.match_sbom(&catalog.sbom()?)?;
        println!(
            "\n{} ({} bytes, {artifact_type})\n",
            sample.file,
            bytes.len()
        );
        print!("{}", findings_table(&matches.findings));
        println!("\n{}", provenance(&catalog, &matches));
        shown += matches.findings.len();
    }
    Ok(shown)
}

fn findings_table(findings: &[Finding]) -> String {
    let head = [
        "PACKAGE",
        "INSTALLED",
        "FIXED IN",
        "ADVISORY",
        "SEVERITY",
        "LOCATION",
    ];
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            vec![
                table::cell(&finding.package_name, 48),
                table::cell(finding.installed_version.as_deref().unwrap_or("-"), 24),
                table::cell(&or_dash(&finding.fixed_versions), 24),
                table::cell(&finding.advisory_id, 32),
                table::cell(&finding.severity, 12),
                table::cell(&or_dash(&finding.locations), 96),
            ]
        })
        .collect();
    table::render(&head, &rows)
}

fn provenance(catalog: &Catalog, matches: &Matches) -> String {
    let cataloger = format!(
        "catalog  {} {}: {} component(s), {}",
        catalog.engine_name, catalog.engine_version, catalog.component_count, catalog.completeness
    );
    let findings = format!(
        "match    {} {}: {} finding(s), {}",
        matches.engine_name,
        matches.engine_version,
        matches.findings.len(),
        matches.completeness
    );
    let database = format!(
        "database revision {}, built {}",
        matches.vulnerability_database_revision, matches.vulnerability_database_updated_at
    );
    [cataloger, findings, database]
        .map(|line| table::cell(&line, 200))
        .join("\n")
}

fn or_dash(texts: &[String]) -> String {
    if texts.is_empty() {
        "-".to_owned()
    } else {
        texts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_readable_line() {
        let finding: Finding = serde_json::from_str(
            r#"{"findingKey":"k","advisoryId":"GHSA-1","packageName":"log4j-core","installedVersion":"2.14.1",
                "fixedVersions":["2.15.0"],"severity":"CRITICAL","locations":["/artifact.jar"],"title":null}"#,
        )
        .unwrap();
        let text = findings_table(&[finding]);
        let line = text.lines().nth(2).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "log4j-core",
                "2.14.1",
                "2.15.0",
                "GHSA-1",
                "CRITICAL",
                "/artifact.jar"
            ]
        );
    }

    #[test]
    fn a_missing_sample_is_named() {
        let samples = [Sample {
            file: "a.jar".to_owned(),
            artifact_type: "JAR".to_owned(),
        }];
        assert_eq!(sample_of(&samples, "JAR").unwrap().file, "a.jar");
        assert!(matches!(
            sample_of(&samples, "WHL"),
            Err(Error::SampleMissing("WHL"))
        ));
    }
}
