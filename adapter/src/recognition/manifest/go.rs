//! The `module@version/` prefix of a Go module zip. The version is nowhere else.

use super::ManifestError;
use crate::recognition::identity::{Coordinates, Ecosystem};

/// The part of an entry's path that names module and version, without the slash after it.
///
/// `None` unless the path has a segment `name@v…` with something after it.
pub fn module_prefix(path: &str) -> Option<&str> {
    let (before, after) = path.split_once("@v")?;
    let version_end = after.find('/')?;
    let starts_like_a_version = after.starts_with(|c: char| c.is_ascii_digit());
    (starts_like_a_version && !before.is_empty())
        .then(|| path.get(..before.len() + "@v".len() + version_end))
        .flatten()
}

/// Coordinates of the module that a prefix names; the version keeps its `v`.
pub fn go_module(prefix: &str) -> Result<Coordinates, ManifestError> {
    let (module, version) = prefix
        .split_once('@')
        .ok_or(ManifestError::MissingField { field: "version" })?;
    let usable = |c: char| c.is_ascii_alphanumeric() || "-._~/+!".contains(c);
    if !module.chars().all(usable) || !version.chars().all(usable) {
        return Err(ManifestError::FieldInvalid { field: "module" });
    }
    let (namespace, name) = module.rsplit_once('/').unwrap_or(("", module));
    Coordinates::new(Ecosystem::Golang, Some(name), Some(version))?.in_namespace(namespace)
}

#[cfg(test)]
mod tests {
    use super::{go_module, module_prefix};

    #[test]
    fn table() {
        let cases = [
            (
                "golang.org/x/text@v0.14.0/go.mod",
                Some("pkg:golang/golang.org/x/text@v0.14.0"),
            ),
            (
                "github.com/BurntSushi/toml@v1.3.2/a/b.go",
                Some("pkg:golang/github.com/burntsushi/toml@v1.3.2"),
            ),
            (
                "github.com/a/b/v2@v2.0.0-20200101000000-abcdef012345/x",
                Some("pkg:golang/github.com/a/b/v2@v2.0.0-20200101000000-abcdef012345"),
            ),
            (
                "example.com/a@v1.0.0+incompatible/x",
                Some("pkg:golang/example.com/a@v1.0.0%2Bincompatible"),
            ),
            ("std@v1.2.3/x", Some("pkg:golang/std@v1.2.3")),
            ("golang.org/x/text@v0.14.0", None),
            ("a/@v/list", None),
            ("@v1/x", None),
            ("a b@v1/x", None),
            ("é@v1/x", None),
            ("package/package.json", None),
        ];
        for (path, want) in cases {
            let got = module_prefix(path).and_then(|p| go_module(p).and_then(|c| c.purl()).ok());
            assert_eq!(got.as_deref(), want, "{path}");
        }
    }
}
