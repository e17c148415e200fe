//! Processes as they really are: shell scripts that hang, flood, ignore signals and leave children behind.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use assay_adapter::engine::cage::{Limits, Mode, Sandbox};
use assay_adapter::engine::{EngineCommand, EngineError, Finished, run};
use assay_adapter::run::RunContext;
use assay_schemas::Code;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn command(dir: &Path, script: &str) -> EngineCommand {
    EngineCommand {
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_assay-adapter")),
        executable: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("ONLY".into(), "this".into()),
        ],
        cwd: dir.to_owned(),
        stdout_limit: 1 << 20,
        stderr_limit: 1 << 16,
        limits: Limits {
            file_size: 1 << 20,
            open_files: 64,
            processes: 4096,
            cpu_seconds: 600,
            memory: u64::MAX,
        },
        sandbox: Sandbox {
            mode: Mode::Off,
            readable: Vec::new(),
            writable: vec![dir.to_owned()],
            network: false,
        },
        ending: None,
    }
}

async fn sh(script: &str, timeout: Duration) -> (tempfile::TempDir, Result<Finished, EngineError>) {
    let dir = tempfile::tempdir().unwrap();
    let result = run(&command(dir.path(), script), &RunContext::with_timeout(timeout)).await;
    (dir, result)
}

const LONG: Duration = Duration::from_mins(1);

/// Whether a process with this id runs (a zombie does not).
fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(15);
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn pid_in(dir: &Path, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(dir.join(name)).ok()?;
    text.ends_with('\n').then(|| text.trim().to_owned())
}

#[tokio::test]
async fn output_and_surroundings_are_what_was_ordered() {
    let (dir, result) = sh(
        "echo out; echo err >&2; pwd; env | sort | grep -v -e PWD -e _=; ulimit -c; ulimit -n; cat; grep -i nonewprivs /proc/self/status; cut -d' ' -f5,6 /proc/$$/stat; echo $$",
        LONG,
    )
    .await;
    let done = result.unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(done.stderr, b"err\n");
    let pid = lines[8];
    assert_eq!(
        lines,
        [
            "out",
            dir.path().canonicalize().unwrap().to_str().unwrap(),
            "ONLY=this",
            "PATH=/usr/bin:/bin",
            "0",
            "64",
            "NoNewPrivs:\t1",
            // Leader of its own group and session.
            &format!("{pid} {pid}"),
            pid,
        ]
    );
}

#[tokio::test]
async fn failures_are_told_apart() {
    let cases = [
        ("echo bad >&2; exit 3", Code::ProcessFailed),
        ("kill -KILL $$", Code::ProcessKilled),
        (
            "echo 'write /x: no space left on device' >&2; exit 1",
            Code::ScratchExhausted,
        ),
        ("head -c 2000000 /dev/zero", Code::OutputTooLarge),
        ("head -c 70000 /dev/zero >&2", Code::StderrTooLarge),
        ("exec head -c 2000000 /dev/zero > file", Code::OutputTooLarge),
    ];
    for (script, want) in cases {
        let (_, result) = sh(script, LONG).await;
        assert_eq!(result.unwrap_err().code(), want, "{script}");
    }
}

#[tokio::test]
async fn output_up_to_the_cap_is_kept() {
    let (_, result) = sh("head -c 1048576 /dev/zero; head -c 65536 /dev/zero >&2", LONG).await;
    let done = result.unwrap();
    assert_eq!((done.stdout.len(), done.stderr.len()), (1 << 20, 1 << 16));
}

#[tokio::test]
async fn an_endless_flood_is_cut_at_once() {
    let started = Instant::now();
    let (_, result) = sh("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done", LONG).await;
    assert_eq!(result.unwrap_err().code(), Code::OutputTooLarge);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn the_deadline_ends_a_group_that_ignores_term() {
    let started = Instant::now();
    let (dir, result) = sh(
        "trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo $! > child; echo $$ > leader; wait; while :; do sleep 0.1; done",
        Duration::from_secs(2),
    )
    .await;
    assert_eq!(result.unwrap_err().code(), Code::Timeout);
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
    for name in ["child", "leader"] {
        assert!(!is_running(&pid_in(dir.path(), name).unwrap()), "{name}");
    }
}

#[tokio::test]
async fn cancellation_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(LONG);
    let cancel = context.cancel.clone();
    let running = tokio::spawn({
        let command = command(dir.path(), "echo $$ > leader; sleep 600");
        async move { run(&command, &context).await }
    });
    eventually("the leader starts", || pid_in(dir.path(), "leader").is_some()).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().code(), Code::Interrupted);
    assert!(!is_running(&pid_in(dir.path(), "leader").unwrap()));
}

