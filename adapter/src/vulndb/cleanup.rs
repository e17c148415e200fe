//! Removal of what nobody can use any more.

use super::Layout;
use super::disk::{Step, remove_tree, replace_file};
use super::layout::{POINTER_TEMPORARY, PROBE, RECORD_TEMPORARY, STAGING, fresh};
use super::lock::{self, Attempt};
use super::pointer::GenerationName;
use super::retire::{ORPHAN_AGE, Retirement, decide};
use super::store::{Store, WriteLock, entries};
use jiff::Timestamp;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

impl Store {
    /// Removes old generations after their waiting time unless a reader holds them, what is noted about generations
    /// that are gone, and leftovers of crashed writers. Errors are left to the next time.
    pub fn clean_up(&self, lock: &WriteLock, now: Timestamp, interval: Duration) {
        self.retire(lock, now, interval);
        self.sweep(lock);
    }

    fn retire(&self, lock: &WriteLock, now: Timestamp, interval: Duration) {
        // Without a readable pointer nothing is known to be unused.
        let Ok(current) = self.current() else { return };
        let disk = self.disk.as_ref();
        for generation in self.generations() {
            let marker = self.layout.retired().join(generation.name.as_str());
            if generation.name == current.name {
                // It may have been current before, and then not.
                let _ = remove_tree(disk, &marker);
                continue;
            }
            let text = fs::read_to_string(&marker).ok();
            match decide(text.as_deref(), now, interval) {
                Retirement::Mark => {
                    let temporary = self.layout.retired().join(fresh(RECORD_TEMPORARY));
                    let _ = replace_file(disk, &temporary, &marker, format!("{now}\n").as_bytes());
                }
                Retirement::Keep => {}
                Retirement::Delete => {
                    if self.remove_unless_read(&generation.path).is_ok_and(|gone| gone) {
                        let _ = remove_tree(disk, &marker);
                        let _ = self.forget(lock, &self.record_of(&generation.name));
                    }
                }
            }
        }
    }

    /// Whether it is gone. The lock that excludes readers is held until it is.
    fn remove_unless_read(&self, generation: &Path) -> io::Result<bool> {
        let _excluded: Option<File> = match lock::exclude(generation)? {
            Attempt::Locked(file) if lock::is_at(&file, &Layout::database(generation)) => Some(file),
            Attempt::Taken | Attempt::Locked(_) => return Ok(false),
            // Then it has waited long enough.
            Attempt::Absent | Attempt::Unsupported => None,
        };
        remove_tree(self.disk.as_ref(), generation)?;
        Ok(true)
    }

    /// Removes orphans: what a crashed writer has left, and notes about generations that are gone.
    pub fn sweep(&self, _lock: &WriteLock) {
        let disk = self.disk.as_ref();
        for (name, path) in entries(&self.layout.generations()) {
            if name.starts_with(STAGING) && is_orphan(&path) {
                let _ = remove_tree(disk, &path);
            }
        }
        for (name, path) in entries(self.layout.root()) {
            if name.starts_with(POINTER_TEMPORARY) && is_orphan(&path) {
                let _ = disk.perform(Step::RemoveFile(&path));
            }
        }
        for directory in [self.layout.retired(), self.layout.published()] {
            for (name, path) in entries(&directory) {
                // A record is written just before its generation has its name, but never outside the writer's lock.
                let is_orphan = match GenerationName::parse(&name) {
                    Some(generation) => !self.layout.generation(&generation).exists(),
                    None => name.starts_with(RECORD_TEMPORARY),
                };
                if is_orphan {
                    let _ = remove_tree(disk, &path);
                }
            }
        }
        for directory in [self.layout.coordination(), self.layout.rejected()] {
            for (name, path) in entries(&directory) {
                if name.starts_with(RECORD_TEMPORARY) || name.starts_with(PROBE) {
                    let _ = remove_tree(disk, &path);
                }
            }
        }
    }
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
