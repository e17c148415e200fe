//! How a real tool makes an archive.

use crate::tree::Tree;
use assay_adapter::archive::Profile;
use std::path::Path;
use std::process::{Command, Output};

/// One way to make an archive.
#[derive(Clone)]
pub(crate) struct Recipe {
    /// The archive's suffix, as Syft would meet it.
    pub(crate) suffix: &'static str,
    /// What is packed.
    pub(crate) trees: &'static [Tree],
    /// Commands for `sh` in the folder; `$OUT` is the archive.
    pub(crate) script: String,
    /// The rules for links.
    pub(crate) profile: Profile,
}

/// A recipe for these trees.
pub(crate) fn recipe(suffix: &'static str, trees: &'static [Tree], script: impl Into<String>) -> Recipe {
    Recipe {
        suffix,
        trees,
        script: script.into(),
        profile: Profile::Package,
    }
}

impl Recipe {
    /// Hard links are ordinary in it.
    pub(crate) fn with_hard_links(mut self) -> Self {
        self.profile = Profile::Conda;
        self
    }

    /// Makes the archive of a tree.
    ///
    /// # Errors
    /// What the tool says when it is missing or fails. `.ci/run` says which packages have the tools.
    pub(crate) fn make(&self, tree: Tree) -> Result<Vec<u8>, String> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        tree.make(&folder);
        let out = place.path().join("archive");
        let output = self.run(&folder, &out);
        if output.status.success()
            && let Ok(archive) = std::fs::read(&out)
        {
            return Ok(archive);
        }
        let said = [output.stdout, output.stderr].concat();
        Err(format!("not made: {}", String::from_utf8_lossy(&said)))
    }

    fn run(&self, folder: &Path, out: &Path) -> Output {
        Command::new("sh")
            .args(["-euc", &self.script])
            .current_dir(folder)
            .env("OUT", out)
            .env("TMP", folder.parent().unwrap())
            .env("LC_ALL", "C.UTF-8")
            .env("SOURCE_DATE_EPOCH", "1000000000")
            .output()
            .unwrap()
    }
}
