//! Documents of registries: manifests, indexes and configs, and what is concluded from them.

use super::heap::bounded;
use assay_adapter::oci::document::{
    Document, EntryKind, Image, IndexEntry, media, read, read_config, without_layers,
};
use assay_adapter::oci::select::{Selection, candidates, images};
use assay_adapter::oci::{Digest, Platform};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a descriptor may have declared.
const DECLARED: [Option<&str>; 5] = [
    None,
    Some(media::OCI_INDEX),
    Some(media::OCI_MANIFEST),
    Some(media::DOCKER_LIST),
    Some(media::DOCKER_MANIFEST),
];

/// The bytes as each document that a registry may send.
pub(super) fn documents(bytes: &[u8]) {
    bounded(|| {
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        for declared in DECLARED {
            let Ok(document) = read(bytes, declared) else {
                continue;
            };
            // No reader may see something else than ours did: not one that keeps the last of two members either.
            let rewritten = value.as_ref().expect("JSON for any reader").to_string();
            let again = read(rewritten.as_bytes(), declared);
            assert_eq!(Some(&document), again.ok().as_ref(), "it depends on the reader");
            match &document {
                Document::Index(entries) => index(entries),
                Document::Image(found) => image(found, bytes),
                Document::Other(_) => {}
            }
        }
        config(bytes, value.as_ref());
    });
}

fn check_digest(digest: &Digest) {
    let hex = digest.hex();
    let is_plain = hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    assert!(is_plain, "{digest} is a path somewhere");
}

fn index(entries: &[IndexEntry]) {
    for entry in entries {
        check_digest(&entry.blob.digest);
        assert!(
            i64::try_from(entry.blob.size).is_ok(),
            "{} bytes",
            entry.blob.size
        );
        assert!(!Selection::All.may_hold(entry) || entry.kind == EntryKind::Index);
        let Some(platform) = &entry.platform else { continue };
        assert!(platform.accepts(platform), "{platform} is not itself");
        let wanted = Selection::Required(vec![platform.clone()]);
        assert_eq!(wanted.may_hold(entry), entry.kind == EntryKind::Index);
        if platform.is_recognisable() {
            assert_eq!(Some(platform), Platform::parse(&platform.to_string()).as_ref());
            let found: Vec<_> = candidates(entries, platform).collect();
            assert!(
                found
                    .iter()
                    .all(|found| images(entries).any(|image| &image == found))
            );
            assert_eq!(found.contains(&entry), entry.kind == EntryKind::Manifest);
        }
    }
}

/// Takes layers out of it, as is done with those that cannot be fetched.
fn image(image: &Image, bytes: &[u8]) {
    for blob in image
        .layers
        .iter()
        .map(|layer| &layer.blob)
        .chain([&image.config])
    {
        check_digest(&blob.digest);
        assert!(i64::try_from(blob.size).is_ok(), "{} bytes", blob.size);
    }
    let diff_ids: Vec<_> = image
        .layers
        .iter()
        .map(|layer| layer.blob.digest.as_str())
        .collect();
    let config =
        json!({"os": "linux", "architecture": "a", "rootfs": {"type": "layers", "diff_ids": diff_ids}});
    let config = config.to_string().into_bytes();
    let gone: BTreeSet<usize> = (0..image.layers.len()).step_by(2).collect();
    let (manifest, config) = without_layers(bytes, &config, &gone).expect("documents that were read");
    let left: Vec<_> = image.layers.iter().skip(1).step_by(2).cloned().collect();
    assert!(read_config(&config, left.len()).is_ok());
    match read(&manifest, Some(image.media_type)) {
        Ok(Document::Image(again)) => {
            assert_eq!(again.layers, left);
            assert_eq!(again.config.digest, Digest::of(&config));
            assert_eq!(again.config.media_type, image.config.media_type);
        }
        // Builders' statements may be all that is left.
        Ok(Document::Other(_)) => assert!(!left.is_empty()),
        other => panic!("an image without some layers is {other:?}"),
    }
}

fn config(bytes: &[u8], value: Option<&Value>) {
    let layers = value
        .and_then(|value| value.pointer("/rootfs/diff_ids"))
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    assert!(
        read_config(bytes, layers + 1).is_err(),
        "a layer that is not there"
    );
    if let Ok(platform) = read_config(bytes, layers) {
        let rewritten = value.expect("JSON for any reader").to_string();
        let again = read_config(rewritten.as_bytes(), layers);
        assert_eq!(Some(&platform), again.ok().as_ref(), "it depends on the reader");
        assert!(!platform.os().trim().is_empty() && !platform.architecture().trim().is_empty());
    }
}
