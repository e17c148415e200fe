//! Listening, the same for every server of this program: so many connections at once, a guard around each, an orderly
//! end.

use super::connection::{ConnectionState, Guarded, Patience};
use hyper::body::{Body, Incoming};
use hyper::rt::{Read, Write};
use hyper::server::conn::http1::Connection;
use hyper::service::HttpService;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause after a connection could not be accepted: it died in the backlog, or no descriptor is left. Both pass.
const PAUSE: Duration = Duration::from_millis(20);

/// Accepts until `stop` is cancelled, at most `limit` connections at once; further ones wait. Gives the connections that
/// are left.
pub async fn accept<F>(
    listener: TcpListener,
    limit: usize,
    stop: &CancellationToken,
    mut connection: impl FnMut(TcpStream) -> F,
) -> TaskTracker
where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(limit));
    let connections = TaskTracker::new();
    loop {
        let permit = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            permit = Arc::clone(&permits).acquire_owned() => permit,
        };
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connection(stream);
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    connections.close();
    connections
}

/// Drives a guarded connection to its end: its own, that of the requests under way once `stop` is cancelled, or at once
/// when its peer has used up its patience.
pub async fn drive<I, S>(
    connection: Connection<Guarded<I>, S>,
    state: &ConnectionState,
    patience: &Patience,
    stop: &CancellationToken,
) where
    I: Read + Write + Unpin,
    S: HttpService<Incoming>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::ResBody: Body + 'static,
    <S::ResBody as Body>::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let tick = patience.tick();
    let mut connection = std::pin::pin!(connection);
    let mut draining = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = stop.cancelled(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep(tick) => {
                if state.is_overdue(patience) {
                    tracing::debug!("a connection was silent for too long");
                    return;
                }
            }
        }
    }
}
