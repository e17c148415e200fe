//! ZIP: every entry of the central directory, held against its local header, its data and its neighbours.

use super::entry::{Container, EntryKind, EntrySink};
use super::error::GateError;
use super::input::Input;
use super::level::{Level, too_many_links};
use super::links::{Hashes, Links};
use super::open::Charged;
use super::path::{MAX_PATH_BYTES, PathFault, Rules};
use super::sniff::Format;
use super::stream::{BUFFER_BYTES, FileWindow, Stream};
use super::zip_directory::{
    Directory, Fields, Kind, Record, ZIP64, ZipFault, check_unicode_path, cut_off, extra_field, locate,
    next_record, widen,
};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::collections::HashSet;
use std::io::{self, BufRead, ErrorKind, Read};
use xz2::stream as xz;

const LOCAL_SIGNATURE: &[u8] = b"PK\x03\x04";
const DESCRIPTOR_SIGNATURE: &[u8] = b"PK\x07\x08";
const FLAG_ENCRYPTED: u16 = 1;
const FLAG_DESCRIPTOR: u16 = 1 << 3;
const FLAG_STRONG_ENCRYPTION: u16 = 1 << 6;
const FLAG_MASKED: u16 = 1 << 13;

/// Reads a ZIP.
pub(super) fn read(level: &Level<'_>, sink: &mut dyn EntrySink, input: Input<'_>) -> Result<(), GateError> {
    let directory = locate(input).map_err(|e| fault(level, "", e))?;
    let starts = survey(level, input, &directory)?;
    let mut central = FileWindow::new(input);
    central.seek(directory.start, directory.end);
    let mut reader = Reader {
        level,
        window: FileWindow::new(input),
        inflate: Decompress::new(false),
        buffer: Vec::new(),
        starts,
        directory,
        links: Links::default(),
        files: Tree::default(),
    };
    reader.check_gap(0, reader.starts.first().copied().unwrap_or(directory.start), "")?;
    let mut record = Record::empty();
    while next_record(&mut central, &mut record).map_err(|e| fault(level, "", e))? {
        reader.entry(sink, &record)?;
    }
    match reader.links.escaping() {
        Some(name) => Err(GateError::LinkTarget {
            fault: PathFault::Parent,
            place: level.place(name),
        }),
        None => Ok(()),
    }
}

fn fault(level: &Level<'_>, name: &str, fault: ZipFault) -> GateError {
    match fault {
        ZipFault::Malformed(reason) => level.malformed(Format::Zip, reason, name),
        ZipFault::Io(error) => level.broken_at(Format::Zip, name, error),
    }
}

/// Counts and charges all entries before any data is read, and gives the file offsets of their local headers,
/// ascending. No two may be equal.
fn survey(level: &Level<'_>, input: Input<'_>, directory: &Directory) -> Result<Vec<u64>, GateError> {
    let bad = |reason| level.malformed(Format::Zip, reason, "");
    let mut window = FileWindow::new(input);
    window.seek(directory.start, directory.end);
    let mut record = Record::empty();
    let mut starts = Vec::new();
    while next_record(&mut window, &mut record).map_err(|e| fault(level, "", e))? {
        level.charge_entry()?;
        let start = directory
            .base
            .checked_add(record.offset)
            .filter(|&start| start < directory.start)
            .ok_or_else(|| bad("a local header behind the central directory"))?;
        starts.push(start);
    }
    let count = u64::try_from(starts.len()).unwrap_or(u64::MAX);
    // The end record without ZIP64 counts modulo 65536 in some old tools; readers then go by the directory.
    if count != directory.count && !(count > 0xffff && count & 0xffff == directory.count) {
        return Err(bad("the end record counts other than the directory has entries"));
    }
    starts.sort_unstable();
    if starts.windows(2).any(|pair| pair.first() == pair.last()) {
        return Err(bad("two entries share one local header"));
    }
    Ok(starts)
}

struct Reader<'l, 'g, 'f> {
    level: &'l Level<'g>,
    window: FileWindow<'f>,
    inflate: Decompress,
    buffer: Vec<u8>,
    starts: Vec<u64>,
    directory: Directory,
    links: Links,
    files: Tree,
}

