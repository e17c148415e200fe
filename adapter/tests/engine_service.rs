//! The service over both engines with scripts in their place: how many processes run, and what is remembered.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use assay_adapter::engine::cage::Mode;
use assay_adapter::engine::syft::{CatalogJob, Source};
use assay_adapter::engine::{Engines, EnginesConfig, MinimumRate};
use assay_adapter::run::RunContext;
use assay_adapter::telemetry::Metrics;
use assay_adapter::vulndb::canary::{Bounds, Set};
use assay_adapter::vulndb::source;
use assay_adapter::vulndb::trial::Canary;
use assay_adapter::vulndb::{Outcome, Request, Store, UpdatePlan, update};
use assay_schemas::Code;
use assay_schemas::catalog::PartialCode;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

struct Stage {
    root: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("scratch")).unwrap();
        fs::create_dir(root.path().join("run")).unwrap();
        fs::create_dir_all(root.path().join("database/6")).unwrap();
        fs::write(root.path().join("database/6/vulnerability.db"), "db").unwrap();
        let stage = Self { root };
        stage.script(
            "syft",
            r#"case $1 in
  version) echo '{"version":"1.2.3"}';;
  scan) echo '{"distro":{},"catalogers":["c"]}' > engine-facts.jsonl; echo "[0000]  WARN odd thing" >&2; cat engine-config.json;;
esac"#,
        );
        stage.script(
            "grype",
            r#"case "$1 $2" in
  "version "*) echo '{"version":"4.5.6"}';;
  "db status") echo '{"schemaVersion":"v6","built":"2026-01-01T00:00:00Z","valid":true}';;
  "db import") mkdir -p $GRYPE_DB_CACHE_DIR/6; cp "$3" $GRYPE_DB_CACHE_DIR/6/vulnerability.db;;
  "db update") echo "server down" >&2; exit 1;;
  sbom:*) echo "[0000]  WARN Unable to determine the OS distribution of some packages. More" >&2; cat $GRYPE_DB_CACHE_DIR/6/vulnerability.db;;
