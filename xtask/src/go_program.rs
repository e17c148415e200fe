//! Programs that are built by Go from a module of ours that does nothing but pin them.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::error::{Error, on};
use crate::process;
use crate::workspace::Workspace;

/// Changes whenever the way of building does, so that old builds are not taken for new ones.
const RECIPE: &str = "1";

/// One pinning module below `fixtures`, and the program that is built from it.
#[derive(Debug)]
pub(crate) struct Program {
    /// Name of the executable, and of the last part of its package.
    pub(crate) name: &'static str,
    /// Folder of the pinning module, below `fixtures`.
    pub(crate) folder: &'static str,
    /// The pinned module; the program is its `cmd/<name>`.
    pub(crate) module: &'static str,
    /// The variable that the linker sets to the pinned version.
    pub(crate) version_variable: &'static str,
    /// Asks the built program which version it is.
    pub(crate) version: fn(&Path) -> Result<String, Error>,
}

impl Program {
    /// Makes sure that the program lies in `directory` and is the pinned one.
    ///
    /// Reads a few small files and asks go for its version when there is nothing to do.
    pub(crate) fn build(&self, workspace: &Workspace, directory: &Path) -> Result<PathBuf, Error> {
        let go = self.go_version(workspace)?;
        let executable = directory.join(self.name);
        let stamp = directory.join(format!("{}.stamp", self.name));
        let key = key(&self.module_directory(workspace), &go)?;
        if executable.is_file() && fs::read_to_string(&stamp).is_ok_and(|found| found == key) {
            return Ok(executable);
        }

        let pin = self.pinned(workspace, self.module)?;
        fs::create_dir_all(directory).map_err(on("create", directory))?;
        let cached = cache_directory().map(|cache| cache.join("engines").join(&key).join(self.name));
        match &cached {
            Some(cached) if cached.is_file() => place(cached, &executable)?,
            _ => self.compile(workspace, &pin, &executable)?,
        }
        self.check_version(&executable, &pin)?;
        if let Some(cached) = cached.filter(|cached| !cached.is_file()) {
            // A cache that cannot be written costs time at the next fresh checkout, nothing else.
            if let Err(error) = place(&executable, &cached) {
                eprintln!("{} not kept for later: {error}", self.name);
            }
        }
        fs::write(&stamp, &key).map_err(on("write", &stamp))?;
        Ok(executable)
    }

    fn compile(&self, workspace: &Workspace, pin: &str, executable: &Path) -> Result<(), Error> {
        eprintln!(
            "building {} {pin} (minutes on a machine that has never done it)",
            self.name
        );
        let mut go = go_command(&self.module_directory(workspace));
        go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false"]);
        go.arg("-ldflags")
            .arg(format!("-s -w -X {}={pin}", self.version_variable));
        go.arg("-o").arg(executable);
        go.arg(format!("{}/cmd/{}", self.module, self.name));
        process::run(&mut go)
    }

    fn check_version(&self, executable: &Path, pin: &str) -> Result<(), Error> {
        let reported = (self.version)(executable)?;
        if reported == pin {
            Ok(())
        } else {
            Err(Error::EngineVersion {
                engine: self.name,
                pinned: pin.to_owned(),
                reported,
            })
        }
    }

    fn go_version(&self, workspace: &Workspace) -> Result<String, Error> {
        let path = self.mod_file(workspace);
        let text = fs::read_to_string(&path).map_err(on("read", &path))?;
        let wanted = go_directive(&text).unwrap_or("of go.mod").to_owned();
        let mut go = go_command(&self.module_directory(workspace));
        let answer = match go
            .args(["env", "GOVERSION", "GOTOOLCHAIN"])
            .stdin(Stdio::null())
            .output()
        {
            Ok(answer) => answer,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Error::GoMissing { wanted }),
            Err(source) => return Err(process::spawn_error(&go, source)),
        };
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = answer.lines();
        let version = lines.next().unwrap_or_default();
        // Otherwise go itself fetches the toolchain that go.mod asks for.
        let is_final = lines
            .next()
            .is_none_or(|toolchain| toolchain.starts_with("local"));
        if is_final && numbers(version) < numbers(&wanted) {
            return Err(Error::GoTooOld {
                wanted,
                found: version.to_owned(),
            });
        }
        Ok(version.to_owned())
    }

    fn module_directory(&self, workspace: &Workspace) -> PathBuf {
        workspace.root().join("fixtures").join(self.folder)
    }

    fn mod_file(&self, workspace: &Workspace) -> PathBuf {
        self.module_directory(workspace).join("go.mod")
    }

    /// The version (without `v`) that the pinning module requires of `module`.
    pub(crate) fn pinned(&self, workspace: &Workspace, module: &str) -> Result<String, Error> {
        let mod_file = self.mod_file(workspace);
        let text = fs::read_to_string(&mod_file).map_err(on("read", &mod_file))?;
        match required_version(&text, module) {
            Some(version) => Ok(version.to_owned()),
            None => Err(Error::PinMissing {
                path: mod_file,
                module: module.to_owned(),
            }),
        }
    }
}

