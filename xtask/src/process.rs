//! Running other programs: cargo, go, the engines. No shell is involved anywhere.

use std::env;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::workspace::{Profile, Workspace};

/// The cargo that runs us, in the checkout.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace.root());
    // Left over from `cargo run` of this program; build scripts must not take it for theirs.
    command
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_MANIFEST_PATH");
    command
}

/// Builds the adapter executable.
pub(crate) fn build_adapter(workspace: &Workspace, profile: Profile) -> Result<(), Error> {
    let mut command = cargo(workspace);
    command.args([
        "build",
        "--quiet",
        "--package",
        "assay-adapter",
        "--bin",
        "assay-adapter",
    ]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    run(&mut command)
}

/// Builds and runs one of the fixture programs.
pub(crate) fn fixture_program(workspace: &Workspace, name: &str) -> Command {
    let mut command = cargo(workspace);
    command.args([
        "run",
        "--quiet",
        "--package",
        "assay-fixtures",
        "--bin",
        name,
        "--",
    ]);
    command
}

/// Runs to the end with our own standard streams, without standard input.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|source| spawn_error(command, source))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed {
            program: name_of(command),
            status,
        })
    }
}

/// Runs to the end and gives its standard output; its standard error stays ours.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| spawn_error(command, source))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::Failed {
            program: name_of(command),
            status: output.status,
        })
    }
}

/// Whether a program can be started at all (`program --version` or the like).
pub(crate) fn is_installed(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) => status.success(),
        Err(error) => error.kind() != ErrorKind::NotFound && error.kind() != ErrorKind::PermissionDenied,
    }
}

/// The error of a program that did not start.
pub(crate) fn spawn_error(command: &Command, source: std::io::Error) -> Error {
    Error::Spawn {
        program: name_of(command),
        source,
    }
}

/// Program and arguments, for messages.
pub(crate) fn name_of(command: &Command) -> String {
    let mut name = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        name.push(' ');
        name.push_str(&argument.to_string_lossy());
    }
    name
}
