//! SARIF 2.1.0, for code scanning platforms.

use super::json::reason_line;
use super::{ScannedArtifact, by_severity};
use crate::problem::sanitize;
use assay_schemas::{Finding, Severity};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most characters of one piece of outside text.
const LONGEST_TEXT: usize = 1000;

/// What stays as it is in a path of a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What stays as it is in a whole URL: all that RFC 3986 allows, an escape that is already there included.
const URL: &AsciiSet = &percent_encoding::CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// One log with one run over all artifacts: a rule for each advisory, a result for each finding.
pub fn render_sarif(scanned: &[ScannedArtifact]) -> String {
    let rules = Rules::of(scanned);
    let results: Vec<Value> = scanned
        .iter()
        .flat_map(|artifact| {
            let findings = by_severity(artifact.findings());
            findings
                .into_iter()
                .map(|finding| result(artifact, finding, &rules))
        })
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "Assay",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": rules.descriptors(),
                },
                "extensions": engines(scanned),
            },
            "columnKind": "unicodeCodePoints",
            "artifacts": scanned.iter().map(artifact).collect::<Vec<_>>(),
            "invocations": [{
                "executionSuccessful": true,
                "toolExecutionNotifications": notifications(scanned),
            }],
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

/// The findings of each advisory; its place in the order of ids is the index of its rule.
struct Rules<'a>(BTreeMap<&'a str, Vec<&'a Finding>>);

impl<'a> Rules<'a> {
    fn of(scanned: &'a [ScannedArtifact]) -> Self {
        let mut rules: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
        for finding in scanned.iter().flat_map(ScannedArtifact::findings) {
            rules
                .entry(finding.advisory_id.as_str())
                .or_default()
                .push(finding);
        }
        Self(rules)
    }

    fn index(&self, advisory: &str) -> Option<usize> {
        self.0.keys().position(|id| *id == advisory)
    }

    fn descriptors(&self) -> Vec<Value> {
        self.0
            .iter()
            .filter_map(|(id, findings)| Some(descriptor(id, findings.first()?, findings)))
            .collect()
    }
}

fn descriptor(id: &str, first: &Finding, findings: &[&Finding]) -> Value {
    let worst = findings
        .iter()
        .map(|f| f.severity)
        .max()
        .unwrap_or(Severity::Unknown);
    let title = first.title.as_deref().unwrap_or(id);
    let mut properties = json!({ "tags": ["security", "vulnerability"], "aliases": cleaned(&first.aliases) });
    if let (Some(score), Some(members)) = (security_severity(findings, worst), properties.as_object_mut()) {
        members.insert("security-severity".to_owned(), score.into());
    }
    let mut rule = json!({
        "id": clean(id),
        "shortDescription": { "text": message(title) },
        "defaultConfiguration": { "level": level(worst) },
        "properties": properties,
    });
    let urls = [first.primary_url.as_deref(), first.data_source.as_deref()];
    if let Some(members) = rule.as_object_mut() {
        if let Some(description) = first.description.as_deref().filter(|d| !d.trim().is_empty()) {
            members.insert(
                "fullDescription".to_owned(),
                json!({ "text": message(description) }),
            );
        }
        if let Some(url) = urls.into_iter().flatten().find_map(web_url) {
            members.insert("helpUri".to_owned(), url.into());
        }
    }
    rule
}

fn result(artifact: &ScannedArtifact, finding: &Finding, rules: &Rules<'_>) -> Value {
    let fix = if finding.fixed_versions.is_empty() {
        "no fixed version is known".to_owned()
    } else {
        format!("fixed in {}", finding.fixed_versions.join(", "))
    };
    let text = format!(
        "{} {} is affected by {} ({}); {fix}",
        finding.package_name,
        finding
            .installed_version
            .as_deref()
            .unwrap_or("(unknown version)"),
        finding.advisory_id,
        finding.severity,
    );
    let logical: Vec<Value> = finding
        .locations
        .iter()
        .map(|location| json!({ "fullyQualifiedName": clean(location), "kind": "package" }))
        .collect();
    let mut result = json!({
        "ruleId": clean(&finding.advisory_id),
        "level": level(finding.severity),
        "message": { "text": message(&text) },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": artifact_uri(&artifact.path) },
                // Platforms that show results beside lines want a line; an artifact has only its beginning.
                "region": { "startLine": 1 },
            },
            "logicalLocations": logical,
        }],
        "partialFingerprints": { "findingKey/v1": finding.finding_key },
        "properties": {
            "severity": finding.severity,
            "packageUrl": finding.package_url.as_deref().map(clean),
            "packageName": clean(&finding.package_name),
            "installedVersion": finding.installed_version.as_deref().map(clean),
            "fixedVersions": cleaned(&finding.fixed_versions),
            "cvssVector": finding.cvss_vector.as_deref().map(clean),
            "cvssScore": finding.cvss_score,
        },
    });
    if let (Some(index), Some(members)) = (rules.index(&finding.advisory_id), result.as_object_mut()) {
        members.insert("ruleIndex".to_owned(), index.into());
    }
    result
}

