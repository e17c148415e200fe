//! `cargo xtask bench gate`: inspection beside bare decompression, overlapped with uploads, and whole requests beside
//! stock Syft.

mod requests;
mod uploads;

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::figure::{Figure, number, told};
use super::own_benchmark;
use crate::adapter;
use crate::error::{Error, on};
use crate::service::{credential, free_address};
use crate::workspace::{Profile, Workspace};

/// Files that only the requests are measured with.
const REQUESTS: &str = "request.";

/// What the adapter's own benchmark says about a sample.
#[derive(Debug, Deserialize)]
struct Pass {
    name: String,
    bare_seconds: f64,
    gate_seconds: f64,
    bytes: f64,
    entries: f64,
    peak_bytes: f64,
}

/// Measures on release builds, one part (`passes`, `uploads`, `requests`) after the other; `only` picks by name. The
/// samples of all of them are those of the passes, which have to run first on a new machine.
pub(super) fn measure(workspace: &Workspace, only: Option<&str>) -> Result<Vec<Figure>, Error> {
    let is_wanted = |part: &str| only.is_none_or(|only| part.contains(only));
    let scratch = workspace.target().join("run/bench");
    fs::create_dir_all(&scratch).map_err(on("create", &scratch))?;
    let mut figures = Vec::new();
    if is_wanted("passes") {
        eprintln!("measuring: passes through the gate");
        figures.extend(told(passes(workspace, &scratch)?));
    }
    let (credential, _) = credential();
    let mut options = adapter::options(workspace, free_address()?, Profile::Release, credential, "bench")?;
    options.log = Some(scratch.join("adapter.log"));
    if is_wanted("uploads") {
        eprintln!("measuring: from the last byte to the engine");
        figures.extend(told(uploads::measure(&options, &scratch)?));
    }
    if is_wanted("requests") {
        eprintln!("measuring: whole requests against stock Syft");
        figures.extend(told(requests::measure(&options, &scratch)?));
    }
    Ok(figures)
}

fn passes(workspace: &Workspace, scratch: &Path) -> Result<Vec<Figure>, Error> {
    let passes: Vec<Pass> = own_benchmark(workspace, "gate", &[scratch.as_os_str()])?;
    let alone = passes.iter().filter(|pass| !pass.name.starts_with(REQUESTS));
    Ok(alone.flat_map(Pass::figures).collect())
}

impl Pass {
    fn figures(&self) -> [Figure; 2] {
        let speed = |seconds: f64| number(self.bytes / (1024.0 * 1024.0) / seconds);
        let beside = format!(
            "bare {} MiB/s, gate {} MiB/s, {} entries, CPU time",
            speed(self.bare_seconds),
            speed(self.gate_seconds),
            number(self.entries)
        );
        [
            Figure::new(
                format!("gate.{}.speed_vs_bare", self.name),
                self.bare_seconds / self.gate_seconds,
                "x",
            )
            .at_least(0.85)
            .beside(beside),
            Figure::new(
                format!("gate.{}.peak_memory", self.name),
                self.peak_bytes / (1024.0 * 1024.0),
                "MiB",
            )
            .at_most(32.0)
            .beside("without the window of the decompressor"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Pass;

    #[test]
    fn a_pass_is_held_against_the_bare_one() {
        let line = r#"{"name":"zip","bare_seconds":0.8,"gate_seconds":1.0,"bytes":1048576.0,"entries":3,"peak_bytes":34603008}"#;
        let pass: Pass = serde_json::from_str(line).unwrap();
        let [speed, memory] = pass.figures();
        assert_eq!(
            speed.row()[..5],
            ["gate.zip.speed_vs_bare", "0.8", "x", ">= 0.85", "NO"]
        );
        assert_eq!(
            memory.row()[..5],
            ["gate.zip.peak_memory", "33", "MiB", "<= 32", "NO"]
        );
    }
}
