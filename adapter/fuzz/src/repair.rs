//! Puts checksums, counts and offsets right after a change, so that it is judged by the reader and not by a checksum.
//! Every function leaves the length as it is, and what it does not understand.

use fastrand::Rng;
use flate2::{Crc, Decompress, FlushDecompress};

/// Most records of one kind that are looked at.
const MOST: usize = 64;

/// CRC-32 as gzip and ZIP have it.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(to) = at.checked_add(value.len()).and_then(|end| bytes.get_mut(at..end)) {
        to.copy_from_slice(value);
    }
}

fn le16(bytes: &[u8], at: usize) -> usize {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
}

fn le32(bytes: &[u8], at: usize) -> usize {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| {
        usize::try_from(u32::from_le_bytes(*bytes)).unwrap_or(usize::MAX)
    })
}

fn find(bytes: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len())
        .position(|window| window == what)
        .map(|at| at + from)
}

fn u32_bytes(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes()
}

/// Repairs `bytes` by what they begin with. By chance some things stay wrong.
pub(super) fn repair(rng: &mut Rng, bytes: &mut [u8]) {
    match bytes {
        [0x1f, 0x8b, ..] => gzip(bytes),
        [0xfd, b'7', b'z', ..] => xz(bytes),
        [0xed, 0xab, ..] => rpm(rng, bytes),
        [b'!', b'<', ..] => ar(bytes),
        [b'0', b'7', b'0', ..] => cpio(bytes),
        [b'P', b'K', ..] => zip(rng, bytes),
        _ if find(bytes, b"PK\x05\x06", 0).is_some() => zip(rng, bytes),
        _ => tar(bytes),
    }
}

/// Checksums of all headers that can be walked to, and the lengths of pax records.
pub(super) fn tar(bytes: &mut [u8]) {
    let mut at = 0;
    for _ in 0..MOST {
        let Some(block) = bytes.get_mut(at..at + 512) else {
            break;
        };
        if block.iter().all(|&byte| byte == 0) {
            break;
        }
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(at, &byte)| {
                if (148..156).contains(&at) {
                    32
                } else {
                    u32::from(byte)
                }
            })
            .sum();
        put(block, 148, format!("{sum:06o}\0 ").as_bytes());
        let digits = block.get(124..136).unwrap_or_default().iter();
        let size = digits
            .take_while(|byte| matches!(byte, b'0'..=b'7'))
            .fold(0usize, |size, &byte| {
                size.saturating_mul(8).saturating_add(usize::from(byte - b'0'))
            });
        let is_pax = matches!(block.get(156), Some(b'x' | b'g'));
        at += 512;
        let end = at.saturating_add(size).min(bytes.len());
        if is_pax {
            pax(bytes.get_mut(at..end).unwrap_or_default());
        }
        at = end.next_multiple_of(512);
    }
}

fn pax(mut rest: &mut [u8]) {
    while let Some(line) = rest.iter().position(|&byte| byte == b'\n') {
        let Some(space) = rest.iter().position(|&byte| byte == b' ') else {
            break;
        };
        let text = (line + 1).to_string();
        if text.len() == space {
            put(rest, 0, text.as_bytes());
        }
        rest = rest.get_mut(line + 1..).unwrap_or_default();
    }
}

/// Directory, local headers, checksums and the end record.
fn zip(rng: &mut Rng, bytes: &mut [u8]) {
    let Some(directory) = find(bytes, b"PK\x01\x02", 0) else {
        return;
    };
    let mut at = directory;
    let mut count = 0;
    while count < MOST && bytes.get(at..at + 4) == Some(b"PK\x01\x02".as_slice()) {
        let name = le16(bytes, at + 28);
        if rng.u8(..16) != 0 {
            zip_entry(bytes, at, name);
        }
        at += 46 + name + le16(bytes, at + 30) + le16(bytes, at + 32);
        count += 1;
    }
    let Some(end) = find(bytes, b"PK\x05\x06", at.min(bytes.len())) else {
        return;
    };
    if rng.u8(..16) == 0 {
        return;
    }
    let counted = u16::try_from(count).unwrap_or(0).to_le_bytes();
    put(bytes, end + 8, &counted);
    put(bytes, end + 10, &counted);
    put(bytes, end + 12, &u32_bytes(at.saturating_sub(directory)));
    put(bytes, end + 16, &u32_bytes(directory));
    let comment = u16::try_from(bytes.len().saturating_sub(end + 22)).unwrap_or(0);
    put(bytes, end + 20, &comment.to_le_bytes());
}

