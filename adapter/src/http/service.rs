//! One request to one answer: credential, route, head, operation.

use super::auth;
use super::headers::{CatalogHead, MatchHead, check_api_version};
use super::respond::{self, Answer};
use super::router::{self, Operation, Route};
use crate::app::App;
use crate::operation::{self, Answered, MAX_RECORDED_KEY, readiness, status};
use crate::problem::{Problem, error_chain, sanitize};
use crate::run::{StopGuard, StopOrder, StopReason};
use crate::runs::RunId;
use crate::telemetry::{self, AnswerLabels, Exposition};
use assay_schemas::headers::IDEMPOTENCY_KEY;
use assay_schemas::{CancellationResponse, Code};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{EXPECT, TRANSFER_ENCODING};
use hyper::{HeaderMap, Method, Request, StatusCode};
use serde::Serialize;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tracing::{Instrument as _, Span};

#[cfg(test)]
mod tests;

/// Bytes and time for which the rest of a refused body is still taken, so that the client gets to read the answer.
const LINGER_BYTES: usize = 8 << 20;
const LINGER: Duration = Duration::from_secs(2);

/// Answers a request. `conflicting_lengths`: its head names both a length and a transfer coding.
pub async fn answer(app: Arc<App>, request: Request<Incoming>, conflicting_lengths: bool) -> Answer {
    let started = Instant::now();
    let path = router::normalize(request.uri().path());
    let is_head = request.method() == Method::HEAD;
    let authorized =
        !router::is_guarded(&path) || auth::is_authorized(request.headers(), &app.config.http.credentials);
    let route = router::route(request.method(), &path);
    let (name, mut answer) = if conflicting_lengths {
        let problem = Problem::new(
            Code::RequestInvalid,
            "the request has both a length and a transfer coding",
        );
        ("refused", respond::closing(respond::problem(&problem, 0)))
    } else if has_foreign_coding(request.headers()) {
        let problem = Problem::new(
            Code::RequestInvalid,
            "the only transfer coding of a request is chunked",
        );
        ("refused", respond::closing(respond::problem(&problem, 0)))
    } else if !authorized {
        linger(request);
        let problem = Problem::new(Code::Unauthorized, "the service credential is missing or wrong");
        ("refused", respond::problem(&problem, 0))
    } else {
        match route {
            Route::Found(operation) => {
                let name = operation.name();
                (name, dispatch(&app, operation, request).await)
            }
            Route::NotFound => {
                linger(request);
                (
                    "refused",
                    respond::problem(&Problem::new(Code::NotFound, "no such path"), 0),
                )
            }
            Route::MethodNotAllowed(allowed) => {
                linger(request);
                ("refused", respond::method_not_allowed(allowed))
            }
        }
    };
    if is_head {
        *answer.body_mut() = Full::new(Bytes::new());
    }
    let status = answer.status().as_u16();
    app.metrics
        .answers
        .get_or_create(&AnswerLabels {
            operation: name,
            status,
        })
        .inc();
    tracing::debug!(
        operation = name,
        status,
        millis = started.elapsed().as_millis(),
        "answered"
    );
    answer
}

/// Whether the body is coded in a way other than chunked alone. The library would undo the chunks and hand out what is
/// inside them, such as gzip, as if that were the artifact.
fn has_foreign_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let first = codings.next();
    first.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        || codings.next().is_some()
}

fn metrics(app: &App, form: Exposition) -> Answer {
    match app.metrics.encode(form) {
        Ok(text) => respond::text(form.content_type(), text),
        Err(error) => {
            let problem = Problem::new(Code::InternalError, "the metrics cannot be encoded").caused_by(error);
            respond::problem(&problem, 0)
        }
    }
}

