//! Where things are.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Error, io};

/// The cargo profile that a verb builds the adapter with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Dependencies optimised, our own code not: builds fast, runs fast enough.
    Dev,
    /// What is shipped and measured.
    Release,
}

/// The checkout and cargo's output directory.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    cargo_output: PathBuf,
}

impl Workspace {
    /// Finds both from how this program was built and started.
    ///
    /// Cargo's output directory is the one this executable lies in, so `CARGO_TARGET_DIR` and
    /// `build.target-dir` are followed without asking cargo.
    pub(crate) fn locate() -> Result<Self, Error> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().unwrap_or(manifest).to_owned();
        let executable = env::current_exe().map_err(io("find this executable"))?;
        let cargo_output = executable
            .ancestors()
            .nth(2)
            .map_or_else(|| root.join("target"), Path::to_owned);
        Ok(Self { root, cargo_output })
    }

    /// The top of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Everything that verbs make and keep, always below the checkout: other programs look here.
    pub(crate) fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// The built engines: `syft` and `grype`.
    pub(crate) fn engines(&self) -> PathBuf {
        self.target().join("engines")
    }

    /// The independent archive reader.
    pub(crate) fn reader(&self) -> PathBuf {
        self.target().join("differential")
    }

    /// Built services that tests start: `crane`.
    pub(crate) fn services(&self) -> PathBuf {
        self.target().join("services")
    }

    /// The offline vulnerability database in the adapter's generation layout.
    pub(crate) fn database(&self) -> PathBuf {
        self.target().join("database")
    }

    /// The adapter executable of a profile (there once it was built).
    pub(crate) fn adapter(&self, profile: Profile) -> PathBuf {
        self.executable(profile, "assay-adapter")
    }

    /// An executable of the workspace in a profile (there once it was built).
    pub(crate) fn executable(&self, profile: Profile, name: &str) -> PathBuf {
        let profile = match profile {
            Profile::Dev => "debug",
            Profile::Release => "release",
        };
        self.cargo_output.join(profile).join(name)
    }
}
