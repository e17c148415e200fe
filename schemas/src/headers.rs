//! Names of the request headers, lower-case as HTTP libraries compare them.

/// The service credential, compared in constant time.
pub const CREDENTIAL: &str = "x-kkrepo-scanner-credential";
/// Exactly `v1`.
pub const API_VERSION: &str = "x-kkrepo-api-version";
/// `[A-Za-z0-9._:-]{1,128}`.
pub const RUN_ID: &str = "x-kkrepo-run-id";
/// 64 hexadecimal digits, any case.
pub const EXPECTED_SHA256: &str = "x-kkrepo-expected-sha256";
/// Bytes, 0 to the effective input limit.
pub const EXPECTED_SIZE: &str = "x-kkrepo-expected-size";
/// A name of [`crate::ArtifactType`].
pub const ARTIFACT_TYPE: &str = "x-kkrepo-artifact-type";
/// Extension of ours: `id:version` as `os-release` names them, for example `debian:12`.
pub const DISTRIBUTION: &str = "x-assay-distribution";
/// The form of [`DISTRIBUTION`].
pub const DISTRIBUTION_PATTERN: &str = "^[a-z0-9._-]{1,64}:[a-z0-9._-]{1,64}$";
/// 64 hexadecimal digits: SHA-256 of the SBOM to match.
pub const SBOM_SHA256: &str = "x-kkrepo-sbom-sha256";
/// Bytes, greater than 0.
pub const MAX_INPUT_BYTES: &str = "x-kkrepo-max-input-bytes";
/// Count, greater than 0.
pub const MAX_ARCHIVE_ENTRIES: &str = "x-kkrepo-max-archive-entries";
/// Bytes, greater than 0.
pub const MAX_UNCOMPRESSED_BYTES: &str = "x-kkrepo-max-uncompressed-bytes";
/// Bytes, greater than 0.
pub const MAX_SINGLE_FILE_BYTES: &str = "x-kkrepo-max-single-file-bytes";
/// Levels, 0 or more.
pub const MAX_NESTED_DEPTH: &str = "x-kkrepo-max-nested-depth";
/// Seconds, greater than 0.
pub const TIMEOUT_SECONDS: &str = "x-kkrepo-timeout-seconds";
/// Opaque; recorded, the answer is content-idempotent with or without it.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Target classification; accepted and ignored.
pub const TARGET: &str = "x-kkrepo-target";
/// Profile configuration digest; accepted and ignored.
pub const PROFILE_DIGEST: &str = "x-kkrepo-profile-digest";

/// Form of a run id, the whole of it: as a regular expression of JSON Schema.
pub const RUN_ID_PATTERN: &str = "^[A-Za-z0-9._:-]{1,128}$";

/// The only API version.
pub const API_VERSION_VALUE: &str = "v1";
