//! What must be refused, and by which rule.

use super::super::{Discard, Gate, GateError, GateLimits, Input, Profile};
use super::{
    LIMITS, Recorder, ar, cpio, cpio_record, gzip, passes, refused, refused_with, rpm_package, run, tar,
    tar_record, with_unix_mode, zip,
};
use crate::run::RunContext;
use assay_schemas::Code;
use std::io::Write;
use std::time::Duration;

#[test]
fn budgets_hold_at_their_limits() {
    let files: Vec<(String, Vec<u8>)> = (0..5).map(|n| (format!("f{n}"), vec![b'x'; 100])).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, d)| (n.as_str(), d.as_slice())).collect();
    for bytes in [
        tar(&files),
        zip(&files),
        cpio(
            &files
                .iter()
                .map(|(n, d)| cpio_record(n, 0o100_644, d))
                .collect::<Vec<_>>(),
        ),
        ar(&files),
    ] {
        let with = |change: fn(&mut GateLimits)| {
            let mut limits = LIMITS;
            change(&mut limits);
            run(&bytes, &limits, Profile::Package, &mut Recorder::default()).map_err(|e| e.code())
        };
        assert!(with(|l| l.max_entries = 5).is_ok());
        assert_eq!(with(|l| l.max_entries = 4), Err(Code::ArchiveEntryLimit));
        assert!(with(|l| l.max_single_file_bytes = 100).is_ok());
        assert_eq!(
            with(|l| l.max_single_file_bytes = 99),
            Err(Code::ArchiveEntryTooLarge)
        );
        assert!(with(|l| l.max_expanded_bytes = 500).is_ok());
        assert_eq!(
            with(|l| l.max_expanded_bytes = 499),
            Err(Code::ArchiveExpandedLimit)
        );
    }
}

#[test]
fn the_root_is_a_directory() {
    assert!(passes(&tar_record(b"./", b'5', b"", 0, b"")).1.seen.is_empty());
    for flag in [b'0', b'1', b'2'] {
        let record = tar_record(b".", flag, b"a", 0, b"");
        assert_eq!(refused(&record), Code::ArchivePathInvalid, "{flag}");
    }
    assert_eq!(refused(&zip(&[(".", b"x")])), Code::ArchivePathInvalid);
    assert_eq!(
        refused(&cpio(&[cpio_record(".", 0o100_644, b"x")])),
        Code::ArchivePathInvalid
    );
}

#[test]
fn nesting_at_its_limit() {
    let leaf = zip(&[("a", b"1")]);
    let one = zip(&[("l.jar", &leaf)]);
    let two = gzip(&tar(&[("one.zip", &one)]));
    let limits = |max_nested_depth| GateLimits {
        max_nested_depth,
        ..LIMITS
    };
    for (bytes, depth) in [(&leaf, 0), (&one, 1), (&two, 2)] {
        assert!(run(bytes, &limits(depth), Profile::Package, &mut Recorder::default()).is_ok());
        if depth > 0 {
            assert_eq!(refused_with(bytes, &limits(depth - 1)), Code::ArchiveNestingLimit);
        }
    }
}

#[test]
fn compression_bombs() {
    let zeros = vec![0; 8 << 20];
    assert_eq!(refused(&gzip(&zeros)), Code::ArchiveExpansionRatio);
    assert_eq!(refused(&zip(&[("a", &zeros)])), Code::ArchiveExpansionRatio);
    // Beside what does not shrink, one entry may not grow more than all of them together.
    let noise: Vec<u8> = (0..100_000u32)
        .map(|at| at.wrapping_mul(at).to_le_bytes()[2])
        .collect();
    let beside = zip(&[("a", &zeros), ("b", &noise)]);
    assert!(beside.len() > 20_000, "{} bytes", beside.len());
    assert_eq!(refused(&beside), Code::ArchiveExpansionRatio);
    let second = [gzip(&tar(&[("a", b"1")])), gzip(&zeros)].concat();
    assert_eq!(refused(&second), Code::ArchiveExpansionRatio);
    let large = GateLimits {
        max_single_file_bytes: 1000,
        ..LIMITS
    };
    assert_eq!(
        refused_with(&gzip(&[b'x'; 1001]), &large),
        Code::ArchiveEntryTooLarge
    );
    assert_eq!(
        refused_with(&zip(&[("a.hpi", &zip(&[("p", &[1; 1001])]))]), &large),
        Code::ArchiveEntryTooLarge
    );
}

