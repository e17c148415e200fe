//! One pure function per ecosystem: bytes of a manifest to the coordinates of the package.
//!
//! Every function takes what an artifact chose to write: it may lie, but it cannot make us panic or allocate more than
//! a small multiple of [`MAX_MANIFEST_BYTES`].

mod alpine;
mod android;
mod ansible;
mod cargo;
mod composer;
mod conda;
mod cran;
mod dart;
mod debian;
mod gem;
mod go;
mod headers;
mod helm;
mod hex;
mod maven;
mod npm;
mod nuget;
mod python;
mod rpm;
mod script;
mod terraform;
mod xml;

pub use self::rpm::rpm;
pub use alpine::{AlpinePackage, alpine};
pub use android::{android_library, android_version};
pub use ansible::ansible;
pub use cargo::cargo;
pub use composer::composer;
pub use conda::{CondaFacts, CondaIndexError, conda_index, conda_metadata};
pub use cran::cran;
pub use dart::dart;
pub use debian::debian;
pub use gem::gem;
pub use go::{go_module, module_prefix};
pub use helm::{MAX_CHART_IMAGES, chart_images, helm};
pub use hex::hex;
pub use maven::{gradle_module, ivy, java_manifest, pom, pom_properties};
pub use npm::npm;
pub use nuget::nuget;
pub use python::python;
pub use script::{conanfile, podspec};
pub use terraform::{is_terraform_provider, terraform_provider};

/// Largest manifest that is read, bytes.
pub const MAX_MANIFEST_BYTES: usize = 2 * 1024 * 1024;

/// Why a manifest gives no coordinates. No variant repeats what the artifact wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is larger than [`MAX_MANIFEST_BYTES`].
    #[error("the manifest is larger than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// It is not of its format.
    #[error("the manifest is not valid {format}")]
    Malformed {
        /// The format that was expected.
        format: &'static str,
    },
    /// A field is missing or empty.
    #[error("the manifest has no {field}")]
    MissingField {
        /// The field.
        field: &'static str,
    },
    /// A field is longer than any real one.
    #[error("the manifest's {field} has {bytes} bytes, more than {limit}")]
    FieldTooLong {
        /// The field.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// A field cannot be what it should be.
    #[error("the manifest's {field} is not usable")]
    FieldInvalid {
        /// The field.
        field: &'static str,
    },
}

/// The bytes as UTF-8 text without a byte order mark.
fn text<'a>(bytes: &'a [u8], format: &'static str) -> Result<&'a str, ManifestError> {
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooLarge {
            limit: MAX_MANIFEST_BYTES,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| ManifestError::Malformed { format })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// The bytes as JSON of the wanted shape.
fn json<'a, T: serde::Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ManifestError> {
    serde_json::from_str(text(bytes, "JSON")?).map_err(|_| ManifestError::Malformed { format: "JSON" })
}

/// Deepest nesting of brackets in a YAML manifest. The parser's time grows with the square of it.
const MAX_YAML_BRACKETS: usize = 64;

/// The bytes as the first YAML document, of the wanted shape.
fn yaml<T: for<'a> serde::Deserialize<'a>>(bytes: &[u8]) -> Result<T, ManifestError> {
    const MALFORMED: ManifestError = ManifestError::Malformed { format: "YAML" };
    let text = text(bytes, "YAML")?;
    // Quoting is not looked at, so prose counts too; but prose closes its brackets, more or less.
    let mut open = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > MAX_YAML_BRACKETS {
            return Err(MALFORMED);
        }
    }
    serde_norway::from_str(text).map_err(|_| MALFORMED)
}
