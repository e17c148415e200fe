//! Ordinary images: packages, qualifiers and findings, with the real engines and the offline database.

use super::registry::Registry;
use super::scan::{Answer, Scan, plain};
use crate::support::{Setup, TestAdapter};
use assay_fixtures::oci::{
    Compression, Content, Descriptor, Flavour, ImageBuilder, Layer, LayerBuilder, Rootfs, index, media_type,
    rootfs,
};
use std::collections::BTreeSet;

/// A ready adapter with the real engines.
fn real() -> TestAdapter {
    let adapter = plain(Setup::real()).start();
    adapter.wait_ready();
    adapter
}

fn file_system(id: &str, architecture: &str) -> Rootfs {
    let mut all = rootfs(architecture).into_iter();
    all.find(|rootfs| rootfs.id == id).unwrap()
}

fn purls(rootfs: &Rootfs) -> BTreeSet<String> {
    rootfs.purls.iter().cloned().collect()
}

/// Scans what is stored as `image`, for these platforms.
fn scan(adapter: &TestAdapter, content: &Content, image: &Descriptor, platforms: &[&str]) -> Answer {
    let registry = Registry::with(content);
    let scan = Scan::in_registry(&registry, &image.digest).platforms(platforms);
    Answer::of(&scan.send(adapter))
}

#[test]
fn every_distribution_has_its_packages_qualifiers_and_findings() {
    let adapter = real();
    for rootfs in rootfs("amd64") {
        let mut content = Content::default();
        let image = ImageBuilder::new("linux/amd64")
            .layer(rootfs.layer.clone())
            .store(&mut content);
        let answer = scan(&adapter, &content, &image, &["linux/amd64"]);
        answer.assert_complete(&["linux/amd64"]);
        assert_eq!(answer.purls(), purls(&rootfs), "{}", rootfs.id);
        assert_eq!(answer.advisories(), rootfs.advisories, "{}", rootfs.id);
        let hash = image.digest.trim_start_matches("sha256:");
        assert_eq!(answer.json["catalog"]["actualInputSha256"], hash, "{}", rootfs.id);
        let findings = answer.json["match"]["findings"].as_array().unwrap();
        let keys: BTreeSet<&str> = findings
            .iter()
            .map(|finding| finding["findingKey"].as_str().unwrap())
            .collect();
        assert_eq!(keys.len(), findings.len(), "{}", rootfs.id);
        let where_it_lies: BTreeSet<&str> = findings
            .iter()
            .flat_map(|finding| finding["locations"].as_array().unwrap())
            .map(|location| location.as_str().unwrap())
            .collect();
        for location in rootfs.locations {
            assert!(
                where_it_lies.contains(location),
                "{}: {where_it_lies:?}",
                rootfs.id
            );
        }
    }
}

/// Images of tool chains carry such files, to test those tools.
#[test]
fn broken_archives_among_the_files_are_withheld_and_said() {
    let adapter = real();
    let rootfs = file_system("debian", "amd64");
    let test_data = LayerBuilder::new()
        .file(
            "usr/src/zip/testdata/b[a]d*.zip",
            b"PK\x03\x04 and so on".as_slice(),
        )
        .file("usr/src/zip/testdata/cut.tar.gz", b"\x1f\x8b\x08\0".as_slice())
        .file("usr/src/zip/testdata/cut.jar", b"PK\x05\x06".as_slice())
        .build(Compression::Gzip);
    let mut content = Content::default();
    let image = ImageBuilder::new("linux/amd64")
        .layer(rootfs.layer.clone())
        .layer(test_data)
        .store(&mut content);
    let answer = scan(&adapter, &content, &image, &["linux/amd64"]);
    assert_eq!(answer.purls(), purls(&rootfs));
    let summary = &answer.json["catalog"]["summary"];
    let reasons = summary["partialReasons"].as_array().unwrap();
    assert_eq!(answer.json["catalog"]["completeness"], "PARTIAL");
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert_eq!(reasons[0]["code"], "UNSUPPORTED_FORMAT");
    let detail = reasons[0]["detail"].as_str().unwrap();
    assert_eq!(
        detail,
        "3 broken archives in the image were not opened, such as usr/src/zip/testdata/b[a]d*.zip"
    );
}

/// Layers with one package each, in all compressions, whose packages must all be found.
fn layers_of_all_compressions() -> Vec<(Layer, String)> {
    let package = |name: &str| format!("{{\"name\": \"{name}\", \"version\": \"1.0.0\"}}");
    [
        ("plain", Compression::None),
        ("gzipped", Compression::Gzip),
        ("zstandard", Compression::Zstd),
    ]
    .into_iter()
    .map(|(name, compression)| {
        let layer = LayerBuilder::new()
            .directory("srv/")
            .file(&format!("srv/node_modules/{name}/package.json"), package(name))
            .build(compression);
        (layer, format!("pkg:npm/{name}@1.0.0"))
    })
    .collect()
}

