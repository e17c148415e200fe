//! What is known about an engine binary and a database generation, and what identifies either.

use super::error::EngineError;
use assay_schemas::version::{CATALOG_ENGINE, MATCHER_ENGINE};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Versions of both engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// Version of Syft.
    pub syft: String,
    /// Version of Grype.
    pub grype: String,
}

/// Provenance of one database generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseProvenance {
    /// Revision, at most 255 code points, never blank.
    pub revision: String,
    /// Build time.
    pub built: Timestamp,
    /// Schema version, such as `v6.1.10`; empty when the engine did not say.
    #[serde(default)]
    pub schema: String,
}

impl DatabaseProvenance {
    /// The build time in the contract's form.
    pub fn updated_at(&self) -> String {
        wire_instant(self.built)
    }

    /// An error when the database is older than `max_age` at `now`. A build time in the future is not old.
    pub fn check_age(&self, max_age: Option<Duration>, now: Timestamp) -> Result<(), EngineError> {
        let age = now.duration_since(self.built);
        let is_old = max_age.is_some_and(|max| age.try_into().is_ok_and(|age: Duration| age > max));
        if is_old {
            return Err(EngineError::DatabaseTooOld);
        }
        Ok(())
    }
}

/// An instant in the contract's form: UTC, truncated to milliseconds, no fraction when there is none.
pub fn wire_instant(instant: Timestamp) -> String {
    let millis = instant.as_millisecond();
    let instant = Timestamp::from_millisecond(millis).unwrap_or(instant);
    if millis % 1000 == 0 {
        format!("{instant:.0}")
    } else {
        format!("{instant:.3}")
    }
}

/// Identity of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    inode: u64,
    modified_ns: i64,
    modified_s: i64,
    size: u64,
}

impl FileIdentity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let meta = std::fs::metadata(path)?;
        Ok(Self {
            inode: meta.ino(),
            modified_ns: meta.mtime_nsec(),
            modified_s: meta.mtime(),
            size: meta.len(),
        })
    }
}

/// A fact and the identity of the file that it was learnt from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learnt<T> {
    pub(crate) of: FileIdentity,
    pub(crate) fact: T,
}

/// What is known about files of one kind, by path.
pub(crate) type Facts<T> = BTreeMap<PathBuf, Learnt<T>>;

/// Everything learnt, by path; also the form of the cache file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    #[serde(default)]
    pub(crate) versions: Facts<String>,
    #[serde(default)]
    pub(crate) databases: Facts<DatabaseProvenance>,
}

/// Most entries of each kind; older generations are forgotten by the whole.
const MAX_ENTRIES: usize = 64;

impl Memory {
    /// The cache file's content; anything unreadable counts as nothing learnt.
    pub(crate) fn load(path: &Path) -> Self {
        std::fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// Writes the cache file in one step.
    pub(crate) fn save(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(path)?;
        Ok(())
    }

    pub(crate) fn bound(&mut self) {
        if self.versions.len() > MAX_ENTRIES {
            self.versions.clear();
        }
        if self.databases.len() > MAX_ENTRIES {
            self.databases.clear();
        }
    }
}

/// The version that an engine prints about itself; `unknown` when the JSON has none.
pub(crate) fn parse_version(output: &[u8], engine: &'static str) -> Result<String, EngineError> {
    let value: Value = serde_json::from_slice(output).map_err(|_| EngineError::VersionInvalid { engine })?;
    let version = first_text(&value, &["version", "Version", "applicationVersion"]);
    Ok(version.map_or_else(|| "unknown".to_owned(), |text| text.chars().take(128).collect()))
}

/// Name of the engine for messages.
pub(crate) const fn engine_name(is_matcher: bool) -> &'static str {
    if is_matcher {
        MATCHER_ENGINE
    } else {
        CATALOG_ENGINE
    }
}

/// Provenance from the database status: never invented, an error when revision or build time is missing.
pub(crate) fn parse_status(output: &[u8]) -> Result<DatabaseProvenance, EngineError> {
    let value: Value = serde_json::from_slice(output).map_err(|_| EngineError::DatabaseStatusInvalid)?;
    let names = ["checksum", "digest", "revision", "built", "schemaVersion"];
    let revision = names
        .iter()
        .find_map(|name| first_text(&value, &[name]))
        .ok_or(EngineError::DatabaseProvenanceMissing)?;
    let times = ["built", "updatedAt", "updated", "createdAt", "lastUpdate"];
    let built = times
        .iter()
        .filter_map(|name| first_text(&value, &[name]))
        .find_map(|text| text.parse().ok())
        .ok_or(EngineError::DatabaseProvenanceMissing)?;
    Ok(DatabaseProvenance {
        revision: revision.chars().take(255).collect(),
        built,
        schema: first_text(&value, &["schemaVersion"])
            .unwrap_or_default()
            .chars()
            .take(64)
            .collect(),
    })
}