#[test]
fn names_that_escape() {
    for name in ["../a", "/a", "a/../../b", "a/.."] {
        let record = tar_record(name.as_bytes(), b'0', b"", 0, b"");
        assert_eq!(refused(&record), Code::ArchivePathEscape, "tar {name}");
        let record = cpio(&[cpio_record(name, 0o100_644, b"")]);
        assert_eq!(refused(&record), Code::ArchivePathEscape, "cpio {name}");
        let mut long = tar_record(b"L", b'L', b"", name.len() as u64, name.as_bytes());
        long.extend(tar_record(b"safe", b'0', b"", 0, b""));
        assert_eq!(refused(&long), Code::ArchivePathEscape, "long {name}");
    }
    assert_eq!(refused(&zip(&[("a\\b", b"")])), Code::ArchivePathEscape);
    assert_eq!(
        refused(&renamed(&zip(&[("abcdef", b"")]), b"abcdef", b"../../")),
        Code::ArchivePathEscape
    );
}

#[test]
fn a_refusal_says_where() {
    let inner = tar_record(b"../x", b'0', b"", 0, b"");
    let bytes = tar(&[("a", b""), ("d/in.tar", &inner)]);
    let refused = run(&bytes, &LIMITS, Profile::Package, &mut Recorder::default());
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("d/in.tar!/../x"), "{message}");
}

#[test]
fn links_that_escape() {
    let link = |name: &[u8], kind, target: &[u8]| tar_record(name, kind, target, 0, b"");
    assert_eq!(refused(&link(b"a", b'2', b"../x")), Code::ArchiveLinkEscape);
    assert_eq!(refused(&link(b"a", b'2', b"/etc")), Code::ArchiveLinkEscape);
    assert_eq!(refused(&link(b"a", b'1', b"../x")), Code::ArchiveLinkEscape);
    assert_eq!(refused(&link(b"a", b'1', b"b")), Code::ArchiveLinkRejected);
    let through = [link(b"d", b'2', b"e"), tar_record(b"d/x", b'0', b"", 0, b"")].concat();
    assert_eq!(refused(&through), Code::ArchiveLinkRejected);
    let chain = [link(b"x/y", b'2', b".."), link(b"z", b'2', b"x/y/../..")].concat();
    assert_eq!(refused(&chain), Code::ArchiveLinkEscape);
    let hard = link(b"a", b'1', b"b");
    assert!(run(&hard, &LIMITS, Profile::Conda, &mut Recorder::default()).is_ok());
    let cpio_link = cpio(&[cpio_record("a", 0o120_777, b"../../x")]);
    assert_eq!(refused(&cpio_link), Code::ArchiveLinkEscape);
    // What the files of a system package may do, an archive among these files may not.
    let among_files = tar(&[("a.tar", &link(b"a", b'2', b"/etc"))]);
    let deb = ar(&[("debian-binary", b"2.0\n"), ("data.tar.gz", &gzip(&among_files))]);
    assert_eq!(refused(&deb), Code::ArchiveLinkEscape);
}

#[test]
fn special_files() {
    for kind in [b'3', b'4', b'6'] {
        assert_eq!(
            refused(&tar_record(b"a", kind, b"", 0, b"")),
            Code::ArchiveSpecialFileRejected
        );
    }
    let socket = cpio(&[cpio_record("s", 0o140_644, b"")]);
    assert_eq!(refused(&socket), Code::ArchiveSpecialFileRejected);
    for mode in [0o010_644, 0o020_644, 0o060_644, 0o140_644] {
        let zip = with_unix_mode(zip(&[("abc/", b"")]), mode, 0x10);
        assert_eq!(refused(&zip), Code::ArchiveSpecialFileRejected, "{mode:o}");
    }
}

#[test]
fn tars_that_two_readers_read_differently() {
    let file = |size, data: &[u8]| tar_record(b"a", b'0', b"", size, data);
    let pax = |records: &[u8]| tar_record(b"x", b'x', b"", records.len() as u64, records);
    for (what, bytes) in [
        ("sizes", [pax(b"10 size=0\n"), file(512, &[b'x'; 512])].concat()),
        (
            "global path",
            [tar_record(b"g", b'g', b"", 12, b"12 path=a/b\n"), file(0, b"")].concat(),
        ),
        (
            "two pax",
            [pax(b"10 mtime=1\n"), pax(b"10 mtime=1\n"), file(0, b"")].concat(),
        ),
        ("lonely", pax(b"12 path=a/b\n")),
        ("directory", tar_record(b"a/", b'5', b"", 512, &[0; 512])),
        ("symlink", tar_record(b"a", b'2', b"b", 512, &[0; 512])),
        (
            "after the end",
            [file(0, b""), vec![0; 1024], file(0, b"")].concat(),
        ),
        ("cut off", file(5000, b"abc")),
        ("checksum", {
            let mut bytes = [file(0, b""), file(0, b"")].concat();
            bytes[512] ^= 1;
            bytes
        }),
    ] {
        assert_eq!(refused(&bytes), Code::ArchiveInvalid, "{what}");
    }
}

