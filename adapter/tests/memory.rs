//! What hostile sizes, names and nesting make the gate hold in memory at once.
//!
//! A binary of its own, with one test: its allocator counts for all threads.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use assay_adapter::archive::{Discard, GateLimits, Profile, inspect};
use assay_adapter::run::RunContext;
use assay_schemas::Code;
use peak_alloc::PeakAlloc;
use std::io::Write;
use std::time::Duration;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The bound that is asked for, without the window of a decompressor.
const CAP: usize = 32 << 20;
/// What C libraries may take: one window at its cap, and their other state.
const WINDOW_KIB: u64 = (128 + 48) << 10;

const LIMITS: GateLimits = GateLimits {
    max_entries: 100_000,
    max_expanded_bytes: 8 << 30,
    max_single_file_bytes: 1 << 30,
    max_nested_depth: 10,
};

fn outcome(bytes: &[u8]) -> Result<u64, Code> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let run = RunContext::with_timeout(Duration::from_mins(5));
    let size = bytes.len() as u64;
    let found = inspect(
        &file,
        size,
        scratch.path(),
        &LIMITS,
        Profile::Package,
        &run,
        &mut Discard,
    );
    found.map(|found| found.entries).map_err(|error| error.code())
}

/// Most resident memory of this process since the last call, KiB.
fn resident_peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak = line.trim().trim_end_matches(" kB").parse().unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    peak
}

