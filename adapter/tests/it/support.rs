//! A real adapter process on a free loopback port, and clients for it.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The credential of every test adapter.
pub(crate) const CREDENTIAL: &str = "test-credential-6f1c";

/// Directory with the real engines, from `ASSAY_ENGINES`.
///
/// # Panics
/// When it is not set: a suite that needs them must not look green without them.
pub(crate) fn engines() -> PathBuf {
    required("ASSAY_ENGINES", "a directory with the executables syft and grype")
}

/// Directory with a published database generation, from `ASSAY_DATABASE`.
///
/// # Panics
/// As [`engines`].
pub(crate) fn database() -> PathBuf {
    required("ASSAY_DATABASE", "a vulnerability database directory")
}

fn required(name: &str, what: &str) -> PathBuf {
    let value = std::env::var_os(name)
        .unwrap_or_else(|| panic!("{name} must name {what}: run these tests with `cargo xtask test`"));
    std::path::absolute(value).unwrap()
}

/// How a test adapter is started.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    settings: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    wrapper: Vec<OsString>,
    executable: PathBuf,
}

/// The adapter's program with an environment that no other process decides.
pub(crate) fn program() -> Command {
    wrapped_program(&[], executable())
}

/// The adapter's executable.
pub(crate) fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_assay-adapter"))
}

fn wrapped_program(wrapper: &[OsString], adapter: &Path) -> Command {
    let mut command = match wrapper {
        [] => Command::new(adapter),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(adapter);
            command
        }
    };
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null());
    command
}

impl Setup {
    /// Real engines and the offline database.
    pub(crate) fn real() -> Self {
        let engines = engines();
        Self::of(&engines.join("syft"), &engines.join("grype"), &database())
    }

    /// No usable engine and no database: enough for everything that is decided before a scan.
    pub(crate) fn bare() -> Self {
        let nowhere = Path::new("/nonexistent");
        Self::of(
            &nowhere.join("syft"),
            &nowhere.join("grype"),
            &nowhere.join("database"),
        )
    }

    /// These engines and this database directory.
    pub(crate) fn of(syft: &Path, grype: &Path, database: &Path) -> Self {
        Self {
            settings: Vec::new(),
            environment: Vec::new(),
            wrapper: Vec::new(),
            executable: executable().to_owned(),
        }
        .with("syft_executable", syft.to_str().unwrap())
        .with("grype_executable", grype.to_str().unwrap())
        .with("db_directory", database.to_str().unwrap())
    }

    /// Adds a variable to the adapter's environment.
    #[must_use]
    pub(crate) fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the adapter through this command, which becomes it.
    #[must_use]
    pub(crate) fn through(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// Starts the adapter from another place.
    #[must_use]
    pub(crate) fn from(mut self, executable: &Path) -> Self {
        executable.clone_into(&mut self.executable);
        self
    }

    /// The settings as arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        self.settings
            .iter()
            .flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")])
            .collect()
    }

    /// Adds or replaces a setting.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.retain(|(key, _)| key != name);
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Starts the adapter and waits until it listens.
    pub(crate) fn start(&self) -> TestAdapter {
        let work = tempfile::tempdir().unwrap();
        let mut command = wrapped_program(&self.wrapper, &self.executable);
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("KKREPO_SCANNER_SERVICE_CREDENTIAL", CREDENTIAL)
            .env("KKREPO_SCANNER_WORK_DIRECTORY", work.path().join("scratch"))
            .env("KKREPO_SCANNER_LOG_LEVEL", "debug")
            .envs(self.environment.iter().cloned())
            .args(self.arguments())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let log = Arc::new(Mutex::new(String::new()));
        let address = loop {
            let mut line = String::new();
            assert_ne!(
                lines.read_line(&mut line).unwrap(),
                0,
                "ended at start: {}",
                log.lock().unwrap()
            );
            log.lock().unwrap().push_str(&line);
            let fields: Value = serde_json::from_str(&line).unwrap_or_default();
            if fields["message"] == "listening" {
                break fields["address"].as_str().unwrap().parse().unwrap();
            }
        };
        std::thread::spawn({
            let log = Arc::clone(&log);
            move || {
                for line in lines.lines().map_while(Result::ok) {
                    let mut log = log.lock().unwrap();
                    log.push_str(&line);
                    log.push('\n');
                }
            }
        });
        TestAdapter {
            child,
            address,
            work,
            log,
        }
    }
}

/// A running adapter; killed on drop.
pub(crate) struct TestAdapter {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    work: TempDir,
    log: Arc<Mutex<String>>,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(crate) struct Reply {
    /// HTTP status.
    pub(crate) status: u16,
    /// Response headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Body bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// The error code of the body.
    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// One response header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

impl TestAdapter {
    /// `GET` with the credential.
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[("x-kkrepo-scanner-credential", CREDENTIAL)], &[])
    }

