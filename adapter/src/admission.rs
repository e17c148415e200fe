//! Admission: a bounded number of scans run, a bounded number waits for a bounded time, and all share one scratch
//! budget. A permit is a guard; it is returned when the engine has ended and the workspace is gone.

use crate::config::AdmissionConfig;
use crate::problem::Problem;
use crate::telemetry::Metrics;
use assay_schemas::Code;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
    /// No slot or scratch became free in time.
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
    places: Arc<Semaphore>,
    slots: Arc<Semaphore>,
    scratch: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

/// The right to run one scan. Dropping it gives slot and scratch back.
#[derive(Debug)]
pub struct Permit {
    _slot: OwnedSemaphorePermit,
    _scratch: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
    scratch_mebibytes: u64,
    metrics: Arc<Metrics>,
}

impl Admission {
    /// A gatekeeper with all slots free.
    pub fn new(config: AdmissionConfig, metrics: Arc<Metrics>) -> Self {
        metrics.capacity_limit.set(as_gauge(config.max_concurrent as u64));
        metrics
            .scratch_limit_bytes
            .set(as_gauge(config.scratch_mebibytes << 20));
        Self {
            config,
            places: Arc::new(Semaphore::new(config.max_concurrent + config.max_queued)),
            slots: Arc::new(Semaphore::new(config.max_concurrent)),
            scratch: Arc::new(Semaphore::new(scratch_permits(config.scratch_mebibytes) as usize)),
            metrics,
        }
    }

    /// Refuses what can never fit; cheap, so it comes before waiting.
    ///
    /// # Errors
    /// [`AdmissionError::ScratchTooLarge`].
    pub fn check_estimate(&self, scratch_mebibytes: u64) -> Result<(), AdmissionError> {
        if scratch_mebibytes > self.config.scratch_mebibytes {
            self.metrics.admission_rejected.inc();
            let budget = self.config.scratch_mebibytes;
            return Err(AdmissionError::ScratchTooLarge {
                needed: scratch_mebibytes,
                budget,
            });
        }
        Ok(())
    }

    /// Waits for a slot and then for scratch, both within one admission timeout.
    ///
    /// # Errors
    /// [`AdmissionError`]; each rejection is counted.
    pub async fn admit(
        &self,
        scratch_mebibytes: u64,
        cancel: &CancellationToken,
    ) -> Result<Permit, AdmissionError> {
        self.check_estimate(scratch_mebibytes)?;
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            self.metrics.admission_rejected.inc();
            return Err(AdmissionError::QueueFull);
        };
        let queued = GaugeGuard::enter(&self.metrics.queued);
        let wait = async {
            let slot = Arc::clone(&self.slots).acquire_owned().await.ok()?;
            let scratch = Arc::clone(&self.scratch)
                .acquire_many_owned(scratch_permits(scratch_mebibytes))
                .await
                .ok()?;
            Some((slot, scratch))
        };
        let granted = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(AdmissionError::Cancelled),
            // The wait is polled once before the timer, so a timeout of zero still takes what is free now.
            granted = wait => granted,
            () = tokio::time::sleep(self.config.timeout) => None,
        };
        drop(queued);
        let Some((slot, scratch)) = granted else {
            self.metrics.admission_rejected.inc();
            return Err(AdmissionError::TimedOut);
        };
        self.metrics.active.inc();
        self.metrics
            .scratch_reserved_bytes
            .inc_by(as_gauge(scratch_mebibytes << 20));
        Ok(Permit {
            _slot: slot,
            _scratch: scratch,
            _place: place,
            scratch_mebibytes,
            metrics: Arc::clone(&self.metrics),
        })
    }

    /// `Retry-After` of a 429, seconds.
    pub const fn retry_after_seconds(&self) -> u32 {
        self.config.retry_after_seconds
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.metrics.active.dec();
        self.metrics
            .scratch_reserved_bytes
            .dec_by(as_gauge(self.scratch_mebibytes << 20));
    }
}

/// Counts one while it lives.
struct GaugeGuard<'a>(&'a prometheus_client::metrics::gauge::Gauge);

impl<'a> GaugeGuard<'a> {
    fn enter(gauge: &'a prometheus_client::metrics::gauge::Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Whole MiB as semaphore permits; a budget beyond the semaphore's range is as good as its range.
fn scratch_permits(mebibytes: u64) -> u32 {
    u32::try_from(mebibytes).unwrap_or(u32::MAX).min(u32::MAX >> 4)
}

fn as_gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Admission, AdmissionError};
    use crate::config::AdmissionConfig;
    use crate::telemetry::Metrics;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    fn admission(
        max_concurrent: usize,
        max_queued: usize,
        timeout: Duration,
    ) -> (Arc<Admission>, Arc<Metrics>) {
        let metrics = Arc::new(Metrics::default());
        let config = AdmissionConfig {
            max_concurrent,
            max_queued,
            timeout,
            retry_after_seconds: 5,
            scratch_mebibytes: 100,
        };
        (Arc::new(Admission::new(config, Arc::clone(&metrics))), metrics)
    }

    #[tokio::test]
    async fn slots_scratch_and_queue_bound_what_runs() {
        let (admission, metrics) = admission(2, 1, Duration::ZERO);
        let cancel = CancellationToken::new();
        let first = admission.admit(60, &cancel).await.unwrap();
        assert_eq!(
            admission.admit(60, &cancel).await.unwrap_err(),
            AdmissionError::TimedOut
        );
        let second = admission.admit(40, &cancel).await.unwrap();
        assert_eq!(metrics.active.get(), 2);
        assert_eq!(metrics.scratch_reserved_bytes.get(), 100 << 20);
        assert_eq!(
            admission.admit(1, &cancel).await.unwrap_err(),
            AdmissionError::TimedOut
        );
        drop((first, second));
        assert_eq!(
            (
                metrics.active.get(),
                metrics.queued.get(),
                metrics.scratch_reserved_bytes.get()
            ),
            (0, 0, 0)
        );
        assert_eq!(metrics.admission_rejected.get(), 2);
        admission.admit(100, &cancel).await.unwrap();
    }

    #[tokio::test]
    async fn what_can_never_fit_is_refused_at_once() {
        let (admission, _) = admission(1, 0, Duration::from_mins(1));
        let error = admission.admit(101, &CancellationToken::new()).await.unwrap_err();
        assert_eq!(
            error,
            AdmissionError::ScratchTooLarge {
                needed: 101,
                budget: 100
            }
        );
    }

    #[tokio::test]
    async fn a_waiting_run_can_be_cancelled_and_a_full_queue_refuses() {
        let (admission, metrics) = admission(1, 1, Duration::from_mins(1));
        let running = admission.admit(1, &CancellationToken::new()).await.unwrap();
        let cancel = CancellationToken::new();
        let waiter = tokio::spawn({
            let (admission, cancel) = (Arc::clone(&admission), cancel.clone());
            async move { admission.admit(1, &cancel).await.map(|_| ()) }
        });
        while metrics.queued.get() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            admission.admit(1, &CancellationToken::new()).await.unwrap_err(),
            AdmissionError::QueueFull
        );
        cancel.cancel();
        assert_eq!(waiter.await.unwrap(), Err(AdmissionError::Cancelled));
        drop(running);
        assert_eq!((metrics.active.get(), metrics.queued.get()), (0, 0));
    }
}
