//! Who is asked and with what: TLS, tokens, addresses, and where the token goes.

use super::proxy::{Fault, Proxy};
use super::registry::{Registry, Secured};
use super::scan::{Answer, Scan, Scripted, TOKEN, assert_code, plain};
use super::tls::TokenIssuer;
use crate::fake::{FOREVER, FakeEngines};
use crate::support::{Setup, TestAdapter, eventually, is_running};
use assay_fixtures::fake_engine::Action;
use assay_fixtures::oci::{
    Compression, Content, Descriptor, Flavour, ImageBuilder, LayerBuilder, index, rootfs,
};
use assay_schemas::Code;
use serde_json::json;
use std::path::Path;

fn ready(setup: &Setup) -> TestAdapter {
    let adapter = setup.start();
    adapter.wait_ready();
    adapter
}

fn image(content: &mut Content) -> Descriptor {
    let images = ["amd64", "arm64"].map(|architecture| {
        ImageBuilder::new(&format!("linux/{architecture}"))
            .layer(rootfs(architecture).swap_remove(0).layer)
            .store(content)
    });
    index(content, Flavour::Oci, &images)
}

/// Lets an adapter trust a registry's authority.
fn trusting(setup: Setup, registry: &Secured) -> Setup {
    setup.with("oci_ca_file", registry.authority_file().to_str().unwrap())
}

#[test]
fn a_registry_with_tls_and_tokens_is_scanned_with_the_real_engines() {
    let mut content = Content::default();
    let root = image(&mut content);
    let registry = Secured::with(&[("team/app", &content)]);
    let adapter = ready(&trusting(Setup::real(), &registry));
    let token = registry.issuer.token("team/app", 300);
    let scan = Scan::of(&registry.url(), &root.digest)
        .with("repository", json!("team/app"))
        .with("scopedBearerToken", json!(token))
        .platforms(&["linux/amd64", "linux/arm64"]);
    let answer = Answer::of(&scan.send(&adapter));
    answer.assert_complete(&["linux/amd64", "linux/arm64"]);
    let expected: Vec<String> = ["amd64", "arm64"]
        .into_iter()
        .flat_map(|architecture| rootfs(architecture).swap_remove(0).purls)
        .collect();
    assert_eq!(answer.purls(), expected.into_iter().collect());
    assert!(!adapter.log().contains(&token));
    // A path before the repository's name is part of it.
    let prefixed = scan
        .with("registryUrl", json!(format!("{}/team/", registry.url())))
        .with("repository", json!("app"));
    Answer::of(&prefixed.send(&adapter));
}

#[test]
fn a_token_must_be_good_now_and_for_this_repository() {
    let mut content = Content::default();
    let root = image(&mut content);
    let registry = Secured::with(&[("app", &content), ("other", &content)]);
    let engines = FakeEngines::new();
    let adapter = ready(&trusting(engines.setup(), &registry));
    let scan = Scan::of(&registry.url(), &root.digest);
    let with = |token: String| {
        scan.clone()
            .with("scopedBearerToken", json!(token))
            .send(&adapter)
    };
    assert_eq!(with(registry.issuer.token("app", 300)).status, 200);
    for (what, token) in [
        ("expired", registry.issuer.token("app", -3600)),
        ("for another repository", registry.issuer.token("other", 300)),
        ("of another issuer", TokenIssuer::new().token("app", 300)),
        ("no token", "nonsense".to_owned()),
    ] {
        assert_code(what, &with(token), Code::OciRegistryAuthFailed);
    }
}

#[test]
fn certificates_are_checked() {
    let mut content = Content::default();
    let root = image(&mut content);
    let registry = Secured::with(&[("app", &content)]);
    let other = super::tls::Authority::new();
    let engines = FakeEngines::new();
    let file = engines.path("other.crt");
    std::fs::write(&file, other.certificate()).unwrap();
    let token = json!(registry.issuer.token("app", 300));
    let scan = Scan::of(&registry.url(), &root.digest).with("scopedBearerToken", token);

    let stranger = ready(&engines.setup().with("oci_ca_file", file.to_str().unwrap()));
    assert_code("another authority", &scan.send(&stranger), Code::OciRegistryIo);
    let nobody = ready(&engines.setup());
    assert_code("no authority", &scan.send(&nobody), Code::OciRegistryIo);
    let friend = ready(&trusting(engines.setup(), &registry));
    assert_eq!(scan.send(&friend).status, 200);
    // The certificate is for a name.
    let by_address = format!("https://{}", registry.registry.address);
    let scan = scan.with("registryUrl", json!(by_address));
    assert_code("another name", &scan.send(&friend), Code::OciRegistryIo);
    assert!(registry.authority.certificate() != other.certificate());
}

#[test]
fn only_allowed_registries_are_asked_and_never_through_a_proxy() {
    let mut content = Content::default();
    let root = image(&mut content);
    let registry = Registry::with(&content);
    let engines = FakeEngines::new();
    let strict = ready(&engines.setup());
    assert_code(
        "plain HTTP that nobody allowed",
        &Scan::in_registry(&registry, &root.digest).send(&strict),
        Code::OciRegistryInvalid,
    );
    let watcher = Proxy::before(registry.address);
    let mut setup =
        plain(engines.setup()).with("oci_plain_http_registries", "127.0.0.1,169.254.169.254,localhost");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        setup = setup.environment(name, &watcher.url());
    }
    let adapter = ready(&setup);
    Answer::of(&Scan::in_registry(&registry, &root.digest).send(&adapter));
    for url in [
        "http://169.254.169.254",
        "https://169.254.169.254",
        "https://[::ffff:169.254.169.254]",
        "https://[fe80::1]",
    ] {
        let reply = Scan::of(url, &root.digest).send(&adapter);
        assert_code(url, &reply, Code::OciRegistryInvalid);
    }
    assert!(watcher.seen().is_empty());
    // A name is judged by what it resolves to.
    let denying = ready(&setup.with("oci_denied_networks", "127.0.0.0/8,::1/128"));
    let by_name = format!("http://localhost:{}", registry.address.port());
    for url in [registry.url(), by_name] {
        let reply = Scan::of(&url, &root.digest).send(&denying);
        assert_code(&url, &reply, Code::OciRegistryInvalid);
    }
}

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), found);
        } else {
            found.push(entry.path());
        }
    }
}

