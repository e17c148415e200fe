//! From a job to a process of its own: surroundings, limits, and what it may reach.

use super::{Download, Engines, HELPER_OUTPUT, HELPER_TIMEOUT, UPDATE_TIMEOUT};
use crate::engine::cage::{Limits, Sandbox};
use crate::engine::error::EngineError;
use crate::engine::grype::{self, DatabasePolicy};
use crate::engine::process::{self, EngineCommand, Finished};
use crate::run::{RunContext, Stopped};
use crate::workspace::Workspace;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Processes and threads that an engine's user may have; Go programs make a thread for each blocking call.
const MAX_PROCESSES: u64 = 4096;
/// Processor time of one engine process: twice the longest run that a client can ask for, on many processors.
const MAX_CPU_SECONDS: u64 = 8 * 3600;

impl Engines {
    /// Runs a helper in a private directory of its own.
    pub(super) async fn helper(
        &self,
        executable: PathBuf,
        args: Vec<OsString>,
        database: Option<(&Path, DatabasePolicy)>,
        reach: Reach,
        run: &RunContext,
    ) -> Result<Finished, EngineError> {
        let fills = reach.fills.is_some();
        let (prefix, timeout) = if fills {
            ("db-update-", UPDATE_TIMEOUT)
        } else {
            ("version-", HELPER_TIMEOUT)
        };
        let directory = Workspace::create(&self.config.scratch, prefix)
            .map_err(|error| EngineError::io("prepared")(error.into_inner()))?;
        let mut environment = Vec::new();
        if let Some((cache, policy)) = database {
            write(&directory.path().join(grype::CONFIG_FILE), grype::config(policy)).await?;
            environment.extend(grype::environment(cache));
            if let Some(download) = &reach.download {
                environment.extend(self.config.update_environment.iter().cloned());
                environment.extend(
                    download
                        .url
                        .iter()
                        .map(|url| (grype::UPDATE_URL.into(), url.into())),
                );
            }
        } else {
            environment.extend([
                ("SYFT_CHECK_FOR_APP_UPDATE".into(), "false".into()),
                ("GRYPE_CHECK_FOR_APP_UPDATE".into(), "false".into()),
            ]);
        }
        let rate = reach
            .download
            .as_ref()
            .filter(|_| fills)
            .map(|download| download.rate);
        // The archive comes into the former and is unpacked into the latter.
        let watched: Vec<PathBuf> = std::iter::once(directory.path().to_owned())
            .chain(reach.fills.clone())
            .collect();
        let mut command = self.command(executable, args, environment, directory.path(), reach);
        command.stdout_limit = HELPER_OUTPUT;
        if fills {
            // A database is larger than anything that a scan writes.
            command.limits.file_size = u64::MAX;
        }
        let bounds = RunContext {
            deadline: run.deadline.at_most(timeout),
            cancel: run.cancel.child_token(),
        };
        let mut process = std::pin::pin!(process::run(&command, &bounds));
        let Some(rate) = rate else {
            return process.await;
        };
        tokio::select! {
            done = &mut process => done,
            got = rate.missed(&watched) => {
                bounds.cancel.cancel();
                // It may have ended well in this moment. Otherwise all of it is gone when this returns.
                process.await.map_err(|error| match error {
                    EngineError::Stopped(Stopped::Cancelled) if !run.cancel.is_cancelled() => EngineError::TooSlow {
                        got,
                        wanted: rate.bytes(),
                        seconds: rate.window.as_secs(),
                    },
                    other => other,
                })
            }
        }
    }

    pub(super) fn command(
        &self,
        executable: PathBuf,
        args: Vec<OsString>,
        extra: Vec<(OsString, OsString)>,
        dir: &Path,
        reach: Reach,
    ) -> EngineCommand {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), self.config.path.clone()),
            ("HOME".into(), dir.into()),
            ("TMPDIR".into(), dir.into()),
        ];
        env.extend(extra);
        EngineCommand {
            launcher: self.config.launcher.clone(),
            executable,
            args,
            env,
            cwd: dir.to_owned(),
            stdout_limit: self.config.max_output,
            stderr_limit: self.config.max_stderr,
            limits: Limits {
                file_size: self.config.max_file,
                open_files: 1024,
                processes: MAX_PROCESSES,
                cpu_seconds: MAX_CPU_SECONDS,
                memory: self.config.max_memory,
            },
            sandbox: Sandbox {
                mode: self.config.sandbox,
                readable: self.config.readable.iter().cloned().chain(reach.reads).collect(),
                writable: std::iter::once(dir.to_owned()).chain(reach.fills).collect(),
                network: reach.download.is_some(),
            },
            ending: Some(self.config.ending.clone()),
        }
    }
}

/// What an engine may reach beside its program and its private directory.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) reads: Option<PathBuf>,
    /// A database to be.
    pub(super) fills: Option<PathBuf>,
    /// The network, for this.
    pub(super) download: Option<Download>,
}

impl Reach {
    pub(super) fn reading(path: &Path) -> Self {
        Self {
            reads: Some(path.to_owned()),
            ..Self::default()
        }
    }
}

pub(super) async fn write(path: &Path, content: String) -> Result<(), EngineError> {
    tokio::fs::write(path, content)
        .await
        .map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => EngineError::ScratchExhausted,
            _ => EngineError::io("prepared")(error),
        })
}
