//! The walk through an artifact: what all format readers share.

use super::budget::{Budget, GateLimits, Overrun};
use super::compressed::Decoder;
use super::entry::{Container, Entry, EntryKind, EntrySink, Interest};
use super::error::{GateError, Place};
use super::path::{self, Rules, SafePath};
use super::sniff::{self, Format, SNIFF_BYTES};
use super::stream::{FileWindow, Source, Stream};
use super::{ar, cpio, rpm_package, tar_reader, zip_directory, zip_reader};
use crate::run::RunContext;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Which rules about kinds of entries apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Any package: links that stay inside are facts, hard links are refused outside system packages.
    Package,
    /// As [`Profile::Package`], but hard links inside are accepted: Conda payloads consist of them.
    Conda,
    /// An image layer: links, devices and whiteouts are ordinary at its top level.
    Layer,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    /// What the artifact's own bytes are. A ZIP behind a prefix is [`Format::Zip`].
    pub format: Format,
    /// What its decompressed bytes are, if it is one compressed stream; otherwise the same as `format`.
    pub content: Format,
    /// Entries over all levels.
    pub entries: u64,
    /// Bytes over all levels, counted where they leave a decompressor or a plain container.
    pub expanded_bytes: u64,
    /// Archives opened inside archives.
    pub nested_archives: u64,
    /// Files inside that look like archives and were not read to their end: formats that are recognised but not read
    /// (7z, RAR …), and broken archives that are not named like one.
    pub unopened: u64,
}

/// Inspects all of `file` and tells `sink` about every entry.
///
/// Blocking. `input_size` is the size of `file`, bytes; `scratch` is a private directory for unnamed temporary files.
/// Errors are refusals of the artifact, except those whose code is retryable: the run stopped, or the host's disk or
/// the sink failed.
pub fn inspect(
    file: &File,
    input_size: u64,
    scratch: &Path,
    limits: &GateLimits,
    profile: Profile,
    run: &RunContext,
    sink: &mut dyn EntrySink,
) -> Result<Inspection, GateError> {
    run.check()?;
    let gate = Gate {
        budget: RefCell::new(Budget::new(*limits, input_size)),
        unopened: Cell::new(0),
        run,
        scratch,
        profile,
    };
    let (format, content) = inspect_root(&gate, sink, file, input_size)?;
    let budget = gate.budget.borrow();
    Ok(Inspection {
        format,
        content,
        entries: budget.entries(),
        expanded_bytes: budget.expanded_bytes(),
        nested_archives: budget.nested_archives(),
        unopened: gate.unopened.get(),
    })
}

fn inspect_root(
    gate: &Gate<'_>,
    sink: &mut dyn EntrySink,
    file: &File,
    size: u64,
) -> Result<(Format, Format), GateError> {
    let root = Level::root(gate);
    let mut window = FileWindow::new(file, size);
    let head = window
        .peek(SNIFF_BYTES)
        .map_err(|e| root.broken(Format::Opaque, e))?;
    let format = sniff::sniff(head);
    if format == Format::Zip || (format == Format::Opaque && ends_as_zip(&root, file, size)?) {
        zip_reader::read(&root, sink, file, size)?;
        return Ok((Format::Zip, Format::Zip));
    }
    match format {
        Format::Opaque => {
            let is_tar = size >= 1024 && size.is_multiple_of(512) && is_zero(&root, &mut window)?;
            let format = if is_tar { Format::Tar } else { Format::Opaque };
            Ok((format, format))
        }
        Format::Lzma => {
            // A weak signature: what does not even begin to decode is something else.
            let mut probe = Decoder::new(format, &mut window).map_err(|e| root.broken(format, e))?;
            if probe.read(&mut [0; 4096]).is_err() {
                return Ok((Format::Opaque, Format::Opaque));
            }
            drop(probe);
            let mut window = FileWindow::new(file, size);
            let content = open(&Parent::Artifact(&root), sink, format, &mut window, Charge::Bytes)?;
            Ok((format, content))
        }
        _ => {
            let content = open(&Parent::Artifact(&root), sink, format, &mut window, Charge::Bytes)?;
            Ok((format, content))
        }
    }
}

