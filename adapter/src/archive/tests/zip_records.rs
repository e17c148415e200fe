//! One record of a ZIP's directory, by tables.

use super::super::zip_directory::{Kind, Record, check_unicode_path, widen};

#[test]
fn type_bits_that_are_no_type_say_nothing() {
    const UNIX: u16 = 3 << 8;
    const DOS: u16 = 0;
    for (made_by, mode, dos, slash, want) in [
        (UNIX, 0o177_777, 0x10, true, Some(Kind::Directory)),
        (UNIX, 0o177_777, 0x10, false, Some(Kind::File)),
        (UNIX, 0o177_777, 0, true, Some(Kind::Directory)),
        (UNIX, 0o177_777, 0, false, Some(Kind::File)),
        (UNIX, 0o000_644, 0x10, false, Some(Kind::File)),
        (UNIX, 0o000_644, 0, false, Some(Kind::File)),
        (UNIX, 0o100_644, 0x10, false, Some(Kind::File)),
        (UNIX, 0o100_755, 0, true, Some(Kind::Directory)),
        (UNIX, 0o040_755, 0, false, Some(Kind::Directory)),
        (UNIX, 0o120_777, 0x10, true, Some(Kind::Symlink)),
        (UNIX, 0o010_644, 0x10, true, None),
        (UNIX, 0o020_644, 0x10, true, None),
        (UNIX, 0o060_644, 0x10, true, None),
        (UNIX, 0o140_644, 0x10, true, None),
        (DOS, 0o140_644, 0, false, Some(Kind::File)),
        (DOS, 0, 0x10, false, Some(Kind::Directory)),
    ] {
        let record = Record {
            made_by,
            attributes: mode << 16 | dos,
            ..Record::empty()
        };
        assert_eq!(record.kind(slash), want, "{made_by:x} {mode:o} {dos:x} {slash}");
    }
}

fn unicode_path(version: u8, of: &[u8], name: &str) -> Vec<u8> {
    let mut sum = flate2::Crc::new();
    sum.update(of);
    let mut field = vec![0x75, 0x70, u8::try_from(5 + name.len()).unwrap(), 0, version];
    field.extend_from_slice(&sum.sum().to_le_bytes());
    field.extend_from_slice(name.as_bytes());
    field
}

#[test]
fn unicode_names_may_say_what_the_header_cannot_and_nothing_else() {
    let cases: [(&[u8], &str, bool); 10] = [
        (b"a/b.txt", "a/b.txt", true),
        (b"a/caf\x82.txt", "a/caf\u{e9}.txt", true),
        (b"a/caf#U00e9.txt", "a/caf\u{e9}.txt", true),
        (b"a/b.txt", "a/c.txt", false),
        (b"a/b.txt", "b.txt", false),
        (b"a/b.txt", "a/b.txt/c", false),
        (b"a/caf\x82.txt", "a/caf\u{e9}.jar", false),
        (b"a/b.txt", "../b.txt", false),
        (b"a/b.txt", "a\u{ff0f}..\u{ff0f}b.txt", false),
        (b"\x82/b.txt", "\u{ff0f}..\u{e9}/b.txt", false),
    ];
    for (header, unicode, accepted) in cases {
        let extra = unicode_path(1, header, unicode);
        assert_eq!(
            check_unicode_path(header, &extra).is_ok(),
            accepted,
            "{unicode:?}"
        );
        let stale = unicode_path(1, b"another", unicode);
        assert!(check_unicode_path(header, &stale).is_ok(), "{unicode:?}");
        let unknown = unicode_path(2, header, unicode);
        assert!(check_unicode_path(header, &unknown).is_ok(), "{unicode:?}");
        let twice = [extra, stale].concat();
        assert!(check_unicode_path(header, &twice).is_err(), "{unicode:?}");
    }
    assert!(
        check_unicode_path(b"a", b"\x75\x70\x03\0abc").is_ok(),
        "too short to be one"
    );
}

#[test]
fn wide_values_come_from_one_field() {
    let field = b"\x01\0\x08\0\x07\0\0\0\0\0\0\0";
    let mut size = 0xffff_ffff;
    widen(field, [(&mut size, 0xffff_ffff)]).unwrap();
    assert_eq!(size, 7);
    let twice = [&field[..], field].concat();
    assert!(widen(&twice, [(&mut size, 0xffff_ffff)]).is_err());
}
