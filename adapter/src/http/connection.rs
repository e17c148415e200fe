//! A guard around one client connection: it sees every byte and so knows what the HTTP library does not tell:
//! conflicting lengths, a head that never ends, a connection that idles, a reader that stalls.

use crate::config::HttpConfig;
use futures_util::task::AtomicWaker;
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// Most bytes of a request head that are looked at; the library refuses longer heads itself.
const MAX_HEAD: usize = 64 << 10;
/// Most headers of a request.
pub const MAX_HEADERS: usize = 128;

/// What is known of a connection. Times are milliseconds since it was opened, plus one; 0 means "not".
#[derive(Debug)]
pub struct ConnectionState {
    opened: Instant,
    in_flight: AtomicBool,
    outlives_half_close: AtomicBool,
    conflicting_lengths: AtomicBool,
    head_started: AtomicU64,
    write_blocked: AtomicU64,
    last_activity: AtomicU64,
    reader: AtomicWaker,
}

/// How long each kind of silence may last.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// From the first byte of a head to its last.
    pub header: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// While the peer does not take the response.
    pub write: Duration,
}

impl Patience {
    /// As configured.
    pub fn of(http: &HttpConfig) -> Self {
        Self {
            header: http.header_timeout,
            idle: http.idle_timeout,
            write: http.body_timeout,
        }
    }

    /// How often it is worth a look whether it is used up.
    pub(super) fn tick(&self) -> Duration {
        [self.header, self.idle, self.write]
            .into_iter()
            .fold(Duration::from_secs(4), Duration::min)
            .div_f64(4.0)
            .max(Duration::from_millis(25))
    }
}

impl Default for ConnectionState {
    fn default() -> Self {
        Self {
            opened: Instant::now(),
            in_flight: AtomicBool::new(false),
            outlives_half_close: AtomicBool::new(false),
            conflicting_lengths: AtomicBool::new(false),
            head_started: AtomicU64::new(0),
            write_blocked: AtomicU64::new(0),
            last_activity: AtomicU64::new(1),
            reader: AtomicWaker::new(),
        }
    }
}

impl ConnectionState {
    fn now(&self) -> u64 {
        u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// A request head was parsed. Whether its head named both a length and a transfer coding.
    ///
    /// `outlives_half_close`: a peer that closes its sending side still gets the answer. Otherwise that counts as
    /// gone, because it cannot be told from a full close, and a scan for nobody must not hold a slot.
    pub fn request_begins(&self, outlives_half_close: bool) -> bool {
        self.outlives_half_close
            .store(outlives_half_close, Ordering::Relaxed);
        self.in_flight.store(true, Ordering::Relaxed);
        self.head_started.store(0, Ordering::Relaxed);
        self.conflicting_lengths.swap(false, Ordering::Relaxed)
    }

    /// The answer to a request is known.
    pub fn request_ends(&self) {
        self.last_activity.store(self.now(), Ordering::Relaxed);
        self.in_flight.store(false, Ordering::Release);
        self.reader.wake();
    }

    /// Whether the peer has used up its patience.
    pub fn is_overdue(&self, patience: &Patience) -> bool {
        let now = self.now();
        let older =
            |since: u64, limit: Duration| since != 0 && u128::from(now - since.min(now)) > limit.as_millis();
        if older(self.write_blocked.load(Ordering::Relaxed), patience.write) {
            return true;
        }
        if self.in_flight.load(Ordering::Relaxed) {
            return false;
        }
        older(self.head_started.load(Ordering::Relaxed), patience.header)
            || older(self.last_activity.load(Ordering::Relaxed), patience.idle)
    }
}

/// The connection with its guard.
#[derive(Debug)]
pub struct Guarded<I> {
    io: I,
    state: Arc<ConnectionState>,
    head: Vec<u8>,
}

impl<I> Guarded<I> {
    /// Guards `io`.
    pub fn new(io: I, state: Arc<ConnectionState>) -> Self {
        Self {
            io,
            state,
            head: Vec::new(),
        }
    }

