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
    metadata: Option<Vec<u8>>,
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

    /// Notes an `info/index.json`.
    pub(super) fn index(&mut self, bytes: Vec<u8>) {
        self.indexes = self.indexes.saturating_add(1);
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
