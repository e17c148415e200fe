//! The real engines below the service: `ASSAY_ENGINES` names the directory that holds them, `ASSAY_DATABASE` one with a
//! published generation. `cargo xtask test` gives both.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use assay_adapter::engine::cage::Mode;
use assay_adapter::engine::syft::{CatalogJob, Source};
use assay_adapter::engine::{Engines, EnginesConfig};
use assay_adapter::run::RunContext;
use assay_adapter::sbom::cyclonedx::{NormalizedSbom, Origin, normalize};
use assay_adapter::sbom::merge::PlatformsByRef;
use assay_adapter::sbom::report;
use assay_adapter::telemetry::Metrics;
use assay_adapter::vulndb::Store;
use assay_schemas::Code;
use assay_schemas::catalog::PartialCode;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn context() -> RunContext {
    RunContext::with_timeout(Duration::from_mins(2))
}

fn engines(root: &Path) -> Engines {
    engines_with(root, 4 << 30)
}

fn engines_with(root: &Path, max_memory: u64) -> Engines {
    let directory = PathBuf::from(std::env::var_os("ASSAY_ENGINES").expect("ASSAY_ENGINES is set"));
    Engines::new(EnginesConfig {
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_assay-adapter")),
        syft: directory.join("syft"),
        grype: directory.join("grype"),
        path: "/usr/bin:/bin".into(),
        update_environment: Vec::new(),
        scratch: root.to_owned(),
        max_output: 16 << 20,
        max_stderr: 256 << 10,
        max_file: 64 << 20,
        max_memory,
        sandbox: Mode::Required,
        readable: Vec::new(),
        ending: Metrics::default().engine_ending,
        max_database_age: None,
        cache_file: Some(root.join("provenance.json")),
    })
}

