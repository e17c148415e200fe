//! What the gate refuses, one variant per rule.

use super::budget::Overrun;
use super::path::PathFault;
use super::sniff::Format;
use crate::problem::{Problem, sanitize};
use crate::run::Stopped;
use assay_schemas::{ArtifactType, Code};
use std::fmt;
use std::io;

/// Most bytes of an entry path in a message.
const SHOWN_PATH_BYTES: usize = 200;

/// Where in the artifact something was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Entries counted before it, over all levels.
    pub index: u64,
    /// Sanitised path, container paths first, at most 200 bytes; empty for the artifact itself.
    pub path: String,
}

impl Place {
    /// A place named by text from the artifact.
    pub fn new(index: u64, within: &[String], name: &str) -> Self {
        let mut joined = String::new();
        for part in within.iter().map(String::as_str).chain([name]) {
            if !joined.is_empty() {
                joined.push_str("!/");
            }
            // Enough to fill the message whatever the rest is.
            joined.extend(part.chars().take(SHOWN_PATH_BYTES));
        }
        let mut path = sanitize(&joined, SHOWN_PATH_BYTES);
        while path.len() > SHOWN_PATH_BYTES {
            path.pop();
        }
        Self { index, path }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "entry {}", self.index)
        } else {
            write!(f, "entry {} \"{}\"", self.index, self.path)
        }
    }
}

/// Why an artifact did not pass, or why the inspection could not be completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The bytes are of another format than their declared type promises.
    #[error("declared as {} but the bytes are {found}", declared.as_str())]
    NotAsDeclared {
        /// What the client says.
        declared: ArtifactType,
        /// What the bytes are.
        found: Format,
    },
    /// A budget is used up.
    #[error("{overrun} ({place})")]
    Budget {
        /// Which one, with its numbers.
        overrun: Overrun,
        /// Where.
        place: Place,
    },
    /// An entry name breaks a path rule.
    #[error("unsafe entry name: {fault} ({place})")]
    Path {
        /// Which rule.
        fault: PathFault,
        /// Where.
        place: Place,
    },
    /// A link target breaks a path rule.
    #[error("unsafe link target: {fault} ({place})")]
    LinkTarget {
        /// Which rule.
        fault: PathFault,
        /// Where.
        place: Place,
    },
    /// A link of a kind, or an entry beneath a link, that is not allowed here.
    #[error("{reason} ({place})")]
    Link {
        /// Which rule.
        reason: &'static str,
        /// Where.
        place: Place,
    },
    /// A device, FIFO, socket or the like.
    #[error("a {kind} is not allowed in an archive ({place})")]
    SpecialFile {
        /// What it is.
        kind: &'static str,
        /// Where.
        place: Place,
    },
    /// An entry's content cannot be read by anybody without more knowledge.
    #[error("unreadable entry: {reason} ({place})")]
    Unreadable {
        /// Encrypted, or which method.
        reason: &'static str,
        /// Where.
        place: Place,
    },
    /// The bytes contradict the format or themselves.
    #[error("malformed {format}: {reason} ({place})")]
    Malformed {
        /// The format.
        format: Format,
        /// What is wrong.
        reason: &'static str,
        /// Where.
        place: Place,
    },
    /// A decompressor refused its input: damaged, cut off, or wanting more memory than allowed.
    #[error("{format} data cannot be decoded ({place})")]
    Decoder {
        /// The format.
        format: Format,
        /// What the decompressor said.
        #[source]
        source: io::Error,
        /// Where.
        place: Place,
    },
    /// A format that is recognised, but not read.
    #[error("{format} archives are not supported ({place})")]
    Unsupported {
        /// The format.
        format: Format,
        /// Where.
        place: Place,
    },
    /// The RPM envelope is malformed.
    #[error("malformed RPM: {reason} ({place})")]
    Rpm {
        /// What is wrong.
        reason: &'static str,
        /// Where.
        place: Place,
    },
    /// The RPM payload is missing or is not CPIO.
    #[error("RPM payload: {reason} ({place})")]
    RpmPayload {
        /// What is wrong.
        reason: &'static str,
        /// Where.
        place: Place,
    },
    /// The run's deadline passed or it was cancelled.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A nested archive could not be kept in the scratch directory.
    #[error("scratch space failed")]
    Scratch(#[source] io::Error),
    /// The artifact's own file could not be read.
    #[error("reading the artifact failed")]
    Input(#[source] io::Error),
    /// The listener failed.
    #[error("handling an entry's content failed")]
    Sink(#[source] io::Error),
}

impl GateError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Budget { overrun, .. } => match overrun {
                Overrun::Entries { .. } => Code::ArchiveEntryLimit,
                Overrun::Expanded { .. } => Code::ArchiveExpandedLimit,
                Overrun::Ratio { .. } | Overrun::EntryRatio { .. } => Code::ArchiveExpansionRatio,
                Overrun::File { .. } => Code::ArchiveEntryTooLarge,
                Overrun::Nesting { .. } => Code::ArchiveNestingLimit,
            },
            Self::Path { fault, .. } => {
                if fault.is_escape() {
                    Code::ArchivePathEscape
                } else {
                    Code::ArchivePathInvalid
                }
            }
            Self::LinkTarget { .. } => Code::ArchiveLinkEscape,
            Self::Link { .. } => Code::ArchiveLinkRejected,
            Self::SpecialFile { .. } => Code::ArchiveSpecialFileRejected,
            Self::Unreadable { .. } => Code::ArchiveEntryUnreadable,
            Self::NotAsDeclared {
                declared: ArtifactType::Rpm,
                ..
            }
            | Self::Rpm { .. } => Code::RpmInvalid,
            Self::NotAsDeclared { .. }
            | Self::Malformed { .. }
            | Self::Decoder { .. }
            | Self::Unsupported { .. } => Code::ArchiveInvalid,
            Self::RpmPayload { .. } => Code::RpmPayloadInvalid,
            Self::Stopped(stopped) => stopped.code(),
            Self::Scratch(_) => Code::WorkspaceIo,
            Self::Sink(_) => Code::CatalogIo,
            Self::Input(_) => Code::InputIo,
        }
    }

    /// Whether it is about what an archive holds, not about a budget of the run or the host. What a single entry of a ZIP
    /// declares to become is a claim, and nobody has paid for it yet.
    pub(super) const fn is_about_content(&self) -> bool {
        match self {
            Self::Budget { overrun, .. } => matches!(overrun, Overrun::EntryRatio { .. }),
            Self::Stopped(_) | Self::Scratch(_) | Self::Input(_) | Self::Sink(_) => false,
            Self::Path { .. }
            | Self::LinkTarget { .. }
            | Self::Link { .. }
            | Self::SpecialFile { .. }
            | Self::Unreadable { .. }
            | Self::Malformed { .. }
            | Self::Decoder { .. }
            | Self::Unsupported { .. }
            | Self::Rpm { .. }
            | Self::RpmPayload { .. }
            | Self::NotAsDeclared { .. } => true,
        }
    }

    /// Wraps it for its way through a reader; [`GateError::from_io`] takes it out again.
    pub(super) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }

    /// The refusal that a reader carried, or a decoder's own complaint.
    pub(super) fn from_io(error: io::Error, format: Format, place: impl FnOnce() -> Place) -> Self {
        match error.downcast::<Self>() {
            Ok(carried) => carried,
            Err(source) => Self::Decoder {
                format,
                source,
                place: place(),
            },
        }
    }
}

