//! The private directory in which the cataloguers find the files that they read.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Longest path component and longest path that are laid out under their own name, bytes.
const MAX_COMPONENT_BYTES: usize = 240;
const MAX_PATH_BYTES: usize = 2048;
/// Directory for what cannot have its own name: a second entry of the same path, or too long a path.
const RENAMED: &str = "renamed!";

/// Bounds of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutLimits {
    /// Most files.
    pub files: u64,
    /// Most bytes of one file.
    pub file_bytes: u64,
    /// Most bytes of all files.
    pub total_bytes: u64,
}

impl Default for LayoutLimits {
    /// 50,000 files, 1 GiB each, 4 GiB together.
    fn default() -> Self {
        Self {
            files: 50_000,
            file_bytes: 1 << 30,
            total_bytes: 4 << 30,
        }
    }
}

/// Writes files below its root and nowhere else.
///
/// **Invariant:** only this type writes there, it makes nothing but directories and new regular files, and no name has
/// a component that is empty, `.`, `..` or an engine's configuration; so nothing it opens can lead outside.
#[derive(Debug)]
pub(super) struct Layout {
    root: PathBuf,
    limits: LayoutLimits,
    files: u64,
    bytes: u64,
    refused: u64,
    renamed: BTreeMap<String, String>,
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Writing {
    file: File,
    path: PathBuf,
    /// Path below the layout's root.
    pub(super) name: String,
    bytes: u64,
}

impl Layout {
    pub(super) fn new(root: &Path, limits: LayoutLimits) -> Self {
        Self {
            root: root.to_owned(),
            limits,
            files: 0,
            bytes: 0,
            refused: 0,
            renamed: BTreeMap::new(),
        }
    }

    /// Makes the root, so that it can be read even when nothing is in it.
    pub(super) fn ensure_root(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.root)
    }

    /// Opens a new file for what is at `location` of the artifact. `None` when it must not or cannot have a place.
    pub(super) fn create(&mut self, location: &str) -> io::Result<Option<Writing>> {
        if self.files >= self.limits.files {
            self.refused += 1;
            return Ok(None);
        }
        if !is_safe(location) {
            self.refused += 1;
            return Ok(None);
        }
        let fits =
            location.len() <= MAX_PATH_BYTES && location.split('/').all(|c| c.len() <= MAX_COMPONENT_BYTES);
        let mut opened = if fits { self.open(location)? } else { None };
        if opened.is_none() {
            let name = self.other_name(location);
            opened = match name {
                Some(name) => {
                    let writing = self.open(&name)?;
                    if writing.is_some() {
                        self.renamed.insert(name, location.to_owned());
                    }
                    writing
                }
                None => None,
            };
        }
        if opened.is_none() {
            self.refused += 1;
        }
        Ok(opened)
    }

    /// The last components, which the cataloguers' globs look at, below a number of their own.
    fn other_name(&self, location: &str) -> Option<String> {
        let mut tail: Vec<&str> = location
            .rsplit('/')
            .take(4)
            .take_while(|c| c.len() <= MAX_COMPONENT_BYTES)
            .collect();
        tail.reverse();
        (!tail.is_empty()).then(|| format!("{RENAMED}/{}/{}", self.renamed.len(), tail.join("/")))
    }

    /// `None` when something is there already.
    fn open(&mut self, name: &str) -> io::Result<Option<Writing>> {
        let path = self.root.join(name);
        let taken = |e: &io::Error| {
            matches!(
                e.kind(),
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
            )
        };
        if let Some(parent) = path.parent() {
            match DirBuilder::new().recursive(true).mode(0o700).create(parent) {
                Err(e) if taken(&e) => return Ok(None),
                other => other?,
            }
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(&path);
        match file {
            Err(e) if taken(&e) => Ok(None),
            Err(e) => Err(e),
            Ok(file) => {
                self.files += 1;
                Ok(Some(Writing {
                    file,
                    path,
                    name: name.to_owned(),
                    bytes: 0,
                }))
            }
        }
    }

    /// Appends. `false` when a bound was passed: the file is gone and the rest of it is not wanted.
    pub(super) fn append(&mut self, writing: &mut Writing, bytes: &[u8]) -> io::Result<bool> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let file_bytes = writing.bytes.saturating_add(length);
        let total = self.bytes.saturating_add(length);
        if file_bytes > self.limits.file_bytes || total > self.limits.total_bytes {
            self.refused += 1;
            self.discard(writing)?;
            return Ok(false);
        }
        writing.file.write_all(bytes)?;
        writing.bytes = file_bytes;
        self.bytes = total;
        Ok(true)
    }

