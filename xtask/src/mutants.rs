//! `cargo xtask mutants`: mutation tests of the gate, in a crate that holds nothing else.
//!
//! The gate needs nothing of the adapter but `run` and `problem`. Alone it builds in seconds, and a mutant is built
//! some thousand times.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, on};
use crate::process;
use crate::workspace::Workspace;

/// The pure core: rules that say what passes.
const PURE: [&str; 10] = [
    "budget",
    "declared",
    "level",
    "links",
    "path",
    "sniff",
    "stream",
    "tar_header",
    "tar_sparse",
    "zip_directory",
];

/// What the gate is built with, in the versions of the workspace.
const DEPENDENCIES: [&str; 16] = [
    "ar",
    "bzip2",
    "flate2",
    "hex",
    "proptest",
    "rpm",
    "sha2",
    "tar",
    "tempfile",
    "thiserror",
    "tokio",
    "tokio-util",
    "unicode-normalization",
    "xz2",
    "zip",
    "zstd",
];

/// Seconds after which the tests of a mutant count as endless.
const TIMEOUT_SECONDS: &str = "60";

/// Mutates these files of the gate (names without `.rs`), or all of the pure core; what is behind `--` goes to
/// `cargo mutants`.
pub(crate) fn run(workspace: &Workspace, files: &[String], rest: &[String]) -> Result<(), Error> {
    let mut version = process::cargo(workspace);
    if !process::is_installed(version.args(["mutants", "--version"])) {
        return Err(Error::MutantsMissing);
    }
    let home = workspace.target().join("mutants");
    let folder = home.join("gate");
    make_crate(workspace, &folder)?;
    let mut command = process::cargo(workspace);
    command.args(["mutants", "--in-place", "--timeout", TIMEOUT_SECONDS, "--dir"]);
    command.arg(&folder).arg("--output").arg(&home);
    let pure = PURE.map(str::to_owned);
    for file in if files.is_empty() { &pure } else { files } {
        command.args(["--file", &format!("src/archive/{file}.rs")]);
    }
    command.args(rest).args(["--", "--lib"]);
    // What was built stays for the next run; properties that fail at all fail soon.
    command
        .env("CARGO_TARGET_DIR", home.join("target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("PROPTEST_CASES", "16");
    process::run(&mut command)
}

/// Copies the sources and writes a manifest around them.
fn make_crate(workspace: &Workspace, folder: &Path) -> Result<(), Error> {
    let read = |path: &Path| fs::read_to_string(path).map_err(on("read", path));
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(on("write", &path))
    };
    let root = workspace.root();
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(on("remove", folder))?;
    }
    fs::create_dir_all(folder.join("src")).map_err(on("create", folder))?;
    // Versions and profiles: everything behind the members and lints of the workspace.
    let manifest = read(&root.join("Cargo.toml"))?;
    let tables = manifest
        .find("[workspace.dependencies]")
        .and_then(|at| manifest.get(at..))
        .unwrap_or_default();
    let mut text = format!(
        "[package]\nname = \"gate\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [dependencies]\nassay-schemas = {{ path = \"{}\" }}\n",
        root.join("schemas").display()
    );
    for name in DEPENDENCIES {
        text.extend([name, ".workspace = true\n"]);
    }
    write("Cargo.toml", format!("{text}\n{tables}"))?;
    write("Cargo.lock", read(&root.join("Cargo.lock"))?)?;
    write(
        "src/lib.rs",
        "#![allow(dead_code)]\npub mod archive;\npub mod problem;\npub mod run;\n".to_owned(),
    )?;
    let adapter = root.join("adapter/src");
    for name in ["problem.rs", "run.rs"] {
        write(&format!("src/{name}"), read(&adapter.join(name))?)?;
    }
    process::run(
        Command::new("cp")
            .arg("-R")
            .arg(adapter.join("archive"))
            .arg(folder.join("src")),
    )
}
