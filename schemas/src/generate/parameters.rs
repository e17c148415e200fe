//! Request headers and path parameters with their types, bounds and defaults.

use crate::limits::{DEPTH_CEILING, ENTRIES_CEILING, TIMEOUT_CEILING_SECONDS};
use crate::{ArtifactType, Endpoint, headers};
use serde_json::{Value, json};

/// Name of the shared object, for `components.parameters`, and the object.
type Named = (&'static str, Value);

#[expect(clippy::needless_pass_by_value, reason = "callers make the schema in place")]
fn header(name: &str, required: bool, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "required": required, "description": description, "schema": schema })
}

fn required(name: &str, description: &str, schema: Value) -> Value {
    header(name, true, description, schema)
}

fn optional(name: &str, description: &str, schema: Value) -> Value {
    header(name, false, description, schema)
}

fn run_id() -> Value {
    json!({ "type": "string", "pattern": headers::RUN_ID_PATTERN })
}

fn sha256() -> Value {
    json!({ "type": "string", "pattern": "^[0-9A-Fa-f]{64}$" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn size(default_and_ceiling: &str) -> Value {
    json!({ "type": "integer", "format": "int64", "minimum": 1, "description": default_and_ceiling })
}

fn count(minimum: i32, ceiling: i32, default: i32) -> Value {
    json!({
        "type": "integer", "format": "int32", "minimum": minimum, "default": default,
        "description": format!("A greater value than {ceiling} counts as {ceiling}."),
    })
}

/// Every parameter of the service.
pub(super) fn all() -> Vec<Named> {
    [identity(), integrity(), limits(), uninterpreted()].concat()
}

fn identity() -> Vec<Named> {
    let version = json!({ "type": "string", "const": headers::API_VERSION_VALUE });
    let in_path = json!({
        "name": "runId", "in": "path", "required": true, "description": "Run to cancel.", "schema": run_id(),
    });
    vec![
        (
            "ApiVersion",
            required(headers::API_VERSION, "Version of this contract.", version),
        ),
        (
            "RunId",
            required(
                headers::RUN_ID,
                "Names the run, for cancellation. One run with an id at a time.",
                run_id(),
            ),
        ),
        ("RunIdInPath", in_path),
    ]
}

fn integrity() -> Vec<Named> {
    let bytes = json!({ "type": "integer", "format": "int64", "minimum": 0 });
    let names: Vec<&str> = ArtifactType::ALL.iter().map(|t| t.as_str()).collect();
    let artifact_type = json!({ "type": "string", "enum": names, "default": "UNKNOWN" });
    vec![
        (
            "ExpectedSha256",
            required(
                headers::EXPECTED_SHA256,
                "SHA-256 that the body must have.",
                sha256(),
            ),
        ),
        (
            "ExpectedSize",
            required(
                headers::EXPECTED_SIZE,
                "Bytes that the body must have; at most the effective input limit.",
                bytes,
            ),
        ),
        (
            "SbomSha256",
            required(
                headers::SBOM_SHA256,
                "SHA-256 that the SBOM in the body must have.",
                sha256(),
            ),
        ),
        (
            "ArtifactType",
            optional(
                headers::ARTIFACT_TYPE,
                "Hint from the file name, in any case. Never decides what the bytes are.",
                artifact_type,
            ),
        ),
        (
            "Distribution",
            optional(
                headers::DISTRIBUTION,
                "Extension: distribution that the host knows for a loose operating system package, which matches \
                 nothing without one.",
                json!({ "type": "string", "pattern": headers::DISTRIBUTION_PATTERN, "examples": ["debian:12"] }),
            ),
        ),
    ]
}

fn limits() -> Vec<Named> {
    let configured = "Default and ceiling: the configured input cap.";
    vec![
        (
            "MaxInputBytes",
            optional(headers::MAX_INPUT_BYTES, "Most bytes of input.", size(configured)),
        ),
        (
            "MaxArchiveEntries",
            optional(
                headers::MAX_ARCHIVE_ENTRIES,
                "Most archive entries over all nesting levels.",
                count(1, ENTRIES_CEILING, 100_000),
            ),
        ),
        (
            "MaxUncompressedBytes",
            optional(
                headers::MAX_UNCOMPRESSED_BYTES,
                "Most bytes after decompression over all nesting levels.",
                size("Default: twice the configured input cap; ceiling: four times."),
            ),
        ),
        (
            "MaxSingleFileBytes",
            optional(
                headers::MAX_SINGLE_FILE_BYTES,
                "Most bytes of one file inside the artifact.",
                size(configured),
            ),
        ),
        (
            "MaxNestedDepth",
            optional(
                headers::MAX_NESTED_DEPTH,
                "Deepest level of archives inside archives.",
                count(0, DEPTH_CEILING, 2),
            ),
        ),
        (
            "TimeoutSeconds",
            optional(
                headers::TIMEOUT_SECONDS,
                "End-to-end time of the run, from the moment it has a slot.",
                count(1, TIMEOUT_CEILING_SECONDS, 600),
            ),
        ),
    ]
}

fn uninterpreted() -> Vec<Named> {
    vec![
        (
            "IdempotencyKey",
            optional(
                headers::IDEMPOTENCY_KEY,
                "Not interpreted: the same bytes, engine and database give the same documents anyway.",
                text(),
            ),
        ),
        (
            "Target",
            optional(headers::TARGET, "Target classification; not interpreted.", text()),
        ),
        (
            "ProfileDigest",
            optional(
                headers::PROFILE_DIGEST,
                "Digest of the client's profile; not interpreted.",
                text(),
            ),
        ),
    ]
}

/// Names of the parameters of one endpoint, in the order in which they are checked.
pub(super) fn of(endpoint: Endpoint) -> Vec<&'static str> {
    let mut names = match endpoint {
        Endpoint::Catalog => vec!["ApiVersion", "RunId", "ExpectedSha256", "ExpectedSize"],
        Endpoint::Match => vec!["ApiVersion", "RunId", "SbomSha256"],
        Endpoint::Cancel => return vec!["RunIdInPath", "ApiVersion"],
        Endpoint::OciScan => return vec!["IdempotencyKey"],
        _ => return Vec::new(),
    };
    names.extend(limits().into_iter().map(|(name, _)| name));
    if endpoint == Endpoint::Catalog {
        names.extend(["ArtifactType", "Distribution"]);
    }
    names.extend(uninterpreted().into_iter().map(|(name, _)| name));
    names
}
