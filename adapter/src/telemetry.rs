//! Metrics and logging. Every metric name is here; no label ever carries a run id, path, digest, URL or package.

mod exposition;
mod traces;

pub use exposition::Exposition;
pub(crate) use traces::is_collector;
pub use traces::{Traces, TracesError, continue_trace};

use crate::config::LogConfig;
use crate::run::StopReason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Label set of the answered requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AnswerLabels {
    /// Operation name, from a closed list.
    pub operation: &'static str,
    /// HTTP status.
    pub status: u16,
}

/// Label set of the stage durations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StageLabels {
    /// Stage name: `receive`, `inspect`, `engine`, `parse` or `respond`.
    pub stage: &'static str,
}

/// Label set of the layers around engines.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct LayerLabels {
    /// A layer of the cage, from a closed list.
    pub layer: &'static str,
}

/// Label set of the ends of runs that were ordered to end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabels {
    /// One of [`StopReason`].
    pub reason: &'static str,
}

/// Label set of the database updates.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabels {
    /// `updated`, `not_due`, `busy` or `failed`.
    pub outcome: &'static str,
}

/// All metrics of the adapter.
pub struct Metrics {
    registry: Registry,
    /// Scans that run now.
    pub active: Gauge,
    /// Requests that wait for a slot.
    pub queued: Gauge,
    /// Configured slots.
    pub capacity_limit: Gauge,
    /// Scratch reserved by running scans, bytes.
    pub scratch_reserved_bytes: Gauge,
    /// Configured scratch budget, bytes.
    pub scratch_limit_bytes: Gauge,
    /// Requests that were refused for capacity.
    pub admission_rejected: Counter,
    /// Memory reserved for documents and answers, bytes.
    pub answer_memory_reserved_bytes: Gauge,
    /// Budget of it, bytes.
    pub answer_memory_limit_bytes: Gauge,
    /// Runs that got a slot.
    pub runs_started: Counter,
    /// Runs whose slot came back.
    pub runs_ended: Counter,
    /// From the order to end a run to its last process gone and its slot returned, seconds, by what ended it.
    pub run_ending: Family<ReasonLabels, Histogram>,
    /// Database updates by outcome.
    pub database_updates: Family<OutcomeLabels, Counter>,
    /// Answers by operation and status.
    pub answers: Family<AnswerLabels, Counter>,
    /// Duration of stages, seconds.
    pub stages: Family<StageLabels, Histogram>,
    /// Whether the last look found everything that a scan needs: 1, else 0.
    pub ready: Gauge,
    /// When the vulnerability database in use was built, seconds since 1970; 0 while that is not known.
    pub database_built: Gauge,
    /// Engine processes started.
    pub engine_processes: Counter,
    /// Layers around engines: 1 in force, 0 not.
    pub isolation: Family<LayerLabels, Gauge>,
    /// From the order to end an engine (cancellation, disconnect, deadline, cap) to its last process gone, seconds.
    pub engine_ending: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("kkrepo_scanner");
        let stages: Family<StageLabels, Histogram> =
            Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 4.0, 9)));
        let metrics = Self {
            active: Gauge::default(),
            queued: Gauge::default(),
            capacity_limit: Gauge::default(),
            scratch_reserved_bytes: Gauge::default(),
            scratch_limit_bytes: Gauge::default(),
            admission_rejected: Counter::default(),
            answer_memory_reserved_bytes: Gauge::default(),
            answer_memory_limit_bytes: Gauge::default(),
            runs_started: Counter::default(),
            runs_ended: Counter::default(),
            run_ending: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.005, 3.0, 8))),
            database_updates: Family::default(),
            answers: Family::default(),
            stages,
            ready: Gauge::default(),
            database_built: Gauge::default(),
            engine_processes: Counter::default(),
            isolation: Family::default(),
            engine_ending: Histogram::new(exponential_buckets(0.005, 3.0, 8)),
            registry: Registry::default(),
        };
        registry.register("active", "Scans that run now", metrics.active.clone());
        registry.register("queued", "Requests that wait for a slot", metrics.queued.clone());
        registry.register(
            "capacity_limit",
            "Configured scan slots",
            metrics.capacity_limit.clone(),
        );
        registry.register_with_unit(
            "scratch_reserved",
            "Scratch reserved by running scans",
            Unit::Bytes,
            metrics.scratch_reserved_bytes.clone(),
        );
        registry.register_with_unit(
            "scratch_limit",
            "Configured scratch budget",
            Unit::Bytes,
            metrics.scratch_limit_bytes.clone(),
        );
        registry.register(
            "admission_rejected",
            "Requests refused for capacity",
            metrics.admission_rejected.clone(),
        );
        register_runs(&mut registry, &metrics);
        register_readiness(&mut registry, &metrics);
        registry.register(
            "database_updates",
            "Database updates by outcome",
            metrics.database_updates.clone(),
        );
        registry.register(
            "answers",
            "Answers by operation and status",
            metrics.answers.clone(),
        );
        registry.register_with_unit(
            "stage_duration",
            "Duration of stages",
            Unit::Seconds,
            metrics.stages.clone(),
        );
        registry.register(
            "engine_processes",
            "Engine processes started",
            metrics.engine_processes.clone(),
        );
        registry.register(
            "engine_isolation",
            "Layers around engines that are in force",
            metrics.isolation.clone(),
        );
        registry.register_with_unit(
            "engine_ending",
            "From the order to end an engine to its last process gone",
            Unit::Seconds,
            metrics.engine_ending.clone(),
        );
        for outcome in ["updated", "not_due", "busy", "failed"] {
            let _ = metrics.database_updates.get_or_create(&OutcomeLabels { outcome });
        }
        Self { registry, ..metrics }
    }
}

