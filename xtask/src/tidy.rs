//! Rules of this repository that no compiler knows.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, on};
use crate::process;

/// Most lines of a Rust file outside tests; longer ones have more than one reason to change.
const MAX_LINES: usize = 500;

/// Checks all tracked files and prints what is wrong.
pub(crate) fn check(root: &Path) -> Result<(), Error> {
    let complaints = complaints(root)?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(Error::Untidy(complaints.len()))
    }
}

fn complaints(root: &Path) -> Result<Vec<String>, Error> {
    let names = process::output(Command::new("git").current_dir(root).args(["ls-files", "-z"]))?;
    let machine = machine_paths(root);
    let mut complaints = decisions(names.split('\0'));
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let path = root.join(name);
        // Removed but not yet committed, or a link: nothing of ours to read.
        if !path.is_file() {
            continue;
        }
        // Test data need not be text.
        let bytes = fs::read(&path).map_err(on("read", &path))?;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            complaints.extend(too_long(name, text));
            complaints.extend(names_machine(name, text, &machine));
        }
    }
    Ok(complaints)
}

fn too_long(name: &str, text: &str) -> Option<String> {
    let is_test = name.split('/').any(|part| part == "tests") || name.ends_with("/tests.rs");
    if Path::new(name)
        .extension()
        .is_none_or(|extension| extension != "rs")
        || is_test
    {
        return None;
    }
    let lines = text.lines().count();
    (lines > MAX_LINES).then(|| format!("{name}: {lines} lines, at most {MAX_LINES}"))
}

/// Paths that exist on one machine only: this checkout and home folders.
fn machine_paths(root: &Path) -> Vec<String> {
    let mut paths = vec![root.display().to_string(), ["", "Users", ""].join("/")];
    let home = env::home_dir().map(|home| home.display().to_string());
    paths.extend(home.filter(|home| home.matches('/').count() > 1));
    paths
}

fn names_machine(name: &str, text: &str, machine: &[String]) -> Option<String> {
    let found = machine.iter().find(|path| begins_somewhere(text, path))?;
    Some(format!("{name}: names a path of one machine: {found}"))
}

/// Whether an absolute path stands in a text, other than as the end of a longer one.
fn begins_somewhere(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || "._-*}".contains(c))
    })
}

/// `docs/decisions/NNNN-what.md`, each number once.
fn decisions<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    for name in names {
        let Some(file) = name
            .strip_prefix("docs/decisions/")
            .filter(|file| *file != "README.md")
        else {
            continue;
        };
        let (number, rest) = file.split_once('-').unwrap_or_default();
        let numbered = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
        if !numbered || rest.strip_suffix(".md").is_none() {
            complaints.push(format!("{name}: decisions are named NNNN-what.md"));
        } else if let Some(other) = numbers.insert(number, name) {
            complaints.push(format!("{name}: same number as {other}"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        if root.join(".git").exists() {
            assert_eq!(complaints(root).unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn long_files_are_named_outside_tests() {
        let long = "x\n".repeat(MAX_LINES + 1);
        assert!(too_long("adapter/src/a.rs", &long).is_some());
        assert!(too_long("adapter/src/a.rs", &"x\n".repeat(MAX_LINES)).is_none());
        assert!(too_long("adapter/tests/it/a.rs", &long).is_none());
        assert!(too_long("Cargo.lock", &long).is_none());
    }

    #[test]
    fn decisions_have_one_number_each() {
        let bad = [
            "docs/decisions/0001-a.md",
            "docs/decisions/0001-b.md",
            "docs/decisions/2-c.md",
            "docs/a.md",
        ];
        assert_eq!(decisions(bad.into_iter()).len(), 2);
        let good = [
            "docs/decisions/0001-a.md",
            "docs/decisions/0002-b.md",
            "docs/decisions/README.md",
        ];
        assert!(decisions(good.into_iter()).is_empty());
    }

    #[test]
    fn paths_of_this_machine_are_found() {
        let machine = machine_paths(Path::new("/some/where/checkout"));
        assert!(names_machine("a", "see /some/where/checkout/x", &machine).is_some());
        assert!(names_machine("a", "see /some/where/else", &machine).is_none());
        assert!(names_machine("a", "see not/some/where/checkout", &machine).is_none());
    }
}
