//! Readiness requests per second over kept-alive connections.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::figure::{Figure, number};
use super::raw::Connection;
use crate::error::Error;

/// Connections at once, as the peer was measured with.
const CONNECTIONS: usize = 16;
/// How long all of them ask as fast as they can.
const DURATION: Duration = Duration::from_secs(5);

/// Asks from all connections at once for the whole duration.
pub(crate) fn measure(address: SocketAddr, credential: &str) -> Result<Vec<Figure>, Error> {
    let head = format!(
        "GET /v1/readiness HTTP/1.1\r\nHost: {address}\r\nX-KKRepo-Scanner-Credential: {credential}\r\n\r\n"
    );
    let start = Instant::now();
    let answers = thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| scope.spawn(|| ask(address, &head, start)))
            .collect();
        clients
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|_| Err(refused("a client panicked".to_owned())))
            })
            .collect::<Result<Vec<_>, Error>>()
    })?;
    let elapsed = start.elapsed().as_secs_f64();
    let mut micros: Vec<u128> = answers.into_iter().flatten().collect();
    micros.sort_unstable();
    let per_second = count(micros.len()) / elapsed;
    let at = |share: usize| {
        micros.get(micros.len() * share / 100).map_or(0.0, |&micros| {
            count(usize::try_from(micros).unwrap_or(usize::MAX)) / 1000.0
        })
    };
    let shape = format!("{CONNECTIONS} connections, p50 {} ms", number(at(50)));
    Ok(vec![
        Figure::new("adapter.readiness.per_second", per_second, "1/s").beside(shape),
        Figure::new("adapter.readiness.p99", at(99), "ms"),
    ])
}

fn ask(address: SocketAddr, head: &str, start: Instant) -> Result<Vec<u128>, Error> {
    let mut connection = Connection::open(address)?;
    let mut times = Vec::new();
    while start.elapsed() < DURATION {
        let sent = Instant::now();
        let status = connection.exchange(head, None)?;
        if status != 200 {
            return Err(refused(format!("status {status}")));
        }
        times.push(sent.elapsed().as_micros());
    }
    Ok(times)
}

fn refused(why: String) -> Error {
    Error::Unexpected {
        what: "a readiness answer",
        why,
    }
}

/// Counts here are far below 2^52, where `f64` still knows every integer.
fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}
