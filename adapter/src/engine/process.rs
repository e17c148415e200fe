//! The only module that starts processes.
//!
//! Every engine runs in a session of its own, with nothing on stdin, a private working directory, an environment built
//! from nothing, and pipes that are read with hard caps: one byte over and the whole group dies. Whatever ends the
//! call — exit, cap, deadline, cancellation, or the future being dropped — the group is ended and the child reaped.

use super::error::{EngineError, classify};
use super::launcher::{self, Limits};
use crate::run::{RunContext, Stopped};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a group may take to obey TERM, and again to be gone after KILL.
pub const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// One engine call.
#[derive(Debug, Clone)]
pub struct EngineCommand {
    /// The adapter's own executable, which becomes the engine.
    pub launcher: PathBuf,
    /// Absolute path of the engine.
    pub executable: PathBuf,
    /// Arguments, no shell.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Private directory of the run.
    pub cwd: PathBuf,
    /// Most bytes on stdout.
    pub stdout_limit: u64,
    /// Most bytes on stderr.
    pub stderr_limit: u64,
    /// What the process is held to.
    pub limits: Limits,
}

/// An engine call that ended with exit code zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Everything on stdout. In memory, because documents are read as slices of one buffer, and bounded by the cap.
    pub stdout: Vec<u8>,
    /// Everything on stderr.
    pub stderr: Vec<u8>,
    /// Wall time from before the start until the group was gone.
    pub elapsed: Duration,
}

/// Finds an executable: a path with a slash as it is, a bare name in the directories of `search`.
pub fn resolve(name: &Path, search: &std::ffi::OsStr) -> Result<PathBuf, EngineError> {
    let is_executable = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = if name.components().count() > 1 {
        std::path::absolute(name).ok().filter(|path| is_executable(path))
    } else {
        std::env::split_paths(search)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|path| is_executable(path))
    };
    found.ok_or_else(|| EngineError::ExecutableMissing {
        engine: name
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
    })
}

/// Runs one engine to its end.
///
/// Dropping the future ends the process group just as cancellation does; a task of its own sees to it.
pub async fn run(command: &EngineCommand, context: &RunContext) -> Result<Finished, EngineError> {
    context.check()?;
    let started = Instant::now();
    let child = spawn(command).await?;
    let abandoned = CancellationToken::new();
    let guard = abandoned.clone().drop_guard();
    let watch = Watch {
        stdout_limit: command.stdout_limit,
        stderr_limit: command.stderr_limit,
        context: context.clone(),
        abandoned,
    };
    let ended = tokio::spawn(watch.until_gone(child)).await;
    drop(guard);
    let ended = match ended {
        Ok(ended) => ended?,
        Err(join) => return Err(EngineError::io("watched")(io::Error::other(join))),
    };
    if !ended.status.success() {
        return Err(classify(ended.status, &ended.stderr, command.limits.file_size));
    }
    Ok(Finished {
        stdout: ended.stdout,
        stderr: ended.stderr,
        elapsed: started.elapsed(),
    })
}

/// Starts the child from a thread that lives as long as the process: the parent-death signal follows the *thread* that
/// forked, and a runtime may retire its threads at any time.
async fn spawn(command: &EngineCommand) -> Result<Child, EngineError> {
    type Order = (
        Command,
        tokio::runtime::Handle,
        oneshot::Sender<io::Result<Child>>,
    );
    static STARTER: OnceLock<io::Result<std::sync::mpsc::Sender<Order>>> = OnceLock::new();

    let starter = STARTER
        .get_or_init(|| {
            let (sender, orders) = std::sync::mpsc::channel::<Order>();
            std::thread::Builder::new()
                .name("engine-starter".to_owned())
                .spawn(move || {
                    for (mut command, runtime, answer) in orders {
                        let _entered = runtime.enter();
                        // Nobody waits any more: the child is dropped, and dropping kills it.
                        let _ = answer.send(command.spawn());
                    }
                })?;
            Ok(sender)
        })
        .as_ref()
        .map_err(|error| EngineError::io("started")(io::Error::new(error.kind(), error.to_string())))?;

    let mut process = Command::new(&command.launcher);
    process
        .args(launcher::arguments(
            command.limits,
            std::process::id(),
            command.executable.as_os_str(),
            &command.args,
        ))
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&command.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let (answer, child) = oneshot::channel();
    let gone = || EngineError::io("started")(io::Error::other("the starter thread is gone"));
    starter
        .send((process, tokio::runtime::Handle::current(), answer))
        .map_err(|_| gone())?;
    child
        .await
        .map_err(|_| gone())?
        .map_err(EngineError::io("started"))
}

struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

struct Watch {
    stdout_limit: u64,
    stderr_limit: u64,
    context: RunContext,
    abandoned: CancellationToken,
}

impl Watch {
    /// Returns only after the process group is gone, or could not be ended.
    async fn until_gone(self, mut child: Child) -> Result<Ended, EngineError> {
        let pid = child.id();
        let outcome = self.watch(&mut child).await;
        let group = end(&mut child, pid).await;
        // The first error says more than one of the clean-up.
        let ended = outcome?;
        group?;
        Ok(ended)
    }

