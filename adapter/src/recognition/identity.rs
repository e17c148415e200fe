//! A package's coordinates and the package URL that they make.

use super::manifest::ManifestError;
use packageurl::PackageUrl;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::str::FromStr;

/// Longest package URL that is reported, bytes; the wire's cap is 2,048 code points.
pub const MAX_PURL_BYTES: usize = 2048;
/// What stands escaped in the version of a package URL.
const VERSION_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');
/// Longest namespace, name or version that is believed, bytes; the wire's caps are 512 code points.
pub const MAX_FIELD_BYTES: usize = 512;

/// Property of a component whose package URL says less than its manifest.
pub const IDENTITY_PRECISION: &str = "assay:identity:precision";
/// Start of the properties of a chart that name the images of its default values; a number follows.
pub const CHART_IMAGE: &str = "assay:helm:image:";

/// The package ecosystems whose manifests are read. The text is the purl type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are the purl types")]
pub enum Ecosystem {
    Ansible,
    Apk,
    Cargo,
    Cocoapods,
    Composer,
    Conan,
    Conda,
    Cran,
    Deb,
    Gem,
    Golang,
    Helm,
    Hex,
    Maven,
    Npm,
    Nuget,
    Pub,
    Pypi,
    Rpm,
    Terraform,
}

impl Ecosystem {
    /// The purl type; `generic` where none is registered.
    pub const fn purl_type(self) -> &'static str {
        match self {
            Self::Ansible | Self::Terraform => "generic",
            Self::Apk => "apk",
            Self::Cargo => "cargo",
            Self::Cocoapods => "cocoapods",
            Self::Composer => "composer",
            Self::Conan => "conan",
            Self::Conda => "conda",
            Self::Cran => "cran",
            Self::Deb => "deb",
            Self::Gem => "gem",
            Self::Golang => "golang",
            Self::Helm => "helm",
            Self::Hex => "hex",
            Self::Maven => "maven",
            Self::Npm => "npm",
            Self::Nuget => "nuget",
            Self::Pub => "pub",
            Self::Pypi => "pypi",
            Self::Rpm => "rpm",
        }
    }

    /// Properties of every component of this ecosystem: without a package URL type of its own a name is the name of
    /// anything.
    fn remarks(self) -> Vec<(String, String)> {
        match self.purl_type() {
            "generic" => vec![(IDENTITY_PRECISION.to_owned(), "low".to_owned())],
            _ => Vec::new(),
        }
    }

    /// The `CycloneDX` component type.
    pub const fn component_type(self) -> &'static str {
        match self {
            Self::Helm | Self::Terraform => "application",
            _ => "library",
        }
    }
}

/// Name and version of a package, as its manifest states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinates {
    /// Whose rules apply.
    pub ecosystem: Ecosystem,
    /// Maven group, npm scope, Go path prefix, Composer vendor, distribution id.
    pub namespace: Option<String>,
    /// Name, never empty.
    pub name: String,
    /// Version, never empty.
    pub version: String,
    /// purl qualifiers; empty values are left out.
    pub qualifiers: Vec<(&'static str, String)>,
}

impl Coordinates {
    /// Coordinates without a namespace and qualifiers; trims, and refuses empty, long and unprintable fields.
    pub fn new(
        ecosystem: Ecosystem,
        name: Option<&str>,
        version: Option<&str>,
    ) -> Result<Self, ManifestError> {
        Ok(Self {
            ecosystem,
            namespace: None,
            name: field("name", name)?,
            version: field("version", version)?,
            qualifiers: Vec::new(),
        })
    }

    /// The same in a namespace; an empty one is none.
    pub fn in_namespace(mut self, namespace: &str) -> Result<Self, ManifestError> {
        self.namespace = match namespace.trim() {
            "" => None,
            text => Some(field("namespace", Some(text))?),
        };
        Ok(self)
    }

    /// The same with a qualifier; an empty value adds nothing.
    pub fn qualified(mut self, key: &'static str, value: &str) -> Result<Self, ManifestError> {
        if !value.trim().is_empty() {
            self.qualifiers.push((key, field(key, Some(value))?));
        }
        Ok(self)
    }

