//! The registries that image tests and benchmarks start: one built from its pin, one from the distribution.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::go_program::Program;
use crate::process;
use crate::workspace::Workspace;

/// The variable by which tests find [`Registries::directory`].
pub(crate) const DIRECTORY_VARIABLE: &str = "ASSAY_SERVICES";

/// go-containerregistry's server, as `crane registry serve`: plain HTTP, keeps what it is given, checks little of it.
const CRANE: Program = Program {
    name: "crane",
    folder: "services/crane",
    module: "github.com/google/go-containerregistry",
    version_variable: "github.com/google/go-containerregistry/cmd/crane/cmd.Version",
    version: reported_version,
};

/// Debian package and program of the registry that most hosts run: TLS, bearer tokens, checks what is pushed.
pub(crate) const DOCKER_REGISTRY: &str = "docker-registry";

/// What is there to be started.
#[derive(Debug)]
pub(crate) struct Registries {
    /// Holds the programs that were built.
    pub(crate) directory: PathBuf,
    /// The crane executable.
    pub(crate) crane: PathBuf,
}

/// Builds what is built, and fails when something is missing that must be installed.
pub(crate) fn prepare(workspace: &Workspace) -> Result<Registries, Error> {
    require(DOCKER_REGISTRY)?;
    let directory = workspace.services();
    let crane = CRANE.build(workspace, &directory)?;
    Ok(Registries { directory, crane })
}

/// Fails when a program of a Debian package of the same name is not installed.
pub(crate) fn require(program: &'static str) -> Result<(), Error> {
    if process::is_installed(Command::new(program).arg("--version")) {
        Ok(())
    } else {
        Err(Error::NotInstalled(program))
    }
}

fn reported_version(executable: &Path) -> Result<String, Error> {
    let text = process::output(Command::new(executable).arg("version"))?;
    Ok(text.trim().to_owned())
}
