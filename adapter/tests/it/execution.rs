//! What becomes of engine processes, their directories and their slots, however a run ends.

mod capacity;
mod ends;
mod inspector;
mod readiness;
mod soak;

use self::inspector::Inspector;
use crate::fake::{FOREVER, FakeEngines};
use crate::given::{Occupier, one_slot, wait_queued};
use crate::support::{CREDENTIAL, Reply, Setup, TestAdapter, eventually, is_running};
use assay_fixtures::fake_engine::Action;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SBOM: &[u8] = br#"{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"components":[]}"#;

/// Whatever holds for engine processes holds for both operations.
const OPERATIONS: &[&str] = &["catalog", "match"];

fn operate(adapter: &TestAdapter, operation: &str, change: &[(&str, &str)]) -> Reply {
    match operation {
        "catalog" => adapter.catalog("", b"any bytes at all", change),
        _ => adapter.match_sbom(SBOM, change),
    }
}

/// Nothing of a run is left: no slot taken, no run known, no directory.
fn assert_clean(adapter: &TestAdapter) {
    eventually("no run and no directory", || {
        adapter.metric("kkrepo_scanner_active") == 0.0
            && adapter.metric("kkrepo_scanner_queued") == 0.0
            && adapter.metric("kkrepo_scanner_scratch_reserved_bytes") == 0.0
            && adapter.run_directories().is_empty()
    });
}

fn assert_problem(reply: &Reply, status: u16, code: &str) {
    assert_eq!(
        (reply.status, reply.code().as_str()),
        (status, code),
        "{}",
        reply.json()
    );
}

#[test]
fn a_client_that_goes_away_ends_its_engine() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    for operation in OPERATIONS {
        engines.scans_stall();
        // Only this thread can break the connection, so the run is started by hand.
        let stream = begin(&adapter, operation);
        let engine = engines.recorded();
        assert!(is_running(engine.process));
        assert!(engine.directory.starts_with(adapter.scratch()));
        drop(stream);
        eventually("the engine's end", || !is_running(engine.process));
        assert_clean(&adapter);
        assert!(!engine.directory.exists());
    }
}

/// Sends a whole request of small limits and leaves its answer unread.
fn begin(adapter: &TestAdapter, operation: &str) -> std::net::TcpStream {
    use sha2::{Digest as _, Sha256};
    use std::io::Write as _;
    let (hash, size) = (hex::encode(Sha256::digest(SBOM)), SBOM.len());
    let name = match operation {
        "catalog" => format!("X-KKRepo-Expected-Size: {size}\r\nX-KKRepo-Expected-SHA256"),
        _ => "X-KKRepo-SBOM-SHA256".to_owned(),
    };
    let mut stream = adapter.connect();
    write!(
        stream,
        "POST /v1/{operation} HTTP/1.1\r\nHost: a\r\nX-KKRepo-Scanner-Credential: {CREDENTIAL}\r\n\
         X-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: begun\r\nX-KKRepo-Max-Input-Bytes: 1024\r\n\
         X-KKRepo-Max-Uncompressed-Bytes: 1024\r\n{name}: {hash}\r\nContent-Length: {size}\r\n\r\n"
    )
    .unwrap();
    stream.write_all(SBOM).unwrap();
    stream
}

#[test]
fn a_cancelled_run_ends_its_engine() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    for operation in OPERATIONS {
        engines.scans_stall();
        let (reply, engine) = std::thread::scope(|scope| {
            let answer = scope.spawn(|| operate(&adapter, operation, &[("x-kkrepo-run-id", "to-cancel")]));
            let engine = engines.recorded();
            assert!(adapter.cancel("to-cancel"));
            (answer.join().unwrap(), engine)
        });
        assert_problem(&reply, 503, "SCANNER_INTERRUPTED");
        // The answer comes after the end, so there is nothing to wait for.
        assert!(!is_running(engine.process) && !engine.directory.exists());
        assert!(!adapter.cancel("to-cancel"));
        assert_clean(&adapter);
    }
}

