//! `POST /v1/catalog`: bytes in, SBOM out.

use crate::Document;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most components in [`CatalogResponse::components`].
pub const MAX_COMPONENTS: usize = 4096;
/// Most items of any nested list on the wire.
pub const MAX_NESTED_LIST: usize = 256;
/// Most entries of [`Component::properties`].
pub const MAX_PROPERTIES: usize = 128;

/// How much of what was in scope was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Completeness {
    /// Everything in scope was inspected and is in the answer.
    Complete,
    /// The answer is usable but not whole; `summary.partialReasons` says why.
    Partial,
    /// It cannot be said.
    Unknown,
}

/// Whether a component was asked for directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Directness {
    /// The document marks its scope as required.
    DirectOrRequired,
    /// The document does not say.
    Unknown,
}

/// One component, projected from the document. Lengths are in Unicode code points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// The document's `bom-ref`, or a reference derived from the identity; at most 1024.
    #[cfg_attr(feature = "generate", schemars(length(max = 1024)))]
    pub component_ref: String,
    /// Package URL; at most 2048.
    #[cfg_attr(feature = "generate", schemars(length(max = 2048)))]
    pub package_url: Option<String>,
    /// CycloneDX component type; at most 64.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "generate", schemars(length(max = 64)))]
    pub kind: Option<String>,
    /// CycloneDX `group`; at most 512.
    #[cfg_attr(feature = "generate", schemars(length(max = 512)))]
    pub namespace: Option<String>,
    /// Name, `unknown` when blank; at most 512.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 512)))]
    pub name: String,
    /// Version; at most 512.
    #[cfg_attr(feature = "generate", schemars(length(max = 512)))]
    pub version: Option<String>,
    /// See [`Directness`].
    pub directness: Directness,
    /// Where inside the artifact it was found; at most 256 items.
    #[cfg_attr(
        feature = "generate",
        schemars(length(max = 256), inner(length(min = 1, max = 16384)))
    )]
    pub locations: Vec<String>,
    /// Licence ids, names or expressions; at most 256 items.
    #[cfg_attr(feature = "generate", schemars(length(max = 256), inner(length(max = 16384))))]
    pub licenses: Vec<String>,
    /// Engine properties; at most 128 entries.
    #[cfg_attr(feature = "generate", schemars(extend("maxProperties" = MAX_PROPERTIES)))]
    pub properties: BTreeMap<String, String>,
}

/// Answer of `POST /v1/catalog`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CatalogResponse {
    /// Always `syft-grype-v1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "syft-grype-v1")))]
    pub adapter_name: String,
    /// Always `1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "1")))]
    pub adapter_version: String,
    /// Always `syft`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "syft")))]
    pub engine_name: String,
    /// Engine version; at most 128 code points.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 128)))]
    pub engine_version: String,
    /// As in [`crate::Capabilities`].
    #[cfg_attr(feature = "generate", schemars(regex(pattern = r"^[0-9a-f]{64}$")))]
    pub capability_digest: String,
    /// 64 lower-case hexadecimal digits, of the received bytes.
    #[cfg_attr(feature = "generate", schemars(regex(pattern = r"^[0-9a-f]{64}$")))]
    pub actual_input_sha256: String,
    /// See [`Completeness`].
    pub completeness: Completeness,
    /// Always `CycloneDX`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "CycloneDX")))]
    pub spec_name: String,
    /// CycloneDX version of the document.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 32)))]
    pub spec_version: Option<String>,
    /// Number of components in the document, projected or not.
    pub component_count: u32,
    /// Sum of the lengths of every `dependsOn`; at most 100000.
    #[cfg_attr(feature = "generate", schemars(range(max = 100_000)))]
    pub dependency_count: u32,
    /// The document.
    pub cyclonedx_json: Document,
    /// The projection; at most 4096 items.
    #[cfg_attr(feature = "generate", schemars(length(max = 4096)))]
    pub components: Vec<Component>,
    /// Advisory facts and the proof of scan; clients may ignore it.
    pub summary: CatalogSummary,
}

/// What the run did: the proof behind "complete" or the reasons behind "partial".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CatalogSummary {
    /// Components in the projection.
    pub component_projection_count: u64,
    /// Dependencies counted.
    pub dependency_projection_count: u64,
    /// Bytes received.
    pub input_bytes: u64,
    /// Archive entries over all levels.
    pub archive_entries: u64,
    /// Bytes after decompression over all levels.
    pub expanded_bytes: u64,
    /// Archives found inside the artifact.
    pub nested_archives: u64,
    /// Bytes and entries handed to the cataloguers.
    #[serde(default)]
    pub laid_out_bytes: u64,
    /// Files handed to the cataloguers.
    #[serde(default)]
    pub laid_out_files: u64,
    /// What the bytes were recognised as, for example `npm-package` or `opaque`.
    #[serde(default)]
    pub recognized_as: String,
    /// Package identities read from the artifact's own manifests, as purls.
    #[serde(default)]
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub identities: Vec<String>,
    /// Cataloguers that ran and the number of components that each found.
    #[serde(default)]
    pub catalogers: BTreeMap<String, u64>,
    /// Paths of a known package type that yielded no component; at most 64, sanitised.
    #[serde(default)]
    #[cfg_attr(feature = "generate", schemars(length(max = 64)))]
    pub unyielding_files: Vec<String>,
    /// Distribution of operating system packages, when there are any: its id and version, or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<String>,
    /// Why the result is not complete; empty when it is.
    #[serde(default)]
    pub partial_reasons: Vec<PartialReason>,
    /// Engine warnings without a code of their own.
    #[serde(default)]
    pub other_engine_warnings: u64,
    /// Conda: name of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda_name: Option<String>,
    /// Conda: version of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda_version: Option<String>,
    /// Conda: build string of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda_build: Option<String>,
    /// Conda: platform directory of the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conda_subdir: Option<String>,
    /// OCI: platforms that were scanned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub scanned_platforms: Option<Vec<String>>,
    /// OCI: platforms that were not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub missing_platforms: Option<Vec<String>>,
    /// OCI: what the index refers to beside images, and how often: `attestation`, `helm-chart` or `artifact`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub companions: BTreeMap<String, u64>,
}

/// One reason why a result is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PartialReason {
    /// Stable code.
    pub code: PartialCode,
    /// Sanitised detail for a human, at most 200 code points.
    #[cfg_attr(feature = "generate", schemars(length(max = 200)))]
    pub detail: String,
}

/// Stable codes of incompleteness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum PartialCode {
    /// A known package type yielded no component.
    NothingCataloged,
    /// The artifact's own manifest could not be read or lacks a name or version.
    IdentityUnknown,
    /// A cataloguer failed.
    CatalogerFailed,
    /// A matcher failed.
    MatcherFailed,
    /// The distribution of operating system packages is not known, so they match nothing.
    DistroUnknown,
    /// Components without a purl or a version that a matcher can use.
    UnmatchableComponents,
    /// More components than the projection holds.
    ComponentProjectionLimit,
    /// More findings than the projection holds.
    FindingProjectionLimit,
    /// Lists or properties were cut to fit the client's limits.
    ResponseSizeLimit,
    /// More files of interest than the layout holds.
    LayoutLimit,
    /// A file of interest could not be read by a cataloguer.
    UnreadableFile,
    /// A format that is known but not supported.
    UnsupportedFormat,
    /// A platform was not available.
    PlatformMissing,
    /// A layer that registries need not have was not there.
    LayerMissing,
}
