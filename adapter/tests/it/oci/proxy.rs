//! A registry with faults: a proxy that hands requests on to a real one and spoils the answers that it is told to.
//!
//! It writes bytes, not messages of an HTTP library, because most faults are answers that no library would send.

use std::io::{BufReader, Read as _, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What becomes of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The request is taken and nothing is said.
    Silence,
    /// The right head, and then nothing.
    StallAfterHead,
    /// The right head, then the body byte by byte with a pause after each.
    Drip(Duration),
    /// The right head, so many bytes of the body, the end of the connection.
    Truncate(usize),
    /// The connection ends before any answer.
    HangUp,
    /// The lowest bit of this byte of the body is another.
    Flip(usize),
    /// This text instead of the `Content-Length`, and the end of the connection after the body.
    Length(&'static str),
    /// No length, but chunks.
    Chunked,
    /// No length; the end of the connection ends the body.
    Unframed,
    /// The answer says that it is compressed.
    Encoded,
    /// Other bytes, with their right length.
    Body(Vec<u8>),
    /// The same as content of this media type.
    BodyAs(&'static str, Vec<u8>),
    /// No length, and this many bytes after the right ones.
    Longer(usize),
    /// No content: this status, and these headers.
    Status(u16, Vec<(&'static str, String)>),
}

/// A request that was made.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Path and query.
    pub(crate) path: String,
    /// The whole head.
    pub(crate) head: String,
}

impl Seen {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

struct Rule {
    /// Part of the path.
    place: String,
    /// How often it holds.
    times: usize,
    fault: Fault,
}

struct State {
    upstream: SocketAddr,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<Seen>>,
    ended: AtomicBool,
}

/// A running proxy.
pub(crate) struct Proxy {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

impl Proxy {
    /// In front of this registry, without a fault.
    pub(crate) fn before(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            upstream,
            rules: Mutex::default(),
            seen: Mutex::default(),
            ended: AtomicBool::new(false),
        });
        std::thread::spawn({
            let state = Arc::clone(&state);
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if state.ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let state = Arc::clone(&state);
                    // A client that goes away is none of our business.
                    std::thread::spawn(move || drop(serve(&state, &stream)));
                }
            }
        });
        Self { address, state }
    }

    /// Scheme, host and port.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on every answer to a path with `place` in it is spoilt.
    pub(crate) fn spoil(&self, place: &str, fault: Fault) {
        self.spoil_times(place, usize::MAX, fault);
    }

    /// The next `times` answers to a path with `place` in it are spoilt.
    pub(crate) fn spoil_times(&self, place: &str, times: usize, fault: Fault) {
        self.state.rules.lock().unwrap().push(Rule {
            place: place.to_owned(),
            times,
            fault,
        });
    }

    /// No faults, and nothing seen.
    pub(crate) fn reset(&self) {
        self.state.rules.lock().unwrap().clear();
        self.state.seen.lock().unwrap().clear();
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

impl State {
    fn fault(&self, path: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules
            .iter_mut()
            .find(|rule| rule.times > 0 && path.contains(&rule.place))?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }
}

fn serve(state: &State, stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader)? {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        state.seen.lock().unwrap().push(Seen {
            path: path.clone(),
            head: head.clone(),
        });
        let answer = Answer::fetch(state.upstream, &head)?;
        let goes_on = match state.fault(&path) {
            None => answer.send(stream, Some(&answer.body.len().to_string()))?,
            Some(fault) => answer.spoil(stream, fault)?,
        };
        if !goes_on {
            // The client's bytes that we did not read must not turn our last ones into a reset.
            let _ = stream.shutdown(Shutdown::Write);
            break;
        }
    }
    Ok(())
}

fn read_head(reader: &mut impl std::io::BufRead) -> std::io::Result<Option<String>> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
        if head[before..].trim().is_empty() {
            return Ok(Some(head));
        }
    }
}

