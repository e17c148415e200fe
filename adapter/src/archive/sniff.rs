//! Leading bytes to format. Pure.

use super::tar_header;
use std::fmt;

/// Bytes that [`sniff`] looks at.
pub const SNIFF_BYTES: usize = 512;

/// What some bytes are, by their content alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// ZIP family, also behind a prefix.
    Zip,
    /// Any tar dialect.
    Tar,
    /// Unix `ar`, so also deb.
    Ar,
    /// CPIO: newc, crc, odc or old binary.
    Cpio,
    /// RPM package.
    Rpm,
    /// gzip members.
    Gzip,
    /// bzip2 streams.
    Bzip2,
    /// xz streams.
    Xz,
    /// zstd frames.
    Zstd,
    /// LZMA-alone.
    Lzma,
    /// 7z; recognised, not read.
    SevenZip,
    /// RAR; recognised, not read.
    Rar,
    /// lz4 frames; recognised, not read.
    Lz4,
    /// Framed snappy; recognised, not read.
    Snappy,
    /// lzip; recognised, not read.
    Lzip,
    /// Nothing that the gate opens.
    Opaque,
}

impl Format {
    /// Whether it is one compressed stream.
    pub const fn is_compressed(self) -> bool {
        matches!(
            self,
            Self::Gzip | Self::Bzip2 | Self::Xz | Self::Zstd | Self::Lzma
        )
    }

    /// Whether it holds entries.
    pub const fn is_archive(self) -> bool {
        matches!(self, Self::Zip | Self::Tar | Self::Ar | Self::Cpio | Self::Rpm)
    }

    /// Whether the gate knows its name, but not its inside.
    pub const fn is_unsupported(self) -> bool {
        matches!(
            self,
            Self::SevenZip | Self::Rar | Self::Lz4 | Self::Snappy | Self::Lzip
        )
    }

    /// Usual name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::Ar => "ar",
            Self::Cpio => "cpio",
            Self::Rpm => "rpm",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Lzma => "lzma",
            Self::SevenZip => "7z",
            Self::Rar => "rar",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Lzip => "lzip",
            Self::Opaque => "opaque",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format of an artifact, or of a decompressed stream, by its first [`SNIFF_BYTES`] (or all, if fewer).
///
/// ZIPs behind a prefix are not seen here; their truth is at the end.
pub fn sniff(head: &[u8]) -> Format {
    match head {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] | [b'P', b'K', 7, 8, ..] => Format::Zip,
        [0xed, 0xab, 0xee, 0xdb, ..] => Format::Rpm,
        [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => Format::Gzip,
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
            if rest.starts_with(&[0x31, 0x41, 0x59, 0x26, 0x53, 0x59])
                || rest.starts_with(&[0x17, 0x72, 0x45, 0x38, 0x50, 0x90]) =>
        {
            Format::Bzip2
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Format::Xz,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Format::Zstd,
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Format::SevenZip,
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Format::Rar,
        [4, 0x22, 0x4d, 0x18, ..] => Format::Lz4,
        [0xff, 6, 0, 0, b's', b'N', b'a', b'P', b'p', b'Y', ..] => Format::Snappy,
        [b'L', b'Z', b'I', b'P', 0 | 1, ..] => Format::Lzip,
        _ if head.starts_with(b"!<arch>\n") => Format::Ar,
        _ if is_cpio(head) => Format::Cpio,
        _ if tar_header::is_header(head) => Format::Tar,
        _ if is_lzma_alone(head) => Format::Lzma,
        _ => Format::Opaque,
    }
}

/// The format of a file inside an archive.
///
/// Stricter than [`sniff`]: an object library (`ar` without `debian-binary`) and weak signatures stay opaque unless
/// the name says otherwise, because no engine opens them and ordinary files may look like them.
pub fn sniff_nested(head: &[u8], name: &str) -> Format {
    match sniff(head) {
        Format::Ar if !head.starts_with(b"!<arch>\ndebian-binary") && !has_suffix(name, ".deb") => {
            Format::Opaque
        }
        Format::Lzma if !has_suffix(name, ".lzma") => Format::Opaque,
        Format::Tar if has_suffix(name, ".tar") => Format::Tar,
        Format::Tar if !tar_header::has_checksum(head) || !tar_header::has_magic(head) => Format::Opaque,
        Format::Zstd if !head.starts_with(&[0x28]) && !has_suffix(name, "zst") => Format::Opaque,
        other => other,
    }
}

/// Names under which engines open ZIPs by their end, so that a prefix hides nothing from them.
pub fn names_zip(name: &str) -> bool {
    const SUFFIXES: [&str; 21] = [
        ".zip", ".jar", ".war", ".ear", ".aar", ".par", ".sar", ".nar", ".kar", ".hpi", ".jpi", ".lpkg",
        ".far", ".zap", ".whl", ".egg", ".conda", ".nupkg", ".apk", ".ipa", ".rar",
    ];
    SUFFIXES.iter().any(|suffix| has_suffix(name, suffix))
}

/// Names under which engines and package managers open archives.
pub fn names_archive(name: &str) -> bool {
    const SUFFIXES: [&str; 26] = [
        ".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tzst", ".tzstd", ".gz", ".bz", ".bz2", ".xz", ".zst",
        ".zstd", ".lzma", ".lz4", ".tlz4", ".br", ".sz", ".crate", ".gem", ".rpm", ".deb", ".cpio", ".z",
        ".lz", ".tlz",
    ];
    names_zip(name) || SUFFIXES.iter().any(|suffix| has_suffix(name, suffix))
}

/// Whether `name` ends with `suffix`, in any case of letters.
pub fn has_suffix(name: &str, suffix: &str) -> bool {
    name.len()
        .checked_sub(suffix.len())
        .and_then(|start| name.as_bytes().get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix.as_bytes()))
}

/// The name of what a compressed file holds: its last component without the compression suffix.
pub fn decompressed_name(name: &str) -> &str {
    const SUFFIXES: [&str; 9] = [
        ".gz", ".bz2", ".bz", ".xz", ".zst", ".zstd", ".lzma", ".tgz", ".z",
    ];
    let last = name.rsplit('/').next().unwrap_or(name);
    SUFFIXES
        .iter()
        .filter(|suffix| has_suffix(last, suffix))
        .find_map(|suffix| last.get(..last.len() - suffix.len()))
        .filter(|stem| !stem.is_empty())
        .unwrap_or(last)
}

fn is_cpio(head: &[u8]) -> bool {
    match head {
        // Binary magic is two bytes only: demand a plausible name size (at +20) as well.
        [0xc7, 0x71, ..] => matches!(head.get(20..22), Some(&[low, high]) if high == 0 && low > 1),
        [0x71, 0xc7, ..] => matches!(head.get(20..22), Some(&[high, low]) if high == 0 && low > 1),
        _ if head.starts_with(b"070701") || head.starts_with(b"070702") => head
            .get(6..110)
            .is_some_and(|fields| fields.iter().all(u8::is_ascii_hexdigit)),
        _ if head.starts_with(b"070707") => head
            .get(6..76)
            .is_some_and(|fields| fields.iter().all(|b| (b'0'..=b'7').contains(b))),
        _ => false,
    }
}

/// `5d`, a dictionary size of `2^n` or `2^n + 2^(n-1)`, and a size that is unknown or below 2^40.
fn is_lzma_alone(head: &[u8]) -> bool {
    let Some((&[0x5d, d0, d1, d2, d3, s0, s1, s2, s3, s4, s5, s6, s7], _)) = head.split_first_chunk::<13>()
    else {
        return false;
    };
    let dictionary = u32::from_le_bytes([d0, d1, d2, d3]);
    let size = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
    let top = dictionary.checked_ilog2().map_or(0, |n| 1u32 << n);
    let plausible = dictionary >= 4096 && (dictionary == top || dictionary == top | (top >> 1));
    plausible && (size == u64::MAX || size < 1 << 40)
}

#[cfg(test)]
mod tests {
    use super::{Format, decompressed_name, has_suffix, names_zip, sniff, sniff_nested};

