use super::{MergeError, PLATFORMS, PlatformSbom, merge, platforms as platforms_of};
use crate::sbom::cyclonedx::read;
use assay_schemas::Code;
use proptest::prelude::*;
use serde_json::Value;

const AMD: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.6","serialNumber":"urn:uuid:1","metadata":{"m":1},"components":[
 {"bom-ref":"a","name":"a","properties":[{"name":"p","value":"1"},{"name":"kkrepo:oci:platforms","value":"forged"}]},
 {"bom-ref":"b","name":"b"},7,{"name":"c","version":"1"}],
 "dependencies":[{"ref":"a","dependsOn":["b"]},{"dependsOn":["x"]},{"ref":"b"}]}"#;
const ARM: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.5","metadata":{"m":2},"components":[
 {"bom-ref":"d","name":"d"},{"bom-ref":"a","name":"other"},{"name":"c","version":"1"}],
 "dependencies":[{"ref":"a","dependsOn":["d","b"]},{"ref":"d","dependsOn":["a"]}]}"#;

fn merged(documents: &[(&str, &str)]) -> Value {
    let sboms: Vec<PlatformSbom<'_>> = documents
        .iter()
        .map(|(platform, document)| PlatformSbom {
            platform,
            document: document.as_bytes(),
        })
        .collect();
    serde_json::from_slice(&merge(&sboms).unwrap()).unwrap()
}

fn platforms(component: &Value) -> &str {
    let properties = component["properties"].as_array().unwrap();
    let named: Vec<&Value> = properties.iter().filter(|p| p["name"] == PLATFORMS).collect();
    assert_eq!(named.len(), 1, "{component}");
    named[0]["value"].as_str().unwrap()
}

#[test]
fn shared_components_are_one_and_name_their_platforms() {
    let document = merged(&[("linux/amd64", AMD), ("linux/arm64", ARM)]);
    let components = document["components"].as_array().unwrap();
    let seen: Vec<(&str, &str)> = components
        .iter()
        .map(|component| (component["name"].as_str().unwrap(), platforms(component)))
        .collect();
    assert_eq!(
        seen,
        [
            ("a", "linux/amd64,linux/arm64"),
            ("b", "linux/amd64"),
            ("c", "linux/amd64,linux/arm64"),
            ("d", "linux/arm64"),
        ]
    );
    assert_eq!(components[0]["properties"][1]["name"], "p", "the others stay");
    assert_eq!(document["metadata"]["m"], 1, "the first document gives the rest");
    assert_eq!(document["specVersion"], "1.6");
    assert_eq!(
        document["dependencies"],
        serde_json::json!([
            { "ref": "a", "dependsOn": ["b", "d"] }, { "ref": "b" }, { "ref": "d", "dependsOn": ["a"] },
        ])
    );
}

#[test]
fn the_serial_number_follows_from_platforms_and_documents() {
    let serial = |documents: &[(&str, &str)]| merged(documents)["serialNumber"].as_str().unwrap().to_owned();
    let one = serial(&[("linux/amd64", AMD), ("linux/arm64", ARM)]);
    assert_eq!(
        one,
        serial(&[("linux/arm64", ARM), ("linux/amd64", AMD)]),
        "sorted before"
    );
    assert_ne!(one, serial(&[("linux/amd64", ARM), ("linux/arm64", AMD)]));
    assert_ne!(one, serial(&[("linux/amd64", AMD)]));
    // SHA-256 of NUL, the platform, a colon and the SHA-256 of the document; computed elsewhere.
    assert_eq!(
        serial(&[("linux/amd64", r#"{"bomFormat":"CycloneDX","specVersion":"1.6"}"#)]),
        "urn:uuid:0fd79dc7-44c3-d7eb-18ce-a752805a9656"
    );
}

#[test]
fn a_single_document_is_marked_like_any() {
    let document = merged(&[("linux/amd64", AMD)]);
    let bytes = document.to_string();
    let (version, projection) = read(bytes.as_bytes()).unwrap();
    assert_eq!((version.as_str(), projection.component_count), ("1.6", 3));
    assert_eq!(projection.components[0].properties[PLATFORMS], "linux/amd64");
    let bare = merged(&[("linux/amd64", r#"{"bomFormat":"CycloneDX","specVersion":"1.6"}"#)]);
    assert_eq!(bare["components"], serde_json::json!([]));
    assert_eq!(bare["dependencies"], serde_json::json!([]));
}

#[test]
fn a_merged_document_tells_where_its_components_are() {
    let bytes = merged(&[("linux/amd64", AMD), ("linux/arm64", ARM)]).to_string();
    let found = platforms_of(bytes.as_bytes());
    assert_eq!(found["a"], ["linux/amd64", "linux/arm64"]);
    assert_eq!(found["d"], ["linux/arm64"]);
    assert_eq!(found.len(), 4);
    assert!(platforms_of(ARM.as_bytes()).is_empty());
    assert!(platforms_of(b"x").is_empty());
}

#[test]
fn what_is_no_document_is_named() {
    assert_eq!(merge(&[]).unwrap_err().code(), Code::OciNoPlatformScanned);
    for bad in ["", "[]", "{", "{} {}"] {
        let sbom = PlatformSbom {
            platform: "linux/amd64",
            document: bad.as_bytes(),
        };
        let error = merge(&[sbom]).unwrap_err();
        assert!(matches!(&error, MergeError::Document { platform, .. } if platform == "linux/amd64"));
        assert_eq!(error.code(), Code::OciSbomInvalid);
    }
}

fn document(references: &[u8]) -> String {
    let components: Vec<String> = references
        .iter()
        .map(|reference| format!(r#"{{"bom-ref":"{reference}","name":"n"}}"#))
        .collect();
    format!(
        r#"{{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{}]}}"#,
        components.join(",")
    )
}

proptest! {
    #[test]
    fn no_component_is_lost_or_doubled_and_the_bytes_are_the_same_each_time(
        lists in prop::collection::vec(prop::collection::vec(0u8..12, 0..12), 1..5)
    ) {
        let documents: Vec<(String, String)> = lists
            .iter()
            .enumerate()
            .map(|(i, list)| (format!("linux/p{i}"), document(list)))
            .collect();
        let sboms: Vec<PlatformSbom<'_>> = documents
            .iter()
            .map(|(platform, document)| PlatformSbom { platform, document: document.as_bytes() })
            .collect();
        let bytes = merge(&sboms).unwrap();
        prop_assert_eq!(&bytes, &merge(&sboms).unwrap());
        let merged: Value = serde_json::from_slice(&bytes).unwrap();
        let mut expected: Vec<u8> = Vec::new();
        for reference in lists.iter().flatten() {
            if !expected.contains(reference) {
                expected.push(*reference);
            }
        }
        let components = merged["components"].as_array().unwrap();
        prop_assert_eq!(components.len(), expected.len());
        for (component, reference) in components.iter().zip(expected) {
            prop_assert_eq!(component["bom-ref"].as_str().unwrap(), reference.to_string());
            let want: Vec<String> = lists
                .iter()
                .enumerate()
                .filter(|(_, list)| list.contains(&reference))
                .map(|(i, _)| format!("linux/p{i}"))
                .collect();
            prop_assert_eq!(platforms(component), want.join(","));
        }
    }
}
