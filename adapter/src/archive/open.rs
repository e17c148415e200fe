//! What a file inside holds: handed to the sink, and opened when it is an archive itself.

use super::compressed::Decoder;
use super::entry::{Container, Entry, EntryKind, EntrySink, Interest};
use super::error::GateError;
use super::gate::ends_as_zip;
use super::input::Input;
use super::level::{Charge, Level, Parent};
use super::sniff::{self, Format, SNIFF_BYTES};
use super::stream::{FileWindow, Source, Stream};
use super::{ar, cpio, rpm_package, tar_reader, zip_reader};
use std::cell::Cell;
use std::io::{self, Read, Write as _};

impl Level<'_> {
    /// Reads a file's content to its end: hands it to the sink, and opens it if it is an archive.
    pub(super) fn file(
        &self,
        sink: &mut dyn EntrySink,
        container: Container,
        name: &str,
        declared_size: Option<u64>,
        content: &mut dyn Source,
    ) -> Result<(), GateError> {
        self.check_is_not_root(name)?;
        if let Some(size) = declared_size {
            self.check_file(size, name)?;
        }
        let head = content
            .peek(SNIFF_BYTES)
            .map_err(|e| self.broken_at(Format::Opaque, name, e))?;
        let format = sniff::sniff_nested(head, name);
        let entry = Entry {
            path: name,
            within: &self.within,
            container,
            kind: EntryKind::File,
            declared_size,
        };
        let interest = sink.begin_file(&entry, head);
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
        let is_handed_on = sink.is_handed_on();
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
                self.tolerate(sink, name, is_handed_on, error)?;
                self.drain(sink, name, Interest::Skip, &mut bounded, &mut |_| Ok(()))
            }
            other => other,
        }
    }

    /// An archive that cannot be read or that is unsafe is no fault of the artifact when nobody else opens it: a file
    /// that only looks like one, by its first bytes but not by its name, or one among the files of a package (its tests
    /// are full of broken archives) that no engine gets. What stands at the top of its container is a part of the package
    /// itself, such as a deb's `data.tar`, whoever reads it. Budgets hold for all of them.
    fn tolerate(
        &self,
        sink: &mut dyn EntrySink,
        name: &str,
        is_handed_on: bool,
        error: GateError,
    ) -> Result<(), GateError> {
        let is_mere_file = name.contains('/') && !is_handed_on;
        if error.is_about_content() && (is_mere_file || !sniff::names_archive(name)) {
            self.gate.unopened.set(self.gate.unopened.get().saturating_add(1));
            return sink.abandon().map_err(GateError::Sink);
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
        let is_handed_on = sink.is_handed_on();
        let parent = Parent::Entry(self, name);
        let behind_prefix = !format.is_archive()
            && sniff::names_zip(name)
            && ends_as_zip(self, Input::complete(&spool, size))?;
        let opened = if format == Format::Zip || behind_prefix {
            parent
                .enter()
                .and_then(|level| zip_reader::read(&level, sink, Input::complete(&spool, size)))
        } else if format.is_archive() || format.is_compressed() {
            let mut window = FileWindow::new(Input::complete(&spool, size));
            open(&parent, sink, format, &mut window, Charge::Bytes)
                .and_then(|_| finish(self, format, name, &mut window))
        } else {
            Ok(())
        };
        opened.or_else(|error| self.tolerate(sink, name, is_handed_on, error))
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
    zip_reader::read(level, sink, Input::complete(&spool, size))
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
