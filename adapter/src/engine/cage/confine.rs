//! The process that becomes the engine: session, signals, limits, sandbox, and then the engine's program.

use super::{CageError, Mode, Plan, sandbox};
use nix::errno::Errno;
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getppid, setsid};
use std::convert::Infallible;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// How willingly the kernel takes an engine when memory runs out: before the adapter and before most of its host.
const OOM_SCORE: &str = "900";

/// Does not return on success: the process is the engine from then on.
pub(super) fn become_engine(plan: &Plan) -> Result<Infallible, CageError> {
    confine(plan)?;
    // A blocked signal stays blocked in the program that is started, and the supervisor blocks those that it waits for.
    // Go honours that: an engine would not hear the polite request, and every end would take the whole grace.
    SigSet::empty()
        .thread_set_mask()
        .map_err(CageError::isolation("signal mask"))?;
    sandbox::enter(&plan.sandbox, &plan.engine)?;
    Err(CageError::Exec(
        Command::new(&plan.engine).args(&plan.args).exec(),
    ))
}

fn confine(plan: &Plan) -> Result<(), CageError> {
    let step = CageError::isolation;
    setsid().map_err(step("setsid"))?;
    set_pdeathsig(Signal::SIGKILL).map_err(step("parent-death signal"))?;
    // The parent may have died before the signal was set; then nobody would ever send it.
    if getppid() != Pid::from_raw(plan.parent) {
        return Err(step("parent")(Errno::ESRCH));
    }
    // Only what the engine shall have is open in it: the standard streams.
    close_fds::set_fds_cloexec(3, &[]);
    set_no_new_privs().map_err(step("no-new-privileges"))?;
    let limits = &plan.limits;
    lower(Resource::RLIMIT_CORE, 0).map_err(step("core limit"))?;
    lower(Resource::RLIMIT_FSIZE, limits.file_size).map_err(step("file size limit"))?;
    lower(Resource::RLIMIT_NOFILE, limits.open_files).map_err(step("open files limit"))?;
    lower(Resource::RLIMIT_NPROC, limits.processes).map_err(step("processes limit"))?;
    lower(Resource::RLIMIT_CPU, limits.cpu_seconds).map_err(step("processor limit"))?;
    // Go reserves more addresses than any machine has memory, so a limit of the address space would be its death.
    lower(Resource::RLIMIT_DATA, limits.memory).map_err(step("memory limit"))?;
    match std::fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        Err(error) if plan.sandbox.mode == Mode::Required => Err(CageError::Isolation {
            step: "out-of-memory score",
            reason: error.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Sets soft and hard limit, but never above the hard limit that is there.
fn lower(resource: Resource, wanted: u64) -> nix::Result<()> {
    let (_, hard) = getrlimit(resource)?;
    let limit = wanted.min(hard);
    setrlimit(resource, limit, limit)
}
