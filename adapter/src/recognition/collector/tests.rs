//! The collector, fed as the gate feeds it.

use super::Collector;
use crate::archive::{Container, Entry, EntryKind, EntrySink, Interest};
use crate::recognition::{Distribution, Form, LayoutLimits, RecognitionError, Recognized, RootFacts};
use assay_schemas::ArtifactType as Type;
use assay_schemas::catalog::PartialCode;
use std::collections::BTreeSet;
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
    collector: Collector<'_>,
    root: Container,
    files: &[File<'_>],
) -> Result<Recognized, RecognitionError> {
    run_with(dir, collector, files, |within| {
        if within.is_empty() { root } else { Container::Tar }
    })
}

fn run_with(
    dir: &Path,
    mut collector: Collector<'_>,
    files: &[File<'_>],
    container_of: impl Fn(&[&str]) -> Container,
) -> Result<Recognized, RecognitionError> {
    let artifact = dir.join("artifact");
    std::fs::write(&artifact, b"bytes").unwrap();
    for (within, path, content) in files {
        let container = container_of(within);
        let within: Vec<String> = within.iter().map(|w| (*w).to_owned()).collect();
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
    let titled: File<'_> = (
        &[],
        "META-INF/MANIFEST.MF",
        b"Implementation-Title: d\nImplementation-Version: 4\n",
    );
    let bad: File<'_> = (&[], "META-INF/maven/g/a/pom.properties", b"version=1\n");
    let good: File<'_> = (
        &[],
        "META-INF/maven/g/a/pom.properties",
        b"groupId=g\nartifactId=a\nversion=1\n",
    );
    let boot: File<'_> = (&[], "BOOT-INF/lib/c-3.jar", b"PK");
    let library: File<'_> = (&[], "lib/c-3.jar", b"PK");
    let long = format!("{}.jar", "a".repeat(100));
    let cases: [(Type, &str, &[File<'_>], &str, bool); 13] = [
        (Type::Jar, "", &[titled], "d-4.jar", true),
        (Type::Jar, "", &[titled, good], "a-1.jar", false),
        (Type::Jar, "b-2.jar", &[titled], "b-2.jar", true),
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
    // One that is in another archive is the index of that one.
    let cases: [(Container, &[File<'_>], usize, Vec<PartialCode>); 6] = [
        (Container::Tar, &v1, 1, vec![]),
        (Container::Zip, &v2, 1, vec![]),
        (Container::Zip, &outer, 0, unknown.clone()),
        (Container::Zip, &elsewhere, 1, unknown.clone()),
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
            number < 2,
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
fn packages_inside_an_archive_are_named_whatever_they_are() {
    let index: &[u8] = br#"{"name":"a","version":"1","build":"0","build_number":0}"#;
    let v2: &[&str] = &["pkgs/a-1-0.conda", "info-a-1-0.tar.zst"];
    let outer: &[&str] = &["pkgs/a-1-0.conda"];
    let v1: &[&str] = &["pkgs/b-1-0.tar.bz2"];
    let hex: &[&str] = &["hex/c-1.tar"];
    let files: [File<'_>; 7] = [
        (outer, "metadata.json", br#"{"conda_pkg_format_version":2}"#),
        (outer, "info-a-1-0.tar.zst", b""),
        (outer, "pkg-a-1-0.tar.zst", b""),
        (v2, "info/index.json", index),
        (v1, "info/index.json", index),
        (
            hex,
            "metadata.config",
            b"{<<\"name\">>,<<\"c\">>}.{<<\"version\">>,<<\"1\">>}.",
        ),
        (hex, "contents.tar.gz", b""),
    ];
    let dir = tempfile::tempdir().unwrap();
    let layout = dir.path().join("layout");
    let collector = Collector::new(Type::Zip, &layout, LayoutLimits::default(), None);
    let r = run_with(dir.path(), collector, &files, |within| match within {
        [] => Container::Zip,
        _ if within == outer => Container::Zip,
        _ => Container::Tar,
    })
    .unwrap();
    assert_eq!(r.form, Form::Archive);
    assert_eq!(purls(&r), ["pkg:conda/a@1?build=0", "pkg:hex/c@1"]);
    assert_eq!(codes(&r), vec![]);
}

#[test]
fn copies_of_npm_packages_are_laid_out_and_lookalikes_are_not() {
    let files: [File<'_>; 4] = [
        (&[], "package/package.json", br#"{"name":"a","version":"1"}"#),
        (
            &[],
            "package/vendor/b-2/package.json",
            br#"{"name":"b","version":"2"}"#,
        ),
        (
            &[],
            "package/vendor/c/package.json",
            br#"{"name":"x","version":"3"}"#,
        ),
        (
            &[],
            "package/test/vendor/d/package.json",
            br#"{"name":"d","version":"4"}"#,
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    let r = feed(dir.path(), Type::Tgz, None, Container::Tar, &files).unwrap();
    let expected: BTreeSet<&str> = r.expected_files.iter().map(|f| f.location.as_str()).collect();
    let want = BTreeSet::from(["package/package.json", "package/vendor/b-2/package.json"]);
    assert_eq!((r.laid_out_files, expected), (2, want));
    assert!(!dir.path().join("layout/package/vendor/c/package.json").exists());
}

#[test]
fn a_zip_of_go_modules_is_all_of_them() {
    let two: [File<'_>; 3] = [
        (&[], "a.invalid/x@v1.0.0/go.mod", b"module a.invalid/x"),
        (&[], "a.invalid/x@v1.0.0/x.go", b""),
        (&[], "a.invalid/y@v1.1.0/go.mod", b"module a.invalid/y"),
    ];
    let mixed = [&two[..], &[(&[][..], "readme", &b""[..])]].concat();
    for (files, want) in [
        (
            &two[..],
            &["pkg:golang/a.invalid/x@v1.0.0", "pkg:golang/a.invalid/y@v1.1.0"][..],
        ),
        (&mixed[..], &[]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let r = feed(dir.path(), Type::Zip, None, Container::Zip, files).unwrap();
        assert_eq!(purls(&r), want);
    }
}

#[test]
fn what_a_package_embeds_does_not_name_it() {
    let android: [File<'_>; 3] = [
        (&[], "AndroidManifest.xml", b""),
        (&[], "classes.jar", b"PK"),
        (&[], "META-INF/androidx.core_core.version", b"1.6.0\n"),
    ];
    let jar: [File<'_>; 2] = [android[2], (&[], "META-INF/MANIFEST.MF", b"")];
    for (hint, files, want, reason) in [
        (
            Type::Aar,
            &android[..],
            &["pkg:maven/androidx.core/core@1.6.0"][..],
            PartialCode::IdentityUnknown,
        ),
        (
            Type::Apk,
            &[android[0], android[2]],
            &["pkg:maven/androidx.core/core@1.6.0"],
            PartialCode::UnsupportedFormat,
        ),
        (Type::Jar, &jar, &[], PartialCode::NothingCataloged),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let r = feed(dir.path(), hint, None, Container::Zip, files).unwrap();
        assert_eq!(purls(&r), want, "{hint:?}");
        let is_said = codes(&r).contains(&reason);
        assert_eq!(is_said, reason != PartialCode::NothingCataloged, "{hint:?}");
    }
}

#[test]
fn a_chart_says_which_images_its_values_name() {
    let files: [File<'_>; 4] = [
        (&[], "shop/Chart.yaml", b"name: shop\nversion: 1.0.0\n"),
        (
            &[],
            "shop/values.yaml",
            b"image: {repository: web, tag: \"2\"}\nproxy: {image: \"envoy:1\"}\n",
        ),
        (&[], "shop/charts/db/Chart.yaml", b"name: db\nversion: 0.1.0\n"),
        (&[], "shop/charts/db/values.yaml", b"image: [\n"),
    ];
    let dir = tempfile::tempdir().unwrap();
    let r = feed(dir.path(), Type::Tgz, None, Container::Tar, &files).unwrap();
    let images: Vec<(&str, Vec<&str>)> = r
        .identities
        .iter()
        .map(|i| {
            let values = i.properties.iter().map(|(_, value)| value.as_str());
            (i.purl.as_str(), values.collect())
        })
        .collect();
    assert_eq!(
        images,
        [
            ("pkg:helm/db@0.1.0", vec![]),
            ("pkg:helm/shop@1.0.0", vec!["envoy:1", "web:2"])
        ]
    );
    assert_eq!(codes(&r), vec![], "values that cannot be read are no doubt");
}

#[test]
fn a_lone_file_keeps_the_name_that_a_cataloguer_wants() {
    for (content, name, want, purl) in [
        (
            &b"# empty\n"[..],
            "requirements-dev.txt",
            "requirements-dev.txt",
            None,
        ),
        (b"# empty\n", "../requirements.txt", "artifact", None),
        (b"# empty\n", "notes.txt", "artifact", None),
        (
            b"<ivy-module><info organisation=\"g\" module=\"a\" revision=\"1\"/></ivy-module>",
            "x",
            "ivy.xml",
            Some("pkg:maven/g/a@1"),
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let layout = dir.path().join("layout");
        let collector = Collector::new(Type::Unknown, &layout, LayoutLimits::default(), None)
            .named(Some(name.to_owned()));
        let artifact = dir.path().join("artifact");
        std::fs::write(&artifact, content).unwrap();
        let root = RootFacts {
            is_opaque: true,
            is_rpm: false,
            input_bytes: u64::try_from(content.len()).unwrap(),
            path: &artifact,
        };
        let r = collector.finish(&root).unwrap();
        assert!(layout.join(want).exists(), "{name}");
        assert_eq!(purls(&r).first().copied(), purl, "{name}");
        assert_eq!(r.form == Form::Manifest, want != "artifact", "{name}");
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
