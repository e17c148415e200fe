//! The client side of the wire contract, as far as demo and benchmarks need it.

use std::time::Duration;

use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use ureq::Agent;

use crate::error::Error;

/// Longer than any scan that a verb asks for.
const EXCHANGE_WITHIN: Duration = Duration::from_mins(15);
/// Most bytes of an answer; the contract's client stops at 64 MiB too.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// Talks to one adapter.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    credential: String,
}

/// What one request to `/v1/catalog` needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The artifact.
    pub(crate) bytes: &'a [u8],
    /// Wire name of its type, for example `JAR`.
    pub(crate) artifact_type: &'a str,
}

impl Client {
    /// `base` is scheme, host and port.
    pub(crate) fn new(base: &str, credential: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(EXCHANGE_WITHIN))
            .build();
        Self {
            agent: config.into(),
            base: base.to_owned(),
            credential: credential.to_owned(),
        }
    }

    /// Scheme, host and port.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Ok when the adapter would take work now.
    pub(crate) fn readiness(&self) -> Result<(), Error> {
        let url = format!("{}/actuator/health/readiness", self.base);
        let answer = self.agent.get(&url).call().map_err(|source| Error::Http {
            url: url.clone(),
            source: Box::new(source),
        })?;
        body(&url, answer).map(|_| ())
    }

    /// Bytes to SBOM.
    pub(crate) fn catalog<T: DeserializeOwned>(&self, input: Input<'_>) -> Result<T, Error> {
        let extra = [
            ("X-KKRepo-Expected-SHA256", sha256(input.bytes)),
            ("X-KKRepo-Expected-Size", input.bytes.len().to_string()),
            ("X-KKRepo-Artifact-Type", input.artifact_type.to_owned()),
            ("Content-Type", "application/octet-stream".to_owned()),
        ];
        self.post("/v1/catalog", &extra, input.bytes)
    }

    /// SBOM to findings.
    pub(crate) fn match_sbom<T: DeserializeOwned>(&self, sbom: &[u8]) -> Result<T, Error> {
        let extra = [
            ("X-KKRepo-SBOM-SHA256", sha256(sbom)),
            ("Content-Type", "application/vnd.cyclonedx+json".to_owned()),
        ];
        self.post("/v1/match", &extra, sbom)
    }

    /// Image digest to SBOM and findings.
    pub(crate) fn oci_scan<T: DeserializeOwned>(&self, request: &serde_json::Value) -> Result<T, Error> {
        let extra = [("Content-Type", "application/json".to_owned())];
        self.post("/v1/oci/scan", &extra, request.to_string().as_bytes())
    }

    fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        extra: &[(&str, String)],
        bytes: &[u8],
    ) -> Result<T, Error> {
        let url = format!("{}{path}", self.base);
        let run = uuid::Uuid::new_v4().to_string();
        let mut request = self
            .agent
            .post(&url)
            .header("X-KKRepo-Scanner-Credential", &self.credential)
            .header("X-KKRepo-API-Version", "v1")
            .header("X-KKRepo-Run-ID", &run)
            .header("Idempotency-Key", &run)
            .header("Accept", "application/json");
        for (name, value) in extra {
            request = request.header(*name, value);
        }
        let answer = request.send(bytes).map_err(|source| Error::Http {
            url: url.clone(),
            source: Box::new(source),
        })?;
        let text = body(&url, answer)?;
        serde_json::from_str(&text).map_err(|source| Error::Json {
            what: format!("the answer of {url}"),
            source,
        })
    }
}

fn body(url: &str, mut answer: ureq::http::Response<ureq::Body>) -> Result<String, Error> {
    let status = answer.status().as_u16();
    let read = answer
        .body_mut()
        .with_config()
        .limit(MAX_ANSWER_BYTES)
        .read_to_string();
    let body = read.map_err(|source| Error::Http {
        url: url.to_owned(),
        source: Box::new(source),
    })?;
    if status == 200 {
        Ok(body)
    } else {
        Err(Error::Status {
            url: url.to_owned(),
            status,
            body,
        })
    }
}

/// Lower-case hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
