//! One source tried: from asking it to a published generation.

use super::canary::{GoldenError, Trial};
use super::publish::FileFacts;
use super::record::{Hold, Published};
use super::source::{self, LocalError, Source};
use super::store::{DatabaseError, Staging};
use super::updater::{Outcome, Session};
use crate::engine::{DatabaseProvenance, Download, EngineError};
use crate::problem::Problem;
use assay_schemas::Code;
use jiff::Timestamp;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// A failed update; the old generation stays current.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The store.
    #[error(transparent)]
    Store(#[from] DatabaseError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The source of this host.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The golden set.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The database is not to be worked with.
    #[error("the new vulnerability database was refused: {0}")]
    Rejected(Box<Rejection>),
    /// No source is configured.
    #[error("there is no source of vulnerability databases")]
    NoSource,
}

/// Why a database was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It was built before the current one.
    #[error("it was built at {new}, before the current one, which was built at {current}")]
    Older {
        /// Build time of the new one.
        new: Timestamp,
        /// Build time of the current one.
        current: Timestamp,
    },
    /// The engine cannot use it.
    #[error("the matcher cannot use it: {0}")]
    Unusable(String),
    /// Known vulnerabilities are not found with it.
    #[error("{missing} expected findings are missing; the report is in {}", report.display())]
    Incomplete {
        /// Expected findings that are missing.
        missing: usize,
        /// Directory with the report.
        report: PathBuf,
    },
    /// Findings are too different from those of the current one.
    #[error("{moved} findings came or went where {allowed} may; the report is in {}", report.display())]
    Swing {
        /// Findings that came or went, for the SBOM with the most beyond what may.
        moved: u64,
        /// How many may for that SBOM.
        allowed: u64,
        /// Directory with the report.
        report: PathBuf,
    },
}

impl UpdateError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Store(error) => error.code(),
            Self::Engine(error) => match error {
                EngineError::Failed { .. } => Code::DatabaseUpdateIo,
                other => other.code(),
            },
            Self::Local(_) | Self::Golden(_) | Self::Rejected(_) | Self::NoSource => Code::DatabaseUpdateIo,
        }
    }

    /// One word for logs, from a closed list.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Store(DatabaseError::Unsuitable(_)) => "unsuitable_directory",
            Self::Store(_) => "directory",
            Self::Engine(EngineError::TooSlow { .. }) => "too_slow",
            Self::Engine(EngineError::Stopped(_)) => "stopped",
            Self::Engine(_) => "engine",
            Self::Local(_) => "local_source",
            Self::Golden(_) => "canary_directory",
            Self::Rejected(rejection) => match **rejection {
                Rejection::Older { .. } => "older",
                Rejection::Unusable(_) => "unusable",
                Rejection::Incomplete { .. } => "canary_incomplete",
                Rejection::Swing { .. } => "canary_swing",
            },
            Self::NoSource => "no_source",
        }
    }

    /// Whether asking the sources again soon would do no good, and why.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        match self {
            Self::Engine(EngineError::Failed { stderr, .. }) => is_refusal(stderr).then_some("http_status"),
            Self::Engine(EngineError::TooSlow { .. }) | Self::Rejected(_) => Some(self.reason()),
            _ => None,
        }
    }
}

impl From<UpdateError> for Problem {
    fn from(error: UpdateError) -> Self {
        Self::new(error.code(), error.to_string()).caused_by(error)
    }
}

impl From<Rejection> for UpdateError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

/// Whether the matcher says that a server answered with 429 or 5xx. Source: its downloader's `bad response code: N`,
/// and `unexpected status`.
fn is_refusal(stderr: &str) -> bool {
    let words: Vec<&str> = stderr
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(2).any(|pair| match pair {
        [before, number] if matches!(*before, "code" | "status" | "HTTP") => {
            *number == "429"
                || (number.len() == 3 && number.starts_with('5') && number.parse::<u16>().is_ok())
        }
        _ => false,
    })
}

/// Asks one source for something newer.
pub(super) async fn newer(session: &Session<'_>, source: &Source) -> Result<Outcome, UpdateError> {
    let Session {
        store,
        engines,
        plan,
        run,
        lock,
        current,
        ..
    } = session;
    let staging = match source {
        Source::Local(path) => {
            let file = blocking({
                let path = path.clone();
                move || source::newest(&path)
            })
            .await??;
            let staging = store.stage(lock)?;
            engines.import_database(&file, staging.path(), run).await?;
            staging
        }
        Source::Upstream | Source::Mirror(_) => {
            let download = Download {
                url: match source {
                    Source::Mirror(url) => Some(url.clone()),
                    _ => None,
                },
                rate: plan.rate,
            };
            if let Some((pin, Some(_))) = current
                && !engines.check_database(&pin.path, &download, run).await?
            {
                return unchanged(session);
            }
            let staging = store.stage(lock)?;
            engines.update_database(staging.path(), &download, run).await?;
            staging
        }
    };
    let provenance = usable(session, &staging).await?;
    if let Some((_, Some(known))) = current {
        if known.built == provenance.built && known.revision == provenance.revision {
            return unchanged(session);
        }
        not_older(&provenance, known)?;
    }
    let hold: Option<Hold> = store.record(&store.layout().hold());
    // Where there is nothing to stay with, anything is better.
    if let Some(hold) = hold
        && current.is_some()
        && hold.holds(provenance.built)
    {
        unchanged(session)?;
        return Ok(Outcome::Held(hold));
    }
    finish(session, staging, provenance, source.to_string(), false).await
}