/// What readiness saw last.
fn register_readiness(registry: &mut Registry, metrics: &Metrics) {
    registry.register(
        "ready",
        "Whether the last look found everything that a scan needs",
        metrics.ready.clone(),
    );
    registry.register_with_unit(
        "database_built_timestamp",
        "When the vulnerability database in use was built, 0 while not known",
        Unit::Seconds,
        metrics.database_built.clone(),
    );
}

/// What runs take and give back.
fn register_runs(registry: &mut Registry, metrics: &Metrics) {
    registry.register_with_unit(
        "answer_memory_reserved",
        "Memory reserved for documents and answers",
        Unit::Bytes,
        metrics.answer_memory_reserved_bytes.clone(),
    );
    registry.register_with_unit(
        "answer_memory_limit",
        "Configured memory for documents and answers",
        Unit::Bytes,
        metrics.answer_memory_limit_bytes.clone(),
    );
    registry.register(
        "runs_started",
        "Runs that got a slot",
        metrics.runs_started.clone(),
    );
    registry.register(
        "runs_ended",
        "Runs whose slot came back",
        metrics.runs_ended.clone(),
    );
    registry.register_with_unit(
        "run_ending",
        "From the order to end a run to its last process gone and its slot returned",
        Unit::Seconds,
        metrics.run_ending.clone(),
    );
    for reason in StopReason::ALL {
        let _ = metrics.run_ending.get_or_create(&ReasonLabels {
            reason: reason.as_str(),
        });
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Notes how long a stage took.
    pub fn stage(&self, stage: &'static str, took: Duration) {
        traces::stage(stage, took);
        self.stages
            .get_or_create(&StageLabels { stage })
            .observe(took.as_secs_f64());
    }

    /// Notes how long a run took to end that was ordered to.
    pub fn ended(&self, reason: StopReason, took: Duration) {
        self.run_ending
            .get_or_create(&ReasonLabels {
                reason: reason.as_str(),
            })
            .observe(took.as_secs_f64());
    }

    /// The exposition text.
    ///
    /// # Errors
    /// Only when formatting fails, which is a defect.
    pub fn encode(&self, form: Exposition) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(form.of(text))
    }
}

/// Installs the logger of this process: lines on standard error, and spans for `traces`. Called once, by `main`.
pub fn install_logger(config: &LogConfig, traces: Option<&Traces>) {
    let filter = EnvFilter::try_new(&config.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = if config.json {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed()
    } else {
        lines.with_target(false).boxed()
    };
    let spans = traces.map(|traces| tracing_opentelemetry::layer().with_tracer(traces.tracer()));
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(spans)
        .init();
}

#[cfg(test)]
mod tests {
    use super::{Exposition, Metrics};

    #[test]
    fn the_contracts_names_are_served() {
        let metrics = Metrics::default();
        let text = metrics.encode(Exposition::Classic).unwrap();
        for name in [
            "kkrepo_scanner_active 0",
            "kkrepo_scanner_queued 0",
            "kkrepo_scanner_capacity_limit 0",
            "kkrepo_scanner_scratch_reserved_bytes 0",
            "kkrepo_scanner_scratch_limit_bytes 0",
            "kkrepo_scanner_admission_rejected_total 0",
            "kkrepo_scanner_database_updates_total{outcome=\"not_due\"} 0",
        ] {
            assert!(text.contains(name), "{name} is missing in\n{text}");
        }
    }
}