    /// The canonical package URL, by the rules of the type.
    pub fn purl(&self) -> Result<String, ManifestError> {
        let invalid = |_| ManifestError::FieldInvalid { field: "purl" };
        let mut purl = PackageUrl::new(self.ecosystem.purl_type(), self.name.as_str()).map_err(invalid)?;
        if let Some(namespace) = &self.namespace {
            purl.with_namespace(namespace.as_str()).map_err(invalid)?;
        }
        for (key, value) in &self.qualifiers {
            purl.add_qualifier(*key, value.as_str()).map_err(invalid)?;
        }
        purl.validate().map_err(invalid)?;
        // Written by ourselves: the crate leaves a slash in a version as it is, and then reads it as one of the path.
        let version = utf8_percent_encode(&self.version, VERSION_ESCAPES);
        let text = match purl.to_string().split_once('?') {
            Some((path, qualifiers)) => format!("{path}@{version}?{qualifiers}"),
            None => format!("{purl}@{version}"),
        };
        if text.len() > MAX_PURL_BYTES {
            return Err(ManifestError::FieldTooLong {
                field: "purl",
                bytes: text.len(),
                limit: MAX_PURL_BYTES,
            });
        }
        Ok(text)
    }

    /// The identity that these coordinates give to what `location` describes.
    pub fn identify(self, location: String) -> Result<Identity, ManifestError> {
        Ok(Identity {
            purl: self.purl()?,
            properties: self.ecosystem.remarks(),
            kind: self.ecosystem.component_type(),
            namespace: self.namespace,
            name: self.name,
            version: self.version,
            location,
            ecosystem: self.ecosystem,
        })
    }
}

fn field(name: &'static str, value: Option<&str>) -> Result<String, ManifestError> {
    let value = value.map(str::trim).filter(|v| !v.is_empty());
    let value = value.ok_or(ManifestError::MissingField { field: name })?;
    if value.len() > MAX_FIELD_BYTES {
        return Err(ManifestError::FieldTooLong {
            field: name,
            bytes: value.len(),
            limit: MAX_FIELD_BYTES,
        });
    }
    // Spaces inside and replacement characters mean that this is no identifier.
    let unusable = |c: char| c.is_control() || c.is_whitespace() || c == char::REPLACEMENT_CHARACTER;
    if value.contains(unusable) {
        return Err(ManifestError::FieldInvalid { field: name });
    }
    Ok(value.to_owned())
}

/// A package that the artifact says it is, or says it contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Canonical package URL, at most [`MAX_PURL_BYTES`].
    pub purl: String,
    /// `CycloneDX` component type.
    pub kind: &'static str,
    /// As in [`Coordinates::namespace`].
    pub namespace: Option<String>,
    /// Name as the manifest has it.
    pub name: String,
    /// Version as the manifest has it.
    pub version: String,
    /// Path of the manifest inside the artifact; `!/` follows each container on the way.
    pub location: String,
    /// Whose manifest it was.
    pub ecosystem: Ecosystem,
    /// What else the component is to say: names and values of properties.
    pub properties: Vec<(String, String)>,
}

/// How a component of the engine relates to an [`Identity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Another package.
    Other,
    /// The same package, named at least as precisely.
    Same,
    /// The same package, but without the distribution or the version that makes it match: its purl is to be replaced
    /// by ours.
    LessPrecise,
}

