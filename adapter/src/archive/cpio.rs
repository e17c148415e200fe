//! CPIO: newc, crc, odc, old binary of both byte orders, and the stripped records of RPM.

use super::entry::{Container, EntryKind, EntrySink};
use super::error::GateError;
use super::level::{Charge, Level, too_many_links};
use super::links::Links;
use super::path::{MAX_PATH_BYTES, PathFault, Rules};
use super::sniff::Format;
use super::stream::{Limited, Source, Stream, rest_is_zero, skip, take_block, take_bytes};
use std::io::{self, ErrorKind, Read};

const TRAILER: &[u8] = b"TRAILER!!!";
/// Magic of a record that has only an index into the RPM header's file list.
pub(super) const STRIPPED_MAGIC: &[u8; 6] = b"07070X";
/// Type bits of a Unix mode.
const S_IFMT: u32 = 0o170_000;

/// Where names and sizes of stripped records come from.
pub(super) enum Names {
    /// There are none: every record has its own.
    InArchive,
    /// The RPM header's files, in its order.
    Listed(Vec<Listed>),
}

/// One file of an RPM header.
pub(super) struct Listed {
    /// Name as a record would have it.
    pub(super) name: Vec<u8>,
    /// Unix mode.
    pub(super) mode: u32,
    /// Bytes of its data in the payload.
    pub(super) size: u64,
}

/// Reads a CPIO archive to the end of `source`.
pub(super) fn read(
    level: &Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    charge: Charge,
    names: &Names,
) -> Result<(), GateError> {
    let mut links = Links::default();
    let mut position: u64 = 0;
    loop {
        let record = match take_record(source, &mut position, names) {
            Ok(record) => record,
            Err(Fault::Malformed(reason)) => return Err(level.malformed(Format::Cpio, reason, "")),
            Err(Fault::Io(error)) => return Err(level.broken(Format::Cpio, error)),
        };
        if record.name == TRAILER && record.size == 0 {
            break;
        }
        entry(level, sink, source, charge, &record, &mut links)?;
        position = position.saturating_add(record.size);
        align(source, &mut position, record.alignment).map_err(|e| level.broken(Format::Cpio, e))?;
    }
    if !rest_is_zero(source).map_err(|e| level.broken(Format::Cpio, e))? {
        return Err(level.malformed(Format::Cpio, "data after the trailer", ""));
    }
    match links.escaping() {
        Some(name) => Err(GateError::LinkTarget {
            fault: PathFault::Parent,
            place: level.place(name),
        }),
        None => Ok(()),
    }
}

fn entry(
    level: &Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    charge: Charge,
    record: &Record,
    links: &mut Links,
) -> Result<(), GateError> {
    level.charge_entry()?;
    let name = level.check_name(&record.name, Rules::Posix)?;
    let place = name.as_str();
    if links.is_above(place) {
        return Err(GateError::Link {
            reason: "an entry beneath a symbolic link",
            place: level.place(place),
        });
    }
    level.check_file(record.size, place)?;
    let broken = |e| level.broken_at(Format::Cpio, place, e);
    match record.mode & S_IFMT {
        0o100_000 => {
            level.charge_plain(charge, record.size, place)?;
            let mut data = Limited::new(source, record.size);
            if let Some(expected) = record.sum {
                let mut data = Stream::new(Summed {
                    inner: data,
                    sum: 0,
                    expected,
                });
                return level.file(sink, Container::Cpio, place, Some(record.size), &mut data);
            }
            level.file(sink, Container::Cpio, place, Some(record.size), &mut data)
        }
        0o040_000 => {
            if record.size != 0 {
                return Err(level.malformed(Format::Cpio, "a directory with data", place));
            }
            level.announce(sink, Container::Cpio, place, EntryKind::Directory);
            Ok(())
        }
        0o120_000 => {
            if record.size > u64::try_from(MAX_PATH_BYTES).unwrap_or(u64::MAX) {
                return Err(level.malformed(Format::Cpio, "a link target over its bound", place));
            }
            level.charge_plain(charge, record.size, place)?;
            let target = take_bytes(source, record.size).map_err(broken)?;
            level.check_symlink(place, &target, Rules::Posix)?;
            let target = String::from_utf8_lossy(&target);
            if level.rules(Rules::Posix) != Rules::System && !links.add(place, &target) {
                return Err(too_many_links(level, place));
            }
            level.announce(
                sink,
                Container::Cpio,
                place,
                EntryKind::Symlink { target: &target },
            );
            Ok(())
        }
        _ if level.is_layer() => skip(source, record.size).map_err(broken),
        _ => Err(GateError::SpecialFile {
            kind: "device, FIFO or socket",
            place: level.place(place),
        }),
    }
}

struct Record {
    name: Vec<u8>,
    mode: u32,
    size: u64,
    /// Sum of the data's bytes, in the crc form.
    sum: Option<u32>,
    /// Headers and data begin at multiples of so many bytes.
    alignment: u64,
}

