//! Images that lie, are broken or are too much: each with the code that it must end with.

use super::proxy::{Fault, Proxy};
use super::registry::Registry;
use super::scan::{Answer, Scan, Scripted, assert_code};
use crate::support::TestAdapter;
use assay_fixtures::oci::{
    Compression, Content, Descriptor, Flavour, ImageBuilder, Layer, LayerBuilder, index, media_type,
};
use assay_schemas::Code;
use serde_json::{Value, json};
use std::io::{Cursor, Write as _};

fn layer(text: &str) -> Layer {
    LayerBuilder::new()
        .file("etc/motd", text)
        .build(Compression::Gzip)
}

fn builder() -> ImageBuilder {
    ImageBuilder::new("linux/amd64")
}

/// Stores an image, scans it alone and as the child of an index, and expects this code both times.
fn refused(adapter: &TestAdapter, what: &str, image: ImageBuilder, code: Code) {
    refused_with(adapter, what, image, code, |scan| scan);
}

fn refused_with(
    adapter: &TestAdapter,
    what: &str,
    image: ImageBuilder,
    code: Code,
    change: impl Fn(Scan) -> Scan,
) {
    let mut content = Content::default();
    let alone = image.store(&mut content);
    let indexed = index(&mut content, Flavour::Oci, std::slice::from_ref(&alone));
    let registry = Registry::with(&content);
    for root in [alone, indexed] {
        assert_code(
            what,
            &change(Scan::in_registry(&registry, &root.digest)).send(adapter),
            code,
        );
    }
}

fn members(descriptor: &Descriptor, change: &[(&str, Value)]) -> Value {
    let mut descriptor = descriptor.clone();
    for (name, value) in change {
        descriptor = descriptor.with(name, value.clone());
    }
    descriptor.json()
}

#[test]
fn sizes_must_be_true() {
    let adapter = Scripted::start();
    for (what, difference) in [("too small", -1_i64), ("too large", 1)] {
        let bytes = layer("x");
        let size = i64::try_from(bytes.bytes.len()).unwrap() + difference;
        let lying = builder().layer_described(bytes, &[("size", json!(size))]);
        refused(
            &adapter,
            &format!("a layer size that is {what}"),
            lying,
            Code::OciBlobSizeMismatch,
        );

        let mut content = Content::default();
        let image = builder().layer(layer("x")).store(&mut content);
        let size = i64::try_from(image.size).unwrap() + difference;
        let root = index(&mut content, Flavour::Oci, &[image.with("size", json!(size))]);
        let registry = Registry::with(&content);
        let reply = Scan::in_registry(&registry, &root.digest).send(&adapter);
        assert_code(
            &format!("a manifest size that is {what}"),
            &reply,
            Code::OciBlobSizeMismatch,
        );
    }
    for size in [json!(-1), json!("7"), json!(1.5), json!(null)] {
        let lying = builder().layer_described(layer("x"), &[("size", size.clone())]);
        refused(
            &adapter,
            &format!("a layer size of {size}"),
            lying,
            Code::OciManifestInvalid,
        );
    }
}

#[test]
fn digests_must_be_true_and_of_the_one_form() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let image = builder().layer(layer("x")).store(&mut content);
    let root = index(&mut content, Flavour::Oci, std::slice::from_ref(&image));
    let registry = Registry::with(&content);
    let proxy = Proxy::before(registry.address);
    let config = content
        .blobs
        .iter()
        .find(|(_, bytes)| bytes.starts_with(b"{"))
        .unwrap();
    let layer_digest = content.blobs.keys().find(|digest| *digest != config.0).unwrap();
    for (what, digest, byte) in [
        ("the index", &root.digest, 0),
        ("the manifest", &image.digest, 2),
        ("the config", config.0, 2),
        ("the layer", layer_digest, 4),
    ] {
        proxy.reset();
        proxy.spoil(digest, Fault::Flip(byte));
        let reply = Scan::through(&proxy, &root.digest).send(&adapter);
        assert_code(what, &reply, Code::OciBlobDigestMismatch);
    }
    proxy.reset();
    Answer::of(&Scan::through(&proxy, &root.digest).send(&adapter)).assert_complete(&["linux/amd64"]);

    for digest in [
        format!("sha512:{}", "a".repeat(128)),
        format!("sha256:{}", "A".repeat(64)),
        format!("sha256:{}", "a".repeat(63)),
        "latest".to_owned(),
        "../../../etc/passwd".to_owned(),
        format!("sha256:../{}", "a".repeat(61)),
    ] {
        let lying = builder().layer_described(layer("x"), &[("digest", json!(digest))]);
        refused(&adapter, &digest, lying, Code::OciManifestInvalid);
    }
}

