//! The bytes that are inspected: one open file.

use super::error::GateError;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// A file whose bytes are inspected, read by position and never by name.
#[derive(Debug, Clone, Copy)]
pub struct Input<'f> {
    file: &'f File,
    size: u64,
}

impl<'f> Input<'f> {
    /// A file that is complete and has `size` bytes.
    pub fn complete(file: &'f File, size: u64) -> Self {
        Self { file, size }
    }

    /// Size of the file, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `out` from `offset` as far as the file goes. A failure is the host's, not the artifact's, and is marked
    /// so.
    pub(super) fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(space) = out.get_mut(filled..).filter(|space| !space.is_empty()) {
            let at = offset.saturating_add(u64::try_from(filled).unwrap_or(u64::MAX));
            match self.file.read_at(space, at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(GateError::Input(error).into_io()),
            }
        }
        Ok(filled)
    }
}
