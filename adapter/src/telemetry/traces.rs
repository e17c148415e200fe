//! Traces over OTLP/HTTP, for those who name a collector.
//!
//! A run is a span, its stages are spans below it, and the run continues the caller's trace by the W3C trace context.
//! Without a collector all of this does nothing.

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{HeaderMap, Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{Span as _, SpanBuilder, Tracer as _, TracerProvider as _};
use opentelemetry::{KeyValue, global};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use std::io;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Who speaks, in every span.
const SERVICE: &str = "assay-adapter";
/// What collectors add to their address by the OTLP specification.
const PATH: &str = "/v1/traces";
/// Longest time that one batch may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer of a collector.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Why no trace can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The runtime that sends cannot be made.
    #[error("the sender of traces cannot be started")]
    Start(#[source] io::Error),
    /// The library refuses the settings.
    #[error("the exporter of traces cannot be made")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
    /// The certificates of this machine cannot be read.
    #[error("the certificates for the collector cannot be read")]
    Trust(#[from] crate::oci::OciError),
}

/// The way to a collector.
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Sends to this collector from now on: `http://host:4318` or `https://…`, without `/v1/traces`.
    ///
    /// # Errors
    /// [`TracesError`]. That nobody listens is none: batches are lost then, and a warning says so.
    pub fn to(collector: &str) -> Result<Self, TracesError> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(Sender::new()?)
            .with_endpoint(format!("{}{PATH}", collector.trim_end_matches('/')))
            .build()
            .map_err(TracesError::Exporter)?;
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", SERVICE),
                KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            ])
            .build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(exporter)
            .build();
        global::set_tracer_provider(provider.clone());
        Ok(Self(provider))
    }

    /// What makes spans of this process.
    pub(super) fn tracer(&self) -> Tracer {
        self.0.tracer(SERVICE)
    }

    /// Sends what is left and ends.
    pub fn end(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// Makes `span` continue the trace that a request's headers name, if they do (W3C trace context, `traceparent`).
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    // An error means that nobody takes spans.
    let _ = span.set_parent(caller);
}

/// Notes a stage of the current run that has just ended.
pub(super) fn stage(name: &'static str, took: Duration) {
    let end = SystemTime::now();
    let stage = SpanBuilder::from_name(name).with_start_time(end.checked_sub(took).unwrap_or(end));
    global::tracer(SERVICE)
        .build_with_context(stage, &Span::current().context())
        .end_with_timestamp(end);
}

/// An HTTP client of its own: the library calls it from a thread of its own, outside of our runtime.
#[derive(Debug)]
struct Sender {
    runtime: Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Sender {
    fn new() -> Result<Self, TracesError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(crate::oci::trust::client_config(None)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(TracesError::Start)?,
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.request(request.map(Full::new)).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes();
        Ok(Response::from_parts(head, body))
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self
            .runtime
            .block_on(async { tokio::time::timeout(TIMEOUT, self.send(request)).await });
        let answer = sent.map_err(HttpError::from).and_then(|answer| answer);
        match &answer {
            Err(error) => tracing::warn!(%error, "traces could not be sent"),
            Ok(answer) if !answer.status().is_success() => {
                tracing::warn!(status = answer.status().as_u16(), "the collector refuses traces");
            }
            Ok(_) => {}
        }
        answer
    }
}

/// Whether this can be a collector.
pub(crate) fn is_collector(url: &str) -> bool {
    url.parse::<Uri>().is_ok_and(|url| {
        matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some() && url.query().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::is_collector;

    #[test]
    fn collectors_are_roots_of_http_servers() {
        for good in ["http://localhost:4318", "https://collector.example/prefix/"] {
            assert!(is_collector(good), "{good}");
        }
        for bad in [
            "",
            "localhost:4318",
            "/v1/traces",
            "grpc://a:4317",
            "http://a?b=c",
        ] {
            assert!(!is_collector(bad), "{bad}");
        }
    }
}
