//! The closed set of stable error codes, each with its HTTP status and retryable flag.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! codes {
    ($( $(#[doc = $doc:literal])+ $variant:ident = $wire:literal, $status:literal, $retryable:literal; )+) => {
        /// A stable wire code. Clients decide by the status and the retryable flag and show the code as a label.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $( $(#[doc = $doc])+ $variant, )+ }

        impl Code {
            /// Every code, in the order of the contract's catalogue.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];

            /// The wire text, `[A-Z0-9_]{1,128}`.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $wire, )+ }
            }

            /// The HTTP status that an answer with this code carries.
            pub const fn status(self) -> u16 {
                match self { $( Self::$variant => $status, )+ }
            }

            /// Whether the same request may succeed later or on another replica.
            pub const fn retryable(self) -> bool {
                match self { $( Self::$variant => $retryable, )+ }
            }

            /// The meaning, as the generated contract documents it.
            pub const fn description(self) -> &'static str {
                match self { $( Self::$variant => concat!($($doc),+), )+ }
            }
        }
    };
}

codes! {
    /// The service credential is missing or wrong.
    Unauthorized = "SCANNER_UNAUTHORIZED", 401, false;
    /// The OCI scan request body is larger than the configured cap.
    OciRequestTooLarge = "SCANNER_OCI_REQUEST_TOO_LARGE", 413, false;
    /// An argument is missing, malformed or out of range.
    RequestInvalid = "SCANNER_REQUEST_INVALID", 400, false;
    /// No such path.
    NotFound = "SCANNER_NOT_FOUND", 404, false;
    /// The path exists, but not with this method.
    MethodNotAllowed = "SCANNER_METHOD_NOT_ALLOWED", 405, false;
    /// A defect of the adapter itself.
    InternalError = "SCANNER_INTERNAL_ERROR", 500, true;
    /// The API version header is not a supported version.
    ApiUnsupported = "SCANNER_API_UNSUPPORTED", 400, false;
    /// A limit header is not a number of its type.
    HeaderInvalid = "SCANNER_HEADER_INVALID", 400, false;
    /// The run id does not have the form `[A-Za-z0-9._:-]{1,128}`.
    RunIdInvalid = "SCANNER_RUN_ID_INVALID", 400, false;
    /// A run with this id is active on this process.
    RunAlreadyActive = "SCANNER_RUN_ALREADY_ACTIVE", 409, true;
    /// The OCI scan request has no limits.
    ResourceLimitsRequired = "RESOURCE_LIMITS_REQUIRED", 400, false;
    /// The scratch estimate of the request exceeds the whole scratch budget.
    ScratchRequestTooLarge = "SCANNER_SCRATCH_REQUEST_TOO_LARGE", 413, false;
    /// No scan slot or scratch became free in time.
    CapacityExhausted = "SCANNER_CAPACITY_EXHAUSTED", 429, true;
    /// Cancelled while waiting for admission.
    AdmissionInterrupted = "SCANNER_ADMISSION_INTERRUPTED", 503, true;
    /// The end-to-end deadline of the request passed.
    Timeout = "SCANNER_TIMEOUT", 504, true;
    /// Cancelled while running.
    Interrupted = "SCANNER_INTERRUPTED", 503, true;
    /// The private work directory could not be made.
    WorkspaceIo = "WORKSPACE_IO", 503, true;
    /// A hash header is not 64 hexadecimal digits.
    ExpectedSha256Invalid = "EXPECTED_SHA256_INVALID", 400, false;
    /// The declared size is negative or over the limit.
    InputSizeInvalid = "INPUT_SIZE_INVALID", 413, false;
    /// More bytes arrived than the limit allows.
    InputTooLarge = "INPUT_TOO_LARGE", 413, false;
    /// The input could not be received or stored.
    InputIo = "INPUT_IO", 503, true;
    /// The received bytes do not have the expected SHA-256.
    InputSha256Mismatch = "INPUT_SHA256_MISMATCH", 422, false;
    /// The received bytes do not have the expected size.
    InputSizeMismatch = "INPUT_SIZE_MISMATCH", 422, false;
    /// The SBOM to match is larger than the output cap.
    SbomTooLarge = "SBOM_TOO_LARGE", 413, false;
    /// The scanner is not ready.
    NotReady = "SCANNER_NOT_READY", 503, true;
    /// The snapshot that the request expects is not the one in use.
    SnapshotMismatch = "SCANNER_SNAPSHOT_MISMATCH", 503, true;
    /// The vulnerability database has no revision or build time.
    DatabaseProvenanceMissing = "SCANNER_DATABASE_PROVENANCE_MISSING", 503, true;
    /// No vulnerability database generation is published.
    DatabaseUnavailable = "SCANNER_DATABASE_UNAVAILABLE", 503, true;
    /// The vulnerability database pointer cannot be followed.
    DatabasePointerInvalid = "SCANNER_DATABASE_POINTER_INVALID", 503, true;
    /// The published vulnerability database is older than the allowed age.
    DatabaseTooOld = "SCANNER_DATABASE_TOO_OLD", 503, true;
    /// The engine could not read the vulnerability database.
    DatabaseUnreadable = "SCANNER_DATABASE_UNREADABLE", 503, true;
    /// The database directory cannot be coordinated.
    DatabaseCoordinationIo = "SCANNER_DATABASE_COORDINATION_IO", 503, true;
    /// Interrupted while waiting for the database lock.
    DatabaseLockInterrupted = "SCANNER_DATABASE_LOCK_INTERRUPTED", 503, true;
    /// The vulnerability database update failed.
    DatabaseUpdateIo = "SCANNER_DATABASE_UPDATE_IO", 503, true;
    /// An engine could not be started, watched or ended.
    ProcessIo = "SCANNER_PROCESS_IO", 503, true;
    /// Process groups are not available on this platform.
    ProcessIsolationUnavailable = "SCANNER_PROCESS_ISOLATION_UNAVAILABLE", 503, false;
    /// An engine refused its input.
    ProcessFailed = "SCANNER_PROCESS_FAILED", 422, false;
    /// An engine was ended by a signal.
    ProcessKilled = "SCANNER_PROCESS_KILLED", 503, true;
    /// An engine ran out of memory: the host's, or what it may have.
    ProcessOutOfMemory = "SCANNER_PROCESS_OUT_OF_MEMORY", 503, true;
    /// An engine ran out of disk space.
    ScratchExhausted = "SCANNER_SCRATCH_EXHAUSTED", 503, true;
    /// An engine wrote more output than the cap.
    OutputTooLarge = "SCANNER_OUTPUT_TOO_LARGE", 413, false;
    /// An engine wrote more diagnostics than the cap.
    StderrTooLarge = "SCANNER_STDERR_TOO_LARGE", 413, false;
    /// The engine's version could not be read.
    VersionIo = "SCANNER_VERSION_IO", 503, true;
    /// The engine's version is not readable JSON.
    VersionInvalid = "SCANNER_VERSION_INVALID", 422, false;
    /// The engine's database status is not readable JSON.
    DatabaseStatusInvalid = "GRYPE_DATABASE_STATUS_INVALID", 422, false;
    /// Reading the cataloguer's output failed.
    CatalogIo = "CATALOG_IO", 503, true;
    /// Reading the matcher's output failed.
    MatchIo = "MATCH_IO", 503, true;
    /// Reading or writing a document of an OCI scan failed.
    OciScanIo = "OCI_SCAN_IO", 503, true;
    /// The cataloguer's document is not a usable CycloneDX SBOM.
    SbomInvalid = "SYFT_SBOM_INVALID", 422, false;
    /// The matcher's document is not a usable report.
    ReportInvalid = "GRYPE_REPORT_INVALID", 422, false;
    /// The archive is malformed or of an unsupported form.
    ArchiveInvalid = "ARCHIVE_INVALID", 422, false;
    /// An entry has no usable name.
    ArchivePathInvalid = "ARCHIVE_PATH_INVALID", 422, false;
    /// An entry name leaves the archive's root.
    ArchivePathEscape = "ARCHIVE_PATH_ESCAPE", 422, false;
    /// More entries than the limit.
    ArchiveEntryLimit = "ARCHIVE_ENTRY_LIMIT", 422, false;
    /// One file is larger than the limit.
    ArchiveEntryTooLarge = "ARCHIVE_ENTRY_TOO_LARGE", 422, false;
    /// The archive expands past the limit.
    ArchiveExpandedLimit = "ARCHIVE_EXPANDED_LIMIT", 422, false;
    /// The archive expands more steeply than allowed.
    ArchiveExpansionRatio = "ARCHIVE_EXPANSION_RATIO", 422, false;
    /// Archives are nested more deeply than the limit.
    ArchiveNestingLimit = "ARCHIVE_NESTING_LIMIT", 422, false;
    /// An entry is encrypted or uses an unsupported method.
    ArchiveEntryUnreadable = "ARCHIVE_ENTRY_UNREADABLE", 422, false;
    /// A link that is not allowed here.
    ArchiveLinkRejected = "ARCHIVE_LINK_REJECTED", 422, false;
    /// A link that leaves the archive's root.
    ArchiveLinkEscape = "ARCHIVE_LINK_ESCAPE", 422, false;
    /// A device, FIFO, socket or unknown kind of entry.
    ArchiveSpecialFileRejected = "ARCHIVE_SPECIAL_FILE_REJECTED", 422, false;
    /// The RPM envelope is malformed.
    RpmInvalid = "RPM_INVALID", 422, false;
    /// The RPM payload is missing or not CPIO.
    RpmPayloadInvalid = "RPM_PAYLOAD_INVALID", 422, false;
    /// The Conda package has more than one index.
    CondaIndexDuplicate = "CONDA_INDEX_DUPLICATE", 422, false;
    /// The Conda index is over its bound.
    CondaIndexTooLarge = "CONDA_INDEX_TOO_LARGE", 422, false;
    /// The Conda index is empty.
    CondaIndexEmpty = "CONDA_INDEX_EMPTY", 422, false;
    /// The Conda package does not have the required form.
    CondaPackageInvalid = "CONDA_PACKAGE_INVALID", 422, false;
    /// The cataloguer did not recognise the Conda package.
    CondaCatalogEmpty = "CONDA_CATALOG_EMPTY", 422, false;
    /// Conda metadata is over its bound.
    CondaMetadataLimit = "CONDA_METADATA_LIMIT", 413, false;
    /// Conda metadata could not be stored.
    CondaCatalogIo = "CONDA_CATALOG_IO", 503, true;
    /// A field of the OCI scan request is invalid.
    OciRequestInvalid = "OCI_REQUEST_INVALID", 400, false;
    /// The registry URL is not usable.
    OciRegistryInvalid = "OCI_REGISTRY_INVALID", 400, false;
    /// The registry could not be reached.
    OciRegistryIo = "OCI_REGISTRY_IO", 503, true;
    /// The registry refused the token.
    OciRegistryAuthFailed = "OCI_REGISTRY_AUTH_FAILED", 503, true;
    /// The registry does not have the content.
    OciRegistryContentMissing = "OCI_REGISTRY_CONTENT_MISSING", 503, true;
    /// The registry, or the scan of its layout, failed.
    OciRegistryScanFailed = "OCI_REGISTRY_SCAN_FAILED", 503, true;
    /// The registry's answer is malformed.
    OciRegistryResponseInvalid = "OCI_REGISTRY_RESPONSE_INVALID", 502, true;
    /// Staging failed on the local disk.
    OciStageIo = "OCI_STAGE_IO", 503, true;
    /// The image is over the input budget.
    OciInputTooLarge = "OCI_INPUT_TOO_LARGE", 413, false;
    /// A blob is over the single file limit.
    OciBlobTooLarge = "OCI_BLOB_TOO_LARGE", 413, false;
    /// A manifest is over its bound.
    OciManifestTooLarge = "OCI_MANIFEST_TOO_LARGE", 413, false;
    /// A config is over its bound.
    OciConfigTooLarge = "OCI_CONFIG_TOO_LARGE", 413, false;
    /// The image has too many descriptors.
    OciDescriptorLimit = "OCI_DESCRIPTOR_LIMIT", 413, false;
    /// A manifest is malformed.
    OciManifestInvalid = "OCI_MANIFEST_INVALID", 422, false;
    /// A config is malformed.
    OciConfigInvalid = "OCI_CONFIG_INVALID", 422, false;
    /// A blob does not have the size of its descriptor.
    OciBlobSizeMismatch = "OCI_BLOB_SIZE_MISMATCH", 422, false;
    /// A blob does not have the digest of its descriptor.
    OciBlobDigestMismatch = "OCI_BLOB_DIGEST_MISMATCH", 422, false;
    /// A layer is malformed.
    OciLayerInvalid = "OCI_LAYER_INVALID", 422, false;
    /// No requested platform is available.
    OciScanFailed = "OCI_SCAN_FAILED", 422, false;
    /// No platform could be scanned.
    OciNoPlatformScanned = "OCI_NO_PLATFORM_SCANNED", 422, false;
    /// A platform's SBOM is unusable.
    OciSbomInvalid = "OCI_SBOM_INVALID", 422, false;
    /// The platforms' SBOMs could not be merged.
    OciSbomMergeFailed = "OCI_SBOM_MERGE_FAILED", 422, false;
}

impl Code {
    /// The code with this wire text, if it is one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("unknown error code"))
    }
}

#[cfg(test)]
mod tests {
    use super::Code;
    use std::collections::BTreeSet;

    #[test]
    fn wire_texts_are_unique_and_of_the_client_form() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        for text in texts {
            assert!((1..=128).contains(&text.len()));
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            );
        }
    }

    /// The client retries by status alone for these, whatever the body says.
    #[test]
    fn a_retryable_flag_never_contradicts_a_status_that_the_client_always_retries() {
        for code in Code::ALL {
            if matches!(code.status(), 429 | 502 | 503 | 504) && *code != Code::ProcessIsolationUnavailable {
                assert!(code.retryable(), "{code}");
            }
        }
    }

    #[test]
    fn parse_is_the_inverse_of_as_str() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(*code));
        }
        assert_eq!(Code::parse("SCANNER_HTTP_400"), None);
    }
}
