//! Whether a database that was made elsewhere is one to work with: what a golden set of SBOMs gives with it.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Name of the optional file of expectations in a golden set's directory.
pub const EXPECTATIONS: &str = "expectations.json";
/// Most SBOMs of a golden set.
const MAX_SBOMS: usize = 64;
/// Most bytes of one of its files.
const MAX_BYTES: u64 = 16 << 20;

/// An SBOM whose findings are known, at least in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Golden {
    /// File name, for reports.
    pub name: String,
    /// The document.
    pub sbom: Vec<u8>,
    /// What must be found in it.
    pub expected: Vec<Expected>,
}

/// One vulnerability that must be found: any of its names will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// Its only name.
    One(String),
    /// Several names.
    AnyOf(Vec<String>),
}

impl Expected {
    fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::AnyOf(names) => names,
        }
    }
}

/// How far findings may move from one database to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Findings of one SBOM that may come or go.
    pub findings: u64,
    /// As many percent of its current findings may come or go beside those.
    pub percent: u64,
}

impl Bounds {
    /// Most findings that may come or go when there are `current` now.
    pub fn allowed(self, current: u64) -> u64 {
        self.findings
            .saturating_add(current.saturating_mul(self.percent) / 100)
    }
}

/// Why there is no golden set.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// Its directory cannot be read.
    #[error("the canary directory cannot be read")]
    Io(#[from] io::Error),
    /// Too much in it.
    #[error("the canary directory has more than {MAX_SBOMS} SBOMs, or one of more than {MAX_BYTES} bytes")]
    TooLarge,
    /// Nothing in it.
    #[error("the canary directory has no SBOM")]
    Empty,
    /// The expectations are not a list of names for each file.
    #[error("the expectations of the canary are not readable")]
    Expectations(#[from] serde_json::Error),
    /// An expectation is about a file that is not there.
    #[error("the expectations of the canary name files that are not there")]
    Strangers,
}

/// What databases are tried on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    /// Nothing.
    Nothing,
    /// [`built_in`].
    BuiltIn,
    /// The files of this directory; see [`read`].
    Directory(PathBuf),
}

impl Set {
    /// Its SBOMs.
    ///
    /// # Errors
    /// [`GoldenError`].
    pub fn load(&self) -> Result<Vec<Golden>, GoldenError> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::BuiltIn => Ok(built_in()),
            Self::Directory(directory) => read(directory),
        }
    }
}

/// The set that this program brings along: what every database of the last years must know.
pub fn built_in() -> Vec<Golden> {
    const SBOM: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"components":[{"type":"library","bom-ref":"log4j-core","group":"org.apache.logging.log4j","name":"log4j-core","version":"2.14.1","purl":"pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1"}]}"#;
    vec![Golden {
        name: "log4j-core-2.14.1".to_owned(),
        sbom: SBOM.as_bytes().to_vec(),
        expected: vec![Expected::AnyOf(vec![
            "CVE-2021-44228".to_owned(),
            "GHSA-jfh8-c2jp-5v3q".to_owned(),
        ])],
    }]
}

/// The set in a directory: every `*.json` file in it, with what [`EXPECTATIONS`] says of it.
///
/// # Errors
/// [`GoldenError`].
pub fn read(directory: &Path) -> Result<Vec<Golden>, GoldenError> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.retain(|path| {
        path.extension().is_some_and(|extension| extension == "json") && !path.ends_with(EXPECTATIONS)
    });
    paths.sort();
    let expectations = directory.join(EXPECTATIONS);
    let mut expected: BTreeMap<String, Vec<Expected>> = if expectations.exists() {
        serde_json::from_slice(&read_bounded(&expectations)?)?
    } else {
        BTreeMap::new()
    };
    if paths.len() > MAX_SBOMS {
        return Err(GoldenError::TooLarge);
    }
    let mut set = Vec::new();
    for path in paths {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        set.push(Golden {
            sbom: read_bounded(&path)?,
            expected: expected.remove(&name).unwrap_or_default(),
            name,
        });
    }
    if set.is_empty() {
        return Err(GoldenError::Empty);
    }
    if !expected.is_empty() {
        return Err(GoldenError::Strangers);
    }
    Ok(set)
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, GoldenError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(GoldenError::TooLarge);
    }
    Ok(bytes)
}

/// What a report of the matcher holds, as far as databases are compared by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Vulnerability, package and version of each match.
    pub keys: BTreeSet<(String, String, String)>,
    /// Every name that a matched vulnerability has.
    pub names: BTreeSet<String>,
}

impl Findings {
    /// Those of this report.
    ///
    /// # Errors
    /// When it is not a report.
    pub fn parse(report: &[u8]) -> Result<Self, serde_json::Error> {
        let report: Report = serde_json::from_slice(report)?;
        let mut findings = Self::default();
        for found in report.matches {
            findings.names.insert(found.vulnerability.id.clone());
            findings.names.extend(
                found
                    .related_vulnerabilities
                    .into_iter()
                    .map(|related| related.id),
            );
            findings.keys.insert((
                found.vulnerability.id,
                found.artifact.name,
                found.artifact.version,
            ));
        }
        Ok(findings)
    }
}

#[derive(Deserialize)]
struct Report {
    matches: Vec<Match>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Match {
    vulnerability: Vulnerability,
    #[serde(default)]
    related_vulnerabilities: Vec<Vulnerability>,
    artifact: Artifact,
}

#[derive(Deserialize)]
struct Vulnerability {
    id: String,
}

#[derive(Deserialize)]
struct Artifact {
    name: String,
    #[serde(default)]
    version: String,
}

/// What one SBOM of the golden set gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// Its name.
    pub name: String,
    /// Findings with the current database; `None` when there was nothing to compare with.
    pub current: Option<u64>,
    /// Findings with the staged database.
    pub staged: u64,
    /// Findings that only the staged database gives.
    pub appeared: u64,
    /// Findings that only the current database gives.
    pub disappeared: u64,
    /// Most that may appear and disappear together.
    pub allowed: Option<u64>,
    /// What was expected and not found.
    pub missing: Vec<Expected>,
}

