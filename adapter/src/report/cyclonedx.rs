//! The SBOM documents themselves, byte for byte as the engine run produced them.

use super::ScannedArtifact;
use std::collections::BTreeSet;

/// Why there is no single document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CyclonedxError {
    /// A CycloneDX document describes one artifact.
    #[error(
        "a CycloneDX document describes one artifact, but {0} were scanned; use --output DIRECTORY for one file each"
    )]
    NotOneArtifact(usize),
}

/// The document of the one artifact that was scanned, for standard output.
///
/// Several artifacts are an error: concatenated or merged documents are not what readers of CycloneDX accept.
pub fn render_cyclonedx(scanned: &[ScannedArtifact]) -> Result<&[u8], CyclonedxError> {
    match scanned {
        [artifact] => Ok(&artifact.catalog.cyclonedx_json.0),
        _ => Err(CyclonedxError::NotOneArtifact(scanned.len())),
    }
}

/// A file name and the document for each artifact, for a directory.
///
/// The name is made of the last segment of the path, reduced to letters, digits and `._-`, never hidden, never used twice.
pub fn cyclonedx_files(scanned: &[ScannedArtifact]) -> Vec<(String, &[u8])> {
    let mut used = BTreeSet::new();
    scanned
        .iter()
        .map(|artifact| {
            let base = safe_name(&artifact.path);
            let name = (1..=scanned.len())
                .map(|n| match n {
                    1 => format!("{base}.cdx.json"),
                    n => format!("{base}-{n}.cdx.json"),
                })
                .find(|name| !used.contains(name))
                .unwrap_or_default();
            used.insert(name.clone());
            (name, artifact.catalog.cyclonedx_json.0.as_slice())
        })
        .collect()
}

/// Most characters of a name that are kept; file systems take 255 bytes.
const LONGEST_NAME: usize = 200;

fn safe_name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).find(|segment| !segment.is_empty());
    let name: String = last
        .unwrap_or_default()
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '_',
        })
        .take(LONGEST_NAME)
        .collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() {
        "artifact".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{CyclonedxError, cyclonedx_files, render_cyclonedx};
    use crate::report::{ScannedArtifact, sample};

    fn at(path: &str) -> ScannedArtifact {
        ScannedArtifact {
            path: path.into(),
            ..sample::with_findings(&[])
        }
    }

    #[test]
    fn one_artifact_gives_its_exact_bytes() {
        let one = [at("a.jar")];
        assert_eq!(render_cyclonedx(&one), Ok(&br#"{"bomFormat":"CycloneDX"}"#[..]));
        let two = [at("a.jar"), at("b.jar")];
        assert_eq!(render_cyclonedx(&two), Err(CyclonedxError::NotOneArtifact(2)));
        assert_eq!(render_cyclonedx(&[]), Err(CyclonedxError::NotOneArtifact(0)));
    }

    #[test]
    fn file_names_are_safe_and_distinct() {
        let scanned = [
            "x/a.jar",
            "y/a.jar",
            "../..",
            "dir/",
            "-rf",
            "a b\u{1b}.jar",
            "a.jar-2",
        ]
        .map(at);
        let names: Vec<_> = cyclonedx_files(&scanned)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            names,
            [
                "a.jar.cdx.json",
                "a.jar-2.cdx.json",
                "artifact.cdx.json",
                "dir.cdx.json",
                "rf.cdx.json",
                "a_b_.jar.cdx.json",
                "a.jar-2-2.cdx.json"
            ]
        );
    }
}
