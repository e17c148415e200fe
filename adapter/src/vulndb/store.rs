//! Generations on disk: readers resolve the pointer once and take no lock; the one writer stages, syncs, renames and
//! swaps the pointer. A crash at any step leaves the old pointer good.

use super::pointer::{GenerationName, Pointer, PointerError};
use super::retire::{ORPHAN_AGE, Retirement, decide};
use crate::problem::Problem;
use assay_schemas::Code;
use jiff::Timestamp;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

const POINTER: &str = ".kkrepo-db-current";
const POINTER_TEMPORARY: &str = ".kkrepo-db-current.tmp-";
const GENERATIONS: &str = "generations";
const STAGING: &str = ".staging-";
const COORDINATION: &str = ".coordination";
const LOCK: &str = ".kkrepo-db-update.lock";
const RETIRED: &str = "retired";
/// How often a writer tries for the lock.
const LOCK_POLL: Duration = Duration::from_millis(25);
/// Longest wait for the lock.
const LONGEST_LOCK_WAIT: Duration = Duration::from_hours(1);
/// Longest pointer file that is read.
const MAX_POINTER: u64 = 4096;

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
            Self::Unavailable => Code::DatabaseUnavailable,
            Self::Pointer(_) | Self::PointerUnreadable(_) | Self::GenerationMissing => {
                Code::DatabasePointerInvalid
            }
            Self::Io { .. } => Code::DatabaseCoordinationIo,
        }
    }

    fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
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
    root: PathBuf,
}

/// Proof that this process is the only writer; the lock goes with it.
#[derive(Debug)]
pub struct WriteLock {
    _file: File,
}

impl Store {
    /// Touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The current generation. Call it once per operation and stay with the answer.
    pub fn current(&self) -> Result<Generation, DatabaseError> {
        use io::Read as _;
        let file = match File::open(self.root.join(POINTER)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(DatabaseError::Unavailable),
            Err(error) => return Err(DatabaseError::PointerUnreadable(error)),
        };
        let mut text = String::new();
        file.take(MAX_POINTER)
            .read_to_string(&mut text)
            .map_err(DatabaseError::PointerUnreadable)?;
        let Pointer { name, published } = Pointer::parse(&text)?;
        let path = self.root.join(GENERATIONS).join(name.as_str());
        let is_directory = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        if !is_directory {
            return Err(DatabaseError::GenerationMissing);
        }
        Ok(Generation {
            name,
            published,
            path,
        })
    }

    /// Makes the directories of the layout.
    pub fn prepare(&self) -> Result<(), DatabaseError> {
        for directory in [
            self.root.join(GENERATIONS),
            self.root.join(COORDINATION).join(RETIRED),
        ] {
            fs::create_dir_all(directory).map_err(DatabaseError::io("prepared"))?;
        }
        Ok(())
    }

    /// Waits for the writer's lock up to `timeout`, at most an hour; `None` when another writer keeps it.
    pub async fn lock(&self, timeout: Duration) -> Result<Option<WriteLock>, DatabaseError> {
        let path = self.root.join(COORDINATION).join(LOCK);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(DatabaseError::io("locked"))?;
        let until = Instant::now() + timeout.min(LONGEST_LOCK_WAIT);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(WriteLock { _file: file })),
                Err(TryLockError::Error(error)) => return Err(DatabaseError::io("locked")(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => return Ok(None),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_POLL).await,
            }
        }
    }

    /// A private directory for the next generation; it goes with the handle unless it is published.
    pub fn stage(&self, _lock: &WriteLock) -> Result<tempfile::TempDir, DatabaseError> {
        tempfile::Builder::new()
            .prefix(&format!("{STAGING}{}", Uuid::new_v4().hyphenated()))
            .rand_bytes(0)
            .tempdir_in(self.root.join(GENERATIONS))
            .map_err(DatabaseError::io("staged"))
    }

    /// Makes `staging` the current generation.
    ///
    /// Everything is on disk before the pointer names it, and the pointer changes in one step.
    pub fn publish(
        &self,
        _lock: &WriteLock,
        staging: tempfile::TempDir,
        now: Timestamp,
    ) -> Result<Generation, DatabaseError> {
        let failed = DatabaseError::io("published");
        let generation = self.try_publish(staging, now).map_err(failed)?;
        Ok(generation)
    }

    fn try_publish(&self, staging: tempfile::TempDir, now: Timestamp) -> io::Result<Generation> {
        sync_tree(staging.path())?;
        let generations = self.root.join(GENERATIONS);
        let name = GenerationName::new(now, Uuid::new_v4());
        let path = generations.join(name.as_str());
        fs::rename(staging.path(), &path)?;
        // Nothing is left at the staging path; the handle must not look for it.
        let _ = staging.keep();
        let swapped = sync_directory(&generations).and_then(|()| {
            self.swap_pointer(&Pointer {
                name: name.clone(),
                published: now,
            })
        });
        if let Err(error) = swapped {
            // A failed clean-up leaves an unused directory, which a later update retires.
            let _ = fs::remove_dir_all(&path);
            return Err(error);
        }
        Ok(Generation {
            name,
            published: now,
            path,
        })
    }

    fn swap_pointer(&self, pointer: &Pointer) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(&format!("{POINTER_TEMPORARY}{}", Uuid::new_v4().hyphenated()))
            .rand_bytes(0)
            // Readers may run as another user.
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(&self.root)?;
        file.write_all(pointer.to_string().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.root.join(POINTER))?;
        sync_directory(&self.root)
    }

    /// Removes what nobody can use any more: old generations after their waiting time, markers without generation,
    /// and leftovers of crashed writers. Errors are left to the next time.
    pub fn clean_up(&self, _lock: &WriteLock, now: Timestamp, interval: Duration) {
        let current = self.current().map(|generation| generation.name).ok();
        let retired = self.root.join(COORDINATION).join(RETIRED);
        for (name, path) in entries(&self.root.join(GENERATIONS)) {
            if name.starts_with(STAGING) && is_orphan(&path) {
                let _ = fs::remove_dir_all(&path);
                continue;
            }
            let Some(generation) = GenerationName::parse(&name) else {
                continue;
            };
            // Without a readable pointer nothing is known to be unused.
            if current.as_ref().is_none_or(|current| *current == generation) {
                continue;
            }
            let marker = retired.join(&name);
            let text = fs::read_to_string(&marker).ok();
            match decide(text.as_deref(), now, interval) {
                Retirement::Mark => {
                    let _ = fs::write(&marker, format!("{now}\n"));
                }
                Retirement::Keep => {}
                Retirement::Delete => {
                    if fs::remove_dir_all(&path).is_ok() {
                        let _ = fs::remove_file(&marker);
                    }
                }
            }
        }
        for (name, path) in entries(&retired) {
            if !self.root.join(GENERATIONS).join(&name).exists() {
                let _ = fs::remove_file(path);
            }
        }
        for (name, path) in entries(&self.root) {
            if name.starts_with(POINTER_TEMPORARY) && is_orphan(&path) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn entries(directory: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect()
}

fn is_orphan(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .and_then(|meta| meta.modified())
        .is_ok_and(|modified| {
            SystemTime::now()
                .duration_since(modified)
                .is_ok_and(|age| age > ORPHAN_AGE)
        })
}

fn sync_tree(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_directory(directory)
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
