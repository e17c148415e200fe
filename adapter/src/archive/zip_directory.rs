//! The end of a ZIP and its central directory, from untrusted offsets.
//!
//! Own parser: the entries of the directory have to be seen as they stand (equal names, disagreements, overlaps), in
//! memory that does not follow from what the file claims.

use super::input::Input;
use super::path::{self, Rules};
use super::stream::FileWindow;
use flate2::Crc;
use std::io::{self, ErrorKind};

const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
const ZIP64_LOCATOR_SIGNATURE: [u8; 4] = *b"PK\x06\x07";
const ZIP64_END_SIGNATURE: [u8; 4] = *b"PK\x06\x06";
const CENTRAL_SIGNATURE: [u8; 4] = *b"PK\x01\x02";
/// Extra field with values that do not fit into 32 bits.
pub(super) const ZIP64: u16 = 1;
/// Extra field with the name in UTF-8.
const UNICODE_PATH: u16 = 0x7075;
/// Fixed part of the end record.
const END_BYTES: u64 = 22;
const LOCATOR_BYTES: u64 = 20;
/// Type bits of a Unix mode.
const S_IFMT: u32 = 0o170_000;
/// Directory bit of the DOS attributes, which the low byte holds whatever the host.
const DOS_DIRECTORY: u32 = 0x10;
/// The end record with the longest comment.
const TAIL_BYTES: u64 = END_BYTES + 65_535;

/// Why a file is no readable ZIP.
#[derive(Debug)]
pub(super) enum ZipFault {
    /// A contradiction in it.
    Malformed(&'static str),
    /// Its file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for ZipFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<&'static str> for ZipFault {
    fn from(reason: &'static str) -> Self {
        Self::Malformed(reason)
    }
}

/// Where the central directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Directory {
    /// Bytes before the ZIP proper: all its offsets count from here.
    pub(super) base: u64,
    /// File offset of the first record.
    pub(super) start: u64,
    /// File offset behind the last record.
    pub(super) end: u64,
    /// Records, as the end record says.
    pub(super) count: u64,
}

