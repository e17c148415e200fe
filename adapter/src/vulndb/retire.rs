//! Which leftovers may go, and when the next update is due.

use jiff::Timestamp;
use std::time::Duration;

/// The longest permitted run, and a margin.
const LONGEST_READ: Duration = Duration::from_mins(70);
/// Waiting time when it cannot be computed.
const FALLBACK: Duration = Duration::from_hours(30 * 24);
/// Age from which a leftover of a crashed writer is an orphan.
pub const ORPHAN_AGE: Duration = Duration::from_hours(1);

/// What to do with a generation that is not current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retirement {
    /// First seen as not current, or its marker is unreadable: write one with the present time.
    Mark,
    /// Somebody may still read it.
    Keep,
    /// Nobody can read it any more.
    Delete,
}

/// Decides by the content of the generation's marker, if it has one.
pub fn decide(marker: Option<&str>, now: Timestamp, interval: Duration) -> Retirement {
    let Some(retired) = marker.and_then(|text| text.trim().parse::<Timestamp>().ok()) else {
        return Retirement::Mark;
    };
    let wait = interval
        .checked_mul(2)
        .map_or(FALLBACK, |double| double.max(LONGEST_READ));
    let is_over = retired
        .checked_add(wait)
        .or_else(|_| retired.checked_add(FALLBACK))
        .is_ok_and(|until| until <= now);
    if is_over {
        Retirement::Delete
    } else {
        Retirement::Keep
    }
}

/// Whether an update is due. A publication in the future (the clock was set back) is no reason to wait.
pub fn is_due(published: Option<Timestamp>, now: Timestamp, interval: Duration) -> bool {
    let Some(published) = published else {
        return true;
    };
    if interval.is_zero() || published > now {
        return true;
    }
    published.checked_add(interval).is_ok_and(|due| due <= now)
}

#[cfg(test)]
mod tests {
    use super::{Retirement, decide, is_due};
    use jiff::Timestamp;
    use std::time::Duration;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn generations_go_after_the_longest_read() {
        let now = at("2026-01-01T12:00:00Z");
        let hour = Duration::from_hours(1);
        let cases = [
            (None, hour, Retirement::Mark),
            (Some("garbage"), hour, Retirement::Mark),
            (Some("2026-01-01T10:00:01Z\n"), hour, Retirement::Keep),
            (Some("2026-01-01T10:00:00Z\n"), hour, Retirement::Delete),
            (Some("2026-01-01T10:50:00Z"), Duration::ZERO, Retirement::Delete),
            (Some("2026-01-01T10:50:01Z"), Duration::ZERO, Retirement::Keep),
            (Some("2025-12-31T23:00:00Z"), Duration::MAX, Retirement::Keep),
            (Some("2025-11-01T00:00:00Z"), Duration::MAX, Retirement::Delete),
        ];
        for (marker, interval, want) in cases {
            assert_eq!(decide(marker, now, interval), want, "{marker:?} {interval:?}");
        }
    }

    #[test]
    fn updates_are_due_after_the_interval_and_when_in_doubt() {
        let now = at("2026-01-01T12:00:00Z");
        let hour = Duration::from_hours(1);
        assert!(is_due(None, now, hour));
        assert!(is_due(Some(at("2026-01-01T11:00:00Z")), now, hour));
        assert!(!is_due(Some(at("2026-01-01T11:00:01Z")), now, hour));
        assert!(is_due(Some(now), now, Duration::ZERO));
        assert!(is_due(Some(at("2026-01-01T12:00:01Z")), now, hour));
        assert!(!is_due(Some(at("2026-01-01T00:00:00Z")), now, Duration::MAX));
    }
}
