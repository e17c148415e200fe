//! Readiness says what is so, and never waits for a slow look.

use super::{FakeEngines, operate};
use crate::support::{TestAdapter, eventually, program};
use assay_fixtures::fake_engine::{Action, Script};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn reason(adapter: &TestAdapter) -> String {
    let readiness = adapter.get("/v1/readiness").json();
    readiness["details"]["reasonCode"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn each_thing_that_is_missing_has_its_reason() {
    let cases = [
        ("expected_syft_version", "1.57.0", "SCANNER_VERSION_INVALID"),
        ("expected_grype_version", "0.121.30", "SCANNER_VERSION_INVALID"),
        ("min_free_scratch_bytes", "4096PiB", "SCANNER_SCRATCH_EXHAUSTED"),
        ("db_max_age", "1ms", "SCANNER_DATABASE_TOO_OLD"),
    ];
    for (setting, value, expected) in cases {
        let engines = FakeEngines::new();
        let adapter = engines.setup().with(setting, value).start();
        eventually("an observation", || !reason(&adapter).is_empty());
        assert_eq!(reason(&adapter), expected, "{setting}");
        for operation in super::OPERATIONS {
            let reply = operate(&adapter, operation, &[]);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (503, "SCANNER_NOT_READY"),
                "{setting}"
            );
        }
    }
    let engines = FakeEngines::new();
    let expected = [
        ("expected_syft_version", "1.57.1"),
        ("expected_grype_version", "0.121.3"),
    ];
    let setup = expected
        .iter()
        .fold(engines.setup(), |setup, (name, value)| setup.with(name, value));
    setup.start().wait_ready();
}

#[test]
fn check_says_the_same_at_a_shell() {
    let engines = FakeEngines::new();
    let scratch = engines.path("scratch");
    let check = |setting: &str, value: &str| {
        let setup = engines
            .setup()
            .with("work_directory", scratch.to_str().unwrap())
            .with("service_credential", "s")
            .with(setting, value);
        let output = program().arg("check").args(setup.arguments()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    for (setting, value, words) in [
        (
            "expected_syft_version",
            "1.57.0",
            "syft has version 1.57.1, 1.57.0 is expected",
        ),
        (
            "expected_grype_version",
            "1",
            "grype has version 0.121.3, 1 is expected",
        ),
        ("min_free_scratch_bytes", "4096PiB", "bytes free"),
    ] {
        let (code, text) = check(setting, value);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(words), "{text}");
    }
    let (code, text) = check("expected_syft_version", "1.57.1");
    assert_eq!(code, Some(0), "{text}");
}

/// Puts a copy in the place of the cataloguer, which was one file with those of all other tests.
fn exchanged(engines: &FakeEngines) -> PathBuf {
    let (syft, other) = (engines.path("syft"), engines.path("other"));
    std::fs::copy(&syft, &other).unwrap();
    std::fs::rename(&other, &syft).unwrap();
    syft
}

#[test]
fn what_is_lost_and_comes_back_is_noticed() {
    let engines = FakeEngines::new();
    let adapter = engines.setup().with("readiness_cache", "50ms").start();
    adapter.wait_ready();
    let syft = exchanged(&engines);
    adapter.wait_ready();
    std::fs::set_permissions(&syft, Permissions::from_mode(0o644)).unwrap();
    eventually("a reason", || reason(&adapter) == "SCANNER_PROCESS_IO");
    std::fs::set_permissions(&syft, Permissions::from_mode(0o755)).unwrap();
    adapter.wait_ready();
    let scratch = adapter.scratch();
    let aside = scratch.with_extension("aside");
    std::fs::rename(&scratch, &aside).unwrap();
    std::fs::write(&scratch, "").unwrap();
    eventually("a reason", || reason(&adapter) == "WORKSPACE_IO");
    std::fs::remove_file(&scratch).unwrap();
    std::fs::rename(&aside, &scratch).unwrap();
    adapter.wait_ready();
}

#[test]
fn a_slow_look_holds_nobody_up() {
    let engines = FakeEngines::new();
    let adapter = engines.setup().with("readiness_cache", "50ms").start();
    adapter.wait_ready();
    let before = adapter.get("/v1/readiness").json();
    // Another program of the same name: its version has to be learnt anew.
    engines.behave(&Script::default().on("version", [Action::Sleep(6000), Action::Default]));
    exchanged(&engines);
    std::thread::sleep(Duration::from_millis(60));
    let mut last = before.clone();
    for _ in 0..5 {
        let asked = Instant::now();
        let answer = adapter.get("/v1/readiness").json();
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        assert_eq!(answer["ready"], true);
        assert!(answer["observedAt"].as_str() >= before["observedAt"].as_str());
        last = answer;
    }
    eventually("what the slow look has seen", || {
        adapter.get("/v1/readiness").json()["observedAt"].as_str() > last["observedAt"].as_str()
    });
}
