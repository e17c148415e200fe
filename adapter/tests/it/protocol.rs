//! How the listener treats clients that are unusual, slow or hostile.

use crate::support::{CREDENTIAL, Setup, TestAdapter, eventually, parse_reply, read_reply, run_id};
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

fn catalog_head(adapter: &TestAdapter, extra: &str) -> String {
    format!(
        "POST /v1/catalog HTTP/1.1\r\nHost: {}\r\nX-KKRepo-Scanner-Credential: {CREDENTIAL}\r\n\
         X-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {}\r\nX-KKRepo-Expected-SHA256: {}\r\n\
         X-KKRepo-Expected-Size: 3\r\n{extra}\r\n",
        adapter.address,
        run_id(),
        "0".repeat(64)
    )
}

#[test]
fn conflicting_lengths_are_refused_and_the_connection_ends() {
    let adapter = Setup::bare().start();
    for extra in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
    ] {
        let mut stream = adapter.connect();
        stream
            .write_all(catalog_head(&adapter, extra).as_bytes())
            .unwrap();
        stream.write_all(b"3\r\nabc\r\n0\r\n\r\n").unwrap();
        let reply = read_reply(&mut stream);
        assert_eq!(reply.status, 400, "{extra}");
    }
    let mut stream = adapter.connect();
    stream
        .write_all(b"GET /actuator/health/liveness HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut first = [0; 1024];
    let read = stream.read(&mut first).unwrap();
    assert_eq!(parse_reply(&first[..read]).status, 200);
    stream
        .write_all(catalog_head(&adapter, "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n").as_bytes())
        .unwrap();
    assert_eq!(
        read_reply(&mut stream).status,
        400,
        "also on a connection that was used before"
    );
}

#[test]
fn a_transfer_coding_other_than_chunked_is_refused_and_the_connection_ends() {
    let adapter = Setup::bare().start();
    for extra in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
    ] {
        let mut stream = adapter.connect();
        stream
            .write_all(catalog_head(&adapter, extra).as_bytes())
            .unwrap();
        stream.write_all(b"3\r\nabc\r\n0\r\n\r\n").unwrap();
        let reply = read_reply(&mut stream);
        assert_eq!(
            (reply.status, reply.code().as_str(), reply.header("connection")),
            (400, "SCANNER_REQUEST_INVALID", Some("close")),
            "{extra}"
        );
    }
    let mut stream = adapter.connect();
    stream
        .write_all(catalog_head(&adapter, "Transfer-Encoding: Chunked\r\nConnection: close\r\n").as_bytes())
        .unwrap();
    stream.write_all(b"3\r\nabc\r\n0\r\n\r\n").unwrap();
    assert_ne!(read_reply(&mut stream).code(), "SCANNER_REQUEST_INVALID");
}

#[test]
fn a_client_that_waits_for_100_gets_its_refusal_instead() {
    let adapter = Setup::bare().start();
    let mut stream = adapter.connect();
    let head = catalog_head(
        &adapter,
        "Expect: 100-continue\r\nContent-Length: 3000000000\r\nConnection: close\r\n",
    );
    stream
        .write_all(
            head.replace("X-KKRepo-API-Version: v1", "X-KKRepo-API-Version: v9")
                .as_bytes(),
        )
        .unwrap();
    let reply = read_reply(&mut stream);
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (400, "SCANNER_API_UNSUPPORTED")
    );
}

#[test]
fn an_upload_that_is_refused_early_still_gets_to_read_the_answer() {
    let adapter = Setup::bare().start();
    let body = vec![b'x'; 4 << 20];
    let reply = adapter.send(
        "POST",
        "/v1/catalog",
        &[("x-kkrepo-scanner-credential", "wrong")],
        &body,
    );
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (401, "SCANNER_UNAUTHORIZED")
    );
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}

