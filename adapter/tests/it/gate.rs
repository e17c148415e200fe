//! Inspection while the body is still arriving: what it changes, and what it must not change.

use crate::fake::FakeEngines;
use crate::support::{CREDENTIAL, Reply, TestAdapter, eventually, read_reply, run_id};
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// A tar of these files, the last of which is large enough to be sent in parts.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, data) in files {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(data.len().try_into().unwrap());
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Far more than any buffer on the way holds.
fn filler() -> Vec<u8> {
    (0..16u32 << 20).map(|n| (n % 251) as u8).collect()
}

fn legal() -> Vec<u8> {
    tar(&[("a/go.mod", b"module example.org/a\n"), ("a/filler", &filler())])
}

fn escaping() -> Vec<u8> {
    tar(&[("../a", b"x"), ("filler", &filler())])
}

/// An upload of which the head is sent.
struct Upload {
    stream: TcpStream,
    run: String,
}

impl Upload {
    fn begin(adapter: &TestAdapter, body: &[u8], length: usize, change: &str) -> Self {
        let run = run_id();
        let mut stream = adapter.connect();
        write!(
            stream,
            "POST /v1/catalog HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-KKRepo-Scanner-Credential: {CREDENTIAL}\r\n\
             X-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\nX-KKRepo-Expected-SHA256: {}\r\n\
             X-KKRepo-Expected-Size: {}\r\nX-KKRepo-Artifact-Type: TAR\r\nContent-Length: {length}\r\n{change}\r\n",
            hex::encode(Sha256::digest(body)),
            body.len(),
        )
        .unwrap();
        Self { stream, run }
    }

    /// Sends on; an adapter that answered early may not want it any more.
    fn send(&mut self, part: &[u8]) {
        let _ = self.stream.write_all(part);
    }

    fn reply(mut self) -> Reply {
        read_reply(&mut self.stream)
    }
}

fn assert_code(reply: &Reply, code: &str) {
    assert_eq!(reply.code(), code, "{}", String::from_utf8_lossy(&reply.bytes));
}

fn assert_clean(adapter: &TestAdapter) {
    eventually("no run and no directory", || {
        adapter.metric("kkrepo_scanner_active") == 0.0 && adapter.run_directories().is_empty()
    });
}

fn is_laid_out(adapter: &TestAdapter, name: &str) -> bool {
    let mut runs = adapter.run_directories().into_iter();
    runs.any(|run| adapter.scratch().join(run).join("layout").join(name).exists())
}

#[test]
fn entries_are_seen_before_the_last_byte_is_sent() {
    let adapter = FakeEngines::new();
    let adapter = (adapter.start(), adapter);
    let body = legal();
    let mut upload = Upload::begin(&adapter.0, &body, body.len(), "");
    let (first, rest) = body.split_at(64 << 10);
    upload.send(first);
    eventually("a laid out file", || is_laid_out(&adapter.0, "a/go.mod"));
    upload.send(rest);
    let reply = upload.reply();
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.bytes));
    assert_eq!(reply.json()["summary"]["archiveEntries"], 2);
    assert_clean(&adapter.0);
}

#[test]
fn what_the_gate_finds_on_the_way_does_not_hide_that_the_input_is_another_one() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    let (hostile, harmless) = (escaping(), legal());
    let answer = |announced: &[u8], length: usize, sent: &[u8]| {
        let mut upload = Upload::begin(&adapter, announced, length, "");
        upload.send(sent);
        upload.reply()
    };
    let reply = answer(&hostile, hostile.len(), &hostile);
    assert_eq!(reply.status, 422);
    assert_code(&reply, "ARCHIVE_PATH_ESCAPE");
    assert_code(
        &answer(&harmless, hostile.len(), &hostile),
        "INPUT_SHA256_MISMATCH",
    );
    // The right bytes, but announced as one more: their digest is another one too.
    let mut longer = hostile.clone();
    longer.push(0);
    assert_code(&answer(&longer, hostile.len(), &hostile), "INPUT_SHA256_MISMATCH");
    assert_code(&answer(&hostile, longer.len(), &longer), "INPUT_SHA256_MISMATCH");
    // The right digest with a wrong size.
    for wrong in [hostile.len() - 600, hostile.len() + 600] {
        let sha256 = hex::encode(Sha256::digest(&hostile));
        let size = wrong.to_string();
        let change = [
            ("x-kkrepo-expected-sha256", sha256.as_str()),
            ("x-kkrepo-expected-size", size.as_str()),
        ];
        assert_code(&adapter.catalog("TAR", &hostile, &change), "INPUT_SIZE_MISMATCH");
    }
    assert_clean(&adapter);
}

#[test]
fn an_upload_that_breaks_off_or_falls_silent_is_an_input_error_and_leaves_nothing() {
    let engines = FakeEngines::new();
    let adapter = engines.setup().with("body_timeout", "1s").start();
    adapter.wait_ready();
    for body in [legal(), escaping()] {
        let mut silent = Upload::begin(&adapter, &body, body.len(), "");
        silent.send(&body[..3 << 20]);
        assert_code(&silent.reply(), "INPUT_IO");
        assert_clean(&adapter);

        let mut broken = Upload::begin(&adapter, &body, body.len(), "");
        broken.send(&body[..3 << 20]);
        broken.stream.shutdown(Shutdown::Write).unwrap();
        drop(broken);
        assert_clean(&adapter);
    }
}

#[test]
fn cancel_and_deadline_end_an_upload_and_its_inspection_at_once() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    let body = legal();
    let mut upload = Upload::begin(&adapter, &body, body.len(), "");
    upload.send(&body[..3 << 20]);
    eventually("a laid out file", || is_laid_out(&adapter, "a/go.mod"));
    let started = Instant::now();
    assert!(adapter.cancel(&upload.run));
    assert_clean(&adapter);
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    assert_code(&upload.reply(), "SCANNER_INTERRUPTED");

    let started = Instant::now();
    let mut upload = Upload::begin(&adapter, &body, body.len(), "X-KKRepo-Timeout-Seconds: 1\r\n");
    upload.send(&body[..3 << 20]);
    eventually("a laid out file", || is_laid_out(&adapter, "a/go.mod"));
    assert_clean(&adapter);
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_code(&upload.reply(), "SCANNER_TIMEOUT");
}
