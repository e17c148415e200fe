//! The only module that starts processes.
//!
//! Every engine runs in a cage of its own ([`super::cage`]), with nothing on stdin, a private working directory, an
//! environment built from nothing, and pipes that are read with hard caps: one byte over and everything of it dies.
//! Whatever ends the call — exit, cap, deadline, cancellation, or the future being dropped — the supervisor ends all
//! that the engine has left, and is reaped.

use super::cage::{self, Limits, Plan, Sandbox};
use super::error::{EngineError, classify};
use crate::run::{RunContext, Stopped};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prometheus_client::metrics::histogram::Histogram;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long processes may take to obey TERM, and again to be gone after KILL.
pub const GRACE: Duration = Duration::from_secs(2);
/// What the supervisor may take beyond its two graces.
const MARGIN: Duration = Duration::from_secs(1);

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
    /// What the process may use.
    pub limits: Limits,
    /// What the process may reach.
    pub sandbox: Sandbox,
    /// Takes how long its end took if it was ordered to end, seconds.
    pub ending: Option<Histogram>,
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
        ending: command.ending.clone(),
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
            set_child_subreaper(true)?;
            let (sender, orders) = std::sync::mpsc::channel::<Order>();
            std::thread::Builder::new()
                .name("engine-starter".to_owned())
                .spawn(move || {
                    for (mut command, runtime, answer) in orders {
                        let _entered = runtime.enter();
                        let mut supervisors = orphans::supervisors();
                        let child = command.spawn();
                        let pid = child.as_ref().ok().and_then(Child::id);
                        supervisors.extend(pid.and_then(|pid| i32::try_from(pid).ok()));
                        // Nobody waits any more: the child is dropped, and dropping kills it.
                        let _ = answer.send(child);
                    }
                })?;
            Ok(sender)
        })
        .as_ref()
        .map_err(|error| EngineError::io("started")(io::Error::new(error.kind(), error.to_string())))?;

    let plan = Plan {
        parent: std::process::id().cast_signed(),
        grace_millis: u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX),
        limits: command.limits,
        sandbox: command.sandbox.clone(),
        engine: command.executable.clone().into(),
        args: command.args.clone(),
    };
    let args = plan
        .arguments(cage::SUPERVISE)
        .map_err(|error| EngineError::io("started")(error.into()))?;
    let mut process = Command::new(&command.launcher);
    process
        .args(args)
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
    ending: Option<Histogram>,
}

impl Watch {
    /// Returns only after the process group is gone, or could not be ended.
    async fn until_gone(self, mut child: Child) -> Result<Ended, EngineError> {
        let pid = child.id();
        let outcome = self.watch(&mut child).await;
        let ordered = Instant::now();
        let family = end(&mut child, pid).await;
        let mut orphans_alive = false;
        if child.try_wait().ok().flatten().is_some_and(was_killed) {
            orphans_alive = !end_orphans().await;
        }
        if let (Err(_), Some(ending)) = (&outcome, &self.ending) {
            ending.observe(ordered.elapsed().as_secs_f64());
        }
        // The first error says more than one of the clean-up.
        let ended = outcome?;
        family?;
        if orphans_alive {
            return Err(EngineError::GroupAlive);
        }
        Ok(ended)
    }

    async fn watch(&self, child: &mut Child) -> Result<Ended, EngineError> {
        let pipe = || EngineError::io("watched")(io::Error::other("a pipe is missing"));
        let out = child.stdout.take().ok_or_else(pipe)?;
        let err = child.stderr.take().ok_or_else(pipe)?;
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
                // Nobody is left to hold the pipes open, unless the supervisor was killed.
                if was_killed(status) {
                    end_orphans().await;
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

/// Whether a supervisor was killed itself, or its engine was, which is the same from here: then something may be left.
fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::SIGKILL as i32)
}

/// Gives whether nothing is left.
async fn end_orphans() -> bool {
    tokio::task::spawn_blocking(orphans::end).await.unwrap_or(false)
}

/// Ends whatever is left. The supervisor does it when it is asked; it needs at most two graces.
async fn end(child: &mut Child, pid: Option<u32>) -> Result<(), EngineError> {
    let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) else {
        return Ok(());
    };
    // After it has been reaped the child has no id any more.
    if child.id().is_some() {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        if tokio::time::timeout(GRACE * 2 + MARGIN, child.wait())
            .await
            .is_err()
        {
            // It is stopped or stuck. Its family comes to this process when it is gone.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            tokio::time::timeout(GRACE, child.wait())
                .await
                .map_err(|_| EngineError::GroupAlive)?
                .map_err(EngineError::io("ended"))?;
        }
    }
    orphans::let_go(pid);
    Ok(())
}

/// What supervisors leave behind that were killed themselves: it comes back to this process, which is the next
/// subreaper above them.
mod orphans {
    use super::{GRACE, MARGIN};
    use crate::engine::cage::descendants::{descendants, processes};
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::Pid;
    use std::collections::BTreeSet;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    const ROUND: Duration = Duration::from_millis(10);

    /// The supervisors that this process has started and not yet seen gone.
    static SUPERVISORS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

    /// While it is held, no supervisor is started that is not in it.
    pub(super) fn supervisors() -> MutexGuard<'static, BTreeSet<i32>> {
        SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn let_go(supervisor: i32) {
        supervisors().remove(&supervisor);
    }

    /// Ends everything that descends from this process and from none of its supervisors. Blocking.
    ///
    /// Gives whether nothing is left. Children of the host that links this library in would be taken for orphans, so
    /// it is called only after a supervisor was killed.
    pub(super) fn end() -> bool {
        let until = Instant::now() + GRACE + MARGIN;
        loop {
            let alive = round();
            if alive == 0 {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(ROUND);
        }
    }

    fn round() -> usize {
        let Ok(own) = i32::try_from(std::process::id()) else {
            return 0;
        };
        let known = supervisors();
        let Ok(table) = processes() else { return 0 };
        let orphans = table
            .iter()
            .filter(|process| process.parent == own && !known.contains(&process.pid));
        let mut alive = 0;
        for orphan in orphans {
            let family = descendants(&table, orphan.pid);
            for pid in family.iter().chain((!orphan.zombie).then_some(&orphan.pid)) {
                alive += 1;
                // It may have ended in this moment.
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
            let _ = waitpid(Pid::from_raw(orphan.pid), Some(WaitPidFlag::WNOHANG));
        }
        alive
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;
    use assay_schemas::Code;
    use std::ffi::OsStr;
    use std::path::Path;

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