#[test]
fn an_index_that_seems_to_contain_itself_ends() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let child = index(&mut content, Flavour::Oci, &[]);
    let sized = |size: u64| child.clone().with("size", json!(size));
    // The lie must have its size right to be looked at; any three digits give an index of the same length.
    let size = index(&mut content, Flavour::Oci, &[sized(100)]).size;
    let liar = index(&mut content, Flavour::Oci, &[sized(size)]);
    assert_eq!(liar.size, size);
    let registry = Registry::with(&content);
    let proxy = Proxy::before(registry.address);
    let bytes = &content
        .manifests
        .iter()
        .find(|m| m.digest == liar.digest)
        .unwrap()
        .bytes;
    proxy.spoil(&child.digest, Fault::Body(bytes.clone()));
    let reply = Scan::through(&proxy, &liar.digest).send(&adapter);
    assert_code("a lie about a digest", &reply, Code::OciBlobDigestMismatch);
    assert_eq!(proxy.seen().len(), 2);
}

#[test]
fn one_digest_is_described_in_one_way() {
    let adapter = Scripted::start();
    let bytes = layer("x");
    let contradiction = builder()
        .layer(bytes.clone())
        .layer_described(bytes.clone(), &[("size", json!(bytes.bytes.len() + 1))]);
    refused(&adapter, "two sizes", contradiction, Code::OciManifestInvalid);
    let contradiction = builder()
        .layer(bytes.clone())
        .layer(bytes.called(Compression::None.media_type()));
    refused(
        &adapter,
        "two media types",
        contradiction,
        Code::OciManifestInvalid,
    );
}

#[test]
fn what_the_registry_lacks_can_be_asked_for_again() {
    let adapter = Scripted::start();
    let mut content = Content::default();
    let image = builder().layer(layer("x")).store(&mut content);
    let root = index(&mut content, Flavour::Oci, std::slice::from_ref(&image));
    for blob in content.blobs.keys() {
        let mut lacking = content.clone();
        lacking.blobs.remove(blob);
        let registry = Registry::with(&lacking);
        let reply = Scan::in_registry(&registry, &root.digest).send(&adapter);
        assert_code(blob, &reply, Code::OciRegistryContentMissing);
    }
    let registry = Registry::with(&content);
    let nowhere = format!("sha256:{}", "0".repeat(64));
    let reply = Scan::in_registry(&registry, &nowhere).send(&adapter);
    assert_code("no such digest", &reply, Code::OciRegistryContentMissing);
    let elsewhere = Scan::in_registry(&registry, &root.digest).with("repository", json!("other"));
    assert_code(
        "no such repository",
        &elsewhere.send(&adapter),
        Code::OciRegistryContentMissing,
    );
}