#[test]
fn records_about_entries_are_bounded() {
    let name = vec![b'a'; 24 << 20];
    let long = tar_record(b"L", b'L', b"", name.len() as u64, &name);
    assert_eq!(refused(&gzip(&long)), Code::ArchiveInvalid);
    let pax = tar_record(b"x", b'x', b"", name.len() as u64, &name);
    assert_eq!(refused(&pax), Code::ArchiveInvalid);
}

/// Replaces every occurrence of a name by one of the same length.
fn renamed(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for at in 0..out.len() {
        if out[at..].starts_with(from) {
            out[at..at + to.len()].copy_from_slice(to);
        }
    }
    out
}

#[test]
fn zips_whose_views_differ() {
    let good = zip(&[("abc", b"some text"), ("def", b"more")]);
    assert_eq!(passes(&good).0.entries, 2);
    let directory = good.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let second = good[1..].windows(4).position(|w| w == b"PK\x03\x04").unwrap() + 1;
    let at = |offset: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[offset] ^= value;
        bytes
    };
    let end = good.len() - 22;
    for (what, bytes) in [
        ("local name", at(30, 1)),
        ("central name", at(directory + 46, 1)),
        ("method", at(8, 8)),
        ("local size", at(22, 1)),
        ("central size", at(directory + 24, 1)),
        ("crc in both", {
            let mut bytes = at(14, 1);
            bytes[directory + 16] ^= 1;
            bytes
        }),
        ("count", at(end + 8, 1)),
        ("disk", at(end + 4, 1)),
        ("directory size", at(end + 12, 1)),
        ("directory offset", at(end + 17, 0xff)),
        ("comment length", at(end + 20, 1)),
        ("overlap", at(directory + 42, 1)),
        ("truncated", good[..end].to_vec()),
        ("two zips", [good.clone(), zip(&[("x", b"y")])].concat()),
        (
            "unlisted entry",
            [good[..second].to_vec(), zip(&[("def", b"more")])].concat(),
        ),
    ] {
        assert_eq!(refused(&bytes), Code::ArchiveInvalid, "{what}");
    }
    let mut encrypted = at(6, 1);
    encrypted[directory + 8] ^= 1;
    assert_eq!(refused(&encrypted), Code::ArchiveEntryUnreadable);
    let under = zip(&[("a", b"1"), ("a/b", b"2")]);
    assert_eq!(refused(&under), Code::ArchiveInvalid);
}

#[test]
fn a_zip_directory_with_data() {
    let bytes = renamed(&zip(&[("abcd", b"data")]), b"abcd", b"abc/");
    assert_eq!(refused(&bytes), Code::ArchiveInvalid);
}

#[test]
fn compressed_streams_that_are_damaged() {
    let good = gzip(&tar(&[("a", &[7; 3000])]));
    assert_eq!(refused(&good[..good.len() - 9]), Code::ArchiveInvalid);
    let mut crc = good.clone();
    let at = crc.len() - 8;
    crc[at] ^= 1;
    assert_eq!(refused(&crc), Code::ArchiveInvalid);
    assert_eq!(refused(&[&good[..], b"garbage"].concat()), Code::ArchiveInvalid);
    assert!(passes(&[&good[..], &[0; 100]].concat()).0.entries == 1);
}

#[test]
fn decoders_have_a_memory_limit() {
    // A frame header with a window of 2^31 bytes.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3, 0, 0, 0, 0, 0];
    assert_eq!(refused(&frame), Code::ArchiveInvalid);
}

#[test]
fn rpms_with_a_broken_envelope() {
    let good = rpm_package(&cpio(&[]));
    assert_eq!(passes(&good).0.entries, 0);
    let mut count = good.clone();
    count[96 + 8] = 0xff;
    assert_eq!(refused(&count), Code::RpmInvalid);
    let mut offset = good.clone();
    offset[96 + 16 + 8] = 0x7f;
    assert_eq!(refused(&offset), Code::RpmInvalid);
    assert_eq!(refused(&rpm_package(b"")), Code::RpmPayloadInvalid);
    assert_eq!(refused(&rpm_package(b"garbage")), Code::RpmPayloadInvalid);
    for length in [50, 100, 115, 150] {
        assert_eq!(refused(&good[..length]), Code::RpmInvalid, "{length}");
    }
}

