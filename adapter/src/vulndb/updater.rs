//! One update: lock, stage, fill, validate, try, publish, clean up.

use super::canary::Golden;
use super::record::{BackOff, Hold};
use super::retire::is_due;
use super::source::Source;
use super::store::{Generation, Store, WriteLock};
use super::trial::Canary;
use super::{Pin, attempt};
use crate::engine::{DatabaseProvenance, EngineError, Engines, MinimumRate};
use crate::run::RunContext;
use jiff::Timestamp;
use std::path::PathBuf;
use std::time::Duration;

pub use super::attempt::{Rejection, UpdateError};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A newer database from the first source that has one, when an update is due.
    Newer(Vec<Source>),
    /// This database file or archive, due or not.
    Import {
        /// The file.
        file: PathBuf,
        /// Whether it may be older than the current one, be held back, or move findings beyond the bounds.
        force: bool,
    },
}

/// How an update behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatePlan {
    /// See [`Request`].
    pub request: Request,
    /// Time between updates; zero is always due.
    pub interval: Duration,
    /// How long to wait for another writer.
    pub lock_timeout: Duration,
    /// The slowest download that is waited for.
    pub rate: MinimumRate,
    /// What a database has to show before it is published.
    pub canary: Canary,
}

/// How an update ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A new generation is current.
    Updated(Generation, DatabaseProvenance),
    /// The source has nothing newer; the current generation counts as published now.
    Unchanged,
    /// The source has nothing newer than the build that was rolled back from.
    Held(Hold),
    /// The current one is young enough.
    NotDue,
    /// The source has refused and is left alone for a while.
    BackingOff(BackOff),
    /// Another writer is at it.
    Busy,
}

impl Outcome {
    /// The metric label, from the contract's closed list.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Updated(..) | Self::Unchanged => "updated",
            Self::NotDue | Self::Held(_) | Self::BackingOff(_) => "not_due",
            Self::Busy => "busy",
        }
    }

    /// The word for logs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Updated(..) => "updated",
            Self::Unchanged => "unchanged",
            Self::Held(_) => "held",
            Self::NotDue => "not_due",
            Self::BackingOff(_) => "backing_off",
            Self::Busy => "busy",
        }
    }
}

/// What an update works with once it may write.
#[derive(Debug)]
pub(super) struct Session<'a> {
    pub(super) store: &'a Store,
    pub(super) engines: &'a Engines,
    pub(super) plan: &'a UpdatePlan,
    pub(super) run: &'a RunContext,
    pub(super) lock: WriteLock,
    pub(super) golden: Vec<Golden>,
    /// The current generation, and what the engine says of it if it can use it.
    pub(super) current: Option<(Pin, Option<DatabaseProvenance>)>,
}

/// Runs one update to its end.
///
/// # Errors
/// Of the first source that had a database to refuse, else of the last one. The old generation stays current.
pub async fn update(
    store: &Store,
    engines: &Engines,
    plan: &UpdatePlan,
    run: &RunContext,
) -> Result<Outcome, UpdateError> {
    store.prepare()?;
    let Some(lock) = run
        .bound(store.lock(plan.lock_timeout))
        .await
        .map_err(EngineError::from)??
    else {
        return Ok(Outcome::Busy);
    };
    // A pointer that cannot be followed is healed by publishing anew.
    let current = store.pin().await.ok();
    let now = Timestamp::now();
    if let Request::Newer(_) = plan.request {
        let published = current.as_ref().map(|generation| generation.published);
        if !is_due(published, now, plan.interval) {
            return Ok(Outcome::NotDue);
        }
        let pause: Option<BackOff> = store.record(&store.layout().back_off());
        if let Some(pause) = pause.filter(|pause| pause.is_in_force(now)) {
            return Ok(Outcome::BackingOff(pause));
        }
    }
    // Before anything is fetched for it.
    let golden = plan.canary.set.load()?;
    store.probe(&lock)?;
    // What a crash has left may be what the next database needs room for.
    store.sweep(&lock);
    let current = match current {
        Some(pin) => {
            // A current database that cannot be read is no reason to keep it.
            let known = engines.validate_database(&pin.path, run).await.ok();
            Some((pin, known))
        }
        None => None,
    };
    run.check().map_err(EngineError::from)?;
    let session = Session {
        store,
        engines,
        plan,
        run,
        lock,
        golden,
        current,
    };
    match &plan.request {
        Request::Import { file, force } => attempt::import(&session, file, *force).await,
        Request::Newer(sources) => newer(&session, sources).await,
    }
}

async fn newer(session: &Session<'_>, sources: &[Source]) -> Result<Outcome, UpdateError> {
    let mut failure: Option<UpdateError> = None;
    let mut refusal = None;
    for source in sources {
        match attempt::newer(session, source).await {
            Ok(outcome) => {
                let back_off = session.store.layout().back_off();
                // An old pause that stays has no effect: its time is over.
                let _ = session.store.forget(&session.lock, &back_off);
                return Ok(outcome);
            }
            Err(error) => {
                tracing::warn!(%source, reason = error.reason(), "a source gave no database: {error}");
                refusal = refusal.or(error.refusal());
                if !matches!(failure, Some(UpdateError::Rejected(_))) {
                    failure = Some(error);
                }
                if session.run.check().is_err() {
                    break;
                }
            }
        }
    }
    if let Some(reason) = refusal {
        back_off(session, reason);
    }
    Err(failure.unwrap_or(UpdateError::NoSource))
}

/// Notes that sources want to be left alone.
fn back_off(session: &Session<'_>, reason: &str) {
    let path = session.store.layout().back_off();
    let before: Option<BackOff> = session.store.record(&path);
    let pause = BackOff::after(before.as_ref(), Timestamp::now(), reason);
    tracing::warn!(until = %pause.until, reason, "the sources are left alone for a while");
    if let Err(error) = session.store.write_record(&session.lock, &path, &pause) {
        tracing::warn!(%error, "the pause could not be noted");
    }
}
