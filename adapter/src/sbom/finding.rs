//! One match of a Grype report as a finding of the contract.

use super::json::{self, Object};
use super::merge::PlatformsByRef;
use super::text::{DEFAULT_CAP, capped, capped_bytes, field, push_distinct};
use assay_schemas::Severity;
use assay_schemas::catalog::MAX_NESTED_LIST;
use assay_schemas::fingerprint::finding_key;
use assay_schemas::matching::{Finding, MAX_DESCRIPTION_BYTES};
use assay_schemas::version::MATCHER_ENGINE;

/// The normalised severity of a match.
pub(super) fn severity(found: &Object<'_>) -> Severity {
    found
        .object("vulnerability")
        .text("severity")
        .map_or(Severity::Unknown, |word| Severity::normalize(&word))
}

/// The finding in wire form. The matcher keeps the reference of a component as the id of the package.
pub(super) fn project(found: &Object<'_>, platforms: &PlatformsByRef) -> Finding {
    let vulnerability = found.object("vulnerability");
    let artifact = found.object("artifact");
    let fix = vulnerability.object("fix");

    let id = field(vulnerability.text("id"), 255);
    let advisory_id = id.clone().unwrap_or_else(|| "UNKNOWN".to_owned());
    let description = vulnerability.text("description");
    let package_url = field(artifact.text("purl"), 2048);
    let package_name = field(artifact.text("name"), 512).unwrap_or_else(|| "unknown".to_owned());
    let installed_version = field(artifact.text("version"), 512);
    let locations = locations(&artifact);
    let (cvss_vector, cvss_score) = cvss(&vulnerability);
    Finding {
        finding_key: finding_key(
            &advisory_id,
            package_url.as_deref(),
            &package_name,
            installed_version.as_deref(),
            &locations,
        ),
        aliases: aliases(found),
        data_source: field(vulnerability.text("dataSource"), 2048)
            .or_else(|| field(vulnerability.text("namespace"), 2048)),
        package_url,
        package_name,
        installed_version,
        fixed_versions: texts(&fix, "versions"),
        severity: severity(found),
        severity_source: Some(MATCHER_ENGINE.to_owned()),
        cvss_vector,
        cvss_score,
        title: field(description.clone(), 1024).or(id),
        description: description.map(|text| capped_bytes(&text, MAX_DESCRIPTION_BYTES)),
        primary_url: vulnerability
            .items("urls")
            .into_iter()
            .find_map(|url| field(json::text(url), 2048)),
        locations,
        source_status: field(fix.text("state"), 64),
        platforms: artifact
            .text("id")
            .and_then(|id| platforms.get(&id).cloned())
            .unwrap_or_default(),
        layers: layers(&artifact),
        advisory_id,
    }
}

fn aliases(found: &Object<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for related in found.items("relatedVulnerabilities") {
        push_distinct(&mut out, Object::of(related).text("id"), MAX_NESTED_LIST);
    }
    out
}

fn texts(object: &Object<'_>, name: &str) -> Vec<String> {
    let mut out = Vec::new();
    for item in object.items(name) {
        push_distinct(&mut out, json::text(item), MAX_NESTED_LIST);
    }
    out
}

fn locations(artifact: &Object<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for location in artifact.items("locations") {
        let location = Object::of(location);
        let path = field(location.text("path"), DEFAULT_CAP).or_else(|| location.text("realPath"));
        push_distinct(&mut out, path, MAX_NESTED_LIST);
    }
    out
}

/// Only packages of images have layers.
fn layers(artifact: &Object<'_>) -> Vec<String> {
    let mut out = Vec::new();
    for location in artifact.items("locations") {
        let layer = field(Object::of(location).text("layerID"), 256);
        push_distinct(&mut out, layer, MAX_NESTED_LIST);
    }
    out
}

