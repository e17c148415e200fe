//! Who gets in, who is turned away, and what is told of it, over HTTP.

use super::{FOREVER, FakeEngines, Inspector, begin, operate};
use crate::given::{Occupier, one_slot, wait_queued};
use crate::support::{CREDENTIAL, Reply, TestAdapter, eventually, read_reply};
use assay_fixtures::fake_engine::Action;
use nix::sys::signal::Signal;
use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A head that announces a body of 1 GiB, and nothing of the body.
fn announce(adapter: &TestAdapter, run: &str) -> TcpStream {
    let mut stream = adapter.connect();
    write!(
        stream,
        "POST /v1/catalog HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\n\
         X-KKRepo-Scanner-Credential: {CREDENTIAL}\r\nX-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\n\
         X-KKRepo-Expected-SHA256: {}\r\nX-KKRepo-Expected-Size: 1073741824\r\n\
         X-KKRepo-Max-Nested-Depth: 1\r\nContent-Length: 1073741824\r\n\r\n",
        "0".repeat(64),
    )
    .unwrap();
    stream
}

#[test]
fn who_does_not_get_in_is_told_before_the_body_is_read() {
    let engines = FakeEngines::new();
    let patience = Duration::from_secs(2);
    let adapter = one_slot(engines.setup())
        .with("admission_timeout", "2s")
        .with("retry_after_seconds", "7")
        .start();
    adapter.wait_ready();
    let running = Occupier::running(&adapter, &engines, "running");
    let started = Instant::now();
    let mut waits = announce(&adapter, "waits");
    wait_queued(&adapter);
    // One waits, so this one finds the queue full.
    let full = read_reply(&mut announce(&adapter, "full"));
    assert!(started.elapsed() < patience, "{:?}", started.elapsed());
    let late = read_reply(&mut waits);
    assert!(started.elapsed() >= patience, "{:?}", started.elapsed());
    for reply in [full, late] {
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (429, "SCANNER_CAPACITY_EXHAUSTED")
        );
        assert_eq!(reply.header("retry-after"), Some("7"));
    }
    let rejected = adapter.metrics().count("kkrepo_scanner_admission_rejected_total");
    assert_eq!(rejected, 2);
    running.end(&adapter);
    Inspector::of(&adapter, Some(&engines)).assert_nothing_left("two refusals");
}

#[test]
fn two_small_catalogs_run_together_whatever_their_limits() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    engines.scans_do([FOREVER]);
    // No limits in the head: what they could need at most does not fit twice into the default scratch budget.
    let streams: Vec<TcpStream> = (0..2)
        .map(|index| begin_as(&adapter, &index.to_string()))
        .collect();
    eventually("two at once", || {
        adapter.metrics().count("kkrepo_scanner_active") == 2
    });
    drop(streams);
    Inspector::of(&adapter, Some(&engines)).assert_nothing_left("two at once");
}

fn begin_as(adapter: &TestAdapter, run: &str) -> TcpStream {
    use sha2::{Digest as _, Sha256};
    const BODY: &[u8] = b"any";
    let mut stream = adapter.connect();
    write!(
        stream,
        "POST /v1/catalog HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         X-KKRepo-Scanner-Credential: {CREDENTIAL}\r\nX-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\n\
         X-KKRepo-Expected-SHA256: {}\r\nX-KKRepo-Expected-Size: 3\r\nContent-Length: 3\r\n\r\n",
        hex::encode(Sha256::digest(BODY)),
    )
    .unwrap();
    stream.write_all(BODY).unwrap();
    stream
}

#[test]
fn more_than_was_announced_is_not_stored_and_has_its_own_code() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    let wrong_size = [("x-kkrepo-expected-size", "4")];
    let reply = operate(&adapter, "catalog", &wrong_size);
    // The right hash with the wrong size, as the contract has it.
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (422, "INPUT_SIZE_MISMATCH")
    );
    let wrong_both = [wrong_size[0], ("x-kkrepo-expected-sha256", &"0".repeat(64))];
    let reply = operate(&adapter, "catalog", &wrong_both);
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (422, "INPUT_SHA256_MISMATCH")
    );
}

#[test]
fn a_run_id_is_active_once_and_its_key_is_in_the_log() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    engines.scans_stall();
    let stream = begin(&adapter, "catalog");
    engines.recorded();
    // The key says nothing of whether a run is active, and a strange one is no mistake.
    let key = format!("task:catalog:7 {}", "k".repeat(400));
    let twice = [("x-kkrepo-run-id", "begun"), ("idempotency-key", key.as_str())];
    let reply = operate(&adapter, "catalog", &twice);
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (409, "SCANNER_RUN_ALREADY_ACTIVE")
    );
    assert_eq!(reply.json()["retryable"], true);
    drop(stream);
    eventually("the key in the log", || {
        let log = adapter.log();
        log.contains("\"idempotency_key\":\"task:catalog:7 kkk") && !log.contains(&key)
    });
}

#[test]
fn a_shutdown_takes_no_new_connection_and_lets_runs_end() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    engines.scans_do_after_record([Action::Sleep(1500), Action::Default]);
    let reply: Reply = std::thread::scope(|scope| {
        let answer = scope.spawn(|| operate(&adapter, "match", &[]));
        engines.recorded();
        adapter.signal(Signal::SIGTERM);
        eventually("a listener that is closed", || {
            TcpStream::connect(adapter.address).is_err()
        });
        assert!(!answer.is_finished(), "it was refused while the run went on");
        answer.join().unwrap()
    });
    assert_eq!(reply.status, 200, "{}", reply.json());
    assert_eq!(adapter.exit_code(), Some(0));
}

#[test]
fn a_shutdown_ends_even_a_deaf_engine_within_its_bounds() {
    let engines = FakeEngines::new();
    let adapter = engines.setup().with("shutdown_grace", "200ms").start();
    adapter.wait_ready();
    engines.scans_do_after_record([Action::IgnoreTerm, FOREVER]);
    let started = Instant::now();
    let reply = std::thread::scope(|scope| {
        let answer = scope.spawn(|| operate(&adapter, "match", &[]));
        engines.recorded();
        adapter.signal(Signal::SIGTERM);
        answer.join().unwrap()
    });
    assert_eq!((reply.status, reply.code().as_str()), (503, "SCANNER_NOT_READY"));
    assert_eq!(adapter.exit_code(), Some(0));
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
}
