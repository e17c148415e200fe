//! Grype's command lines, configuration and environment.

use serde_json::json;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Name of the generated configuration in the run's directory.
pub const CONFIG_FILE: &str = "engine-config.json";

/// Arguments of a match; `sbom` is relative to the run's directory, so that the report cannot depend on where that is.
pub fn match_arguments(sbom: &str) -> Vec<OsString> {
    vec![
        format!("sbom:{sbom}").into(),
        "--config".into(),
        CONFIG_FILE.into(),
        "--output".into(),
        "json".into(),
    ]
}

/// Arguments of the version helper.
pub fn version_arguments() -> Vec<OsString> {
    ["version", "--output", "json"].map(OsString::from).to_vec()
}

/// Arguments of the database status helper.
pub fn status_arguments() -> Vec<OsString> {
    ["db", "status", "--output", "json", "--config", CONFIG_FILE]
        .map(OsString::from)
        .to_vec()
}

/// Arguments that ask whether the source has a database that is newer than the one in the cache directory.
pub fn check_arguments() -> Vec<OsString> {
    ["db", "check", "--output", "json", "--config", CONFIG_FILE]
        .map(OsString::from)
        .to_vec()
}

/// Arguments that fetch the newest database into the cache directory.
pub fn update_arguments() -> Vec<OsString> {
    ["db", "update", "--config", CONFIG_FILE]
        .map(OsString::from)
        .to_vec()
}

/// Arguments that import a local database file or archive into the cache directory.
pub fn import_arguments(file: &Path) -> Vec<OsString> {
    vec![
        "db".into(),
        "import".into(),
        file.into(),
        "--config".into(),
        CONFIG_FILE.into(),
    ]
}

/// The variable that names another distribution of databases.
pub const UPDATE_URL: &str = "GRYPE_DB_UPDATE_URL";

/// Exit code of the check when there is a newer database.
pub const UPDATE_AVAILABLE: i32 = 100;

/// How one call treats the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabasePolicy {
    /// Oldest build that is accepted; `None` accepts any.
    pub max_age: Option<Duration>,
    /// Whether the whole file is hashed first. Once per generation is enough, because generations never change.
    pub validate_hash: bool,
}

/// The configuration file: no network, no update, no clock in the report.
pub fn config(policy: DatabasePolicy) -> String {
    let max_age = policy.max_age.map_or(0, |age| age.as_secs());
    json!({
        "check-for-app-update": false,
        "log": { "quiet": false, "level": "warn", "file": "" },
        "pretty": false,
        "timestamp": false,
        "external-sources": { "enable": false },
        "db": {
            "auto-update": false,
            "validate-age": policy.max_age.is_some(),
            "max-allowed-built-age": format!("{max_age}s"),
            "validate-by-hash-on-start": policy.validate_hash,
            "require-update-check": false,
        },
    })
    .to_string()
}

/// Variables that Grype gets besides the common ones.
pub fn environment(cache: &Path) -> Vec<(OsString, OsString)> {
    vec![
        ("GRYPE_CHECK_FOR_APP_UPDATE".into(), "false".into()),
        ("GRYPE_DB_AUTO_UPDATE".into(), "false".into()),
        ("GRYPE_DB_CACHE_DIR".into(), cache.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::{DatabasePolicy, config, match_arguments};
    use std::time::Duration;

    #[test]
    fn command_lines_are_fixed() {
        let args: Vec<String> = match_arguments("sbom.cdx.json")
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect();
        assert_eq!(
            args.join(" "),
            "sbom:sbom.cdx.json --config engine-config.json --output json"
        );
    }

    #[test]
    fn the_age_check_follows_the_policy() {
        let parse = |policy| serde_json::from_str::<serde_json::Value>(&config(policy)).unwrap();
        let strict = parse(DatabasePolicy {
            max_age: Some(Duration::from_hours(120)),
            validate_hash: true,
        });
        assert_eq!(strict["db"]["validate-age"], true);
        assert_eq!(strict["db"]["max-allowed-built-age"], "432000s");
        assert_eq!(strict["db"]["validate-by-hash-on-start"], true);
        let open = parse(DatabasePolicy {
            max_age: None,
            validate_hash: false,
        });
        assert_eq!(open["db"]["validate-age"], false);
        assert_eq!(open["db"]["auto-update"], false);
    }
}