    /// Any request on a connection of its own, with a `Content-Length`.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.address
        );
        for (name, value) in headers {
            request.extend([*name, ": ", *value, "\r\n"]);
        }
        if !body.is_empty() || method == "POST" {
            request.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        request.push_str("\r\n");
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        // A refused body may end in a reset; the answer still counts.
        let _ = stream.write_all(body);
        read_reply(&mut stream)
    }

    /// A raw connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
        stream
    }

    /// `POST /v1/catalog` with the right head for `body`; `change` replaces headers, an empty value removes one.
    pub(crate) fn catalog(&self, artifact_type: &str, body: &[u8], change: &[(&str, &str)]) -> Reply {
        let (sha256, size) = (hex::encode(Sha256::digest(body)), body.len().to_string());
        let run = run_id();
        let base = [
            ("x-kkrepo-scanner-credential", CREDENTIAL),
            ("x-kkrepo-api-version", "v1"),
            ("x-kkrepo-run-id", run.as_str()),
            ("x-kkrepo-expected-sha256", sha256.as_str()),
            ("x-kkrepo-expected-size", size.as_str()),
            ("x-kkrepo-artifact-type", artifact_type),
            ("content-type", "application/octet-stream"),
        ];
        self.send("POST", "/v1/catalog", &changed(&base, change), body)
    }

    /// `POST /v1/match` with the right head for `sbom`; `change` as for [`TestAdapter::catalog`].
    pub(crate) fn match_sbom(&self, sbom: &[u8], change: &[(&str, &str)]) -> Reply {
        let sha256 = hex::encode(Sha256::digest(sbom));
        let run = run_id();
        let base = [
            ("x-kkrepo-scanner-credential", CREDENTIAL),
            ("x-kkrepo-api-version", "v1"),
            ("x-kkrepo-run-id", run.as_str()),
            ("x-kkrepo-sbom-sha256", sha256.as_str()),
            ("content-type", "application/vnd.cyclonedx+json"),
        ];
        self.send("POST", "/v1/match", &changed(&base, change), sbom)
    }

    /// Cancels a run; whether one was there.
    pub(crate) fn cancel(&self, run: &str) -> bool {
        let headers = [
            ("x-kkrepo-scanner-credential", CREDENTIAL),
            ("x-kkrepo-api-version", "v1"),
        ];
        let reply = self.send("POST", &format!("/v1/runs/{run}/cancel"), &headers, &[]);
        reply.json()["cancelled"] == true
    }

    /// Waits until the readiness endpoint says `ready`.
    pub(crate) fn wait_ready(&self) {
        eventually("ready", || self.get("/v1/readiness").json()["ready"] == true);
    }

    /// The private scratch directory.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.work.path().join("scratch")
    }

    /// Names of the run directories that exist now.
    pub(crate) fn run_directories(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.scratch()).into_iter().flatten().flatten();
        entries
            .filter(|e| e.path().is_dir())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// Everything that was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// One sample of the metrics endpoint.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        self.metrics().sample(name)
    }

    /// All samples of the metrics endpoint, of one moment.
    pub(crate) fn metrics(&self) -> Metrics {
        let reply = self.send("GET", "/actuator/prometheus", &[], &[]);
        Metrics(String::from_utf8(reply.bytes).unwrap())
    }

    /// Process id, for /proc.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Sends a signal and waits for the exit code.
    pub(crate) fn stop(self, signal: nix::sys::signal::Signal) -> Option<i32> {
        self.signal(signal);
        self.exit_code()
    }

    /// Waits for the end by itself.
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// What the metrics endpoint said.
pub(crate) struct Metrics(String);

impl Metrics {
    /// One sample that is a whole number, by its name and labels.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap()
    }

    /// One sample, by its name and labels.
    pub(crate) fn sample(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap()
    }

    fn text(&self, name: &str) -> &str {
        let mut lines = self.0.lines();
        let line = lines.find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("no {name} in\n{}", self.0))
            .rsplit(' ')
            .next()
            .unwrap()
    }
}

impl Drop for TestAdapter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn changed<'a>(base: &[(&'a str, &'a str)], change: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut headers: Vec<_> = base
        .iter()
        .copied()
        .filter(|(name, _)| change.iter().all(|(changed, _)| changed != name))
        .collect();
    headers.extend(change.iter().copied().filter(|(_, value)| !value.is_empty()));
    headers
}

/// A run id that no other test uses.
pub(crate) fn run_id() -> String {
    format!("it-{}", uuid::Uuid::new_v4())
}

/// Reads one answer to the end of the connection.
pub(crate) fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert!(!bytes.is_empty(), "no answer: {error}");
    }
    parse_reply(&bytes)
}

/// Parses one answer with a `Content-Length`.
pub(crate) fn parse_reply(bytes: &[u8]) -> Reply {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(bytes).unwrap() else {
        panic!("an incomplete answer: {}", String::from_utf8_lossy(bytes));
    };
    let headers: Vec<_> = response
        .headers
        .iter()
        .map(|h| {
            (
                h.name.to_ascii_lowercase(),
                String::from_utf8_lossy(h.value).into_owned(),
            )
        })
        .collect();
    Reply {
        status: response.code.unwrap(),
        headers,
        bytes: bytes[head..].to_vec(),
    }
}

/// Waits for a condition, not for time.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "not within 30 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether this process runs; a zombie does not.
pub(crate) fn is_running(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}
