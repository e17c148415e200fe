//! Requests for image scans, and what their answers say.

use super::proxy::Proxy;
use super::registry::Registry;
use crate::fake::FakeEngines;
use crate::support::{CREDENTIAL, Reply, Setup, TestAdapter, run_id};
use base64::Engine as _;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What nobody but the registry may ever see.
pub(crate) const TOKEN: &str = "scoped-token-8d31f0c2";

/// One request; everything may be changed.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    /// The body.
    pub(crate) body: Value,
}

impl Scan {
    /// Of a digest in repository `app` of a registry without TLS, for `linux/amd64`, with ample limits.
    pub(crate) fn of(registry: &str, digest: &str) -> Self {
        Self {
            body: json!({
                "apiVersion": "v1", "runId": run_id(), "idempotencyKey": "task:oci:1",
                "registryUrl": registry, "repository": "app", "manifestDigest": digest,
                "requiredPlatforms": ["linux/amd64"], "scopedBearerToken": TOKEN,
                "profileConfigurationDigest": "0".repeat(64),
                "limits": {
                    "maxInputBytes": 64 << 20, "maxArchiveEntries": 10_000, "maxUncompressedBytes": 256 << 20,
                    "maxSingleFileBytes": 64 << 20, "maxNestedDepth": 5, "timeoutSeconds": 60,
                },
            }),
        }
    }

    /// In a crane registry.
    pub(crate) fn in_registry(registry: &Registry, digest: &str) -> Self {
        Self::of(&registry.url(), digest)
    }

    /// Through a proxy.
    pub(crate) fn through(proxy: &Proxy, digest: &str) -> Self {
        Self::of(&proxy.url(), digest)
    }

    /// For these platforms.
    pub(crate) fn platforms(self, platforms: &[&str]) -> Self {
        self.with("requiredPlatforms", json!(platforms))
    }

    /// With another value of a member.
    pub(crate) fn with(mut self, member: &str, value: Value) -> Self {
        self.body[member] = value;
        self
    }

    /// With another value of a limit.
    pub(crate) fn limit(mut self, member: &str, value: u64) -> Self {
        self.body["limits"][member] = json!(value);
        self
    }

    /// Sends it.
    pub(crate) fn send(&self, adapter: &TestAdapter) -> Reply {
        let mut body = self.body.clone();
        // Each sending is a run of its own.
        body["runId"] = json!(run_id());
        post(adapter, &body)
    }

    /// Sends it under this run id.
    pub(crate) fn send_run(&self, adapter: &TestAdapter, run: &str) -> Reply {
        let mut body = self.body.clone();
        body["runId"] = json!(run);
        post(adapter, &body)
    }
}

fn post(adapter: &TestAdapter, body: &Value) -> Reply {
    let headers = [
        ("x-kkrepo-scanner-credential", CREDENTIAL),
        ("x-kkrepo-api-version", "v1"),
        ("content-type", "application/json"),
    ];
    adapter.send("POST", "/v1/oci/scan", &headers, body.to_string().as_bytes())
}

/// Lets an adapter ask registries of this host without TLS.
pub(crate) fn plain(setup: Setup) -> Setup {
    setup.with("oci_plain_http_registries", "127.0.0.1")
}

/// A ready adapter with scripted engines, which find nothing, quickly.
pub(crate) struct Scripted {
    adapter: TestAdapter,
    /// What it runs.
    pub(crate) engines: FakeEngines,
}

impl Scripted {
    /// Starts it.
    pub(crate) fn start() -> Self {
        let engines = FakeEngines::new();
        let adapter = plain(engines.setup()).start();
        adapter.wait_ready();
        Self { adapter, engines }
    }
}

impl std::ops::Deref for Scripted {
    type Target = TestAdapter;

    fn deref(&self) -> &TestAdapter {
        &self.adapter
    }
}

/// A good answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The whole.
    pub(crate) json: Value,
}

impl Answer {
    /// Of a reply.
    ///
    /// # Panics
    /// When it is an error.
    pub(crate) fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{}", reply.json());
        Self { json: reply.json() }
    }

    /// Completeness of inventory and findings.
    pub(crate) fn completeness(&self) -> (&str, &str) {
        let text = |part: &str| self.json[part]["completeness"].as_str().unwrap_or_default();
        (text("catalog"), text("match"))
    }

    /// Scanned and missing platforms.
    pub(crate) fn platforms(&self) -> (Vec<&str>, Vec<&str>) {
        let list = |name: &str| {
            let list = self.json[name].as_array().unwrap_or_else(|| panic!("no {name}"));
            list.iter().map(|item| item.as_str().unwrap()).collect()
        };
        (list("scannedPlatforms"), list("missingPlatforms"))
    }

    /// Everything is there: these platforms and no other, none missing, nothing partial.
    pub(crate) fn assert_complete(&self, platforms: &[&str]) {
        assert_eq!(self.platforms(), (platforms.to_vec(), Vec::new()));
        assert_eq!(
            self.completeness(),
            ("COMPLETE", "COMPLETE"),
            "{}",
            self.json["catalog"]["summary"]
        );
    }

    /// Some platforms are missing, and the answer says so.
    pub(crate) fn assert_partial(&self, scanned: &[&str], missing: &[&str]) {
        assert_eq!(self.platforms(), (scanned.to_vec(), missing.to_vec()));
        assert_eq!(self.completeness(), ("PARTIAL", "PARTIAL"));
    }

    /// The merged document.
    pub(crate) fn document(&self) -> Vec<u8> {
        self.bytes("catalog", "cyclonedxJson")
    }

    /// The matcher's report.
    pub(crate) fn report(&self) -> Vec<u8> {
        self.bytes("match", "reportJson")
    }

    fn bytes(&self, part: &str, member: &str) -> Vec<u8> {
        let text = self.json[part][member].as_str().unwrap();
        base64::engine::general_purpose::STANDARD.decode(text).unwrap()
    }

    /// Package URLs of the projected components, with their qualifiers.
    pub(crate) fn purls(&self) -> BTreeSet<String> {
        texts(&self.json["catalog"]["components"], "packageUrl")
    }

    /// Package URLs of components in the document with the platforms in which each was seen.
    pub(crate) fn platforms_by_purl(&self) -> Vec<(String, String)> {
        let document: Value = serde_json::from_slice(&self.document()).unwrap();
        let mut found = Vec::new();
        for component in document["components"].as_array().into_iter().flatten() {
            let properties = component["properties"].as_array().into_iter().flatten();
            let platforms: Vec<&str> = properties
                .filter(|property| property["name"] == "kkrepo:oci:platforms")
                .map(|property| property["value"].as_str().unwrap())
                .collect();
            assert_eq!(platforms.len(), 1, "{component}");
            if let Some(purl) = component["purl"].as_str() {
                found.push((purl.to_owned(), platforms.concat()));
            }
        }
        found.sort();
        found
    }

    /// Distinct advisories of the findings, in order.
    pub(crate) fn advisories(&self) -> Vec<String> {
        texts(&self.json["match"]["findings"], "advisoryId")
            .into_iter()
            .collect()
    }
}

fn texts(list: &Value, member: &str) -> BTreeSet<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item[member].as_str().map(str::to_owned))
        .collect()
}

/// A reply is this refusal.
pub(crate) fn assert_code(what: &str, reply: &Reply, code: assay_schemas::Code) {
    let json = reply.json();
    assert_eq!(
        (reply.status, json["code"].as_str(), json["retryable"].as_bool()),
        (code.status(), Some(code.as_str()), Some(code.retryable())),
        "{what}: {json}"
    );
}
