//! `GET /v1/capabilities`, `GET /v1/readiness` and cancellation.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer of `GET /v1/capabilities`. All replicas of one deployment give the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Always `v1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "v1")))]
    pub api_version: String,
    /// Always `syft-grype-v1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "syft-grype-v1")))]
    pub adapter_name: String,
    /// Always `1`.
    #[cfg_attr(feature = "generate", schemars(extend("const" = "1")))]
    pub adapter_version: String,
    /// Supported operations, at most 256.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub operations: Vec<String>,
    /// Supported target classifications, at most 256.
    #[cfg_attr(feature = "generate", schemars(length(max = 256)))]
    pub target_classifications: Vec<String>,
    /// Configured input cap, bytes.
    #[cfg_attr(feature = "generate", schemars(range(min = 1024)))]
    pub max_input_bytes: i64,
    /// Configured cap of one engine document, bytes.
    #[cfg_attr(feature = "generate", schemars(range(min = 1024)))]
    pub max_output_bytes: i64,
    /// See [`crate::version::capability_digest`].
    #[cfg_attr(feature = "generate", schemars(regex(pattern = r"^[0-9a-f]{64}$")))]
    pub capability_digest: String,
}

/// Whether scans can be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum ReadinessStatus {
    /// Engines and database are usable.
    Ready,
    /// Something is not; `details.reasonCode` says what.
    Degraded,
}

/// Answer of `GET /v1/readiness`, always with status 200.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// `status == READY`.
    pub ready: bool,
    /// See [`ReadinessStatus`].
    pub status: ReadinessStatus,
    /// `grype` when ready, `syft-grype` when degraded.
    pub engine_name: String,
    /// Matcher version, `unavailable` when degraded.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 128)))]
    pub engine_version: String,
    /// Database revision, `unavailable` when degraded.
    #[cfg_attr(feature = "generate", schemars(length(min = 1, max = 255)))]
    pub vulnerability_database_revision: String,
    /// Database build time with millisecond precision, the epoch when degraded.
    #[cfg_attr(feature = "generate", schemars(extend("format" = "date-time")))]
    pub vulnerability_database_updated_at: String,
    /// When this was observed.
    #[cfg_attr(feature = "generate", schemars(extend("format" = "date-time")))]
    pub observed_at: String,
    /// Ready: `catalogEngine`, `catalogEngineVersion`, `matcherEngine`, `matcherEngineVersion`, `capabilityDigest`,
    /// and beyond the contract `sandbox` (`required`, `best-effort` or `off`) and `isolationInForce` (layers, by comma).
    /// Degraded: `reasonCode`.
    pub details: BTreeMap<String, String>,
}

/// Answer of `POST /v1/runs/{runId}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancellationResponse {
    /// The run id of the path.
    #[cfg_attr(feature = "generate", schemars(regex(pattern = crate::headers::RUN_ID_PATTERN)))]
    pub run_id: String,
    /// Whether a run with that id was active on this process at that instant.
    pub cancelled: bool,
}

/// Health of the process or of one of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum HealthStatus {
    /// Usable; status 200.
    Up,
    /// Alive, but scans cannot be accepted; status 503.
    Degraded,
    /// Not usable; status 503.
    Down,
}

/// Answer of `GET /actuator/health` and of its two groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
pub struct Health {
    /// The worst status of all parts.
    pub status: HealthStatus,
    /// The parts, when the server shows them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, HealthComponent>,
}

/// One part of [`Health`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
pub struct HealthComponent {
    /// Status of this part.
    pub status: HealthStatus,
    /// What is known about it, when the server shows it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}
