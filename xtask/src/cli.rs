//! The verbs and their flags.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::error::Error;
use crate::process;
use crate::suites::Name;
use crate::workspace::{Profile, Workspace};
use crate::{adapter, bench, corpus, database, demo, engines, fuzz, lint, mutants, services, testing};

/// Developer commands of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build the pinned Syft and Grype into target/engines.
    Engines,
    /// Make the offline vulnerability database and publish it into target/database.
    Database,
    /// Run an adapter with engines and offline database in the foreground.
    Adapter {
        /// Address to serve on.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
        listen: SocketAddr,
        /// Use an optimised build.
        #[arg(long)]
        release: bool,
    },
    /// Scan sample artifacts through a fresh adapter and print the findings.
    Demo {
        /// Keep the adapter up after the table, until Ctrl-C.
        #[arg(long, overrides_with = "no_wait")]
        wait: bool,
        /// End after the table (the default).
        #[arg(long, overrides_with = "wait")]
        no_wait: bool,
    },
    /// Run tests; ends with `N passed, N failed`.
    Test(TestArguments),
    /// Check format, lints, repository rules, generated files and dependencies.
    Lint,
    /// Services that test suites need beside the adapter.
    Services {
        /// What to do with them.
        #[arg(value_enum)]
        action: services::Action,
    },
    /// Generate schemas/openapi.yaml and schemas/json from the wire types.
    Schemas {
        /// Only compare; fail when they differ.
        #[arg(long)]
        check: bool,
    },
    /// Measure, and print figures beside their goals.
    Bench {
        /// What to measure.
        #[arg(value_enum)]
        area: bench::Area,
        /// Only the parts of the area whose names hold this; areas without parts ignore it.
        #[arg(long, value_name = "PART")]
        only: Option<String>,
        /// Also write the figures as a JSON list.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Send the handed corpus of hostile and odd inputs to a running adapter.
    Corpus {
        /// Root of the adapter, for example `http://127.0.0.1:8080`.
        url: String,
        /// Folder with run.py and manifest.json [default: ../shared/corpus beside the checkout].
        #[arg(long, value_name = "DIR")]
        corpus: Option<PathBuf>,
        /// Handed on to the runner, after `--`.
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Fuzz the parsers of untrusted bytes; needs a nightly toolchain.
    Fuzz {
        /// One of `adapter/fuzz/fuzz_targets`; all of them, one after the other, when none is named.
        target: Option<String>,
        /// Executions of each target.
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        executions: u64,
        /// Seed of the fuzzer's randomness.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u32,
    },
    /// Mutate the pure core of the gate and see whether its tests notice; needs cargo-mutants.
    Mutants {
        /// Files of `adapter/src/archive`, without `.rs`; the whole pure core when none is named.
        files: Vec<String>,
        /// Handed on to `cargo mutants`, after `--`.
        #[arg(last = true)]
        rest: Vec<String>,
    },
}

/// Which tests to run, and on what.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// Also run tests that take minutes (those marked `#[ignore]`).
    #[arg(long)]
    pub(crate) slow: bool,
    /// Only this suite; may be given more than once.
    #[arg(long = "suite", value_name = "NAME", value_enum)]
    pub(crate) suites: Vec<Name>,
    /// The database that store tests use.
    #[arg(long, value_enum, default_value_t = Store::Sqlite)]
    pub(crate) database: Store,
}

/// SQL databases of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// Embedded, always there.
    Sqlite,
    /// A private server is started by the tests.
    Postgres,
    /// Same.
    Mysql,
    /// Same.
    Mariadb,
}

impl Cli {
    /// Does what was asked for.
    pub(crate) fn run(self) -> Result<(), Error> {
        let workspace = Workspace::locate()?;
        match self.verb {
            Verb::Engines => {
                let engines = engines::prepare(&workspace)?;
                println!("{}\n{}", engines.syft.display(), engines.grype.display());
                Ok(())
            }
            Verb::Database => {
                let engines = engines::prepare(&workspace)?;
                let directory = database::prepare(&workspace, &engines, Profile::Dev)?;
                println!("{}", database::published_generation(&directory)?.display());
                Ok(())
            }
            Verb::Adapter { listen, release } => adapter::run(&workspace, listen, profile(release)),
            Verb::Demo { wait, no_wait: _ } => demo::run(&workspace, wait),
            Verb::Test(arguments) => testing::run(&workspace, &arguments),
            Verb::Lint => lint::run(&workspace),
            Verb::Services { action } => services::run(&workspace, action),
            Verb::Schemas { check } => schemas(&workspace, check),
            Verb::Bench { area, only, json } => {
                bench::run(&workspace, area, only.as_deref(), json.as_deref())
            }
            Verb::Corpus { url, corpus, rest } => corpus::run(&workspace, &url, corpus, &rest),
            Verb::Fuzz {
                target,
                executions,
                seed,
            } => fuzz::run(&workspace, target.as_deref(), executions, seed),
            Verb::Mutants { files, rest } => mutants::run(&workspace, &files, &rest),
        }
    }
}

fn profile(release: bool) -> Profile {
    if release { Profile::Release } else { Profile::Dev }
}

/// Runs the generator that lives beside the wire types.
pub(crate) fn schemas(workspace: &Workspace, check: bool) -> Result<(), Error> {
    let mut command = process::cargo(workspace);
    command.args([
        "run",
        "--quiet",
        "--package",
        "assay-schemas",
        "--features",
        "generate",
    ]);
    command.args(["--bin", "generate-schemas", "--"]);
    if check {
        command.arg("--check");
    }
    process::run(&mut command)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn verbs_and_suites_that_others_call_stay() {
        for line in [
            "x demo",
            "x demo --no-wait",
            "x engines",
            "x database",
            "x adapter",
            "x adapter --listen 127.0.0.1:1",
            "x test --slow --suite unit --suite adapter --suite gate --suite oci --suite execution --suite contract",
            "x test --suite policy --suite publication --suite host --suite deploy --database mariadb",
            "x services up",
            "x services down",
            "x services list",
            "x bench control-plane --json f",
            "x bench warm",
            "x corpus http://127.0.0.1:1",
            "x schemas --check",
            "x fuzz tar --executions 1000",
            "x mutants path links -- --list",
            "x lint",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "{line}");
        }
    }
}
