//! From the last byte that the client has sent to the start of the engine.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use super::with_adapter;
use crate::bench::figure::{Figure, median, number};
use crate::engines::Engines;
use crate::error::{Error, io as on_io, on};
use crate::process;
use crate::service::Options;

/// Uploads of which the median is taken.
const ROUNDS: usize = 5;

/// Uploads the tar.gz of the passes as fast as loopback takes it.
pub(super) fn measure(options: &Options, scratch: &Path) -> Result<Vec<Figure>, Error> {
    let log = scratch.join("syft.starts");
    let options = Options {
        engines: noting(&options.engines, &log, &scratch.join("noting"))?,
        ..options.clone()
    };
    let body = scratch.join("gate.tar.gz");
    let sha256 = process::output(Command::new("sha256sum").arg(&body))?;
    let sha256 = sha256.split_whitespace().next().unwrap_or_default().to_owned();
    let mut waits = Vec::new();
    let mut uploads = Vec::new();
    with_adapter(&options, |_| {
        for _ in 0..ROUNDS {
            fs::write(&log, "").map_err(on("write", &log))?;
            let (sent, seconds) = upload(&options, &body, &sha256)?;
            let text = fs::read_to_string(&log).map_err(on("read", &log))?;
            let started: f64 = text.trim().parse().map_err(|_| Error::Unexpected {
                what: "the start of the engine",
                why: format!("{text:?}"),
            })?;
            waits.push((started - sent) * 1000.0);
            uploads.push(seconds);
        }
        Ok(())
    })?;
    let beside = format!("the upload took {} s", number(median(&uploads)));
    Ok(vec![
        Figure::new("gate.tar.gz.last_byte_to_engine", median(&waits), "ms")
            .at_most(20.0)
            .beside(beside),
    ])
}

/// A Syft that notes when it scans, and then becomes the real one.
fn noting(real: &Engines, log: &Path, directory: &Path) -> Result<Engines, Error> {
    fs::create_dir_all(directory).map_err(on("create", directory))?;
    let path: PathBuf = directory.join("syft");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = scan ] && date +%s.%N >> '{}'\nexec '{}' \"$@\"\n",
        log.display(),
        real.syft.display()
    );
    fs::write(&path, text).map_err(on("write", &path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(on("make executable", &path))?;
    Ok(Engines {
        syft: path,
        grype: real.grype.clone(),
    })
}

/// When the last byte was sent (seconds since 1970), and how long all of them took.
fn upload(options: &Options, body: &Path, sha256: &str) -> Result<(f64, f64), Error> {
    let mut file = File::open(body).map_err(on("open", body))?;
    let size = file.metadata().map_err(on("read", body))?.len();
    let run = uuid::Uuid::new_v4();
    let (listen, credential) = (options.listen, &options.credential);
    let head = format!(
        "POST /v1/catalog HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\
         X-KKRepo-Scanner-Credential: {credential}\r\nX-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\n\
         X-KKRepo-Expected-SHA256: {sha256}\r\nX-KKRepo-Expected-Size: {size}\r\nX-KKRepo-Artifact-Type: TAR_GZ\r\n\
         X-KKRepo-Max-Uncompressed-Bytes: 4294967296\r\nContent-Length: {size}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(listen).map_err(on_io("connect to the adapter"))?;
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