fn jar(group: &str, name: &str, version: &str, extra: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let pom = format!("META-INF/maven/{group}/{name}/pom.properties");
    let properties = format!("groupId={group}\nartifactId={name}\nversion={version}\n").into_bytes();
    let manifest = b"Manifest-Version: 1.0\n".to_vec();
    let mut entries = vec![("META-INF/MANIFEST.MF", manifest), (&pom, properties)];
    entries.extend(extra.iter().map(|(path, bytes)| (*path, bytes.clone())));
    for (path, bytes) in entries {
        zip.start_file(path, options).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn log4j() -> Vec<u8> {
    jar("org.apache.logging.log4j", "log4j-core", "2.14.1", &[])
}

fn war() -> Vec<u8> {
    let lib = ("WEB-INF/lib/a.jar", log4j());
    let other = ("WEB-INF/lib/b.jar", jar("org.example", "b", "1.0", &[]));
    jar("org.example", "app", "3", &[lib, other])
}

fn tree(dir: &Path) {
    let tree = dir.join("tree/sub");
    fs::create_dir_all(&tree).unwrap();
    fs::write(
        tree.join("go.mod"),
        "module example.com/x\n\ngo 1.20\n\nrequire github.com/gin-gonic/gin v1.7.0\n",
    )
    .unwrap();
    fs::write(
        dir.join("tree/package.json"),
        r#"{"name":"lodash","version":"4.17.20","license":"MIT"}"#,
    )
    .unwrap();
    fs::write(dir.join("tree/bad.jar"), "PK no jar").unwrap();
}

async fn catalog(
    engines: &Engines,
    source: Source<'_>,
    fill: impl Fn(&Path),
) -> (NormalizedSbom, Vec<PartialCode>) {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let job = CatalogJob {
        source,
        catalogers: &["all"],
    };
    let done = engines.catalog(&job, dir.path(), &context()).await.unwrap();
    let raw = String::from_utf8_lossy(&done.document);
    assert!(
        !raw.contains(dir.path().to_str().unwrap()),
        "the document names the private path"
    );
    let renamed = match source {
        Source::File(name) => BTreeMap::from([(name.to_owned(), String::new())]),
        Source::Directory(_) | Source::Image { .. } => BTreeMap::new(),
    };
    let origin = Origin {
        input_sha256: "00",
        engine_version: "1",
        renamed: &renamed,
    };
    assert!(done.facts.catalogers.len() > 10);
    assert_eq!(done.warnings.other, 0, "{:?}", done.warnings);
    let codes = done.warnings.codes().into_iter().collect();
    (normalize(&done.document, &[], &origin).unwrap(), codes)
}

fn locations(sbom: &NormalizedSbom, name: &str) -> Vec<String> {
    sbom.projection
        .components
        .iter()
        .filter(|c| c.name == name)
        .flat_map(|c| c.locations.clone())
        .collect()
}

#[tokio::test]
async fn documents_are_functions_of_their_input() {
    let root = tempfile::tempdir().unwrap();
    let engines = engines(root.path());
    let jar = |dir: &Path| fs::write(dir.join("artifact.jar"), log4j()).unwrap();
    let war = |dir: &Path| fs::write(dir.join("artifact.war"), war()).unwrap();
    let mut first: Option<Vec<NormalizedSbom>> = None;
    for _ in 0..3 {
        let (jar, _) = catalog(&engines, Source::File("artifact.jar"), jar).await;
        let (war, _) = catalog(&engines, Source::File("artifact.war"), war).await;
        let (tree, codes) = catalog(&engines, Source::Directory("tree"), tree).await;
        assert_eq!(codes, [PartialCode::UnreadableFile]);
        assert_eq!(locations(&jar, "log4j-core"), ["/"]);
        assert_eq!(
            locations(&war, "log4j-core"),
            ["/WEB-INF/lib/a.jar"],
            "{:#?}",
            war.projection
        );
        assert_eq!(locations(&tree, "lodash"), ["/package.json"]);
        let all = vec![jar, war, tree];
        match &first {
            Some(first) => assert!(*first == all, "documents differ between runs"),
            None => first = Some(all),
        }
    }
}

#[tokio::test]
async fn a_match_finds_the_advisory_and_says_where() {
    let root = tempfile::tempdir().unwrap();
    let engines = engines(root.path());
    let store = Store::new(std::env::var_os("ASSAY_DATABASE").expect("ASSAY_DATABASE is set"));
    let generation = store.current().unwrap();
    let provenance = engines.database(&generation.path, &context()).await.unwrap();
    assert_eq!(provenance.revision, provenance.updated_at());

    let war = |dir: &Path| fs::write(dir.join("artifact.war"), war()).unwrap();
    let (sbom, _) = catalog(&engines, Source::File("artifact.war"), war).await;
    let mut first = None;
    for _ in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("sbom.cdx.json"), &sbom.document).unwrap();
        let done = engines
            .match_sbom("sbom.cdx.json", &generation.path, dir.path(), &context())
            .await
            .unwrap();
        let report = report::normalize(&done.document, &PlatformsByRef::new()).unwrap();
        let text = String::from_utf8_lossy(&report.document);
        for private in [dir.path(), root.path()] {
            assert!(!text.contains(private.to_str().unwrap()), "{text}");
        }
        let finding = report
            .findings
            .iter()
            .find(|f| f.advisory_id == "GHSA-jfh8-c2jp-5v3q")
            .expect("the advisory is found");
        assert_eq!(finding.locations, ["/WEB-INF/lib/a.jar"]);
        match &first {
            Some(first) => assert!(*first == report.document, "reports differ between runs"),
            None => first = Some(report.document),
        }
    }
}

/// Enough for an engine to start and to say its version, and too little for it to do its work.
const LITTLE_MEMORY: u64 = 160 << 20;

#[tokio::test]
async fn an_engine_that_runs_out_of_memory_says_so_and_others_do_not_notice() {
    let (poor_root, rich_root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for root in [&poor_root, &rich_root] {
        fs::write(root.path().join("a.jar"), log4j()).unwrap();
    }
    let job = CatalogJob {
        source: Source::File("a.jar"),
        catalogers: &["java-archive-cataloger"],
    };
    let poor = engines_with(poor_root.path(), LITTLE_MEMORY);
    let rich = engines(rich_root.path());
    assert!(poor.versions(&context()).await.is_ok(), "it starts");
    let run = context();
    let (first, second) = tokio::join!(
        poor.catalog(&job, poor_root.path(), &run),
        rich.catalog(&job, rich_root.path(), &run)
    );
    let error = first.unwrap_err();
    assert_eq!(error.code(), Code::ProcessOutOfMemory, "{error}");
    assert!(error.code().retryable());
    let text = error.to_string();
    let (_, figures) = text.split_once("it had up to ").unwrap();
    let (peak, limit) = figures.split_once(" MiB of memory and may have ").unwrap();
    assert_eq!(limit, "160 MiB");
    assert!((1..4096).contains(&peak.parse::<u64>().unwrap()), "{text}");
    second.unwrap();
}
