//! tar: V7, ustar, GNU and pax, header by header, with bounded records.
//!
//! Where POSIX and some readers disagree about where the next header is, the archive is refused.

use super::META_RECORD_BYTES;
use super::entry::{Container, EntryKind, EntrySink};
use super::error::GateError;
use super::level::{Charge, Level, too_many_links};
use super::links::Links;
use super::path::{self, Rules};
use super::sniff::Format;
use super::stream::{Limited, Source, rest_is_zero, skip, take_block, take_bytes};
use super::tar_header::{BLOCK, Fault, Header, Pax, until_nul};
use super::tar_sparse::{MapError, read_sparse, sparse_map};
use std::io;

/// Most bytes of a GNU long name or long link record.
const LONG_NAME_BYTES: u64 = 64 << 10;

/// Reads a tar to the end of `source`.
pub(super) fn read(
    level: &mut Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    charge: Charge,
) -> Result<(), GateError> {
    let mut reader = Reader {
        charge,
        links: Links::default(),
        pending: Pending::default(),
        is_first: true,
    };
    while let Some(block) = take_block::<BLOCK>(source).map_err(|e| level.broken(Format::Tar, e))? {
        if block == [0; BLOCK] {
            Reader::end(level, source)?;
            break;
        }
        let header = Header::parse(&block).map_err(|fault| level.malformed(Format::Tar, fault, ""))?;
        reader.record(level, sink, source, header)?;
    }
    if !reader.pending.is_empty() {
        return Err(level.malformed(Format::Tar, "a long name or pax header without its entry", ""));
    }
    match reader.links.escaping() {
        Some(name) => Err(GateError::LinkTarget {
            fault: path::PathFault::Parent,
            place: level.place(name),
        }),
        None => Ok(()),
    }
}

struct Reader {
    charge: Charge,
    links: Links,
    pending: Pending,
    is_first: bool,
}

/// What meta records said about the entry that follows them.
#[derive(Default)]
struct Pending {
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
    pax: Option<Pax>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.long_name.is_none() && self.long_link.is_none() && self.pax.is_none()
    }
}

impl Reader {
    fn record(
        &mut self,
        level: &mut Level<'_>,
        sink: &mut dyn EntrySink,
        source: &mut dyn Source,
        header: Header<'_>,
    ) -> Result<(), GateError> {
        let bad = |level: &Level<'_>, fault: Fault| level.malformed(Format::Tar, fault, &shown(header));
        let size = header.size().map_err(|fault| bad(level, fault))?;
        match header.type_flag() {
            b'L' => {
                let name = self.meta(level, source, size, LONG_NAME_BYTES)?;
                let name = until_nul(&name).to_vec();
                if self.pending.long_name.replace(name).is_some() {
                    return Err(bad(level, "two long names for one entry"));
                }
            }
            b'K' => {
                let link = self.meta(level, source, size, LONG_NAME_BYTES)?;
                let link = until_nul(&link).to_vec();
                if self.pending.long_link.replace(link).is_some() {
                    return Err(bad(level, "two long link targets for one entry"));
                }
            }
            b'x' | b'X' => {
                let records = self.meta(level, source, size, META_RECORD_BYTES)?;
                let pax = Pax::parse(&records).map_err(|fault| bad(level, fault))?;
                if self.pending.pax.replace(pax).is_some() {
                    return Err(bad(level, "two pax headers for one entry"));
                }
            }
            b'g' => {
                // Nothing else bounds their number.
                level.charge_entry()?;
                let records = self.meta(level, source, size, META_RECORD_BYTES)?;
                let pax = Pax::parse(&records).map_err(|fault| bad(level, fault))?;
                if pax.changes_reading() {
                    return Err(bad(
                        level,
                        "a global pax header that some readers apply and others ignore",
                    ));
                }
            }
            _ => self.entry(level, sink, source, header, size)?,
        }
        Ok(())
    }

    /// The content of a record about the next entry. Charged as bytes; its number is bounded by the entries'.
    fn meta(
        &self,
        level: &Level<'_>,
        source: &mut dyn Source,
        size: u64,
        limit: u64,
    ) -> Result<Vec<u8>, GateError> {
        if size > limit {
            return Err(level.malformed(Format::Tar, "a long name or pax header over its bound", ""));
        }
        level.charge_plain(self.charge, size, "")?;
        let bytes = take_bytes(source, size).map_err(|e| level.broken(Format::Tar, e))?;
        skip_padding(source, size).map_err(|e| level.broken(Format::Tar, e))?;
        Ok(bytes)
    }

