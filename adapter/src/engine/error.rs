//! What can go wrong with an engine process, and whose fault it is.

use crate::problem::{Problem, sanitize};
use crate::run::Stopped;
use assay_schemas::Code;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;

/// Most characters of an engine's own words in an error.
pub const MAX_STDERR_CHARS: usize = 1000;

/// Memory of an engine that did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Most resident memory that it had, bytes.
    pub peak: u64,
    /// Writable memory that it was allowed, bytes; `u64::MAX` is no limit.
    pub limit: u64,
}

/// What an error says of it.
fn said(memory: Option<MemoryUse>) -> String {
    match memory {
        None => String::new(),
        Some(MemoryUse {
            peak,
            limit: u64::MAX,
        }) => format!("; it had up to {} MiB of memory", peak >> 20),
        Some(MemoryUse { peak, limit }) => {
            format!(
                "; it had up to {} MiB of memory and may have {} MiB",
                peak >> 20,
                limit >> 20
            )
        }
    }
}

/// A failed engine run.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// The executable does not exist, is no regular file or may not be executed.
    #[error("the {engine} executable is missing or not executable")]
    ExecutableMissing {
        /// Name of the engine's executable.
        engine: String,
    },
    /// The host could not start, watch or end the process.
    #[error("the engine process could not be {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the host said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The launcher could not hand over to the engine.
    #[error("the engine process could not be prepared: {reason}")]
    Launch {
        /// The launcher's sanitised words.
        reason: String,
    },
    /// The launcher could not give the engine a session, limits and a signal for the parent's death.
    #[error("the engine process could not be isolated: {reason}")]
    Isolation {
        /// The launcher's sanitised words.
        reason: String,
    },
    /// Processes of the engine's group are alive after the kill.
    #[error("the engine's process group could not be ended")]
    GroupAlive,
    /// Ended by a signal that the adapter did not send: the host's out-of-memory killer for the most part.
    #[error("the engine was ended by signal {signal}{}", said(*memory))]
    Killed {
        /// Number of the signal.
        signal: i32,
        /// What it had of memory.
        memory: Option<MemoryUse>,
    },
    /// The engine itself ran out of memory.
    #[error("the engine ran out of memory{}", said(*memory))]
    OutOfMemory {
        /// What it had of memory.
        memory: Option<MemoryUse>,
    },
    /// The disk is full.
    #[error("the engine ran out of disk space")]
    ScratchExhausted,
    /// The engine wrote a file larger than its limit.
    #[error("the engine wrote a file of more than {limit} bytes")]
    FileTooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// The vulnerability database cannot be used.
    #[error("the vulnerability database could not be read")]
    DatabaseUnreadable {
        /// Sanitised words of the engine.
        stderr: String,
    },
    /// The vulnerability database is older than the allowed age.
    #[error("the vulnerability database is older than the allowed age")]
    DatabaseTooOld,
    /// The vulnerability database names no build time.
    #[error("the vulnerability database has no revision or build time")]
    DatabaseProvenanceMissing,
    /// The engine ended with an exit code other than zero.
    #[error("the engine failed with exit code {exit}: {stderr}")]
    Failed {
        /// Exit code.
        exit: i32,
        /// Sanitised words of the engine, at most [`MAX_STDERR_CHARS`].
        stderr: String,
    },
    /// More output than the cap.
    #[error("the engine wrote more than {limit} bytes of output")]
    OutputTooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// More diagnostics than the cap.
    #[error("the engine wrote more than {limit} bytes of diagnostics")]
    StderrTooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// A download that hardly comes.
    #[error("the download was too slow: {got} bytes in {seconds} s, {wanted} are the least")]
    TooSlow {
        /// Bytes that came within the window.
        got: u64,
        /// Bytes that had to come.
        wanted: u64,
        /// Length of the window, seconds.
        seconds: u64,
    },
    /// The version output is not readable.
    #[error("the version of {engine} is not readable")]
    VersionInvalid {
        /// Name of the engine.
        engine: &'static str,
    },
    /// The database status output is not readable.
    #[error("the status of the vulnerability database is not readable")]
    DatabaseStatusInvalid,
    /// The run had to stop.
    #[error("{0}")]
    Stopped(#[from] Stopped),
}

