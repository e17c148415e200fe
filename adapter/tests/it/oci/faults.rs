//! A registry that is slow, broken or hostile on the wire.

use super::proxy::{Fault, Proxy};
use super::registry::Registry;
use super::scan::{Answer, Scan, Scripted, assert_code};
use crate::support::{Reply, eventually};
use assay_fixtures::oci::{Compression, Content, Flavour, ImageBuilder, Layer, LayerBuilder, index};
use assay_schemas::Code;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Two platforms with one layer of their own and one that both have, behind a proxy.
struct Stage {
    adapter: Scripted,
    proxy: Proxy,
    root: String,
    /// One digest of each kind of content, all of which a scan of both platforms needs.
    places: Vec<(&'static str, String)>,
    _registry: Registry,
}

const BOTH: &[&str] = &["linux/amd64", "linux/arm64"];

impl Stage {
    fn new() -> Self {
        let layer = |seed: u64| -> Layer {
            let mut noise = vec![0; 20_000];
            fastrand::Rng::with_seed(seed).fill(&mut noise);
            LayerBuilder::new().file("noise", noise).build(Compression::Gzip)
        };
        let mut content = Content::default();
        let mut images = Vec::new();
        for (seed, platform) in (1..).zip(BOTH) {
            let builder = ImageBuilder::new(platform).layer(layer(0)).layer(layer(seed));
            images.push(builder.store(&mut content));
        }
        let root = index(&mut content, Flavour::Oci, &images).digest;
        let is_config = |bytes: &[u8]| bytes.starts_with(b"{");
        let blob = |config: bool| {
            content
                .blobs
                .iter()
                .find(|(_, bytes)| is_config(bytes) == config)
                .unwrap()
                .0
                .clone()
        };
        let places = vec![
            ("the index", root.clone()),
            ("a manifest", images[1].digest.clone()),
            ("a config", blob(true)),
            ("a layer", blob(false)),
        ];
        let registry = Registry::with(&content);
        Self {
            proxy: Proxy::before(registry.address),
            adapter: Scripted::start(),
            root,
            places,
            _registry: registry,
        }
    }

    fn scan(&self) -> Scan {
        Scan::through(&self.proxy, &self.root).platforms(BOTH)
    }

    fn send(&self) -> Reply {
        self.scan().send(&self.adapter)
    }

