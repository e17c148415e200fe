//! The OpenAPI 3.1 description of the service.

use super::{json, parameters};
use crate::{
    CancellationResponse, Capabilities, CatalogResponse, Code, Endpoint, Health, MatchResponse,
    OciScanRequest, OciScanResponse, ProblemBody, Readiness, headers,
};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
Untrusted artifact bytes in, CycloneDX SBOM or vulnerability findings out.

Every path below `/v1/` needs the service credential; that is checked before the path and the method are looked at. \
Every answer that is not a success carries a problem document whose `code` fixes status and `retryable`. \
Readers ignore members that they do not know and accept codes that they do not know.";

/// The document as YAML.
///
/// # Panics
///
/// Never: the document is made of strings, numbers and maps with string keys only.
pub(super) fn yaml() -> String {
    serde_norway::to_string(&document()).expect("plain data always serialises")
}

fn yaml_value(value: &Value) -> serde_norway::Value {
    serde_norway::to_value(value).expect("JSON is a subset of YAML")
}

/// A map that keeps the order in which a reader wants its members.
fn ordered(
    members: impl IntoIterator<Item = (impl Into<String>, serde_norway::Value)>,
) -> serde_norway::Value {
    let members = members
        .into_iter()
        .map(|(key, value)| (serde_norway::Value::String(key.into()), value));
    serde_norway::Value::Mapping(members.collect())
}

fn document() -> serde_norway::Value {
    let mut answers = generator(json::answers());
    let mut requests = generator(json::requests());
    let paths: Vec<_> = Endpoint::ALL
        .iter()
        .map(|endpoint| {
            let operation = operation(*endpoint, &mut answers, &mut requests);
            let method = endpoint.method().to_ascii_lowercase();
            (endpoint.path(), ordered([(method, operation)]))
        })
        .collect();
    answers.subschema_for::<ProblemBody>();
    // A type that both directions use must look the same in both, else one name would stand for two schemas.
    let mut schemas = answers.take_definitions(true);
    schemas.extend(requests.take_definitions(true));
    let components = ordered([
        (
            "securitySchemes",
            yaml_value(&json!({
                "credential": {
                    "type": "apiKey", "in": "header", "name": headers::CREDENTIAL,
                    "description": "Shared secret of the service, compared in constant time.",
                }
            })),
        ),
        (
            "parameters",
            ordered(
                parameters::all()
                    .into_iter()
                    .map(|(name, value)| (name, yaml_value(&value))),
            ),
        ),
        ("schemas", yaml_value(&Value::Object(schemas))),
    ]);
    ordered([
        ("openapi", yaml_value(&json!("3.1.0"))),
        (
            "info",
            yaml_value(&json!({
                "title": "Assay scanner adapter",
                "version": crate::version::API_VERSION,
                "description": INTRODUCTION,
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            })),
        ),
        (
            "jsonSchemaDialect",
            yaml_value(&json!("https://json-schema.org/draft/2020-12/schema")),
        ),
        ("security", yaml_value(&json!([{ "credential": [] }]))),
        ("paths", ordered(paths)),
        ("components", components),
    ])
}

fn generator(settings: SchemaSettings) -> SchemaGenerator {
    settings
        .with(|s| s.definitions_path = "/components/schemas".into())
        .into_generator()
}

fn operation(
    endpoint: Endpoint,
    answers: &mut SchemaGenerator,
    requests: &mut SchemaGenerator,
) -> serde_norway::Value {
    let (id, summary) = heading(endpoint);
    let mut members = vec![
        ("operationId", yaml_value(&json!(id))),
        ("summary", yaml_value(&json!(summary))),
    ];
    if !endpoint.needs_credential() {
        members.push(("security", yaml_value(&json!([]))));
    }
    let names = parameters::of(endpoint);
    if !names.is_empty() {
        let references: Vec<_> = names
            .iter()
            .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
            .collect();
        members.push(("parameters", yaml_value(&Value::Array(references))));
    }
    if let Some(body) = request_body(endpoint, requests) {
        members.push(("requestBody", yaml_value(&body)));
    }
    members.push(("responses", responses(endpoint, answers)));
    ordered(members)
}

const fn heading(endpoint: Endpoint) -> (&'static str, &'static str) {
    match endpoint {
        Endpoint::Capabilities => (
            "getCapabilities",
            "What this adapter can do; the same on all replicas of a deployment.",
        ),
        Endpoint::Readiness => (
            "getReadiness",
            "Engines and vulnerability database; status 200 also when degraded.",
        ),
        Endpoint::Catalog => ("catalog", "Artifact bytes in, CycloneDX SBOM out."),
        Endpoint::Match => ("match", "CycloneDX SBOM in, findings out."),
        Endpoint::OciScan => (
            "scanImage",
            "Image digest in, SBOM and findings of its platforms out.",
        ),
        Endpoint::Cancel => (
            "cancelRun",
            "Stops a run of this process; does not wait for its end.",
        ),
        Endpoint::Health => ("getHealth", "Health of the process and of the scanner."),
        Endpoint::HealthLiveness => ("getLiveness", "Whether the process is alive."),
        Endpoint::HealthReadiness => (
            "getHealthReadiness",
            "Whether scans can be accepted; 503 when degraded.",
        ),
        Endpoint::Info => ("getInfo", "Name and version of the service."),
        Endpoint::Prometheus => ("getMetrics", "Metrics in the Prometheus text format."),
    }
}

