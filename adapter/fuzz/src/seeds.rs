//! Inputs to begin with: sample artifacts, hostile ones, and small archives made here, sorted by what reads them.

use crate::harness::{Target, decompress};
use assay_adapter::archive::sniff::{Format, sniff};
use assay_fixtures::{artifact, hostile};
use fastrand::Rng;
use std::io::{Cursor, Read};
use std::sync::LazyLock;

/// Longest input of an archive target; the fuzzer is run with the same bound.
const MAX_BYTES: usize = 8 << 10;

/// Names and bytes, in a fixed order.
pub fn seeds(target: Target) -> Vec<(String, Vec<u8>)> {
    let mut seeds = match target {
        Target::Manifest => manifests(),
        Target::Sbom => texts(SBOMS),
        Target::Report => texts(REPORTS),
        Target::Head => texts(HEADS),
        Target::Oci => texts(OCI),
        _ => archives(target),
    };
    if target.reads_archives() {
        for seed in 0..64 {
            seeds.push((format!("made-{seed}"), target.fresh(&mut Rng::with_seed(seed))));
        }
    }
    seeds.retain(|(_, bytes)| bytes.len() <= MAX_BYTES);
    seeds
}

fn archives(target: Target) -> Vec<(String, Vec<u8>)> {
    let wanted = small_artifacts()
        .iter()
        .filter(|(_, artifact_type, bytes)| wants(target, artifact_type, bytes));
    wanted
        .map(|(id, _, bytes)| ((*id).to_owned(), bytes.clone()))
        .collect()
}

/// Name, type and bytes of what is small enough. Made once: most of the others are large on purpose.
fn small_artifacts() -> &'static [(&'static str, &'static str, Vec<u8>)] {
    static SMALL: LazyLock<Vec<(&'static str, &'static str, Vec<u8>)>> = LazyLock::new(|| {
        let samples = artifact::all()
            .into_iter()
            .map(|sample| (sample.id, sample.artifact_type, sample.bytes));
        let hostile = hostile::all()
            .into_iter()
            .map(|hostile| (hostile.id, hostile.artifact_type, (hostile.make)()));
        samples
            .chain(hostile)
            .filter(|(_, _, bytes)| bytes.len() <= MAX_BYTES)
            .collect()
    });
    &SMALL
}

fn wants(target: Target, artifact_type: &str, bytes: &[u8]) -> bool {
    let format = match target {
        Target::Zip => Format::Zip,
        Target::Tar => Format::Tar,
        Target::Gzip => Format::Gzip,
        Target::Bzip2 => Format::Bzip2,
        Target::Xz => Format::Xz,
        Target::Lzma => Format::Lzma,
        Target::Zstd => Format::Zstd,
        Target::Ar => Format::Ar,
        Target::Cpio => Format::Cpio,
        Target::Rpm => Format::Rpm,
        Target::Apk => return artifact_type == "APK",
        Target::Conda => return artifact_type == "CONDA",
        _ => return true,
    };
    sniff(bytes) == format
}

/// Files by which the sample packages name themselves.
fn manifests() -> Vec<(String, Vec<u8>)> {
    const NAMES: [&str; 16] = [
        "package.json",
        "METADATA",
        "PKG-INFO",
        "Cargo.toml",
        ".nuspec",
        "metadata",
        "Chart.yaml",
        "pom.properties",
        "pom.xml",
        "composer.json",
        "pubspec.yaml",
        "MANIFEST.json",
        "control",
        ".PKGINFO",
        "index.json",
        "metadata.json",
    ];
    let mut found = Vec::new();
    for sample in artifact::all() {
        let mut files = Vec::new();
        collect(&sample.bytes, 0, &mut files);
        for (name, bytes) in files {
            if NAMES.iter().any(|end| name.ends_with(end)) {
                let name = name.rsplit('/').next().unwrap_or_default();
                found.push((format!("{}-{name}", sample.id), bytes));
            }
        }
    }
    found
}