esac"#,
        );
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Every call adds a line to `calls`.
    fn script(&self, name: &str, body: &str) {
        let path = self.path(name);
        let calls = self.path("calls");
        fs::write(
            &path,
            format!("#!/bin/sh\necho {name} $1 $2 >> {}\n{body}\n", calls.display()),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn calls(&self) -> Vec<String> {
        fs::read_to_string(self.path("calls"))
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn engines(&self) -> Engines {
        self.engines_with(None)
    }

    fn engines_with(&self, max_database_age: Option<Duration>) -> Engines {
        Engines::new(EnginesConfig {
            launcher: PathBuf::from(env!("CARGO_BIN_EXE_assay-adapter")),
            syft: self.path("syft"),
            grype: self.path("grype"),
            path: "/usr/bin:/bin".into(),
            update_environment: Vec::new(),
            scratch: self.path("scratch"),
            max_output: 1 << 20,
            max_stderr: 1 << 16,
            max_file: 1 << 20,
            // The stand-ins are scripts that call programs and write beside themselves.
            max_memory: u64::MAX,
            sandbox: Mode::Off,
            readable: Vec::new(),
            ending: Metrics::default().engine_ending,
            max_database_age,
            cache_file: Some(self.path("cache.json")),
        })
    }
}

fn context() -> RunContext {
    RunContext::with_timeout(Duration::from_mins(1))
}

#[tokio::test]
async fn one_catalog_and_one_match_are_one_process_each() {
    let stage = Stage::new();
    let engines = stage.engines();
    let job = CatalogJob {
        source: Source::File("artifact.jar"),
        catalogers: &["java"],
    };
    let run = stage.path("run");
    let done = engines.catalog(&job, &run, &context()).await.unwrap();
    assert_eq!(done.facts.catalogers, ["c"]);
    assert_eq!(done.warnings.other, 1);
    assert_eq!(stage.calls(), ["syft scan file:artifact.jar"]);

    let done = engines
        .match_sbom("sbom.cdx.json", &stage.path("database"), &run, &context())
        .await
        .unwrap();
    assert_eq!(done.document, b"db");
    assert_eq!(done.warnings.reasons[0].code, PartialCode::DistroUnknown);
    assert_eq!(stage.calls().len(), 2);
}

#[tokio::test]
async fn versions_and_provenance_are_learnt_once_and_outlive_the_process() {
    let stage = Stage::new();
    let engines = stage.engines();
    let database = stage.path("database");
    // Many askers at once cost one process for each thing.
    let ask = || async {
        let context = context();
        let versions = engines.versions(&context).await.unwrap();
        let provenance = engines.database(&database, &context).await.unwrap();
        (versions, provenance)
    };
    let answers = tokio::join!(ask(), ask(), ask(), ask());
    assert_eq!(answers.0.0.syft, "1.2.3");
    assert_eq!(answers.3.0.grype, "4.5.6");
    assert_eq!(answers.1.1.updated_at(), "2026-01-01T00:00:00Z");
    assert_eq!(stage.calls().len(), 3, "{:?}", stage.calls());

    let context = context();
    let restarted = stage.engines();
    restarted.versions(&context).await.unwrap();
    restarted.database(&database, &context).await.unwrap();
    assert_eq!(stage.calls().len(), 3, "{:?}", stage.calls());

    // Another binary and another database are asked anew.
    stage.script("syft", "echo '{\"version\":\"9\"}'");
    fs::write(database.join("6/vulnerability.db"), "newer").unwrap();
    assert_eq!(restarted.versions(&context).await.unwrap().syft, "9");
    restarted.database(&database, &context).await.unwrap();
    assert_eq!(stage.calls().len(), 5, "{:?}", stage.calls());
    let scratch: Vec<_> = fs::read_dir(stage.path("scratch")).unwrap().collect();
    assert!(scratch.is_empty(), "{scratch:?}");
}

#[tokio::test]
async fn failures_are_remembered_only_for_a_moment() {
    let stage = Stage::new();
    stage.script("syft", "exit 1");
    let engines = stage.engines();
    for _ in 0..3 {
        let error = engines.versions(&context()).await.unwrap_err();
        assert_eq!(error.code(), Code::ProcessFailed);
    }
    assert_eq!(stage.calls().len(), 1);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    stage.script("syft", "echo '{\"version\":\"9\"}'");
    assert_eq!(engines.versions(&context()).await.unwrap().syft, "9");
}

#[tokio::test]
async fn a_known_database_still_grows_too_old() {
    let stage = Stage::new();
    let database = stage.path("database");
    stage.engines().database(&database, &context()).await.unwrap();
    let strict = stage.engines_with(Some(Duration::from_secs(1)));
    let error = strict.database(&database, &context()).await.unwrap_err();
    assert_eq!(error.code(), Code::DatabaseTooOld);
    assert_eq!(stage.calls().len(), 1);
    let missing = strict.database(Path::new("/no/such"), &context()).await;
    assert_eq!(missing.unwrap_err().code(), Code::DatabaseUnreadable);
}

#[tokio::test]
async fn an_import_is_validated_and_published_and_a_failed_update_changes_nothing() {
    let stage = Stage::new();
    let engines = stage.engines();
    let store = Store::new(stage.path("store"));
    let file = stage.path("new.db");
    fs::write(&file, "imported").unwrap();
    let mut plan = UpdatePlan {
        request: Request::Import { file, force: false },
        interval: Duration::from_hours(6),
        lock_timeout: Duration::ZERO,
        rate: MinimumRate {
            bytes_per_second: 0,
            window: Duration::from_secs(1),
        },
        canary: Canary {
            set: Set::Nothing,
            bounds: Bounds {
                findings: 0,
                percent: 0,
            },
            scratch: stage.path("scratch"),
        },
    };
    let done = update(&store, &engines, &plan, &context()).await.unwrap();
    let Outcome::Updated(generation, provenance) = done else {
        panic!("{done:?}");
    };
    assert_eq!(provenance.revision, "2026-01-01T00:00:00Z");
    assert_eq!(store.current().unwrap(), generation);
    assert_eq!(
        fs::read_to_string(generation.path.join("6/vulnerability.db")).unwrap(),
        "imported"
    );

    plan.request = Request::Newer(vec![source::Source::Upstream]);
    let done = update(&store, &engines, &plan, &context()).await.unwrap();
    assert_eq!(done, Outcome::NotDue);
    plan.interval = Duration::ZERO;
    let error = update(&store, &engines, &plan, &context()).await.unwrap_err();
    assert_eq!(error.code(), Code::DatabaseUpdateIo);
    assert_eq!(store.current().unwrap(), generation);
    assert_eq!(fs::read_dir(stage.path("store/generations")).unwrap().count(), 1);

    let _held = store.lock(Duration::ZERO).await.unwrap().unwrap();
    let done = update(&store, &engines, &plan, &context()).await.unwrap();
    assert_eq!(done, Outcome::Busy);
}
