//! Which tests make up which suite.
//!
//! Suites of one test target never overlap: the step without filters takes what the filters of the other steps leave.

use std::path::Path;

use clap::ValueEnum;

/// The names that `--suite` takes; other programs use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// Pure code of all crates, beside that code.
    Unit,
    /// The service over HTTP, with real engines and the offline database.
    Adapter,
    /// Archive inspection and its budgets.
    Gate,
    /// Registry images.
    Oci,
    /// Engine processes: limits, cancel, clean-up, database generations.
    Execution,
    /// Generated documents, golden vectors.
    Contract,
    /// Findings to decisions.
    Policy,
    /// Search documents.
    Publication,
    /// The control plane as a library in a host.
    Host,
    /// Dockerfiles and manifests.
    Deploy,
}

/// One call of `cargo test`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Directory of the package in the workspace.
    pub(crate) member: &'static str,
    /// Which target of the package.
    pub(crate) target: Target,
    /// Parts of test names; empty: all that no other step of this target names.
    pub(crate) filters: &'static [&'static str],
}

/// A test target as cargo has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Tests beside the library's code.
    Library,
    /// Tests beside the code of executables.
    Executables,
    /// A file or folder of this name under `tests/`.
    Integration(&'static str),
    /// All files and folders under `tests/` that no step names.
    OtherIntegration,
    /// Examples in documentation comments.
    Documentation,
}

const fn step(member: &'static str, target: Target, filters: &'static [&'static str]) -> Step {
    Step {
        member,
        target,
        filters,
    }
}

const IT: Target = Target::Integration("it");

/// Every suite with its steps, in the order of a whole run.
pub(crate) const ALL: &[(Name, &[Step])] = &[
    (
        Name::Unit,
        &[
            step("xtask", Target::Executables, &[]),
            step("schemas", Target::Library, &[]),
            step("fixtures", Target::Library, &[]),
            step("fixtures", Target::Executables, &[]),
            step("fixtures", Target::OtherIntegration, &[]),
            step("control-plane", Target::Library, &[]),
            step("adapter", Target::Library, &[]),
            step("adapter", Target::Executables, &[]),
            step("adapter", Target::Documentation, &[]),
            step("schemas", Target::Documentation, &[]),
        ],
    ),
    (
        Name::Contract,
        &[
            step("schemas", Target::OtherIntegration, &[]),
            step("adapter", IT, &["vectors::", "contract::"]),
            step("adapter", Target::Integration("contract"), &[]),
        ],
    ),
    (
        Name::Gate,
        &[
            step("adapter", Target::Library, &["archive::"]),
            step("adapter", IT, &["gate::", "archive::"]),
            step("adapter", Target::Integration("gate"), &[]),
            step("adapter", Target::Integration("differential"), &[]),
        ],
    ),
    (
        Name::Execution,
        &[
            step("adapter", Target::Library, &["engine::", "vulndb::"]),
            step("adapter", IT, &["execution::", "engine::", "vulndb::"]),
            step("adapter", Target::Integration("execution"), &[]),
        ],
    ),
    (
        Name::Oci,
        &[
            step("adapter", Target::Library, &["oci::"]),
            step("adapter", IT, &["oci::"]),
        ],
    ),
    (
        Name::Adapter,
        &[
            step("adapter", IT, &[]),
            step("adapter", Target::OtherIntegration, &[]),
        ],
    ),
    (
        Name::Policy,
        &[
            step("control-plane", Target::Library, &["policy::"]),
            step("control-plane", IT, &["policy::"]),
        ],
    ),
    (
        Name::Publication,
        &[
            step("control-plane", Target::Library, &["search::"]),
            step("control-plane", IT, &["search::"]),
        ],
    ),
    (
        Name::Host,
        &[
            step("control-plane", IT, &[]),
            step("control-plane", Target::OtherIntegration, &[]),
        ],
    ),
    (Name::Deploy, &[step("xtask", Target::Integration("deploy"), &[])]),
];

/// The steps of a suite.
pub(crate) fn steps(name: Name) -> &'static [Step] {
    ALL.iter()
        .find(|(found, _)| *found == name)
        .map_or(&[], |(_, steps)| steps)
}

