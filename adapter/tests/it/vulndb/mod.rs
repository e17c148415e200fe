//! Generations of the vulnerability database with the real engine: updates, sources, the canary, crashes and readers.

mod canary;
mod faults;
mod killed;
mod layout;
mod lifecycle;
mod readers;

use crate::support::{Setup, engines, program};
use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// An SBOM with four findings in the offline database.
const SBOM: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"components":[{"type":"library","bom-ref":"log4j-core","group":"org.apache.logging.log4j","name":"log4j-core","version":"2.14.1","purl":"pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1"}]}"#;

/// A host of its own: a database directory, a work directory, and files.
struct Site {
    root: TempDir,
    setup: Setup,
}

impl Site {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let engines = engines();
        let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        let setup = Setup::of(
            &engines.join("syft"),
            &engines.join("grype"),
            &root.path().join("database"),
        )
        .with("work_directory", &path("work"))
        .with("db_update_interval", "0");
        Self { root, setup }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.setup = self.setup.with(name, value);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn database(&self) -> PathBuf {
        self.path("database")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments).args(self.setup.arguments());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs and expects this exit code; gives standard output.
    fn expect(&self, exit: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{arguments:?}: {}",
            shown(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Imports a database that was built so many hours ago.
    fn import(&self, hours_ago: i64) {
        let file = self.make(hours_ago);
        self.expect(0, &["update-database", "--import", file.to_str().unwrap()]);
    }

    /// A database file that was built so many hours ago.
    fn make(&self, hours_ago: i64) -> PathBuf {
        let path = self.path(&format!("built-{hours_ago}-hours-ago.db"));
        build(&path, hours_ago);
        path
    }

    fn list(&self) -> Vec<Value> {
        let text = self.expect(0, &["database", "list", "--format", "json"]);
        serde_json::from_str(&text).unwrap()
    }

    /// Build time of the current generation.
    fn current(&self) -> Timestamp {
        let list = self.list();
        let current: Vec<_> = list.iter().filter(|entry| entry["current"] == true).collect();
        assert_eq!(current.len(), 1, "{list:?}");
        current[0]["built"].as_str().unwrap().parse().unwrap()
    }

    fn pointer(&self) -> String {
        std::fs::read_to_string(self.database().join(".kkrepo-db-current")).unwrap_or_default()
    }

    /// Nothing is left of an update that did not publish.
    fn assert_no_staging(&self) {
        let strays: Vec<_> = std::fs::read_dir(self.database().join("generations"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name.to_string_lossy().starts_with('.'))
            .collect();
        assert!(strays.is_empty(), "{strays:?}");
    }
}

/// When a database of [`build`] was built.
fn built(hours_ago: i64) -> Timestamp {
    let hour = Timestamp::now().as_second() / 3600 * 3600;
    Timestamp::from_second(hour).unwrap() - hours_ago.hours()
}

fn build(path: &Path, hours_ago: i64) {
    assay_fixtures::database::build(path, built(hours_ago)).unwrap();
}

/// Changes a database file that no engine has seen yet.
fn change(path: &Path, statements: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(statements).unwrap();
    connection.close().unwrap();
}

/// What is published is sealed, but not against its owner.
fn writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

fn shown(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The log line that ends an update: its outcome and the word for it.
fn ending(output: &Output) -> (String, String) {
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["message"] == "database update ended")
        .unwrap_or_else(|| panic!("no end in {log}"));
    let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("detail"))
}
