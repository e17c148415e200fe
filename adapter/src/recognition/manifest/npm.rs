//! `package.json`.

use super::{ManifestError, json};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct Package {
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of an npm package.
pub fn npm(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let package: Package = json(bytes)?;
    let name = package.name.as_deref().unwrap_or_default();
    let (scope, name) = match name.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((scope, name)) if !scope.is_empty() => (format!("@{scope}"), name),
        _ => (String::new(), name),
    };
    if name.contains('/') || name.starts_with('@') {
        return Err(ManifestError::FieldInvalid { field: "name" });
    }
    Coordinates::new(Ecosystem::Npm, Some(name), package.version.as_deref())?.in_namespace(&scope)
}

#[cfg(test)]
mod tests {
    use super::npm;

    #[test]
    fn table() {
        let cases: [(&[u8], Option<&str>); 12] = [
            (
                br#"{"name":"lodash","version":"4.17.20"}"#,
                Some("pkg:npm/lodash@4.17.20"),
            ),
            (
                br#"{"name":"@babel/core","version":"7.9.0","x":[{}]}"#,
                Some("pkg:npm/%40babel/core@7.9.0"),
            ),
            (
                b"\xef\xbb\xbf{\"name\":\"a\",\"version\":\"1\"}",
                Some("pkg:npm/a@1"),
            ),
            (br#"{"name":"a"}"#, None),
            (br#"{"version":"1"}"#, None),
            (br#"{"name":"a","version":1}"#, None),
            (br#"{"name":"@a","version":"1"}"#, None),
            (br#"{"name":"a/b/c","version":"1"}"#, None),
            (br#"{"name":"a","name":"b","version":"1"}"#, None),
            (br#"{"name":"a","version":"1"} x"#, None),
            (b"\xff", None),
            (b"", None),
        ];
        for (bytes, want) in cases {
            let got = npm(bytes).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{}", String::from_utf8_lossy(bytes));
        }
        assert!(
            npm("[".repeat(100_000).as_bytes()).is_err(),
            "deep nesting is refused, not recursed"
        );
    }
}
