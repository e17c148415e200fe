//! The writer's changes: a staged database becomes current, an older one becomes current again, a refused one is set
//! aside. Each is a list of steps on a [`super::disk::Disk`]; whatever step is the last, the pointer names a whole
//! generation.

use super::disk::{Disk, Step, remove_tree, replace_file, sync_tree};
use super::layout::{Layout, POINTER_TEMPORARY, STAGING, fresh};
use super::pointer::{GenerationName, Pointer};
use super::record::{Hold, Published};
use super::store::{DatabaseError, Generation, Staging, Store, WriteLock};
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// How much of a file is hashed at a time, bytes.
const BLOCK: usize = 1 << 20;

impl Store {
    /// Makes `staging` the current generation. Blocking, and it reads the whole database once.
    ///
    /// Everything is on disk before the pointer names it, and the pointer changes in one step. `describe` completes
    /// the record that is kept about it with what is known of the file.
    ///
    /// # Errors
    /// What the host says; the old generation then stays current, unless only the last sync has failed.
    pub fn publish(
        &self,
        lock: &WriteLock,
        staging: Staging,
        now: Timestamp,
        describe: impl FnOnce(FileFacts) -> Published,
    ) -> Result<Generation, DatabaseError> {
        let failed = || DatabaseError::io("published");
        let disk = self.disk.as_ref();
        let facts = FileFacts::of(&Layout::database(staging.path())).map_err(failed())?;
        seal(disk, staging.path()).map_err(failed())?;
        sync_tree(disk, staging.path()).map_err(failed())?;
        let name = GenerationName::new(now, Uuid::new_v4());
        let generation = Generation {
            path: self.layout.generation(&name),
            published: now,
            name,
        };
        self.write_record(lock, &self.record_of(&generation.name), &describe(facts))?;
        disk.perform(Step::Rename(staging.path(), &generation.path))
            .map_err(failed())?;
        staging.moved();
        let swapped = disk
            .perform(Step::Sync(&self.layout.generations()))
            .and_then(|()| self.swap_pointer(&generation.name, now));
        if let Err(error) = swapped {
            // What cannot be removed now is an unused directory, which a later update retires.
            let _ = remove_tree(disk, &generation.path);
            return Err(failed()(error));
        }
        disk.perform(Step::Sync(self.layout.root())).map_err(failed())?;
        Ok(generation)
    }

    /// Notes that the current generation is still the newest there is: only its time of publication changes.
    ///
    /// # Errors
    /// What the host says; the pointer is then as it was, unless only the last sync has failed.
    pub fn refresh(
        &self,
        _lock: &WriteLock,
        current: &Generation,
        now: Timestamp,
    ) -> Result<Generation, DatabaseError> {
        self.point(&current.name, now)?;
        Ok(Generation {
            published: now,
            ..current.clone()
        })
    }

    /// Makes `target` current again, and holds back the build that is current now.
    ///
    /// # Errors
    /// What the host says; the pointer is then as it was, unless only the last sync has failed.
    pub fn roll_back(
        &self,
        lock: &WriteLock,
        target: &Generation,
        hold: Option<&Hold>,
        now: Timestamp,
    ) -> Result<Generation, DatabaseError> {
        // First, so that no crash leaves a pointer that the next update moves back at once.
        if let Some(hold) = hold {
            self.write_record(lock, &self.layout.hold(), hold)?;
        }
        // It is not retired any more. Its old mark would let it go without a new waiting time when it is again.
        self.forget(lock, &self.layout.retired().join(target.name.as_str()))?;
        self.refresh(lock, target, now)
    }

    /// Keeps a refused database, the only one of its kind, with a report of why. Gives where.
    ///
    /// # Errors
    /// What the host says. The database is then gone, or kept without a report.
    pub fn set_aside<T: Serialize>(
        &self,
        lock: &WriteLock,
        staging: Staging,
        report: &T,
    ) -> Result<PathBuf, DatabaseError> {
        let failed = || DatabaseError::io("cleaned");
        let disk = self.disk.as_ref();
        let place = self.layout.rejected();
        // A directory under a writer's name is an orphan wherever this ends, and its removal may take several steps.
        if place.exists() {
            let going = self.layout.generations().join(fresh(STAGING));
            disk.perform(Step::Rename(&place, &going)).map_err(failed())?;
            remove_tree(disk, &going).map_err(failed())?;
        }
        disk.perform(Step::MakeDirectories(&place)).map_err(failed())?;
        self.write_record(lock, &place.join("report.json"), report)?;
        disk.perform(Step::Rename(staging.path(), &place.join("database")))
            .map_err(failed())?;
        staging.moved();
        Ok(place)
    }

    /// Where the record about a generation is.
    pub fn record_of(&self, name: &GenerationName) -> PathBuf {
        self.layout.published().join(name.as_str())
    }

    fn point(&self, name: &GenerationName, now: Timestamp) -> Result<(), DatabaseError> {
        self.swap_pointer(name, now)
            .and_then(|()| self.disk.perform(Step::Sync(self.layout.root())))
            .map_err(DatabaseError::io("published"))
    }

    fn swap_pointer(&self, name: &GenerationName, published: Timestamp) -> io::Result<()> {
        let temporary = fresh(POINTER_TEMPORARY);
        let pointer = Pointer {
            name: name.clone(),
            published,
        };
        replace_file(
            self.disk.as_ref(),
            &self.layout.root().join(temporary),
            &self.layout.pointer(),
            pointer.to_string().as_bytes(),
        )
    }
}

/// Lets other users into the directory and those below it, which the engine makes for itself alone, and nobody write
/// a file: a newer engine would rewrite a database that an older one has imported, in the middle of a match.
fn seal(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            seal(disk, &entry.path())?;
        } else if kind.is_file() {
            disk.perform(Step::Seal(&entry.path()))?;
        }
    }
    disk.perform(Step::OpenUp(directory))
}

/// What is known of a database file by reading it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Lower-case SHA-256; `None` when there is no file.
    pub sha256: Option<String>,
    /// Bytes.
    pub bytes: u64,
}

impl FileFacts {
    /// Reads the whole file. One that is not there has no facts: whether that is right is for the engine to say.
    ///
    /// # Errors
    /// What the host says.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        let mut hash = Sha256::new();
        let mut block = vec![0; BLOCK];
        let mut bytes = 0;
        loop {
            let read = file.read(&mut block)?;
            let Some(part) = block.get(..read).filter(|part| !part.is_empty()) else {
                break;
            };
            hash.update(part);
            bytes += read as u64;
        }
        Ok(Self {
            sha256: Some(hex::encode(hash.finalize())),
            bytes,
        })
    }
}
