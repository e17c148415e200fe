//! The file name of a Terraform provider's executable. The version is nowhere else.

use super::ManifestError;
use crate::recognition::identity::{Coordinates, Ecosystem};

const PREFIX: &str = "terraform-provider-";

/// Whether a file at the top of a container is the executable of a provider, by its name alone.
pub fn is_terraform_provider(name: &str) -> bool {
    terraform_provider(name).is_ok()
}

/// Coordinates of the provider that `terraform-provider-NAME_vVERSION`, with or without `_xPROTOCOL` and `.exe`, is.
/// No package URL type is registered for providers, so it is `generic`.
pub fn terraform_provider(name: &str) -> Result<Coordinates, ManifestError> {
    const INVALID: ManifestError = ManifestError::FieldInvalid { field: "file name" };
    let bare = name.strip_suffix(".exe").unwrap_or(name);
    let (provider, rest) = bare.split_once("_v").ok_or(INVALID)?;
    let is_named = provider.strip_prefix(PREFIX).is_some_and(|name| !name.is_empty());
    let version = match rest.split_once("_x") {
        Some((version, protocol)) if protocol.bytes().all(|b| b.is_ascii_digit()) => version,
        _ => rest,
    };
    if !is_named || !version.starts_with(|c: char| c.is_ascii_digit()) || name.contains('/') {
        return Err(INVALID);
    }
    Coordinates::new(Ecosystem::Terraform, Some(provider), Some(version))
}

#[cfg(test)]
mod tests {
    use super::terraform_provider;

    #[test]
    fn table() {
        let cases = [
            (
                "terraform-provider-aws_v4.0.0_x5",
                Some("pkg:generic/terraform-provider-aws@4.0.0"),
            ),
            (
                "terraform-provider-random_v3.1.0.exe",
                Some("pkg:generic/terraform-provider-random@3.1.0"),
            ),
            (
                "terraform-provider-a_v1.0.0-beta_x",
                Some("pkg:generic/terraform-provider-a@1.0.0-beta"),
            ),
            ("terraform-provider-a", None),
            ("terraform-provider-_v1.0.0", None),
            ("terraform-provider-a_vx", None),
            ("terraform-provider-a_v1/b", None),
            ("other_v1.0.0", None),
        ];
        for (name, want) in cases {
            let got = terraform_provider(name).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{name}");
        }
    }
}
