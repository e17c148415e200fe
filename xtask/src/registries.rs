//! The registries that image tests and benchmarks start: one built from its pin, one from the distribution.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::error::{Error, io, on};
use crate::go_program::Program;
use crate::process;
use crate::workspace::Workspace;

/// The variable by which tests find [`Registries::directory`].
pub(crate) const DIRECTORY_VARIABLE: &str = "ASSAY_SERVICES";

/// go-containerregistry's server, as `crane registry serve`: plain HTTP, keeps what it is given, checks little of it.
const CRANE: Program = Program {
    name: "crane",
    folder: "services/crane",
    module: "github.com/google/go-containerregistry",
    version_variable: "github.com/google/go-containerregistry/cmd/crane/cmd.Version",
    version: reported_version,
};

/// Debian package and program of the registry that most hosts run: TLS, bearer tokens, checks what is pushed.
pub(crate) const DOCKER_REGISTRY: &str = "docker-registry";

/// Debian package and program that pulls images, to be compared with.
pub(crate) const SKOPEO: &str = "skopeo";

/// Builds what is built. Gives the directory in which the built programs are.
pub(crate) fn prepare(workspace: &Workspace) -> Result<PathBuf, Error> {
    let directory = workspace.services();
    CRANE.build(workspace, &directory)?;
    Ok(directory)
}

/// Fails when a program of a Debian package of the same name is not installed.
pub(crate) fn require(program: &'static str) -> Result<(), Error> {
    if process::is_installed(Command::new(program).arg("--version")) {
        Ok(())
    } else {
        Err(Error::NotInstalled(program))
    }
}

fn reported_version(executable: &Path) -> Result<String, Error> {
    let text = process::output(Command::new(executable).arg("version"))?;
    Ok(text.trim().to_owned())
}

/// A running docker-registry without TLS and tokens; killed on drop.
#[derive(Debug)]
pub(crate) struct DockerRegistry {
    child: Child,
    address: SocketAddr,
}

impl DockerRegistry {
    /// Starts one on a free port that keeps its content in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Self, Error> {
        fs::create_dir_all(directory).map_err(on("create", directory))?;
        let configuration = directory.join("config.yml");
        let text = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"127.0.0.1:0\"}}\n",
            directory.display()
        );
        fs::write(&configuration, text).map_err(on("write", &configuration))?;
        let mut command = Command::new(DOCKER_REGISTRY);
        command.arg("serve").arg(&configuration);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| process::spawn_error(&command, source))?;
        let log = child.stderr.take();
        // From here on a failure ends it.
        let mut registry = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let mut log = BufReader::new(log.ok_or_else(|| no_address("it has no log"))?);
        let mut line = String::new();
        while registry.address.port() == 0 {
            line.clear();
            if log.read_line(&mut line).map_err(io("read the registry's log"))? == 0 {
                return Err(no_address("it ended"));
            }
            if let Some(address) = announced(&line) {
                registry.address = address;
            }
        }
        // Nobody reads on, and a full pipe must not hold it up.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Ok(registry)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Scheme, host and port.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        // Nothing better is left to do when this fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn no_address(why: &str) -> Error {
    Error::Unexpected {
        what: "the address of the registry",
        why: why.to_owned(),
    }
}

/// The address in a line of the registry's log, if it is the one that says so.
fn announced(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on ")?;
    rest.split(['"', ' ', ',']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_its_own_line() {
        let line = r#"time="2026" level=info msg="listening on 127.0.0.1:37237" go.version=go1.19.8"#;
        assert_eq!(announced(line), Some(SocketAddr::from(([127, 0, 0, 1], 37237))));
        assert_eq!(announced(r#"level=info msg="redis not configured""#), None);
    }
}
