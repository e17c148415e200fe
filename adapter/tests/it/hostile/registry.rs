//! A registry of one image, with the faults that the image says.

use assay_fixtures::hostile::{Fault, Image};
use std::io::{self, BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct State {
    image: Image,
    token: String,
    asked_without_token: AtomicBool,
    closed: AtomicBool,
}

/// Serves until it is dropped.
pub(super) struct Registry {
    address: std::net::SocketAddr,
    state: Arc<State>,
}

impl Registry {
    /// Serves this image under any repository name to who shows the token.
    pub(super) fn serve(image: Image, token: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            image,
            token: token.to_owned(),
            asked_without_token: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        std::thread::spawn({
            let state = Arc::clone(&state);
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if state.closed.load(Ordering::SeqCst) {
                        break;
                    }
                    let state = Arc::clone(&state);
                    // A client that goes away is part of several cases.
                    std::thread::spawn(move || drop(answer_all(&stream, &state)));
                }
            }
        });
        Self { address, state }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn token(&self) -> &str {
        &self.state.token
    }

    pub(super) fn was_asked_without_token(&self) -> bool {
        self.state.asked_without_token.load(Ordering::SeqCst)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        // Wakes the listener, which then ends.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers requests on one connection until it closes.
fn answer_all(stream: &TcpStream, state: &State) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut out = stream;
    while let Some(request) = lines.next().transpose()? {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut token = None;
        for line in lines.by_ref() {
            let line = line?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("authorization")
            {
                token = value.strip_prefix("Bearer ").map(ToOwned::to_owned);
            }
        }
        if token.as_deref() != Some(state.token.as_str()) {
            state.asked_without_token.store(true, Ordering::SeqCst);
            status(&mut out, 401)?;
            continue;
        }
        if !answer(&mut out, &path, &state.image)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers one request; whether the connection can be used again.
fn answer(out: &mut impl Write, path: &str, image: &Image) -> io::Result<bool> {
    let mut words = path.rsplit('/');
    let (digest, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let fault = image.faults.get(digest);
    if let Some(Fault::Status(code)) = fault {
        status(out, *code)?;
        return Ok(true);
    }
    let stored = image
        .content
        .get(digest)
        .filter(|stored| stored.is_manifest == (kind == "manifests"));
    let Some(stored) = stored else {
        status(out, 404)?;
        return Ok(true);
    };
    let media_type = &stored.media_type;
    write!(out, "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n")?;
    match fault {
        Some(Fault::Append(bytes)) => {
            out.write_all(b"Connection: close\r\n\r\n")?;
            out.write_all(&stored.bytes)?;
            io::copy(&mut io::Read::take(io::repeat(0), *bytes), out)?;
            Ok(false)
        }
        Some(Fault::Stall(seconds)) => {
            write!(out, "Content-Length: {}\r\n\r\n", stored.bytes.len())?;
            out.write_all(&stored.bytes[..stored.bytes.len() / 2])?;
            std::thread::sleep(Duration::from_secs(*seconds));
            Ok(false)
        }
        _ => {
            write!(out, "Content-Length: {}\r\n\r\n", stored.bytes.len())?;
            out.write_all(&stored.bytes)?;
            Ok(true)
        }
    }
}

fn status(out: &mut impl Write, code: u16) -> io::Result<()> {
    let body = r#"{"errors":[{"code":"UNKNOWN"}]}"#;
    let length = body.len();
    write!(
        out,
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}