/// Makes one central record, its local header and its data agree.
fn zip_entry(bytes: &mut [u8], central: usize, name: usize) {
    let local = le32(bytes, central + 42);
    if bytes.get(local..local.saturating_add(4)) != Some(b"PK\x03\x04".as_slice()) {
        return;
    }
    // Version, flags and method are the directory's.
    let same = bytes.get(central + 6..central + 12).unwrap_or_default().to_vec();
    put(bytes, local + 4, &same);
    if le16(bytes, local + 26) == name {
        let named = bytes
            .get(central + 46..central + 46 + name)
            .unwrap_or_default()
            .to_vec();
        put(bytes, local + 30, &named);
    }
    let start = local + 30 + le16(bytes, local + 26) + le16(bytes, local + 28);
    let method = le16(bytes, central + 10);
    let Some(data) = bytes.get(start..) else { return };
    let (compressed, size, crc) = match method {
        0 => {
            let size = le32(bytes, central + 20);
            let Some(data) = data.get(..size) else { return };
            (size, size, crc32(data))
        }
        8 => {
            let mut plain = Vec::with_capacity(32 << 10);
            let mut inflate = Decompress::new(false);
            if inflate
                .decompress_vec(data, &mut plain, FlushDecompress::Finish)
                .is_err()
            {
                return;
            }
            let moved = |count: u64| usize::try_from(count).unwrap_or(0);
            let size = moved(inflate.total_out());
            (
                moved(inflate.total_in()),
                size,
                crc32(plain.get(..size).unwrap_or_default()),
            )
        }
        _ => return,
    };
    let mut sums = crc.to_le_bytes().to_vec();
    sums.extend_from_slice(&u32_bytes(compressed));
    sums.extend_from_slice(&u32_bytes(size));
    put(bytes, central + 16, &sums);
    if le16(bytes, central + 8) & 8 == 0 {
        put(bytes, local + 14, &sums);
        return;
    }
    put(bytes, local + 14, &[0; 12]);
    let end = start + compressed;
    let signed = bytes.get(end..end + 4) == Some(b"PK\x07\x08".as_slice());
    let at = if signed { end + 4 } else { end };
    // Only where a descriptor fits before the next record.
    if bytes.get(at + 12..at + 14) == Some(b"PK".as_slice()) {
        put(bytes, at, &sums);
    }
}

/// Header checksum, CRC and size of each member.
fn gzip(bytes: &mut [u8]) {
    let mut at = 0;
    let mut plain = Vec::with_capacity(64 << 10);
    for _ in 0..8 {
        let Some(&[0x1f, 0x8b, 8, flags]) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else {
            break;
        };
        let mut body = at + 10;
        if flags & 4 != 0 {
            body += 2 + le16(bytes, body);
        }
        for flag in [8, 16] {
            if flags & flag != 0 {
                let Some(end) = find(bytes, b"\0", body.min(bytes.len())) else {
                    return;
                };
                body = end + 1;
            }
        }
        if flags & 2 != 0 {
            let sum = crc32(bytes.get(at..body).unwrap_or_default()).to_le_bytes();
            put(bytes, body, sum.get(..2).unwrap_or_default());
            body += 2;
        }
        let mut inflate = Decompress::new(false);
        let data = bytes.get(body..).unwrap_or_default();
        plain.clear();
        let ended = inflate.decompress_vec(data, &mut plain, FlushDecompress::Finish);
        if !matches!(ended, Ok(flate2::Status::StreamEnd)) {
            return;
        }
        let moved = |count: u64| usize::try_from(count).unwrap_or(0);
        let size = moved(inflate.total_out());
        let end = body + moved(inflate.total_in());
        put(
            bytes,
            end,
            &crc32(plain.get(..size).unwrap_or_default()).to_le_bytes(),
        );
        put(bytes, end + 4, &u32_bytes(size));
        at = end + 8;
    }
}

