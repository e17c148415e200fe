//! The current generation for the updaters of others, over HTTP in the matcher's own layout: `/v6/latest.json` and the
//! archive that it names. Read-only and without credential: databases are public.

use super::Pin;
use super::export::{self, Format};
use super::store::Store;
use crate::engine::Engines;
use crate::http::connection::{ConnectionState, Guarded, MAX_HEADERS, Patience};
use crate::http::listen;
use crate::problem::{Problem, error_chain};
use crate::run::RunContext;
use assay_schemas::Code;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::fs::File;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;

/// Archives that are kept: the one that is named, and the one before for those who have just read its name.
const KEPT: usize = 2;
/// Longest time that the engine may take to say what a generation is.
const LOOK: Duration = Duration::from_secs(15);
/// Read from disk at a time, bytes.
const BLOCK: usize = 256 << 10;
/// How long downloads may go on after the order to stop.
const DRAIN: Duration = Duration::from_secs(10);

type Body = BoxBody<Bytes, io::Error>;

/// What is handed out.
#[derive(Debug)]
pub struct Distribution {
    store: Store,
    engines: Engines,
    directory: PathBuf,
    /// Newest first.
    archives: Mutex<VecDeque<Archive>>,
    /// Held while one is made.
    making: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Archive {
    generation: String,
    path: PathBuf,
    latest: Latest,
}

/// The matcher's `latest.json`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Latest {
    status: &'static str,
    schema_version: String,
    built: Timestamp,
    path: String,
    checksum: String,
}

impl Distribution {
    /// Of this store. Archives are made in `directory`, which is private and goes with its owner.
    pub fn new(store: Store, engines: Engines, directory: PathBuf) -> Self {
        Self {
            store,
            engines,
            directory,
            archives: Mutex::default(),
            making: tokio::sync::Mutex::default(),
        }
    }

    /// The archive of the current generation; made when there is none yet, by one request while the others wait.
    async fn current(&self) -> Result<Archive, Problem> {
        let _making = self.making.lock().await;
        let pin = self.store.pin().await?;
        if let Some(known) = self.known(|archive| archive.generation == pin.name.as_str()) {
            return Ok(known);
        }
        let archive = self.make(pin).await?;
        let gone: Vec<Archive> = {
            let mut archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
            archives.push_front(archive.clone());
            let kept = archives.len().min(KEPT);
            archives.drain(kept..).collect()
        };
        for old in gone {
            // Who reads it keeps it.
            let _ = tokio::fs::remove_file(&old.path).await;
        }
        Ok(archive)
    }

    fn known(&self, is_wanted: impl Fn(&Archive) -> bool) -> Option<Archive> {
        let archives = self.archives.lock().unwrap_or_else(PoisonError::into_inner);
        archives.iter().find(|archive| is_wanted(archive)).cloned()
    }

    async fn make(&self, pin: Pin) -> Result<Archive, Problem> {
        let provenance = self
            .engines
            .validate_database(&pin.path, &RunContext::with_timeout(LOOK))
            .await?;
        let generation = pin.name.as_str().to_owned();
        // The generation's own name makes it unique.
        let name = format!(
            "vulnerability-db_{}_{}.tar.zst",
            provenance.schema,
            generation.trim_start_matches("generation-")
        );
        let path = self.directory.join(&name);
        let facts = tokio::task::spawn_blocking({
            let path = path.clone();
            move || export::write(&pin.path, &path, Format::Zstd)
        })
        .await
        .map_err(io::Error::other)
        .and_then(|written| written)
        .map_err(|error| {
            Problem::new(Code::DatabaseUpdateIo, "the archive could not be made").caused_by(error)
        })?;
        tracing::info!(generation, archive = name, bytes = facts.bytes, "handing out");
        Ok(Archive {
            generation,
            path,
            latest: Latest {
                status: "active",
                schema_version: provenance.schema,
                built: provenance.built,
                path: name,
                checksum: format!("sha256:{}", facts.sha256.unwrap_or_default()),
            },
        })
    }

