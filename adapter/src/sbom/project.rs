//! The contract's projection of a CycloneDX document.

use super::cyclonedx::{IDENTITY_SOURCE, SbomError};
use super::json::{self, Object};
use super::text::{DEFAULT_CAP, capped, field, push_distinct};
use assay_schemas::catalog::{
    Component, Directness, MAX_COMPONENTS, MAX_NESTED_LIST, MAX_PROPERTIES, PartialCode, PartialReason,
};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Most dependencies that the contract counts.
pub const MAX_DEPENDENCIES: u64 = 100_000;

/// Name under which components from the artifact's own manifest are counted.
pub const IDENTITY_CATALOGER: &str = "assay-identity";

/// Longest property name that the client's parser accepts, code points.
const MAX_PROPERTY_NAME: usize = 1024;

/// The contents of a document in wire form.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Projection {
    /// Components in the document.
    pub component_count: u32,
    /// Sum of the lengths of every `dependsOn`.
    pub dependency_count: u32,
    /// At most [`MAX_COMPONENTS`], each reference once, in document order.
    pub components: Vec<Component>,
    /// Components that each cataloguer found.
    pub catalogers: BTreeMap<String, u64>,
    /// Components that no matcher can use: without a purl or without a version.
    pub unmatchable: u64,
    /// Operating system packages whose purl names no distribution, so that they match nothing.
    pub without_distribution: u64,
    /// Why the projection is not the whole document.
    pub reasons: Vec<PartialReason>,
}

/// Projects a document whose envelope has been checked.
pub(super) fn project(root: &Object<'_>) -> Result<Projection, SbomError> {
    let raw = root.items("components");
    let mut out = Projection {
        component_count: u32::try_from(raw.len()).unwrap_or(u32::MAX),
        dependency_count: dependencies(root)?,
        ..Projection::default()
    };
    let mut seen = BTreeSet::new();
    for value in raw {
        let Some(members) = json::members(value) else {
            continue;
        };
        let component = component(&Object::from(members));
        out.count(&component);
        if seen.insert(component.component_ref.clone()) && out.components.len() < MAX_COMPONENTS {
            out.components.push(component);
        }
    }
    let projected = u32::try_from(out.components.len()).unwrap_or(u32::MAX);
    if projected < out.component_count {
        out.reasons.push(PartialReason {
            code: PartialCode::ComponentProjectionLimit,
            detail: format!("{projected} of {} components projected", out.component_count),
        });
    }
    Ok(out)
}

impl Projection {
    fn count(&mut self, component: &Component) {
        let cataloger = if component.properties.contains_key(IDENTITY_SOURCE) {
            Some(IDENTITY_CATALOGER)
        } else {
            component
                .properties
                .get("syft:package:foundBy")
                .map(String::as_str)
        };
        if let Some(name) = cataloger {
            *self.catalogers.entry(capped(name, 128)).or_default() += 1;
        }
        match &component.package_url {
            Some(purl) if component.version.is_some() && purl.starts_with("pkg:") => {
                let is_os = ["pkg:deb/", "pkg:rpm/", "pkg:apk/"]
                    .iter()
                    .any(|p| purl.starts_with(p));
                let has_distro = purl
                    .split_once('?')
                    .is_some_and(|(_, qualifiers)| qualifiers.split('&').any(|q| q.starts_with("distro=")));
                self.without_distribution += u64::from(is_os && !has_distro);
            }
            _ if is_not_published(component) => {}
            _ => self.unmatchable += 1,
        }
    }
}

/// What no matcher is meant to see: what the artifact runs on, bare files, and the project that a lock file belongs to.
fn is_not_published(component: &Component) -> bool {
    let found_by = component
        .properties
        .get("syft:package:foundBy")
        .map(String::as_str);
    matches!(component.kind.as_deref(), Some("operating-system" | "file"))
        || (component.package_url.is_none() && found_by == Some("rust-cargo-lock-cataloger"))
}

fn dependencies(root: &Object<'_>) -> Result<u32, SbomError> {
    let got: u64 = root
        .items("dependencies")
        .iter()
        .map(|entry| u64::try_from(Object::of(entry).items("dependsOn").len()).unwrap_or(u64::MAX))
        .sum();
    if got > MAX_DEPENDENCIES {
        return Err(SbomError::TooManyDependencies {
            got,
            limit: MAX_DEPENDENCIES,
        });
    }
    Ok(u32::try_from(got).unwrap_or(u32::MAX))
}

/// The name by which the contract knows a component: its own, or one made of what it is.
pub(super) fn reference(raw: &Object<'_>) -> String {
    field(raw.text("bom-ref"), 1024).unwrap_or_else(|| {
        let parts = [
            field(raw.text("purl"), 2048),
            field(raw.text("group"), 512),
            field(raw.text("name"), 512),
            field(raw.text("version"), 512),
        ]
        .map(Option::unwrap_or_default);
        format!(
            "urn:kkrepo:component:{}",
            hex::encode(Sha256::digest(parts.join("\0")))
        )
    })
}

fn component(raw: &Object<'_>) -> Component {
    let properties: Vec<(String, String)> = raw
        .items("properties")
        .into_iter()
        .filter_map(|value| {
            let property = Object::of(value);
            Some((property.text("name")?, property.text("value")?))
        })
        .collect();
    let package_url = field(raw.text("purl"), 2048);
    let namespace = field(raw.text("group"), 512);
    let name = field(raw.text("name"), 512);
    let version = field(raw.text("version"), 512);
    let component_ref = reference(raw);
    let is_required = raw
        .text("scope")
        .is_some_and(|scope| scope.eq_ignore_ascii_case("required"));
    Component {
        component_ref,
        package_url,
        kind: field(raw.text("type"), 64),
        namespace,
        name: name.unwrap_or_else(|| "unknown".to_owned()),
        version,
        directness: if is_required {
            Directness::DirectOrRequired
        } else {
            Directness::Unknown
        },
        locations: locations(raw, &properties),
        licenses: licenses(raw),
        properties: property_map(properties),
    }
}

