//! Scripted engines and a database that only they accept, for what the real ones cannot do on cue.

use crate::support::{Setup, TestAdapter, eventually};
use assay_fixtures::fake_engine::{self, Action, Recorded, SCRIPT, Script};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;
use uuid::Uuid;

/// Longer than any test.
pub(crate) const FOREVER: Action = Action::Sleep(600_000);

/// A directory with both engines, their script and a database directory.
pub(crate) struct FakeEngines {
    root: TempDir,
}

impl FakeEngines {
    /// Engines that answer as the real ones do for an empty inventory, and a published database.
    pub(crate) fn new() -> Self {
        let engines = Self {
            root: tempfile::tempdir().unwrap(),
        };
        for name in ["syft", "grype"] {
            fake_engine::install(built(), engines.root.path(), name, &Script::default()).unwrap();
        }
        engines.publish();
        engines
    }

    /// What both engines do from their next start on.
    pub(crate) fn behave(&self, script: &Script) {
        // An engine may start at any moment, so the script changes in one step.
        let part = self.path("script.part");
        std::fs::write(&part, serde_json::to_vec(script).unwrap()).unwrap();
        std::fs::rename(part, self.path(SCRIPT)).unwrap();
    }

    /// From now on every scan does this.
    pub(crate) fn scans_do(&self, actions: impl Into<Vec<Action>>) {
        self.behave(&Script::default().on("scan", actions));
    }

    /// From now on every scan notes what it was given and then does not end. Forgets what an earlier one noted.
    pub(crate) fn scans_stall(&self) {
        self.scans_do_after_record([FOREVER]);
    }

    /// From now on every scan notes what it was given and then does this. Forgets what an earlier one noted.
    pub(crate) fn scans_do_after_record(&self, actions: impl IntoIterator<Item = Action>) {
        let _ = std::fs::remove_file(self.record());
        let record = Action::Record(self.record());
        self.scans_do([record].into_iter().chain(actions).collect::<Vec<_>>());
    }

    /// What the running scan was given; waits for it.
    pub(crate) fn recorded(&self) -> Recorded {
        let mut recorded = None;
        eventually("a scan that says what it was given", || {
            let bytes = std::fs::read(self.record()).unwrap_or_default();
            // The file may be half written.
            recorded = serde_json::from_slice(&bytes).ok();
            recorded.is_some()
        });
        recorded.unwrap()
    }

    fn record(&self) -> PathBuf {
        self.path("recorded.json")
    }

    /// A file beside the engines.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The database directory.
    pub(crate) fn database(&self) -> PathBuf {
        self.path("database")
    }

    /// Publishes another database generation.
    pub(crate) fn publish(&self) {
        let name = format!("generation-1767225600000-{}", Uuid::new_v4());
        let directory = self.database().join("generations").join(&name).join("6");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("vulnerability.db"), &name).unwrap();
        self.point(&format!("{name}\n2026-01-01T00:00:00Z\n"));
    }

    /// Writes the pointer to the current generation.
    pub(crate) fn point(&self, text: &str) {
        std::fs::write(self.pointer(), text).unwrap();
    }

    /// The file that names the current generation.
    pub(crate) fn pointer(&self) -> PathBuf {
        self.database().join(".kkrepo-db-current")
    }

    /// An adapter's settings with these engines. Their database has a fixed age, so any age is accepted.
    pub(crate) fn setup(&self) -> Setup {
        Setup::of(&self.path("syft"), &self.path("grype"), &self.database())
            .with("db_max_age", "0")
            .with("db_canary_directory", "none")
            // They keep their script and their notes beside themselves.
            .with("sandbox", "off")
    }

    /// A ready adapter with these engines.
    pub(crate) fn start(&self) -> TestAdapter {
        let adapter = self.setup().start();
        adapter.wait_ready();
        adapter
    }
}

/// Whether the program is of the source that this test is of.
fn is_current(program: &Path) -> bool {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/src");
    ["fake_engine.rs", "bin/fake-engine.rs"].iter().all(|file| {
        match (modified(&source.join(file)), modified(program)) {
            (Ok(source), Ok(program)) => source <= program,
            _ => false,
        }
    })
}

/// The program, built when it is not there yet or not of today's source.
fn built() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        fake_engine::built()
            .filter(|program| is_current(program))
            .unwrap_or_else(|| {
                let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
                build.args(["build", "--package", "assay-fixtures", "--bin", "fake-engine"]);
                if !cfg!(debug_assertions) {
                    build.arg("--release");
                }
                assert!(build.status().unwrap().success(), "fake-engine cannot be built");
                fake_engine::built().expect("fake-engine is built beside this test")
            })
    })
}