#[test]
fn a_run_that_is_cancelled_while_it_waits_never_has_an_engine() {
    let engines = FakeEngines::new();
    let adapter = one_slot(engines.setup()).start();
    adapter.wait_ready();
    for operation in OPERATIONS {
        let running = Occupier::running(&adapter, &engines, "running");
        let engine = engines.recorded().process;
        let reply = std::thread::scope(|scope| {
            let answer = scope.spawn(|| operate(&adapter, operation, &[("x-kkrepo-run-id", "waiting")]));
            wait_queued(&adapter);
            assert!(adapter.cancel("waiting"));
            answer.join().unwrap()
        });
        assert_problem(&reply, 503, "SCANNER_ADMISSION_INTERRUPTED");
        assert_eq!(
            engines.recorded().process,
            engine,
            "another scan would have noted itself"
        );
        running.end(&adapter);
        assert_clean(&adapter);
    }
}

#[test]
fn an_engine_that_ignores_termination_is_killed() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    engines.scans_do_after_record([Action::IgnoreTerm, FOREVER]);
    let started = Instant::now();
    let reply = operate(&adapter, "catalog", &[("x-kkrepo-timeout-seconds", "1")]);
    assert_problem(&reply, 504, "SCANNER_TIMEOUT");
    assert!(!is_running(engines.recorded().process));
    // One second of its own, two of grace.
    assert!(
        started.elapsed() >= Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert!(
        started.elapsed() < Duration::from_secs(8),
        "{:?}",
        started.elapsed()
    );
    assert_clean(&adapter);
}

fn descendant(engines: &FakeEngines, own_session: bool) -> (Action, PathBuf) {
    let pid_file = engines.path("descendant.pid");
    let _ = std::fs::remove_file(&pid_file);
    let action = Action::Grandchild {
        sleep_millis: 600_000,
        own_session,
        pid_file: pid_file.clone(),
    };
    (action, pid_file)
}

fn read_pid(file: &Path) -> u32 {
    std::fs::read_to_string(file).unwrap().parse().unwrap()
}

#[test]
fn what_an_engine_leaves_running_is_ended_with_it() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    for operation in OPERATIONS {
        let (action, pid_file) = descendant(&engines, false);
        engines.scans_do([action, Action::Default]);
        let reply = operate(&adapter, operation, &[]);
        assert_eq!(reply.status, 200, "{}", reply.json());
        assert!(!is_running(read_pid(&pid_file)));
        assert_clean(&adapter);
    }
}

#[test]
fn what_flees_from_its_group_is_ended_with_the_run() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    for (operation, flees) in [
        ("catalog", Action::Default),
        ("catalog", FOREVER),
        ("match", Action::Default),
    ] {
        let (action, pid_file) = descendant(&engines, true);
        let _ = std::fs::remove_file(&pid_file);
        engines.scans_do([action, flees.clone()]);
        let started = Instant::now();
        let reply = if flees == FOREVER {
            operate(&adapter, operation, &[("x-kkrepo-timeout-seconds", "2")])
        } else {
            operate(&adapter, operation, &[])
        };
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{:?}",
            started.elapsed()
        );
        if flees == FOREVER {
            assert_problem(&reply, 504, "SCANNER_TIMEOUT");
        } else {
            assert_eq!(reply.status, 200, "{}", reply.json());
        }
        assert!(!is_running(read_pid(&pid_file)));
        assert_clean(&adapter);
    }
}

#[test]
fn termination_of_the_adapter_tells_the_client_to_try_elsewhere() {
    for operation in OPERATIONS {
        let engines = FakeEngines::new();
        let adapter = engines.setup().with("shutdown_grace", "300ms").start();
        adapter.wait_ready();
        engines.scans_stall();
        let (reply, engine) = std::thread::scope(|scope| {
            let answer = scope.spawn(|| operate(&adapter, operation, &[]));
            let engine = engines.recorded();
            adapter.signal(Signal::SIGTERM);
            (answer.join().unwrap(), engine)
        });
        assert_problem(&reply, 503, "SCANNER_NOT_READY");
        assert!(!is_running(engine.process) && !engine.directory.exists());
        assert_eq!(adapter.exit_code(), Some(0));
    }
}

