//! One archive being read: its place, and the checks and charges that every format reader makes through it.

use super::budget::Overrun;
use super::entry::{Container, Entry, EntryKind, EntrySink};
use super::error::{GateError, Place};
use super::gate::{Gate, Profile};
use super::path::{self, PathFault, Rules, SafePath};
use super::sniff::{self, Format};
use std::io;

/// Whether the bytes of a container's entries still have to be charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charge {
    /// They come from a plain container or file.
    Bytes,
    /// They left a decompressor of their own, which has charged them.
    Done,
}

/// One archive being read.
pub(super) struct Level<'g> {
    pub(super) gate: &'g Gate<'g>,
    pub(super) within: Vec<String>,
    depth: u32,
    /// Its entries are the files of a system package (deb, rpm, apk).
    pub(super) system: bool,
    /// Archives that are its entries are such payloads.
    pub(super) holds_system: bool,
}

/// Where the archive that is about to be opened lies.
pub(super) enum Parent<'p, 'g> {
    /// It is the artifact itself.
    Artifact(&'p Level<'g>),
    /// It is an entry of an archive.
    Entry(&'p Level<'g>, &'p str),
}

impl<'g> Parent<'_, 'g> {
    /// The level of the archive's own entries; one deeper than its parent's.
    pub(super) fn enter(&self) -> Result<Level<'g>, GateError> {
        match self {
            Self::Artifact(root) => Ok(Level::root(root.gate)),
            Self::Entry(level, name) => {
                let descended = level.gate.budget.borrow_mut().descend(level.depth);
                let depth = descended.map_err(|overrun| level.over(overrun, name))?;
                Ok(Level {
                    depth,
                    system: level.holds_system,
                    holds_system: false,
                    ..self.beside()
                })
            }
        }
    }

    /// The level of a compressed file's content, which is no archive level of its own.
    pub(super) fn beside(&self) -> Level<'g> {
        match self {
            Self::Artifact(root) => Level::root(root.gate),
            Self::Entry(level, name) => {
                let mut within = level.within.clone();
                within.push((*name).to_owned());
                Level {
                    gate: level.gate,
                    within,
                    depth: level.depth,
                    system: level.system,
                    holds_system: level.holds_system,
                }
            }
        }
    }

    pub(super) fn content_name(&self) -> String {
        match self {
            Self::Artifact(_) => "content".to_owned(),
            Self::Entry(_, name) => sniff::decompressed_name(name).to_owned(),
        }
    }
}

impl<'g> Level<'g> {
    pub(super) fn root(gate: &'g Gate<'g>) -> Self {
        Self {
            gate,
            within: Vec::new(),
            depth: 0,
            system: false,
            holds_system: false,
        }
    }

    /// Whether this is the top level of an image layer.
    pub(super) fn is_layer(&self) -> bool {
        self.gate.profile == Profile::Layer && self.depth == 0
    }

    /// Whether hard links that stay inside are ordinary here.
    pub(super) fn allows_hard_links(&self) -> bool {
        self.system || self.is_layer() || self.gate.profile == Profile::Conda
    }

    /// The path rules for a container whose own dialect has `dialect`.
    pub(super) fn rules(&self, dialect: Rules) -> Rules {
        if self.system || self.is_layer() {
            Rules::System
        } else {
            dialect
        }
    }

    pub(super) fn place(&self, name: &str) -> Place {
        Place::new(self.gate.budget.borrow().entries(), &self.within, name)
    }

    /// A reader's error at this level, wherever it came from.
    pub(super) fn broken(&self, format: Format, error: io::Error) -> GateError {
        GateError::from_io(error, format, || self.place(""))
    }

    pub(super) fn broken_at(&self, format: Format, name: &str, error: io::Error) -> GateError {
        GateError::from_io(error, format, || self.place(name))
    }

    pub(super) fn malformed(&self, format: Format, reason: &'static str, name: &str) -> GateError {
        GateError::Malformed {
            format,
            reason,
            place: self.place(name),
        }
    }

    pub(super) fn over(&self, overrun: Overrun, name: &str) -> GateError {
        GateError::Budget {
            overrun,
            place: self.place(name),
        }
    }

    /// Counts one more entry, before anything else is believed about it.
    pub(super) fn charge_entry(&self) -> Result<(), GateError> {
        self.gate.run.check()?;
        let charged = self.gate.budget.borrow_mut().charge_entry();
        charged.map(|_| ()).map_err(|overrun| self.over(overrun, ""))
    }

    /// Counts the bytes of plain data, if nobody has yet.
    pub(super) fn charge_plain(&self, charge: Charge, bytes: u64, name: &str) -> Result<(), GateError> {
        if charge == Charge::Done {
            return Ok(());
        }
        let charged = self.gate.budget.borrow_mut().charge_bytes(bytes);
        charged.map_err(|overrun| self.over(overrun, name))
    }

    pub(super) fn check_file(&self, bytes: u64, name: &str) -> Result<(), GateError> {
        let checked = self.gate.budget.borrow().check_file(bytes);
        checked.map_err(|overrun| self.over(overrun, name))
    }

    pub(super) fn check_entry_ratio(
        &self,
        expanded: u64,
        compressed: u64,
        name: &str,
    ) -> Result<(), GateError> {
        let checked = self.gate.budget.borrow().check_entry_ratio(expanded, compressed);
        checked.map_err(|overrun| self.over(overrun, name))
    }

    /// Applies the path rules to an entry name.
    pub(super) fn check_name<'n>(&self, raw: &'n [u8], dialect: Rules) -> Result<SafePath<'n>, GateError> {
        path::check_name(raw, self.rules(dialect)).map_err(|fault| GateError::Path {
            fault,
            place: self.place(&String::from_utf8_lossy(raw)),
        })
    }

    /// The archive's root (`.`, `./`) is a directory; nothing else can have its name.
    pub(super) fn check_is_not_root(&self, name: &str) -> Result<(), GateError> {
        if name.is_empty() {
            return Err(GateError::Path {
                fault: PathFault::Empty,
                place: self.place("."),
            });
        }
        Ok(())
    }

    /// Applies the link rules to a symbolic link.
    pub(super) fn check_symlink(&self, name: &str, target: &[u8], dialect: Rules) -> Result<(), GateError> {
        self.check_is_not_root(name)?;
        if self.is_layer() {
            return Ok(());
        }
        path::check_symlink_target(name, target, self.rules(dialect)).map_err(|fault| GateError::LinkTarget {
            fault,
            place: self.place(name),
        })
    }

    /// Announces something without content: a directory or a link. The archive's root itself is not announced.
    pub(super) fn announce(
        &self,
        sink: &mut dyn EntrySink,
        container: Container,
        name: &str,
        kind: EntryKind<'_>,
    ) {
        if !name.is_empty() {
            sink.begin(&Entry {
                path: name,
                within: &self.within,
                container,
                kind,
                declared_size: None,
            });
        }
    }
}

/// The links of an archive are held in memory until its end.
pub(super) fn too_many_links(level: &Level<'_>, name: &str) -> GateError {
    GateError::Link {
        reason: "more symbolic links than can be followed",
        place: level.place(name),
    }
}
