//! Unix `ar`, so also deb.

use super::META_RECORD_BYTES;
use super::entry::{Container, EntrySink};
use super::error::GateError;
use super::level::{Charge, Level};
use super::path::Rules;
use super::sniff::Format;
use super::stream::{Limited, Source, skip, take_block, take_bytes};
use super::tar_header::decimal;

const MAGIC: &[u8; 8] = b"!<arch>\n";

/// Reads an `ar` to the end of `source`.
pub(super) fn read(
    level: &mut Level<'_>,
    sink: &mut dyn EntrySink,
    source: &mut dyn Source,
    charge: Charge,
) -> Result<(), GateError> {
    let magic = take_block::<8>(source).map_err(|e| level.broken(Format::Ar, e))?;
    if magic.as_ref() != Some(MAGIC) {
        return Err(level.malformed(Format::Ar, "no magic", ""));
    }
    let mut long_names = Vec::new();
    let mut is_first = true;
    let mut holds_system = false;
    while let Some(header) = take_block::<60>(source).map_err(|e| level.broken(Format::Ar, e))? {
        level.holds_system = holds_system;
        level.charge_entry()?;
        let header = Header(&header);
        let raw = header.field(0, 16).trim_ascii_end();
        let shown = String::from_utf8_lossy(raw);
        if header.field(58, 2) != b"`\n" {
            return Err(level.malformed(Format::Ar, "a header without its end mark", &shown));
        }
        let size = decimal(header.field(48, 10).trim_ascii())
            .ok_or_else(|| level.malformed(Format::Ar, "the size is not a number", &shown))?;
        level.check_file(size, &shown)?;
        level.charge_plain(charge, size, &shown)?;
        let mut data_size = size;
        let broken = |e| level.broken_at(Format::Ar, &shown, e);
        if raw == b"/" || raw == b"/SYM64/" || raw == b"//" {
            if raw == b"//" {
                if size > META_RECORD_BYTES || !long_names.is_empty() {
                    return Err(level.malformed(Format::Ar, "a name table over its bound", &shown));
                }
                long_names = take_bytes(source, size).map_err(broken)?;
            } else {
                skip(source, size).map_err(broken)?;
            }
        } else {
            let name = if let Some(length) = raw.strip_prefix(b"#1/") {
                let length = decimal(length).filter(|&n| n <= size && n <= META_RECORD_BYTES);
                let length =
                    length.ok_or_else(|| level.malformed(Format::Ar, "a bad name length", &shown))?;
                data_size -= length;
                let name = take_bytes(source, length).map_err(broken)?;
                super::tar_header::until_nul(&name).to_vec()
            } else if let Some(offset) = raw.strip_prefix(b"/") {
                let name = decimal(offset)
                    .and_then(|n| usize::try_from(n).ok())
                    .and_then(|n| long_names.get(n..))
                    .and_then(|names| names.split(|&b| b == b'\n').next());
                let name =
                    name.ok_or_else(|| level.malformed(Format::Ar, "a name outside the table", &shown))?;
                name.strip_suffix(b"/").unwrap_or(name).to_vec()
            } else {
                raw.strip_suffix(b"/").unwrap_or(raw).to_vec()
            };
            if std::mem::take(&mut is_first) {
                holds_system = name == b"debian-binary";
            }
            if holds_system && !is_plain_part(&name) {
                return Err(level.malformed(
                    Format::Ar,
                    "a part of the package under an unusual name",
                    &shown,
                ));
            }
            let safe = level.check_name(&name, Rules::Posix)?;
            let mut data = Limited::new(source, data_size);
            level.file(sink, Container::Ar, safe.as_str(), Some(data_size), &mut data)?;
        }
        if size % 2 == 1 && !source.fill_buf().map_err(broken)?.is_empty() {
            source.consume(1);
        }
    }
    Ok(())
}

/// Whether a member is no control or data archive to anybody, or one to everybody: Syft goes by how the name begins, dpkg
/// by all of it.
fn is_plain_part(name: &[u8]) -> bool {
    let suffix = name
        .strip_prefix(b"control.tar")
        .or_else(|| name.strip_prefix(b"data.tar"));
    suffix.is_none_or(|suffix| matches!(suffix, b"" | b".gz" | b".xz" | b".zst" | b".bz2" | b".lzma"))
}

struct Header<'b>(&'b [u8; 60]);

impl<'b> Header<'b> {
    fn field(&self, start: usize, length: usize) -> &'b [u8] {
        self.0.get(start..start + length).unwrap_or_default()
    }
}
