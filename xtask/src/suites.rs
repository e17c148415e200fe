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
            step("fixtures", IT, &[]),
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
            step("schemas", IT, &[]),
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
    (Name::Adapter, &[step("adapter", IT, &[])]),
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
    (Name::Host, &[step("control-plane", IT, &[])]),
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

    /// Whether the package has such a target at all.
    pub(crate) fn exists(&self, root: &Path) -> bool {
        let package = root.join(self.member);
        match self.target {
            Target::Library | Target::Documentation => package.join("src/lib.rs").is_file(),
            Target::Executables => package.join("src/main.rs").is_file() || package.join("src/bin").is_dir(),
            Target::Integration(name) => {
                let tests = package.join("tests");
                tests.join(name).join("main.rs").is_file() || tests.join(format!("{name}.rs")).is_file()
            }
        }
    }
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