    /// With this fault at each kind of content in turn, the scan ends with this code, and without it well.
    fn each_place(&self, what: &str, fault: &Fault, code: Code) {
        for (place, digest) in &self.places {
            self.proxy.reset();
            self.proxy.spoil(digest, fault.clone());
            assert_code(&format!("{what} at {place}"), &self.send(), code);
            assert!(self.adapter.run_directories().is_empty());
        }
        self.proxy.reset();
        Answer::of(&self.send()).assert_complete(BOTH);
    }
}

#[test]
fn a_registry_that_stalls_ends_in_a_timeout() {
    let stage = Stage::new();
    for fault in [
        Fault::Silence,
        Fault::StallAfterHead,
        Fault::Drip(Duration::from_millis(100)),
    ] {
        for (place, digest) in &stage.places {
            stage.proxy.reset();
            stage.proxy.spoil(digest, fault.clone());
            let started = Instant::now();
            let reply = stage.scan().limit("timeoutSeconds", 1).send(&stage.adapter);
            assert_code(&format!("{fault:?} at {place}"), &reply, Code::Timeout);
            let took = started.elapsed();
            assert!(
                (1.0..6.0).contains(&took.as_secs_f64()),
                "{fault:?} at {place}: {took:?}"
            );
            assert!(stage.adapter.run_directories().is_empty());
        }
    }
    stage.proxy.reset();
    Answer::of(&stage.send()).assert_complete(BOTH);
}

#[test]
fn a_stalled_scan_can_be_cancelled() {
    let stage = Stage::new();
    for (place, digest) in &stage.places {
        stage.proxy.reset();
        stage.proxy.spoil(digest, Fault::StallAfterHead);
        let run = format!("stalled-at-{}", place.replace(' ', "-"));
        let reply = std::thread::scope(|scope| {
            let answer = scope.spawn(|| stage.scan().send_run(&stage.adapter, &run));
            eventually("the request", || {
                stage.proxy.seen().iter().any(|seen| seen.path.contains(digest))
            });
            assert!(stage.adapter.cancel(&run));
            answer.join().unwrap()
        });
        assert_code(place, &reply, Code::Interrupted);
        assert!(stage.adapter.run_directories().is_empty());
    }
}

#[test]
fn connections_that_break_are_worth_another_try() {
    let stage = Stage::new();
    stage.each_place("a hang-up", &Fault::HangUp, Code::OciRegistryIo);
    stage.each_place("a truncation", &Fault::Truncate(10), Code::OciRegistryIo);
    stage.each_place("only a head", &Fault::Truncate(0), Code::OciRegistryIo);
}

#[test]
fn lies_about_the_length_are_seen() {
    let stage = Stage::new();
    stage.each_place(
        "a length that is none",
        &Fault::Length("abc"),
        Code::OciRegistryResponseInvalid,
    );
    stage.each_place(
        "a negative length",
        &Fault::Length("-1"),
        Code::OciRegistryResponseInvalid,
    );
    stage.each_place(
        "an encoded answer",
        &Fault::Encoded,
        Code::OciRegistryResponseInvalid,
    );
    // The index has no descriptor to compare with, only its digest.
    let (index, described) = stage.places.split_first().unwrap();
    for (place, digest) in described {
        for length in ["5", "99999"] {
            stage.proxy.reset();
            stage.proxy.spoil(digest, Fault::Length(length));
            let reply = stage.send();
            assert_code(&format!("{length} at {place}"), &reply, Code::OciBlobSizeMismatch);
        }
    }
    stage.proxy.reset();
    stage.proxy.spoil(&index.1, Fault::Length("5"));
    assert_code("5 at the index", &stage.send(), Code::OciBlobDigestMismatch);
    stage.proxy.reset();
    stage.proxy.spoil(&index.1, Fault::Length("99999"));
    assert_code("99999 at the index", &stage.send(), Code::OciRegistryIo);
    stage.proxy.reset();
    stage.proxy.spoil(&index.1, Fault::Length("99999999999"));
    assert_code(
        "far more than allowed at the index",
        &stage.send(),
        Code::OciInputTooLarge,
    );
}

#[test]
fn answers_without_a_length_are_read_to_their_right_end() {
    let stage = Stage::new();
    for fault in [Fault::Chunked, Fault::Unframed] {
        for (place, digest) in &stage.places {
            stage.proxy.reset();
            stage.proxy.spoil(digest, fault.clone());
            let reply = stage.send();
            assert_eq!(reply.status, 200, "{fault:?} at {place}: {}", reply.json());
        }
    }
}

#[test]
fn bodies_longer_than_their_descriptor_are_cut_off() {
    let stage = Stage::new();
    let (_, described) = stage.places.split_first().unwrap();
    for (place, digest) in described {
        stage.proxy.reset();
        stage.proxy.spoil(digest, Fault::Longer(50 << 20));
        let started = Instant::now();
        assert_code(place, &stage.send(), Code::OciBlobSizeMismatch);
        assert!(
            started.elapsed() < Duration::from_secs(15),
            "{:?}",
            started.elapsed()
        );
    }
}

#[test]
fn statuses_become_codes_and_never_a_missing_platform() {
    let stage = Stage::new();
    for (statuses, code) in [
        (&[401, 403][..], Code::OciRegistryAuthFailed),
        (&[204], Code::OciRegistryResponseInvalid),
        (&[404], Code::OciRegistryContentMissing),
        (
            &[429, 500, 502, 503, 504, 400, 418, 301, 302, 307, 308],
            Code::OciRegistryScanFailed,
        ),
    ] {
        for status in statuses {
            stage.each_place(&status.to_string(), &Fault::Status(*status, Vec::new()), code);
        }
    }
}

#[test]
fn storms_end_and_are_not_answered_with_storms() {
    let stage = Stage::new();
    for status in [401, 429, 500] {
        stage.proxy.reset();
        let wait = ("Retry-After", "3600".to_owned());
        stage.proxy.spoil("/v2/", Fault::Status(status, vec![wait]));
        let started = Instant::now();
        let reply = stage.send();
        assert!(reply.json()["retryable"] == true, "{status}: {}", reply.json());
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "{status}: {:?}",
            started.elapsed()
        );
        let requests = stage.proxy.seen().len();
        assert!(requests <= 4, "{status}: {requests} requests");
    }
    // One that comes and goes: whatever an attempt meets, it is never half an answer.
    for fault in [Fault::Status(503, Vec::new()), Fault::HangUp, Fault::Truncate(7)] {
        for (_, digest) in &stage.places {
            stage.proxy.reset();
            stage.proxy.spoil_times(digest, 1, fault.clone());
            let reply = stage.send();
            if reply.status == 200 {
                Answer::of(&reply).assert_complete(BOTH);
            } else {
                assert!(reply.json()["retryable"] == true, "{}", reply.json());
            }
            Answer::of(&stage.send()).assert_complete(BOTH);
        }
    }
}

