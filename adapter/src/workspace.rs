//! One private directory per run. Its names are ours; it is removed when the run ends, whatever happened.

use crate::problem::Problem;
use assay_schemas::Code;
use nix::sys::statvfs::statvfs;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The file by which a run's directory is known for one of ours. A lock on it, which ends with the process, says that
/// the run is alive.
const MARKER: &str = ".assay-run";

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

/// The scratch space cannot take a run.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// No directory can be made in it.
    #[error(transparent)]
    Unusable(#[from] WorkspaceError),
    /// Its volume cannot be asked.
    #[error("the volume of the work directory cannot be asked for its space")]
    Unknown(#[source] io::Error),
    /// Its volume is full, or nearly so.
    #[error("the work directory has {free} bytes free, {least} are needed")]
    Full {
        /// Bytes free.
        free: u64,
        /// Bytes needed.
        least: u64,
    },
}

impl From<RoomError> for Problem {
    fn from(error: RoomError) -> Self {
        let code = match error {
            RoomError::Unusable(_) | RoomError::Unknown(_) => Code::WorkspaceIo,
            RoomError::Full { .. } => Code::ScratchExhausted,
        };
        Self::new(code, error.to_string()).caused_by(error)
    }
}

/// Whether a directory can be made in the work directory, and `least` bytes are free on its volume. Blocking.
///
/// # Errors
/// [`RoomError`].
pub fn check_room(work_directory: &Path, least: u64) -> Result<(), RoomError> {
    let probe = Workspace::create(work_directory, "version-")?;
    let volume = statvfs(probe.path()).map_err(|errno| RoomError::Unknown(errno.into()))?;
    let free = volume.blocks_available().saturating_mul(volume.fragment_size());
    if free < least {
        return Err(RoomError::Full { free, least });
    }
    Ok(())
}

/// A private directory, mode 0700, removed on drop without following links.
#[derive(Debug)]
pub struct Workspace {
    directory: TempDir,
    _alive: fs::File,
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
        let alive = fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(directory.path().join(MARKER))?;
        alive.lock()?;
        Ok(Self {
            directory,
            _alive: alive,
        })
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

/// Removes what runs have left whose process was killed: directories with one of our prefixes and our marker, unless
/// the marker is locked by a process that lives. Everything else in the work directory is somebody else's.
pub fn sweep(work_directory: &Path) {
    let Ok(entries) = fs::read_dir(work_directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name
            .to_str()
            .is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        let Ok(marker) = fs::File::options()
            .write(true)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(path.join(MARKER))
        else {
            continue;
        };
        if marker.try_lock().is_err() {
            continue;
        }
        match fs::remove_dir_all(&path) {
            Ok(()) => tracing::info!(directory = %path.display(), "removed what a killed run has left"),
            Err(error) => {
                tracing::warn!(directory = %path.display(), %error, "what a killed run has left cannot be removed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MARKER, RoomError, Workspace, check_room, sweep};
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

    #[test]
    fn room_is_a_directory_and_free_bytes() {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        check_room(&work, 1).unwrap();
        assert_eq!(work.read_dir().unwrap().count(), 0, "it leaves nothing");
        let error = check_room(&work, u64::MAX).unwrap_err();
        assert!(
            matches!(error, RoomError::Full { free, least: u64::MAX } if free > 0),
            "{error:?}"
        );
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = check_room(&file, 1).unwrap_err();
        assert!(matches!(error, RoomError::Unusable(_)), "{error:?}");
    }

    #[test]
    fn only_what_dead_runs_left_is_swept() {
        let root = tempfile::tempdir().unwrap();
        let alive = Workspace::create(root.path(), "catalog-").unwrap();
        let made = |name: &str, marked: bool| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.join("layout")).unwrap();
            if marked {
                std::fs::write(path.join(MARKER), "").unwrap();
            }
            path
        };
        let dead = made("match-abc", true);
        let kept = [made("catalog-unmarked", false), made("others-marked", true)];
        let linked = root.path().join("catalog-link");
        std::os::unix::fs::symlink(&kept[1], &linked).unwrap();
        let elsewhere = made("scan-linked-marker", false);
        std::os::unix::fs::symlink(kept[1].join(MARKER), elsewhere.join(MARKER)).unwrap();
        sweep(root.path());
        assert!(!dead.exists());
        for path in kept
            .iter()
            .map(AsRef::as_ref)
            .chain([alive.path(), &linked, &elsewhere])
        {
            assert!(path.exists(), "{}", path.display());
        }
        sweep(&root.path().join("absent"));
    }
}
