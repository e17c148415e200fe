//! The collector, fed as the gate feeds it.

use super::Collector;
use crate::archive::{Container, Entry, EntryKind, EntrySink, Interest};
use crate::recognition::{Distribution, Form, LayoutLimits, RecognitionError, Recognized, RootFacts};
use assay_schemas::ArtifactType as Type;
use assay_schemas::catalog::PartialCode;
use std::path::Path;

/// (containers around it, path, content)
type File<'a> = (&'a [&'a str], &'a str, &'a [u8]);

fn feed(
    dir: &Path,
    hint: Type,
    distribution: Option<Distribution>,
    root: Container,
    files: &[File<'_>],
) -> Result<Recognized, RecognitionError> {
    let layout = dir.join("layout");
    let collector = Collector::new(hint, &layout, LayoutLimits::default(), distribution);
    run(dir, collector, root, files)
}

fn feed_named(
    dir: &Path,
    hint: Type,
    name: Option<String>,
    root: Container,
    files: &[File<'_>],
) -> Result<Recognized, RecognitionError> {
    let layout = dir.join("layout");
    let collector = Collector::new(hint, &layout, LayoutLimits::default(), None).named(name);
    run(dir, collector, root, files)
}

fn run(
    dir: &Path,
    mut collector: Collector<'_>,
    root: Container,
    files: &[File<'_>],
) -> Result<Recognized, RecognitionError> {
    let artifact = dir.join("artifact");
    std::fs::write(&artifact, b"bytes").unwrap();
    for (within, path, content) in files {
        let within: Vec<String> = within.iter().map(|w| (*w).to_owned()).collect();
        let container = if within.is_empty() { root } else { Container::Tar };
        let entry = Entry {
            path,
            within: &within,
            container,
            kind: EntryKind::File,
            declared_size: None,
        };
        if collector.begin(&entry) == Interest::Content {
            // One byte at a time: no decision may depend on how the bytes arrive.
            for byte in *content {
                collector.chunk(&[*byte]).unwrap();
            }
            collector.end().unwrap();
        }
    }
    collector.finish(&RootFacts {
        is_opaque: files.is_empty(),
        is_rpm: false,
        input_bytes: 5,
        path: &artifact,
    })
}

fn purls(recognized: &Recognized) -> Vec<&str> {
    recognized.identities.iter().map(|i| i.purl.as_str()).collect()
}

fn codes(recognized: &Recognized) -> Vec<PartialCode> {
    recognized.reasons.iter().map(|r| r.code).collect()
}

#[test]
fn an_npm_package_and_what_is_bundled_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let files: [File<'_>; 3] = [
        (
            &[],
            "package/package.json",
            br#"{"name":"@s/a","version":"1.0.0"}"#,
        ),
        (
            &[],
            "package/test/package.json",
            br#"{"name":"fixture","version":"1.0.0"}"#,
        ),
        (
            &[],
            "package/node_modules/b/package.json",
            br#"{"name":"b","version":"2.0.0"}"#,
        ),
    ];
    let r = feed(dir.path(), Type::Tgz, None, Container::Tar, &files).unwrap();
    assert_eq!(r.form, Form::NpmPackage);
    assert_eq!(purls(&r), ["pkg:npm/%40s/a@1.0.0"]);
    assert_eq!((r.laid_out_files, codes(&r)), (2, vec![]));
    assert!(!dir.path().join("layout/package/test").exists());
}

#[test]
fn a_package_inside_an_archive_is_named_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let files: [File<'_>; 3] = [
        (&[], "deps/a.tgz", b"\x1f\x8b"),
        (
            &["deps/a.tgz"],
            "package/package.json",
            br#"{"name":"a","version":"1.0.0"}"#,
        ),
        (&["deps/a.tgz"], "package/yarn.lock", b"x"),
    ];
    let r = feed(dir.path(), Type::Zip, None, Container::Zip, &files).unwrap();
    assert_eq!(r.form, Form::Archive);
    assert_eq!(
        r.identities.first().unwrap().location,
        "deps/a.tgz!/package/package.json"
    );
    assert!(dir.path().join("layout/deps/a.tgz!/package/yarn.lock").exists());
}

#[test]
fn a_known_type_without_a_name_is_partial_and_an_archive_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(Type, &str, &[u8], Vec<PartialCode>); 5] = [
        (Type::Whl, "a.txt", b"", vec![PartialCode::IdentityUnknown]),
        (
            Type::Tgz,
            "package/package.json",
            b"{",
            vec![PartialCode::IdentityUnknown],
        ),
        (
            Type::Crate,
            "a-1/Cargo.toml",
            b"[package]",
            vec![PartialCode::IdentityUnknown],
        ),
        (
            Type::Ipa,
            "Payload/a.app/Info.plist",
            b"",
            vec![PartialCode::UnsupportedFormat],
        ),
        (Type::Zip, "a.txt", b"", vec![]),
    ];
    for (index, (hint, path, content, want)) in cases.into_iter().enumerate() {
        let dir = dir.path().join(index.to_string());
        std::fs::create_dir(&dir).unwrap();
        let container = if path.starts_with("Payload") || hint == Type::Zip {
            Container::Zip
        } else {
            Container::Tar
        };
        let r = feed(&dir, hint, None, container, &[(&[], path, content)]).unwrap();
        assert_eq!(codes(&r), want, "{path}");
    }
}

