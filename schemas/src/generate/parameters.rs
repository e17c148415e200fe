//! Request headers and path parameters with their types, bounds and defaults.

use crate::limits::{DEPTH_CEILING, ENTRIES_CEILING, TIMEOUT_CEILING_SECONDS};
use crate::{ArtifactType, Endpoint, headers};
use serde_json::{Value, json};

const SHA256_PATTERN: &str = "^[0-9A-Fa-f]{64}$";

/// Where a parameter of this description stands.
enum Place {
    Required,
    Optional,
    Path,
}

fn parameter(name: &str, place: &Place, description: &str, schema: &Value) -> Value {
    json!({
        "name": name,
        "in": if matches!(place, Place::Path) { "path" } else { "header" },
        "required": !matches!(place, Place::Optional),
        "description": description,
        "schema": schema,
    })
}

fn size(description_of_default: &str) -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 1, "description": description_of_default })
}

fn count(minimum: i32, maximum: i32, default: i32) -> Value {
    json!({
        "type": "integer", "format": "int32", "minimum": minimum, "default": default,
        "description": format!("A greater value than {maximum} counts as {maximum}."),
    })
}

/// Name of the shared parameter and its object, for `components.parameters`.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    use Place::{Optional, Path, Required};
    let types: Vec<&str> = ArtifactType::ALL.iter().map(|t| t.as_str()).collect();
    let of = parameter;
    let sha256 = json!({ "type": "string", "pattern": SHA256_PATTERN });
    let run_id = json!({ "type": "string", "pattern": headers::RUN_ID_PATTERN });
    vec![
        (
            "ApiVersion",
            of(
                headers::API_VERSION,
                &Required,
                "Version of this contract.",
                &json!({ "type": "string", "const": headers::API_VERSION_VALUE }),
            ),
        ),
        (
            "RunId",
            of(
                headers::RUN_ID,
                &Required,
                "Names the run, for cancellation. One run with an id at a time.",
                &run_id,
            ),
        ),
        ("RunIdInPath", of("runId", &Path, "Run to cancel.", &run_id)),
        (
            "ExpectedSha256",
            of(
                headers::EXPECTED_SHA256,
                &Required,
                "SHA-256 that the body must have.",
                &sha256,
            ),
        ),
        (
            "ExpectedSize",
            of(
                headers::EXPECTED_SIZE,
                &Required,
                "Bytes that the body must have; at most the effective input limit.",
                &json!({ "type": "integer", "format": "int64", "minimum": 0 }),
            ),
        ),
        (
            "SbomSha256",
            of(
                headers::SBOM_SHA256,
                &Required,
                "SHA-256 that the SBOM in the body must have.",
                &sha256,
            ),
        ),
        (
            "ArtifactType",
            of(
                headers::ARTIFACT_TYPE,
                &Optional,
                "Hint from the file name; any case, surrounding blanks are ignored. Never decides what the bytes are.",
                &json!({ "type": "string", "enum": types, "default": "UNKNOWN" }),
            ),
        ),
        (
            "MaxInputBytes",
            of(
                headers::MAX_INPUT_BYTES,
                &Optional,
                "Most bytes of input.",
                &size("Default and ceiling: the configured input cap."),
            ),
        ),
        (
            "MaxArchiveEntries",
            of(
                headers::MAX_ARCHIVE_ENTRIES,
                &Optional,
                "Most archive entries over all nesting levels.",
                &count(1, ENTRIES_CEILING, 100_000),
            ),
        ),
        (
            "MaxUncompressedBytes",
            of(
                headers::MAX_UNCOMPRESSED_BYTES,
                &Optional,
                "Most bytes after decompression over all nesting levels.",
                &size("Default: twice the configured input cap; ceiling: four times."),
            ),
        ),
        (
            "MaxSingleFileBytes",
            of(
                headers::MAX_SINGLE_FILE_BYTES,
                &Optional,
                "Most bytes of one file inside the artifact.",
                &size("Default and ceiling: the configured input cap."),
            ),
        ),
        (
            "MaxNestedDepth",
            of(
                headers::MAX_NESTED_DEPTH,
                &Optional,
                "Deepest level of archives inside archives.",
                &count(0, DEPTH_CEILING, 2),
            ),
        ),
        (
            "TimeoutSeconds",
            of(
                headers::TIMEOUT_SECONDS,
                &Optional,
                "End-to-end time of the run, from the moment it has a slot.",
                &count(1, TIMEOUT_CEILING_SECONDS, 600),
            ),
        ),
        (
            "IdempotencyKey",
            of(
                headers::IDEMPOTENCY_KEY,
                &Optional,
                "Not interpreted: the same bytes, engine and database give the same documents anyway.",
                &json!({ "type": "string" }),
            ),
        ),
        (
            "Target",
            of(
                headers::TARGET,
                &Optional,
                "Target classification; not interpreted.",
                &json!({ "type": "string" }),
            ),
        ),
        (
            "ProfileDigest",
            of(
                headers::PROFILE_DIGEST,
                &Optional,
                "Digest of the client's profile; not interpreted.",
                &json!({ "type": "string" }),
            ),
        ),
    ]
}

const LIMITS: [&str; 6] = [
    "MaxInputBytes",
    "MaxArchiveEntries",
    "MaxUncompressedBytes",
    "MaxSingleFileBytes",
    "MaxNestedDepth",
    "TimeoutSeconds",
];

/// Names of the parameters of one endpoint, in the order in which they are checked.
pub(super) fn of(endpoint: Endpoint) -> Vec<&'static str> {
    let own: &[&str] = match endpoint {
        Endpoint::Catalog => &["ApiVersion", "RunId", "ExpectedSha256", "ExpectedSize"],
        Endpoint::Match => &["ApiVersion", "RunId", "SbomSha256"],
        Endpoint::Cancel => return vec!["RunIdInPath", "ApiVersion"],
        Endpoint::OciScan => return vec!["IdempotencyKey"],
        _ => return Vec::new(),
    };
    let mut names = own.to_vec();
    names.extend(LIMITS);
    if endpoint == Endpoint::Catalog {
        names.push("ArtifactType");
    }
    names.extend(["IdempotencyKey", "Target", "ProfileDigest"]);
    names
}