    fn entry(
        &mut self,
        level: &mut Level<'_>,
        sink: &mut dyn EntrySink,
        source: &mut dyn Source,
        header: Header<'_>,
        header_size: u64,
    ) -> Result<(), GateError> {
        level.charge_entry()?;
        let pending = std::mem::take(&mut self.pending);
        let pax = pending.pax.unwrap_or_default();
        let raw_name = entry_name(header, pending.long_name, &pax)
            .map_err(|fault| level.malformed(Format::Tar, fault, &shown(header)))?;
        let name = level.check_name(&raw_name, Rules::Posix)?;
        let place = name.as_str();
        let bad = |level: &Level<'_>, fault: Fault| level.malformed(Format::Tar, fault, place);
        if std::mem::take(&mut self.is_first) {
            // Alpine (and Arch) packages are recognised by what they begin with.
            level.system |= place == ".PKGINFO" || place.starts_with(".SIGN.");
        }
        let stored = stored_size(header_size, &pax).map_err(|fault| bad(level, fault))?;
        if self.links.is_above(place) {
            return Err(GateError::Link {
                reason: "an entry beneath a symbolic link",
                place: level.place(place),
            });
        }
        let kind = Kind::of(header.type_flag(), name.names_directory());
        if !matches!(kind, Kind::File | Kind::Sparse) {
            if stored != 0 {
                return Err(bad(level, "data after a header that has none"));
            }
            let target = pax.link_path.or(pending.long_link);
            let target = target.as_deref().unwrap_or(header.link_name());
            return self.without_data(level, sink, kind, place, target);
        }
        if header.mode_names_another_kind() {
            return Err(bad(level, "a file whose mode says that it is something else"));
        }
        let map = sparse_map(header, &pax, source).map_err(|e| match e {
            MapError::Fault(fault) => bad(level, fault),
            MapError::Io(error) => level.broken_at(Format::Tar, place, error),
        })?;
        level.check_file(stored, place)?;
        level.charge_plain(self.charge, stored, place)?;
        match map {
            None => {
                let mut data = Limited::new(source, stored);
                level.file(sink, Container::Tar, place, Some(stored), &mut data)?;
            }
            Some(sparse) => read_sparse(level, sink, source, place, stored, sparse)?,
        }
        skip_padding(source, stored).map_err(|e| level.broken_at(Format::Tar, place, e))
    }

    fn without_data(
        &mut self,
        level: &Level<'_>,
        sink: &mut dyn EntrySink,
        kind: Kind,
        name: &str,
        target: &[u8],
    ) -> Result<(), GateError> {
        let shown_target = String::from_utf8_lossy(target);
        match kind {
            Kind::Directory => level.announce(sink, Container::Tar, name, EntryKind::Directory),
            Kind::Symlink => {
                level.check_symlink(name, target, Rules::Posix)?;
                if level.rules(Rules::Posix) != Rules::System && !self.links.add(name, &shown_target) {
                    return Err(too_many_links(level, name));
                }
                let kind = EntryKind::Symlink {
                    target: &shown_target,
                };
                level.announce(sink, Container::Tar, name, kind);
            }
            Kind::HardLink => {
                level.check_is_not_root(name)?;
                if !level.is_layer() {
                    path::check_hard_link_target(target, level.rules(Rules::Posix)).map_err(|fault| {
                        GateError::LinkTarget {
                            fault,
                            place: level.place(name),
                        }
                    })?;
                }
                if !level.allows_hard_links() {
                    return Err(GateError::Link {
                        reason: "a hard link",
                        place: level.place(name),
                    });
                }
                let kind = EntryKind::HardLink {
                    target: &shown_target,
                };
                level.announce(sink, Container::Tar, name, kind);
            }
            Kind::Special(kind) if !level.is_layer() => {
                return Err(GateError::SpecialFile {
                    kind,
                    place: level.place(name),
                });
            }
            Kind::Special(_) | Kind::File | Kind::Sparse => {}
        }
        Ok(())
    }

    /// After the first zero block only zeros may follow: some readers go on, and other formats may hide there.
    fn end(level: &Level<'_>, source: &mut dyn Source) -> Result<(), GateError> {
        if rest_is_zero(source).map_err(|e| level.broken(Format::Tar, e))? {
            Ok(())
        } else {
            Err(level.malformed(Format::Tar, "data after the end marker", ""))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Sparse,
    Directory,
    Symlink,
    HardLink,
    Special(&'static str),
}

impl Kind {
    fn of(type_flag: u8, names_directory: bool) -> Self {
        match type_flag {
            b'1' => Self::HardLink,
            b'2' => Self::Symlink,
            b'3' => Self::Special("character device"),
            b'4' => Self::Special("block device"),
            b'5' => Self::Directory,
            b'6' => Self::Special("FIFO"),
            b'S' => Self::Sparse,
            // V7 has no flag for directories.
            0 | b'0' if names_directory => Self::Directory,
            // POSIX: an unknown type is a regular file.
            _ => Self::File,
        }
    }
}

/// The name by the rules of all dialects; they must not contradict each other.
fn entry_name(header: Header<'_>, long_name: Option<Vec<u8>>, pax: &Pax) -> Result<Vec<u8>, Fault> {
    let pax_name = pax.sparse_name.as_ref().or(pax.path.as_ref());
    match (long_name, pax_name) {
        (Some(long), Some(pax)) if long != *pax => Err("a long name and a pax path that differ"),
        (Some(long), _) => Ok(long),
        (None, Some(pax)) => Ok(pax.clone()),
        (None, None) => Ok(header.name()),
    }
}

/// The size of the data by header and pax. A header that says 0 defers to pax, as POSIX has it for large files.
fn stored_size(header_size: u64, pax: &Pax) -> Result<u64, Fault> {
    match pax.size {
        Some(size) if header_size != 0 && size != header_size => Err("header and pax sizes that differ"),
        Some(size) => Ok(size),
        None => Ok(header_size),
    }
}

fn shown(header: Header<'_>) -> String {
    String::from_utf8_lossy(&header.name()).into_owned()
}

/// Skips to the next block. The last padding of an archive may be missing.
fn skip_padding(source: &mut dyn Source, size: u64) -> io::Result<()> {
    let block = u64::try_from(BLOCK).unwrap_or(512);
    let padding = (block - size % block) % block;
    if padding > 0 && !source.fill_buf()?.is_empty() {
        skip(source, padding)?;
    }
    Ok(())
}
