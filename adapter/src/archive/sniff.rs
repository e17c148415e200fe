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
    use super::{Format, decompressed_name, has_suffix, names_archive, names_zip, sniff, sniff_nested};

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
    fn formats_that_are_only_recognised_and_near_misses() {
        let cases: [(&[u8], Format); 24] = [
            (b"PK\x07\x08", Format::Zip),
            (b"PK\x01\x02", Format::Opaque),
            (b"Rar!\x1a\x07\0", Format::Rar),
            (b"Rar!\x1a\x08", Format::Opaque),
            (b"\x04\x22\x4d\x18", Format::Lz4),
            (b"\xff\x06\0\0sNaPpY", Format::Snappy),
            (b"LZIP\x00", Format::Lzip),
            (b"LZIP\x01", Format::Lzip),
            (b"LZIP\x02", Format::Opaque),
            (b"BZh1\x17\x72\x45\x38\x50\x90", Format::Bzip2),
            (b"BZh0\x17\x72\x45\x38\x50\x90", Format::Opaque),
            (b"BZh91AY&SX", Format::Opaque),
            (b"\x50\x2a\x4d\x18", Format::Zstd),
            (b"\x60\x2a\x4d\x18", Format::Opaque),
            (b"\x1f\x8b\x08\x1f", Format::Gzip),
            (b"\x1f\x8b\x08\x20", Format::Opaque),
            (b"\x1f\x8b\x07\x00", Format::Opaque),
            (b"\xed\xab\xee\xdc", Format::Opaque),
            (b"\xfd7zXZ\x01", Format::Opaque),
            (b"7z\xbc\xaf\x27\x1d", Format::Opaque),
            (b"!<arch>", Format::Opaque),
            (b"\x28\xb5\x2f\xfc", Format::Opaque),
            (b"\xff\x06\0\0sNaPpX", Format::Opaque),
            (b"\x04\x22\x4d\x19", Format::Opaque),
        ];
        for (head, format) in cases {
            assert_eq!(sniff(head), format, "{head:?}");
        }
    }

    #[test]
    fn cpio_by_its_fields() {
        let text = |magic: &str, digit: u8, digits: usize| {
            let mut head = magic.as_bytes().to_vec();
            head.resize(6 + digits, digit);
            sniff(&head)
        };
        for (magic, digit, digits, format) in [
            ("070701", b'f', 104, Format::Cpio),
            ("070701", b'F', 104, Format::Cpio),
            ("070701", b'g', 104, Format::Opaque),
            ("070701", b'0', 103, Format::Opaque),
            ("070702", b'0', 104, Format::Cpio),
            ("070703", b'0', 104, Format::Opaque),
            ("070707", b'7', 70, Format::Cpio),
            ("070707", b'8', 70, Format::Opaque),
            ("070707", b'0', 69, Format::Opaque),
        ] {
            assert_eq!(text(magic, digit, digits), format, "{magic} {digit} {digits}");
        }
        let binary = |magic: [u8; 2], size: [u8; 2]| {
            let mut head = [0; 26];
            head[..2].copy_from_slice(&magic);
            head[20..22].copy_from_slice(&size);
            sniff(&head)
        };
        for (size, format) in [
            ([2, 0], Format::Cpio),
            ([255, 0], Format::Cpio),
            ([1, 0], Format::Opaque),
            ([0, 0], Format::Opaque),
            ([2, 1], Format::Opaque),
        ] {
            assert_eq!(binary([0xc7, 0x71], size), format, "{size:?}");
            assert_eq!(binary([0x71, 0xc7], [size[1], size[0]]), format, "{size:?}");
        }
        assert_eq!(sniff(&[0xc7, 0x71]), Format::Opaque);
    }

    #[test]
    fn lzma_by_its_dictionary_and_size() {
        let alone = |dictionary: u32, size: u64| {
            let mut head = vec![0x5d];
            head.extend_from_slice(&dictionary.to_le_bytes());
            head.extend_from_slice(&size.to_le_bytes());
            sniff(&head)
        };
        for (dictionary, size, format) in [
            (4096, 1, Format::Lzma),
            (4096, 0, Format::Lzma),
            (1 << 31, u64::MAX, Format::Lzma),
            (4096 | 2048, 1, Format::Lzma),
            (2048, 1, Format::Opaque),
            (2048 | 1024, 1, Format::Opaque),
            (0, 1, Format::Opaque),
            (4096 | 1024, 1, Format::Opaque),
            (4096 | 1, 1, Format::Opaque),
            (4096, (1 << 40) - 1, Format::Lzma),
            (4096, 1 << 40, Format::Opaque),
            (4096, u64::MAX - 1, Format::Opaque),
        ] {
            assert_eq!(alone(dictionary, size), format, "{dictionary:x} {size:x}");
        }
        assert_eq!(sniff(b"]\0\x10\0\0\0\0\0\0\0\0\0"), Format::Opaque, "too short");
    }

    #[test]
    fn what_formats_are_and_are_called() {
        use Format::{
            Ar, Bzip2, Cpio, Gzip, Lz4, Lzip, Lzma, Opaque, Rar, Rpm, SevenZip, Snappy, Tar, Xz, Zip, Zstd,
        };
        let archives = [
            (Zip, "zip"),
            (Tar, "tar"),
            (Ar, "ar"),
            (Cpio, "cpio"),
            (Rpm, "rpm"),
        ];
        let streams = [
            (Gzip, "gzip"),
            (Bzip2, "bzip2"),
            (Xz, "xz"),
            (Zstd, "zstd"),
            (Lzma, "lzma"),
        ];
        let others = [
            (SevenZip, "7z"),
            (Rar, "rar"),
            (Lz4, "lz4"),
            (Snappy, "snappy"),
            (Lzip, "lzip"),
        ];
        for (kind, formats) in [(0, archives), (1, streams), (2, others)] {
            for (format, name) in formats {
                assert_eq!(format.to_string(), name);
                let kinds = [
                    format.is_archive(),
                    format.is_compressed(),
                    format.is_unsupported(),
                ];
                assert_eq!(kinds.iter().position(|&is| is), Some(kind), "{name}");
                assert_eq!(kinds.iter().filter(|&&is| is).count(), 1, "{name}");
            }
        }
        assert_eq!(Opaque.to_string(), "opaque");
        assert!(!Opaque.is_archive() && !Opaque.is_compressed() && !Opaque.is_unsupported());
    }

    #[test]
    fn inside_an_archive_a_tar_needs_magic_and_checksum_or_the_name() {
        let mut posix = tar::Header::new_ustar();
        posix.set_path("a").unwrap();
        posix.set_size(0);
        posix.set_cksum();
        let posix = *posix.as_bytes();
        let mut old = tar::Header::new_old();
        old.set_path("a").unwrap();
        old.set_size(0);
        old.set_cksum();
        let old = *old.as_bytes();
        let mut wrong = posix;
        wrong[0] = b'b';
        for (head, name, format) in [
            (&posix, "x", Format::Tar),
            (&old, "x", Format::Opaque),
            (&wrong, "x", Format::Opaque),
            (&old, "x.tar", Format::Tar),
            (&wrong, "x.TAR", Format::Tar),
        ] {
            assert_eq!(sniff_nested(head, name), format, "{name}");
        }
        let skippable = b"\x50\x2a\x4d\x18\0\0\0\0";
        assert_eq!(sniff_nested(skippable, "x"), Format::Opaque);
        assert_eq!(sniff_nested(skippable, "x.zst"), Format::Zstd);
        assert_eq!(sniff_nested(b"\x28\xb5\x2f\xfd", "x"), Format::Zstd);
        assert_eq!(sniff_nested(b"!<arch>\n", "x.deb"), Format::Ar);
    }

    #[test]
    fn names_of_archives() {
        for zip in [
            "zip", "jar", "war", "ear", "aar", "par", "sar", "nar", "kar", "hpi", "jpi", "lpkg", "whl",
            "egg", "conda", "nupkg", "apk", "ipa", "rar",
        ] {
            let name = format!("a/b.{zip}");
            assert!(names_zip(&name) && names_archive(&name), "{name}");
            assert!(!names_archive(&format!("{name}x")));
        }
        for other in [
            "tar", "tgz", "gz", "xz", "zst", "crate", "gem", "rpm", "deb", "cpio", "z", "br",
        ] {
            let name = format!("a/b.{other}");
            assert!(!names_zip(&name) && names_archive(&name), "{name}");
        }
        assert!(!names_archive("tar") && !names_archive("a.txt") && !names_archive(""));
        for suffix in ["gz", "bz2", "bz", "xz", "zst", "zstd", "lzma", "tgz", "z"] {
            assert_eq!(decompressed_name(&format!("d/stem.{suffix}")), "stem", "{suffix}");
        }
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
