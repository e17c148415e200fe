//! `cargo xtask bench oci`: a large image from a registry of this machine, against skopeo on the same registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::figure::{Figure, median, number};
use super::overhead::timed;
use super::upload::memory_kib;
use crate::engines::Engines;
use crate::error::{Error, on};
use crate::http::Client;
use crate::registries::{self, DockerRegistry};
use crate::service::{Adapter, Options, credential, free_address};
use crate::workspace::{Profile, Workspace};
use crate::{adapter, process};

/// Large layers of the image, which all platforms share.
const LAYERS: u64 = 5;
/// Compressed bytes of each.
const LAYER_BYTES: u64 = 100_000_000;
/// Pulls and scans, in turns.
const ROUNDS: usize = 5;
/// A service that settled before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);
/// Where the image lies in the registry.
const REPOSITORY: &str = "bench/large";

/// Measures on a release build with scripted engines: what they would do is not staging.
pub(crate) fn measure(workspace: &Workspace) -> Result<Vec<Figure>, Error> {
    registries::require(registries::DOCKER_REGISTRY)?;
    registries::require(registries::SKOPEO)?;
    let scratch = workspace.target().join("run/bench-oci");
    fs::create_dir_all(&scratch).map_err(on("create", &scratch))?;
    let registry = DockerRegistry::start(&scratch.join("registry"))?;
    let image = Image::stored(workspace, &registry, &scratch)?;

    let (credential, _) = credential();
    let mut options = adapter::options(
        workspace,
        free_address()?,
        Profile::Release,
        credential,
        "bench-oci",
    )?;
    let stand_ins = scratch.join("scripted");
    options.engines = scripted(workspace, &stand_ins)?;
    options.log = Some(scratch.join("adapter.log"));
    options.settings = vec![
        ("OCI_PLAIN_HTTP_REGISTRIES", registry.address().to_string()),
        // Their script lies beside them.
        ("SANDBOX_READABLE", stand_ins.display().to_string()),
        // The scripted engines' database has no age.
        ("DB_MAX_AGE", "0".to_owned()),
    ];
    let bench = Bench {
        registry,
        image,
        layout: scratch.join("pulled"),
    };
    bench.figures(&options)
}

/// The pushed image.
struct Image {
    /// Both platforms.
    index: String,
    /// `linux/amd64` alone.
    manifest: String,
}

impl Image {
    /// Pushes the image, unless an earlier run did.
    fn stored(workspace: &Workspace, registry: &DockerRegistry, scratch: &Path) -> Result<Self, Error> {
        let note = scratch.join(format!("image-{LAYERS}-{LAYER_BYTES}"));
        let text = if let Ok(text) = fs::read_to_string(&note) {
            text
        } else {
            eprintln!("making an image of {} MB", LAYERS * LAYER_BYTES / 1_000_000);
            let mut push = process::fixture_program(workspace, "push-image");
            push.arg(registry.url()).arg(REPOSITORY);
            push.args([LAYERS.to_string(), LAYER_BYTES.to_string()]);
            let text = process::output(&mut push)?;
            fs::write(&note, &text).map_err(on("write", &note))?;
            text
        };
        let mut lines = text.lines().map(str::to_owned);
        match (lines.next(), lines.next()) {
            (Some(index), Some(manifest)) => Ok(Self { index, manifest }),
            _ => Err(Error::Unexpected {
                what: "the digests of the image",
                why: text,
            }),
        }
    }
}

/// Engines that answer at once and find nothing.
fn scripted(workspace: &Workspace, directory: &Path) -> Result<Engines, Error> {
    let mut build = process::cargo(workspace);
    build.args([
        "build",
        "--quiet",
        "--package",
        "assay-fixtures",
        "--bin",
        "fake-engine",
    ]);
    process::run(&mut build)?;
    fs::create_dir_all(directory).map_err(on("create", directory))?;
    let script = directory.join("fake-engine.json");
    fs::write(&script, "{}").map_err(on("write", &script))?;
    let program = workspace.executable(Profile::Dev, "fake-engine");
    let stand_in = |name: &str| -> Result<PathBuf, Error> {
        let path = directory.join(name);
        fs::copy(&program, &path).map_err(on("copy", &program))?;
        Ok(path)
    };
    Ok(Engines {
        syft: stand_in("syft")?,
        grype: stand_in("grype")?,
    })
}

