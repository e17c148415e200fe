//! How the states of the golden exchanges are brought about, from outside and with nothing but what an operator or a
//! failing host can do.

use crate::fake::{FOREVER, FakeEngines};
use crate::support::{CREDENTIAL, Setup, TestAdapter, database, eventually, executable, read_reply, run_id};
use assay_fixtures::fake_engine::{Action, Script};
use assay_schemas::vectors::Given;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// States of the engines that are a matter of what they do when they are called.
pub(crate) const ENGINE_BEHAVIOUR: &[Given] = &[
    Given::EngineExitsNonzero,
    Given::EngineExitsBySignal,
    Given::EngineOutOfMemory,
    Given::EngineDiskFull,
    Given::EngineFloodsStdout,
    Given::EngineFloodsStderr,
    Given::EngineStalls,
    Given::EngineWritesGarbage,
    Given::EngineFindsNothing,
    Given::DatabaseExpires,
];

/// What the engines do in a state of [`ENGINE_BEHAVIOUR`].
pub(crate) fn behaviour(given: Given) -> Vec<Action> {
    let says = |text: &str| Action::Stderr(format!("{text}\n"));
    match given {
        Given::EngineExitsNonzero => vec![Action::Exit(1)],
        Given::EngineExitsBySignal => vec![Action::Signal("SIGKILL".to_owned())],
        Given::EngineOutOfMemory => {
            vec![says("fatal error: runtime: out of memory"), Action::Exit(2)]
        }
        Given::EngineDiskFull => {
            vec![says("write /somewhere: no space left on device"), Action::Exit(1)]
        }
        Given::EngineFloodsStdout => vec![Action::FloodStdout((16 << 20) + 1)],
        Given::EngineFloodsStderr => vec![Action::FloodStderr((256 << 10) + 1)],
        Given::EngineStalls => vec![FOREVER],
        Given::EngineWritesGarbage => vec![Action::Stdout("no JSON at all".to_owned())],
        Given::EngineFindsNothing => vec![Action::Default],
        Given::DatabaseExpires => vec![
            says(
                "failed to load vulnerability db: the vulnerability database was built 2 weeks ago (max allowed age is 5 days)",
            ),
            Action::Exit(1),
        ],
        other => panic!("{other:?} is no behaviour of an engine"),
    }
}

/// A script whose database status is this document.
pub(crate) fn database_status(document: &str) -> Script {
    Script::default().on("db status", [Action::Stdout(document.to_owned())])
}

/// A copy of the real database that may be damaged.
pub(crate) fn copied_database() -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(&database(), copy.path());
    copy
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Damages every database file in place; size and time stay, as when a disk fails.
pub(crate) fn damage(database: &Path) {
    for generation in std::fs::read_dir(database.join("generations")).unwrap() {
        let path = generation.unwrap().path().join("6/vulnerability.db");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut file = std::fs::File::options().write(true).open(path).unwrap();
        let metadata = file.metadata().unwrap();
        file.write_all(&vec![b'x'; usize::try_from(metadata.len()).unwrap()])
            .unwrap();
        file.set_modified(metadata.modified().unwrap()).unwrap();
    }
}

/// Puts the adapter's executable into `directory`, so that what it starts there can be exchanged.
pub(crate) fn own_executable(directory: &Path) -> PathBuf {
    let own = directory.join("assay-adapter");
    if std::fs::hard_link(executable(), &own).is_err() {
        std::fs::copy(executable(), &own).unwrap();
    }
    own
}

