//! Which images of an index are scanned, and what is said about the others. Scripted engines find nothing, quickly.

use super::registry::Registry;
use super::scan::{Answer, Scan, Scripted, assert_code};
use crate::support::{Reply, TestAdapter};
use assay_fixtures::oci::{
    Compression, Content, Descriptor, Flavour, ImageBuilder, Layer, LayerBuilder, attestation, helm_chart,
    index, media_type, referrer,
};
use assay_schemas::Code;
use serde_json::json;

fn scan(adapter: &TestAdapter, content: &Content, root: &Descriptor, platforms: &[&str]) -> Reply {
    let registry = Registry::with(content);
    let scan = Scan::in_registry(&registry, &root.digest).platforms(platforms);
    scan.send(adapter)
}

fn layer(text: &str) -> Layer {
    LayerBuilder::new()
        .file("etc/motd", text)
        .build(Compression::Gzip)
}

fn image(platform: &str, content: &mut Content) -> Descriptor {
    ImageBuilder::new(platform).layer(layer(platform)).store(content)
}

/// An image whose index entry says another platform than its config.
fn mislabelled(config: &str, entry: &str, content: &mut Content) -> Descriptor {
    image(config, content).on(&assay_fixtures::oci::Platform::of(entry))
}

#[test]
fn a_single_manifest_is_the_platform_of_its_config_and_no_other() {
    let adapter = Scripted::start();
    for flavour in [Flavour::Oci, Flavour::Docker] {
        let mut content = Content::default();
        let root = ImageBuilder::new("linux/arm64/v8")
            .flavour(flavour)
            .layer(layer("x"))
            .store(&mut content);
        Answer::of(&scan(&adapter, &content, &root, &["linux/arm64/v8"]))
            .assert_complete(&["linux/arm64/v8"]);
        Answer::of(&scan(&adapter, &content, &root, &["linux/arm64"])).assert_complete(&["linux/arm64"]);
        Answer::of(&scan(
            &adapter,
            &content,
            &root,
            &["linux/amd64", "linux/arm64/v8"],
        ))
        .assert_partial(&["linux/arm64/v8"], &["linux/amd64"]);
        for other in ["linux/amd64", "linux/arm64/v7", "windows/arm64/v8"] {
            assert_code(
                other,
                &scan(&adapter, &content, &root, &[other]),
                Code::OciScanFailed,
            );
        }
    }
}

#[test]
fn an_image_without_layers_is_an_image() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let root = ImageBuilder::new("linux/amd64").store(&mut content);
    Answer::of(&scan(&adapter, &content, &root, &["linux/amd64"])).assert_complete(&["linux/amd64"]);
}

#[test]
fn no_platform_at_all_means_the_default_one() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let images = ["linux/arm64", "linux/amd64"].map(|platform| image(platform, &mut content));
    let root = index(&mut content, Flavour::Oci, &images);
    Answer::of(&scan(&adapter, &content, &root, &[])).assert_complete(&["linux/amd64"]);
}

#[test]
fn what_an_index_lacks_is_missing_in_request_order() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let images = ["linux/s390x", "linux/amd64"].map(|platform| image(platform, &mut content));
    let root = index(&mut content, Flavour::Oci, &images);
    let request = [
        "windows/amd64",
        "linux/amd64",
        "linux/arm/v7",
        "linux/s390x",
        "linux/amd64",
    ];
    Answer::of(&scan(&adapter, &content, &root, &request)).assert_partial(
        &["linux/amd64", "linux/s390x"],
        &["windows/amd64", "linux/arm/v7"],
    );
    let none = scan(&adapter, &content, &root, &["linux/arm/v7", "windows/amd64"]);
    assert_code("nothing of it", &none, Code::OciScanFailed);
    let empty = index(&mut content, Flavour::Oci, &[]);
    assert_code(
        "an empty index",
        &scan(&adapter, &content, &empty, &["linux/amd64"]),
        Code::OciScanFailed,
    );
}