/// Bytes that are stored as a manifest, and must not be taken for one.
fn broken_manifests() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let mut content = Content::default();
    let good = builder().layer(layer("x")).store(&mut content);
    let bytes = &content.manifests[0].bytes;
    assert_eq!(content.manifests[0].digest, good.digest);
    let good: Value = serde_json::from_slice(bytes).unwrap();
    let with = |member: &str, value: Value| {
        let mut changed = good.clone();
        changed[member] = value;
        changed.to_string().into_bytes()
    };
    let config = &good["config"];
    let oci = media_type::MANIFEST;
    vec![
        ("no JSON", oci, b"{".to_vec()),
        ("no object", oci, b"[]".to_vec()),
        ("nothing", oci, b"{}".to_vec()),
        ("schema 1", oci, with("schemaVersion", json!(1))),
        ("schema as text", oci, with("schemaVersion", json!("2"))),
        ("layers that are no list", oci, with("layers", json!({}))),
        ("no layers", oci, with("layers", json!(null))),
        ("no config", oci, with("config", json!(null))),
        ("index and manifest", oci, with("manifests", json!([]))),
        ("an index by its media type", oci, with("mediaType", json!(media_type::INDEX))),
        ("an unknown media type", oci, with("mediaType", json!("text/plain"))),
        ("a layer without media type", oci, with("layers", json!([{"digest": config["digest"], "size": 3}]))),
        (
            "a member twice",
            oci,
            String::from_utf8(bytes.clone())
                .unwrap()
                .replacen('{', "{\"layers\":[],", 1)
                .into_bytes(),
        ),
        (
            "Docker schema 1",
            media_type::DOCKER_SCHEMA1,
            br#"{"schemaVersion":1,"name":"app","tag":"x","architecture":"amd64","fsLayers":[],"history":[]}"#.to_vec(),
        ),
        ("something after the end", oci, [bytes.as_slice(), b"{}"].concat()),
        ("too deep", oci, format!("{}{}", "[".repeat(300), "]".repeat(300)).into_bytes()),
    ]
}

#[test]
fn broken_manifests_are_refused() {
    let adapter = Scripted::start();
    for (what, media_type, bytes) in broken_manifests() {
        let mut content = Content::default();
        builder().layer(layer("x")).store(&mut content);
        let registry = Registry::with(&content);
        let proxy = Proxy::before(registry.address);
        // Not every registry stores such bytes, so they are put in on the way; their digest is right.
        let broken = Descriptor::of(media_type, &bytes);
        proxy.spoil(&broken.digest, Fault::BodyAs(media_type, bytes));
        let reply = Scan::through(&proxy, &broken.digest).send(&adapter);
        assert_code(what, &reply, Code::OciManifestInvalid);
    }
}

#[test]
fn broken_configs_are_refused() {
    let adapter = Scripted::start();
    for (what, image) in [
        ("no os", builder().config("os", json!(null))),
        ("no architecture", builder().config("architecture", json!(null))),
        ("an empty os", builder().config("os", json!(""))),
        ("an os that is no text", builder().config("os", json!(7))),
        (
            "no layers in it",
            builder().config("rootfs", json!({"type": "layers", "diff_ids": []})),
        ),
        (
            "another kind of root",
            builder().config("rootfs", json!({"type": "x", "diff_ids": []})),
        ),
        ("no root", builder().config("rootfs", json!(null))),
    ] {
        refused(&adapter, what, image.layer(layer("x")), Code::OciConfigInvalid);
    }
    let mut content = Content::default();
    let text = content.blob(media_type::CONFIG, b"not JSON");
    let image = builder().layer(layer("x")).manifest("config", text.json());
    let alone = image.store(&mut content);
    let registry = Registry::with(&content);
    let reply = Scan::in_registry(&registry, &alone.digest).send(&adapter);
    assert_code("no JSON", &reply, Code::OciConfigInvalid);
}

