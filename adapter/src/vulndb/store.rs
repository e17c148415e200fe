//! The database directory: what is current, who may write, and where the next generation is made. Readers resolve the
//! pointer once and hold what it names ([`super::pin`]); the one writer stages, syncs, renames and swaps the pointer
//! ([`super::publish`]). A crash at any step leaves the old pointer good.

use super::Layout;
use super::disk::{Host, SharedDisk, Step, remove_tree, replace_file};
use super::layout::{RECORD_TEMPORARY, STAGING, fresh};
use super::lock::{self, Unsuitable};
use super::pointer::{GenerationName, Pointer, PointerError};
use crate::problem::Problem;
use assay_schemas::Code;
use jiff::Timestamp;
use nix::fcntl::OFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a writer tries for the lock.
const LOCK_POLL: Duration = Duration::from_millis(25);
/// Longest wait for the lock.
const LONGEST_LOCK_WAIT: Duration = Duration::from_hours(1);
/// Longest pointer file that is read.
const MAX_POINTER: u64 = 4096;
/// Longest record that is read.
const MAX_RECORD: u64 = 64 << 10;

/// What can be wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Nothing was ever published.
    #[error("no vulnerability database is published")]
    Unavailable,
    /// The pointer file is malformed.
    #[error("the vulnerability database pointer is invalid")]
    Pointer(#[from] PointerError),
    /// The pointer file cannot be read.
    #[error("the vulnerability database pointer is unreadable")]
    PointerUnreadable(#[source] io::Error),
    /// The pointer names a directory that is not there.
    #[error("the vulnerability database pointer names a missing generation")]
    GenerationMissing,
    /// There is no generation of this name.
    #[error("there is no vulnerability database generation {0}")]
    GenerationUnknown(String),
    /// The directory is where generations would not be safe.
    #[error("the vulnerability database directory is on a file system that will not do: {0}")]
    Unsuitable(#[from] Unsuitable),
    /// The directory cannot be coordinated or written.
    #[error("the vulnerability database directory could not be {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the host said.
        #[source]
        source: io::Error,
    },
}

impl DatabaseError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Unavailable | Self::GenerationUnknown(_) => Code::DatabaseUnavailable,
            Self::Pointer(_) | Self::PointerUnreadable(_) | Self::GenerationMissing => {
                Code::DatabasePointerInvalid
            }
            Self::Unsuitable(_) | Self::Io { .. } => Code::DatabaseCoordinationIo,
        }
    }

    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        Self::new(error.code(), error.to_string()).caused_by(error)
    }
}

/// A published, immutable database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// Its name; also its identity for caches.
    pub name: GenerationName,
    /// When it was published.
    pub published: Timestamp,
    /// The engine's cache directory.
    pub path: PathBuf,
}

/// The database directory.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) layout: Layout,
    pub(super) disk: SharedDisk,
}

/// Proof that this process is the only writer; the lock goes with the last of its clones.
#[derive(Debug, Clone)]
pub struct WriteLock {
    _file: Arc<File>,
}

/// A private directory for a database to be. It goes with the handle unless it is published or set aside.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    disk: SharedDisk,
}

impl Staging {
    /// The directory: a cache directory of the engine.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory is no longer there under its name.
    pub(super) fn moved(mut self) {
        self.path = PathBuf::new();
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // What cannot be removed now is an orphan that a later update removes.
            let _ = remove_tree(self.disk.as_ref(), &self.path);
        }
    }
}

