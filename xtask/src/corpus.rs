//! `cargo xtask corpus URL`: the handed corpus against a running adapter.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::service::CREDENTIAL;
use crate::workspace::Workspace;

/// The runner's own name for the credential.
const RUNNER_CREDENTIAL: &str = "CORPUS_CREDENTIAL";

/// Hands over to the runner in the corpus folder; its closing line is ours.
pub(crate) fn run(
    workspace: &Workspace,
    url: &str,
    folder: Option<PathBuf>,
    rest: &[String],
) -> Result<(), Error> {
    let folder = folder.unwrap_or_else(|| workspace.root().join("../shared/corpus"));
    let runner = folder.join("run.py");
    if !runner.is_file() {
        return Err(Error::CorpusMissing(folder));
    }
    let credential = env::var(CREDENTIAL).or_else(|_| env::var(RUNNER_CREDENTIAL));
    let credential = credential.map_err(|_| Error::CredentialMissing(CREDENTIAL))?;
    // By variable, not by argument: arguments are visible to every process of the machine.
    let mut command = Command::new("python3");
    command
        .arg(runner)
        .arg(url)
        .args(rest)
        .env(RUNNER_CREDENTIAL, credential);
    process::run(&mut command)
}
