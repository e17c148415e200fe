//! RPM: the envelope is checked by our own arithmetic before the `rpm` crate parses it, then the payload is read as a
//! stream. (The crate panics on an index entry that points past the store, and would hold the whole payload.)

use super::cpio::{self, Listed, Names, STRIPPED_MAGIC};
use super::entry::EntrySink;
use super::error::GateError;
use super::level::{Charge, Level};
use super::open::decompress;
use super::sniff::{self, Format, SNIFF_BYTES};
use super::stream::{Source, take_block, take_bytes};
use rpm::{IndexSignatureTag, IndexTag, PackageMetadata};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

const LEAD_BYTES: u64 = 96;
const HEADER_MAGIC: [u8; 4] = [0x8e, 0xad, 0xe8, 1];
/// rpm's own cap for the main header.
const MAX_INDEX_ENTRIES: u32 = 65_535;
/// Below rpm's own cap of 256 MiB: real headers have a few MiB, and all of it is held in memory.
const MAX_STORE_BYTES: u32 = 32 << 20;
/// Most bytes that the values of one header, or the paths of its files, take once parsed. Entries may overlap, so that
/// follows from neither the size of the store nor the number of entries.
const MAX_PARSED_BYTES: usize = 64 << 20;
/// `RPMTAG_FILEINODES`.
const TAG_FILE_INODES: u32 = 1096;

/// Reads an RPM to the end of `source`.
pub(super) fn read(
    level: &mut Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    charge: Charge,
) -> Result<(), GateError> {
    level.system = true;
    let mut envelope = take_bytes(source, LEAD_BYTES).map_err(|e| cut_off(level, e))?;
    take_header(level, source, charge, &mut envelope)?;
    // The signature header is padded; the main one is not.
    let padding = u64::try_from(envelope.len().next_multiple_of(8) - envelope.len()).unwrap_or(0);
    let pad = take_bytes(source, padding).map_err(|e| cut_off(level, e))?;
    envelope.extend_from_slice(&pad);
    let main = envelope.len();
    take_header(level, source, charge, &mut envelope)?;
    let metadata = parse(&envelope).ok_or_else(|| refuse(level, "the header cannot be parsed"))?;
    if !has_signed_digest(&metadata, envelope.get(main..).unwrap_or_default()) {
        return Err(refuse(
            level,
            "the header does not have the SHA-256 that its signature states",
        ));
    }
    sink.rpm(&level.within, &metadata);

    let head = source
        .peek(SNIFF_BYTES)
        .map_err(|e| level.broken(Format::Rpm, e))?;
    let format = sniff::sniff(head);
    if head.is_empty() {
        return Err(payload_fault(level, "it is missing"));
    }
    let listed = || list_files(&metadata, envelope.get(main..).unwrap_or_default());
    if format.is_compressed() {
        let mut plain = decompress(level, format, source)?;
        return payload(level, sink, &mut plain, Charge::Done, listed);
    }
    payload(level, sink, source, charge, listed)
}

fn payload(
    level: &Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    charge: Charge,
    listed: impl FnOnce() -> Option<Vec<Listed>>,
) -> Result<(), GateError> {
    let head = source
        .peek(SNIFF_BYTES)
        .map_err(|e| level.broken(Format::Rpm, e))?;
    let names = if head.starts_with(STRIPPED_MAGIC) {
        Names::Listed(listed().ok_or_else(|| refuse(level, "the header's file list cannot be read"))?)
    } else if sniff::sniff(head) == Format::Cpio || head.starts_with(b"07070") {
        Names::InArchive
    } else {
        return Err(payload_fault(level, "it is not CPIO"));
    };
    cpio::read(level, sink, source, charge, &names)
}

fn refuse(level: &Level<'_>, reason: &'static str) -> GateError {
    GateError::Rpm {
        reason,
        place: level.place(""),
    }
}

fn payload_fault(level: &Level<'_>, reason: &'static str) -> GateError {
    GateError::RpmPayload {
        reason,
        place: level.place(""),
    }
}

/// A refusal or a failed disk stays what it is; a mere end is the envelope's fault.
fn cut_off(level: &Level<'_>, error: std::io::Error) -> GateError {
    match level.broken(Format::Rpm, error) {
        GateError::Decoder { .. } => refuse(level, "the envelope is cut off"),
        other => other,
    }
}