/// Most directories of one archive that are told apart; ordinary archives have fewer of them than files.
const MAX_DIRECTORIES: usize = 450_000;

/// Paths that are files, by hash: nothing may lie beneath them. Grows with the entry cap only.
#[derive(Default)]
struct Tree {
    hashes: Hashes,
    files: HashSet<u64>,
    directories: HashSet<u64>,
}

impl Tree {
    /// Notes an entry, unless it lies beneath a file, or is a file where a directory is.
    fn add(&mut self, name: &str, is_directory: bool) -> Result<(), &'static str> {
        for parent in self.hashes.parents(name) {
            if self.files.contains(&parent) {
                return Err("an entry beneath a file");
            }
            self.directories.insert(parent);
        }
        if self.directories.len() > MAX_DIRECTORIES {
            return Err("more directories than can be told apart");
        }
        if !is_directory {
            let own = self.hashes.whole(name);
            self.files.insert(own);
            if self.directories.contains(&own) {
                return Err("an entry beneath a file");
            }
        }
        Ok(())
    }
}

impl Reader<'_, '_, '_> {
    fn entry(&mut self, sink: &mut dyn EntrySink, record: &Record) -> Result<(), GateError> {
        let level = self.level;
        let name = level.check_name(&record.name, Rules::Portable)?;
        let place = name.as_str();
        let bad = |reason| level.malformed(Format::Zip, reason, place);
        let kind = record
            .kind(name.names_directory())
            .ok_or_else(|| GateError::SpecialFile {
                kind: "device, FIFO or socket",
                place: level.place(place),
            })?;
        if kind == Kind::Symlink && name.names_directory() {
            return Err(bad("a symbolic link that is named like a directory"));
        }
        if self.links.is_above(place) {
            return Err(GateError::Link {
                reason: "an entry beneath a symbolic link",
                place: level.place(place),
            });
        }
        self.files.add(place, kind == Kind::Directory).map_err(bad)?;
        level.check_file(record.size, place)?;
        level.check_entry_ratio(record.size, record.compressed, place)?;
        let unreadable = |reason| GateError::Unreadable {
            reason,
            place: level.place(place),
        };
        if record.flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED) != 0 {
            return Err(unreadable("it is encrypted"));
        }
        let method =
            Method::of(record.method).ok_or_else(|| unreadable("its compression method is not supported"))?;
        let data = self.local(record, place)?;
        if kind == Kind::Directory && record.size != 0 {
            return Err(bad("a directory with data"));
        }
        self.window.seek(data.start, data.end);
        self.data(sink, record, kind, method, place)?;
        if self.window.position() != data.end {
            return Err(bad("compressed data shorter than declared"));
        }
        let end = self.descriptor(record, data, place)?;
        self.check_gap(end, data.limit, place)
    }

    /// Holds the local header against the central record; gives where the data are.
    fn local(&mut self, record: &Record, name: &str) -> Result<Data, GateError> {
        const FIXED: usize = 30;
        let level = self.level;
        let bad = |reason| level.malformed(Format::Zip, reason, name);
        let broken = |e| level.broken_at(Format::Zip, name, e);
        let start = self.directory.base.saturating_add(record.offset);
        let next = self.starts.partition_point(|&other| other <= start);
        let limit = self.starts.get(next).copied().unwrap_or(self.directory.start);
        self.window.seek(start, limit);
        let head = self.window.next_bytes(FIXED).map_err(broken)?;
        if head.len() < FIXED || !head.starts_with(LOCAL_SIGNATURE) {
            return Err(bad("no local header where the directory says"));
        }
        let fields = Fields(head);
        let (flags, method, crc) = (fields.u16(6), fields.u16(8), fields.u32(14));
        let mut compressed = u64::from(fields.u32(18));
        let mut size = u64::from(fields.u32(22));
        let (name_length, extra_length) = (usize::from(fields.u16(26)), usize::from(fields.u16(28)));
        if self.window.next_bytes(name_length).map_err(broken)? != record.name {
            return Err(bad("local header and directory have different names"));
        }
        let extra = self.window.next_bytes(extra_length).map_err(broken)?;
        if extra.len() < extra_length {
            return Err(bad("the local header is cut off"));
        }
        let has_wide = extra_field(extra, ZIP64).map_err(|e| fault(level, name, e))?;
        if has_wide.is_some() {
            widen(extra, [(&mut size, 0xffff_ffff), (&mut compressed, 0xffff_ffff)])
                .map_err(|e| fault(level, name, e))?;
        }
        check_unicode_path(&record.name, extra).map_err(|e| fault(level, name, e))?;
        if method != record.method {
            return Err(bad("local header and directory have different methods"));
        }
        let compared = FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_DESCRIPTOR;
        if flags & compared != record.flags & compared {
            return Err(bad("local header and directory have different flags"));
        }
        // With a descriptor the local header may leave them open.
        let is_open = |value: u64| flags & FLAG_DESCRIPTOR != 0 && (value == 0 || value == 0xffff_ffff);
        let agrees = (compressed == record.compressed || is_open(compressed))
            && (size == record.size || is_open(size))
            && (crc == record.crc || is_open(u64::from(crc)));
        if !agrees {
            return Err(bad(
                "local header and directory have different sizes or checksums",
            ));
        }
        let start = self.window.position();
        let end = start
            .checked_add(record.compressed)
            .filter(|&end| end <= limit)
            .ok_or_else(|| bad("an entry that overlaps what follows it"))?;
        Ok(Data { start, end, limit })
    }

    fn data(
        &mut self,
        sink: &mut dyn EntrySink,
        record: &Record,
        kind: Kind,
        method: Method,
        name: &str,
    ) -> Result<(), GateError> {
        let level = self.level;
        let buffer = std::mem::take(&mut self.buffer);
        let window = &mut self.window;
        let broken = |e| level.broken_at(Format::Zip, name, e);
        let mut inflate;
        let mut other: Box<dyn Read + '_>;
        let plain: &mut dyn Read = match method {
            Method::Stored => window,
            Method::Deflate => {
                self.inflate.reset(false);
                inflate = Inflate {
                    window,
                    state: &mut self.inflate,
                };
                &mut inflate
            }
            Method::Bzip2 => {
                other = Box::new(bzip2::bufread::BzDecoder::new(window));
                &mut other
            }
            Method::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(window).and_then(|mut decoder| {
                    decoder.window_log_max(27)?;
                    Ok(decoder)
                });
                other = Box::new(decoder.map_err(broken)?);
                &mut other
            }
            Method::Xz => {
                let stream = xz::Stream::new_stream_decoder(super::DECODER_MEMORY_BYTES, 0);
                let stream = stream.map_err(|e| broken(e.into()))?;
                other = Box::new(xz2::bufread::XzDecoder::new_stream(window, stream));
                &mut other
            }
        };
        let mut content = Stream::with_buffer(
            Charged {
                level,
                format: Format::Zip,
                inner: Checked {
                    inner: plain,
                    crc: Crc::new(),
                    seen: 0,
                    expected_crc: record.crc,
                    expected_size: record.size,
                },
            },
            buffer,
        );
        match kind {
            Kind::File => level.file(sink, Container::Zip, name, Some(record.size), &mut content)?,
            Kind::Directory => {
                if !content.fill_buf().map_err(broken)?.is_empty() {
                    return Err(level.malformed(Format::Zip, "a directory with data", name));
                }
                level.announce(sink, Container::Zip, name, EntryKind::Directory);
            }
            Kind::Symlink => {
                if record.size > u64::try_from(MAX_PATH_BYTES).unwrap_or(u64::MAX) {
                    return Err(level.malformed(Format::Zip, "a link target over its bound", name));
                }
                let mut target = Vec::new();
                content.read_to_end(&mut target).map_err(broken)?;
                level.check_symlink(name, &target, Rules::Portable)?;
                let target = String::from_utf8_lossy(&target);
                if !self.links.add(name, &target) {
                    return Err(too_many_links(level, name));
                }
                level.announce(sink, Container::Zip, name, EntryKind::Symlink { target: &target });
            }
        }
        self.buffer = content.into_buffer();
        Ok(())
    }

    /// Checks the data descriptor, if there is one; gives where the entry ends.
    fn descriptor(&mut self, record: &Record, data: Data, name: &str) -> Result<u64, GateError> {
        if record.flags & FLAG_DESCRIPTOR == 0 {
            return Ok(data.end);
        }
        self.window.seek(data.end, data.limit);
        let bytes = self
            .window
            .next_bytes(24)
            .map_err(|e| self.level.broken_at(Format::Zip, name, e))?;
        let signed = bytes.strip_prefix(DESCRIPTOR_SIGNATURE);
        let matches = |rest: &[u8], wide: bool| {
            let fields = Fields(rest);
            if wide {
                rest.len() >= 20
                    && fields.u32(0) == record.crc
                    && fields.u64(4) == record.compressed
                    && fields.u64(12) == record.size
            } else {
                rest.len() >= 12
                    && fields.u32(0) == record.crc
                    && u64::from(fields.u32(4)) == record.compressed
                    && u64::from(fields.u32(8)) == record.size
            }
        };
        let length = match signed {
            // The wide form first: for sizes below 4 GiB its first half alone could pass for the narrow form only if
            // the compressed size were 0.
            Some(rest) if matches(rest, true) => 24,
            Some(rest) if matches(rest, false) => 16,
            _ if matches(bytes, true) => 20,
            _ if matches(bytes, false) => 12,
            _ => {
                let reason = "the data descriptor contradicts the directory";
                return Err(self.level.malformed(Format::Zip, reason, name));
            }
        };
        Ok(data.end.saturating_add(length))
    }

    /// Bytes that belong to no entry are nobody's data, unless they begin like an entry that is not listed.
    fn check_gap(&mut self, start: u64, end: u64, name: &str) -> Result<(), GateError> {
        if start >= end {
            return Ok(());
        }
        self.window.seek(start, end);
        let head = self
            .window
            .next_bytes(4)
            .map_err(|e| self.level.broken_at(Format::Zip, name, e))?;
        if head == LOCAL_SIGNATURE {
            let reason = "a local entry that the directory does not list";
            return Err(self.level.malformed(Format::Zip, reason, name));
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Data {
    start: u64,
    end: u64,
    /// Where the next entry, or the directory, begins.
    limit: u64,
}

#[derive(Clone, Copy)]
enum Method {
    Stored,
    Deflate,
    Bzip2,
    Zstd,
    Xz,
}

impl Method {
    fn of(number: u16) -> Option<Self> {
        match number {
            0 => Some(Self::Stored),
            8 => Some(Self::Deflate),
            12 => Some(Self::Bzip2),
            93 => Some(Self::Zstd),
            95 => Some(Self::Xz),
            _ => None,
        }
    }
}

/// Raw deflate over a window, with a state that is used again for every entry.
struct Inflate<'w, 'f> {
    window: &'w mut FileWindow<'f>,
    state: &'w mut Decompress,
}

impl Read for Inflate<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let input = self.window.fill_buf()?;
            let at_end = input.is_empty();
            let (read, written) = (self.state.total_in(), self.state.total_out());
            let flush = if at_end {
                FlushDecompress::Finish
            } else {
                FlushDecompress::None
            };
            let status = self
                .state
                .decompress(input, out, flush)
                .map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
            let consumed = usize::try_from(self.state.total_in() - read).unwrap_or(BUFFER_BYTES);
            self.window.consume(consumed);
            let count = usize::try_from(self.state.total_out() - written).unwrap_or(0);
            match status {
                Status::StreamEnd => return Ok(count),
                _ if count > 0 || out.is_empty() => return Ok(count),
                _ if at_end => return Err(cut_off()),
                _ => {}
            }
        }
    }
}

/// Compares size and CRC with the declared ones; says so no later than with the last byte.
struct Checked<'r> {
    inner: &'r mut dyn Read,
    crc: Crc,
    seen: u64,
    expected_crc: u32,
    expected_size: u64,
}

impl Read for Checked<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        let wrong = |what| Err(io::Error::new(ErrorKind::InvalidData, what));
        if count == 0 && !out.is_empty() {
            if self.seen != self.expected_size {
                return wrong("the data are shorter than declared");
            }
            if self.crc.sum() != self.expected_crc {
                return wrong("the data do not have the declared CRC");
            }
            return Ok(0);
        }
        self.crc.update(out.get(..count).unwrap_or_default());
        self.seen = self.seen.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if self.seen > self.expected_size {
            return wrong("the data are longer than declared");
        }
        Ok(count)
    }
}