#[test]
fn an_upgrade_offer_is_answered_in_http_1() {
    let adapter = Setup::bare().start();
    let offer = [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"),
        ("x-kkrepo-scanner-credential", CREDENTIAL),
    ];
    assert_eq!(adapter.send("GET", "/v1/capabilities", &offer, &[]).status, 200);
}

#[test]
fn a_head_of_32_kib_is_accepted_and_an_endless_one_is_not() {
    let adapter = Setup::bare().start();
    let long = "x".repeat(30 << 10);
    let headers = [
        ("x-kkrepo-scanner-credential", CREDENTIAL),
        ("x-padding", long.as_str()),
    ];
    assert_eq!(adapter.send("GET", "/v1/capabilities", &headers, &[]).status, 200);
    let endless = "x".repeat(1 << 20);
    let reply = adapter.send("GET", "/v1/capabilities", &[("x-padding", &endless)], &[]);
    assert_eq!(reply.status, 431);
}

#[test]
fn garbage_and_pipelined_garbage_do_not_disturb_others() {
    let adapter = Setup::bare().start();
    let mut stream = adapter.connect();
    stream
        .write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not http \r\n\r\n")
        .unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let mut stream = adapter.connect();
    stream
        .write_all(b"GET /actuator/health/liveness HTTP/1.1\r\nHost: a\r\n\r\n\0\0\0garbage\r\n\r\n")
        .unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(
        rest.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    assert_eq!(adapter.get("/v1/capabilities").status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let adapter = Setup::bare().start();
    let mut stream = adapter.connect();
    stream
        .write_all(
            b"GET /actuator/health/liveness HTTP/1.1\r\nHost: a\r\n\r\n\
              GET /nope HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let text = String::from_utf8(all).unwrap();
    assert!(
        text.find("200 OK").unwrap() < text.find("404 Not Found").unwrap(),
        "{text}"
    );
}

#[test]
fn a_slow_head_is_cut_off_and_an_idle_connection_later() {
    let adapter = Setup::bare()
        .with("header_timeout", "300ms")
        .with("idle_timeout", "1500ms")
        .start();
    let mut slow = adapter.connect();
    let mut idle = adapter.connect();
    slow.write_all(b"GET /v1/capab").unwrap();
    let started = Instant::now();
    assert_eq!(slow.read(&mut [0; 16]).unwrap_or(0), 0);
    let cut = started.elapsed();
    assert!(
        cut >= Duration::from_millis(250) && cut < Duration::from_millis(1200),
        "{cut:?}"
    );
    assert_eq!(idle.read(&mut [0; 16]).unwrap_or(0), 0);
    assert!(started.elapsed() >= Duration::from_millis(1400));
}

#[test]
fn a_half_closed_client_gets_its_quick_answer() {
    let adapter = Setup::bare().start();
    let mut stream = adapter.connect();
    stream
        .write_all(b"GET /actuator/health/liveness HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_reply(&mut stream).status, 200);
}

#[test]
fn a_thousand_idle_connections_leave_room_for_one_more() {
    let adapter = Setup::bare().start();
    let idle: Vec<_> = (0..1000).map(|_| adapter.connect()).collect();
    assert_eq!(adapter.get("/v1/capabilities").status, 200);
    drop(idle);
    assert_eq!(adapter.get("/v1/capabilities").status, 200);
}

#[test]
fn termination_ends_idle_connections_and_exits_cleanly() {
    let adapter = Setup::bare().start();
    let mut idle = adapter.connect();
    eventually("listening", || adapter.get("/v1/capabilities").status == 200);
    assert_eq!(adapter.stop(nix::sys::signal::Signal::SIGTERM), Some(0));
    assert_eq!(idle.read(&mut [0; 16]).unwrap_or(0), 0);
}

#[test]
fn the_credential_never_reaches_the_log() {
    let adapter = Setup::bare().start();
    adapter.get("/v1/readiness");
    adapter.catalog("JAR", b"abc", &[]);
    let log = adapter.log();
    assert!(log.contains("answered"), "debug lines are expected in {log}");
    assert!(!log.contains(CREDENTIAL));
}
