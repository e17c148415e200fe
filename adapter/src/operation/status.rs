//! Capabilities, readiness and health.

use crate::app::App;
use crate::problem::Problem;
use crate::run::RunContext;
use assay_schemas::version::{
    ADAPTER_NAME, ADAPTER_VERSION, API_VERSION, CATALOG_ENGINE, MATCHER_ENGINE, OPERATIONS,
    TARGET_CLASSIFICATIONS,
};
use assay_schemas::{Capabilities, Code, Readiness, ReadinessStatus};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest time that a probe of engines and database may take.
const PROBE: Duration = Duration::from_secs(15);
const UNAVAILABLE: &str = "unavailable";

/// The static description of this adapter.
pub fn capabilities(app: &App) -> Capabilities {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Capabilities {
        api_version: API_VERSION.to_owned(),
        adapter_name: ADAPTER_NAME.to_owned(),
        adapter_version: ADAPTER_VERSION.to_owned(),
        operations: owned(OPERATIONS),
        target_classifications: owned(TARGET_CLASSIFICATIONS),
        max_input_bytes: app.config.ceiling.max_input_bytes,
        max_output_bytes: app.config.ceiling.max_output_bytes,
        capability_digest: app.capability_digest.clone(),
    }
}

/// The last readiness answer, reused while it is fresh and the database pointer is the same.
#[derive(Debug, Default)]
pub struct ReadinessCache {
    last: Mutex<Option<Observation>>,
    probe: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone)]
struct Observation {
    at: Instant,
    generation: Option<String>,
    readiness: Arc<Readiness>,
}

/// Engines and database, observed now or recently. Probes run one at a time; whoever waits shares the result.
pub async fn readiness(app: &App) -> Arc<Readiness> {
    let generation = app.scanner.generation_identity();
    if let Some(readiness) = app
        .readiness
        .fresh(generation.as_deref(), app.config.readiness_cache)
    {
        return readiness;
    }
    let _probing = app.readiness.probe.lock().await;
    if let Some(readiness) = app
        .readiness
        .fresh(generation.as_deref(), app.config.readiness_cache)
    {
        return readiness;
    }
    let readiness = Arc::new(observe(app).await);
    *app.readiness.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Observation {
        at: Instant::now(),
        generation,
        readiness: Arc::clone(&readiness),
    });
    readiness
}

/// Errors while the scanner is not ready; scans do not start then.
///
/// # Errors
/// [`Code::NotReady`], with the reason code in the message.
pub async fn require_ready(app: &App) -> Result<(), Problem> {
    let readiness = readiness(app).await;
    if readiness.ready {
        return Ok(());
    }
    let reason = readiness
        .details
        .get("reasonCode")
        .map_or("unknown", String::as_str);
    Err(Problem::new(
        Code::NotReady,
        format!("the scanner is not ready: {reason}"),
    ))
}

impl ReadinessCache {
    fn fresh(&self, generation: Option<&str>, lifetime: Duration) -> Option<Arc<Readiness>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .filter(|seen| seen.at.elapsed() < lifetime && seen.generation.as_deref() == generation)
            .map(|seen| Arc::clone(&seen.readiness))
    }
}

async fn observe(app: &App) -> Readiness {
    let observed_at = jiff::Timestamp::now().to_string();
    let run = RunContext::with_timeout(PROBE);
    let observed = async {
        let layers = app.scanner.cage(&run).await?.layers();
        Ok((app.scanner.snapshot(&run).await?, layers))
    };
    match observed.await {
        Ok((snapshot, layers)) => Readiness {
            ready: true,
            status: ReadinessStatus::Ready,
            engine_name: MATCHER_ENGINE.to_owned(),
            engine_version: snapshot.versions.grype.clone(),
            vulnerability_database_revision: snapshot.revision,
            vulnerability_database_updated_at: snapshot.updated_at,
            observed_at,
            details: BTreeMap::from([
                ("catalogEngine".to_owned(), CATALOG_ENGINE.to_owned()),
                ("catalogEngineVersion".to_owned(), snapshot.versions.syft),
                ("matcherEngine".to_owned(), MATCHER_ENGINE.to_owned()),
                ("matcherEngineVersion".to_owned(), snapshot.versions.grype),
                ("capabilityDigest".to_owned(), app.capability_digest.clone()),
                (
                    "sandbox".to_owned(),
                    app.config.engine.sandbox.as_str().to_owned(),
                ),
                ("isolationInForce".to_owned(), layers),
            ]),
        },
        Err::<_, Problem>(problem) => {
            tracing::warn!(code = %problem.code, "not ready: {problem}");
            Readiness {
                ready: false,
                status: ReadinessStatus::Degraded,
                engine_name: format!("{CATALOG_ENGINE}-{MATCHER_ENGINE}"),
                engine_version: UNAVAILABLE.to_owned(),
                vulnerability_database_revision: UNAVAILABLE.to_owned(),
                vulnerability_database_updated_at: "1970-01-01T00:00:00Z".to_owned(),
                observed_at,
                details: BTreeMap::from([("reasonCode".to_owned(), problem.code.as_str().to_owned())]),
            }
        }
    }
}

/// Health in the words of the health endpoints.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<Value>,
}

impl Health {
    /// Whether the endpoint answers 200.
    pub fn is_up(&self) -> bool {
        self.status == "UP"
    }
}

/// Whether the process lives: as long as it answers.
pub const fn liveness() -> Health {
    Health {
        status: "UP",
        components: None,
    }
}

/// Whether scans can be accepted.
pub async fn health_readiness(app: &App) -> Health {
    Health {
        status: status_word(readiness(app).await.as_ref()),
        components: None,
    }
}

/// The overview, with the scanner as its only component.
pub async fn health(app: &App) -> Health {
    let readiness = readiness(app).await;
    let status = status_word(&readiness);
    let scanner = json!({
        "status": status,
        "details": {
            "status": readiness.status,
            "engine": readiness.engine_name,
            "engineVersion": readiness.engine_version,
            "databaseRevision": readiness.vulnerability_database_revision,
            "databaseUpdatedAt": readiness.vulnerability_database_updated_at,
        },
    });
    Health {
        status,
        components: Some(json!({ "scanner": scanner })),
    }
}

fn status_word(readiness: &Readiness) -> &'static str {
    if readiness.ready { "UP" } else { "DEGRADED" }
}

/// Build facts.
pub async fn info(app: &App) -> Value {
    let readiness = readiness(app).await;
    json!({
        "app": { "name": "assay-adapter", "version": env!("CARGO_PKG_VERSION") },
        "adapter": { "name": ADAPTER_NAME, "version": ADAPTER_VERSION, "capabilityDigest": app.capability_digest },
        "engines": readiness.details,
    })
}
