//! Diagnostics of the engines as results.
//!
//! Syft 1.57 and Grype 0.121 cannot log JSON (their logging library has the switch commented out); with level `warn`
//! and no terminal they print one line an entry: `[0000]  WARN message key=value …`.

use crate::problem::sanitize;
use assay_schemas::catalog::{PartialCode, PartialReason};
use std::collections::BTreeSet;

/// Most reasons of one run.
pub const MAX_REASONS: usize = 32;
/// Most characters of one detail.
pub const MAX_DETAIL: usize = 200;

/// What the diagnostics of one engine run say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Reasons why the result is not complete; distinct, at most [`MAX_REASONS`].
    pub reasons: Vec<PartialReason>,
    /// Warnings and errors without a code of their own, and reasons past the bound.
    pub other: u64,
}

/// How a message begins, and what it means. Sources: `generic/cataloger.go`, `internal/task` of Syft 1.57;
/// `grype/vulnerability_matcher.go`, `cmd/grype/cli/commands/root.go`, `grype/distro/distro.go` of Grype 0.121.
const MEANINGS: &[(&str, PartialCode)] = &[
    (
        "recovered from panic in package processor",
        PartialCode::CatalogerFailed,
    ),
    ("panic in task", PartialCode::CatalogerFailed),
    ("matcher returned error", PartialCode::MatcherFailed),
    ("matcher failed", PartialCode::MatcherFailed),
    (
        "Unable to determine the OS distribution of some packages",
        PartialCode::DistroUnknown,
    ),
    ("distro detection failed", PartialCode::DistroUnknown),
    (
        "unable to create distro from linux distribution",
        PartialCode::DistroUnknown,
    ),
];

/// Messages that say nothing about the result.
const HARMLESS: &[&str] = &[
    "no explicit name and version provided for directory source",
    "failed to fetch latest version",
];

/// Reads the diagnostics of a run that ended well.
pub fn parse(stderr: &[u8]) -> Warnings {
    let mut warnings = Warnings::default();
    let text = String::from_utf8_lossy(stderr);
    for message in text.lines().filter_map(message) {
        if HARMLESS.iter().any(|start| message.starts_with(start)) {
            continue;
        }
        match MEANINGS.iter().find(|(start, _)| message.starts_with(start)) {
            Some((_, code)) => warnings.add(*code, message),
            None => warnings.other += 1,
        }
    }
    warnings
}

impl Warnings {
    /// Adds a reason unless it is there already; past the bound it is only counted.
    pub fn add(&mut self, code: PartialCode, detail: &str) {
        let reason = PartialReason {
            code,
            detail: sanitize(detail.trim(), MAX_DETAIL),
        };
        if self.reasons.contains(&reason) {
            return;
        }
        if self.reasons.len() < MAX_REASONS {
            self.reasons.push(reason);
        } else {
            self.other += 1;
        }
    }

    /// The distinct codes of the reasons.
    pub fn codes(&self) -> BTreeSet<PartialCode> {
        self.reasons.iter().map(|reason| reason.code).collect()
    }
}

/// The message of a line of level warn or above; `None` for everything else.
fn message(line: &str) -> Option<&str> {
    let (stamp, rest) = line.strip_prefix('[')?.split_once(']')?;
    if stamp.is_empty() || !stamp.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (level, message) = rest.trim_start().split_once(' ')?;
    matches!(level, "WARN" | "ERROR" | "FATAL" | "PANIC").then(|| message.trim())
}

#[cfg(test)]
mod tests {
    use super::{MAX_DETAIL, MAX_REASONS, message, parse};
    use assay_schemas::catalog::PartialCode;
    use std::fmt::Write as _;

    #[test]
    fn known_messages_become_codes() {
        let cases = [
            (
                "[0000]  WARN Unable to determine the OS distribution of some packages. This may result in missing vulnerabilities. You may specify a distro using: --distro <distro>:<version>",
                PartialCode::DistroUnknown,
            ),
            (
                "[0012]  WARN matcher returned error error=boom package=a@1",
                PartialCode::MatcherFailed,
            ),
            (
                "[0001]  WARN recovered from panic in package processor cataloger=rpm-db-cataloger panic=index out of range",
                PartialCode::CatalogerFailed,
            ),
            (
                "[0001] ERROR distro detection failed: linux release info was present but distro type could not be determined",
                PartialCode::DistroUnknown,
            ),
        ];
        for (line, code) in cases {
            let warnings = parse(format!("{line}\n{line}\n").as_bytes());
            assert_eq!(warnings.codes().into_iter().collect::<Vec<_>>(), [code], "{line}");
            assert_eq!((warnings.reasons.len(), warnings.other), (1, 0));
            assert!(warnings.reasons[0].detail.chars().count() <= MAX_DETAIL);
        }
    }

    #[test]
    fn the_rest_is_counted_or_ignored() {
        let text = b"[0000]  WARN something new a=b\n[0000] ERROR bad\n[0000]  INFO fine\nfree text\n[x] WARN no\n[0000]  WARN no explicit name and version provided for directory source, deriving\n\xff";
        assert_eq!(parse(text).other, 2);
        assert!(parse(text).reasons.is_empty());
        assert_eq!(parse(b""), super::Warnings::default());
    }

    #[test]
    fn reasons_are_bounded_and_harmless() {
        let mut text = String::new();
        for i in 0..100 {
            writeln!(text, "[0000]  WARN matcher returned error error=\u{1b}[0m{i}").unwrap();
        }
        let warnings = parse(text.as_bytes());
        assert_eq!(warnings.reasons.len(), MAX_REASONS);
        assert_eq!(warnings.other, 100 - 32);
        assert!(!warnings.reasons[0].detail.contains('\u{1b}'));
    }

    #[test]
    fn lines_are_taken_apart() {
        assert_eq!(message("[0000]  WARN a b"), Some("a b"));
        assert_eq!(message("[0000] ERROR a"), Some("a"));
        for other in [
            "",
            "[0000]",
            "[0000] WARN",
            "[] WARN a",
            "WARN a",
            "[0000] DEBUG a",
        ] {
            assert_eq!(message(other), None, "{other}");
        }
    }
}