#[test]
fn recognised_formats_that_are_not_read() {
    assert_eq!(refused(b"7z\xbc\xaf\x27\x1c rest"), Code::ArchiveInvalid);
    let (inspection, _) = passes(&tar(&[("a.7z", b"7z\xbc\xaf\x27\x1c rest")]));
    assert_eq!(inspection.unopened, 1);
}

#[test]
fn a_stopped_run_stops() {
    let file = tempfile::tempfile().unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(Duration::ZERO);
    let error = super::inspect(
        &file,
        0,
        scratch.path(),
        &LIMITS,
        Profile::Package,
        &context,
        &mut super::super::Discard,
    );
    assert_eq!(error.unwrap_err().code(), Code::Timeout);
}

#[test]
fn a_broken_archive_that_is_named_like_one_is_refused() {
    let escaping = tar_record(b"../x", b'0', b"", 0, b"");
    assert_eq!(refused(&tar(&[("a.tar", &escaping)])), Code::ArchivePathEscape);
    assert_eq!(refused(&tar(&[("a.jar", b"PK\x03\x04")])), Code::ArchiveInvalid);
}

#[test]
fn a_container_that_breaks_inside_a_tolerated_archive_is_refused() {
    let outer = gzip(&tar(&[(
        "a.bin",
        &gzip(&(0..200_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>()),
    )]));
    for cut in [outer.len() / 2, outer.len() - 9] {
        assert_eq!(refused(&outer[..cut]), Code::ArchiveInvalid);
    }
}

#[test]
fn several_inputs_share_one_budget_and_are_counted_apart() {
    let file = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        (file, u64::try_from(bytes.len()).unwrap())
    };
    let (first, first_size) = file(&tar(&[("a", b"1"), ("b", b"23")]));
    let (second, second_size) = file(&tar(&[("c", b"4")]));
    let scratch = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(Duration::from_mins(1));
    let limits = GateLimits {
        max_entries: 4,
        ..LIMITS
    };
    let input_bytes = first_size + second_size;
    let gate = Gate::new(limits, input_bytes, scratch.path(), Profile::Layer, &context);
    let counts = |file, size| {
        gate.inspect(Input::complete(file, size), &mut Discard)
            .map(|found| (found.entries, found.expanded_bytes))
    };
    assert_eq!(counts(&first, first_size).unwrap(), (2, 3));
    assert_eq!(counts(&second, second_size).unwrap(), (1, 1));
    let error = counts(&first, first_size).unwrap_err();
    assert_eq!(error.code(), Code::ArchiveEntryLimit);
}

#[test]
fn broken_and_unsafe_archives_among_files_pass_only_when_no_engine_gets_them() {
    let broken = &zip(&[("a", b"text")])[..30];
    let escaping = gzip(&tar_record(b"../x", b'0', b"", 1, b"1"));
    let bomb = gzip(&vec![0; 33 << 20]);
    let deep = tar(&[(
        "d/a.tar",
        &tar(&[("d/b.tar", &tar(&[("d/c.tar", &tar(&[("x", b"1")]))]))]),
    )]);
    // What it holds, under which name, the code when an engine gets it and when none does.
    let cases = [
        (broken, "t/broken.zip", Code::ArchiveInvalid, None),
        (&escaping, "t/evil.tar.gz", Code::ArchivePathEscape, None),
        (
            broken,
            "broken.zip",
            Code::ArchiveInvalid,
            Some(Code::ArchiveInvalid),
        ),
        (
            &escaping,
            "data.tar.gz",
            Code::ArchivePathEscape,
            Some(Code::ArchivePathEscape),
        ),
        (
            &bomb,
            "t/bomb.gz",
            Code::ArchiveEntryTooLarge,
            Some(Code::ArchiveEntryTooLarge),
        ),
        (
            &deep,
            "t/deep.tar",
            Code::ArchiveNestingLimit,
            Some(Code::ArchiveNestingLimit),
        ),
    ];
    for (content, name, handed_on, kept) in cases {
        let noise: Vec<u8> = (0..40_000u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect();
        let bytes = tar(&[("t/noise", &noise), (name, content), ("t/z", b"1")]);
        for (keeps_all, expected) in [(false, Some(handed_on)), (true, kept)] {
            for wants_all in [false, true] {
                let mut recorder = Recorder {
                    wants_all,
                    keeps_all,
                    ..Recorder::default()
                };
                let found = run(&bytes, &LIMITS, Profile::Package, &mut recorder);
                assert_eq!(
                    found.as_ref().err().map(GateError::code),
                    expected,
                    "{name} {keeps_all}"
                );
                if let Ok(found) = found {
                    assert_eq!(found.unopened, 1, "{name}");
                    assert_eq!(recorder.seen.last().unwrap(), "t/z", "the walk goes on behind it");
                }
            }
        }
    }
}