fn artifact(artifact: &ScannedArtifact) -> Value {
    let catalog = &artifact.catalog;
    let matched = artifact.matched.as_ref();
    json!({
        "location": { "uri": artifact_uri(&artifact.path) },
        "length": catalog.summary.input_bytes,
        "hashes": { "sha-256": catalog.actual_input_sha256 },
        "roles": ["analysisTarget"],
        "properties": {
            "completeness": artifact.completeness(),
            "vulnerabilityDatabaseRevision": matched.map(|m| clean(&m.vulnerability_database_revision)),
            "vulnerabilityDatabaseUpdatedAt": matched.map(|m| clean(&m.vulnerability_database_updated_at)),
        },
    })
}

/// The engines as extensions of the tool, each version once.
fn engines(scanned: &[ScannedArtifact]) -> Vec<Value> {
    let mut engines: Vec<(&str, &str)> = scanned
        .iter()
        .flat_map(|artifact| {
            let catalog = &artifact.catalog;
            let matcher = artifact.matched.as_ref();
            [(catalog.engine_name.as_str(), catalog.engine_version.as_str())]
                .into_iter()
                .chain(matcher.map(|m| (m.engine_name.as_str(), m.engine_version.as_str())))
        })
        .collect();
    engines.sort_unstable();
    engines.dedup();
    engines
        .into_iter()
        .map(|(name, version)| json!({ "name": clean(name), "version": clean(version) }))
        .collect()
}

/// What kept a result from being complete.
fn notifications(scanned: &[ScannedArtifact]) -> Vec<Value> {
    scanned
        .iter()
        .flat_map(|artifact| {
            artifact.partial_reasons().map(|reason| {
                json!({
                    "level": "warning",
                    "descriptor": { "id": reason.code },
                    "message": { "text": message(&reason_line(reason)) },
                    "locations": [{
                        "physicalLocation": { "artifactLocation": { "uri": artifact_uri(&artifact.path) } },
                    }],
                })
            })
        })
        .collect()
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium | Severity::Unknown => "warning",
        Severity::Low | Severity::Negligible => "note",
    }
}

/// The greatest CVSS score of an advisory, else one from the middle of its severity's band; none when nothing is known.
fn security_severity(findings: &[&Finding], worst: Severity) -> Option<String> {
    let greatest = findings
        .iter()
        .filter_map(|finding| finding.cvss_score)
        .filter(|score| (0.0..=10.0).contains(score))
        .max_by(f64::total_cmp);
    let band = match worst {
        Severity::Critical => Some(9.5),
        Severity::High => Some(8.0),
        Severity::Medium => Some(5.5),
        Severity::Low => Some(2.0),
        Severity::Negligible => Some(0.5),
        Severity::Unknown => None,
    };
    greatest.or(band).map(|score| format!("{score:.1}"))
}

/// The path as a URI reference; an absolute path as a `file` URI.
fn artifact_uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    let encoded = utf8_percent_encode(path, PATH);
    if path.starts_with('/') {
        format!("file://{encoded}")
    } else {
        encoded.to_string()
    }
}

/// The text when it is a URL that a reader may safely offer as a link.
fn web_url(text: &str) -> Option<String> {
    let text = text.trim();
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        text.strip_prefix(scheme)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    });
    is_web.then(|| utf8_percent_encode(text, URL).to_string())
}