#[test]
fn the_config_decides_and_the_index_only_proposes() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let liar = mislabelled("linux/arm64", "linux/amd64", &mut content);
    let root = index(&mut content, Flavour::Oci, std::slice::from_ref(&liar));
    assert_code(
        "a liar alone",
        &scan(&adapter, &content, &root, &["linux/amd64"]),
        Code::OciScanFailed,
    );

    let honest = ImageBuilder::new("linux/amd64")
        .layer(layer("honest"))
        .store(&mut content);
    let root = index(&mut content, Flavour::Oci, &[liar.clone(), honest]);
    let answer = Answer::of(&scan(&adapter, &content, &root, &["linux/amd64", "linux/arm64"]));
    answer.assert_partial(&["linux/amd64"], &["linux/arm64"]);

    let other = image("linux/s390x", &mut content);
    let root = index(&mut content, Flavour::Oci, &[liar, other]);
    Answer::of(&scan(&adapter, &content, &root, &["linux/amd64", "linux/s390x"]))
        .assert_partial(&["linux/s390x"], &["linux/amd64"]);
}

#[test]
fn variants_are_met_exactly_and_no_variant_takes_any() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let images = ["linux/arm/v6", "linux/arm/v7"].map(|platform| image(platform, &mut content));
    let root = index(&mut content, Flavour::Oci, &images);
    Answer::of(&scan(
        &adapter,
        &content,
        &root,
        &["linux/arm/v7", "linux/arm/v5"],
    ))
    .assert_partial(&["linux/arm/v7"], &["linux/arm/v5"]);
    Answer::of(&scan(&adapter, &content, &root, &["linux/arm"])).assert_complete(&["linux/arm"]);
}

#[test]
fn attestations_and_artifacts_beside_images_are_no_images() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let images = ["linux/amd64", "linux/arm64/v8"].map(|platform| image(platform, &mut content));
    let [amd64, arm64] = &images;
    let beside = [
        amd64.clone(),
        attestation(&mut content, amd64),
        arm64.clone(),
        attestation(&mut content, arm64),
        referrer(&mut content, amd64).with("artifactType", json!("application/spdx+json")),
        helm_chart(&mut content, b"chart"),
    ];
    let root = index(&mut content, Flavour::Oci, &beside);
    let both = ["linux/amd64", "linux/arm64/v8"];
    Answer::of(&scan(&adapter, &content, &root, &both)).assert_complete(&both);
}

#[test]
fn what_is_no_image_is_never_an_empty_inventory() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let subject = image("linux/amd64", &mut content);
    let wasm = ImageBuilder::new("linux/amd64")
        .layer(layer("x"))
        .manifest(
            "config",
            json!(content.blob("application/vnd.wasm.config.v1+json", b"{}").json()),
        )
        .store(&mut content);
    let things = [
        ("an attestation", attestation(&mut content, &subject)),
        ("an artifact", referrer(&mut content, &subject)),
        ("a chart", helm_chart(&mut content, b"chart")),
        ("another config", wasm),
    ];
    for (what, thing) in things {
        assert_code(
            what,
            &scan(&adapter, &content, &thing, &["linux/amd64"]),
            Code::OciScanFailed,
        );
    }
}

#[test]
fn an_artifact_that_calls_itself_an_image_is_none() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let chart = helm_chart(&mut content, b"chart").on(&assay_fixtures::oci::Platform::of("linux/amd64"));
    let root = index(&mut content, Flavour::Oci, &[chart]);
    assert_code(
        "a labelled chart",
        &scan(&adapter, &content, &root, &["linux/amd64"]),
        Code::OciScanFailed,
    );
    let arm64 = image("linux/arm64", &mut content);
    let chart = helm_chart(&mut content, b"chart").on(&assay_fixtures::oci::Platform::of("linux/amd64"));
    let root = index(&mut content, Flavour::Oci, &[chart, arm64]);
    Answer::of(&scan(&adapter, &content, &root, &["linux/amd64", "linux/arm64"]))
        .assert_partial(&["linux/arm64"], &["linux/amd64"]);
}