#[test]
fn a_run_may_end_within_the_grace() {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    engines.scans_do_after_record([Action::Sleep(500), Action::Default]);
    let reply = std::thread::scope(|scope| {
        let answer = scope.spawn(|| operate(&adapter, "catalog", &[]));
        engines.recorded();
        adapter.signal(Signal::SIGTERM);
        answer.join().unwrap()
    });
    assert_eq!(reply.status, 200, "{}", reply.json());
    assert_eq!(adapter.exit_code(), Some(0));
}

#[test]
fn a_killed_adapter_leaves_no_engine() {
    for operation in OPERATIONS {
        let engines = FakeEngines::new();
        let adapter = engines.start();
        engines.scans_do_after_record([Action::IgnoreTerm, FOREVER]);
        let stream = begin(&adapter, operation);
        let engine = engines.recorded();
        assert_eq!(adapter.stop(Signal::SIGKILL), None);
        eventually("the engine's end", || !is_running(engine.process));
        drop(stream);
    }
}

#[test]
fn an_engine_gets_an_environment_made_from_nothing() {
    let engines = FakeEngines::new();
    let adapter = engines
        .setup()
        .environment("AWS_SECRET_ACCESS_KEY", "cloud-secret-4711")
        .environment("HTTPS_PROXY", "http://proxy.invalid")
        .environment("SSL_CERT_FILE", "/etc/ssl/other.pem")
        .environment("GRYPE_DB_AUTO_UPDATE", "true")
        .environment("LD_PRELOAD_NOT", "x")
        .start();
    adapter.wait_ready();
    let common = ["HOME", "PATH", "TMPDIR"];
    for (operation, own, version) in [("catalog", "SYFT_", "syft"), ("match", "GRYPE_", "grype")] {
        engines.scans_do_after_record([Action::Default]);
        let reply = operate(&adapter, operation, &[]);
        assert_eq!(reply.status, 200, "{version}: {}", reply.json());
        let engine = engines.recorded();
        let names: BTreeSet<&str> = engine.environment.keys().map(String::as_str).collect();
        let strange: Vec<_> = names
            .iter()
            .filter(|name| !common.contains(name) && !name.starts_with(own))
            .collect();
        assert!(strange.is_empty(), "{strange:?}");
        assert!(common.iter().all(|name| names.contains(name)), "{names:?}");
        let directory = engine.directory.to_str().unwrap();
        assert_eq!(engine.environment["HOME"], directory);
        assert_eq!(engine.environment["TMPDIR"], directory);
        assert!(engine.directory.starts_with(adapter.scratch()), "{directory}");
        let all = format!("{:?} {:?}", engine.environment, engine.arguments);
        assert!(
            !all.contains(CREDENTIAL) && !all.contains("4711") && !all.contains("proxy"),
            "{all}"
        );
        assert_ne!(
            engine.environment.get("GRYPE_DB_AUTO_UPDATE").map(String::as_str),
            Some("true")
        );
        assert_eq!(
            u32::try_from(engine.group).unwrap(),
            engine.process,
            "a group of its own"
        );
    }
}

/// A program that notes each start and then becomes `engine`.
fn counted(engine: &Path, directory: &Path) -> PathBuf {
    let name = engine.file_name().unwrap().to_str().unwrap();
    let (program, log) = (directory.join(name), directory.join("starts"));
    let script = format!(
        "#!/bin/sh\necho \"{name} $1\" >> {}\nexec {} \"$@\"\n",
        log.display(),
        engine.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_catalog_and_a_match_are_one_engine_process_each() {
    let directory = tempfile::tempdir().unwrap();
    let engines = crate::support::engines();
    let adapter = Setup::of(
        &counted(&engines.join("syft"), directory.path()),
        &counted(&engines.join("grype"), directory.path()),
        &crate::support::database(),
    )
    // The stand-ins note themselves beside themselves.
    .with("sandbox", "off")
    .start();
    adapter.wait_ready();
    let starts = || {
        let log = directory.path().join("starts");
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(log);
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut learning = starts();
    learning.sort_unstable();
    assert_eq!(learning, ["grype db", "grype version", "syft version"]);
    for (operation, start) in [("catalog", "syft scan"), ("match", "grype sbom:sbom.cdx.json")] {
        let reply = operate(&adapter, operation, &[]);
        assert_eq!(reply.status, 200, "{}", reply.json());
        assert_eq!(starts(), [start]);
    }
}