/// Appends one header structure to `envelope` once its counts, sizes and offsets are right.
fn take_header(
    level: &Level<'_>,
    source: &mut dyn Source,
    charge: Charge,
    envelope: &mut Vec<u8>,
) -> Result<(), GateError> {
    let intro = take_block::<16>(source).map_err(|e| cut_off(level, e))?;
    let intro = intro.ok_or_else(|| refuse(level, "the envelope is cut off"))?;
    if !intro.starts_with(&HEADER_MAGIC) {
        return Err(refuse(level, "a header without magic"));
    }
    let (count, store) = (word(&intro, 8), word(&intro, 12));
    if count > MAX_INDEX_ENTRIES {
        return Err(refuse(level, "more index entries than any package has"));
    }
    if store > MAX_STORE_BYTES {
        return Err(refuse(level, "a header larger than any package has"));
    }
    let size = 16 * u64::from(count) + u64::from(store);
    level.charge_plain(charge, size, "")?;
    let body = take_bytes(source, size).map_err(|e| cut_off(level, e))?;
    let index_bytes = 16 * usize::try_from(count).unwrap_or(usize::MAX);
    let (index, store) = body.split_at_checked(index_bytes).unwrap_or_default();
    check_index(index, store).map_err(|reason| refuse(level, reason))?;
    envelope.extend_from_slice(&intro);
    envelope.extend_from_slice(&body);
    Ok(())
}

/// Whether every index entry's data lie inside the store.
fn check_index(index: &[u8], store: &[u8]) -> Result<(), &'static str> {
    // Entries may overlap, so the work of finding string ends has to be bounded.
    let mut work = store.len().saturating_mul(4).saturating_add(1 << 16);
    let mut room = MAX_PARSED_BYTES;
    let mut hold = |bytes: usize| -> Result<(), &'static str> {
        room = room
            .checked_sub(bytes)
            .ok_or("index entries that come to more than any package has")?;
        Ok(())
    };
    for entry in index.chunks_exact(16) {
        let (kind, offset, count) = (word(entry, 4), word(entry, 8), word(entry, 12));
        let offset = usize::try_from(offset).map_err(|_| "an offset outside the store")?;
        let data = store
            .get(offset..)
            .ok_or("an index entry that points past the store")?;
        let count = usize::try_from(count).map_err(|_| "a count past the store")?;
        let width = match kind {
            0 => 0,
            1 | 2 | 7 => 1,
            3 => 2,
            4 => 4,
            5 => 8,
            // rpm itself refuses this; others would look for as many strings.
            6 if count != 1 => return Err("a single string with a count"),
            6 | 8 | 9 => {
                let used = strings_length(data, count, work).ok_or("strings that run past the store")?;
                work = work.saturating_sub(used);
                hold(count.saturating_mul(size_of::<String>()).saturating_add(used))?;
                continue;
            }
            _ => return Err("an index entry of unknown type"),
        };
        let length = count.checked_mul(width).filter(|&length| length <= data.len());
        hold(length.ok_or("an index entry whose data run past the store")?)?;
    }
    Ok(())
}

/// Bytes of the first `count` NUL-terminated strings, if they are there and not longer than `most` in all.
fn strings_length(data: &[u8], count: usize, most: usize) -> Option<usize> {
    let mut used = 0usize;
    for _ in 0..count {
        let rest = data.get(used..)?;
        used += rest.iter().position(|&b| b == 0)? + 1;
        if used > most {
            return None;
        }
    }
    Some(used)
}

fn parse(envelope: &[u8]) -> Option<PackageMetadata> {
    // What the check above overlooked is an error of this artifact, not the end of the service.
    catch_unwind(AssertUnwindSafe(|| PackageMetadata::parse(&mut &*envelope).ok()))
        .ok()
        .flatten()
}

/// Whether the main header is the one that the signature header describes, where it does so. Syft's reader gives up on
/// others, and their package would be missing.
fn has_signed_digest(metadata: &PackageMetadata, main_header: &[u8]) -> bool {
    match metadata
        .signature
        .get_entry_data_as_string(IndexSignatureTag::RPMSIGTAG_SHA256)
    {
        Ok(stated) => stated.len() < 2 || stated == hex::encode(Sha256::digest(main_header)),
        Err(error) => matches!(error, rpm::Error::TagNotFound(_)),
    }
}

/// The header's files as the payload has them: hard-linked files have their data with the last of them.
fn list_files(metadata: &PackageMetadata, main_header: &[u8]) -> Option<Vec<Listed>> {
    if path_bytes(metadata) > MAX_PARSED_BYTES {
        return None;
    }
    let entries = catch_unwind(AssertUnwindSafe(|| metadata.get_file_entries().ok()))
        .ok()
        .flatten()?;
    let inodes = numbers(main_header, TAG_FILE_INODES);
    let mut last_of: HashMap<u32, usize> = HashMap::new();
    for (at, &inode) in inodes.iter().enumerate() {
        last_of.insert(inode, at);
    }
    let files = entries.iter().enumerate().map(|(at, entry)| {
        let mode = u32::from(entry.mode());
        let has_data = match mode & 0o170_000 {
            0o100_000 => inodes.get(at).is_none_or(|inode| last_of.get(inode) == Some(&at)),
            0o120_000 => true,
            _ => false,
        };
        let path = entry.path();
        let path = path.as_os_str().as_encoded_bytes();
        let size = u64::try_from(entry.size()).unwrap_or(u64::MAX);
        Listed {
            name: path.strip_prefix(b"/").unwrap_or(path).to_vec(),
            mode,
            size: if has_data { size } else { 0 },
        }
    });
    Some(files.collect())
}

