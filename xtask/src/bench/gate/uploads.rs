//! From the last byte that the adapter has received to the start of the engine.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::bench::figure::{Figure, median, number};
use crate::bench::{catalog_head, with_adapter};
use crate::error::{Error, io as on_io, on};
use crate::process;
use crate::service::Options;

/// Uploads of which the median is taken.
const ROUNDS: usize = 5;

/// Between two looks at log and processes.
const LOOK: Duration = Duration::from_millis(1);
/// The adapter's note, at the level `debug`.
const RECEIVED: &str = "the input is here";

/// Uploads the tar.gz of the passes as fast as loopback takes it.
pub(super) fn measure(options: &Options, scratch: &Path) -> Result<Vec<Figure>, Error> {
    let engine = fs::canonicalize(&options.engines.syft).map_err(on("find", &options.engines.syft))?;
    let body = scratch.join("gate.tar.gz");
    let sha256 = process::output(Command::new("sha256sum").arg(&body))?;
    let sha256 = sha256.split_whitespace().next().unwrap_or_default().to_owned();
    let (mut waits, mut since_sent, mut uploads) = (Vec::new(), Vec::new(), Vec::new());
    let log = scratch.join("adapter.log");
    let options = &Options {
        log: Some(log.clone()),
        settings: vec![("LOG_LEVEL", "debug".to_owned())],
        ..options.clone()
    };
    with_adapter(options, |_| {
        for _ in 0..ROUNDS {
            let done = AtomicBool::new(false);
            let (uploaded, moments) = thread::scope(|scope| {
                let watcher = scope.spawn(|| watch(&engine, &log, &done));
                let uploaded = upload(options, &body, &sha256);
                done.store(true, Ordering::Relaxed);
                (uploaded, watcher.join().unwrap_or_default())
            });
            let (sent, seconds) = uploaded?;
            let (Some(received), Some(started)) = (moments.received, moments.started) else {
                return Err(Error::Unexpected {
                    what: "the start of the engine",
                    why: format!("it was not seen: {moments:?}"),
                });
            };
            waits.push((started - received) * 1000.0);
            since_sent.push((started - sent) * 1000.0);
            uploads.push(seconds);
        }
        Ok(())
    })?;
    let beside = format!(
        "the upload took {} s; after the client's last write {} ms, which includes what the sockets hold",
        number(median(&uploads)),
        number(median(&since_sent))
    );
    Ok(vec![
        Figure::new("gate.tar.gz.last_byte_to_engine", median(&waits), "ms")
            .at_most(20.0)
            .beside(beside),
    ])
}

/// When things happened, seconds since 1970.
#[derive(Debug, Default)]
struct Moments {
    /// The adapter had the last byte.
    received: Option<f64>,
    /// The engine ran.
    started: Option<f64>,
}

/// Watches until `done` for the adapter's note that it has the whole input, and for the scan of `engine`.
///
/// It asks the process list, so the engine that runs is the real one in its sandbox.
fn watch(engine: &Path, log: &Path, done: &AtomicBool) -> Moments {
    let notes = || fs::read_to_string(log).map_or(0, |log| log.matches(RECEIVED).count());
    let before = notes();
    let mut moments = Moments::default();
    while !done.load(Ordering::Relaxed) && moments.started.is_none() {
        let now = now();
        if moments.received.is_none() && notes() > before {
            moments.received = Some(now);
        }
        if is_scanning(engine) {
            moments.started = Some(now);
        }
        thread::sleep(LOOK);
    }
    moments
}

/// Whether a process is `engine` and was told to scan.
fn is_scanning(engine: &Path) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.map(|process| process.path()).any(|process| {
        fs::read_link(process.join("exe")).is_ok_and(|program| program == engine)
            && fs::read(process.join("cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"scan"))
    })
}

/// When the last byte was sent (seconds since 1970), and how long all of them took.
fn upload(options: &Options, body: &Path, sha256: &str) -> Result<(f64, f64), Error> {
    let mut file = File::open(body).map_err(on("open", body))?;
    let size = file.metadata().map_err(on("read", body))?.len();
    let run = uuid::Uuid::new_v4().to_string();
    let head = catalog_head(options, &run, sha256, size)
        + "X-KKRepo-Artifact-Type: TAR_GZ\r\nX-KKRepo-Max-Uncompressed-Bytes: 4294967296\r\n\r\n";
    let mut stream = TcpStream::connect(options.listen).map_err(on_io("connect to the adapter"))?;
    stream
        .write_all(head.as_bytes())
        .map_err(on_io("send a request"))?;
    let begun = now();
    io::copy(&mut file, &mut stream).map_err(on_io("send a body"))?;
    let sent = now();
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .map_err(on_io("read a response"))?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(Error::Unexpected {
            what: "the answer to an upload",
            why: String::from_utf8_lossy(answer.get(..300).unwrap_or(&answer)).into_owned(),
        });
    }
    Ok((sent, sent - begun))
}

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}
