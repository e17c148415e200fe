//! One 512-byte tar header block, and pax records. Pure.

/// Size of a header and the unit of everything in a tar.
pub(super) const BLOCK: usize = 512;

/// A header block that has the right checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header<'b>(&'b [u8; BLOCK]);

/// What is wrong with a header or a pax record.
pub(super) type Fault = &'static str;

impl<'b> Header<'b> {
    pub(super) fn parse(block: &'b [u8; BLOCK]) -> Result<Self, Fault> {
        if checksum_is_right(block) {
            Ok(Self(block))
        } else {
            Err("wrong header checksum")
        }
    }

    pub(super) fn type_flag(self) -> u8 {
        self.field(156, 1).first().copied().unwrap_or(0)
    }

    /// Size of the data that follow, bytes.
    pub(super) fn size(self) -> Result<u64, Fault> {
        number(self.field(124, 12)).ok_or("the size field is not a size")
    }

    /// Whether the mode of what the type flag calls a file has the type bits of something else. Go's reader believes
    /// the mode, and then there is no file to be read.
    pub(super) fn mode_names_another_kind(self) -> bool {
        number(self.field(100, 8)).is_some_and(|mode| {
            matches!(
                mode & !0o7777,
                0o010_000 | 0o020_000 | 0o040_000 | 0o060_000 | 0o120_000 | 0o140_000
            )
        })
    }

    /// Whether it is a POSIX header with a `prefix` field; GNU headers have other things there.
    fn prefix(self) -> &'b [u8] {
        if self.field(257, 6) != b"ustar\0" {
            return &[];
        }
        let is_star = self.field(508, 4) == b"tar\0";
        until_nul(self.field(345, if is_star { 131 } else { 155 }))
    }

    /// The name in the header itself: prefix and name.
    pub(super) fn name(self) -> Vec<u8> {
        let (prefix, name) = (self.prefix(), until_nul(self.field(0, 100)));
        if prefix.is_empty() {
            name.to_vec()
        } else {
            [prefix, b"/", name].concat()
        }
    }

    pub(super) fn link_name(self) -> &'b [u8] {
        until_nul(self.field(157, 100))
    }

    /// The part of an old GNU sparse map that fits into the header.
    pub(super) fn sparse_map(self) -> &'b [u8] {
        self.field(386, 96)
    }

    /// Whether old GNU sparse map blocks follow.
    pub(super) fn sparse_is_extended(self) -> bool {
        self.field(482, 1) != [0]
    }

    /// Size of an old GNU sparse file when expanded, bytes.
    pub(super) fn sparse_real_size(self) -> Result<u64, Fault> {
        number(self.field(483, 12)).ok_or("the real size of a sparse file is not a size")
    }

    fn field(self, start: usize, length: usize) -> &'b [u8] {
        self.0.get(start..start + length).unwrap_or_default()
    }
}

/// Whether `head` starts with a header block: the magic of a dialect, or (V7) a name and the right checksum.
pub(super) fn is_header(head: &[u8]) -> bool {
    has_magic(head) || head.first() != Some(&0) && has_checksum(head)
}

/// Whether `head` starts with a header of a dialect with magic.
pub(super) fn has_magic(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Whether `head` starts with a block whose checksum is right.
pub(super) fn has_checksum(head: &[u8]) -> bool {
    head.first_chunk::<BLOCK>().is_some_and(checksum_is_right)
}

/// Octal with leading blanks, ended by blank or NUL; or base-256. Empty is 0. Negative numbers are none.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    match field {
        [first, rest @ ..] if first & 0x80 != 0 => {
            if first & 0x40 != 0 {
                return None;
            }
            rest.iter().try_fold(u64::from(first & 0x3f), |value, &byte| {
                value.checked_mul(256)?.checked_add(u64::from(byte))
            })
        }
        _ => {
            let text = field.trim_ascii_start();
            let end = text
                .iter()
                .position(|b| matches!(b, 0 | b' '))
                .unwrap_or(text.len());
            let (digits, tail) = text.split_at_checked(end)?;
            if tail.iter().any(|b| !matches!(b, 0 | b' ')) {
                return None;
            }
            digits.iter().try_fold(0u64, |value, &byte| {
                let digit = byte.checked_sub(b'0').filter(|&d| d < 8)?;
                value.checked_mul(8)?.checked_add(u64::from(digit))
            })
        }
    }
}

