//! Layers of settings (flags over environment over file over defaults), resolved and checked all together.

use super::keys::{Bounds, KEYS, Key, Kind, find};
use super::value::{ValueError, number};
use std::collections::BTreeMap;

/// One source of settings, by key name.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    /// How messages call it, such as `environment`.
    pub source: &'static str,
    /// Key name to text.
    pub values: BTreeMap<String, String>,
}

impl Layer {
    /// The layer of those environment variables that are settings. Blank values count as absent.
    pub fn from_environment(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        let values = KEYS
            .iter()
            .filter_map(|key| {
                let text = variables.get(&key.environment_name())?;
                (!text.trim().is_empty()).then(|| (key.name.to_owned(), text.clone()))
            })
            .collect();
        Self {
            source: "environment",
            values,
        }
    }

    /// The layer of a configuration file.
    ///
    /// # Errors
    /// A [`Mistake`] for text that is not TOML and for each value that is not a scalar.
    pub fn from_toml(text: &str) -> Result<Self, Vec<Mistake>> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| vec![Mistake::new("configuration file", error.message())])?;
        let mut values = BTreeMap::new();
        let mut mistakes = Vec::new();
        for (name, value) in table {
            let scalar = match value {
                toml::Value::String(text) => text,
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(flag) => flag.to_string(),
                _ => {
                    mistakes.push(Mistake::new(&name, "must be a text, a whole number or a boolean"));
                    continue;
                }
            };
            values.insert(name, scalar);
        }
        Self::unless_mistaken("file", values, mistakes)
    }

    /// The layer of command line flags, `NAME=VALUE` each.
    ///
    /// # Errors
    /// A [`Mistake`] for each flag without `=`.
    pub fn from_flags<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, Vec<Mistake>> {
        let mut values = BTreeMap::new();
        let mut mistakes = Vec::new();
        for flag in flags {
            match flag.split_once('=') {
                Some((name, value)) => {
                    values.insert(name.trim().to_owned(), value.to_owned());
                }
                None => mistakes.push(Mistake::new(flag, "is not NAME=VALUE")),
            }
        }
        Self::unless_mistaken("flag", values, mistakes)
    }

    fn unless_mistaken(
        source: &'static str,
        values: BTreeMap<String, String>,
        mistakes: Vec<Mistake>,
    ) -> Result<Self, Vec<Mistake>> {
        if mistakes.is_empty() {
            Ok(Self { source, values })
        } else {
            Err(mistakes)
        }
    }
}

/// One line about one setting that cannot be used as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct Mistake {
    /// The setting, in the words of its source.
    pub key: String,
    /// What is wrong.
    pub what: String,
}

impl Mistake {
    /// A mistake in `key`.
    pub fn new(key: &str, what: impl Into<String>) -> Self {
        Self {
            key: key.to_owned(),
            what: what.into(),
        }
    }
}

/// Every setting with the text that won, its number and where it came from.
#[derive(Debug, Clone)]
pub struct Resolved {
    values: BTreeMap<&'static str, Value>,
    /// Values that were brought to a bound.
    pub warnings: Vec<Mistake>,
}

#[derive(Debug, Clone)]
struct Value {
    text: String,
    number: Option<i64>,
    /// The bound that is used instead of the text's number.
    brought_to: Option<i64>,
    source: &'static str,
}

