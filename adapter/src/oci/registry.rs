//! The client: content by digest from one repository, each byte of it counted and hashed.
//!
//! **Invariant:** it sends GET requests for digests to the request's own registry and nothing else. Redirections are
//! answers like any other, no proxy is read from the environment, and the token leaves only in a header of these
//! requests.

use super::address::AddressPolicy;
use super::digest::Digest;
use super::document::{Blob, media};
use super::endpoint::{Collection, Endpoint, EndpointPolicy};
use super::error::OciError;
use super::trust;
use crate::config::OciConfig;
use crate::http::upload::{self, Bounds, UploadError};
use crate::run::RunContext;
use crate::spool::Writer;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, HeaderValue, TRANSFER_ENCODING, USER_AGENT,
};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiFuture, GaiResolver, Name};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};
use std::fs::File;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;
use zeroize::Zeroizing;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence inside a body is bounded by the run alone.
const NO_STALL_LIMIT: Duration = Duration::from_hours(24);

/// What all requests to registries share. Opens nothing by itself.
#[derive(Debug)]
pub struct Registries {
    policy: EndpointPolicy,
    ca_file: Option<PathBuf>,
    /// Blobs of one run that are fetched at the same time.
    pub parallel_fetches: usize,
    trust: OnceLock<ClientConfig>,
}

impl Registries {
    /// Registries under these settings.
    pub fn new(config: &OciConfig) -> Self {
        Self {
            policy: config.policy.clone(),
            ca_file: config.ca_file.clone(),
            parallel_fetches: config.parallel_fetches,
            trust: OnceLock::new(),
        }
    }

    /// Reads the certificates, if they were not read before.
    ///
    /// # Errors
    /// [`OciError::Trust`].
    pub fn trust(&self) -> Result<ClientConfig, OciError> {
        if let Some(config) = self.trust.get() {
            return Ok(config.clone());
        }
        let config = trust::client_config(self.ca_file.as_deref())?;
        Ok(self.trust.get_or_init(|| config).clone())
    }

    /// A client for one repository. Connections are its own and end with it.
    ///
    /// # Errors
    /// Those of the policy, and [`OciError::Trust`].
    pub fn repository(
        &self,
        registry: &Uri,
        repository: &str,
        token: &SecretString,
        run: &RunContext,
    ) -> Result<Registry, OciError> {
        let endpoint = Endpoint::new(registry, repository, &self.policy)?;
        let mut http = HttpConnector::new_with_resolver(Resolver {
            inner: GaiResolver::new(),
            policy: Arc::new(self.policy.addresses.clone()),
        });
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.trust()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(self.parallel_fetches)
            .build(connector);
        Ok(Registry {
            client,
            endpoint,
            authorization: authorization(token)?,
            run: run.clone(),
        })
    }
}

/// The header that carries the token. Its bytes are overwritten when the last of its clones is gone.
fn authorization(token: &SecretString) -> Result<HeaderValue, OciError> {
    let text = Zeroizing::new(format!("Bearer {}", token.expose_secret()).into_bytes());
    let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(text)).map_err(|_| OciError::Url)?;
    value.set_sensitive(true);
    Ok(value)
}

type Connector = HttpsConnector<HttpConnector<Resolver>>;

