//! Where a ZIP's directory is, by tables: one record of it at the edge of each rule.

use super::super::Input;
use super::super::stream::FileWindow;
use super::super::zip_directory::{Directory, Record, ZipFault, has_end_record, locate, next_record};
use std::io::Write;

/// Fields of an end record.
#[derive(Clone, Copy, Default)]
struct End {
    disk: u16,
    directory_disk: u16,
    disk_count: u16,
    count: u16,
    size: u32,
    offset: u32,
}

impl End {
    /// One entry in a directory of `size` bytes at `offset`.
    fn one(size: usize, offset: usize) -> Self {
        Self {
            disk_count: 1,
            count: 1,
            size: u32::try_from(size).unwrap(),
            offset: u32::try_from(offset).unwrap(),
            ..Self::default()
        }
    }

    fn with(self, comment: &[u8]) -> Vec<u8> {
        let mut out = b"PK\x05\x06".to_vec();
        for field in [self.disk, self.directory_disk, self.disk_count, self.count] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&self.size.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&u16::try_from(comment.len()).unwrap().to_le_bytes());
        out.extend_from_slice(comment);
        out
    }

    fn bytes(self) -> Vec<u8> {
        self.with(b"")
    }
}

/// A central record without extra data.
fn central(name: &[u8]) -> Vec<u8> {
    let mut out = b"PK\x01\x02".to_vec();
    out.resize(46, 0);
    out[28] = u8::try_from(name.len()).unwrap();
    out.extend_from_slice(name);
    out
}

/// The ZIP64 end record and its locator, for a directory of one entry.
fn zip64(size: usize, offset: usize, claimed: usize, count: u64) -> Vec<u8> {
    let mut out = b"PK\x06\x06".to_vec();
    out.extend_from_slice(&44u64.to_le_bytes());
    out.resize(24, 0);
    for field in [count, count, size as u64, offset as u64] {
        out.extend_from_slice(&field.to_le_bytes());
    }
    out.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    out.extend_from_slice(&(claimed as u64).to_le_bytes());
    out.extend_from_slice(&1u32.to_le_bytes());
    out
}

fn with_file<T>(bytes: &[u8], work: impl FnOnce(Input<'_>) -> T) -> T {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    work(Input::complete(&file, bytes.len() as u64))
}

fn located(bytes: &[u8]) -> Result<Directory, &'static str> {
    with_file(bytes, locate).map_err(|fault| match fault {
        ZipFault::Malformed(reason) => reason,
        ZipFault::Io(error) => panic!("{error}"),
    })
}

#[test]
fn an_end_record_is_one_that_has_its_directory_before_it() {
    let one = central(b"a");
    let size = one.len();
    let empty = End::default();
    let marked = End {
        size: u32::MAX,
        ..empty
    };
    let many = End {
        disk_count: u16::MAX,
        ..End::one(7, 0)
    };
    let counted = End { count: 1, ..empty };
    let cases: [(Vec<u8>, bool); 14] = [
        (empty.bytes(), true),
        ([b"prefix".to_vec(), empty.bytes()].concat(), true),
        (counted.bytes(), false),
        ([one.clone(), End::one(size, 0).bytes()].concat(), true),
        ([one.clone(), End::one(size - 1, 0).bytes()].concat(), false),
        ([one.clone(), End::one(size + 1, 0).bytes()].concat(), false),
        // What counts is what stands before the record, whatever it says of its offset.
        (
            [b"x".to_vec(), one.clone(), End::one(size, 99).bytes()].concat(),
            true,
        ),
        (
            [
                b"longer than it".to_vec(),
                one.clone(),
                End::one(size + 1, 0).bytes(),
            ]
            .concat(),
            false,
        ),
        ([b"x".to_vec(), marked.bytes()].concat(), true),
        ([b"x".to_vec(), many.bytes()].concat(), true),
        (empty.with(&vec![b'c'; 65_535]), true),
        ([empty.with(&vec![b'c'; 65_535]), b"x".to_vec()].concat(), false),
        (empty.with(b"comment")[..25].to_vec(), false),
        (b"PK\x05\x06".to_vec(), false),
    ];
    for (at, (bytes, expected)) in cases.iter().enumerate() {
        assert_eq!(with_file(bytes, has_end_record).unwrap(), *expected, "case {at}");
    }
}

