//! The independent archive reader that tests compare the gate with, built from `fixtures/differential`.

use std::fs;
use std::path::PathBuf;

use crate::error::{Error, on};
use crate::go_program::go_command;
use crate::process;
use crate::workspace::Workspace;

/// Builds the reader; go itself knows what is stale.
pub(crate) fn prepare(workspace: &Workspace) -> Result<PathBuf, Error> {
    let directory = workspace.reader();
    fs::create_dir_all(&directory).map_err(on("create", &directory))?;
    let executable = directory.join("differential");
    let module = workspace.root().join("fixtures").join("differential");
    let mut go = go_command(&module);
    go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o"]);
    process::run(go.arg(&executable).arg("."))?;
    Ok(executable)
}
