//! `info/index.json` and, of version 2, `metadata.json` of a Conda package.

use super::MAX_MANIFEST_BYTES;
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Largest `metadata.json`, bytes.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Longest field, UTF-16 units.
const MAX_FIELD_UNITS: usize = 255;

/// What the index says. All fields are plain text of at most 255 UTF-16 units without separators and controls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CondaFacts {
    /// Name, not blank.
    pub name: String,
    /// Version, not blank.
    pub version: String,
    /// Build string, not blank.
    pub build: String,
    /// Build number.
    pub build_number: i64,
    /// Platform directory; may be empty.
    pub subdir: String,
}

/// Why an index or metadata file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CondaIndexError {
    /// There is none, or it has no bytes.
    #[error("the conda index is empty")]
    Empty,
    /// It is over its bound.
    #[error("the conda index has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// `metadata.json` is over its bound.
    #[error("the conda metadata has more than {limit} bytes")]
    MetadataTooLarge {
        /// The bound.
        limit: usize,
    },
    /// It is not a JSON object of the required form.
    #[error("the conda index is not a JSON object of the required form")]
    Malformed,
    /// A field is missing, blank, too long or has separators or control characters.
    #[error("the conda index's {field} is not usable")]
    Field {
        /// The field.
        field: &'static str,
    },
    /// `metadata.json` does not say format version 2.
    #[error("the conda format version is not 2")]
    FormatVersion,
}

#[derive(Deserialize)]
struct Index<'a> {
    name: Option<String>,
    version: Option<String>,
    build: Option<String>,
    #[serde(borrow)]
    build_number: Option<&'a RawValue>,
    subdir: Option<String>,
}

/// Facts of an `info/index.json`.
pub fn conda_index(bytes: &[u8]) -> Result<CondaFacts, CondaIndexError> {
    if bytes.is_empty() {
        return Err(CondaIndexError::Empty);
    }
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(CondaIndexError::TooLarge {
            limit: MAX_MANIFEST_BYTES,
        });
    }
    let index: Index<'_> = serde_json::from_slice(bytes).map_err(|_| CondaIndexError::Malformed)?;
    let field = |field, value: Option<String>| {
        value
            .filter(|v| !v.trim().is_empty() && usable(v))
            .ok_or(CondaIndexError::Field { field })
    };
    let build_number = index
        .build_number
        .and_then(|raw| raw.get().parse::<i64>().ok())
        .filter(|n| *n >= 0)
        .ok_or(CondaIndexError::Field {
            field: "build_number",
        })?;
    let subdir = index.subdir.unwrap_or_default();
    if !usable(&subdir) {
        return Err(CondaIndexError::Field { field: "subdir" });
    }
    Ok(CondaFacts {
        name: field("name", index.name)?,
        version: field("version", index.version)?,
        build: field("build", index.build)?,
        build_number,
        subdir,
    })
}

fn usable(text: &str) -> bool {
    text.encode_utf16().count() <= MAX_FIELD_UNITS
        && !text.chars().any(|c| c.is_control() || matches!(c, '/' | '\\'))
}

#[derive(Deserialize)]
struct Metadata {
    conda_pkg_format_version: serde_json::Number,
}

/// Checks a `metadata.json` of a version 2 package.
pub fn conda_metadata(bytes: &[u8]) -> Result<(), CondaIndexError> {
    if bytes.len() > MAX_METADATA_BYTES {
        return Err(CondaIndexError::MetadataTooLarge {
            limit: MAX_METADATA_BYTES,
        });
    }
    let metadata: Metadata = serde_json::from_slice(bytes).map_err(|_| CondaIndexError::Malformed)?;
    match metadata.conda_pkg_format_version.as_f64() {
        Some(2.0) => Ok(()),
        _ => Err(CondaIndexError::FormatVersion),
    }
}

impl CondaFacts {
    /// The package's coordinates.
    pub fn coordinates(&self) -> Result<Coordinates, super::ManifestError> {
        Coordinates::new(Ecosystem::Conda, Some(&self.name), Some(&self.version))?
            .qualified("build", &self.build)?
            .qualified("subdir", &self.subdir)
    }
}

#[cfg(test)]
mod tests {
    use super::{CondaIndexError, conda_index, conda_metadata};

    #[test]
    fn a_good_index() {
        let facts = conda_index(br#"{"name":"numpy","version":"1.19.1","build":"py38_0","build_number":0,"subdir":"linux-64","depends":[]}"#).unwrap();
        assert_eq!(
            facts.coordinates().and_then(|c| c.purl()).unwrap(),
            "pkg:conda/numpy@1.19.1?build=py38_0&subdir=linux-64"
        );
    }

    #[test]
    fn bad_indexes() {
        use CondaIndexError::{Empty, Field, Malformed, TooLarge};
        let long = format!(
            r#"{{"name":"{}","version":"1","build":"0","build_number":0}}"#,
            "n".repeat(256)
        );
        let cases = [
            ("", Empty),
            ("[]", Malformed),
            (r#"{"name":1}"#, Malformed),
            (
                r#"{"name":"a","version":"1","build":"0","build_number":0} x"#,
                Malformed,
            ),
            (
                r#"{"name":"a","version":"1","build":"0"}"#,
                Field {
                    field: "build_number",
                },
            ),
            (
                r#"{"name":"a","version":"1","build":"0","build_number":-1}"#,
                Field {
                    field: "build_number",
                },
            ),
            (
                r#"{"name":"a","version":"1","build":"0","build_number":1.0}"#,
                Field {
                    field: "build_number",
                },
            ),
            (
                r#"{"name":"a","version":"1","build":"0","build_number":9223372036854775808}"#,
                Field {
                    field: "build_number",
                },
            ),
            (
                r#"{"name":" ","version":"1","build":"0","build_number":0}"#,
                Field { field: "name" },
            ),
            (
                r#"{"name":"a/b","version":"1","build":"0","build_number":0}"#,
                Field { field: "name" },
            ),
            (
                r#"{"name":"a","version":"1\u007f","build":"0","build_number":0}"#,
                Field { field: "version" },
            ),
            (
                r#"{"name":"a","version":"1","build":"0","build_number":0,"subdir":"a\\b"}"#,
                Field { field: "subdir" },
            ),
            (long.as_str(), Field { field: "name" }),
        ];
        for (text, want) in cases {
            assert_eq!(conda_index(text.as_bytes()), Err(want), "{text}");
        }
        let huge = vec![b' '; 2 * 1024 * 1024 + 1];
        assert!(matches!(conda_index(&huge), Err(TooLarge { .. })));
    }

    #[test]
    fn the_format_version_is_two() {
        assert_eq!(conda_metadata(br#"{"conda_pkg_format_version": 2}"#), Ok(()));
        for bad in [
            &b"{}"[..],
            b"[]",
            br#"{"conda_pkg_format_version": "2"}"#,
            br#"{"conda_pkg_format_version": 3}"#,
        ] {
            assert!(conda_metadata(bad).is_err());
        }
        assert!(conda_metadata(&vec![b' '; 65_537]).is_err());
    }
}