impl Identity {
    /// Compares the package URL of a component with this identity. Qualifiers other than `distro` do not matter.
    pub fn relation(&self, purl: &str) -> Relation {
        let (Ok(ours), Ok(theirs)) = (PackageUrl::from_str(&self.purl), PackageUrl::from_str(purl)) else {
            return Relation::Other;
        };
        if (ours.ty(), ours.name()) != (theirs.ty(), theirs.name()) {
            return Relation::Other;
        }
        if theirs.version().is_none() && ours.namespace() == theirs.namespace() {
            return Relation::LessPrecise;
        }
        if ours.version() != theirs.version() {
            return Relation::Other;
        }
        let lacks = ours.qualifiers().contains_key("distro") && !theirs.qualifiers().contains_key("distro");
        match (ours.namespace() == theirs.namespace(), lacks) {
            (_, true) if theirs.namespace().is_none() || ours.namespace() == theirs.namespace() => {
                Relation::LessPrecise
            }
            (true, _) => Relation::Same,
            _ => Relation::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Coordinates, Ecosystem, Relation};

    #[test]
    fn purls_follow_the_rules_of_their_type() {
        let cases = [
            (
                Ecosystem::Npm,
                Some("@babel"),
                "core",
                "7.9.0",
                "pkg:npm/%40babel/core@7.9.0",
            ),
            (
                Ecosystem::Pypi,
                None,
                "Jinja2",
                "2.11.2",
                "pkg:pypi/jinja2@2.11.2",
            ),
            (
                Ecosystem::Pypi,
                None,
                "typing_extensions",
                "4",
                "pkg:pypi/typing-extensions@4",
            ),
            (
                Ecosystem::Nuget,
                None,
                "Newtonsoft.Json",
                "12.0.1",
                "pkg:nuget/Newtonsoft.Json@12.0.1",
            ),
            (
                Ecosystem::Golang,
                Some("github.com/BurntSushi"),
                "toml",
                "v1.3.2",
                "pkg:golang/github.com/burntsushi/toml@v1.3.2",
            ),
            (
                Ecosystem::Maven,
                Some("org.apache.logging.log4j"),
                "log4j-core",
                "2.14.1",
                "pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1",
            ),
            (
                Ecosystem::Composer,
                Some("Symfony"),
                "HTTP-Kernel",
                "v5.0",
                "pkg:composer/symfony/http-kernel@v5.0",
            ),
            (
                Ecosystem::Cargo,
                None,
                "time",
                "0.1.43+x",
                "pkg:cargo/time@0.1.43%2Bx",
            ),
        ];
        for (ecosystem, namespace, name, version, want) in cases {
            let c = Coordinates::new(ecosystem, Some(name), Some(version)).unwrap();
            let c = c.in_namespace(namespace.unwrap_or_default()).unwrap();
            assert_eq!(c.purl().unwrap(), want);
        }
    }

    #[test]
    fn a_package_url_with_any_text_in_it_is_that_of_its_identity() {
        for odd in [
            "1:2/3", "a/b", "/", "1@2", "a%2Fb", "1?x=y", "1#z", "1+2", "1&2", "~1^2", "é", "a!b", "1=2",
            "a//b",
        ] {
            for (name, version) in [("a", odd), (odd, "1"), (odd, odd)] {
                let identity = Coordinates::new(Ecosystem::Deb, Some(name), Some(version))
                    .and_then(|c| c.in_namespace("debian"))
                    .and_then(|c| c.identify(String::new()));
                let Ok(identity) = identity else {
                    continue;
                };
                assert_eq!(
                    identity.relation(&identity.purl),
                    Relation::Same,
                    "{}",
                    identity.purl
                );
            }
        }
    }

    #[test]
    fn fields_that_are_no_identifiers_are_refused() {
        let long = "x".repeat(513);
        for bad in ["", "  ", "a b", "a\u{0}", "a\u{fffd}", long.as_str()] {
            assert!(
                Coordinates::new(Ecosystem::Npm, Some(bad), Some("1")).is_err(),
                "{bad:?}"
            );
            assert!(
                Coordinates::new(Ecosystem::Npm, Some("a"), Some(bad)).is_err(),
                "{bad:?}"
            );
        }
        assert!(Coordinates::new(Ecosystem::Npm, Some(&"x".repeat(512)), Some("1")).is_ok());
        let percent =
            Coordinates::new(Ecosystem::Npm, Some(&"%".repeat(512)), Some(&"%".repeat(512))).unwrap();
        assert!(percent.purl().is_err(), "longer than a purl may be");
    }

    #[test]
    fn a_component_without_distribution_is_told_apart() {
        let identity = Coordinates::new(Ecosystem::Deb, Some("jq"), Some("1.6-2.1+deb12u3"))
            .and_then(|c| c.in_namespace("debian"))
            .and_then(|c| c.qualified("arch", "amd64"))
            .and_then(|c| c.qualified("distro", "debian-12"))
            .and_then(|c| c.identify("control".into()))
            .unwrap();
        let cases = [
            ("pkg:deb/jq@1.6-2.1%2Bdeb12u3?arch=amd64", Relation::LessPrecise),
            (
                "pkg:deb/debian/jq@1.6-2.1%2Bdeb12u3?arch=amd64&distro=debian-12",
                Relation::Same,
            ),
            ("pkg:deb/debian/jq@1.6?arch=amd64", Relation::Other),
            (
                "pkg:deb/ubuntu/jq@1.6-2.1%2Bdeb12u3?distro=ubuntu-22.04",
                Relation::Other,
            ),
            ("not a purl", Relation::Other),
        ];
        for (purl, want) in cases {
            assert_eq!(identity.relation(purl), want, "{purl}");
        }
    }
}