/// Bytes of all paths together: every file has its directory's name in front, and many may share a long one.
fn path_bytes(metadata: &PackageMetadata) -> usize {
    let header = &metadata.header;
    let strings = |tag| header.get_entry_data_as_string_array(tag).unwrap_or_default();
    let directories = strings(IndexTag::RPMTAG_DIRNAMES);
    let names = strings(IndexTag::RPMTAG_BASENAMES);
    let indexes = header.get_entry_data_as_u32_array(IndexTag::RPMTAG_DIRINDEXES);
    let of_directories = indexes.unwrap_or_default().into_iter().map(|index| {
        let directory = usize::try_from(index)
            .ok()
            .and_then(|index| directories.get(index));
        directory.map_or(0, |directory| directory.len())
    });
    let of_names = names.iter().map(|name| name.len());
    of_directories.chain(of_names).fold(0, usize::saturating_add)
}

/// The 32-bit numbers of a tag in a checked header structure.
fn numbers(header: &[u8], tag: u32) -> Vec<u32> {
    let index_bytes = usize::try_from(word(header, 8)).unwrap_or(0).saturating_mul(16);
    let Some((index, store)) = header
        .get(16..)
        .and_then(|body| body.split_at_checked(index_bytes))
    else {
        return Vec::new();
    };
    let entry = index
        .chunks_exact(16)
        .find(|entry| word(entry, 0) == tag && word(entry, 4) == 4);
    let data = entry.and_then(|entry| {
        let offset = usize::try_from(word(entry, 8)).ok()?;
        let length = usize::try_from(word(entry, 12)).ok()?.checked_mul(4)?;
        store.get(offset..offset.checked_add(length)?)
    });
    data.unwrap_or_default()
        .chunks_exact(4)
        .map(|bytes| word(bytes, 0))
        .collect()
}

/// Big-endian; 0 outside.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::{MAX_PARSED_BYTES, check_index};

    fn entry(kind: u32, offset: u32, count: u32) -> [u8; 16] {
        let mut entry = [0; 16];
        for (at, value) in [(0, 1000), (4, kind), (8, offset), (12, count)] {
            entry[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
        }
        entry
    }

    #[test]
    fn data_lie_inside_the_store() {
        let store = b"ab\0c\0\0\0\x01";
        let cases = [
            (entry(0, 8, 9), true),
            (entry(0, 9, 0), false),
            (entry(1, 0, 8), true),
            (entry(2, 0, 9), false),
            (entry(3, 0, 4), true),
            (entry(3, 2, 4), false),
            (entry(4, 0, 2), true),
            (entry(4, 0, 3), false),
            (entry(5, 0, 1), true),
            (entry(5, 1, 1), false),
            (entry(7, 7, 1), true),
            (entry(7, 8, 1), false),
            (entry(6, 0, 1), true),
            // Some readers look at the count of a single string, others do not.
            (entry(6, 3, 99), false),
            (entry(6, 7, 1), false),
            (entry(8, 0, 4), true),
            (entry(8, 0, 5), false),
            (entry(9, 5, 2), true),
            (entry(10, 0, 0), false),
            (entry(4, u32::MAX, 1), false),
            (entry(5, 0, u32::MAX), false),
        ];
        for (entry, fits) in cases {
            assert_eq!(check_index(&entry, store).is_ok(), fits, "{entry:?}");
        }
    }

    #[test]
    fn overlapping_entries_cannot_multiply_the_store() {
        let store = vec![0; 1 << 20];
        let all = MAX_PARSED_BYTES / store.len();
        let whole = entry(7, 0, 1 << 20);
        assert_eq!(check_index(&whole.repeat(all), &store), Ok(()));
        assert!(check_index(&whole.repeat(all + 1), &store).is_err());
        // A million empty strings are a megabyte here and 24 once parsed.
        let strings = entry(8, 0, 1 << 20);
        assert_eq!(check_index(&strings.repeat(2), &store), Ok(()));
        assert!(check_index(&strings.repeat(3), &store).is_err());
    }
}
