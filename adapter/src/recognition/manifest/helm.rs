//! `Chart.yaml`, and the images that a chart's `values.yaml` names.

use super::{ManifestError, yaml};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;
use serde_norway::{Mapping, Value};
use std::collections::BTreeSet;

/// Most images of one chart.
pub const MAX_CHART_IMAGES: usize = 64;
/// Longest image reference, bytes.
const MAX_IMAGE_BYTES: usize = 300;

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

/// The images that the default values of a chart name, sorted, at most [`MAX_CHART_IMAGES`]: the text of each `image`,
/// and each mapping with a `repository` below a key that ends in `image`. A tag that is left to the template is not
/// guessed.
pub fn chart_images(bytes: &[u8]) -> Result<BTreeSet<String>, ManifestError> {
    let values: Value = yaml(bytes)?;
    let mut images = BTreeSet::new();
    let mut todo = vec![(false, &values)];
    while let Some((is_image, value)) = todo.pop() {
        match value {
            Value::Mapping(fields) => {
                let image = if is_image { reference(fields) } else { None };
                images.extend(image);
                todo.extend(fields.iter().map(|(key, value)| (names_image(key), value)));
            }
            Value::Sequence(items) => todo.extend(items.iter().map(|item| (false, item))),
            Value::String(text) if is_image && is_reference(text) => _ = images.insert(text.clone()),
            _ => {}
        }
        if images.len() >= MAX_CHART_IMAGES {
            break;
        }
    }
    Ok(images)
}

fn names_image(key: &Value) -> bool {
    key.as_str()
        .is_some_and(|key| key.to_ascii_lowercase().ends_with("image"))
}

/// `registry/repository:tag@digest`, of which all but the repository may be absent.
fn reference(fields: &Mapping) -> Option<String> {
    let field = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => Some(text.clone()).filter(|text| !text.is_empty()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let part = |mark: &str, name: &str| field(name).map(|text| format!("{mark}{text}"));
    let registry = field("registry").map(|registry| format!("{registry}/"));
    let reference = [
        registry,
        Some(field("repository")?),
        part(":", "tag"),
        part("@", "digest"),
    ]
    .into_iter()
    .flatten()
    .collect::<String>();
    is_reference(&reference).then_some(reference)
}

/// Whether a text can be an image reference and not, say, a template.
fn is_reference(text: &str) -> bool {
    (1..=MAX_IMAGE_BYTES).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._/:@+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::{chart_images, helm};

    #[test]
    fn images_of_default_values() {
        let cases: [(&str, &[&str]); 6] = [
            (
                "image:\n  registry: registry.invalid\n  repository: shop/web\n  tag: 1.25\n",
                &["registry.invalid/shop/web:1.25"],
            ),
            (
                "a:\n- initImage: {repository: busybox, tag: \"1.36\"}\n- sidecar: {image: \"envoy:v1\"}\n",
                &["busybox:1.36", "envoy:v1"],
            ),
            ("image:\n  repository: web\n  tag: \"\"\n", &["web"]),
            ("image: \"{{ .Values.x }}\"\n", &[]),
            ("volume: {repository: web, tag: x}\nimage: {tag: x}\n", &[]),
            ("", &[]),
        ];
        for (text, want) in cases {
            let got = chart_images(text.as_bytes()).unwrap_or_default();
            assert_eq!(got.iter().map(String::as_str).collect::<Vec<_>>(), want, "{text}");
        }
        let many = (0..1000)
            .map(|n| format!("a{n}image: x:{n}"))
            .collect::<Vec<_>>()
            .join("\n");
        assert_eq!(
            chart_images(many.as_bytes()).unwrap().len(),
            super::MAX_CHART_IMAGES
        );
        let lines = (1..40).map(|n| format!("a{n}: &a{n} [{}]", format!("*a{},", n - 1).repeat(9)));
        let bomb = std::iter::once("a0: &a0 [x,x,x,x,x,x,x,x]".to_owned())
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n");
        assert!(
            chart_images(bomb.as_bytes()).is_err(),
            "aliases of aliases are refused"
        );
    }

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