/// Whether a file that does not begin like an archive ends like a ZIP, as self-executing ones do.
fn ends_as_zip(level: &Level<'_>, file: &File, size: u64) -> Result<bool, GateError> {
    zip_directory::has_end_record(file, size).map_err(|e| level.broken(Format::Zip, e))
}

fn is_zero(level: &Level<'_>, source: &mut dyn Source) -> Result<bool, GateError> {
    super::stream::rest_is_zero(source).map_err(|e| level.broken(Format::Tar, e))
}

/// One run's state, shared by all levels.
pub(super) struct Gate<'g> {
    budget: RefCell<Budget>,
    unopened: Cell<u64>,
    run: &'g RunContext,
    scratch: &'g Path,
    profile: Profile,
}

/// Whether the bytes of a container's entries still have to be charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charge {
    /// They come from a plain container or file.
    Bytes,
    /// They left a decompressor of their own, which has charged them.
    Done,
}

/// One archive being read.
pub(super) struct Level<'g> {
    pub(super) gate: &'g Gate<'g>,
    pub(super) within: Vec<String>,
    depth: u32,
    /// Its entries are the files of a system package (deb, rpm, apk).
    pub(super) system: bool,
    /// Archives that are its entries are such payloads.
    pub(super) holds_system: bool,
}

/// Where the archive that is about to be opened lies.
pub(super) enum Parent<'p, 'g> {
    /// It is the artifact itself.
    Artifact(&'p Level<'g>),
    /// It is an entry of an archive.
    Entry(&'p Level<'g>, &'p str),
}

impl<'g> Parent<'_, 'g> {
    /// The level of the archive's own entries; one deeper than its parent's.
    fn enter(&self) -> Result<Level<'g>, GateError> {
        match self {
            Self::Artifact(root) => Ok(Level::root(root.gate)),
            Self::Entry(level, name) => {
                let descended = level.gate.budget.borrow_mut().descend(level.depth);
                let depth = descended.map_err(|overrun| level.over(overrun, name))?;
                Ok(Level {
                    depth,
                    system: level.holds_system,
                    holds_system: false,
                    ..self.beside()
                })
            }
        }
    }

    /// The level of a compressed file's content, which is no archive level of its own.
    fn beside(&self) -> Level<'g> {
        match self {
            Self::Artifact(root) => Level::root(root.gate),
            Self::Entry(level, name) => {
                let mut within = level.within.clone();
                within.push((*name).to_owned());
                Level {
                    gate: level.gate,
                    within,
                    depth: level.depth,
                    system: level.system,
                    holds_system: level.holds_system,
                }
            }
        }
    }

    fn content_name(&self) -> String {
        match self {
            Self::Artifact(_) => "content".to_owned(),
            Self::Entry(_, name) => sniff::decompressed_name(name).to_owned(),
        }
    }
}

impl<'g> Level<'g> {
    fn root(gate: &'g Gate<'g>) -> Self {
        Self {
            gate,
            within: Vec::new(),
            depth: 0,
            system: false,
            holds_system: false,
        }
    }

    /// Whether this is the top level of an image layer.
    pub(super) fn is_layer(&self) -> bool {
        self.gate.profile == Profile::Layer && self.depth == 0
    }

    /// Whether hard links that stay inside are ordinary here.
    pub(super) fn allows_hard_links(&self) -> bool {
        self.system || self.is_layer() || self.gate.profile == Profile::Conda
    }

    /// The path rules for a container whose own dialect has `dialect`.
    pub(super) fn rules(&self, dialect: Rules) -> Rules {
        if self.system || self.is_layer() {
            Rules::System
        } else {
            dialect
        }
    }

    pub(super) fn place(&self, name: &str) -> Place {
        Place::new(self.gate.budget.borrow().entries(), &self.within, name)
    }

    /// A reader's error at this level, wherever it came from.
    pub(super) fn broken(&self, format: Format, error: io::Error) -> GateError {
        GateError::from_io(error, format, || self.place(""))
    }

    pub(super) fn broken_at(&self, format: Format, name: &str, error: io::Error) -> GateError {
        GateError::from_io(error, format, || self.place(name))
    }

