//! Active runs of this process: run id to cancellation. Short-lived; correctness never depends on it.

use crate::problem::Problem;
use crate::run::{StopOrder, StopReason};
use assay_schemas::Code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A run id that has the contract's form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunId(String);

impl RunId {
    /// Checks `[A-Za-z0-9._:-]{1,128}`.
    ///
    /// # Errors
    /// [`Code::RunIdInvalid`].
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let fits = (1..=128).contains(&text.len())
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(Problem::new(
                Code::RunIdInvalid,
                "the run id must be 1 to 128 of A-Z a-z 0-9 . _ : -",
            ))
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// All active runs.
#[derive(Debug, Default)]
pub struct Runs {
    active: Mutex<HashMap<RunId, StopOrder>>,
}

/// Membership of one run; dropping it ends the membership.
#[derive(Debug)]
pub struct ActiveRun {
    runs: Arc<Runs>,
    id: RunId,
    /// Given by [`Runs::cancel`] and [`Runs::cancel_all`].
    pub stop: StopOrder,
}

impl Runs {
    /// Registers a run that `stop` ends.
    ///
    /// # Errors
    /// [`Code::RunAlreadyActive`] while a run with this id is active.
    pub fn enter(self: &Arc<Self>, id: RunId, stop: StopOrder) -> Result<ActiveRun, Problem> {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        if active.contains_key(&id) {
            return Err(Problem::new(
                Code::RunAlreadyActive,
                "a run with this id is active on this replica",
            ));
        }
        active.insert(id.clone(), stop.clone());
        Ok(ActiveRun {
            runs: Arc::clone(self),
            id,
            stop,
        })
    }

    /// Cancels a run. False when none with this id is active.
    pub fn cancel(&self, id: &RunId) -> bool {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.get(id).map(|stop| stop.give(StopReason::Cancel)).is_some()
    }

    /// Cancels every run, for shutdown.
    pub fn cancel_all(&self) {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.values().for_each(|stop| stop.give(StopReason::Shutdown));
    }

    /// Number of active runs.
    pub fn count(&self) -> usize {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.runs
            .active
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::{RunId, Runs};
    use crate::run::{StopOrder, StopReason};
    use std::sync::Arc;

    #[test]
    fn run_ids_have_the_contracts_form() {
        for good in ["a", "task-1:0b2c", &"x".repeat(128)] {
            assert!(RunId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", " a", "a b", "ä", "a/b", &"x".repeat(129)] {
            assert!(RunId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_run_an_id_and_cancel_finds_only_active_ones() {
        let runs = Arc::new(Runs::default());
        let id = RunId::parse("a").unwrap();
        assert!(!runs.cancel(&id));
        let run = runs.enter(id.clone(), StopOrder::default()).unwrap();
        assert!(runs.enter(id.clone(), StopOrder::default()).is_err());
        assert!(runs.cancel(&id));
        assert!(run.stop.token().is_cancelled());
        assert_eq!(run.stop.given().unwrap().0, StopReason::Cancel);
        drop(run);
        assert_eq!(runs.count(), 0);
        assert!(!runs.cancel(&id));
    }
}
