//! Whether a scan can be done now: observed, remembered for a while, and never waited for longer than need be.

use crate::app::App;
use crate::problem::Problem;
use crate::run::{RunContext, Stopped};
use crate::telemetry::Metrics;
use crate::workspace;
use assay_schemas::version::{CATALOG_ENGINE, MATCHER_ENGINE};
use assay_schemas::{Code, Readiness, ReadinessStatus};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Longest time that a probe of engines and database may take.
const PROBE: Duration = Duration::from_secs(15);
/// How long an asker waits for a newer observation than one that is merely old.
const PATIENCE_WITH_AGE: Duration = Duration::from_millis(250);
/// The same, when another database generation has been published since.
const PATIENCE_WITH_GENERATION: Duration = Duration::from_secs(5);
const UNAVAILABLE: &str = "unavailable";

/// The last observation, reused while it is fresh and the database pointer is the same.
///
/// At most one probe runs at a time, in a task of its own, so that no asker's end ends it. While it runs, an old
/// observation, which says when it was made, is better than none.
#[derive(Debug, Default)]
pub struct ReadinessCache {
    last: Mutex<Option<Observation>>,
    probe: Mutex<Option<watch::Receiver<()>>>,
}

#[derive(Debug, Clone)]
struct Observation {
    at: Instant,
    generation: Option<String>,
    readiness: Arc<Readiness>,
}

impl Observation {
    fn is_fresh(&self, generation: Option<&str>, lifetime: Duration, asked: Instant) -> bool {
        let is_young = self.at >= asked || self.at.elapsed() < lifetime;
        is_young && self.generation.as_deref() == generation
    }

    fn patience(&self, generation: Option<&str>) -> Duration {
        if self.generation.as_deref() == generation {
            PATIENCE_WITH_AGE
        } else {
            PATIENCE_WITH_GENERATION
        }
    }
}

/// Engines, database, scratch and sandbox, observed now or recently.
///
/// The first observation is waited for, for as long as a probe may take. Afterwards a slow probe holds nobody up: for a
/// moment the newer observation is waited for, and then the last one is given, at most for as long as the probe may take.
pub async fn readiness(app: &Arc<App>) -> Arc<Readiness> {
    let asked = Instant::now();
    let lifetime = app.config.readiness_cache;
    loop {
        let generation = app.scanner.generation_identity();
        let last = app.readiness.last();
        let patience = match &last {
            Some(seen) if seen.is_fresh(generation.as_deref(), lifetime, asked) => {
                return Arc::clone(&seen.readiness);
            }
            Some(seen) => seen.patience(generation.as_deref()),
            None => PROBE,
        };
        let mut probe = probe(app);
        let left = patience.saturating_sub(asked.elapsed());
        // Its end is told by a closed channel.
        if tokio::time::timeout(left, probe.changed()).await.is_err() {
            return match app.readiness.last() {
                Some(seen) => seen.readiness,
                None => Arc::new(degraded(&Stopped::TimedOut.into())),
            };
        }
    }
}

/// Errors while the scanner is not ready; scans do not start then.
///
/// # Errors
/// [`Code::NotReady`], with the reason code in the message.
pub async fn require_ready(app: &Arc<App>) -> Result<(), Problem> {
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
    fn last(&self) -> Option<Observation> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn probe(&self) -> MutexGuard<'_, Option<watch::Receiver<()>>> {
        self.probe.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The probe that runs; starts one when none does. The channel is closed when it has ended, however it did.
fn probe(app: &Arc<App>) -> watch::Receiver<()> {
    let mut current = app.readiness.probe();
    if let Some(probe) = current.as_ref().filter(|probe| probe.has_changed().is_ok()) {
        return probe.clone();
    }
    let (running, probe) = watch::channel(());
    *current = Some(probe.clone());
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let generation = app.scanner.generation_identity();
        let readiness = Arc::new(observe(&app).await);
        *app.readiness.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Observation {
            at: Instant::now(),
            generation,
            readiness,
        });
        drop(running);
    });
    probe
}

async fn observe(app: &App) -> Readiness {
    // The time of the observation, not of the answer.
    let observed_at = jiff::Timestamp::now().to_string();
    let run = RunContext::with_timeout(PROBE);
    let observed = match run.bound(look(app, &run)).await {
        Ok(Ok(readiness)) => readiness,
        Ok(Err(problem)) => degraded(&problem),
        Err(stopped) => degraded(&stopped.into()),
    };
    note(&app.metrics, &observed);
    Readiness {
        observed_at,
        ..observed
    }
}

/// Tells the metrics.
fn note(metrics: &Metrics, observed: &Readiness) {
    metrics.ready.set(i64::from(observed.ready));
    let built = observed
        .vulnerability_database_updated_at
        .parse::<jiff::Timestamp>();
    metrics
        .database_built
        .set(built.map_or(0, jiff::Timestamp::as_second));
}

