//! Real registries as processes of a test, each on a port of its own.

use super::tls::{Authority, TokenIssuer};
use assay_fixtures::oci::{self, Content};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running registry; killed on drop.
pub(crate) struct Registry {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Registry {
    /// go-containerregistry's server: plain HTTP, no token, hardly a check of what it is given.
    pub(crate) fn crane() -> Self {
        let mut command = Command::new(services().join("crane"));
        command.args(["registry", "serve", "--address", "127.0.0.1:0"]);
        Self::start(command, "serving on port ")
    }

    /// A crane registry with this content in repository `app`.
    pub(crate) fn with(content: &Content) -> Self {
        let registry = Self::crane();
        registry.push(content, "app");
        registry
    }

    /// Debian's docker-registry with this configuration for its `http` and `auth`.
    fn docker(directory: &Path, name: &str, more: &str) -> Self {
        let configuration = directory.join(name);
        let text = format!(
            "version: 0.1\nlog: {{level: info}}\nvalidation: {{disabled: true}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\n{more}",
            directory.join("storage").display()
        );
        std::fs::write(&configuration, text).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(configuration);
        Self::start(command, "listening on ")
    }

    /// Starts a server and reads from its log where it listens.
    fn start(mut command: Command, announcement: &str) -> Self {
        let name = command.get_program().to_owned();
        let started = command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = started
            .unwrap_or_else(|error| panic!("{}: {error}; see `cargo xtask services list`", name.display()));
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(
                lines.read_line(&mut line).unwrap(),
                0,
                "{} ended: {log}",
                name.display()
            );
            if let Some((_, rest)) = line.split_once(announcement) {
                let digits: String = rest
                    .chars()
                    .take_while(|c| c.is_ascii_digit() || ".:".contains(*c))
                    .collect();
                let port = digits.rsplit(':').next().unwrap().parse().unwrap();
                break SocketAddr::from(([127, 0, 0, 1], port));
            }
            log.push_str(&line);
        };
        // Nobody reads on, and nobody may block on a full pipe.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address }
    }

    /// Scheme, host and port for a client without TLS.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Runs crane, which is told this registry instead of `REGISTRY`; gives what it prints.
    pub(crate) fn crane_does(&self, arguments: &str) -> String {
        let arguments = arguments.replace("REGISTRY", &self.address.to_string());
        let output = Command::new(services().join("crane"))
            .args(arguments.split(' '))
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "crane {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Stores everything in a repository.
    pub(crate) fn push(&self, content: &Content, repository: &str) {
        oci::push(content, &self.url(), repository).unwrap();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// docker-registry as a host runs it: TLS, and a token for everything.
pub(crate) struct Secured {
    /// The server.
    pub(crate) registry: Registry,
    /// Whose certificate must be trusted.
    pub(crate) authority: Authority,
    /// Who gives tokens that it takes.
    pub(crate) issuer: TokenIssuer,
    directory: TempDir,
}

impl Secured {
    /// With this content in these repositories.
    ///
    /// The content is pushed to a second server over the same storage, which asks for nothing.
    pub(crate) fn with(content: &[(&str, &Content)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let open = Registry::docker(path, "open.yml", "http: {addr: \"127.0.0.1:0\"}\n");
        for (repository, content) in content {
            open.push(content, repository);
        }
        let authority = Authority::new();
        let issuer = TokenIssuer::new();
        let (certificate, key) = authority.server("localhost");
        let file = |name: &str, text: &str| -> PathBuf {
            let path = path.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let more = format!(
            "http:\n  addr: \"127.0.0.1:0\"\n  tls: {{certificate: {}, key: {}}}\n\
             auth:\n  token:\n    realm: https://localhost/token\n    service: {}\n    issuer: {}\n    rootcertbundle: {}\n",
            file("server.crt", &certificate).display(),
            file("server.key", &key).display(),
            TokenIssuer::SERVICE,
            TokenIssuer::ISSUER,
            file("tokens.crt", &issuer.certificate()).display(),
        );
        let registry = Registry::docker(path, "secured.yml", &more);
        file("authority.crt", &authority.certificate());
        Self {
            registry,
            authority,
            issuer,
            directory,
        }
    }

    /// Scheme, host and port; the certificate is for this name.
    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.registry.address.port())
    }

    /// A file with the certificate that must be trusted.
    pub(crate) fn authority_file(&self) -> PathBuf {
        self.directory.path().join("authority.crt")
    }
}

/// Directory with the services that are built, from `ASSAY_SERVICES`.
///
/// # Panics
/// When it is not set: a suite that needs them must not look green without them.
fn services() -> PathBuf {
    let value = std::env::var_os("ASSAY_SERVICES")
        .expect("ASSAY_SERVICES must name a directory with crane: run these tests with `cargo xtask test`");
    std::path::absolute(value).unwrap()
}