fn parent_of(process: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let parent = status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .unwrap();
    parent.trim().parse().unwrap()
}

fn holds_token(bytes: &[u8]) -> bool {
    bytes
        .windows(TOKEN.len())
        .any(|window| window == TOKEN.as_bytes())
}

#[test]
fn the_token_goes_to_the_registry_and_nowhere_else() {
    let mut content = Content::default();
    let root = image(&mut content);
    let registry = Registry::with(&content);
    let adapter = Scripted::start();
    let engines = &adapter.engines;
    let scan = Scan::in_registry(&registry, &root.digest);

    // While a cataloguer runs: its environment, its arguments, the process as others see it, the files of the run.
    engines.scans_do_after_record([FOREVER]);
    let run = "token-at-rest";
    let reply = std::thread::scope(|scope| {
        let answer = scope.spawn(|| scan.send_run(&adapter, run));
        let engine = engines.recorded();
        assert!(is_running(engine.process));
        let known = format!("{:?}{:?}", engine.environment, engine.arguments);
        assert!(!known.contains(TOKEN), "{known}");
        assert!(
            engine
                .arguments
                .iter()
                .any(|argument| argument.starts_with("oci-dir:")),
            "{known}"
        );
        for name in ["environ", "cmdline"] {
            let bytes = std::fs::read(format!("/proc/{}/{name}", engine.process)).unwrap();
            assert!(!holds_token(&bytes), "{name}");
        }
        // Neither the cataloguer nor the adapter, which did know the token, leaves its memory on a disk.
        for process in [engine.process, parent_of(engine.process)] {
            let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
            let core = limits
                .lines()
                .find_map(|line| line.strip_prefix("Max core file size"))
                .unwrap();
            assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"]);
        }
        let mut all = Vec::new();
        files(&adapter.scratch(), &mut all);
        assert!(all.len() > 3, "{all:?}");
        for file in &all {
            assert!(!holds_token(&std::fs::read(file).unwrap()), "{}", file.display());
        }
        assert!(adapter.cancel(run));
        answer.join().unwrap()
    });
    assert_code("cancelled", &reply, Code::Interrupted);
    assert!(!holds_token(&reply.bytes));

    // A matcher gets nothing either, and the answer does not give it back.
    engines.scans_do_after_record([Action::Default]);
    let reply = scan.send(&adapter);
    assert_eq!(reply.status, 200, "{}", reply.json());
    assert!(!holds_token(&reply.bytes));
    let engine = engines.recorded();
    assert!(!format!("{engine:?}").contains(TOKEN));

    // A registry that says it back is not quoted.
    let proxy = Proxy::before(registry.address);
    for status in [401, 403, 404, 429, 500, 302] {
        proxy.reset();
        let headers = vec![
            (
                "WWW-Authenticate",
                format!("Bearer realm=\"https://x.invalid/{TOKEN}\""),
            ),
            ("Location", format!("http://x.invalid/{TOKEN}")),
        ];
        proxy.spoil("/v2/", Fault::Status(status, headers));
        let reply = Scan::through(&proxy, &root.digest).send(&adapter);
        assert_ne!(reply.status, 200);
        assert!(!holds_token(&reply.bytes), "{status}");
    }
    // Requests that are refused for what is in them are not quoted either.
    for (member, value) in [
        ("registryUrl", json!(format!("ftp://{TOKEN}"))),
        ("apiVersion", json!("v9")),
    ] {
        let reply = scan.clone().with(member, value).send(&adapter);
        assert_eq!(reply.status, 400);
        assert!(!holds_token(&reply.bytes), "{member}");
    }
    eventually("all is logged", || {
        adapter.log().contains("x.invalid") || adapter.log().len() > 1000
    });
    assert!(!adapter.log().contains(TOKEN), "{}", adapter.log());
    let metrics = adapter.send("GET", "/actuator/prometheus", &[], &[]);
    assert!(!holds_token(&metrics.bytes));
}

#[test]
fn an_engine_sees_only_verified_content() {
    let mut content = Content::default();
    let layer = LayerBuilder::new().file("etc/motd", "x").build(Compression::Gzip);
    let image = ImageBuilder::new("linux/amd64").layer(layer).store(&mut content);
    let registry = Registry::with(&content);
    let proxy = Proxy::before(registry.address);
    let adapter = Scripted::start();
    adapter.engines.scans_do_after_record([Action::Default]);
    for digest in content.blobs.keys() {
        proxy.reset();
        proxy.spoil(digest, Fault::Flip(3));
        let reply = Scan::through(&proxy, &image.digest).send(&adapter);
        assert_code(digest, &reply, Code::OciBlobDigestMismatch);
    }
    assert!(
        !adapter.engines.path("recorded.json").exists(),
        "an engine was started"
    );
}
