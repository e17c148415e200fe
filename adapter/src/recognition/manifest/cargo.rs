//! `Cargo.toml` as `cargo package` normalises it: nothing is inherited from a workspace.

use super::{ManifestError, text};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct CargoToml {
    package: Option<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of a crate.
pub fn cargo(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let manifest: CargoToml =
        toml::from_str(text(bytes, "TOML")?).map_err(|_| ManifestError::Malformed { format: "TOML" })?;
    let package = manifest
        .package
        .ok_or(ManifestError::MissingField { field: "package" })?;
    Coordinates::new(
        Ecosystem::Cargo,
        package.name.as_deref(),
        package.version.as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use super::cargo;

    #[test]
    fn table() {
        let cases: [(&[u8], Option<&str>); 7] = [
            (
                b"[package]\nname = \"time\"\nversion = \"0.1.43\"\n[dependencies.libc]\nversion = \"0.2\"\n",
                Some("pkg:cargo/time@0.1.43"),
            ),
            (
                b"[package]\nname = \"a\"\nversion = \"1.0.0+b\"\n",
                Some("pkg:cargo/a@1.0.0%2Bb"),
            ),
            (b"[package]\nname = \"a\"\n", None),
            (b"[package]\nname = \"a\"\nversion.workspace = true\n", None),
            (b"[workspace]\n", None),
            (b"[package\n", None),
            (b"\x00\xff", None),
        ];
        for (bytes, want) in cases {
            let got = cargo(bytes).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{}", String::from_utf8_lossy(bytes));
        }
        assert!(cargo(format!("a = {}", "[".repeat(100_000)).as_bytes()).is_err());
    }
}