/// One repository, as one run sees it.
pub struct Registry {
    client: Client<Connector, Empty<Bytes>>,
    endpoint: Endpoint,
    authorization: HeaderValue,
    run: RunContext,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// A manifest or index of at most `limit` bytes whose size nobody announced.
    ///
    /// # Errors
    /// [`OciError`].
    pub async fn root(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>, OciError> {
        let what = "the manifest";
        let response = self.get(Collection::Manifests, digest, what).await?;
        if let Some(got) = response.body().size_hint().exact()
            && got > limit
        {
            return Err(OciError::InputTooLarge { got, limit });
        }
        let document = self.collect(response, limit).await?;
        let Some(document) = document else {
            return Err(OciError::ManifestTooLarge { limit });
        };
        verify(&document, digest, what)?;
        Ok(document)
    }

    /// A manifest or index that a descriptor describes.
    ///
    /// # Errors
    /// [`OciError`].
    pub async fn manifest(&self, blob: &Blob) -> Result<Vec<u8>, OciError> {
        self.document(Collection::Manifests, blob, "a manifest").await
    }

    /// A config.
    ///
    /// # Errors
    /// [`OciError`].
    pub async fn config(&self, blob: &Blob) -> Result<Vec<u8>, OciError> {
        self.document(Collection::Blobs, blob, "a config").await
    }

    /// Asks for any blob. Its content waits until [`Download::store`] takes it.
    ///
    /// # Errors
    /// [`OciError`].
    pub async fn download(&self, blob: &Blob) -> Result<Download<'_>, OciError> {
        let response = self.get(Collection::Blobs, &blob.digest, LAYER).await?;
        check_announced(&response, blob.size, LAYER)?;
        Ok(Download {
            is_framed: is_framed(&response),
            body: response.into_body(),
            run: &self.run,
        })
    }

    async fn document(&self, collection: Collection, blob: &Blob, what: &str) -> Result<Vec<u8>, OciError> {
        let response = self.get(collection, &blob.digest, what).await?;
        check_announced(&response, blob.size, what)?;
        let is_framed = is_framed(&response);
        let document = self.collect(response, blob.size).await?;
        let Some(document) = document else {
            return Err(too_long(blob.size, what));
        };
        let got = u64::try_from(document.len()).unwrap_or(u64::MAX);
        check_length(got, blob.size, is_framed, what)?;
        verify(&document, &blob.digest, what)?;
        Ok(document)
    }

    async fn get(
        &self,
        collection: Collection,
        digest: &Digest,
        what: &str,
    ) -> Result<Response<Incoming>, OciError> {
        let accept = match collection {
            Collection::Manifests => media::ACCEPT,
            Collection::Blobs => "application/octet-stream",
        };
        let request = Request::get(self.endpoint.url(collection, digest)?)
            .header(AUTHORIZATION, self.authorization.clone())
            .header(ACCEPT, accept)
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, concat!("assay-adapter/", env!("CARGO_PKG_VERSION")))
            .body(Empty::new())
            .map_err(|_| OciError::Url)?;
        let response = self
            .run
            .bound(self.client.request(request))
            .await?
            .map_err(transport)?;
        match response.status() {
            StatusCode::OK => {}
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(OciError::Auth {
                    status: status.as_u16(),
                });
            }
            StatusCode::NOT_FOUND => {
                return Err(OciError::Missing {
                    what: what.to_owned(),
                });
            }
            status if status.is_success() => {
                return Err(OciError::Response {
                    reason: "a status that carries no content",
                });
            }
            status => {
                return Err(OciError::Status {
                    status: status.as_u16(),
                });
            }
        }
        match response.headers().get(CONTENT_ENCODING) {
            Some(encoding) if encoding != "identity" => Err(OciError::Response {
                reason: "an encoding that was not asked for",
            }),
            _ => Ok(response),
        }
    }

    /// The body, or `None` when it is longer than `limit` bytes.
    async fn collect(&self, response: Response<Incoming>, limit: u64) -> Result<Option<Vec<u8>>, OciError> {
        let mut body = response.into_body();
        let mut document = Vec::new();
        while let Some(frame) = self.run.bound(body.frame()).await? {
            let frame = frame.map_err(|error| OciError::Io(error.into()))?;
            let Ok(block) = frame.into_data() else { continue };
            let length = document.len().saturating_add(block.len());
            if u64::try_from(length).is_ok_and(|length| length > limit) {
                return Ok(None);
            }
            document.extend_from_slice(&block);
        }
        Ok(Some(document))
    }
}

/// What a blob is called in errors.
const LAYER: &str = "a layer";

