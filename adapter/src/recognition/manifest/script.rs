//! Manifests that are programs: a `CocoaPods` specification and a Conan recipe. Nothing is run; only what is assigned as
//! a plain string is believed.

use super::{ManifestError, json, text};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct Specification {
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of a pod from its `.podspec` or `.podspec.json`.
pub fn podspec(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let script = text(bytes, "podspec")?;
    if script.trim_start().starts_with('{') {
        let specification: Specification = json(bytes)?;
        return Coordinates::new(
            Ecosystem::Cocoapods,
            specification.name.as_deref(),
            specification.version.as_deref(),
        );
    }
    let value = |field: &str| {
        assigned(script, |target| {
            target
                .split_once('.')
                .is_some_and(|(owner, name)| name == field && is_word(owner))
        })
    };
    Coordinates::new(Ecosystem::Cocoapods, value("name"), value("version"))
}

/// Coordinates of a Conan recipe from its `conanfile.py`.
pub fn conanfile(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let script = text(bytes, "conanfile")?;
    let value = |field: &str| assigned(script, |target| target == field);
    Coordinates::new(Ecosystem::Conan, value("name"), value("version"))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The string of the first line that assigns one to such a target and does nothing else.
fn assigned(script: &str, is_target: impl Fn(&str) -> bool) -> Option<&str> {
    script.lines().find_map(|line| {
        let (target, value) = line.split_once('=')?;
        if !is_target(target.trim()) {
            return None;
        }
        let value = value.trim();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (string, rest) = value.get(1..)?.split_once(quote)?;
        let rest = rest.trim_start();
        let is_all = rest.is_empty() || rest.starts_with('#');
        // An interpolation or an escape is more than a string.
        (is_all && !string.contains(['#', '\\', '{'])).then_some(string)
    })
}

#[cfg(test)]
mod tests {
    use super::{conanfile, podspec};

    #[test]
    fn pods() {
        let cases = [
            (
                "Pod::Spec.new do |s|\n  s.name = 'Alamofire'\n  s.version = '5.4.0' # now\n  s.source = { :tag => s.version }\nend\n",
                Some("pkg:cocoapods/Alamofire@5.4.0"),
            ),
            (
                r#"{"name":"Alamofire","version":"5.4.0"}"#,
                Some("pkg:cocoapods/Alamofire@5.4.0"),
            ),
            ("s.name = 'A'\ns.version = File.read('VERSION')\n", None),
            ("s.name = 'A'\ns.version = '1' + x\n", None),
            ("s.name = 'A'\ns.version = \"#{v}\"\n", None),
            ("s.name = 'A\n", None),
            ("a.b.name = 'A'\ns.version = '1'\n", None),
            (r#"{"name":"A"}"#, None),
            ("", None),
        ];
        for (script, want) in cases {
            let got = podspec(script.as_bytes()).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{script}");
        }
    }

    #[test]
    fn recipes() {
        let cases = [
            (
                "class Zlib(ConanFile):\n    name = \"zlib\"\n    version = \"1.2.11\"\n    display_name = name\n",
                Some("pkg:conan/zlib@1.2.11"),
            ),
            ("    name = \"zlib\"\n", None),
            ("    name = f\"zlib\"\n    version = \"1\"\n", None),
            ("", None),
        ];
        for (script, want) in cases {
            let got = conanfile(script.as_bytes()).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{script}");
        }
    }
}
