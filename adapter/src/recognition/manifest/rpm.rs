//! The header of an RPM.

use super::ManifestError;
use super::debian::in_distribution;
use crate::recognition::distribution::{Distribution, RpmOrigin, of_rpm};
use crate::recognition::identity::{Coordinates, Ecosystem};
use ::rpm::{IndexTag, PackageMetadata};

/// Coordinates of an RPM and its distribution: `hint`, else what the header says.
pub fn rpm(
    metadata: &PackageMetadata,
    hint: Option<&Distribution>,
) -> Result<(Coordinates, Option<Distribution>), ManifestError> {
    let tag = |tag| metadata.header.get_entry_data_as_string(tag).unwrap_or_default();
    let (version, release) = (tag(IndexTag::RPMTAG_VERSION), tag(IndexTag::RPMTAG_RELEASE));
    let full = match (version, release) {
        ("", _) => String::new(),
        (version, "") => version.to_owned(),
        (version, release) => format!("{version}-{release}"),
    };
    let distribution = hint.cloned().or_else(|| {
        of_rpm(&RpmOrigin {
            release,
            vendor: tag(IndexTag::RPMTAG_VENDOR),
            distribution: tag(IndexTag::RPMTAG_DISTRIBUTION),
            dist_tag: tag(IndexTag::RPMTAG_DISTTAG),
        })
    });
    let arch = if metadata.is_source_package() {
        "src"
    } else {
        tag(IndexTag::RPMTAG_ARCH)
    };
    let epoch = metadata
        .get_epoch()
        .ok()
        .map(|e| e.to_string())
        .unwrap_or_default();
    // Some builders store the words with which the rpm tool shows an absent tag.
    let source = Some(tag(IndexTag::RPMTAG_SOURCERPM))
        .filter(|name| *name != "(none)")
        .unwrap_or_default();
    let coordinates = Coordinates::new(Ecosystem::Rpm, Some(tag(IndexTag::RPMTAG_NAME)), Some(&full))?
        .qualified("arch", arch)?
        .qualified("epoch", &epoch)?
        .qualified("upstream", source)?
        .qualified("rpmmod", tag(IndexTag::RPMTAG_MODULARITYLABEL))?;
    Ok((in_distribution(coordinates, distribution.as_ref())?, distribution))
}