impl Step {
    /// What is handed to the test program: the names to run, or the names to leave to others.
    pub(crate) fn selection(&self) -> Vec<String> {
        if self.target == Target::Documentation {
            return Vec::new();
        }
        if !self.filters.is_empty() {
            return self.filters.iter().map(|filter| (*filter).to_owned()).collect();
        }
        let others = ALL.iter().flat_map(|(_, steps)| *steps);
        let same = others.filter(|other| other.member == self.member && other.target == self.target);
        let mut skips: Vec<&str> = same.flat_map(|other| other.filters).copied().collect();
        skips.sort_unstable();
        skips.dedup();
        skips
            .into_iter()
            .flat_map(|skip| ["--skip".to_owned(), skip.to_owned()])
            .collect()
    }

    /// The arguments by which cargo takes this target; `None` when the package has no such target.
    pub(crate) fn target_arguments(&self, root: &Path) -> Option<Vec<String>> {
        let package = root.join(self.member);
        let has_library = package.join("src/lib.rs").is_file();
        let arguments = match self.target {
            Target::Library if has_library => vec!["--lib".to_owned()],
            Target::Documentation if has_library => vec!["--doc".to_owned()],
            Target::Executables
                if package.join("src/main.rs").is_file() || package.join("src/bin").is_dir() =>
            {
                vec!["--bins".to_owned()]
            }
            Target::Integration(name) if integrations(&package).iter().any(|found| found == name) => {
                vec!["--test".to_owned(), name.to_owned()]
            }
            Target::OtherIntegration => {
                let others = integrations(&package)
                    .into_iter()
                    .filter(|name| !is_named(self.member, name));
                others.flat_map(|name| ["--test".to_owned(), name]).collect()
            }
            _ => Vec::new(),
        };
        if arguments.is_empty() {
            None
        } else {
            Some(arguments)
        }
    }
}

/// Whether some step runs this integration target by its name.
fn is_named(member: &str, name: &str) -> bool {
    let mut steps = ALL.iter().flat_map(|(_, steps)| *steps);
    steps.any(|step| {
        step.member == member && matches!(step.target, Target::Integration(named) if named == name)
    })
}

/// The integration targets of a package, as cargo discovers them.
fn integrations(package: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(package.join("tests")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_file = path.extension().is_some_and(|extension| extension == "rs");
            let is_target = is_file || path.join("main.rs").is_file();
            if is_target {
                Some(path.file_stem()?.to_str()?.to_owned())
            } else {
                None
            }
        })
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_steps_and_every_step_stands_once() {
        let mut seen: Vec<Step> = Vec::new();
        for name in Name::value_variants() {
            assert!(!steps(*name).is_empty(), "{name:?}");
            for step in steps(*name) {
                assert!(!seen.contains(step), "{step:?}");
                seen.push(*step);
            }
        }
    }

    #[test]
    fn targets_are_found_as_cargo_finds_them() {
        let root = std::env::temp_dir().join(format!("suites-{}", uuid::Uuid::new_v4()));
        let tests = root.join("adapter/tests");
        for folder in ["it", "data"] {
            std::fs::create_dir_all(tests.join(folder)).unwrap();
        }
        for file in ["it/main.rs", "data/x.bin", "drift.rs", "notes.md"] {
            std::fs::write(tests.join(file), "").unwrap();
        }
        let arguments = |target| {
            step("adapter", target, &[])
                .target_arguments(&root)
                .map(|words| words.join(" "))
        };
        assert_eq!(arguments(IT).as_deref(), Some("--test it"));
        assert_eq!(
            arguments(Target::OtherIntegration).as_deref(),
            Some("--test drift")
        );
        assert_eq!(arguments(Target::Integration("gate")), None);
        assert_eq!(arguments(Target::Library), None);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_filters_take_the_rest_leaves() {
        let all: Vec<&Step> = ALL.iter().flat_map(|(_, steps)| *steps).collect();
        for step in &all {
            if step.filters.is_empty() || step.target == Target::Documentation {
                continue;
            }
            let rest = all
                .iter()
                .find(|other| {
                    other.member == step.member && other.target == step.target && other.filters.is_empty()
                })
                .unwrap_or_else(|| panic!("nobody runs what {step:?} does not"));
            for filter in step.filters {
                assert!(rest.selection().contains(&(*filter).to_owned()), "{filter}");
            }
        }
    }
}
