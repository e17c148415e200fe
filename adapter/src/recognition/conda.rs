//! The outer form of a Conda package and its index.

use super::manifest::{CondaFacts, CondaIndexError, MAX_MANIFEST_BYTES, conda_index, conda_metadata};
use super::{RecognitionError, RootFacts};
use crate::archive::{Container, Entry, EntryKind};
use std::collections::BTreeSet;
use std::fs::File;

/// Most entries of the outer ZIP of version 2.
const MAX_OUTER_ENTRIES: usize = 32;

/// What was seen of a Conda package while the gate read it.
#[derive(Debug, Default)]
pub(super) struct CondaSeen {
    container: Option<Container>,
    names: BTreeSet<String>,
    fault: Option<&'static str>,
    index: Option<Vec<u8>>,
    indexes: u32,
    /// The index at its proper place, and how many there are. A package that no client declared may hold others.
    own_index: Option<Vec<u8>>,
    own_indexes: u32,
    metadata: Option<Vec<u8>>,
}

/// Whether `name` is that of one of the two archives in a package of version 2: `info-ID.tar.zst`, `pkg-ID.tar.zst`.
pub(super) fn is_part(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .and_then(|rest| rest.strip_suffix(".tar.zst"))
        .is_some_and(|id| !id.is_empty())
}

/// The container that is the package when there is an index in `unit`: the one around the `info` archive of version 2,
/// else `unit` itself.
pub(super) fn package_unit(unit: &str) -> &str {
    let (around, name) = unit.rsplit_once("!/").unwrap_or(("", unit));
    if is_part(name, "info-") && !name.contains('/') {
        around
    } else {
        unit
    }
}

impl CondaSeen {
    /// Notes an entry of the outermost container.
    pub(super) fn outer(&mut self, entry: &Entry<'_>) {
        self.container.get_or_insert(entry.container);
        if entry.container != Container::Zip || self.fault.is_some() {
            return;
        }
        if entry.kind != EntryKind::File {
            self.fault = Some("an outer entry is not a file");
        } else if self.names.len() >= MAX_OUTER_ENTRIES {
            self.fault = Some("too many outer entries");
        } else if !self.names.insert(entry.path.to_owned()) {
            self.fault = Some("two outer entries of one name");
        }
    }

    /// Notes an `info/index.json` in the container `unit`.
    pub(super) fn index(&mut self, unit: &str, bytes: Vec<u8>) {
        self.indexes = self.indexes.saturating_add(1);
        if package_unit(unit).is_empty() {
            self.own_indexes = self.own_indexes.saturating_add(1);
            self.own_index.get_or_insert_with(|| bytes.clone());
        }
        self.index.get_or_insert(bytes);
    }

    /// Notes a `metadata.json`.
    pub(super) fn metadata(&mut self, bytes: Vec<u8>) {
        self.metadata.get_or_insert(bytes);
    }

    /// The package's facts and its index as it is, if the package has the required form.
    pub(super) fn package(self, root: &RootFacts<'_>) -> Result<(CondaFacts, Vec<u8>), RecognitionError> {
        if self.indexes > 1 {
            return Err(RecognitionError::CondaIndexDuplicate {
                indexes: self.indexes,
            });
        }
        match self.container {
            Some(Container::Zip) => self.check_outer(root)?,
            Some(Container::Tar) => {}
            _ => {
                return Err(RecognitionError::CondaForm {
                    what: "neither a ZIP nor a tar archive",
                });
            }
        }
        let index = self.index.ok_or(RecognitionError::CondaForm {
            what: "no info/index.json",
        })?;
        if index.len() > MAX_MANIFEST_BYTES {
            return Err(CondaIndexError::TooLarge {
                limit: MAX_MANIFEST_BYTES,
            }
            .into());
        }
        let facts = conda_index(&index)?;
        Ok((facts, index))
    }

    /// The same for a package that was recognised by its contents and not declared: no rule is an error there, but
    /// without one readable index there is no package to name.
    pub(super) fn undeclared(self) -> Option<(CondaFacts, Vec<u8>)> {
        let index = self.own_index.filter(|_| self.own_indexes == 1)?;
        let facts = conda_index(&index).ok()?;
        Some((facts, index))
    }

    fn check_outer(&self, root: &RootFacts<'_>) -> Result<(), RecognitionError> {
        let form = |what| RecognitionError::CondaForm { what };
        if let Some(fault) = self.fault {
            return Err(form(fault));
        }
        let id = |prefix: &str| {
            self.names
                .iter()
                .find_map(|n| n.strip_prefix(prefix)?.strip_suffix(".tar.zst"))
                .filter(|id| !id.is_empty())
        };
        let pairs = id("info-").is_some() && id("info-") == id("pkg-");
        if !pairs || self.names.len() != 3 || !self.names.contains("metadata.json") {
            return Err(form("the outer entries are not metadata, info and pkg of one id"));
        }
        conda_metadata(self.metadata.as_deref().unwrap_or_default())?;
        let mut zip =
            zip::ZipArchive::new(File::open(root.path)?).map_err(|_| form("unreadable ZIP directory"))?;
        for index in 0..zip.len().min(MAX_OUTER_ENTRIES) {
            let entry = zip
                .by_index_raw(index)
                .map_err(|_| form("unreadable ZIP entry"))?;
            if entry.compression() != zip::CompressionMethod::Stored
                || entry.size() != entry.compressed_size()
            {
                return Err(form("an outer entry is not stored"));
            }
        }
        Ok(())
    }
}
