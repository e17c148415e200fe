//! The hidden verb `exec`: the adapter's own executable limits itself and then becomes the engine.
//!
//! Limits that a child must set on itself between fork and exec would need `unsafe` code in the parent. Here the
//! child is this same program, so ordinary calls do.

use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid, setsid};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// The verb.
pub const VERB: &str = "exec";

/// How every line of the launcher's own begins, so that it is not taken for the engine's.
pub const MARK: &str = "assay-launcher:";

/// What follows the mark when not the engine but its isolation is at fault.
pub(super) const ISOLATION: &str = " isolation: ";

/// Exit code when the engine could not be started. The mark on stderr is what counts.
const FAILED: u8 = 126;

/// What the engine is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest file that the engine may write, bytes.
    pub file_size: u64,
    /// Open file descriptors.
    pub open_files: u64,
}

/// The arguments after the launcher's name.
pub(crate) fn arguments(limits: Limits, parent: u32, engine: &OsStr, args: &[OsString]) -> Vec<OsString> {
    let mut out: Vec<OsString> = vec![
        VERB.into(),
        parent.to_string().into(),
        limits.file_size.to_string().into(),
        limits.open_files.to_string().into(),
        "--".into(),
        engine.into(),
    ];
    out.extend(args.iter().cloned());
    out
}

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    parent: i32,
    limits: Limits,
    engine: OsString,
    args: Vec<OsString>,
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Option<Plan> {
    fn number<T: std::str::FromStr>(arg: Option<OsString>) -> Option<T> {
        arg?.to_str()?.parse().ok()
    }
    let mut args = args.into_iter();
    let plan = (
        number(args.next())?,
        number(args.next())?,
        number(args.next())?,
        args.next()? == "--",
        args.next()?,
    );
    let (parent, file_size, open_files, true, engine) = plan else {
        return None;
    };
    Some(Plan {
        parent,
        limits: Limits {
            file_size,
            open_files,
        },
        engine,
        args: args.collect(),
    })
}

/// Takes over when the program was called with the hidden verb, else gives `None`. `args` starts with the program.
///
/// On success it does not return: the process is the engine from then on.
pub fn dispatch(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    if args.next()? != VERB {
        return None;
    }
    let reason = match parse(args) {
        Some(plan) => become_engine(&plan),
        None => " malformed call".to_owned(),
    };
    eprintln!("{MARK}{reason}");
    Some(ExitCode::from(FAILED))
}

/// Gives the reason why it is still here.
fn become_engine(plan: &Plan) -> String {
    if let Err((step, error)) = confine(plan) {
        return format!("{ISOLATION}{step}: {error}");
    }
    let error = Command::new(&plan.engine).args(&plan.args).exec();
    format!(" exec: {error}")
}

fn confine(plan: &Plan) -> Result<(), (&'static str, nix::Error)> {
    let step = |name: &'static str| move |error| (name, error);
    setsid().map_err(step("setsid"))?;
    set_pdeathsig(Signal::SIGKILL).map_err(step("parent-death signal"))?;
    // The parent may have died before the signal was set; then nobody would ever send it.
    if getppid() != Pid::from_raw(plan.parent) {
        return Err(("parent", nix::Error::ESRCH));
    }
    set_no_new_privs().map_err(step("no-new-privileges"))?;
    lower(Resource::RLIMIT_CORE, 0).map_err(step("core limit"))?;
    lower(Resource::RLIMIT_FSIZE, plan.limits.file_size).map_err(step("file size limit"))?;
    lower(Resource::RLIMIT_NOFILE, plan.limits.open_files).map_err(step("open files limit"))
}

/// Sets soft and hard limit, but never above the hard limit that is there.
fn lower(resource: Resource, wanted: u64) -> nix::Result<()> {
    let (_, hard) = nix::sys::resource::getrlimit(resource)?;
    let limit = wanted.min(hard);
    setrlimit(resource, limit, limit)
}

#[cfg(test)]
mod tests {
    use super::{Limits, arguments, dispatch, parse};
    use std::ffi::{OsStr, OsString};

    const LIMITS: Limits = Limits {
        file_size: 7,
        open_files: 9,
    };

    #[test]
    fn a_call_round_trips() {
        let args = arguments(
            LIMITS,
            42,
            OsStr::new("/bin/e"),
            &["--".into(), "a b".into(), "".into()],
        );
        assert_eq!(args[0], "exec");
        let plan = parse(args[1..].iter().cloned()).unwrap();
        assert_eq!((plan.parent, plan.limits), (42, LIMITS));
        assert_eq!(plan.engine, "/bin/e");
        assert_eq!(plan.args, ["--", "a b", ""].map(OsString::from).to_vec());
    }

    #[test]
    fn malformed_calls_are_refused() {
        for args in [
            &[][..],
            &["1", "2", "3", "--"],
            &["1", "2", "3", "e"],
            &["x", "2", "3", "--", "e"],
            &["1", "-2", "3", "--", "e"],
        ] {
            assert_eq!(parse(args.iter().map(OsString::from)), None, "{args:?}");
        }
    }

    #[test]
    fn other_verbs_are_left_to_the_program() {
        for args in [&[][..], &["assay-adapter"], &["assay-adapter", "serve", "exec"]] {
            assert!(dispatch(args.iter().map(OsString::from)).is_none(), "{args:?}");
        }
    }
}
