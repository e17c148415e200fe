//! `Chart.yaml`.

use super::{ManifestError, yaml};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct Chart {
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of a chart.
pub fn helm(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let chart: Chart = yaml(bytes)?;
    Coordinates::new(Ecosystem::Helm, chart.name.as_deref(), chart.version.as_deref())
}

#[cfg(test)]
mod tests {
    use super::helm;

    #[test]
    fn table() {
        let cases = [
            (
                "apiVersion: v2\nname: nginx\nversion: 1.2.3\nappVersion: \"1.16\"\n",
                Some("pkg:helm/nginx@1.2.3"),
            ),
            ("name: nginx\n", None),
            ("name: {a: b}\nversion: 1.0.0\n", None),
            ("- a\n", None),
            ("\t", None),
        ];
        for (text, want) in cases {
            assert_eq!(
                helm(text.as_bytes()).and_then(|c| c.purl()).ok().as_deref(),
                want,
                "{text}"
            );
        }
        // None of these may take more than a moment.
        for unit in [
            "[",
            "{a: ",
            "- ",
            "? ",
            "a: &a [*a]\n",
            "[],",
            "\"",
            "!a ",
            "%a\n",
        ] {
            let text = format!("name: {}", unit.repeat(200_000));
            assert!(helm(text.as_bytes()).is_err(), "{unit}");
        }
    }
}
