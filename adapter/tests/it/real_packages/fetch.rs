//! Each kind of package by its own client: what is fetched is what a user of that client would install.

use assay_schemas::ArtifactType;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whose package it is, and so which client fetches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deb,
    Crate,
    Npm,
    Wheel,
    Sdist,
    Maven,
    Go,
}

const KINDS: [(&str, Kind); 7] = [
    ("deb", Kind::Deb),
    ("crate", Kind::Crate),
    ("npm", Kind::Npm),
    ("wheel", Kind::Wheel),
    ("sdist", Kind::Sdist),
    ("maven", Kind::Maven),
    ("go", Kind::Go),
];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| kind == self).map(|(name, _)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

impl Kind {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, kind)| *kind)
    }

    /// The wire's type for what the client fetches.
    pub(crate) fn artifact_type(self, file: &Path) -> &'static str {
        match self {
            Self::Crate => "CRATE",
            Self::Wheel => "WHL",
            _ => ArtifactType::from_file_name(&file.to_string_lossy()).as_str(),
        }
    }

    /// The distribution whose client it is.
    pub(crate) const fn distribution(self) -> &'static str {
        match self {
            Self::Deb => "debian:12",
            _ => "",
        }
    }
}

/// The file of a package, fetched when it is not there yet.
///
/// # Errors
/// What the client says when it does not give one.
pub(crate) fn file(cache: &Path, kind: Kind, name: &str, version: &str) -> Result<PathBuf, String> {
    let plain = |text: &str| text.replace(['/', ':', '@', '+'], "_");
    let kept = cache
        .join(kind.to_string())
        .join(format!("{}-{}", plain(name), plain(version)));
    if let Some(file) = only_file(&kept) {
        return Ok(file);
    }
    std::fs::create_dir_all(&kept).unwrap();
    let kept = kept.canonicalize().unwrap();
    match kind {
        Kind::Deb => client("apt-get", &kept)
            .args(["--quiet", "download"])
            .arg(format!("{name}={version}"))
            .finish()?,
        Kind::Npm => client("npm", &kept)
            .arg("pack")
            .arg(format!("{name}@{version}"))
            .finish()?,
        Kind::Wheel | Kind::Sdist => client("python3", &kept)
            .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."])
            // What builds a source distribution need not be built from source itself.
            .arg(if kind == Kind::Wheel {
                "--only-binary=:all:".to_owned()
            } else {
                format!("--no-binary={name}")
            })
            .arg(format!("{name}=={version}"))
            .finish()?,
        Kind::Crate => {
            client("cargo", &kept)
                .args(["info", "--quiet"])
                .arg(format!("{name}@{version}"))
                .finish()?;
            copy(&crate_file(name, version)?, &kept)?;
        }
        Kind::Maven => maven(&cache.join("maven-repository"), &kept, name, version)?,
        Kind::Go => {
            let modules = cache.join("go-modules");
            client("go", &kept)
                .args(["mod", "download"])
                .arg(format!("{name}@{version}"))
                .env("GOMODCACHE", &modules)
                .env("GOFLAGS", "-modcacherw")
                .finish()?;
            let escaped: String = name.chars().map(escape_module).collect();
            let zip = modules.join(format!("cache/download/{escaped}/@v/{version}.zip"));
            copy(&zip, &kept)?;
        }
    }
    only_file(&kept).ok_or_else(|| "the client left no file".to_owned())
}

/// Module paths are stored with a mark instead of an upper-case letter.
fn escape_module(letter: char) -> String {
    if letter.is_ascii_uppercase() {
        format!("!{}", letter.to_ascii_lowercase())
    } else {
        letter.to_string()
    }
}

/// Cargo keeps what it fetches in a directory for each registry.
fn crate_file(name: &str, version: &str) -> Result<PathBuf, String> {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    std::fs::read_dir(home.join("registry/cache"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|registry| registry.path().join(format!("{name}-{version}.crate")))
        .find(|path| path.is_file())
        .ok_or_else(|| "cargo keeps no such crate".to_owned())
}

/// `name` is `group:artifact` or `group:artifact:packaging`.
fn maven(repository: &Path, kept: &Path, name: &str, version: &str) -> Result<(), String> {
    let mut parts = name.split(':');
    let (Some(group), Some(artifact)) = (parts.next(), parts.next()) else {
        return Err("not group:artifact".to_owned());
    };
    let packaging = parts.next().unwrap_or("jar");
    client("mvn", kept)
        .args(["-q", "-B", "dependency:get", "-Dtransitive=false"])
        .arg(format!("-Dmaven.repo.local={}", repository.display()))
        .arg(format!("-Dartifact={group}:{artifact}:{version}:{packaging}"))
        .finish()?;
    let group = group.replace('.', "/");
    let file = format!("{group}/{artifact}/{version}/{artifact}-{version}.{packaging}");
    copy(&repository.join(file), kept)
}

fn copy(from: &Path, directory: &Path) -> Result<(), String> {
    let to = directory.join(from.file_name().unwrap_or_default());
    std::fs::copy(from, to)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn only_file(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.pop().filter(|_| files.is_empty())
}

/// A client that is run in a directory of its own.
struct Client(Command);

fn client(program: &str, directory: &Path) -> Client {
    let mut command = Command::new(program);
    command.current_dir(directory).stdin(Stdio::null());
    Client(command)
}

impl Client {
    fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.0.args(arguments);
        self
    }

    fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    fn finish(mut self) -> Result<(), String> {
        let program = self.0.get_program().to_string_lossy().into_owned();
        let output = self
            .0
            .output()
            .unwrap_or_else(|error| panic!("{program} cannot be run: {error}"));
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        Err(format!("{program}: {}: {}", output.status, last.join(" | ")))
    }
}
