//! Sparse files of GNU tar: maps in a header and in blocks behind it, in pax records, and before the data.

use super::super::Profile;
use super::{LIMITS, Recorder, passes, run, tar_record};

/// Most ranges of a map.
const MOST: usize = (1 << 20) / 24;

fn range(offset: u64, length: u64) -> Vec<u8> {
    format!("{offset:011o}\0{length:011o}\0").into_bytes()
}

/// A file of the old form: ranges in the header, then blocks of them, then the stored bytes.
fn old(real_size: u64, map: &[u8], blocks: &[Vec<u8>], data: &[u8]) -> Vec<u8> {
    let mut out = tar_record(b"s.txt", b'S', b"", data.len() as u64, b"");
    out[257..265].copy_from_slice(b"ustar  \0");
    out[386..386 + map.len()].copy_from_slice(map);
    out[482] = u8::from(!blocks.is_empty());
    out[483..495].copy_from_slice(format!("{real_size:011o}\0").as_bytes());
    out[148..156].fill(b' ');
    let sum: u32 = out.iter().map(|&byte| u32::from(byte)).sum();
    out[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    for (number, ranges) in blocks.iter().enumerate() {
        let mut block = ranges.clone();
        block.resize(512, 0);
        block[504] = u8::from(number + 1 < blocks.len());
        out.extend(block);
    }
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(512) + 1024, 0);
    out
}

/// A file with pax records of these keys and values.
fn pax(records: &[(&str, &str)], data: &[u8]) -> Vec<u8> {
    let records: Vec<String> = records
        .iter()
        .map(|(key, value)| {
            let rest = key.len() + value.len() + 3;
            let length = (1..8).map(|digits| rest + digits);
            let length = length
                .clone()
                .find(|length| rest + length.to_string().len() == *length);
            format!("{} {key}={value}\n", length.unwrap())
        })
        .collect();
    let records = records.concat();
    [
        tar_record(b"x", b'x', b"", records.len() as u64, records.as_bytes()),
        tar_record(b"s.txt", b'0', b"", data.len() as u64, data),
        vec![0; 1024],
    ]
    .concat()
}

/// The form with the map before the data.
fn leading(real_size: usize, map: &str, data: &[u8]) -> Vec<u8> {
    let mut stored = map.as_bytes().to_vec();
    stored.resize(stored.len().next_multiple_of(512), 0);
    stored.extend_from_slice(data);
    let real_size = real_size.to_string();
    pax(
        &[("GNU.sparse.major", "1"), ("GNU.sparse.realsize", &real_size)],
        &stored,
    )
}

fn content(bytes: &[u8]) -> Vec<u8> {
    passes(bytes).1.contents.concat()
}

/// The reason, as the refusal tells it.
fn reason(bytes: &[u8]) -> String {
    let refused = run(bytes, &LIMITS, Profile::Package, &mut Recorder::default());
    refused.unwrap_err().to_string()
}

#[test]
fn old_maps_go_on_in_blocks() {
    let two = [range(2, 3), range(7, 1)].concat();
    assert_eq!(content(&old(10, &two, &[], b"abcd")), b"\0\0abc\0\0d\0\0");
    // Holes are charged, too.
    let plain = [tar_record(b"s.txt", b'0', b"", 10, b"0123456789"), vec![0; 1024]].concat();
    let charged = |bytes: &[u8]| passes(bytes).0.expanded_bytes;
    assert_eq!(charged(&old(10, &two, &[], b"abcd")), charged(&plain));
    let four: Vec<u8> = (0..4).flat_map(|at| range(2 * at, 1)).collect();
    let fifth = range(8, 1);
    assert_eq!(
        content(&old(9, &four, std::slice::from_ref(&fifth), b"abcde")),
        b"a\0b\0c\0d\0e"
    );
    let many: Vec<u8> = (4..25).flat_map(|at| range(2 * at, 0)).collect();
    let last = range(50, 1);
    let long = content(&old(51, &four, &[many, last], b"abcde"));
    assert_eq!((long.len(), long.ends_with(b"\0e")), (51, true));
    let cut_off = old(9, &four, &[fifth], b"");
    assert!(reason(&cut_off[..512]).contains("cut off"));
}

