//! Small archives with right checksums, from chosen parts: what a mutation of bytes would take ages to come by.

use super::compress::{Codec, compress};
use super::repair;
use fastrand::Rng;
use flate2::write::DeflateEncoder;
use std::io::Write as _;

/// One entry of any container.
pub(super) struct Part {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// Content, or the target of a link.
    pub(super) data: Vec<u8>,
}

/// Kinds that containers share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Symlink,
    HardLink,
    Fifo,
}

/// Names and targets that rules or readers treat differently.
const NAMES: [&[u8]; 36] = [
    b"a",
    b"a/b",
    b"a/b/",
    b"./a",
    b"../x",
    b"a/../b",
    b"a/../../b",
    b"/abs",
    b"C:/x",
    b"\\\\srv\\x",
    b"a\\..\\b",
    b"a\0b",
    b"",
    b".",
    b"A",
    b"a/",
    b"caf\xc3\xa9",
    b"cafe\xcc\x81",
    b"\xff\xfe",
    b"x\xe2\x88\x95y",
    b"l",
    b"l/x",
    b"d/l",
    b"..",
    b"a.zip",
    b"b.tar",
    b"c.gz",
    b"d.jar",
    b"e.lzma",
    b"META-INF/MANIFEST.MF",
    b".PKGINFO",
    b"debian-binary",
    b"control.tar.gz",
    b"info/index.json",
    b"package/package.json",
    b"x-1.0.dist-info/METADATA",
];
const CONTENTS: [&[u8]; 6] = [
    b"",
    b"x",
    b"2.0\n",
    b"{\"name\":\"a\",\"version\":\"1.0.0\",\"build\":\"0\"}",
    b"Name: a\nVersion: 1\nPackage: a\n\npkgname = a\npkgver = 1-r0\n",
    &[0; 600],
];

fn pick<'a>(rng: &mut Rng, list: &[&'a [u8]]) -> &'a [u8] {
    rng.choice(list).copied().unwrap_or_default()
}

/// Some entries, legal more often than not.
pub(super) fn parts(rng: &mut Rng) -> Vec<Part> {
    let count = rng.usize(0..5);
    std::iter::repeat_with(|| {
        let kind = match rng.u8(..16) {
            0..=9 => Kind::File,
            10 | 11 => Kind::Directory,
            12 | 13 => Kind::Symlink,
            14 => Kind::HardLink,
            _ => Kind::Fifo,
        };
        let mut name = pick(rng, &NAMES).to_vec();
        if kind == Kind::Directory && !name.ends_with(b"/") {
            name.push(b'/');
        }
        let data = match kind {
            Kind::File if rng.u8(..8) == 0 => (0..rng.usize(0..300)).map(|_| rng.u8(..)).collect(),
            Kind::File => pick(rng, &CONTENTS).to_vec(),
            Kind::Symlink | Kind::HardLink => pick(rng, &NAMES).to_vec(),
            Kind::Directory | Kind::Fifo => Vec::new(),
        };
        Part { name, kind, data }
    })
    .take(count)
    .collect()
}