/// Looks at everything that a scan needs.
async fn look(app: &App, run: &RunContext) -> Result<Readiness, Problem> {
    scratch(app).await?;
    let layers = app.scanner.cage(run).await?.layers();
    let snapshot = app.scanner.snapshot(run).await?;
    let engine = &app.config.engine;
    as_expected(
        CATALOG_ENGINE,
        &snapshot.versions.syft,
        engine.expected_syft.as_deref(),
    )?;
    as_expected(
        MATCHER_ENGINE,
        &snapshot.versions.grype,
        engine.expected_grype.as_deref(),
    )?;
    let details = [
        ("catalogEngine", CATALOG_ENGINE.to_owned()),
        ("catalogEngineVersion", snapshot.versions.syft),
        ("matcherEngine", MATCHER_ENGINE.to_owned()),
        ("matcherEngineVersion", snapshot.versions.grype.clone()),
        ("capabilityDigest", app.capability_digest.clone()),
        ("sandbox", engine.sandbox.as_str().to_owned()),
        ("isolationInForce", layers),
    ];
    Ok(Readiness {
        ready: true,
        status: ReadinessStatus::Ready,
        engine_name: MATCHER_ENGINE.to_owned(),
        engine_version: snapshot.versions.grype,
        vulnerability_database_revision: snapshot.revision,
        vulnerability_database_updated_at: snapshot.updated_at,
        observed_at: String::new(),
        details: details
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    })
}

/// Whether the scratch space takes a directory and has room. A file system may hang, so it is asked off the async
/// threads.
async fn scratch(app: &App) -> Result<(), Problem> {
    let directory = app.config.engine.work_directory.clone();
    let least = app.config.engine.min_free_scratch_bytes;
    super::in_background(move || Ok(workspace::check_room(&directory, least)?)).await
}

/// Whether an engine has the version that the configuration expects.
///
/// # Errors
/// [`Code::VersionInvalid`].
pub fn as_expected(engine: &str, found: &str, expected: Option<&str>) -> Result<(), Problem> {
    match expected {
        Some(expected) if expected != found => Err(Problem::new(
            Code::VersionInvalid,
            format!("{engine} has version {found}, {expected} is expected"),
        )),
        _ => Ok(()),
    }
}

fn degraded(problem: &Problem) -> Readiness {
    tracing::warn!(code = %problem.code, "not ready: {problem}");
    Readiness {
        ready: false,
        status: ReadinessStatus::Degraded,
        engine_name: format!("{CATALOG_ENGINE}-{MATCHER_ENGINE}"),
        engine_version: UNAVAILABLE.to_owned(),
        vulnerability_database_revision: UNAVAILABLE.to_owned(),
        vulnerability_database_updated_at: "1970-01-01T00:00:00Z".to_owned(),
        observed_at: jiff::Timestamp::now().to_string(),
        details: BTreeMap::from([("reasonCode".to_owned(), problem.code.as_str().to_owned())]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Observation, PATIENCE_WITH_AGE, PATIENCE_WITH_GENERATION, as_expected, degraded};
    use crate::problem::Problem;
    use assay_schemas::Code;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    #[test]
    fn an_observation_is_fresh_for_its_generation_and_time() {
        let at = Instant::now();
        let seen = Observation {
            at,
            generation: Some("a".to_owned()),
            readiness: Arc::new(degraded(&Problem::new(Code::NotReady, "x"))),
        };
        let (minute, later) = (Duration::from_mins(1), at + Duration::from_secs(1));
        assert!(seen.is_fresh(Some("a"), minute, later));
        assert!(!seen.is_fresh(Some("b"), minute, later), "another database");
        assert!(!seen.is_fresh(None, minute, later), "no database");
        assert!(!seen.is_fresh(Some("a"), Duration::ZERO, later), "too old");
        assert!(
            seen.is_fresh(Some("a"), Duration::ZERO, at),
            "made after it was asked for"
        );
        assert_eq!(seen.patience(Some("a")), PATIENCE_WITH_AGE);
        assert_eq!(seen.patience(None), PATIENCE_WITH_GENERATION);
    }

    #[test]
    fn only_the_expected_version_will_do() {
        assert!(as_expected("syft", "1.2.3", None).is_ok());
        assert!(as_expected("syft", "1.2.3", Some("1.2.3")).is_ok());
        let problem = as_expected("syft", "1.2.3", Some("1.2.30")).unwrap_err();
        assert_eq!(problem.code, Code::VersionInvalid);
        assert_eq!(problem.message, "syft has version 1.2.3, 1.2.30 is expected");
    }
}