    pub(super) fn malformed(&self, format: Format, reason: &'static str, name: &str) -> GateError {
        GateError::Malformed {
            format,
            reason,
            place: self.place(name),
        }
    }

    pub(super) fn over(&self, overrun: Overrun, name: &str) -> GateError {
        GateError::Budget {
            overrun,
            place: self.place(name),
        }
    }

    /// Counts one more entry, before anything else is believed about it.
    pub(super) fn charge_entry(&self) -> Result<(), GateError> {
        self.gate.run.check()?;
        let charged = self.gate.budget.borrow_mut().charge_entry();
        charged.map(|_| ()).map_err(|overrun| self.over(overrun, ""))
    }

    /// Counts the bytes of plain data, if nobody has yet.
    pub(super) fn charge_plain(&self, charge: Charge, bytes: u64, name: &str) -> Result<(), GateError> {
        if charge == Charge::Done {
            return Ok(());
        }
        let charged = self.gate.budget.borrow_mut().charge_bytes(bytes);
        charged.map_err(|overrun| self.over(overrun, name))
    }

    pub(super) fn check_file(&self, bytes: u64, name: &str) -> Result<(), GateError> {
        let checked = self.gate.budget.borrow().check_file(bytes);
        checked.map_err(|overrun| self.over(overrun, name))
    }

    pub(super) fn check_entry_ratio(
        &self,
        expanded: u64,
        compressed: u64,
        name: &str,
    ) -> Result<(), GateError> {
        let checked = self.gate.budget.borrow().check_entry_ratio(expanded, compressed);
        checked.map_err(|overrun| self.over(overrun, name))
    }