/// Exchanges the program that isolates and becomes each engine for one on whose host there are no sessions.
pub(crate) fn deny_sessions(executable: &Path) {
    const DENIED: &str =
        "#!/bin/sh\necho 'assay-launcher: isolation: setsid: EPERM: Operation not permitted' >&2\nexit 126\n";
    std::fs::remove_file(executable).unwrap();
    std::fs::write(executable, DENIED).unwrap();
    std::fs::set_permissions(executable, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A command that becomes the adapter, which then cannot write a byte to any file. It must have learnt versions and
/// provenance before.
pub(crate) const WITHOUT_DISK: &[&str] = &["/bin/sh", "-c", r#"trap "" XFSZ; ulimit -f 0; exec "$@""#, "sh"];

/// A command that becomes the adapter, which then can write files of at most 512 bytes. It must have learnt versions
/// and provenance before.
pub(crate) const WITH_LITTLE_DISK: &[&str] =
    &["/bin/sh", "-c", r#"trap "" XFSZ; ulimit -f 1; exec "$@""#, "sh"];

/// Removes what the run in `scratch` has stored so far, as a cleaner of old files does; waits until there is something.
pub(crate) fn remove_stored(scratch: &Path) {
    let stored = || {
        let runs = std::fs::read_dir(scratch).unwrap().flatten();
        let files = runs
            .filter_map(|run| std::fs::read_dir(run.path()).ok())
            .flatten()
            .flatten();
        files
            .map(|file| file.path())
            .find(|path| path.is_file() && !path.ends_with(".assay-run"))
    };
    eventually("a stored input", || stored().is_some());
    std::fs::remove_file(stored().unwrap()).unwrap();
}

/// A work directory below `root` that is so deep that an input has a place in it and a Conda index has none.
pub(crate) fn too_deep_for_conda(root: &Path) -> PathBuf {
    // Linux takes paths of at most 4095 bytes; `catalog-123456/layout/info/index.json`, which is laid out before the
    // package is recognised, still fits and `catalog-123456/layout/conda-meta/package.json` does not.
    const DEPTH: usize = 4055;
    let mut deep = root.to_str().unwrap().to_owned();
    while deep.len() < DEPTH {
        // A component has at most 255 bytes.
        let left = DEPTH - deep.len() - 1;
        let component = if left > 255 { 200 } else { left };
        deep.push('/');
        deep.push_str(&"d".repeat(component));
    }
    assert_eq!(deep.len(), DEPTH);
    std::fs::create_dir_all(&deep).unwrap();
    PathBuf::from(deep)
}

/// Settings with which [`Occupier`]s fit into a scratch budget of one mebibyte and requests with default limits do not.
pub(crate) fn scratch_small(setup: Setup) -> Setup {
    // A run reserves three times the output, and a match once more for its SBOM.
    setup
        .with("max_scratch_bytes", "1MiB")
        .with("max_output_bytes", "300KiB")
        .with("max_stderr_bytes", "64KiB")
}

/// One slot and one place in the queue, with all patience.
pub(crate) fn one_slot(setup: Setup) -> Setup {
    setup
        .with("max_concurrent_scans", "1")
        .with("max_queued_scans", "1")
        .with("admission_timeout", "1h")
}

/// A run of small limits that stays until it is ended.
pub(crate) struct Occupier {
    stream: TcpStream,
    run: String,
}

impl Occupier {
    /// Sends the request and does not wait for anything.
    fn send(adapter: &TestAdapter, run: &str) -> Self {
        const BODY: &[u8] = b"occupied";
        let request = format!(
            "POST /v1/catalog HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-KKRepo-Scanner-Credential: {CREDENTIAL}\r\n\
             X-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\nX-KKRepo-Expected-SHA256: {}\r\n\
             X-KKRepo-Expected-Size: {size}\r\nX-KKRepo-Max-Input-Bytes: 1024\r\n\
             X-KKRepo-Max-Uncompressed-Bytes: 1024\r\nContent-Length: {size}\r\n\r\n",
            hex::encode(Sha256::digest(BODY)),
            size = BODY.len(),
        );
        let mut stream = adapter.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream.write_all(BODY).unwrap();
        Self {
            stream,
            run: run.to_owned(),
        }
    }

    /// A run whose engine works, and that stays at it.
    pub(crate) fn running(adapter: &TestAdapter, engines: &FakeEngines, run: &str) -> Self {
        engines.scans_stall();
        let occupier = Self::send(adapter, run);
        engines.recorded();
        occupier
    }

    /// A run that waits for a slot. All slots are taken, and nobody else waits.
    pub(crate) fn queued(adapter: &TestAdapter) -> Self {
        let occupier = Self::send(adapter, &run_id());
        wait_queued(adapter);
        occupier
    }

    /// Cancels the run, if that has not been done, and waits for its end.
    pub(crate) fn end(mut self, adapter: &TestAdapter) {
        adapter.cancel(&self.run);
        assert_eq!(read_reply(&mut self.stream).status, 503);
    }
}

/// Waits until a run waits for a slot.
pub(crate) fn wait_queued(adapter: &TestAdapter) {
    eventually("a run that waits for a slot", || {
        adapter.metric("kkrepo_scanner_queued") >= 1.0
    });
}
