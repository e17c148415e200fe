//! HTTP/1.1 over a bare socket, for load and for large bodies.
//!
//! A measuring client must cost next to nothing on the machine that it shares with the service: a file goes to the
//! socket inside the kernel (`std::io::copy` uses `sendfile`), and a request is one write and a few reads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::error::{Error, io as on_io};

/// Most bytes of a response head; ours have a few hundred.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// No single read or write of a measurement may take longer.
const IDLE: Duration = Duration::from_mins(5);

/// A kept-alive connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Opens one.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address).map_err(on_io("connect to the adapter"))?;
        stream.set_nodelay(true).map_err(on_io("set up a connection"))?;
        stream
            .set_read_timeout(Some(IDLE))
            .map_err(on_io("set up a connection"))?;
        stream
            .set_write_timeout(Some(IDLE))
            .map_err(on_io("set up a connection"))?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(MAX_HEAD_BYTES),
        })
    }

    /// Sends a head (with its final empty line) and, after it, a file; gives the status once the body was read.
    pub(crate) fn exchange(&mut self, head: &str, body: Option<&mut File>) -> Result<u16, Error> {
        self.stream
            .write_all(head.as_bytes())
            .map_err(on_io("send a request"))?;
        if let Some(body) = body {
            match io::copy(body, &mut self.stream) {
                // An early refusal closes our direction; the answer is there to be read all the same.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                other => drop(other.map_err(on_io("send a body"))?),
            }
        }
        self.response()
    }

    fn response(&mut self) -> Result<u16, Error> {
        self.buffer.clear();
        let head_end = loop {
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if self.buffer.len() > MAX_HEAD_BYTES {
                return Err(unexpected("its head does not end"));
            }
            self.fill()?;
        };
        let head = String::from_utf8_lossy(self.buffer.get(..head_end).unwrap_or_default()).into_owned();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| unexpected("no status"))?;
        let length = content_length(&head).ok_or_else(|| unexpected("no Content-Length"))?;
        while self.buffer.len() < head_end.saturating_add(length) {
            self.fill()?;
        }
        Ok(status)
    }

    fn fill(&mut self) -> Result<(), Error> {
        let mut part = [0_u8; 4096];
        let read = self.stream.read(&mut part).map_err(on_io("read a response"))?;
        if read == 0 {
            return Err(unexpected("the connection ended inside it"));
        }
        self.buffer
            .extend_from_slice(part.get(..read).unwrap_or_default());
        Ok(())
    }
}

fn unexpected(why: &str) -> Error {
    Error::Unexpected {
        what: "a response of the adapter",
        why: why.to_owned(),
    }
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") {
            value.trim().parse().ok()
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_found_in_any_case() {
        assert_eq!(
            content_length("HTTP/1.1 200 OK\r\ncontent-LENGTH: 12\r\n\r\n"),
            Some(12)
        );
        assert_eq!(content_length("HTTP/1.1 200 OK\r\nx: 12\r\n\r\n"), None);
    }

    #[test]
    fn two_exchanges_on_one_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4];
            for answer in [
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n",
            ] {
                stream.read_exact(&mut request).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut connection = Connection::open(address).unwrap();
        assert_eq!(connection.exchange("abcd", None).unwrap(), 200);
        assert_eq!(connection.exchange("abcd", None).unwrap(), 503);
        assert!(connection.exchange("abcd", None).is_err());
        server.join().unwrap();
    }
}