/// Whether the source has a newer database, by the answer of the check; an answer that is none counts as yes.
pub(crate) fn parse_check(output: &[u8]) -> bool {
    let value: Value = serde_json::from_slice(output).unwrap_or_default();
    value.get("updateAvailable").and_then(Value::as_bool) != Some(false)
}

/// The first non-blank text under one of `names`: a direct member first, then depth first.
fn first_text(value: &Value, names: &[&str]) -> Option<String> {
    let children: Vec<&Value> = match value {
        Value::Object(members) => {
            let direct = names.iter().find_map(|name| {
                let text = members.get(*name)?.as_str()?.trim();
                (!text.is_empty()).then(|| text.to_owned())
            });
            if direct.is_some() {
                return direct;
            }
            members.values().collect()
        }
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    children.into_iter().find_map(|child| first_text(child, names))
}

#[cfg(test)]
mod tests {
    use super::{DatabaseProvenance, Memory, parse_check, parse_status, parse_version, wire_instant};
    use assay_schemas::Code;
    use std::time::Duration;

    #[test]
    fn versions_are_found_wherever_they_are() {
        let cases = [
            (r#"{"version":"1.57.1"}"#, "1.57.1"),
            (r#"{"a":[{"applicationVersion":"2"}]}"#, "2"),
            (r#"{"a":{"version":"3"},"Version":"4"}"#, "4"),
            (r#"{"version":" ","x":7}"#, "unknown"),
        ];
        for (json, want) in cases {
            assert_eq!(parse_version(json.as_bytes(), "syft").unwrap(), want, "{json}");
        }
        assert_eq!(
            parse_version(b"x", "syft").unwrap_err().code(),
            Code::VersionInvalid
        );
    }

    #[test]
    fn provenance_is_read_and_never_invented() {
        let status = br#"{"schemaVersion":"v6.1.10","from":"manual import","built":"2026-07-29T00:00:00Z","valid":true}"#;
        let done = parse_status(status).unwrap();
        assert_eq!(done.revision, "2026-07-29T00:00:00Z");
        assert_eq!(done.updated_at(), "2026-07-29T00:00:00Z");
        for (json, code) in [
            ("{", Code::DatabaseStatusInvalid),
            ("{}", Code::DatabaseProvenanceMissing),
            (r#"{"schemaVersion":"v6"}"#, Code::DatabaseProvenanceMissing),
            (r#"{"built":"yesterday"}"#, Code::DatabaseProvenanceMissing),
        ] {
            assert_eq!(parse_status(json.as_bytes()).unwrap_err().code(), code, "{json}");
        }
    }

    #[test]
    fn only_a_plain_no_is_nothing_newer() {
        for (answer, newer) in [
            (
                br#"{"updateAvailable":false,"candidateDB":null}"#.as_slice(),
                false,
            ),
            (br#"{"updateAvailable":true}"#, true),
            (br#"{"matches":[]}"#, true),
            (b"nothing of the kind", true),
        ] {
            assert_eq!(parse_check(answer), newer);
        }
    }

    #[test]
    fn instants_have_milliseconds_only_when_there_are_some() {
        for (text, want) in [
            ("2026-07-29T00:00:00.000999Z", "2026-07-29T00:00:00Z"),
            ("2026-07-29T00:00:00.5Z", "2026-07-29T00:00:00.500Z"),
            ("2026-07-29T02:00:00+02:00", "2026-07-29T00:00:00Z"),
        ] {
            assert_eq!(wire_instant(text.parse().unwrap()), want);
        }
    }

    #[test]
    fn age_is_checked_when_used() {
        let provenance = DatabaseProvenance {
            revision: "r".into(),
            built: "2026-01-01T00:00:00Z".parse().unwrap(),
            schema: String::new(),
        };
        let day = Some(Duration::from_hours(24));
        assert!(
            provenance
                .check_age(day, "2026-01-02T00:00:00Z".parse().unwrap())
                .is_ok()
        );
        let late = provenance.check_age(day, "2026-01-02T00:00:01Z".parse().unwrap());
        assert_eq!(late.unwrap_err().code(), Code::DatabaseTooOld);
        assert!(
            provenance
                .check_age(None, "2027-01-01T00:00:00Z".parse().unwrap())
                .is_ok()
        );
        assert!(
            provenance
                .check_age(day, "2025-01-01T00:00:00Z".parse().unwrap())
                .is_ok()
        );
    }

    #[test]
    fn a_broken_cache_file_is_nothing_learnt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache.json");
        assert_eq!(Memory::load(&path), Memory::default());
        std::fs::write(&path, "{\"versions\":7}").unwrap();
        assert_eq!(Memory::load(&path), Memory::default());
        Memory::default().save(&path).unwrap();
        assert_eq!(Memory::load(&path), Memory::default());
    }
}