struct Bench {
    registry: DockerRegistry,
    image: Image,
    /// Where skopeo pulls to.
    layout: PathBuf,
}

impl Bench {
    fn figures(&self, options: &Options) -> Result<Vec<Figure>, Error> {
        let mut adapter = Adapter::start(options)?;
        adapter.wait_ready(Duration::from_millis(10))?;
        thread::sleep(SETTLE);
        let idle = memory_kib(adapter.id(), "VmRSS")? / 1024.0;
        // One unmeasured round: the registry's files come from memory afterwards.
        self.pull()?;
        self.scan(adapter.client(), &self.image.manifest, &["linux/amd64"])?;

        let (mut pulls, mut ones, mut twos) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            eprintln!("measuring: round {round} of {ROUNDS}");
            pulls.push(timed(&mut || self.pull())?);
            ones.push(timed(&mut || {
                self.scan(adapter.client(), &self.image.manifest, &["linux/amd64"])
            })?);
            let both = ["linux/amd64", "linux/arm64"];
            twos.push(timed(&mut || {
                self.scan(adapter.client(), &self.image.index, &both)
            })?);
        }
        let peak = memory_kib(adapter.id(), "VmHWM")? / 1024.0;
        adapter.stop()?;

        let speeds = quotients(&pulls, &ones);
        let costs = quotients(&twos, &ones);
        let seconds = |times: &[f64]| format!("{} s", number(median(times) / 1000.0));
        Ok(vec![
            Figure::new("oci.stage.wall", median(&ones), "ms").beside(format!(
                "whole request with scripted engines; skopeo copy {}",
                seconds(&pulls)
            )),
            Figure::new("oci.stage.speed_vs_skopeo", median(&speeds), "x")
                .at_least(0.8)
                .beside(format!("skopeo copy {}, {ROUNDS} pairs", seconds(&pulls))),
            Figure::new("oci.stage.two_platforms_vs_one", median(&costs), "x")
                .at_most(1.15)
                .beside(format!("one {}, two {}", seconds(&ones), seconds(&twos))),
            Figure::new("oci.rss.peak", peak, "MiB")
                .at_most(64.0)
                .beside(format!("idle {} MiB", number(idle))),
        ])
    }

    /// What anybody would do with the same image: fetch, check and store it.
    fn pull(&self) -> Result<(), Error> {
        if self.layout.exists() {
            fs::remove_dir_all(&self.layout).map_err(on("remove", &self.layout))?;
        }
        let mut skopeo = Command::new(registries::SKOPEO);
        skopeo.args(["--insecure-policy", "copy", "--quiet", "--src-tls-verify=false"]);
        skopeo.arg(format!(
            "docker://{}/{REPOSITORY}@{}",
            self.registry.address(),
            self.image.manifest
        ));
        skopeo.arg(format!("oci:{}:large", self.layout.display()));
        process::output(&mut skopeo).map(drop)
    }

    fn scan(&self, client: &Client, digest: &str, platforms: &[&str]) -> Result<(), Error> {
        let run = uuid::Uuid::new_v4().to_string();
        let request = json!({
            "apiVersion": "v1", "runId": run, "idempotencyKey": run, "registryUrl": self.registry.url(),
            "repository": REPOSITORY, "manifestDigest": digest, "requiredPlatforms": platforms,
            "scopedBearerToken": "not-asked-for",
            "limits": {
                "maxInputBytes": 1_u64 << 30, "maxArchiveEntries": 1_000_000, "maxUncompressedBytes": 8_u64 << 30,
                "maxSingleFileBytes": 1_u64 << 30, "maxNestedDepth": 5, "timeoutSeconds": 600,
            },
        });
        let answer: Value = client.oci_scan(&request)?;
        let scanned = answer["scannedPlatforms"].as_array().map_or(0, Vec::len);
        if scanned == platforms.len() {
            Ok(())
        } else {
            Err(Error::Unexpected {
                what: "the scanned platforms",
                why: answer["missingPlatforms"].to_string(),
            })
        }
    }
}

fn quotients(above: &[f64], below: &[f64]) -> Vec<f64> {
    above
        .iter()
        .zip(below)
        .map(|(above, below)| above / below)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_of_pairs() {
        assert_eq!(quotients(&[2.0, 9.0], &[1.0, 3.0]), [2.0, 3.0]);
    }
}
