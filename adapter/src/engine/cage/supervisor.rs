//! The parent of one engine. Everything that the engine starts and leaves behind comes back to this process, because
//! it is their subreaper, and it ends only when nothing is left.
//!
//! It ends them all when the engine has ended, when it is asked to (`SIGTERM`), and when the adapter dies, which the
//! kernel tells it by the same signal: politely first, and after the grace without asking.

use super::descendants::{descendants, processes};
use super::{CageError, EXEC, MARK, MEMORY, Plan};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::{set_child_subreaper, set_name, set_pdeathsig};
use nix::sys::resource::{Resource, UsageWho, getrusage, setrlimit};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid, setsid};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Between two rounds of signals: what is being started meanwhile is caught by the next.
const ROUND: Duration = Duration::from_millis(20);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exit(i32),
    Signal(Signal),
}

/// Starts the engine and stays until nothing of it is left; then ends as the engine did.
pub(super) fn supervise(plan: &Plan) -> Result<ExitCode, CageError> {
    prepare(plan)?;
    let mut wanted = SigSet::empty();
    wanted.add(Signal::SIGCHLD);
    wanted.add(Signal::SIGTERM);
    wanted
        .thread_block()
        .map_err(CageError::supervisor("signal mask"))?;
    let signals = SignalFd::with_flags(&wanted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(CageError::supervisor("signals"))?;
    let engine = start(plan)?;
    let mut family = Family {
        engine,
        end: None,
        signals,
    };
    let grace = Duration::from_millis(plan.grace_millis);
    let is_left = family.wait_for_engine()?;
    if matches!(family.end, Some(End::Exit(1..) | End::Signal(_))) {
        tell_memory(plan.limits.memory);
    }
    let alive = is_left && family.end_all(grace)?;
    if alive {
        return Err(CageError::Alive(family.members().len()));
    }
    Ok(mirror(family.end.unwrap_or(End::Signal(Signal::SIGKILL))))
}

/// Says how much memory the engine had at its most, for whoever has to tell why it failed.
fn tell_memory(limit: u64) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return;
    };
    let peak = u64::try_from(usage.max_rss()).unwrap_or(0).saturating_mul(1024);
    // Nobody may be listening any more.
    let _ = writeln!(std::io::stderr(), "\n{MARK}{MEMORY}{peak} {limit}");
}

fn prepare(plan: &Plan) -> Result<(), CageError> {
    // For those who look at a list of processes; not having it is no harm.
    let _ = set_name(c"assay-cage");
    setsid().map_err(CageError::isolation("setsid"))?;
    set_child_subreaper(true).map_err(CageError::isolation("subreaper"))?;
    // Asked, not killed: it has something to do before it goes.
    set_pdeathsig(Signal::SIGTERM).map_err(CageError::isolation("parent-death signal"))?;
    // The parent may have died before the signal was set; then nobody would ever send it.
    if getppid() != Pid::from_raw(plan.parent) {
        return Err(CageError::isolation("parent")(Errno::ESRCH));
    }
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(CageError::isolation("core limit"))
}

fn start(plan: &Plan) -> Result<Pid, CageError> {
    let plan = Plan {
        parent: getpid().as_raw(),
        ..plan.clone()
    };
    let args = plan.arguments(EXEC).map_err(|_| CageError::Call)?;
    let child = Command::new("/proc/self/exe")
        .args(args)
        .stdin(Stdio::null())
        .spawn()
        .map_err(CageError::Exec)?;
    i32::try_from(child.id())
        .map(Pid::from_raw)
        .map_err(|_| CageError::Call)
}

/// The engine and what came of it.
struct Family {
    engine: Pid,
    end: Option<End>,
    signals: SignalFd,
}

impl Family {
    /// Waits until the engine has ended or somebody asks for its end; gives whether anything is left.
    fn wait_for_engine(&mut self) -> Result<bool, CageError> {
        loop {
            if !self.reap()? {
                return Ok(false);
            }
            if self.end.is_some() || self.next_signal(None)? == Some(Signal::SIGTERM) {
                return Ok(true);
            }
        }
    }

    /// Ends whatever is left: politely, and after the grace by force; gives whether anything is left even then.
    fn end_all(&mut self, grace: Duration) -> Result<bool, CageError> {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            // Who handles a polite signal is not asked twice; a deadly one does no harm again.
            let mut asked = BTreeSet::new();
            let until = Instant::now() + grace;
            let mut next_round = Instant::now();
            loop {
                if !self.reap()? {
                    return Ok(false);
                }
                let now = Instant::now();
                if now >= until {
                    break;
                }
                if now >= next_round {
                    for member in self.members() {
                        if asked.insert(member) || signal == Signal::SIGKILL {
                            // It may have ended in this moment.
                            let _ = kill(Pid::from_raw(member), signal);
                        }
                    }
                    next_round = now + ROUND;
                }
                self.next_signal(Some(next_round.min(until).saturating_duration_since(now)))?;
            }
        }
        self.reap()
    }

    /// Everything alive that descends from this process. What has escaped its parents descends directly.
    fn members(&self) -> Vec<i32> {
        match processes() {
            Ok(processes) => descendants(&processes, getpid().as_raw()),
            // Without a list of processes the engine itself is at least known.
            Err(_) => vec![self.engine.as_raw()],
        }
    }

    /// Takes note of the dead; gives whether any child is left.
    fn reap(&mut self) -> Result<bool, CageError> {
        loop {
            let (pid, end) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, End::Exit(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, End::Signal(signal)),
                Ok(WaitStatus::StillAlive) => return Ok(true),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(Errno::ECHILD) => return Ok(false),
                Err(error) => return Err(CageError::supervisor("wait")(error)),
            };
            if pid == self.engine {
                self.end = Some(end);
            }
        }
    }

    /// Waits for one of the wanted signals, at most for `patience`.
    fn next_signal(&self, patience: Option<Duration>) -> Result<Option<Signal>, CageError> {
        // A fraction of a millisecond must not become a busy wait.
        let millis = |patience: Duration| patience.as_millis().saturating_add(1);
        let timeout = patience.map_or(PollTimeout::NONE, |patience| {
            PollTimeout::try_from(millis(patience)).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(CageError::supervisor("poll")(error)),
        }
        let read = self
            .signals
            .read_signal()
            .map_err(CageError::supervisor("signals"))?;
        Ok(read.and_then(|info| {
            let number = i32::try_from(info.ssi_signo).ok()?;
            Signal::try_from(number).ok()
        }))
    }
}

/// Ends this process as the engine ended, so that its own parent sees what happened.
fn mirror(end: End) -> ExitCode {
    match end {
        End::Exit(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        End::Signal(signal) => {
            let mut blocked = SigSet::empty();
            blocked.add(signal);
            let _ = blocked.thread_unblock();
            let _ = raise(signal);
            // A signal whose default is not to end a process.
            ExitCode::from(128_u8.saturating_add(u8::try_from(signal as i32).unwrap_or(0)))
        }
    }
}
