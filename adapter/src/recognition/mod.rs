//! Recognition: what an artifact is, what it says its name is, and what Syft is to read of it.
//!
//! The gate tells a [`Collector`] every entry that passed its rules. The collector lays out, in a private directory,
//! the files that cataloguers read, and reads the manifests by which a package names itself. Stock Syft on the bare
//! file sees nothing in an npm tarball, a wheel, a crate, a gem or a `NuGet` package, and says so with exit code 0; so
//! the artifact's own identity is added here, and a known package type without one is a partial result.
//!
//! Locations name paths inside the artifact; `!/` follows each container on the way (`libs.zip!/a/b.jar`).
//!
//! **Invariant:** this module starts no process and believes no manifest: what an artifact says is data.

mod candidate;
mod collector;
mod conda;
pub mod configuration;
pub mod distribution;
pub mod form;
pub mod identity;
mod interest;
mod layout;
pub mod manifest;
mod sniff;
mod unit;

pub use collector::Collector;
pub use distribution::Distribution;
pub use form::Form;
pub use identity::{Ecosystem, Identity, Relation};
pub use layout::LayoutLimits;
pub use manifest::CondaFacts;

use assay_schemas::Code;
use assay_schemas::catalog::PartialReason;
use manifest::CondaIndexError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The name under which a jar of unknown name is laid out. No artifact has it, so a component of this name is what
/// Syft makes of it, and is to be dropped.
pub const PLACEHOLDER_NAME: &str = "assay-unnamed";
/// Most identities of one artifact.
pub const MAX_IDENTITIES: usize = 4096;
/// Most entries of [`Recognized::expected_files`].
pub const MAX_EXPECTED_FILES: usize = 4096;

/// What is known about the artifact as a whole.
#[derive(Debug, Clone, Copy)]
pub struct RootFacts<'a> {
    /// The gate found no archive and no compressed stream: zero entries.
    pub is_opaque: bool,
    /// The gate found the envelope of an RPM.
    pub is_rpm: bool,
    /// Size of the artifact, bytes.
    pub input_bytes: u64,
    /// The artifact itself, on the same file system as the layout if it is not to be copied.
    pub path: &'a Path,
}

/// The result of recognition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognized {
    /// What the artifact is.
    pub form: Form,
    /// Packages by their own manifests, in the order of their purls; at most [`MAX_IDENTITIES`].
    pub identities: Vec<Identity>,
    /// What Syft is to do.
    pub plan: ScanPlan,
    /// Why the result cannot be complete, sorted; at most 64.
    pub reasons: Vec<PartialReason>,
    /// Files in the layout.
    pub laid_out_files: u64,
    /// Bytes in the layout.
    pub laid_out_bytes: u64,
    /// Files of which a component must come; at most [`MAX_EXPECTED_FILES`].
    pub expected_files: Vec<ExpectedFile>,
    /// Distribution of the artifact itself, when it is an operating system package.
    pub distribution: Option<Distribution>,
    /// Whether there are loose operating system packages, so that the distribution matters.
    pub has_system_packages: bool,
    /// A jar in which no usable `pom.properties` says its coordinates: unless the cataloguer learns its name from
    /// elsewhere, what it is stays unknown.
    pub is_unnamed_jar: bool,
    /// Facts of a Conda package.
    pub conda: Option<CondaFacts>,
    /// Layout path to location inside the artifact where they differ; an empty location is the artifact itself.
    pub renamed: BTreeMap<String, String>,
}

impl Recognized {
    /// The location inside the artifact of a path that Syft reports, with or without a leading slash.
    pub fn location<'p>(&'p self, layout_path: &'p str) -> &'p str {
        let path = layout_path.trim_start_matches('/');
        self.renamed.get(path).map_or(path, String::as_str)
    }
}

/// A file of a known package type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedFile {
    /// Path in the layout, as Syft reports it without its leading slash.
    pub layout_path: String,
    /// Location inside the artifact; empty for the artifact itself.
    pub location: String,
}

/// How Syft is to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanPlan {
    /// What it reads.
    pub source: ScanSource,
    /// Names and tags for `--override-default-catalogers`.
    pub catalogers: &'static [&'static str],
}

/// What Syft reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScanSource {
    /// A directory, `dir:`.
    Directory(PathBuf),
}

/// Why recognition failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecognitionError {
    /// The layout could not be written or the artifact not be read.
    #[error("the layout could not be written")]
    Io(#[from] std::io::Error),
    /// The index of a Conda package could not be laid out.
    #[error("the conda index could not be laid out")]
    CondaLayout(#[source] std::io::Error),
    /// More than one `info/index.json` in a Conda package.
    #[error("the conda package has {indexes} indexes")]
    CondaIndexDuplicate {
        /// How many.
        indexes: u32,
    },
    /// A Conda package of another outer form.
    #[error("not a conda package: {what}")]
    CondaForm {
        /// What is wrong.
        what: &'static str,
    },
    /// The index or the metadata of a Conda package.
    #[error("the conda package's metadata is refused")]
    CondaIndex(#[from] CondaIndexError),
}

impl RecognitionError {
    /// The wire code.
    pub const fn code(&self) -> Code {
        match self {
            Self::Io(_) => Code::CatalogIo,
            Self::CondaLayout(_) => Code::CondaCatalogIo,
            Self::CondaIndexDuplicate { .. } => Code::CondaIndexDuplicate,
            Self::CondaIndex(CondaIndexError::Empty) => Code::CondaIndexEmpty,
            Self::CondaIndex(CondaIndexError::TooLarge { .. }) => Code::CondaIndexTooLarge,
            Self::CondaIndex(CondaIndexError::MetadataTooLarge { .. }) => Code::CondaMetadataLimit,
            Self::CondaForm { .. } | Self::CondaIndex(_) => Code::CondaPackageInvalid,
        }
    }
}

impl From<RecognitionError> for crate::problem::Problem {
    fn from(error: RecognitionError) -> Self {
        Self::new(error.code(), error.to_string()).caused_by(error)
    }
}
