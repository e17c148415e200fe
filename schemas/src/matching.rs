//! `POST /v1/match`: SBOM in, findings out.

use crate::Document;
use crate::catalog::{Completeness, PartialReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most findings in [`MatchResponse::findings`].
pub const MAX_FINDINGS: usize = 2048;
/// Most UTF-8 bytes of [`Finding::description`].
pub const MAX_DESCRIPTION_BYTES: usize = 65_535;

/// Normalised severity, in rank order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// Rank 0.
    Unknown,
    /// Rank 1.
    Negligible,
    /// Rank 2.
    Low,
    /// Rank 3.
    Medium,
    /// Rank 4.
    High,
    /// Rank 5.
    Critical,
}

impl Severity {
    /// All severities from the lowest rank to the highest.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::Negligible,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Critical,
    ];

    /// Normalises a source's word: trimmed, any case; an unknown word is [`Severity::Unknown`].
    pub fn normalize(word: &str) -> Self {
        match word.trim().to_ascii_uppercase().as_str() {
            "CRITICAL" => Self::Critical,
            "HIGH" | "IMPORTANT" => Self::High,
            "MEDIUM" | "MODERATE" => Self::Medium,
            "LOW" => Self::Low,
            "NEGLIGIBLE" | "INFORMATIONAL" | "INFO" => Self::Negligible,
            _ => Self::Unknown,
        }
    }

    /// The wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Negligible => "NEGLIGIBLE",
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::Critical => "CRITICAL",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One known vulnerability of one installed package. Lengths are in Unicode code points unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Opaque identity of the finding, see [`crate::fingerprint::finding_key`].
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 2048)))]
    pub finding_key: String,
    /// Advisory id, `UNKNOWN` when the report has none; at most 255.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 255)))]
    pub advisory_id: String,
    /// Other ids of the same vulnerability; at most 256 items.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub aliases: Vec<String>,
    /// Where the advisory comes from; at most 2048.
    #[cfg_attr(feature = "generate", schemars(length(max = 2048)))]
    pub data_source: Option<String>,
    /// Package URL; at most 2048.
    #[cfg_attr(feature = "generate", schemars(length(max = 2048)))]
    pub package_url: Option<String>,
    /// Package name, `unknown` when blank; at most 512.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 512)))]
    pub package_name: String,
    /// Installed version; at most 512.
    #[cfg_attr(feature = "generate", schemars(length(max = 512)))]
    pub installed_version: Option<String>,
    /// Versions that fix it; at most 256 items.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub fixed_versions: Vec<String>,
    /// Normalised severity.
    pub severity: Severity,
    /// Always `grype`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "grype")))]
    pub severity_source: Option<String>,
    /// CVSS vector with the greatest base score; at most 255.
    #[cfg_attr(feature = "generate", schemars(length(max = 255)))]
    pub cvss_vector: Option<String>,
    /// Its base score.
    pub cvss_score: Option<f64>,
    /// Short text from the source, untrusted; at most 1024.
    #[cfg_attr(feature = "generate", schemars(length(max = 1024)))]
    pub title: Option<String>,
    /// Long text from the source, untrusted; at most 65535 UTF-8 bytes.
    #[cfg_attr(feature = "generate", schemars(length(max = 65535)))]
    pub description: Option<String>,
    /// First URL of the source, untrusted; at most 2048.
    #[cfg_attr(feature = "generate", schemars(length(max = 2048)))]
    pub primary_url: Option<String>,
    /// Where inside the artifact the package was found; at most 256 items.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub locations: Vec<String>,
    /// Fix state in the source's words; at most 64.
    #[cfg_attr(feature = "generate", schemars(length(max = 64)))]
    pub source_status: Option<String>,
    /// Images: platforms that the package was found in; at most 16 items, absent for other artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "generate", schemars(length(max = 16)))]
    pub platforms: Vec<String>,
    /// Images: uncompressed digests of the layers that the package was found in; at most 256 items, absent for other
    /// artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub layers: Vec<String>,
}

/// Answer of `POST /v1/match`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatchResponse {
    /// Always `syft-grype-v1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "syft-grype-v1")))]
    pub adapter_name: String,
    /// Always `1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "1")))]
    pub adapter_version: String,
    /// Always `grype`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "grype")))]
    pub engine_name: String,
    /// Engine version; at most 128.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 128)))]
    pub engine_version: String,
    /// Revision of the database generation that was used; never blank, at most 255.
    #[cfg_attr(
        feature = "generate",
        schemars(length(min = 1, max = 255), regex(pattern = r"\S"))
    )]
    pub vulnerability_database_revision: String,
    /// Build time of the same generation, RFC 3339 UTC with millisecond precision.
    #[cfg_attr(feature = "generate", schemars(extend("format" = "date-time")))]
    pub vulnerability_database_updated_at: String,
    /// As in [`crate::Capabilities`].
    #[cfg_attr(feature = "generate", schemars(regex(pattern = r"^[0-9a-f]{64}$")))]
    pub capability_digest: String,
    /// See [`Completeness`].
    pub completeness: Completeness,
    /// The report.
    pub report_json: Document,
    /// The projection; at most 2048 items.
    #[cfg_attr(feature = "generate", schemars(length(max = 2048)))]
    pub findings: Vec<Finding>,
    /// Advisory facts; clients may ignore it.
    pub summary: MatchSummary,
}

/// What the match did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MatchSummary {
    /// Findings in the projection.
    pub finding_projection_count: u64,
    /// Findings by severity over the whole report; all six severities are present.
    #[cfg_attr(feature = "generate", schemars(extend("required" = Severity::ALL.map(Severity::as_str))))]
    pub severity_counts: BTreeMap<String, u64>,
    /// Matches in the report.
    pub matches_reported: u64,
    /// Components of the SBOM that was matched.
    #[serde(default)]
    pub components_matched_against: u64,
    /// Why the result is not complete; empty when it is.
    #[serde(default)]
    pub partial_reasons: Vec<PartialReason>,
    /// Engine warnings without a code of their own.
    #[serde(default)]
    pub other_engine_warnings: u64,
}
