//! The small JSON files of our own beside the contract's layout: what was published, what is held back, and when a
//! source may be asked again. Whoever does not know them loses nothing.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Shortest pause after a source has refused.
const FIRST_PAUSE: Duration = Duration::from_mins(5);
/// Longest pause after a source has refused.
const LONGEST_PAUSE: Duration = Duration::from_hours(6);

/// What was published under a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// Build time of the database.
    pub built: Timestamp,
    /// Revision as the engine tells it.
    pub revision: String,
    /// Schema version as the engine tells it, such as `v6.1.10`.
    pub schema: String,
    /// Lower-case SHA-256 of the database file; `None` when there was none.
    pub sha256: Option<String>,
    /// Bytes of the database file.
    pub bytes: u64,
    /// Where it came from: `upstream`, a URL or a path.
    pub source: String,
}

/// A build that an operator has turned away from: no automatic update publishes it or an older one again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Build time that a new database must exceed.
    pub built: Timestamp,
    /// Lower-case SHA-256 of its database file, where it is known.
    pub sha256: Option<String>,
    /// Name of the generation that was current before.
    pub generation: String,
    /// When it was turned away from.
    pub since: Timestamp,
}

impl Hold {
    /// Whether a database that was built then must not be published by itself.
    pub fn holds(&self, built: Timestamp) -> bool {
        built <= self.built
    }
}

/// How often in a row the source has refused, and until when it is left alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackOff {
    /// Refusals in a row.
    pub refusals: u32,
    /// Before this time no automatic update asks again.
    pub until: Timestamp,
    /// What was refused, in a word.
    pub reason: String,
}

impl BackOff {
    /// After one refusal more: 5 minutes, doubled with each in a row, 6 hours at most.
    pub fn after(before: Option<&Self>, now: Timestamp, reason: &str) -> Self {
        let refusals = before.map_or(0, |before| before.refusals).saturating_add(1);
        let doublings = refusals.saturating_sub(1).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE);
        Self {
            refusals,
            until: now.checked_add(pause).unwrap_or(Timestamp::MAX),
            reason: reason.to_owned(),
        }
    }

    /// Whether the source is to be left alone. A time that is further away than any pause is no reason to wait: the
    /// clock was set back.
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        let longest = now.checked_add(LONGEST_PAUSE).unwrap_or(Timestamp::MAX);
        now < self.until && self.until <= longest
    }
}

#[cfg(test)]
mod tests {
    use super::{BackOff, Hold};
    use jiff::{Timestamp, ToSpan as _};

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let mut state: Option<BackOff> = None;
        for minutes in [5, 10, 20, 40, 80, 160, 320, 360, 360] {
            let next = BackOff::after(state.as_ref(), now(), "x");
            assert_eq!(next.until, now() + minutes.minutes());
            state = Some(next);
        }
        let far = BackOff {
            refusals: u32::MAX,
            ..state.unwrap()
        };
        assert_eq!(BackOff::after(Some(&far), now(), "x").until, now() + 6.hours());
    }

    #[test]
    fn a_pause_ends_and_does_not_survive_a_clock_that_was_set_back() {
        let pause = BackOff::after(None, now(), "x");
        for (at, want) in [
            (now(), true),
            (now() + 5.minutes() - 1.seconds(), true),
            (now() + 5.minutes(), false),
            (now() - 24.hours(), false),
        ] {
            assert_eq!(pause.is_in_force(at), want, "{at}");
        }
    }

    #[test]
    fn what_is_held_is_that_build_and_older_ones() {
        let hold = Hold {
            built: now(),
            sha256: None,
            generation: String::new(),
            since: now(),
        };
        assert!(hold.holds(now()) && hold.holds(now() - 1.seconds()));
        assert!(!hold.holds(now() + 1.seconds()));
    }
}
