//! One document from those of several platforms.
//!
//! What two platforms share appears once and says where it is; everything else follows in the order of the platforms,
//! so the bytes depend on the documents alone.

use super::cyclonedx::SbomError;
use super::json::{self, JsonError, JsonLimits, Object, ObjectWriter, quoted};
use super::project;
use assay_schemas::Code;
use assay_schemas::oci::MAX_PLATFORMS;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};

/// Property that names the platforms in which a component was found, separated by commas.
pub const PLATFORMS: &str = "kkrepo:oci:platforms";

/// The documents could not become one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("there is no document to merge")]
    Nothing,
    /// One of them is no document.
    #[error("the SBOM of {platform} is not usable: {source}")]
    Document {
        /// Whose.
        platform: String,
        /// Why.
        source: JsonError,
    },
    /// What came out is no document.
    #[error("the merged SBOM is not usable: {0}")]
    Merged(SbomError),
}

impl MergeError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Nothing => Code::OciNoPlatformScanned,
            Self::Document { .. } => Code::OciSbomInvalid,
            Self::Merged(_) => Code::OciSbomMergeFailed,
        }
    }
}

impl From<MergeError> for crate::problem::Problem {
    fn from(error: MergeError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// The document of one platform, made a function of its input before.
#[derive(Debug, Clone, Copy)]
pub struct PlatformSbom<'d> {
    /// As it was asked for.
    pub platform: &'d str,
    /// CycloneDX.
    pub document: &'d [u8],
}

/// Merges documents, the first of which gives everything but components and dependencies.
///
/// Components with the same reference are one: the first stays and names all platforms. Dependencies with the same
/// reference are one with the union of what they depend on. The serial number follows from platforms and documents.
///
/// # Errors
/// [`MergeError`].
pub fn merge(documents: &[PlatformSbom<'_>]) -> Result<Vec<u8>, MergeError> {
    let roots = documents
        .iter()
        .map(|sbom| Ok((sbom.platform, root(sbom)?)))
        .collect::<Result<Vec<_>, MergeError>>()?;
    let Some((_, first)) = roots.first() else {
        return Err(MergeError::Nothing);
    };
    let components = components(&roots);
    let dependencies = dependencies(&roots);
    let serial = quoted(&serial_number(documents));

    let mut writer = ObjectWriter::default();
    let mut open = vec![("components", &components), ("dependencies", &dependencies)];
    for (name, value) in first.members() {
        match name.as_str() {
            "serialNumber" => {}
            "specVersion" => {
                writer.member(name, value.get());
                writer.member("serialNumber", &serial);
            }
            "components" | "dependencies" => {
                if let Some(at) = open.iter().position(|(open, _)| open == name) {
                    let (name, merged) = open.remove(at);
                    writer.member(name, merged);
                }
            }
            _ => writer.member(name, value.get()),
        }
    }
    for (name, merged) in open {
        writer.member(name, merged);
    }
    Ok(writer.finish().into_bytes())
}

fn root<'d>(sbom: &PlatformSbom<'d>) -> Result<Object<'d>, MergeError> {
    let invalid = |source| MergeError::Document {
        platform: sbom.platform.to_owned(),
        source,
    };
    json::check(sbom.document, &JsonLimits::ENGINE).map_err(invalid)?;
    let root = json::root(sbom.document).map_err(invalid)?;
    json::members(root).map(Object::from).ok_or_else(|| {
        invalid(JsonError::Malformed {
            reason: "not an object".to_owned(),
        })
    })
}

