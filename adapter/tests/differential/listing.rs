//! Both views of an archive, in one form.

use crate::reader::{Answer, Reader};
use assay_adapter::archive::{
    Container, Entry, EntryKind, EntrySink, GateError, GateLimits, Inspection, Interest, Profile, inspect,
};
use assay_adapter::run::RunContext;
use base64::Engine as _;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write as _};
use std::time::Duration;

/// One entry as both sides can say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    within: Vec<String>,
    name: String,
    kind: &'static str,
    target: String,
    size: u64,
    sha256: String,
}

/// What the gate says.
pub(crate) struct Ours {
    pub(crate) entries: Vec<Listed>,
    pub(crate) inspection: Inspection,
}

/// What the readers of Syft say.
pub(crate) struct Theirs {
    pub(crate) entries: Vec<Listed>,
    /// Empty when they came to the end.
    pub(crate) error: String,
}

const LIMITS: GateLimits = GateLimits {
    max_entries: 10_000,
    max_expanded_bytes: 64 << 20,
    max_single_file_bytes: 32 << 20,
    max_nested_depth: 6,
};

/// Lists with the gate.
pub(crate) fn ours(suffix: &str, content: &[u8], profile: Profile) -> Result<Ours, GateError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    let size = u64::try_from(content.len()).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let run = RunContext::with_timeout(Duration::from_mins(1));
    let mut recorder = Recorder {
        is_debian: suffix == ".deb",
        entries: Vec::new(),
        open: None,
    };
    let inspection = inspect(&file, size, scratch.path(), &LIMITS, profile, &run, &mut recorder)?;
    Ok(Ours {
        entries: recorder.entries,
        inspection,
    })
}

/// Lists with the other reader.
pub(crate) fn theirs(reader: &mut Reader, name: &str, content: &[u8]) -> Theirs {
    let Answer { entries, error } = reader.list(name, content);
    let entries = entries.into_iter().flatten().map(|entry| {
        let name = entry.name.unwrap_or_default();
        let name = base64::engine::general_purpose::STANDARD.decode(name).unwrap();
        let kind = match entry.kind.as_str() {
            "file" => "file",
            "directory" => "directory",
            "symlink" => "symlink",
            "hardlink" => "hardlink",
            _ => "other",
        };
        Listed {
            within: entry.within.unwrap_or_default(),
            name: plain(&String::from_utf8_lossy(&name)),
            kind,
            target: entry.target,
            size: entry.size,
            sha256: entry.sha256,
        }
    });
    Theirs {
        entries: entries.filter(is_named).collect(),
        error,
    }
}

/// Where two listings part; `None` when they are the same.
pub(crate) fn first_difference(ours: &[Listed], theirs: &[Listed]) -> Option<String> {
    let at = ours.iter().zip(theirs).position(|(one, other)| one != other);
    let at = at.or_else(|| (ours.len() != theirs.len()).then(|| ours.len().min(theirs.len())))?;
    Some(format!(
        "{} and {} entries, entry {at}: ours {:?}, theirs {:?}",
        ours.len(),
        theirs.len(),
        ours.get(at),
        theirs.get(at)
    ))
}

/// The root itself is an entry to some readers and none to others.
fn is_named(entry: &Listed) -> bool {
    !(entry.name.is_empty() && entry.kind == "directory")
}

/// A name without what means nothing: `.` components, slashes that repeat or end it.
fn plain(name: &str) -> String {
    let parts: Vec<_> = name
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    parts.join("/")
}

/// Keeps what the other reader lists too: the artifact's own entries, and those of a Debian package's two archives.
struct Recorder {
    is_debian: bool,
    entries: Vec<Listed>,
    /// The file whose content is being handed over.
    open: Option<Sha256>,
}

impl EntrySink for Recorder {
    fn begin(&mut self, entry: &Entry<'_>) -> Interest {
        let is_listed = match entry.within {
            [] => true,
            [member] if self.is_debian => member.starts_with("control.tar") || member.starts_with("data.tar"),
            _ => false,
        };
        if !is_listed {
            return Interest::Skip;
        }
        let (kind, target) = match entry.kind {
            EntryKind::File => ("file", ""),
            EntryKind::Directory => ("directory", ""),
            EntryKind::Symlink { target } => ("symlink", target),
            EntryKind::HardLink { target } => ("hardlink", target),
        };
        // The content of a compressed file has no name of its own.
        let is_nameless = entry.container == Container::Compressed;
        let listed = Listed {
            within: entry.within.to_vec(),
            name: if is_nameless {
                String::new()
            } else {
                plain(entry.path)
            },
            kind,
            target: target.to_owned(),
            size: 0,
            sha256: String::new(),
        };
        if !is_named(&listed) {
            return Interest::Skip;
        }
        self.entries.push(listed);
        if kind == "file" {
            self.open = Some(Sha256::new());
        }
        Interest::Content
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open.as_mut().unwrap().update(bytes);
        self.entries.last_mut().unwrap().size += u64::try_from(bytes.len()).unwrap();
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let digest = self.open.take().unwrap().finalize();
        self.entries.last_mut().unwrap().sha256 = hex::encode(digest);
        Ok(())
    }

    fn rpm(&mut self, _: &[String], _: &rpm::PackageMetadata) {}
}