/// Little-endian fields of a fixed-size record; reading past its end gives 0, so callers check the size first.
#[derive(Clone, Copy)]
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl Fields<'_> {
    pub(super) fn u16(self, at: usize) -> u16 {
        self.0
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |bytes| u16::from_le_bytes(*bytes))
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        self.0
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// `None` past the end.
    fn u32_at(self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        self.0
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// Whether the file has an end record in reach of its end whose comment fits into the file, and that has a directory
/// before it or says that it is empty.
pub(super) fn has_end_record(input: Input<'_>) -> io::Result<bool> {
    let (tail, base) = tail(input)?;
    let Some(end) = ends(&tail).filter(|end| end.fits).last() else {
        return Ok(false);
    };
    let record = Fields(tail.get(end.at..).unwrap_or_default());
    let position = base.saturating_add(u64::try_from(end.at).unwrap_or(u64::MAX));
    let directory_size = u64::from(record.u32(12));
    if directory_size == u64::from(u32::MAX) || record.u16(8) == u16::MAX {
        return Ok(true);
    }
    let Some(start) = position.checked_sub(directory_size) else {
        return Ok(false);
    };
    let mut signature = [0; 4];
    let read = input.read_at(&mut signature, start)?;
    Ok(directory_size == 0 && record.u16(10) == 0 || read == 4 && signature == CENTRAL_SIGNATURE)
}

/// Finds the central directory that readers who start at the end see. Ambiguity is a fault.
pub(super) fn locate(input: Input<'_>) -> Result<Directory, ZipFault> {
    let (tail, tail_start) = tail(input)?;
    let chosen = choose(&tail)?;
    let position = tail_start.saturating_add(u64::try_from(chosen).unwrap_or(u64::MAX));
    let record = Fields(tail.get(chosen..).unwrap_or_default());
    let small = End {
        disk: u32::from(record.u16(4)),
        directory_disk: u32::from(record.u16(6)),
        disk_count: u64::from(record.u16(8)),
        count: u64::from(record.u16(10)),
        size: u64::from(record.u32(12)),
        offset: u64::from(record.u32(16)),
    };
    let large = zip64_end(input, position)?;
    let (end, directory_end) = match large {
        Some((large, at)) => {
            if !small.agrees_with(&large) {
                return Err("the ZIP64 end record contradicts the end record".into());
            }
            (large, at)
        }
        None => (small, position),
    };
    if end.disk != 0 || end.directory_disk != 0 || end.disk_count != end.count {
        return Err("a part of an archive over several files".into());
    }
    let start = directory_end
        .checked_sub(end.size)
        .ok_or("the central directory is larger than the file")?;
    let base = start
        .checked_sub(end.offset)
        .ok_or("the central directory's offset is past its place")?;
    if base > 0 {
        // A reader that takes offsets from the start of the file must not find another directory there.
        let mut signature = [0; 4];
        let read = input.read_at(&mut signature, end.offset)?;
        if read == 4 && signature == CENTRAL_SIGNATURE {
            return Err("two places where the central directory may begin".into());
        }
    }
    Ok(Directory {
        base,
        start,
        end: directory_end,
        count: end.count,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    disk: u32,
    directory_disk: u32,
    disk_count: u64,
    count: u64,
    size: u64,
    offset: u64,
}

impl End {
    /// Whether every member that is not the "see ZIP64" mark is the same.
    fn agrees_with(&self, large: &Self) -> bool {
        let same = |small: u64, mark: u64, large: u64| small == mark || small == large;
        same(u64::from(self.disk), 0xffff, u64::from(large.disk))
            && same(
                u64::from(self.directory_disk),
                0xffff,
                u64::from(large.directory_disk),
            )
            && same(self.disk_count, 0xffff, large.disk_count)
            && same(self.count, 0xffff, large.count)
            && same(self.size, 0xffff_ffff, large.size)
            && same(self.offset, 0xffff_ffff, large.offset)
    }
}

/// The last bytes of a file and where they begin.
fn tail(input: Input<'_>) -> io::Result<(Vec<u8>, u64)> {
    let size = input.size();
    let length = size.min(TAIL_BYTES);
    let start = size - length;
    let mut tail = vec![0; usize::try_from(length).unwrap_or(0)];
    let read = input.read_at(&mut tail, start)?;
    tail.truncate(read);
    Ok((tail, start))
}

struct Candidate {
    at: usize,
    /// The comment lies inside the file.
    fits: bool,
    /// The comment ends where the file ends.
    exact: bool,
}

fn ends(tail: &[u8]) -> impl Iterator<Item = Candidate> {
    tail.windows(4)
        .enumerate()
        .filter(|(_, window)| *window == END_SIGNATURE)
        .map(|(at, _)| {
            let rest = tail.get(at..).unwrap_or_default();
            let fixed = usize::try_from(END_BYTES).unwrap_or(22);
            let length = fixed + usize::from(Fields(rest).u16(20));
            Candidate {
                at,
                fits: rest.len() >= fixed && length <= rest.len(),
                exact: length == rest.len(),
            }
        })
}

/// The end record that every reader takes: the last one; no other may claim the end of the file.
fn choose(tail: &[u8]) -> Result<usize, ZipFault> {
    let mut last = None;
    let mut exact = 0;
    for candidate in ends(tail) {
        exact += usize::from(candidate.exact);
        last = Some(candidate);
    }
    let last = last.ok_or("no end record")?;
    if !last.fits {
        return Err("the comment of the end record runs past the end of the file".into());
    }
    if exact > usize::from(last.exact) {
        return Err("more than one end record".into());
    }
    Ok(last.at)
}

/// The ZIP64 end record directly before its locator, and where it begins.
fn zip64_end(input: Input<'_>, end_position: u64) -> Result<Option<(End, u64)>, ZipFault> {
    let Some(locator_at) = end_position.checked_sub(LOCATOR_BYTES) else {
        return Ok(None);
    };
    let mut locator = [0; 20];
    if input.read_at(&mut locator, locator_at)? < locator.len()
        || !locator.starts_with(&ZIP64_LOCATOR_SIGNATURE)
    {
        return Ok(None);
    }
    let locator = Fields(&locator);
    if locator.u32(4) != 0 || locator.u32(16) > 1 {
        return Err("a part of an archive over several files".into());
    }
    // Counted from the start of the file, also behind a prefix: the readers that Syft has look nowhere else.
    let at = locator.u64(8);
    let mut record = [0; 56];
    if at >= locator_at
        || input.read_at(&mut record, at)? < record.len()
        || !record.starts_with(&ZIP64_END_SIGNATURE)
    {
        return Err("the ZIP64 locator does not point at its record".into());
    }
    let record = Fields(&record);
    if at.checked_add(12).and_then(|n| n.checked_add(record.u64(4))) != Some(locator_at) {
        return Err("the ZIP64 end record does not end at its locator".into());
    }
    let end = End {
        disk: record.u32(16),
        directory_disk: record.u32(20),
        disk_count: record.u64(24),
        count: record.u64(32),
        size: record.u64(40),
        offset: record.u64(48),
    };
    Ok(Some((end, at)))
}

/// One record of the central directory; the name and extra fields are borrowed from the window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) made_by: u16,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) compressed: u64,
    pub(super) size: u64,
    pub(super) attributes: u32,
    /// Relative to the directory's base.
    pub(super) offset: u64,
    pub(super) name: Vec<u8>,
}

/// Reads the next record into `record`, reusing its memory; false behind the last.
pub(super) fn next_record(window: &mut FileWindow<'_>, record: &mut Record) -> Result<bool, ZipFault> {
    const FIXED: usize = 46;
    let head = window.next_bytes(FIXED)?;
    if head.is_empty() {
        return Ok(false);
    }
    if head.len() < FIXED || !head.starts_with(&CENTRAL_SIGNATURE) {
        return Err("the central directory holds something else than its records".into());
    }
    let fields = Fields(head);
    let name_length = usize::from(fields.u16(28));
    let extra_length = usize::from(fields.u16(30));
    let comment_length = usize::from(fields.u16(32));
    let disk = fields.u16(34);
    record.made_by = fields.u16(4);
    record.flags = fields.u16(8);
    record.method = fields.u16(10);
    record.crc = fields.u32(16);
    record.compressed = u64::from(fields.u32(20));
    record.size = u64::from(fields.u32(24));
    record.attributes = fields.u32(38);
    record.offset = u64::from(fields.u32(42));
    let cut = "the central directory is cut off";
    let name = window.next_bytes(name_length)?;
    if name.len() < name_length {
        return Err(cut.into());
    }
    record.name.clear();
    record.name.extend_from_slice(name);
    let extra = window.next_bytes(extra_length)?;
    if extra.len() < extra_length {
        return Err(cut.into());
    }
    let wide = [
        (&mut record.size, 0xffff_ffff),
        (&mut record.compressed, 0xffff_ffff),
        (&mut record.offset, 0xffff_ffff),
    ];
    widen(extra, wide)?;
    check_unicode_path(&record.name, extra)?;
    if disk != 0 && disk != 0xffff {
        return Err("a part of an archive over several files".into());
    }
    if window.next_bytes(comment_length)?.len() < comment_length {
        return Err(cut.into());
    }
    Ok(true)
}

/// Replaces the values that carry the mark by those of the ZIP64 extra field, in its order.
pub(super) fn widen<const N: usize>(extra: &[u8], values: [(&mut u64, u64); N]) -> Result<(), ZipFault> {
    let mut wide = extra_field(extra, ZIP64)?;
    for (value, mark) in values {
        if *value != mark {
            continue;
        }
        // Without the field the mark is the value.
        let Some(rest) = wide.as_mut() else { continue };
        let Some((bytes, next)) = rest.split_first_chunk::<8>() else {
            return Err("a ZIP64 field without the value that needs it".into());
        };
        *value = u64::from_le_bytes(*bytes);
        *rest = next;
    }
    Ok(())
}

/// The extra fields with this tag, in their order. Malformed extra data has no more fields.
fn extra_fields(mut extra: &[u8], tag: u16) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let fields = Fields(extra.get(..4)?);
            let (found, length) = (fields.u16(0), usize::from(fields.u16(2)));
            let (data, next) = extra.get(4..)?.split_at_checked(length)?;
            extra = next;
            if found == tag {
                return Some(data);
            }
        }
    })
}

