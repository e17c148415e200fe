//! Names in the database directory. Those without a note are the contract's, and volumes are exchanged by them.

use super::pointer::GenerationName;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// How names of directories of a writer begin that are not published.
pub const STAGING: &str = ".staging-";
/// How names of pointer files begin that are not yet the pointer.
pub const POINTER_TEMPORARY: &str = ".kkrepo-db-current.tmp-";
/// How names of files begin in the directories of our own that are not yet in place.
pub const RECORD_TEMPORARY: &str = ".tmp-";

/// How names of directories begin in which a writer tries the file system.
pub const PROBE: &str = ".probe-";

/// A name that nobody else has, behind one of the beginnings above.
pub fn fresh(beginning: &str) -> String {
    format!("{beginning}{}", Uuid::new_v4().hyphenated())
}

/// The paths of one database directory.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Of the directory `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that names the current generation.
    pub fn pointer(&self) -> PathBuf {
        self.root.join(".kkrepo-db-current")
    }

    /// Where generations and staging directories lie.
    pub fn generations(&self) -> PathBuf {
        self.root.join("generations")
    }

    /// The directory of one generation: a cache directory of the engine.
    pub fn generation(&self, name: &GenerationName) -> PathBuf {
        self.generations().join(name.as_str())
    }

    /// The database file in a generation or a staging directory.
    pub fn database(generation: &Path) -> PathBuf {
        generation.join("6").join("vulnerability.db")
    }

    /// What writers share.
    pub fn coordination(&self) -> PathBuf {
        self.root.join(".coordination")
    }

    /// The file that the writer holds locked.
    pub fn lock(&self) -> PathBuf {
        self.coordination().join(".kkrepo-db-update.lock")
    }

    /// When each generation was first seen as not current.
    pub fn retired(&self) -> PathBuf {
        self.coordination().join("retired")
    }

    /// What was published under each name, one JSON file each. Ours; others leave it alone.
    pub fn published(&self) -> PathBuf {
        self.coordination().join("published")
    }

    /// The build that was rolled back from. Ours.
    pub fn hold(&self) -> PathBuf {
        self.coordination().join("hold.json")
    }

    /// When the source may be asked again after it had refused. Ours.
    pub fn back_off(&self) -> PathBuf {
        self.coordination().join("back-off.json")
    }

    /// The last database that was refused, with the report of why. Ours.
    pub fn rejected(&self) -> PathBuf {
        self.coordination().join("rejected")
    }
}
