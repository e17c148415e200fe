//! `GET /v1/capabilities`, `GET /v1/readiness` and cancellation.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer of `GET /v1/capabilities`. All replicas of one deployment give the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// Always `v1`.
    pub api_version: String,
    /// Always `syft-grype-v1`.
    pub adapter_name: String,
    /// Always `1`.
    pub adapter_version: String,
    /// Supported operations, at most 256.
    pub operations: Vec<String>,
    /// Supported target classifications, at most 256.
    pub target_classifications: Vec<String>,
    /// Configured input cap, bytes.
    pub max_input_bytes: i64,
    /// Configured cap of one engine document, bytes.
    pub max_output_bytes: i64,
    /// See [`crate::version::capability_digest`].
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
    pub engine_version: String,
    /// Database revision, `unavailable` when degraded.
    pub vulnerability_database_revision: String,
    /// Database build time with millisecond precision, the epoch when degraded.
    pub vulnerability_database_updated_at: String,
    /// When this was observed.
    pub observed_at: String,
    /// Ready: `catalogEngine`, `catalogEngineVersion`, `matcherEngine`, `matcherEngineVersion`, `capabilityDigest`.
    /// Degraded: `reasonCode`.
    pub details: BTreeMap<String, String>,
}

/// Answer of `POST /v1/runs/{runId}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancellationResponse {
    /// The run id of the path.
    pub run_id: String,
    /// Whether a run with that id was active on this process at that instant.
    pub cancelled: bool,
}
