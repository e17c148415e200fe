//! Sources that misbehave.

use super::lifecycle::Served;
use super::{Site, built, ending, shown};
use assay_adapter::vulndb::export::{self, Format};
use sha2::{Digest as _, Sha256};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How the archive is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Nothing but this status.
    Status(u16),
    /// Half of the archive, and the connection ends.
    Truncated,
    /// A byte now and then.
    Drip,
    /// The archive is not the promised one.
    Lie,
    /// An archive without a database in it.
    Garbage,
}

/// A distribution with a fault.
struct Faulty {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Faulty {
    fn new(fault: Fault, hours_ago: i64) -> Self {
        let root = tempfile::tempdir().unwrap();
        let archive = archive(root.path(), hours_ago, fault == Fault::Garbage);
        let promised = if fault == Fault::Lie {
            "0".repeat(64)
        } else {
            hex::encode(Sha256::digest(&archive))
        };
        let latest = format!(
            r#"{{"status":"active","schemaVersion":"v6.1.10","built":"{}","path":"a.tar.gz","checksum":"sha256:{promised}"}}"#,
            built(hours_ago)
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        std::thread::spawn({
            let asked = Arc::clone(&asked);
            move || {
                for stream in listener.incoming() {
                    let (latest, archive, asked) = (latest.clone(), archive.clone(), Arc::clone(&asked));
                    std::thread::spawn(move || {
                        asked.fetch_add(1, Ordering::Relaxed);
                        // The other side may go at any time.
                        let _ = answer(stream?, fault, latest.as_bytes(), &archive);
                        std::io::Result::Ok(())
                    });
                }
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn archive(root: &Path, hours_ago: i64, garbage: bool) -> Vec<u8> {
    std::fs::create_dir(root.join("6")).unwrap();
    let database = root.join("6/vulnerability.db");
    if garbage {
        std::fs::write(&database, "no database").unwrap();
    } else {
        super::build(&database, hours_ago);
    }
    let path = root.join("a.tar.gz");
    export::write(root, &path, Format::Gzip).unwrap();
    std::fs::read(path).unwrap()
}

fn answer(mut stream: TcpStream, fault: Fault, latest: &[u8], archive: &[u8]) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    if let Fault::Status(status) = fault {
        return write!(
            stream,
            "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
    let is_latest = head.contains("latest.json");
    let body = if is_latest { latest } else { archive };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if head.starts_with("HEAD") {
        return Ok(());
    }
    match fault {
        Fault::Truncated if !is_latest => stream.write_all(&body[..body.len() / 2]),
        Fault::Drip if !is_latest => {
            for byte in body {
                stream.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }
        _ => stream.write_all(body),
    }
}

#[test]
fn whatever_a_source_does_the_old_database_stays() {
    for (fault, reason, backs_off) in [
        (Fault::Status(429), "engine", true),
        (Fault::Status(500), "engine", true),
        (Fault::Status(404), "engine", false),
        (Fault::Truncated, "engine", false),
        (Fault::Lie, "engine", false),
        (Fault::Garbage, "engine", false),
        (Fault::Drip, "too_slow", true),
    ] {
        let source = Faulty::new(fault, 10);
        let site = Site::new()
            .with("db_update_sources", &source.url())
            .with("db_update_stall_window", "2s")
            .with("db_update_min_rate", "4KiB");
        site.import(30);
        let before = site.pointer();
        let started = Instant::now();
        let output = site.run(&["update-database"]);
        assert!(started.elapsed() < Duration::from_secs(40), "{fault:?}");
        assert_eq!(output.status.code(), Some(1), "{fault:?}: {}", shown(&output));
        assert_eq!(
            ending(&output),
            ("failed".to_owned(), reason.to_owned()),
            "{fault:?}"
        );
        assert_eq!(site.pointer(), before, "{fault:?}");
        site.assert_no_staging();
        let asked = source.asked.load(Ordering::Relaxed);
        assert!(asked > 0, "{fault:?}");
        let again = site.run(&["update-database"]);
        assert_eq!(
            ending(&again).1 == "backing_off",
            backs_off,
            "{fault:?}: {}",
            shown(&again)
        );
        assert_eq!(
            source.asked.load(Ordering::Relaxed) == asked,
            backs_off,
            "{fault:?}"
        );
    }
}

#[test]
fn the_next_source_steps_in_and_the_deadline_is_one_for_all() {
    let (refuses, good) = (Faulty::new(Fault::Status(503), 10), Faulty::new(Fault::None, 10));
    let site = Site::new();
    site.import(30);
    let sources = format!(
        "db_update_sources=/nonexistent/database,http://127.0.0.1:9,{},{}",
        refuses.url(),
        good.url()
    );
    let output = site.run(&["update-database", "--set", &sources]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert_eq!(site.current(), built(10));
    assert!(!site.database().join(".coordination/back-off.json").exists());

    let drips = Faulty::new(Fault::Drip, 5);
    let sources = format!("db_update_sources={},{}", drips.url(), good.url());
    let started = Instant::now();
    let output = site.run(&[
        "update-database",
        "--set",
        &sources,
        "--set",
        "db_update_timeout=3s",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert_eq!(ending(&output).1, "stopped");
    assert!(started.elapsed() < Duration::from_secs(20));
    site.assert_no_staging();
}

#[test]
fn downloads_go_through_the_proxy_that_is_set() {
    // It answers whatever it is asked for, as a proxy does.
    let proxy = Faulty::new(Fault::None, 10);
    let site = Site::new().with("db_update_sources", "http://databases.invalid");
    let output = site
        .command(&["update-database"])
        .env("HTTP_PROXY", proxy.url())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert_eq!(site.current(), built(10));
    let direct = Site::new().with("db_update_sources", "http://databases.invalid");
    direct.expect(1, &["update-database"]);
}

#[test]
fn our_own_distribution_without_a_database_refuses_for_a_while() {
    let (empty, site) = (Site::new(), Site::new());
    let served = Served::of(&empty);
    let site = site.with("db_update_sources", &served.url());
    let output = site.run(&["update-database"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert_eq!(ending(&site.run(&["update-database"])).1, "backing_off");
}