    /// Applies the path rules to an entry name.
    pub(super) fn check_name<'n>(&self, raw: &'n [u8], dialect: Rules) -> Result<SafePath<'n>, GateError> {
        path::check_name(raw, self.rules(dialect)).map_err(|fault| GateError::Path {
            fault,
            place: self.place(&String::from_utf8_lossy(raw)),
        })
    }

    /// Applies the link rules to a symbolic link.
    pub(super) fn check_symlink(&self, name: &str, target: &[u8], dialect: Rules) -> Result<(), GateError> {
        if self.is_layer() {
            return Ok(());
        }
        path::check_symlink_target(name, target, self.rules(dialect)).map_err(|fault| GateError::LinkTarget {
            fault,
            place: self.place(name),
        })
    }

    /// Announces something without content: a directory or a link. The archive's root itself is not announced.
    pub(super) fn announce(
        &self,
        sink: &mut dyn EntrySink,
        container: Container,
        name: &str,
        kind: EntryKind<'_>,
    ) {
        if !name.is_empty() {
            sink.begin(&Entry {
                path: name,
                within: &self.within,
                container,
                kind,
                declared_size: None,
            });
        }
    }

    /// Reads a file's content to its end: hands it to the sink, and opens it if it is an archive.
    pub(super) fn file(
        &self,
        sink: &mut dyn EntrySink,
        container: Container,
        name: &str,
        declared_size: Option<u64>,
        content: &mut dyn Source,
    ) -> Result<(), GateError> {
        if let Some(size) = declared_size {
            self.check_file(size, name)?;
        }
        let interest = sink.begin(&Entry {
            path: name,
            within: &self.within,
            container,
            kind: EntryKind::File,
            declared_size,
        });
        let head = content
            .peek(SNIFF_BYTES)
            .map_err(|e| self.broken_at(Format::Opaque, name, e))?;
        let format = sniff::sniff_nested(head, name);
        if format.is_unsupported() {
            self.gate.unopened.set(self.gate.unopened.get().saturating_add(1));
        }
        let may_be_zip = format == Format::Zip || (sniff::names_zip(name) && !format.is_archive());
        let opens = format.is_archive() || format.is_compressed();
        if may_be_zip || (opens && interest == Interest::Content) {
            self.spooled(sink, name, format, interest, content)
        } else if opens {
            self.in_place(sink, name, format, content)
        } else {
            self.drain(sink, name, interest, content, &mut |_| Ok(()))
        }
    }

    /// Opens an archive without a copy of it.
    fn in_place(
        &self,
        sink: &mut dyn EntrySink,
        name: &str,
        format: Format,
        content: &mut dyn Source,
    ) -> Result<(), GateError> {
        let outer_failed = Cell::new(false);
        let mut bounded = Stream::new(SingleFile {
            level: self,
            name,
            seen: 0,
            inner: content,
            failed: &outer_failed,
        });
        let opened = open(
            &Parent::Entry(self, name),
            sink,
            format,
            &mut bounded,
            Charge::Bytes,
        )
        .and_then(|_| finish(self, format, name, &mut bounded));
        match opened {
            Err(error) if !outer_failed.get() => {
                self.tolerate(name, error)?;
                self.drain(sink, name, Interest::Skip, &mut bounded, &mut |_| Ok(()))
            }
            other => other,
        }
    }

    /// A file that only looks like an archive, by its first bytes but not by its name, is opened because of the
    /// budgets; that it is a broken one, or one with unsafe names, is no fault of the artifact: nobody else opens it.
    fn tolerate(&self, name: &str, error: GateError) -> Result<(), GateError> {
        if error.is_about_content() && !sniff::names_archive(name) {
            self.gate.unopened.set(self.gate.unopened.get().saturating_add(1));
            return Ok(());
        }
        Err(error)
    }

    /// Reads a file's content to its end, and gives every block to `also`.
    fn drain(
        &self,
        sink: &mut dyn EntrySink,
        name: &str,
        interest: Interest,
        content: &mut dyn Source,
        also: &mut dyn FnMut(&[u8]) -> Result<(), GateError>,
    ) -> Result<(), GateError> {
        let mut seen: u64 = 0;
        loop {
            let bytes = content
                .fill_buf()
                .map_err(|e| self.broken_at(Format::Opaque, name, e))?;
            if bytes.is_empty() {
                break;
            }
            self.gate.run.check()?;
            let count = bytes.len();
            seen = seen.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
            self.check_file(seen, name)?;
            if interest == Interest::Content {
                sink.chunk(bytes).map_err(GateError::Sink)?;
            }
            also(bytes)?;
            content.consume(count);
        }
        if interest == Interest::Content {
            sink.end().map_err(GateError::Sink)?;
        }
        Ok(())
    }

    /// Copies an archive to scratch, then opens the copy.
    fn spooled(
        &self,
        sink: &mut dyn EntrySink,
        name: &str,
        format: Format,
        interest: Interest,
        content: &mut dyn Source,
    ) -> Result<(), GateError> {
        let mut spool = tempfile::tempfile_in(self.gate.scratch).map_err(GateError::Scratch)?;
        let mut size: u64 = 0;
        self.drain(sink, name, interest, content, &mut |bytes| {
            size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            spool.write_all(bytes).map_err(GateError::Scratch)
        })?;
        let parent = Parent::Entry(self, name);
        let behind_prefix =
            !format.is_archive() && sniff::names_zip(name) && ends_as_zip(self, &spool, size)?;
        let opened = if format == Format::Zip || behind_prefix {
            parent
                .enter()
                .and_then(|level| zip_reader::read(&level, sink, &spool, size))
        } else if format.is_archive() || format.is_compressed() {
            let mut window = FileWindow::new(&spool, size);
            open(&parent, sink, format, &mut window, Charge::Bytes)
                .and_then(|_| finish(self, format, name, &mut window))
        } else {
            Ok(())
        };
        opened.or_else(|error| self.tolerate(name, error))
    }
}

/// Nothing may be left of an archive that was read to its end.
fn finish(level: &Level<'_>, format: Format, name: &str, source: &mut dyn Source) -> Result<(), GateError> {
    let rest = source.fill_buf().map_err(|e| level.broken_at(format, name, e))?;
    if rest.is_empty() {
        return Ok(());
    }
    Err(level.malformed(format, "data after its end", name))
}

