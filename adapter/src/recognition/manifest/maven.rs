//! What names a Maven package: `pom.properties` of a jar, a lone `pom.xml`, Gradle's module metadata, an `ivy.xml`.

use super::headers::{headers, value};
use super::xml::{attributes, texts};
use super::{ManifestError, json, text};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

/// Coordinates from `META-INF/maven/GROUP/ARTIFACT/pom.properties`.
pub fn pom_properties(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let text = text(bytes, "properties")?;
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(['=', ':'])?;
            (name.trim() == key).then(|| value.trim())
        })
    };
    coordinates(value("groupId"), value("artifactId"), value("version"))
}

/// Artifact and version by the manifest of a jar whose builder left no properties. The group is not in it.
///
/// The title is believed when it is written as an artifact is: in small letters. Else the name of a module of one word.
pub fn java_manifest(bytes: &[u8]) -> Option<(String, String)> {
    let headers = headers(bytes).ok()?;
    let plain = |key: &str, also: &[u8]| {
        value(&headers, key).filter(|text| {
            let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || also.contains(&b);
            text.starts_with(|c: char| c.is_ascii_lowercase()) && text.bytes().all(is_plain)
        })
    };
    let name = plain("Implementation-Title", b"._-").or_else(|| plain("Automatic-Module-Name", b"_-"))?;
    let version = value(&headers, "Implementation-Version").or_else(|| value(&headers, "Bundle-Version"))?;
    Some((name.to_owned(), version.to_owned()))
}

/// Coordinates of the project of a `pom.xml`; group and version may come from its parent.
pub fn pom(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let wanted = [
        "project/groupId",
        "project/artifactId",
        "project/version",
        "project/parent/groupId",
        "project/parent/version",
    ];
    let found = texts(bytes, &wanted)?;
    let value = |key| found.get(key).map(String::as_str);
    coordinates(
        value("project/groupId").or_else(|| value("project/parent/groupId")),
        value("project/artifactId"),
        value("project/version").or_else(|| value("project/parent/version")),
    )
}

#[derive(Deserialize)]
struct GradleModule {
    component: GradleComponent,
}

#[derive(Deserialize)]
struct GradleComponent {
    group: Option<String>,
    module: Option<String>,
    version: Option<String>,
}

/// Coordinates from the module metadata that Gradle publishes beside a pom.
pub fn gradle_module(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let component = json::<GradleModule>(bytes)?.component;
    coordinates(
        component.group.as_deref(),
        component.module.as_deref(),
        component.version.as_deref(),
    )
}

/// Coordinates from an `ivy.xml`: organisation, module and revision.
pub fn ivy(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let info = attributes(bytes, "ivy-module/info")?;
    let value = |key| info.get(key).map(String::as_str);
    coordinates(value("organisation"), value("module"), value("revision"))
}

fn coordinates(
    group: Option<&str>,
    artifact: Option<&str>,
    version: Option<&str>,
) -> Result<Coordinates, ManifestError> {
    let group = group
        .filter(|g| !g.is_empty())
        .ok_or(ManifestError::MissingField { field: "groupId" })?;
    let parts = [group, artifact.unwrap_or_default(), version.unwrap_or_default()];
    if parts.iter().any(|part| part.contains("${")) {
        return Err(ManifestError::FieldInvalid { field: "version" });
    }
    Coordinates::new(Ecosystem::Maven, artifact, version)?.in_namespace(group)
}

#[cfg(test)]
mod tests {
    use super::{gradle_module, ivy, java_manifest, pom, pom_properties};

    #[test]
    fn manifests_without_properties() {
        let cases = [
            (
                "Manifest-Version: 1.0\r\nImplementation-Title: spring-core\r\nImplementation-Version: 5.3.17\r\n\r\n",
                Some(("spring-core", "5.3.17")),
            ),
            (
                "Implementation-Title: JUnit\nAutomatic-Module-Name: junit\nImplementation-Version: 4.13.2\n",
                Some(("junit", "4.13.2")),
            ),
            (
                "Automatic-Module-Name: shop.core\nImplementation-Version: 1\n",
                None,
            ),
            (
                "Implementation-Title: The Shop\nImplementation-Version: 1\n",
                None,
            ),
            ("Implementation-Title: shop\n", None),
            (
                "Implementation-Title: shop\nBundle-Version: 1.0.0\n",
                Some(("shop", "1.0.0")),
            ),
            ("", None),
        ];
        for (text, want) in cases {
            let got = java_manifest(text.as_bytes());
            let got = got
                .as_ref()
                .map(|(name, version)| (name.as_str(), version.as_str()));
            assert_eq!(got, want, "{text}");
        }
    }

    #[test]
    fn other_builders() {
        let cases = [
            (
                r#"{"formatVersion":"1.1","component":{"group":"g","module":"a","version":"1","attributes":{}},"variants":[]}"#,
                Some("pkg:maven/g/a@1"),
            ),
            (r#"{"component":{"module":"a","version":"1"}}"#, None),
            (
                "<?xml version=\"1.0\"?>\n<ivy-module version=\"2.0\"><info organisation=\"g\" module='a' revision=\"1\"/><dependencies><dependency org=\"x\" name=\"y\" rev=\"2\"/></dependencies></ivy-module>",
                Some("pkg:maven/g/a@1"),
            ),
            (
                "<ivy-module><info organisation=\"g\" module=\"a\"></info></ivy-module>",
                None,
            ),
            (
                "<ivy-module><info organisation=\"&e;\" module=\"a\" revision=\"1\"/></ivy-module>",
                None,
            ),
            ("<ivy-module/>", None),
        ];
        for (text, want) in cases {
            let read = if text.starts_with('{') { gradle_module } else { ivy };
            assert_eq!(
                read(text.as_bytes()).and_then(|c| c.purl()).ok().as_deref(),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn properties() {
        let cases = [
            (
                "#Created\nversion=2.14.1\ngroupId=org.apache.logging.log4j\nartifactId=log4j-core\n",
                Some("pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1"),
            ),
            (
                "version: 1\r\ngroupId : g\r\nartifactId=a\r\n",
                Some("pkg:maven/g/a@1"),
            ),
            ("version=1\nartifactId=a\n", None),
            ("version=${v}\ngroupId=g\nartifactId=a\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(
                pom_properties(text.as_bytes())
                    .and_then(|c| c.purl())
                    .ok()
                    .as_deref(),
                want
            );
        }
    }

    #[test]
    fn poms() {
        let cases = [
            (
                "<project><parent><groupId>g</groupId><version>1</version></parent><artifactId>a</artifactId><dependencies><dependency><artifactId>b</artifactId></dependency></dependencies></project>",
                Some("pkg:maven/g/a@1"),
            ),
            (
                "<project><groupId>g</groupId><artifactId>a</artifactId><version>${revision}</version></project>",
                None,
            ),
            ("<project/>", None),
        ];
        for (text, want) in cases {
            assert_eq!(
                pom(text.as_bytes()).and_then(|c| c.purl()).ok().as_deref(),
                want,
                "{text}"
            );
        }
    }
}
