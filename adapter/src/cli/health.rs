//! `health`: liveness or readiness of an adapter on this machine, for health checks without a shell.

use crate::config::Config;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

/// Exit codes: 0 when the answer is 200, 1 otherwise.
pub fn main(config: &Config, ready: bool) -> ExitCode {
    let address = match config.http.address {
        address if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        address => address,
    };
    let path = if ready {
        "/actuator/health/readiness"
    } else {
        "/actuator/health/liveness"
    };
    match status(SocketAddr::new(address, config.http.port), path) {
        Ok(200) => ExitCode::SUCCESS,
        Ok(status) => {
            eprintln!("assay-adapter: {path} answered {status}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("assay-adapter: {path} cannot be asked: {error}");
            ExitCode::FAILURE
        }
    }
}

fn status(address: SocketAddr, path: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut head = Vec::new();
    stream.take(4096).read_to_end(&mut head)?;
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(&head).map_err(io::Error::other)?;
    response.code.ok_or_else(|| io::Error::other("no status line"))
}