#[test]
fn layers_of_every_compression_are_read_and_empty_ones_do_no_harm() {
    let adapter = real();
    let empty = LayerBuilder::new().build(Compression::Gzip);
    let mut builder = ImageBuilder::new("linux/amd64").layer(empty.clone());
    let mut expected = BTreeSet::new();
    for (layer, purl) in layers_of_all_compressions() {
        builder = builder.layer(layer).layer(empty.clone());
        expected.insert(purl);
    }
    let mut content = Content::default();
    let image = builder.store(&mut content);
    let answer = scan(&adapter, &content, &image, &["linux/amd64"]);
    answer.assert_complete(&["linux/amd64"]);
    assert_eq!(answer.purls(), expected);
}

#[test]
fn what_an_upper_layer_removes_or_replaces_is_gone() {
    let adapter = real();
    let package = |name: &str, version: &str| format!("{{\"name\": \"{name}\", \"version\": \"{version}\"}}");
    let lower = LayerBuilder::new()
        .file("srv/node_modules/stays/package.json", package("stays", "1.0.0"))
        .file(
            "srv/node_modules/removed/package.json",
            package("removed", "1.0.0"),
        )
        .file(
            "srv/node_modules/replaced/package.json",
            package("replaced", "1.0.0"),
        )
        .file("opt/node_modules/hidden/package.json", package("hidden", "1.0.0"))
        .hard_link("srv/again", "srv/node_modules/stays/package.json")
        .device("dev/zero")
        .build(Compression::Gzip);
    let upper = LayerBuilder::new()
        .whiteout("srv/node_modules/removed")
        .file(
            "srv/node_modules/replaced/package.json",
            package("replaced", "2.0.0"),
        )
        .opaque("opt/node_modules")
        .build(Compression::Zstd);
    let mut content = Content::default();
    let image = ImageBuilder::new("linux/amd64")
        .layer(lower)
        .layer(upper)
        .store(&mut content);
    let answer = scan(&adapter, &content, &image, &["linux/amd64"]);
    answer.assert_complete(&["linux/amd64"]);
    let expected = ["pkg:npm/replaced@2.0.0", "pkg:npm/stays@1.0.0"];
    assert_eq!(answer.purls(), expected.map(str::to_owned).into());
}

/// Four platforms: each with the packages of a distribution of its own architecture, and all with the same languages.
fn four_platforms(flavour: Flavour, content: &mut Content) -> Vec<Descriptor> {
    let platforms = [
        ("linux/amd64", "amd64", "debian"),
        ("linux/arm64/v8", "arm64", "debian"),
        ("linux/arm/v7", "arm", "alpine"),
        ("linux/s390x", "s390x", "distroless"),
    ];
    platforms
        .into_iter()
        .map(|(platform, architecture, distribution)| {
            let docker = |layer: Layer| match flavour {
                Flavour::Oci => layer,
                Flavour::Docker => layer.called(media_type::DOCKER_LAYER),
            };
            ImageBuilder::new(platform)
                .flavour(flavour)
                .layer(docker(file_system(distribution, architecture).layer))
                .layer(docker(file_system("languages", architecture).layer))
                .store(content)
        })
        .collect()
}

const FOUR: &[&str] = &["linux/s390x", "linux/amd64", "linux/arm/v7", "linux/arm64/v8"];

#[test]
fn platforms_are_merged_into_one_document_that_says_where_each_package_is() {
    let adapter = real();
    let mut content = Content::default();
    let images = four_platforms(Flavour::Oci, &mut content);
    let image = index(&mut content, Flavour::Oci, &images);
    let answer = scan(&adapter, &content, &image, FOUR);
    answer.assert_complete(FOUR);

    let mut expected = Vec::new();
    let mut diff_ids = Vec::new();
    for (id, architecture, platforms) in [
        ("distroless", "s390x", "linux/s390x"),
        ("debian", "amd64", "linux/amd64"),
        ("alpine", "arm", "linux/arm/v7"),
        ("debian", "arm64", "linux/arm64/v8"),
        (
            "languages",
            "amd64",
            "linux/s390x,linux/amd64,linux/arm/v7,linux/arm64/v8",
        ),
    ] {
        let rootfs = file_system(id, architecture);
        diff_ids.push(rootfs.layer.diff_id);
        for purl in rootfs.purls {
            expected.push((purl, platforms.to_owned()));
        }
    }
    expected.sort();
    assert_eq!(answer.platforms_by_purl(), expected);
    let projected: BTreeSet<String> = expected.iter().map(|(purl, _)| purl.clone()).collect();
    assert_eq!(answer.purls(), projected);
    let mut advisories: Vec<&str> = ["distroless", "debian", "alpine", "languages"]
        .into_iter()
        .flat_map(|id| file_system(id, "amd64").advisories)
        .copied()
        .collect();
    advisories.sort_unstable();
    advisories.dedup();
    assert_eq!(answer.advisories(), advisories);

    for finding in answer.json["match"]["findings"].as_array().unwrap() {
        let purl = finding["packageUrl"].as_str().unwrap();
        let platforms: Vec<&str> = finding["platforms"]
            .as_array()
            .unwrap_or_else(|| panic!("no platforms: {finding}"))
            .iter()
            .map(|platform| platform.as_str().unwrap())
            .collect();
        let (_, expected) = expected.iter().find(|(expected, _)| expected == purl).unwrap();
        assert_eq!(platforms.join(","), *expected, "{purl}");
        let layers = finding["layers"].to_string();
        assert!(
            diff_ids.iter().any(|layer| layers.contains(layer.as_str())),
            "{purl}: {layers}"
        );
    }
}

