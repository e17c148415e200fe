//! One private directory per run. Its names are ours; it is removed when the run ends, whatever happened.

use crate::problem::Problem;
use assay_schemas::Code;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Prefixes of the directories that this program makes in its work directory.
pub const PREFIXES: &[&str] = &["catalog-", "match-", "oci-", "version-", "db-update-", "scan-"];

/// The work directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a private directory in the work directory")]
pub struct WorkspaceError(#[from] io::Error);

impl WorkspaceError {
    /// The error of the file system.
    pub fn into_inner(self) -> io::Error {
        self.0
    }
}

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        Self::new(Code::WorkspaceIo, error.to_string()).caused_by(error)
    }
}

/// A private directory, mode 0700, removed on drop without following links.
#[derive(Debug)]
pub struct Workspace {
    directory: TempDir,
}

impl Workspace {
    /// Makes a fresh directory below `work_directory`, which is made if absent.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn create(work_directory: &Path, prefix: &str) -> Result<Self, WorkspaceError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(work_directory)?;
        let directory = tempfile::Builder::new()
            .prefix(prefix)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(work_directory)?;
        Ok(Self { directory })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Creates a file that must not exist yet, mode 0600, for reading and writing.
    ///
    /// # Errors
    /// Those of the file system; an existing name is an error.
    pub fn create_file(&self, name: &str) -> io::Result<(fs::File, PathBuf)> {
        let path = self.path().join(name);
        let file = fs::File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok((file, path))
    }

    /// Removes the directory off the async threads and waits for it, so that what follows can rely on it.
    ///
    /// Dropping does the same in place; use this where a large tree may stand.
    pub async fn remove(self) {
        let path = self.path().to_owned();
        let removed = tokio::task::spawn_blocking(move || self.directory.close()).await;
        if !matches!(removed, Ok(Ok(()))) {
            tracing::warn!(directory = %path.display(), "a workspace could not be removed");
        }
    }

    /// Creates a directory, mode 0700.
    ///
    /// # Errors
    /// Those of the file system; an existing name is an error.
    pub fn create_directory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::Workspace;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_workspace_is_private_and_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("a/b");
        let workspace = Workspace::create(&work, "catalog-").unwrap();
        assert_eq!(
            workspace.path().metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        let (_, file) = workspace.create_file("artifact").unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(workspace.create_file("artifact").is_err());
        std::os::unix::fs::symlink(root.path(), workspace.path().join("link")).unwrap();
        drop(workspace);
        assert_eq!(work.read_dir().unwrap().count(), 0);
        assert!(root.path().is_dir());
    }
}