/// Opens an archive or a compressed stream and reads it to its end; gives the format of the decompressed content.
pub(super) fn open(
    parent: &Parent<'_, '_>,
    sink: &mut dyn EntrySink,
    format: Format,
    source: &mut dyn Source,
    charge: Charge,
) -> Result<Format, GateError> {
    match format {
        Format::Tar => tar_reader::read(&mut parent.enter()?, sink, source, charge)?,
        Format::Ar => ar::read(&mut parent.enter()?, sink, source, charge)?,
        Format::Cpio => {
            cpio::read(&parent.enter()?, sink, source, charge, &cpio::Names::InArchive)?;
        }
        Format::Rpm => rpm_package::read(&mut parent.enter()?, sink, source, charge)?,
        Format::Zip => zip_from_stream(&parent.enter()?, sink, source)?,
        _ if format.is_compressed() => return open_compressed(parent, sink, format, source),
        _ => {
            let level = parent.beside();
            return Err(GateError::Unsupported {
                format,
                place: level.place(""),
            });
        }
    }
    Ok(format)
}

fn open_compressed(
    parent: &Parent<'_, '_>,
    sink: &mut dyn EntrySink,
    format: Format,
    source: &mut dyn Source,
) -> Result<Format, GateError> {
    let beside = parent.beside();
    let mut plain = decompress(&beside, format, source)?;
    let head = plain.peek(SNIFF_BYTES).map_err(|e| beside.broken(format, e))?;
    let content = sniff::sniff(head);
    if content.is_archive() {
        open(parent, sink, content, &mut plain, Charge::Done)?;
        finish(&beside, content, "", &mut plain)?;
        return Ok(content);
    }
    if content.is_unsupported() && matches!(parent, Parent::Artifact(_)) {
        return open(parent, sink, content, &mut plain, Charge::Done);
    }
    // Compressed data inside compressed data is a level of its own, or a file that decompresses to itself would never
    // end.
    let level = if content.is_compressed() {
        parent.enter()?
    } else {
        parent.beside()
    };
    level.charge_entry()?;
    level.file(
        sink,
        Container::Compressed,
        &parent.content_name(),
        None,
        &mut plain,
    )?;
    Ok(content)
}

/// A decompressed view of `source`, charged as it is read.
pub(super) fn decompress<'s>(
    level: &'s Level<'s>,
    format: Format,
    source: &'s mut dyn Source,
) -> Result<Stream<Charged<'s, Decoder<'s>>>, GateError> {
    let decoder = Decoder::new(format, source).map_err(|e| level.broken(format, e))?;
    Ok(Stream::new(Charged {
        level,
        format,
        inner: decoder,
    }))
}

fn zip_from_stream(
    level: &Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
) -> Result<(), GateError> {
    let mut spool = tempfile::tempfile_in(level.gate.scratch).map_err(GateError::Scratch)?;
    let mut size: u64 = 0;
    level.drain(sink, "", Interest::Skip, source, &mut |bytes| {
        size = size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        spool.write_all(bytes).map_err(GateError::Scratch)
    })?;
    zip_reader::read(level, sink, &spool, size)
}

/// Charges what leaves a decompressor, block by block, and looks at the deadline.
pub(super) struct Charged<'s, R> {
    pub(super) level: &'s Level<'s>,
    pub(super) format: Format,
    pub(super) inner: R,
}

impl<R: Read> Read for Charged<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self
            .inner
            .read(out)
            .map_err(|e| self.level.broken(self.format, e).into_io())?;
        self.level
            .gate
            .run
            .check()
            .map_err(|stopped| GateError::from(stopped).into_io())?;
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        self.level
            .charge_plain(Charge::Bytes, bytes, "")
            .map_err(GateError::into_io)?;
        Ok(count)
    }
}

/// Holds an archive that is read in place to the limit for one file.
struct SingleFile<'s, 'g> {
    level: &'s Level<'g>,
    name: &'s str,
    seen: u64,
    inner: &'s mut dyn Source,
    /// Set when the container around it, not the archive itself, is at fault.
    failed: &'s Cell<bool>,
}

impl Read for SingleFile<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out).inspect_err(|_| self.failed.set(true))?;
        self.seen = self.seen.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        self.level
            .check_file(self.seen, self.name)
            .map_err(GateError::into_io)?;
        Ok(count)
    }
}
