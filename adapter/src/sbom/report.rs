//! A Grype report: checked, made the same for the same input, and projected.

use super::finding;
use super::json::{self, JsonError, JsonLimits, Object, ObjectWriter};
use super::merge::PlatformsByRef;
use assay_schemas::catalog::{PartialCode, PartialReason};
use assay_schemas::matching::{Finding, MAX_FINDINGS};
use assay_schemas::{Code, Severity};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A document that is no usable report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// Breaks a bound of the contract, or is no JSON.
    #[error("report: {0}")]
    Json(#[from] JsonError),
    /// The top-level value is no object.
    #[error("report: not an object")]
    NotAnObject,
}

impl ReportError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        Code::ReportInvalid
    }
}

impl From<ReportError> for crate::problem::Problem {
    fn from(error: ReportError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A normalised report and what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalizedReport {
    /// The document.
    pub document: Vec<u8>,
    /// At most [`MAX_FINDINGS`], in the report's order.
    pub findings: Vec<Finding>,
    /// Matches in the report.
    pub matches_reported: u64,
    /// Matches by severity over the whole report; all severities are present.
    pub severity_counts: BTreeMap<String, u64>,
    /// Why the projection is not the whole report.
    pub reasons: Vec<PartialReason>,
}

/// What differs in a `descriptor` between two runs over the same input: the clock, and where this process keeps its
/// files.
const VOLATILE: &[&[&str]] = &[
    &["timestamp"],
    &["db", "status", "path"],
    &["configuration", "db", "cache-dir"],
];

/// Checks the matcher's document and makes it a function of its input. `platforms` says where the components of the
/// matched SBOM were found.
pub fn normalize(document: &[u8], platforms: &PlatformsByRef) -> Result<NormalizedReport, ReportError> {
    json::check(document, &JsonLimits::ENGINE)?;
    let root = json::root(document)?;
    let members = json::members(root).ok_or(ReportError::NotAnObject)?;
    let matches = members.iter().find(|(name, _)| name == "matches");
    let matches = matches
        .and_then(|(_, member)| json::items(member))
        .map(settled)
        .unwrap_or_default();
    let document = document_of(&members, &matches);

    let mut severity_counts: BTreeMap<String, u64> = Severity::ALL
        .iter()
        .map(|severity| (severity.as_str().to_owned(), 0))
        .collect();
    let mut findings = Vec::new();
    let mut matches_reported = 0;
    for raw in matches {
        let Some(members) = json::members(raw) else {
            continue;
        };
        let found = Object::from(members);
        matches_reported += 1;
        *severity_counts
            .entry(finding::severity(&found).as_str().to_owned())
            .or_default() += 1;
        if findings.len() < MAX_FINDINGS {
            findings.push(finding::project(&found, platforms));
        }
    }
    let mut reasons = Vec::new();
    if u64::try_from(findings.len()).unwrap_or(u64::MAX) < matches_reported {
        reasons.push(PartialReason {
            code: PartialCode::FindingProjectionLimit,
            detail: format!("{} of {matches_reported} findings projected", findings.len()),
        });
    }
    Ok(NormalizedReport {
        document: document.into_bytes(),
        findings,
        matches_reported,
        severity_counts,
        reasons,
    })
}

/// The report without what varies, and with its matches in their settled order.
fn document_of(members: &[(String, &RawValue)], matches: &[&RawValue]) -> String {
    let mut writer = ObjectWriter::default();
    for (name, member) in members {
        match name.as_str() {
            "matches" if !matches.is_empty() => {
                let matches: Vec<&str> = matches.iter().map(|found| found.get()).collect();
                writer.member(name, &format!("[{}]", matches.join(",")));
            }
            "descriptor" => writer.member(name, &json::without(member, VOLATILE)),
            _ => writer.member(name, member.get()),
        }
    }
    writer.finish()
}

/// The matcher orders by risk, severity, package and advisory, and leaves what is equal in all of them, as the same
/// package of two platforms is, in an order that changes from run to run. Those follow their text.
fn settled(mut matches: Vec<&RawValue>) -> Vec<&RawValue> {
    let key = |raw: &RawValue| {
        let found = Object::of(raw);
        let artifact = found.object("artifact");
        let text = |name: &str| artifact.text(name);
        let id = found.object("vulnerability").text("id");
        (id, text("name"), text("version"), text("type"))
    };
    for equal in matches.chunk_by_mut(|one, other| key(one) == key(other)) {
        equal.sort_unstable_by_key(|raw| raw.get());
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::{NormalizedReport, PlatformsByRef, ReportError};
    use assay_schemas::catalog::PartialCode;

    fn normalize(document: &[u8]) -> Result<NormalizedReport, ReportError> {
        super::normalize(document, &PlatformsByRef::new())
    }

    const REPORT: &str = r#"{"matches":[{"vulnerability":{"id":"GHSA-1","severity":"Moderate"},"artifact":{"name":"a","version":"1"}},
    {"vulnerability":{"severity":"?"}}],"source":{"type":"sbom-file","target":"sbom.cdx.json"},
    "descriptor":{"name":"grype","configuration":{"db":{"cache-dir":"/private","auto-update":false}},"db":{"status":{"built":"B","path":"/private/6/vulnerability.db","valid":true}},"timestamp":"T"}}"#;

    #[test]
    fn the_order_of_equal_matches_does_not_matter_and_other_order_stays() {
        let found = |advisory: &str, id: &str| {
            format!(
                r#"{{"vulnerability":{{"id":"{advisory}"}},"artifact":{{"name":"a","version":"1","id":"{id}"}}}}"#
            )
        };
        let done = |matches: [(&str, &str); 4]| {
            let matches = matches.map(|(advisory, id)| found(advisory, id)).join(",");
            normalize(format!(r#"{{"matches":[{matches}]}}"#).as_bytes()).unwrap()
        };
        let settled = done([("B", "1"), ("A", "1"), ("A", "2"), ("A", "3")]);
        assert_eq!(done([("B", "1"), ("A", "3"), ("A", "1"), ("A", "2")]), settled);
        assert_ne!(done([("A", "1"), ("A", "2"), ("A", "3"), ("B", "1")]), settled);
    }

    #[test]
    fn a_report_loses_only_what_varies() {
        let done = normalize(REPORT.as_bytes()).unwrap();
        let text = String::from_utf8(done.document.clone()).unwrap();
        assert!(
            !text.contains("/private") && !text.contains("timestamp"),
            "{text}"
        );
        assert!(
            text.contains(r#""db":{"status":{"built":"B","valid":true}}"#),
            "{text}"
        );
        assert!(text.contains(r#""target":"sbom.cdx.json""#), "{text}");
        assert_eq!(normalize(&done.document).unwrap(), done);
    }

    #[test]
    fn severities_are_counted_over_everything() {
        let done = normalize(REPORT.as_bytes()).unwrap();
        assert_eq!(done.matches_reported, 2);
        assert_eq!(done.severity_counts.len(), 6);
        assert_eq!(done.severity_counts["MEDIUM"], 1);
        assert_eq!(done.severity_counts["UNKNOWN"], 1);
        assert_eq!(done.findings[1].advisory_id, "UNKNOWN");
        assert_eq!(done.findings[1].package_name, "unknown");
    }

    #[test]
    fn the_projection_stops_at_its_cap_and_says_so() {
        let one = r#"{"vulnerability":{"id":"X","severity":"Low"},"artifact":{"name":"a"}}"#;
        let many = |count: usize| {
            let report = format!(r#"{{"matches":[{}]}}"#, vec![one; count].join(","));
            normalize(report.as_bytes()).unwrap()
        };
        let over = many(2049);
        assert_eq!(
            (
                over.findings.len(),
                over.severity_counts["LOW"],
                over.matches_reported
            ),
            (2048, 2049, 2049)
        );
        assert_eq!(over.reasons[0].code, PartialCode::FindingProjectionLimit);
        assert!(many(2048).reasons.is_empty());
    }

    #[test]
    fn missing_or_odd_matches_are_none() {
        for report in [
            "{}",
            r#"{"matches":null}"#,
            r#"{"matches":{}}"#,
            r#"{"matches":[1,"x"]}"#,
        ] {
            assert_eq!(
                normalize(report.as_bytes()).unwrap().matches_reported,
                0,
                "{report}"
            );
        }
        assert_eq!(normalize(b"[]"), Err(ReportError::NotAnObject));
        assert!(matches!(normalize(b"{"), Err(ReportError::Json(_))));
    }
}