fn checksum_is_right(block: &[u8; BLOCK]) -> bool {
    let Some(declared) = block.get(148..156).and_then(number) else {
        return false;
    };
    let mut unsigned = 8 * u64::from(b' ');
    let mut signed = 8 * i64::from(b' ');
    for (at, &byte) in block.iter().enumerate() {
        if !(148..156).contains(&at) {
            unsigned += u64::from(byte);
            signed += i64::from(byte.cast_signed());
        }
    }
    declared == unsigned || i64::try_from(declared) == Ok(signed)
}

/// The bytes before the first NUL.
pub(super) fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// The members of a pax header that change how an archive is read. An empty value means "not given".
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Pax {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link_path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// `GNU.sparse.major`/`minor`: whether the map stands before the data.
    pub(super) sparse_version_1: bool,
    /// `GNU.sparse.map`, or the pairs of version 0.0 joined.
    pub(super) sparse_map: Option<Vec<u8>>,
    /// `GNU.sparse.realsize` or `GNU.sparse.size`.
    pub(super) sparse_real_size: Option<u64>,
    /// `GNU.sparse.name`.
    pub(super) sparse_name: Option<Vec<u8>>,
}

impl Pax {
    /// Parses all records: `length SP key=value LF`.
    pub(super) fn parse(mut rest: &[u8]) -> Result<Self, Fault> {
        let mut pax = Self::default();
        while !rest.is_empty() {
            let (key, value, next) = record(rest).ok_or("a pax record is malformed")?;
            pax.apply(key, value)?;
            rest = next;
        }
        Ok(pax)
    }

    /// Whether any member is given.
    pub(super) fn changes_reading(&self) -> bool {
        *self != Self::default()
    }

    fn apply(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        let given = (!value.is_empty()).then(|| value.to_vec());
        let size = |value: &[u8]| -> Result<Option<u64>, Fault> {
            if value.is_empty() {
                return Ok(None);
            }
            decimal(value).map(Some).ok_or("a pax size is not a number")
        };
        match key {
            b"path" => self.path = given,
            b"linkpath" => self.link_path = given,
            b"size" => self.size = size(value)?,
            b"GNU.sparse.major" => self.sparse_version_1 = value == b"1",
            b"GNU.sparse.name" => self.sparse_name = given,
            b"GNU.sparse.realsize" | b"GNU.sparse.size" => self.sparse_real_size = size(value)?,
            b"GNU.sparse.map" => self.sparse_map = given,
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                let map = self.sparse_map.get_or_insert_default();
                if !map.is_empty() {
                    map.push(b',');
                }
                map.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Key, value and what follows.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|&b| b == b' ')?;
    let length = usize::try_from(decimal(bytes.get(..space)?)?).ok()?;
    let (whole, next) = bytes.split_at_checked(length)?;
    let body = whole.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|&b| b == b'=')?;
    let (key, value) = body.split_at_checked(equals)?;
    (!key.is_empty()).then_some((key, value.get(1..)?, next))
}