#[test]
fn a_jar_gets_the_name_that_its_properties_give() {
    let dir = tempfile::tempdir().unwrap();
    let files: [File<'_>; 2] = [
        (
            &[],
            "META-INF/maven/g/a/pom.properties",
            b"groupId=g\nartifactId=a\nversion=1\n",
        ),
        (&[], "lib/b.jar", b"PK"),
    ];
    let r = feed(dir.path(), Type::Zip, None, Container::Zip, &files).unwrap();
    assert_eq!(r.form, Form::JavaArchive);
    assert_eq!(purls(&r), ["pkg:maven/g/a@1"]);
    assert!(dir.path().join("layout/a-1.jar").exists());
    assert!(
        !dir.path().join("layout/lib").exists(),
        "Syft finds it in the jar"
    );
    assert_eq!(r.location("/a-1.jar"), "");
}

#[test]
fn a_jar_that_does_not_name_itself_gets_its_file_name_or_one_that_no_artifact_has() {
    let manifest: File<'_> = (&[], "META-INF/MANIFEST.MF", b"Implementation-Version: 1.0.4\n");
    let bad: File<'_> = (&[], "META-INF/maven/g/a/pom.properties", b"version=1\n");
    let good: File<'_> = (
        &[],
        "META-INF/maven/g/a/pom.properties",
        b"groupId=g\nartifactId=a\nversion=1\n",
    );
    let boot: File<'_> = (&[], "BOOT-INF/lib/c-3.jar", b"PK");
    let library: File<'_> = (&[], "lib/c-3.jar", b"PK");
    let long = format!("{}.jar", "a".repeat(100));
    let cases: [(Type, &str, &[File<'_>], &str, bool); 10] = [
        (Type::Jar, "", &[manifest], "assay-unnamed.jar", true),
        (Type::Jar, "", &[manifest, bad], "assay-unnamed.jar", true),
        (Type::Jar, "b-2.jar", &[manifest], "b-2.jar", true),
        (Type::Jar, "b-2.jar", &[good], "a-1.jar", false),
        (Type::Jar, "b 2.jar", &[manifest], "assay-unnamed.jar", true),
        (Type::Jar, &long, &[manifest], "assay-unnamed.jar", true),
        (Type::Zip, "b-2.zip", &[manifest], "assay-unnamed.jar", true),
        (Type::War, "", &[manifest], "assay-unnamed.war", false),
        (Type::Jar, "", &[manifest, boot], "assay-unnamed.jar", false),
        (Type::Jar, "", &[manifest, library], "assay-unnamed.jar", true),
    ];
    for (hint, file_name, files, want, unnamed) in cases {
        let dir = tempfile::tempdir().unwrap();
        let name = Some(file_name.to_owned()).filter(|name| !name.is_empty());
        let r = feed_named(dir.path(), hint, name, Container::Zip, files).unwrap();
        let laid_out = dir.path().join("layout").join(want);
        assert_eq!(
            (laid_out.exists(), r.is_unnamed_jar),
            (true, unnamed),
            "{file_name}"
        );
    }
}

#[test]
fn system_packages_want_a_distribution() {
    for (hint, purl, want) in [
        (
            None,
            "pkg:apk/alpine/a@1?arch=x86",
            vec![PartialCode::DistroUnknown],
        ),
        (
            Distribution::new("alpine", "3.17"),
            "pkg:apk/alpine/a@1?arch=x86&distro=alpine-3.17",
            vec![],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let known = hint.is_some();
        let files: [File<'_>; 2] = [
            (&[], ".PKGINFO", b"pkgname = a\npkgver = 1\narch = x86\n"),
            (&[], "lib/apk/db/installed", b"P:evil\nV:1\n\n"),
        ];
        let r = feed(dir.path(), Type::Apk, hint, Container::Tar, &files).unwrap();
        assert_eq!(
            (r.form, purls(&r), codes(&r)),
            (Form::AlpinePackage, vec![purl], want)
        );
        assert_eq!(dir.path().join("layout/etc/os-release").exists(), known);
        assert!(dir.path().join("layout/payload!/lib/apk/db/installed").exists());
    }
}

#[test]
fn a_conda_package_is_its_index_and_nothing_else() {
    let index: &[u8] = br#"{"name":"a","version":"1","build":"0","build_number":0}"#;
    let good: [File<'_>; 2] = [(&[], "info/index.json", index), (&[], "a/Cargo.lock", b"x")];
    let dir = tempfile::tempdir().unwrap();
    let r = feed(dir.path(), Type::Conda, None, Container::Tar, &good).unwrap();
    assert_eq!(
        std::fs::read(dir.path().join("layout/conda-meta/package.json")).unwrap(),
        index
    );
    assert_eq!((r.laid_out_files, purls(&r)), (1, vec!["pkg:conda/a@1?build=0"]));
    let twice: [File<'_>; 2] = [
        (&[], "info/index.json", index),
        (&["x"], "info/index.json", index),
    ];
    let dir = tempfile::tempdir().unwrap();
    let error = feed(dir.path(), Type::Conda, None, Container::Tar, &twice).unwrap_err();
    assert_eq!(error.code().as_str(), "CONDA_INDEX_DUPLICATE");
    let error = feed(dir.path(), Type::Conda, None, Container::Tar, &[]).unwrap_err();
    assert_eq!(error.code().as_str(), "CONDA_PACKAGE_INVALID");
}

#[test]
fn a_conda_package_that_was_not_declared_is_recognised_and_hides_nothing() {
    let index: &[u8] = br#"{"name":"a","version":"1","build":"0","build_number":0}"#;
    let info: &[&str] = &["info-a-1-0.tar.zst"];
    let outer: [File<'_>; 3] = [
        (&[], "metadata.json", br#"{"conda_pkg_format_version":2}"#),
        (&[], "info-a-1-0.tar.zst", b""),
        (&[], "pkg-a-1-0.tar.zst", b""),
    ];
    let v1: [File<'_>; 2] = [(&[], "info/index.json", index), (&[], "b/Cargo.lock", b"x")];
    let v2 = [&outer[..], &[(info, "info/index.json", index)]].concat();
    let elsewhere = [&outer[..], &[(&["x.tar"][..], "info/index.json", index)]].concat();
    let unknown = vec![PartialCode::IdentityUnknown];
    let cases: [(Container, &[File<'_>], usize, Vec<PartialCode>); 6] = [
        (Container::Tar, &v1, 1, vec![]),
        (Container::Zip, &v2, 1, vec![]),
        (Container::Zip, &outer, 0, unknown.clone()),
        (Container::Zip, &elsewhere, 0, unknown.clone()),
        (
            Container::Tar,
            &[(&[], "info/index.json", b"{}")],
            0,
            unknown.clone(),
        ),
        (Container::Tar, &[v1[0], v1[0]], 0, unknown),
    ];
    for (number, (root, files, identities, want)) in cases.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let r = feed(dir.path(), Type::Unknown, None, root, files).unwrap();
        assert_eq!(
            (r.form, purls(&r).len(), codes(&r), r.conda.is_some()),
            (Form::CondaPackage, identities, want, false),
            "{number}"
        );
        let layout = dir.path().join("layout");
        assert_eq!(
            layout.join("conda-meta/index.json").exists(),
            identities == 1,
            "{number}"
        );
        assert_eq!(layout.join("b/Cargo.lock").exists(), number == 0, "{number}");
        assert!(r.plan.catalogers.contains(&"conda-meta-cataloger"));
        assert!(
            !layout.join("conda-meta/package.json").exists(),
            "npm's reader takes it"
        );
    }
}

#[test]
fn a_component_must_come_of_every_manifest_that_a_cataloguer_reads() {
    let npm: [File<'_>; 4] = [
        (&[], "package/package.json", br#"{"name":"a","version":"1"}"#),
        (
            &[],
            "package/node_modules/b/package.json",
            br#"{"name":"b","version":"2"}"#,
        ),
        (
            &[],
            "package/node_modules/c/package.json",
            br#"{"type":"module"}"#,
        ),
        (&[], "package/test/package.json", br#"{"name":"d","version":"4"}"#),
    ];
    let metadata = b"Metadata-Version: 2.1\nName: a\nVersion: 1\n";
    let wheel: [File<'_>; 2] = [
        (&[], "a-1.dist-info/METADATA", metadata),
        (&[], "vendor/b-1.dist-info/METADATA", b"Name: b\n"),
    ];
    let sdist: [File<'_>; 1] = [(&[], "a-1/PKG-INFO", metadata)];
    let dart: [File<'_>; 1] = [(&[], "pubspec.yaml", b"name: a\nversion: 1.0.0\n")];
    // A manifest of another form than its archive's gives no identity, and none is expected of it.
    let cargo: [File<'_>; 2] = [
        (
            &[],
            "a-1/Cargo.toml",
            b"[package]\nname = \"a\"\nversion = \"1\"\n",
        ),
        (&[], "package/package.json", br#"{"name":"a","version":"1"}"#),
    ];
    let cases: [(Type, Container, &[File<'_>], &[&str]); 5] = [
        (
            Type::Tgz,
            Container::Tar,
            &npm,
            &["package/node_modules/b/package.json", "package/package.json"],
        ),
        (Type::Whl, Container::Zip, &wheel, &["a-1.dist-info/METADATA"]),
        (Type::TarGz, Container::Tar, &sdist, &[]),
        (Type::TarGz, Container::Tar, &dart, &["pubspec.yaml"]),
        (Type::Crate, Container::Tar, &cargo, &[]),
    ];
    for (hint, container, files, want) in cases {
        let dir = tempfile::tempdir().unwrap();
        let r = feed(dir.path(), hint, None, container, files).unwrap();
        let mut expected: Vec<&str> = r.expected_files.iter().map(|f| f.location.as_str()).collect();
        expected.sort_unstable();
        assert_eq!(expected, want);
    }
}

#[test]
fn an_empty_layout_is_there_to_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let nuspec = b"<package><metadata><id>A</id><version>1</version></metadata></package>";
    let r = feed(
        dir.path(),
        Type::Nupkg,
        None,
        Container::Zip,
        &[(&[], "A.nuspec", nuspec)],
    )
    .unwrap();
    assert_eq!((purls(&r), r.laid_out_files), (vec!["pkg:nuget/A@1"], 0));
    assert!(dir.path().join("layout").is_dir());
}

#[test]
fn bytes_of_no_known_kind_are_opaque_but_laid_out() {
    let dir = tempfile::tempdir().unwrap();
    let r = feed(dir.path(), Type::Unknown, None, Container::Tar, &[]).unwrap();
    assert_eq!((r.form, r.laid_out_files, codes(&r)), (Form::Opaque, 1, vec![]));
    assert!(dir.path().join("layout/artifact").exists());
}

#[test]
fn what_syft_gets_as_it_is() {
    /// hint, container, around, path, content, whether Syft gets it
    type Case = (
        Type,
        Container,
        &'static [&'static str],
        &'static str,
        &'static [u8],
        bool,
    );
    let cases: &[Case] = &[
        (
            Type::TarGz,
            Container::Tar,
            &[],
            "a/tests/broken.zip",
            b"PK\x03\x04",
            false,
        ),
        (
            Type::TarGz,
            Container::Tar,
            &[],
            "a/tests/x.tar.gz",
            b"\x1f\x8b",
            false,
        ),
        (
            Type::TarGz,
            Container::Tar,
            &[],
            "a/lib/x.jar",
            b"PK\x03\x04",
            true,
        ),
        (
            Type::TarGz,
            Container::Tar,
            &[],
            "a/self-extracting.zip",
            b"MZ and more",
            true,
        ),
        (
            Type::TarGz,
            Container::Tar,
            &[],
            "a/bin/x",
            b"\x7fELF and more",
            true,
        ),
        (
            Type::TarGz,
            Container::Tar,
            &["x.jar"],
            "y.jar",
            b"PK\x03\x04",
            true,
        ),
        (
            Type::TarGz,
            Container::Tar,
            &["x.jar"],
            "y.zip",
            b"PK\x03\x04",
            false,
        ),
        (Type::Jar, Container::Zip, &[], "lib/x.jar", b"PK\x03\x04", true),
        (Type::Jar, Container::Zip, &[], "lib/x.zip", b"PK\x03\x04", false),
        (Type::Zip, Container::Zip, &[], "lib/x.jar", b"PK\x03\x04", true),
    ];
    for (hint, container, around, path, content, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let layout = dir.path().join("layout");
        let mut collector = Collector::new(*hint, &layout, LayoutLimits::default(), None);
        let within: Vec<String> = around.iter().map(|w| (*w).to_owned()).collect();
        let entry = Entry {
            path,
            within: &within,
            container: *container,
            kind: EntryKind::File,
            declared_size: None,
        };
        if collector.begin_file(&entry, content) == Interest::Content {
            collector.chunk(content).unwrap();
            collector.end().unwrap();
        }
        assert_eq!(collector.is_handed_on(), *expected, "{path} in {around:?}");
    }
}

#[test]
fn half_a_file_of_a_broken_archive_is_not_laid_out() {
    let dir = tempfile::tempdir().unwrap();
    let layout = dir.path().join("layout");
    let mut collector = Collector::new(Type::Zip, &layout, LayoutLimits::default(), None);
    let entry = Entry {
        path: "lib/whole.jar",
        within: &[],
        container: Container::Zip,
        kind: EntryKind::File,
        declared_size: None,
    };
    assert_eq!(collector.begin(&entry), Interest::Content);
    collector.chunk(b"PK\x03\x04 and more than a magic").unwrap();
    collector.end().unwrap();
    let within = ["blob".to_owned()];
    let half = Entry {
        path: "lib/half.jar",
        within: &within,
        ..entry
    };
    assert_eq!(collector.begin(&half), Interest::Content);
    collector.chunk(b"PK\x03\x04 and more than a magic").unwrap();
    collector.abandon().unwrap();
    // Nothing is handed over now; that is no fault.
    collector.abandon().unwrap();
    let done = collector
        .finish(&RootFacts {
            is_opaque: false,
            is_rpm: false,
            input_bytes: 100,
            path: &dir.path().join("artifact"),
        })
        .unwrap();
    assert_eq!(done.laid_out_files, 1);
    assert_eq!(done.expected_files.len(), 1);
    assert!(layout.join("lib/whole.jar").exists());
    assert!(!layout.join("blob!/lib/half.jar").exists());
}