#[test]
fn redirects_are_not_followed_and_tell_nobody_the_token() {
    let stage = Stage::new();
    let other = Proxy::before(stage.proxy.address);
    for (place, digest) in &stage.places {
        let collection = if place.contains("config") || place.contains("layer") {
            "blobs"
        } else {
            "manifests"
        };
        for target in [
            format!("{}/v2/app/{collection}/{digest}?again", stage.proxy.url()),
            format!("/v2/app/{collection}/{digest}?again"),
            format!("{}/v2/app/{collection}/{digest}?again", other.url()),
            "http://169.254.169.254/latest/meta-data".to_owned(),
        ] {
            stage.proxy.reset();
            let location = ("Location", target.clone());
            stage
                .proxy
                .spoil_times(digest, 1, Fault::Status(307, vec![location]));
            assert_code(
                &format!("{target} at {place}"),
                &stage.send(),
                Code::OciRegistryScanFailed,
            );
            assert!(stage.proxy.seen().iter().all(|seen| !seen.path.contains("again")));
        }
    }
    assert!(other.seen().is_empty(), "{:?}", other.seen());
}

#[test]
fn a_registry_that_is_not_there_is_worth_another_try() {
    let stage = Stage::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for url in [format!("http://{free}"), "https://registry.invalid".to_owned()] {
        let reply = Scan::of(&url, &stage.root).send(&stage.adapter);
        assert_code(&url, &reply, Code::OciRegistryIo);
    }
}

#[test]
fn every_request_is_for_a_digest_and_each_content_is_fetched_once() {
    let stage = Stage::new();
    Answer::of(&stage.send()).assert_complete(BOTH);
    let seen = stage.proxy.seen();
    let paths: BTreeSet<&str> = seen.iter().map(|seen| seen.path.as_str()).collect();
    // An index, two manifests, two configs, two layers of their own and a shared one.
    assert_eq!((seen.len(), paths.len()), (8, 8), "{paths:?}");
    for seen in &seen {
        assert!(seen.path.contains("/sha256:"), "{}", seen.path);
        assert_eq!(seen.header("authorization"), Some("Bearer scoped-token-8d31f0c2"));
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
        let accept = seen.header("accept").unwrap();
        if seen.path.contains("/manifests/") {
            for media_type in [
                "oci.image.index.v1",
                "oci.image.manifest.v1",
                "manifest.list.v2",
                "manifest.v2",
            ] {
                assert!(accept.contains(media_type), "{accept}");
            }
        } else {
            assert!(seen.path.starts_with("/v2/app/blobs/"), "{}", seen.path);
        }
    }
}