/// Little-endian fields, concatenated.
fn fields(out: &mut Vec<u8>, fields: &[(u64, usize)]) {
    for &(value, width) in fields {
        out.extend_from_slice(value.to_le_bytes().get(..width).unwrap_or_default());
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// A ZIP; prefixes, descriptors and ZIP64 end records by chance.
pub(super) fn zip(rng: &mut Rng, parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    if rng.u8(..16) == 0 {
        out.extend_from_slice(b"#!/bin/sh\nexit 0\n");
    }
    let base = length(&out);
    let mut directory = Vec::new();
    for part in parts {
        let at = length(&out) - if rng.u8(..16) == 0 { 0 } else { base };
        let deflates = part.kind == Kind::File && rng.bool();
        let body = if deflates {
            deflated(&part.data)
        } else {
            part.data.clone()
        };
        let descriptor = rng.u8(..4) == 0;
        let mode: u64 = match part.kind {
            Kind::File | Kind::HardLink => 0o100_644,
            Kind::Directory => 0o040_755,
            Kind::Symlink => 0o120_777,
            Kind::Fifo => 0o010_644,
        };
        let method = if deflates { 8 } else { 0 };
        let (crc, size) = (u64::from(repair::crc32(&part.data)), length(&part.data));
        let common = [(20, 2), (if descriptor { 8 } else { 0 }, 2), (method, 2), (0, 4)];
        let sums = [(crc, 4), (length(&body), 4), (size, 4)];
        out.extend_from_slice(b"PK\x03\x04");
        fields(&mut out, &common);
        fields(
            &mut out,
            if descriptor {
                &[(0, 4), (0, 4), (0, 4)]
            } else {
                &sums
            },
        );
        fields(&mut out, &[(length(&part.name), 2), (0, 2)]);
        out.extend_from_slice(&part.name);
        out.extend_from_slice(&body);
        if descriptor {
            if rng.bool() {
                out.extend_from_slice(b"PK\x07\x08");
            }
            fields(&mut out, &sums);
        }
        directory.extend_from_slice(b"PK\x01\x02");
        fields(&mut directory, &[(0x314, 2)]);
        fields(&mut directory, &common);
        fields(&mut directory, &sums);
        fields(
            &mut directory,
            &[
                (length(&part.name), 2),
                (0, 2),
                (0, 2),
                (0, 2),
                (0, 2),
                (mode << 16, 4),
                (at, 4),
            ],
        );
        directory.extend_from_slice(&part.name);
    }
    let start = length(&out) - base;
    let count = u64::try_from(parts.len()).unwrap_or(0);
    out.extend_from_slice(&directory);
    if rng.u8(..8) == 0 {
        let at = length(&out) - base;
        out.extend_from_slice(b"PK\x06\x06");
        fields(
            &mut out,
            &[(44, 8), (45, 2), (45, 2), (0, 4), (0, 4), (count, 8), (count, 8)],
        );
        fields(&mut out, &[(length(&directory), 8), (start, 8)]);
        out.extend_from_slice(b"PK\x06\x07");
        fields(&mut out, &[(0, 4), (at, 8), (1, 4)]);
    }
    out.extend_from_slice(b"PK\x05\x06");
    fields(
        &mut out,
        &[
            (0, 2),
            (0, 2),
            (count, 2),
            (count, 2),
            (length(&directory), 4),
            (start, 4),
            (0, 2),
        ],
    );
    out
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    let done = encoder.write_all(data).and_then(|()| encoder.finish());
    done.unwrap_or_default()
}

/// One tar header of any dialect; the checksum is made by [`repair::tar`].
fn tar_header(out: &mut Vec<u8>, name: &[u8], flag: u8, size: u64, target: &[u8], magic: &[u8]) {
    let mut block = [0u8; 512];
    let mut put = |at: usize, bytes: &[u8], most: usize| {
        for (to, &from) in block.iter_mut().skip(at).zip(bytes.iter().take(most)) {
            *to = from;
        }
    };
    put(0, name, 100);
    put(100, b"0000644\0", 8);
    put(124, format!("{size:011o}\0").as_bytes(), 12);
    put(136, b"00000000000\0", 12);
    put(156, &[flag], 1);
    put(157, target, 100);
    put(257, magic, 8);
    out.extend_from_slice(&block);
}

fn pad(out: &mut Vec<u8>, to: usize, fill: u8) {
    out.resize(out.len().next_multiple_of(to), fill);
}

/// A tar; long names, pax headers and sparse files by chance.
pub(super) fn tar(rng: &mut Rng, parts: &[Part]) -> Vec<u8> {
    let mut out = Vec::new();
    let magic = pick(rng, &[b"ustar\x0000", b"ustar  \0", b""]);
    for part in parts {
        let meta = match rng.u8(..12) {
            0 => Some((b'L', [part.name.as_slice(), b"\0"].concat())),
            1 => Some((b'x', pax("path", &part.name))),
            2 => Some((b'x', pax("size", part.data.len().to_string().as_bytes()))),
            3 => Some((b'g', pax("comment", b"x"))),
            4 => Some((b'K', [part.data.as_slice(), b"\0"].concat())),
            5 => Some((
                b'x',
                [pax("GNU.sparse.major", b"1"), pax("GNU.sparse.realsize", b"2000")].concat(),
            )),
            6 => Some((
                b'x',
                [pax("GNU.sparse.map", b"0,1"), pax("GNU.sparse.size", b"9")].concat(),
            )),
            _ => None,
        };
        if let Some((flag, data)) = &meta {
            tar_header(&mut out, b"meta", *flag, length(data), b"", magic);
            out.extend_from_slice(data);
            pad(&mut out, 512, 0);
        }
        let (flag, data, target): (u8, &[u8], &[u8]) = match part.kind {
            Kind::File => (b'0', &part.data, b""),
            Kind::Directory => (b'5', b"", b""),
            Kind::Symlink => (b'2', b"", &part.data),
            Kind::HardLink => (b'1', b"", &part.data),
            Kind::Fifo => (b'6', b"", b""),
        };
        tar_header(&mut out, &part.name, flag, length(data), target, magic);
        out.extend_from_slice(data);
        pad(&mut out, 512, 0);
    }
    if rng.u8(..8) != 0 {
        out.resize(out.len() + 1024, 0);
    }
    repair::tar(&mut out);
    out
}

fn pax(key: &str, value: &[u8]) -> Vec<u8> {
    let body = 3 + key.len() + value.len();
    // The length counts its own digits.
    let total = (1..=5)
        .map(|digits| body + digits)
        .find(|total| total.to_string().len() + body == *total);
    let mut record = format!("{} {key}=", total.unwrap_or(body)).into_bytes();
    record.extend_from_slice(value);
    record.push(b'\n');
    record
}

/// A CPIO of the newc, crc or odc form.
pub(super) fn cpio(rng: &mut Rng, parts: &[Part]) -> Vec<u8> {
    let form = rng.u8(..3);
    let mut out = Vec::new();
    let trailer = Part {
        name: b"TRAILER!!!".to_vec(),
        kind: Kind::File,
        data: Vec::new(),
    };
    for part in parts.iter().chain([&trailer]) {
        let mode = match part.kind {
            Kind::File | Kind::HardLink => 0o100_644,
            Kind::Directory => 0o040_755,
            Kind::Symlink => 0o120_777,
            Kind::Fifo => 0o010_644,
        };
        let (name, size) = (part.name.len() + 1, part.data.len());
        if form == 2 {
            let head = format!(
                "070707{:06o}{:06o}{mode:06o}{:024o}{:011o}{name:06o}{size:011o}",
                0, 0, 0, 0
            );
            out.extend_from_slice(head.as_bytes());
        } else {
            let sum = part.data.iter().map(|&byte| u32::from(byte)).sum::<u32>() * u32::from(form == 1);
            out.extend_from_slice(if form == 1 { b"070702" } else { b"070701" });
            for value in [0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name] {
                out.extend_from_slice(format!("{value:08x}").as_bytes());
            }
            out.extend_from_slice(format!("{sum:08x}").as_bytes());
        }
        out.extend_from_slice(&part.name);
        out.push(0);
        pad(&mut out, if form == 2 { 1 } else { 4 }, 0);
        out.extend_from_slice(&part.data);
        pad(&mut out, if form == 2 { 1 } else { 4 }, 0);
    }
    out
}

/// An `ar` with short names.
pub(super) fn ar(parts: &[Part]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for part in parts {
        let name = String::from_utf8_lossy(&part.name);
        let name: String = name.chars().filter(char::is_ascii).take(15).collect();
        out.extend_from_slice(
            format!(
                "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
                0,
                0,
                0,
                644,
                part.data.len()
            )
            .as_bytes(),
        );
        out.extend_from_slice(&part.data);
        pad(&mut out, 2, b'\n');
    }
    out
}

/// An RPM with a plausible header around a payload.
pub(super) fn rpm(rng: &mut Rng, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0xed, 0xab, 0xee, 0xdb, 3, 0];
    out.resize(96, 0);
    rpm_header(&mut out, &[(1000, 4, b"\0\0\0\x01", 1)]);
    pad(&mut out, 8, 0);
    let mut tags: Vec<(u32, u32, &[u8], u32)> = vec![
        (1000, 6, b"a\0", 1),
        (1001, 6, b"1.0\0", 1),
        (1002, 6, b"1.el9\0", 1),
        (1022, 6, b"x86_64\0", 1),
        (1028, 4, b"\0\0\0\x01", 1),
        (1030, 3, b"\x81\xa4", 1),
        (1096, 4, b"\0\0\0\x01", 1),
        (1116, 4, b"\0\0\0\0", 1),
        (1117, 8, b"a\0", 1),
        (1118, 8, b"/usr/\0", 1),
        (1124, 6, b"cpio\0", 1),
        (1125, 6, b"gzip\0", 1),
    ];
    for _ in 0..rng.usize(0..3) {
        let at = rng.usize(..tags.len());
        tags.swap_remove(at);
    }
    rpm_header(&mut out, &tags);
    out.extend_from_slice(payload);
    out
}

/// Tag, type, data and count of each entry.
fn rpm_header(out: &mut Vec<u8>, tags: &[(u32, u32, &[u8], u32)]) {
    let mut index = Vec::new();
    let mut store: Vec<u8> = Vec::new();
    for &(tag, kind, data, count) in tags {
        pad(&mut store, if kind == 4 { 4 } else { 2 }, 0);
        let offset = u32::try_from(store.len()).unwrap_or(0);
        for value in [tag, kind, offset, count] {
            index.extend_from_slice(&value.to_be_bytes());
        }
        store.extend_from_slice(data);
    }
    out.extend_from_slice(&[0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0]);
    for value in [tags.len(), store.len()] {
        out.extend_from_slice(&u32::try_from(value).unwrap_or(0).to_be_bytes());
    }
    out.extend_from_slice(&index);
    out.extend_from_slice(&store);
}

/// `plain` as one to three members of any compression.
pub(super) fn compressed(rng: &mut Rng, codec: Codec, plain: &[u8]) -> Vec<u8> {
    let members = if codec == Codec::Lzma { 1 } else { rng.usize(1..4) };
    let each = plain.len().div_ceil(members).max(1);
    let mut out = Vec::new();
    for member in plain.chunks(each) {
        out.extend(compress(codec, member).unwrap_or_default());
    }
    out
}