    /// Takes a file out again of which not all is there.
    pub(super) fn discard(&mut self, writing: &Writing) -> io::Result<()> {
        self.bytes = self.bytes.saturating_sub(writing.bytes);
        self.files = self.files.saturating_sub(1);
        std::fs::remove_file(&writing.path)
    }

    /// Writes a small file of our own making.
    pub(super) fn write(&mut self, name: &str, content: &[u8]) -> io::Result<bool> {
        let Some(mut writing) = self.open(name)? else {
            self.refused += 1;
            return Ok(false);
        };
        self.append(&mut writing, content)
    }

    /// Gives the artifact itself a name in the layout, without copying it when that is possible.
    pub(super) fn link(&mut self, artifact: &Path, name: &str) -> io::Result<()> {
        let to = self.root.join(name);
        self.ensure_root()?;
        if std::fs::hard_link(artifact, &to).is_err() {
            let mut source = File::open(artifact)?;
            let mut target = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&to)?;
            io::copy(&mut source, &mut target)?;
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(std::fs::metadata(&to)?.len());
        Ok(())
    }

    /// Removes everything that was laid out.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.root) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        self.ensure_root()?;
        *self = Self::new(&self.root.clone(), self.limits);
        Ok(())
    }

    pub(super) fn files(&self) -> u64 {
        self.files
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Files of interest that have no place in the layout.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Layout path to location inside the artifact, where they differ.
    pub(super) fn into_renamed(self) -> BTreeMap<String, String> {
        self.renamed
    }

    pub(super) fn rename(&mut self, name: &str, location: &str) {
        self.renamed.insert(name.to_owned(), location.to_owned());
    }
}

fn is_safe(location: &str) -> bool {
    !location.contains('\0')
        && location
            .split('/')
            .all(|c| !matches!(c, "" | "." | "..") && !c.starts_with(".syft") && !c.starts_with(".grype"))
}

#[cfg(test)]
mod tests {
    use super::{Layout, LayoutLimits, is_safe};

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        for bad in [
            "",
            "/a",
            "a//b",
            "../a",
            "a/../b",
            "a/.",
            "a\0b",
            ".syft.yaml",
            "x/.grype/a",
        ] {
            assert!(!is_safe(bad), "{bad:?}");
        }
        assert!(is_safe("a/b!/c"));
    }

    #[test]
    fn a_second_entry_of_a_path_gets_a_place_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut layout = Layout::new(dir.path(), LayoutLimits::default());
        let mut place = |location: &str, content: &[u8]| {
            let mut w = layout.create(location).unwrap().unwrap();
            assert!(layout.append(&mut w, content).unwrap());
            w.name
        };
        assert_eq!(place("a/go.mod", b"1"), "a/go.mod");
        assert_eq!(place("a/go.mod", b"2"), "renamed!/0/a/go.mod");
        assert_eq!(
            place("a/go.mod/x", b"3"),
            "renamed!/1/a/go.mod/x",
            "a file where a directory should be"
        );
        assert_eq!(
            place(&format!("{}/go.mod", "d".repeat(300)), b"4"),
            "renamed!/2/go.mod"
        );
        assert_eq!(std::fs::read(dir.path().join("a/go.mod")).unwrap(), b"1");
        assert_eq!((layout.files(), layout.bytes(), layout.refused()), (4, 4, 0));
        assert_eq!(
            layout.into_renamed().get("renamed!/0/a/go.mod").unwrap(),
            "a/go.mod"
        );
    }

    #[test]
    fn bounds_hold_exactly() {
        let dir = tempfile::tempdir().unwrap();
        let limits = LayoutLimits {
            files: 2,
            file_bytes: 3,
            total_bytes: 5,
        };
        let mut layout = Layout::new(dir.path(), limits);
        let mut a = layout.create("a").unwrap().unwrap();
        assert!(layout.append(&mut a, b"123").unwrap());
        let mut b = layout.create("b").unwrap().unwrap();
        assert!(layout.append(&mut b, b"12").unwrap());
        assert!(layout.create("c").unwrap().is_none());
        assert!(!layout.append(&mut b, b"3").unwrap(), "the sixth byte");
        assert!(!dir.path().join("b").exists());
        assert_eq!((layout.files(), layout.bytes(), layout.refused()), (1, 3, 2));
    }
}
