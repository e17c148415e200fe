//! `POST /v1/oci/scan`: image digest in, SBOM and findings out.

use crate::{CatalogResponse, MatchResponse, ResourceLimits};
use serde::{Deserialize, Serialize};

/// Most platforms that one request may name.
pub const MAX_PLATFORMS: usize = 16;

/// Platform policy that scans what the request names.
pub const REQUIRED_PLATFORMS: &str = "REQUIRED_SET";

/// Platform policy that scans what the index holds.
pub const ALL_PLATFORMS: &str = "ALL";

/// Request body of `POST /v1/oci/scan`. The client leaves null members out;
/// every member is optional here so that a missing one gets its own error code.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OciScanRequest {
    /// `v1`.
    #[cfg_attr(feature = "generate", schemars(required, extend("const" = "v1")))]
    pub api_version: Option<String>,
    /// As the run id header; this one counts.
    #[cfg_attr(feature = "generate", schemars(required, regex(pattern = crate::headers::RUN_ID_PATTERN)))]
    pub run_id: Option<String>,
    /// Opaque.
    pub idempotency_key: Option<String>,
    /// http or https, a host, no userinfo, query or fragment; a path becomes a repository prefix.
    #[cfg_attr(feature = "generate", schemars(required, extend("format" = "uri")))]
    pub registry_url: Option<String>,
    /// `[A-Za-z0-9][A-Za-z0-9._/-]{0,511}`.
    #[cfg_attr(
        feature = "generate",
        schemars(required, regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,511}$"))
    )]
    pub repository: Option<String>,
    /// `sha256:` and 64 lower-case hexadecimal digits.
    #[cfg_attr(
        feature = "generate",
        schemars(required, regex(pattern = r"^sha256:[0-9a-f]{64}$"))
    )]
    pub manifest_digest: Option<String>,
    /// `os/arch[/variant]`, at most 16; absent or empty means `linux/amd64`.
    #[cfg_attr(
        feature = "generate",
        schemars(
            length(max = 16),
            inner(regex(pattern = r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?$"))
        )
    )]
    pub required_platforms: Option<Vec<String>>,
    /// `REQUIRED_SET`, which is the default, or `ALL`: every platform of the index in its order, the first 16 of them.
    /// With `ALL` there are no required platforms.
    #[cfg_attr(
        feature = "generate",
        schemars(extend("enum" = [ALL_PLATFORMS, REQUIRED_PLATFORMS, serde_json::Value::Null]))
    )]
    pub platform_policy: Option<String>,
    /// Short-lived token for this image only.
    #[cfg_attr(feature = "generate", schemars(required, length(min = 1)))]
    pub scoped_bearer_token: Option<String>,
    /// 64 hexadecimal digits; not interpreted.
    pub profile_configuration_digest: Option<String>,
    /// Required.
    #[cfg_attr(feature = "generate", schemars(required))]
    pub limits: Option<ResourceLimits>,
    /// Provenance that the client expects the match to have.
    pub expected_snapshot: Option<ExpectedSnapshot>,
}

impl std::fmt::Debug for OciScanRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OciScanRequest")
            .field("run_id", &self.run_id)
            .field("repository", &self.repository)
            .field("manifest_digest", &self.manifest_digest)
            .finish_non_exhaustive()
    }
}

/// The scanner snapshot that the client observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExpectedSnapshot {
    /// Adapter profile.
    pub adapter_name: Option<String>,
    /// Matcher.
    pub engine_name: Option<String>,
    /// Matcher version.
    pub engine_version: Option<String>,
    /// Database revision.
    pub vulnerability_database_revision: Option<String>,
    /// Database build time.
    pub vulnerability_database_updated_at: Option<String>,
    /// Capability digest.
    pub capability_digest: Option<String>,
}

/// Answer of `POST /v1/oci/scan`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OciScanResponse {
    /// The merged inventory.
    pub catalog: CatalogResponse,
    /// The findings of the merged inventory.
    #[serde(rename = "match")]
    pub matched: MatchResponse,
    /// Requested platforms that were scanned, in request order.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub scanned_platforms: Vec<String>,
    /// Requested platforms that were not available, in request order.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub missing_platforms: Vec<String>,
}
