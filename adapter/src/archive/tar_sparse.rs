//! Sparse files of GNU tar: the map of what is stored, in all four forms, and the file with its holes filled.

use super::META_RECORD_BYTES;
use super::entry::{Container, EntrySink};
use super::error::GateError;
use super::level::{Charge, Level};
use super::sniff::Format;
use super::stream::{Limited, Source, Stream, take_block};
use super::tar_header::{BLOCK, Fault, Header, Pax, decimal, number};
use std::io::{self, Read};

/// A sparse file: which ranges of it are stored.
pub(super) struct SparseMap {
    /// Offset and length, ascending.
    ranges: Vec<(u64, u64)>,
    real_size: u64,
    /// Bytes of the stored data that were the map itself.
    consumed: u64,
}

pub(super) enum MapError {
    Fault(Fault),
    Io(io::Error),
}

impl From<io::Error> for MapError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for MapError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The sparse map of an entry, if it is sparse, in any of the four GNU forms.
pub(super) fn sparse_map(
    header: Header<'_>,
    pax: &Pax,
    source: &mut dyn Source,
) -> Result<Option<SparseMap>, MapError> {
    if header.type_flag() == b'S' {
        let mut ranges = Vec::new();
        let mut goes_on = header.sparse_is_extended();
        old_ranges(header.sparse_map(), &mut ranges)?;
        while goes_on {
            let block = take_block::<BLOCK>(source)?.ok_or("a sparse map that is cut off")?;
            old_ranges(block.get(..504).unwrap_or_default(), &mut ranges)?;
            goes_on = block.get(504) != Some(&0);
            bounded(&ranges)?;
        }
        let real_size = header.sparse_real_size()?;
        return Ok(Some(SparseMap {
            ranges,
            real_size,
            consumed: 0,
        }));
    }
    let Some(real_size) = pax.sparse_real_size else {
        return Ok(None);
    };
    if pax.sparse_version_1 {
        let (ranges, consumed) = leading_map(source)?;
        return Ok(Some(SparseMap {
            ranges,
            real_size,
            consumed,
        }));
    }
    let text = pax.sparse_map.as_deref().unwrap_or_default();
    let numbers: Vec<u64> = if text.is_empty() {
        Vec::new()
    } else {
        text.split(|&b| b == b',')
            .map(|n| decimal(n).ok_or("a sparse map that is no list of numbers"))
            .collect::<Result<_, Fault>>()?
    };
    Ok(Some(SparseMap {
        ranges: pairs(&numbers)?,
        real_size,
        consumed: 0,
    }))
}

fn bounded(ranges: &[(u64, u64)]) -> Result<(), Fault> {
    // 24 bytes each in the archive.
    let most = META_RECORD_BYTES / 24;
    if u64::try_from(ranges.len()).unwrap_or(u64::MAX) > most {
        return Err("a sparse map over its bound");
    }
    Ok(())
}

fn old_ranges(bytes: &[u8], ranges: &mut Vec<(u64, u64)>) -> Result<(), Fault> {
    for pair in bytes.chunks_exact(24) {
        let (offset, length) = pair.split_at(12);
        if offset.first() == Some(&0) || length.first() == Some(&0) {
            break;
        }
        let wrong = "a sparse map that is no list of numbers";
        ranges.push((number(offset).ok_or(wrong)?, number(length).ok_or(wrong)?));
    }
    Ok(())
}