/// What the real registry says.
struct Answer {
    status: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl Answer {
    fn fetch(upstream: SocketAddr, head: &str) -> std::io::Result<Self> {
        let mut lines = head.lines();
        // HTTP/1.0: no chunks, and the end of the connection ends the body.
        let request = lines.next().unwrap_or_default().replace("HTTP/1.1", "HTTP/1.0");
        let headers = lines.filter(|line| !line.is_empty() && !is_named(line, "connection"));
        let mut upstream = TcpStream::connect(upstream)?;
        write!(upstream, "{request}\r\n")?;
        for header in headers {
            write!(upstream, "{header}\r\n")?;
        }
        write!(upstream, "\r\n")?;
        let mut reader = BufReader::new(upstream);
        let head = read_head(&mut reader)?.unwrap_or_default();
        let mut body = Vec::new();
        reader.read_to_end(&mut body)?;
        let mut lines = head.lines().filter(|line| !line.is_empty()).map(str::to_owned);
        Ok(Self {
            status: lines.next().unwrap_or_default().replace("HTTP/1.0", "HTTP/1.1"),
            headers: lines
                .filter(|line| !is_named(line, "content-length") && !is_named(line, "connection"))
                .collect(),
            body,
        })
    }

    fn send_head(&self, mut stream: impl Write, more: &[String]) -> std::io::Result<()> {
        let mut head = format!("{}\r\n", self.status);
        for header in self.headers.iter().chain(more) {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())
    }

    /// Sends everything; whether the connection is good for another request.
    fn send(&self, mut stream: &TcpStream, length: Option<&str>) -> std::io::Result<bool> {
        let header = length.map(|length| format!("Content-Length: {length}"));
        self.send_head(stream, header.as_slice())?;
        stream.write_all(&self.body)?;
        Ok(length == Some(&self.body.len().to_string()))
    }

    fn spoil(mut self, mut stream: &TcpStream, fault: Fault) -> std::io::Result<bool> {
        let length = format!("Content-Length: {}", self.body.len());
        match fault {
            Fault::Silence => wait_for_the_end_of(stream)?,
            Fault::StallAfterHead => {
                self.send_head(stream, &[length])?;
                wait_for_the_end_of(stream)?;
            }
            Fault::Drip(pause) => {
                self.send_head(stream, &[length])?;
                for byte in self.body {
                    stream.write_all(&[byte])?;
                    std::thread::sleep(pause);
                }
                return Ok(true);
            }
            Fault::Truncate(bytes) => {
                self.send_head(stream, &[length])?;
                stream.write_all(&self.body[..bytes])?;
            }
            Fault::HangUp => {}
            Fault::Flip(at) => {
                self.body[at] ^= 1;
                return self.send(stream, Some(&self.body.len().to_string()));
            }
            Fault::Length(text) => {
                self.send(stream, Some(text))?;
            }
            Fault::Chunked => {
                self.send_head(stream, &["Transfer-Encoding: chunked".to_owned()])?;
                for chunk in self.body.chunks(1000) {
                    write!(stream, "{:x}\r\n", chunk.len())?;
                    stream.write_all(chunk)?;
                    write!(stream, "\r\n")?;
                }
                write!(stream, "0\r\n\r\n")?;
                return Ok(true);
            }
            Fault::Unframed => {
                self.send(stream, None)?;
            }
            Fault::Encoded => {
                self.headers.push("Content-Encoding: gzip".to_owned());
                return self.send(stream, Some(&self.body.len().to_string()));
            }
            Fault::Body(body) => {
                self.body = body;
                return self.send(stream, Some(&self.body.len().to_string()));
            }
            Fault::BodyAs(media_type, body) => {
                let answer = Self {
                    status: "HTTP/1.1 200 OK".to_owned(),
                    headers: vec![format!("Content-Type: {media_type}")],
                    body,
                };
                return answer.send(stream, Some(&answer.body.len().to_string()));
            }
            Fault::Longer(bytes) => {
                self.body.resize(self.body.len() + bytes, 0);
                self.send(stream, None)?;
            }
            Fault::Status(status, headers) => {
                let body = br#"{"errors":[{"code":"UNKNOWN","message":"a fault"}]}"#.to_vec();
                let headers = headers
                    .into_iter()
                    .map(|(name, value)| format!("{name}: {value}"));
                let answer = Self {
                    status: format!("HTTP/1.1 {status} Fault"),
                    headers: headers.collect(),
                    body,
                };
                return answer.send(stream, Some(&answer.body.len().to_string()));
            }
        }
        Ok(false)
    }
}

/// Waits until the client closes.
fn wait_for_the_end_of(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut part = [0; 1024];
    while stream.read(&mut part)? > 0 {}
    Ok(())
}

fn is_named(line: &str, name: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(found, _)| found.eq_ignore_ascii_case(name))
}