/// Resolves layers, the strongest first, over the defaults.
///
/// # Errors
/// All mistakes at once: unknown names, texts that are not of their kind, numbers outside refusing bounds.
pub fn resolve(layers: &[Layer]) -> Result<Resolved, Vec<Mistake>> {
    let mut mistakes: Vec<Mistake> = layers
        .iter()
        .flat_map(|layer| layer.values.keys().map(move |name| (layer.source, name)))
        .filter(|(_, name)| find(name).is_none())
        .map(|(source, name)| Mistake::new(name, format!("is not a setting (from {source})")))
        .collect();
    let mut resolved = Resolved {
        values: BTreeMap::new(),
        warnings: Vec::new(),
    };
    for key in KEYS {
        let (source, text) = layers
            .iter()
            .find_map(|layer| Some((layer.source, layer.values.get(key.name)?.as_str())))
            .unwrap_or(("default", key.default));
        match check(key, text) {
            Ok((number, warning)) => {
                let brought_to = number.filter(|_| warning.is_some());
                resolved.warnings.extend(warning);
                resolved.values.insert(
                    key.name,
                    Value {
                        text: text.to_owned(),
                        number,
                        brought_to,
                        source,
                    },
                );
            }
            Err(error) => mistakes.push(mistake(key, source, text, &error)),
        }
    }
    if mistakes.is_empty() {
        Ok(resolved)
    } else {
        Err(mistakes)
    }
}

fn check(key: &Key, text: &str) -> Result<(Option<i64>, Option<Mistake>), ValueError> {
    let Some(number) = number(key.kind, text)? else {
        return Ok((None, None));
    };
    match key.bounds {
        Bounds::Clamp(low, high) if !(low..=high).contains(&number) => {
            let clamped = number.clamp(low, high);
            let warning = Mistake::new(
                &key.environment_name(),
                format!("{text} is outside its bounds, using {clamped}"),
            );
            Ok((Some(clamped), Some(warning)))
        }
        Bounds::Refuse(low, high) if !(low..=high).contains(&number) => {
            Err(ValueError::OutOfBounds(low, high))
        }
        _ => Ok((Some(number), None)),
    }
}

fn mistake(key: &Key, source: &str, text: &str, error: &ValueError) -> Mistake {
    let name = if source == "environment" {
        key.environment_name()
    } else {
        key.name.to_owned()
    };
    let shown = if key.kind == Kind::Secret {
        "(secret)"
    } else {
        text
    };
    Mistake::new(
        &name,
        format!("'{}' {error}", crate::problem::sanitize(shown, 200)),
    )
}

impl Resolved {
    /// The text of a setting. An unknown name is a defect and reads as empty.
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).map_or("", |value| value.text.as_str())
    }

    /// The number of a setting, bounds applied.
    pub fn number(&self, name: &str) -> i64 {
        self.values.get(name).and_then(|value| value.number).unwrap_or(0)
    }

    /// The number of a setting as a size in memory.
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.number(name)).unwrap_or(usize::MAX)
    }

    /// A boolean setting.
    pub fn flag(&self, name: &str) -> bool {
        self.number(name) != 0
    }

    /// One line a setting, `name = value (source)`: what is in effect, secrets redacted.
    pub fn lines(&self) -> Vec<String> {
        KEYS.iter()
            .filter_map(|key| {
                let value = self.values.get(key.name)?;
                let text = match key.kind {
                    Kind::Secret if value.text.is_empty() => "(none)".to_owned(),
                    Kind::Secret => REDACTED.to_owned(),
                    _ => without_userinfo(&value.text),
                };
                Some(match value.brought_to {
                    Some(bound) => {
                        format!("{} = {bound} ({}, brought from {text})", key.name, value.source)
                    }
                    None => format!("{} = {text} ({})", key.name, value.source),
                })
            })
            .collect()
    }
}

/// What is shown instead of a secret.
const REDACTED: &str = "(redacted)";

