//! What real tools make, and what merely looks odd.

use super::super::{Format, Profile};
use super::{
    LIMITS, Recorder, ar, cpio, cpio_record, gzip, passes, rpm_package, run, tar, tar_record, with_unix_mode,
    zip,
};
use std::io::Write;

#[test]
fn a_plain_tar_and_its_directories_and_links() {
    let bytes = [
        tar_record(b"./", b'5', b"", 0, b""),
        tar_record(b"./a.txt", b'0', b"", 5, b"hello"),
        tar_record(b"d/x", b'2', b"../a.txt", 0, b""),
        tar_record(b"odd", b'Z', b"", 1, b"z"),
        vec![0; 1024],
    ]
    .concat();
    let (inspection, recorder) = passes(&bytes);
    assert_eq!(recorder.seen, ["a.txt", "d/x -> ../a.txt", "odd"]);
    assert_eq!(recorder.contents, [b"hello"]);
    assert_eq!(inspection.entries, 4);
    assert_eq!(inspection.expanded_bytes, 6);
    assert_eq!(inspection.format, Format::Tar);
}

#[test]
fn a_tar_without_end_marker_and_an_empty_one() {
    let bytes = tar_record(b"a", b'0', b"", 1, b"x");
    assert_eq!(passes(&bytes).1.seen, ["a"]);
    assert_eq!(passes(&vec![0; 10240]).0.format, Format::Tar);
}

#[test]
fn long_names_and_pax_paths() {
    let long = "d/".repeat(80) + "x.txt";
    let bytes = tar(&[(&long, b"1")]);
    assert_eq!(passes(&bytes).1.seen, [long]);
    let bytes = [
        tar_record(b"g", b'g', b"", 16, b"16 comment=abcd\n"),
        tar_record(b"x", b'x', b"", 12, b"12 path=q/r\n"),
        tar_record(b"short", b'0', b"", 1, b"1"),
    ]
    .concat();
    assert_eq!(passes(&bytes).1.seen, ["q/r"]);
}

#[test]
fn a_sparse_file_is_handed_over_with_its_holes() {
    let pax = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n27 GNU.sparse.name=a/s.txt\n26 GNU.sparse.realsize=10\n";
    let mut data = b"2\n2\n3\n9\n1\n".to_vec();
    data.resize(512, 0);
    data.extend_from_slice(b"abcd");
    let bytes = [
        tar_record(b"x", b'x', b"", pax.len() as u64, pax),
        tar_record(b"GNUSparseFile.0/s", b'0', b"", data.len() as u64, &data),
        vec![0; 1024],
    ]
    .concat();
    let (_, recorder) = passes(&bytes);
    assert_eq!(recorder.seen, ["a/s.txt"]);
    assert_eq!(recorder.contents, [b"\0\0abc\0\0\0\0d"]);
}

#[test]
fn every_member_of_a_gzip_is_one_stream() {
    let bytes = tar(&[("a.txt", b"1"), ("b.txt", b"2")]);
    let (head, tail) = bytes.split_at(700);
    let (inspection, recorder) = passes(&[gzip(head), gzip(b""), gzip(tail)].concat());
    assert_eq!(recorder.seen, ["a.txt", "b.txt"]);
    assert_eq!(
        (inspection.format, inspection.content),
        (Format::Gzip, Format::Tar)
    );
    assert_eq!(inspection.expanded_bytes, bytes.len() as u64);
    assert_eq!(inspection.nested_archives, 0);
}

#[test]
fn every_compression_is_read() {
    let plain = tar(&[("a.txt", b"1")]);
    let mut xz = xz2::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&plain).unwrap();
    let xz = xz.finish().unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(&plain).unwrap();
    let bzip2 = bzip2.finish().unwrap();
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    let options = xz2::stream::LzmaOptions::new_preset(1).unwrap();
    let stream = xz2::stream::Stream::new_lzma_encoder(&options).unwrap();
    let mut lzma = xz2::write::XzEncoder::new_stream(Vec::new(), stream);
    lzma.write_all(&plain).unwrap();
    let lzma = lzma.finish().unwrap();
    let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
    for (format, bytes) in [
        (Format::Xz, [&xz[..], &[0; 8]].concat()),
        (Format::Bzip2, bzip2),
        (Format::Zstd, [&skippable[..], &zstd, &skippable].concat()),
        (Format::Lzma, lzma),
    ] {
        let (inspection, recorder) = passes(&bytes);
        assert_eq!(inspection.format, format);
        assert_eq!(recorder.seen, ["a.txt"], "{format}");
        assert_eq!(recorder.contents, [b"1"], "{format}");
    }
}