/// Imports a file because an operator says so.
pub(super) async fn import(session: &Session<'_>, file: &Path, force: bool) -> Result<Outcome, UpdateError> {
    let staging = session.store.stage(&session.lock)?;
    session
        .engines
        .import_database(file, staging.path(), session.run)
        .await?;
    let provenance = usable(session, &staging).await?;
    if !force && let Some((_, Some(known))) = &session.current {
        not_older(&provenance, known)?;
    }
    finish(session, staging, provenance, file.display().to_string(), force).await
}

fn not_older(new: &DatabaseProvenance, current: &DatabaseProvenance) -> Result<(), Rejection> {
    if current.built > new.built {
        return Err(Rejection::Older {
            new: new.built,
            current: current.built,
        });
    }
    Ok(())
}

/// The source has nothing to replace the current generation with: it is as good as published now.
fn unchanged(session: &Session<'_>) -> Result<Outcome, UpdateError> {
    if let Some((pin, _)) = &session.current {
        session.store.refresh(&session.lock, pin, Timestamp::now())?;
    }
    Ok(Outcome::Unchanged)
}

/// Asks the engine whether it can work with the staged database.
async fn usable(session: &Session<'_>, staging: &Staging) -> Result<DatabaseProvenance, UpdateError> {
    Ok(session
        .engines
        .validate_database(staging.path(), session.run)
        .await?)
}

async fn finish(
    session: &Session<'_>,
    staging: Staging,
    provenance: DatabaseProvenance,
    source: String,
    force: bool,
) -> Result<Outcome, UpdateError> {
    let (store, plan) = (session.store, session.plan);
    let current = session.current.as_ref();
    let comparable = current.filter(|(_, known)| known.is_some() && !force);
    let trials = match plan
        .canary
        .run(
            session.engines,
            &session.golden,
            staging.path(),
            comparable.map(|(pin, _)| pin.path.as_path()),
            session.run,
        )
        .await
    {
        Ok(trials) => trials,
        Err(EngineError::Stopped(stopped)) => return Err(EngineError::Stopped(stopped).into()),
        Err(error) => return Err(Rejection::Unusable(error.to_string()).into()),
    };
    if !trials
        .iter()
        .all(|trial| trial.is_complete() && trial.is_steady())
    {
        return Err(set_aside(session, staging, &provenance, source, trials).await);
    }
    let published = {
        let (store, lock) = (store.clone(), session.lock.clone());
        let provenance = provenance.clone();
        blocking(move || {
            store.publish(&lock, staging, Timestamp::now(), |facts: FileFacts| Published {
                built: provenance.built,
                revision: provenance.revision,
                schema: provenance.schema,
                sha256: facts.sha256,
                bytes: facts.bytes,
                source,
            })
        })
        .await??
    };
    let hold: Option<Hold> = store.record(&store.layout().hold());
    if force || hold.is_some_and(|hold| !hold.holds(provenance.built)) {
        store.forget(&session.lock, &store.layout().hold())?;
    }
    let (store, lock, interval) = (store.clone(), session.lock.clone(), plan.interval);
    blocking(move || store.clean_up(&lock, Timestamp::now(), interval)).await?;
    Ok(Outcome::Updated(published, provenance))
}

/// What is kept about a refused database.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    refused_at: Timestamp,
    source: String,
    staged_built: Timestamp,
    staged_revision: String,
    current_generation: Option<String>,
    current_built: Option<Timestamp>,
    trials: Vec<Trial>,
}

async fn set_aside(
    session: &Session<'_>,
    staging: Staging,
    provenance: &DatabaseProvenance,
    source: String,
    trials: Vec<Trial>,
) -> UpdateError {
    let missing: usize = trials.iter().map(|trial| trial.missing.len()).sum();
    let worst = trials
        .iter()
        .filter_map(|trial| Some((trial.appeared + trial.disappeared, trial.allowed?)))
        .max_by_key(|(moved, allowed)| moved.saturating_sub(*allowed))
        .unwrap_or_default();
    let current = session.current.as_ref();
    let report = Report {
        refused_at: Timestamp::now(),
        source,
        staged_built: provenance.built,
        staged_revision: provenance.revision.clone(),
        current_generation: current.map(|(pin, _)| pin.name.to_string()),
        current_built: current.and_then(|(_, known)| Some(known.as_ref()?.built)),
        trials,
    };
    let (store, lock) = (session.store.clone(), session.lock.clone());
    let kept = match blocking(move || store.set_aside(&lock, staging, &report)).await {
        Ok(Ok(kept)) => kept,
        Ok(Err(error)) => return error.into(),
        Err(error) => return error,
    };
    let rejection = if missing > 0 {
        Rejection::Incomplete {
            missing,
            report: kept,
        }
    } else {
        let (moved, allowed) = worst;
        Rejection::Swing {
            moved,
            allowed,
            report: kept,
        }
    };
    rejection.into()
}

/// Work that blocks, off the runtime's own threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, UpdateError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| DatabaseError::io("written")(io::Error::other(error)).into())
}

#[cfg(test)]
mod tests {
    use super::is_refusal;

    #[test]
    fn refusals_of_servers_are_told_from_other_failures() {
        for (stderr, want) in [
            ("unable to download listing: bad response code: 429", true),
            ("bad response code: 503", true),
            ("unexpected HTTP status 500", true),
            ("bad response code: 404", false),
            ("dial tcp 127.0.0.1:5000: connect: connection refused", false),
            ("wrote 512 bytes in 500 ms", false),
            ("", false),
        ] {
            assert_eq!(is_refusal(stderr), want, "{stderr}");
        }
    }
}