/// The text with what stands before `@` in each of its URLs redacted: it may hold a password.
fn without_userinfo(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((head, tail)) = rest.split_once("://") {
        let ends = |c: char| matches!(c, '/' | '?' | '#' | ',' | ';') || c.is_whitespace();
        let (authority, after) = tail.split_at(tail.find(ends).unwrap_or(tail.len()));
        shown.extend([head, "://"]);
        match authority.rsplit_once('@') {
            Some((_, host)) => shown.extend([REDACTED, "@", host]),
            None => shown.push_str(authority),
        }
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::{Layer, resolve};
    use crate::config::Config;

    fn environment(pairs: &[(&str, &str)]) -> Layer {
        Layer::from_environment(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())))
    }

    #[test]
    fn defaults_are_the_contracts() {
        let config = Config::from_resolved(&resolve(&[]).unwrap()).unwrap();
        assert_eq!(config.ceiling.max_input_bytes, 2_147_483_648);
        assert_eq!(config.ceiling.max_output_bytes, 16_777_216);
        assert_eq!(config.ceiling.max_stderr_bytes, 262_144);
        assert_eq!(config.admission.scratch_mebibytes, 7_516_192_768 >> 20);
        assert_eq!(config.http.max_oci_request_bytes, 65_536);
        assert_eq!(config.missing_to_serve().len(), 1);
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let file = Layer::from_toml("port = 1\nmax_queued_scans = 7\nmax_input_bytes = \"1MiB\"").unwrap();
        let env = environment(&[("SERVER_PORT", "2"), ("KKREPO_SCANNER_MAX_QUEUED_SCANS", " ")]);
        let flags = Layer::from_flags(["port=3"]).unwrap();
        let resolved = resolve(&[flags, env, file]).unwrap();
        assert_eq!(resolved.number("port"), 3);
        assert_eq!(resolved.number("max_queued_scans"), 7);
        assert_eq!(resolved.number("max_input_bytes"), 1 << 20);
    }

    #[test]
    fn every_mistake_gets_its_own_line() {
        let env = environment(&[
            ("SERVER_PORT", "http"),
            ("KKREPO_SCANNER_MAX_INPUT_BYTES", "plenty"),
            ("KKREPO_SCANNER_IDLE_TIMEOUT", "0"),
        ]);
        let mistakes = resolve(&[env, Layer::from_flags(["colour=red"]).unwrap()]).unwrap_err();
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        colour: is not a setting (from flag)
        SERVER_PORT: 'http' is not a whole number
        KKREPO_SCANNER_MAX_INPUT_BYTES: 'plenty' is not a size such as 1048576, 16MiB or 7GiB
        KKREPO_SCANNER_IDLE_TIMEOUT: '0' is outside 100..=86400000
        ");
    }

    #[test]
    fn the_contracts_bounds_clamp_with_a_warning() {
        let env = environment(&[
            ("KKREPO_SCANNER_MAX_CONCURRENT_SCANS", "100"),
            ("KKREPO_SCANNER_MAX_STDERR_BYTES", "1"),
        ]);
        let resolved = resolve(&[env]).unwrap();
        assert_eq!(resolved.number("max_concurrent_scans"), 64);
        assert_eq!(resolved.number("max_stderr_bytes"), 1024);
        assert_eq!(resolved.warnings.len(), 2);
        let lines = resolved.lines();
        for line in [
            "max_concurrent_scans = 64 (environment, brought from 100)",
            "max_stderr_bytes = 1024 (environment, brought from 1)",
            "max_queued_scans = 4 (default)",
        ] {
            assert!(
                lines.iter().any(|found| found == line),
                "{line} is not in {lines:?}"
            );
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let resolved = resolve(&[environment(&[
            ("KKREPO_SCANNER_SERVICE_CREDENTIAL", "hunter2,x"),
            ("KKREPO_SCANNER_PREVIOUS_SERVICE_CREDENTIAL", "hunter3"),
        ])])
        .unwrap();
        assert!(!resolved.lines().join("\n").contains("hunter"));
        for (text, want) in [
            ("http://bob:hunter2@h:1/p", "http://(redacted)@h:1/p"),
            ("https://a/x@y http://u:p@b", "https://a/x@y http://(redacted)@b"),
            ("a@b, not/a?url", "a@b, not/a?url"),
            ("x://", "x://"),
        ] {
            assert_eq!(super::without_userinfo(text), want);
        }
        let config = Config::from_resolved(&resolved).unwrap();
        assert_eq!(config.http.credentials.len(), 2);
        assert!(!format!("{config:?}").contains("hunter"));
    }
}
