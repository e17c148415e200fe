//! The table for people at a terminal.

use super::json::reason_line;
use super::{ScannedArtifact, by_severity};
use crate::problem::sanitize;
use assay_schemas::{Completeness, Finding, MatchResponse, Severity};
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use std::fmt::Write as _;

/// How the table looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableStyle {
    /// Whether severities are coloured.
    pub color: bool,
    /// Columns of the terminal, to which long cells are wrapped; `None` wraps nothing.
    pub width: Option<usize>,
}

const HEADINGS: [&str; 6] = [
    "PACKAGE",
    "INSTALLED",
    "FIXED IN",
    "ADVISORY",
    "SEVERITY",
    "LOCATION",
];

/// Most characters of one piece of outside text.
const LONGEST_TEXT: usize = 200;
/// Narrower than this, wrapping makes nothing readable; the terminal wraps instead.
const NARROWEST: usize = 60;

/// For each artifact its findings, worst first, and under them what they were found with.
pub fn render_table(scanned: &[ScannedArtifact], style: TableStyle) -> String {
    let artifacts: Vec<String> = scanned
        .iter()
        .map(|artifact| render_artifact(artifact, style))
        .collect();
    artifacts.join("\n")
}

fn render_artifact(artifact: &ScannedArtifact, style: TableStyle) -> String {
    let mut out = format!("{}\n", clean(&artifact.path));
    match &artifact.matched {
        None => out.push_str("not matched against a vulnerability database\n"),
        Some(matched) if matched.findings.is_empty() => {
            let revision = clean(&matched.vulnerability_database_revision);
            let _ = writeln!(
                out,
                "no known vulnerability found in database {revision} (not: safe)"
            );
        }
        Some(matched) => out.push_str(&render_findings(&matched.findings, style)),
    }
    out.push_str(&provenance(artifact));
    out
}

