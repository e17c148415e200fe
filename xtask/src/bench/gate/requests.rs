//! Whole catalog requests against stock Syft on the same file, with the same packages in both documents.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::bench::figure::{Figure, median, number};
use crate::bench::overhead::{Bare, syft};
use crate::bench::with_adapter;
use crate::database;
use crate::demo::Catalog;
use crate::error::{Error, on};
use crate::http::Input;
use crate::service::Options;

/// Pairs; each takes stock Syft many seconds.
const ROUNDS: usize = 3;

/// The files, their wire types, and how much of Syft's time a request may take.
const FILES: [(&str, &str, f64); 2] = [("request.zip", "ZIP", 0.1), ("request.tar.gz", "TAR_GZ", 0.3)];

pub(super) fn measure(options: &Options, scratch: &Path) -> Result<Vec<Figure>, Error> {
    let generation = database::published_generation(&options.database)?;
    let bare = Bare {
        engines: &options.engines,
        generation: &generation,
        scratch,
    };
    let mut figures = Vec::new();
    with_adapter(options, |adapter| {
        for (name, artifact_type, most) in FILES {
            let path = scratch.join(format!("gate.{name}"));
            let bytes = fs::read(&path).map_err(on("read", &path))?;
            let input = Input {
                bytes: &bytes,
                artifact_type,
            };
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            let mut sbom = Vec::new();
            for _ in 0..ROUNDS {
                let start = Instant::now();
                sbom = adapter.client().catalog::<Catalog>(input)?.sbom()?;
                ours.push(start.elapsed().as_secs_f64());
                let start = Instant::now();
                syft(bare, &path)?;
                theirs.push(start.elapsed().as_secs_f64());
            }
            let out = scratch.join("syft.out");
            let (found, expected) = (purls(&sbom)?, purls(&fs::read(&out).map_err(on("read", &out))?)?);
            let missing = expected.difference(&found).count();
            let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
            let beside = format!(
                "request {} s, Syft {} s",
                number(median(&ours)),
                number(median(&theirs))
            );
            figures.push(
                Figure::new(
                    format!("gate.{name}.time_vs_syft"),
                    median(&ours) / median(&theirs),
                    "x",
                )
                .at_most(most)
                .beside(beside),
            );
            figures.push(
                Figure::new(format!("gate.{name}.packages_missed"), count(missing), "packages")
                    .at_most(0.0)
                    .beside(format!("{} found by stock Syft", expected.len())),
            );
        }
        Ok(figures)
    })
}

/// Package URLs of all components.
fn purls(document: &[u8]) -> Result<BTreeSet<String>, Error> {
    let document: Value = serde_json::from_slice(document).map_err(|source| Error::Json {
        what: "an SBOM".to_owned(),
        source,
    })?;
    let components = document["components"].as_array().into_iter().flatten();
    let purls = components.filter_map(|component| component["purl"].as_str());
    Ok(purls.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn purls_are_those_of_components() {
        let document = br#"{"components":[{"purl":"pkg:npm/a@1"},{"name":"x"},{"purl":"pkg:npm/a@1"}]}"#;
        assert_eq!(super::purls(document).unwrap().len(), 1);
        assert!(super::purls(b"[").is_err());
    }
}
