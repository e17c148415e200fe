//! The bounds of one run: its deadline and its cancellation, checked by every wait and every loop over input.

use assay_schemas::Code;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// An absolute, monotonic point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The point that is `duration` from now.
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// What is left of it; zero when it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The earlier of this deadline and `duration` from now.
    #[must_use]
    pub fn at_most(self, duration: Duration) -> Self {
        self.min(Self::after(duration))
    }

    /// The instant itself, for timers.
    pub fn instant(self) -> Instant {
        self.0
    }
}

/// Why a run had to stop before its work was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The end-to-end deadline passed.
    #[error("the deadline of the run has passed")]
    TimedOut,
    /// Somebody cancelled the run, or the client went away.
    #[error("the run was cancelled")]
    Cancelled,
}

impl Stopped {
    /// The wire code.
    pub const fn code(self) -> Code {
        match self {
            Self::TimedOut => Code::Timeout,
            Self::Cancelled => Code::Interrupted,
        }
    }
}

/// What ends a run before its work is done. The closed set of a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// Somebody cancelled it.
    Cancel,
    /// Its client went away.
    Disconnect,
    /// Its deadline passed.
    Deadline,
    /// This process is going away.
    Shutdown,
}

impl StopReason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Cancel, Self::Disconnect, Self::Deadline, Self::Shutdown];

    /// The label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Disconnect => "disconnect",
            Self::Deadline => "deadline",
            Self::Shutdown => "shutdown",
        }
    }
}

/// The order to end a run: a token for everybody who waits, and by what it was given first, and when.
#[derive(Debug, Clone, Default)]
pub struct StopOrder {
    token: CancellationToken,
    first: Arc<OnceLock<(StopReason, Instant)>>,
}

impl StopOrder {
    /// Orders the run to end.
    pub fn give(&self, reason: StopReason) {
        self.first.get_or_init(|| (reason, Instant::now()));
        self.token.cancel();
    }

    /// What was first to order it, and when.
    pub fn given(&self) -> Option<(StopReason, Instant)> {
        self.first.get().copied()
    }

    /// Cancelled by the order.
    pub const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Gives the order when it is dropped, unless it was disarmed.
    #[must_use]
    pub const fn on_drop(self, reason: StopReason) -> StopGuard {
        StopGuard(Some((self, reason)))
    }
}

/// See [`StopOrder::on_drop`].
#[derive(Debug)]
pub struct StopGuard(Option<(StopOrder, StopReason)>);

impl StopGuard {
    /// Nothing happens any more when it is dropped.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        if let Some((order, reason)) = self.0.take() {
            order.give(reason);
        }
    }
}

/// The bounds that every stage of a run gets.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// End-to-end deadline.
    pub deadline: Deadline,
    /// Cancellation by the client, an operator or shutdown.
    pub cancel: CancellationToken,
}

impl RunContext {
    /// A context that ends `duration` from now and that nobody has cancelled.
    pub fn with_timeout(duration: Duration) -> Self {
        Self {
            deadline: Deadline::after(duration),
            cancel: CancellationToken::new(),
        }
    }

    /// Errors when the run has to stop. Cheap; blocking loops call it once per block and per entry.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.cancel.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        if self.deadline.remaining().is_zero() {
            return Err(Stopped::TimedOut);
        }
        Ok(())
    }

    /// Waits for `work`, but no longer than the run may last. The future is dropped when the run stops.
    pub async fn bound<T>(&self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stopped::Cancelled),
            () = tokio::time::sleep_until(self.deadline.instant().into()) => Err(Stopped::TimedOut),
            done = work => Ok(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RunContext, StopOrder, StopReason, Stopped};
    use std::time::Duration;

    #[test]
    fn cancellation_wins_over_the_deadline() {
        let context = RunContext::with_timeout(Duration::ZERO);
        assert_eq!(context.check(), Err(Stopped::TimedOut));
        context.cancel.cancel();
        assert_eq!(context.check(), Err(Stopped::Cancelled));
    }

    #[test]
    fn the_first_order_counts() {
        let order = StopOrder::default();
        let kept = order.clone().on_drop(StopReason::Disconnect);
        assert_eq!(order.given(), None);
        order.clone().on_drop(StopReason::Disconnect).disarm();
        assert!(!order.token().is_cancelled());
        order.give(StopReason::Cancel);
        drop(kept);
        assert_eq!(order.given().unwrap().0, StopReason::Cancel);
        assert!(order.token().is_cancelled());
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_deadline() {
        let context = RunContext::with_timeout(Duration::from_millis(5));
        assert_eq!(
            context.bound(std::future::pending::<()>()).await,
            Err(Stopped::TimedOut)
        );
        let context = RunContext::with_timeout(Duration::from_secs(5));
        assert_eq!(context.bound(async { 7 }).await, Ok(7));
    }
}