fn request_body(endpoint: Endpoint, requests: &mut SchemaGenerator) -> Option<Value> {
    let raw = |media: &str, description: &str| json!({ "required": true, "description": description, "content": { media: {} } });
    match endpoint {
        Endpoint::Catalog => Some(raw(
            "*/*",
            "The artifact. The media type is not interpreted; chunked or with a length.",
        )),
        Endpoint::Match => Some(raw(
            "*/*",
            "The SBOM, usually application/vnd.cyclonedx+json; the media type is not checked.",
        )),
        Endpoint::OciScan => Some(json!({
            "required": true,
            "description": "At most the configured number of bytes, counted before anything is parsed.",
            "content": { "application/json": { "schema": requests.subschema_for::<OciScanRequest>() } },
        })),
        _ => None,
    }
}

fn responses(endpoint: Endpoint, answers: &mut SchemaGenerator) -> serde_norway::Value {
    let json_of = |schema: schemars::Schema| json!({ "application/json": { "schema": schema } });
    let content = match endpoint {
        Endpoint::Capabilities => json_of(answers.subschema_for::<Capabilities>()),
        Endpoint::Readiness => json_of(answers.subschema_for::<Readiness>()),
        Endpoint::Catalog => json_of(answers.subschema_for::<CatalogResponse>()),
        Endpoint::Match => json_of(answers.subschema_for::<MatchResponse>()),
        Endpoint::OciScan => json_of(answers.subschema_for::<OciScanResponse>()),
        Endpoint::Cancel => json_of(answers.subschema_for::<CancellationResponse>()),
        Endpoint::Health | Endpoint::HealthLiveness | Endpoint::HealthReadiness => {
            json_of(answers.subschema_for::<Health>())
        }
        Endpoint::Info => json!({ "application/json": { "schema": { "type": "object" } } }),
        Endpoint::Prometheus => json!({ "text/plain": { "schema": { "type": "string" } } }),
    };
    let mut all = vec![(
        "200".to_owned(),
        yaml_value(&json!({ "description": "Success.", "content": content })),
    )];
    if matches!(endpoint, Endpoint::Health | Endpoint::HealthReadiness) {
        let unhealthy = json!({ "description": "DEGRADED or DOWN.", "content": content });
        all.push(("503".to_owned(), yaml_value(&unhealthy)));
    }
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in endpoint.codes() {
        by_status.entry(code.status()).or_default().push(code);
    }
    all.extend(
        by_status
            .iter()
            .map(|(status, codes)| (status.to_string(), yaml_value(&problem(*status, codes)))),
    );
    ordered(all)
}

/// The answer of one status: the problem document, narrowed to the codes that this endpoint can give.
fn problem(status: u16, codes: &[Code]) -> Value {
    let mut description = String::from(
        "Problem document with one of these codes.\n\n| Code | Retryable | Meaning |\n|---|---|---|\n",
    );
    for code in codes {
        let _ = writeln!(
            description,
            "| `{code}` | {} | {} |",
            code.retryable(),
            code.description().trim()
        );
    }
    let variants: Vec<Value> = [true, false]
        .into_iter()
        .filter_map(|retryable| {
            let names: Vec<&str> = codes
                .iter()
                .filter(|code| code.retryable() == retryable)
                .map(|code| code.as_str())
                .collect();
            (!names.is_empty()).then(|| {
                json!({ "properties": { "code": { "enum": names }, "retryable": { "const": retryable } } })
            })
        })
        .collect();
    let mut answer = json!({
        "description": description,
        "content": { "application/json": { "schema": {
            "allOf": [{ "$ref": "#/components/schemas/ProblemBody" }],
            "oneOf": variants,
        } } },
    });
    let header = match status {
        401 => Some((
            "Cache-Control",
            json!({ "schema": { "type": "string", "const": "no-store" } }),
        )),
        405 => Some((
            "Allow",
            json!({ "description": "Methods of the path.", "schema": { "type": "string" } }),
        )),
        429 => Some((
            "Retry-After",
            json!({
                "required": true, "description": "Seconds.",
                "schema": { "type": "integer", "minimum": 1, "maximum": 3600 },
            }),
        )),
        _ => None,
    };
    if let (Some((name, header)), Some(members)) = (header, answer.as_object_mut()) {
        members.insert("headers".to_owned(), json!({ name: header }));
    }
    answer
}
