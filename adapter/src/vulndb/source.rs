//! Where databases come from: the matcher's own distribution, a mirror of it, or a file or directory of this host.

use serde::Deserialize;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the file that names the newest archive of a distribution.
pub const LATEST: &str = "latest.json";
/// Most bytes of such a file that are read.
const MAX_LATEST: u64 = 1 << 20;
/// How names of databases end that the engine imports.
const SUFFIXES: &[&str] = &[".tar.zst", ".tar.gz", ".db"];

/// One source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The matcher's own.
    Upstream,
    /// A distribution at this address, in the matcher's layout.
    Mirror(String),
    /// A database file or archive, or a directory of them.
    Local(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream => f.write_str("upstream"),
            // Whatever stands between the scheme and `@` may be a secret.
            Self::Mirror(url) => match (url.split_once("://"), url.rsplit_once('@')) {
                (Some((scheme, _)), Some((_, rest))) => write!(f, "{scheme}://{rest}"),
                _ => f.write_str(url),
            },
            Self::Local(path) => path.display().fmt(f),
        }
    }
}

/// A list of sources that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a list of `upstream`, http(s) addresses and absolute paths")]
pub struct SourcesError;

/// The sources in a list separated by commas; nothing means the matcher's own.
///
/// # Errors
/// [`SourcesError`].
pub fn parse(text: &str) -> Result<Vec<Source>, SourcesError> {
    let sources: Vec<Source> = text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(|item| match item {
            "upstream" => Ok(Source::Upstream),
            path if path.starts_with('/') => Ok(Source::Local(path.into())),
            url => match url.parse::<hyper::Uri>() {
                Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() => {
                    Ok(Source::Mirror(url.to_owned()))
                }
                _ => Err(SourcesError),
            },
        })
        .collect::<Result<_, _>>()?;
    Ok(if sources.is_empty() {
        vec![Source::Upstream]
    } else {
        sources
    })
}

/// Why a local source has nothing.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// It cannot be read.
    #[error("the local source cannot be read")]
    Io(#[from] io::Error),
    /// No file in it is a database.
    #[error("the local source has no database")]
    Empty,
    /// Its newest archive is not the one that it promises.
    #[error("the archive of the local source is not the one that its {LATEST} names")]
    Checksum,
}

/// The file to import from a local source: itself; in a directory the archive that `latest.json` names, which must
/// have the checksum named there, else the file that was changed last.
///
/// # Errors
/// [`LocalError`].
pub fn newest(path: &Path) -> Result<PathBuf, LocalError> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(path.to_owned());
    }
    for directory in [path.join("v6"), path.to_owned()] {
        if let Ok(meta) = fs::metadata(directory.join(LATEST)) {
            if meta.len() > MAX_LATEST {
                return Err(LocalError::Checksum);
            }
            return promised(&directory);
        }
    }
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_database = SUFFIXES
            .iter()
            .any(|suffix| name.to_string_lossy().ends_with(suffix));
        let meta = entry.metadata()?;
        if is_database && meta.is_file() {
            let candidate = (meta.modified()?, entry.path());
            newest = newest.max(Some(candidate));
        }
    }
    newest.map(|(_, path)| path).ok_or(LocalError::Empty)
}

#[derive(Deserialize)]
struct Latest {
    path: String,
    checksum: String,
}

fn promised(directory: &Path) -> Result<PathBuf, LocalError> {
    let text = fs::read(directory.join(LATEST))?;
    let latest: Latest = serde_json::from_slice(&text).map_err(io::Error::from)?;
    // A name in this directory and nothing else.
    let name = Path::new(&latest.path).file_name().ok_or(LocalError::Checksum)?;
    let archive = directory.join(name);
    let facts = super::publish::FileFacts::of(&archive)?;
    let found = facts.sha256.map(|sha256| format!("sha256:{sha256}"));
    if found.as_deref() != Some(&latest.checksum) {
        return Err(LocalError::Checksum);
    }
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::{LocalError, Source, newest, parse};
    use sha2::{Digest as _, Sha256};
    use std::fs;

    #[test]
    fn lists_are_read_and_show_no_secret() {
        assert_eq!(parse(" ,"), Ok(vec![Source::Upstream]));
        let list = parse("https://user:secret@a.example/db, /srv/db,upstream").unwrap();
        let shown: Vec<_> = list.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["https://a.example/db", "/srv/db", "upstream"]);
        for bad in ["ftp://a/b", "relative/path", "a.example", "https://", "file:///x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_directory_gives_what_it_promises_or_its_newest() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(newest(root.path()), Err(LocalError::Empty)));
        assert!(matches!(
            newest(&root.path().join("absent")),
            Err(LocalError::Io(_))
        ));
        let write = |name: &str, seconds: u64| {
            let path = root.path().join(name);
            fs::write(&path, name).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let (old, new) = (write("old.tar.gz", 1), write("new.db", 2));
        write("notes.txt", 3);
        assert_eq!(newest(root.path()).unwrap(), new);
        assert_eq!(newest(&old).unwrap(), old);

        let checksum = hex::encode(Sha256::digest("old.tar.gz"));
        let promise = |path: &str, checksum: &str| {
            let text = format!(r#"{{"path":"{path}","checksum":"sha256:{checksum}","status":"active"}}"#);
            fs::write(root.path().join("latest.json"), text).unwrap();
        };
        promise("old.tar.gz", &checksum);
        assert_eq!(newest(root.path()).unwrap(), old);
        promise("old.tar.gz", &"0".repeat(64));
        assert!(matches!(newest(root.path()), Err(LocalError::Checksum)));
        promise("..", &checksum);
        assert!(matches!(newest(root.path()), Err(LocalError::Checksum)));
    }
}