/// Checksums of the stream header, the first block header, the index and the footer.
fn xz(bytes: &mut [u8]) {
    let sum =
        |bytes: &[u8], from: usize, to: usize| crc32(bytes.get(from..to).unwrap_or_default()).to_le_bytes();
    let header = sum(bytes, 6, 8);
    put(bytes, 8, &header);
    let block = bytes.get(12).map_or(0, |&size| 4 * (usize::from(size) + 1));
    let header = sum(bytes, 12, 8 + block);
    put(bytes, 8 + block, &header);
    let Some(footer) = bytes.len().checked_sub(12) else {
        return;
    };
    let flags = bytes.get(6..8).unwrap_or_default().to_vec();
    put(bytes, footer + 8, &flags);
    let index = 4 * le32(bytes, footer + 4).min(bytes.len()) + 4;
    if let Some(start) = footer.checked_sub(index) {
        let index = sum(bytes, start, footer - 4);
        put(bytes, footer - 4, &index);
    }
    let end = sum(bytes, footer + 4, footer + 10);
    put(bytes, footer, &end);
}

/// End marks of headers, and magic.
fn ar(bytes: &mut [u8]) {
    put(bytes, 0, b"!<arch>\n");
    let mut at = 8;
    for _ in 0..MOST {
        if bytes.len() < at + 60 {
            break;
        }
        put(bytes, at + 58, b"`\n");
        let field = bytes.get(at + 48..at + 58).unwrap_or_default();
        let size = str::from_utf8(field)
            .ok()
            .and_then(|text| text.trim().parse::<usize>().ok());
        let Some(size) = size.filter(|&size| size < bytes.len()) else {
            break;
        };
        at = (at + 60 + size).next_multiple_of(2);
    }
}

/// Sums of the data in the crc form.
fn cpio(bytes: &mut [u8]) {
    let mut at = 0;
    for _ in 0..MOST {
        let Some(head) = bytes.get(at..at + 110) else {
            break;
        };
        let field = |index: usize| {
            let field = head.get(6 + 8 * index..14 + 8 * index).unwrap_or_default();
            str::from_utf8(field)
                .ok()
                .and_then(|text| usize::from_str_radix(text, 16).ok())
        };
        let (Some(size), Some(name)) = (field(6), field(11)) else {
            break;
        };
        if size > bytes.len() || name > bytes.len() {
            break;
        }
        let data = (at + 110 + name).next_multiple_of(4);
        let has_sum = head.starts_with(b"070702");
        let Some(body) = bytes.get(data..data + size) else {
            break;
        };
        if has_sum {
            let sum: u32 = body.iter().map(|&byte| u32::from(byte)).sum();
            put(bytes, at + 102, format!("{sum:08x}").as_bytes());
        }
        at = (data + size).next_multiple_of(4);
    }
}

/// Sizes of both headers by where the next part begins; index entries that point outside, by chance.
fn rpm(rng: &mut Rng, bytes: &mut [u8]) {
    const MAGIC: &[u8] = &[0x8e, 0xad, 0xe8, 1];
    put(bytes, 0, &[0xed, 0xab, 0xee, 0xdb]);
    let Some(main) = find(bytes, MAGIC, 97) else {
        return;
    };
    let payloads: [&[u8]; 5] = [
        b"07070",
        b"\x1f\x8b\x08",
        b"\xfd7zXZ",
        b"\x28\xb5\x2f\xfd",
        b"BZh",
    ];
    let payload = payloads.iter().filter_map(|magic| find(bytes, magic, main)).min();
    for (start, end) in [(96, Some(main)), (main, payload)] {
        let Some(room) = end.and_then(|end| end.checked_sub(start + 16)) else {
            continue;
        };
        let be32 = |bytes: &[u8], at: usize| {
            let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
            found.map_or(0, |bytes| {
                usize::try_from(u32::from_be_bytes(*bytes)).unwrap_or(usize::MAX)
            })
        };
        let mut count = be32(bytes, start + 8);
        if count > room / 16 {
            count = room / 32;
        }
        let store = room - 16 * count;
        let as_be = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
        put(bytes, start + 8, &as_be(count));
        put(bytes, start + 12, &as_be(store));
        if rng.u8(..4) == 0 {
            continue;
        }
        for entry in (start + 16..).step_by(16).take(count) {
            let (kind, offset, items) = (
                be32(bytes, entry + 4),
                be32(bytes, entry + 8),
                be32(bytes, entry + 12),
            );
            if kind > 9 {
                put(bytes, entry + 4, &as_be(kind % 10));
            }
            if offset >= store {
                put(bytes, entry + 8, &as_be(offset % store.max(1)));
            }
            if items > store {
                put(bytes, entry + 12, &as_be(items % 4));
            }
        }
    }
}
