#![doc = include_str!("../README.md")]

pub mod artifact_type;
pub mod catalog;
pub mod code;
pub mod document;
pub mod endpoint;
pub mod fingerprint;
#[cfg(feature = "generate")]
pub mod generate;
pub mod headers;
pub mod limits;
pub mod matching;
pub mod oci;
pub mod problem;
pub mod status;
#[cfg(feature = "vectors")]
pub mod vectors;
pub mod version;

pub use artifact_type::ArtifactType;
pub use catalog::{CatalogResponse, Completeness, Component, Directness};
pub use code::Code;
pub use document::Document;
pub use endpoint::Endpoint;
pub use limits::{Ceiling, RequestedLimits, ResourceLimits};
pub use matching::{Finding, MatchResponse, Severity};
pub use oci::{OciScanRequest, OciScanResponse};
pub use problem::ProblemBody;
pub use status::{
    CancellationResponse, Capabilities, Health, HealthComponent, HealthStatus, Readiness, ReadinessStatus,
};
