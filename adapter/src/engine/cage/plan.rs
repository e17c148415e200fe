//! What an engine is held to, and how that is told to the process that becomes it.

use super::CageError;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What one engine process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Largest file that it may write, bytes.
    pub file_size: u64,
    /// Open file descriptors.
    pub open_files: u64,
    /// Processes and threads of its user. The kernel does not hold the superuser to it.
    pub processes: u64,
    /// Processor time of one process, seconds.
    pub cpu_seconds: u64,
    /// Writable private memory of one process, bytes: heap and stacks, not the program and not what it maps to read.
    pub memory: u64,
}

/// How much of the sandbox must be in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every layer that the kernel has must be in force, or no engine starts.
    Required,
    /// What the kernel does not have is left out.
    BestEffort,
    /// No sandbox. Session, limits and no-new-privileges stay.
    Off,
}

impl Mode {
    /// All modes.
    pub const ALL: &[Self] = &[Self::Required, Self::BestEffort, Self::Off];

    /// The word for it in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
            Self::Off => "off",
        }
    }

    /// The mode of that word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text)
    }
}

/// What one engine process may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Whether it is in force.
    pub mode: Mode,
    /// Files and directories that it may read, beside what every program needs.
    pub readable: Vec<PathBuf>,
    /// Directories that it may write.
    pub writable: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
}

/// One engine start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Process that started it. Without that one it must not run.
    pub parent: i32,
    /// Time between a polite signal and a deadly one, milliseconds.
    pub grace_millis: u64,
    /// What it may use.
    pub limits: Limits,
    /// What it may reach.
    pub sandbox: Sandbox,
    /// Absolute path of the engine. In the arguments as it is, because it may be no text.
    #[serde(skip)]
    pub engine: OsString,
    /// Its arguments.
    #[serde(skip)]
    pub args: Vec<OsString>,
}

impl Plan {
    /// The arguments after the program's name for a verb of the cage.
    pub(crate) fn arguments(&self, verb: &str) -> serde_json::Result<Vec<OsString>> {
        let mut out = vec![
            verb.into(),
            serde_json::to_string(self)?.into(),
            "--".into(),
            self.engine.clone(),
        ];
        out.extend(self.args.iter().cloned());
        Ok(out)
    }

    /// Reads what [`Self::arguments`] made, after the verb.
    pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, CageError> {
        let mut args = args.into_iter();
        let (Some(plan), Some(dashes), Some(engine)) = (args.next(), args.next(), args.next()) else {
            return Err(CageError::Call);
        };
        let plan: Option<Self> = plan.to_str().and_then(|text| serde_json::from_str(text).ok());
        match plan {
            Some(plan) if dashes == OsStr::new("--") => Ok(Self {
                engine,
                args: args.collect(),
                ..plan
            }),
            _ => Err(CageError::Call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Mode, Plan, Sandbox};
    use std::ffi::OsString;

    fn plan() -> Plan {
        Plan {
            parent: 42,
            grace_millis: 2000,
            limits: Limits {
                file_size: u64::MAX,
                open_files: 9,
                processes: 10,
                cpu_seconds: 11,
                memory: 12,
            },
            sandbox: Sandbox {
                mode: Mode::Required,
                readable: vec!["/a b".into()],
                writable: vec!["/c".into()],
                network: false,
            },
            engine: "/bin/e".into(),
            args: ["--", "a b", ""].map(OsString::from).to_vec(),
        }
    }

    #[test]
    fn a_call_round_trips() {
        let args = plan().arguments("exec").unwrap();
        assert_eq!(args[0], "exec");
        assert_eq!(Plan::parse(args.into_iter().skip(1)).unwrap(), plan());
    }

    #[test]
    fn malformed_calls_are_refused() {
        let json = plan().arguments("exec").unwrap()[1].to_str().unwrap().to_owned();
        for args in [
            &[][..],
            &[json.as_str()],
            &[&json, "--"],
            &[&json, "e", "f"],
            &["{}", "--", "e"],
            &["42", "--", "e"],
        ] {
            assert!(Plan::parse(args.iter().map(OsString::from)).is_err(), "{args:?}");
        }
    }

    #[test]
    fn modes_have_one_word_each() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.as_str()), Some(*mode));
        }
        assert_eq!(Mode::parse("on"), None);
    }
}
