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
/// Seconds after which one execution counts as hanging, whatever else the machine does. What it may cost is held to a
/// few seconds by the harness.
const TIMEOUT_SECONDS: u32 = 120;

/// Runs one target, or all of them one after the other, for so many executions each.
pub(crate) fn run(
    workspace: &Workspace,
    target: Option<&str>,
    executions: u64,
    seed: u32,
) -> Result<(), Error> {
    if !process::is_installed(nightly(workspace, "rustc").arg("--version")) {
        return Err(Error::NightlyMissing);
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
    build(workspace, &package, &names)?;
    for name in names {
        println!("{name}");
        fuzz(&package, &name, executions, seed)?;
    }
    Ok(())
}

/// `cargo fuzz` would instrument every crate; `instrument.toml` names those that are worth it.
fn build(workspace: &Workspace, package: &Path, names: &[String]) -> Result<(), Error> {
    let mut command = nightly(workspace, "cargo");
    command.arg("--config").arg(package.join("instrument.toml"));
    command.args(["-Z", "profile-rustflags", "build", "--release", "--manifest-path"]);
    command.arg(package.join("Cargo.toml"));
    command.arg("--target-dir").arg(package.join("target"));
    for name in names {
        command.args(["--bin", name]);
    }
    process::run(&mut command)
}

fn fuzz(package: &Path, name: &str, executions: u64, seed: u32) -> Result<(), Error> {
    let (corpus, artifacts) = (
        package.join("corpus").join(name),
        package.join("artifacts").join(name),
    );
    fs::create_dir_all(&artifacts).map_err(on("create", &artifacts))?;
    let mut command = Command::new(package.join("target/release").join(name));
    command.current_dir(package).arg(&corpus).args([
        format!("-runs={executions}"),
        format!("-seed={seed}"),
        format!("-max_len={MAX_INPUT_BYTES}"),
        format!("-rss_limit_mb={MAX_RESIDENT_MIB}"),
        format!("-timeout={TIMEOUT_SECONDS}"),
        format!("-artifact_prefix={}/", artifacts.display()),
        "-print_final_stats=1".to_owned(),
    ]);
    let dictionary = package.join("dictionaries").join(format!("{name}.dict"));
    if dictionary.exists() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    process::run(&mut command)
}

/// This program runs under the pinned toolchain; instrumentation needs a nightly one.
fn nightly(workspace: &Workspace, program: &str) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(workspace.root()).env_remove("CARGO");
    command.args(["run", "nightly", program]);
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