fn locations(raw: &Object<'_>, properties: &[(String, String)]) -> Vec<String> {
    let mut out = Vec::new();
    for occurrence in raw.object("evidence").items("occurrences") {
        push_distinct(&mut out, Object::of(occurrence).text("location"), MAX_NESTED_LIST);
    }
    for (name, value) in properties {
        if name.to_ascii_lowercase().contains("location") {
            push_distinct(&mut out, Some(value.clone()), MAX_NESTED_LIST);
        }
    }
    out
}

fn licenses(raw: &Object<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for choice in raw.items("licenses") {
        let choice = Object::of(choice);
        let license = choice.object("license");
        let name = field(license.text("id"), DEFAULT_CAP)
            .or_else(|| field(license.text("name"), DEFAULT_CAP))
            .or_else(|| choice.text("expression"));
        push_distinct(&mut out, name, MAX_NESTED_LIST);
    }
    out
}

/// The first value of each name; the names that come first.
fn property_map(properties: Vec<(String, String)>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for (name, value) in properties {
        let name = capped(&name, MAX_PROPERTY_NAME);
        if out.len() >= MAX_PROPERTIES {
            break;
        }
        out.entry(name).or_insert_with(|| capped(&value, DEFAULT_CAP));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Projection, SbomError};
    use crate::sbom::cyclonedx::read;
    use assay_schemas::catalog::{Directness, PartialCode};

    fn project(rest: &str) -> Projection {
        let document = format!(r#"{{"bomFormat":"CycloneDX","specVersion":"1.6",{rest}}}"#);
        read(document.as_bytes()).unwrap().1
    }

    #[test]
    fn every_field_of_a_component_is_projected() {
        let done = project(
            r#""components":[{"bom-ref":"r","type":"library","group":"g","name":"a\u0000b","version":"1","purl":"pkg:maven/g/a@1","scope":"Required",
            "licenses":[{"license":{"id":"MIT"}},{"license":{"name":"Own"}},{"expression":"A OR B"},{"license":{"id":"MIT"}}],
            "evidence":{"occurrences":[{"location":"/x"},{"location":""},{"location":"/x"}]},
            "properties":[{"name":"syft:location:0:path","value":"/y"},{"name":"my:LOCATION","value":"/x"},{"name":"syft:package:foundBy","value":"c"},{"name":"p","value":"1"},{"name":"p","value":"2"},{"name":"n","value":7}]}],
            "dependencies":[{"ref":"r","dependsOn":["a","b"]},{"ref":"s"},{"ref":"t","dependsOn":["c"]}]"#,
        );
        insta::assert_debug_snapshot!(done);
    }

    #[test]
    fn references_fall_back_to_the_identity_and_the_first_of_equals_wins() {
        let done = project(
            r#""components":[{"name":"a"},{"name":"a","type":"file"},7,{"bom-ref":" ","name":"","version":"1"}]"#,
        );
        assert_eq!(done.component_count, 4);
        let refs: Vec<_> = done.components.iter().map(|c| c.component_ref.as_str()).collect();
        // SHA-256 of NUL NUL "a" NUL.
        assert_eq!(
            refs[0],
            "urn:kkrepo:component:982bf3c419344638ee86ca5c4e4da03e99af66d937cf644ff65f9b84fb278c83"
        );
        assert_eq!(refs.len(), 2);
        assert_eq!(done.components[0].kind, None);
        assert_eq!(done.components[1].name, "unknown");
        assert_eq!(done.components[1].directness, Directness::Unknown);
        assert_eq!(done.reasons[0].code, PartialCode::ComponentProjectionLimit);
        // The one of type "file" is no package.
        assert_eq!(done.unmatchable, 2);
    }

    #[test]
    fn the_projection_stops_at_its_cap_and_says_so() {
        let many: Vec<String> = (0..4097)
            .map(|i| format!(r#"{{"bom-ref":"{i}","name":"n"}}"#))
            .collect();
        let done = project(&format!(r#""components":[{}]"#, many.join(",")));
        assert_eq!((done.component_count, done.components.len()), (4097, 4096));
        assert_eq!(done.reasons.len(), 1);
        let done = project(&format!(r#""components":[{}]"#, many[..4096].join(",")));
        assert!(done.reasons.is_empty());
    }

    #[test]
    fn operating_system_packages_without_distribution_are_counted() {
        let done = project(
            r#""components":[{"bom-ref":"1","name":"a","version":"1","purl":"pkg:deb/debian/a@1?arch=amd64"},
            {"bom-ref":"2","name":"a","version":"1","purl":"pkg:deb/debian/a@1?arch=amd64&distro=debian-12"},
            {"bom-ref":"3","name":"a","version":"1","purl":"pkg:npm/a@1"}]"#,
        );
        assert_eq!(done.without_distribution, 1);
    }

    #[test]
    fn the_dependency_count_is_bounded() {
        let list = vec!["\"x\""; 100_001].join(",");
        let document = format!(
            r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","dependencies":[{{"dependsOn":[{list}]}}]}}"#
        );
        assert_eq!(
            read(document.as_bytes()).unwrap_err(),
            SbomError::TooManyDependencies {
                got: 100_001,
                limit: 100_000
            }
        );
    }
}
