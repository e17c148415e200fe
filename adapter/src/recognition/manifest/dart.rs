//! `pubspec.yaml`.

use super::{ManifestError, yaml};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct Pubspec {
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of a Dart package.
pub fn dart(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let pubspec: Pubspec = yaml(bytes)?;
    Coordinates::new(
        Ecosystem::Pub,
        pubspec.name.as_deref(),
        pubspec.version.as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use super::dart;

    #[test]
    fn table() {
        let cases = [
            (
                "name: http\nversion: 0.13.0\nenvironment:\n  sdk: \">=2.12.0\"\n",
                Some("pkg:pub/http@0.13.0"),
            ),
            ("name: http\n", None),
        ];
        for (text, want) in cases {
            assert_eq!(
                dart(text.as_bytes()).and_then(|c| c.purl()).ok().as_deref(),
                want,
                "{text}"
            );
        }
    }
}