/// Digits only, at least one.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&d| d < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Header, Pax, decimal, is_header, number};
    use proptest::prelude::*;

    #[test]
    fn numbers() {
        let cases: [(&[u8], Option<u64>); 11] = [
            (b"00000001000\0", Some(512)),
            (b"   777 \0\0\0\0\0", Some(0o777)),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0", Some(0)),
            (b"777777777777", Some(0o777_777_777_777)),
            (b"0000zz00000\0", None),
            (b"0000008\0\0\0\0\0", None),
            (b"00 1\0\0\0\0\0\0\0\0", None),
            (b"-0000001000\0", None),
            (b"\x80\0\0\0\0\0\0\0\0\0\x02\0", Some(512)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\0", None),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ];
        for (field, expected) in cases {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }

    #[test]
    fn pax_records_that_change_how_an_archive_is_read() {
        let parse = |records: &[&str]| {
            let mut bytes = Vec::new();
            for record in records {
                // All of them are short: two digits.
                bytes.extend_from_slice(format!("{} {record}\n", record.len() + 4).as_bytes());
            }
            Pax::parse(&bytes)
        };
        let cases: [(&[&str], Pax); 9] = [
            (
                &["linkpath=a/bc"],
                Pax {
                    link_path: Some(b"a/bc".to_vec()),
                    ..Pax::default()
                },
            ),
            (
                &["size=12345"],
                Pax {
                    size: Some(12_345),
                    ..Pax::default()
                },
            ),
            (
                &["GNU.sparse.major=1"],
                Pax {
                    sparse_version_1: true,
                    ..Pax::default()
                },
            ),
            (&["GNU.sparse.major=0"], Pax::default()),
            (
                &["GNU.sparse.name=a"],
                Pax {
                    sparse_name: Some(b"a".to_vec()),
                    ..Pax::default()
                },
            ),
            (
                &["GNU.sparse.realsize=7"],
                Pax {
                    sparse_real_size: Some(7),
                    ..Pax::default()
                },
            ),
            (
                &["GNU.sparse.size=8"],
                Pax {
                    sparse_real_size: Some(8),
                    ..Pax::default()
                },
            ),
            (
                &["GNU.sparse.map=1,2"],
                Pax {
                    sparse_map: Some(b"1,2".to_vec()),
                    ..Pax::default()
                },
            ),
            (
                &[
                    "GNU.sparse.offset=1",
                    "GNU.sparse.numbytes=2",
                    "GNU.sparse.offset=3",
                ],
                Pax {
                    sparse_map: Some(b"1,2,3".to_vec()),
                    ..Pax::default()
                },
            ),
        ];
        for (records, expected) in cases {
            assert_eq!(parse(records).unwrap(), expected, "{records:?}");
            assert_eq!(expected.changes_reading(), expected != Pax::default());
        }
        assert_eq!(
            parse(&["path=first-value", "path=other-value"])
                .unwrap()
                .path
                .unwrap(),
            b"other-value"
        );
        for bad in ["size=-12345", "GNU.sparse.size=x1", "=value-12345"] {
            assert!(parse(&[bad]).is_err(), "{bad}");
        }
        assert!(parse(&["size="]).is_err(), "its length has one digit less");
        for bad in [
            &b" path=a\n"[..],
            b"11 path=a/b",
            b"11 path=a/bx",
            b"00000000000000000000012 path=a/b\n",
        ] {
            assert!(Pax::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Pax::parse(b"00000012 a=b\n").is_err(), "the digits count too");
        assert!(Pax::parse(b"00000013 a=b\n").is_ok());
        assert_eq!(Pax::parse(b"").unwrap(), Pax::default());
    }

    #[test]
    fn decimals_have_digits_only() {
        for (text, value) in [
            (&b"0"[..], Some(0)),
            (b"9", Some(9)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"", None),
            (b"1 ", None),
            (b"/", None),
            (b":", None),
        ] {
            assert_eq!(decimal(text), value, "{text:?}");
        }
    }

    #[test]
    fn pax_records() {
        assert_eq!(
            Pax::parse(b"12 path=a/b\n10 size=3\n").unwrap(),
            Pax {
                path: Some(b"a/b".to_vec()),
                size: Some(3),
                ..Pax::default()
            }
        );
        assert!(!Pax::parse(b"17 comment=hello\n").unwrap().changes_reading());
        assert!(!Pax::parse(b"8 path=\n").unwrap().changes_reading());
        for bad in [
            &b"0 path=a\n"[..],
            b"99 path=a\n",
            b"9 path=ab\n",
            b"5 a=b\n",
            b"x",
            b"8 patha\n",
            b"10 size=x\n",
            b"18446744073709551616 a=b\n",
        ] {
            assert!(Pax::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_header_needs_its_checksum() {
        let mut header = tar::Header::new_ustar();
        header.set_path("a/b").unwrap();
        header.set_size(5);
        header.set_cksum();
        let mut block = *header.as_bytes();
        assert!(is_header(&block));
        let parsed = Header::parse(&block).unwrap();
        assert_eq!(parsed.name(), b"a/b");
        assert_eq!(parsed.size(), Ok(5));
        block[0] ^= 1;
        assert!(Header::parse(&block).is_err());
        assert!(
            is_header(&block),
            "the magic is enough to know that it is meant as one"
        );
        block[257] = 0;
        assert!(!is_header(&block));
    }

    proptest! {
        #[test]
        fn any_block_is_judged_without_a_panic(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            let block: [u8; BLOCK] = bytes.clone().try_into().unwrap();
            let header = Header(&block);
            let _ = (header.name(), header.size(), header.link_name(), header.sparse_real_size());
            let _ = is_header(&bytes);
            let _ = Pax::parse(&bytes);
        }
    }
}