/// Version 1.0: decimal lines before the data, padded to whole blocks. Gives the map and the bytes it took.
fn leading_map(source: &mut dyn Source) -> Result<(Vec<(u64, u64)>, u64), MapError> {
    let mut text = Vec::new();
    let mut wanted: Option<usize> = None;
    // Counted as they come: the map may have thousands of blocks.
    let mut lines = 0usize;
    loop {
        let block = take_block::<BLOCK>(source)?.ok_or("a sparse map that is cut off")?;
        text.extend_from_slice(&block);
        lines += block.split(|&byte| byte == b'\n').count() - 1;
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        if length > META_RECORD_BYTES {
            return Err(MapError::Fault("a sparse map over its bound"));
        }
        if wanted.is_none() && lines > 0 {
            let count = text.split(|&b| b == b'\n').next().and_then(decimal);
            let count = count.filter(|&n| n <= META_RECORD_BYTES / 4);
            let count = count.ok_or("a sparse map without a count")?;
            wanted = usize::try_from(count).ok().and_then(|n| n.checked_mul(2));
        }
        if let Some(wanted) = wanted
            && lines > wanted
        {
            let numbers: Vec<u64> = text
                .split(|&b| b == b'\n')
                .skip(1)
                .take(wanted)
                .map(|n| decimal(n).ok_or("a sparse map that is no list of numbers"))
                .collect::<Result<_, Fault>>()?;
            return Ok((pairs(&numbers)?, length));
        }
    }
}

fn pairs(numbers: &[u64]) -> Result<Vec<(u64, u64)>, Fault> {
    let mut chunks = numbers.chunks_exact(2);
    let ranges: Vec<_> = chunks
        .by_ref()
        .filter_map(|pair| match *pair {
            [offset, length] => Some((offset, length)),
            _ => None,
        })
        .collect();
    if !chunks.remainder().is_empty() {
        return Err("a sparse map with an odd number of numbers");
    }
    bounded(&ranges)?;
    Ok(ranges)
}

pub(super) fn read_sparse(
    level: &Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    name: &str,
    stored: u64,
    map: SparseMap,
) -> Result<(), GateError> {
    let bad = |fault: Fault| level.malformed(Format::Tar, fault, name);
    level.check_file(map.real_size, name)?;
    let data = stored
        .checked_sub(map.consumed)
        .ok_or_else(|| bad("a sparse map larger than its data"))?;
    let mut end = 0u64;
    let mut sum = 0u64;
    for &(offset, length) in &map.ranges {
        let next = offset.checked_add(length).filter(|_| offset >= end);
        end = next.ok_or_else(|| bad("a sparse map whose ranges are not ascending"))?;
        sum = sum.saturating_add(length);
    }
    if end > map.real_size || sum != data {
        return Err(bad("a sparse map that does not fit its sizes"));
    }
    // The holes are bytes to everybody who unpacks the file.
    level.charge_plain(Charge::Bytes, map.real_size - data, name)?;
    let mut expanded = Stream::new(Expanded {
        data: Limited::new(source, data),
        ranges: map.ranges.into_iter(),
        current: None,
        position: 0,
        real_size: map.real_size,
    });
    level.file(sink, Container::Tar, name, Some(map.real_size), &mut expanded)
}

/// A sparse file with its holes filled.
struct Expanded<'s> {
    data: Limited<'s>,
    ranges: std::vec::IntoIter<(u64, u64)>,
    /// Range that has not been read to its end.
    current: Option<(u64, u64)>,
    position: u64,
    real_size: u64,
}

impl Read for Expanded<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.current.is_none() {
                self.current = self.ranges.next();
            }
            let (offset, length) = self.current.unwrap_or((self.real_size, 0));
            let hole = offset.saturating_sub(self.position);
            let most = if hole > 0 { hole } else { length };
            if most == 0 {
                if self.current.take().is_none() {
                    return Ok(0);
                }
                continue;
            }
            let count = out.len().min(usize::try_from(most).unwrap_or(usize::MAX));
            let Some(part) = out.get_mut(..count).filter(|part| !part.is_empty()) else {
                return Ok(0);
            };
            let count = if hole > 0 {
                part.fill(0);
                part.len()
            } else {
                self.data.read(part)?
            };
            let moved = u64::try_from(count).unwrap_or(u64::MAX);
            self.position = self.position.saturating_add(moved);
            if hole == 0 {
                self.current = Some((offset.saturating_add(moved), length.saturating_sub(moved)));
            }
            return Ok(count);
        }
    }
}