impl EngineError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::ExecutableMissing { .. } | Self::Io { .. } | Self::Launch { .. } | Self::GroupAlive => {
                Code::ProcessIo
            }
            Self::Isolation { .. } => Code::ProcessIsolationUnavailable,
            Self::Killed { .. } => Code::ProcessKilled,
            Self::OutOfMemory { .. } => Code::ProcessOutOfMemory,
            Self::ScratchExhausted => Code::ScratchExhausted,
            Self::DatabaseUnreadable { .. } => Code::DatabaseUnreadable,
            Self::DatabaseTooOld => Code::DatabaseTooOld,
            Self::DatabaseProvenanceMissing => Code::DatabaseProvenanceMissing,
            Self::Failed { .. } => Code::ProcessFailed,
            Self::TooSlow { .. } => Code::DatabaseUpdateIo,
            Self::OutputTooLarge { .. } | Self::FileTooLarge { .. } => Code::OutputTooLarge,
            Self::StderrTooLarge { .. } => Code::StderrTooLarge,
            Self::VersionInvalid { .. } => Code::VersionInvalid,
            Self::DatabaseStatusInvalid => Code::DatabaseStatusInvalid,
            Self::Stopped(stopped) => stopped.code(),
        }
    }

    /// A failure of the host.
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            source: Arc::new(source),
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Self::new(error.code(), error.to_string()).caused_by(error)
    }
}

/// Words of Grype that say that its database, not its input, is at fault. Source: `grype/db/v6/installation` and
/// `grype/load_vulnerability_db.go` of Grype 0.121.
const DATABASE_UNREADABLE: &[&str] = &[
    "vulnerability database error",
    "unable to get vulnerability store metadata",
    "unable to create db reader",
    "unable to create curator",
    "database not found",
    "database does not exist",
    "failed to access database file",
    "unsupported database version",
    "bad db checksum",
    "no metadata to validate",
    "unable to read import metadata",
    "unable to read db description",
    "cannot open an empty database",
    "database disk image is malformed",
    "file is not a database",
    "failed to load vulnerability db",
    "no such table",
];

/// Words of the Go runtime when the system gives it no memory. Source: `runtime/{malloc,mem_linux,os_linux}.go`.
const OUT_OF_MEMORY: &[&str] = &[
    "runtime: out of memory",
    "fatal error: out of memory",
    "cannot allocate memory",
    "failed to create new os thread",
];

/// Takes the supervisor's note on memory out of an engine's last words; it is the last that there is.
fn without_memory(text: &str) -> (&str, Option<MemoryUse>) {
    let found = text.rsplit_once(super::cage::MARK).and_then(|(words, note)| {
        let (peak, limit) = note
            .strip_prefix(super::cage::MEMORY)?
            .trim_end()
            .split_once(' ')?;
        let memory = MemoryUse {
            peak: peak.parse().ok()?,
            limit: limit.parse().ok()?,
        };
        Some((words, Some(memory)))
    });
    found.unwrap_or((text, None))
}

