//! One JSON Schema (2020-12) for each top-level body.

use crate::{
    CancellationResponse, Capabilities, CatalogResponse, Health, MatchResponse, OciScanRequest,
    OciScanResponse, ProblemBody, Readiness,
};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};

/// Makes the schema of one type.
type Make = fn(&mut SchemaGenerator) -> Schema;

/// Name of the schema of each answer, and what makes it.
const ANSWERS: &[(&str, Make)] = &[
    ("capabilities", schema_of::<Capabilities>),
    ("readiness", schema_of::<Readiness>),
    ("catalog-response", schema_of::<CatalogResponse>),
    ("match-response", schema_of::<MatchResponse>),
    ("oci-scan-response", schema_of::<OciScanResponse>),
    ("cancellation-response", schema_of::<CancellationResponse>),
    ("problem", schema_of::<ProblemBody>),
    ("health", schema_of::<Health>),
];

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.root_schema_for::<T>()
}

/// What an answer's schema promises is what the server writes: nullable members are present, as null.
pub(super) fn answers() -> SchemaSettings {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            plain_description(schema);
            // The server always writes the member, so a default would say nothing.
            schema.remove("default");
        }))
}

/// What a request's schema demands is what the server reads: nullable members may be left out.
pub(super) fn requests() -> SchemaSettings {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .with_transform(RecursiveTransform(plain_description))
}

/// Descriptions come from the documentation of the types; links between its items lead nowhere in a schema.
fn plain_description(schema: &mut Schema) {
    let Some(text) = schema.get("description").and_then(|d| d.as_str()) else {
        return;
    };
    let text = text
        .replace("[`", "`")
        .replace("`]", "`")
        .replace("`crate::", "`");
    schema.insert("description".to_owned(), text.into());
}

/// Name and schema of every body.
pub(super) fn documents() -> Vec<(&'static str, serde_json::Value)> {
    let mut all: Vec<_> = ANSWERS
        .iter()
        .map(|(name, make)| (*name, make(&mut answers().into_generator()).to_value()))
        .collect();
    let request = requests()
        .into_generator()
        .into_root_schema_for::<OciScanRequest>();
    all.push(("oci-scan-request", request.to_value()));
    all
}
