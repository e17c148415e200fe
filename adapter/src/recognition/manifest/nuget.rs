//! `*.nuspec`.

use super::ManifestError;
use super::xml::texts;
use crate::recognition::identity::{Coordinates, Ecosystem};

/// Coordinates of a `NuGet` package.
pub fn nuget(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let (id, version) = ("package/metadata/id", "package/metadata/version");
    let found = texts(bytes, &[id, version])?;
    let value = |key| found.get(key).map(String::as_str);
    Coordinates::new(Ecosystem::Nuget, value(id), value(version))
}

#[cfg(test)]
mod tests {
    use super::nuget;

    #[test]
    fn table() {
        let cases = [
            (
                "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<package xmlns=\"http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd\"><metadata minClientVersion=\"2.12\"><id>Newtonsoft.Json</id><version>12.0.1</version><dependencies><group><id>evil</id></group></dependencies></metadata></package>",
                Some("pkg:nuget/Newtonsoft.Json@12.0.1"),
            ),
            (
                "<n:package xmlns:n=\"u\"><n:metadata><n:id> A </n:id><n:version><![CDATA[1.0]]></n:version></n:metadata></n:package>",
                Some("pkg:nuget/A@1.0"),
            ),
            ("<package><metadata><id>A</id></metadata></package>", None),
            (
                "<package><metadata><id>A</id><version>1</version></metadata>",
                None,
            ),
            (
                "<!DOCTYPE p [<!ENTITY a \"b\">]><package><metadata><id>&a;</id><version>1</version></metadata></package>",
                None,
            ),
            (
                "<package><metadata><id>A&#10;b</id><version>1</version></metadata></package>",
                None,
            ),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(
                nuget(text.as_bytes()).and_then(|c| c.purl()).ok().as_deref(),
                want,
                "{text}"
            );
        }
        assert!(nuget("<a>".repeat(100_000).as_bytes()).is_err());
    }
}
