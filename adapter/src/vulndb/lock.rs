//! Locks between processes: the writer's, and those that readers hold on what they read.
//!
//! Locks of an open file (`flock`) end with the process, so nothing of a crash has to be cleaned up. The contract's
//! other writers lock by byte ranges, which Linux keeps apart from the former: the writer takes both kinds.

use super::layout::{Layout, PROBE};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a try for a lock gave.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours as long as the file is open.
    Locked(File),
    /// Somebody else has one that excludes it.
    Taken,
    /// There is nothing to lock.
    Absent,
    /// The file system has no locks.
    Unsupported,
}

/// A reader's lock on the database of a generation. Opens for reading only, so it works on a read-only mount.
///
/// # Errors
/// What the host says and [`Attempt`] does not.
pub fn share(generation: &Path) -> io::Result<Attempt> {
    let file = match File::open(Layout::database(generation)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Attempt::Absent),
        Err(error) => return Err(error),
    };
    attempt(file.try_lock_shared(), file)
}

/// The lock that nobody can have beside a reader's.
///
/// # Errors
/// As [`share`].
pub fn exclude(generation: &Path) -> io::Result<Attempt> {
    let path = Layout::database(generation);
    // Network file systems want it open for writing. Not being allowed to is no reason not to ask.
    let opened = File::options().read(true).write(true).open(&path);
    let file = match opened.or_else(|_| File::open(&path)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Attempt::Absent),
        Err(error) => return Err(error),
    };
    attempt(file.try_lock(), file)
}

fn attempt(tried: Result<(), TryLockError>, file: File) -> io::Result<Attempt> {
    match tried {
        Ok(()) => Ok(Attempt::Locked(file)),
        Err(TryLockError::WouldBlock) => Ok(Attempt::Taken),
        Err(TryLockError::Error(error)) if is_unsupported(&error) => Ok(Attempt::Unsupported),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether this error says that there are no locks here.
pub fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [
        Errno::ENOLCK,
        Errno::EOPNOTSUPP,
        Errno::ENOSYS,
        Errno::EINVAL,
        Errno::EROFS,
        Errno::EBADF,
    ];
    error
        .raw_os_error()
        .is_some_and(|code| unsupported.into_iter().any(|errno| errno as i32 == code))
}

/// Whether the open file is the one at this path.
pub fn is_at(file: &File, path: &Path) -> bool {
    let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => identity(open) == identity(there),
        _ => false,
    }
}