#[test]
fn an_old_map_ends_with_an_empty_field() {
    let mut no_offset = range(1, 7);
    no_offset[0] = 0;
    let mut no_length = range(1, 7);
    no_length[12] = 0;
    for end in [no_offset, no_length] {
        let map = [range(0, 1), end].concat();
        assert_eq!(content(&old(3, &map, &[], b"a")), b"a\0\0");
    }
    for wrong in [b"00000000008\0", b"zzzzzzzzzzz\0"] {
        let map = [wrong.as_slice(), b"00000000001\0"].concat();
        assert!(reason(&old(9, &map, &[], b"a")).contains("no list of numbers"));
    }
}

#[test]
fn a_map_fits_its_file() {
    for (real_size, ranges, data, why) in [
        (9, vec![(4, 1), (2, 1)], &b"ab"[..], "not ascending"),
        (9, vec![(2, 2), (3, 1)], b"abc", "not ascending"),
        (
            9,
            vec![(2, u64::MAX >> 31), (u64::MAX >> 31, 0)],
            b"",
            "not ascending",
        ),
        (4, vec![(4, 1)], b"a", "does not fit"),
        (9, vec![(4, 1)], b"ab", "does not fit"),
        (9, vec![(4, 2)], b"a", "does not fit"),
    ] {
        let map: Vec<u8> = ranges
            .iter()
            .flat_map(|&(offset, length)| range(offset, length))
            .collect();
        let bytes = old(real_size, &map, &[], data);
        assert!(reason(&bytes).contains(why), "{ranges:?}: {}", reason(&bytes));
    }
    let exact = [range(4, 1), range(5, 1)].concat();
    assert_eq!(content(&old(6, &exact, &[], b"ab")), b"\0\0\0\0ab");
}

#[test]
fn a_map_has_a_bound() {
    let blocks = |ranges: usize| -> Vec<Vec<u8>> {
        let all: Vec<u8> = (0..ranges).flat_map(|_| range(0, 0)).collect();
        all.chunks(21 * 24).map(<[u8]>::to_vec).collect()
    };
    assert_eq!(content(&old(2, b"", &blocks(MOST), b"")), b"\0\0");
    assert!(reason(&old(2, b"", &blocks(MOST + 1), b"")).contains("over its bound"));
    let leading_zeros = |ranges: usize| format!("{ranges}\n{}", "0\n0\n".repeat(ranges));
    assert_eq!(content(&leading(2, &leading_zeros(MOST), b"")), b"\0\0");
    assert!(reason(&leading(2, &leading_zeros(MOST + 1), b"")).contains("over its bound"));
    // One MiB of text to the byte, and more.
    let exact = format!("{MOST}\n{}", "00000000000\n".repeat(2 * MOST));
    assert_eq!(exact.len().next_multiple_of(512), 1 << 20);
    assert_eq!(content(&leading(2, &exact, b"")), b"\0\0");
    let more = format!("{MOST}\n{}", "000000000000\n".repeat(2 * MOST));
    assert!(reason(&leading(2, &more, b"")).contains("over its bound"));
}

#[test]
fn a_leading_map_takes_the_blocks_that_it_needs() {
    // Its last number ends in a second block, so that block is not data.
    for zeros in 500..516 {
        let map = format!("1\n{}2\n3\n", "0".repeat(zeros));
        assert_eq!(content(&leading(6, &map, b"abc")), b"\0\0abc\0", "{zeros}");
        let map = format!("{}1\n2\n3\n", "0".repeat(zeros));
        assert_eq!(content(&leading(6, &map, b"abc")), b"\0\0abc\0", "{zeros}");
    }
    for (map, why) in [
        ("x\n0\n0\n", "without a count"),
        ("262145\n", "without a count"),
        ("1\n0\nx\n", "no list of numbers"),
        ("2\n0\n0\n", "cut off"),
    ] {
        let bytes = leading(6, map, b"");
        assert!(reason(&bytes).contains(why), "{map:?}: {}", reason(&bytes));
    }
}

#[test]
fn maps_in_pax_records() {
    let map = |map| [("GNU.sparse.size", "6"), ("GNU.sparse.map", map)];
    assert_eq!(content(&pax(&map("1,2,4,1"), b"abc")), b"\0ab\0c\0");
    assert_eq!(content(&pax(&map(""), b"")), b"\0\0\0\0\0\0");
    assert!(reason(&pax(&map("1,2,4"), b"abc")).contains("odd number"));
    assert!(reason(&pax(&map("1;2"), b"ab")).contains("no list of numbers"));
}