fn components(roots: &[(&str, Object<'_>)]) -> String {
    let mut found: Vec<(Object<'_>, Vec<&str>)> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for (platform, root) in roots {
        for raw in root.items("components") {
            let Some(members) = json::members(raw) else {
                continue;
            };
            let fields = Object::from(members);
            let index = *at.entry(project::reference(&fields)).or_insert(found.len());
            match found.get_mut(index) {
                Some((_, platforms)) => {
                    if platforms.last() != Some(platform) {
                        platforms.push(platform);
                    }
                }
                None => found.push((fields, vec![platform])),
            }
        }
    }
    let components: Vec<String> = found
        .iter()
        .map(|(fields, platforms)| component(fields, &platforms.join(",")))
        .collect();
    format!("[{}]", components.join(","))
}

/// The component with its platforms as its first property: properties past a cap are cut from the end.
fn component(fields: &Object<'_>, platforms: &str) -> String {
    let mut ours = ObjectWriter::default();
    ours.member("name", &quoted(PLATFORMS));
    ours.member("value", &quoted(platforms));
    let others = fields
        .items("properties")
        .into_iter()
        // Nobody else may say where a component was found.
        .filter(|raw| Object::of(raw).text("name").as_deref() != Some(PLATFORMS))
        .map(|raw| raw.get().to_owned());
    let properties: Vec<String> = std::iter::once(ours.finish()).chain(others).collect();
    let properties = format!("[{}]", properties.join(","));
    let mut writer = ObjectWriter::default();
    let mut is_written = false;
    for (name, value) in fields.members() {
        if name != "properties" {
            writer.member(name, value.get());
        } else if !is_written {
            writer.member(name, &properties);
            is_written = true;
        }
    }
    if !is_written {
        writer.member("properties", &properties);
    }
    writer.finish()
}

fn dependencies(roots: &[(&str, Object<'_>)]) -> String {
    struct Dependency<'d> {
        reference: &'d RawValue,
        on: Vec<&'d str>,
        seen: HashSet<&'d str>,
    }
    let mut found: Vec<Dependency<'_>> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for (_, root) in roots {
        for raw in root.items("dependencies") {
            let fields = Object::of(raw);
            let (Some(reference), Some(name)) = (fields.get("ref"), fields.text("ref")) else {
                continue;
            };
            let index = *at.entry(name).or_insert(found.len());
            if index == found.len() {
                found.push(Dependency {
                    reference,
                    on: Vec::new(),
                    seen: HashSet::new(),
                });
            }
            let Some(dependency) = found.get_mut(index) else {
                continue;
            };
            for on in fields.items("dependsOn") {
                if dependency.seen.insert(on.get()) {
                    dependency.on.push(on.get());
                }
            }
        }
    }
    let entries: Vec<String> = found
        .iter()
        .map(|dependency| {
            let mut writer = ObjectWriter::default();
            writer.member("ref", dependency.reference.get());
            if !dependency.on.is_empty() {
                writer.member("dependsOn", &format!("[{}]", dependency.on.join(",")));
            }
            writer.finish()
        })
        .collect();
    format!("[{}]", entries.join(","))
}

/// Platforms of components, by the reference of the component.
pub type PlatformsByRef = HashMap<String, Vec<String>>;

/// Where the components of a merged document were found; nothing for other documents.
pub fn platforms(document: &[u8]) -> PlatformsByRef {
    let mut found = PlatformsByRef::new();
    let Some(members) = json::root(document).ok().and_then(json::members) else {
        return found;
    };
    for raw in Object::from(members).items("components") {
        let fields = Object::of(raw);
        let named = fields.items("properties").into_iter().map(Object::of);
        let value = named
            .filter(|property| property.text("name").as_deref() == Some(PLATFORMS))
            .find_map(|property| property.text("value"));
        if let Some(value) = value {
            let platforms = value.split(',').take(MAX_PLATFORMS).map(str::to_owned).collect();
            found.insert(project::reference(&fields), platforms);
        }
    }
    found
}

/// The first half of a digest over what was merged, cut like a UUID: the contract's form.
fn serial_number(documents: &[PlatformSbom<'_>]) -> String {
    let mut parts: Vec<String> = documents
        .iter()
        .map(|sbom| format!("{}:{}", sbom.platform, hex::encode(Sha256::digest(sbom.document))))
        .collect();
    parts.sort_unstable();
    let mut hash = Sha256::new();
    for part in parts {
        hash.update([0]);
        hash.update(part.as_bytes());
    }
    let digest = hex::encode(hash.finalize());
    let piece = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!(
        "urn:uuid:{}-{}-{}-{}-{}",
        piece(0, 8),
        piece(8, 12),
        piece(12, 16),
        piece(16, 20),
        piece(20, 32)
    )
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
