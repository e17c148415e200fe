//! `MANIFEST.json` of an Ansible collection. No purl type is registered for collections, so it is `generic`.

use super::{ManifestError, json};
use crate::recognition::identity::{Coordinates, Ecosystem};
use serde::Deserialize;

#[derive(Deserialize)]
struct Manifest {
    collection_info: Collection,
}

#[derive(Deserialize)]
struct Collection {
    namespace: Option<String>,
    name: Option<String>,
    version: Option<String>,
}

/// Coordinates of a collection: the name is `namespace.name`.
pub fn ansible(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let info = json::<Manifest>(bytes)?.collection_info;
    let (Some(namespace), Some(name)) = (info.namespace, info.name) else {
        return Err(ManifestError::MissingField { field: "name" });
    };
    Coordinates::new(
        Ecosystem::Ansible,
        Some(&format!("{namespace}.{name}")),
        info.version.as_deref(),
    )
}

#[cfg(test)]
mod tests {
    use super::ansible;

    #[test]
    fn table() {
        let cases: [(&[u8], Option<&str>); 3] = [
            (
                br#"{"collection_info":{"namespace":"community","name":"general","version":"1.0.0"}}"#,
                Some("pkg:generic/community.general@1.0.0"),
            ),
            (
                br#"{"collection_info":{"name":"general","version":"1.0.0"}}"#,
                None,
            ),
            (br#"{"a":1}"#, None),
        ];
        for (bytes, want) in cases {
            let got = ansible(bytes).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