#[test]
fn the_directory_is_where_all_readers_find_it() {
    let one = central(b"a");
    let size = one.len();
    let length = size as u64;
    let plain = [one.clone(), End::one(size, 0).bytes()].concat();
    let found = Directory {
        base: 0,
        start: 0,
        end: length,
        count: 1,
    };
    assert_eq!(located(&plain), Ok(found));
    assert_eq!(
        located(&[one.clone(), End::one(size, 0).with(&vec![b'c'; 65_535])].concat()),
        Ok(found)
    );
    let behind = Directory {
        base: 3,
        start: 3,
        end: length + 3,
        ..found
    };
    assert_eq!(located(&[b"abc".to_vec(), plain.clone()].concat()), Ok(behind));
    // Bytes before the directory that its offset counts are the archive's own.
    let own = Directory { base: 0, ..behind };
    assert_eq!(
        located(&[b"abc".to_vec(), one.clone(), End::one(size, 3).bytes()].concat()),
        Ok(own)
    );

    let good = End::one(size, 0);
    for (end, reason) in [
        (End { disk: 1, ..good }, "several files"),
        (
            End {
                directory_disk: 1,
                ..good
            },
            "several files",
        ),
        (
            End {
                disk_count: 2,
                ..good
            },
            "several files",
        ),
        (End { count: 2, ..good }, "several files"),
        (End::one(size + 1, 0), "larger than the file"),
        (End::one(size, 1), "past its place"),
    ] {
        let error = located(&[one.clone(), end.bytes()].concat()).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    // A reader that trusts the offset and one that counts back from the end would each find a directory.
    let twice = [one.clone(), one.clone(), End::one(size, 0).bytes()].concat();
    assert!(located(&twice).unwrap_err().contains("two places"));
    // A second end record that claims the end of the file as well, in the comment of the first.
    let hidden = [one.clone(), good.with(&End::default().bytes())].concat();
    assert!(located(&hidden).unwrap_err().contains("more than one"));
    // One in a comment that goes on behind it claims nothing; but the last is what readers take.
    let quoted = [
        one.clone(),
        good.with(&[End::default().bytes(), b"x".to_vec()].concat()),
    ]
    .concat();
    assert!(located(&quoted).is_err());
    assert!(located(&[one.clone(), good.with(b"comment")[..24].to_vec()].concat()).is_err());
    assert!(
        located(b"nothing of the kind")
            .unwrap_err()
            .contains("no end record")
    );
}

#[test]
fn zip64_says_the_same_or_is_refused() {
    let one = central(b"a");
    let size = one.len();
    let marks = End {
        disk_count: u16::MAX,
        count: u16::MAX,
        size: u32::MAX,
        offset: u32::MAX,
        ..End::default()
    };
    let good = zip64(size, 0, size, 1);
    let found = Directory {
        base: 0,
        start: 0,
        end: size as u64,
        count: 1,
    };
    for end in [marks, End::one(size, 0)] {
        let bytes = [one.clone(), good.clone(), end.bytes()].concat();
        assert_eq!(located(&bytes), Ok(found));
        // A locator counts from the start of the file, also behind a prefix.
        assert!(located(&[b"ab".to_vec(), bytes].concat()).is_err());
        let absolute = [
            b"ab".to_vec(),
            one.clone(),
            zip64(size, 0, size + 2, 1),
            end.bytes(),
        ]
        .concat();
        let behind = Directory {
            base: 2,
            start: 2,
            end: size as u64 + 2,
            count: 1,
        };
        assert_eq!(located(&absolute), Ok(behind));
    }
    for wrong in [
        End { count: 2, ..marks },
        End {
            disk_count: 2,
            ..marks
        },
        End { size: 1, ..marks },
        End { offset: 1, ..marks },
        End { disk: 1, ..marks },
        End {
            directory_disk: 1,
            ..marks
        },
    ] {
        let error = located(&[one.clone(), good.clone(), wrong.bytes()].concat()).unwrap_err();
        assert!(error.contains("contradicts"), "{error}");
    }
    let changed = |at: usize, value: u8| {
        let mut record = good.clone();
        record[at] = value;
        located(&[one.clone(), record, marks.bytes()].concat())
    };
    // Its own size, its signature, the locator's disk and count of disks, and its offset.
    for (at, value) in [(4, 45), (3, 9), (60, 1), (72, 2), (64, 200)] {
        assert!(changed(at, value).is_err(), "{at}");
    }
    assert_eq!(changed(72, 0), Ok(found), "some tools count no disks");
    // Disks of the record itself.
    for at in [16, 20] {
        assert!(changed(at, 1).is_err(), "{at}");
    }
    assert!(changed(24, 2).is_err(), "counts that differ");
    // Without a locator the marks are values, and too large ones.
    assert!(located(&[one.clone(), marks.bytes()].concat()).is_err());
    // A directory that counts from the start of the file, and a locator that does not.
    let shifted = [
        b"ab".to_vec(),
        one.clone(),
        zip64(size, 2, size, 1),
        marks.bytes(),
    ]
    .concat();
    assert!(
        located(&shifted)
            .unwrap_err()
            .contains("does not point at its record")
    );
    // A directory record that ends at the locator's place, but starts with it.
    let locator_alone = [one, good[56..].to_vec(), marks.bytes()].concat();
    assert!(located(&locator_alone).is_err());
}

#[test]
fn directory_records_are_whole_and_nothing_else() {
    let read = |bytes: &[u8]| {
        with_file(bytes, |input| {
            let mut window = FileWindow::new(input);
            let mut record = Record::empty();
            next_record(&mut window, &mut record).map(|more| (more, record))
        })
    };
    let mut record = central(b"name");
    record[30] = 12;
    record[32] = 2;
    record.extend_from_slice(&[1, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    record.extend_from_slice(b"co");
    for (at, value) in [
        (4, 0x14),
        (5, 3),
        (8, 8),
        (10, 9),
        (16, 7),
        (20, 5),
        (38, 6),
        (42, 4),
    ] {
        record[at] = value;
    }
    record[24..28].fill(0xff);
    let (more, parsed) = read(&record).unwrap();
    assert!(more);
    let expected = Record {
        made_by: 0x314,
        flags: 8,
        method: 9,
        crc: 7,
        compressed: 5,
        size: 0x0807_0605_0403_0201,
        attributes: 6,
        offset: 4,
        name: b"name".to_vec(),
    };
    assert_eq!(parsed, expected);
    assert!(!read(b"").unwrap().0);
    for length in 1..record.len() {
        assert!(read(&record[..length]).is_err(), "{length}");
    }
    // Each part by itself may be the last one, and be cut.
    let named = central(b"name");
    assert!(read(&named).is_ok() && read(&named[..48]).is_err());
    let mut with_extra = central(b"");
    with_extra[30] = 4;
    with_extra.extend_from_slice(&[9, 0, 0, 0]);
    assert!(read(&with_extra).is_ok() && read(&with_extra[..48]).is_err());
    for (disk, is_fine) in [(0u16, true), (1, false), (0xffff, true)] {
        record[34..36].copy_from_slice(&disk.to_le_bytes());
        assert_eq!(read(&record).is_ok(), is_fine, "{disk}");
    }
    record[0] = b'Q';
    assert!(read(&record).is_err());
}