/// Files inside, with ordinary libraries; what they cannot read is left out.
fn collect(bytes: &[u8], depth: u32, files: &mut Vec<(String, Vec<u8>)>) {
    if depth > 4 {
        return;
    }
    let mut inside = Vec::new();
    match sniff(bytes) {
        Format::Zip => {
            let Ok(mut archive) = zip::ZipArchive::new(Cursor::new(bytes)) else {
                return;
            };
            for index in 0..archive.len() {
                let Ok(mut entry) = archive.by_index(index) else {
                    continue;
                };
                let (name, mut data) = (String::from_utf8_lossy(entry.name_raw()).into_owned(), Vec::new());
                if entry.read_to_end(&mut data).is_ok() {
                    inside.push((name, data));
                }
            }
        }
        Format::Tar => {
            let mut archive = tar::Archive::new(bytes);
            for mut entry in archive.entries().into_iter().flatten().flatten() {
                let (name, mut data) = (
                    String::from_utf8_lossy(&entry.path_bytes()).into_owned(),
                    Vec::new(),
                );
                if entry.read_to_end(&mut data).is_ok() {
                    inside.push((name, data));
                }
            }
        }
        Format::Ar => {
            let mut archive = ar::Archive::new(bytes);
            while let Some(Ok(mut entry)) = archive.next_entry() {
                let name = String::from_utf8_lossy(entry.header().identifier()).into_owned();
                let mut data = Vec::new();
                if entry.read_to_end(&mut data).is_ok() {
                    inside.push((name, data));
                }
            }
        }
        format if format.is_compressed() => {
            if let Some((_, plain)) = decompress(bytes) {
                collect(&plain, depth + 1, files);
                inside.push(("metadata".to_owned(), plain));
            }
        }
        _ => {}
    }
    for (name, data) in inside {
        collect(&data, depth + 1, files);
        files.push((name, data));
    }
}

fn texts(texts: &[&str]) -> Vec<(String, Vec<u8>)> {
    let numbered = texts.iter().enumerate();
    numbered
        .map(|(number, text)| (format!("text-{number}"), text.as_bytes().to_vec()))
        .collect()
}