impl Store {
    /// Touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::with_disk(root, Arc::new(Host))
    }

    /// A store whose changes are performed by `disk`.
    pub fn with_disk(root: impl Into<PathBuf>, disk: SharedDisk) -> Self {
        Self {
            layout: Layout::new(root),
            disk,
        }
    }

    /// Where everything is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What the pointer names now. To read it, [`Store::pin`] it.
    ///
    /// # Errors
    /// When nothing is published, or the pointer cannot be followed.
    pub fn current(&self) -> Result<Generation, DatabaseError> {
        let file = match open_regular(&self.layout.pointer()) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(DatabaseError::Unavailable),
            Err(error) => return Err(DatabaseError::PointerUnreadable(error)),
        };
        let mut text = String::new();
        file.take(MAX_POINTER)
            .read_to_string(&mut text)
            .map_err(DatabaseError::PointerUnreadable)?;
        let Pointer { name, published } = Pointer::parse(&text)?;
        let path = self.layout.generation(&name);
        if !is_directory(&path) {
            return Err(DatabaseError::GenerationMissing);
        }
        Ok(Generation {
            name,
            published,
            path,
        })
    }

    /// All generations that are there, newest first by the time in their names.
    pub fn generations(&self) -> Vec<Generation> {
        let mut found: Vec<Generation> = entries(&self.layout.generations())
            .into_iter()
            .filter_map(|(name, path)| {
                let name = GenerationName::parse(&name)?;
                is_directory(&path).then_some(Generation {
                    published: name.published()?,
                    name,
                    path,
                })
            })
            .collect();
        found.sort_by(|a, b| (b.published, &b.name).cmp(&(a.published, &a.name)));
        found
    }

    /// The generation of this name.
    ///
    /// # Errors
    /// [`DatabaseError::GenerationUnknown`].
    pub fn generation(&self, name: &str) -> Result<Generation, DatabaseError> {
        self.generations()
            .into_iter()
            .find(|generation| generation.name.as_str() == name)
            .ok_or_else(|| DatabaseError::GenerationUnknown(crate::problem::sanitize(name, 100)))
    }

    /// Makes the directories of the layout.
    pub fn prepare(&self) -> Result<(), DatabaseError> {
        for directory in [
            self.layout.generations(),
            self.layout.retired(),
            self.layout.published(),
        ] {
            self.disk
                .perform(Step::MakeDirectories(&directory))
                .map_err(DatabaseError::io("prepared"))?;
        }
        Ok(())
    }

    /// Waits for the writer's lock up to `timeout`, at most an hour; `None` when another writer keeps it.
    pub async fn lock(&self, timeout: Duration) -> Result<Option<WriteLock>, DatabaseError> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.layout.lock())
            .map_err(DatabaseError::io("locked"))?;
        let until = Instant::now() + timeout.min(LONGEST_LOCK_WAIT);
        loop {
            match lock::write(&file) {
                Ok(true) => {
                    return Ok(Some(WriteLock {
                        _file: Arc::new(file),
                    }));
                }
                Err(error) if lock::is_unsupported(&error) => return Err(Unsuitable::NoLocks.into()),
                Err(error) => return Err(DatabaseError::io("locked")(error)),
                Ok(false) if Instant::now() >= until => return Ok(None),
                Ok(false) => tokio::time::sleep(LOCK_POLL).await,
            }
        }
    }

    /// Tries whether generations would be safe here: renames that replace, locks that exclude.
    ///
    /// # Errors
    /// [`DatabaseError::Unsuitable`] when not.
    pub fn probe(&self, _lock: &WriteLock) -> Result<(), DatabaseError> {
        lock::probe(&self.layout.coordination()).map_err(DatabaseError::io("tried"))??;
        Ok(())
    }

    /// A private directory for the next generation.
    pub fn stage(&self, _lock: &WriteLock) -> Result<Staging, DatabaseError> {
        let name = fresh(STAGING);
        let path = self.layout.generations().join(name);
        self.disk
            .perform(Step::MakePrivate(&path))
            .map_err(DatabaseError::io("staged"))?;
        Ok(Staging {
            path,
            disk: Arc::clone(&self.disk),
        })
    }

    /// A record of our own; `None` when it is absent or unreadable.
    pub fn record<T: DeserializeOwned>(&self, path: &Path) -> Option<T> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_RECORD).read_to_end(&mut bytes))
            .ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes a record of our own in one step.
    ///
    /// # Errors
    /// What the host says.
    pub fn write_record<T: Serialize>(
        &self,
        _lock: &WriteLock,
        path: &Path,
        record: &T,
    ) -> Result<(), DatabaseError> {
        let failed = DatabaseError::io("noted in");
        let text =
            serde_json::to_vec_pretty(record).map_err(|error| DatabaseError::io("noted in")(error.into()))?;
        let directory = path.parent().unwrap_or(self.layout.root());
        let temporary = directory.join(fresh(RECORD_TEMPORARY));
        replace_file(self.disk.as_ref(), &temporary, path, &text).map_err(failed)
    }

    /// Forgets a record; one that is not there is fine.
    ///
    /// # Errors
    /// What the host says.
    pub fn forget(&self, _lock: &WriteLock, path: &Path) -> Result<(), DatabaseError> {
        remove_tree(self.disk.as_ref(), path).map_err(DatabaseError::io("cleaned"))
    }
}

pub(super) fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Opens a file for reading, and nothing that would keep its reader waiting, such as a pipe.
fn open_regular(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        ))
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
