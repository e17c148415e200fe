//! The cage: how the adapter's own executable becomes an engine's supervisor, and then the engine.
//!
//! Limits that a child must set on itself between fork and exec would need `unsafe` code in the parent. Here the
//! child is this same program, so ordinary calls do. Two hidden verbs:
//!
//! - `supervise` ([`supervisor`]) is the parent of one engine and of everything that the engine leaves behind, whatever
//!   sessions that makes for itself. It ends only when nothing of it is left.
//! - `exec` ([`confine`], [`sandbox`]) gives itself a session, limits and a sandbox and becomes the engine.

mod confine;
pub(super) mod descendants;
pub mod plan;
pub mod probe;
mod sandbox;
mod supervisor;

pub use plan::{Limits, Mode, Plan, Sandbox};
pub use probe::{Force, Layer};

use std::ffi::OsString;
use std::process::ExitCode;

/// The verb of the parent of an engine.
pub const SUPERVISE: &str = "supervise";
/// The verb of what becomes an engine.
pub const EXEC: &str = "exec";

/// How every line of the cage's own begins, so that it is not taken for the engine's.
pub const MARK: &str = "assay-launcher:";
/// What follows the mark when not the engine but its isolation is at fault.
pub(super) const ISOLATION: &str = " isolation: ";
/// What follows the mark when processes could not be ended.
pub(super) const ALIVE: &str = " alive: ";

/// What follows the mark when an engine did not end well: the most memory that it had and its limit, in bytes.
pub(super) const MEMORY: &str = " memory: ";

/// Exit code when the engine could not be started. The mark on stderr is what counts.
const FAILED: u8 = 126;

/// Why the cage gave up.
#[derive(Debug, thiserror::Error)]
enum CageError {
    /// The arguments are not those that [`Plan::arguments`] makes.
    #[error(" malformed call")]
    Call,
    /// A limit or a layer of the sandbox could not be set.
    #[error("{ISOLATION}{step}: {reason}")]
    Isolation {
        /// Which.
        step: &'static str,
        /// What the kernel or the library said.
        reason: String,
    },
    /// The program could not be started.
    #[error(" exec: {0}")]
    Exec(#[source] std::io::Error),
    /// The supervisor's own work failed.
    #[error(" {step}: {error}")]
    Supervisor {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        error: std::io::Error,
    },
    /// Processes are left that obey no signal.
    #[error("{ALIVE}{0} processes obey no signal")]
    Alive(usize),
}

impl CageError {
    /// An isolation error of this step.
    fn isolation(step: &'static str) -> impl Fn(nix::Error) -> Self {
        move |error| Self::Isolation {
            step,
            reason: error.to_string(),
        }
    }

    /// An error of the supervisor's own work.
    fn supervisor(step: &'static str) -> impl Fn(nix::Error) -> Self {
        move |error| Self::Supervisor {
            step,
            error: error.into(),
        }
    }
}

/// Takes over when the program was called with a hidden verb, else gives `None`. `args` starts with the program.
///
/// With `exec` it does not return on success: the process is the engine from then on.
pub fn dispatch(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    let verb = args.next()?;
    let outcome = if verb == SUPERVISE {
        Plan::parse(args).and_then(|plan| supervisor::supervise(&plan))
    } else if verb == EXEC {
        Plan::parse(args).and_then(|plan| confine::become_engine(&plan).map(|never| match never {}))
    } else if verb == probe::VERB {
        return Some(probe::main());
    } else {
        return None;
    };
    Some(outcome.unwrap_or_else(|error| {
        eprintln!("{MARK}{error}");
        ExitCode::from(FAILED)
    }))
}

#[cfg(test)]
mod tests {
    use super::dispatch;
    use std::ffi::OsString;

    #[test]
    fn other_verbs_are_left_to_the_program() {
        for args in [
            &[][..],
            &["assay-adapter"],
            &["assay-adapter", "serve", "exec"],
            &["assay-adapter", "serve", "supervise"],
        ] {
            assert!(dispatch(args.iter().map(OsString::from)).is_none(), "{args:?}");
        }
    }
}