/// The only extra field with this tag: with two of them, readers take the first or the last.
pub(super) fn extra_field(extra: &[u8], tag: u16) -> Result<Option<&[u8]>, ZipFault> {
    let mut fields = extra_fields(extra, tag);
    let first = fields.next();
    if fields.next().is_some() {
        return Err("two extra fields of a kind that there is one of".into());
    }
    Ok(first)
}

/// Holds the Unicode name, which some readers show and others do not know, against the name of the header.
///
/// Archivers write it where the header's own encoding cannot say the name. So a component may differ, but only one that
/// is not ASCII, and not in its suffix: nothing can be another kind of file to one reader than to the other, nor lie
/// elsewhere.
pub(super) fn check_unicode_path(name: &[u8], extra: &[u8]) -> Result<(), ZipFault> {
    /// Version and checksum of the name that it is for.
    const FIXED: usize = 5;
    let Some(field) = extra_field(extra, UNICODE_PATH)? else {
        return Ok(());
    };
    let mut sum = Crc::new();
    sum.update(name);
    let is_meant = field.first() == Some(&1) && Fields(field).u32_at(1) == Some(sum.sum());
    let Some(unicode) = field.get(FIXED..).filter(|_| is_meant) else {
        // Of another version or for another name: readers that know it do not use it.
        return Ok(());
    };
    let unicode = std::str::from_utf8(unicode).map_err(|_| "a Unicode name that is not UTF-8")?;
    let mut ours = name.split(|&b| b == b'/');
    let mut theirs = unicode.split('/');
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return Ok(()),
            (Some(ours), Some(theirs)) if ours == theirs.as_bytes() => {}
            (Some(ours), Some(theirs)) if !theirs.is_ascii() && suffix(ours) == suffix(theirs.as_bytes()) => {
                path::check_name(theirs.as_bytes(), Rules::Portable).map_err(|_| "an unsafe Unicode name")?;
            }
            _ => return Err("a Unicode name that is another one than the header's".into()),
        }
    }
}