impl Trial {
    /// Compares findings of both databases.
    pub fn new(golden: &Golden, current: Option<&Findings>, staged: &Findings, bounds: Bounds) -> Self {
        let only = |one: &Findings, other: &Findings| one.keys.difference(&other.keys).count() as u64;
        Self {
            name: golden.name.clone(),
            current: current.map(|current| current.keys.len() as u64),
            staged: staged.keys.len() as u64,
            appeared: current.map_or(0, |current| only(staged, current)),
            disappeared: current.map_or(0, |current| only(current, staged)),
            allowed: current.map(|current| bounds.allowed(current.keys.len() as u64)),
            missing: golden
                .expected
                .iter()
                .filter(|expected| !expected.names().iter().any(|name| staged.names.contains(name)))
                .cloned()
                .collect(),
        }
    }

    /// Whether everything expected was found.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether findings have moved no more than they may.
    pub fn is_steady(&self) -> bool {
        self.allowed
            .is_none_or(|allowed| self.appeared.saturating_add(self.disappeared) <= allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Expected, Findings, Golden, GoldenError, Trial, built_in, read};
    use proptest::prelude::*;
    use std::fs;

    const BOUNDS: Bounds = Bounds {
        findings: 2,
        percent: 10,
    };

    fn findings(ids: impl IntoIterator<Item = u32>) -> Findings {
        let mut findings = Findings::default();
        for id in ids {
            let name = format!("CVE-2026-{id}");
            findings.names.insert(name.clone());
            findings.keys.insert((name, "p".to_owned(), "1".to_owned()));
        }
        findings
    }

    fn golden(expected: Vec<Expected>) -> Golden {
        Golden {
            name: "g".to_owned(),
            sbom: Vec::new(),
            expected,
        }
    }

    #[test]
    fn findings_move_up_to_the_bound_and_no_further() {
        let current = findings(0..20);
        for (staged, steady) in [
            (findings(0..20), true),
            (findings(0..24), true),
            (findings(0..25), false),
            (findings(4..20), true),
            (findings(5..20), false),
            (findings(2..22), true),
            (findings(3..23), false),
            (findings([]), false),
        ] {
            let trial = Trial::new(&golden(Vec::new()), Some(&current), &staged, BOUNDS);
            assert_eq!(trial.is_steady(), steady, "{trial:?}");
        }
        let first = Trial::new(&golden(Vec::new()), None, &findings(0..99), BOUNDS);
        assert!(first.is_steady() && first.current.is_none());
    }

    #[test]
    fn any_name_of_what_is_expected_will_do() {
        let one = Expected::One("CVE-2026-1".to_owned());
        let any = Expected::AnyOf(vec!["GHSA-x".to_owned(), "CVE-2026-2".to_owned()]);
        let trial = |ids: &[u32]| {
            let staged = findings(ids.iter().copied());
            Trial::new(&golden(vec![one.clone(), any.clone()]), None, &staged, BOUNDS).missing
        };
        assert_eq!(trial(&[1, 2]), []);
        assert_eq!(trial(&[1]), std::slice::from_ref(&any));
        assert_eq!(trial(&[3]), [one.clone(), any.clone()]);
    }

    #[test]
    fn reports_are_read_with_their_related_names() {
        let report =
            br#"{"matches":[{"vulnerability":{"id":"GHSA-x"},"relatedVulnerabilities":[{"id":"CVE-1"}],
            "artifact":{"name":"n","version":"1"}}]}"#;
        let findings = Findings::parse(report).unwrap();
        assert!(findings.names.contains("CVE-1") && findings.names.contains("GHSA-x"));
        assert_eq!(findings.keys.len(), 1);
        assert!(Findings::parse(b"{}").is_err());
    }

    #[test]
    fn a_directory_is_a_golden_set() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(read(root.path()), Err(GoldenError::Empty)));
        fs::write(root.path().join("a.json"), "{}").unwrap();
        fs::write(root.path().join("notes.txt"), "x").unwrap();
        let expect = |text: &str| fs::write(root.path().join("expectations.json"), text).unwrap();
        expect(r#"{"a.json":["CVE-1",["CVE-2","GHSA-2"]]}"#);
        let set = read(root.path()).unwrap();
        assert_eq!(
            (set.len(), set[0].name.as_str(), set[0].expected.len()),
            (1, "a.json", 2)
        );
        expect(r#"{"b.json":["CVE-1"]}"#);
        assert!(matches!(read(root.path()), Err(GoldenError::Strangers)));
        expect("[]");
        assert!(matches!(read(root.path()), Err(GoldenError::Expectations(_))));
        assert!(matches!(
            read(&root.path().join("absent")),
            Err(GoldenError::Io(_))
        ));
        assert_eq!(built_in().len(), 1);
    }

    proptest! {
        #[test]
        fn a_database_is_steady_beside_itself_and_movement_has_no_direction(
            one in proptest::collection::btree_set(0_u32..60, 0..40),
            two in proptest::collection::btree_set(0_u32..60, 0..40),
        ) {
            let (one, two) = (findings(one), findings(two));
            let trial = |a: &Findings, b: &Findings| Trial::new(&golden(Vec::new()), Some(a), b, BOUNDS);
            prop_assert!(trial(&one, &one).is_steady());
            let (there, back) = (trial(&one, &two), trial(&two, &one));
            prop_assert_eq!((there.appeared, there.disappeared), (back.disappeared, back.appeared));
        }
    }
}
