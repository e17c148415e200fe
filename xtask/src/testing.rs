//! `cargo xtask test`: suites, counted from what the test programs themselves say.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::{Store, TestArguments};
use crate::engines::Engines;
use crate::error::{Error, io};
use crate::suites::{self, Name, Step, Target};
use crate::workspace::{Profile, Workspace};
use crate::{database, engines, needs, process, reader, registries};

/// Tests that ended one way or the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// What every test program finds in its environment.
struct Setting<'a> {
    workspace: &'a Workspace,
    engines: Engines,
    database: &'a Path,
    reader: &'a Path,
    store: Store,
    slow: bool,
    skips: Vec<String>,
}

/// Runs the chosen suites, or all, and prints the closing line.
pub(crate) fn run(workspace: &Workspace, arguments: &TestArguments) -> Result<(), Error> {
    let engines = engines::prepare(workspace)?;
    let database = database::prepare(workspace, &engines, Profile::Dev)?;
    let reader = reader::prepare(workspace)?;
    let every: Vec<Name> = suites::ALL.iter().map(|(name, _)| *name).collect();
    let by_name = !arguments.suites.is_empty();
    let chosen = if by_name { &arguments.suites } else { &every };
    if chosen.contains(&Name::Oci) {
        registries::prepare(workspace)?;
    }
    let missing = needs::missing();
    if !missing.is_empty() && std::env::var_os("CI").is_some() {
        return Err(Error::ProgramsMissing(needs::describe(&missing)));
    }
    let (store, slow) = (arguments.database, arguments.slow);
    let setting = Setting {
        workspace,
        engines,
        database: &database,
        reader: &reader,
        store,
        slow,
        skips: needs::skips(&missing),
    };

    let mut total = Count::default();
    let mut absent = Vec::new();
    for name in chosen {
        println!("\n=== suite {}", shown(name));
        let mut count = Count::default();
        for step in suites::steps(*name) {
            count += run_step(&setting, step)?;
        }
        if count == Count::default() {
            println!("no tests yet");
            absent.push(shown(name));
        }
        total += count;
    }

    if !absent.is_empty() {
        println!("\nSUITES WITHOUT TESTS YET: {}", absent.join(", "));
    }
    if !missing.is_empty() {
        println!("\n{}", needs::describe(&missing));
    }
    println!("\n{} passed, {} failed", total.passed, total.failed);
    let empty = total.passed == 0 || (by_name && !absent.is_empty());
    if total.failed > 0 || empty {
        Err(Error::TestsFailed)
    } else {
        Ok(())
    }
}

fn run_step(setting: &Setting<'_>, step: &Step) -> Result<Count, Error> {
    let Some(target) = step.target_arguments(setting.workspace.root()) else {
        return Ok(Count::default());
    };
    let mut command = command(setting, step, &target);
    let name = process::name_of(&command);
    let mut child = command
        .spawn()
        .map_err(|source| process::spawn_error(&command, source))?;
    let mut count = Count::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(io("read the tests' output"))?;
            let text = String::from_utf8_lossy(&line);
            if let Some(result) = parse_result(&text) {
                count += result;
            }
            // Printing must not end the run: the reader of our output may have had enough.
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }
    let status = child.wait().map_err(io("wait for the tests"))?;
    if !status.success() && count.failed == 0 {
        // It did not compile, or died before it could count.
        println!("{name} ended with {status}");
        count.failed = 1;
    }
    Ok(count)
}

fn command(setting: &Setting<'_>, step: &Step, target: &[String]) -> Command {
    let mut command = process::cargo(setting.workspace);
    command.args(["test", "--no-fail-fast", "--package", package(step.member)]);
    if step.member == "schemas" {
        command.args(["--features", "generate"]);
    }
    command.args(target).arg("--").args(step.selection());
    if step.target != Target::Documentation {
        command.args(&setting.skips);
    }
    if setting.slow {
        command.arg("--include-ignored");
    }
    command.env("ASSAY_ENGINES", setting.workspace.engines());
    command
        .env("ASSAY_SYFT", &setting.engines.syft)
        .env("ASSAY_GRYPE", &setting.engines.grype);
    command
        .env("ASSAY_DATABASE", setting.database)
        .env("ASSAY_READER", setting.reader);
    command.env(registries::DIRECTORY_VARIABLE, setting.workspace.services());
    command.env("ASSAY_STORE", shown(&setting.store));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn package(member: &'static str) -> &'static str {
    match member {
        "schemas" => "assay-schemas",
        "fixtures" => "assay-fixtures",
        "control-plane" => "assay-control-plane",
        "adapter" => "assay-adapter",
        other => other,
    }
}

/// The name as it is written on the command line.
fn shown(value: &impl clap::ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn parse_result(line: &str) -> Option<Count> {
    let (_, counts) = line
        .trim_start()
        .strip_prefix("test result: ")?
        .split_once(". ")?;
    let mut numbers = counts.split("; ").map(|part| {
        let (number, what) = part.split_once(' ')?;
        Some((number.parse::<u64>().ok()?, what))
    });
    match (numbers.next()??, numbers.next()??) {
        ((passed, "passed"), (failed, "failed")) => Some(Count { passed, failed }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted_and_nothing_else() {
        let good = "test result: FAILED. 3 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(parse_result(good), Some(Count { passed: 3, failed: 2 }));
        for other in [
            "",
            "test result: ok",
            "test result: ok. x passed; 0 failed",
            "running 3 tests",
            "3 passed, 0 failed",
        ] {
            assert_eq!(parse_result(other), None, "{other}");
        }
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        assert_eq!(shown(&Name::Unit), "unit");
        assert_eq!(shown(&Store::Mariadb), "mariadb");
    }
}