#[test]
fn broken_layers_are_refused() {
    let adapter = Scripted::start();
    let good = LayerBuilder::new()
        .file("a", vec![7; 100_000])
        .build(Compression::Gzip);
    let gzip = Compression::Gzip.media_type();
    let cut = &good.bytes[..good.bytes.len() - 20];
    let more = [good.bytes.as_slice(), b"garbage after the end"].concat();
    for (what, layer) in [
        ("text", Layer::raw(gzip, b"this is no archive")),
        ("nothing", Layer::raw(gzip, b"")),
        ("a cut gzip", Layer::raw(gzip, cut)),
        ("garbage after a gzip", Layer::raw(gzip, &more)),
        ("a zip", Layer::raw(gzip, &zip_of(&[("a", b""), ("b", b"")]))),
        ("a gzip of text", Layer::raw(gzip, &gzipped(b"no tar"))),
        (
            "an encrypted layer",
            good.clone()
                .called("application/vnd.oci.image.layer.v1.tar+gzip+encrypted"),
        ),
    ] {
        refused(&adapter, what, builder().layer(layer), Code::OciLayerInvalid);
    }
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn layers_may_not_leave_their_root() {
    let adapter = Scripted::start();
    for name in ["../escape", "a/../../escape", "/etc/passwd", "a/.."] {
        let layer = LayerBuilder::new().file(name, "x").build(Compression::Gzip);
        refused(&adapter, name, builder().layer(layer), Code::ArchivePathEscape);
    }
    // What a file system may have in it is none of the gate's business in a layer.
    let layer = LayerBuilder::new()
        .symlink("etc/link", "/etc/passwd")
        .symlink("etc/up", "../../../x")
        .device("dev/null")
        .file("etc/systemd/dev-disk\\x2dby.mount", "x")
        .build(Compression::Gzip);
    let mut content = Content::default();
    let image = builder().layer(layer).store(&mut content);
    let registry = Registry::with(&content);
    Answer::of(&Scan::in_registry(&registry, &image.digest).send(&adapter)).assert_complete(&["linux/amd64"]);
}

/// Layers of which each is within a limit and all together are not, and the limit.
fn too_much() -> Vec<(&'static str, Vec<Layer>, &'static str, u64, Code)> {
    let random = |seed: u64, bytes: usize| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut content = vec![0; bytes];
        random.fill(&mut content);
        LayerBuilder::new()
            .file("noise", content)
            .build(Compression::Gzip)
    };
    let files = |prefix: &str| {
        let mut layer = LayerBuilder::new();
        for number in 0..60 {
            layer = layer.file(&format!("{prefix}/{number}"), "x");
        }
        layer.build(Compression::Gzip)
    };
    let text = |lines: u32| {
        let lines: Vec<String> = (0..lines).map(|number| number.to_string()).collect();
        let lines = lines.join("\n");
        LayerBuilder::new().file("text", lines).build(Compression::Gzip)
    };
    let zeros = |name: &str, mebibytes: usize| {
        LayerBuilder::new()
            .file(name, vec![0; mebibytes << 20])
            .build(Compression::Zstd)
    };
    let noise = || (0..4).map(|seed| random(seed, 100_000)).collect::<Vec<_>>();
    let nested = LayerBuilder::new()
        .file("opt/a.zip", zips_in_zips(3))
        .build(Compression::Gzip);
    vec![
        (
            "expanded",
            noise(),
            "maxUncompressedBytes",
            350_000,
            Code::ArchiveExpandedLimit,
        ),
        (
            "entries",
            vec![files("a"), files("b")],
            "maxArchiveEntries",
            100,
            Code::ArchiveEntryLimit,
        ),
        (
            "compressed",
            noise(),
            "maxInputBytes",
            350_000,
            Code::OciInputTooLarge,
        ),
        (
            "one file",
            vec![random(1, 100_000), text(50_000)],
            "maxSingleFileBytes",
            250_000,
            Code::ArchiveEntryTooLarge,
        ),
        (
            "one blob",
            noise(),
            "maxSingleFileBytes",
            90_000,
            Code::OciBlobTooLarge,
        ),
        (
            "descriptors",
            noise(),
            "maxArchiveEntries",
            4,
            Code::OciDescriptorLimit,
        ),
        (
            "depth",
            vec![nested],
            "maxNestedDepth",
            1,
            Code::ArchiveNestingLimit,
        ),
        (
            "ratio",
            vec![zeros("a", 30), zeros("b", 31)],
            "maxUncompressedBytes",
            128 << 20,
            Code::ArchiveExpansionRatio,
        ),
    ]
}

#[test]
fn layers_share_one_budget() {
    let adapter = Scripted::start();
    for (what, layers, limit, value, code) in too_much() {
        let image = layers.into_iter().fold(builder(), ImageBuilder::layer);
        refused_with(&adapter, what, image, code, |scan| scan.limit(limit, value));
    }
}

