use super::{
    Digest, Document, DocumentError, EntryKind, Kind, LayerKind, media, read, read_config, without_layers,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

fn digest(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn descriptor(media_type: &str, digit: char) -> Value {
    json!({ "mediaType": media_type, "digest": digest(digit), "size": 7 })
}

fn manifest() -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": media::OCI_MANIFEST,
        "config": descriptor(CONFIG, '1'),
        "layers": [descriptor(GZIP, '2')],
    })
}

fn changed(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

fn parse(document: &Value) -> Result<Document, DocumentError> {
    read(document.to_string().as_bytes(), None)
}

#[test]
fn an_image_is_read_in_the_types_of_both_families() {
    for (own, declared, want) in [
        (Some(media::OCI_MANIFEST), None, media::OCI_MANIFEST),
        (None, None, media::OCI_MANIFEST),
        (None, Some(media::DOCKER_MANIFEST), media::DOCKER_MANIFEST),
        (
            Some(media::DOCKER_MANIFEST),
            Some(media::DOCKER_MANIFEST),
            media::DOCKER_MANIFEST,
        ),
    ] {
        let document = changed(manifest(), "mediaType", own.into()).to_string();
        let Document::Image(image) = read(document.as_bytes(), declared).unwrap() else {
            panic!("no image");
        };
        assert_eq!(image.media_type, want);
        assert_eq!(image.config.digest.as_str(), digest('1'));
        assert_eq!(
            (image.layers[0].blob.size, image.layers[0].kind),
            (7, LayerKind::Tar)
        );
    }
}

#[test]
fn an_index_tells_images_indexes_and_companions_apart() {
    let entry = |media_type: &str, digit, more: Value| {
        let mut entry = descriptor(media_type, digit);
        if let (Some(entry), Value::Object(more)) = (entry.as_object_mut(), more) {
            entry.extend(more);
        }
        entry
    };
    let amd64 = json!({ "platform": { "os": "linux", "architecture": "amd64" } });
    let unknown = json!({ "platform": { "os": "unknown", "architecture": "unknown" } });
    let attested = json!({
        "platform": { "os": "linux", "architecture": "amd64" },
        "annotations": { "vnd.docker.reference.type": "attestation-manifest" },
    });
    let index = json!({
        "schemaVersion": 2,
        "manifests": [
            entry(media::OCI_MANIFEST, '1', amd64.clone()),
            entry(media::DOCKER_MANIFEST, '2', json!({})),
            entry(media::DOCKER_LIST, '3', json!({})),
            entry(media::OCI_MANIFEST, '4', unknown),
            entry(media::OCI_MANIFEST, '5', attested),
            entry("application/vnd.example", '6', amd64),
        ],
    });
    let Document::Index(entries) = parse(&index).unwrap() else {
        panic!("no index");
    };
    let kinds: Vec<EntryKind> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(
        kinds,
        [
            EntryKind::Manifest,
            EntryKind::Manifest,
            EntryKind::Index,
            EntryKind::Companion(Kind::Attestation),
            EntryKind::Companion(Kind::Attestation),
            EntryKind::Companion(Kind::Artifact),
        ]
    );
    assert_eq!(entries[0].platform.as_ref().unwrap().to_string(), "linux/amd64");
    assert_eq!(entries[1].platform, None);
}

#[test]
fn what_is_no_image_is_named() {
    let chart = changed(
        manifest(),
        "config",
        descriptor("application/vnd.cncf.helm.config.v1+json", '1'),
    );
    let empty = changed(
        manifest(),
        "config",
        descriptor("application/vnd.oci.empty.v1+json", '1'),
    );
    let statement = changed(
        manifest(),
        "layers",
        json!([descriptor("application/vnd.in-toto+json", '2')]),
    );
    let artifact = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.artifact.manifest.v1+json", "blobs": [] });
    for (document, want) in [
        (chart, Kind::HelmChart),
        (empty, Kind::Artifact),
        (statement, Kind::Attestation),
        (artifact, Kind::Artifact),
    ] {
        assert_eq!(parse(&document).unwrap(), Document::Other(want), "{document}");
    }
}

#[test]
fn layers_are_known_by_their_media_type() {
    for (media_type, want) in [
        ("application/vnd.oci.image.layer.v1.tar", LayerKind::Tar),
        ("application/vnd.oci.image.layer.v1.tar+zstd", LayerKind::Tar),
        (
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
            LayerKind::Tar,
        ),
        (
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            LayerKind::Foreign,
        ),
        (
            "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
            LayerKind::Foreign,
        ),
        (
            "application/vnd.oci.image.layer.v1.tar+gzip+encrypted",
            LayerKind::Unsupported,
        ),
        ("application/vnd.example", LayerKind::Unsupported),
    ] {
        let document = changed(manifest(), "layers", json!([descriptor(media_type, '2')]));
        let Document::Image(image) = parse(&document).unwrap() else {
            panic!("no image");
        };
        assert_eq!(image.layers[0].kind, want, "{media_type}");
    }
}

#[test]
fn what_two_readers_could_see_differently_is_refused() {
    let size = |size: Value| {
        let mut layer = descriptor(GZIP, '2');
        layer["size"] = size;
        changed(manifest(), "layers", json!([layer]))
    };
    let named = |digest: &str| {
        let mut layer = descriptor(GZIP, '2');
        layer["digest"] = digest.into();
        changed(manifest(), "layers", json!([layer]))
    };
    let cases = [
        changed(manifest(), "schemaVersion", 1.into()),
        changed(manifest(), "schemaVersion", "2".into()),
        changed(manifest(), "schemaVersion", Value::Null),
        changed(manifest(), "manifests", json!([])),
        changed(manifest(), "mediaType", media::OCI_INDEX.into()),
        changed(
            manifest(),
            "mediaType",
            "application/vnd.docker.distribution.manifest.v1+json".into(),
        ),
        changed(manifest(), "mediaType", 7.into()),
        changed(manifest(), "layers", Value::Null),
        changed(manifest(), "layers", json!({})),
        changed(manifest(), "config", Value::Null),
        size((-1).into()),
        size(json!(1.5)),
        size("7".into()),
        size(u64::MAX.into()),
        size(Value::Null),
        named("latest"),
        named(&format!("sha256:{}", "A".repeat(64))),
        named(&format!("sha512:{}", "a".repeat(128))),
        json!([]),
        json!(null),
    ];
    for case in cases {
        assert!(parse(&case).is_err(), "{case}");
    }
    let twice = manifest().to_string().replacen('{', r#"{"mediaType":"x","#, 1);
    assert!(read(twice.as_bytes(), None).is_err(), "{twice}");
    // The descriptor that led here said something else.
    let document = manifest().to_string();
    assert!(read(document.as_bytes(), Some(media::DOCKER_MANIFEST)).is_err());
    let typeless = changed(manifest(), "mediaType", Value::Null).to_string();
    assert!(read(typeless.as_bytes(), Some(media::OCI_INDEX)).is_err());
}

fn config() -> Value {
    json!({
        "os": "linux", "architecture": "arm", "variant": "v7",
        "rootfs": { "type": "layers", "diff_ids": [digest('a')] },
        "config": { "ExposedPorts": null, "Healthcheck": { "Test": 7 } }, "history": "odd",
    })
}

#[test]
fn a_config_gives_its_platform_and_has_to_describe_each_layer() {
    let read = |config: &Value, layers| read_config(config.to_string().as_bytes(), layers);
    assert_eq!(read(&config(), 1).unwrap().to_string(), "linux/arm/v7");
    let bare = changed(config(), "variant", "".into());
    assert_eq!(read(&bare, 1).unwrap().to_string(), "linux/arm");
    let without = changed(config(), "rootfs", json!({ "type": "layers", "diff_ids": null }));
    assert!(read(&without, 0).is_ok(), "an image without layers");
    for (bad, layers) in [
        (changed(config(), "os", "".into()), 1),
        (changed(config(), "architecture", Value::Null), 1),
        (changed(config(), "rootfs", Value::Null), 1),
        (
            changed(
                config(),
                "rootfs",
                json!({ "type": "other", "diff_ids": [digest('a')] }),
            ),
            1,
        ),
        (
            changed(config(), "rootfs", json!({ "type": "layers", "diff_ids": ["a"] })),
            1,
        ),
        (config(), 2),
        (config(), 0),
        (json!({}), 0),
    ] {
        assert!(read(&bad, layers).is_err(), "{bad} {layers}");
    }
}

#[test]
fn an_image_can_do_without_some_of_its_layers() {
    let layers = ['2', '3', '4'].map(|digit| descriptor(GZIP, digit));
    let manifest = changed(manifest(), "layers", json!(layers));
    let ids = ['a', 'b', 'c'].map(digest);
    let config = changed(config(), "rootfs", json!({ "type": "layers", "diff_ids": ids }));
    let (manifest, config) = without_layers(
        manifest.to_string().as_bytes(),
        config.to_string().as_bytes(),
        &[0, 2].into(),
    )
    .unwrap();
    let Document::Image(image) = read(&manifest, None).unwrap() else {
        panic!("no image");
    };
    assert_eq!(image.layers.len(), 1);
    assert_eq!(image.layers[0].blob.digest.as_str(), digest('3'));
    assert_eq!(image.config.digest, Digest::of(&config));
    assert_eq!(image.config.size, config.len() as u64);
    assert!(read_config(&config, 1).is_ok());
    assert!(String::from_utf8(config).unwrap().contains(&digest('b')));
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes, None);
        let _ = read_config(&bytes, 1);
    }

    #[test]
    fn any_change_of_one_byte_gives_an_answer(at in 0usize..300, byte in any::<u8>()) {
        let mut document = manifest().to_string().into_bytes();
        if let Some(here) = document.get_mut(at) {
            *here = byte;
        }
        let _ = read(&document, None);
    }
}
