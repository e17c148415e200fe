//! The exit code of one-shot use.

use super::ScannedArtifact;
use assay_schemas::{Completeness, Severity};

/// The codes, as the help text lists them.
pub const EXIT_CODES_HELP: &str = "\
Exit codes:
  0   every artifact was scanned, and nothing was found that --fail-on names
  1   an artifact could not be scanned
  2   a finding at or above the severity of --fail-on
  3   a result is not complete, and --fail-on-partial was given
  64  the command line or the configuration is wrong
The greatest need comes first: 1 before 2 before 3.";

/// How a one-shot use ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was scanned and nothing that was asked for was found.
    Ok,
    /// At least one artifact could not be scanned.
    Failed,
    /// A finding at or above the severity that was asked for.
    Findings,
    /// A result is not complete and that was asked for.
    Partial,
    /// The command line or the configuration is wrong.
    Usage,
}

impl Exit {
    /// The process exit code, see [`EXIT_CODES_HELP`].
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Findings => 2,
            Self::Partial => 3,
            Self::Usage => 64,
        }
    }
}

/// What makes a successful scan end with an exit code other than 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailOn {
    /// Least severity of a finding that counts; `None` for no finding.
    pub severity: Option<Severity>,
    /// Whether a result that is not complete counts.
    pub partial: bool,
}

/// How the use ends: `failed` is the number of artifacts that could not be scanned.
///
/// The severity counts of the whole report decide, not the projection, which may have been cut.
pub fn exit_code(scanned: &[ScannedArtifact], failed: usize, fail_on: FailOn) -> Exit {
    if failed > 0 {
        return Exit::Failed;
    }
    if let Some(least) = fail_on.severity {
        let reached = |artifact: &ScannedArtifact| {
            artifact.findings().iter().any(|f| f.severity >= least) || counted_at_least(artifact, least)
        };
        if scanned.iter().any(reached) {
            return Exit::Findings;
        }
    }
    let partial = |artifact: &ScannedArtifact| artifact.completeness() != Completeness::Complete;
    if fail_on.partial && scanned.iter().any(partial) {
        return Exit::Partial;
    }
    Exit::Ok
}

fn counted_at_least(artifact: &ScannedArtifact, least: Severity) -> bool {
    artifact.matched.as_ref().is_some_and(|matched| {
        Severity::ALL
            .iter()
            .filter(|severity| **severity >= least)
            .any(|severity| {
                matched
                    .summary
                    .severity_counts
                    .get(severity.as_str())
                    .is_some_and(|count| *count > 0)
            })
    })
}

#[cfg(test)]
mod tests {
    use super::{EXIT_CODES_HELP, Exit, FailOn, exit_code};
    use crate::report::sample;
    use assay_schemas::Severity;

    #[test]
    fn the_greatest_need_decides() {
        let high = || sample::with_findings(&[Severity::Low, Severity::High]);
        let partial_and_high = || sample::partial(high());
        let on = |severity: Option<Severity>, partial| FailOn { severity, partial };
        let cases = [
            (vec![], 0, on(Some(Severity::Unknown), true), Exit::Ok),
            (vec![high()], 0, on(None, false), Exit::Ok),
            (vec![high()], 0, on(Some(Severity::High), false), Exit::Findings),
            (vec![high()], 0, on(Some(Severity::Critical), false), Exit::Ok),
            (vec![high()], 1, on(Some(Severity::High), true), Exit::Failed),
            (vec![partial_and_high()], 0, on(None, false), Exit::Ok),
            (vec![partial_and_high()], 0, on(None, true), Exit::Partial),
            (
                vec![partial_and_high()],
                0,
                on(Some(Severity::Low), true),
                Exit::Findings,
            ),
            (
                vec![sample::with_findings(&[]), high()],
                0,
                on(Some(Severity::Medium), false),
                Exit::Findings,
            ),
        ];
        for (scanned, failed, fail_on, want) in cases {
            assert_eq!(exit_code(&scanned, failed, fail_on), want, "{failed} {fail_on:?}");
        }
    }

    #[test]
    fn a_finding_beyond_the_projection_counts() {
        let mut artifact = sample::with_findings(&[Severity::Critical]);
        if let Some(matched) = artifact.matched.as_mut() {
            matched.findings.clear();
        }
        let fail_on = FailOn {
            severity: Some(Severity::High),
            partial: false,
        };
        assert_eq!(exit_code(&[artifact], 0, fail_on), Exit::Findings);
    }

    #[test]
    fn the_help_lists_every_code() {
        for exit in [Exit::Ok, Exit::Failed, Exit::Findings, Exit::Partial, Exit::Usage] {
            assert!(
                EXIT_CODES_HELP.contains(&format!("\n  {:<4}", exit.code())),
                "{exit:?}"
            );
        }
    }
}
