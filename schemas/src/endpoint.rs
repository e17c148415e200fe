//! Every endpoint of the service and the error codes that it can answer.

use crate::Code;

/// One method and path of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// `GET /v1/capabilities`
    Capabilities,
    /// `GET /v1/readiness`
    Readiness,
    /// `POST /v1/catalog`
    Catalog,
    /// `POST /v1/match`
    Match,
    /// `POST /v1/oci/scan`
    OciScan,
    /// `POST /v1/runs/{runId}/cancel`
    Cancel,
    /// `GET /actuator/health`
    Health,
    /// `GET /actuator/health/liveness`
    HealthLiveness,
    /// `GET /actuator/health/readiness`
    HealthReadiness,
    /// `GET /actuator/info`
    Info,
    /// `GET /actuator/prometheus`
    Prometheus,
}

use Code as C;

/// Codes of every path below `/v1/`: the outer checks and a defect of the adapter.
const OUTER: &[Code] = &[
    C::Unauthorized,
    C::NotFound,
    C::MethodNotAllowed,
    C::InternalError,
];

/// Codes of the request line and headers of a run, and of its admission.
const RUN: &[Code] = &[
    C::RequestInvalid,
    C::ApiUnsupported,
    C::HeaderInvalid,
    C::RunIdInvalid,
    C::RunAlreadyActive,
    C::ScratchRequestTooLarge,
    C::CapacityExhausted,
    C::AdmissionInterrupted,
    C::Timeout,
    C::Interrupted,
    C::WorkspaceIo,
    C::NotReady,
];

/// Codes of a raw body that is stored and hashed.
const UPLOAD: &[Code] = &[
    C::ExpectedSha256Invalid,
    C::InputTooLarge,
    C::InputIo,
    C::InputSha256Mismatch,
];

/// Codes of running one engine.
const ENGINE: &[Code] = &[
    C::ProcessIo,
    C::ProcessIsolationUnavailable,
    C::ProcessFailed,
    C::ProcessKilled,
    C::ProcessOutOfMemory,
    C::ScratchExhausted,
    C::OutputTooLarge,
    C::StderrTooLarge,
];

/// Codes of inspecting an artifact.
const ARCHIVE: &[Code] = &[
    C::ArchiveInvalid,
    C::ArchivePathInvalid,
    C::ArchivePathEscape,
    C::ArchiveEntryLimit,
    C::ArchiveEntryTooLarge,
    C::ArchiveExpandedLimit,
    C::ArchiveExpansionRatio,
    C::ArchiveNestingLimit,
    C::ArchiveEntryUnreadable,
    C::ArchiveLinkRejected,
    C::ArchiveLinkEscape,
    C::ArchiveSpecialFileRejected,
];

const CATALOG: &[Code] = &[
    C::InputSizeInvalid,
    C::InputSizeMismatch,
    C::CatalogIo,
    C::SbomInvalid,
    C::RpmInvalid,
    C::RpmPayloadInvalid,
    C::CondaIndexDuplicate,
    C::CondaIndexTooLarge,
    C::CondaIndexEmpty,
    C::CondaPackageInvalid,
    C::CondaCatalogEmpty,
    C::CondaMetadataLimit,
    C::CondaCatalogIo,
];

/// A missing or unusable database is [`Code::NotReady`] here; these are what the matcher itself finds.
const MATCH: &[Code] = &[
    C::SbomTooLarge,
    C::DatabaseTooOld,
    C::DatabaseUnreadable,
    C::MatchIo,
    C::ReportInvalid,
];

const OCI: &[Code] = &[
    C::OciRequestTooLarge,
    C::RequestInvalid,
    C::ApiUnsupported,
    C::RunIdInvalid,
    C::RunAlreadyActive,
    C::ResourceLimitsRequired,
    C::ScratchRequestTooLarge,
    C::CapacityExhausted,
    C::AdmissionInterrupted,
    C::Timeout,
    C::Interrupted,
    C::WorkspaceIo,
    C::NotReady,
    C::SnapshotMismatch,
    C::DatabaseTooOld,
    C::DatabaseUnreadable,
    C::OciScanIo,
    C::SbomInvalid,
    C::ReportInvalid,
    C::OciRequestInvalid,
    C::OciRegistryInvalid,
    C::OciRegistryIo,
    C::OciRegistryAuthFailed,
    C::OciRegistryContentMissing,
    C::OciRegistryScanFailed,
    C::OciRegistryResponseInvalid,
    C::OciStageIo,
    C::OciInputTooLarge,
    C::OciBlobTooLarge,
    C::OciManifestTooLarge,
    C::OciConfigTooLarge,
    C::OciDescriptorLimit,
    C::OciManifestInvalid,
    C::OciConfigInvalid,
    C::OciBlobSizeMismatch,
    C::OciBlobDigestMismatch,
    C::OciLayerInvalid,
    C::OciScanFailed,
    C::OciNoPlatformScanned,
    C::OciSbomInvalid,
    C::OciSbomMergeFailed,
];