    #[test]
    fn formats_by_their_first_bytes() {
        let cases: [(&[u8], Format); 17] = [
            (b"PK\x03\x04", Format::Zip),
            (b"PK\x05\x06", Format::Zip),
            (b"PK", Format::Opaque),
            (b"\xed\xab\xee\xdb", Format::Rpm),
            (b"\x1f\x8b\x08\x00", Format::Gzip),
            (b"\x1f\x8b\x08\xff", Format::Opaque),
            (b"BZh91AY&SY", Format::Bzip2),
            (b"BZhello", Format::Opaque),
            (b"\xfd7zXZ\0", Format::Xz),
            (b"\x28\xb5\x2f\xfd", Format::Zstd),
            (b"\x5f\x2a\x4d\x18", Format::Zstd),
            (b"!<arch>\n", Format::Ar),
            (b"7z\xbc\xaf\x27\x1c", Format::SevenZip),
            (b"\x78\x9c", Format::Opaque),
            (b"]\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff", Format::Lzma),
            (b"]\0\0 is text in a file", Format::Opaque),
            (b"", Format::Opaque),
        ];
        for (head, format) in cases {
            assert_eq!(sniff(head), format, "{head:?}");
        }
    }

    #[test]
    fn inside_an_archive_weak_signatures_need_the_name() {
        assert_eq!(sniff_nested(b"!<arch>\nfoo.o/", "libfoo.a"), Format::Opaque);
        assert_eq!(sniff_nested(b"!<arch>\ndebian-binary", "x"), Format::Ar);
        let lzma = b"]\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff";
        assert_eq!(sniff_nested(lzma, "a.bin"), Format::Opaque);
        assert_eq!(sniff_nested(lzma, "a.LZMA"), Format::Lzma);
    }

    #[test]
    fn names() {
        assert!(names_zip("a/B.HPI"));
        assert!(!names_zip("a.txt"));
        assert!(!has_suffix("r", ".jar"));
        assert_eq!(decompressed_name("x/metadata.gz"), "metadata");
        assert_eq!(decompressed_name("a.tar.xz"), "a.tar");
        assert_eq!(decompressed_name(".gz"), ".gz");
        assert_eq!(decompressed_name("plain"), "plain");
    }
}
