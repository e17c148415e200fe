//! The bytes that are inspected: one open file, which may still grow.

use super::error::GateError;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// How far a file that is still being written has grown.
pub trait Growth: fmt::Debug {
    /// Blocks until the file has `until` bytes or will not grow any more; gives the bytes that it has.
    ///
    /// Whoever writes must see to it that this returns when the run stops.
    fn wait(&self, until: u64) -> u64;

    /// Says that bytes before `position` are not needed again; `u64::MAX` that the rest is wanted as fast as it comes.
    fn reached(&self, position: u64);
}

/// A file whose bytes are inspected, read by position and never by name.
#[derive(Debug, Clone, Copy)]
pub struct Input<'f> {
    file: &'f File,
    size: u64,
    growth: Option<&'f dyn Growth>,
}

impl<'f> Input<'f> {
    /// A file that is complete and has `size` bytes.
    pub fn complete(file: &'f File, size: u64) -> Self {
        Self {
            file,
            size,
            growth: None,
        }
    }

    /// A file that will have `size` bytes. One that ends before is an error of the input, so what was inspected is of
    /// worth only if whoever wrote the file confirms its size.
    pub fn growing(file: &'f File, size: u64, growth: &'f dyn Growth) -> Self {
        Self {
            file,
            size,
            growth: Some(growth),
        }
    }

    /// Size of the whole file, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The same file once all of it is there.
    pub(super) fn whole(self) -> io::Result<Self> {
        if let Some(growth) = self.growth {
            growth.reached(u64::MAX);
        }
        self.arrived(0, self.size)?;
        Ok(Self::complete(self.file, self.size))
    }

    /// Waits for the bytes before `until`, when those before `position` are done with; gives how many there are at
    /// least.
    pub(super) fn arrived(&self, position: u64, until: u64) -> io::Result<u64> {
        let Some(growth) = self.growth else {
            return Ok(u64::MAX);
        };
        growth.reached(position);
        let until = until.min(self.size);
        let arrived = growth.wait(until);
        if arrived < until {
            return Err(GateError::Input(ErrorKind::UnexpectedEof.into()).into_io());
        }
        Ok(arrived)
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
