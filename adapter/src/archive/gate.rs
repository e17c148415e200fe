//! The walk through an artifact: where it begins, and the state that all its levels share.

use super::budget::{Budget, GateLimits};
use super::compressed::Decoder;
use super::entry::EntrySink;
use super::error::GateError;
use super::level::{Charge, Level, Parent};
use super::open::open;
use super::sniff::{self, Format, SNIFF_BYTES};
use super::stream::{FileWindow, Source};
use super::{zip_directory, zip_reader};
use crate::run::RunContext;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Which rules about kinds of entries apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Any package: links that stay inside are facts, hard links are refused outside system packages.
    Package,
    /// As [`Profile::Package`], but hard links inside are accepted: Conda payloads consist of them.
    Conda,
    /// An image layer: links, devices and whiteouts are ordinary at its top level.
    Layer,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspection {
    /// What the artifact's own bytes are. A ZIP behind a prefix is [`Format::Zip`].
    pub format: Format,
    /// What its decompressed bytes are, if it is one compressed stream; otherwise the same as `format`.
    pub content: Format,
    /// Entries over all levels.
    pub entries: u64,
    /// Bytes over all levels, counted where they leave a decompressor or a plain container.
    pub expanded_bytes: u64,
    /// Archives opened inside archives.
    pub nested_archives: u64,
    /// Files inside that look like archives and were not read to their end: formats that are recognised but not read
    /// (7z, RAR …), and broken archives that are not named like one.
    pub unopened: u64,
}

/// Inspects all of `file` and tells `sink` about every entry.
///
/// Blocking. `input_size` is the size of `file`, bytes; `scratch` is a private directory for unnamed temporary files.
/// Errors are refusals of the artifact, except those whose code is retryable: the run stopped, or the host's disk or
/// the sink failed.
pub fn inspect(
    file: &File,
    input_size: u64,
    scratch: &Path,
    limits: &GateLimits,
    profile: Profile,
    run: &RunContext,
    sink: &mut dyn EntrySink,
) -> Result<Inspection, GateError> {
    Session::new(limits, input_size, scratch, profile, run).inspect(file, input_size, sink)
}

/// Several files that share one budget: the layers of an image.
pub struct Session<'g>(Gate<'g>);

impl<'g> Session<'g> {
    /// A session for files of `input_size` bytes together. The rest is as for [`inspect`].
    pub fn new(
        limits: &GateLimits,
        input_size: u64,
        scratch: &'g Path,
        profile: Profile,
        run: &'g RunContext,
    ) -> Self {
        Self(Gate {
            budget: RefCell::new(Budget::new(*limits, input_size)),
            unopened: Cell::new(0),
            run,
            scratch,
            profile,
        })
    }

    /// Inspects one of the files, as [`inspect`] does; the counters of the result are those of the session so far.
    pub fn inspect(&self, file: &File, size: u64, sink: &mut dyn EntrySink) -> Result<Inspection, GateError> {
        self.0.run.check()?;
        let (format, content) = inspect_root(&self.0, sink, file, size)?;
        let budget = self.0.budget.borrow();
        Ok(Inspection {
            format,
            content,
            entries: budget.entries(),
            expanded_bytes: budget.expanded_bytes(),
            nested_archives: budget.nested_archives(),
            unopened: self.0.unopened.get(),
        })
    }
}

fn inspect_root(
    gate: &Gate<'_>,
    sink: &mut dyn EntrySink,
    file: &File,
    size: u64,
) -> Result<(Format, Format), GateError> {
    let root = Level::root(gate);
    let mut window = FileWindow::new(file, size);
    let head = window
        .peek(SNIFF_BYTES)
        .map_err(|e| root.broken(Format::Opaque, e))?;
    let format = sniff::sniff(head);
    if format == Format::Zip || (format == Format::Opaque && ends_as_zip(&root, file, size)?) {
        zip_reader::read(&root, sink, file, size)?;
        return Ok((Format::Zip, Format::Zip));
    }
    match format {
        Format::Opaque => {
            let is_tar = size >= 1024 && size.is_multiple_of(512) && is_zero(&root, &mut window)?;
            let format = if is_tar { Format::Tar } else { Format::Opaque };
            Ok((format, format))
        }
        Format::Lzma => {
            // A weak signature: what does not even begin to decode is something else.
            let mut probe = Decoder::new(format, &mut window).map_err(|e| root.broken(format, e))?;
            if probe.read(&mut [0; 4096]).is_err() {
                return Ok((Format::Opaque, Format::Opaque));
            }
            drop(probe);
            let mut window = FileWindow::new(file, size);
            let content = open(&Parent::Artifact(&root), sink, format, &mut window, Charge::Bytes)?;
            Ok((format, content))
        }
        _ => {
            let content = open(&Parent::Artifact(&root), sink, format, &mut window, Charge::Bytes)?;
            Ok((format, content))
        }
    }
}

/// Whether a file that does not begin like an archive ends like a ZIP, as self-executing ones do.
pub(super) fn ends_as_zip(level: &Level<'_>, file: &File, size: u64) -> Result<bool, GateError> {
    zip_directory::has_end_record(file, size).map_err(|e| level.broken(Format::Zip, e))
}

fn is_zero(level: &Level<'_>, source: &mut dyn Source) -> Result<bool, GateError> {
    super::stream::rest_is_zero(source).map_err(|e| level.broken(Format::Tar, e))
}

/// One run's state, shared by all levels.
pub(super) struct Gate<'g> {
    pub(super) budget: RefCell<Budget>,
    pub(super) unopened: Cell<u64>,
    pub(super) run: &'g RunContext,
    pub(super) scratch: &'g Path,
    pub(super) profile: Profile,
}
