//! `META-INF/GROUP_ARTIFACT.version`: how the Android build records the libraries that it put into a package.

use super::{ManifestError, text};
use crate::recognition::identity::{Coordinates, Ecosystem};

/// Group and artifact in a path of such a file.
pub fn android_library(path: &str) -> Option<(&str, &str)> {
    let name = path.strip_prefix("META-INF/")?.strip_suffix(".version")?;
    let (group, artifact) = name.split_once('_')?;
    let is_plain = !group.is_empty() && !artifact.is_empty() && !name.contains('/');
    is_plain.then_some((group, artifact))
}

/// Coordinates of the library of which the file at `path` has the version.
pub fn android_version(path: &str, bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let (group, artifact) =
        android_library(path).ok_or(ManifestError::FieldInvalid { field: "file name" })?;
    let version = text(bytes, "text")?;
    Coordinates::new(Ecosystem::Maven, Some(artifact), Some(version))?.in_namespace(group)
}

#[cfg(test)]
mod tests {
    use super::android_version;

    #[test]
    fn table() {
        let cases = [
            (
                "META-INF/androidx.core_core-ktx.version",
                "1.6.0\n",
                Some("pkg:maven/androidx.core/core-ktx@1.6.0"),
            ),
            // A build that records what it should have computed.
            (
                "META-INF/androidx.core_core.version",
                "task ':core' property 'version'",
                None,
            ),
            ("META-INF/androidx.version", "1", None),
            ("META-INF/a/b_c.version", "1", None),
            ("b_c.version", "1", None),
        ];
        for (path, content, want) in cases {
            let got = android_version(path, content.as_bytes())
                .and_then(|c| c.purl())
                .ok();
            assert_eq!(got.as_deref(), want, "{path}");
        }
    }
}
