//! Everything that the writer changes on disk goes through here, one step at a time, so that tests can stop it between
//! any two of them and let any of them fail.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

/// One change, about as large as a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Makes a directory and those above it; what is there stays.
    MakeDirectories(&'a Path),
    /// Makes a directory that only this user can enter and that must not exist.
    MakePrivate(&'a Path),
    /// Lets other users read a directory.
    OpenUp(&'a Path),
    /// Lets all users read a file and nobody write it.
    Seal(&'a Path),
    /// Makes an empty file that must not exist.
    Create(&'a Path),
    /// Adds bytes to a file.
    Append(&'a Path, &'a [u8]),
    /// Puts a file or directory safely on disk.
    Sync(&'a Path),
    /// Gives a file or directory another name; a file in its place goes.
    Rename(&'a Path, &'a Path),
    /// Removes a file or link.
    RemoveFile(&'a Path),
    /// Removes an empty directory.
    RemoveDirectory(&'a Path),
}

/// What performs steps.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Performs one.
    ///
    /// # Errors
    /// What the host says.
    fn perform(&self, step: Step<'_>) -> io::Result<()>;
}

/// The disk of this host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Host;

impl Disk for Host {
    fn perform(&self, step: Step<'_>) -> io::Result<()> {
        match step {
            Step::MakeDirectories(path) => fs::create_dir_all(path),
            Step::MakePrivate(path) => fs::DirBuilder::new().mode(0o700).create(path),
            // Readers may run as another user.
            Step::OpenUp(path) => fs::set_permissions(path, fs::Permissions::from_mode(0o755)),
            Step::Seal(path) => fs::set_permissions(path, fs::Permissions::from_mode(0o444)),
            Step::Create(path) => File::options()
                .write(true)
                .create_new(true)
                .mode(0o644)
                .open(path)
                .map(drop),
            Step::Append(path, bytes) => File::options().append(true).open(path)?.write_all(bytes),
            Step::Sync(path) => File::open(path)?.sync_all(),
            Step::Rename(from, to) => fs::rename(from, to),
            Step::RemoveFile(path) => fs::remove_file(path),
            Step::RemoveDirectory(path) => fs::remove_dir(path),
        }
    }
}

/// A disk that several parts of the store use.
pub type SharedDisk = Arc<dyn Disk>;

/// Syncs every file and directory below `directory`, and itself last.
///
/// # Errors
/// Of the first step that fails.
pub fn sync_tree(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sync_tree(disk, &entry.path())?;
        } else if kind.is_file() {
            disk.perform(Step::Sync(&entry.path()))?;
        }
    }
    disk.perform(Step::Sync(directory))
}

/// Removes a directory with all that is in it, or a file. Links are removed, not followed. Nothing there is fine.
///
/// # Errors
/// Of the first step that fails.
pub fn remove_tree(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !meta.is_dir() {
        return disk.perform(Step::RemoveFile(path));
    }
    for entry in fs::read_dir(path)? {
        remove_tree(disk, &entry?.path())?;
    }
    disk.perform(Step::RemoveDirectory(path))
}

/// Puts a small file in place in one step: `temporary` is written, synced and renamed over `target`. Other readers see
/// the old content or the new one. `temporary` does not stay when something fails.
///
/// # Errors
/// Of the first step that fails; `target` is then as it was.
pub fn replace_file(disk: &dyn Disk, temporary: &Path, target: &Path, content: &[u8]) -> io::Result<()> {
    let written = disk
        .perform(Step::Create(temporary))
        .and_then(|()| disk.perform(Step::Append(temporary, content)))
        .and_then(|()| disk.perform(Step::Sync(temporary)))
        .and_then(|()| disk.perform(Step::Rename(temporary, target)));
    if written.is_err() {
        // It may not even have been made; the first error says more.
        let _ = disk.perform(Step::RemoveFile(temporary));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::{Disk as _, Host, Step, remove_tree, replace_file};
    use std::fs;

    #[test]
    fn trees_are_removed_without_following_links() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        fs::write(tree.join("a/b/c"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("a/link")).unwrap();
        remove_tree(&Host, &tree).unwrap();
        remove_tree(&Host, &tree).unwrap();
        assert!(!tree.exists() && outside.join("kept").exists());
    }

    #[test]
    fn a_file_is_replaced_or_left() {
        let root = tempfile::tempdir().unwrap();
        let (new, target) = (root.path().join("new"), root.path().join("target"));
        replace_file(&Host, &new, &target, b"one").unwrap();
        replace_file(&Host, &new, &target, b"two").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        assert!(!new.exists());
        assert!(replace_file(&Host, &new, &root.path().join("absent/x"), b"x").is_err());
        assert!(!new.exists());
        assert!(Host.perform(Step::RemoveDirectory(root.path())).is_err());
    }
}