#[test]
fn sixteen_platforms_are_scanned_and_seventeen_are_refused() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let names: Vec<String> = (0..17).map(|number| format!("linux/cpu{number:02}")).collect();
    let images: Vec<Descriptor> = names.iter().map(|name| image(name, &mut content)).collect();
    let root = index(&mut content, Flavour::Oci, &images);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sixteen = &names[1..];
    Answer::of(&scan(&adapter, &content, &root, sixteen)).assert_complete(sixteen);
    assert_code(
        "17",
        &scan(&adapter, &content, &root, &names),
        Code::OciRequestInvalid,
    );
}

#[test]
fn all_platforms_are_those_of_the_index_and_never_more_than_sixteen() {
    let adapter = Scripted::start();
    let all = |content: &Content, root: &Descriptor| {
        let registry = Registry::with(content);
        let scan = Scan::in_registry(&registry, &root.digest).with("requiredPlatforms", json!([]));
        Answer::of(&scan.with("platformPolicy", json!("ALL")).send(&adapter))
    };
    let mut content = Content::default();
    let alone = image("linux/riscv64", &mut content);
    all(&content, &alone).assert_complete(&["linux/riscv64"]);

    let amd64 = image("linux/amd64", &mut content);
    let windows = image("windows/amd64", &mut content);
    let attestation = attestation(&mut content, &amd64);
    let chart = helm_chart(&mut content, b"chart");
    let inner = index(&mut content, Flavour::Oci, &[windows, attestation]);
    let root = index(&mut content, Flavour::Oci, &[chart, amd64, inner, alone]);
    all(&content, &root).assert_complete(&["linux/amd64", "windows/amd64", "linux/riscv64"]);

    let names: Vec<String> = (0..17).map(|number| format!("linux/cpu{number:02}")).collect();
    let images: Vec<Descriptor> = names.iter().map(|name| image(name, &mut content)).collect();
    let root = index(&mut content, Flavour::Oci, &images);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    all(&content, &root).assert_partial(&names[..16], &names[16..]);
}

#[test]
fn indexes_in_indexes_are_followed_only_so_deep() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let mut root = image("linux/amd64", &mut content);
    for _ in 0..8 {
        root = index(&mut content, Flavour::Oci, &[root]);
    }
    let reply = scan(&adapter, &content, &root, &["linux/amd64"]);
    assert_code("eight deep", &reply, Code::OciManifestInvalid);
}

#[test]
fn an_image_that_stands_twice_is_scanned_once() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let amd64 = image("linux/amd64", &mut content);
    let inner = index(&mut content, Flavour::Oci, std::slice::from_ref(&amd64));
    let root = index(
        &mut content,
        Flavour::Oci,
        &[amd64.clone(), amd64, inner.clone(), inner],
    );
    Answer::of(&scan(&adapter, &content, &root, &["linux/amd64"])).assert_complete(&["linux/amd64"]);
}

#[test]
fn layers_that_only_others_may_give_make_the_answer_partial() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let urls = json!([format!("http://{}/layer", elsewhere.local_addr().unwrap())]);
    for media_type in [
        media_type::DOCKER_FOREIGN_LAYER,
        media_type::NONDISTRIBUTABLE_LAYER,
    ] {
        let foreign = layer(media_type).called(media_type);
        let root = ImageBuilder::new("linux/amd64")
            .layer(layer("base"))
            .layer_described(foreign.clone(), &[("urls", urls.clone())])
            .store(&mut content);
        Answer::of(&scan(&adapter, &content, &root, &["linux/amd64"])).assert_complete(&["linux/amd64"]);
        let absent = Descriptor::of(media_type, &foreign.bytes).digest;
        content.blobs.remove(&absent).unwrap();
        let answer = Answer::of(&scan(&adapter, &content, &root, &["linux/amd64"]));
        answer.assert_partial(&["linux/amd64"], &[]);
    }
    let error = elsewhere.accept().expect_err("nobody may ask there");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}
