//! Thousands of random requests that succeed, fail, are cancelled, run out of time, or lose their client: every answer is
//! the right one, and in the end the adapter is as it was after the first of them.

use super::inspector::{Inspector, descriptors, resident_kib};
use super::{FOREVER, FakeEngines};
use crate::support::{CREDENTIAL, Reply, TestAdapter, engines, read_reply, run_id};
use assay_fixtures::fake_engine::{Action, INSTRUCTIONS, Script};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Clients at once: as many as slots and places in the queue together. What clients have left behind still holds some,
/// so that now and then one is turned away.
const CLIENTS: usize = 8;
/// Of so many requests, one in [`WARM_UP`] comes before memory and descriptors are noted.
const WARM_UP: u64 = 10;
/// What resident memory may grow by after the warm-up, KiB: what an allocator keeps and does not use.
const MEMORY_TOLERANCE_KIB: u64 = 12 << 10;

/// How a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Well,
    Real,
    Fails,
    Crashes,
    Garbage,
    Floods,
    TimesOut,
    WrongHash,
    Cancelled,
    Left,
    LeftInTheBody,
}

impl Fate {
    fn random(random: &mut fastrand::Rng) -> Self {
        match random.u32(0..1000) {
            0..=4 => Self::Real,
            5..=99 => Self::Fails,
            100..=149 => Self::Crashes,
            150..=199 => Self::Garbage,
            200..=229 => Self::Floods,
            230..=239 => Self::TimesOut,
            240..=279 => Self::WrongHash,
            280..=379 => Self::Cancelled,
            380..=479 => Self::Left,
            480..=519 => Self::LeftInTheBody,
            _ => Self::Well,
        }
    }

    fn actions(self) -> Vec<Action> {
        match self {
            Self::Well | Self::WrongHash | Self::LeftInTheBody => vec![Action::Default],
            Self::Real => vec![Action::Become(engines().join("syft"))],
            Self::Fails => vec![Action::Stderr("no".to_owned()), Action::Exit(3)],
            Self::Crashes => vec![Action::Signal("SIGKILL".to_owned())],
            Self::Garbage => vec![Action::Stdout("{".to_owned())],
            Self::Floods => vec![Action::FloodStdout(u64::MAX)],
            Self::TimesOut => vec![FOREVER],
            Self::Cancelled | Self::Left => vec![Action::Sleep(50), Action::Default],
        }
    }

    /// Whether an answer is the right one.
    fn allows(self, operation: &str, status: u16, code: &str) -> bool {
        let invalid = if operation == "catalog" {
            "SYFT_SBOM_INVALID"
        } else {
            "GRYPE_REPORT_INVALID"
        };
        // Whoever finds no place is told so, whatever it wanted.
        let full = (status, code) == (429, "SCANNER_CAPACITY_EXHAUSTED");
        let own = match self {
            Self::Well | Self::Real => status == 200,
            Self::Fails => (status, code) == (422, "SCANNER_PROCESS_FAILED"),
            Self::Crashes => (status, code) == (503, "SCANNER_PROCESS_KILLED"),
            Self::Garbage => (status, code) == (422, invalid),
            Self::Floods => (status, code) == (413, "SCANNER_OUTPUT_TOO_LARGE"),
            Self::TimesOut => (status, code) == (504, "SCANNER_TIMEOUT"),
            Self::WrongHash => (status, code) == (422, "INPUT_SHA256_MISMATCH"),
            Self::Cancelled => {
                status == 200
                    || matches!(
                        (status, code),
                        (503, "SCANNER_INTERRUPTED" | "SCANNER_ADMISSION_INTERRUPTED")
                    )
            }
            Self::Left | Self::LeftInTheBody => false,
        };
        full || own
    }
}

/// What the clients have seen: answers by fate and status, and the mistakes.
#[derive(Debug, Default)]
struct Seen {
    answers: BTreeMap<(Fate, u16), u64>,
    mistakes: Vec<String>,
}

