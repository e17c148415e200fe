//! A 1 GiB body: memory of the service while it comes in, and speed against `sha256sum`.

use std::fs::{self, File};
use std::io::{BufWriter, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::figure::{Figure, median, number};
use super::raw::Connection;
use crate::error::{Error, on};
use crate::process;
use crate::service::Adapter;

/// Size of the body.
const BYTES: u64 = 1 << 30;
/// Uploads and runs of `sha256sum`, in turns.
const ROUNDS: usize = 5;
/// Neither a real digest nor one that any file of ours has: the request ends right after hashing.
const WRONG_SHA256: &str = "00000000000000000000000000000000000000000000000000000000000000aa";

/// Writes a file of pseudo-random bytes, unless it is there.
pub(crate) fn make(path: &Path) -> Result<(), Error> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() == BYTES) {
        return Ok(());
    }
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(on("create", path))?);
    // xorshift64: nothing that a file system or a detector of archives would take for something else.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..BYTES / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        file.write_all(&state.to_le_bytes()).map_err(on("write", path))?;
    }
    file.flush().map_err(on("write", path))
}

/// Measures on a service that did nothing else before.
pub(crate) fn measure(
    adapter: &Adapter,
    address: SocketAddr,
    credential: &str,
    path: &Path,
) -> Result<Vec<Figure>, Error> {
    let idle = memory_kib(adapter.id(), "VmRSS")? / 1024.0;
    let mut uploads = Vec::new();
    let mut sums = Vec::new();
    let mut digest = String::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        digest = sha256sum(path)?;
        sums.push(start.elapsed().as_secs_f64());
        uploads.push(upload(address, credential, path, WRONG_SHA256, 422)?);
    }
    let during = memory_kib(adapter.id(), "VmHWM")? / 1024.0;
    let ratio: Vec<f64> = sums
        .iter()
        .zip(&uploads)
        .map(|(sum, upload)| sum / upload)
        .collect();

    // The same once more with the right digest: through the gate and the engine.
    let whole = upload(address, credential, path, &digest, 200)?;
    let peak = memory_kib(adapter.id(), "VmHWM")? / 1024.0;

    let speed = format!(
        "sha256sum {} s, upload {} s for 1 GiB",
        number(median(&sums)),
        number(median(&uploads))
    );
    Ok(vec![
        Figure::new("adapter.rss.idle", idle, "MiB").at_most(25.0),
        Figure::new("adapter.rss.peak_upload_1gib", during, "MiB").at_most(48.0),
        Figure::new("adapter.rss.peak_catalog_1gib", peak, "MiB")
            .at_most(48.0)
            .beside(format!("whole request {} s", number(whole))),
        Figure::new("adapter.upload.speed_vs_sha256sum", median(&ratio), "x")
            .at_least(0.8)
            .beside(speed),
    ])
}

/// Seconds from the first byte sent to the last byte answered.
fn upload(
    address: SocketAddr,
    credential: &str,
    path: &Path,
    sha256: &str,
    expected: u16,
) -> Result<f64, Error> {
    let mut file = File::open(path).map_err(on("open", path))?;
    file.rewind().map_err(on("rewind", path))?;
    let run = uuid::Uuid::new_v4();
    let head = format!(
        "POST /v1/catalog HTTP/1.1\r\nHost: {address}\r\nX-KKRepo-Scanner-Credential: {credential}\r\n\
         X-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\nX-KKRepo-Expected-SHA256: {sha256}\r\n\
         X-KKRepo-Expected-Size: {BYTES}\r\nX-KKRepo-Artifact-Type: UNKNOWN\r\nContent-Length: {BYTES}\r\n\r\n"
    );
    let start = Instant::now();
    let status = Connection::open(address)?.exchange(&head, Some(&mut file))?;
    let seconds = start.elapsed().as_secs_f64();
    if status == expected {
        Ok(seconds)
    } else {
        Err(Error::Unexpected {
            what: "the answer to a 1 GiB upload",
            why: format!("{status}, not {expected}"),
        })
    }
}

fn sha256sum(path: &Path) -> Result<String, Error> {
    let line = process::output(Command::new("sha256sum").arg(path))?;
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}

/// A memory line of `/proc/<id>/status`, in KiB.
pub(crate) fn memory_kib(id: u32, name: &str) -> Result<f64, Error> {
    let path = Path::new("/proc").join(id.to_string()).join("status");
    let text = fs::read_to_string(&path).map_err(on("read", &path))?;
    status_value(&text, name).ok_or_else(|| Error::Unexpected {
        what: "the memory of the adapter",
        why: format!("no {name}"),
    })
}

fn status_value(status: &str, name: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_its_own_line() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert!((status_value(status, "VmHWM").unwrap() - 2048.0).abs() < f64::EPSILON);
        assert!(status_value(status, "Vm").is_none());
    }

    #[test]
    fn our_own_memory_is_more_than_nothing() {
        assert!(memory_kib(std::process::id(), "VmRSS").unwrap() > 100.0);
    }
}
