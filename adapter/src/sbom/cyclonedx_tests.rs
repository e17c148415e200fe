use super::{Origin, SbomError, inspect, name_key, normalize};
use crate::recognition::{Ecosystem, Identity};
use std::collections::BTreeMap;
use std::sync::LazyLock;

static RENAMED: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| BTreeMap::from([("artifact.war".to_owned(), String::new())]));
static ORIGIN: LazyLock<Origin<'static>> = LazyLock::new(|| Origin {
    input_sha256: "aa",
    engine_version: "1",
    renamed: &RENAMED,
});

const DOCUMENT: &str = r#"{"$schema":"s","bomFormat":"CycloneDX","specVersion":"1.6","serialNumber":"urn:uuid:1","version":1,
"metadata":{"timestamp":"2026-01-01T00:00:00Z","tools":{ }},"components":[{"bom-ref":"r","type":"library","name":"a","purl":"pkg:maven/g/a@1?type=jar",
"properties":[{"name":"syft:package:foundBy","value":"java-archive-cataloger"},{"name":"syft:location:0:path","value":"/artifact.war"},{"name":"syft:metadata:virtualPath","value":"/artifact.war:WEB-INF/lib/a.jar"}]}],"x":[1.50]}"#;

fn added(purl: &str) -> Identity {
    Identity {
        purl: purl.to_owned(),
        kind: "library",
        namespace: None,
        name: "b".to_owned(),
        version: "2".to_owned(),
        location: "package.json".to_owned(),
        ecosystem: Ecosystem::Npm,
    }
}

#[test]
fn a_document_becomes_a_function_of_its_content() {
    let done = normalize(
        DOCUMENT.as_bytes(),
        &[added("pkg:npm/b@2"), added("pkg:maven/g/a@1")],
        &ORIGIN,
    )
    .unwrap();
    insta::assert_snapshot!(String::from_utf8(done.document.clone()).unwrap());

    let again = DOCUMENT
        .replace("urn:uuid:1", "urn:uuid:2")
        .replace("2026-01-01", "2027-01-01");
    let again = normalize(
        again.as_bytes(),
        &[added("pkg:npm/b@2"), added("pkg:maven/g/a@1")],
        &ORIGIN,
    )
    .unwrap();
    assert_eq!(again.document, done.document);
    assert_eq!(done.projection.component_count, 2);
}

#[test]
fn the_serial_number_moves_with_every_input() {
    let serial = |document: &str, origin: &Origin<'_>| {
        let done = normalize(document.as_bytes(), &[], origin).unwrap();
        let text = String::from_utf8(done.document).unwrap();
        let (_, rest) = text.split_once("urn:uuid:").unwrap();
        rest.chars().take(36).collect::<String>()
    };
    let base = serial(DOCUMENT, &ORIGIN);
    assert_ne!(
        base,
        serial(
            DOCUMENT,
            &Origin {
                input_sha256: "ab",
                ..*ORIGIN
            }
        )
    );
    assert_ne!(
        base,
        serial(
            DOCUMENT,
            &Origin {
                engine_version: "2",
                ..*ORIGIN
            }
        )
    );
    assert_ne!(base, serial(&DOCUMENT.replace("1.50", "1.5"), &ORIGIN));
}

#[test]
fn normalising_twice_changes_nothing() {
    let once = normalize(DOCUMENT.as_bytes(), &[added("pkg:npm/b@2")], &ORIGIN).unwrap();
    let twice = normalize(&once.document, &[added("pkg:npm/b@2")], &ORIGIN).unwrap();
    assert_eq!(once, twice);
}