async fn dispatch(app: &Arc<App>, operation: Operation, request: Request<Incoming>) -> Answer {
    match operation {
        Operation::Capabilities => respond::json(StatusCode::OK, &status::capabilities(app)),
        Operation::Readiness => respond::json(StatusCode::OK, readiness::readiness(app).await.as_ref()),
        Operation::Health => health(&status::health(app).await),
        Operation::HealthReadiness => health(&status::health_readiness(app).await),
        Operation::Liveness => health(&status::liveness()),
        Operation::Info => respond::json(StatusCode::OK, &status::info(app).await),
        Operation::Prometheus => metrics(app, Exposition::asked_for(request.headers())),
        Operation::Cancel(run_id) => match cancel(app, request.headers(), &run_id) {
            Ok(response) => respond::json(StatusCode::OK, &response),
            Err(problem) => respond::problem(&problem, 0),
        },
        Operation::Catalog => {
            let head = CatalogHead::parse(request.headers(), app.config.ceiling.max_input_bytes);
            let run_id = head.as_ref().ok().map(|head| head.run_id.clone());
            scan(app, head, run_id, request, operation::catalog::run).await
        }
        Operation::Match => {
            let head = MatchHead::parse(request.headers(), app.config.ceiling.max_input_bytes);
            let run_id = head.as_ref().ok().map(|head| head.run_id.clone());
            scan(app, head, run_id, request, operation::match_sbom::run).await
        }
        Operation::OciScan => oci_scan(app, request).await,
    }
}

/// Runs an operation in a task of its own: when the client goes away, the run is cancelled, and the task still ends
/// its engine, removes its workspace and returns its slot in order.
async fn scan<H, T, F>(
    app: &Arc<App>,
    head: Result<H, Problem>,
    run_id: Option<RunId>,
    request: Request<Incoming>,
    operation: impl FnOnce(Arc<App>, H, BodyInCustody) -> F + Send + 'static,
) -> Answer
where
    H: Send + 'static,
    T: Serialize + Send + 'static,
    F: Future<Output = Result<Answered<T>, Problem>> + Send + 'static,
{
    let head = match head {
        Ok(head) => head,
        Err(problem) => {
            linger(request);
            return respond::problem(&problem, 0);
        }
    };
    let stop = StopOrder::default();
    let guard = stop.clone().on_drop(StopReason::Disconnect);
    let key = recorded_key(request.headers());
    let span = tracing::info_span!(
        "run",
        run_id = run_id.as_ref().map(RunId::as_str),
        idempotency_key = key
    );
    telemetry::continue_trace(&span, request.headers());
    let body = BodyInCustody::new(request, stop);
    let task = app
        .operations
        .spawn(logged(operation(Arc::clone(app), head, body)).instrument(span.clone()));
    conclude(app, task.await, guard, &span)
}

/// The client's idempotency key for the log. The answer does not depend on it: the same bytes give the same content.
fn recorded_key(headers: &HeaderMap) -> Option<String> {
    let key = headers.get(IDEMPOTENCY_KEY)?;
    Some(sanitize(
        &String::from_utf8_lossy(key.as_bytes()),
        MAX_RECORDED_KEY,
    ))
}

/// The same work, with a line in the log when it ends, also when nobody waits for its answer any more.
async fn logged<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let started = Instant::now();
    let outcome = work.await;
    let millis = started.elapsed().as_millis();
    match &outcome {
        Ok(_) => tracing::info!(millis, "the run is done"),
        Err(problem) => {
            let cause = problem.cause.as_ref().map(|cause| error_chain(cause.as_ref()));
            if problem.code.status() >= 500 {
                tracing::warn!(code = %problem.code, cause, millis, "{}", problem.message);
            } else {
                tracing::info!(code = %problem.code, cause, millis, "{}", problem.message);
            }
        }
    }
    outcome
}

/// The answer to what an operation's task came to.
fn conclude<T: Serialize>(app: &App, outcome: TaskOutcome<T>, guard: StopGuard, run: &Span) -> Answer {
    guard.disarm();
    let started = Instant::now();
    let answer = answer_to(app, outcome);
    run.in_scope(|| app.metrics.stage("respond", started.elapsed()));
    answer
}