/// What an end other than exit code zero means.
pub(crate) fn classify(status: ExitStatus, stderr: &[u8], file_size_limit: u64) -> EngineError {
    let text = String::from_utf8_lossy(stderr);
    let (text, memory) = without_memory(&text);
    if let Some(reason) = text.lines().find_map(|line| line.strip_prefix(super::cage::MARK)) {
        if reason.starts_with(super::cage::ALIVE) {
            return EngineError::GroupAlive;
        }
        return match reason.strip_prefix(super::cage::ISOLATION) {
            Some(step) => EngineError::Isolation {
                reason: sanitize(step.trim(), MAX_STDERR_CHARS),
            },
            None => EngineError::Launch {
                reason: sanitize(reason.trim(), MAX_STDERR_CHARS),
            },
        };
    }
    let lower = text.to_ascii_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
    if says(&["no space left on device", "disk quota exceeded"]) {
        return EngineError::ScratchExhausted;
    }
    if let Some(signal) = status.signal() {
        return if signal == nix::libc::SIGXFSZ {
            EngineError::FileTooLarge {
                limit: file_size_limit,
            }
        } else {
            EngineError::Killed { signal, memory }
        };
    }
    if says(&["file too large"]) {
        return EngineError::FileTooLarge {
            limit: file_size_limit,
        };
    }
    if says(OUT_OF_MEMORY) {
        return EngineError::OutOfMemory { memory };
    }
    if says(&["vulnerability database was built"]) {
        return EngineError::DatabaseTooOld;
    }
    let stderr = sanitize(text.trim(), MAX_STDERR_CHARS);
    if says(DATABASE_UNREADABLE) {
        return EngineError::DatabaseUnreadable { stderr };
    }
    EngineError::Failed {
        exit: status.code().unwrap_or(-1),
        stderr,
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineError, classify};
    use assay_schemas::Code;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    #[test]
    fn ends_are_told_apart() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let signal = ExitStatus::from_raw;
        let cases: &[(ExitStatus, &str, Code)] = &[
            (exit(1), "could not parse file", Code::ProcessFailed),
            (exit(1), "", Code::ProcessFailed),
            (signal(9), "", Code::ProcessKilled),
            (signal(11), "", Code::ProcessKilled),
            (signal(25), "", Code::OutputTooLarge),
            (exit(1), "write /x: file too large", Code::OutputTooLarge),
            (
                exit(1),
                "write /x/y: No space left on device",
                Code::ScratchExhausted,
            ),
            (
                exit(2),
                "fatal error: runtime: out of memory",
                Code::ProcessOutOfMemory,
            ),
            (
                exit(2),
                "fatal error: runtime: cannot allocate memory\n\nassay-launcher: memory: 167772160 167772160\n",
                Code::ProcessOutOfMemory,
            ),
            (
                exit(1),
                "could not parse file\nassay-launcher: memory: 1 2\n",
                Code::ProcessFailed,
            ),
            (
                exit(1),
                "failed to load vulnerability db: the vulnerability database was built 2 weeks ago (max allowed age is 5 days)",
                Code::DatabaseTooOld,
            ),
            (
                exit(1),
                "vulnerability database error: database not found: /x. Try 'grype db update'",
                Code::DatabaseUnreadable,
            ),
            (
                exit(126),
                "assay-launcher: exec: permission denied",
                Code::ProcessIo,
            ),
            (
                exit(126),
                "assay-launcher: isolation: setsid: not permitted",
                Code::ProcessIsolationUnavailable,
            ),
        ];
        for (status, stderr, want) in cases {
            assert_eq!(
                classify(*status, stderr.as_bytes(), 1).code(),
                *want,
                "{status} {stderr}"
            );
        }
    }

    #[test]
    fn errors_of_memory_say_how_much() {
        let cases = [
            ("", ""),
            (
                "\nassay-launcher: memory: 104857600 268435456\n",
                "; it had up to 100 MiB of memory and may have 256 MiB",
            ),
            (
                "\nassay-launcher: memory: 104857600 18446744073709551615\n",
                "; it had up to 100 MiB of memory",
            ),
        ];
        for (note, want) in cases {
            let words = format!("fatal error: runtime: out of memory{note}");
            let said = |status| classify(ExitStatus::from_raw(status), words.as_bytes(), 1).to_string();
            assert_eq!(said(2 << 8), format!("the engine ran out of memory{want}"));
            assert_eq!(said(9), format!("the engine was ended by signal 9{want}"));
        }
        let refused = b"bad file\nassay-launcher: memory: 1 2\n";
        let error = classify(ExitStatus::from_raw(1 << 8), refused, 1);
        assert_eq!(error.to_string(), "the engine failed with exit code 1: bad file");
        // The supervisor writes no such note, so whoever did is not believed.
        let odd = b"bad file\nassay-launcher: memory: 1\n";
        assert_eq!(
            classify(ExitStatus::from_raw(1 << 8), odd, 1).code(),
            Code::ProcessIo
        );
    }

    #[test]
    fn the_engines_words_are_bounded_and_harmless() {
        let stderr = format!("\u{1b}[31mbad\n\n{}", "x".repeat(5000));
        let EngineError::Failed { exit, stderr } =
            classify(ExitStatus::from_raw(3 << 8), stderr.as_bytes(), 1)
        else {
            panic!("another kind");
        };
        assert_eq!(exit, 3);
        assert_eq!(stderr.chars().count(), 1000);
        assert!(stderr.starts_with("?[31mbad x"));
    }
}
