//! Syft's command line, configuration and side output. The configuration is JSON, which is YAML too.

use super::warnings::Warnings;
use assay_schemas::catalog::PartialCode;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// Names of the files that a run writes beside what it scans.
pub mod files {
    /// Generated configuration.
    pub const CONFIG: &str = "engine-config.json";
    /// Template of the side output.
    pub const TEMPLATE: &str = "engine-facts.tmpl";
    /// Side output: one JSON object a line.
    pub const FACTS: &str = "engine-facts.jsonl";
}

/// What to scan. Names are relative to the run's directory, so that no document can depend on where that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<'a> {
    /// One file, under its name from the closed list.
    File(&'a str),
    /// A directory; locations are relative to it.
    Directory(&'a str),
    /// An OCI image layout that holds one image.
    Image {
        /// Its directory.
        layout: &'a str,
        /// Largest layer that is read, bytes after decompression.
        max_layer_bytes: u64,
        /// Paths inside the image that are not read.
        withheld: &'a BTreeSet<String>,
    },
}

/// One catalog call.
#[derive(Debug, Clone, Copy)]
pub struct CatalogJob<'a> {
    /// What to scan.
    pub source: Source<'a>,
    /// Cataloguer names or tags of Syft that replace its default set.
    pub catalogers: &'a [&'a str],
}

/// What a private run directory must hold before the call: name and content.
pub fn setup(job: &CatalogJob<'_>) -> Vec<(&'static str, String)> {
    vec![
        (files::CONFIG, config(job)),
        (files::TEMPLATE, TEMPLATE.to_owned()),
    ]
}

/// The arguments, run in that directory.
pub fn arguments(job: &CatalogJob<'_>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["scan".into()];
    match job.source {
        Source::File(name) => args.push(format!("file:{name}").into()),
        // Nothing above the tree is ever followed.
        Source::Directory(name) => {
            args.extend([format!("dir:{name}").into(), "--base-path".into(), name.into()]);
        }
        Source::Image { layout, .. } => args.push(format!("oci-dir:{layout}").into()),
    }
    args.extend([
        "--config".into(),
        files::CONFIG.into(),
        "--output".into(),
        "cyclonedx-json".into(),
        "--output".into(),
        format!("template={}", files::FACTS).into(),
    ]);
    args
}

/// Arguments of the version helper.
pub fn version_arguments() -> Vec<OsString> {
    ["version", "--output", "json"].map(OsString::from).to_vec()
}

/// Variables that Syft gets besides the common ones.
pub const ENVIRONMENT: &[(&str, &str)] = &[("SYFT_CHECK_FOR_APP_UPDATE", "false")];

/// Everything that costs time or reaches out and that no document needs is off.
fn config(job: &CatalogJob<'_>) -> String {
    let (max_layer_size, exclude) = match job.source {
        Source::Image {
            max_layer_bytes,
            withheld,
            ..
        } => (
            format!("{max_layer_bytes}B"),
            withheld.iter().map(|path| glob_of(path)).collect(),
        ),
        Source::File(_) | Source::Directory(_) => (String::new(), Vec::new()),
    };
    json!({
        "exclude": exclude,
        "check-for-app-update": false,
        "log": { "quiet": false, "level": "warn", "file": "" },
        "default-catalogers": job.catalogers,
        // Digests and metadata of files would be components without a package.
        "select-catalogers": ["-file"],
        "file": { "metadata": { "selection": "none" } },
        "relationships": { "package-file-ownership": false },
        // A constant, so that the document does not name the private path.
        "source": {
            "name": "artifact", "version": "-", "file": { "digests": [] },
            // Where images may come from is said by the source alone.
            "image": { "default-pull-source": "", "max-layer-size": max_layer_size },
        },
        "format": { "pretty": false, "template": { "path": files::TEMPLATE } },
        "unknowns": { "executables-without-packages": false, "unexpanded-archives": false },
        "cache": { "dir": "", "ttl": "0" },
        "enrich": [],
        "golang": {
            "search-local-mod-cache-licenses": false, "search-local-vendor-licenses": false,
            "search-remote-licenses": false, "use-packages-lib": false,
        },
        "java": { "use-network": false, "use-maven-local-repository": false },
        "javascript": { "search-remote-licenses": false },
        "python": { "search-remote-licenses": false },
        "cpp": { "vcpkg-allow-git-clone": false },
    })
    .to_string()
}

/// The glob that means exactly this path inside an image.
fn glob_of(path: &str) -> String {
    let mut glob = String::from("/");
    for character in path.trim_start_matches('/').chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        glob.push(character);
    }
    glob
}

/// CycloneDX has no place for what a cataloguer could not read, nor for the names of those that ran. Syft writes any
/// number of outputs in one process, so this comes from the same run.
const TEMPLATE: &str = r#"{{- range .files}}{{- if .unknowns}}{{ dict "path" .location.path "unknowns" .unknowns | toJson }}
{{ end}}{{end -}}
{{ dict "distro" .distro "catalogers" .descriptor.configuration.catalogers.used | toJson }}
"#;