fn answer_to<T: Serialize>(app: &App, outcome: TaskOutcome<T>) -> Answer {
    let outcome = outcome.unwrap_or_else(|error| {
        Err(Problem::new(Code::InternalError, "the run failed in an unexpected way").caused_by(error))
    });
    match outcome {
        Ok(answered) => respond::held_json(&answered.response, answered.memory),
        Err(problem) => {
            let problem = app.while_draining(problem);
            respond::problem(&problem, app.admission.retry_after_seconds())
        }
    }
}

/// What a task gives: the operation's own result, or that it panicked.
type TaskOutcome<T> = Result<Result<Answered<T>, Problem>, tokio::task::JoinError>;

/// A request body on its way to an operation. What the operation does not read is drained for a moment on drop, so
/// that the client can read the answer instead of a reset.
#[derive(Debug)]
pub struct BodyInCustody {
    body: Option<Incoming>,
    expects_continue: bool,
    /// Given when the client is gone.
    pub stop: StopOrder,
}

impl BodyInCustody {
    fn new(request: Request<Incoming>, stop: StopOrder) -> Self {
        let expects_continue = request.headers().contains_key(EXPECT);
        Self {
            body: Some(request.into_body()),
            expects_continue,
            stop,
        }
    }
}

impl Body for BodyInCustody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.get_mut().body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for BodyInCustody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            drain(body, self.expects_continue);
        }
    }
}

fn linger(request: Request<Incoming>) {
    let expects_continue = request.headers().contains_key(EXPECT);
    drain(request.into_body(), expects_continue);
}

fn drain(body: Incoming, expects_continue: bool) {
    // Asking for the body would make the library invite it with "100 Continue".
    if expects_continue || body.is_end_stream() {
        return;
    }
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(tokio::time::timeout(LINGER, async move {
            let mut rest = Limited::new(body, LINGER_BYTES);
            while let Some(Ok(_)) = rest.frame().await {}
        }));
    }
}

async fn oci_scan(app: &Arc<App>, request: Request<Incoming>) -> Answer {
    let span = tracing::info_span!(
        "run",
        run_id = tracing::field::Empty,
        idempotency_key = tracing::field::Empty
    );
    telemetry::continue_trace(&span, request.headers());
    let cap = app.config.http.max_oci_request_bytes;
    let too_large = || {
        let message = format!("the OCI scan request is larger than {cap} bytes");
        respond::problem(&Problem::new(Code::OciRequestTooLarge, message), 0)
    };
    if request.body().size_hint().lower() > cap as u64 {
        linger(request);
        return too_large();
    }
    let body = tokio::time::timeout(
        app.config.http.body_timeout,
        Limited::new(request.into_body(), cap).collect(),
    );
    let bytes = match body.await {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return respond::closing(too_large());
        }
        Ok(Err(_)) | Err(_) => {
            let problem = Problem::new(Code::InputIo, "the OCI scan request broke off");
            return respond::closing(respond::problem(&problem, 0));
        }
    };
    let stop = StopOrder::default();
    let guard = stop.clone().on_drop(StopReason::Disconnect);
    let work = operation::oci_scan::run(Arc::clone(app), bytes, stop);
    let task = app.operations.spawn(logged(work).instrument(span.clone()));
    conclude(app, task.await, guard, &span)
}

fn cancel(app: &App, headers: &HeaderMap, run_id: &str) -> Result<CancellationResponse, Problem> {
    check_api_version(headers)?;
    let run_id = RunId::parse(run_id)?;
    let cancelled = app.runs.cancel(&run_id);
    Ok(CancellationResponse {
        run_id: run_id.as_str().to_owned(),
        cancelled,
    })
}

fn health(state: &status::Health) -> Answer {
    let status = if state.is_up() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    respond::json(status, state)
}
