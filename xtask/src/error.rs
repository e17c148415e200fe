//! What can go wrong in a developer command, in words for the person at the shell.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why a verb ended without doing what its name says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file or directory could not be read, written or moved.
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Something without a path: a socket, a pipe, the terminal.
    #[error("cannot {action}")]
    Io { action: &'static str, source: io::Error },
    /// A program could not be started at all.
    #[error("cannot start {program}")]
    Spawn { program: String, source: io::Error },
    /// A program ran and said no.
    #[error("{program} ended with {status}")]
    Failed { program: String, status: ExitStatus },
    /// The engines cannot be built without a Go toolchain.
    #[error("go is not on PATH; the engines need Go {wanted} or newer (https://go.dev/dl/)")]
    GoMissing { wanted: String },
    /// There is a Go toolchain, but an older one than the engine modules ask for.
    #[error("the engines need Go {wanted} or newer, found is {found} (https://go.dev/dl/)")]
    GoTooOld { wanted: String, found: String },
    /// Programs that CI must have.
    #[error("{0}")]
    ProgramsMissing(String),
    /// A program of a Debian package of the same name is needed.
    #[error("{0} is not installed (apt-get install {0})")]
    NotInstalled(&'static str),
    /// `go.mod` names no version for the module that it is there to pin.
    #[error("{} pins no version of {module}", path.display())]
    PinMissing { path: PathBuf, module: String },
    /// Syft inside Grype and Syft beside it must read alike.
    #[error("the engine modules pin different versions of Syft: {syft} by itself, {grype} inside Grype")]
    PinsDiffer { syft: String, grype: String },
    /// A built engine does not report the version that was pinned.
    #[error("{engine} reports version {reported:?}, pinned is {pinned}")]
    EngineVersion {
        engine: &'static str,
        pinned: String,
        reported: String,
    },
    /// The adapter died or stayed unready.
    #[error("the adapter was not ready after {seconds} s ({last})")]
    NotReady { seconds: u64, last: String },
    /// The adapter ended by itself.
    #[error("the adapter ended with {status}")]
    AdapterEnded { status: ExitStatus },
    /// An HTTP exchange broke before a response was there.
    #[error("no answer from {url}")]
    Http { url: String, source: Box<ureq::Error> },
    /// The adapter answered, but not as asked.
    #[error("{url} answered {status}: {body}")]
    Status { url: String, status: u16, body: String },
    /// A document did not have the expected form.
    #[error("{what} is not as expected")]
    Json { what: String, source: serde_json::Error },
    /// Same, where there is no parser to quote.
    #[error("{what}: {why}")]
    Unexpected { what: &'static str, why: String },
    /// The fixtures have no sample that can be shown.
    #[error("no sample artifact of type {0} among the fixtures")]
    SampleMissing(&'static str),
    /// The demo's whole point is a finding.
    #[error("the sample artifacts gave no finding")]
    NoFinding,
    /// Some tests failed, or a chosen suite ran none; the closing line was printed.
    #[error("the tests did not pass")]
    TestsFailed,
    /// Lint found something; it was printed.
    #[error("{0} rule(s) broken")]
    Untidy(usize),
    /// A verb or a part of it that the project does not have yet.
    #[error("{0} is not built yet")]
    NotBuiltYet(String),
    /// The handed corpus is not where it was looked for.
    #[error("no corpus runner in {}; give its folder with --corpus DIR", .0.display())]
    CorpusMissing(PathBuf),
    /// Counting branches, which steers the fuzzer, is not in a stable compiler.
    #[error("no nightly toolchain is installed: `rustup toolchain install nightly`")]
    NightlyMissing,
    /// Mutation tests are made by a program of their own.
    #[error("cargo-mutants is not installed: `cargo install cargo-mutants`")]
    MutantsMissing,
    /// A credential is needed to talk to a running adapter.
    #[error("set {0} to the credential of the running adapter")]
    CredentialMissing(&'static str),
}

/// `map_err` for file operations: `fs::read(p).map_err(on("read", p))?`.
pub(crate) fn on(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}

/// `map_err` for sockets and pipes.
pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { action, source }
}