fn tar_record(name: &[u8], type_flag: u8, size: u64, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkflag = [type_flag];
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn pax(key: &str, value: &[u8]) -> Vec<u8> {
    let mut length = key.len() + value.len() + 3;
    while length != key.len() + value.len() + 3 + length.to_string().len() {
        length = key.len() + value.len() + 3 + length.to_string().len();
    }
    [
        length.to_string().as_bytes(),
        b" ",
        key.as_bytes(),
        b"=",
        value,
        b"\n",
    ]
    .concat()
}

/// One central directory over empty stored entries with these names, or only its claims.
fn zip(names: impl Iterator<Item = String>) -> Vec<u8> {
    let mut local = Vec::new();
    let mut central = Vec::new();
    let mut count = 0u64;
    for name in names {
        count += 1;
        let offset = u32::try_from(local.len()).unwrap();
        let length = u16::try_from(name.len()).unwrap();
        local.extend_from_slice(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        local.extend_from_slice(&length.to_le_bytes());
        local.extend_from_slice(&[0; 2]);
        local.extend_from_slice(name.as_bytes());
        central.extend_from_slice(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        central.extend_from_slice(&length.to_le_bytes());
        central.extend_from_slice(&[0; 12]);
        central.extend_from_slice(&offset.to_le_bytes());
        central.extend_from_slice(name.as_bytes());
    }
    let start = local.len() as u64;
    let size = central.len() as u64;
    local.extend_from_slice(&central);
    local.extend_from_slice(&zip_end(count, size, start));
    local
}

/// ZIP64 end record, its locator and the end record.
fn zip_end(count: u64, size: u64, start: u64) -> Vec<u8> {
    let mut out = b"PK\x06\x06\x2c\0\0\0\0\0\0\0\x2d\0\x2d\0\0\0\0\0\0\0\0\0".to_vec();
    for value in [count, count, size, start] {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(b"PK\x06\x07\0\0\0\0");
    out.extend_from_slice(&(start + size).to_le_bytes());
    out.extend_from_slice(b"\x01\0\0\0");
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0");
    out
}

fn rpm(count: u32, store: u32) -> Vec<u8> {
    let mut out = b"\xed\xab\xee\xdb\x03\0\0\0\0\x01".to_vec();
    out.resize(96, 0);
    out.extend_from_slice(b"\x8e\xad\xe8\x01\0\0\0\0");
    out.extend_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&store.to_be_bytes());
    out.resize(out.len() + 4096, 0);
    out
}

fn cpio(name_size: &str, file_size: &str) -> Vec<u8> {
    let zero = "00000000";
    let mut fields = vec![zero; 13];
    fields[1] = "000081a4";
    fields[6] = file_size;
    fields[11] = name_size;
    let mut out = format!("070701{}", fields.concat()).into_bytes();
    out.extend_from_slice(b"a\0");
    out.resize(4096, b'x');
    out
}

fn nested(depth: usize, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    (0..depth).fold(b"text".to_vec(), |inner, _| wrap(&inner))
}

fn links(count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for index in 0..count {
        let name = format!("{}/{index}", "d/".repeat(1500));
        let target = "t/".repeat(1500);
        let records = [pax("path", name.as_bytes()), pax("linkpath", target.as_bytes())].concat();
        out.extend(tar_record(b"x", b'x', records.len() as u64, &records));
        out.extend(tar_record(b"l", b'2', 0, b""));
    }
    gzip(&out)
}

fn xz_with_dictionary(bits: u8) -> Vec<u8> {
    let mut bytes = {
        let mut encoder = xz2::write::XzEncoder::new(Vec::new(), 0);
        encoder.write_all(&[7; 4096]).unwrap();
        encoder.finish().unwrap()
    };
    // Block header: size, flags, filter id 0x21, length of properties 1, dictionary; then its CRC.
    let length = usize::from(bytes[12] + 1) * 4;
    let at = 12
        + bytes[12..12 + length]
            .windows(2)
            .position(|pair| pair == [0x21, 1])
            .unwrap()
        + 2;
    bytes[at] = bits;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..12 + length - 4]);
    bytes[12 + length - 4..12 + length].copy_from_slice(&crc.sum().to_le_bytes());
    bytes
}

fn zstd_with_window(exponent: u8) -> Vec<u8> {
    // Frame with a window descriptor and no content size; one last, run-length encoded block of 100,000 bytes.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3];
    let block: u32 = 1 | 1 << 1 | 100_000 << 3;
    out.extend_from_slice(&block.to_le_bytes()[..3]);
    out.push(b'x');
    out
}

/// A name, bytes, and the entries in them or the code of their refusal.
type Case = (&'static str, Vec<u8>, Result<u64, Code>);

#[expect(clippy::too_many_lines, reason = "one table")]
fn cases() -> Vec<Case> {
    const HUGE: u64 = 1 << 32;
    let accepted = |entries| Ok::<u64, Code>(entries);
    let mib = vec![b'x'; 1 << 20];
    let many_mib = vec![b'x'; 64 << 20];
    let lzma = b"\x5d\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0abcdefghijklmnop";
    vec![
        (
            "tar size",
            tar_record(b"a", b'0', 0o77_777_777_777, b"x"),
            Err(Code::ArchiveEntryTooLarge),
        ),
        (
            "tar long name, claimed",
            tar_record(b"a", b'L', HUGE, b"x"),
            Err(Code::ArchiveInvalid),
        ),
        (
            "tar long name, sent",
            gzip(&tar_record(b"a", b'L', many_mib.len() as u64, &many_mib)),
            Err(Code::ArchiveInvalid),
        ),
        (
            "tar pax header, claimed",
            tar_record(b"a", b'x', 1 << 20, b"x"),
            Err(Code::ArchiveInvalid),
        ),
        (
            "tar pax header, sent",
            gzip(&tar_record(b"a", b'x', many_mib.len() as u64, &many_mib)),
            Err(Code::ArchiveInvalid),
        ),
        (
            "tar global header, sent",
            gzip(&tar_record(b"a", b'g', many_mib.len() as u64, &many_mib)),
            Err(Code::ArchiveInvalid),
        ),
        ("tar links", links(2_000), Err(Code::ArchiveLinkRejected)),
        (
            "ar name table",
            b"!<arch>\n//                                              9999999999`\nx".to_vec(),
            Err(Code::ArchiveEntryTooLarge),
        ),
        (
            "ar long name",
            b"!<arch>\n#1/1048577      0           0     0     644     1048577   `\nx".to_vec(),
            Err(Code::ArchiveExpansionRatio),
        ),
        (
            "cpio name",
            cpio("ffffffff", "00000001"),
            Err(Code::ArchiveInvalid),
        ),
        (
            "cpio size",
            cpio("00000002", "ffffffff"),
            Err(Code::ArchiveEntryTooLarge),
        ),
        ("rpm index", rpm(u32::MAX, 16), Err(Code::RpmInvalid)),
        ("rpm store", rpm(1, u32::MAX), Err(Code::RpmInvalid)),
        (
            "rpm store, cut off",
            rpm(1, 32 << 20),
            Err(Code::ArchiveExpansionRatio),
        ),
        (
            "zip count",
            [zip(["a".to_owned()].into_iter()), zip_end(1 << 40, 0, 0)].concat(),
            Err(Code::ArchiveInvalid),
        ),
        ("zip directory", zip_end(1, 1 << 50, 0), Err(Code::ArchiveInvalid)),
        (
            "zip at the entry cap",
            zip((0..100_000).map(|n| format!("d{}/file{n}", n % 1000))),
            accepted(100_000),
        ),
        (
            "zip over the entry cap",
            zip((0..200_000).map(|n| format!("{n}"))),
            Err(Code::ArchiveEntryLimit),
        ),
        (
            "zip directories",
            zip((0..2_000).map(|n| format!("{n}{}", "/d".repeat(1900)))),
            Err(Code::ArchiveInvalid),
        ),
        (
            "tar at the entry cap",
            gzip(
                &(0..100_000)
                    .flat_map(|n| tar_record(format!("d/f{n}").as_bytes(), b'0', 0, b""))
                    .collect::<Vec<_>>(),
            ),
            accepted(100_000),
        ),
        (
            "deep tar",
            nested(30, |inner| tar_record(b"a.tar", b'0', inner.len() as u64, inner)),
            Err(Code::ArchiveNestingLimit),
        ),
        ("deep gzip", nested(30, gzip), Err(Code::ArchiveNestingLimit)),
        ("deepest gzip", nested(11, gzip), accepted(11)),
        (
            "zstd window over the cap",
            zstd_with_window(31),
            Err(Code::ArchiveInvalid),
        ),
        ("zstd window at the cap", zstd_with_window(27), accepted(1)),
        (
            "xz dictionary over the cap",
            xz_with_dictionary(40),
            Err(Code::ArchiveInvalid),
        ),
        ("xz dictionary below the cap", xz_with_dictionary(28), accepted(1)),
        ("lzma dictionary over the cap", lzma.to_vec(), accepted(0)),
        ("plain", mib, accepted(0)),
    ]
}

#[test]
fn no_header_makes_the_gate_hold_more_than_its_cap() {
    let mut faults = Vec::new();
    for (name, bytes, expected) in cases() {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let resident = resident_now_kib();
        resident_peak_kib();
        let found = outcome(&bytes);
        let peak = MEMORY.peak_usage().saturating_sub(before);
        let grown = resident_peak_kib().saturating_sub(resident);
        if found != expected || peak >= CAP || grown >= WINDOW_KIB {
            faults.push(format!(
                "{name}: {found:?}, {peak} bytes at once, {grown} KiB resident"
            ));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

fn resident_now_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