fn soak(requests: u64, seed: u64) {
    let engines = FakeEngines::new();
    let adapter = engines
        .setup()
        .with("max_concurrent_scans", "4")
        .with("max_queued_scans", "4")
        .with("admission_timeout", "20s")
        .with("readiness_cache", "100ms")
        .start();
    adapter.wait_ready();
    engines.behave(&Script::default().on("scan", [Action::AsInputSays]));
    let outcomes = Mutex::new(Seen::default());
    let next = AtomicU64::new(0);
    let run = |until: u64| {
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= until {
                            break;
                        }
                        one(
                            &adapter,
                            &mut fastrand::Rng::with_seed(seed ^ (number << 20)),
                            &outcomes,
                        );
                    }
                });
            }
        });
        next.store(until, Ordering::Relaxed);
    };
    let started = Instant::now();
    run(requests / WARM_UP);
    let inspector = Inspector::of(&adapter, Some(&engines));
    let (memory, handles) = (resident_kib(adapter.id()), descriptors(adapter.id()));
    run(requests);
    inspector.assert_nothing_left("the soak");
    let (memory_after, handles_after) = (resident_kib(adapter.id()), descriptors(adapter.id()));

    let outcomes = outcomes.into_inner().unwrap();
    println!(
        "{requests} requests, seed {seed}, {:.0} s: resident {memory} to {memory_after} KiB, descriptors {handles} to \
         {handles_after}; {:?}",
        started.elapsed().as_secs_f64(),
        outcomes.answers
    );
    assert_eq!(outcomes.mistakes, Vec::<String>::new(), "seed {seed}");
    let answered: u64 = outcomes.answers.values().sum();
    let metrics = adapter.metrics();
    let begun = metrics.count("kkrepo_scanner_runs_started_total");
    assert!(begun > answered / 2, "{begun} of {answered}");
    assert!(
        memory_after <= memory + MEMORY_TOLERANCE_KIB,
        "resident memory grew from {memory} to {memory_after} KiB"
    );
    assert!(
        handles_after <= handles,
        "{handles} descriptors became {handles_after}"
    );
}

fn one(adapter: &TestAdapter, random: &mut fastrand::Rng, seen: &Mutex<Seen>) {
    let fate = Fate::random(random);
    let is_catalog = fate == Fate::Real || random.bool();
    let operation = if is_catalog { "catalog" } else { "match" };
    let padding = "p".repeat(random.usize(0..5000));
    let body = json!({
        INSTRUCTIONS: fate.actions(), "padding": padding,
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": [],
    })
    .to_string();
    let run = run_id();
    let mut stream = adapter.connect();
    let head = head(operation, &run, fate, body.as_bytes());
    let sent = match fate {
        Fate::LeftInTheBody => body.len() / 2,
        _ => body.len(),
    };
    if stream.write_all(head.as_bytes()).is_err() || stream.write_all(&body.as_bytes()[..sent]).is_err() {
        seen.lock().unwrap().mistakes.push(format!("{fate:?}: not taken"));
        return;
    }
    let pause = Duration::from_millis(random.u64(0..120));
    match fate {
        Fate::Left | Fate::LeftInTheBody => {
            std::thread::sleep(pause);
            return;
        }
        Fate::Cancelled => {
            std::thread::sleep(pause);
            adapter.cancel(&run);
        }
        _ => {}
    }
    let Reply { status, bytes, .. } = read_reply(&mut stream);
    let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let code = answer["code"].as_str().unwrap_or_default();
    let mut seen = seen.lock().unwrap();
    *seen.answers.entry((fate, status)).or_default() += 1;
    if !fate.allows(operation, status, code) {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        seen.mistakes
            .push(format!("{operation} {fate:?}: {status} {text}"));
    }
}

fn head(operation: &str, run: &str, fate: Fate, body: &[u8]) -> String {
    let hash = match fate {
        Fate::WrongHash => "0".repeat(64),
        _ => hex::encode(Sha256::digest(body)),
    };
    let name = match operation {
        "catalog" => format!(
            "X-KKRepo-Expected-Size: {}\r\nX-KKRepo-Expected-SHA256",
            body.len()
        ),
        _ => "X-KKRepo-SBOM-SHA256".to_owned(),
    };
    let timeout = if fate == Fate::TimesOut { 1 } else { 600 };
    format!(
        "POST /v1/{operation} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-KKRepo-Scanner-Credential: {CREDENTIAL}\r\n\
         X-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\nIdempotency-Key: {run}\r\n\
         X-KKRepo-Timeout-Seconds: {timeout}\r\n{name}: {hash}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
}

#[test]
fn hundreds_of_random_requests_leave_nothing() {
    soak(300, 20_261_130);
}

#[test]
#[ignore = "slow: ten thousand requests"]
fn ten_thousand_random_requests_leave_nothing() {
    soak(10_000, 1);
}
