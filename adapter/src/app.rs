//! Everything that requests share.

use crate::admission::Admission;
use crate::config::Config;
use crate::engine::syft::{self, CatalogJob};
use crate::oci::Registries;
use crate::operation::readiness::ReadinessCache;
use crate::problem::Problem;
use crate::recognition::configuration;
use crate::runs::Runs;
use crate::scanner::{Scanner, Surroundings};
use crate::telemetry::Metrics;
use assay_schemas::catalog::{MAX_COMPONENTS, MAX_NESTED_LIST, MAX_PROPERTIES};
use assay_schemas::{Code, version};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::task::TaskTracker;

/// How this adapter's documents differ from the plain contract; part of the capability digest, together with
/// [`catalog_token`].
pub const CAPABILITY_TOKENS: &[&str] = &[
    "assay-identity-v1",
    "assay-deterministic-v1",
    "assay-locations-v1",
];

/// The token of everything that decides the inventory of given bytes: recognition, the cataloguer's settings, and the
/// bounds of the projection. What is stored under another one may differ for the same bytes.
pub fn catalog_token() -> String {
    let job = CatalogJob {
        source: syft::Source::Directory("."),
        catalogers: &[],
    };
    let settings = syft::setup(&job).into_iter().map(|(_, content)| content);
    let bounds = [MAX_COMPONENTS, MAX_NESTED_LIST, MAX_PROPERTIES].map(|bound| bound.to_string());
    let facts: Vec<String> = configuration::facts()
        .into_iter()
        .chain(settings)
        .chain(bounds)
        .collect();
    configuration::token(&facts)
}

/// The state of one adapter process.
#[derive(Debug)]
pub struct App {
    /// Checked settings.
    pub config: Config,
    /// Counters and gauges.
    pub metrics: Arc<Metrics>,
    /// Slots and scratch.
    pub admission: Admission,
    /// Active runs.
    pub runs: Arc<Runs>,
    /// Operations that outlive their connection until they have cleaned up.
    pub operations: TaskTracker,
    /// Engines and database.
    pub scanner: Scanner,
    /// Registries that images are staged from.
    pub registries: Registries,
    /// The last readiness answer.
    pub readiness: ReadinessCache,
    /// See [`version::capability_digest`].
    pub capability_digest: String,
    draining: AtomicBool,
}

impl App {
    /// The state of a process with this configuration. Starts nothing.
    pub fn new(config: Config, surroundings: Surroundings) -> Self {
        let metrics = Arc::new(Metrics::default());
        let ceiling = &config.ceiling;
        let catalog_token = catalog_token();
        let tokens: Vec<&str> = CAPABILITY_TOKENS
            .iter()
            .copied()
            .chain([catalog_token.as_str()])
            .collect();
        let capability_digest =
            version::capability_digest(ceiling.max_input_bytes, ceiling.max_output_bytes, &tokens);
        Self {
            admission: Admission::new(config.admission, Arc::clone(&metrics)),
            runs: Arc::new(Runs::default()),
            operations: TaskTracker::new(),
            scanner: Scanner::new(&config, surroundings, &metrics),
            registries: Registries::new(&config.oci),
            readiness: ReadinessCache::default(),
            capability_digest,
            draining: AtomicBool::new(false),
            metrics,
            config,
        }
    }

    /// From now on cancelled runs say that this replica is going away.
    pub fn begin_drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// A run that is interrupted by shutdown is not cancelled: the client shall try the next replica.
    pub fn while_draining(&self, problem: Problem) -> Problem {
        let interrupted = matches!(problem.code, Code::Interrupted | Code::AdmissionInterrupted);
        if interrupted && self.draining.load(Ordering::Relaxed) {
            return Problem::new(Code::NotReady, "this replica is shutting down").caused_by(problem);
        }
        problem
    }
}
