//! From a cancellation to the last process of its engine.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::bench::figure::{Figure, median, number};
use crate::bench::{catalog_head, with_adapter};
use crate::engines::Engines;
use crate::error::{Error, io as on_io, on};
use crate::http::sha256;
use crate::service::Options;

/// Cancellations of an engine that ends when it is asked to.
const POLITE_ROUNDS: usize = 20;
/// Cancellations of one that does not.
const DEAF_ROUNDS: usize = 5;
/// How long the adapter waits before it ends an engine by force, milliseconds.
const GRACE: f64 = 2000.0;
/// What may come on top of it.
const MARGIN: f64 = 100.0;
/// What is waited for at most.
const PATIENCE: Duration = Duration::from_secs(20);
const BODY: &[u8] = b"any bytes at all";

/// Cancels runs of both kinds of engine.
pub(super) fn measure(options: &Options, scratch: &Path) -> Result<Vec<Figure>, Error> {
    let polite = rounds(options, scratch, "polite", "exec sleep 600", POLITE_ROUNDS)?;
    let deaf = rounds(
        options,
        scratch,
        "deaf",
        "trap '' TERM; while :; do sleep 600; done",
        DEAF_ROUNDS,
    )?;
    let figure = |name: &str, times: &[f64], bound: f64| {
        let most = times.iter().copied().fold(0.0, f64::max);
        Figure::new(format!("execution.cancel.{name}"), median(times), "ms")
            .at_most(bound)
            .beside(format!("at most {} ms, {} runs", number(most), times.len()))
    };
    Ok(vec![
        figure("polite", &polite, MARGIN),
        figure("deaf", &deaf, GRACE + MARGIN),
    ])
}

/// Milliseconds of each cancellation.
fn rounds(
    options: &Options,
    scratch: &Path,
    name: &str,
    script: &str,
    rounds: usize,
) -> Result<Vec<f64>, Error> {
    let mut options = Options {
        engines: stand_in(&options.engines, &scratch.join(name), script)?,
        ..options.clone()
    };
    // The sandbox would keep a shell from its own parts; the cage around it is the same.
    options.settings.push(("SANDBOX", "off".to_owned()));
    with_adapter(&options, |adapter| {
        (0..rounds)
            .map(|round| {
                let run = format!("{name}-{round}");
                one(&options, adapter.id(), &run)
            })
            .collect()
    })
}

fn one(options: &Options, adapter: u32, run: &str) -> Result<f64, Error> {
    let mut stream = TcpStream::connect(options.listen).map_err(on_io("connect to the adapter"))?;
    let head = catalog_head(options, run, &sha256(BODY), BODY.len() as u64);
    stream
        .write_all(format!("{head}\r\n").as_bytes())
        .and_then(|()| stream.write_all(BODY))
        .map_err(on_io("send a request"))?;
    wait("an engine that sleeps", || sleeps(adapter))?;
    let mut cancel = TcpStream::connect(options.listen).map_err(on_io("connect to the adapter"))?;
    let request = format!(
        "POST /v1/runs/{run}/cancel HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         X-KKRepo-Scanner-Credential: {}\r\nX-KKRepo-API-Version: v1\r\nContent-Length: 0\r\n\r\n",
        options.listen, options.credential
    );
    let started = Instant::now();
    cancel
        .write_all(request.as_bytes())
        .map_err(on_io("send a cancellation"))?;
    wait("no process", || descendants(adapter).is_empty())?;
    let took = started.elapsed().as_secs_f64() * 1000.0;
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .map_err(on_io("read a response"))?;
    if !String::from_utf8_lossy(&answer).contains("SCANNER_INTERRUPTED") {
        return Err(Error::Unexpected {
            what: "the answer to a cancelled run",
            why: String::from_utf8_lossy(&answer).into_owned(),
        });
    }
    Ok(took)
}

fn wait(what: &'static str, holds: impl Fn() -> bool) -> Result<(), Error> {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > PATIENCE {
            return Err(Error::Unexpected {
                what,
                why: format!("not within {} s", PATIENCE.as_secs()),
            });
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// A Syft that does this instead of scanning.
fn stand_in(real: &Engines, directory: &Path, script: &str) -> Result<Engines, Error> {
    fs::create_dir_all(directory).map_err(on("create", directory))?;
    let path: PathBuf = directory.join("syft");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = scan ] || exec '{}' \"$@\"\n{script}\n",
        real.syft.display()
    );
    fs::write(&path, text).map_err(on("write", &path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(on("make executable", &path))?;
    Ok(Engines {
        syft: path,
        grype: real.grype.clone(),
    })
}

fn sleeps(adapter: u32) -> bool {
    let is_sleep = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "sleep")
    };
    descendants(adapter).iter().any(is_sleep)
}

/// Everything that descends from a process, the dead that nobody has waited for among it.
fn descendants(root: u32) -> Vec<u32> {
    let parent_of = |entry: fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let parent: u32 = stat
            .rsplit_once(')')?
            .1
            .split_ascii_whitespace()
            .nth(1)?
            .parse()
            .ok()?;
        Some((pid, parent))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let table: Vec<(u32, u32)> = entries.filter_map(parent_of).collect();
    let mut found = vec![root];
    let mut index = 0;
    while let Some(&parent) = found.get(index) {
        let children: Vec<u32> = table
            .iter()
            .filter(|(pid, of)| *of == parent && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        found.extend(children);
        index += 1;
    }
    found.split_off(1)
}
