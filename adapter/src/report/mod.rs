//! What one-shot use prints: pure renderers of scan results, and the exit code that follows from them.

mod cyclonedx;
mod exit;
mod json;
#[cfg(test)]
mod sample;
mod sarif;
mod table;

pub use cyclonedx::{CyclonedxError, cyclonedx_files, render_cyclonedx};
pub use exit::{EXIT_CODES_HELP, Exit, FailOn, exit_code};
pub use json::{JsonReport, render_json};
pub use sarif::render_sarif;
pub use table::{TableStyle, render_table};

use assay_schemas::catalog::PartialReason;
use assay_schemas::{CatalogResponse, Completeness, Finding, MatchResponse};

/// One artifact that was scanned to the end.
#[derive(Debug, Clone, PartialEq)]
pub struct ScannedArtifact {
    /// The path as the user gave it; untrusted text.
    pub path: String,
    /// The inventory.
    pub catalog: CatalogResponse,
    /// The findings; `None` when only the inventory was asked for.
    pub matched: Option<MatchResponse>,
}

impl ScannedArtifact {
    /// The findings, none when only the inventory was asked for.
    pub fn findings(&self) -> &[Finding] {
        self.matched
            .as_ref()
            .map_or(&[][..], |matched| matched.findings.as_slice())
    }

    /// The weaker of the completeness of inventory and findings.
    pub fn completeness(&self) -> Completeness {
        let findings = self.matched.as_ref().map(|matched| matched.completeness);
        match (
            self.catalog.completeness,
            findings.unwrap_or(Completeness::Complete),
        ) {
            (Completeness::Unknown, _) | (_, Completeness::Unknown) => Completeness::Unknown,
            (Completeness::Partial, _) | (_, Completeness::Partial) => Completeness::Partial,
            (Completeness::Complete, Completeness::Complete) => Completeness::Complete,
        }
    }

    /// Why the result is not complete: of the inventory, then of the findings.
    pub fn partial_reasons(&self) -> impl Iterator<Item = &PartialReason> {
        let findings = self.matched.iter().flat_map(|m| &m.summary.partial_reasons);
        self.catalog.summary.partial_reasons.iter().chain(findings)
    }
}

/// The findings as people want them: worst first, then by package, advisory and key.
fn by_severity(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by(|a, b| {
        b.severity
            .cmp(&a.severity)
            .then_with(|| a.package_name.cmp(&b.package_name))
            .then_with(|| a.advisory_id.cmp(&b.advisory_id))
            .then_with(|| a.finding_key.cmp(&b.finding_key))
    });
    sorted
}

/// The serialised name of a value that serialises as a string: the wire word, so that no second list of words exists.
fn wire_word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