impl From<GateError> for Problem {
    fn from(error: GateError) -> Self {
        Self::new(error.code(), error.to_string()).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{GateError, Place};
    use crate::archive::path::PathFault;
    use crate::archive::sniff::Format;
    use crate::problem::Problem;
    use assay_schemas::Code;
    use std::io;

    #[test]
    fn a_place_is_sanitised_and_short() {
        let place = Place::new(3, &["a.jar".into()], &"\u{1b}é\n".repeat(500));
        assert!(place.path.len() <= 200, "{}", place.path.len());
        assert!(place.path.starts_with("a.jar!/?é ?é "));
        assert_eq!(Place::new(0, &[], "").to_string(), "entry 0");
    }

    #[test]
    fn a_refusal_survives_its_way_through_a_reader() {
        let refusal = GateError::Path {
            fault: PathFault::Nul,
            place: Place::default(),
        };
        let back = GateError::from_io(refusal.into_io(), Format::Gzip, Place::default);
        assert_eq!(back.code(), Code::ArchivePathInvalid);
        let decoder = GateError::from_io(io::Error::other("bad"), Format::Gzip, Place::default);
        assert_eq!(decoder.code(), Code::ArchiveInvalid);
    }

    #[test]
    fn escapes_and_unusable_names_have_their_own_codes() {
        let code = |fault| {
            Problem::from(GateError::Path {
                fault,
                place: Place::default(),
            })
            .code
        };
        assert_eq!(code(PathFault::Parent), Code::ArchivePathEscape);
        assert_eq!(code(PathFault::Empty), Code::ArchivePathInvalid);
    }
}
