//! One tar header block, by tables.

use super::super::tar_header::{BLOCK, Header, has_checksum, has_magic, is_header};

/// Bytes and where they stand.
type Part<'b> = (usize, &'b [u8]);

/// A block with these bytes at these places, and the checksum that it then has.
fn block(parts: &[Part<'_>]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    for (at, bytes) in parts {
        block[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[test]
fn fields_are_where_their_dialect_has_them() {
    let long = [b'n'; 100];
    let deep = [b'p'; 155];
    let posix: Part<'_> = (257, b"ustar\x0000");
    let gnu: Part<'_> = (257, b"ustar  \0");
    let cases: [(&[Part<'_>], &[u8]); 7] = [
        (&[(0, b"a")], b"a"),
        (&[(0, &long), (100, b"0000644")], &long),
        (&[(0, b"a"), posix], b"a"),
        (&[(0, b"a"), posix, (345, b"b/c")], b"b/c/a"),
        // GNU has times in place of the prefix, V7 has nothing.
        (&[(0, b"a"), gnu, (345, b"b")], b"a"),
        (&[(0, b"a"), (345, b"b")], b"a"),
        (&[(0, b"a"), posix, (345, &deep)], &[&deep[..], b"/a"].concat()),
    ];
    for (parts, name) in cases {
        let block = block(parts);
        assert_eq!(Header::parse(&block).unwrap().name(), name, "{parts:?}");
    }
    // The prefix of star is shorter.
    let star = block(&[(0, b"a"), posix, (345, &deep), (508, b"tar\0")]);
    assert_eq!(
        Header::parse(&star).unwrap().name(),
        [&deep[..131], b"/a"].concat()
    );

    let sparse = block(&[
        (156, b"S"),
        (157, b"target"),
        (386, b"00000000001\0"),
        (482, b"\x01"),
        (483, b"00000001000\0"),
    ]);
    let sparse = Header::parse(&sparse).unwrap();
    assert_eq!(sparse.type_flag(), b'S');
    assert_eq!(sparse.link_name(), b"target");
    assert_eq!(sparse.sparse_map().len(), 96);
    assert!(sparse.sparse_map().starts_with(b"00000000001\0"));
    assert!(sparse.sparse_is_extended());
    assert_eq!(sparse.sparse_real_size(), Ok(512));
    let plain = block(&[(0, b"a"), (124, b"zz"), (483, b"zz")]);
    let plain = Header::parse(&plain).unwrap();
    assert_eq!(plain.type_flag(), 0);
    assert_eq!(plain.link_name(), b"");
    assert!(!plain.sparse_is_extended());
    assert!(plain.size().is_err());
    assert!(plain.sparse_real_size().is_err());
}

#[test]
fn checksums_of_both_kinds_and_nothing_near() {
    let good = block(&[(0, b"a\xff\x80"), (157, &[0xfe; 100])]);
    assert!(Header::parse(&good).is_ok());
    assert!(has_checksum(&good));
    assert!(!has_magic(&good));
    assert!(is_header(&good), "V7 has no magic");
    // Old tools add bytes as if they had a sign.
    let mut signed = block(&[(0, b"abcdefgh\xff\x80")]);
    signed[148..156].fill(b' ');
    let sum: i64 = signed.iter().map(|&byte| i64::from(byte.cast_signed())).sum();
    signed[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    assert!(Header::parse(&signed).is_ok());
    for change in [1, 2, 255] {
        let mut bad = good;
        bad[500] = bad[500].wrapping_add(change);
        assert!(Header::parse(&bad).is_err());
        assert!(!has_checksum(&bad));
        assert!(!is_header(&bad));
    }
    let mut blank = good;
    blank[148..156].fill(b'x');
    assert!(Header::parse(&blank).is_err(), "a checksum that is no number");
    // A block without a name is no beginning, whatever its checksum.
    assert!(!is_header(&block(&[(1, b"a")])));
    assert!(has_checksum(&block(&[(1, b"a")])));
    assert!(!has_checksum(&good[..BLOCK - 1]));
    for magic in [b"ustar\x0000", b"ustar  \0"] {
        let mut head = [0; BLOCK];
        head[257..265].copy_from_slice(magic);
        assert!(has_magic(&head) && is_header(&head));
    }
}

#[test]
fn a_mode_may_say_file_or_nothing_and_not_another_kind() {
    for (mode, other) in [
        ("0000644", false),
        ("0100644", false),
        ("0177777", false),
        ("0107777", false),
        ("0010644", true),
        ("0020644", true),
        ("0040755", true),
        ("0060644", true),
        ("0120777", true),
        ("0147777", true),
        ("no mode", false),
    ] {
        let block = block(&[(0, b"a"), (100, mode.as_bytes())]);
        assert_eq!(
            Header::parse(&block).unwrap().mode_names_another_kind(),
            other,
            "{mode}"
        );
    }
}