#[test]
fn a_compressed_file_that_is_no_archive_is_one_entry() {
    let gem = tar(&[
        ("metadata.gz", &gzip(b"--- yaml")),
        ("data.tar.gz", &gzip(&tar(&[("lib/a.txt", b"x")]))),
    ]);
    let (inspection, recorder) = passes(&gem);
    assert_eq!(
        recorder.seen,
        [
            "metadata.gz",
            "metadata.gz!/metadata (decompressed)",
            "data.tar.gz",
            "data.tar.gz!/lib/a.txt"
        ]
    );
    assert_eq!(inspection.nested_archives, 1);
    assert_eq!(passes(&gzip(b"text")).1.seen, ["content (decompressed)"]);
    let twice = gzip(&gzip(b"text"));
    assert_eq!(
        passes(&twice).1.seen,
        ["content (decompressed)", "content!/content (decompressed)"]
    );
}

/// As old archivers wrote the directories of many JARs.
#[test]
fn zip_directories_whose_type_bits_are_no_type() {
    let bytes = with_unix_mode(zip(&[("META-INF/", b"")]), 0o177_777, 0x10);
    assert_eq!(passes(&bytes).1.seen, ["META-INF/"]);
    let bytes = with_unix_mode(zip(&[("a.txt", b"text")]), 0o177_777, 0);
    let (_, recorder) = passes(&bytes);
    assert_eq!(
        (recorder.seen, recorder.contents),
        (vec!["a.txt".to_owned()], vec![b"text".to_vec()])
    );
}

#[test]
fn zips_with_prefix_comment_and_nested_archives() {
    let inner = zip(&[("in.txt", b"deep")]);
    let outer = zip(&[
        ("lib/a.jar", &inner),
        ("b.txt", b"flat"),
        ("empty.jar", b""),
        ("c.jar", b"pointer"),
    ]);
    let expected = ["lib/a.jar", "lib/a.jar!/in.txt", "b.txt", "empty.jar", "c.jar"];
    assert_eq!(passes(&outer).1.seen, expected);
    let (inspection, recorder) = passes(&[b"#!/bin/sh\nexec java -jar $0\n", &outer[..]].concat());
    assert_eq!(recorder.seen, expected);
    assert_eq!(inspection.format, Format::Zip);
    assert_eq!(recorder.contents, [&b"deep"[..], b"flat"]);
    assert_eq!(passes(&zip(&[])).0.entries, 0);
    // A nested jar behind a prefix is found by its name.
    let launcher = [b"#!/bin/sh\n", &inner[..]].concat();
    let (_, recorder) = passes(&zip(&[("run.jar", &launcher)]));
    assert_eq!(recorder.seen, ["run.jar", "run.jar!/in.txt"]);
}

#[test]
fn an_archive_that_the_sink_wants_is_handed_over_before_its_entries() {
    let bytes = tar(&[
        ("in.tar.gz", &gzip(&tar(&[("a", b"1")]))),
        ("b.zip", &zip(&[("c", b"2")])),
    ]);
    let mut recorder = Recorder {
        wants_all: true,
        ..Recorder::default()
    };
    run(&bytes, &LIMITS, Profile::Package, &mut recorder).unwrap();
    assert_eq!(recorder.seen, ["in.tar.gz", "in.tar.gz!/a", "b.zip", "b.zip!/c"]);
    assert_eq!(recorder.contents[1], b"1");
    assert_eq!(recorder.contents[3], b"2");
}

