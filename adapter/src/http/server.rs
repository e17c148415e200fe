//! The listener: bounded connections, one task each, graceful drain.

use super::connection::{ConnectionState, Guarded, MAX_HEADERS, Patience};
use super::{listen, service};
use crate::app::App;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Read buffer of a connection, bytes: heads up to 32 KiB must fit, and upload blocks are at most this large.
const BUFFER_BYTES: usize = 256 << 10;
/// How long cancelled runs may take to clean up at shutdown before the process goes anyway.
const CLEAN_UP: Duration = Duration::from_secs(6);

/// Serves until `stop` is cancelled, then drains: no new connection, running requests may end within the grace,
/// after that they are cancelled.
///
/// # Errors
/// Only when accepting fails in a way that does not pass.
pub async fn serve(app: Arc<App>, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
    let limit = app.config.http.max_connections;
    let connections = listen::accept(listener, limit, &stop, |stream| {
        serve_connection(Arc::clone(&app), stream, stop.clone())
    })
    .await;
    app.begin_drain();
    if tokio::time::timeout(app.config.http.shutdown_grace, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            runs = app.runs.count(),
            "cancelling the runs that did not end within the grace"
        );
        app.runs.cancel_all();
        let _ = tokio::time::timeout(CLEAN_UP, connections.wait()).await;
    }
    app.operations.close();
    let _ = tokio::time::timeout(CLEAN_UP, app.operations.wait()).await;
    Ok(())
}

async fn serve_connection(app: Arc<App>, stream: TcpStream, stop: CancellationToken) {
    let _ = stream.set_nodelay(true);
    let state = Arc::new(ConnectionState::default());
    let patience = Patience::of(&app.config.http);
    let io = Guarded::new(TokioIo::new(stream), Arc::clone(&state));
    let service = service_fn({
        let (app, state) = (Arc::clone(&app), Arc::clone(&state));
        move |request: Request<Incoming>| {
            let (app, state) = (Arc::clone(&app), Arc::clone(&state));
            let conflict = state.request_begins(request.body().is_end_stream());
            async move {
                let answer = service::answer(app, request, conflict).await;
                state.request_ends();
                Ok::<_, Infallible>(answer)
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The guard tells idle from slow; the library's own timer would not.
        .header_read_timeout(None)
        .max_buf_size(BUFFER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(io, service);
    listen::drive(connection, &state, &patience, &stop).await;
}
