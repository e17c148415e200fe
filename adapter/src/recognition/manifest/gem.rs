//! `metadata.gz` of a gem: the gemspec as YAML with Ruby's type tags.

use super::{MAX_MANIFEST_BYTES, ManifestError, yaml};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;
use std::io::Read;

#[derive(Deserialize)]
struct Specification {
    name: Option<String>,
    version: Option<Version>,
    platform: Option<serde_norway::Value>,
}

#[derive(Deserialize)]
struct Version {
    version: Option<serde_norway::Value>,
}

/// Coordinates of a gem, from the gzip-compressed or plain gemspec.
pub fn gem(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return specification(bytes);
    }
    let mut plain = Vec::new();
    let limit = MAX_MANIFEST_BYTES as u64 + 1;
    flate2::read::GzDecoder::new(bytes)
        .take(limit)
        .read_to_end(&mut plain)
        .map_err(|_| ManifestError::Malformed { format: "gzip" })?;
    specification(&plain)
}

fn specification(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let specification: Specification = yaml(bytes)?;
    let version = specification.version.and_then(|v| v.version).and_then(scalar);
    let platform = specification
        .platform
        .and_then(scalar)
        .filter(|p| p != "ruby")
        .unwrap_or_default();
    Coordinates::new(Ecosystem::Gem, specification.name.as_deref(), version.as_deref())?
        .qualified("platform", &platform)
}

/// An unquoted `1.0` is a number to YAML; any other shape is no version.
fn scalar(value: serde_norway::Value) -> Option<String> {
    match value {
        serde_norway::Value::String(text) => Some(text),
        serde_norway::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::gem;
    use std::io::Write;

    const RACK: &str = "--- !ruby/object:Gem::Specification\nname: rack\nversion: !ruby/object:Gem::Version\n  version: 2.0.1\nplatform: ruby\nauthors:\n- Leah\ndependencies:\n- !ruby/object:Gem::Dependency\n  name: minitest\n  requirement: !ruby/object:Gem::Requirement\n    requirements:\n    - - \"~>\"\n      - !ruby/object:Gem::Version\n        version: '5.0'\n";

    #[test]
    fn table() {
        let platform = RACK.replace("platform: ruby", "platform: java");
        let number = RACK.replace("2.0.1", "2.0");
        let unversioned = RACK.replace("  version: 2.0.1\n", "  x: 1\n");
        let bomb = format!("a: &a [1]\n{}", "b: *a\n".repeat(3));
        let cases = [
            (RACK, Some("pkg:gem/rack@2.0.1")),
            (platform.as_str(), Some("pkg:gem/rack@2.0.1?platform=java")),
            (number.as_str(), Some("pkg:gem/rack@2.0")),
            (unversioned.as_str(), None),
            (bomb.as_str(), None),
            ("name: [", None),
            ("", None),
        ];
        for (text, want) in cases {
            let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gz.write_all(text.as_bytes()).unwrap();
            for bytes in [text.as_bytes().to_vec(), gz.finish().unwrap()] {
                assert_eq!(gem(&bytes).and_then(|c| c.purl()).ok().as_deref(), want, "{text}");
            }
        }
    }

    #[test]
    fn a_gemspec_that_expands_without_end_is_refused() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&vec![b'#'; 3 * 1024 * 1024]).unwrap();
        assert!(gem(&gz.finish().unwrap()).is_err());
        assert!(gem(&[0x1f, 0x8b, 8, 0]).is_err());
    }
}