    /// Makes the archive of the current generation before somebody asks for it.
    ///
    /// # Errors
    /// Why nothing can be handed out.
    pub async fn warm(&self) -> Result<(), Problem> {
        self.current().await.map(drop)
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only\n");
            answer
                .headers_mut()
                .insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let Some(name) = request.uri().path().strip_prefix("/v6/") else {
            return plain(StatusCode::NOT_FOUND, "there is /v6/latest.json\n");
        };
        let answered = if name == super::source::LATEST {
            self.latest().await
        } else {
            self.archive(name, request.method() == Method::HEAD).await
        };
        let mut answer = answered.unwrap_or_else(|problem| {
            tracing::warn!(code = %problem.code, cause = error_chain(&problem), "nothing to hand out");
            plain(StatusCode::SERVICE_UNAVAILABLE, "no database can be handed out\n")
        });
        if request.method() == Method::HEAD {
            *answer.body_mut() = empty();
        }
        answer
    }

    async fn latest(&self) -> Result<Response<Body>, Problem> {
        let archive = self.current().await?;
        let text = serde_json::to_vec_pretty(&archive.latest).map_err(|error| {
            Problem::new(Code::InternalError, "the document cannot be written").caused_by(error)
        })?;
        Ok(response(
            StatusCode::OK,
            "application/json",
            text.len() as u64,
            whole(text.into()),
        ))
    }

    async fn archive(&self, name: &str, is_head: bool) -> Result<Response<Body>, Problem> {
        let Some(known) = self.known(|archive| archive.latest.path == name) else {
            return Ok(plain(StatusCode::NOT_FOUND, "there is /v6/latest.json\n"));
        };
        let unreadable =
            |error| Problem::new(Code::DatabaseUpdateIo, "the archive cannot be read").caused_by(error);
        let file = File::open(known.path).await.map_err(unreadable)?;
        let length = file.metadata().await.map_err(unreadable)?.len();
        let body = if is_head {
            empty()
        } else {
            http_body_util::BodyExt::boxed(StreamBody::new(
                ReaderStream::with_capacity(file, BLOCK).map_ok(Frame::data),
            ))
        };
        Ok(response(StatusCode::OK, "application/zstd", length, body))
    }
}

/// Bounds of [`serve`].
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Open connections at most; further ones wait.
    pub connections: usize,
    /// How long each kind of silence may last.
    pub patience: Patience,
}

/// Hands out until `stop` is cancelled; downloads may then go on for a few seconds.
pub async fn serve(
    distribution: Arc<Distribution>,
    listener: TcpListener,
    bounds: Bounds,
    stop: CancellationToken,
) {
    let connections = listen::accept(listener, bounds.connections, &stop, |stream| {
        connection(Arc::clone(&distribution), stream, bounds.patience, stop.clone())
    })
    .await;
    let _ = tokio::time::timeout(DRAIN, connections.wait()).await;
}

async fn connection(
    distribution: Arc<Distribution>,
    stream: TcpStream,
    patience: Patience,
    stop: CancellationToken,
) {
    let state = Arc::new(ConnectionState::default());
    let io = Guarded::new(TokioIo::new(stream), Arc::clone(&state));
    let service = service_fn({
        let state = Arc::clone(&state);
        move |request: Request<Incoming>| {
            let (distribution, state) = (Arc::clone(&distribution), Arc::clone(&state));
            state.request_begins(true);
            async move {
                let answer = distribution.answer(&request).await;
                state.request_ends();
                Ok::<_, Infallible>(answer)
            }
        }
    });
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_headers(MAX_HEADERS)
        .serve_connection(io, service);
    listen::drive(connection, &state, &patience, &stop).await;
}

fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

fn empty() -> Body {
    whole(Bytes::new())
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let body = Bytes::from_static(text.as_bytes());
    response(
        status,
        "text/plain; charset=utf-8",
        body.len() as u64,
        whole(body),
    )
}

fn response(status: StatusCode, kind: &'static str, length: u64, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, length.into());
    // Names of archives change with their content; the file that names them does not.
    headers.insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-cache"));
    response
}
