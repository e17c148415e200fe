//! Why an inventory may miss something. Pure: verdicts over what the stages before learnt.

use crate::problem::sanitize;
use crate::recognition::{CondaFacts, ExpectedFile, Form};
use crate::sbom::cyclonedx;
use assay_schemas::Component;
use assay_schemas::catalog::{PartialCode, PartialReason};
use std::collections::BTreeSet;

/// What host and headers left open may be in the package URLs, and the other way round: those of the document decide,
/// unless some were cut off.
pub(super) fn settle_distribution(reasons: &mut Vec<PartialReason>, without_distribution: u64, is_cut: bool) {
    if without_distribution == 0 && !is_cut {
        reasons.retain(|reason| reason.code != PartialCode::DistroUnknown);
    } else if without_distribution > 0 && reasons.iter().all(|r| r.code != PartialCode::DistroUnknown) {
        reasons.push(PartialReason {
            code: PartialCode::DistroUnknown,
            detail: format!("{without_distribution} packages name no distribution"),
        });
    }
}

/// Most paths in a summary's `unyielding_files`.
const MAX_UNYIELDING: usize = 64;

/// Files of a known package type under which the cataloguers found no component. What only the artifact's own manifest
/// names does not show that they looked.
pub(super) fn unyielding(expected: &[ExpectedFile], components: &[Component]) -> Vec<String> {
    let found: BTreeSet<&str> = components
        .iter()
        .filter(|c| !c.properties.contains_key(cyclonedx::IDENTITY_SOURCE))
        .flat_map(|c| &c.locations)
        .map(|location| location.trim_start_matches('/'))
        .collect();
    let yields = |file: &ExpectedFile| {
        if file.location.is_empty() {
            return !found.is_empty();
        }
        let inside = format!("{}!/", file.location);
        found.contains(file.location.as_str())
            || found
                .range(inside.as_str()..)
                .next()
                .is_some_and(|location| location.starts_with(&inside))
    };
    expected
        .iter()
        .filter(|file| !yields(file))
        .map(|file| sanitize(&file.location, 200))
        .take(MAX_UNYIELDING)
        .collect()
}

/// Whether a component is the artifact itself and not something inside it, in a group that is more than its name
/// repeated: this is what the cataloguer says of a jar of which it knows none.
pub(super) fn is_the_named_artifact(component: &Component) -> bool {
    let repeats_its_name = component
        .package_url
        .as_deref()
        .and_then(|purl| purl.strip_prefix("pkg:maven/")?.split_once('/'))
        .is_some_and(|(group, rest)| rest.split(['@', '?', '#']).next() == Some(group));
    !repeats_its_name && component.locations.iter().any(|location| location == "/")
}

/// Whether a component is the Conda package that the artifact's index names.
pub(super) fn is_conda_package(component: &Component, conda: &CondaFacts) -> bool {
    component.name == conda.name
        && component.version.as_deref() == Some(&conda.version)
        && component
            .properties
            .get("syft:package:type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("conda"))
}

/// Why an inventory may miss something, seen from its contents: nothing found in a known package type is never
/// complete.
pub(super) fn doubts(
    form: Form,
    components: &[Component],
    unyielding: &[String],
    unopened: u64,
) -> Vec<PartialReason> {
    let mut doubts = Vec::new();
    let mut doubt = |code, detail: String| doubts.push(PartialReason { code, detail });
    if form.is_known_package_type() && components.is_empty() {
        doubt(
            PartialCode::NothingCataloged,
            format!("no component was found in a {form}"),
        );
    } else if !unyielding.is_empty() {
        let count = unyielding.len();
        doubt(
            PartialCode::NothingCataloged,
            format!("{count} files of a known package type yielded no component"),
        );
    }
    if unopened > 0 {
        doubt(
            PartialCode::UnsupportedFormat,
            format!("{unopened} archives inside were not opened: of a format that is not read, or broken"),
        );
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::{is_the_named_artifact, settle_distribution, unyielding};
    use crate::recognition::ExpectedFile;
    use crate::sbom::cyclonedx;
    use assay_schemas::Component;
    use assay_schemas::catalog::{PartialCode, PartialReason};

    #[test]
    fn a_jar_whose_group_repeats_its_name_is_not_named() {
        for (purl, location, want) in [
            ("pkg:maven/org.springframework/spring-core@5.3.17", "/", true),
            ("pkg:maven/shop/shop@1", "/", false),
            ("pkg:maven/shop/shop-core@1", "/", true),
            ("pkg:maven/g/a@1", "/lib/a.jar", false),
        ] {
            let document = format!(
                r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{{"name":"a","type":"library",
                "purl":"{purl}","properties":[{{"name":"syft:location:0:path","value":"{location}"}}]}}]}}"#
            );
            let (_, projection) = cyclonedx::read(document.as_bytes()).unwrap();
            let is_named = projection.components.iter().any(is_the_named_artifact);
            assert_eq!(is_named, want, "{purl}");
        }
    }

    #[test]
    fn package_urls_decide_whether_a_distribution_is_missing() {
        let reason = |code| PartialReason {
            code,
            detail: String::new(),
        };
        for (was_open, without, is_cut, want) in [
            (false, 0, false, false),
            (true, 0, false, false),
            (true, 0, true, true),
            (true, 1, false, true),
            (false, 1, false, true),
            (false, 0, true, false),
        ] {
            let mut reasons = vec![reason(PartialCode::IdentityUnknown)];
            reasons.extend(was_open.then(|| reason(PartialCode::DistroUnknown)));
            settle_distribution(&mut reasons, without, is_cut);
            let distro = reasons
                .iter()
                .filter(|reason| reason.code == PartialCode::DistroUnknown)
                .count();
            assert_eq!(distro, usize::from(want), "{was_open} {without} {is_cut}");
            assert_eq!(reasons.len(), 1 + distro, "other reasons stay");
        }
    }

    #[test]
    fn only_what_the_cataloguers_found_shows_that_they_looked() {
        let expected = [ExpectedFile {
            layout_path: "package/package.json".to_owned(),
            location: "package/package.json".to_owned(),
        }];
        let document = |properties: &str| {
            format!(
                r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{{"name":"a","type":"library",
                "purl":"pkg:npm/a@1","properties":[{properties}]}}]}}"#
            )
        };
        let location = r#"{"name":"syft:location:0:path","value":"/package/package.json"}"#;
        let own = format!(
            r#"{{"name":"{}","value":"/package/package.json"}},{location}"#,
            cyclonedx::IDENTITY_SOURCE
        );
        for (properties, want) in [(location, 0), (own.as_str(), 1), ("", 1)] {
            let (_, projection) = cyclonedx::read(document(properties).as_bytes()).unwrap();
            let components: Vec<Component> = projection.components;
            assert_eq!(unyielding(&expected, &components).len(), want, "{properties}");
        }
    }
}
