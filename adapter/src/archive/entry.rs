//! What the gate says about each entry, and who listens.

use std::io;

/// The container that holds an entry directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// ZIP family.
    Zip,
    /// Any tar dialect.
    Tar,
    /// Unix `ar`, so also deb.
    Ar,
    /// CPIO, so also an RPM payload.
    Cpio,
    /// A single compressed stream that is no archive: its content is the only entry.
    Compressed,
}

/// The kind of an entry that passed the kind rules. Anything else never reaches a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind<'a> {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link that stays inside; a fact that nothing follows.
    Symlink {
        /// Target as written.
        target: &'a str,
    },
    /// A hard link that stays inside; a fact that nothing follows.
    HardLink {
        /// Target as written.
        target: &'a str,
    },
}

/// One entry, after all rules about its name and kind have passed and before its content is read.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Path inside its container: `/`-separated, relative, without `.` or `..` components and without a trailing
    /// slash. Names that are not UTF-8 are shown with replacement characters.
    pub path: &'a str,
    /// Paths of the containers around it, outermost first; empty at the root of the artifact.
    pub within: &'a [String],
    /// What holds it.
    pub container: Container,
    /// What it is.
    pub kind: EntryKind<'a>,
    /// Size that the container declares, bytes. A claim, not a fact: never allocate by it.
    pub declared_size: Option<u64>,
}

/// Whether a sink wants to see an entry's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Not needed; the gate still reads and charges it.
    Skip,
    /// Every byte is handed over while the gate reads it.
    Content,
}

/// Listens to the gate. The gate creates no file itself.
///
/// For each file: `begin`, then for [`Interest::Content`] any number of `chunk` and one `end`. An archive inside the
/// artifact is announced like any file; if it is opened, its entries follow after its own `end`. One that turns out to be
/// broken, and may be, ends with `abandon`.
pub trait EntrySink {
    /// A new entry. For anything but a file the answer has no effect.
    fn begin(&mut self, entry: &Entry<'_>) -> Interest;

    /// The same for a file of which the first bytes are known: at least [`SNIFF_BYTES`](super::sniff::SNIFF_BYTES), or
    /// all if it has fewer. For a sink that can tell by them that it does not want the rest.
    fn begin_file(&mut self, entry: &Entry<'_>, head: &[u8]) -> Interest {
        let _ = head;
        self.begin(entry)
    }

    /// Whether an engine gets the file that was announced last as it is, itself or inside something else that it
    /// opens. Asked when its content has been handed over (or was not wanted). An archive that no engine gets is not
    /// refused for being broken or unsafe.
    fn is_handed_on(&self) -> bool {
        true
    }

    /// The next bytes of the entry's content.
    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The entry's content is complete and its checksum, where it has one, is right.
    fn end(&mut self) -> io::Result<()>;

    /// The archive that was being read is given up: nothing more of it follows, and an entry whose content has begun
    /// gets no `end`. What was announced before stays announced. Nothing to do for a sink that keeps no content.
    fn abandon(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The header of an RPM, before its payload's entries.
    fn rpm(&mut self, within: &[String], metadata: &rpm::PackageMetadata);
}

/// A sink that wants nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Discard;

impl EntrySink for Discard {
    fn begin(&mut self, _: &Entry<'_>) -> Interest {
        Interest::Skip
    }

    fn chunk(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn rpm(&mut self, _: &[String], _: &rpm::PackageMetadata) {}
}