/// Facts of a catalog run that its document does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogFacts {
    /// Cataloguers that ran, sorted.
    pub catalogers: Vec<String>,
    /// Distribution of operating system packages, `id` and version with a blank between, when the tree names one.
    pub distribution: Option<String>,
    /// Files that a cataloguer could not read, and why; sorted.
    pub unreadable: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Unknowns {
        path: String,
        unknowns: Vec<String>,
    },
    Summary {
        #[serde(default)]
        distro: Option<Distro>,
        catalogers: Option<Vec<String>>,
    },
}

#[derive(Deserialize)]
struct Distro {
    #[serde(default)]
    id: String,
    #[serde(default, rename = "versionID")]
    version_id: String,
}

/// Reads the side output; `None` when it is not what the template writes.
pub fn parse_facts(text: &str) -> Option<CatalogFacts> {
    let mut facts = CatalogFacts::default();
    let mut has_summary = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line).ok()? {
            Line::Unknowns { path, unknowns } => {
                facts.unreadable.insert(path, unknowns.join("; "));
            }
            Line::Summary { distro, catalogers } => {
                has_summary = true;
                facts.catalogers = catalogers.unwrap_or_default();
                facts.catalogers.sort_unstable();
                facts.distribution = distro
                    .filter(|distro| !distro.id.is_empty())
                    .map(|distro| format!("{} {}", distro.id, distro.version_id).trim().to_owned());
            }
        }
    }
    has_summary.then_some(facts)
}

/// Adds what could not be read to the warnings.
pub fn add_unreadable(facts: &CatalogFacts, warnings: &mut Warnings) {
    for (path, why) in &facts.unreadable {
        warnings.add(PartialCode::UnreadableFile, &format!("{path}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::{CatalogJob, Source, add_unreadable, arguments, config, parse_facts, setup};
    use crate::engine::Warnings;
    use assay_schemas::catalog::PartialCode;
    use std::collections::BTreeSet;

    fn job(source: Source<'_>) -> CatalogJob<'_> {
        CatalogJob {
            source,
            catalogers: &["java", "sbom-cataloger"],
        }
    }

    #[test]
    fn command_lines_are_fixed() {
        let show = |source| {
            arguments(&job(source))
                .into_iter()
                .map(|arg| arg.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            show(Source::File("artifact.jar")),
            "scan file:artifact.jar --config engine-config.json --output cyclonedx-json --output template=engine-facts.jsonl"
        );
        assert_eq!(
            show(Source::Directory("tree")),
            "scan dir:tree --base-path tree --config engine-config.json --output cyclonedx-json --output template=engine-facts.jsonl"
        );
        let withheld = BTreeSet::from(["opt/b[a]r*.zip".to_owned()]);
        let image = Source::Image {
            layout: "layout",
            max_layer_bytes: 7,
            withheld: &withheld,
        };
        assert_eq!(
            show(image),
            "scan oci-dir:layout --config engine-config.json --output cyclonedx-json --output template=engine-facts.jsonl"
        );
        let config: serde_json::Value = serde_json::from_str(&config(&job(image))).unwrap();
        assert_eq!(config["source"]["image"]["max-layer-size"], "7B");
        assert_eq!(config["exclude"], serde_json::json!([r"/opt/b\[a\]r\*.zip"]));
    }

    #[test]
    fn the_configuration_reaches_nowhere() {
        let config: serde_json::Value =
            serde_json::from_str(&config(&job(Source::File("artifact")))).unwrap();
        assert_eq!(
            config["default-catalogers"],
            serde_json::json!(["java", "sbom-cataloger"])
        );
        for (section, key) in [
            ("golang", "search-remote-licenses"),
            ("java", "use-network"),
            ("javascript", "search-remote-licenses"),
            ("python", "search-remote-licenses"),
            ("cpp", "vcpkg-allow-git-clone"),
        ] {
            assert_eq!(config[section][key], false, "{section}.{key}");
        }
        assert_eq!(config["check-for-app-update"], false);
        assert_eq!(setup(&job(Source::File("artifact"))).len(), 2);
    }

    #[test]
    fn the_side_output_is_read() {
        let facts = parse_facts(
            "{\"path\":\"/b\",\"unknowns\":[\"c: bad\",\"d: worse\"]}\n{\"catalogers\":[\"z\",\"a\"],\"distro\":{\"id\":\"debian\",\"versionID\":\"12\"}}\n",
        )
        .unwrap();
        assert_eq!(facts.catalogers, ["a", "z"]);
        assert_eq!(facts.distribution.as_deref(), Some("debian 12"));
        let mut warnings = Warnings::default();
        add_unreadable(&facts, &mut warnings);
        assert_eq!(warnings.reasons[0].code, PartialCode::UnreadableFile);
        assert_eq!(warnings.reasons[0].detail, "/b: c: bad; d: worse");

        let facts = parse_facts("{\"catalogers\":null,\"distro\":{}}").unwrap();
        assert_eq!(facts, super::CatalogFacts::default());
        for bad in ["", "{}x", "{\"path\":\"/b\",\"unknowns\":[]}", "[]"] {
            assert_eq!(parse_facts(bad), None, "{bad}");
        }
    }
}
