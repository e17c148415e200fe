//! Admission: a bounded number of scans run, a bounded number waits for a bounded time, and all share slots, scratch and
//! the memory for answers. Who is next is decided by [`queue`]; here is who waits, and what comes back by itself.
//!
//! A permit is a guard; slot and scratch come back when the engine has ended and the workspace is gone, memory when the
//! answer is written.

pub mod queue;

use self::queue::{Amount, Arrival, Grant, Queue, Ticket};
use crate::config::AdmissionConfig;
use crate::problem::Problem;
use crate::telemetry::Metrics;
use assay_schemas::Code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Why a request was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// The estimate can never fit.
    #[error("the request may need {needed} MiB of scratch, the whole budget is {budget} MiB")]
    ScratchTooLarge {
        /// Estimate, MiB.
        needed: u64,
        /// Budget, MiB.
        budget: u64,
    },
    /// The queue is full.
    #[error("all scan slots are taken and the queue is full")]
    QueueFull,
    /// No slot, scratch or memory became free in time.
    #[error("no scan slot became free in time")]
    TimedOut,
    /// Cancelled while waiting.
    #[error("the run was cancelled while it waited for a slot")]
    Cancelled,
}

impl AdmissionError {
    /// The wire code.
    pub const fn code(self) -> Code {
        match self {
            Self::ScratchTooLarge { .. } => Code::ScratchRequestTooLarge,
            Self::QueueFull | Self::TimedOut => Code::CapacityExhausted,
            Self::Cancelled => Code::AdmissionInterrupted,
        }
    }
}