/// What follows the last dot.
fn suffix(component: &[u8]) -> Option<&[u8]> {
    let dot = component.iter().rposition(|&b| b == b'.')?;
    component.get(dot..)
}

impl Record {
    pub(super) fn empty() -> Self {
        Self {
            made_by: 0,
            flags: 0,
            method: 0,
            crc: 0,
            compressed: 0,
            size: 0,
            attributes: 0,
            offset: 0,
            name: Vec::new(),
        }
    }

    /// What the entry is; `None` for a device, FIFO or socket.
    ///
    /// Old archivers leave type bits behind that are no type, such as the 0o177777 of directories in many old JARs.
    /// Such bits say nothing; then the name tells a directory, and the DOS attribute where the host has no other: a
    /// file must not vanish from view because of a bit that other readers do not look at.
    pub(super) fn kind(&self, names_directory: bool) -> Option<Kind> {
        match self.unix_mode().unwrap_or(0) & S_IFMT {
            0o010_000 | 0o020_000 | 0o060_000 | 0o140_000 => None,
            0o120_000 => Some(Kind::Symlink),
            0o040_000 => Some(Kind::Directory),
            _ if names_directory => Some(Kind::Directory),
            0o100_000 => Some(Kind::File),
            _ if self.has_dos_host() && self.attributes & DOS_DIRECTORY != 0 => Some(Kind::Directory),
            _ => Some(Kind::File),
        }
    }

    /// Made on FAT, NTFS or VFAT.
    fn has_dos_host(&self) -> bool {
        matches!(self.made_by >> 8, 0 | 11 | 14)
    }

    /// Unix mode, if the entry was made on a system that has one.
    fn unix_mode(&self) -> Option<u32> {
        matches!(self.made_by >> 8, 3 | 19).then_some(self.attributes >> 16)
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
}

/// A read that ended too early, as a fault of the archive.
pub(super) fn cut_off() -> io::Error {
    ErrorKind::UnexpectedEof.into()
}
