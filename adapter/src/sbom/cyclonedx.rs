//! A CycloneDX document: checked, made the same for the same input, and completed by what the artifact's own manifest
//! says.

use super::json::{self, JsonError, JsonLimits, Object, ObjectWriter, quoted};
use super::project::{self, Projection};
use assay_schemas::Code;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// Property that names the manifest from which an added component was read.
pub const IDENTITY_SOURCE: &str = "assay:identity:source";

/// A document that is no usable SBOM.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SbomError {
    /// Breaks a bound of the contract, or is no JSON.
    #[error("SBOM: {0}")]
    Json(#[from] JsonError),
    /// The top-level value is no object.
    #[error("SBOM: not an object")]
    NotAnObject,
    /// `bomFormat` is absent or another one.
    #[error("SBOM: bomFormat is not CycloneDX")]
    FormatMismatch,
    /// `specVersion` is absent or blank.
    #[error("SBOM: specVersion is missing")]
    SpecVersionMissing,
    /// More dependencies than the contract counts.
    #[error("SBOM: {got} dependencies, {limit} are allowed")]
    TooManyDependencies {
        /// Dependencies seen.
        got: u64,
        /// Dependencies allowed.
        limit: u64,
    },
}

impl SbomError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        Code::SbomInvalid
    }
}

impl From<SbomError> for crate::problem::Problem {
    fn from(error: SbomError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A package that the artifact's own manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedComponent {
    /// Package URL, with version where it is known.
    pub purl: String,
    /// CycloneDX component type, `library` for most.
    pub kind: String,
    /// CycloneDX `group`: Maven group, npm scope, …
    pub group: Option<String>,
    /// Name without group.
    pub name: String,
    /// Version.
    pub version: Option<String>,
    /// Path of the manifest inside the artifact.
    pub location: String,
}

/// What the document was made from; its identity follows from this.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Hexadecimal SHA-256 of the artifact.
    pub input_sha256: &'a str,
    /// Version of the cataloguer.
    pub engine_version: &'a str,
    /// Workspace name of the artifact when the cataloguer was given the file itself: locations then start with it,
    /// and that prefix is not inside the artifact.
    pub container: Option<&'a str>,
}

/// A normalised document and what is in it.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalizedSbom {
    /// The document.
    pub document: Vec<u8>,
    /// Its CycloneDX version.
    pub spec_version: String,
    /// Its contents in wire form.
    pub projection: Projection,
}

/// What has to be known of an SBOM before it is matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SbomFacts {
    /// CycloneDX version.
    pub spec_version: String,
    /// Components at the top level.
    pub component_count: u64,
}

/// Checks a document that came from outside.
pub fn inspect(document: &[u8]) -> Result<SbomFacts, SbomError> {
    json::check(document, &JsonLimits::ENGINE)?;
    let (root, spec_version) = envelope(document)?;
    let count = root.items("components").len();
    Ok(SbomFacts {
        spec_version,
        component_count: u64::try_from(count).unwrap_or(u64::MAX),
    })
}

/// Checks and projects a finished document.
pub fn read(document: &[u8]) -> Result<(String, Projection), SbomError> {
    json::check(document, &JsonLimits::ENGINE)?;
    let (root, spec_version) = envelope(document)?;
    Ok((spec_version, project::project(&root)?))
}

fn envelope(document: &[u8]) -> Result<(Object<'_>, String), SbomError> {
    let root = json::members(json::root(document)?).ok_or(SbomError::NotAnObject)?;
    let root = Object::from(root);
    match root.text("bomFormat") {
        Some(format) if format.eq_ignore_ascii_case("CycloneDX") => {}
        _ => return Err(SbomError::FormatMismatch),
    }
    let spec_version =
        super::text::field(root.text("specVersion"), 32).ok_or(SbomError::SpecVersionMissing)?;
    Ok((root, spec_version))
}

/// Makes the engine's document a function of its input.
///
/// The random serial number becomes one derived from the content, the wall-clock time goes, locations lose the
/// artifact's workspace name, and `added` components whose package the engine did not report come last. Everything
/// else stays as it was and where it was.
pub fn normalize(
    document: &[u8],
    added: &[AddedComponent],
    origin: &Origin<'_>,
) -> Result<NormalizedSbom, SbomError> {
    json::check(document, &JsonLimits::ENGINE)?;
    let (root, _) = envelope(document)?;
    let components = components(&root, added, origin.container);

    let mut pieces: Vec<(&str, Piece<'_>)> = Vec::new();
    let mut has_components = false;
    for (name, value) in root.members() {
        let piece = match name.as_str() {
            "serialNumber" => continue,
            "metadata" => Piece::Owned(json::without(value, &[&["timestamp"]])),
            "components" => {
                has_components = true;
                Piece::Owned(components.clone())
            }
            _ => Piece::Slice(value),
        };
        pieces.push((name, piece));
    }
    if !has_components {
        pieces.push(("components", Piece::Owned(components)));
    }

    let serial = quoted(&serial_number(&pieces, origin));
    let mut writer = ObjectWriter::default();
    for (name, piece) in &pieces {
        writer.member(name, piece.as_str());
        if *name == "specVersion" {
            writer.member("serialNumber", &serial);
        }
    }
    let document = writer.finish().into_bytes();
    let (spec_version, projection) = read(&document)?;
    Ok(NormalizedSbom {
        document,
        spec_version,
        projection,
    })
}

enum Piece<'a> {
    Slice(&'a RawValue),
    Owned(String),
}

impl Piece<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Slice(value) => value.get(),
            Self::Owned(text) => text,
        }
    }
}