impl From<AdmissionError> for Problem {
    fn from(error: AdmissionError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// The gatekeeper of all scans of this process.
#[derive(Debug)]
pub struct Admission {
    config: AdmissionConfig,
    desk: Arc<Desk>,
}

/// Where permits are given out and come back.
#[derive(Debug)]
struct Desk {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct State {
    queue: Queue,
    waiting: HashMap<Ticket, oneshot::Sender<Permit>>,
}

/// The right to something that runs share. Dropping it gives it back.
#[derive(Debug)]
pub struct Permit {
    held: Amount,
    /// Whether a run began with it; one that nobody took did not.
    begun: bool,
    desk: Arc<Desk>,
}

impl Admission {
    /// A gatekeeper with everything free.
    pub fn new(config: AdmissionConfig, metrics: Arc<Metrics>) -> Self {
        let total = Amount {
            slots: config.max_concurrent as u64,
            scratch_mebibytes: config.scratch_mebibytes,
            // A single run must have room, or nothing would ever be answered.
            memory_bytes: config.memory_bytes.max(config.memory_of_a_run_bytes),
        };
        metrics.capacity_limit.set(as_gauge(total.slots));
        metrics
            .scratch_limit_bytes
            .set(as_gauge(total.scratch_mebibytes << 20));
        metrics
            .answer_memory_limit_bytes
            .set(as_gauge(total.memory_bytes));
        let state = State {
            queue: Queue::new(total, config.max_queued as u64),
            waiting: HashMap::new(),
        };
        Self {
            config,
            desk: Arc::new(Desk {
                state: Mutex::new(state),
                metrics,
            }),
        }
    }

    /// Refuses what can never fit; cheap, so it comes before waiting.
    ///
    /// # Errors
    /// [`AdmissionError::ScratchTooLarge`].
    pub fn check_estimate(&self, scratch_mebibytes: u64) -> Result<(), AdmissionError> {
        if scratch_mebibytes > self.config.scratch_mebibytes {
            self.desk.metrics.admission_rejected.inc();
            let budget = self.config.scratch_mebibytes;
            return Err(AdmissionError::ScratchTooLarge {
                needed: scratch_mebibytes,
                budget,
            });
        }
        Ok(())
    }

    /// Waits for a slot, scratch and memory, all within one admission timeout.
    ///
    /// # Errors
    /// [`AdmissionError`]; each rejection is counted.
    pub async fn admit(
        &self,
        scratch_mebibytes: u64,
        cancel: &CancellationToken,
    ) -> Result<Permit, AdmissionError> {
        self.check_estimate(scratch_mebibytes)?;
        let need = Amount {
            slots: 1,
            scratch_mebibytes,
            memory_bytes: self.config.memory_of_a_run_bytes,
        };
        let mut waiting = match self.desk.arrive(need) {
            Arrived::Granted(permit) => return Ok(permit.begin()),
            Arrived::Waits(waiting) => waiting,
            Arrived::Full => {
                self.desk.metrics.admission_rejected.inc();
                return Err(AdmissionError::QueueFull);
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AdmissionError::Cancelled),
            // An error would mean that the desk is gone, which this holds.
            Ok(permit) = &mut waiting.permit => Ok(permit.begin()),
            () = tokio::time::sleep(self.config.timeout) => {
                self.desk.metrics.admission_rejected.inc();
                Err(AdmissionError::TimedOut)
            }
        }
    }

    /// `Retry-After` of a 429, seconds.
    pub const fn retry_after_seconds(&self) -> u32 {
        self.config.retry_after_seconds
    }
}

/// What the desk says to one who arrives.
enum Arrived {
    Granted(Permit),
    Waits(Waiting),
    Full,
}

/// One who waits; dropped, it does not any more. A permit that was on its way to it comes back, because it is dropped
/// with the channel.
struct Waiting {
    ticket: Ticket,
    permit: oneshot::Receiver<Permit>,
    desk: Arc<Desk>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let ticket = self.ticket;
        self.desk.settle(|state| {
            state.waiting.remove(&ticket);
            // `None`: it has its permit, or did not want it any more when it came.
            state.queue.leave(ticket).unwrap_or_default()
        });
    }
}

impl Desk {
    fn arrive(self: &Arc<Self>, need: Amount) -> Arrived {
        let mut state = self.state();
        let arrived = match state.queue.arrive(need) {
            Arrival::Granted => Arrived::Granted(self.permit(need)),
            Arrival::Waits(ticket) => {
                let (sender, permit) = oneshot::channel();
                state.waiting.insert(ticket, sender);
                Arrived::Waits(Waiting {
                    ticket,
                    permit,
                    desk: Arc::clone(self),
                })
            }
            // What never fits was refused by its own name before.
            Arrival::Full | Arrival::NeverFits => Arrived::Full,
        };
        self.publish(&state);
        arrived
    }

    /// Does one step and tells everybody who may begin after it.
    fn settle(self: &Arc<Self>, step: impl FnOnce(&mut State) -> Vec<Grant>) {
        let mut due = self.step(step);
        while let Some((sender, amount)) = due.pop() {
            // Sent outside the lock. One who gave up in the same moment does not take it: then it goes to the next.
            if let Err(mut permit) = sender.send(self.permit(amount)) {
                let back = permit.take();
                due.extend(self.step(|state| state.queue.release(back)));
            }
        }
    }

    fn step(&self, step: impl FnOnce(&mut State) -> Vec<Grant>) -> Vec<(oneshot::Sender<Permit>, Amount)> {
        let mut state = self.state();
        let mut due = Vec::new();
        for grant in step(&mut state) {
            match state.waiting.remove(&grant.ticket) {
                Some(sender) => due.push((sender, grant.amount)),
                None => debug_assert!(false, "granted to nobody: {grant:?}"),
            }
        }
        self.publish(&state);
        due
    }

    fn permit(self: &Arc<Self>, held: Amount) -> Permit {
        Permit {
            held,
            begun: false,
            desk: Arc::clone(self),
        }
    }

    /// The numbers that operators see are those of the queue, of one moment.
    fn publish(&self, state: &State) {
        let in_use = state.queue.in_use();
        self.metrics.active.set(as_gauge(in_use.slots));
        self.metrics.queued.set(as_gauge(state.queue.waiting() as u64));
        self.metrics
            .scratch_reserved_bytes
            .set(as_gauge(in_use.scratch_mebibytes << 20));
        self.metrics
            .answer_memory_reserved_bytes
            .set(as_gauge(in_use.memory_bytes));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The queue's steps do not panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    fn begin(mut self) -> Self {
        self.begun = true;
        self.desk.metrics.runs_started.inc();
        self
    }

    /// Parts the memory from the rest, so that it can outlive slot and scratch.
    #[must_use]
    pub fn split_memory(&mut self) -> Self {
        let memory = Amount {
            memory_bytes: self.held.memory_bytes,
            ..Amount::default()
        };
        self.held = self.held.minus(memory);
        Self {
            held: memory,
            begun: false,
            desk: Arc::clone(&self.desk),
        }
    }

    /// Gives back all memory but `bytes`.
    pub fn keep_memory(&mut self, bytes: u64) {
        let back = Amount {
            memory_bytes: self.held.memory_bytes.saturating_sub(bytes),
            ..Amount::default()
        };
        self.held = self.held.minus(back);
        self.desk.settle(|state| state.queue.release(back));
    }

    fn take(&mut self) -> Amount {
        std::mem::take(&mut self.held)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let back = self.take();
        if self.begun {
            self.desk.metrics.runs_ended.inc();
        }
        if back != Amount::default() {
            self.desk.settle(|state| state.queue.release(back));
        }
    }
}

fn as_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