enum Fault {
    Malformed(&'static str),
    Io(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<&'static str> for Fault {
    fn from(reason: &'static str) -> Self {
        Self::Malformed(reason)
    }
}

fn take_record(source: &mut dyn Source, position: &mut u64, names: &Names) -> Result<Record, Fault> {
    let magic = source.peek(6)?;
    match magic.get(..6) {
        Some(b"070701" | b"070702") => take_newc(source, position),
        Some(b"070707") => take_odc(source, position),
        Some(magic) if magic == STRIPPED_MAGIC => take_stripped(source, position, names),
        Some([0xc7, 0x71, ..]) => take_binary(source, position, u16::from_le_bytes),
        Some([0x71, 0xc7, ..]) => take_binary(source, position, u16::from_be_bytes),
        Some(_) => Err("a record without magic".into()),
        None => Err("it ends without a trailer".into()),
    }
}

const CUT_OFF: &str = "a record that is cut off";
const NO_NUMBER: &str = "a field that is not a number";

fn take_newc(source: &mut dyn Source, position: &mut u64) -> Result<Record, Fault> {
    let header = take_block::<110>(source)?.ok_or(CUT_OFF)?;
    let field = |index: usize| {
        let start = 6 + 8 * index;
        header
            .get(start..start + 8)
            .and_then(|field| radix(field, 16))
            .ok_or(NO_NUMBER)
    };
    let has_sum = header.get(5) == Some(&b'2');
    let sum = u32::try_from(field(12)?).map_err(|_| NO_NUMBER)?;
    *position += 110;
    let name = take_name(source, position, field(11)?)?;
    align(source, position, 4)?;
    Ok(Record {
        name,
        mode: u32::try_from(field(1)?).map_err(|_| NO_NUMBER)?,
        size: field(6)?,
        sum: has_sum.then_some(sum),
        alignment: 4,
    })
}

fn take_odc(source: &mut dyn Source, position: &mut u64) -> Result<Record, Fault> {
    let header = take_block::<76>(source)?.ok_or(CUT_OFF)?;
    let field = |start: usize, length: usize| {
        header
            .get(start..start + length)
            .and_then(|field| radix(field, 8))
            .ok_or(NO_NUMBER)
    };
    *position += 76;
    let name = take_name(source, position, field(59, 6)?)?;
    Ok(Record {
        name,
        mode: u32::try_from(field(18, 6)?).map_err(|_| NO_NUMBER)?,
        size: field(65, 11)?,
        sum: None,
        alignment: 1,
    })
}

fn take_binary(
    source: &mut dyn Source,
    position: &mut u64,
    word: fn([u8; 2]) -> u16,
) -> Result<Record, Fault> {
    let header = take_block::<26>(source)?.ok_or(CUT_OFF)?;
    let field = |at: usize| {
        header
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |bytes| word(*bytes))
    };
    *position += 26;
    let name = take_name(source, position, u64::from(field(20)))?;
    align(source, position, 2)?;
    Ok(Record {
        name,
        mode: u32::from(field(6)),
        size: u64::from(field(22)) << 16 | u64::from(field(24)),
        sum: None,
        alignment: 2,
    })
}

fn take_stripped(source: &mut dyn Source, position: &mut u64, names: &Names) -> Result<Record, Fault> {
    let header = take_block::<14>(source)?.ok_or(CUT_OFF)?;
    let index = header
        .get(6..)
        .and_then(|field| radix(field, 16))
        .ok_or(NO_NUMBER)?;
    *position += 14;
    align(source, position, 4)?;
    let Names::Listed(files) = names else {
        return Err("a stripped record outside of an RPM".into());
    };
    let file = usize::try_from(index).ok().and_then(|index| files.get(index));
    let file = file.ok_or("a stripped record for a file that the header does not list")?;
    Ok(Record {
        name: file.name.clone(),
        mode: file.mode,
        size: file.size,
        sum: None,
        alignment: 4,
    })
}

/// A name of `length` bytes, its closing NUL included.
fn take_name(source: &mut dyn Source, position: &mut u64, length: u64) -> Result<Vec<u8>, Fault> {
    if length > u64::try_from(MAX_PATH_BYTES).unwrap_or(u64::MAX) {
        return Err("a name over its bound".into());
    }
    let mut name = take_bytes(source, length)?;
    *position = position.saturating_add(length);
    if name.pop() != Some(0) {
        return Err("a name without its end".into());
    }
    Ok(name)
}

/// Skips to a multiple of `alignment`; the padding at the very end may be missing.
fn align(source: &mut dyn Source, position: &mut u64, alignment: u64) -> io::Result<()> {
    let padding = (alignment - *position % alignment) % alignment;
    if padding > 0 && !source.fill_buf()?.is_empty() {
        skip(source, padding)?;
    }
    *position = position.saturating_add(padding);
    Ok(())
}

fn radix(field: &[u8], radix: u32) -> Option<u64> {
    field.iter().try_fold(0u64, |value, &byte| {
        let digit = char::from(byte).to_digit(radix)?;
        value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
    })
}

/// Compares the sum of all bytes with the declared one.
struct Summed<R> {
    inner: R,
    sum: u32,
    expected: u32,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        if count == 0 && !out.is_empty() && self.sum != self.expected {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the data do not have the declared sum",
            ));
        }
        for &byte in out.get(..count).unwrap_or_default() {
            self.sum = self.sum.wrapping_add(u32::from(byte));
        }
        Ok(count)
    }
}
