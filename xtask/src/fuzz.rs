//! `cargo xtask fuzz`: the fuzz targets, from their first inputs on.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, on};
use crate::process;
use crate::workspace::Workspace;

/// Longest input, bytes; small inputs are fast, and the limits that they are held to are as small.
const MAX_INPUT_BYTES: u32 = 8 << 10;
/// Most resident memory, MiB: what the decompressors of C libraries allocate is not counted by the harness.
const MAX_RESIDENT_MIB: u32 = 1024;
/// Seconds after which one execution counts as hanging.
const TIMEOUT_SECONDS: u32 = 20;

/// Runs one target, or all of them one after the other, for so many executions each.
pub(crate) fn run(
    workspace: &Workspace,
    target: Option<&str>,
    executions: u64,
    seed: u32,
) -> Result<(), Error> {
    if !process::is_installed(nightly(workspace).args(["fuzz", "--version"])) {
        return Err(Error::FuzzMissing);
    }
    let package = workspace.root().join("adapter/fuzz");
    let names = match target {
        Some(name) => vec![name.to_owned()],
        None => targets(&package.join("fuzz_targets"))?,
    };
    let mut seeds = process::cargo(workspace);
    seeds.args([
        "run",
        "--quiet",
        "--package",
        "assay-adapter",
        "--example",
        "fuzz-seeds",
    ]);
    process::run(&mut seeds)?;
    for name in names {
        println!("{name}");
        let mut command = nightly(workspace);
        command.args(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir"]);
        command.arg(&package).arg(&name);
        command.args([
            "--".to_owned(),
            format!("-runs={executions}"),
            format!("-seed={seed}"),
            format!("-max_len={MAX_INPUT_BYTES}"),
            format!("-rss_limit_mb={MAX_RESIDENT_MIB}"),
            format!("-timeout={TIMEOUT_SECONDS}"),
            "-print_final_stats=1".to_owned(),
        ]);
        process::run(&mut command)?;
    }
    Ok(())
}

/// This program runs under the pinned toolchain; instrumentation needs a nightly one.
fn nightly(workspace: &Workspace) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(workspace.root()).env_remove("CARGO");
    command.args(["run", "nightly", "cargo"]);
    command
}

fn targets(folder: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(on("read", folder))? {
        let path = entry.map_err(on("read", folder))?.path();
        let name = path.file_stem().map(OsString::from).unwrap_or_default();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