const SBOMS: &[&str] = &[
    r#"{"bomFormat":"CycloneDX","specVersion":"1.6","serialNumber":"urn:uuid:0","metadata":{"timestamp":"T","tools":{"components":[{"type":"application","name":"syft","version":"1"}]},"component":{"bom-ref":"r","type":"file","name":"a"}},"components":[{"bom-ref":"p","type":"library","name":"a","version":"1","purl":"pkg:npm/a@1","cpe":"cpe:2.3:a:a:a:1:*:*:*:*:*:*:*","licenses":[{"license":{"id":"MIT"}},{"expression":"MIT OR Apache-2.0"}],"hashes":[{"alg":"SHA-256","content":"00"}],"properties":[{"name":"syft:location:0:path","value":"/a"},{"name":"syft:package:type","value":"npm"}]}],"dependencies":[{"ref":"p","dependsOn":["q"]}]}"#,
    r#"{"bomFormat":"cyclonedx","specVersion":" 1.5 ","components":[{},null,1,{"name":"\u00e9\ud83d\ude00","purl":"pkg:deb/debian/a@1:2-3?arch=amd64&distro=debian-12#x"}],"dependencies":null}"#,
    r#"{"specVersion":"1.4"}"#,
    "[]",
];
const REPORTS: &[&str] = &[
    r#"{"matches":[{"vulnerability":{"id":"GHSA-1","dataSource":"https://example.org/1","namespace":"github:language:npm","severity":"High","urls":["u"],"cvss":[{"type":"Secondary","version":"3.1","vector":"CVSS:3.1/AV:N","metrics":{"baseScore":7.5}}],"fix":{"versions":["2"],"state":"fixed"},"epss":[{"epss":0.1,"percentile":0.9}],"risk":1.5},"relatedVulnerabilities":[{"id":"CVE-1","namespace":"nvd:cpe"}],"matchDetails":[{"type":"exact-direct-match"}],"artifact":{"id":"0","name":"a","version":"1","type":"npm","locations":[{"path":"/a"}],"purl":"pkg:npm/a@1"}}],"source":{"type":"sbom-file"},"descriptor":{"name":"grype","configuration":{"db":{"cache-dir":"d"}},"db":{"status":{"built":"B","path":"p","valid":true}},"timestamp":"T"}}"#,
    r#"{"matches":[1,null,{"vulnerability":{"severity":"?"}},{"artifact":{"locations":null}}],"descriptor":{"timestamp":1,"timestamp":2}}"#,
    "{}",
];
const HEADS: &[&str] = &[
    "POST /v1/catalog HTTP/1.1\r\nHost: a\r\nx-kkrepo-api-version: v1\r\nx-kkrepo-run-id: r-1\r\nx-kkrepo-expected-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\nx-kkrepo-expected-size: 3\r\nx-kkrepo-artifact-type: JAR\r\nx-assay-distribution: debian:12\r\nx-kkrepo-max-input-bytes: 1000\r\nx-kkrepo-max-archive-entries: 10\r\nx-kkrepo-max-nested-depth: 2\r\nx-kkrepo-timeout-seconds: 60\r\nContent-Length: 3\r\n\r\n",
    "POST /v1/match HTTP/1.1\r\nx-kkrepo-api-version: v1\r\nx-kkrepo-run-id: r:2\r\nx-kkrepo-sbom-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\r\nx-kkrepo-max-uncompressed-bytes: 99\r\nx-kkrepo-max-single-file-bytes: 9\r\nidempotency-key: k\r\n\r\n",
    "GET /v1/capabilities;a=b//x%2f..%2F HTTP/1.1\r\nx-kkrepo-scanner-credential: s\r\n\r\n",
    "POST /v1/runs/0-a/cancel HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    "GET /actuator/health/liveness?x=1 HTTP/1.0\r\n\r\n",
];
const OCI: &[&str] = &[
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","size":2},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:1111111111111111111111111111111111111111111111111111111111111111","size":3},{"mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip","digest":"sha256:2222222222222222222222222222222222222222222222222222222222222222","size":4,"urls":["https://example.org"]}],"annotations":{"a":"b"}}"#,
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:3333333333333333333333333333333333333333333333333333333333333333","size":5,"platform":{"os":"linux","architecture":"arm","variant":"v7"}},{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:4444444444444444444444444444444444444444444444444444444444444444","size":6},{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:5555555555555555555555555555555555555555555555555555555555555555","size":7,"platform":{"os":"unknown","architecture":"unknown"},"annotations":{"vnd.docker.reference.type":"attestation-manifest"}}]}"#,
    r#"{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[{"mediaType":"application/vnd.docker.distribution.manifest.v2+json","digest":"sha256:6666666666666666666666666666666666666666666666666666666666666666","size":8,"platform":{"os":"linux","architecture":"arm64"}}]}"#,
    r#"{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json","config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:7777777777777777777777777777777777777777777777777777777777777777","size":2},"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","digest":"sha256:8888888888888888888888888888888888888888888888888888888888888888","size":3}]}"#,
    r#"{"schemaVersion":2,"artifactType":"application/vnd.example","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:9999999999999999999999999999999999999999999999999999999999999999","size":2,"data":"e30="},"layers":[{"mediaType":"application/vnd.in-toto+json","digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","size":9}],"subject":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","size":5}}"#,
    r#"{"schemaVersion":2,"config":{"mediaType":"application/vnd.cncf.helm.config.v1+json","digest":"sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc","size":2},"layers":[]}"#,
    r#"{"mediaType":"application/vnd.oci.artifact.manifest.v1+json","schemaVersion":2,"blobs":[]}"#,
    r#"{"architecture":"amd64","os":"linux","variant":"v3","config":{"Env":["A=b"]},"rootfs":{"type":"layers","diff_ids":["sha256:dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","sha256:eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"]},"history":[{"created":"2026-01-01T00:00:00Z","empty_layer":true}]}"#,
    r#"{"os":"windows","os.version":"10","architecture":"arm64","rootfs":{"type":"layers","diff_ids":null}}"#,
];