/// A blob whose head was good and whose content is still on its way.
#[derive(Debug)]
pub struct Download<'r> {
    body: Incoming,
    is_framed: bool,
    run: &'r RunContext,
}

impl Download<'_> {
    /// Takes the content into `file`, which is empty, and tells whoever reads along through `spool`.
    ///
    /// # Errors
    /// [`OciError`]: the content is not the blob's, or did not come. What is in the file then is not to be trusted.
    pub async fn store(mut self, blob: &Blob, file: File, spool: Writer) -> Result<(), OciError> {
        let body = &mut self.body;
        let bounds = Bounds {
            limit: blob.size,
            kept: blob.size,
            stall: NO_STALL_LIMIT,
        };
        let received = upload::receive_for_reader(body, file, spool, bounds, self.run)
            .await
            .map_err(|error| match error {
                UploadError::TooLarge { limit } => too_long(limit, LAYER),
                UploadError::BrokenOff(source) => OciError::Io(source),
                UploadError::Store(source) => OciError::Store(source),
                UploadError::Stopped(stopped) => stopped.into(),
                UploadError::Stalled(_) => OciError::Stopped(crate::run::Stopped::TimedOut),
            })?;
        check_length(received.size, blob.size, self.is_framed, LAYER)?;
        if received.sha256 == blob.digest.hex() {
            Ok(())
        } else {
            Err(OciError::DigestMismatch {
                what: LAYER.to_owned(),
            })
        }
    }
}

fn verify(document: &[u8], digest: &Digest, what: &str) -> Result<(), OciError> {
    if Digest::of(document) == *digest {
        return Ok(());
    }
    Err(OciError::DigestMismatch {
        what: what.to_owned(),
    })
}

/// Whether the end of the body is told by more than the end of the connection.
fn is_framed(response: &Response<Incoming>) -> bool {
    response.body().size_hint().exact().is_some() || response.headers().contains_key(TRANSFER_ENCODING)
}

fn check_announced(response: &Response<Incoming>, want: u64, what: &str) -> Result<(), OciError> {
    match response.body().size_hint().exact() {
        Some(got) if got != want => Err(OciError::SizeMismatch {
            what: what.to_owned(),
            got,
            want,
        }),
        _ => Ok(()),
    }
}

fn check_length(got: u64, want: u64, is_framed: bool, what: &str) -> Result<(), OciError> {
    if got == want {
        Ok(())
    } else if is_framed {
        Err(OciError::SizeMismatch {
            what: what.to_owned(),
            got,
            want,
        })
    } else {
        // The connection is gone, and nobody said that this was all.
        Err(OciError::Io(io::Error::from(io::ErrorKind::UnexpectedEof).into()))
    }
}

fn too_long(want: u64, what: &str) -> OciError {
    OciError::SizeMismatch {
        what: what.to_owned(),
        got: want.saturating_add(1),
        want,
    }
}

/// Why a request got no response.
fn transport(error: legacy::Error) -> OciError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(here) = cause {
        if here.is::<Refused>() {
            return OciError::AddressRefused;
        }
        if here
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_parse)
        {
            return OciError::Response {
                reason: "no proper HTTP head",
            };
        }
        cause = here.source();
    }
    OciError::Io(error.into())
}

/// Every address of a name is denied.
#[derive(Debug, thiserror::Error)]
#[error("no address of this name is allowed")]
struct Refused;

/// Names to addresses, without those that the policy denies: the check is on what is connected to, whatever the name
/// stood for a moment before.
#[derive(Clone)]
struct Resolver {
    inner: GaiResolver,
    policy: Arc<AddressPolicy>,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving: GaiFuture = self.inner.call(name);
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            let all: Vec<SocketAddr> = resolving.await?.collect();
            let allowed: Vec<SocketAddr> = all
                .iter()
                .copied()
                .filter(|address| policy.allows(address.ip()))
                .collect();
            if allowed.is_empty() && !all.is_empty() {
                return Err(Refused.into());
            }
            Ok(allowed.into_iter())
        })
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