/// Outside text as a SARIF message: no control characters, no placeholder, no embedded link.
fn message(text: &str) -> String {
    let mut out = String::new();
    for c in sanitize(text, LONGEST_TEXT).chars() {
        match c {
            '{' => out.push_str("{{"),
            '}' => out.push_str("}}"),
            '[' | ']' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

fn clean(text: &str) -> String {
    sanitize(text, LONGEST_TEXT)
}

fn cleaned(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| clean(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::{artifact_uri, message, render_sarif, web_url};
    use crate::report::{ScannedArtifact, sample};
    use assay_schemas::Severity;
    use serde_json::Value;

    fn validated(scanned: &[ScannedArtifact]) -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sarif-2.1.0.schema.json");
        // The published schema has a stray bracket in its pattern of language tags, which strict readers refuse.
        let text = std::fs::read_to_string(path).unwrap().replace("{2}]?$", "{2}$");
        let schema = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let log: Value = serde_json::from_str(&render_sarif(scanned)).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&log)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        log
    }

    #[test]
    fn every_kind_of_result_obeys_the_schema() {
        let inventory_only = ScannedArtifact {
            matched: None,
            ..sample::with_findings(&[])
        };
        validated(&[]);
        validated(&[sample::hostile()]);
        validated(&[
            sample::partial(sample::with_findings(&Severity::ALL)),
            inventory_only,
        ]);
    }

    #[test]
    fn rules_levels_and_fingerprints_follow_the_findings() {
        let log = validated(&[sample::with_findings(&Severity::ALL)]);
        let results = log.pointer("/runs/0/results").unwrap().as_array().unwrap();
        let levels: Vec<_> = results.iter().map(|r| r["level"].as_str().unwrap()).collect();
        assert_eq!(levels, ["error", "error", "warning", "note", "note", "warning"]);
        let rules = log
            .pointer("/runs/0/tool/driver/rules")
            .unwrap()
            .as_array()
            .unwrap();
        for result in results {
            let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
            assert_eq!(rule["id"], result["ruleId"]);
            assert_eq!(
                result["partialFingerprints"]["findingKey/v1"]
                    .as_str()
                    .unwrap()
                    .len(),
                64
            );
        }
        let scores: Vec<_> = rules
            .iter()
            .map(|r| r["properties"]["security-severity"].as_str())
            .collect();
        assert_eq!(
            scores,
            [
                None,
                Some("0.5"),
                Some("2.0"),
                Some("5.5"),
                Some("8.0"),
                Some("9.8")
            ]
        );
    }

    #[test]
    fn an_advisory_that_hits_twice_is_one_rule() {
        let one = sample::with_findings(&[Severity::High]);
        let two = ScannedArtifact {
            path: "other.jar".into(),
            ..one.clone()
        };
        let log = validated(&[one, two]);
        assert_eq!(
            log.pointer("/runs/0/tool/driver/rules")
                .unwrap()
                .as_array()
                .unwrap()
                .len(),
            1
        );
        assert_eq!(
            log.pointer("/runs/0/results").unwrap().as_array().unwrap().len(),
            2
        );
    }

    #[test]
    fn incompleteness_is_notified() {
        let log = validated(&[sample::partial(sample::with_findings(&[]))]);
        let ids: Vec<_> = log
            .pointer("/runs/0/invocations/0/toolExecutionNotifications")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n["descriptor"]["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["CATALOGER_FAILED", "DISTRO_UNKNOWN"]);
    }

    #[test]
    fn paths_become_uris() {
        let cases = [
            ("target/app.jar", "target/app.jar"),
            ("./a b.jar", "a%20b.jar"),
            ("/srv/ä?.jar", "file:///srv/%C3%A4%3F.jar"),
            ("a:b", "a%3Ab"),
        ];
        for (path, want) in cases {
            assert_eq!(artifact_uri(path), want);
        }
    }

    #[test]
    fn only_web_urls_become_links() {
        assert_eq!(web_url("javascript:alert(1)"), None);
        assert_eq!(web_url("https://"), None);
        assert_eq!(web_url("//example.org"), None);
        assert_eq!(
            web_url("https://example.org/a b%20c").as_deref(),
            Some("https://example.org/a%20b%20c")
        );
    }

    #[test]
    fn messages_hold_neither_placeholders_nor_links() {
        assert_eq!(
            message("[x](http://evil) {0}\u{1b}"),
            r"\[x\](http://evil) {{0}}?"
        );
    }
}