/// A UUID whose bits come from a digest of the content, marked as such (version 8, RFC 9562).
fn serial_number(pieces: &[(&str, Piece<'_>)], origin: &Origin<'_>) -> String {
    let mut hash = Sha256::new();
    for part in [origin.input_sha256, origin.engine_version] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    for (name, piece) in pieces {
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(piece.as_str().as_bytes());
        hash.update([0]);
    }
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(hash.finalize()) {
        *to = from;
    }
    format!("urn:uuid:{}", uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn components(root: &Object<'_>, added: &[AddedComponent], container: Option<&str>) -> String {
    let mut out = Vec::new();
    let mut known = BTreeSet::new();
    let prefix = container.map(|name| format!("/{name}"));
    for raw in root.items("components") {
        if !added.is_empty()
            && let Some(purl) = Object::of(raw).text("purl")
        {
            known.insert(package_key(&purl));
        }
        out.push(match &prefix {
            Some(prefix) if raw.get().contains(prefix.as_str()) => inside_the_artifact(raw, prefix),
            _ => raw.get().to_owned(),
        });
    }
    for component in added {
        if known.insert(package_key(&component.purl)) {
            out.push(component.to_json());
        }
    }
    format!("[{}]", out.join(","))
}

/// The component with its `syft:location:…:path` properties relative to the artifact: the precise path that the
/// cataloguer keeps as virtual path, else `/` for the artifact itself.
fn inside_the_artifact(component: &RawValue, prefix: &str) -> String {
    let fields = Object::of(component);
    let properties = fields.items("properties");
    let virtual_path = properties.iter().find_map(|raw| {
        let property = Object::of(raw);
        (property.text("name")? == "syft:metadata:virtualPath").then(|| property.text("value"))?
    });
    // A package that is only a part of its jar has its coordinates at the end of the virtual path.
    let marker = [fields.text("group"), fields.text("name")]
        .map(|part| format!(":{}", part.unwrap_or_default()))
        .concat();
    let rewritten: Vec<String> = properties
        .iter()
        .map(|raw| {
            let property = Object::of(raw);
            let (Some(name), Some(value)) = (property.text("name"), property.text("value")) else {
                return raw.get().to_owned();
            };
            let is_location = name.starts_with("syft:location:") && name.ends_with(":path");
            if !is_location || value != prefix {
                return raw.get().to_owned();
            }
            let path = virtual_path.as_deref().unwrap_or(prefix);
            let path = path.strip_suffix(marker.as_str()).unwrap_or(path);
            let path = match path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(':')) {
                Some(inner) => format!("/{}", inner.trim_start_matches('/')),
                None => "/".to_owned(),
            };
            let mut writer = ObjectWriter::default();
            writer.member("name", &quoted(&name));
            writer.member("value", &quoted(&path));
            writer.finish()
        })
        .collect();
    let mut writer = ObjectWriter::default();
    for (name, value) in fields.members() {
        if name == "properties" {
            writer.member(name, &format!("[{}]", rewritten.join(",")));
        } else {
            writer.member(name, value.get());
        }
    }
    writer.finish()
}

/// What two spellings of the same package have in common: no qualifiers, no percent-encoding, no case, and no
/// difference between `-`, `_` and `.` where the ecosystem makes none.
fn package_key(purl: &str) -> String {
    let bare = purl.split(['?', '#']).next().unwrap_or(purl);
    let key = percent_decode_str(bare).decode_utf8_lossy().to_lowercase();
    match key
        .strip_prefix("pkg:pypi/")
        .and_then(|rest| rest.split_once('@'))
    {
        Some((name, version)) => format!("pkg:pypi/{}@{version}", name.replace(['_', '.'], "-")),
        None => key,
    }
}

impl AddedComponent {
    fn to_json(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.purl.as_bytes());
        hash.update([0]);
        hash.update(self.location.as_bytes());
        let digest = hex::encode(hash.finalize());
        let separator = if self.purl.contains('?') { '&' } else { '?' };
        let reference = format!(
            "{}{separator}package-id={}",
            self.purl,
            digest.get(..16).unwrap_or(&digest)
        );
        let mut writer = ObjectWriter::default();
        writer.member("bom-ref", &quoted(&reference));
        writer.member("type", &quoted(&self.kind));
        if let Some(group) = &self.group {
            writer.member("group", &quoted(group));
        }
        writer.member("name", &quoted(&self.name));
        if let Some(version) = &self.version {
            writer.member("version", &quoted(version));
        }
        writer.member("purl", &quoted(&self.purl));
        let location = quoted(&self.location);
        writer.member(
            "properties",
            &format!(
                r#"[{{"name":"{IDENTITY_SOURCE}","value":{location}}},{{"name":"syft:location:0:path","value":{location}}}]"#
            ),
        );
        writer.finish()
    }
}

#[cfg(test)]
#[path = "cyclonedx_tests.rs"]
mod tests;
