//! `composer.json`. Most released ones have no version: the registry knows it, the archive does not.

use super::{ManifestError, json};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct Composer {
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of a Composer package.
pub fn composer(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let composer: Composer = json(bytes)?;
    let name = composer.name.unwrap_or_default();
    let (vendor, name) = name
        .split_once('/')
        .ok_or(ManifestError::MissingField { field: "name" })?;
    Coordinates::new(Ecosystem::Composer, Some(name), composer.version.as_deref())?.in_namespace(vendor)
}

#[cfg(test)]
mod tests {
    use super::composer;

    #[test]
    fn table() {
        let cases: [(&[u8], Option<&str>); 4] = [
            (
                br#"{"name":"Symfony/Console","version":"5.0.1"}"#,
                Some("pkg:composer/symfony/console@5.0.1"),
            ),
            (br#"{"name":"symfony/console"}"#, None),
            (br#"{"name":"console","version":"1"}"#, None),
            (br#"{"name":"/console","version":"1"}"#, None),
        ];
        for (bytes, want) in cases {
            let got = composer(bytes).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