fn render_findings(findings: &[Finding], style: TableStyle) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    match style
        .width
        .filter(|width| *width >= NARROWEST)
        .and_then(|w| u16::try_from(w).ok())
    {
        Some(width) => table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(HEADINGS);
    table.add_rows(by_severity(findings).into_iter().map(cells));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

fn cells(finding: &Finding) -> [Cell; 6] {
    [
        Cell::new(clean(&finding.package_name)),
        Cell::new(finding.installed_version.as_deref().map_or_else(dash, clean)),
        Cell::new(fixed_in(finding)),
        Cell::new(advisory(finding)),
        severity_cell(finding.severity),
        Cell::new(first_and_more(&finding.locations)),
    ]
}

fn severity_cell(severity: Severity) -> Cell {
    let cell = Cell::new(severity.as_str());
    match severity {
        Severity::Critical => cell.fg(Color::Magenta).add_attribute(Attribute::Bold),
        Severity::High => cell.fg(Color::Red),
        Severity::Medium => cell.fg(Color::Yellow),
        Severity::Low => cell.fg(Color::Blue),
        Severity::Negligible | Severity::Unknown => cell.fg(Color::DarkGrey),
    }
}

fn fixed_in(finding: &Finding) -> String {
    if finding.fixed_versions.is_empty() {
        return match finding.source_status.as_deref() {
            Some("wont-fix") => "(won't fix)".to_owned(),
            _ => dash(),
        };
    }
    let versions: Vec<String> = finding.fixed_versions.iter().map(|v| clean(v)).collect();
    sanitize(&versions.join(", "), LONGEST_TEXT)
}

/// The id, and the CVE id behind it when it is not one itself.
fn advisory(finding: &Finding) -> String {
    let id = clean(&finding.advisory_id);
    let cve = finding
        .aliases
        .iter()
        .find(|alias| alias.starts_with("CVE-"))
        .filter(|_| !id.starts_with("CVE-"));
    match cve {
        Some(cve) => format!("{id} ({})", clean(cve)),
        None => id,
    }
}

fn first_and_more(locations: &[String]) -> String {
    match locations {
        [] => dash(),
        [only] => clean(only),
        [first, more @ ..] => format!("{} (+{} more)", clean(first), more.len()),
    }
}

fn provenance(artifact: &ScannedArtifact) -> String {
    let catalog = &artifact.catalog;
    let summary = &catalog.summary;
    let mut out = String::new();
    if let Some(matched) = &artifact.matched {
        let _ = writeln!(out, "{}", finding_counts(matched));
    }
    let _ = writeln!(
        out,
        "{}, {}, {}, {} bytes inspected",
        counted(u64::from(catalog.component_count), "component"),
        counted(summary.archive_entries, "archive entry"),
        counted(summary.nested_archives, "nested archive"),
        summary.input_bytes.max(summary.expanded_bytes),
    );
    let _ = write!(
        out,
        "{} {}",
        clean(&catalog.engine_name),
        clean(&catalog.engine_version)
    );
    if let Some(matched) = &artifact.matched {
        let _ = write!(
            out,
            ", {} {}, database {} built {}",
            clean(&matched.engine_name),
            clean(&matched.engine_version),
            clean(&matched.vulnerability_database_revision),
            clean(&matched.vulnerability_database_updated_at),
        );
    }
    out.push('\n');
    out.push_str(match artifact.completeness() {
        Completeness::Complete => "complete\n",
        Completeness::Partial => "partial, because of:\n",
        Completeness::Unknown => "completeness not known\n",
    });
    for reason in artifact.partial_reasons() {
        let _ = writeln!(out, "  {}", clean(&reason_line(reason)));
    }
    out
}

/// How many of each severity, over the whole report.
fn finding_counts(matched: &MatchResponse) -> String {
    let counts: Vec<String> = Severity::ALL
        .iter()
        .rev()
        .filter_map(|severity| {
            let count = matched.summary.severity_counts.get(severity.as_str())?;
            (*count > 0).then(|| format!("{count} {}", severity.as_str().to_lowercase()))
        })
        .collect();
    let total = counted(matched.summary.matches_reported, "finding");
    let shown = matched.summary.finding_projection_count;
    let cut = if shown < matched.summary.matches_reported {
        format!(", {shown} shown")
    } else {
        String::new()
    };
    if counts.is_empty() {
        format!("{total}{cut}")
    } else {
        format!("{total}{cut}: {}", counts.join(", "))
    }
}

fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

fn clean(text: &str) -> String {
    sanitize(text, LONGEST_TEXT)
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::{TableStyle, render_table};
    use crate::report::{ScannedArtifact, sample};
    use assay_schemas::Severity;

    const PLAIN: TableStyle = TableStyle {
        color: false,
        width: None,
    };

    #[test]
    fn findings_are_sorted_worst_first() {
        let scanned = [sample::with_findings(&[
            Severity::Low,
            Severity::Critical,
            Severity::Unknown,
            Severity::High,
        ])];
        insta::assert_snapshot!(render_table(&scanned, PLAIN));
    }

    #[test]
    fn no_finding_is_not_called_safe() {
        insta::assert_snapshot!(render_table(&[sample::with_findings(&[])], PLAIN));
    }

    #[test]
    fn several_artifacts_and_reasons_of_incompleteness() {
        let inventory_only = ScannedArtifact {
            path: "b.jar".into(),
            matched: None,
            ..sample::with_findings(&[])
        };
        let scanned = [
            sample::partial(sample::with_findings(&[Severity::Medium])),
            inventory_only,
        ];
        insta::assert_snapshot!(render_table(&scanned, PLAIN));
    }

    #[test]
    fn a_narrow_terminal_wraps_cells() {
        let scanned = [sample::with_findings(&[Severity::Low, Severity::Critical])];
        let style = TableStyle {
            width: Some(70),
            ..PLAIN
        };
        let text = render_table(&scanned, style);
        let table = text
            .lines()
            .skip(1)
            .take_while(|line| !line.contains("findings:"));
        for line in table {
            assert!(line.chars().count() <= 70, "{line}");
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        let scanned = [sample::with_findings(&[Severity::Critical])];
        assert!(!render_table(&scanned, PLAIN).contains('\u{1b}'));
        let coloured = render_table(&scanned, TableStyle { color: true, ..PLAIN });
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    }

    #[test]
    fn hostile_text_cannot_steer_the_terminal() {
        let text = render_table(&[sample::hostile()], PLAIN);
        let steering = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(steering), "{text:?}");
        insta::assert_snapshot!(text);
    }
}
