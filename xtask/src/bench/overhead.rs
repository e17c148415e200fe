//! Wall time of a request against the bare engine on the same file, in turns.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::figure::{Figure, median, number};
use crate::demo::Catalog;
use crate::engines::Engines;
use crate::error::{Error, on};
use crate::http::{Client, Input};
use crate::process;

/// Pairs of a small artifact.
pub(crate) const SMALL_ROUNDS: usize = 15;
/// Pairs of a large one; a pair takes many seconds.
pub(crate) const LARGE_ROUNDS: usize = 10;

/// One artifact to compare on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// Part of the figures' names.
    pub(crate) name: &'a str,
    /// Where the file is for the bare engine.
    pub(crate) path: &'a Path,
    /// Its bytes for the request.
    pub(crate) bytes: &'a [u8],
    /// Wire name of its type.
    pub(crate) artifact_type: &'a str,
    /// Pairs to measure.
    pub(crate) rounds: usize,
}

/// What runs bare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bare<'a> {
    /// The real executables.
    pub(crate) engines: &'a Engines,
    /// Generation directory that Grype reads.
    pub(crate) generation: &'a Path,
    /// Scratch for its documents.
    pub(crate) scratch: &'a Path,
}

/// Catalog and match of one artifact.
pub(crate) fn measure(client: &Client, bare: Bare<'_>, subject: Subject<'_>) -> Result<Vec<Figure>, Error> {
    let input = Input {
        bytes: subject.bytes,
        artifact_type: subject.artifact_type,
    };
    // One unmeasured round: caches of the disk and of the adapter.
    let catalog: Catalog = client.catalog(input)?;
    let sbom = catalog.sbom()?;
    let sbom_path = bare.scratch.join("sbom.cdx.json");
    std::fs::write(&sbom_path, &sbom).map_err(on("write", &sbom_path))?;
    syft(bare, subject.path)?;

    let catalogs = pairs(
        subject.rounds,
        || client.catalog::<Catalog>(input).map(drop),
        || syft(bare, subject.path),
    )?;
    let matches = pairs(
        subject.rounds,
        || client.match_sbom::<serde_json::Value>(&sbom).map(drop),
        || grype(bare, &sbom_path),
    )?;
    let mut figures = catalogs.figures(&format!("adapter.catalog.{}", subject.name), "Syft");
    figures.extend(matches.figures(&format!("adapter.match.{}", subject.name), "Grype"));
    Ok(figures)
}

/// Milliseconds of each round.
struct Pairs {
    requests: Vec<f64>,
    engines: Vec<f64>,
}

fn pairs(
    rounds: usize,
    mut request: impl FnMut() -> Result<(), Error>,
    mut engine: impl FnMut() -> Result<(), Error>,
) -> Result<Pairs, Error> {
    let mut pairs = Pairs {
        requests: Vec::new(),
        engines: Vec::new(),
    };
    for round in 0..rounds {
        // Who goes first changes, so that neither always meets the warmer machine.
        if round % 2 == 0 {
            pairs.requests.push(timed(&mut request)?);
            pairs.engines.push(timed(&mut engine)?);
        } else {
            pairs.engines.push(timed(&mut engine)?);
            pairs.requests.push(timed(&mut request)?);
        }
    }
    Ok(pairs)
}

impl Pairs {
    fn figures(&self, name: &str, engine: &str) -> Vec<Figure> {
        let differences: Vec<f64> = self
            .requests
            .iter()
            .zip(&self.engines)
            .map(|(a, b)| a - b)
            .collect();
        let alone = median(&self.engines);
        let beside = format!(
            "bare {engine} {} ms, {} pairs",
            number(alone),
            self.requests.len()
        );
        // 3 % or 15 ms, whichever is larger.
        let bound = (alone * 0.03).max(15.0);
        vec![
            Figure::new(format!("{name}.wall"), median(&self.requests), "ms").beside(beside.clone()),
            Figure::new(format!("{name}.overhead"), median(&differences), "ms")
                .at_most(bound)
                .beside(beside),
        ]
    }
}

/// Milliseconds that something takes.
pub(crate) fn timed(what: &mut impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    what()?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}

/// Stock Syft on a file; its document is `syft.out` in the scratch directory.
pub(super) fn syft(bare: Bare<'_>, artifact: &Path) -> Result<(), Error> {
    let mut command = engine(&bare.engines.syft, bare.scratch);
    command
        .arg("scan")
        .arg(format!("file:{}", artifact.display()))
        .args(["--output", "cyclonedx-json"]);
    into_file(command, &bare.scratch.join("syft.out"))
}

fn grype(bare: Bare<'_>, sbom: &Path) -> Result<(), Error> {
    let mut command = engine(&bare.engines.grype, bare.scratch);
    command
        .arg(format!("sbom:{}", sbom.display()))
        .args(["--output", "json"]);
    command
        .env("GRYPE_DB_CACHE_DIR", bare.generation)
        .env("GRYPE_DB_AUTO_UPDATE", "false");
    into_file(command, &bare.scratch.join("grype.out"))
}

fn engine(executable: &Path, scratch: &Path) -> Command {
    let mut command = Command::new(executable);
    command.env_clear().env("HOME", scratch).env("TMPDIR", scratch);
    for name in ["SYFT_CHECK_FOR_APP_UPDATE", "GRYPE_CHECK_FOR_APP_UPDATE"] {
        command.env(name, "false");
    }
    command.arg("--quiet");
    command
}

fn into_file(mut command: Command, path: &Path) -> Result<(), Error> {
    let file = File::create(path).map_err(on("create", path))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .status();
    let status = status.map_err(|source| process::spawn_error(&command, source))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed {
            program: process::name_of(&command),
            status,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_the_median_of_paired_differences() {
        let pairs = Pairs {
            requests: vec![110.0, 250.0, 130.0],
            engines: vec![100.0, 240.0, 100.0],
        };
        let figures = pairs.figures("x", "Syft");
        assert_eq!(figures[1].row()[..5], ["x.overhead", "10", "ms", "<= 15", "yes"]);
        let slow = Pairs {
            requests: vec![1031.0],
            engines: vec![1000.0],
        };
        assert_eq!(slow.figures("x", "Syft")[1].row()[3..5], ["<= 30", "NO"]);
    }
}