    /// Looks at bytes that arrived while no request is under way: they belong to the next head.
    fn observe(&mut self, bytes: &[u8]) {
        if self.state.in_flight.load(Ordering::Relaxed) {
            self.head.clear();
            return;
        }
        if self.state.head_started.load(Ordering::Relaxed) == 0 {
            self.head.clear();
            self.state.head_started.store(self.state.now(), Ordering::Relaxed);
        }
        let room = MAX_HEAD.saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        if names_two_lengths(&self.head) {
            self.state.conflicting_lengths.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether a complete head carries both `Content-Length` and `Transfer-Encoding` (RFC 9112, section 6.1).
fn names_two_lengths(head: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
        return false;
    }
    let has = |name: &str| {
        request
            .headers
            .iter()
            .any(|header| header.name.eq_ignore_ascii_case(name))
    };
    has("content-length") && has("transfer-encoding")
}

impl<I: Read + Unpin> Read for Guarded<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.state.in_flight.load(Ordering::Relaxed) {
            if !this.state.outlives_half_close.load(Ordering::Relaxed) {
                return Pin::new(&mut this.io).poll_read(cx, cursor);
            }
            // The library drops a request when the peer closes, so it reads on only when the answer is known.
            this.state.reader.register(cx.waker());
            if this.state.in_flight.load(Ordering::Acquire) {
                return Poll::Pending;
            }
        }
        // Heads are small: they go through a buffer of our own, so that no uninitialised memory is touched.
        let mut block = [0; 8192];
        let room = cursor.remaining().min(block.len());
        let Some(space) = block.get_mut(..room) else {
            return Poll::Ready(Ok(()));
        };
        let mut buffer = ReadBuf::new(space);
        ready!(Pin::new(&mut this.io).poll_read(cx, buffer.unfilled()))?;
        this.observe(buffer.filled());
        cursor.put_slice(buffer.filled());
        Poll::Ready(Ok(()))
    }
}

impl<I: Write + Unpin> Guarded<I> {
    fn note<T>(&self, outcome: &Poll<T>) {
        let since = if outcome.is_pending() { self.state.now() } else { 0 };
        if since == 0 {
            self.state.write_blocked.store(0, Ordering::Relaxed);
        } else {
            // The first blocked attempt counts.
            let _ = self
                .state
                .write_blocked
                .compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl<I: Write + Unpin> Write for Guarded<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.note(&outcome);
        outcome
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_write_vectored(cx, slices);
        this.note(&outcome);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionState, Patience, names_two_lengths};
    use std::time::Duration;

    #[test]
    fn only_a_complete_head_with_both_conflicts() {
        let both = b"POST / HTTP/1.1\r\nContent-Length: 3\r\ntransfer-encoding: chunked\r\n\r\nabc";
        assert!(names_two_lengths(both));
        assert!(!names_two_lengths(&both[..60]));
        assert!(!names_two_lengths(
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
        assert!(!names_two_lengths(b"\x16\x03\x01garbage"));
    }

    #[test]
    fn silence_is_measured_by_kind() {
        let patience = Patience {
            header: Duration::ZERO,
            idle: Duration::from_mins(1),
            write: Duration::from_mins(1),
        };
        let state = ConnectionState::default();
        assert!(!state.is_overdue(&patience));
        state.head_started.store(1, std::sync::atomic::Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(3));
        assert!(state.is_overdue(&patience), "a head that does not end");
        assert!(!state.request_begins(false));
        assert!(
            !state.is_overdue(&patience),
            "a request under way has its own deadline"
        );
        state.request_ends();
        assert!(!state.is_overdue(&patience));
        std::thread::sleep(Duration::from_millis(3));
        assert!(
            state.is_overdue(&Patience {
                idle: Duration::ZERO,
                ..patience
            }),
            "an idle connection"
        );
    }
}