const CANCEL: &[Code] = &[C::RequestInvalid, C::ApiUnsupported, C::RunIdInvalid];

/// What `details.reasonCode` of a degraded readiness can say.
pub const READINESS_REASONS: &[Code] = &[
    C::DatabaseProvenanceMissing,
    C::DatabaseUnavailable,
    C::DatabasePointerInvalid,
    C::DatabaseTooOld,
    C::DatabaseUnreadable,
    C::DatabaseCoordinationIo,
    C::ProcessIo,
    C::ProcessIsolationUnavailable,
    C::ProcessFailed,
    C::ProcessKilled,
    C::ProcessOutOfMemory,
    C::OutputTooLarge,
    C::StderrTooLarge,
    C::Timeout,
    C::VersionIo,
    C::VersionInvalid,
    C::DatabaseStatusInvalid,
];

impl Endpoint {
    /// Every endpoint in the order of the contract.
    pub const ALL: [Self; 11] = [
        Self::Capabilities,
        Self::Readiness,
        Self::Catalog,
        Self::Match,
        Self::OciScan,
        Self::Cancel,
        Self::Health,
        Self::HealthLiveness,
        Self::HealthReadiness,
        Self::Info,
        Self::Prometheus,
    ];

    /// `GET` or `POST`.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Catalog | Self::Match | Self::OciScan | Self::Cancel => "POST",
            _ => "GET",
        }
    }

    /// The path, with `{runId}` for the one path parameter.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Capabilities => "/v1/capabilities",
            Self::Readiness => "/v1/readiness",
            Self::Catalog => "/v1/catalog",
            Self::Match => "/v1/match",
            Self::OciScan => "/v1/oci/scan",
            Self::Cancel => "/v1/runs/{runId}/cancel",
            Self::Health => "/actuator/health",
            Self::HealthLiveness => "/actuator/health/liveness",
            Self::HealthReadiness => "/actuator/health/readiness",
            Self::Info => "/actuator/info",
            Self::Prometheus => "/actuator/prometheus",
        }
    }

    /// Whether the path lies below `/v1/` and so needs the service credential.
    pub const fn needs_credential(self) -> bool {
        matches!(
            self,
            Self::Capabilities | Self::Readiness | Self::Catalog | Self::Match | Self::OciScan | Self::Cancel
        )
    }

    /// Every code that the endpoint can answer, without repetition, in the order of [`Code::ALL`].
    pub fn codes(self) -> Vec<Code> {
        let groups: &[&[Code]] = match self {
            Self::Capabilities | Self::Readiness => &[OUTER],
            Self::Catalog => &[OUTER, RUN, UPLOAD, ENGINE, ARCHIVE, CATALOG],
            Self::Match => &[OUTER, RUN, UPLOAD, ENGINE, MATCH],
            Self::OciScan => &[OUTER, OCI, ENGINE, ARCHIVE],
            Self::Cancel => &[OUTER, CANCEL],
            Self::Health | Self::HealthLiveness | Self::HealthReadiness | Self::Info | Self::Prometheus => {
                &[]
            }
        };
        let mut codes: Vec<Code> = groups.concat();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, READINESS_REASONS};
    use crate::Code;

    /// Only the updater gives these; it serves no HTTP.
    const UPDATER: [Code; 2] = [Code::DatabaseLockInterrupted, Code::DatabaseUpdateIo];

    #[test]
    fn every_code_belongs_somewhere() {
        for code in Code::ALL {
            let answered = Endpoint::ALL.iter().any(|e| e.codes().contains(code));
            assert!(
                answered || READINESS_REASONS.contains(code) || UPDATER.contains(code),
                "{code}"
            );
        }
    }

    #[test]
    fn only_the_api_needs_a_credential() {
        for endpoint in Endpoint::ALL {
            assert_eq!(endpoint.needs_credential(), endpoint.path().starts_with("/v1/"));
            assert_eq!(
                endpoint.needs_credential(),
                endpoint.codes().contains(&Code::Unauthorized)
            );
        }
    }
}