#[test]
fn links_of_system_packages_are_facts() {
    let payload = [
        tar_record(b"./usr/bin/a", b'0', b"", 1, b"x"),
        tar_record(b"./usr/bin/b", b'1', b"./usr/bin/a", 0, b""),
        tar_record(b"./etc/c\\x2d", b'2', b"/usr/share/c", 0, b""),
        vec![0; 1024],
    ]
    .concat();
    let deb = ar(&[("debian-binary", b"2.0\n"), ("data.tar.gz", &gzip(&payload))]);
    let (inspection, recorder) = passes(&deb);
    assert_eq!(inspection.format, Format::Ar);
    assert_eq!(
        recorder.seen[2..],
        [
            "data.tar.gz!/usr/bin/a",
            "data.tar.gz!/usr/bin/b => ./usr/bin/a",
            "data.tar.gz!/etc/c\\x2d -> /usr/share/c"
        ]
    );
    let apk = [tar_record(b".PKGINFO", b'0', b"", 1, b"x"), payload].concat();
    assert_eq!(passes(&gzip(&apk)).1.seen.len(), 4);
}

#[test]
fn a_layer_may_hold_anything_that_a_file_system_may() {
    let bytes = [
        tar_record(b"dev/null", b'3', b"", 0, b""),
        tar_record(b"a/.wh.b", b'0', b"", 0, b""),
        tar_record(b"l", b'2', b"../../etc", 0, b""),
        tar_record(b"l/x", b'1', b"/a", 0, b""),
        vec![0; 1024],
    ]
    .concat();
    let mut recorder = Recorder::default();
    let inspection = run(&bytes, &LIMITS, Profile::Layer, &mut recorder).unwrap();
    assert_eq!(inspection.entries, 4);
    assert_eq!(recorder.seen, ["a/.wh.b", "l -> ../../etc", "l/x => /a"]);
}

#[test]
fn cpio_and_rpm() {
    let archive = cpio(&[
        cpio_record("./d", 0o040_755, b""),
        cpio_record("./d/a.txt", 0o100_644, b"12345"),
        cpio_record("./d/l", 0o120_777, b"a.txt"),
    ]);
    assert_eq!(passes(&archive).1.seen, ["d/", "d/a.txt", "d/l -> a.txt"]);
    for payload in [gzip(&archive), archive] {
        let (inspection, recorder) = passes(&rpm_package(&payload));
        assert_eq!(inspection.format, Format::Rpm);
        assert_eq!(recorder.rpms, ["demo"]);
        assert_eq!(recorder.seen, ["d/", "d/a.txt", "d/l -> a.txt"]);
    }
}

#[test]
fn what_is_no_archive_is_opaque() {
    for bytes in [
        &b""[..],
        b"text",
        b"\x78\x9c not zlib",
        b"]\0\0 neither lzma",
        b"PK",
    ] {
        let (inspection, recorder) = passes(bytes);
        assert_eq!(inspection.format, Format::Opaque);
        assert!(recorder.seen.is_empty());
    }
}

#[test]
fn a_broken_archive_that_is_not_named_like_one_is_a_file() {
    let escaping = tar_record(b"../x", b'0', b"", 0, b"");
    let damaged = &gzip(&[7; 3000])[..20];
    let (inspection, recorder) = passes(&tar(&[
        ("a.part", &escaping),
        ("b.bin", damaged),
        ("c.bin", b"PK\x03\x04"),
        ("d.txt", b"1"),
    ]));
    assert_eq!(inspection.unopened, 3);
    assert_eq!(recorder.contents.last().unwrap(), b"1");
}

#[test]
fn a_broken_file_that_looks_like_an_archive_is_given_up_in_the_middle_of_an_entry() {
    let noise: Vec<u8> = (0u32..4000).map(|n| n.wrapping_mul(n).to_le_bytes()[1]).collect();
    let mut broken = gzip(&tar(&[("t.txt", &noise)]));
    broken.truncate(broken.len() / 2);
    let (inspection, recorder) = passes(&tar(&[("blob", &broken), ("after.txt", b"x")]));
    assert_eq!((inspection.entries, inspection.unopened), (3, 1));
    assert_eq!(recorder.seen, ["blob", "blob!/t.txt", "after.txt"]);
    assert_eq!(recorder.contents, [b"x"]);
}