/// Two of the four, which share packages; each platform costs a run of the cataloguer.
const TWO: &[&str] = &["linux/arm64/v8", "linux/amd64"];

#[test]
fn docker_lists_and_nested_indexes_say_the_same() {
    let adapter = real();
    let mut content = Content::default();
    let images = four_platforms(Flavour::Docker, &mut content);
    let list = index(&mut content, Flavour::Docker, &images);
    let answer = scan(&adapter, &content, &list, TWO);
    answer.assert_complete(TWO);
    let by_list = answer.platforms_by_purl();
    assert!(by_list.iter().any(|(_, platforms)| *platforms == TWO.join(",")));

    let images = four_platforms(Flavour::Oci, &mut content);
    let (first, rest) = images.split_first().unwrap();
    let inner = index(&mut content, Flavour::Oci, rest);
    let outer = index(&mut content, Flavour::Oci, &[inner, first.clone()]);
    let answer = scan(&adapter, &content, &outer, TWO);
    answer.assert_complete(TWO);
    assert_eq!(answer.platforms_by_purl(), by_list);
}

#[test]
fn the_same_request_twice_gives_the_same_bytes() {
    let adapter = real();
    let mut content = Content::default();
    let images = four_platforms(Flavour::Oci, &mut content);
    let image = index(&mut content, Flavour::Oci, &images);
    let registry = Registry::with(&content);
    let request = Scan::in_registry(&registry, &image.digest).platforms(TWO);
    let one = Answer::of(&request.send(&adapter));
    // Another process, another directory, another port of the same registry's content.
    let again = real();
    let registry = Registry::with(&content);
    let request = Scan::in_registry(&registry, &image.digest).platforms(TWO);
    let two = Answer::of(&request.send(&again));
    assert!(one.document() == two.document(), "documents differ");
    assert!(one.report() == two.report(), "reports differ");
    assert_eq!(one.json["match"]["findings"], two.json["match"]["findings"]);
    assert_eq!(
        one.json["catalog"]["components"],
        two.json["catalog"]["components"]
    );
}

#[test]
fn what_other_tools_make_or_push_is_scanned_as_well() {
    let adapter = real();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let registry = Registry::crane();

    // An image that crane puts together from tars.
    let alpine = file_system("alpine", "amd64");
    for (number, rootfs) in (0..).zip([&alpine, &file_system("languages", "amd64")]) {
        let mut tar = Vec::new();
        std::io::copy(
            &mut flate2::read::GzDecoder::new(rootfs.layer.bytes.as_slice()),
            &mut tar,
        )
        .unwrap();
        std::fs::write(format!("{path}/{number}.tar"), tar).unwrap();
    }
    registry.crane_does(&format!(
        "append --oci-empty-base -f {path}/0.tar -f {path}/1.tar -t REGISTRY/app:plain"
    ));
    registry.crane_does("mutate REGISTRY/app:plain --set-platform linux/amd64 -t REGISTRY/app:amd64");
    registry.crane_does("index append -m REGISTRY/app:amd64 -t REGISTRY/app:multi");
    let digest = registry.crane_does("digest REGISTRY/app:multi");
    let answer = Answer::of(&Scan::in_registry(&registry, &digest).send(&adapter));
    answer.assert_complete(&["linux/amd64"]);
    let made = answer.purls();
    assert!(purls(&alpine).is_subset(&made), "{made:?}");

    // The same packages in an image of ours that crane pushes from a layout.
    let mut content = Content::default();
    let image = ImageBuilder::new("linux/amd64")
        .layer(alpine.layer)
        .layer(file_system("languages", "amd64").layer)
        .store(&mut content);
    let root = index(&mut content, Flavour::Oci, &[image]);
    let layout = directory.path().join("layout");
    content.write_layout(&root, "app", &layout).unwrap();
    registry.crane_does(&format!("push --index {path}/layout REGISTRY/app:pushed"));
    // What is pushed is the layout's own index, which has ours as its only entry.
    let digest = registry.crane_does("digest REGISTRY/app:pushed");
    let answer = Answer::of(&Scan::in_registry(&registry, &digest).send(&adapter));
    answer.assert_complete(&["linux/amd64"]);
    assert_eq!(answer.purls(), made);
}