#[tokio::test]
async fn survivors_of_a_normal_exit_are_ended_and_do_not_hold_it_up() {
    let started = Instant::now();
    let (dir, result) = sh("sleep 600 & echo $! > child; echo done", LONG).await;
    assert_eq!(result.unwrap().stdout, b"done\n");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(!is_running(&pid_in(dir.path(), "child").unwrap()));

    // Also when the survivor has let go of the pipes.
    let (dir, result) = sh("sleep 600 >/dev/null 2>&1 & echo $! > child; echo done", LONG).await;
    result.unwrap();
    let child = pid_in(dir.path(), "child").unwrap();
    assert!(!is_running(&child));
}

#[tokio::test]
async fn dropping_the_future_ends_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(LONG);
    let command = command(dir.path(), "sleep 600 & echo $! > child; echo $$ > leader; wait");
    {
        let running = run(&command, &context);
        tokio::pin!(running);
        tokio::select! {
            done = &mut running => panic!("{done:?}"),
            () = eventually("both start", || pid_in(dir.path(), "leader").is_some()) => {}
        }
    }
    for name in ["child", "leader"] {
        let pid = pid_in(dir.path(), name).unwrap();
        eventually(name, || !is_running(&pid)).await;
    }
}

/// A script that starts a process in a session of its own, whose parent ends at once, and goes on when that runs.
const ESCAPE: &str = "setsid sh -c '(trap \"\" TERM; echo $$ > starter; sh -c \"echo \\$\\$ > child; exec sleep 600\" &) ' \
    </dev/null >/dev/null 2>&1; until [ -s child ]; do sleep 0.01; done; ";

#[tokio::test]
async fn who_escapes_into_a_session_of_its_own_is_found() {
    let (dir, result) = sh(&format!("{ESCAPE} echo done"), LONG).await;
    assert_eq!(result.unwrap().stdout, b"done\n");
    assert!(!is_running(&pid_in(dir.path(), "child").unwrap()));

    let (dir, result) = sh(&format!("{ESCAPE} sleep 600"), Duration::from_secs(2)).await;
    assert_eq!(result.unwrap_err().code(), Code::Timeout);
    assert!(!is_running(&pid_in(dir.path(), "child").unwrap()));
}

#[tokio::test]
async fn what_a_killed_supervisor_leaves_is_found() {
    let (dir, result) = sh(
        &format!("{ESCAPE} echo $PPID > supervisor; kill -KILL $PPID; sleep 600"),
        LONG,
    )
    .await;
    assert_eq!(result.unwrap_err().code(), Code::ProcessKilled);
    for name in ["supervisor", "child"] {
        assert!(!is_running(&pid_in(dir.path(), name).unwrap()), "{name}");
    }
}

#[tokio::test]
async fn a_stopped_supervisor_does_not_hold_a_run() {
    let started = Instant::now();
    let (dir, result) = sh(
        &format!("{ESCAPE} kill -STOP $PPID; sleep 600"),
        Duration::from_secs(2),
    )
    .await;
    assert_eq!(result.unwrap_err().code(), Code::Timeout);
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(!is_running(&pid_in(dir.path(), "child").unwrap()));
}

/// From the order to the end; a polite engine has nothing to wait for.
#[tokio::test]
async fn a_polite_engine_is_gone_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(LONG);
    let ending = assay_adapter::telemetry::Metrics::default();
    let mut polite = command(dir.path(), "echo $$ > leader; exec sleep 600");
    polite.ending = Some(ending.engine_ending.clone());
    let cancel = context.cancel.clone();
    let running = tokio::spawn(async move { run(&polite, &context).await });
    eventually("the leader starts", || pid_in(dir.path(), "leader").is_some()).await;
    let ordered = Instant::now();
    cancel.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().code(), Code::Interrupted);
    // Far below the grace, after which it would have been killed.
    assert!(
        ordered.elapsed() < Duration::from_secs(1),
        "{:?}",
        ordered.elapsed()
    );
    let text = ending
        .encode(assay_adapter::telemetry::Exposition::OpenMetrics)
        .unwrap();
    assert!(
        text.contains("kkrepo_scanner_engine_ending_seconds_count 1"),
        "{text}"
    );
}

#[tokio::test]
async fn what_cannot_be_started_is_the_hosts_fault() {
    let dir = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(LONG);
    let mut broken = command(dir.path(), "true");
    broken.executable = "/etc/passwd".into();
    let error = run(&broken, &context).await.unwrap_err();
    assert!(matches!(error, EngineError::Launch { .. }), "{error:?}");
    assert_eq!(error.code(), Code::ProcessIo);

    let mut broken = command(dir.path(), "true");
    broken.launcher = "/no/such/launcher".into();
    assert_eq!(run(&broken, &context).await.unwrap_err().code(), Code::ProcessIo);

    let stopped = RunContext::with_timeout(Duration::ZERO);
    let error = run(&command(dir.path(), "touch started"), &stopped)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Timeout);
    assert!(!dir.path().join("started").exists());
}