/// Copies an executable under a temporary name and renames it, so that no half of one is ever found.
fn place(from: &Path, to: &Path) -> Result<(), Error> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(on("create", parent))?;
    }
    let temporary = to.with_extension(format!("tmp-{}", std::process::id()));
    fs::copy(from, &temporary).map_err(on("copy", from))?;
    fs::rename(&temporary, to).map_err(on("move into place", to))
}

/// SHA-256 over everything that decides what the build gives.
fn key(module: &Path, go: &str) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for part in [
        RECIPE.as_bytes(),
        go.as_bytes(),
        env::consts::OS.as_bytes(),
        env::consts::ARCH.as_bytes(),
    ] {
        hash.update(part);
        hash.update([0]);
    }
    for file in ["go.mod", "go.sum"] {
        let path = module.join(file);
        hash.update(fs::read(&path).map_err(on("read", &path))?);
        hash.update([0]);
    }
    Ok(hex::encode(hash.finalize()))
}

/// Where built engines are kept between checkouts: `ASSAY_CACHE`, else `~/.cache/assay`, else nowhere.
fn cache_directory() -> Option<PathBuf> {
    let set = env::var_os("ASSAY_CACHE")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    set.or_else(|| env::home_dir().map(|home| home.join(".cache").join("assay")))
}

/// The leading numbers of `go1.26.8`, `1.26` or `go1.27rc1`, to be compared.
fn numbers(version: &str) -> Vec<u32> {
    let digits = version
        .trim_start_matches("go")
        .split(|c: char| !c.is_ascii_digit());
    digits.map_while(|part| part.parse().ok()).collect()
}

/// `go` in a module, with nothing from outside that would change what is built.
pub(crate) fn go_command(module: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off");
    for name in ["GOFLAGS", "GOOS", "GOARCH", "GOEXPERIMENT"] {
        go.env_remove(name);
    }
    go
}

/// The version (without `v`) that a `go.mod` requires of a module.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        if words.next()? == module {
            words.next()?.strip_prefix('v')
        } else {
            None
        }
    })
}

/// The version in the `go` line of a `go.mod`.
fn go_directive(go_mod: &str) -> Option<&str> {
    go_mod
        .lines()
        .find_map(|line| line.strip_prefix("go "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_MOD: &str = "module m\n\ngo 1.26.8\n\ntool github.com/anchore/syft/cmd/syft\n\nrequire (\n\
        \tgithub.com/anchore/syft v1.57.1 // indirect\n\tgithub.com/anchore/syftish v9.9.9\n)\nrequire a.b/c v0.1.0\n";

    #[test]
    fn pins_are_read_from_blocks_and_single_lines() {
        assert_eq!(
            required_version(GO_MOD, "github.com/anchore/syft"),
            Some("1.57.1")
        );
        assert_eq!(required_version(GO_MOD, "a.b/c"), Some("0.1.0"));
        assert_eq!(required_version(GO_MOD, "github.com/anchore/grype"), None);
        assert_eq!(go_directive(GO_MOD), Some("1.26.8"));
    }

    #[test]
    fn go_versions_are_compared_by_number() {
        for (smaller, larger) in [
            ("go1.9", "1.26.8"),
            ("go1.26.7", "1.26.8"),
            ("go1.26", "go1.27rc1"),
            ("", "1.26"),
        ] {
            assert!(numbers(smaller) < numbers(larger), "{smaller} {larger}");
        }
        assert_eq!(numbers("go1.26.8 X:something"), numbers("1.26.8"));
    }

    #[test]
    fn the_key_follows_toolchain_and_sums() {
        let workspace = Workspace::locate().unwrap();
        let folder = |name: &str| workspace.root().join("fixtures").join(name);
        let syft = key(&folder("engines/syft"), "go1.26.8").unwrap();
        assert_eq!(syft.len(), 64);
        assert_ne!(syft, key(&folder("engines/syft"), "go1.26.9").unwrap());
        assert_ne!(syft, key(&folder("engines/grype"), "go1.26.8").unwrap());
    }
}