/// Vector and base score of the entry with the greatest score. A missing score counts as -1 and is not reported; of
/// equals the first wins.
fn cvss(vulnerability: &Object<'_>) -> (Option<String>, Option<f64>) {
    let mut best: Option<(f64, Option<String>)> = None;
    for entry in vulnerability.items("cvss") {
        let entry = Object::of(entry);
        let score = entry
            .object("metrics")
            .get("baseScore")
            .and_then(json::number)
            .unwrap_or(-1.0);
        if best.as_ref().is_none_or(|(greatest, _)| score > *greatest) {
            best = Some((score, entry.text("vector").map(|vector| capped(&vector, 255))));
        }
    }
    match best {
        Some((score, vector)) => (field(vector, 255), (score >= 0.0).then_some(score)),
        None => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::{PlatformsByRef, project};
    use crate::sbom::json::{Object, root};
    use assay_schemas::matching::Finding;

    fn finding(json: &str) -> Finding {
        let platforms = PlatformsByRef::from([("ref".to_owned(), vec!["linux/amd64".to_owned()])]);
        project(&Object::of(root(json.as_bytes()).unwrap()), &platforms)
    }

    #[test]
    fn every_field_of_a_match_is_projected() {
        insta::assert_debug_snapshot!(finding(
            r#"{"vulnerability":{"id":"GHSA-1","dataSource":"https://a","namespace":"n","severity":"Important","urls":[7,"https://u","https://v"],
            "description":"text\u0000","cvss":[{"vector":"V1","metrics":{"baseScore":5.5}},{"vector":"V2","metrics":{"baseScore":9.1}},{"vector":"V3","metrics":{"baseScore":9.1}},{"vector":"V4"}],
            "fix":{"versions":["2","3","2"],"state":"fixed"}},
            "relatedVulnerabilities":[{"id":"CVE-1"},{"id":"CVE-1"},{"id":"CVE-2"},{}],
            "artifact":{"name":"a","version":"1","purl":"pkg:npm/a@1","locations":[{"path":"/x","realPath":"/r"},{"realPath":"/y"},{}]}}"#
        ));
    }

    #[test]
    fn absent_fields_are_null_or_have_their_word() {
        insta::assert_debug_snapshot!(finding(
            r#"{"vulnerability":{"namespace":"n","cvss":[{"vector":"V"}]},"artifact":{"locations":null}}"#
        ));
    }

    #[test]
    fn the_same_package_in_two_places_is_two_findings() {
        let at = |path: &str| {
            finding(&format!(
                r#"{{"vulnerability":{{"id":"X"}},"artifact":{{"name":"a","locations":[{{"path":"{path}"}}]}}}}"#
            ))
            .finding_key
        };
        assert_ne!(at("/a"), at("/b"));
        assert_eq!(at("/a"), at("/a"));
    }

    #[test]
    fn a_package_of_an_image_names_its_platforms_and_layers() {
        let done = finding(
            r#"{"artifact":{"id":"ref","locations":[{"path":"/a","layerID":"sha256:1"},{"path":"/b","layerID":"sha256:2"},
            {"path":"/c","layerID":"sha256:1"},{"path":"/d"}]}}"#,
        );
        assert_eq!(done.platforms, ["linux/amd64"]);
        assert_eq!(done.layers, ["sha256:1", "sha256:2"]);
        let other = finding(r#"{"artifact":{"id":"other","locations":[{"path":"/a"}]}}"#);
        assert!(other.platforms.is_empty() && other.layers.is_empty());
        assert!(
            !serde_json::to_string(&other).unwrap().contains("layers"),
            "absent elsewhere"
        );
    }

    #[test]
    fn a_long_description_is_cut_in_bytes() {
        let text = "\u{e9}".repeat(40_000);
        let done = finding(&format!(
            r#"{{"vulnerability":{{"id":"X","description":"{text}"}}}}"#
        ));
        assert_eq!(done.description.unwrap().len(), 65_534);
        assert_eq!(done.title.unwrap().chars().count(), 1024);
    }
}
