//! How punctually those are turned away who wait in vain.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::bench::figure::{Figure, number};
use crate::bench::{catalog_head, with_adapter};
use crate::error::{Error, io as on_io};
use crate::service::Options;

/// Clients that wait at once.
const CLIENTS: usize = 1000;
/// How long each of them may wait, milliseconds.
const TIMEOUT: f64 = 1000.0;
/// What an answer may come later.
const MARGIN: f64 = 20.0;
/// Bytes that are announced and never sent.
const ANNOUNCED: u64 = 1 << 20;

/// One slot, taken by an upload that does not go on, and all clients in the queue.
pub(super) fn measure(options: &Options) -> Result<Vec<Figure>, Error> {
    let mut options = options.clone();
    options.settings.extend([
        ("MAX_CONCURRENT_SCANS", "1".to_owned()),
        ("MAX_QUEUED_SCANS", "1024".to_owned()),
        ("ADMISSION_TIMEOUT", "1s".to_owned()),
    ]);
    let mut waits = with_adapter(&options, |_| refuse(&options))?;
    waits.sort_by(f64::total_cmp);
    let at = |share: usize| waits.get(waits.len() * share / 100).copied().unwrap_or_default();
    let most = waits.last().copied().unwrap_or_default();
    Ok(vec![
        Figure::new("execution.refusal.last", most, "ms")
            .at_most(TIMEOUT + MARGIN)
            .beside(format!(
                "{CLIENTS} clients wait, p50 {} ms, p99 {} ms",
                number(at(50)),
                number(at(99))
            )),
    ])
}

/// Milliseconds from each request to its refusal.
fn refuse(options: &Options) -> Result<Vec<f64>, Error> {
    let hash = "0".repeat(64);
    let open = || TcpStream::connect(options.listen).map_err(on_io("connect to the adapter"));
    let ask = |stream: &mut TcpStream, run: &str| {
        let head = catalog_head(options, run, &hash, ANNOUNCED);
        stream
            .write_all(format!("{head}Expect: 100-continue\r\n\r\n").as_bytes())
            .map_err(on_io("send a request"))
    };
    let mut occupier = open()?;
    ask(&mut occupier, "occupier")?;
    // The invitation to send its body says that it has the slot.
    occupier
        .read_exact(&mut [0; 12])
        .map_err(on_io("read a response"))?;
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| open()).collect::<Result<_, _>>()?;
    let mut asked = Vec::new();
    for (number, client) in clients.iter_mut().enumerate() {
        asked.push(Instant::now());
        ask(client, &format!("waits-{number}"))?;
    }
    let mut waits = vec![None; CLIENTS];
    while waits.iter().any(Option::is_none) {
        let open: Vec<usize> = (0..CLIENTS)
            .filter(|index| waits.get(*index).is_some_and(Option::is_none))
            .collect();
        let ready = readable(&clients, &open)?;
        let now = Instant::now();
        if ready.is_empty() {
            return Err(Error::Unexpected {
                what: "refusals",
                why: format!("{} clients got none", open.len()),
            });
        }
        for index in ready {
            if let (Some(wait), Some(asked)) = (waits.get_mut(index), asked.get(index)) {
                *wait = Some((now - *asked).as_secs_f64() * 1000.0);
            }
        }
    }
    for client in &mut clients {
        let mut answer = [0; 12];
        client.read_exact(&mut answer).map_err(on_io("read a response"))?;
        if &answer != b"HTTP/1.1 429" {
            return Err(Error::Unexpected {
                what: "a refusal",
                why: String::from_utf8_lossy(&answer).into_owned(),
            });
        }
    }
    Ok(waits.into_iter().flatten().collect())
}

/// Which of the clients have something to read; none after ten seconds of silence.
fn readable(clients: &[TcpStream], which: &[usize]) -> Result<Vec<usize>, Error> {
    let mut polled: Vec<PollFd<'_>> = which
        .iter()
        .filter_map(|index| clients.get(*index))
        .map(|client| PollFd::new(client.as_fd(), PollFlags::POLLIN))
        .collect();
    let patience = PollTimeout::try_from(Duration::from_secs(10)).unwrap_or(PollTimeout::MAX);
    poll(&mut polled, patience).map_err(|errno| on_io("wait for responses")(errno.into()))?;
    let ready = which
        .iter()
        .zip(&polled)
        .filter(|(_, polled)| polled.any().unwrap_or(false))
        .map(|(index, _)| *index);
    Ok(ready.collect())
}