    async fn watch(&self, child: &mut Child) -> Result<Ended, EngineError> {
        let pipe = || EngineError::io("watched")(io::Error::other("a pipe is missing"));
        let out = child.stdout.take().ok_or_else(pipe)?;
        let err = child.stderr.take().ok_or_else(pipe)?;
        let pid = child.id();
        let (stdout_limit, stderr_limit) = (self.stdout_limit, self.stderr_limit);
        let mut reading = pin!(async {
            tokio::try_join!(
                read_capped(
                    out,
                    stdout_limit,
                    EngineError::OutputTooLarge { limit: stdout_limit }
                ),
                read_capped(
                    err,
                    stderr_limit,
                    EngineError::StderrTooLarge { limit: stderr_limit }
                ),
            )
        });
        let work = async {
            let mut read = None;
            let status = loop {
                tokio::select! {
                    done = &mut reading, if read.is_none() => read = Some(done?),
                    status = child.wait() => break status.map_err(EngineError::io("watched"))?,
                }
            };
            let (stdout, stderr) = if let Some(read) = read {
                read
            } else {
                // A survivor of the group may hold the pipes open; it must not decide when the run ends.
                if let Some(pid) = pid {
                    end_group(pid).await?;
                }
                tokio::time::timeout(GRACE, &mut reading)
                    .await
                    .map_err(|_| EngineError::GroupAlive)??
            };
            Ok(Ended {
                status,
                stdout,
                stderr,
            })
        };
        tokio::select! {
            biased;
            () = self.abandoned.cancelled() => Err(EngineError::Stopped(Stopped::Cancelled)),
            bound = self.context.bound(work) => bound?,
        }
    }
}

async fn read_capped(
    mut pipe: impl tokio::io::AsyncRead + Unpin,
    limit: u64,
    over: EngineError,
) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::new();
    (&mut pipe)
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .await
        .map_err(EngineError::io("read"))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(over);
    }
    Ok(bytes)
}

/// Ends whatever is left: TERM, two seconds, KILL; then the child is reaped and its group is gone.
async fn end(child: &mut Child, pid: Option<u32>) -> Result<(), EngineError> {
    let Some(pid) = pid else {
        return Ok(());
    };
    // After it has been reaped the child has no id any more; its group may still have members.
    if child.id().is_some() {
        signal(pid, Signal::SIGTERM);
        if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
            signal(pid, Signal::SIGKILL);
            tokio::time::timeout(GRACE, child.wait())
                .await
                .map_err(|_| EngineError::GroupAlive)?
                .map_err(EngineError::io("ended"))?;
        }
    }
    end_group(pid).await
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX))
}

/// Signals the group; before the launcher has made it there is only the child itself.
fn signal(pid: u32, signal: Signal) {
    if killpg(raw(pid), signal).is_err() {
        // It may be gone by itself, which is all that is wanted.
        let _ = kill(raw(pid), signal);
    }
}

/// Ends the members that outlive the group's reaped leader.
async fn end_group(pid: u32) -> Result<(), EngineError> {
    for (step, wanted) in [(Signal::SIGTERM, GRACE), (Signal::SIGKILL, GRACE)] {
        if !group_is_alive(pid) {
            return Ok(());
        }
        let _ = killpg(raw(pid), step);
        let until = Instant::now() + wanted;
        while Instant::now() < until {
            if !group_is_alive(pid) {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
    }
    Err(EngineError::GroupAlive)
}

/// Whether a process of the group runs. Zombies do not: where the adapter is their reaper they are reaped here, and
/// elsewhere somebody else does it.
fn group_is_alive(pid: u32) -> bool {
    let group = Pid::from_raw(-raw(pid).as_raw());
    while let Ok(status) = waitpid(group, Some(WaitPidFlag::WNOHANG)) {
        if matches!(status, WaitStatus::StillAlive) {
            break;
        }
    }
    if killpg(raw(pid), None).is_err() {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|process| {
        let name = process.file_name();
        let is_process = name
            .to_str()
            .is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()));
        is_process
            && std::fs::read_to_string(process.path().join("stat"))
                .is_ok_and(|stat| is_live_member(&stat, pid))
    })
}

/// Reads `/proc/<pid>/stat`: after the last `)` come state, parent and group.
fn is_live_member(stat: &str, group: u32) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    let of_group = fields.nth(1).and_then(|field| field.parse::<u32>().ok());
    of_group == Some(group) && !matches!(state, Some("Z" | "X" | "x"))
}

#[cfg(test)]
mod tests {
    use super::{is_live_member, resolve};
    use assay_schemas::Code;
    use std::ffi::OsStr;
    use std::path::Path;

    #[test]
    fn live_members_are_told_from_zombies_and_strangers() {
        assert!(is_live_member("12 (a) b) S 1 77 77 0", 77));
        assert!(!is_live_member("12 (a) Z 1 77 77 0", 77));
        assert!(!is_live_member("12 (77 77) S 1 78 77 0", 77));
        assert!(!is_live_member("", 77));
    }

    #[test]
    fn executables_are_found_before_they_are_started() {
        let search = OsStr::new("relative:/nowhere:/bin:/usr/bin");
        assert!(resolve(Path::new("sh"), search).unwrap().is_absolute());
        assert!(resolve(Path::new("/bin/sh"), OsStr::new("")).is_ok());
        for missing in ["no-such-engine", "/etc/passwd", "/bin", "/no/such"] {
            let error = resolve(Path::new(missing), search).unwrap_err();
            assert_eq!(error.code(), Code::ProcessIo, "{missing}");
        }
    }
}