/// Takes both kinds of the writer's lock; whether they were free.
///
/// # Errors
/// What the host says.
pub fn write(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // It belongs to the open file, as the other one does.
    match fcntl(file, FcntlArg::F_OFD_SETLK(&whole_file()?)) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => {
            file.unlock()?;
            Ok(false)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// A lock for writing from the beginning to the end, whatever that will be.
fn whole_file() -> io::Result<libc::flock> {
    let short = |value: libc::c_int| libc::c_short::try_from(value).map_err(io::Error::other);
    Ok(libc::flock {
        l_type: short(libc::F_WRLCK)?,
        l_whence: short(libc::SEEK_SET)?,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    })
}

/// What a file system lacks for generations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsuitable {
    /// A file that is renamed over another one is not that file afterwards.
    #[error("renaming does not replace a file in one step")]
    Rename,
    /// Two holders of the same lock.
    #[error("locks do not exclude each other")]
    Lock,
    /// Calls for locks fail.
    #[error("it has no locks")]
    NoLocks,
}

/// The calls that a file system is tried with.
#[derive(Debug, Clone, Copy)]
struct Calls {
    rename: fn(&Path, &Path) -> io::Result<()>,
    /// A shared lock, or one that excludes.
    lock: fn(&File, bool) -> Result<(), TryLockError>,
}

const HOST: Calls = Calls {
    rename: |from, to| fs::rename(from, to),
    lock: |file, shared| {
        if shared {
            file.try_lock_shared()
        } else {
            file.try_lock()
        }
    },
};

/// Tries in the writable directory `scratch` what generations rely on: renaming over a file, and locks that exclude.
///
/// # Errors
/// What the host says; what it does wrong is the value.
pub fn probe(scratch: &Path) -> io::Result<Result<(), Unsuitable>> {
    probe_with(HOST, scratch)
}

fn probe_with(calls: Calls, scratch: &Path) -> io::Result<Result<(), Unsuitable>> {
    let directory = tempfile::Builder::new().prefix(PROBE).tempdir_in(scratch)?;
    let outcome = probe_in(calls, directory.path());
    directory.close()?;
    outcome
}

fn probe_in(calls: Calls, directory: &Path) -> io::Result<Result<(), Unsuitable>> {
    let (old, new) = (directory.join("old"), directory.join("new"));
    fs::write(&old, "old")?;
    fs::write(&new, "new")?;
    let renamed = File::open(&new)?;
    (calls.rename)(&new, &old)?;
    if !is_at(&renamed, &old) || fs::read(&old)? != b"new" || new.exists() {
        return Ok(Err(Unsuitable::Rename));
    }
    let open = || File::options().read(true).write(true).open(&old);
    let (one, two) = (open()?, open()?);
    for shared in [true, false] {
        match (calls.lock)(&one, shared) {
            Ok(()) => {}
            Err(TryLockError::Error(error)) if is_unsupported(&error) => {
                return Ok(Err(Unsuitable::NoLocks));
            }
            Err(TryLockError::Error(error)) => return Err(error),
            // Nobody else knows of this file.
            Err(TryLockError::WouldBlock) => return Ok(Err(Unsuitable::Lock)),
        }
        let excluded = matches!((calls.lock)(&two, false), Err(TryLockError::WouldBlock));
        let beside = (calls.lock)(&two, true).is_ok();
        two.unlock()?;
        one.unlock()?;
        if !excluded || beside != shared {
            return Ok(Err(Unsuitable::Lock));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::{
        Attempt, Calls, HOST, Unsuitable, exclude, is_at, probe, probe_with, share, whole_file, write,
    };
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use std::fs::{self, File, TryLockError};

    #[test]
    fn readers_exclude_the_remover_and_not_each_other() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(share(root.path()).unwrap(), Attempt::Absent));
        assert!(matches!(exclude(root.path()).unwrap(), Attempt::Absent));
        fs::create_dir(root.path().join("6")).unwrap();
        let path = root.path().join("6/vulnerability.db");
        fs::write(&path, "x").unwrap();
        let Attempt::Locked(one) = share(root.path()).unwrap() else {
            panic!("not locked");
        };
        let two = share(root.path()).unwrap();
        assert!(matches!(two, Attempt::Locked(_)));
        assert!(is_at(&one, &path));
        assert!(matches!(exclude(root.path()).unwrap(), Attempt::Taken));
        drop((one, two));
        let alone = exclude(root.path()).unwrap();
        assert!(matches!(alone, Attempt::Locked(_)));
        assert!(matches!(share(root.path()).unwrap(), Attempt::Taken));
        fs::remove_file(&path).unwrap();
        let Attempt::Locked(file) = alone else {
            panic!("not locked");
        };
        assert!(!is_at(&file, &path));
    }

    #[test]
    fn a_file_system_of_this_host_is_suitable() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(probe(root.path()).unwrap(), Ok(()));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn file_systems_that_will_not_do_are_told() {
        let copies = Calls {
            rename: |from, to| fs::copy(from, to).and_then(|_| fs::remove_file(from)),
            ..HOST
        };
        let leaves = Calls {
            rename: |from, to| fs::remove_file(to).and_then(|()| fs::hard_link(from, to)),
            ..HOST
        };
        let ignores = Calls {
            lock: |_, _| Ok(()),
            ..HOST
        };
        let knows_no_sharing = Calls {
            lock: |file, _| file.try_lock(),
            ..HOST
        };
        let has_none = Calls {
            lock: |_, _| Err(TryLockError::Error(Errno::ENOLCK.into())),
            ..HOST
        };
        for (calls, want) in [
            (copies, Unsuitable::Rename),
            (leaves, Unsuitable::Rename),
            (ignores, Unsuitable::Lock),
            (knows_no_sharing, Unsuitable::Lock),
            (has_none, Unsuitable::NoLocks),
        ] {
            let root = tempfile::tempdir().unwrap();
            assert_eq!(probe_with(calls, root.path()).unwrap(), Err(want));
            assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        }
        let broken = Calls {
            lock: |_, _| Err(TryLockError::Error(Errno::EIO.into())),
            ..HOST
        };
        assert!(probe_with(broken, tempfile::tempdir().unwrap().path()).is_err());
    }

    /// A lock by byte range belongs to a process, and ends when that closes any descriptor of the file.
    #[test]
    fn a_writer_with_a_lock_by_byte_range_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        fs::write(&path, "").unwrap();
        let open = || File::options().write(true).open(&path).unwrap();
        let other = open();
        fcntl(&other, FcntlArg::F_SETLK(&whole_file().unwrap())).unwrap();
        let refused = open();
        assert!(!write(&refused).unwrap());
        drop((other, refused));
        let ours = open();
        assert!(write(&ours).unwrap());
        assert!(!write(&open()).unwrap());
        assert!(fcntl(open(), FcntlArg::F_SETLK(&whole_file().unwrap())).is_err());
    }
}