#[test]
fn unusable_documents_are_refused() {
    let cases: &[(&str, SbomError)] = &[
        ("[]", SbomError::NotAnObject),
        ("{}", SbomError::FormatMismatch),
        (
            r#"{"bomFormat":"SPDX","specVersion":"1"}"#,
            SbomError::FormatMismatch,
        ),
        (r#"{"bomFormat":7,"specVersion":"1"}"#, SbomError::FormatMismatch),
        (r#"{"bomFormat":"CycloneDX"}"#, SbomError::SpecVersionMissing),
        (
            r#"{"bomFormat":"CycloneDX","specVersion":" "}"#,
            SbomError::SpecVersionMissing,
        ),
    ];
    for (document, want) in cases {
        assert_eq!(inspect(document.as_bytes()), Err(want.clone()), "{document}");
        assert_eq!(
            normalize(document.as_bytes(), &[], &ORIGIN).unwrap_err(),
            *want,
            "{document}"
        );
    }
    for components in ["", r#","components":null"#, r#","components":{}"#] {
        let document = format!(r#"{{"bomFormat":"cyclonedx","specVersion":"1.6"{components}}}"#);
        assert_eq!(
            inspect(document.as_bytes()).unwrap().component_count,
            0,
            "{document}"
        );
        assert_eq!(
            normalize(document.as_bytes(), &[], &ORIGIN)
                .unwrap()
                .projection
                .component_count,
            0
        );
    }
}

#[test]
fn spellings_of_one_package_are_on_one_shortlist() {
    let same = [
        ("pkg:npm/%40a/b@1?x=y", "pkg:npm/@a/b@1"),
        ("pkg:pypi/Zope.Interface@1", "pkg:pypi/zope_interface@2#sub"),
        ("pkg:nuget/Newtonsoft.Json@1", "pkg:nuget/newtonsoft.json"),
    ];
    for (a, b) in same {
        assert_eq!(name_key(a), name_key(b));
    }
    assert_ne!(name_key("pkg:npm/a@1"), name_key("pkg:npm/b@1"));
    assert_ne!(name_key("pkg:npm/a@1"), name_key("pkg:gem/a@1"));
}

fn component_of(purl: Option<&str>, kind: &str) -> String {
    let purl = purl.map_or(String::new(), |purl| format!(r#""purl":"{purl}","#));
    format!(
        r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{{"bom-ref":"r","type":"library","name":"b",
        {purl}"properties":[{{"name":"syft:package:type","value":"{kind}"}}],"version":"2"}}]}}"#
    )
}

#[test]
fn a_more_precise_identity_completes_the_component_instead_of_doubling_it() {
    let cases = [
        (
            Some("pkg:golang/example.org/b"),
            "go-module",
            "pkg:golang/example.org/b@v2",
        ),
        (Some("pkg:deb/b@2"), "deb", "pkg:deb/debian/b@2?distro=debian-12"),
        (None, "conda", "pkg:conda/b@2"),
    ];
    for (purl, kind, ours) in cases {
        let document = component_of(purl, kind);
        let done = normalize(document.as_bytes(), &[added(ours)], &ORIGIN).unwrap();
        let purls: Vec<_> = done
            .projection
            .components
            .iter()
            .map(|c| c.package_url.as_deref())
            .collect();
        assert_eq!(purls, [Some(ours)], "{purl:?}");
    }
}

#[test]
fn what_the_cataloguer_makes_of_our_own_file_name_is_no_component() {
    for (purl, want) in [
        ("pkg:maven/assay-unnamed/assay-unnamed", 0),
        ("pkg:maven/org.apache.commons.logging/assay-unnamed@1.0.4", 0),
        ("pkg:maven/assay-unnamed@1?type=jar", 0),
        ("pkg:maven/assay-unnamed/other@1", 1),
        ("pkg:maven/g/assay-unnamed-api@1", 1),
        ("pkg:maven/artifact/artifact@1", 1),
        ("pkg:npm/assay-unnamed@1", 1),
    ] {
        let document = component_of(Some(purl), "java-archive");
        let normalized = normalize(document.as_bytes(), &[], &ORIGIN).unwrap();
        assert_eq!(normalized.projection.component_count, want, "{purl}");
    }
}

#[test]
fn locations_are_paths_inside_the_artifact() {
    let cases = [
        ("/artifact.war", "/"),
        ("/artifact.war:g:a", "/"),
        ("/artifact.war:WEB-INF/lib/x.jar:g:a", "/WEB-INF/lib/x.jar"),
        ("/artifact.war:x.jar:META-INF/y.jar", "/x.jar!/META-INF/y.jar"),
    ];
    for (virtual_path, want) in cases {
        let document = DOCUMENT
            .replace(r#""name":"a""#, r#""group":"g","name":"a""#)
            .replace("/artifact.war:WEB-INF/lib/a.jar", virtual_path);
        let done = normalize(document.as_bytes(), &[], &ORIGIN).unwrap();
        assert_eq!(done.projection.components[0].locations, [want], "{virtual_path}");
    }
}

#[test]
fn a_colon_in_the_name_of_a_file_is_no_way_into_an_archive() {
    let document = |properties: &str| {
        format!(
            r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{{"name":"a","properties":[{properties}]}}]}}"#
        )
    };
    let path =
        |index: usize, path: &str| format!(r#"{{"name":"syft:location:{index}:path","value":"{path}"}}"#);
    let virtual_path = r#"{"name":"syft:metadata:virtualPath","value":"/opt/a:b.jar:c.jar"}"#;
    for (properties, want) in [
        (path(0, "/info/libc6:amd64.md5sums"), "/info/libc6:amd64.md5sums"),
        (
            format!("{},{virtual_path}", path(0, "/opt/a:b.jar")),
            "/opt/a:b.jar!/c.jar",
        ),
        (
            format!("{virtual_path},{}", path(0, "/opt/a:b.jar")),
            "/opt/a:b.jar!/c.jar",
        ),
    ] {
        let done = normalize(document(&properties).as_bytes(), &[], &ORIGIN).unwrap();
        assert_eq!(done.projection.components[0].locations, [want], "{properties}");
    }
}

#[test]
fn what_a_package_runs_on_is_not_a_package_without_a_url() {
    for (kind, unmatchable) in [
        ("library", 1),
        ("application", 1),
        ("operating-system", 0),
        ("file", 0),
    ] {
        let document = component_of(None, "deb").replace("\"library\"", &format!("\"{kind}\""));
        let done = normalize(document.as_bytes(), &[], &ORIGIN).unwrap();
        assert_eq!(done.projection.unmatchable, unmatchable, "{kind}");
    }
}
