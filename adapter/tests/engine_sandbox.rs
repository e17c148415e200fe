//! What an engine cannot do: a program that tries, run in an engine's place.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use assay_adapter::engine::cage::{Force, Layer, Limits, Mode, Sandbox};
use assay_adapter::engine::{EngineCommand, Engines, EnginesConfig, run};
use assay_adapter::run::RunContext;
use assay_adapter::telemetry::Metrics;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const ADAPTER: &str = env!("CARGO_BIN_EXE_assay-adapter");

fn command(dir: &Path, mode: Mode, executable: &Path, args: &[&Path]) -> EngineCommand {
    EngineCommand {
        launcher: PathBuf::from(ADAPTER),
        executable: executable.to_owned(),
        args: args.iter().map(OsString::from).collect(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: dir.to_owned(),
        stdout_limit: 1 << 20,
        stderr_limit: 1 << 16,
        limits: Limits {
            file_size: 256 << 20,
            open_files: 64,
            processes: 4096,
            cpu_seconds: 600,
            memory: u64::MAX,
        },
        sandbox: Sandbox {
            mode,
            readable: Vec::new(),
            writable: vec![dir.to_owned()],
            network: false,
        },
        ending: None,
    }
}

/// The program that tries, built when it is not there yet.
fn probe() -> PathBuf {
    let find = || {
        let test = std::env::current_exe().unwrap();
        test.ancestors()
            .skip(1)
            .take(2)
            .map(|directory| directory.join("sandbox-probe"))
            .find(|path| path.is_file())
    };
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args([
        "build",
        "--quiet",
        "--package",
        "assay-fixtures",
        "--bin",
        "sandbox-probe",
    ]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "sandbox-probe cannot be built");
    find().expect("sandbox-probe is built beside this test")
}

async fn attempts(mode: Mode) -> BTreeMap<String, String> {
    let scratch = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let (secret, target) = (outside.path().join("secret"), outside.path().join("target"));
    std::fs::write(&secret, "secret").unwrap();
    // On a host where they succeed, some attempts do harm.
    let which = if mode == Mode::Off { "harmless" } else { "all" };
    let args = [
        secret.as_path(),
        &target,
        Path::new("/bin/true"),
        Path::new(which),
    ];
    let command = command(scratch.path(), mode, &probe(), &args);
    let context = RunContext::with_timeout(Duration::from_mins(1));
    let done = run(&command, &context).await.unwrap();
    assert_eq!(target.exists(), mode == Mode::Off);
    serde_json::from_slice(&done.stdout).unwrap()
}

#[tokio::test]
async fn everything_outside_is_refused() {
    let outcomes = attempts(Mode::Required).await;
    let allowed = ["write-scratch", "socket-unix"];
    let mut seen = 0;
    for (attempt, outcome) in &outcomes {
        seen += 1;
        if allowed.contains(&attempt.as_str()) {
            assert_eq!(outcome, "done", "{attempt}");
        } else {
            assert!(
                ["EPERM", "EACCES"].contains(&outcome.as_str()),
                "{attempt}: {outcome}"
            );
        }
    }
    assert_eq!(seen, 16, "{outcomes:?}");
}

/// Else the other test would show nothing.
#[tokio::test]
async fn without_a_sandbox_the_same_attempts_succeed() {
    let outcomes = attempts(Mode::Off).await;
    for (attempt, outcome) in &outcomes {
        assert_eq!(outcome, "done", "{attempt}");
    }
    assert_eq!(outcomes.len(), 11);
}

#[tokio::test]
async fn the_adapters_own_probe_tells_what_is_in_force() {
    for (mode, want) in [
        (
            Mode::Off,
            [Layer::Session, Layer::NoNewPrivileges]
                .into_iter()
                .collect::<Force>(),
        ),
        (Mode::Required, Layer::ALL.iter().copied().collect()),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let engines = Engines::new(EnginesConfig {
            launcher: ADAPTER.into(),
            syft: "none".into(),
            grype: "none".into(),
            path: "/usr/bin:/bin".into(),
            update_environment: Vec::new(),
            scratch: scratch.path().to_owned(),
            max_output: 1 << 20,
            max_stderr: 1 << 16,
            max_file: 1 << 20,
            max_memory: u64::MAX,
            sandbox: mode,
            readable: Vec::new(),
            ending: Metrics::default().engine_ending,
            max_database_age: None,
            cache_file: None,
        });
        let context = RunContext::with_timeout(Duration::from_mins(1));
        let force = engines.probe_cage(&context).await.unwrap();
        // Whoever has no capability anyway is not told apart, and a network namespace is not for everyone.
        for layer in Layer::ALL {
            if !matches!(layer, Layer::Capabilities | Layer::NetworkNamespace) {
                assert_eq!(force.has(*layer), want.has(*layer), "{mode:?} {layer:?}");
            }
        }
        assert_eq!(force.missing(mode), []);
    }
}