#[test]
fn platforms_share_one_budget_and_a_shared_layer_is_charged_once() {
    let adapter = Scripted::start();
    let noise = |seed: u64| {
        let mut content = vec![0; 100_000];
        fastrand::Rng::with_seed(seed).fill(&mut content);
        LayerBuilder::new()
            .file("noise", content)
            .build(Compression::Gzip)
    };
    let mut content = Content::default();
    let platforms = ["linux/amd64", "linux/arm64", "linux/s390x"];
    let mut own = Vec::new();
    let mut shared = Vec::new();
    for (seed, platform) in (0..).zip(platforms) {
        let image = ImageBuilder::new(platform);
        own.push(image.clone().layer(noise(seed)).store(&mut content));
        shared.push(image.layer(noise(99)).store(&mut content));
    }
    let own = index(&mut content, Flavour::Oci, &own);
    let shared = index(&mut content, Flavour::Oci, &shared);
    let registry = Registry::with(&content);
    let scan = |root: &Descriptor| {
        let scan = Scan::in_registry(&registry, &root.digest).platforms(&platforms);
        scan.limit("maxUncompressedBytes", 250_000).send(&adapter)
    };
    Answer::of(&scan(&shared)).assert_complete(&platforms);
    assert_code("three of their own", &scan(&own), Code::ArchiveExpandedLimit);
}

#[test]
fn budgets_are_met_exactly() {
    let adapter = Scripted::start();
    let layer = LayerBuilder::new()
        .file("a", vec![1; 5000])
        .file("b", vec![2; 3000])
        .file("c", "")
        .build(Compression::None);
    let mut content = Content::default();
    let image = builder().layer(layer.clone()).store(&mut content);
    let registry = Registry::with(&content);
    let config = content.blobs.values().map(Vec::len).sum::<usize>() - layer.bytes.len();
    let manifest = content.manifests[0].bytes.len();
    let all = u64::try_from(config + manifest + layer.bytes.len()).unwrap();
    let scan = |limit: &str, value: u64| {
        Scan::in_registry(&registry, &image.digest)
            .limit(limit, value)
            .send(&adapter)
    };
    for (limit, enough, code) in [
        ("maxInputBytes", all, Code::OciInputTooLarge),
        (
            "maxSingleFileBytes",
            u64::try_from(layer.bytes.len()).unwrap(),
            Code::OciBlobTooLarge,
        ),
        ("maxUncompressedBytes", 8000, Code::ArchiveExpandedLimit),
        ("maxArchiveEntries", 3, Code::ArchiveEntryLimit),
    ] {
        Answer::of(&scan(limit, enough)).assert_complete(&["linux/amd64"]);
        assert_code(limit, &scan(limit, enough - 1), code);
    }
}

#[test]
fn documents_of_a_registry_are_bounded() {
    let adapter = Scripted::start();
    let filler = json!({"org.example.filler": "x".repeat(5 << 20)});
    let image = builder()
        .layer(layer("x"))
        .manifest("annotations", filler.clone());
    let mut content = Content::default();
    let manifest = image.store(&mut content);
    let registry = Registry::with(&content);
    let proxy = Proxy::before(registry.address);
    proxy.spoil(&manifest.digest, Fault::Chunked);
    let reply = Scan::through(&proxy, &manifest.digest).send(&adapter);
    assert_code("a manifest of 5 MiB", &reply, Code::OciManifestTooLarge);

    let large = json!({"org.example.filler": "x".repeat(17 << 20)});
    let image = builder()
        .layer(layer("x"))
        .config("config", json!({"Labels": large}));
    refused(&adapter, "a config of 17 MiB", image, Code::OciConfigTooLarge);

    let mut content = Content::default();
    let image = builder().layer(layer("x")).store(&mut content);
    let many: Vec<Value> = (0..1000)
        .map(|n| members(&image, &[("annotations", json!({"n": n.to_string()}))]))
        .collect();
    let root = content.manifest(
        media_type::INDEX,
        &json!({"schemaVersion": 2, "mediaType": media_type::INDEX, "manifests": many}),
    );
    let registry = Registry::with(&content);
    let scan = Scan::in_registry(&registry, &root.digest).limit("maxArchiveEntries", 500);
    assert_code("an index of 1000", &scan.send(&adapter), Code::OciDescriptorLimit);
}

fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A zip with a text file, wrapped in `depth` more.
fn zips_in_zips(depth: u32) -> Vec<u8> {
    let innermost = zip_of(&[("file.txt", b"content")]);
    (0..depth).fold(innermost, |inner, _| zip_of(&[("inner.zip", &inner)]))
}
