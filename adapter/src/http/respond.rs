//! Answers: typed bodies and problems to bytes.

use crate::admission::Permit;
use crate::problem::Problem;
use assay_schemas::Code;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// The body type of every answer.
pub type Answer = Response<Full<Bytes>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=UTF-8");

/// A JSON answer.
pub fn json<T: Serialize>(status: StatusCode, body: &T) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => with_type(status, JSON, bytes),
        // Our own types have string keys and finite numbers only, so this is a defect; it must still be an answer.
        Err(error) => problem(
            &Problem::new(Code::InternalError, "the answer cannot be encoded").caused_by(error),
            0,
        ),
    }
}

/// A JSON answer to a run, whose memory comes back when it is written or its client is gone.
pub fn held_json<T: Serialize>(body: &T, mut memory: Permit) -> Answer {
    let mut answer = json(StatusCode::OK, body);
    let bytes = std::mem::take(answer.body_mut()).into_inner().unwrap_or_default();
    memory.keep_memory(bytes.len() as u64);
    *answer.body_mut() = Full::new(Bytes::from_owner(Held {
        bytes,
        _memory: memory,
    }));
    answer
}

/// Bytes that hold a permit for as long as anybody holds them.
struct Held {
    bytes: Bytes,
    _memory: Permit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A text answer.
pub fn text(content_type: &'static str, body: String) -> Answer {
    with_type(
        StatusCode::OK,
        HeaderValue::from_static(content_type),
        body.into_bytes(),
    )
}

/// An error answer; a 429 carries `Retry-After`.
pub fn problem(problem: &Problem, retry_after_seconds: u32) -> Answer {
    let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // A problem body is three scalars and cannot fail to encode.
    let bytes = serde_json::to_vec(&problem.body()).unwrap_or_default();
    let mut answer = with_type(status, JSON, bytes);
    answer
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::TOO_MANY_REQUESTS {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(retry_after_seconds));
    }
    answer
}

/// A 405 with the methods that the path has.
pub fn method_not_allowed(allowed: &'static str) -> Answer {
    let mut answer = problem(
        &Problem::new(Code::MethodNotAllowed, "the path does not have this method"),
        0,
    );
    answer
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Ends the connection after this answer.
#[must_use]
pub fn closing(mut answer: Answer) -> Answer {
    answer
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn with_type(status: StatusCode, content_type: HeaderValue, bytes: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(bytes)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    answer
}
