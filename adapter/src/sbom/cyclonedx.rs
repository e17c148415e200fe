//! A CycloneDX document: checked, made the same for the same input, and completed by what the artifact's own manifest
//! says.

use super::json::{self, JsonError, JsonLimits, Object, ObjectWriter, quoted};
use super::project::{self, Projection};
use crate::recognition::{Identity, PLACEHOLDER_NAME, Relation};
use assay_schemas::Code;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

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

/// What the document was made from; its identity follows from this.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Hexadecimal SHA-256 of the artifact.
    pub input_sha256: &'a str,
    /// Version of the cataloguer.
    pub engine_version: &'a str,
    /// Paths that the cataloguer saw under another name than inside the artifact: layout path to location. An empty
    /// location is the artifact itself.
    pub renamed: &'a BTreeMap<String, String>,
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
/// The random serial number becomes one derived from the content, the wall-clock time goes, locations name paths
/// inside the artifact, a component that one of the `identities` names more precisely gets that package URL, and
/// identities that the engine did not report come last. Everything else stays as it was and where it was.
pub fn normalize(
    document: &[u8],
    identities: &[Identity],
    origin: &Origin<'_>,
) -> Result<NormalizedSbom, SbomError> {
    json::check(document, &JsonLimits::ENGINE)?;
    let (root, _) = envelope(document)?;
    let components = components(&root, identities, origin.renamed);

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

fn components(root: &Object<'_>, identities: &[Identity], renamed: &BTreeMap<String, String>) -> String {
    let mut by_name: BTreeMap<String, Vec<(usize, &Identity)>> = BTreeMap::new();
    for (index, identity) in identities.iter().enumerate() {
        by_name
            .entry(name_key(&identity.purl))
            .or_default()
            .push((index, identity));
    }
    let named: BTreeMap<(&str, &str), &str> = identities
        .iter()
        .map(|i| ((i.name.as_str(), i.version.as_str()), i.purl.as_str()))
        .collect();
    let mut reported = BTreeSet::new();
    let mut out = Vec::new();
    for raw in root.items("components") {
        let fields = Object::of(raw);
        let own_purl = fields.text("purl");
        // Some cataloguers write packages without a package URL: Conda's, and the root of a lock file. This is how
        // the identity with the same name and version would have it.
        let purl = own_purl
            .clone()
            .or_else(|| same_named(&fields, &named))
            .unwrap_or_default();
        if is_placeholder(&purl) {
            continue;
        }
        let mut better = None;
        for (index, identity) in by_name.get(&name_key(&purl)).into_iter().flatten() {
            match identity.relation(&purl) {
                Relation::Other => continue,
                Relation::Same if own_purl.is_some() => {}
                Relation::Same | Relation::LessPrecise => better = Some(*identity),
            }
            reported.insert(*index);
        }
        out.push(component(raw, &fields, better, renamed));
    }
    let unreported = identities
        .iter()
        .enumerate()
        .filter(|(index, _)| !reported.contains(index));
    out.extend(unreported.map(|(_, identity)| identity_component(identity)));
    format!("[{}]", out.join(","))
}

/// What the cataloguer makes of the name under which a jar without coordinates of its own is laid out. Group and
/// version may come from the jar's manifest; the name alone is ours.
fn is_placeholder(purl: &str) -> bool {
    purl.strip_prefix("pkg:maven/")
        .and_then(|rest| rest.split(['@', '?', '#']).next())
        .and_then(|path| path.rsplit('/').next())
        .is_some_and(|name| name == PLACEHOLDER_NAME)
}

/// The package URL of the identity that has the name and the version of this component.
fn same_named(fields: &Object<'_>, named: &BTreeMap<(&str, &str), &str>) -> Option<String> {
    let (name, version) = (fields.text("name")?, fields.text("version")?);
    named
        .get(&(name.as_str(), version.as_str()))
        .map(|purl| (*purl).to_owned())
}

/// One component of the engine, in the engine's words but for its locations and a more precise package URL.
fn component(
    raw: &RawValue,
    fields: &Object<'_>,
    better: Option<&Identity>,
    renamed: &BTreeMap<String, String>,
) -> String {
    let properties = properties(fields, renamed);
    if better.is_none() && properties.is_none() {
        return raw.get().to_owned();
    }
    let mut writer = ObjectWriter::default();
    for (name, value) in fields.members() {
        match (name.as_str(), better, &properties) {
            ("purl" | "version", Some(_), _) => {}
            ("properties", _, Some(properties)) => writer.member(name, properties),
            _ => writer.member(name, value.get()),
        }
        if let ("name", Some(identity)) = (name.as_str(), better) {
            writer.member("version", &quoted(&identity.version));
            writer.member("purl", &quoted(&identity.purl));
        }
    }
    writer.finish()
}

/// The properties with `syft:location:…:path` and the precise path that the cataloguer keeps as virtual path relative
/// to the artifact; `None` when nothing changes.
fn properties(fields: &Object<'_>, renamed: &BTreeMap<String, String>) -> Option<String> {
    let properties = fields.items("properties");
    let named = |raw: &&RawValue| {
        let property = Object::of(raw);
        Some((property.text("name")?, property.text("value")?))
    };
    let virtual_path = properties
        .iter()
        .filter_map(named)
        .find(|(name, _)| name == "syft:metadata:virtualPath")
        .map(|(_, v)| v);
    // The files themselves, as opposed to what is inside them; their names may hold colons, too.
    let files: Vec<String> = properties
        .iter()
        .filter_map(named)
        .filter(|(name, _)| is_location(name))
        .map(|(_, value)| value)
        .collect();
    // A package that is only a part of its jar has its coordinates at the end of the virtual path.
    let marker = [fields.text("group"), fields.text("name")]
        .map(|part| format!(":{}", part.unwrap_or_default()))
        .concat();
    let mut has_changed = false;
    let rewritten: Vec<String> = properties
        .iter()
        .map(|raw| {
            let Some((name, value)) = named(raw) else {
                return raw.get().to_owned();
            };
            let is_virtual = name == "syft:metadata:virtualPath";
            if !is_location(&name) && !is_virtual {
                return raw.get().to_owned();
            }
            // The virtual path is the location and, behind colons, the way through the archives in it.
            let precise = virtual_path.as_deref().filter(|precise| {
                precise
                    .strip_prefix(&value)
                    .is_some_and(|rest| rest.starts_with(':'))
            });
            let reported = precise.unwrap_or(&value);
            let (reported, is_part) = match reported.strip_suffix(marker.as_str()) {
                Some(path) => (path, is_virtual),
                None => (reported, false),
            };
            let file = files.iter().find(|file| {
                reported
                    .strip_prefix(file.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
            });
            let mut path = location(reported, file.map(String::as_str), renamed);
            if is_part {
                path.push_str(&marker);
            }
            if path == value {
                return raw.get().to_owned();
            }
            has_changed = true;
            let mut writer = ObjectWriter::default();
            writer.member("name", &quoted(&name));
            writer.member("value", &quoted(&path));
            writer.finish()
        })
        .collect();
    has_changed.then(|| format!("[{}]", rewritten.join(",")))
}

/// Whether a property names a file in which a package was found.
fn is_location(property: &str) -> bool {
    property.starts_with("syft:location:") && property.ends_with(":path")
}

/// A path that the cataloguer reports as a location inside the artifact: absolute, archives on the way marked by `!`.
/// `file` is what of it is known to name a file.
fn location(reported: &str, file: Option<&str>, renamed: &BTreeMap<String, String>) -> String {
    let bare = reported.trim_start_matches('/');
    let known = file.map(|file| file.trim_start_matches('/'));
    let (file, inner) = renamed
        .keys()
        .find_map(|layout| {
            let rest = bare.strip_prefix(layout.as_str())?;
            (rest.is_empty() || rest.starts_with(':')).then_some((layout.as_str(), rest))
        })
        .or_else(|| known.and_then(|file| Some((file, bare.strip_prefix(file)?))))
        .or_else(|| {
            bare.split_once(':')
                .map(|(file, _)| (file, bare.get(file.len()..).unwrap_or("")))
        })
        .unwrap_or((bare, ""));
    let inside = renamed.get(file).map_or(file, String::as_str);
    let steps = std::iter::once(inside)
        .chain(inner.split(':').map(|step| step.trim_start_matches('/')))
        .filter(|step| !step.is_empty());
    format!("/{}", steps.collect::<Vec<_>>().join("!/"))
}

/// What two spellings of a package's name have in common, whatever the version: type and last name segment, no
/// percent-encoding, no case, and no difference between `-`, `_` and `.`. Only a shortlist; relations decide.
fn name_key(purl: &str) -> String {
    let bare = purl.split(['?', '#']).next().unwrap_or(purl);
    let kind = bare.split('/').next().unwrap_or("");
    let last = bare.rsplit('/').next().unwrap_or("");
    let name = last.rsplit_once('@').map_or(last, |(name, _)| name);
    let name = percent_decode_str(name).decode_utf8_lossy().to_lowercase();
    format!("{kind}/{}", name.replace(['_', '.'], "-"))
}

/// A component for a package that only the artifact's own manifest names.
fn identity_component(identity: &Identity) -> String {
    let mut hash = Sha256::new();
    hash.update(identity.purl.as_bytes());
    hash.update([0]);
    hash.update(identity.location.as_bytes());
    let digest = hex::encode(hash.finalize());
    let separator = if identity.purl.contains('?') { '&' } else { '?' };
    let reference = format!(
        "{}{separator}package-id={}",
        identity.purl,
        digest.get(..16).unwrap_or(&digest)
    );
    let mut writer = ObjectWriter::default();
    writer.member("bom-ref", &quoted(&reference));
    writer.member("type", &quoted(identity.kind));
    if let Some(group) = &identity.namespace {
        writer.member("group", &quoted(group));
    }
    writer.member("name", &quoted(&identity.name));
    writer.member("version", &quoted(&identity.version));
    writer.member("purl", &quoted(&identity.purl));
    let location = quoted(&format!("/{}", identity.location));
    writer.member(
        "properties",
        &format!(
            r#"[{{"name":"{IDENTITY_SOURCE}","value":{location}}},{{"name":"syft:location:0:path","value":{location}}}]"#
        ),
    );
    writer.finish()
}

#[cfg(test)]
#[path = "cyclonedx_tests.rs"]
mod tests;
