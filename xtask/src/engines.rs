//! `cargo xtask engines`: Syft and Grype, built from the pins in `fixtures/engines`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::go_program::Program;
use crate::process;
use crate::workspace::Workspace;

/// The two executables.
#[derive(Debug, Clone)]
pub(crate) struct Engines {
    /// The catalog engine.
    pub(crate) syft: PathBuf,
    /// The matching engine.
    pub(crate) grype: PathBuf,
}

const SYFT: Program = Program {
    name: "syft",
    folder: "engines/syft",
    module: "github.com/anchore/syft",
    version_variable: "main.version",
    version: reported_version,
};
const GRYPE: Program = Program {
    name: "grype",
    folder: "engines/grype",
    module: "github.com/anchore/grype",
    version_variable: "main.version",
    version: reported_version,
};

/// Makes sure that both engines are there and are the pinned ones.
///
/// Reads a few small files and asks go for its version when there is nothing to do.
pub(crate) fn prepare(workspace: &Workspace) -> Result<Engines, Error> {
    let syft_pin = SYFT.pinned(workspace, SYFT.module)?;
    let inner_pin = GRYPE.pinned(workspace, SYFT.module)?;
    if syft_pin != inner_pin {
        return Err(Error::PinsDiffer {
            syft: syft_pin,
            grype: inner_pin,
        });
    }
    let directory = workspace.engines();
    Ok(Engines {
        syft: SYFT.build(workspace, &directory)?,
        grype: GRYPE.build(workspace, &directory)?,
    })
}

fn reported_version(executable: &Path) -> Result<String, Error> {
    #[derive(serde::Deserialize)]
    struct Version {
        version: String,
    }
    let text = process::output(Command::new(executable).args(["version", "--output", "json"]))?;
    let version: Version = serde_json::from_str(&text).map_err(|source| Error::Json {
        what: format!("the version answer of {}", executable.display()),
        source,
    })?;
    Ok(version.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engine_modules_agree_on_syft() {
        let workspace = Workspace::locate().unwrap();
        let alone = SYFT.pinned(&workspace, SYFT.module).unwrap();
        let inside = GRYPE.pinned(&workspace, SYFT.module).unwrap();
        assert_eq!(alone, inside);
    }
}
